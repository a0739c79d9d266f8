"""Racks by all locators: which one knows the rack, which wins, which differs, and the rack sent to Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from agent.decode.members import decode_members
from agent.detect.find import detect
from agent.loop import CycleStages
from agent.memory.remember import remember
from agent.model.build_snapshot import build_snapshot
from agent.values.limits import Limits, LocatorKind, RackLocator, RackPattern
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.observation import GapCause, ObservationPart
from agent.values.snapshot import ConsumerGroup, LocatorState, Rack, RackState, Snapshot, StreamsGroup
from tests.builders import TABLE, WIRE, Answers, an_observation, consumer, instance, located, reader, streams_member

KNOWN, UNKNOWN, CONFLICTING = RackState
SECOND = RackLocator(name="file:more", kind=LocatorKind.TABLE)


def cidr(**networks: str) -> RackLocator:
    return RackLocator(
        name="cidr", kind=LocatorKind.CIDR, networks=tuple((net, rack) for rack, net in networks.items())
    )


def regex(*patterns: tuple[str, str, str]) -> RackLocator:
    return RackLocator(name="regex", kind=LocatorKind.REGEX, patterns=tuple(RackPattern(*row) for row in patterns))


def alias(**names: str) -> RackLocator:
    return RackLocator(name="alias", kind=LocatorKind.ALIAS, aliases=tuple(names.items()))


def taken(
    answers: Answers, *order: RackLocator, tables: tuple[Any, ...] = (), memory: Memory | None = None, at: float = 0
) -> Snapshot:
    answers.extra["rack_tables"] = tables
    observation = answers.at(at)
    limits = Limits(rack_locators=order)
    return build_snapshot(observation, decode_members(observation, None), memory or Memory(), limits, None)


def rack_of(*order: RackLocator, told: str | None = None, host: str = "kafka-1", tables: tuple[Any, ...] = ()) -> Rack:
    """The rack of broker 1."""
    answers = an_observation(x=(2,)).broker(1, told)
    answers.brokers[1] = answers.brokers[1]._replace(host=host)
    return taken(answers, *order, tables=tables).brokers[0].rack


def member_rack(
    *order: RackLocator,
    told: str | None = None,
    host: str = "/10.0.0.1",
    client: str = "client-m",
    instance_id: str | None = None,
    tables: tuple[Any, ...] = (),
) -> Rack:
    answers = an_observation().topic("orders", (1,))
    one = reader("m", told, "orders-0", client_host=host, client_id=client, instance_id=instance_id)
    group = taken(answers.group("g", one), *order, tables=tables).groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group.members[0].rack


IN_A = located("file", "broker.1=a", "client.id.client-m=a")
IN_B = located("file:more", "broker.1=b", "client.id.client-m=b")
BOTH = located("file", "broker.1=a", "broker.1=b", "client.id.client-m=a", "client.id.client-m=b")


@pytest.mark.parametrize(
    ("order", "told", "tables", "rack"),
    [
        pytest.param((WIRE, TABLE), "a", (IN_A,), Rack(KNOWN, "a"), id="the wire and a table agree"),
        pytest.param((WIRE, TABLE), "a", (), Rack(KNOWN, "a"), id="only the wire knows"),
        pytest.param((WIRE, TABLE), None, (IN_A,), Rack(KNOWN, "a", source="file"), id="only a table knows"),
        pytest.param((WIRE, TABLE), None, (), Rack(UNKNOWN, None), id="no rack is known"),
        pytest.param(
            (WIRE, TABLE),
            "b",
            (IN_A,),
            Rack(KNOWN, "b", others=(("file", "a"),)),
            id="the wire is asked first and wins",
        ),
        pytest.param(
            (TABLE, WIRE),
            "b",
            (IN_A,),
            Rack(KNOWN, "a", source="file", sent="b", others=(("wire", "b"),)),
            id="a table is asked first and wins, and the rack sent is kept",
        ),
        pytest.param(
            (SECOND, TABLE, WIRE),
            None,
            (IN_A, IN_B),
            Rack(KNOWN, "b", source="file:more", others=(("file", "a"),)),
            id="of two tables the first in the list wins",
        ),
        pytest.param(
            (TABLE,),
            "b",
            (IN_A,),
            Rack(KNOWN, "a", source="file", sent="b"),
            id="without wire, the rack sent is not asked",
        ),
        pytest.param(
            (TABLE,),
            "b",
            (),
            Rack(UNKNOWN, None, source="", sent="b"),
            id="without wire, the rack sent is not believed",
        ),
        pytest.param(
            (TABLE,), None, (BOTH,), Rack(CONFLICTING, None, ("a", "b"), source="file"), id="a table contradicts itself"
        ),
        pytest.param(
            (TABLE, WIRE),
            "a",
            (BOTH,),
            Rack(KNOWN, "a", others=(("file", "b"),)),
            id="a table contradicts itself, so the next is asked",
        ),
        pytest.param(
            (TABLE, SECOND),
            None,
            (BOTH, IN_B),
            Rack(KNOWN, "b", source="file:more", others=(("file", "a"),)),
            id="a table contradicts itself, and another knows",
        ),
        pytest.param(
            (WIRE, alias(b="a")), "b", (), Rack(KNOWN, "a", source="wire", sent="b"), id="an alias says what is meant"
        ),
        pytest.param(
            (WIRE, TABLE, alias(b="a")),
            "b",
            (IN_A,),
            Rack(KNOWN, "a", source="wire", sent="b"),
            id="two names of one rack are no contradiction",
        ),
        pytest.param(
            (alias(a="z"), TABLE),
            None,
            (IN_A,),
            Rack(KNOWN, "z", source="file"),
            id="an alias translates wherever it stands",
        ),
        pytest.param(
            (alias(a="b"), TABLE), None, (BOTH,), Rack(KNOWN, "b", source="file"), id="an alias ends a contradiction"
        ),
    ],
)
def test_the_first_that_knows_wins_for_brokers_and_for_members(
    order: tuple[RackLocator, ...], told: str | None, tables: tuple[Any, ...], rack: Rack
) -> None:
    assert rack_of(*order, told=told, tables=tables) == rack
    assert member_rack(*order, told=told, tables=tables) == rack


def test_what_kafka_is_told_is_kept_apart_from_what_is_known() -> None:
    located_only = rack_of(WIRE, TABLE, tables=(IN_A,))
    assert (located_only.rack_id, located_only.silent) == (None, True)
    by_alias = rack_of(WIRE, alias(b="a"), told="b")
    assert (by_alias.rack_id, by_alias.silent) == ("b", False)
    plain = rack_of(WIRE, TABLE, told="b", tables=(IN_A,))
    assert (plain.rack_id, plain.silent) == ("b", False)
    disbelieved = rack_of(TABLE, told="b")
    assert (disbelieved.rack_id, disbelieved.silent) == ("b", False)


@pytest.mark.parametrize(
    ("row", "host", "rack"),
    [
        pytest.param("host.10.0.0.1=a", "/10.0.0.1", "a", id="an address as Java writes it"),
        pytest.param("host.10.0.0.1=a", "pod-1/10.0.0.1", "a", id="an address with a name"),
        pytest.param("host.POD-1.example=a", "pod-1.Example/10.0.0.1", "a", id="a name without regard to case"),
        pytest.param("host.10.0.0.1=a", "/::ffff:10.0.0.1", "a", id="an address of IPv4 in IPv6"),
        pytest.param(
            "host.fd00::1=a", "/fd00:0:0:0:0:0:0:1%eth0", "a", id="an address of IPv6 in another form, with a scope"
        ),
        pytest.param("host.10.0.0.1=a", "/10.0.0.11", None, id="another address"),
        pytest.param("host.10.0.0.1=a", "", None, id="no address"),
        pytest.param("host./=a", "//", None, id="nothing between slashes"),
        pytest.param("client.id.Client-m=a", "/10.0.0.1", None, id="a client id is compared letter by letter"),
        pytest.param("group.instance.id.i-1=a", "/10.0.0.1", "a", id="a static member"),
        pytest.param("broker.1=a", "/10.0.0.1", None, id="a broker's row is no member's"),
    ],
)
def test_a_member_is_found_in_a_table_by_every_name_that_it_has(row: str, host: str, rack: str | None) -> None:
    assert member_rack(TABLE, host=host, instance_id="i-1", tables=(located("file", row),)).name == rack


def test_names_that_disagree_in_one_table_are_a_contradiction() -> None:
    table = located("file", "host.10.0.0.1=a", "client.id.client-m=b")
    assert member_rack(TABLE, tables=(table,)) == Rack(CONFLICTING, None, ("a", "b"), source="file")


@pytest.mark.parametrize(
    ("networks", "host", "rack"),
    [
        pytest.param(
            {"a": "10.1.0.0/16", "b": "10.2.0.0/16"}, "/10.2.255.255", "b", id="the last address of a network"
        ),
        pytest.param({"a": "10.1.0.0/16", "b": "10.2.0.0/16"}, "/10.2.0.0", "b", id="the first address of a network"),
        pytest.param({"a": "10.1.0.0/16", "b": "10.2.0.0/16"}, "/10.3.0.0", None, id="between networks"),
        pytest.param({"a": "10.1.0.0/16"}, "/9.255.255.255", None, id="below all networks"),
        pytest.param({"a": "0.0.0.0/0"}, "/fd00::1", None, id="all of IPv4 is nothing of IPv6"),
        pytest.param({"a": "fd00:1::/32", "b": "fd00:2::/32"}, "/fd00:2::7", "b", id="IPv6"),
        pytest.param({"a": "10.1.0.0/16"}, "/::ffff:10.1.0.1", "a", id="IPv4 in IPv6"),
        pytest.param({"a": "10.1.0.0/16"}, "client.example", None, id="a name is never looked up"),
        pytest.param({"a": "10.1.0.0/16"}, "client.example/10.1.0.1", "a", id="a name with its address"),
    ],
)
def test_a_network_tells_the_rack_of_its_addresses(networks: dict[str, str], host: str, rack: str | None) -> None:
    assert member_rack(cidr(**networks), host=host).name == rack


def test_a_network_inside_another_of_the_same_rack_hides_nothing_of_it() -> None:
    rows = (("10.0.0.0/24", "a"), ("10.0.0.0/8", "a"), ("10.9.0.0/16", "a"), ("11.0.0.0/8", "b"))
    locator = RackLocator(name="cidr", kind=LocatorKind.CIDR, networks=rows)
    hosts = {"10.0.0.1": "a", "10.0.1.1": "a", "10.9.0.1": "a", "10.255.0.1": "a", "11.0.0.1": "b", "12.0.0.1": None}
    assert {host: member_rack(locator, host=f"/{host}").name for host in hosts} == hosts


def test_brokers_are_located_by_the_address_that_they_advertise_and_not_by_a_name() -> None:
    assert rack_of(cidr(a="10.1.0.0/16"), host="10.1.0.7").name == "a"
    assert rack_of(cidr(a="10.1.0.0/16"), host="[fd00::1]").name is None
    assert rack_of(cidr(a="fd00::/16"), host="fd00::1").name == "a"
    assert rack_of(cidr(a="0.0.0.0/0"), host="kafka-1").name is None


@pytest.mark.parametrize(
    ("patterns", "rack"),
    [
        pytest.param([("client.id", "-az1-", "a")], Rack(KNOWN, "a", source="regex"), id="found inside"),
        pytest.param([("client.id", "^az1", "a")], Rack(UNKNOWN, None), id="found nowhere"),
        pytest.param([("host", r"^10\.0\.", "a")], Rack(KNOWN, "a", source="regex"), id="by address"),
        pytest.param([("group.instance.id", "^i-", "a")], Rack(KNOWN, "a", source="regex"), id="by group instance id"),
        pytest.param(
            [("client.id", "az1", "a"), ("client.id", "orders", "a")], Rack(KNOWN, "a", source="regex"), id="two agree"
        ),
        pytest.param(
            [("client.id", "az1", "a"), ("client.id", "orders", "b")],
            Rack(CONFLICTING, None, ("a", "b"), source="regex"),
            id="two contradict each other",
        ),
        pytest.param([("client.id", "(?i)ORDERS", "a")], Rack(KNOWN, "a", source="regex"), id="without regard to case"),
    ],
)
def test_a_pattern_tells_the_rack_of_the_names_in_which_it_is_found(
    patterns: list[tuple[str, str, str]], rack: Rack
) -> None:
    assert member_rack(regex(*patterns), client="orders-az1-7", instance_id="i-1") == rack


def test_no_name_of_a_client_takes_a_pattern_long() -> None:
    hostile = regex(("client.id", "^(a+)+$", "a"), ("client.id", "(a|aa)*b$", "b"), ("client.id", ".*.*.*=.*.*x", "c"))
    assert member_rack(hostile, client="a" * 30_000 + "!").name is None
    assert member_rack(hostile, client="\ud800").name is None


def test_threads_of_a_process_that_are_located_apart_are_believed_nowhere() -> None:
    answers = an_observation().topic("orders", (1,), (2,))
    answers.streams("app", instance(1, None, {"0_0": "orders-0"}), instance(1, "b", {"0_1": "orders-1"}, thread=2))
    table = located("file", "client.id.app-1-StreamThread-1-consumer=a")
    group = taken(answers, WIRE, TABLE, tables=(table,)).groups["app"]
    assert isinstance(group, StreamsGroup)
    (process,) = group.processes
    assert process.rack == Rack(CONFLICTING, None, ("a", "b"), source="file")
    assert [member.rack.rack_id for member in group.members] == [None, "b"]
    assert {member.rack.state for member in group.members} == {CONFLICTING}


def test_members_of_groups_that_brokers_assign_are_located_too() -> None:
    answers = an_observation().topic("orders", (1,))
    answers.kip848("new", consumer("m", None, "orders-0"))
    answers.kip1071("app", streams_member(3, None), subtopologies=None)
    snapshot = taken(answers, WIRE, cidr(a="10.0.0.0/24"))
    new, app = snapshot.groups["new"], snapshot.groups["app"]
    assert isinstance(new, ConsumerGroup)
    assert isinstance(app, StreamsGroup)
    assert new.members[0].rack == app.members[0].rack == app.processes[0].rack == Rack(KNOWN, "a", source="cidr")


def test_an_absent_broker_is_located_by_its_id() -> None:
    answers = an_observation(x=(2,)).topic("orders", (1, 2))
    snapshot = taken(answers, WIRE, TABLE, tables=(IN_A,))
    assert snapshot.brokers[0].rack == Rack(KNOWN, "a", source="file")
    assert not snapshot.brokers[0].alive


def test_a_broker_whose_locator_never_answered_keeps_the_rack_that_is_remembered() -> None:
    answers = an_observation(_=(1, 2))
    before = taken(answers, WIRE, TABLE, tables=(located("file", "broker.1=a", "broker.2=b"),))
    memory = remember(Memory(), before, detect(before, Memory(), Limits()))
    after = taken(
        answers.gap(ObservationPart.RACK_LOCATORS, GapCause.TIMED_OUT, "file"), WIRE, TABLE, memory=memory, at=10
    )
    assert [(broker.rack.name, broker.rack.remembered, broker.rack.rack_id) for broker in after.brokers] == [
        ("a", True, None),
        ("b", True, None),
    ]
    assert remember(memory, after, detect(after, memory, Limits())).brokers == memory.brokers


def test_the_snapshot_tells_how_large_and_how_old_each_answer_is() -> None:
    order = (WIRE, TABLE, SECOND, cidr(a="10.0.0.0/8"), alias(x="a", y="b"))
    snapshot = taken(an_observation(), *order, tables=(located("file", "broker.1=a", "broker.2=b", age_ms=30_000),))
    assert snapshot.rack_locators == (
        LocatorState("wire", None, 0),
        LocatorState("file", 2, 30_000),
        LocatorState("file:more", None, None),
        LocatorState("cidr", 1, 0),
        LocatorState("alias", 2, 0),
    )
    assert taken(an_observation()).rack_locators == ()


def test_a_quiet_look_keeps_its_objects_and_a_changed_answer_changes_only_racks() -> None:
    answers = an_observation().topic("orders", (1,)).group("g", reader("m", None, "orders-0"))
    answers.group("other", reader("o", "a", "orders-0")).kip848("new", consumer("n", None, "orders-0"))
    line = CycleStages(Limits(rack_locators=(WIRE, TABLE)))
    answers.extra["rack_tables"] = (located("file", "client.id.client-m=a"),)
    first = line.snapshot(answers.at(0), Memory())
    line.turn()
    answers.extra["rack_tables"] = (located("file", "client.id.client-m=a", age_ms=10_000),)
    second = line.snapshot(answers.at(10), Memory())
    line.turn()
    assert second.groups is first.groups
    assert second.brokers is first.brokers
    answers.extra["rack_tables"] = (located("file", "client.id.client-m=b"),)
    third = line.snapshot(answers.at(20), Memory()).groups
    changed = third["g"]
    assert isinstance(changed, ConsumerGroup)
    assert changed.members[0].rack.name == "b"
    assert third["other"] is second.groups["other"]
    assert third["new"] is second.groups["new"]


def test_equal_racks_of_many_members_are_one_object() -> None:
    answers = an_observation().topic("orders", *[(1,)] * 50)
    answers.group("g", *(reader(f"m{n}", None, f"orders-{n}") for n in range(50)))
    group = taken(answers, WIRE, cidr(a="10.0.0.0/8")).groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert len({id(member.rack) for member in group.members}) == 1


def test_a_memo_changes_nothing() -> None:
    answers = an_observation(_=(1, 2)).topic("orders", (1, 2)).group("g", reader("m", None, "orders-0"))
    answers.extra["rack_tables"] = (located("file", "broker.1=a", "host.10.0.0.1=b"),)
    observation, limits = answers.at(0), Limits(rack_locators=(WIRE, TABLE, alias(a="c")))
    decoded = decode_members(observation, None)
    with_memo = build_snapshot(observation, decoded, Memory(), limits, Memo())
    assert with_memo == build_snapshot(observation, decoded, Memory(), limits, None)

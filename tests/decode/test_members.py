"""Groups as the brokers answer them: which layout is read, what is not shown, and who stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decode.members import decode_members
from agent.decode.values import (
    Assignment,
    DecodedGroups,
    DecodedMember,
    StickyUserData,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
    Undecodable,
    UndecodableReason,
)
from agent.execute.probe_bytes import encode_sticky, encode_subscription, encode_subscription_info
from agent.values.memo import Memo
from agent.values.observation import Observation, RawBroker, RawClassicGroup, RawMember, RawTopic
from assignors.problem import TaskId, TopicPartition
from tests.decode import generate
from tests.decode.assignments import encode_assignment, encode_assignment_info

repeatable = settings(max_examples=200, derandomize=True, deadline=None)

IN_1 = TopicPartition("in", 1)
STREAMS = StreamsSubscription(
    11, 11, "0" * 8 + "-0000-0000-0000-" + "0" * 12, (), (), None, {TaskId(0, 1): 5}, 1, 0, ()
)
TOLD = StreamsAssignment(11, 11, (TaskId(0, 1),), (), (), (), 0, None)


def observation(*groups: RawClassicGroup, topics: tuple[str, ...] = (), racks: tuple[str, ...] = ()) -> Observation:
    return Observation(
        cluster_id="c",
        controller=1,
        brokers=tuple(RawBroker(i, "h", 9092, rack, False) for i, rack in enumerate(racks)),
        topics=tuple(RawTopic(name, None, False, (), None) for name in topics),
        groups=groups,
        taken_ms=0,
        monotonic_ms=0,
        took_ms=0,
    )


def group(
    *members: RawMember, state: str = "Stable", protocol: str = "range", kind: str = "consumer", name: str = "g"
) -> RawClassicGroup:
    return RawClassicGroup(name, state, kind, protocol, members, 1)


def member(metadata: bytes = b"", assignment: bytes = b"", name: str = "m") -> RawMember:
    return RawMember(name, None, "client", "/10.0.0.1", metadata, assignment)


def subscribed(user_data: bytes | None = None) -> bytes:
    return encode_subscription(Subscription(3, ("in",), user_data, (IN_1,), 4, "r1"))


def assigned(user_data: bytes | None = None) -> bytes:
    return encode_assignment(Assignment(3, (IN_1,), user_data))


def only(decoded: DecodedGroups) -> DecodedMember:
    ((found,),) = [decoded_group.members for decoded_group in decoded.groups]
    return found


SUBSCRIPTION = Subscription(3, ("in",), None, (IN_1,), 4, "r1")
ASSIGNMENT = Assignment(3, (IN_1,), None)


@pytest.mark.parametrize(
    ("protocol", "user_data", "read"),
    [
        pytest.param("range", None, None, id="range sends none"),
        pytest.param("roundrobin", None, None, id="so does roundrobin"),
        pytest.param("range", b"odd", b"odd", id="what range does not know stays bytes"),
        pytest.param("my-own", b"\1\2", b"\1\2", id="an unknown assignor's data stay bytes"),
        pytest.param(
            "sticky", encode_sticky(StickyUserData((IN_1,), 4)), StickyUserData((IN_1,), 4), id="sticky has a history"
        ),
        pytest.param("sticky", None, None, id="sticky before its first assignment"),
        pytest.param("sticky", b"", None, id="librdkafka sends empty bytes for that"),
        pytest.param(
            "cooperative-sticky",
            encode_sticky(StickyUserData(None, 4)),
            StickyUserData(None, 4),
            id="cooperative-sticky has a generation",
        ),
        pytest.param("stream", encode_subscription_info(STREAMS), STREAMS, id="Streams has its own layout"),
        pytest.param(
            "stream",
            encode_subscription_info(StreamsSubscriptionHeader(12, 12)),
            StreamsSubscriptionHeader(12, 12),
            id="of a newer Streams the header is read",
        ),
    ],
)
def test_user_data_are_read_by_the_group_s_protocol(protocol: str, user_data: bytes | None, read: object) -> None:
    found = only(decode_members(observation(group(member(subscribed(user_data)), protocol=protocol))))
    assert found.subscription == SUBSCRIPTION
    assert found.user_data == read


def test_a_streams_assignment_is_read() -> None:
    row = member(subscribed(encode_subscription_info(STREAMS)), assigned(encode_assignment_info(TOLD)))
    found = only(decode_members(observation(group(row, protocol="stream"))))
    assert found == DecodedMember(row, SUBSCRIPTION, STREAMS, ASSIGNMENT, TOLD)


@pytest.mark.parametrize("user_data", [pytest.param(None, id="null"), pytest.param(b"", id="empty")])
def test_a_streams_member_without_user_data_is_broken_because_it_stops_its_leader(user_data: bytes | None) -> None:
    found = only(decode_members(observation(group(member(subscribed(user_data), assigned()), protocol="stream"))))
    assert isinstance(found.user_data, Undecodable)
    assert isinstance(found.assignment_data, Undecodable)
    assert found.user_data.reason is found.assignment_data.reason is UndecodableReason.EMPTY
    assert (found.subscription, found.assignment) == (SUBSCRIPTION, ASSIGNMENT)


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Empty", "Dead"])
def test_outside_stable_empty_bytes_are_not_shown_rather_than_empty(state: str) -> None:
    row = member()
    assert only(decode_members(observation(group(row, state=state)))) == DecodedMember(row, None, None, None, None)


def test_outside_stable_bytes_that_are_shown_are_read() -> None:
    found = only(decode_members(observation(group(member(b"", assigned()), state="PreparingRebalance", protocol=""))))
    assert (found.subscription, found.assignment) == (None, ASSIGNMENT)


def test_in_stable_empty_bytes_are_named() -> None:
    found = only(decode_members(observation(group(member()))))
    assert isinstance(found.subscription, Undecodable)
    assert isinstance(found.assignment, Undecodable)
    assert found.subscription.sentence == "the group is stable, but the member's subscription has no bytes"
    assert found.assignment.sentence == "the group is stable, but the member's assignment has no bytes"


def test_other_protocol_types_are_left_alone() -> None:
    row = member(b"connect has its own layout", b"too")
    assert only(decode_members(observation(group(row, kind="connect")))) == DecodedMember(row, None, None, None, None)


BROKEN: Mapping[str, bytes] = {
    "one byte": b"\0",
    "a negative version": b"\xff\xff" + subscribed()[2:],
    "two billion topics": b"\0\3\x7f\xff\xff\xff",
    "minus one topics": b"\0\3\xff\xff\xff\xff",
    "a name that is no text": subscribed().replace(b"in", b"\xc3("),
    "a missing rack": subscribed()[:-4],
    "noise": bytes(range(7, 90)),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_member_harms_nobody_else(broken: bytes) -> None:
    healthy = member(subscribed(), assigned(), "healthy")
    decoded = decode_members(
        observation(group(member(broken, broken, "broken"), healthy), group(healthy, name="another group"))
    )
    first, second = decoded.groups
    assert isinstance(first.members[0].subscription, Undecodable)
    assert isinstance(first.members[0].assignment, Undecodable)
    assert first.members[0].user_data is None
    expected = DecodedMember(healthy, SUBSCRIPTION, None, ASSIGNMENT, None)
    assert first.members[1] == second.members[0] == expected


def test_broken_user_data_leave_the_subscription_readable() -> None:
    found = only(decode_members(observation(group(member(subscribed(b"\0\0\0\x0b\0")), protocol="stream"))))
    assert found.subscription == SUBSCRIPTION
    assert isinstance(found.user_data, Undecodable)
    assert found.user_data.sentence == "the latest supported version: 4 bytes are needed, but 1 are left"
    assert found.user_data.offset == 4


def test_names_are_the_objects_that_the_brokers_told() -> None:
    seen = observation(group(member(subscribed())), topics=("in",), racks=("r1",))
    found = only(decode_members(seen))
    assert isinstance(found.subscription, Subscription)
    assert found.subscription.topics[0] is seen.topics[0].name
    assert found.subscription.rack is seen.brokers[0].rack


def test_groups_and_members_keep_their_order() -> None:
    groups = [group(*(member(subscribed(), assigned(), f"m{i}") for i in range(5)), name=f"g{j}") for j in (2, 0, 1)]
    decoded = decode_members(observation(*groups))
    assert [found.raw for found in decoded.groups] == groups
    assert [tuple(m.raw for m in found.members) for found in decoded.groups] == [g.members for g in groups]


def a_group(r: Random, name: str) -> RawClassicGroup:
    """A group of any protocol, some of its members broken."""
    protocol = r.choice(("range", "sticky", "cooperative-sticky", "stream", "mine", ""))
    rows = []
    for i in range(r.randrange(4)):
        data: bytes | None = None
        told: bytes | None = None
        if protocol == "stream":
            data = encode_subscription_info(generate.streams_subscription(r))
            told = encode_assignment_info(generate.streams_assignment(r))
        elif protocol.endswith("sticky"):
            data = encode_sticky(generate.sticky(r))
        metadata = encode_subscription(generate.subscription(r)._replace(user_data=data))
        assignment = encode_assignment(generate.assignment(r)._replace(user_data=told))
        broken = r.random() < 0.2
        rows.append(member(generate.mutated(r, metadata) if broken else metadata, assignment, f"m{i}"))
    return group(*rows, state=r.choice(("Stable", "Stable", "PreparingRebalance")), protocol=protocol, name=name)


@repeatable
@given(st.randoms(use_true_random=False))
def test_a_memo_changes_nothing_whatever_changes_between_two_cycles(r: Random) -> None:
    memo = Memo()
    groups = {f"g{i}": a_group(r, f"g{i}") for i in range(4)}
    for _ in range(3):
        seen = observation(*groups.values())
        assert decode_members(seen, memo) == decode_members(seen)
        memo.turn()
        name = r.choice(sorted(groups))
        groups[name] = a_group(r, name)


def test_with_a_memo_only_changed_groups_are_read_again() -> None:
    memo = Memo()
    same, other = group(member(subscribed()), name="same"), group(member(subscribed()), name="other")
    first = decode_members(observation(same, other), memo)
    memo.turn()
    second = decode_members(observation(same._replace(), other._replace(state="Empty", members=())), memo)
    assert second.groups[0] is first.groups[0]
    assert second.groups[1] is not first.groups[1]
    assert second.groups[1].members == ()

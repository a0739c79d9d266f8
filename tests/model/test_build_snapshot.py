"""Racks, groups and topics of a snapshot: what is known, unknown or contradicts itself, and what is the same object."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from agent.decode.members import decode_members
from agent.decode.values import StickyUserData
from agent.execute.probe_bytes import encode_sticky
from agent.loop import CycleStages, run_cycle
from agent.model.build_snapshot import build_snapshot
from agent.values.finding import SubjectId
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.observation import ObservationPart, RawBroker, RawListedGroup, RawPartition, RawTopic
from agent.values.snapshot import ConsumerGroup, GroupKind, OtherGroup, Rack, RackState, Snapshot, StreamsGroup
from assignors.problem import TopicPartition
from tests.builders import Run, an_observation, consumer, instance, reader
from tests.histories import a_lively_cluster
from tests.synthetic_cluster import next_look, synthetic_cluster


@pytest.mark.parametrize(
    ("told", "rack"),
    [
        pytest.param(["a"], Rack(RackState.KNOWN, "a"), id="one rack"),
        pytest.param([None], Rack(RackState.UNKNOWN, None), id="no rack"),
        pytest.param([""], Rack(RackState.UNKNOWN, None), id="an empty rack is none"),
        pytest.param(["a", "b"], Rack(RackState.CONFLICTING, None, ("a", "b")), id="two answers that differ"),
        pytest.param(["a", None], Rack(RackState.KNOWN, "a"), id="one answer without"),
        pytest.param([" a"], Rack(RackState.KNOWN, " a"), id="exactly as the member sent it"),
    ],
)
def test_broker_racks(told: list[str | None], rack: Rack) -> None:
    look = an_observation().at(0)
    look = replace(look, brokers=tuple(RawBroker(7, "host", 9092, name, None) for name in told))
    broker = Run().look(look).snapshot.broker(7)
    assert broker is not None
    assert broker.rack == rack


@pytest.mark.parametrize(
    ("racks", "members", "process"),
    [
        pytest.param(("a", "a"), ["a", "a"], "a", id="agree"),
        pytest.param(("a", None), ["a", None], "a", id="one thread does not tell"),
        pytest.param((None, None), [None, None], None, id="none tells"),
    ],
)
def test_threads_of_one_process(racks: tuple[str | None, ...], members: list[str | None], process: str | None) -> None:
    answers = (
        an_observation()
        .topic("in", (1,), (2,))
        .streams("app", *(instance(1, rack, {f"0_{n}": f"in-{n}"}, thread=n) for n, rack in enumerate(racks)))
    )
    group = Run().look(answers.at(0)).snapshot.groups["app"]
    assert isinstance(group, StreamsGroup)
    assert [member.rack.name for member in group.members] == members
    assert group.processes[0].rack.name == process


def test_threads_that_contradict_each_other_are_both_not_believed() -> None:
    answers = (
        an_observation()
        .topic("in", (1,), (2,))
        .streams("app", instance(1, "a", {"0_0": "in-0"}, thread=1), instance(1, "b", {"0_1": "in-1"}, thread=2))
    )
    group = Run().look(answers.at(0)).snapshot.groups["app"]
    assert isinstance(group, StreamsGroup)
    conflicting = Rack(RackState.CONFLICTING, None, ("a", "b"))
    assert [member.rack for member in group.members] == [conflicting, conflicting]
    assert group.processes[0].rack == conflicting


def test_an_absent_broker_is_there_with_its_last_rack_only_while_something_names_it() -> None:
    answers = an_observation().topic("orders", (1, 2))
    run = Run().look(answers.at(0)).look(answers.without_broker(2).without_broker(3).at(10))
    assert [(broker.id, broker.alive, broker.rack.name) for broker in run.snapshot.brokers] == [
        (1, True, "a"),
        (2, False, "b"),
    ]


@pytest.mark.parametrize(
    ("fenced", "alive"),
    [
        pytest.param(True, False, id="fenced"),
        pytest.param(False, True, id="in service"),
        pytest.param(None, True, id="too old to tell"),
    ],
)
def test_a_fenced_broker_is_not_alive_but_tells_its_rack(fenced: bool | None, alive: bool) -> None:
    broker = Run().look(an_observation().broker(2, "b", fenced=fenced).at(0)).snapshot.broker(2)
    assert broker is not None
    assert (broker.alive, broker.fenced, broker.rack.name) == (alive, fenced, "b")


@pytest.mark.parametrize(
    ("state", "kind", "hidden"),
    [
        pytest.param("Stable", GroupKind.CLASSIC_STREAMS, False, id="stable"),
        pytest.param(
            "PreparingRebalance", GroupKind.CLASSIC_STREAMS, True, id="rebalancing: it is still an application"
        ),
        pytest.param("Empty", GroupKind.CLASSIC_STREAMS, False, id="empty"),
    ],
)
def test_a_streams_group_is_known_as_one_while_it_shows_nothing(state: str, kind: GroupKind, hidden: bool) -> None:
    answers = an_observation().topic("in", (1,)).streams("app", instance(1, "a", {"0_0": "in-0"}))
    run = Run().look(answers.at(0))
    members = () if state == "Empty" else (instance(1, "a", {"0_0": "in-0"}),)
    group = run.look(answers.streams("app", *members, state=state).at(10)).snapshot.groups["app"]
    assert isinstance(group, StreamsGroup)
    assert (group.kind, group.hidden) == (kind, hidden)


def test_a_rebalancing_group_that_was_never_seen_stable_counts_as_consumers() -> None:
    answers = an_observation().topic("in", (1,)).group("g", reader("m", "a", "in-0"), state="CompletingRebalance")
    group = Run().look(answers.at(0)).snapshot.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.hidden
    (member,) = group.members
    assert (member.topics, member.assigned, member.owned, member.rack.state) == ((), None, None, RackState.UNKNOWN)


def test_groups_of_every_kind() -> None:
    answers = an_observation().topic("in", (1,))
    answers.group("classic", reader("m", "a", "in-0"), assignor="sticky")
    answers.kip848("modern", consumer("m", "a", "in-0", target="in-0"))
    answers.group("connect", protocol_type="connect")
    answers.listed["share"] = RawListedGroup("share", "share", "Stable", "share")
    groups = Run().look(answers.at(0)).snapshot.groups
    assert list(groups) == ["classic", "connect", "modern", "share"]
    assert [group.kind for group in groups.values()] == [
        GroupKind.CLASSIC_CONSUMER, GroupKind.OTHER, GroupKind.CONSUMER, GroupKind.SHARE,
    ]  # fmt: skip
    assert isinstance(groups["share"], OtherGroup)
    modern = groups["modern"]
    assert isinstance(modern, ConsumerGroup)
    assert modern.members[0].target == (TopicPartition("in", 0),)
    assert modern.members[0].subscription_version is None


def test_an_eager_sticky_member_owned_what_its_user_data_says() -> None:
    data = encode_sticky(StickyUserData((TopicPartition("in", 1),), 9))
    member = reader("m", "a", "in-0", owned="", generation=None, user_data=data)
    group = (
        Run()
        .look(an_observation().topic("in", (1,), (2,)).group("g", member, assignor="sticky").at(0))
        .snapshot.groups["g"]
    )
    assert isinstance(group, ConsumerGroup)
    assert group.members[0].owned == (TopicPartition("in", 1),)
    assert group.members[0].generation == 9


@pytest.mark.parametrize(
    ("config", "min_isr"),
    [
        pytest.param("2", 2, id="a number"),
        pytest.param("", None, id="nothing"),
        pytest.param("-1", None, id="no number that it may be"),
        pytest.param("٣", None, id="foreign digits"),
    ],
)
def test_min_isr_is_a_number_or_unknown(config: str, min_isr: int | None) -> None:
    assert (
        Run().look(an_observation().topic("t", (1,), min_insync_replicas=config).at(0)).snapshot.topics["t"].min_isr
        == min_isr
    )


def test_a_topic_that_could_not_be_described_is_left_out_and_one_without_partitions_is_not() -> None:
    look = an_observation().at(0)
    broken, empty = RawTopic("broken", None, False, (), "UNKNOWN_TOPIC"), RawTopic("empty", None, False, (), None)
    assert list(Run().look(replace(look, topics=(broken, empty))).snapshot.topics) == ["empty"]


def test_a_size_is_the_largest_replica_and_unknown_where_no_log_dir_told() -> None:
    answers = an_observation().topic("t", (1, 2), (2, 3))
    answers.sizes = {(1, TopicPartition("t", 0)): 5, (2, TopicPartition("t", 0)): 9}
    assert Run().look(answers.at(0)).snapshot.size_bytes == {TopicPartition("t", 0): 9}


def test_byte_rates_come_from_what_was_appended_and_how_large_it_was() -> None:
    answers = an_observation().topic("t", (1, 2), (2, 3), ends=[1_000, 500])
    first, idle = TopicPartition("t", 0), TopicPartition("t", 1)
    answers.sizes = {(1, first): 100_000, (2, idle): 50_000}
    run = Run().look(answers.at(0))
    assert run.snapshot.bytes_per_s == {}
    answers.ends[first] = 2_000
    answers.sizes[1, first] = 200_000
    run.look(answers.at(10))
    assert run.snapshot.bytes_per_s == {idle: 0.0}, "a rate of zero is known before the size of a record is"
    answers.ends[first] = 3_000
    run.look(answers.at(20))
    assert run.snapshot.bytes_per_s == {first: pytest.approx(2_000 / 20 * 100), idle: 0.0}


def test_sizes_of_an_earlier_look_do_not_teach_the_size_of_a_record() -> None:
    answers = an_observation().topic("t", (1, 2), ends=[1_000])
    first = TopicPartition("t", 0)
    answers.sizes = {(1, first): 100_000}
    run = Run().look(answers.at(0))
    answers.extra["ages_ms"] = {ObservationPart.LOG_DIRS: 50_000}
    answers.sizes[1, first] = 150_000
    for second in (10, 20, 30):
        answers.ends[first] += 1_000
        run.look(answers.at(second))
    assert run.memory.bytes_per_record == {}
    del answers.extra["ages_ms"]
    answers.ends[first] += 1_000
    answers.sizes[1, first] = 500_000
    run.look(answers.at(40))
    assert run.memory.bytes_per_record == {"t": 100.0}


def test_an_unchanged_part_is_the_same_object_and_a_changed_one_is_not() -> None:
    world = synthetic_cluster(20)
    memo, limits = Memo(), Limits()
    before = build_snapshot(world, decode_members(world), Memory(), limits, memo)
    memo.turn()
    later = next_look(world, share=0.1, fresh_rows=True)
    after = build_snapshot(later, decode_members(later), Memory(), limits, memo)
    assert after.topics is before.topics
    assert after.brokers is before.brokers
    changed = [name for name in after.groups if after.groups[name] is not before.groups[name]]
    assert len(changed) == 2


def test_no_part_of_a_look_can_make_taking_a_snapshot_fail() -> None:
    look = a_lively_cluster().at(0)
    for name in ("brokers", "topics", "groups", "listed_groups"):
        snapshot = Run().look(replace(deepcopy(look), **{name: ()})).snapshot
        assert snapshot.cluster_id == "test-cluster"
    for name in ("topic_configs", "broker_configs", "committed_offsets", "end_offsets"):
        assert Run().look(replace(deepcopy(look), **{name: {}})).snapshot.cluster_id == "test-cluster"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("spoilt", "left"),
    [
        pytest.param(lambda row: [row._replace(replicas=(1, 4, 4, 1))], (1, 4), id="replicas twice"),
        pytest.param(lambda row: [row._replace(replicas=(4, 4, 4))], (4,), id="one replica thrice"),
        pytest.param(lambda row: [row._replace(replicas=())], None, id="no replica"),
        pytest.param(lambda row: [row, row], (1, 2), id="a partition twice"),
        pytest.param(lambda row: [row._replace(partition=-1)], None, id="below zero"),
        pytest.param(lambda row: [row._replace(partition=100_000_000)], None, id="too high"),
        pytest.param(lambda row: [row._replace(partition=2**63)], None, id="beyond every integer"),
    ],
)
def test_what_no_topic_has_is_left_out_and_a_cycle_comes_to_its_end(
    spoilt: Callable[[RawPartition], list[RawPartition]], left: tuple[int, ...] | None
) -> None:
    """Brokers 1 and 2 share a rack, so there is a plan for what is left."""
    seen = an_observation(a=(1, 2), b=(3,), c=(4,)).topic("t", (1, 2), (1, 2)).group("g", reader("m", "b", "t-0")).at()
    (topic,) = seen.topics
    first, second = topic.partitions
    seen = replace(seen, topics=(topic._replace(partitions=(*spoilt(first), second)),))
    cycle = run_cycle(CycleStages(Limits()), lambda: seen, seen, Memory(), number=1, name="i-1", planning=True)
    states = {state.id.partition: state.replicas for state in cycle.snapshot.topics["t"].partitions}
    assert states == {1: (1, 2)} | ({} if left is None else {0: left})
    assert any(proposal.subject == SubjectId("topic", "t") for proposal in cycle.proposals)


def test_a_member_id_with_half_a_character_is_told_apart_all_the_same() -> None:
    def joined(half: str) -> Snapshot:
        (member,) = instance(1, "a", {"0_0": "t-0"})
        seen = an_observation().topic("t", (1,)).streams("s", (member._replace(member_id=half),))
        return Run().look(seen.at(0)).snapshot

    assert joined("\ud800").groups["s"] != joined("\ud801").groups["s"]

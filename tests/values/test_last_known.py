"""What a look did not see keeps its figures: no question that fails makes a metric fall, or an alert resolve.

Every world is looked at twice. The second look is made whole, and once more with parts that did not answer; what is
exported after the one is compared with what is exported after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.loop import CycleStages, run_cycle
from agent.observe.assemble import folded
from agent.record.librdkafka import RecordCounts
from agent.record.recorder import RecordingResult
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.finding import FindingReason, FindingSeverity
from agent.values.last_known import LastKnown
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, Observation, ObservationPart, RawPartition
from agent.web.loop_state import LoopMonitor, LoopState
from agent.web.metrics import METRICS, RackwiseCollector, SeriesCaps
from testbed.demo.events import CycleEvents
from tests.synthetic_cluster import a_world, next_look

LIMITS = Limits()
FAILING = (GapCause.TIMED_OUT, GapCause.UNREACHABLE, GapCause.ERROR, GapCause.UNUSABLE, GapCause.TOO_LARGE)
RECORDING = RecordingResult(True, RecordCounts(0, 0, 0), 0, ())
DONE = ClockReading(0, 0)


def trouble(world: Observation) -> Observation:
    """Something is wrong with everything: replicas in one rack, an absent broker, a partition under min ISR."""
    first, second, *others = world.topics
    rows = [
        RawPartition(
            row.partition, row.replicas[0], (row.replicas[0], (row.replicas[0] + 3) % 12), row.replicas[:1], ()
        )
        for row in first.partitions
    ]
    absent = [row._replace(replicas=(*row.replicas[:1], 77), isr=row.replicas[:1]) for row in second.partitions]
    topics = (first._replace(partitions=tuple(rows)), second._replace(partitions=tuple(absent)), *others)
    configs = {name: {**values, "min.insync.replicas": "2"} for name, values in world.topic_configs.items()}
    return replace(world, topics=topics, topic_configs=configs)


WORLD = trouble(a_world(6, improvable=1.0))
AFTER = replace(trouble(next_look(a_world(6, improvable=1.0), share=0.0)), replica_bytes={})

Lose = Callable[[Observation], Mapping[str, Any]]
LOSSES: Mapping[ObservationPart, Lose] = {
    ObservationPart.TOPICS: lambda _: {"topics": (), "topic_configs": {}, "end_offsets": {}},
    ObservationPart.TOPIC_CONFIGS: lambda _: {"topic_configs": {}},
    ObservationPart.BROKER_CONFIGS: lambda _: {"broker_configs": {}},
    ObservationPart.GROUPS: lambda _: {"listed_groups": (), "groups": (), "committed_offsets": {}},
    ObservationPart.COMMITTED_OFFSETS: lambda _: {"committed_offsets": {}},
    ObservationPart.END_OFFSETS: lambda _: {"end_offsets": {}},
    ObservationPart.REASSIGNMENTS: lambda _: {"reassignments": ()},
    ObservationPart.LOG_DIRS: lambda _: {"replica_bytes": {}},
}


def without(world: Observation, parts: Iterable[ObservationPart], cause: GapCause) -> Observation:
    """The same look, in which these parts did not answer."""
    for part in parts:
        gap = Gap(part, cause, "", "a test")
        world = replace(world, gaps=tuple(sorted({*world.gaps, gap})), **LOSSES[part](world))
    return world


def with_silent_broker(world: Observation, broker: int) -> Observation:
    """Every third group is not listed, as its coordinator is silent."""
    lost = {row.group_id for row in world.listed_groups[broker % 3 :: 3]}
    return replace(
        world,
        listed_groups=tuple(row for row in world.listed_groups if row.group_id not in lost),
        groups=tuple(row for row in world.groups if row.group_id not in lost),
        committed_offsets={name: rows for name, rows in world.committed_offsets.items() if name not in lost},
        gaps=(*world.gaps, Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, f"broker {broker}", "no answer in time")),
    )


class Agent:
    """Looks one after the other, as the loop takes them in."""

    def __init__(self, *looks: Observation, planning: bool = True) -> None:
        self.watch, self._memory, self._line = LoopMonitor(DONE), Memory(), CycleStages(LIMITS)
        for look in looks:
            self.look(look, planning=planning)

    def look(self, world: Observation, *, planning: bool = True) -> Cycle:
        cycle = run_cycle(
            self._line,
            lambda: world,
            world,
            self._memory,
            number=1,
            name="l",
            planning=planning,
            known=self.watch.state.known,
        )
        self._memory = cycle.after
        self.watch.succeeded(cycle, RECORDING, DONE)
        return cycle

    def copy(self) -> Agent:
        """As it is now; the memos of the line are shared, as they change no result."""
        other = Agent()
        other.watch._state, other._memory, other._line = self.watch.state, self._memory, self._line
        return other

    @property
    def known(self) -> LastKnown:
        assert self.watch.state.known is not None
        return self.watch.state.known

    def series(self) -> dict[tuple[str, tuple[str, ...]], float]:
        return exported(self.watch.state)


def exported(seen: LoopState) -> dict[tuple[str, tuple[str, ...]], float]:
    samples = RackwiseCollector(lambda: seen, "1", SeriesCaps()).samples()
    return {(name, labels): value for name, rows in samples.items() for labels, value in rows}


FIRST, SECOND = Agent(WORLD), Agent(WORLD, AFTER)
BEFORE, WHOLE = FIRST.series(), SECOND.series()

OF_THE_LOOK = {
    "rackwise_gaps", "rackwise_cycle_seconds", "rackwise_stage_seconds_total", "rackwise_seen_timestamp_seconds",
    "rackwise_cycles_total",
}  # fmt: skip
"""What a failed look is, and when it was; they are about the look itself."""
UNKNOWNS = {"rackwise_cross_rack_unknown", "rackwise_task_copies_lag_unknown", "rackwise_group_unknown_rack_share"}
"""These rise when less is known."""
OF_THE_KNOWN = {"rackwise_group_cross_rack_share", "rackwise_group_optimal_cross_rack_share"}
"""Shares of what is known, with the unknown share beside them."""
BOUNDS = {"rackwise_group_cross_rack_bytes_per_second", "rackwise_group_lag_records"}
"""Lower bounds, where they say so."""
KEPT = {"rackwise_brokers", "rackwise_topics", "rackwise_partitions", "rackwise_groups", "rackwise_findings"}
PLANNED = {"rackwise_proposals", "rackwise_unplanned", "rackwise_verdicts"}
LISTS = {ObservationPart.TOPICS, ObservationPart.GROUPS}


@given(parts=st.sets(st.sampled_from(sorted(LOSSES)), min_size=1), cause=st.sampled_from(FAILING), again=st.booleans())
def test_a_failed_look_changes_no_figure_but_those_about_itself(
    parts: set[ObservationPart], cause: GapCause, *, again: bool
) -> None:
    whole, before = WHOLE, BEFORE
    agent = FIRST.copy()
    for _ in range(1 + again):
        agent.look(without(AFTER, sorted(parts), cause))
    failed = agent.series()
    assert {name for name, _ in whole} <= {one.name for one in METRICS}
    for (name, labels), value in failed.items():
        if name in OF_THE_LOOK or labels in {
            ("part of the cluster did not answer", one.value) for one in FindingSeverity
        }:
            continue
        if name in PLANNED and not parts & LISTS:
            continue  # a planning that saw every list is a planning: other parts bear on what it may propose
        known = {series[name, labels] for series in (whole, before) if (name, labels) in series}
        if name in UNKNOWNS:
            assert value >= min(known, default=0), (name, labels)
        elif name == "rackwise_findings":
            assert value >= min(known, default=1), (name, labels)
        elif name in OF_THE_KNOWN and value not in known:
            assert ObservationPart.BROKER_CONFIGS in parts, "whether reads go to the nearest replica is unknown then"
        elif name in BOUNDS:
            assert 0 < value <= max(known), (name, labels)
        else:
            assert value in known, (name, labels, value, known)
    for name, labels in whole.keys() & before.keys():
        if name in KEPT or (name in PLANNED and parts & LISTS):
            assert failed[name, labels] >= min(whole[name, labels], before[name, labels]), (name, labels)
    figures = [key for key in failed.keys() & whole.keys() if key[0] not in OF_THE_LOOK | OF_THE_KNOWN]
    assert not [key for key in figures if whole[key] and not failed[key]], "never zero"


@given(broker=st.integers(0, 5))
def test_a_broker_that_lists_no_groups_hides_none_of_them(broker: int) -> None:
    whole, agent = WHOLE, FIRST.copy()
    agent.look(with_silent_broker(AFTER, broker))
    failed = agent.series()
    assert failed["rackwise_groups", ("classic consumer",)] == whole["rackwise_groups", ("classic consumer",)] == 6
    for (name, labels), value in whole.items():
        if name == "rackwise_findings":
            assert failed[name, labels] >= value, labels
        if name.startswith("rackwise_cross_rack_") and labels == ("consume",):
            assert (name, labels) not in failed, "of how many groups it would be the sum is unknown"


def test_before_any_look_confirmed_a_list_it_has_no_sample() -> None:
    names = {
        name
        for name, _ in Agent(
            without(WORLD, [ObservationPart.TOPICS, ObservationPart.GROUPS], GapCause.TIMED_OUT)
        ).series()
    }
    assert not names & {"rackwise_topics", "rackwise_partitions", "rackwise_groups", *PLANNED}
    assert not names & {"rackwise_cross_rack_bytes_per_second", "rackwise_cross_rack_unknown"}
    assert "rackwise_gaps" in names


@pytest.mark.parametrize("part", sorted(LISTS))
def test_what_is_kept_says_of_when_it_is(part: ObservationPart) -> None:
    agent = Agent(WORLD, without(AFTER, [part], GapCause.TIMED_OUT))
    age = {labels[0]: value * 1_000 for (name, labels), value in agent.series().items() if "seen_timestamp" in name}
    kept = {"topics": {"topics", "brokers", "findings"}, "groups": {"groups", "findings"}}[part.value]
    assert {what for what, at in age.items() if at == WORLD.taken_ms} == kept
    assert {what for what, at in age.items() if at == AFTER.taken_ms} == set(age) - kept


def test_what_is_really_gone_goes_also_while_something_else_does_not_answer() -> None:
    agent = FIRST.copy()
    mended = a_world(6, improvable=0.0)
    agent.look(
        without(
            replace(mended, monotonic_ms=WORLD.monotonic_ms + 10_000), [ObservationPart.LOG_DIRS], GapCause.TIMED_OUT
        )
    )
    before, now = FIRST.known.count_findings(), agent.known.count_findings()
    gone = FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM.value
    assert any(reason == gone for reason, _ in before)
    assert not any(reason == gone for reason, _ in now), "groups do not rest on log dirs"


@pytest.mark.parametrize(
    "part",
    [
        ObservationPart.LOG_DIRS,
        ObservationPart.TOPIC_CONFIGS,
        ObservationPart.BROKER_CONFIGS,
        ObservationPart.REASSIGNMENTS,
    ],
)
def test_a_broker_that_is_no_longer_there_takes_its_findings_along_while_something_else_does_not_answer(
    part: ObservationPart,
) -> None:
    """A gap may last for ever, and so would an alert about a broker that was removed."""
    agent = FIRST.copy()
    of_it = {name for name, one in agent.known.findings.items() if one.finding.subject == ("broker", "77")}
    assert of_it
    removed = replace(a_world(6, improvable=1.0), monotonic_ms=WORLD.monotonic_ms + 10_000)
    agent.look(without(removed, [part, ObservationPart.TOPICS], GapCause.TIMED_OUT))
    assert of_it <= agent.known.findings.keys(), "its replicas show it"
    agent.look(without(removed, [part], GapCause.TIMED_OUT))
    assert not of_it & agent.known.findings.keys()


@pytest.mark.parametrize(
    "part",
    [
        ObservationPart.LOG_DIRS,
        ObservationPart.TOPIC_CONFIGS,
        ObservationPart.BROKER_CONFIGS,
        ObservationPart.REASSIGNMENTS,
    ],
)
def test_a_broker_that_is_back_is_not_absent_while_something_else_does_not_answer(part: ObservationPart) -> None:
    def fenced(world: Observation) -> Observation:
        brokers = tuple(row for row in world.brokers if row.id != 3)
        return replace(world, brokers=brokers)

    agent = Agent(fenced(WORLD))
    assert "broker_absent:broker/3" in agent.known.findings
    agent.look(without(AFTER, [part], GapCause.TIMED_OUT))
    assert "broker_absent:broker/3" not in agent.known.findings
    assert "broker_absent:broker/77" in agent.known.findings


def test_replicas_that_were_moved_share_no_rack_while_log_dirs_do_not_answer() -> None:
    agent = FIRST.copy()
    reason = FindingReason.REPLICAS_SHARE_RACK.value
    assert any(of == reason for of, _ in agent.known.count_findings())
    mended = replace(a_world(6, improvable=1.0), monotonic_ms=WORLD.monotonic_ms + 10_000)
    agent.look(without(mended, [ObservationPart.LOG_DIRS], GapCause.TIMED_OUT))
    assert not any(of == reason for of, _ in agent.known.count_findings())


def test_a_topic_that_was_deleted_takes_its_findings_along_while_the_list_fails() -> None:
    agent = FIRST.copy()
    name = WORLD.topics[0].name
    of_it = [one.finding for one in agent.known.findings.values() if one.finding.subject == ("topic", name)]
    assert of_it
    failed = without(AFTER, [ObservationPart.TOPICS], GapCause.TIMED_OUT)
    agent.look(failed)
    assert {one.id for one in of_it} <= agent.known.findings.keys()
    agent.look(replace(failed, vanished_topics=(name,)))
    assert not {one.id for one in of_it} & agent.known.findings.keys()


def test_a_gap_that_was_there_when_it_was_found_does_not_keep_a_finding() -> None:
    blind = [ObservationPart.TOPIC_CONFIGS, ObservationPart.BROKER_CONFIGS]
    agent = Agent(without(WORLD, blind, GapCause.NOT_ALLOWED))
    shared = {
        name for name, one in agent.known.findings.items() if one.finding.reason is FindingReason.REPLICAS_SHARE_RACK
    }
    assert shared
    mended = replace(a_world(6, improvable=1.0), monotonic_ms=WORLD.monotonic_ms + 10_000)
    agent.look(without(mended, blind, GapCause.NOT_ALLOWED))
    assert not shared & agent.known.findings.keys()


def test_a_group_that_could_not_be_described_keeps_its_kind_and_its_findings() -> None:
    agent = FIRST.copy()
    name = WORLD.groups[0].group_id
    of_it = {key for key, one in agent.known.findings.items() if one.finding.subject == ("group", name)}
    gap = Gap(ObservationPart.GROUPS, GapCause.ERROR, name, "COORDINATOR_LOAD_IN_PROGRESS")
    agent.look(replace(AFTER, groups=AFTER.groups[1:], gaps=(gap,)))
    assert agent.series()["rackwise_groups", ("classic consumer",)] == 6
    assert of_it
    assert of_it <= agent.known.findings.keys()
    agent.look(replace(AFTER, groups=AFTER.groups[1:], listed_groups=AFTER.listed_groups[1:]))
    assert agent.series()["rackwise_groups", ("classic consumer",)] == 5
    assert not of_it & agent.known.findings.keys()


def undescribed(world: Observation, names: Collection[str]) -> Observation:
    """These groups were listed and did not answer; of more than 100 only the number is told."""
    gaps = [Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, name, "no answer in time") for name in names]
    return replace(
        world,
        groups=tuple(row for row in world.groups if row.group_id not in names),
        committed_offsets={name: rows for name, rows in world.committed_offsets.items() if name not in names},
        gaps=folded([*world.gaps, *gaps]),
    )


def unlisted(world: Observation, names: Collection[str]) -> Observation:
    """Their coordinator is silent, in each look the same one."""
    gap = Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, "broker 2", "no answer in time")
    listed = tuple(row for row in world.listed_groups if row.group_id not in names)
    return replace(undescribed(world, names), listed_groups=listed, gaps=(*world.gaps, gap))


def unconfigured(world: Observation, names: Collection[str]) -> Observation:
    """The configs of these topics did not answer."""
    gaps = [Gap(ObservationPart.TOPIC_CONFIGS, GapCause.ERROR, name, "no answer in time") for name in names]
    configs = {name: values for name, values in world.topic_configs.items() if name not in names}
    return replace(world, topic_configs=configs, gaps=folded([*world.gaps, *gaps], most=0))


def later(world: Observation, looks: int) -> Observation:
    by_ms = 10_000 * looks
    return replace(world, taken_ms=world.taken_ms + by_ms, monotonic_ms=world.monotonic_ms + by_ms)


MANY = trouble(a_world(240, improvable=1.0))
FEW = trouble(a_world(30, improvable=1.0))


@pytest.mark.parametrize(
    ("world", "lose", "first", "then"),
    [
        pytest.param(
            MANY, undescribed, slice(110), slice(110, 220), id="other groups are among many without an answer"
        ),
        pytest.param(FEW, unlisted, slice(5), slice(15), id="groups moved to a broker that is silent"),
        pytest.param(FEW, unlisted, slice(5), slice(5, 10), id="other groups are on the silent broker"),
    ],
)
def test_a_gap_that_stays_and_hides_other_groups_resolves_nothing(
    world: Observation, lose: Callable[[Observation, Collection[str]], Observation], first: slice, then: slice
) -> None:
    names = [row.group_id for row in world.groups]
    agent = Agent(lose(world, set(names[first])))
    found = {key for key, one in agent.known.findings.items() if one.finding.subject.kind == "group"}
    now_hidden = [
        one for key, one in agent.known.findings.items() if key in found and one.finding.subject.name in names[then]
    ]
    assert now_hidden
    agent.look(later(lose(world, set(names[then])), 1))
    assert found <= agent.known.findings.keys()
    agent.look(later(world, 2))
    assert found <= agent.known.findings.keys(), "all of it was seen, and is as it was"
    assert {one.seen_ms for one in agent.known.findings.values()} == {later(world, 2).taken_ms}


@pytest.mark.parametrize("lose", [undescribed, unlisted])
def test_what_is_shown_and_mended_resolves_while_the_same_gap_stays(
    lose: Callable[[Observation, Collection[str]], Observation],
) -> None:
    agent = FIRST.copy()
    worse = FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM

    def of_groups() -> set[str]:
        return {one.finding.subject.name for one in agent.known.findings.values() if one.finding.reason is worse}

    (lost, hidden), before = sorted(of_groups())[:2], of_groups()
    agent = Agent(lose(WORLD, {lost}))
    assert of_groups() == before - {lost}
    agent.look(lose(later(a_world(6, improvable=0.0), 1), {lost, hidden}))
    assert of_groups() == {hidden}, "it alone was not seen"


def test_configs_that_other_topics_lack_now_resolve_nothing_of_these() -> None:
    rows = [row.name for row in WORLD.topics]
    agent = Agent(unconfigured(WORLD, {rows[-1]}))
    of_it = {
        key
        for key, one in agent.known.findings.items()
        if one.finding.reason in (FindingReason.UNDER_MIN_ISR, FindingReason.AT_MIN_ISR)
    }
    assert of_it
    hidden = agent.look(later(unconfigured(WORLD, set(rows[:-1])), 1))
    assert of_it - {one.id for one in hidden.detection.findings}, "without configs it cannot be found"
    assert of_it <= agent.known.findings.keys()


def test_what_is_about_all_there_is_stays_while_a_silent_broker_may_hide_some_of_it() -> None:
    first, *others = FEW.brokers
    spelled = replace(FEW, brokers=(first._replace(rack=(first.rack or "").upper()), *others))
    lost = {FEW.groups[0].group_id}
    agent = Agent(unlisted(spelled, lost))

    def reasons() -> set[FindingReason]:
        return {one.finding.reason for one in agent.known.findings.values()}

    assert FindingReason.RACK_SPELLING in reasons()
    agent.look(later(unlisted(FEW, lost), 1))
    assert FindingReason.RACK_SPELLING in reasons(), "a member of a group that is not listed may still tell it"
    agent.look(later(FEW, 2))
    assert FindingReason.RACK_SPELLING not in reasons()


def test_an_absent_broker_stays_absent_while_topics_do_not_answer() -> None:
    agent = Agent(WORLD, without(AFTER, [ObservationPart.TOPICS], GapCause.TIMED_OUT))
    assert agent.series()["rackwise_brokers", ("", "absent")] == 1
    back = replace(AFTER, brokers=(*AFTER.brokers, AFTER.brokers[0]._replace(id=77)))
    agent.look(without(back, [ObservationPart.TOPICS], GapCause.TIMED_OUT))
    assert ("rackwise_brokers", ("", "absent")) not in agent.series(), "it is back"


@pytest.mark.parametrize(
    "lost", [(ObservationPart.GROUPS,), (ObservationPart.TOPICS,), (ObservationPart.TOPICS, ObservationPart.GROUPS)]
)
def test_a_finding_that_a_gap_hides_has_not_ended_and_is_no_news_afterwards(lost: tuple[ObservationPart, ...]) -> None:
    agent, told = Agent(), CycleEvents()
    first = agent.look(WORLD)
    told.of(first)
    hidden = agent.look(without(AFTER, lost, GapCause.TIMED_OUT), planning=False)
    gone = {one.id for one in first.detection.findings} - {one.id for one in hidden.detection.findings}
    assert gone, "the look lacks findings"
    about_itself = {FindingReason.PART_MISSING, FindingReason.RIGHTS_MISSING}
    assert hidden.changes.ended == ()
    assert {one.reason for one in hidden.detection.findings if one.id in hidden.changes.new} <= about_itself
    assert [line.sentence for line in told.of(hidden) if line.mark == "ended"] == []
    again = agent.look(AFTER, planning=False)
    assert gone.isdisjoint(again.changes.new)
    ended = [line.sentence for line in told.of(again) if line.mark == "ended"]
    assert all(text.startswith(tuple(one.value for one in about_itself)) for text in ended), ended


def test_a_finding_that_is_mended_has_ended() -> None:
    mended = replace(AFTER, topics=a_world(6, improvable=1.0).topics)
    agent, told = Agent(), CycleEvents()
    told.of(agent.look(WORLD))
    cycle = agent.look(mended)
    shared = FindingReason.REPLICAS_SHARE_RACK
    assert any(name.startswith(shared.name.lower()) for name in cycle.changes.ended), cycle.changes.ended
    assert any(line.sentence.startswith(shared.value) for line in told.of(cycle) if line.mark == "ended")


def test_the_first_look_of_an_agent_with_memory_ends_only_what_it_would_have_seen() -> None:
    memory = Agent(WORLD).look(WORLD).after
    mended = replace(AFTER, topics=a_world(6, improvable=1.0).topics)

    def first(world: Observation) -> Cycle:
        return run_cycle(CycleStages(LIMITS), lambda: world, world, memory, number=1, name="l", planning=False)

    assert first(mended).changes.ended
    assert first(without(mended, [ObservationPart.TOPICS], GapCause.TIMED_OUT)).changes.ended == ()

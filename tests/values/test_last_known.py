"""What a look did not see keeps its figures: no question that fails makes a metric fall, or an alert resolve.

Every world is looked at twice. The second look is made whole, and once more with parts that did not answer; what is
exported after the one is compared with what is exported after the other.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.values.finding import FindingReason, FindingSeverity
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.web.metrics import METRICS
from tests.synthetic_cluster import synthetic_cluster
from tests.values.looked_at import AFTER, FAILING, FIRST, LOSSES, SECOND, WORLD, Agent, without


def with_silent_broker(world: Observation, broker: int) -> Observation:
    """Every third group is not listed, as its coordinator is silent."""
    lost = {row.group_id for row in world.listed_groups[broker % 3 :: 3]}
    return replace(
        world,
        listed_groups=tuple(row for row in world.listed_groups if row.group_id not in lost),
        groups=tuple(row for row in world.groups if row.group_id not in lost),
        committed_offsets={name: rows for name, rows in world.committed_offsets.items() if name not in lost},
        gaps=(*world.gaps, Gap.of_broker(ObservationPart.GROUPS, GapCause.TIMED_OUT, broker, "no answer in time")),
    )


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
    mended = synthetic_cluster(6, improvable=0.0)
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
    removed = replace(synthetic_cluster(6, improvable=1.0), monotonic_ms=WORLD.monotonic_ms + 10_000)
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
    mended = replace(synthetic_cluster(6, improvable=1.0), monotonic_ms=WORLD.monotonic_ms + 10_000)
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
    mended = replace(synthetic_cluster(6, improvable=1.0), monotonic_ms=WORLD.monotonic_ms + 10_000)
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


def test_an_absent_broker_stays_absent_while_topics_do_not_answer() -> None:
    agent = Agent(WORLD, without(AFTER, [ObservationPart.TOPICS], GapCause.TIMED_OUT))
    assert agent.series()["rackwise_brokers", ("", "absent")] == 1
    back = replace(AFTER, brokers=(*AFTER.brokers, AFTER.brokers[0]._replace(id=77)))
    agent.look(without(back, [ObservationPart.TOPICS], GapCause.TIMED_OUT))
    assert ("rackwise_brokers", ("", "absent")) not in agent.series(), "it is back"

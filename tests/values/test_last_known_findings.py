"""Findings that a look did not show: while a gap may hide them they are kept, and what is mended ends."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from agent.loop import CycleStages, run_cycle
from agent.observe.observe_cluster import folded
from agent.values.cycle import Cycle
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.last_known import KnownFinding, LastKnown, last_known
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from testbed.demo.events import CycleEvents
from tests.synthetic_cluster import synthetic_cluster
from tests.values.looked_at import AFTER, FIRST, LIMITS, WORLD, Agent, trouble, without


def undescribed(world: Observation, names: Collection[str]) -> Observation:
    """These groups were listed and did not answer; of more than 100 only the number is reported."""
    gaps = [Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, name, "no answer in time") for name in names]
    return replace(
        world,
        groups=tuple(row for row in world.groups if row.group_id not in names),
        committed_offsets={name: rows for name, rows in world.committed_offsets.items() if name not in names},
        gaps=folded([*world.gaps, *gaps]),
    )


def unlisted(world: Observation, names: Collection[str]) -> Observation:
    """Their coordinator is silent, in each look the same one."""
    gap = Gap.of_broker(ObservationPart.GROUPS, GapCause.TIMED_OUT, 2, "no answer in time")
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


MANY = trouble(synthetic_cluster(240, improvable=1.0))
FEW = trouble(synthetic_cluster(30, improvable=1.0))


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
    agent.look(lose(later(synthetic_cluster(6, improvable=0.0), 1), {lost, hidden}))
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
    mended = replace(AFTER, topics=synthetic_cluster(6, improvable=1.0).topics)
    agent, told = Agent(), CycleEvents()
    told.of(agent.look(WORLD))
    cycle = agent.look(mended)
    shared = FindingReason.REPLICAS_SHARE_RACK
    assert any(name.startswith(shared.name.lower()) for name in cycle.changes.ended), cycle.changes.ended
    assert any(line.sentence.startswith(shared.value) for line in told.of(cycle) if line.mark == "ended")


def test_the_first_look_of_an_agent_with_memory_ends_only_what_it_would_have_seen() -> None:
    memory = Agent(WORLD).look(WORLD).after
    mended = replace(AFTER, topics=synthetic_cluster(6, improvable=1.0).topics)

    def first(world: Observation) -> Cycle:
        return run_cycle(CycleStages(LIMITS), lambda: world, world, memory, number=1, name="l", planning=False)

    assert first(mended).changes.ended
    assert first(without(mended, [ObservationPart.TOPICS], GapCause.TIMED_OUT)).changes.ended == ()


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "gone"])
def test_a_finding_about_a_task_lives_as_long_as_its_group_whose_id_may_hold_slashes(listed: bool) -> None:
    """A gap hides the finding itself; a group of which the id alone is the beginning is another one."""
    before = Agent(WORLD).look(later(WORLD, 1))
    group = before.snapshot.groups[before.observation.listed_groups[0].group_id]
    named = {**before.snapshot.groups, "shop": group, **({"shop/eu": group} if listed else {})}
    subject = SubjectId("task", "shop/eu/0_1/p-1")
    grows = Finding(
        reason=FindingReason.STANDBY_LAG_GROWS, subject=subject, sentence="its lag grows", evidence=(),
        severity=FindingSeverity.WARNING, since_ms=0, task_of="shop/eu",
    )  # fmt: skip
    known = LastKnown(findings={grows.id: KnownFinding(grows, 0, frozenset())})

    def stays(gap: Gap) -> bool:
        blind = replace(before.snapshot, groups=named, gaps=(gap,))
        return grows.id in last_known(known, replace(before, snapshot=blind)).findings

    assert stays(Gap(ObservationPart.END_OFFSETS, GapCause.ERROR, "", "a test")) is listed
    assert stays(Gap(ObservationPart.GROUPS, GapCause.ERROR, "shop/eu", "a test")), "its own group was not described"
    assert not stays(Gap(ObservationPart.GROUP_CONFIGS, GapCause.ERROR, "shop", "a test")), "another group's gap"


def test_a_silent_broker_among_many_groups_without_an_answer_still_hides_its_groups() -> None:
    names = [row.group_id for row in MANY.listed_groups]
    silent = Gap.of_broker(ObservationPart.GROUPS, GapCause.TIMED_OUT, 2, "no answer in time")
    seen, gone = undescribed(replace(MANY, gaps=(silent,)), names[:110]), set(names[110:150])
    half = replace(
        seen,
        listed_groups=tuple(row for row in seen.listed_groups if row.group_id not in gone),
        groups=tuple(row for row in seen.groups if row.group_id not in gone),
    )
    agent = Agent(MANY)
    before = agent.series()["rackwise_groups", ("classic consumer",)]
    agent.look(later(half, 1))
    assert agent.series()["rackwise_groups", ("classic consumer",)] == before == len(names)

"""Which classic groups would one rebalance improve? Nobody else's rebalance is ours to ask for.

Two reasons: warm-ups have caught up and wait for the application's next probing rebalance (KIP-441), or the group's own
rack-aware assignor would be given the chance to place work nearer to its data (KIP-881, KIP-925).

Never proposed: for KIP-848 and KIP-1071 groups (their brokers decide), for eager groups (a rebalance stops every
member), for static members (who asked for the opposite), for groups that are rebalancing, rolling or warming up, for a
gain that rests on an unknown rack or selector, or for one below the thresholds. The optimum stands in for the
assignor's own answer, so the gain is what is possible at best; the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from agent.detect.assessment import Assessment
from agent.detect.awareness import RACK_AWARE
from agent.detect.finding import Finding, FindingReason, Subject
from agent.limits import GroupLimits, Limits
from agent.model.snapshot import ConsumerGroup, GroupKind, Rack, RackState, Role, StreamsGroup, TaskCopy
from agent.plan.found import Scene, answered
from agent.plan.placements import Skipped
from agent.plan.plan import TriggerPlan, Unplanned
from agent.plan.worth import Reading, crossing_bytes, group_ground, reading, total_reads, worth
from agent.propose.proposal import ProposalReason
from assignors.problem import ConsumerResult, TaskId, TaskResult, TopicPartition

COOPERATIVE = frozenset({"cooperative-sticky", "stream"})
"""Protocol names under which a rebalance revokes nothing that does not move (KIP-429)."""
EAGER = frozenset({"range", "roundrobin", "sticky"})
"""Protocol names under which a rebalance revokes everything first."""
IMPROVABLE = (
    FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM,
    FindingReason.GROUP_KIND_IGNORES_RACKS,
    FindingReason.ASSIGNOR_WOULD_NOT_FIX,
    FindingReason.RACK_AWARENESS_OFF,
)
"""Findings that say that a group's work could be nearer to its data."""

Moves = tuple[tuple[TopicPartition, str, str], ...]


class Judged(NamedTuple):
    """What a rebalance could do for a group: moves and reads, or why none is proposed."""

    why_not: Unplanned | None
    moves: Moves = ()
    reading: Reading | None = None


def plan_triggers(scene: Scene) -> tuple[list[TriggerPlan], Skipped]:
    """Classic groups that one rebalance would improve, by group, and which were left out and why."""
    plans: list[TriggerPlan] = []
    skipped: Skipped = []
    for plan_or_skips in (*_warmups(scene), *_improvements(scene)):
        if isinstance(plan_or_skips, TriggerPlan):
            plans.append(plan_or_skips)
        else:
            skipped += plan_or_skips
    best: dict[str, TriggerPlan] = {}
    for plan in plans:  # one rebalance does both: the warm-ups come first, and name the reason
        best.setdefault(plan.group_id, plan)
    return [best[group_id] for group_id in sorted(best)], skipped


# --- warm-ups ---------------------------------------------------------------------------------------------------


def _warmups(scene: Scene) -> list[TriggerPlan | Skipped]:
    if not scene.found.any(FindingReason.WARMUP_PROMOTABLE):
        return []
    results: list[TriggerPlan | Skipped] = []
    for group_id, copies in scene.snapshot.copies.items():
        group = scene.snapshot.groups.get(group_id)
        ready = [copy for copy in copies if copy.role is Role.WARMUP and copy.caught_up]
        if not ready or not isinstance(group, StreamsGroup):
            continue
        answers = answered(_about_warmups(scene, group_id, ready))
        if answers is None:
            continue
        why = Unplanned.HELD if answers.held else _not_triggerable(group, scene.limits)
        if group.kind is not GroupKind.CLASSIC_STREAMS:
            why = Unplanned.NO_LEVER
        if why is not None:
            results.append([(name, why) for name in answers.ids])
            continue
        promotable = tuple(sorted({(copy.process_id, copy.task) for copy in ready}))
        plan = TriggerPlan(
            group_id=group_id,
            reason=ProposalReason.WARMUP_PROMOTABLE,
            promotable=promotable,
            moves=_promotions(group, promotable),
            findings=answers.ids,
        )
        results.append(plan)
    return results


def _about_warmups(scene: Scene, group_id: str, ready: list[TaskCopy]) -> list[Finding]:
    subjects = [Subject("task", f"{group_id}/{copy.task}/{copy.process_id}") for copy in ready]
    return scene.found.about(FindingReason.WARMUP_PROMOTABLE, Subject("group", group_id), *subjects)


def _promotions(group: StreamsGroup, promotable: tuple[tuple[str, TaskId], ...]) -> Moves:
    """The source partitions of every promoted task, from the process that runs it now to the one that waits."""
    runs = {task: process.id for process in group.processes for task in process.active}
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology else {}
    return tuple(
        sorted(
            (source, runs[task], process)
            for process, task in promotable
            if task in runs and runs[task] != process
            for source in sources.get(task, ())
        )
    )


# --- nearer to the data -----------------------------------------------------------------------------------------


def _improvements(scene: Scene) -> list[TriggerPlan | Skipped]:
    if not scene.found.any(*IMPROVABLE):
        return []
    results: list[TriggerPlan | Skipped] = []
    for group_id, assessment in scene.detection.assessments.items():
        if assessment.gap <= 0:
            continue
        group = scene.snapshot.groups.get(group_id)
        if not isinstance(group, ConsumerGroup | StreamsGroup):
            continue
        if group.kind in (GroupKind.CONSUMER, GroupKind.STREAMS):
            continue  # the owner can be advised, nobody can trigger
        answers = answered(found_improvable(scene, group_id))
        if answers is None:
            continue
        if answers.held:
            results.append([(name, Unplanned.HELD) for name in answers.ids])
            continue
        judged = judge(scene, group, assessment)
        if judged.why_not is None and scene.found.about(FindingReason.RACK_AWARENESS_OFF, Subject("group", group_id)):
            judged = Judged(Unplanned.RACKS_OFF)
        if judged.why_not is not None:
            results.append([(name, judged.why_not) for name in answers.ids])
            continue
        plan = TriggerPlan(
            group_id=group_id, reason=ProposalReason.REBALANCE_IMPROVES, moves=judged.moves, findings=answers.ids
        )
        results.append(plan)
    return results


def found_improvable(scene: Scene, group_id: str) -> list[Finding]:
    """The findings that say that this group's work could be nearer to its data."""
    subject = Subject("group", group_id)
    return [finding for reason in IMPROVABLE for finding in scene.found.about(reason, subject)]


def judge(scene: Scene, group: ConsumerGroup | StreamsGroup, assessment: Assessment) -> Judged:
    """Whether a rebalance may be proposed for a group with a gap, and what it could move."""
    snapshot, limits = scene.snapshot, scene.limits
    ground = group_ground(group, snapshot, scene.memo)
    if scene.held and any(broker in scene.held for broker in _brokers_of(scene, ground.masks)):
        return Judged(Unplanned.HELD)
    settings = limits.group(group.id)
    judged = scene.memo.of(
        ("judge", group.id),
        (group, assessment, ground.bits, limits, scene.snapshot.copies.get(group.id), *ground.masks.values()),
        partial(_judge, group, assessment, scene, settings),
    )
    if judged.why_not is None and limits.min_gain_bytes_per_s > 0:
        weighed = crossing_bytes(group, assessment, ground, snapshot)
        if weighed is not None and weighed[0] - weighed[1] < limits.min_gain_bytes_per_s:
            return Judged(Unplanned.BELOW_THRESHOLD)
    return judged


def _judge(group: ConsumerGroup | StreamsGroup, assessment: Assessment, scene: Scene, settings: GroupLimits) -> Judged:
    why = _not_triggerable(group, scene.limits) or _not_rack_aware(group, settings)
    if why is None and group.id in scene.snapshot.copies:
        warming = any(copy.role is Role.WARMUP for copy in scene.snapshot.copies[group.id])
        why = Unplanned.UNSTABLE if warming else None
    if why is not None:
        return Judged(why)
    if not worth(assessment.gap, total_reads(assessment), scene.limits):
        return Judged(Unplanned.BELOW_THRESHOLD)
    if any(rack.state is not RackState.KNOWN for rack in _racks(group)):
        return Judged(Unplanned.UNKNOWN_RACK)
    return _judge_reads(group, assessment, scene)


def _judge_reads(group: ConsumerGroup | StreamsGroup, assessment: Assessment, scene: Scene) -> Judged:
    """What Kafka's measure calls local saves nothing unless somebody near really serves the read."""
    read = reading(group, assessment, group_ground(group, scene.snapshot, scene.memo))
    if read is None:
        return Judged(Unplanned.BELOW_THRESHOLD)
    if not worth(read.after.local - read.before.local, read.after.total, scene.limits):
        unsure = scene.snapshot.selector_is_rack_aware is None
        return Judged(Unplanned.UNKNOWN_SELECTOR if unsure else Unplanned.BELOW_THRESHOLD)
    return Judged(None, _moves(group, assessment.result), read)


def _not_triggerable(group: ConsumerGroup | StreamsGroup, limits: Limits) -> Unplanned | None:
    if limits.excludes_group(group.id):
        return Unplanned.EXCLUDED
    if group.hidden or group.state != "Stable":
        return Unplanned.UNSTABLE
    if isinstance(group, StreamsGroup) and len(group.metadata_versions) > 1:
        return Unplanned.UNSTABLE
    if any(member.instance_id is not None for member in group.members):
        return Unplanned.STATIC
    if group.assignor not in COOPERATIVE:
        return Unplanned.EAGER if group.assignor in EAGER else Unplanned.NO_LEVER
    return None


def _not_rack_aware(group: ConsumerGroup | StreamsGroup, settings: GroupLimits) -> Unplanned | None:
    """An assignor that does not look at racks would only shuffle."""
    if isinstance(group, StreamsGroup):
        return Unplanned.RACKS_OFF if settings.rack_aware_assignment_strategy == "none" else None
    return None if group.assignor in RACK_AWARE else Unplanned.RACKS_OFF


def _racks(group: ConsumerGroup | StreamsGroup) -> list[Rack]:
    readers = group.members if isinstance(group, ConsumerGroup) else group.processes
    return [reader.rack for reader in readers]


def _moves(group: ConsumerGroup | StreamsGroup, result: ConsumerResult | TaskResult | None) -> Moves:
    """(partition, from, to) for everything that the optimum gives to somebody else; members, or Streams processes."""
    moves: list[tuple[TopicPartition, str, str]] = []
    if isinstance(group, ConsumerGroup) and isinstance(result, ConsumerResult):
        owner = {partition: member.id for member in group.members for partition in member.assigned or ()}
        for member_id, partitions in result.assignment.items():
            moves += [(p, owner[p], member_id) for p in partitions if p in owner and owner[p] != member_id]
    if isinstance(group, StreamsGroup) and isinstance(result, TaskResult) and group.topology is not None:
        runs = {task: process.id for process in group.processes for task in process.active}
        sources = {task.id: task.sources for task in group.topology.tasks}
        for process_id, tasks in result.active.items():
            for task in tasks:
                if task in runs and runs[task] != process_id:
                    moves += [(source, runs[task], process_id) for source in sources[task]]
    return tuple(sorted(moves))


def _brokers_of(scene: Scene, topics: Iterable[str]) -> set[int]:
    states = [state for name in topics for state in scene.snapshot.topics[name].partitions]
    return {broker for state in states for broker in state.replicas}

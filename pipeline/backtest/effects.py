"""Effects of an act on the looks that follow it.

The assumptions, which every result names:

- A rebalance gives what the group's own assignor is predicted to give, where that is unknown the optimum; at once,
  and for tasks that must restore their state as soon as they can have done so.
- It lasts until the group's next recorded rebalance. From then on the group has what history shows: what would have
  come of that rebalance from another beginning is not known.
- New replicas are there, and in sync, once they can have been copied; they stay until history changes the same list.
- No client's load, speed or traffic is another one because of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from agent.values.assessment import DetectionResult
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import Plan, PredictedAssignment, TriggerPlan
from agent.values.proposal import Proposal, ProposalKind
from agent.values.snapshot import ConsumerGroup, Group, PartitionState, Snapshot, StreamsGroup, TopicState
from assignors.problem import ConsumerResult, TaskId, TaskResult, TopicPartition


class EffectEnd(StrEnum):
    """Why history shows no more of what an act did."""

    REBALANCED = "the group rebalanced by itself"
    GONE = "its group or topic no longer exists"
    CHANGED = "another tool or operator changed the same replicas"
    REPLACED = "the strategy acted again"
    STANDS = "it was in effect to the end"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActEffect:
    """What one act changes."""

    proposal: Proposal
    at_ms: int
    """Epoch milliseconds of the look after which it was done."""
    from_ms: int
    """...and from when on its effect counts."""
    basis: Any
    """What history must still show: the group's rebalance, or replica lists."""
    given: PredictedAssignment | None = None
    """Of a rebalance: the assignment from then on."""
    replicas: Mapping[TopicPartition, tuple[int, ...]] | None = None
    """Of moves: the new lists."""

    @property
    def name(self) -> str:
        """The group or topic."""
        return self.proposal.subject.name


class SimulatedLook(NamedTuple):
    """A look with the effects of earlier acts laid over it."""

    snapshot: Snapshot
    lasting: tuple[ActEffect, ...]
    ended: tuple[tuple[ActEffect, EffectEnd], ...]
    touched: frozenset[str]
    """Groups and topics that are not as recorded, written ``group/…`` and ``topic/…``."""


def effect_of(
    proposal: Proposal, *, history: Snapshot, limits: Limits, planned: Snapshot, detection: DetectionResult, plan: Plan
) -> ActEffect | None:
    """What this act would change from this look on; None for one that changes nothing that looks show.

    ``planned`` is ``history`` with the effects of the strategy's earlier acts, ``detection`` and ``plan`` rest on it.
    """
    match proposal.kind:
        case ProposalKind.TRIGGER:
            group = planned.groups.get(proposal.subject.name)
            part = next((one for one in plan.triggers if one.group_id == proposal.subject.name), None)
            if part is None or not isinstance(group, ConsumerGroup | StreamsGroup):
                return None
            given = _given(group, part, detection)
            return None if given is None else _rebalance_effect(proposal, history, limits, part, given)
        case ProposalKind.REASSIGN | ProposalKind.LEADERS:
            return _placement_effect(proposal, history, limits, planned.topics[proposal.subject.name])
        case ProposalKind.ADVISE:
            return None


def _rebalance_effect(
    proposal: Proposal, history: Snapshot, limits: Limits, part: TriggerPlan, given: PredictedAssignment
) -> ActEffect:
    from_ms = history.taken_ms + round(_restoring_s(part, limits) * 1000)
    basis = rebalance_of(history.groups.get(proposal.subject.name))
    return ActEffect(proposal=proposal, at_ms=history.taken_ms, from_ms=from_ms, basis=basis, given=given)


def _restoring_s(part: TriggerPlan, limits: Limits) -> float:
    """Seconds until the tasks that must restore their state can have done so."""
    if part.prediction is None or part.prediction.warmups is None:
        return 0.0
    return (part.prediction.warmups.read_bytes or 0) / limits.proposals.move_bytes_per_s


def _placement_effect(proposal: Proposal, history: Snapshot, limits: Limits, topic: TopicState) -> ActEffect:
    after = _lists(proposal, topic)
    copied_s = (proposal.predicted.bytes_to_move or 0) / limits.proposals.move_bytes_per_s
    from_ms = history.taken_ms + (0 if proposal.kind is ProposalKind.LEADERS else round(copied_s * 1000))
    basis = _replicas(history.topics[topic.name], after)
    return ActEffect(proposal=proposal, at_ms=history.taken_ms, from_ms=from_ms, basis=basis, replicas=after)


def with_effects(snapshot: Snapshot, effects: Iterable[ActEffect], memo: Memo) -> SimulatedLook:
    """The look with the effects applied. An effect that has not begun yet stays, and changes nothing."""
    groups: dict[str, Group] = {}
    topics: dict[str, TopicState] = {}
    standing: list[ActEffect] = []
    ended: list[tuple[ActEffect, EffectEnd]] = []
    for effect in effects:
        why = _over(effect, snapshot)
        if why is not None:
            ended.append((effect, why))
            continue
        standing.append(effect)
        if snapshot.taken_ms < effect.from_ms:
            continue
        if effect.given is not None:
            group = snapshot.groups[effect.name]
            as_given = partial(_with_tasks, group, effect.given)
            groups[effect.name] = memo.of(("effect", effect.name), (group, effect.proposal.id), as_given)
        elif effect.replicas is not None:
            topic = topics.get(effect.name, snapshot.topics[effect.name])
            as_moved = partial(_as_moved, topic, effect)
            topics[effect.name] = memo.of(("effect", effect.name, effect.proposal.id), (topic,), as_moved)
    changed = snapshot
    if groups:
        changed = replace(changed, groups=_overlaid(snapshot.groups, groups))
    if topics:
        changed = replace(changed, topics=_overlaid(snapshot.topics, topics))
    touched = frozenset((*(f"group/{name}" for name in groups), *(f"topic/{name}" for name in topics)))
    return SimulatedLook(changed, tuple(standing), tuple(ended), touched)


def rebalance_of(group: Group | None) -> Any:
    """Differs between the assignment since the group's last rebalance and the one before; None without a snapshot."""
    match group:
        case ConsumerGroup() if not group.hidden:
            return tuple([(member.id, member.generation, member.epoch, member.assigned) for member in group.members])
        case StreamsGroup() if not group.hidden:
            return (group.join, group.epoch, tuple([(one.id, one.active) for one in group.processes]))
        case _:
            return None


# --- what an act gives ------------------------------------------------------------------------------------------


def _given(
    group: ConsumerGroup | StreamsGroup, part: TriggerPlan, detection: DetectionResult
) -> PredictedAssignment | None:
    if part.promotable and isinstance(group, StreamsGroup):
        return _promoted(group, part.promotable)
    if part.prediction is not None and part.prediction.settled is not None:
        return part.prediction.settled
    result = detection.assessments[group.id].result
    match result:
        case ConsumerResult():
            return PredictedAssignment(reads=result.assignment)
        case TaskResult():
            return PredictedAssignment(reads={}, active=result.active)
        case _:
            return None


def _promoted(group: StreamsGroup, promotable: Iterable[tuple[str, TaskId]]) -> PredictedAssignment:
    """Every task that waits warmed up somewhere runs there."""
    active = {process.id: set(process.active) for process in group.processes}
    for process, task in promotable:
        for tasks in active.values():
            tasks.discard(task)
        active.setdefault(process, set()).add(task)
    return PredictedAssignment(
        reads={}, active={process: tuple(sorted(tasks, key=repr)) for process, tasks in active.items()}
    )


def _with_tasks(group: Group, predicted: PredictedAssignment) -> Group:
    match group:
        case ConsumerGroup():
            members = [one._replace(assigned=tuple(sorted(predicted.reads.get(one.id, ())))) for one in group.members]
            return group._replace(members=tuple(members))
        case StreamsGroup():
            return group._replace(processes=tuple([_running(one, predicted) for one in group.processes]))
        case _:
            return group


def _running(process: Any, predicted: PredictedAssignment) -> Any:
    """A process with its new active tasks; what it gave away, or took over, is no standby or warm-up of its own."""
    active = predicted.active.get(process.id, ())
    held = predicted.standby.get(process.id) if predicted.standby else None
    standby = process.standby if held is None else held
    return process._replace(
        active=tuple(active),
        standby=tuple([task for task in standby if task not in active]),
        warmup=tuple([task for task in process.warmup if task not in active]),
    )


def _as_moved(topic: TopicState, effect: ActEffect) -> TopicState:
    after = effect.replicas or {}
    return topic._replace(partitions=tuple([_moved(state, after.get(state.id), effect) for state in topic.partitions]))


def _moved(state: PartitionState, replicas: tuple[int, ...] | None, effect: ActEffect) -> PartitionState:
    if replicas is None:
        return state
    if effect.proposal.kind is ProposalKind.LEADERS:
        return state._replace(replicas=replicas, leader=replicas[0])
    leader = state.leader if state.leader in replicas else replicas[0]
    return state._replace(replicas=replicas, isr=replicas, leader=leader)


def _lists(proposal: Proposal, topic: TopicState) -> Mapping[TopicPartition, tuple[int, ...]]:
    there = {state.id for state in topic.partitions}
    return {change.id: change.after for change in sorted(proposal.placements) if change.id in there}


def _replicas(topic: TopicState, of: Iterable[TopicPartition]) -> Any:
    wanted = set(of)
    return (topic.topic_id, tuple([(state.id, state.replicas) for state in topic.partitions if state.id in wanted]))


# --- whether history still bears it -----------------------------------------------------------------------------


def _over(effect: ActEffect, snapshot: Snapshot) -> EffectEnd | None:
    if effect.given is not None:
        group = snapshot.groups.get(effect.name)
        if group is None:
            return EffectEnd.GONE
        return None if rebalance_of(group) == effect.basis else EffectEnd.REBALANCED
    topic = snapshot.topics.get(effect.name)
    if topic is None or topic.topic_id != effect.basis[0]:
        return EffectEnd.GONE
    return None if _replicas(topic, effect.replicas or ()) == effect.basis else EffectEnd.CHANGED


def _overlaid(names: Mapping[str, Any], changed: Mapping[str, Any]) -> Mapping[str, Any]:
    """In the order of the names, on which readers rely."""
    return {name: changed.get(name, value) for name, value in names.items()}

"""What must hold in every state of a system, and at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    CancelReassignments,
    ClusterChange,
    ElectLeaders,
)
from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS
from agent.values.reassignment import (
    Batch,
    BatchState,
    PlanState,
    ReassignmentPlan,
    ReassignmentRecords,
    ReassignmentTarget,
    attempt,
    moved_of,
)
from agent.values.throttles import OpType, ThrottleChange, ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import Cluster, Part
from tests.execute.model_system import Scenario, System

FOREIGN_RATE = "7"
"""What other people set in the middle of it."""


def broken(system: System, scenario: Scenario) -> str:
    """The invariant that is broken here; empty when none is."""
    return next(_broken(system, scenario), "")


def weak(cluster: Cluster) -> bool:
    """True while a partition is under its min ISR, or without a leader."""
    needs = (min(cluster.min_isr, len(part.replicas)) for part in cluster.parts)
    return any(part.leader is None or len(part.isr) < need for part, need in zip(cluster.parts, needs, strict=True))


def weakened(parts: Iterable[Part], minimum: int, targets: Mapping[TopicPartition, Iterable[int]]) -> bool:
    """True when moving to these would leave a partition under its min ISR: with each copy it has one more replica."""
    rows = {TopicPartition("t", number): part for number, part in enumerate(parts)}
    return any(
        len(part.isr) < min(minimum, len({*part.replicas, *target}))
        for id_, target in targets.items()
        if (part := rows.get(id_)) is not None and set(target) - set(part.replicas)
    )


def begun_badly(plans: Iterable[ReassignmentPlan], before: ReassignmentRecords, after: ReassignmentRecords) -> str:
    """What is wrong with plans that are written: an ended one begins again, or two attempts are open; empty if not."""
    unended = {plan.proposal_id for plan in before.plans}
    if any(not it.ended and it.proposal_id in before.known - unended for it in plans):
        return "an ended attempt began again"
    if len({attempt(plan.proposal_id).of for plan in after.plans}) < len(after.plans):
        return "two attempts are open at once"
    if sum(batch.state is not BatchState.CLOSED for batch in after.batches) > 1:
        return "two batches are open at once"
    return ""


def unthrottled(act: ClusterChange, cluster: Cluster) -> str:
    """Data that would move without a throttle; empty if none would."""
    if not isinstance(act, AlterReassignments):
        return ""
    settings = {(resource, key): value for resource, key, value in cluster.settings}
    listed = settings.get((ThrottleResource(topic="t"), FOLLOWER_REPLICAS), "").split(",")
    for move in act.moves:
        part = cluster.parts[move.id.partition]
        for broker in set(move.target) - set(part.replicas):
            entry = f"{move.id.partition}:{broker}"
            rate = settings.get((ThrottleResource(broker=broker), FOLLOWER_RATE))
            if ("*" not in listed and entry not in listed) or (rate is None and broker in cluster.up):
                return f"{move.id} was moved without a throttle"
    return ""


def unlogged(act: ClusterChange, journal: ReassignmentRecords | None) -> str:
    """What the journal does not say although it is done; empty when it says all of it."""
    if journal is None:
        return "an act without a journal"
    if isinstance(act, AlterThrottles):
        return next((f"an unlogged throttle: {it}" for it in act.settings if not _owed(it, journal)), "")
    if isinstance(act, ElectLeaders):
        return "" if any(plan.elections for plan in journal.plans) else "an unlogged election"
    batch = next((it for it in journal.batches if it.state is not BatchState.CLOSED), None)
    if batch is None:
        return f"an unlogged {type(act).__name__}"
    return _unlogged_move(act, batch)


def _unlogged_move(act: AlterReassignments | CancelReassignments, batch: Batch) -> str:
    if isinstance(act, CancelReassignments):
        return "" if set(act.partitions) <= set(batch.cancelling) else "an unlogged cancel"
    if batch.state is BatchState.INTENT:
        return "a request was not announced"
    forward = {(it.id, it.after) for it in batch.targets}
    back = {(it.id, it.before) for it in batch.targets if it.id in batch.cancelling}
    ended = {end.id for end in batch.ends}
    moves = {(move.id, move.target) for move in act.moves}
    return "" if moves <= forward | back and not ended & {id_ for id_, _ in moves} else "an unlogged move"


def _owed(setting: ThrottleChange, journal: ReassignmentRecords) -> bool:
    debts = {(debt.resource, debt.key): debt for debt in journal.debts}
    debt = debts.get((setting.resource, setting.key))
    return debt is not None and (
        setting.op not in (OpType.SET, OpType.APPEND) or setting.value in (debt.value, debt.before)
    )


def _broken(system: System, scenario: Scenario) -> Iterator[str]:
    if system.harm:
        yield system.harm
    sizes = {len(target.before) for plan in scenario.plans for target in plan.targets}
    if any(len(part.target) not in sizes for part in system.cluster.parts):
        yield "the number of replicas changed"
    yield from _others_throttles(system, scenario)
    journal = system.journal
    if all_ended(system, scenario) and not system.wire and not journal.plans and not journal.debts:
        yield from _throttles(system, scenario)
        yield from _replicas(system, scenario)


def all_ended(system: System, scenario: Scenario) -> bool:
    """Whether each plan has come to an end."""
    return len(system.ended) == len(scenario.plans)


def _throttles(system: System, scenario: Scenario) -> Iterator[str]:
    theirs = {(resource, key): value for resource, key, value in scenario.cluster.settings}
    now = {(resource, key): value for resource, key, value in system.cluster.settings}
    for (resource, key), value in now.items():
        if value not in (theirs.get((resource, key)), FOREIGN_RATE):
            yield f"a throttle was left: {key} of {resource.name} is {value}"
    if scenario.left.throttles and not system.left.throttles and FOREIGN_RATE not in now.values():
        yield "a throttle that someone else set meanwhile was taken away"


def _others_throttles(system: System, scenario: Scenario) -> Iterator[str]:
    """Rates and ``*`` of others stay as they are all the time; their entries stay in lists, alone at the end."""
    now = {(resource, key): value for resource, key, value in system.cluster.settings}
    same_topic = bool(system.cluster.parts) and all(part.topic_id == "id" for part in system.cluster.parts)
    for resource, key, value in scenario.cluster.settings:
        there = now.get((resource, key), "")
        kept = there in (value, FOREIGN_RATE)
        over = all_ended(system, scenario) and not system.journal.debts
        if resource.kind == "topic" and value != "*" and not over:
            kept = set(value.split(",")) <= set(there.split(","))
        if (same_topic or resource.kind == "broker") and not kept:
            yield f"a throttle of someone else was changed: {key} of {resource.name}"


def _replicas(system: System, scenario: Scenario) -> Iterator[str]:
    if not system.cluster.parts or scenario.left.foreign != system.left.foreign:
        return
    shared = scenario.second is not None and {it.id for it in scenario.plan.targets} & {
        it.id for it in scenario.second.targets
    }
    allowed: dict[TopicPartition, frozenset[tuple[int, ...]]] = {}
    for end in sorted(system.ended, key=lambda plan: plan.order):
        for target in end.targets:
            part = system.cluster.parts[target.id.partition]
            allowed[target.id] = _after(end, target, allowed.get(target.id))
            says_moved = target.id in (moved_of(end) or ())
            if part.topic_id == "id" and not shared and says_moved is not (part.replicas == target.after):
                yield f"{target.id} has the replicas {part.replicas}, and its plan says that it moved: {says_moved}"
    for id_, replicas in allowed.items():
        part = system.cluster.parts[id_.partition]
        if part.topic_id != "id":
            continue
        if part.moving:
            yield f"{id_} still moves after its plan ended"
        elif part.replicas not in replicas:
            yield f"{id_} has the replicas {part.replicas} after its plan was {[it.state.value for it in system.ended]}"


def _after(
    end: ReassignmentPlan, target: ReassignmentTarget, before: frozenset[tuple[int, ...]] | None
) -> frozenset[tuple[int, ...]]:
    """What its partition may have after a plan, given what it may have had."""
    if end.state is PlanState.DONE:
        return frozenset({target.after})
    if end.state is PlanState.ROLLED_BACK:
        return frozenset({target.before})
    return (before or frozenset()) | {target.after, target.before}

"""What must hold in every state of a system, and at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.execute.attempts import attempt
from agent.execute.messages import Act, Alter, Cancel, Configure, Elect, Op, Setting
from agent.execute.values import Batch, BatchState, Plan, PlanState, Records, Target
from tests.execute.abstract import Cluster
from tests.execute.system import Scenario, System

FOREIGN_RATE = "7"
"""What other people set in the middle of it."""


def broken(system: System, scenario: Scenario) -> str:
    """The invariant that is broken here; empty when none is."""
    return next(_broken(system, scenario), "")


def weak(cluster: Cluster) -> bool:
    """True while a partition is under its min ISR, or without a leader."""
    return any(part.leader is None or len(part.isr) < cluster.min_isr for part in cluster.parts)


def begun_badly(plans: Iterable[Plan], before: Records, after: Records) -> str:
    """What is wrong with plans that are written: an ended one begins again, or two attempts are open; empty if not."""
    unended = {plan.proposal_id for plan in before.plans}
    if any(not it.ended and it.proposal_id in before.known - unended for it in plans):
        return "an ended attempt began again"
    if len({attempt(plan.proposal_id).of for plan in after.plans}) < len(after.plans):
        return "two attempts are open at once"
    return ""


def unlogged(act: Act, journal: Records | None) -> str:
    """What the journal does not say although it is done; empty when it says all of it."""
    if journal is None:
        return "an act without a journal"
    if isinstance(act, Configure):
        return next((f"an unlogged throttle: {it}" for it in act.settings if not _owed(it, journal)), "")
    if isinstance(act, Elect):
        return "" if any(plan.elections for plan in journal.plans) else "an unlogged election"
    batch = next((it for it in journal.batches if it.state is not BatchState.CLOSED), None)
    if batch is None:
        return f"an unlogged {type(act).__name__}"
    return _unlogged_move(act, batch)


def _unlogged_move(act: Alter | Cancel, batch: Batch) -> str:
    if isinstance(act, Cancel):
        return "" if set(act.partitions) <= set(batch.cancelling) else "an unlogged cancel"
    if batch.state is BatchState.INTENT:
        return "a request was not announced"
    forward = {(it.id, it.after) for it in batch.targets}
    back = {(it.id, it.before) for it in batch.targets if it.id in batch.cancelling}
    ended = {end.id for end in batch.ends}
    moves = {(move.id, move.target) for move in act.moves}
    return "" if moves <= forward | back and not ended & {id_ for id_, _ in moves} else "an unlogged move"


def _owed(setting: Setting, journal: Records) -> bool:
    debts = {(debt.resource, debt.key): debt for debt in journal.debts}
    debt = debts.get((setting.resource, setting.key))
    return debt is not None and (setting.op not in (Op.SET, Op.APPEND) or setting.value in (debt.ours, debt.before))


def _broken(system: System, scenario: Scenario) -> Iterator[str]:
    if system.harm:
        yield system.harm
    sizes = {len(target.before) for target in scenario.plan.targets}
    if any(len(part.target) not in sizes for part in system.cluster.parts):
        yield "the number of replicas changed"
    yield from _others_throttles(system, scenario)
    journal = system.journal
    if system.ended and not system.wire and not journal.plans and not journal.debts:
        yield from _throttles(system, scenario)
        yield from _replicas(system, scenario)


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
        if resource.kind == "topic" and value != "*" and not system.ended:
            kept = set(value.split(",")) <= set(there.split(","))
        if (same_topic or resource.kind == "broker") and not kept:
            yield f"a throttle of someone else was changed: {key} of {resource.name}"


def _replicas(system: System, scenario: Scenario) -> Iterator[str]:
    if not system.cluster.parts or scenario.left.foreign != system.left.foreign:
        return
    for target in scenario.plan.targets:
        part = system.cluster.parts[target.id.partition]
        if part.topic_id != "id":
            continue
        if part.moving:
            yield f"{target.id} still moves after its plan ended"
        elif part.replicas != _planned(system.ended, target, part.replicas):
            yield f"{target.id} has the replicas {part.replicas} after its plan was {system.ended}"


def _planned(ended: str, target: Target, replicas: tuple[int, ...]) -> tuple[int, ...]:
    if ended == PlanState.DONE:
        return target.after
    if ended == PlanState.ROLLED_BACK:
        return target.before
    return target.after if replicas == target.after else target.before

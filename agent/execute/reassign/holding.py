"""What keeps moves from being requested now? Asked before a batch begins, when it is sent and when it is sent again.

One rule for all three. The order is from what could lose data to what is only impolite. Down and unread are two things:
what is down is known, and moves that do not need it may begin; what was not read is unknown, and holds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.execute.reassign.judging import Status, View
from agent.execute.reassign.throttles import resources_of
from agent.values.reassignment import Plan, Target
from agent.values.replicas import under_min_isr_meanwhile
from agent.values.words import counted
from assignors.problem import TopicPartition


def held(view: View, plan: Plan, targets: Iterable[Target]) -> str | None:
    """Why those partitions of the plan are not to be moved now; None when nothing is against it."""
    targets = tuple(targets)
    return unsafe(view, plan, targets) or _down(view, targets) or not_allowed(view, plan)


def unsafe(view: View, plan: Plan, targets: Iterable[Target]) -> str | None:
    """What could lose data, or get into the way of another tool; and what is not known of these partitions."""
    targets = tuple(targets)
    if (weak := view.weak(plan.targets)) is not None:
        return weak
    if (why := unread(view, targets) or _weak_meanwhile(view, targets)) is not None:
        return why
    if others := _others(view):
        return f"{counted(len(others), 'partition')} moved by another tool, {others[0]} first"
    return None


def not_allowed(view: View, plan: Plan) -> str | None:
    """A pause; what the guard says before each batch (windows, topics, racks, budgets); requests that were refused."""
    if plan.paused:
        return "the plan is paused"
    if (why := view.state.may.of(plan.proposal_id) or view.state.over(plan)) is not None:
        return why
    rest = view.state.rest(plan.proposal_id)
    return None if rest is None else f"requested again later: {rest.why or 'not now'}"


def unread(view: View, targets: Iterable[Target]) -> str | None:
    """The first thing about these partitions that the look does not tell; None when it tells all."""
    targets = tuple(targets)
    for target in targets:
        now, status = view.partitions.get(target.id), view.status(target)
        if status is Status.UNSEEN:
            return f"{target.id} is not visible"
        if now is None or status is Status.REPLACED:
            continue
        if not now.leader_known:
            return f"brokers do not agree about the leader of {target.id}"
        if view.policy.limits.min_isr_guard and now.min_isr is None:
            return f"the min ISR of {target.id} is unknown"
    silent = sorted(view.seen.unread & set(resources_of(targets, ()))) if view.seen.unread else []
    return f"the settings of {silent[0].kind} {silent[0].name} did not answer" if silent else None


def _weak_meanwhile(view: View, targets: Iterable[Target]) -> str | None:
    """The first that would take no writes while it moves, also where it moves back: settings change after approval."""
    if not view.policy.limits.min_isr_guard:
        return None
    return next((why for target in targets if (why := _weak(view, target)) is not None), None)


def _weak(view: View, target: Target) -> str | None:
    now = view.partitions.get(target.id)
    if now is None or now.min_isr is None or not target.adding or view.status(target) is not Status.BEFORE:
        return None
    return under_min_isr_meanwhile(target.id, now.min_isr, now.replicas, target.after)


def _others(view: View) -> list[TopicPartition]:
    """Partitions that others move."""
    ours = {target.id for target in view.batch.targets if view.status(target) is Status.MOVING} if view.batch else set()
    return [move.id for move in view.seen.moves if move.id not in ours]


def _down(view: View, targets: Iterable[Target]) -> str | None:
    down = next((target.id for target in targets if not view.seen.brokers.issuperset(target.adding)), None)
    return f"a broker that gets a copy of {down} is down" if down is not None else None

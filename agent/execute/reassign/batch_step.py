"""Next step of the open batch: record ends, cancel, close, throttle, send, raise a stuck rate once.

Order: record ends; cancel; close; withdraw a batch that was never sent; set the throttle and see it set; send; resend
what the controller ignored; raise the throttle of a stuck batch once. Invariants: every request directly follows the
append that announces it, and rests on a look after all earlier writes. Only partitions seen at their former replicas,
with no request in flight, are requested again. A batch stays open while a request may still take effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from agent.execute.reassign.executor_view import ExecutorView, TargetStatus, hold_reason, open_targets
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    AppendJournal,
    CancelReassignments,
    NewPartitionReassignment,
    NotifyOperator,
    OwnReassignment,
)
from agent.execute.reassign.throttles import (
    ThrottleStatus,
    complete,
    missing_throttles,
    throttle_status,
    throttle_update,
)
from agent.values.memo import IdentityMemo
from agent.values.number_format import counted
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
)
from assignors.problem import TopicPartition

_FEW = 64
"""So many are looked through each time."""
_CANCELLED: IdentityMemo[frozenset[TopicPartition]] = IdentityMemo(4)


class BatchDecision(NamedTuple):
    """Decision after a look: commands, or the reason to wait."""

    append: AppendJournal | None = None
    notices: tuple[NotifyOperator, ...] = ()
    wait_for: str = ""
    held: bool = False
    """True where that keeps the plan from going on."""


def work_on_batch(view: ExecutorView) -> BatchDecision | None:
    """The next thing to do for the open batch; None when there is no open batch."""
    if view.batch is None or view.plan is None:
        return None
    batch, plan = view.batch, view.plan
    statuses = {target: view.status(target) for target in open_targets(batch)}
    return (
        _record(view, batch, plan, statuses)
        or _give_up(view, batch, plan)
        or (_prepare(view, batch, plan, statuses) if batch.state is BatchState.INTENT else None)
        or (_send_again(view, batch, plan, statuses) if batch.state is BatchState.SENT else None)
        or _repace(view, batch, statuses)
        or _wait(view, batch, plan, statuses)
    )


ENDS = {
    TargetStatus.THERE: PartitionEndReason.DONE,
    TargetStatus.GONE: PartitionEndReason.GONE,
    TargetStatus.REPLACED: PartitionEndReason.REPLACED,
    TargetStatus.OTHER: PartitionEndReason.CHANGED,
    TargetStatus.BETWEEN: PartitionEndReason.CHANGED,
}
"""How a partition has ended that needs, or can have, no move any more."""


def _record(
    view: ExecutorView, batch: Batch, plan: ReassignmentPlan, statuses: dict[ReassignmentTarget, TargetStatus]
) -> BatchDecision | None:
    ends = [PartitionEnd(target.id, end) for target in statuses if (end := _end(view, batch, target, statuses[target]))]
    ended = {end.id for end in ends}
    left = {target: status for target, status in statuses.items() if target.id not in ended}
    reasons = {target.id: why for target in left if (why := _why_cancel(view, batch, plan, target))}
    cancelling = tuple(sorted({*batch.cancelling, *reasons})) if batch.state is not BatchState.INTENT else ()
    changed = batch._replace(ends=tuple(sorted((*batch.ends, *ends))), cancelling=cancelling)
    if view.state.settled and not left:
        changed = changed._replace(state=BatchState.CLOSED)
    stops, stopped = frozenset(cancelling), frozenset(batch.cancelling)
    runs = tuple(
        OwnReassignment(target.id, target.topic_id, target.after)
        for target, status in left.items()
        if status is TargetStatus.MOVING and target.id in stops and target.id not in view.state.uncancelled
    )
    then = CancelReassignments(runs) if runs else _restore(view, changed, left)
    if isinstance(then, AlterReassignments):
        changed = _sent(changed, then, view)
    if changed == batch and then is None:
        return None
    news = [f"{id_}: {reasons[id_]}; its move is cancelled" for id_ in cancelling if id_ not in stopped]
    return BatchDecision(
        AppendJournal((changed,), then), tuple(NotifyOperator(alarm=True, sentence=sentence) for sentence in news)
    )


def _cancelled(batch: Batch) -> Collection[TopicPartition]:
    """Its partitions whose move is to be cancelled."""
    ids = batch.cancelling
    return ids if len(ids) <= _FEW else _CANCELLED.of((ids,), lambda: frozenset(ids), lambda _: 1)


def _end(
    view: ExecutorView, batch: Batch, target: ReassignmentTarget, status: TargetStatus
) -> PartitionEndReason | None:
    """How it has ended; None while it has not, or while a request on its way may still change that."""
    if target.id in view.state.unsure and status is not TargetStatus.THERE:
        return None
    if status is TargetStatus.BEFORE:
        return None if batch.state is BatchState.INTENT else _end_before(view, batch, target)
    if status is TargetStatus.SHUFFLED:
        return _end_shuffled(view, batch, target)
    if status is TargetStatus.BETWEEN and view.state.idle_ms(target.id) < view.policy.limits.stuck_after_ms:
        return None
    # A move that another tool began before us is waited for.
    waits = status is TargetStatus.OTHER and batch.state is BatchState.INTENT and target.id in view.moves
    return None if waits else ENDS.get(status)


def _end_shuffled(view: ExecutorView, batch: Batch, target: ReassignmentTarget) -> PartitionEndReason | None:
    """A cancel leaves the former replicas in another order, which is mended by one more request."""
    if target.id not in _cancelled(batch):
        return PartitionEndReason.CHANGED
    return PartitionEndReason.BACK if batch.sendings >= 2 * view.policy.max_sendings else None


def _end_before(view: ExecutorView, batch: Batch, target: ReassignmentTarget) -> PartitionEndReason | None:
    if target.id in view.state.refused:
        return PartitionEndReason.REFUSED
    if target.id in _cancelled(batch):
        return PartitionEndReason.BACK
    if target.id in view.state.acked or batch.state is BatchState.ACKED:
        # The list of reassignments is the controller's own, but replicas come from brokers that may lag behind it.
        return (
            PartitionEndReason.BACK if view.state.idle_ms(target.id) >= view.policy.limits.request_timeout_ms else None
        )
    return PartitionEndReason.NOT_BEGUN if batch.sendings >= view.policy.max_sendings else None


def _why_cancel(view: ExecutorView, batch: Batch, plan: ReassignmentPlan, target: ReassignmentTarget) -> str | None:
    if target.id in _cancelled(batch):
        return None
    if plan.state is PlanState.CANCELLING or (plan.state is PlanState.ROLLING_BACK and not batch.back):
        return plan.sentence or "its plan is cancelled"
    if view.lost(target):
        return "a broker that gets a copy is down"
    if batch.repaced and view.state.idle_ms(target.id) >= view.policy.limits.stuck_after_ms:
        return "no progress"
    return None


def _restore(
    view: ExecutorView, batch: Batch, left: dict[ReassignmentTarget, TargetStatus]
) -> AlterReassignments | None:
    moves = tuple(
        NewPartitionReassignment(target.id, target.topic_id, view.partitions[target.id].replicas, target.before)
        for target, status in left.items()
        if status is TargetStatus.SHUFFLED and target.id in _cancelled(batch) and target.id not in view.state.unsure
    )
    return AlterReassignments(moves) if moves else None


def _give_up(view: ExecutorView, batch: Batch, plan: ReassignmentPlan) -> BatchDecision | None:
    """A batch that was not sent is withdrawn; one that runs while a partition is under its min ISR is cancelled."""
    if batch.state is BatchState.INTENT and (why := _not_now(view, batch, plan)):
        return BatchDecision(AppendJournal((batch._replace(state=BatchState.CLOSED, sentence=why),)))
    if (why := _recalled(view, batch, plan)) is not None:
        # Where it is certain that nothing was brought about, it does not count.
        asked = 0 if not batch.ends and all(one.id in view.state.unsent for one in batch.targets) else batch.sendings
        return BatchDecision(AppendJournal((batch._replace(state=BatchState.CLOSED, sendings=asked, sentence=why),)))
    weak = view.weak(open_targets(batch))
    grace_ms = view.policy.limits.grace_after_broker_loss_ms
    if weak is None or plan.state is not PlanState.OPEN or (view.state.weak_ms or 0) < grace_ms:
        return None
    return BatchDecision(
        AppendJournal((plan._replace(state=PlanState.CANCELLING, paused=False, sentence=weak),)),
        (NotifyOperator(alarm=True, sentence=f"{weak}: the plan is cancelled, and moves in progress are taken back"),),
    )


def _recalled(view: ExecutorView, batch: Batch, plan: ReassignmentPlan) -> str | None:
    """Why a batch that was sent is given up for now: nothing of what is left of it began, or can begin any more."""
    left = open_targets(batch)
    asleep = (
        batch.state is BatchState.SENT
        and view.state.settled
        and not batch.cancelling
        and not {target.id for target in left} & (view.state.unsure | view.state.acked | view.state.refused)
        and all(view.status(target) is TargetStatus.BEFORE for target in left)
    )
    return hold_reason(view, plan, left) if asleep else None


def _not_now(view: ExecutorView, batch: Batch, plan: ReassignmentPlan) -> str | None:
    """Why an intent is not carried out after all."""
    if plan.state is PlanState.CANCELLING or (plan.state is PlanState.ROLLING_BACK and not batch.back):
        return plan.sentence or "its plan is cancelled"
    return hold_reason(view, plan, open_targets(batch))


def _prepare(
    view: ExecutorView, batch: Batch, plan: ReassignmentPlan, statuses: dict[ReassignmentTarget, TargetStatus]
) -> BatchDecision | None:
    if not statuses:
        return None  # all have ended before it was sent: it is closed once nothing of a former leader can arrive
    debts = _debts(view, batch)
    missing = tuple(debt for debt in debts if not complete(debt, view.cluster))
    if missing:
        return _throttle_again(view, plan, missing)
    if any(status is not TargetStatus.BEFORE for status in statuses.values()):
        return None
    if more := missing_throttles(batch, debts, view.cluster):
        return _throttle_again(view, plan, more)
    alter = _alter(statuses)
    return BatchDecision(AppendJournal((_sent(batch, alter, view),), alter))


def _throttle_again(view: ExecutorView, plan: ReassignmentPlan, missing: tuple[ThrottleDebt, ...]) -> BatchDecision:
    tried = {debt: debt.tries + (debt.resource not in view.state.unsent) for debt in missing}
    if max(tried.values()) > view.policy.max_configurings:
        sentence = f"{missing[0].key} of {missing[0].resource.kind} {missing[0].resource.name} cannot be set"
        return BatchDecision(
            AppendJournal((plan._replace(state=PlanState.CANCELLING, sentence=sentence),)),
            (NotifyOperator(alarm=True, sentence=f"{sentence}: nothing is moved without a throttle"),),
        )
    again = tuple(debt._replace(tries=tries) for debt, tries in tried.items())
    return BatchDecision(AppendJournal(again, AlterThrottles(tuple(throttle_update(debt) for debt in again))))


def _send_again(
    view: ExecutorView, batch: Batch, plan: ReassignmentPlan, statuses: dict[ReassignmentTarget, TargetStatus]
) -> BatchDecision | None:
    """Request again what the controller ignored; acknowledge the batch when all is answered."""
    answered = view.state.unsure | view.state.acked | view.state.refused | set(batch.cancelling)
    quiet = {target: it for target, it in statuses.items() if it is TargetStatus.BEFORE and target.id not in answered}
    ready = [target for target in quiet if view.cluster.brokers.issuperset(target.adding)]
    if ready and hold_reason(view, plan, ready) is None:
        alter = _alter(ready)
        return BatchDecision(AppendJournal((_sent(batch, alter, view),), alter))
    if quiet or any(target.id in view.state.unsure or it is TargetStatus.UNSEEN for target, it in statuses.items()):
        return None
    return BatchDecision(AppendJournal((batch._replace(state=BatchState.ACKED),))) if statuses else None


def _sent(batch: Batch, alter: AlterReassignments, view: ExecutorView) -> Batch:
    """The batch as it is written right before that request; one that was never sent does not count."""
    again = all(move.id in view.state.unsent for move in alter.moves)
    return batch._replace(state=BatchState.SENT, sendings=batch.sendings + (not again))


def _alter(targets: Iterable[ReassignmentTarget]) -> AlterReassignments:
    return AlterReassignments(
        tuple(NewPartitionReassignment(target.id, target.topic_id, target.before, target.after) for target in targets)
    )


def _repace(view: ExecutorView, batch: Batch, statuses: dict[ReassignmentTarget, TargetStatus]) -> BatchDecision | None:
    """Name what is stuck and double the rate of the batch within the ceiling, once."""
    patience = view.policy.limits.stuck_after_ms
    stuck = [
        target.id
        for target, status in statuses.items()
        if status is TargetStatus.MOVING
        and target.id not in _cancelled(batch)
        and view.state.idle_ms(target.id) >= patience
    ]
    if batch.repaced or not stuck:
        return None
    rate = batch.rate_bytes_per_s
    faster = None if rate is None else max(rate, min(2 * rate, view.policy.limits.throttle_ceiling))
    debts = tuple(
        debt._replace(ours=faster, formerly=debt.ours)
        for debt in _debts(view, batch)
        if faster is not None
        and faster != rate
        and isinstance(debt.ours, int)
        and throttle_status(debt, view.cluster) is ThrottleStatus.STANDS
    )
    named = ", ".join(str(id_) for id_ in stuck[:5])
    sentence = f"no progress for {patience // 1000} s: {named}" + (f"; the rate is now {faster} B/s" if debts else "")
    changes: tuple[Batch | ThrottleDebt, ...] = (
        batch._replace(repaced=True, rate_bytes_per_s=faster if debts else rate),
        *debts,
    )
    then = AlterThrottles(tuple(throttle_update(debt) for debt in debts)) if debts else None
    return BatchDecision(AppendJournal(changes, then), (NotifyOperator(alarm=True, sentence=sentence),))


def _debts(view: ExecutorView, batch: Batch) -> tuple[ThrottleDebt, ...]:
    """The debts of that batch."""
    key = (batch.proposal_id, batch.number)
    return tuple(debt for debt in view.state.records.debts if (debt.proposal_id, debt.number) == key)


def _wait(
    view: ExecutorView, batch: Batch, plan: ReassignmentPlan, statuses: dict[ReassignmentTarget, TargetStatus]
) -> BatchDecision:
    settling = not statuses or view.state.unsure or batch.cancelling
    quiet = [target for target, status in statuses.items() if status in (TargetStatus.BEFORE, TargetStatus.UNSEEN)]
    if not settling and quiet and (why := hold_reason(view, plan, quiet)) is not None:
        what = counted(len(quiet), "partition")
        return BatchDecision(wait_for=f"batch {batch.number}: {what} not moving yet: {why}", held=True)
    return BatchDecision(wait_for=_in_progress(view, batch, statuses))


def _in_progress(view: ExecutorView, batch: Batch, statuses: dict[ReassignmentTarget, TargetStatus]) -> str:
    if not statuses or view.state.unsure:
        return f"batch {batch.number}: waiting until no earlier request can take effect"
    if batch.cancelling:
        return f"batch {batch.number}: waiting for cancelled moves to be taken back"
    if (weak := view.weak(statuses)) is not None:
        return f"batch {batch.number}: {weak}"
    blind = next((target.id for target in statuses if not view.progress_known(target)), None)
    if blind is not None:
        moving = counted(len(statuses), "partition")
        return f"batch {batch.number}: {moving} moving; the progress of {blind} is unknown: log dirs did not answer"
    return f"batch {batch.number}: {counted(len(statuses), 'partition')} moving"

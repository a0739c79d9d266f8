"""Seeded bugs: the machine with one thing left out or done wrong. The model checker must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.execute.reassign import batch_step, executor_view, machine, plan_step, state, throttles
from agent.execute.reassign.batch_step import BatchDecision
from agent.execute.reassign.executor_view import ExecutorView, TargetStatus
from agent.execute.reassign.messages import AlterReassignments, AlterThrottles, AppendJournal, CancelReassignments
from agent.execute.reassign.throttles import ThrottleStatus
from agent.values import reassignment as values
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentPolicy,
    ThrottleDebt,
)
from agent.values.throttles import OpType, ThrottleChange
from tests.execute import abstract_cluster

Patch = pytest.MonkeyPatch


def _on(original: Callable[..., Any], change: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its result changed; what it was called with is handed on too."""

    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(original(*args, **kwargs), *args)

    return changed


def sends_before_it_announces(patch: Patch) -> None:
    def unannounced(decision: BatchDecision | None, view: ExecutorView, *_: object) -> BatchDecision | None:
        if decision is None or decision.append is None or not isinstance(decision.append.then, AlterReassignments):
            return decision
        return decision._replace(append=decision.append._replace(changes=(view.batch,)))

    patch.setattr(batch_step, "_prepare", _on(batch_step._prepare, unannounced))


def throttles_without_a_debt(patch: Patch) -> None:
    def indebted(decision: BatchDecision | None, *_: object) -> BatchDecision | None:
        if decision is None or decision.append is None:
            return decision
        changes = tuple(change for change in decision.append.changes if not isinstance(change, ThrottleDebt))
        return decision._replace(append=decision.append._replace(changes=changes))

    patch.setattr(plan_step, "_begin", _on(plan_step._begin, indebted))


def begins_what_has_ended(patch: Patch) -> None:
    patch.setattr(machine, "_why_not", _on(machine._why_not, lambda why, *_: why if why and "has not" in why else None))


def begins_two_attempts_at_once(patch: Patch) -> None:
    patch.setattr(machine, "_why_not", _on(machine._why_not, lambda why, *_: why if why and "before" in why else None))


def waits_for_no_late_request(patch: Patch) -> None:
    patch.setattr(ReassignmentPolicy, "settle_ms", property(lambda _: 0))


def sends_what_has_ended_already(patch: Patch) -> None:
    def empty(
        decision: BatchDecision | None, _view: ExecutorView, batch: Batch, _plan: Any, statuses: Any
    ) -> BatchDecision | None:
        sent = batch._replace(state=BatchState.SENT, sendings=batch.sendings + 1)
        return decision if statuses else BatchDecision(AppendJournal((sent,), AlterReassignments(())))

    patch.setattr(batch_step, "_prepare", _on(batch_step._prepare, empty))


def sends_again_without_an_answer(patch: Patch) -> None:
    patch.setattr(
        machine, "answered", _on(state.answered, lambda after, *_: after._replace(unsure=frozenset(), settle_ms=0))
    )


def trusts_a_former_leader_to_be_silent(patch: Patch) -> None:
    patch.setattr(
        machine, "initial_state", _on(state.initial_state, lambda it, *_: it._replace(settle_ms=0, unsure=frozenset()))
    )


def forgives_brokers_that_are_down(patch: Patch) -> None:
    patch.setattr(
        plan_step,
        "throttle_status",
        _on(throttles.throttle_status, lambda it, *_: ThrottleStatus.GONE if it is ThrottleStatus.UNREACHABLE else it),
    )


def forgets_the_rate_before_the_new_one(patch: Patch) -> None:
    def forgetful(decision: BatchDecision | None, *_: object) -> BatchDecision | None:
        if decision is None or decision.append is None:
            return decision
        changes = tuple(
            it._replace(formerly=None) if isinstance(it, ThrottleDebt) else it for it in decision.append.changes
        )
        return decision._replace(append=decision.append._replace(changes=changes))

    patch.setattr(batch_step, "_repace", _on(batch_step._repace, forgetful))


def sets_rates_over_those_of_others(patch: Patch) -> None:
    patch.setattr(throttles, "_others_rule", lambda *_: False)


def takes_rates_of_others_for_its_own(patch: Patch) -> None:
    def any_rate(it: ThrottleStatus, debt: ThrottleDebt, seen: Any) -> ThrottleStatus:
        return it if throttles.own_value(debt, seen) is None else ThrottleStatus.STANDS

    patch.setattr(plan_step, "throttle_status", _on(throttles.throttle_status, any_rate))


def deletes_whole_lists(patch: Patch) -> None:
    patch.setattr(plan_step, "throttle_removal", lambda debt, _: ThrottleChange(debt.resource, debt.key, OpType.DELETE))


def cancels_moves_of_others(patch: Patch) -> None:
    def mine(it: TargetStatus, target: Any, view: ExecutorView) -> TargetStatus:
        return TargetStatus.MOVING if it is TargetStatus.OTHER and target.id in view.moves else it

    patch.setattr(executor_view, "_status", _on(executor_view._status, mine))


def moves_while_others_move(patch: Patch) -> None:
    def alone(it: TargetStatus, target: Any, view: ExecutorView) -> TargetStatus:
        return TargetStatus.BEFORE if it is TargetStatus.OTHER and target.id in view.moves else it

    patch.setattr(executor_view, "_status", _on(executor_view._status, alone))
    patch.setattr(executor_view, "_others", lambda *_: [])


def never_asks_for_min_isr(patch: Patch) -> None:
    patch.setattr(ExecutorView, "weak", lambda *_: None)


def forgets_the_replicas_that_a_move_adds(patch: Patch) -> None:
    patch.setattr(executor_view, "_weak_meanwhile", lambda *_: None)


def knows_topics_by_name_alone(patch: Patch) -> None:
    def by_name(it: TargetStatus, target: Any, view: ExecutorView) -> TargetStatus:
        return (
            it
            if it is not TargetStatus.REPLACED
            else executor_view._at_rest(target, view.partitions[target.id].replicas)
        )

    patch.setattr(executor_view, "_status", _on(executor_view._status, by_name))


def closes_while_a_cancelled_move_runs(patch: Patch) -> None:
    def hasty(
        end: PartitionEndReason | None, _view: ExecutorView, batch: Any, target: Any, status: TargetStatus
    ) -> PartitionEndReason | None:
        return PartitionEndReason.BACK if status is TargetStatus.MOVING and target.id in batch.cancelling else end

    patch.setattr(batch_step, "_end", _on(batch_step._end, hasty))


def leaves_the_order_of_a_cancel(patch: Patch) -> None:
    patch.setattr(batch_step, "_end_shuffled", lambda *_: PartitionEndReason.BACK)
    patch.setattr(batch_step, "_restore", lambda *_: None)


def cancels_without_writing_it_down(patch: Patch) -> None:
    def unwritten(decision: BatchDecision | None, view: ExecutorView, *_: object) -> BatchDecision | None:
        if decision is None or decision.append is None or not isinstance(decision.append.then, CancelReassignments):
            return decision
        return decision._replace(append=AppendJournal((view.batch,), decision.append.then))

    patch.setattr(batch_step, "_record", _on(batch_step._record, unwritten))


def leaves_throttles_behind(patch: Patch) -> None:
    def left(decision: BatchDecision | None, view: ExecutorView) -> BatchDecision | None:
        if decision is None or decision.append is None or not isinstance(decision.append.then, AlterThrottles):
            return decision
        return decision._replace(append=decision.append._replace(then=None))

    patch.setattr(machine, "clear_throttles", _on(plan_step.clear_throttles, left))


# --- unread, unknown and late -------------------------------------------------------------------------------------


def takes_unread_for_set(patch: Patch) -> None:
    """Settings that did not answer count as they should be."""
    patch.setattr(executor_view, "resources_of", lambda *_: ())
    patch.setattr(
        batch_step, "complete", lambda debt, seen: debt.resource in seen.unread or throttles.complete(debt, seen)
    )


def takes_an_unknown_min_isr_for_enough(patch: Patch) -> None:
    def known(why: str | None, *_: object) -> str | None:
        return None if why is not None and "min ISR" in why else why

    patch.setattr(executor_view, "unread_reason", _on(executor_view.unread_reason, known))


def takes_a_disputed_leader_for_none_to_wait_for(patch: Patch) -> None:
    def known(why: str | None, *_: object) -> str | None:
        return None if why is not None and "agree" in why else why

    patch.setattr(executor_view, "unread_reason", _on(executor_view.unread_reason, known))


def takes_unread_throttles_for_gone(patch: Patch) -> None:
    patch.setattr(
        plan_step,
        "throttle_status",
        lambda debt, seen: (
            ThrottleStatus.GONE if debt.resource in seen.unread else throttles.throttle_status(debt, seen)
        ),
    )


def pays_while_a_request_may_still_arrive(patch: Patch) -> None:
    original = plan_step.clear_throttles
    patch.setattr(
        machine, "clear_throttles", lambda view: original(view._replace(state=view.state._replace(settled=True)))
    )


def sends_again_what_was_acknowledged(patch: Patch) -> None:
    original = batch_step._send_again

    def forgetful(view: ExecutorView, *rest: Any) -> BatchDecision | None:
        return original(view._replace(state=view.state._replace(acked=frozenset())), *rest)

    patch.setattr(batch_step, "_send_again", forgetful)


def cancels_again_before_the_first_can_have_ended(patch: Patch) -> None:
    patch.setattr(machine, "answered", _on(state.answered, lambda after, *_: after._replace(uncancelled=frozenset())))


def sends_again_under_min_isr(patch: Patch) -> None:
    original = batch_step._send_again

    def careless(view: ExecutorView, *rest: Any) -> BatchDecision | None:
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(batch_step, "hold_reason", lambda *_: None)
            return original(view, *rest)

    patch.setattr(batch_step, "_send_again", careless)


# --- words, plans and the guard -----------------------------------------------------------------------------------


def rolls_back_through_a_pause(patch: Patch) -> None:
    def back(why: str | None, _view: ExecutorView, plan: ReassignmentPlan) -> str | None:
        return None if plan.state is PlanState.ROLLING_BACK else why

    careless = _on(executor_view.not_allowed_reason, back)
    for module in (executor_view, plan_step):
        patch.setattr(module, "not_allowed_reason", careless)


def sends_what_the_guard_holds(patch: Patch) -> None:
    patch.setattr(executor_view, "not_allowed_reason", lambda *_: None)


def ends_with_its_approval_although_it_has_begun(patch: Patch) -> None:
    patch.setattr(state.MachineState, "over", lambda it, plan: dict(it.may.lapsed).get(plan.proposal_id))


def carries_out_plans_of_the_same_partitions_side_by_side(patch: Patch) -> None:
    patch.setattr(
        state.MachineState, "waiting_plans", property(lambda it: tuple(p for p in it.records.plans if not p.paused))
    )


def says_that_all_has_moved(patch: Patch) -> None:
    patch.setattr(plan_step, "moved_by", lambda plan, _: values.moved_by(plan, {target.id for target in plan.targets}))


# --- the last look before a request -------------------------------------------------------------------------------


def cancels_whatever_moves_by_then(patch: Patch) -> None:
    patch.setattr(abstract_cluster, "no_longer_to_cancel", lambda *_: None)


def moves_whatever_is_there_by_then(patch: Patch) -> None:
    patch.setattr(abstract_cluster, "no_longer_to_move", lambda *_: None)


def sets_and_deletes_whatever_is_set_by_then(patch: Patch) -> None:
    patch.setattr(abstract_cluster, "no_longer_to_set", lambda *_: None)

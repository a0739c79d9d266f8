"""Cancel, rollback, pause and resume of a plan, in every state that it can have.

==============  ===========================  =========================  ==============================
state           cancel                       rollback                   pause, resume of the plan
==============  ===========================  =========================  ==============================
never begun     voids its approval; a veto   refused                    refused
not ended       `agent.execute.reassign.machine`: the answer is made with the transition itself
done            refused                      a plan of its own          refused
cancelled       was cancelled already        a plan for what has moved  refused
failed          refused                      a plan for what has moved  refused
rolled back     refused                      was rolled back already    refused
==============  ===========================  =========================  ==============================

An ended plan whose next attempt is approved counts as never begun where it is cancelled. While an ended plan is taken
back, cancel, pause and resume are about the plan that takes it back. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from agent.execute.commands.command_context import (
    CommandContext,
    CommandDecision,
    command_reason,
    in_brackets,
    limits_refusal,
    not_begun,
    refused,
)
from agent.execute.reassign.machine import transition
from agent.execute.reassign.messages import CommandReceived, PlanAccepted, PlanCommand
from agent.journal import plan_entries
from agent.journal.approvals import (
    ApprovalState,
    ProposalApproval,
    approval_of,
    next_attempt,
    plan_hash,
    replacing_approval,
    vetoed,
    voided,
    written,
)
from agent.journal.commands import CommandVerb, ExecutionPause, OperatorCommand, pause_in, paused, resumed
from agent.journal.entries import JournalState
from agent.journal.targets import no_room_reason, plan_size, too_large_reason
from agent.values.number_format import counted, lasted
from agent.values.proposal import PlanAttempt, Proposal, ProposalKind
from agent.values.reassignment import (
    Batch,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    attempt,
    latest,
    limits_words,
    moved_of,
    of_plan,
    rollback_name,
    rollback_words,
    taken_back_by,
)

TAKEN_BACK = (PlanState.DONE, PlanState.CANCELLED, PlanState.FAILED)
"""States of ended plans with partitions that may have moved."""


def cancel(command: OperatorCommand, context: CommandContext) -> CommandDecision:
    """Cancel a plan: no new batch, and running reassignments are cancelled. Without a plan, void the approval."""
    plan = context.meant(command.proposal_id)
    return (
        _cancel_approval(command, context, plan)
        if plan is None or plan.ended
        else _by_transition(command, PlanCommand.CANCEL, plan)
    )


def _cancel_approval(
    command: OperatorCommand, context: CommandContext, ended: ReassignmentPlan | None
) -> CommandDecision:
    """No attempt is in progress: the approval of the next one goes, and a person's no comes before any rule."""
    name = command.proposal_id or ""
    of = attempt(name).of
    following = next_attempt(context.plans, context.view, of)
    approval, cause = approval_of(context.view, str(following)), f"cancelled by {command.who}{command_reason(command)}"
    if approval is not None and approval.state is not ApprovalState.VOID:
        gone = _no_to(approval, context.standing.get(of), cause, command, context)
        sentence = f"{gone.plan} had not begun; its approval is void, and no rule approves it"
        return CommandDecision(done=True, sentence=sentence, writes=(written(gone),))
    no = _veto(context.standing.get(of), following.number, cause, command, context) if ended is None else None
    if no is not None:
        return no
    if ended is None:
        return not_begun(name, " and is not approved, so there is nothing to cancel", context)
    match ended.state:
        case PlanState.CANCELLED:
            return CommandDecision(
                done=True, sentence=f"{ended.proposal_id} is cancelled already", plan=ended.proposal_id
            )
        case PlanState.ROLLED_BACK:
            return refused(f"{_so(ended)}, so there is nothing to cancel")
        case _:
            nothing = f"{_so(ended)}, so there is nothing to cancel"
            return refused(nothing, f"Take it back: rackwise reassign rollback {name}")


def _no_to(
    approval: ProposalApproval, proposal: Proposal | None, cause: str, command: OperatorCommand, context: CommandContext
) -> ProposalApproval:
    """The approval, void; a person's no to what is proposed now, where that is another plan than was approved."""
    if proposal is None or proposal.kind is ProposalKind.ADVISE or plan_hash(proposal) == approval.plan_hash:
        return voided(approval, context.now_ms, cause)._replace(vetoed=True)
    return replacing_approval(
        approval, vetoed(proposal, approval.attempt, who=command.who, now_ms=context.now_ms, why=cause)
    )


def _veto(
    proposal: Proposal | None, number: int, cause: str, command: OperatorCommand, context: CommandContext
) -> CommandDecision | None:
    """A person's no to what no person has approved; None where nothing can be approved."""
    if proposal is None or proposal.kind is ProposalKind.ADVISE:
        return None
    before = approval_of(context.view, str(PlanAttempt(proposal.id, number)))
    if before is not None and before.vetoed and before.plan_hash == plan_hash(proposal):
        return CommandDecision(done=True, sentence=f"{proposal.id} is {before.sentence} already")
    no = replacing_approval(before, vetoed(proposal, number, who=command.who, now_ms=context.now_ms, why=cause))
    approve = f"approve it with: rackwise proposals approve {proposal.id}"
    sentence = f"{proposal.id} is cancelled: no rule approves it; {approve}"
    return CommandDecision(done=True, sentence=sentence, writes=(written(no),))


def rollback(command: OperatorCommand, context: CommandContext) -> CommandDecision:
    """Roll a plan back: its partitions get their former replicas."""
    plan = context.plan(command.proposal_id)
    if plan is None:
        return not_begun(command.proposal_id, ", so there is nothing to take back", context)
    name = plan.proposal_id
    if (newest := latest(context.plans, of_plan(plan).of)) is not None and newest is not plan:
        latest_one = f"Take the latest attempt back: rackwise reassign rollback {newest.proposal_id}"
        return refused(f"{name} is not the latest attempt: {_so(newest)}", latest_one)
    if not plan.ended:
        return _by_transition(command, PlanCommand.ROLLBACK, plan, context)
    if plan.state not in TAKEN_BACK:
        return CommandDecision(done=True, sentence=f"{name} is {plan.state.value} already", plan=name)
    return _take_back(plan, command, context)


def _take_back(plan: ReassignmentPlan, command: OperatorCommand, context: CommandContext) -> CommandDecision:
    """An ended plan is taken back by a plan of its own, once."""
    name = plan.proposal_id
    back = taken_back_by(context.plans, name)
    if back is not None:
        return CommandDecision(done=True, sentence=f"{rollback_words(back)} already", plan=back.proposal_id)
    if plan.dropped:
        return refused(
            f"{_so(plan)}, and cannot be taken back any more: the journal keeps the partitions of the latest ended"
            f" plans only, and those of this plan ({plan.dropped:,}) are no longer in it"
        )
    following = next_attempt(context.plans, context.view, rollback_name(name))
    new_plan = rollback_plan(plan, command, context.view, following, context.now_ms + context.limits.approve.valid_ms)
    if (unfitting := limits_refusal(command, context.limits)) is not None:
        return unfitting
    if not new_plan.targets:
        return refused(f"{_so(plan)} and none of its partitions has moved: nothing to take back")
    if (why := too_large_reason(need := plan_size(new_plan)) or no_room_reason(context.view, need)) is not None:
        return refused(f"{new_plan.proposal_id} cannot move the partitions of {name} back: {why}")
    back_at = limits_words(new_plan.throttle_bytes_per_s, new_plan.max_moves)
    sentence = (
        f"{_so(plan)}; {new_plan.proposal_id} moves {counted(new_plan.partitions, 'partition')} back{back_at}"
        f"{context.held(new_plan)}"
    )
    return CommandDecision(done=True, sentence=sentence, commands=(PlanAccepted(new_plan),), plan=new_plan.proposal_id)


def rollback_plan(
    plan: ReassignmentPlan, command: OperatorCommand, view: JournalState, begins: PlanAttempt, begin_by_ms: int
) -> ReassignmentPlan:
    """The plan that takes an ended one back: all of one that is done, and what has moved of one that is not.

    It keeps the limits of the ended one, where the command has none of its own. Like any other it is void where no
    batch of it is sent in time.
    """
    moved = {target.id for target in plan.targets} if plan.state is PlanState.DONE else _moved(plan, view)
    return ReassignmentPlan(
        str(begins),
        tuple(ReassignmentTarget.back(target) for target in plan.targets if target.id in moved),
        approved_by=command.who,
        reason=f"rollback of {plan.proposal_id}{command_reason(command)}",
        throttle_bytes_per_s=command.throttle_bytes_per_s or plan.throttle_bytes_per_s,
        max_moves=command.max_moves or plan.max_moves,
        begin_by_ms=begin_by_ms,
        attempt=begins.number,
    )


def _moved(plan: ReassignmentPlan, view: JournalState) -> AbstractSet[object]:
    """As the plan itself records it; the journal drops the batches of what has ended."""
    moved = moved_of(plan)
    if moved is not None:
        return moved
    batches = plan_entries.batches(view, plan.proposal_id)
    if not batches:
        return set()
    ends = {direction: _done(batches, back=direction) for direction in (False, True)}
    return ends[False] - ends[True]


def _done(batches: tuple[Batch, ...], *, back: bool) -> set[object]:
    return {
        end.id for batch in batches if batch.back is back for end in batch.ends if end.end is PartitionEndReason.DONE
    }


def pause(command: OperatorCommand, context: CommandContext) -> CommandDecision:
    """Pause one plan, or all acting: no new batch or trigger begins."""
    if command.proposal_id is not None:
        return _pause_or_resume(command, PlanCommand.PAUSE, context)
    already = pause_in(context.view)
    if already is not None:
        return CommandDecision(
            done=True, sentence=f"acting was paused by {already.who} already{in_brackets(already.reason)}"
        )
    sentence = (
        f"acting is paused{command_reason(command)}: nothing new begins, moves in progress and observing continue"
    )
    return CommandDecision(
        done=True, sentence=sentence, writes=(paused(ExecutionPause(command.who, command.reason, context.now_ms)),)
    )


def resume(command: OperatorCommand, context: CommandContext) -> CommandDecision:
    """End the pause of one plan, or of all acting."""
    if command.proposal_id is not None:
        return _pause_or_resume(command, PlanCommand.RESUME, context)
    was = pause_in(context.view)
    if was is None:
        return CommandDecision(done=True, sentence="acting was not paused")
    sentence = f"acting continues; it was paused by {was.who} for {lasted(context.now_ms - was.since_ms)}"
    return CommandDecision(done=True, sentence=sentence, writes=(resumed(),), look_now=True)


def _pause_or_resume(command: OperatorCommand, plan_command: PlanCommand, context: CommandContext) -> CommandDecision:
    plan, given = context.meant(command.proposal_id), command.proposal_id
    if plan is None:
        return not_begun(given, f", so there is nothing to {plan_command.value}", context)
    if plan.ended:
        return refused(f"{_so(plan)}, so there is nothing to {plan_command.value}")
    return _by_transition(command, plan_command, plan, context if plan_command is PlanCommand.RESUME else None)


def _by_transition(
    command: OperatorCommand, plan_command: PlanCommand, plan: ReassignmentPlan, context: CommandContext | None = None
) -> CommandDecision:
    """The decision by the machine's transition; the executor gets the command where that changes the plan.

    With a context, the sentence ends with what holds the plan afterwards.
    """
    received = CommandReceived(plan_command, plan.proposal_id, command.who, command.id)
    result = transition(plan, received)
    if not result.done:
        return refused(result.sentence)
    held = "" if context is None or result.plan == plan else context.held(result.plan)
    commands = () if result.plan == plan else (received,)
    return CommandDecision(done=True, sentence=f"{result.sentence}{held}", commands=commands, plan=plan.proposal_id)


def _so(plan: ReassignmentPlan) -> str:
    verb = "has" if plan.state is PlanState.FAILED else "is"
    return f"{plan.proposal_id} {verb} {plan.state.value}"


VERBS: Mapping[CommandVerb, Callable[[OperatorCommand, CommandContext], CommandDecision]] = {
    CommandVerb.CANCEL: cancel,
    CommandVerb.ROLLBACK: rollback,
    CommandVerb.PAUSE: pause,
    CommandVerb.RESUME: resume,
}

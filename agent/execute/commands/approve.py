"""Approval of a proposal: it is recorded only if it lets something begin, and the answer names what still holds it.

Invariants: an approval is of the exact plan and attempt that the operator saw, or is refused; an ended plan is approved
as another attempt. Of two persons' limits the lower ones apply; later limits apply or are refused. Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from agent.execute.commands.command_context import (
    CommandContext,
    CommandDecision,
    limits_refusal,
    refused,
    same_person,
    with_writes,
)
from agent.journal.approvals import (
    ApprovalState,
    ProposalApproval,
    approval_of,
    attempt_text,
    next_attempt,
    plan_hash,
    replacing_approval,
    written,
)
from agent.journal.commands import CommandVerb, OperatorCommand
from agent.values.number_format import lasted
from agent.values.proposal import PlanAttempt, Proposal, ProposalKind
from agent.values.reassignment import PlanState, ReassignmentPlan, latest, limits_words, taken_back_by

_GOING_ON = (PlanState.OPEN, PlanState.ELECTING)


def approve(command: OperatorCommand, context: CommandContext) -> CommandDecision:
    """Decision on an approval: the approval to write, or the refusal."""
    name = command.proposal_id or ""
    newest = latest(context.plans, name)
    if newest is not None and not newest.ended:
        return _running(command, newest)
    proposal = context.standing.get(name)
    if proposal is None:
        answer = refused(_not_standing(name, newest, context.plans), "List the open proposals: rackwise proposals")
        return answer._replace(unknown=context.knows_nothing_of(name))
    attempt = next_attempt(context.plans, context.view, proposal.id)
    against = (
        _against(command, proposal)
        or _other_attempt(command, attempt, newest, context.plans)
        or limits_refusal(command, context.limits)
    )
    return against or _agreed(command, proposal, attempt, context)


def _against(command: OperatorCommand, proposal: Proposal) -> CommandDecision | None:
    if proposal.kind is ProposalKind.ADVISE:
        return refused(
            f"{proposal.id} is advice: only the owner of the client or broker can follow it",
            f"See the advice: rackwise explain {proposal.id}",
        )
    if command.plan_hash != plan_hash(proposal):
        return refused(
            f"{proposal.id} has changed since it was shown", f"See it as it is now: rackwise explain {proposal.id}"
        )
    return None


def _other_attempt(
    command: OperatorCommand,
    attempt: PlanAttempt,
    newest: ReassignmentPlan | None,
    plans: tuple[ReassignmentPlan, ...],
) -> CommandDecision | None:
    if (command.attempt or 1) == attempt.number:  # what names none knows of the first one only
        return None
    ended = f"; {attempt_text(newest, plans)}" if newest is not None else ""
    named = "the approval names no attempt" if command.attempt is None else f"attempt {command.attempt} was approved"
    todo = f"Approve attempt {attempt.number}: rackwise proposals approve {attempt.of}"
    back = None if newest is None else taken_back_by(plans, newest.proposal_id)
    if newest is not None and newest.state is PlanState.DONE and back is None:
        todo = "Nothing, where it moved everything; what is left to move, the next planning proposes."
    return refused(f"{named}, and the next one is attempt {attempt.number}{ended}", todo)


def _running(command: OperatorCommand, plan: ReassignmentPlan) -> CommandDecision:
    """Approving what has begun is no fault; it changes nothing, as the answer has where it was to change something."""
    if plan.state not in _GOING_ON:
        return refused(
            f"{plan.proposal_id} is {plan.state.value}; it can be approved again once that has ended",
            f"Follow it: rackwise reassign status {plan.proposal_id}",
        )
    how = "paused" if plan.paused else "in progress"
    has = _Options(plan.throttle_bytes_per_s, plan.max_moves)
    if has.changed_by(command) != has:
        own = has.words or " with the limits of the settings"
        return refused(
            f"{plan.proposal_id} is {how}{own}; that cannot be changed while it is in progress",
            f"Leave out --throttle and --max-moves, or cancel it first: rackwise reassign cancel {plan.proposal_id}",
        )
    sentence = f"{plan.proposal_id} is {how} already, approved by {plan.approved_by}"
    return CommandDecision(done=True, sentence=sentence, plan=plan.proposal_id)


def _not_standing(name: str, newest: ReassignmentPlan | None, plans: tuple[ReassignmentPlan, ...]) -> str:
    if newest is not None:
        return f"{name} is not proposed now; {attempt_text(newest, plans)}"
    return f"{name} is not an open proposal of the leading agent"


def _agreed(
    command: OperatorCommand, proposal: Proposal, attempt: PlanAttempt, context: CommandContext
) -> CommandDecision:
    before = approval_of(context.view, str(attempt))
    if before is not None and (before.plan_hash != command.plan_hash or context.now_ms >= before.expires_ms):
        before = None
    two = context.limits.approve.second_person and proposal.kind is not ProposalKind.TRIGGER
    if before is not None and before.state is ApprovalState.APPROVED and before.rule is None:
        return _again(before, command, proposal, attempt, context, two=two)
    wanted = _Options(command.throttle_bytes_per_s, command.max_moves)
    if not two:
        return _approved(command, proposal, attempt, wanted, context)
    if command.person is None:
        return _unproven(command)
    if before is None or before.state is not ApprovalState.REQUESTED or before.person is None:
        return _requested(command, proposal, attempt, wanted, context)
    if same_person(before.person, command.person):
        return _requested_again(before, command, proposal, attempt, context)
    return _approved(command, proposal, attempt, _options(before).within(wanted), context, requested_by=before.by)


def _unproven(command: OperatorCommand) -> CommandDecision:
    """Two persons are two proven identities: a name that its sender wrote proves nothing."""
    return refused(
        f"approve.second_person counts proven persons, and {command.who} is not one",
        "Sign in at the page, or set operator.name and operator.key_file, and approve.people at the agents.",
    )


def _again(
    before: ProposalApproval,
    command: OperatorCommand,
    proposal: Proposal,
    attempt: PlanAttempt,
    context: CommandContext,
    *,
    two: bool,
) -> CommandDecision:
    """Approved already; with other limits it is another approval, of this person."""
    wanted = _options(before).changed_by(command)
    if wanted != _options(before):
        if two and command.person is None:
            return _unproven(command)
        if two:
            return _requested(command, proposal, attempt, wanted, context)
        return _approved(command, proposal, attempt, wanted, context)
    verdict = context.foresee(proposal, context.view)
    held = f"; held for now: {verdict.sentence}" if verdict is not None and not verdict.allowed else ""
    sentence = f"{before.plan} was approved by {before.by} already{wanted.words}{held}"
    return CommandDecision(done=True, sentence=sentence, look_now=True, plan=before.plan)


def _requested_again(
    before: ProposalApproval,
    command: OperatorCommand,
    proposal: Proposal,
    attempt: PlanAttempt,
    context: CommandContext,
) -> CommandDecision:
    """The same person may change the limits of the request, and not approve it."""
    wanted = _options(before).changed_by(command)
    if wanted != _options(before):
        return _requested(command, proposal, attempt, wanted, context)
    return refused(
        f"{proposal.id} was requested by {before.by}; another person must approve it",
        f"Have another person approve it: rackwise proposals approve {proposal.id}",
    )


def _requested(
    command: OperatorCommand, proposal: Proposal, attempt: PlanAttempt, wanted: _Options, context: CommandContext
) -> CommandDecision:
    sentence = (
        f"requested by {command.who}{wanted.words}; a second person has to approve it: "
        f"rackwise proposals approve {proposal.id}"
    )
    asked = _approval(command, proposal, attempt, ApprovalState.REQUESTED, wanted, context)._replace(sentence=sentence)
    return CommandDecision(done=True, sentence=sentence, writes=(written(asked),), plan=asked.plan)


def _approved(
    command: OperatorCommand,
    proposal: Proposal,
    attempt: PlanAttempt,
    wanted: _Options,
    context: CommandContext,
    *,
    requested_by: str | None = None,
) -> CommandDecision:
    asked = f", requested by {requested_by}" if requested_by is not None else ""
    valid = lasted(context.limits.approve.valid_ms)
    which = f"attempt {attempt.number} " if attempt.number > 1 else ""
    sentence = f"{which}approved by {command.who}{asked}{wanted.words}; void if it has not begun within {valid}"
    given = _approval(command, proposal, attempt, ApprovalState.APPROVED, wanted, context)._replace(
        requested_by=requested_by, sentence=sentence
    )
    write = written(given)
    verdict = context.foresee(proposal, with_writes(context.view, (write,), context.now_ms))
    if verdict is not None and not verdict.allowed:
        if not verdict.comes:
            return refused(f"an approval does not let {proposal.id} begin: {verdict.sentence}")
        if verdict.until_ms is not None and verdict.until_ms >= given.expires_ms:
            return refused(f"an approval lasts {valid}, and until {_time(verdict.until_ms)}: {verdict.sentence}")
        sentence = f"{sentence}; held for now: {verdict.sentence}"
    return CommandDecision(done=True, sentence=sentence, writes=(write,), look_now=True, plan=given.plan)


def _approval(  # noqa: PLR0917 (as it is agreed)
    command: OperatorCommand,
    proposal: Proposal,
    attempt: PlanAttempt,
    state: ApprovalState,
    wanted: _Options,
    context: CommandContext,
) -> ProposalApproval:
    given = ProposalApproval(
        proposal.id,
        plan_hash(proposal),
        state,
        command.who,
        context.now_ms,
        context.now_ms + context.limits.approve.valid_ms,
        reason=command.reason,
        throttle_bytes_per_s=wanted.throttle_bytes_per_s,
        max_moves=wanted.max_moves,
        attempt=attempt.number,
        person=command.person,
    )
    return replacing_approval(approval_of(context.view, given.plan), given)


class _Options(NamedTuple):
    """A person's limits; None: as configured."""

    throttle_bytes_per_s: int | None = None
    max_moves: int | None = None

    @property
    def words(self) -> str:
        """At which limits, after a blank; empty without any."""
        return limits_words(*self)

    def changed_by(self, command: OperatorCommand) -> _Options:
        """The same where the command has no limits."""
        rate, most = command.throttle_bytes_per_s, command.max_moves
        return _Options(self.throttle_bytes_per_s if rate is None else rate, self.max_moves if most is None else most)

    def within(self, other: _Options) -> _Options:
        """What both agree to: the lower of each two."""
        return _Options(
            *(min((it for it in both if it is not None), default=None) for both in zip(self, other, strict=True))
        )


def _options(approval: ProposalApproval) -> _Options:
    return _Options(approval.throttle_bytes_per_s, approval.max_moves)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%MZ")


VERBS = {CommandVerb.APPROVE: approve, CommandVerb.APPLY: approve}

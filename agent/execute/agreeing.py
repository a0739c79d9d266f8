"""What does an approval come to? It is recorded only when it lets something begin, and the answer says what holds it.

Invariants: an approval is of the very plan, and of the very attempt, that the operator saw, or it is refused; a plan
that ended is approved again as another attempt. Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime

from agent.execute.attempts import Attempt, latest
from agent.execute.commanded import Result, Room, refused
from agent.execute.values import Plan, PlanState
from agent.journal.approvals import Approval, ApprovalState, approval_of, plan_hash, written
from agent.journal.attempts import next_attempt, said_of
from agent.journal.commands import Command, Verb
from agent.journal.entry import Entry, View, Write
from agent.limits_execute import ExecuteLimits
from agent.propose.proposal import Proposal, ProposalKind

_GOING_ON = (PlanState.OPEN, PlanState.ELECTING)


def approve(command: Command, room: Room) -> Result:
    """What an approval comes to."""
    name = command.proposal_id or ""
    newest = latest(room.plans, name)
    if newest is not None and not newest.ended:
        return _running(newest)
    proposal = room.standing.get(name)
    if proposal is None:
        return refused(_not_standing(name, newest))
    attempt = next_attempt(room.plans, room.view, proposal.id)
    against = _against(command, proposal) or _other_attempt(command, attempt, newest) or _unfit(command, room.limits)
    return refused(against) if against is not None else _agreed(command, proposal, attempt, room)


def _against(command: Command, proposal: Proposal) -> str | None:
    if proposal.kind is ProposalKind.ADVISE:
        return f"{proposal.id} is advice: only the owner of the client or broker can follow it"
    if command.plan_hash != plan_hash(proposal):
        return f"{proposal.id} has changed since it was shown; see it as it is now: rackwise explain {proposal.id}"
    return None


def _other_attempt(command: Command, attempt: Attempt, newest: Plan | None) -> str | None:
    if command.attempt in (None, attempt.number):
        return None
    ended = f"; {said_of(newest)}" if newest is not None else ""
    return f"attempt {command.attempt} was approved, and the next one is attempt {attempt.number}{ended}"


def _running(plan: Plan) -> Result:
    """Approving what has begun is no fault; it changes nothing."""
    if plan.state in _GOING_ON:
        how = "paused" if plan.paused else "in progress"
        sentence = f"{plan.proposal_id} is {how} already, approved by {plan.approved_by}"
        return Result(done=True, sentence=sentence, plan=plan.proposal_id)
    return refused(f"{plan.proposal_id} is {plan.state.value}; it can be approved again once that has ended")


def _not_standing(name: str, newest: Plan | None) -> str:
    if newest is not None:
        return f"{name} is not proposed now; {said_of(newest)}"
    return f"{name} is not an open proposal of the leading agent; open proposals: rackwise proposals"


def _unfit(command: Command, limits: ExecuteLimits) -> str | None:
    rate, most = command.throttle_bytes_per_s, command.max_moves
    low, high = limits.throttle_floor_bytes_per_s, limits.throttle_ceiling_bytes_per_s
    if rate is not None and not low <= rate <= high:
        return f"a rate of {rate} bytes/s is not between execute.throttle_floor ({low}) and throttle_ceiling ({high})"
    if most is not None and most > limits.max_moves_per_cluster:
        return f"{most} moves at once are more than execute.max_moves_per_cluster ({limits.max_moves_per_cluster})"
    return None


def _agreed(command: Command, proposal: Proposal, attempt: Attempt, room: Room) -> Result:
    before = approval_of(room.view, str(attempt))
    if before is not None and (before.plan_hash != command.plan_hash or room.now_ms >= before.expires_ms):
        before = None
    if before is not None and before.state is ApprovalState.APPROVED and before.rule is None:
        return _again(before, proposal, room)
    if not room.limits.second_person or proposal.kind is ProposalKind.TRIGGER:
        return _approved(command, proposal, attempt, None, room)
    if command.person is None:
        return refused(_unproven(command))
    if before is None or before.state is not ApprovalState.REQUESTED or before.person is None:
        return _requested(command, proposal, attempt, room)
    if before.person == command.person:
        return refused(f"{proposal.id} was requested by {before.by}; another person must approve it")
    return _approved(command, proposal, attempt, before.by, room)


def _unproven(command: Command) -> str:
    """Two persons are two proven identities: a name that its sender wrote proves nothing."""
    return (
        f"approve.second_person counts proven persons, and {command.who} is not one: set operator.name and"
        " operator.key_file where it is sent from, and approve.people at the agents"
    )


def _again(before: Approval, proposal: Proposal, room: Room) -> Result:
    seen = room.foresee(proposal, room.view)
    held = f"; held for now: {seen.sentence}" if seen is not None and not seen.allowed else ""
    sentence = f"{before.plan} was approved by {before.by} already{held}"
    return Result(done=True, sentence=sentence, look_now=True, plan=before.plan)


def _requested(command: Command, proposal: Proposal, attempt: Attempt, room: Room) -> Result:
    sentence = (
        f"requested by {command.who}; a second person has to approve it: rackwise proposals approve {proposal.id}"
    )
    asked = _approval(command, proposal, attempt, ApprovalState.REQUESTED, room)._replace(sentence=sentence)
    return Result(done=True, sentence=sentence, writes=(written(asked),), plan=asked.plan)


def _approved(command: Command, proposal: Proposal, attempt: Attempt, requested_by: str | None, room: Room) -> Result:
    asked = f", requested by {requested_by}" if requested_by is not None else ""
    minutes = room.limits.approval_valid_ms / 60_000
    which = f"attempt {attempt.number} " if attempt.number > 1 else ""
    sentence = f"{which}approved by {command.who}{asked}; void if it has not begun within {minutes:.0f} min"
    given = _approval(command, proposal, attempt, ApprovalState.APPROVED, room)._replace(
        requested_by=requested_by, sentence=sentence
    )
    write = written(given)
    seen = room.foresee(proposal, _with(room, write))
    if seen is not None and not seen.allowed:
        if not seen.comes:
            return refused(f"an approval does not let {proposal.id} begin: {seen.sentence}")
        if seen.until_ms is not None and seen.until_ms >= given.expires_ms:
            return refused(f"an approval lasts {minutes:.0f} min, and until {_time(seen.until_ms)}: {seen.sentence}")
        sentence = f"{sentence}; held for now: {seen.sentence}"
    return Result(done=True, sentence=sentence, writes=(write,), look_now=True, plan=given.plan)


def _approval(command: Command, proposal: Proposal, attempt: Attempt, state: ApprovalState, room: Room) -> Approval:
    return Approval(
        proposal.id,
        plan_hash(proposal),
        state,
        command.who,
        room.now_ms,
        room.now_ms + room.limits.approval_valid_ms,
        reason=command.reason,
        throttle_bytes_per_s=command.throttle_bytes_per_s,
        max_moves=command.max_moves,
        attempt=attempt.number,
        person=command.person,
    )


def _with(room: Room, write: Write) -> View:
    """What the journal is going to say."""
    return {**room.view, write.key: Entry(write.key, write.kind, write.value or {}, room.now_ms, 1 << 62, 0)}


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%MZ")


VERBS = {Verb.APPROVE: approve, Verb.APPLY: approve}

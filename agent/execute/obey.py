"""What do operators' commands come to? Writes for the journal and words for the mover.

Invariants: a command is answered once, in the same transaction as what it changes; an approval is of the very plan that
the operator saw, or it is refused; what a journal says was obeyed is said to the mover again until it shows
(`words_again`), so that a crash between the two loses nothing. Nothing here asks whether it is a good time: that is the
guard's. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from agent.execute.messages import Accepted, Said, Word
from agent.execute.values import Plan, PlanState, Target
from agent.journal import moves
from agent.journal.approvals import Approval, ApprovalState, approval_of, plan_hash, voided, written
from agent.journal.commands import (
    Answer,
    Command,
    Pause,
    Verb,
    answer_to,
    answered,
    command_from_json,
    forgotten,
    history,
    pause_in,
    paused,
    resumed,
)
from agent.journal.entry import Entry, View, Write
from agent.limits_execute import ExecuteLimits
from agent.propose.proposal import Proposal, ProposalKind
from agent.typed_json import UnreadableError

BACK = "-back"
"""With what the name of the plan ends that takes a finished one back."""
Spoken = Said | Accepted
_TURNED_BACK = (PlanState.OPEN, PlanState.ELECTING, PlanState.CANCELLING)
_PAUSING = {Verb.PAUSE: Word.PAUSE, Verb.RESUME: Word.RESUME}
_DONE = {Word.PAUSE: "paused", Word.RESUME: "resumed"}


class Waiting(Protocol):
    """A command as an inbox hands it out."""

    @property
    def id(self) -> str:
        """Unique."""

    @property
    def value(self) -> Mapping[str, Any]:
        """What it says."""

    @property
    def after(self) -> Write:
        """To be written together with the answer."""


class Obeyed(NamedTuple):
    """What to write, in one append, and then what to say to the mover."""

    writes: tuple[Write, ...] = ()
    words: tuple[Spoken, ...] = ()
    look_now: bool = False
    """True when something was approved or resumed, so that the next planning need not be waited for."""


class _Room(NamedTuple):
    """What a command is judged by."""

    view: View
    standing: Mapping[str, Proposal]
    plans: Mapping[str, Plan]
    limits: ExecuteLimits
    now_ms: int


class _Result(NamedTuple):
    """What one command comes to."""

    done: bool
    sentence: str
    writes: tuple[Write, ...] = ()
    words: tuple[Spoken, ...] = ()
    look_now: bool = False


def obey(
    waiting: Sequence[Waiting], view: View, standing: Sequence[Proposal], limits: ExecuteLimits, now_ms: int
) -> Obeyed:
    """What the commands come to, one after the other: a later one finds what an earlier one has changed.

    ``standing`` are the proposals of the last planning. Raises UnreadableError when plans in the journal cannot be
    read: whoever does not know what was begun must not change it.
    """
    by_id = {proposal.id: proposal for proposal in standing}
    total = Obeyed()
    for one in waiting:
        if answer_to(view, one.id) is not None:
            continue
        room = _Room(view, by_id, {plan.proposal_id: plan for plan in moves.plans(view)}, limits, now_ms)
        command, result = _obey_one(one, room)
        writes = (*result.writes, answered(command, Answer(result.done, result.sentence, now_ms)), one.after)
        view = _shown(view, writes, now_ms)
        total = Obeyed((*total.writes, *writes), (*total.words, *result.words), total.look_now or result.look_now)
    return total._replace(writes=(*total.writes, *forgotten(view))) if total.writes else total


def words_again(view: View) -> tuple[Spoken, ...]:
    """Words that a former leader may not have passed on any more; the mover takes a word twice as once."""
    words: dict[tuple[str, Verb], Spoken | None] = {}
    for command, answer in history(view):
        plan = moves.plan_of(view, command.proposal_id) if answer.done and command.proposal_id is not None else None
        if plan is not None:
            # Of pauses and resumes of one plan the last counts.
            key = plan.proposal_id, Verb.PAUSE if command.verb in _PAUSING else command.verb
            words.pop(key, None)
            words[key] = _word_again(command, plan, view)
    return tuple(word for word in words.values() if word is not None)


def _word_again(command: Command, plan: Plan, view: View) -> Spoken | None:
    """What the plan does not show yet of the command; None when it does, or cannot any more."""
    running = plan.state in (PlanState.OPEN, PlanState.ELECTING)
    match command.verb:
        case Verb.PAUSE | Verb.RESUME:
            word = _PAUSING[command.verb]
            told = running and plan.paused is not (word is Word.PAUSE)
        case Verb.CANCEL:
            word, told = Word.CANCEL, running
        case Verb.ROLLBACK:
            word, told = Word.ROLLBACK, plan.state in _TURNED_BACK
            if plan.state is PlanState.DONE and moves.plan_of(view, plan.proposal_id + BACK) is None:
                return Accepted(_way_back(plan, command))
        case _:
            return None
    return Said(word, plan.proposal_id, command.who) if told else None


def _obey_one(one: Waiting, room: _Room) -> tuple[Command, _Result]:
    try:
        command = command_from_json(dict(one.value))
    except UnreadableError as error:
        unread = Command(one.id, Verb.PAUSE, "", room.now_ms)
        return unread, _Result(done=False, sentence=f"refused: {error}")
    late = _too_late(command, room)
    return command, _VERBS[command.verb](command, room) if late is None else _no(late)


def _too_late(command: Command, room: _Room) -> str | None:
    """What sets something going is not obeyed long after it was asked; what stops something is, whenever it comes."""
    age_ms = room.now_ms - command.at_ms
    if command.verb in (Verb.PAUSE, Verb.CANCEL) or age_ms <= room.limits.approval_valid_ms:
        return None
    return f"it was asked for {age_ms / 60_000:.0f} min ago, when no agent led; ask again if it is still meant"


# --- approvals --------------------------------------------------------------------------------------------------


def _approve(command: Command, room: _Room) -> _Result:
    plan = room.plans.get(command.proposal_id or "")
    if plan is not None:
        return _begun(plan)
    proposal = room.standing.get(command.proposal_id or "")
    if proposal is None:
        return _no(f"{command.proposal_id} is not proposed any more, or was by another agent; see: rackwise proposals")
    if proposal.kind is ProposalKind.ADVISE:
        return _no(f"{proposal.id} is advice: only the owner of the client or broker can follow it")
    if command.plan_hash != plan_hash(proposal):
        return _no(f"{proposal.id} is not the plan that you saw; look at it again: rackwise explain {proposal.id}")
    if unfit := _unfit(command, room.limits):
        return _no(unfit)
    return _agreed(command, proposal, room)


def _begun(plan: Plan) -> _Result:
    """Approving what was begun already is no fault; it changes nothing."""
    if plan.ended:
        how = f": {plan.sentence}" if plan.sentence else ""
        return _no(
            f"{plan.proposal_id} was begun before and is {plan.state.value}{how}; the same plan begins only once"
        )
    return _Result(
        done=True, sentence=f"{plan.proposal_id} is being carried out already, approved by {plan.approved_by}"
    )


def _unfit(command: Command, limits: ExecuteLimits) -> str | None:
    rate, most = command.throttle_bytes_per_s, command.max_moves
    low, high = limits.throttle_floor_bytes_per_s, limits.throttle_ceiling_bytes_per_s
    if rate is not None and not low <= rate <= high:
        return f"a rate of {rate} bytes/s is not between execute.throttle_floor ({low}) and throttle_ceiling ({high})"
    if most is not None and most > limits.max_moves_per_cluster:
        return f"{most} moves at once are more than execute.max_moves_per_cluster ({limits.max_moves_per_cluster})"
    return None


def _agreed(command: Command, proposal: Proposal, room: _Room) -> _Result:
    before = approval_of(room.view, proposal.id)
    if before is not None and (before.plan_hash != command.plan_hash or room.now_ms >= before.expires_ms):
        before = None
    if before is not None and before.state is ApprovalState.APPROVED and before.rule is None:
        return _Result(done=True, sentence=f"{proposal.id} was approved by {before.by} already", look_now=True)
    if not room.limits.second_person or proposal.kind is ProposalKind.TRIGGER:
        return _approved(command, proposal, None, room)
    if before is None or before.state is not ApprovalState.REQUESTED:
        return _requested(command, proposal, room)
    if before.by == command.who:
        return _no(f"{proposal.id} was asked for by {before.by}; somebody else has to approve it")
    return _approved(command, proposal, before.by, room)


def _requested(command: Command, proposal: Proposal, room: _Room) -> _Result:
    sentence = (
        f"asked for by {command.who}; a second person has to approve it: rackwise proposals approve {proposal.id}"
    )
    asked = _approval(command, proposal, ApprovalState.REQUESTED, room)._replace(sentence=sentence)
    return _Result(done=True, sentence=sentence, writes=(written(asked),))


def _approved(command: Command, proposal: Proposal, requested_by: str | None, room: _Room) -> _Result:
    asked = f", asked for by {requested_by}" if requested_by is not None else ""
    minutes = room.limits.approval_valid_ms / 60_000
    sentence = f"approved by {command.who}{asked}; void if nothing is begun within {minutes:.0f} min"
    given = _approval(command, proposal, ApprovalState.APPROVED, room)._replace(
        requested_by=requested_by, sentence=sentence
    )
    return _Result(done=True, sentence=sentence, writes=(written(given),), look_now=True)


def _approval(command: Command, proposal: Proposal, state: ApprovalState, room: _Room) -> Approval:
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
    )


# --- cancelling and taking back ---------------------------------------------------------------------------------


def _cancel(command: Command, room: _Room) -> _Result:
    plan = room.plans.get(command.proposal_id or "")
    if plan is None:
        return _cancel_approval(command, room)
    if plan.ended:
        return _no(
            f"{plan.proposal_id} is {plan.state.value}; to bring back what was there: rackwise reassign rollback"
        )
    sentence = f"{plan.proposal_id} is being cancelled: nothing new begins, and what moves is taken back"
    return _Result(done=True, sentence=sentence, words=(Said(Word.CANCEL, plan.proposal_id, command.who),))


def _cancel_approval(command: Command, room: _Room) -> _Result:
    """Nothing was begun: the approval goes."""
    approval = approval_of(room.view, command.proposal_id or "")
    if approval is None or approval.state is ApprovalState.VOID:
        return _no(f"{command.proposal_id} was neither begun nor approved, so there is nothing to cancel")
    gone = voided(approval, room.now_ms, f"cancelled by {command.who}{_because(command)}")
    return _Result(
        done=True, sentence=f"{approval.proposal_id} was not begun; its approval is void", writes=(written(gone),)
    )


def _rollback(command: Command, room: _Room) -> _Result:
    plan = room.plans.get(command.proposal_id or "")
    if plan is None:
        return _no(f"{command.proposal_id} was never begun, so there is nothing to bring back")
    if plan.state in _TURNED_BACK:
        sentence = f"{plan.proposal_id} is being rolled back: what moves and what has moved is taken back"
        return _Result(done=True, sentence=sentence, words=(Said(Word.ROLLBACK, plan.proposal_id, command.who),))
    back = room.plans.get(plan.proposal_id + BACK)
    if back is not None:
        return _Result(
            done=True, sentence=f"{plan.proposal_id} was taken back already: {back.proposal_id} is {back.state.value}"
        )
    if plan.state is not PlanState.DONE:
        return _no(f"{plan.proposal_id} is {plan.state.value}, so there is nothing to bring back")
    way = _way_back(plan, command)
    sentence = f"{plan.proposal_id} is done; {way.proposal_id} brings back what was there before it"
    return _Result(done=True, sentence=sentence, words=(Accepted(way),))


def _way_back(plan: Plan, command: Command) -> Plan:
    return Plan(
        plan.proposal_id + BACK,
        tuple(Target.back(target) for target in plan.targets),
        approved_by=command.who,
        reason=f"rollback of {plan.proposal_id}{_because(command)}",
        throttle_bytes_per_s=command.throttle_bytes_per_s,
        max_moves=command.max_moves,
        order=max(plan.order, command.at_ms),
    )


# --- pausing ----------------------------------------------------------------------------------------------------


def _pause(command: Command, room: _Room) -> _Result:
    if command.proposal_id is not None:
        return _word(command, Word.PAUSE, "no new batch of it begins; what moves goes on", room)
    already = pause_in(room.view)
    if already is not None:
        return _Result(done=True, sentence=f"acting was paused by {already.who} already{_why(already.reason)}")
    sentence = f"acting is paused{_because(command)}: nothing new begins, what moves goes on, observing goes on"
    return _Result(done=True, sentence=sentence, writes=(paused(Pause(command.who, command.reason, room.now_ms)),))


def _resume(command: Command, room: _Room) -> _Result:
    if command.proposal_id is not None:
        return _word(command, Word.RESUME, "new batches of it may begin", room)
    was = pause_in(room.view)
    if was is None:
        return _Result(done=True, sentence="acting was not paused")
    sentence = f"acting goes on; it was paused by {was.who} for {(room.now_ms - was.since_ms) / 60_000:.0f} min"
    return _Result(done=True, sentence=sentence, writes=(resumed(),), look_now=True)


def _word(command: Command, word: Word, meaning: str, room: _Room) -> _Result:
    plan = room.plans.get(command.proposal_id or "")
    if plan is None or plan.ended:
        return _no(f"{command.proposal_id} is not being carried out, so it cannot be {_DONE[word]}")
    said = (Said(word, plan.proposal_id, command.who),)
    return _Result(done=True, sentence=f"{plan.proposal_id}: {meaning}", words=said)


def _no(sentence: str) -> _Result:
    return _Result(done=False, sentence=f"refused: {sentence}")


def _because(command: Command) -> str:
    return _why(command.reason)


def _why(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _shown(view: View, writes: Sequence[Write], now_ms: int) -> View:
    """What the journal is going to say, for the commands after this one."""
    after = dict(view)
    for seq, write in enumerate(writes):
        if write.value is None:
            after.pop(write.key, None)
        else:
            after[write.key] = Entry(write.key, write.kind, write.value, now_ms, 1 << 62, seq)
    return after


_VERBS: Mapping[Verb, Callable[[Command, _Room], _Result]] = {
    Verb.APPROVE: _approve,
    Verb.APPLY: _approve,
    Verb.CANCEL: _cancel,
    Verb.ROLLBACK: _rollback,
    Verb.PAUSE: _pause,
    Verb.RESUME: _resume,
}

"""What do operators' commands come to? Writes for the journal and words for the mover.

Invariants: a command is answered once, in the same transaction as what it changes; what a journal says was obeyed is
said to the mover again until it shows (`words_again`), so that a crash between the two loses nothing, and of the very
attempt that it was about. Approvals are `agreeing`, all else is `turning`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from agent.execute import agreeing, turning
from agent.execute.attempts import attempt, back_of, forth_of
from agent.execute.commanded import Foresee, Result, Room, Spoken, refused
from agent.execute.identity import SIGNED_FOR_MS, Came, People, against, by, sender_of, too_late
from agent.execute.messages import Accepted, Said, Word
from agent.execute.values import Plan
from agent.journal import moves
from agent.journal.commands import (
    Answer,
    Command,
    Verb,
    answer_to,
    answered,
    command_from_json,
    forgotten,
    history,
)
from agent.journal.entry import Entry, View, Write
from agent.journal.leader import leader_in
from agent.limits_execute import ExecuteLimits
from agent.propose.proposal import Proposal
from agent.typed_json import UnreadableError

_PAUSING = {Verb.PAUSE: Word.PAUSE, Verb.RESUME: Word.RESUME}


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

    @property
    def came(self) -> Came:
        """How it came."""


class Obeyed(NamedTuple):
    """What to write, in one append, and then what to say to the mover."""

    writes: tuple[Write, ...] = ()
    words: tuple[Spoken, ...] = ()
    look_now: bool = False
    """True when something was approved or resumed, so that the next planning need not be waited for."""


def obey(  # noqa: PLR0917 (what is commanded, then what it is judged by)
    waiting: Sequence[Waiting],
    view: View,
    standing: Sequence[Proposal],
    limits: ExecuteLimits,
    now_ms: int,
    foresee: Foresee = lambda _proposal, _view: None,
    *,
    people: People = MappingProxyType({}),
) -> Obeyed:
    """What the commands come to, one after the other: a later one finds what an earlier one has changed.

    ``standing`` are the proposals of the last planning; ``foresee`` is what the guard would say of one of them, so that
    an answer is made from what the agent is going to do; ``people`` are those who can prove a command. Raises
    UnreadableError when plans in the journal cannot be read: without knowing what has begun, nothing of it may be
    changed.
    """
    by_id = {proposal.id: proposal for proposal in standing}
    total = Obeyed()
    for one in waiting:
        if answer_to(view, one.id) is not None:
            continue
        room = Room(view, by_id, moves.plans(view), limits, now_ms, foresee)
        command, result = _obey_one(one, room, people)
        answer = Answer(result.done, result.sentence, now_ms, result.plan)
        writes = (*result.writes, answered(command, answer), one.after)
        view = _shown(view, writes, now_ms)
        total = Obeyed((*total.writes, *writes), (*total.words, *result.words), total.look_now or result.look_now)
    if not total.writes:
        return total
    return total._replace(writes=(*total.writes, *forgotten(view, now_ms - SIGNED_FOR_MS)))


def words_again(view: View) -> tuple[Spoken, ...]:
    """Words that a former leader may not have passed on any more; the mover takes a word twice as once."""
    words: dict[tuple[str, Verb], Spoken | None] = {}
    for command, answer in history(view):
        # Before there were attempts, the proposal's id was the plan's name.
        name = answer.plan or command.proposal_id
        if not answer.done or name is None or command.verb in agreeing.VERBS:
            continue
        # Of pauses and resumes of one plan the last counts.
        key = name, Verb.PAUSE if command.verb in _PAUSING else command.verb
        words.pop(key, None)
        words[key] = _word_again(command, name, view)
    return tuple(word for word in words.values() if word is not None)


def _word_again(command: Command, name: str, view: View) -> Spoken | None:
    """What the plan does not show yet of the command; None when it does, or cannot any more."""
    plan = moves.plan_of(view, name)
    if plan is None:
        return _way_again(command, name, view)
    running = plan.state in turning.RUNNING
    match command.verb:
        case Verb.PAUSE | Verb.RESUME:
            word = _PAUSING[command.verb]
            told = running and plan.paused is not (word is Word.PAUSE)
        case Verb.CANCEL:
            word, told = Word.CANCEL, running
        case _:
            if attempt(name).of != attempt(command.proposal_id or "").of:
                return None  # the way back that was promised: it was accepted
            word, told = Word.ROLLBACK, plan.state in turning.TURNED_BACK
            if _missed(plan, view):
                return _way(command, plan, back_of(name), view)
    return Said(word, plan.proposal_id, command.who) if told else None


def _missed(plan: Plan, view: View) -> bool:
    """Whether it ended before a rollback was passed on."""
    if plan.state not in turning.TAKEN_BACK or moves.plan_of(view, back_of(plan.proposal_id)) is not None:
        return False
    return not any(batch.back for batch in moves.batches(view, plan.proposal_id))


def _way_again(command: Command, name: str, view: View) -> Accepted | None:
    """The way back that was promised, where it was not accepted yet."""
    forth = forth_of(name)
    plan = moves.plan_of(view, forth) if forth is not None and command.verb is Verb.ROLLBACK else None
    return None if plan is None else _way(command, plan, name, view)


def _way(command: Command, plan: Plan, name: str, view: View) -> Accepted | None:
    way = turning.way_of(plan, command, view, name)
    return Accepted(way) if way.targets else None


def _obey_one(one: Waiting, room: Room, people: People) -> tuple[Command, Result]:
    try:
        command = command_from_json(dict(one.value))
    except UnreadableError as error:
        unread = Command(one.id, Verb.PAUSE, "", room.now_ms)
        return unread, Result(done=False, sentence=f"refused: {error}")
    leader = leader_in(room.view)
    sender = sender_of(one, people, "" if leader is None else leader.cluster)
    command = by(sender, command)
    why_not = against(sender, command, people) or too_late(one, sender, command, room.limits, room.now_ms)
    command = command._replace(at_ms=min(command.at_ms, room.now_ms))  # a time of the future counts as now
    return command, _VERBS[command.verb](command, room) if why_not is None else refused(why_not)


def _shown(view: View, writes: Sequence[Write], now_ms: int) -> View:
    """What the journal is going to say, for the commands after this one."""
    after = dict(view)
    for seq, write in enumerate(writes):
        if write.value is None:
            after.pop(write.key, None)
        else:
            after[write.key] = Entry(write.key, write.kind, write.value, now_ms, 1 << 62, seq)
    return after


_VERBS: Mapping[Verb, Callable[[Command, Room], Result]] = {**agreeing.VERBS, **turning.VERBS}

"""Operators' commands with their answers, the pause, and the next attempt at a proposal.

=====================  ==============================================================================================
``command/<id>``       a command with its answer: it is answered once, and read again it has the same answer
``pause``              who paused acting, why and since when; not there while it is not paused
``command-forgotten``  the latest time of a signed command whose answer is no longer kept
=====================  ==============================================================================================

A command comes from outside: the right to write the commands topic (or directory) is the right to command, a matter of
rights. Its text is foreign and shown as such. Pure.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from agent.journal.entries import JournalState, JournalWrite, read_value, read_values, under
from agent.values.typed_json import MOST_INT, UnreadableError, from_json, is_time, to_json

COMMANDS = "command"
PAUSE = "pause"
FORGOTTEN = "command-forgotten"
KEPT = 200
"""Answered commands that stay."""
KEPT_OF_PERSONS = 1_000
"""Older ones of proven persons that stay besides, as long as a copy of them counts: each command reads all of them."""
MAX_TEXT = 500
"""Characters of what a person writes that are kept."""


class CommandVerb(StrEnum):
    """Verb of an operator's command."""

    APPROVE = "approve"
    """Approve a proposal: it begins when the schedule allows it."""
    APPLY = "apply"
    """Approve a proposal; the sender waits for its end."""
    CANCEL = "cancel"
    """Cancel a plan or an approval: no new batch, and running reassignments are cancelled."""
    ROLLBACK = "rollback"
    """Bring back what was there before it."""
    PAUSE = "pause"
    """Begin nothing new; go on observing."""
    RESUME = "resume"


class OperatorCommand(NamedTuple):
    """One request of an operator."""

    id: str
    """Unique: the same id is the same command."""
    verb: CommandVerb
    who: str
    """As ``user@host`` while it travels, and only as true as its sender; once answered, the person, or marked."""
    at_ms: int
    """Epoch milliseconds of the asker's clock."""
    proposal_id: str | None = None
    """The proposal or plan; None for pause and resume of everything."""
    plan_hash: str | None = None
    """Hash of the plan that the operator saw."""
    reason: str = ""
    throttle_bytes_per_s: int | None = None
    max_moves: int | None = None
    schema_version: int = 1
    attempt: int | None = None
    """Which attempt the operator approves; None from a rackwise that knows of one attempt only."""
    person: str | None = None
    """Who that is beyond doubt, as the agent found; None: self-declared. What a sender writes here is not believed."""
    witness: str | None = None
    """The agent at whose page that person signed in; None: sent otherwise. It is believed as far as its code proves."""


class LeaderAnswer(NamedTuple):
    """Answer of the leading agent to a command."""

    done: bool
    """False: refused, and the sentence has the reason."""
    sentence: str
    at_ms: int
    plan: str | None = None
    """Name of the plan that it is about: the attempt that was meant then, whatever is attempted later."""
    unknown: bool = False
    """True when the proposal is neither open nor in the journal."""
    signed_ms: int | None = None
    """Epoch milliseconds of the asker's clock as they were signed, also of the future; None: not signed."""
    todo: str = ""
    """The remedy of a refusal, as a sentence; empty where the agent names none."""


class CommandAnswered(NamedTuple):
    """A command with its answer."""

    command: OperatorCommand
    answer: LeaderAnswer


class ExecutionPause(NamedTuple):
    """Acting is paused; observing goes on."""

    who: str
    reason: str
    since_ms: int
    """Epoch milliseconds."""


def answered(command: OperatorCommand, answer: LeaderAnswer) -> JournalWrite:
    """The command with its answer."""
    kind = "done" if answer.done else "refused"
    return JournalWrite(f"{COMMANDS}/{command.id}", kind, to_json(CommandAnswered, CommandAnswered(command, answer)))


def paused(pause: ExecutionPause) -> JournalWrite:
    """Acting is paused from now on."""
    return JournalWrite(PAUSE, "paused", to_json(ExecutionPause, pause))


def resumed() -> JournalWrite:
    """Acting is no longer paused."""
    return JournalWrite(PAUSE, "resumed", None)


def answer_to(view: JournalState, command_id: str) -> CommandAnswered | None:
    """The command with its answer; None while it is not answered."""
    return read_value(CommandAnswered, view.get(f"{COMMANDS}/{command_id}"))


def history(view: JournalState) -> tuple[CommandAnswered, ...]:
    """All answered commands that are kept, in the order in which they were answered."""
    return read_values(CommandAnswered, under(view, COMMANDS))


def pause_in(view: JournalState) -> ExecutionPause | None:
    """Who paused acting; None while it is not paused. An entry that cannot be read counts as a pause."""
    entry = view.get(PAUSE)
    if entry is None:
        return None
    return read_value(ExecutionPause, entry) or ExecutionPause(
        "an unknown operator", "the pause in the journal is unreadable", entry.at_ms
    )


def command_cleanup(
    view: JournalState, signed_until_ms: int = 0, needed: AbstractSet[str] = frozenset()
) -> tuple[JournalWrite, ...]:
    """Deletes the oldest answered commands beyond `KEPT`; those that are needed, and of persons since then, stay.

    So a copy of a proven command is known as answered for as long as it counts, however many others come in between.
    That time is of a clock, which may be wrong, and at most `KEPT_OF_PERSONS` stay: what is forgotten of signed ones
    is remembered as `signed_until`, and no command counts that was signed until then.
    """
    every = tuple(under(view, COMMANDS))
    old = [(entry.key, read_value(CommandAnswered, entry)) for entry in every[: max(0, len(every) - KEPT)]]
    spare = [(key, one) for key, one in old if one is None or one.command.id not in needed]
    signed = [key for key, one in spare if one is not None and _counts(one, signed_until_ms)]
    stay = frozenset(signed[-KEPT_OF_PERSONS:])
    gone = [(key, one) for key, one in spare if key not in stay]
    deleted = tuple(JournalWrite(key, "deleted", None) for key, _ in gone)
    until, before = max((_signed_ms(one) for _, one in gone if one is not None), default=0), signed_until(view)
    return deleted if until <= before else (*deleted, JournalWrite(FORGOTTEN, "signed", {"until_ms": until}))


def signed_until(view: JournalState) -> int:
    """Epoch milliseconds: a command signed until then may have been answered, and the answer is gone; 0: none."""
    entry = view.get(FORGOTTEN)
    until = None if entry is None else entry.value.get("until_ms")
    return until if isinstance(until, int) and is_time(until) else 0


def _counts(one: CommandAnswered, signed_until_ms: int) -> bool:
    """Whether a copy of it, which proves its person as well, would count."""
    return one.command.person is not None and one.answer.at_ms >= signed_until_ms


def _signed_ms(one: CommandAnswered) -> int:
    if one.answer.signed_ms is not None:
        return one.answer.signed_ms
    return 0 if one.command.person is None else one.command.at_ms


def command_to_json(command: OperatorCommand) -> dict[str, object]:
    """The command as a document of the commands topic or directory."""
    data: dict[str, object] = to_json(OperatorCommand, command)
    return data


def command_from_json(data: object) -> OperatorCommand:
    """A command that came from outside, its texts cut. Raises UnreadableError."""
    if not isinstance(data, dict):
        raise UnreadableError("no command: an object is expected")
    command = from_json(OperatorCommand, data)
    if not command.id or len(command.id) > 64 or not command.id.isascii() or not command.id.isprintable():
        raise UnreadableError("no command: its id is not a short text")
    if not is_time(command.at_ms):
        raise UnreadableError("no command: at_ms is not a time in epoch milliseconds")
    if max(len(command.proposal_id or ""), len(command.plan_hash or "")) > MAX_TEXT:
        raise UnreadableError(f"no command: proposal_id and plan_hash have at most {MAX_TEXT} characters")
    for number in (command.throttle_bytes_per_s, command.max_moves, command.attempt):
        if number is not None and not 1 <= number <= MOST_INT:
            raise UnreadableError("no command: a rate, a number of moves and an attempt are at least 1, of 64 bits")
    return command._replace(who=command.who[:MAX_TEXT], reason=command.reason[:MAX_TEXT])

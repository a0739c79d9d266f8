"""Commands that people give over HTTP: sent as those of the command line, with the signed-in person as author.

Invariants: an agent that is not in mode execute sends nothing. An approval names the hash of the very plan that was
seen. The answer is the leading agent's, from the journal, where it stands with who, why and the hash.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import NamedTuple

import structlog

from agent.act.commands_topic import ask_leader, new_command
from agent.act.lease import LeadershipPlan
from agent.documents.proposals import CommandAnswer
from agent.errors import GaveUp, RackwiseError
from agent.execute.commands.command_context import CommandWitness
from agent.journal.approvals import plan_hash
from agent.journal.commands import MAX_TEXT, CommandVerb, LeaderAnswer, OperatorCommand
from agent.journal.entries import JournalState
from agent.values.proposal import Proposal
from agent.values.reassignment import attempt
from agent.values.typed_json import MOST_INT
from agent.web.access.person import AccessRole, SignedInPerson, not_allowed
from agent.web.access.request_checks import AccessRefused
from agent.web.cycle_history import EndedProposal, newest_ended
from config.foreign_text import harmless
from config.value_kinds import parse_size

ROLES: Mapping[CommandVerb, AccessRole] = {
    CommandVerb.APPROVE: AccessRole.APPROVE,
    CommandVerb.CANCEL: AccessRole.APPROVE,
    CommandVerb.ROLLBACK: AccessRole.APPROVE,
    CommandVerb.PAUSE: AccessRole.OPERATE,
    CommandVerb.RESUME: AccessRole.OPERATE,
}
"""What each command needs; apply is approve for one who follows it."""
STALE, REFUSED = "urn:rackwise:problem:stale-plan", "urn:rackwise:problem:refused"
DRY_RUN, UNKNOWN = "urn:rackwise:problem:dry-run", "urn:rackwise:problem:unknown-proposal"
NO_ANSWER = "urn:rackwise:problem:no-answer"
WAIT_S = 20.0
"""So long an answer is waited for: less than the server's own bound of an answer."""
_LIST = "List the open proposals: GET /api/v1/proposals"
_MOST_WAITING = 4
"""Commands that wait at once; each takes a thread."""
_POLL_S = 0.25
_PROPOSAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9~._-]{0,99}")
_HASH = re.compile(r"[0-9a-f]{32}")


class WantedCommand(NamedTuple):
    """A command as a person sends it at the page or API."""

    verb: CommandVerb
    proposal_id: str | None = None
    """None: pause or resume everything."""
    plan_hash: str | None = None
    """Of the plan that the person saw; an approval has it."""
    reason: str = ""
    throttle_bytes_per_s: int | None = None
    max_moves: int | None = None
    attempt: int | None = None


class CommandDesk:
    """Takes commands of signed-in people, for any thread."""

    def __init__(
        self,
        *,
        plan: LeadershipPlan | None = None,
        witness: CommandWitness | None = None,
        journal: Callable[[], JournalState] = dict,
        proposals: Callable[[], tuple[Proposal, ...]] = tuple,
        ended: Callable[[], Sequence[EndedProposal]] = tuple,
        wait_s: float = WAIT_S,
    ) -> None:
        """``plan`` and ``witness`` are None where the agent is not in mode execute: it then sends nothing.

        ``journal`` returns what the journal has by now; ``proposals`` those of the last planning of this agent,
        ``ended`` those that it makes no more.
        """
        self._plan = None if plan is None or witness is None else replace(plan, witness=witness)
        self._journal, self._proposals, self._ended = journal, proposals, ended
        self._wait_s = wait_s
        self._places = threading.BoundedSemaphore(_MOST_WAITING)

    def ask(self, person: SignedInPerson, wanted: WantedCommand) -> CommandAnswer:
        """The leading agent's answer to a command that it carries out. Raises AccessRefused with the reason if not."""
        role = ROLES.get(wanted.verb)
        if role is None or not person.signed_in or not person.may(role):
            raise not_allowed(person, role or AccessRole.OPERATE)
        plan = self._plan
        if plan is None:
            raise AccessRefused(
                HTTPStatus.CONFLICT,
                "This agent does not run in mode execute, so it sends nothing",
                todo="Open the page of an agent in mode execute.",
                kind=DRY_RUN,
            )
        _check(wanted)
        if not self._places.acquire(blocking=False):
            raise AccessRefused(503, "Too many commands wait for an answer", headers={"retry-after": "2"})
        try:
            command = _command(person, wanted)
            answer = self._answer(plan, command)
        finally:
            self._places.release()
        _log(command, answer)
        return self._accepted(command, answer)

    def _answer(self, plan: LeadershipPlan, command: OperatorCommand) -> LeaderAnswer:
        try:
            return ask_leader(plan, command, self._wait_s, journal=self._journal, poll_s=_POLL_S)
        except RackwiseError as error:
            late = type(error) is GaveUp  # its subclasses say that the command could not be sent
            status = HTTPStatus.GATEWAY_TIMEOUT if late else HTTPStatus.SERVICE_UNAVAILABLE
            raise AccessRefused(status, error.what, why=error.why, todo=error.todo, kind=NO_ANSWER) from error

    def _accepted(self, command: OperatorCommand, answer: LeaderAnswer) -> CommandAnswer:
        if answer.done:
            return {"command": command.id, "done": True, "sentence": answer.sentence}
        if answer.unknown:
            self._refuse_ended(command)
            what = f"There is no proposal {command.proposal_id}"
            raise AccessRefused(404, what, why=answer.sentence, todo=_LIST, kind=UNKNOWN)
        kind = STALE if self._is_stale(command) else REFUSED
        raise AccessRefused(HTTPStatus.CONFLICT, answer.sentence, todo=answer.todo, kind=kind)

    def _refuse_ended(self, command: OperatorCommand) -> None:
        """Raises AccessRefused where this agent proposed it before, with what it proposes for the subject now."""
        of = attempt(command.proposal_id or "").of
        ended = newest_ended(self._ended(), of)
        if ended is None:
            return
        subject = ended.proposal.subject
        now = [one.id for one in self._proposals() if one.subject == subject]
        todo = f"Read what is proposed for {subject} now: GET /api/v1/proposals/{now[0]}" if now else _LIST
        raise AccessRefused(HTTPStatus.CONFLICT, f"Proposal {of} is over", why=ended.why, todo=todo, kind=STALE)

    def _is_stale(self, command: OperatorCommand) -> bool:
        """Whether another plan than the one that was seen is proposed under that id by now."""
        if command.plan_hash is None or command.proposal_id is None:
            return False
        of = attempt(command.proposal_id).of
        return any(one.id == of and plan_hash(one) != command.plan_hash for one in self._proposals())


def wanted_from(verb: CommandVerb, proposal_id: str | None, fields: Mapping[str, object]) -> WantedCommand:
    """What the fields of a form or of a JSON object ask for. Raises AccessRefused for what is no value of a field."""
    unknown = fields.keys() - {"plan_hash", "reason", "throttle", "max_moves", "attempt", "csrf", "next"}
    if unknown:
        raise AccessRefused(422, f"{harmless(min(unknown))[:80]} is no field of a command")
    return WantedCommand(
        verb,
        proposal_id,
        _text(fields, "plan_hash") or None,
        _text(fields, "reason"),
        _rate(fields.get("throttle")),
        _number(fields, "max_moves"),
        _number(fields, "attempt"),
    )


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT or not _is_text(value):
        raise AccessRefused(422, f"{name} is no text of at most {MAX_TEXT} characters")
    return " ".join(value.split())


def _is_text(value: str) -> bool:
    """Whether it has no half of a surrogate pair, which no journal can hold."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _rate(value: object) -> int | None:
    if value is None or value == "":
        return None
    try:
        rate = parse_size(value)
    except ValueError as error:
        raise AccessRefused(422, f"throttle is no rate: {error}", todo="Write it as 50MB/s.") from error
    if rate < 1:
        raise AccessRefused(422, "throttle is no rate: it is at least 1 byte/s", todo="Write it as 50MB/s.")
    return rate


def _number(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is None or value == "":
        return None
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,19}", text) or not 1 <= int(text) <= MOST_INT:
        raise AccessRefused(422, f"{name} is no whole number of at least 1")
    return int(text)


def _check(wanted: WantedCommand) -> None:
    """Checks what no leading agent need be asked for. Raises AccessRefused."""
    name = wanted.proposal_id
    whole = wanted.verb in (CommandVerb.PAUSE, CommandVerb.RESUME)
    if name is None and not whole:
        raise AccessRefused(422, f"{wanted.verb.value} needs the id of a proposal")
    if name is not None and not _PROPOSAL.fullmatch(name):
        raise AccessRefused(404, "There is no such proposal", kind=UNKNOWN)
    if wanted.plan_hash is not None and not _HASH.fullmatch(wanted.plan_hash):
        raise AccessRefused(422, "plan_hash is no hash of a plan: it has 32 hex digits", todo=_read_hash(name))
    if wanted.verb is CommandVerb.APPROVE and wanted.plan_hash is None:
        raise AccessRefused(
            422,
            "An approval names the plan_hash of the plan that was seen",
            todo=_read_hash(name),
        )


def _read_hash(name: str | None) -> str:
    return f"Read it with the proposal: GET /api/v1/proposals/{attempt(name).of if name else 'ID'}"


def _command(person: SignedInPerson, wanted: WantedCommand) -> OperatorCommand:
    made = new_command(wanted.verb, person.name, wanted.proposal_id, plan_hash=wanted.plan_hash, reason=wanted.reason)
    return made._replace(
        throttle_bytes_per_s=wanted.throttle_bytes_per_s, max_moves=wanted.max_moves, attempt=wanted.attempt
    )


def _log(command: OperatorCommand, answer: LeaderAnswer) -> None:
    about = command.proposal_id or "everything"
    said = answer.sentence if answer.done else f"refused: {answer.sentence}"
    structlog.get_logger("rackwise").info(
        "command_over_http",
        command=command.id,
        verb=command.verb.value,
        about=about,
        person=command.who,
        plan_hash=command.plan_hash,
        done=answer.done,
        sentence=f"{command.who} asked to {command.verb.value} {about}: {said}",
    )

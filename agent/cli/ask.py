"""Commands to the leading agent, and its answers in the journal."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from agent.cli.output import say
from agent.errors import BadInput, GaveUp, GuardRefused

if TYPE_CHECKING:
    from agent.act.lead.lease import LeadershipPlan
    from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand
    from agent.journal.entries import JournalKey, JournalState
    from config.load import LoadedSettings


def confirmed(question: str, *, option: str) -> bool:
    """The answer. ``option``: the one that answers yes beforehand. Raises GaveUp where the input ends first."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # Ctrl-C ends the command, as everywhere
            raise KeyboardInterrupt from None
        raise GaveUp(
            "No answer was given", why="the input ended before it", todo=f"Answer, or give {option}."
        ) from None


READ_MS = 10_000
POLL_S = 0.5

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, kept in the journal.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Wait = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", help="How long to wait for the agent's answer.", min=1)
]


class AskOptions(NamedTuple):
    """Options of a command that the leading agent answers."""

    reason: Reason = ""
    wait: Wait = 30


class ConfirmedOptions(NamedTuple):
    """The same, of one that is confirmed first."""

    reason: Reason = ""
    yes: Yes = False
    wait: Wait = 30


def plan_of(loaded: LoadedSettings) -> LeadershipPlan:
    """Where the journal stands and where commands go. Raises what keeps this user out of a journal in Kafka."""
    from agent.act.own_files import signer
    from agent.daemon.limits_from_settings import to_leadership_plan

    settings = loaded.settings
    operator = settings.operator
    plan = to_leadership_plan(settings, settings.kafka, who())
    plan = replace(plan, signer=signer(operator.name, operator.key_file))
    if plan.file is not None:
        return plan
    from agent.observe.observe_cluster import reach_cluster

    cluster = reach_cluster(settings.kafka, settings.observe.call_timeout_ms, expected_cluster=settings.cluster.id)
    return replace(plan, cluster=cluster, keys=_keys(settings.execute.journal_key_file))


def _keys(path: str | None) -> tuple[JournalKey, ...]:
    """The executors' keys where this person may read them; a person needs none to read the journal."""
    from agent.act.own_files import journal_keys
    from agent.errors import ConfigError

    try:
        return journal_keys(path)
    except ConfigError:
        return ()


def journal(plan: LeadershipPlan) -> JournalState:
    """What the journal says by now. Raises what `read_journal` raises."""
    from agent.act.lead.leadership import read_journal

    return read_journal(plan, timeout_ms=READ_MS)


def command(
    verb: CommandVerb, proposal_id: str | None = None, *, plan_hash: str | None = None, reason: str = ""
) -> OperatorCommand:
    """A command of this person, now."""
    from agent.act.commands.ask_leader import new_command

    return new_command(verb, who(), proposal_id, plan_hash=plan_hash, reason=reason)


def ask(plan: LeadershipPlan, command: OperatorCommand, wait_s: float) -> LeaderAnswer:
    """Send it and wait for its answer. Raises GuardRefused when it is refused, GaveUp when no agent answers."""
    from agent.act.commands.ask_leader import ask_leader

    answer = ask_leader(plan, command, wait_s, journal=lambda: journal(plan), note=say, poll_s=POLL_S)
    return _accepted(answer, command)


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation. Raises BadInput where there is no terminal to ask on; ends with exit code 1 on a no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput("Confirmation is needed", why="standard input is not a terminal", todo="Give --yes.")
    if not confirmed(question, option="--yes"):
        say("nothing was done")
        raise typer.Exit(1)


def who() -> str:
    """The person, as ``user@host``."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # a user id without a name, as in many containers
        return f"uid{os.getuid()}@{socket.gethostname()}"


def _accepted(answer: LeaderAnswer, command: OperatorCommand) -> LeaderAnswer:
    if answer.done:
        return answer
    if answer.unknown:
        todo = "List the open proposals: rackwise proposals"
        raise BadInput(f"There is no proposal {command.proposal_id}", why=answer.sentence, todo=todo)
    raise GuardRefused(answer.sentence, todo=answer.todo or _remedy(command))


def _remedy(command: OperatorCommand) -> str:
    """Of a refusal for which the agent named no remedy."""
    from agent.journal.commands import CommandVerb

    if command.proposal_id is None:
        return "See all commands and their answers: rackwise proposals history"
    if command.verb in (CommandVerb.APPROVE, CommandVerb.APPLY):
        return f"See every check with its numbers: rackwise explain {command.proposal_id}"
    return "List the plans and their states: rackwise reassign status"

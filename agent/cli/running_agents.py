"""Running agents as commands reach them: commands to the leader and its answers, and what telemetry says of each.

Settings, memory and report of the running agent are read from its telemetry while a command looks at the cluster.
Invariant: a command waits for it no longer than it says, and answers without it.
"""

from __future__ import annotations

import getpass
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, TypeVar

import typer

from agent.cli.output import say
from agent.errors import BadInput, GaveUp, GuardRefused
from agent.values.number_format import lasted
from agent.values.plan import STALE_MS

if TYPE_CHECKING:
    from agent.act.lease import LeadershipPlan
    from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand
    from agent.journal.entries import JournalKey, JournalState
    from agent.record.newest_look import AgentRun
    from agent.record.running_agent import RunningAgent
    from agent.values.limits import Limits
    from agent.values.memory import Memory
    from agent.values.observation import Observation
    from agent.values.plan import AgentDocument, OtherAgent
    from config.load import LoadedSettings
    from config.settings import Settings


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


JOURNAL_READ_MS = 10_000
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
    from agent.act.leadership import read_journal

    return read_journal(plan, timeout_ms=JOURNAL_READ_MS)


def command(
    verb: CommandVerb, proposal_id: str | None = None, *, plan_hash: str | None = None, reason: str = ""
) -> OperatorCommand:
    """A command of this person, now."""
    from agent.act.commands_topic import new_command

    return new_command(verb, who(), proposal_id, plan_hash=plan_hash, reason=reason)


def ask(plan: LeadershipPlan, command: OperatorCommand, wait_s: float) -> LeaderAnswer:
    """Send it and wait for its answer. Raises GuardRefused when it is refused, GaveUp when no agent answers."""
    from agent.act.commands_topic import ask_leader

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


# Loads modules and asks for telemetry while a look waits for brokers, in threads besides the main one.
#
# Two threads that load modules which import each other may wait for one another, and Python then fails one of them: so
# the main thread loads nothing of the stages before the thread that loads is done, and no other thread loads anything.

T = TypeVar("T")


def load_beside(module: str) -> threading.Thread:
    """Begin to load a module; an import of it, or of what it imports, joins the thread first."""
    thread = threading.Thread(target=_load, args=(module,), name="loading")
    thread.start()
    return thread


def _load(module: str) -> None:
    with suppress(Exception):  # the main thread meets it too, and can report it
        import_module(module)


class BackgroundQuery(Generic[T]):
    """What a thread asks for from now on; one that still waits does not keep the command from ending."""

    def __init__(self, module: str, ask: Callable[[], T], otherwise: T) -> None:
        import_module(module)  # all that ``ask`` needs: the thread is to load nothing
        self._ask, self._found = ask, otherwise
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=module, daemon=True)
        self._thread.start()

    def answer(self, wait_s: float) -> T:
        """The answer, at most so long after it was asked for; ``otherwise`` where there is none by then."""
        self._thread.join(max(0.0, self._began + wait_s - time.monotonic()))
        return self._found

    def _run(self) -> None:
        self._found = self._ask()


def as_of(made_ms: int, now_ms: int) -> str:
    """``figures of 09:14:03Z, 7 min ago``; with the date where it is another day. Both in epoch milliseconds."""
    made, now = (datetime.fromtimestamp(ms / 1_000, UTC) for ms in (made_ms, now_ms))
    when = made.strftime("%H:%M:%SZ" if made.date() == now.date() else "%Y-%m-%d %H:%M:%SZ")
    return f"figures of {when}, {ago(made_ms, now_ms)}"


def of_this_look(taken_ms: int) -> str:
    """``figures of 09:21:40Z, this look``."""
    return f"figures of {datetime.fromtimestamp(taken_ms / 1_000, UTC):%H:%M:%SZ}, this look"


def ago(made_ms: int, now_ms: int) -> str:
    """``7 min ago``."""
    return f"{lasted(now_ms - made_ms)} ago"


def expired(expires_ms: int, now_ms: int) -> str | None:
    """``expired 7 days ago``; None while it is open: the agent publishes what it still proposes again in time."""
    return f"expired {ago(expires_ms, now_ms)}" if now_ms >= expires_ms else None


READ_MS = 10_000
_TOO_LATE = "reading it took too long"


def asked(loaded: LoadedSettings) -> BackgroundQuery[RunningAgent | str]:
    """The agent of whichever cluster, or why none is known, read beside the look."""
    return BackgroundQuery("agent.record.running_agent", lambda: read(loaded, None), _TOO_LATE)


def read(loaded: LoadedSettings, cluster: str | None) -> RunningAgent | str:
    """The agent of that cluster, or why none is known, as one clause."""
    from agent.record.running_agent import TelemetrySource, running_agent

    settings = loaded.settings
    return running_agent(
        TelemetrySource(
            config=settings.kafka.confluent(),
            topic=settings.telemetry_topic,
            file=Path(settings.record.file) if settings.record.file else None,
            prefix=settings.topics.prefix,
            timeout_ms=READ_MS,
        ),
        cluster,
    )


def why_not_running(agent: RunningAgent, observation: Observation, loaded: LoadedSettings) -> str | None:
    """Why it is not taken for running, as one clause."""
    age_ms = observation.taken_ms - agent.taken_ms
    if agent.stopped:
        return f"it stopped {lasted(age_ms)} ago"
    if age_ms > max(STALE_MS, 3 * (agent.poll_ms or loaded.settings.poll.interval_ms)):
        return f"the newest is {lasted(age_ms)} old"
    if agent.ahead_ms > STALE_MS:
        return f"the newest is {lasted(agent.ahead_ms)} in the future, so its age is unknown: check its host's clock"
    return None


def named(agent: RunningAgent) -> str:
    """``agent rw-1 on host kafka-1``; with its process where another agent writes to the same telemetry."""
    if not agent.agent:
        return "the running agent"
    process = f", process {agent.pid}" if agent.others and agent.pid is not None else ""
    return f"agent {agent.agent} on host {agent.host}{process}"


def others(agent: RunningAgent, now_ms: int) -> list[str]:
    """``agent rw-1 on host kafka-1, process 4711, mode propose, 2 s ago``: the others that write telemetry."""
    return [
        f"{other.name}, mode {other.report.mode}, {heard_ago(other.newest_ms, other.ahead_ms, now_ms)}"
        for other in agent.others
    ]


def heard_ago(newest_ms: int, ahead_ms: int, now_ms: int) -> str:
    """``2 s ago``; where its time is of the future, and no clock's small error, how far."""
    return ago(newest_ms, now_ms) if ahead_ms <= STALE_MS else f"of {lasted(ahead_ms)} in the future"


class AgentQuery:
    """The agent beside a look that is judged by this command's settings, but for what only the agent knows."""

    def __init__(self, loaded: LoadedSettings) -> None:
        self._loaded = loaded
        self._asked = asked(loaded)

    def agent(self, observation: Observation, wait_s: float) -> RunningAgent | None:
        """The agent that runs in this cluster; None where none is known to."""
        settings = self._loaded.settings
        if not settings.record.file and not any(one.name == settings.telemetry_topic for one in observation.topics):
            return None
        found = self._asked.answer(wait_s)
        if found == _TOO_LATE:
            say(f"settings of groups: by this command; those of a running agent were not read within {wait_s:g} s")
        if isinstance(found, str) or found.cluster != observation.cluster_id:
            return None
        return found if why_not_running(found, observation, self._loaded) is None else None


def with_groups_of(agent: RunningAgent | None, own: Limits, now_ms: int) -> Limits:
    """The command's limits with the agent's settings of groups, unless the command was given settings of groups itself.

    Where both have some that differ, a line says so.
    """
    if agent is None or (agent.limits.groups, agent.limits.default_group) == (own.groups, own.default_group):
        return own
    who = f"{named(agent)}, {ago(agent.taken_ms, now_ms)}"
    if own.default_group.known or own.groups:
        say(f"settings of groups: by this command; those of the running agent differ ({who})")
        return own
    say(f"settings of groups: by the running agent ({who})")
    return replace(own, groups=agent.limits.groups, default_group=agent.limits.default_group)


def with_absences_of(agent: RunningAgent | None, memory: Memory, observation: Observation) -> Memory:
    """The memory with since when the agent misses brokers, as it has looked in between, and when it saw the others.

    On this process's clock.
    """
    if agent is None:
        return memory
    known, between_ms = agent.memory, max(0, observation.taken_ms - agent.memory.taken_ms)
    since = {
        broker: observation.monotonic_ms - between_ms - (known.monotonic_ms - since_ms)
        for broker, since_ms in known.absent.items()
    }
    # What it missed only after that look is not in its memory yet: then it is known until when the broker was there.
    live_ms = observation.monotonic_ms - between_ms
    live = {broker: since.get(broker, live_ms) for broker in known.brokers}
    return replace(memory, absent={**memory.absent, **since}, last_live=live)


REPORT_MS = 2_000
"""Milliseconds from its start for which a command waits for the agents' reports."""


class AgentReportQuery:
    """The newest report in the telemetry topic, asked for in a thread from now on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked: BackgroundQuery[tuple[AgentRun, ...]] = BackgroundQuery("agent.record.newest_look", self._ask, ())

    def of(self, observation: Observation) -> AgentDocument | None:
        """What it says; None where no agent's telemetry of this cluster tells."""
        if not any(one.name == self._settings.telemetry_topic for one in observation.topics):
            return None
        from agent.record.newest_look import agent_document

        runs = self._asked.answer(REPORT_MS / 1000)
        return agent_document(runs, observation.cluster_id, observation.taken_ms)

    def _ask(self) -> tuple[AgentRun, ...]:
        from agent.record.newest_look import agents_in

        settings = self._settings
        return agents_in(
            settings.kafka.confluent(),
            settings.telemetry_topic,
            prefix=settings.topics.prefix,
            timeout_ms=REPORT_MS,
        )


def agent_line(agent: AgentDocument | None) -> str | None:
    """The agent in a few words, for a cell; None where none is known."""
    if agent is None:
        return None
    lines = [_line(agent, several=bool(agent["others"])), *(_line(one, several=True) for one in agent["others"])]
    if any(not one["same_settings"] for one in agent["others"]):
        lines.append("agents with different settings write to the same telemetry")
    return "; ".join(lines)


def _line(agent: AgentDocument | OtherAgent, *, several: bool) -> str:
    """One agent; with its process where there are several, whose names may be the same."""
    where = f" on {agent['host']}" if agent["host"] else ""
    process = f", process {agent['pid']}" if several and agent["pid"] is not None else ""
    leads = {True: ", leads", False: ", stands by", None: ""}[agent["leads"]]
    name = agent["name"] or "(unnamed)"
    age_ms = agent["age_ms"]
    age = "age unknown: its clock is ahead" if age_ms is None else f"last report {lasted(age_ms)} ago"
    if agent.get("stopped"):
        leads, age = "", "stopped" if age_ms is None else f"stopped {lasted(age_ms)} ago"
    return f"{name}{where}{process}, mode {agent['mode']}{leads}, {age}"

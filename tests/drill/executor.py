"""An executor in a process of its own, which can be made to die at a named step: `python -m tests.drill.executor FILE`.

The steps are hooked in from `tests.drill.steps`; the product knows nothing of them, nor of a clock that jumps or a disk
that is slow. Says a word a line: `looked` after its first look, `at STEP` where it is held, `idle` when nothing is left
to do, `busy` when there is again, `answer …` to a command, `problem …` while it cannot lead, `refused …` when its
journal cannot be believed. Hears a word a line: `go` ends a hold; `pause`, `resume`, `cancel` or `rollback`, then the
name of a plan, is what an operator commands. SIGTERM makes it leave.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from agent.act.journal.file_journal import FileJournal
from agent.act.leadership import JournalLeadership
from agent.act.lease import LeadershipPlan
from agent.act.reassign.reassignment_executor import ReassignmentExecutor
from agent.errors import BadInput, FencedOut, JournalUnavailable
from agent.execute.commands.apply import apply_commands, replay_undelivered
from agent.execute.commands.command_context import CommandOrigin, ExecutorInput
from agent.execute.reassign.messages import BatchPermission, PlanAccepted
from agent.guard.execute_checks import may_begin
from agent.guard.guard_context import GuardJournal
from agent.journal.commands import CommandVerb, OperatorCommand, answer_to, command_to_json
from agent.journal.entries import JournalPort, JournalWrite
from agent.journal.record_trust import LeaderEntry, corrections, in_past
from agent.process import StopSignal
from agent.values.clock import Clock, ClockReading, system_clock
from agent.values.limits import AgentMode, ExecuteLimits, Limits
from agent.values.reassignment import ReassignmentPlan, ReassignmentPolicy
from agent.values.typed_json import from_json
from agent.wire.admin_client import WireAdminClient
from agent.wire.failure import CallFailed
from config.kafka_client import KafkaClientConfig
from tests.act.journals import CLUSTER
from tests.drill.steps import Death, DyingAdminClient, DyingJournal, die_when_sent, say
from tests.limits import with_limits

_RACKS_S = 1.0
"""So often the racks of brokers are looked up."""


class InboxEntry(NamedTuple):
    """A command as an inbox hands it out."""

    id: str
    value: Mapping[str, Any]
    after: JournalWrite
    came: CommandOrigin


class Guard:
    """What an executor hears before each batch: all may begin, or what the product's guard says under some limits."""

    def __init__(self, limits: Mapping[str, Any] | None, admin_client: WireAdminClient, clock: Clock) -> None:
        given = {f"execute__{key}": _frozen(value) for key, value in (limits or {}).items()}
        self.limits = with_limits(Limits(mode=AgentMode.EXECUTE), **given)
        self._asked = limits is not None
        self._admin_client = admin_client
        self._clock = clock
        self._racks: Mapping[int, str | None] | None = None
        self._racks_at = -inf

    def may(self, journal: JournalPort) -> BatchPermission:
        """As the agent asks it, with racks that are a second old at most."""
        if not self._asked:
            return BatchPermission(begin=True)
        now_ms = self._clock().wall_ms
        return may_begin(GuardJournal(in_past(journal.view(), now_ms)), self.limits, now_ms, self._seen_racks())

    def _seen_racks(self) -> Mapping[int, str | None] | None:
        if time.monotonic() - self._racks_at > _RACKS_S:
            try:
                brokers = self._admin_client.describe_brokers(2_000).brokers
            except CallFailed:
                return self._racks
            self._racks_at = time.monotonic()
            self._racks = {broker.id: broker.rack for broker in brokers if not broker.fenced}
        return self._racks


class Executor:
    """All that one process does."""

    def __init__(self, config: dict[str, Any], leave: StopSignal) -> None:
        self._config = config
        self._leave = leave
        self._clock = jumping(config.get("clock"))
        self._death = Death(config["die"], config["times"], holds=config["holds"])
        self._connection = KafkaClientConfig.of(config["connection"])
        self._commands = 0
        self._now: tuple[ReassignmentExecutor, JournalPort, Guard] | None = None
        die_when_sent(self._death)

    def run(self) -> int:
        """The exit code."""
        threading.Thread(target=self._hear, daemon=True).start()
        arguments = {**self._connection.kafka_python(), "client_id": self._config["client_id"]}
        with DyingAdminClient(arguments, self._death) as admin_client:
            guard = Guard(self._config.get("limits"), admin_client, self._clock)
            if self._config.get("prefix") is not None:
                return self._lead(admin_client, guard)
            with self._file() as journal, self._moving(journal, admin_client, guard) as executor:
                self._work(executor, journal)
            return 0

    @contextmanager
    def _file(self) -> Iterator[FileJournal]:
        leader = LeaderEntry(agent="tested", host="here", pid=os.getpid(), cluster="test", since_ms=0)
        journal = FileJournal.open(Path(self._config["journal"]), leader, clock=self._clock)
        try:
            yield journal
        finally:
            journal.close()

    @contextmanager
    def _moving(
        self,
        journal: JournalPort,
        admin_client: WireAdminClient,
        guard: Guard,
        leads_for_s: Callable[[], float] = lambda: inf,
    ) -> Iterator[ReassignmentExecutor]:
        """An executor that was given the plans; giving them again does nothing."""
        given = dict(self._config["policy"])
        look_ms = given.pop("look_ms")
        policy = ReassignmentPolicy(ExecuteLimits(**{"max_bytes_in_flight": None, **given}), look_ms=look_ms)
        executor = ReassignmentExecutor(
            journal=DyingJournal(journal, self._death),
            admin=admin_client,
            policy=policy,
            may=lambda: guard.may(journal),
            tick_ms=200,
            leads_for_s=leads_for_s,
        )
        executor.start()
        for plan in self._config["plans"]:
            executor.accept(from_json(ReassignmentPlan, plan))
        self._now = executor, journal, guard
        try:
            yield executor
        finally:
            self._now = None
            assert executor.close(30_000)

    def _work(
        self, executor: ReassignmentExecutor, journal: JournalPort, leads: Callable[[], bool] = lambda: True
    ) -> None:
        """Until it is to leave, or does not lead any more."""
        busy, worded = True, None
        while not self._leave.wait(0.1) and leads():
            executor.check()
            if writes := corrections(journal.view(), self._clock().wall_ms):
                journal.append(*writes)
            if (view := journal.view()) is not worded:  # what was answered is said until it shows
                _pass_on(executor, replay_undelivered(view))
                worded = view
            if executor.busy != busy:
                busy = executor.busy
                say("busy" if busy else "idle")

    def _lead(self, admin_client: WireAdminClient, guard: Guard) -> int:
        """Stand by until it leads, and move as long as it does; the exit code."""
        leadership = JournalLeadership(self._leadership_plan())
        leadership.start()
        leadership.begin(CLUSTER)
        say("stands by")
        known_problem: str | None = None
        try:
            while not self._leave.wait(0.1):
                journal = leadership.journal()
                if journal is not None:
                    say("leads")
                    with self._moving(journal, admin_client, guard, leadership.leads_for_s) as executor:
                        self._follow(executor, journal, leadership)
                elif (problem := leadership.problem()) != known_problem:
                    known_problem = problem
                    say(f"problem {problem}")
        except FencedOut as error:
            say("fenced")
            return error.exit_code
        finally:
            leadership.close()
        return 0

    def _follow(self, executor: ReassignmentExecutor, journal: JournalPort, leadership: JournalLeadership) -> None:
        try:
            self._work(executor, journal, lambda: leadership.journal() is journal)
        except JournalUnavailable as error:  # as the agent's own thread: told, and gone on once there is a journal
            say(f"problem {error}")

    def _leadership_plan(self) -> LeadershipPlan:
        prefix = self._config["prefix"]
        return LeadershipPlan(
            config=KafkaClientConfig.of(self._config["direct"]).confluent(),
            agent=self._config["client_id"],
            prefix=prefix,
            journal_topic=f"{prefix}.journal",
            leader_topic=f"{prefix}.leader",
            commands_topic=f"{prefix}.commands",
        )

    def _hear(self) -> None:
        for line in sys.stdin:
            word, _, proposal = line.strip().partition(" ")
            if word == "go":
                self._death.go.set()
                continue
            while (now := self._now) is None:  # as a command waits in its topic
                time.sleep(0.1)
            self._command(CommandVerb(word), proposal, *now)

    def _command(
        self, verb: CommandVerb, proposal: str, executor: ReassignmentExecutor, journal: JournalPort, guard: Guard
    ) -> None:
        """Obeyed as an operator's is: answered in the journal, then passed on."""
        self._commands += 1
        now_ms, id_ = self._clock().wall_ms, f"{os.getpid()}-{self._commands}"
        command = OperatorCommand(id_, verb, "an operator", now_ms, proposal)
        entry = InboxEntry(
            id_,
            command_to_json(command),
            JournalWrite("command-position", "read", {"drill": id_}),
            CommandOrigin(live=True),
        )
        obeyed = apply_commands([entry], journal.view(), [], guard.limits, now_ms)
        journal.append(*obeyed.writes)
        _pass_on(executor, obeyed.commands)
        answered = answer_to(journal.view(), id_)
        assert answered is not None
        say(f"answer {'done' if answered.answer.done else 'refused'}: {answered.answer.sentence}")


def jumping(file: str | None) -> Clock:
    """A clock whose wall time is off by the milliseconds in that file."""
    if file is None:
        return system_clock

    def clock() -> ClockReading:
        now = system_clock()
        return now._replace(wall_ms=now.wall_ms + int(Path(file).read_text()))

    return clock


def slow_disk(seconds: float) -> None:
    """Every flush of a file takes so much longer."""
    flush = os.fsync

    def slow(file: int) -> None:
        time.sleep(seconds)
        flush(file)

    os.fsync = slow  # type: ignore[assignment]


def _pass_on(executor: ReassignmentExecutor, commands: tuple[ExecutorInput, ...]) -> None:
    for command in commands:
        if isinstance(command, PlanAccepted):
            executor.accept(command.plan)
        else:
            executor.send(command)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def main() -> int:
    faulthandler.enable()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if config.get("flush_s"):
        slow_disk(config["flush_s"])
    leave = StopSignal()
    signal.signal(signal.SIGTERM, lambda _number, _frame: leave.set())
    try:
        return Executor(config, leave).run()
    except BadInput as error:
        say(f"refused {error}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

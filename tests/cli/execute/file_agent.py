"""An agent that leads a file journal and answers commands, and what it finds in its journal.

It is the real inbox, journal and `apply_commands`, in a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

from agent.act.inbox import SpoolInbox
from agent.act.journal.file_journal import FileJournal
from agent.execute.commands.apply import apply_commands
from agent.execute.commands.command_context import OperatorKeys
from agent.journal import plan_entries
from agent.journal.entries import JournalKey
from agent.journal.record_trust import LeaderEntry
from agent.values.clock import system_clock
from agent.values.limits import Limits
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
)
from tests.guard.test_judge import proposals_of, shared
from tests.snapshots import tp

NOW_MS = system_clock().wall_ms
(_MADE,) = proposals_of(shared().snapshot())
MOVE = _MADE._replace(created_ms=NOW_MS, expires_ms=NOW_MS + 3_600_000)
"""As it is published again and again while the agent proposes it."""
TARGETS = (
    ReassignmentTarget(tp("t-0"), "id", (1, 4), (1, 2), 1_000),
    ReassignmentTarget(tp("t-1"), "id", (2, 3), (3, 2), 1_000),
)
EMPTY_JOURNAL = "127.0.0.1:1"


class FileAgent:
    """An agent of a single host that only obeys."""

    def __init__(
        self,
        path: Path,
        limits: Limits,
        people: OperatorKeys = MappingProxyType({}),
        witnesses: Sequence[JournalKey] = (),
    ) -> None:
        self.journal = FileJournal.open(path, LeaderEntry("rw-1", "here", 1, "cluster", 0))
        self._inbox = SpoolInbox(path.with_name(f"{path.name}.commands"))
        self._limits, self._people, self._witnesses = limits, people, witnesses
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            view = self.journal.view()
            now_ms = system_clock().wall_ms
            waiting = self._inbox.read(view)
            proven = {"people": self._people, "witnesses": self._witnesses}
            result = apply_commands(waiting, view, (MOVE,), self._limits, now_ms, **proven)
            if result.writes:
                self.journal.append(*result.writes)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.journal.close()


Start = Callable[..., FileAgent]


def options(path: Path) -> tuple[str, ...]:
    return (
        "--set", "execute.journal=file", "--set", f"execute.journal_file={path}",
        "--set", "observe.call_timeout=200ms", "--set", "observe.deadline=1s", "-b", EMPTY_JOURNAL,
    )  # fmt: skip


def plan(state: PlanState, sentence: str = "") -> tuple[ReassignmentPlan, Batch]:
    ends = (PartitionEnd(tp("t-0"), PartitionEndReason.DONE),)
    batch = Batch(MOVE.id, 1, TARGETS[:1], BatchState.CLOSED, ends=ends)
    return ReassignmentPlan(MOVE.id, TARGETS, state, approved_by="ann@desk", sentence=sentence), batch


def write_journal(path: Path, *changes: ReassignmentPlan | Batch | ThrottleDebt) -> None:
    journal = FileJournal.open(path, LeaderEntry("rw-1", "here", 1, "cluster", 0))
    journal.append(*(line for change in changes for line in plan_entries.change_writes(change)))
    journal.close()

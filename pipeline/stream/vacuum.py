"""Vacuum keeps tables small while ingest runs: one table at a time, so that no batch waits long.

Rows that are older than the retention of their layer are deleted before it, by whole days.

A vacuum that fails, on a full disk or for want of a right, is reported, and ingest continues.
"""

from __future__ import annotations

import sched
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle

from agent.errors import RackwiseError
from pipeline.schemas.bronze import JOURNAL, PROPOSALS
from pipeline.schemas.table import TableSpec, day_of
from pipeline.store_errors import innermost_cause
from pipeline.tables import TableStore

_EVERY_S = 600.0
_KEPT = (PROPOSALS.name, JOURNAL.name)
"""Outcomes are made of all of them, and they are few."""


class TableVacuum:
    """Vacuums tables in turn."""

    def __init__(
        self,
        tables: TableStore,
        of: Iterable[TableSpec],
        say: Callable[[str], None],
        *,
        retention: Mapping[str, int | None],
        every_s: float = _EVERY_S,
    ) -> None:
        """``retention``: layer -> ms for which rows are kept, None: for ever. ``every_s``: between turns of a table."""
        self._retention = retention
        self._tables = tables
        self._of = tuple(of)
        self._say = say
        self._next = cycle(self._of)
        self._reported: set[str] = set()
        self._schedule = sched.scheduler(time.monotonic, time.sleep)
        self._schedule.enter(every_s / len(self._of), 0, self._turn, (every_s / len(self._of),))

    def take_turn(self) -> None:
        """Vacuum the next table when it is due."""
        self._schedule.run(blocking=False)

    def all(self) -> None:
        """Vacuum every table now."""
        for table in self._of:
            self._vacuum(table)

    def _turn(self, pause_s: float) -> None:
        self._schedule.enter(pause_s, 0, self._turn, (pause_s,))
        self._vacuum(next(self._next))

    def _vacuum(self, table: TableSpec) -> None:
        now_ms = time.time_ns() // 1_000_000
        kept_ms = None if table.name in _KEPT else self._retention.get(table.name.partition(".")[0])
        try:
            self._tables.vacuum(table, now_ms, None if kept_ms is None else day_of(now_ms - kept_ms))
        except Exception as error:  # noqa: BLE001 what Java raises and pyspark does not know has no base but this
            if table.name not in self._reported:
                self._reported.add(table.name)
                self._say(f"{table.name} cannot be compacted, so its number of files grows: {_why(error)}")


def _why(error: Exception) -> str:
    """A RackwiseError has its sentence; the first line of Java's names a call of ours, and its cause follows."""
    text = str(error)
    return text.partition("\n")[0] if isinstance(error, RackwiseError) else innermost_cause(text, repr(error))

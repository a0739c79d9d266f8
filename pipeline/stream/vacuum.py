"""Vacuum keeps tables small while ingest runs: one table at a time, so that no batch waits long.

A vacuum that fails, on a full disk or for want of a right, is reported, and ingest continues.
"""

from __future__ import annotations

import sched
import time
from collections.abc import Callable, Iterable
from itertools import cycle

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from agent.errors import RackwiseError
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore

_EVERY_S = 600.0


class TableVacuum:
    """Vacuums tables in turn."""

    def __init__(
        self, tables: TableStore, of: Iterable[TableSpec], say: Callable[[str], None], *, every_s: float = _EVERY_S
    ) -> None:
        """``every_s``: the time between two vacuums of one table, above 0."""
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
        try:
            self._tables.vacuum(table)
        except (PySparkException, Py4JError, RackwiseError) as error:
            if table.name not in self._reported:
                self._reported.add(table.name)
                self._say(
                    f"{table.name} cannot be compacted, so its number of files grows: {str(error).splitlines()[0]}"
                )

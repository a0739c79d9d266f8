"""Keeps tables small while ingest runs: what changes left behind goes, table after table, so that no batch waits long.

That it fails, on a disk that is full or for want of a right, is reported; ingest goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from agent.errors import RackwiseError
from pipeline.schemas.table import Table
from pipeline.tables import Tables

_EVERY_S = 600.0


class Tidying:
    """Takes turns at the tables."""

    def __init__(
        self, tables: Tables, of: Iterable[Table], say: Callable[[str], None], *, every_s: float = _EVERY_S
    ) -> None:
        """``every_s``: how often each of them has its turn."""
        self._tables = tables
        self._of = tuple(of)
        self._say = say
        self._pause_s = every_s / len(self._of)
        self._next = 0
        self._until = time.monotonic() + self._pause_s
        self._told: set[str] = set()

    def take_turn(self) -> None:
        """The next table, when it is time."""
        now = time.monotonic()
        if now >= self._until:
            self._until = now + self._pause_s
            self._tidy(self._of[self._next])
            self._next = (self._next + 1) % len(self._of)

    def all(self) -> None:
        """Every table, now."""
        for table in self._of:
            self._tidy(table)

    def _tidy(self, table: Table) -> None:
        try:
            self._tables.tidy(table)
        except (PySparkException, Py4JError, RackwiseError) as error:
            if table.name not in self._told:
                self._told.add(table.name)
                self._say(
                    f"{table.name} cannot be compacted, so its number of files grows: {str(error).splitlines()[0]}"
                )

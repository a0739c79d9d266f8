"""Keeps silver and gold up with bronze: after each batch, what it touched is worked out again.

A batch counts as done only when its looks are in silver and gold, so whatever dies in between comes again, and looks
that are worked out twice give the same rows. Histories (warm-ups, restore rates, rebalances, drift) change slowly and
take as long as all the rest, so not every batch works them out; whose they are is written down until they stand.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from pipeline.files import Files
from pipeline.jobs.refresh import LookKey, RefreshSettings, catch_up, refresh
from pipeline.stream.ingest import Following
from pipeline.stream.owed import Owed
from pipeline.tables import Tables

OUTCOMES_EVERY_MS = 300_000
"""Outcomes are looked at so often as well, by the time of the looks: what is measured after an act comes after it."""


class Live:
    """Follows the streams; one refresh at a time."""

    def __init__(
        self, tables: Tables, settings: RefreshSettings, say: Callable[[str], None], *, histories_every_ms: int
    ) -> None:
        self._tables = tables
        self._settings = settings
        self._say = say
        self._owed = Owed(Files(tables.spark), f"{tables.root}/_owed")
        self._histories_every_s = histories_every_ms / 1_000
        self._histories_at = time.monotonic()
        self._lock = threading.Lock()
        # What was touched before a restart is not known, so outcomes are looked at once in any case.
        self._acted = True
        self._outcomes_ms = 0
        self._told: set[str] = set()

    def following(self) -> Following:
        """Who is to be told what."""
        return Following(telemetry=self._on_telemetry, acted=self._on_acted)

    def catch_up(self) -> None:
        """Work out the histories that are owed."""
        with self._lock:
            catch_up(self._tables, self._owed.hours)
            self._owed.settle()

    def _on_acted(self, _rows: DataFrame) -> None:
        self._acted = True

    def _on_telemetry(self, rows: DataFrame) -> None:
        looks = [LookKey(*row) for row in rows.select("cluster", "look", "taken_ms").distinct().collect()]
        newest_ms = max(look.taken_ms for look in looks)
        with self._lock:
            acted = self._acted or abs(newest_ms - self._outcomes_ms) >= OUTCOMES_EVERY_MS
            self._acted = False
            histories = time.monotonic() - self._histories_at >= self._histories_every_s
            try:
                done = refresh(
                    self._tables,
                    looks,
                    settings=self._settings,
                    acted=acted,
                    histories=histories,
                    owed=self._owed.hours,
                )
            except BaseException:
                self._acted = self._acted or acted
                raise
            if histories:
                self._owed.settle()
                self._histories_at = time.monotonic()
            else:
                self._owed.add(done.hours)
            if acted:
                self._outcomes_ms = newest_ms
        self._say(f"gold: {done.looks} looks and {len(done.hours)} hours worked out in {done.seconds:.1f} s")
        for message in done.messages:
            if message not in self._told:
                self._told.add(message)
                self._say(f"gold: {message}")

"""Keeps silver and gold up with bronze: after each batch, what it touched is worked out again.

A batch counts as done only when its looks are in silver and gold, so whatever dies in between comes again, and looks
that are worked out twice give the same rows. Histories (warm-ups, restore rates, rebalances, drift) and outcomes change
slowly and take as long as all the rest, so not every batch works them out; whose they are is written down until they
stand.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from agent.errors import RackwiseError
from agent.values.words import counted
from pipeline.files import HadoopFiles
from pipeline.jobs.incremental import IncrementalSums
from pipeline.jobs.refresh import LookKey, RefreshSettings, catch_up, refresh
from pipeline.session import is_one_process
from pipeline.stream.ingest import Following
from pipeline.stream.pending_hours import PendingHours
from pipeline.tables import TableStore


class LiveRefresh:
    """Follows the telemetry stream, whose batches come one after the other."""

    def __init__(
        self,
        tables: TableStore,
        settings: RefreshSettings,
        say: Callable[[str], None],
        *,
        histories_every_ms: int,
        publish: Callable[[], str] | None = None,
    ) -> None:
        """``publish`` gives away what was learned, after the first batch and whenever histories stand anew."""
        self._tables = tables
        self._settings = settings
        self._say = say
        self._pending = PendingHours(HadoopFiles(tables.spark), f"{tables.root}/_owed")
        self._histories_every_s = histories_every_ms / 1_000
        self._histories_at = time.monotonic()
        # What a lost executor held cannot be made again.
        self._incremental = IncrementalSums() if is_one_process(tables.spark) else None
        self._told: set[str] = set()
        self._publish = publish
        self._has_published = False
        self._is_first = True
        """No batch was worked out yet. Outcomes come with the first: where there are none, nothing seems proposed."""

    def following(self) -> Following:
        """Which follower gets what."""
        return Following(telemetry=self._on_telemetry)

    def catch_up(self) -> None:
        """Work out what is owed, and outcomes."""
        catch_up(self._tables, self._pending.hours, self._settings)
        self._pending.settle()
        self._give_away()

    def _on_telemetry(self, rows: DataFrame) -> None:
        looks = [LookKey(*row) for row in rows.select("cluster", "look", "taken_ms").distinct().collect()]
        histories = time.monotonic() - self._histories_at >= self._histories_every_s
        done = refresh(
            self._tables,
            looks,
            settings=self._settings,
            histories=histories,
            outcomes=histories or self._is_first,
            pending=self._pending.hours,
            incremental=self._incremental,
        )
        self._is_first = False
        if histories:
            self._pending.settle()
            self._histories_at = time.monotonic()
        else:
            self._pending.add(done.hours)
        computed = f"{counted(done.looks, 'look')} and {counted(len(done.hours), 'hour')}"
        self._say(f"gold: {computed} computed in {done.seconds:.1f} s")
        for message in done.messages:
            if message not in self._told:
                self._told.add(message)
                self._say(f"gold: {message}")
        if histories or not self._has_published:
            self._give_away()

    def _give_away(self) -> None:
        """What cannot be given away now is reported, and given away the next time: tables are worth having without."""
        if self._publish is None:
            return
        try:
            self._say(f"weights: {self._publish()}")
        except RackwiseError as error:
            self._say(f"weights: {error}")
        else:
            self._has_published = True

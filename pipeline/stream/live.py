"""Live refresh: after each batch, the silver and gold that it touched are computed again.

A batch counts as done only when its looks are in silver and gold, so a batch that dies in between comes again, and
looks that are computed twice give the same rows. Histories (warm-ups, restore rates, rebalances, drift) and outcomes
change slowly and take as long as all the rest, so not every batch computes them: their hours are pending, in files
next to the tables, so that they survive a kill.

Invariant: an hour is written down as pending before the batch that touched it counts as done, and removed only when
its histories are in gold.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, Row

from agent.errors import RackwiseError
from agent.values.number_format import counted
from pipeline.files import StoredFiles
from pipeline.jobs.incremental import IncrementalSums, LookId
from pipeline.jobs.refresh import RefreshSettings, catch_up, refresh
from pipeline.jobs.touched_looks import LookKey, has_ended, look_keys, unseen_looks
from pipeline.jobs.work import ClusterHour
from pipeline.tables import TableStore
from pipeline.transforms.large_looks import data_bytes
from pipeline.transforms.spans import LONGEST_MS

_MOST_REPORTED = 1_000
"""Messages that are remembered, so as not to be written again with each batch."""


class _Arrived(NamedTuple):
    """A look of which events came."""

    look: LookKey
    bytes: int | None
    """Data of these events; None where they came to another process."""

    def with_more(self, later: _Arrived) -> _Arrived:
        """The look, of which more events came later."""
        look = self.look._replace(
            carries=self.look.carries or later.look.carries, observed=self.look.observed or later.look.observed
        )
        return _Arrived(look, None if self.bytes is None or later.bytes is None else self.bytes + later.bytes)


_Looks = dict[tuple[str, str, int], _Arrived]
"""By cluster, look and the time when it began."""


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
        """``publish`` writes the weights, after the first batch and each time that histories were computed."""
        self._tables = tables
        self._settings = settings
        self._say = say
        self._pending = PendingHours(StoredFiles(tables.spark), f"{tables.root}/_owed")
        self._histories_every_s = histories_every_ms / 1_000
        self._histories_at = time.monotonic()
        self._incremental = IncrementalSums()
        self._reported: set[str] = set()
        self._publish = publish
        self._has_published = False
        self._put_off: _Looks = {}
        self._is_first = True
        """No batch was worked out yet. Outcomes come with the first: where there are none, nothing seems proposed."""

    def catch_up(self) -> None:
        """Work out what is owed, looks that were put off, and outcomes."""
        if self._put_off:
            self._compute(self._put_off, histories=False)
        catch_up(self._tables, self._pending.hours, self._settings)
        self._pending.settle()
        self._give_away()

    def on_telemetry(self, rows: DataFrame, /, *, more: bool) -> Mapping[str, int | None]:
        """Compute again the silver and gold of the looks of these rows of bronze.telemetry; a `BatchFollower`.

        A batch may end in the middle of a look: where ``more`` records wait, such a look is put off to the next batch.
        """
        found = look_keys(rows, data_bytes(), has_ended()).collect()
        looks, put_off = self._arrived(found, more=more)
        histories = bool(looks) and time.monotonic() - self._histories_at >= self._histories_every_s
        written = self._compute(looks, histories=histories) if looks else {}
        self._put_off = put_off
        return written

    def _arrived(self, found: Sequence[Row], *, more: bool) -> tuple[_Looks, _Looks]:
        """The looks to compute, and those that are put off. None waits twice: what is missing may never come."""
        looks, put_off = dict(self._put_off), _Looks()
        for row in found:
            key = (row["cluster"], row["look"], row["taken_ms"])
            came = _Arrived(LookKey(*key, row["carries"], row["observed"]), row["bytes"])
            if key in looks:
                looks[key] = looks[key].with_more(came)
            else:
                (put_off if more and not row["ended"] else looks)[key] = came
        if self._is_first and found:
            # Those around the oldest look of the batch: one record with a time of long ago must not read all of bronze.
            first_ms = min(row["taken_ms"] for row in found)
            for look in unseen_looks(self._tables, first_ms - LONGEST_MS, first_ms + LONGEST_MS):
                if look[:3] not in put_off:
                    looks.setdefault(look[:3], _Arrived(look, None))
        return looks, put_off

    def _compute(self, looks: _Looks, *, histories: bool) -> Mapping[str, int | None]:
        sizes = {LookId(*key[:2]): one.bytes for key, one in looks.items()}
        known = {look: size for look, size in sizes.items() if size is not None}
        done = refresh(
            self._tables,
            [one.look for one in looks.values()],
            settings=self._settings,
            histories=histories,
            outcomes=histories or self._is_first,
            pending=self._pending.hours,
            incremental=self._incremental,
            look_bytes=known if len(known) == len(sizes) else None,
        )
        self._is_first = False
        if histories:
            self._pending.settle()
            self._histories_at = time.monotonic()
        else:
            self._pending.add(done.hours)
        computed = f"{counted(done.looks, 'look')} and {counted(len(done.hours), 'hour')}"
        self._say(f"gold: {computed} computed in {done.seconds:.1f} s")
        if len(self._reported) > _MOST_REPORTED:
            self._reported.clear()  # problems of looks have their ids: in years they would be without end
        for message in done.messages:
            if message not in self._reported:
                self._reported.add(message)
                self._say(f"gold: {message}")
        if histories or not self._has_published:
            self._give_away()
        return done.rows

    def _give_away(self) -> None:
        """A failure to publish is reported and publishing tried again the next time; the tables are written anyway."""
        if self._publish is None:
            return
        try:
            self._say(f"weights: {self._publish()}")
        except RackwiseError as error:
            self._say(f"weights: {error}")
        else:
            self._has_published = True


class PendingHours:
    """The hours in the folder ``path``, a file for each batch that brought new ones."""

    def __init__(self, files: StoredFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._names = [name for name in files.names(path) if name.endswith(".json")]
        self.hours: frozenset[ClusterHour] = frozenset(hour for name in self._names for hour in self._read(name))

    def add(self, hours: Iterable[ClusterHour]) -> None:
        """These as well."""
        new = sorted(set(hours) - self.hours)
        if not new:
            return
        name = f"{uuid.uuid4().hex}.json"
        self._files.write(f"{self._path}/{name}", json.dumps(new))
        self._names.append(name)
        self.hours |= set(new)

    def settle(self) -> None:
        """None of them any more."""
        self.hours = frozenset()
        while self._names:
            self._files.delete(f"{self._path}/{self._names[-1]}")
            self._names.pop()

    def _read(self, name: str) -> list[ClusterHour]:
        text = self._files.read(f"{self._path}/{name}")
        try:
            return [ClusterHour(str(cluster), int(hour_ms)) for cluster, hour_ms in json.loads(text or "[]")]
        except (ValueError, TypeError) as error:
            raise RackwiseError(
                f"{self._path}/{name} cannot be read",
                why=f"it should list the hours whose histories are not computed yet: {error!r}",
                todo="Delete it, and compute everything again with: rackwise spark refresh",
            ) from error

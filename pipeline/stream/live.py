"""Live refresh: after each batch, the silver and gold that it touched are computed again.

A batch counts as done only when its looks are in silver and gold, so a batch that dies in between comes again, and
looks that are computed twice give the same rows. Histories (warm-ups, restore rates, rebalances, drift) and outcomes
change slowly and take as long as all the rest, so not every batch computes them: their hours are pending. So is a look
of which the rest comes with the next batch. Both lie in files next to the tables, so that they survive a kill.

Invariant: an hour or a look is written down as pending before the batch that left it out counts as done, and removed
only when its histories, or its rows, are in gold.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from pyspark.sql import DataFrame, Row

from agent.errors import RackwiseError
from agent.values.number_format import counted
from pipeline.files import StoredFiles
from pipeline.jobs.incremental import IncrementalSums, LookId
from pipeline.jobs.refresh import RefreshSettings, catch_up, refresh
from pipeline.jobs.touched_looks import LookKey, has_ended, look_keys
from pipeline.jobs.work import ClusterHour
from pipeline.tables import TableStore
from pipeline.transforms.large_looks import data_bytes

Pending = TypeVar("Pending", bound=Hashable)
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
        files = StoredFiles(tables.spark)
        self._pending = PendingFiles(
            files, f"{tables.root}/_owed", _hour_of, "the hours whose histories are not computed yet"
        )
        self._pending_looks = PendingFiles(
            files, f"{tables.root}/_put_off", _look_of, "the looks of which the next batch has the rest"
        )
        self._histories_every_s = histories_every_ms / 1_000
        self._histories_at = time.monotonic()
        self._incremental = IncrementalSums()
        self._reported: set[str] = set()
        self._publish = publish
        self._has_published = False
        self._put_off: _Looks = {look[:3]: _Arrived(look, None) for look in self._pending_looks.every}
        self._is_first = True
        """No batch was worked out yet. Outcomes come with the first: where there are none, nothing seems proposed."""

    def catch_up(self) -> None:
        """Work out what is owed, looks that were put off, and outcomes."""
        if self._put_off:
            self._compute(self._put_off, histories=False)
            self._put_off_until_next({})
        catch_up(self._tables, self._pending.every, self._settings)
        self._pending.settle()
        self._give_away()

    def on_telemetry(self, rows: DataFrame, /, *, more: Callable[[], bool]) -> Mapping[str, int | None]:
        """Compute again the silver and gold of the looks of these rows of bronze.telemetry; a `BatchFollower`."""
        looks, put_off = self._arrived(look_keys(rows, data_bytes(), has_ended()).collect(), more)
        histories = bool(looks) and time.monotonic() - self._histories_at >= self._histories_every_s
        written = self._compute(looks, histories=histories) if looks else {}
        self._put_off_until_next(put_off)
        return written

    def _put_off_until_next(self, looks: _Looks) -> None:
        """Only when those put off before are in gold: a batch that dies comes again, and with it its own."""
        self._put_off = looks
        self._pending_looks.settle()
        self._pending_looks.add(one.look for one in looks.values())

    def _arrived(self, found: Sequence[Row], more: Callable[[], bool]) -> tuple[_Looks, _Looks]:
        """The looks to compute, and those that are put off, to the next batch alone: what they lack may never come."""
        looks, begun = dict(self._put_off), _Looks()
        for row in found:
            key = (row["cluster"], row["look"], row["taken_ms"])
            came = _Arrived(LookKey(*key, row["carries"], row["observed"]), row["bytes"])
            if key in looks:
                looks[key] = looks[key].with_more(came)
            else:
                (looks if row["ended"] else begun)[key] = came
        return (looks, begun) if begun and more() else (looks | begun, _Looks())

    def _compute(self, looks: _Looks, *, histories: bool) -> Mapping[str, int | None]:
        sizes = {LookId(*key[:2]): one.bytes for key, one in looks.items()}
        known = {look: size for look, size in sizes.items() if size is not None}
        done = refresh(
            self._tables,
            [one.look for one in looks.values()],
            settings=self._settings,
            histories=histories,
            outcomes=histories or self._is_first,
            pending=self._pending.every,
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


class PendingFiles(Generic[Pending]):
    """What later batches are to compute, in the folder ``path``: a file for each batch that left something out.

    ``of`` makes one of its JSON, and raises ValueError or TypeError for what is none; ``what`` names them in errors.
    """

    def __init__(self, files: StoredFiles, path: str, of: Callable[..., Pending], what: str) -> None:
        self._files = files
        self._path = path
        self._of = of
        self._what = what
        self._names = [name for name in files.names(path) if name.endswith(".json")]
        self.every: frozenset[Pending] = frozenset(one for name in self._names for one in self._read(name))

    def add(self, more: Iterable[Pending]) -> None:
        """These as well."""
        new = set(more) - self.every
        if not new:
            return
        name = f"{uuid.uuid4().hex}.json"
        self._files.write(f"{self._path}/{name}", json.dumps(sorted(new)))
        self._names.append(name)
        self.every |= new

    def settle(self) -> None:
        """None of them any more."""
        self.every = frozenset()
        while self._names:
            self._files.delete(f"{self._path}/{self._names[-1]}")
            self._names.pop()

    def _read(self, name: str) -> list[Pending]:
        text = self._files.read(f"{self._path}/{name}")
        try:
            return [self._of(*row) for row in json.loads(text or "[]")]
        except (ValueError, TypeError) as error:
            raise RackwiseError(
                f"{self._path}/{name} cannot be read",
                why=f"it should list {self._what}: {error!r}",
                todo="Delete it, and compute everything again with: rackwise spark refresh",
            ) from error


def _hour_of(cluster: object, hour_ms: str | int) -> ClusterHour:
    return ClusterHour(str(cluster), int(hour_ms))


def _look_of(cluster: object, look: object, taken_ms: str | int, carries: object, observed: object) -> LookKey:
    return LookKey(str(cluster), str(look), int(taken_ms), bool(carries), bool(observed))

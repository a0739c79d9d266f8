"""A refresh in progress: tables, hours, rows that are held, the threads of its Spark jobs, and its writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import NamedTuple, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.local_relation import local_relation
from pipeline.schemas import gold
from pipeline.schemas.table import LONG, STRING, TableSpec, column, columns, day_of
from pipeline.tables import TableStore, Where, conformed, named
from pipeline.transforms.spans import CONTEXT_MS, HOUR_MS, LAST_MS

_THREADS = 4
_SELDOM = frozenset(table.name for table in (gold.RESTORE_RATES, gold.REBALANCES, gold.RACK_DRIFT, gold.OUTCOMES))
"""Tables that few looks change: to see that takes a fraction of what writing the same again does."""
_HOURS = columns(column("cluster", STRING, "Cluster id."), column("hour_ms", LONG, "Begin of the hour."))


Result = TypeVar("Result")


class ClusterHour(NamedTuple):
    """A UTC hour of a cluster."""

    cluster: str
    hour_ms: int


class TableWrite(NamedTuple):
    """Rows that take the place of a table's."""

    table: TableSpec
    rows: DataFrame
    where: Sequence[Where] = ()
    """What they take the place of; everything when empty."""
    number: int | None = None
    """How many they are; None when that is not known: counting them is as much work as writing them."""
    fresh: bool = False
    """Whether it is known that ``where`` names nothing that is there."""


class SparkJobs(ThreadPoolExecutor):
    """Threads for Spark jobs: most of a small job is waiting for plans and files, and leaves a core idle.

    Left as a context, it waits for all jobs and raises the error of the first one that was started and failed.
    """

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(_THREADS)
        self._spark = spark
        self._started: list[Future[None]] = []

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.shutdown(cancel_futures=error is not None)
        if error is None:
            self.wait()

    def submit(self, job: Callable[..., Result], /, *args: object, **named: object) -> Future[Result]:
        """As the base class does, with the Spark properties of the calling thread; of a future the job gets the result.

        Jobs begin in order, so one that waits for an earlier one never keeps that from running.
        """

        def given(value: object) -> object:
            return value.result() if isinstance(value, Future) else value

        def with_results() -> Result:
            return job(*map(given, args), **{name: given(value) for name, value in named.items()})

        return super().submit(inheritable_thread_target(self._spark)(with_results))

    def start(self, job: Callable[..., None], *args: object) -> Future[None]:
        """Submit a job without a result, for which `wait` waits."""
        self._started.append(self.submit(job, *args))
        return self._started[-1]

    def wait(self) -> None:
        """Wait for the jobs that were started. Raises the error of the first one that failed."""
        for one in self._started:
            one.result()


class RefreshWork:
    """One refresh. ``hours`` are those that are worked out again, sorted; None for all."""

    def __init__(self, tables: TableStore) -> None:
        self.tables = tables
        self.spark = tables.spark
        self.hours: list[ClusterHour] | None = None
        self.rows: dict[str, int | None] = {}
        """Table that was written -> how many rows, where they were counted."""
        self.messages: set[str] = set()
        self.rows_of_look = 0
        """About how many rows of partitions and reads a look has; 0 when that is not known."""

    def beside(self, hours: Iterable[ClusterHour] | None) -> RefreshWork:
        """Work on other hours with the same counts and messages."""
        other = RefreshWork(self.tables)
        other.hours = None if hours is None else sorted(hours)
        other.rows, other.messages = self.rows, self.messages
        return other

    def hold(self, frame: DataFrame) -> DataFrame:
        """Work it out now, and keep it as long as it is referred to.

        A checkpoint forgets how the rows came about. Merely cached, every query on top of it would be planned with all
        that lies below once more, which takes longer than the work itself. It is in files (`pipeline.held_rows`): what
        executors alone hold is gone with one of them, and could not be made again.
        """
        return frame.checkpoint(eager=True)

    def held(self, make: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
        """What makes the same rows, and holds them."""
        return lambda *of, **named: self.hold(make(*of, **named))

    def context(self, table: TableSpec, reach_ms: int = CONTEXT_MS, *, to_the_end: bool = False) -> DataFrame:
        """Silver rows that the hours need, so far before and after them.

        ``to_the_end``: also all later ones, for episodes that began in them.
        """
        rows = self.tables.read(table)
        if self.hours is None:
            return rows
        first, last = self.hours_span()
        until = None if to_the_end else last + reach_ms
        return between(rows, first - reach_ms, until).where(F.col("cluster").isin(self.clusters()))

    def hours_span(self) -> tuple[int, int]:
        """From when to when the hours are, when they are not all."""
        hours = self.hours or []
        return min(hour.hour_ms for hour in hours), max(hour.hour_ms for hour in hours) + HOUR_MS

    def clusters(self) -> list[str]:
        """Clusters of the hours, when they are not all."""
        return sorted({hour.cluster for hour in self.hours or []})

    def of_hours(self, rows: DataFrame, how: str = "left_semi") -> DataFrame:
        """Those rows whose cluster and hour_ms are of these hours; with ``left_anti`` those that are not."""
        if self.hours is None:
            return rows
        hours = local_relation(self.spark, self.hours, _HOURS)
        return rows.join(F.broadcast(hours), on=["cluster", "hour_ms"], how=how)

    def where_hours(self) -> tuple[Where, ...]:
        """The places of the hours' rows, by cluster; empty for all hours."""
        by_cluster: dict[str, list[int]] = {}
        for cluster, hour_ms in self.hours or []:
            by_cluster.setdefault(cluster, []).append(hour_ms)
        return tuple(
            {"day": sorted({day_of(hour_ms) for hour_ms in hours}), "cluster": [cluster], "hour_ms": hours}
            for cluster, hours in by_cluster.items()
        )

    def write(self, writes: Iterable[TableWrite]) -> None:
        """All tables at once: most of a small write is waiting for plans and files."""
        with SparkJobs(self.spark) as jobs:
            for write in writes:
                jobs.start(self.write_one, write)

    def write_one(self, write: TableWrite) -> None:
        """One table; nothing is written where there are no rows and no table, or where history stays as it is."""
        is_there = self.tables.exists(write.table)
        if is_there and write.table.name in _SELDOM:
            write = write._replace(rows=self.hold(write.rows))
            if self._is_written(write):
                return
        if is_there or write.number is not None:
            self._replace(write)
            return
        rows = self.hold(write.rows)
        number = rows.count()
        if number:
            self._replace(write._replace(rows=rows, number=number))

    def _is_written(self, write: TableWrite) -> bool:
        """Whether the table has exactly these rows at their place."""
        names = write.table.schema.names
        there = self.tables.read(write.table)
        if condition := named(write.where):
            there = there.where(condition)
        new = conformed(write.table, write.rows).select(*names, F.lit(1).alias("_times"))
        both = new.unionByName(there.select(*names, F.lit(-1).alias("_times")))
        return both.groupBy(*names).agg(F.sum("_times").alias("_times")).where("_times <> 0").isEmpty()

    def _replace(self, write: TableWrite) -> None:
        self.tables.replace_where(write.table, write.rows, *write.where, fresh=write.fresh)
        self.rows[write.table.name] = write.number


def between(rows: DataFrame, first_ms: int, last_ms: int | None) -> DataFrame:
    """Rows of silver of that time, None: to its end; its days are named too, because tables are partitioned by them."""
    rows = rows.where((F.col("day") >= day_of(first_ms)) & (F.col("taken_ms") >= first_ms))
    if last_ms is None:
        return rows
    # No calendar has what comes after the last day, and an event may have its time.
    return rows.where((F.col("day") <= day_of(min(last_ms, LAST_MS))) & (F.col("taken_ms") <= last_ms))

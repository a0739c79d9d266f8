"""Stream of one topic into its bronze table, batch by batch, each record exactly once.

A batch is: records from Kafka, parsed once and held; those that can be read to the topic's table, the others to
quarantine; then the follower gets what was touched; then Spark commits the batch. Whatever dies in between, the
same batch comes again with the same number and the same offsets, and tables leave out a number that they have.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.errors import RackwiseError
from pipeline.errors import data_lost, of_spark
from pipeline.files import StoredFiles, located
from pipeline.kafka import TopicClient, TopicIdentity
from pipeline.schemas.bronze import QUARANTINE
from pipeline.schemas.table import TableSpec
from pipeline.stream.checkpoint import OffsetSpan, StreamCheckpoint, StreamIdentity, TopicSources
from pipeline.stream.pace import BatchPace
from pipeline.stream.progress import BatchReport, TopicLag, lag_of
from pipeline.tables import TableStore, WriterBatch
from pipeline.transforms.parse import accepted, quarantined

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_ROWS_OF_A_FILE = 50_000
_IN_ONE_GO_MS = 3_000
"""Records that an agent writes of a look come closer together, as far as the clocks of brokers and Spark agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """How topics are read."""

    options: Mapping[str, str]
    """Of Spark's Kafka source: the connection."""
    max_records: int
    """Most records of a batch."""
    interval_ms: int
    """Least time between the beginnings of two batches."""
    late_after_ms: int
    """How long an hour stays open after its end."""
    busy_share: float = 1.0
    """Share of the time that batches take at most where they are long (`BatchPace`)."""
    longest_s: float = 0.0
    """Most seconds from the beginning of such a batch to that of the next, where there is a pause."""
    accept_data_loss: bool = False
    """Whether to go on over records that are gone, and write the hole down."""


class BatchFollower(Protocol):
    """Does what follows from the accepted rows of a batch, before the batch counts as done."""

    def __call__(self, rows: DataFrame, /, *, more: Callable[[], bool]) -> Mapping[str, int | None]:
        """What it wrote: table -> rows, None where they were not counted. ``more``: whether the next batch has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIngest:
    """What becomes of a topic."""

    name: str
    topic: str
    table: TableSpec
    parse: Callable[[DataFrame, TopicIdentity, OffsetSpan], DataFrame]
    """Rows of the table, the raw record and the reason, of records."""
    event_ms: Callable[[DataFrame], DataFrame] | None = None
    """Adds ``event_time``, which moves the watermark; None where nothing can be late."""
    follow: BatchFollower | None = None


class OffsetGap(NamedTuple):
    """Offsets that were deleted before they were read."""

    partition: int
    first: int
    end: int
    """The offset after the last."""


class _BatchFailed(Exception):  # noqa: N818 never raised to a caller
    """Ends the query of a batch that failed; why is kept in the stream."""


class TopicStream:
    """One topic's query. Make it, `check` it, `start` it; once it has ended, `problem` is the cause."""

    def __init__(
        self,
        plan: TopicIngest,
        reading: SourceSettings,
        *,
        tables: TableStore,
        brokers: TopicClient,
        checkpoint: str,
        say: Callable[[str], None],
        on_batch: Callable[[BatchReport], None],
    ) -> None:
        """``on_batch`` is given a report of each batch, once it is written."""
        self.plan = plan
        self._reading = reading
        self._tables = tables
        self._brokers = brokers
        files = StoredFiles(tables.spark)
        self._checkpoint = StreamCheckpoint(files, checkpoint)
        self._sources = TopicSources(files, sources_of(tables))
        self._say = say
        self._on_batch = on_batch
        self._topic: TopicIdentity | None = None
        self._writer = ""
        self._query: StreamingQuery | None = None
        self._failure: RackwiseError | None = None
        self._pace: BatchPace | None = None
        self._is_over = threading.Event()
        """Set to end a pause."""
        self._is_pausing = False
        self._waited_s = 0.0
        """Seconds of the batch in which it waited for more records."""
        self._position: dict[int, int] = {}
        self._newest_ms: dict[int, int] = {}
        """Partition -> when its newest record that was read was written, as far as this process read any."""
        self.records = 0
        """Records since the start, quarantined ones included."""

    def check(self, expected_cluster: str | None = None) -> bool:
        """Whether the topic is there, and fits the checkpoint and the tables.

        Raises what `TopicClient.topic` raises, BadInput and WrongCluster for a checkpoint or tables of something
        else, and DataLost when records are gone.
        """
        topic = self._brokers.topic(self.plan.topic, expected_cluster)
        if topic is None:
            return False
        tables = self._tables
        identity = StreamIdentity(
            self.plan.name, topic.name, topic.id, topic.cluster, located(tables.root), tables.format
        )
        for table in (self.plan.table, QUARANTINE):
            tables.exists(table)  # refuses one that a newer rackwise made
        self._writer = self._checkpoint.claim(identity, lambda: self._has_rows(topic))
        self._sources.add(topic.name, topic.cluster)
        self._topic = topic
        position = self._position = self._checkpoint.position()
        if position and not self._reading.accept_data_loss:
            gone = _holes(position, self._brokers.first_offsets(topic))
            if gone:
                raise data_lost(topic.name, "; ".join(map(_text, gone)))
        return True

    def start(self, *, once: bool) -> None:
        """Begin to read; with ``once`` only what is there now."""
        reading = self._reading
        source = (
            self._tables.spark.readStream.format("kafka")
            .options(**reading.options)
            .option("subscribe", self.plan.topic)
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .option("kafka.isolation.level", "read_committed")
            .option("failOnDataLoss", str(not reading.accept_data_loss).lower())
            .option("maxOffsetsPerTrigger", reading.max_records)
            .option("groupIdPrefix", f"rackwise-ingest-{self.plan.name}")
        )
        records = source.load()
        if self.plan.event_ms is not None:
            delay = f"{reading.late_after_ms} milliseconds"
            records = self.plan.event_ms(records).withWatermark("event_time", delay)
        writer = (
            records.writeStream.queryName(self.plan.name)
            .option("checkpointLocation", located(self._checkpoint.path))
            .foreachBatch(self._batch)
        )
        trigger = {"availableNow": True} if once else {"processingTime": f"{reading.interval_ms} milliseconds"}
        self._failure = None
        self._pace = None if once else BatchPace(reading.busy_share, reading.longest_s)
        self._is_over.clear()
        self._query = writer.trigger(**trigger).start()

    def lag(self) -> TopicLag | None:
        """How far the tables are behind the topic now; None while the brokers do not say."""
        return self._lag_behind(self._position)

    def _lag_behind(self, position: Mapping[int, int]) -> TopicLag | None:
        if self._topic is None:
            return None
        try:
            end = self._brokers.end_offsets(self._topic)
        except RackwiseError:
            return None
        return lag_of(position, end, self._newest_ms, _now_ms())

    def is_running(self) -> bool:
        """Whether it still runs."""
        if self._query is None or self._query.isActive:
            return self._query is not None
        error = self._query.exception()
        if error is not None:
            self._failure = self._failure or of_spark(self.plan.topic, str(error))
        return False

    @property
    def problem(self) -> RackwiseError | None:
        """Why it ended; None without a failure."""
        return self._failure

    def stop(self) -> None:
        """End it now; a batch that is not done will come again."""
        self._is_over.set()
        if self._query is not None and self._query.isActive:
            self._query.stop()

    @property
    def is_in_batch(self) -> bool:
        """Whether it is in the middle of a batch."""
        query = self._query
        return not self._is_pausing and query is not None and query.isActive and bool(query.status["isTriggerActive"])

    def _batch(self, records: DataFrame, number: int) -> None:
        try:
            self._take(records, number)
        except RackwiseError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 kept whole here: Spark gives only its text on
            self._failure = of_spark(self.plan.topic, f"{type(error).__name__}: {error}")
            self._failure.__cause__ = error
        else:
            return
        # Of a stopped query Spark compares the text with a pattern, by recursion: a long one overflows the stack.
        raise _BatchFailed from None

    def _take(self, records: DataFrame, number: int) -> None:
        topic = self._topic
        if topic is None:
            raise RackwiseError("A stream was started before it was checked")
        began, self._waited_s = time.monotonic(), 0.0
        span = self._checkpoint.span(number)
        # Read again by each table that follows: in memory, a batch of many looks would be most of the heap.
        parsed = self.plan.parse(records, topic, span).persist(StorageLevel.DISK_ONLY)
        try:
            counts = _counts(parsed)
            holes = self._holes(topic, span, counts)
            rows = self._write(parsed, counts, holes, span, WriterBatch(self._writer, number))
        finally:
            parsed.unpersist()
        good, bad = _sums(counts)
        self.records += good + bad
        self._position = span.end
        self._newest_ms |= {partition: one.newest_ms for partition, one in counts.items()}
        report = BatchReport(
            stream=self.plan.name,
            topic=self.plan.topic,
            number=number,
            records=good + bad,
            quarantined=bad,
            gap_offsets=sum(hole.end - hole.first for hole in holes),
            rows=rows,
            seconds=round(time.monotonic() - began, 3),
            written_ms=_now_ms(),
            lag=self.lag(),
            since_start=self.records,
        )
        self._on_batch(report)
        # One that only put looks off is short, and tells nothing of the others.
        puts_off = self.plan.follow is not None and rows.keys() <= {self.plan.table.name, QUARANTINE.name}
        if self._pace is not None and not puts_off and not self._is_full(span):
            self._pause(self._pace.pause_s(report.seconds - self._waited_s))

    def _is_full(self, span: OffsetSpan) -> bool:
        """Whether the batch has as many records as a batch may have: then more of them wait."""
        most = self._reading.max_records - len(span.end)  # Spark divides among partitions, and rounds down
        return span.offsets >= most

    def _pause(self, seconds: float) -> None:
        """Within the batch, whose rows are written: Spark begins the next one as soon as this one has ended."""
        if seconds <= 0.0:
            return
        self._say(f"{self.plan.name}: batches take long, so the next one begins in {seconds:.0f} s (spark.busy_share)")
        self._is_pausing = True
        self._is_over.wait(seconds)
        self._is_pausing = False

    def _write(
        self,
        parsed: DataFrame,
        counts: Mapping[int, _Counted],
        holes: list[OffsetGap],
        span: OffsetSpan,
        batch: WriterBatch,
    ) -> dict[str, int | None]:
        """Bronze, quarantine, and what follows from them: table -> rows written."""
        good, bad = _sums(counts)
        table, written = self.plan.table, dict[str, int | None]()
        if good:
            # Parsed and held already: a small batch is better in one file than written by two cores.
            self._tables.append(table, accepted(parsed, table).coalesce(1 + good // _ROWS_OF_A_FILE), batch)
            written[table.name] = good
        rest = self._quarantine(parsed, bad, holes, span)
        if rest is not None:
            self._tables.append(QUARANTINE, rest, batch)
            written[QUARANTINE.name] = bad + len(holes)
        if counts and self.plan.follow is not None:  # also without a good record: what was put off waits for no other
            newest_ms = max(one.newest_ms for one in counts.values())
            more = partial(self._has_more, span, newest_ms)
            written |= self.plan.follow(accepted(parsed, table), more=more)
        return written

    def _has_more(self, span: OffsetSpan, newest_ms: int) -> bool:
        """Whether records wait that this batch does not have; those right after its newest ones are waited for."""
        if self._is_behind(span.end):
            return True
        if self._pace is None:
            return False
        left_ms = newest_ms + _IN_ONE_GO_MS - _now_ms()
        self._waited_s = min(max(0, left_ms), _IN_ONE_GO_MS) / 1_000
        self._is_over.wait(self._waited_s)
        return self._is_behind(span.end)

    def _is_behind(self, position: Mapping[int, int]) -> bool:
        lag = self._lag_behind(position)
        return lag is not None and lag.records > 0

    def _holes(self, topic: TopicIdentity, span: OffsetSpan, counts: Mapping[int, _Counted]) -> list[OffsetGap]:
        """What is gone for certain between what was read before and the first record of this batch."""
        if not self._reading.accept_data_loss or not span.start:
            return []
        found = []
        for hole in _holes(span.start, self._brokers.first_offsets(topic)):
            first_read = counts[hole.partition].first if hole.partition in counts else span.end.get(hole.partition, 0)
            # What was still there when it was read is not lost, even if it was deleted since.
            end = min(hole.end, first_read)
            if end > hole.first:
                found.append(hole._replace(end=end))
        return found

    def _quarantine(self, parsed: DataFrame, bad: int, holes: list[OffsetGap], span: OffsetSpan) -> DataFrame | None:
        if not bad and not holes:
            return None
        if not holes:
            return quarantined(parsed)
        for hole in holes:
            self._say(f"{self.plan.name}: {_text(hole)}; recorded in quarantine")
        when = datetime.fromtimestamp(span.time_ms / 1_000, UTC)
        rows = [
            (self.plan.topic, hole.partition, hole.first, when, None, None, None, f"lost: {_text(hole)}", f"{when:%F}")
            for hole in holes
        ]
        lost = parsed.sparkSession.createDataFrame(rows, QUARANTINE.schema)
        return quarantined(parsed).unionByName(lost)

    def _has_rows(self, topic: TopicIdentity) -> bool:
        """Whether the tables have rows of the topic, as far as they are not known to be of other clusters alone."""
        clusters = self._sources.clusters(topic.name)
        if clusters and topic.cluster not in clusters:
            return False
        return any(
            not self._tables.read(table).where(F.col("topic") == self.plan.topic).isEmpty()
            for table in (self.plan.table, QUARANTINE)
        )


def sources_of(tables: TableStore) -> str:
    """The folder of `TopicSources` of these tables."""
    return f"{tables.root}/_sources"


class _Counted(NamedTuple):
    good: int
    bad: int
    first: int
    newest_ms: int


def _counts(parsed: DataFrame) -> dict[int, _Counted]:
    """Partition -> what came of it."""
    is_good = F.col("reason").isNull().cast("int")
    rows = parsed.groupBy("partition").agg(
        F.sum(is_good).alias("good"),
        F.sum(1 - is_good).alias("bad"),
        F.min("offset").alias("first"),
        F.unix_millis(F.max("kafka_time")).alias("newest_ms"),
    )
    return {
        row["partition"]: _Counted(row["good"], row["bad"], row["first"], row["newest_ms"]) for row in rows.collect()
    }


def _sums(counts: Mapping[int, _Counted]) -> tuple[int, int]:
    """Records that could be read, and those that could not."""
    return sum(one.good for one in counts.values()), sum(one.bad for one in counts.values())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _holes(position: Mapping[int, int], first: Mapping[int, int]) -> list[OffsetGap]:
    return [
        OffsetGap(partition, offset, first[partition])
        for partition, offset in sorted(position.items())
        if first.get(partition, offset) > offset
    ]


def _text(hole: OffsetGap) -> str:
    return f"partition {hole.partition}: offsets {hole.first} to {hole.end - 1} are missing"

"""Ingest: the topics into bronze, once or until it is stopped; a silent broker is retried.

Invariants: the telemetry topic must be there, the others may come later (no journal is written before mode execute);
brokers that fall silent are waited for, as long as patience lasts; what must not go on ends all with its sentence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.errors import ClusterUnreachable, RackwiseError
from agent.process import StopSignal
from pipeline.kafka import TopicClient, missing_topic
from pipeline.schemas import bronze
from pipeline.stream.pace import STOP_S
from pipeline.stream.progress import BatchReport, TopicLag
from pipeline.stream.topic import BatchFollower, SourceSettings, TopicIngest, TopicStream
from pipeline.stream.vacuum import TableVacuum
from pipeline.tables import TableStore
from pipeline.transforms import parse

TELEMETRY = "telemetry"
_LOOK_AGAIN_S = 30.0
_RETRY_S = 5.0
_STEADY_S = 120.0
"""After this time brokers are known to answer: deadlines are shorter."""
_LAG_EVERY_S = 15.0
_HEAD_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestTopics:
    """Names of the topics."""

    telemetry: str
    proposals: str
    journal: str


def plans(names: IngestTopics, on_telemetry: BatchFollower | None = None) -> tuple[TopicIngest, ...]:
    """The ingest of each topic; telemetry last, so that its refresh reads the others' new rows."""
    return (
        TopicIngest(
            name="proposals",
            topic=names.proposals,
            table=bronze.PROPOSALS,
            parse=lambda records, _topic, _span: parse.proposals(records),
        ),
        TopicIngest(
            name="journal",
            topic=names.journal,
            table=bronze.JOURNAL,
            parse=lambda records, topic, _span: parse.journal(records, topic.cluster),
        ),
        TopicIngest(
            name=TELEMETRY,
            topic=names.telemetry,
            table=bronze.TELEMETRY,
            parse=lambda records, _topic, span: parse.with_late(parse.telemetry(records), span.watermark_ms),
            event_ms=_event_time,
            follow=on_telemetry,
        ),
    )


class StreamRunner:
    """Runs the streams of some plans."""

    def __init__(
        self,
        streams: Sequence[TopicStream],
        *,
        expected_cluster: str | None,
        patience_ms: int,
        say: Callable[[str], None],
        vacuum: TableVacuum | None = None,
        on_lag: Callable[[str, TopicLag | None], None] | None = None,
    ) -> None:
        """``on_lag`` is given the lag of each stream that runs, by its name, every 15 s."""
        self._streams = streams
        self._on_lag = on_lag
        self._lag_at = 0.0
        self._vacuum = vacuum
        self._expected = expected_cluster
        self._patience_s = patience_ms / 1_000
        self._say = say
        self._has_run = False
        """Whether any stream ran: brokers that answered once are waited for, also where a topic was not there yet."""

    def run_once(self, stop: StopSignal) -> int:
        """Read what is there now, one topic after the other; the number of records. Raises the failure of a stream."""
        for stream in self._streams:
            if not self._is_there(stream) or stop.is_set():
                continue
            self._read_once(stream, stop)
        if self._vacuum is not None and not stop.is_set():
            self._vacuum.all()
        return sum(stream.records for stream in self._streams)

    def _read_once(self, stream: TopicStream, stop: StopSignal) -> None:
        stream.start(once=True)
        while stream.is_running():
            if stop.wait(0.2):
                self._end(stream)
        if stream.problem is not None and not stop.is_set():
            raise stream.problem
        if not stream.records:
            self._say(f"{stream.plan.name}: nothing new in {stream.plan.topic}")

    def run(self, stop: StopSignal) -> int:
        """Read until the stop signal; the number of records. Raises the failure of a stream."""
        waits = {stream.plan.name: _Wait() for stream in self._streams}
        try:
            while not stop.is_set():
                for stream in self._streams:
                    self._keep_up(stream, waits[stream.plan.name])
                self._measure_lags()
                if self._vacuum is not None:
                    self._vacuum.take_turn()
                stop.wait(0.5)
        finally:
            for stream in self._streams:
                self._end(stream)
        return sum(stream.records for stream in self._streams)

    def _keep_up(self, stream: TopicStream, wait: _Wait) -> None:
        """Start the stream when it does not run and its time has come; wait longer when no broker answers."""
        now = time.monotonic()
        if wait.is_running:
            if stream.is_running():
                if now - wait.started >= _STEADY_S:
                    wait.silent_since = None
                return
            wait.is_running = False
            self._bear(stream, wait, stream.problem or RackwiseError(f"Reading {stream.plan.topic} ended unexpectedly"))
        elif now >= wait.until:
            try:
                wait.is_running = self._is_there(stream)
            except ClusterUnreachable as error:
                if not self._has_run:
                    raise
                self._bear(stream, wait, error)
            else:
                wait.until = now + _LOOK_AGAIN_S
                if wait.is_running:
                    self._has_run = True
                    wait.started = now
                    stream.start(once=False)

    def _measure_lags(self) -> None:
        """Between two batches as well: a stream that is stuck in one would go by what was true before it."""
        if self._on_lag is None or time.monotonic() < self._lag_at:
            return
        self._lag_at = time.monotonic() + _LAG_EVERY_S
        for stream in self._streams:
            if stream.is_running():
                self._on_lag(stream.plan.name, stream.lag())

    def _bear(self, stream: TopicStream, wait: _Wait, problem: RackwiseError) -> None:
        """Be patient with brokers that do not answer; raise everything else."""
        now = time.monotonic()
        if not isinstance(problem, ClusterUnreachable):
            raise problem
        since = wait.silent_since = wait.silent_since or now
        if now - since >= self._patience_s:
            raise problem
        wait.until = now + _RETRY_S
        left = self._patience_s - (now - since)
        self._say(f"{stream.plan.name}: {problem.what}; retrying for {left:.0f} s more")

    def _is_there(self, stream: TopicStream) -> bool:
        if stream.check(self._expected):
            return True
        if stream.plan.name == TELEMETRY:
            raise missing_topic(stream.plan.topic)
        self._say(f"{stream.plan.name}: topic {stream.plan.topic} does not exist yet")
        return False

    def _end(self, stream: TopicStream) -> None:
        """Let a batch come to its end, not for long; then stop."""
        until = time.monotonic() + STOP_S
        while stream.is_in_batch and time.monotonic() < until:
            time.sleep(0.1)
        if stream.is_in_batch:
            self._say(f"{stream.plan.name}: a batch did not end within {STOP_S:.0f} s; the next start repeats it")
        stream.stop()


@dataclass(slots=True)
class _Wait:
    """How one stream is doing."""

    is_running: bool = False
    started: float = 0.0
    """By the monotonic clock."""
    until: float = 0.0
    """When it is looked for again, by the monotonic clock."""
    silent_since: float | None = None


def streams(
    made: Sequence[TopicIngest],
    reading: SourceSettings,
    *,
    tables: TableStore,
    brokers: TopicClient,
    checkpoints: str,
    say: Callable[[str], None],
    on_batch: Callable[[BatchReport], None],
) -> tuple[TopicStream, ...]:
    """A stream for each plan, each with a checkpoint of its own below that folder."""
    return tuple(
        TopicStream(
            plan,
            reading,
            tables=tables,
            brokers=brokers,
            checkpoint=f"{checkpoints}/{checkpoint_of(plan.name)}",
            say=say,
            on_batch=on_batch,
        )
        for plan in made
    )


def checkpoint_of(stream: str) -> str:
    """Folder of a stream's checkpoint, below that of all checkpoints."""
    return f"ingest-{stream}"


def _event_time(records: DataFrame) -> DataFrame:
    """When the look began, as far as known and not after now: one clock that runs ahead must not close hours."""
    # The agent writes it before data; only the head is looked at, because the whole is parsed once, elsewhere.
    head = F.substring(F.col("value").cast("string"), 1, _HEAD_CHARS)
    taken_ms = F.regexp_extract(head, r'"taken_ms":\s*(\d{1,14})[,}\s]', 1).try_cast("bigint")
    taken_at = F.timestamp_millis(F.greatest(taken_ms, F.lit(0)))
    return records.withColumn("event_time", F.least(taken_at, F.current_timestamp()))

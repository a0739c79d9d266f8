"""State of the streams, read from their checkpoints and tables alone: no broker is asked, and ingest need not run.

A stream is stalled when a batch that began is not written after a given time. Telemetry is also stalled when no batch
was written for that time: agents write looks all the time. Proposals and the journal may rest.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pyspark.sql import functions as F

from agent.values.number_format import counted, lasted
from pipeline.files import StoredFiles
from pipeline.schemas.bronze import JOURNAL, PROPOSALS, TELEMETRY
from pipeline.schemas.table import TableSpec
from pipeline.stream.checkpoint import StreamCheckpoint, TopicSources
from pipeline.stream.ingest import TELEMETRY as TELEMETRY_STREAM
from pipeline.stream.ingest import checkpoint_of
from pipeline.stream.topic import sources_of
from pipeline.tables import TableStore

_STREAMS: tuple[tuple[str, TableSpec], ...] = (
    (TELEMETRY_STREAM, TELEMETRY),
    ("proposals", PROPOSALS),
    ("journal", JOURNAL),
)


class StreamState(StrEnum):
    """What the checkpoint says about a stream."""

    BETWEEN_BATCHES = "between batches"
    IN_BATCH = "in a batch"
    STALLED = "stalled"
    NOT_STARTED = "not started"


class StreamStatus(NamedTuple):
    """A stream, as its checkpoint and its table have it. Times are epoch milliseconds."""

    stream: str
    state: StreamState
    topic: str | None = None
    cluster: str | None = None
    batch: int | None = None
    """The last batch that was written."""
    written_ms: int | None = None
    """When."""
    records: int | None = None
    """Offsets that it covers."""
    newest_ms: int | None = None
    """When the newest record in the table was written to the topic."""
    behind_s: float | None = None
    """How old that record is."""
    why: str = ""
    """Why it is stalled, or not started."""


def statuses(tables: TableStore, checkpoints: str, *, stalled_after_ms: int, now_ms: int) -> tuple[StreamStatus, ...]:
    """Every stream. Raises BadInput for a checkpoint or a table that cannot be read."""
    files = StoredFiles(tables.spark)
    sources = TopicSources(files, sources_of(tables))
    found = []
    for name, table in _STREAMS:
        checkpoint = StreamCheckpoint(files, f"{checkpoints}/{checkpoint_of(name)}")
        status = _of_checkpoint(name, checkpoint, stalled_after_ms, now_ms)
        newest_ms = _newest_ms(tables, table, sources, status)
        behind_s = None if newest_ms is None else max(0, now_ms - newest_ms) / 1_000
        found.append(status._replace(newest_ms=newest_ms, behind_s=behind_s))
    return tuple(found)


def sentence(one: StreamStatus, now_ms: int) -> str:
    """The status in words."""
    parts = [f"{one.stream}: {one.state}" + (f" ({one.why})" if one.why else "")]
    if one.batch is not None and one.written_ms is not None:
        covered = "" if one.records is None else f" covers {counted(one.records, 'record')}"
        parts.append(f"batch {one.batch}{covered}, written {lasted(now_ms - one.written_ms)} ago")
    if one.behind_s is not None:
        parts.append(f"the newest record is {lasted(one.behind_s * 1_000)} old")
    return "; ".join(parts)


def _of_checkpoint(name: str, checkpoint: StreamCheckpoint, stalled_after_ms: int, now_ms: int) -> StreamStatus:
    identity = checkpoint.identity()
    if identity is None:
        return StreamStatus(name, StreamState.NOT_STARTED, why=f"there is no checkpoint at {checkpoint.path}")
    written = checkpoint.last_batches().written
    state, why = _state(name, checkpoint, stalled_after_ms, now_ms)
    status = StreamStatus(name, state, identity.topic, identity.cluster, why=why)
    if written is None:
        return status
    records = checkpoint.span(written).offsets
    return status._replace(batch=written, written_ms=checkpoint.written_ms(written), records=records)


def _state(name: str, checkpoint: StreamCheckpoint, stalled_after_ms: int, now_ms: int) -> tuple[StreamState, str]:
    begun, written = checkpoint.last_batches()
    if begun is None:
        return StreamState.NOT_STARTED, "no batch has begun"
    if written is None or begun > written:
        since_ms = now_ms - checkpoint.span(begun).time_ms
        if since_ms > stalled_after_ms:
            return StreamState.STALLED, f"batch {begun} began {lasted(since_ms)} ago and is not written"
        return StreamState.IN_BATCH, f"batch {begun} began {lasted(since_ms)} ago"
    quiet_ms = now_ms - checkpoint.written_ms(written)
    if name == TELEMETRY_STREAM and quiet_ms > stalled_after_ms:
        return StreamState.STALLED, f"no batch for {lasted(quiet_ms)}: ingest does not run, or no agent writes"
    return StreamState.BETWEEN_BATCHES, ""


def _newest_ms(tables: TableStore, table: TableSpec, sources: TopicSources, status: StreamStatus) -> int | None:
    """Of the stream's own rows, from their newest day alone: a record that was read was written by then."""
    if status.written_ms is None:
        return None
    topic, cluster = status.topic or "", status.cluster or ""
    rows = tables.read(table).where(F.col("topic") == topic)
    if len(sources.clusters(topic)) > 1:
        rows = rows.where(F.col("cluster") == cluster)
    for day in reversed(tables.days(table, status.written_ms)):
        (row,) = rows.where(F.col("day") == day).agg(F.unix_millis(F.max("kafka_time")).alias("newest_ms")).collect()
        newest: int | None = row["newest_ms"]
        if newest is not None:
            return newest
    return None

"""Progress of the streams: a report of each batch, and how far each stream is behind its topic.

Invariant: what is unknown, such as the lag while no broker answers, is None, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from agent.values.number_format import counted, lasted


class TopicLag(NamedTuple):
    """How far a stream is behind its topic."""

    records: int
    """Offsets that can be read and are not read yet."""
    seconds: float | None
    """What is not read yet was written at most so long ago; None where that is not known."""


class BatchReport(NamedTuple):
    """What one batch of a stream did."""

    stream: str
    topic: str
    number: int
    records: int
    """Records read, quarantined ones included."""
    quarantined: int
    gap_offsets: int
    """Offsets that were deleted before they were read."""
    rows: Mapping[str, int | None]
    """Table that was written -> how many rows; None where they were not counted."""
    seconds: float
    written_ms: int
    """When its last row was written, epoch milliseconds."""
    lag: TopicLag | None
    """Behind the topic, after the batch; None while no broker answers."""
    since_start: int
    """Records of this stream since the start of the process."""

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        note = f", {self.quarantined:,} of them to quarantine" if self.quarantined else ""
        gap = f"; {counted(self.gap_offsets, 'offset')} deleted unread" if self.gap_offsets else ""
        return (
            f"{self.stream}: batch {self.number}, {counted(self.records, 'record')}{note}, {self.since_start:,} since "
            f"the start; {self.seconds:.1f} s, {behind(self.lag)}{gap}"
        )


def behind(lag: TopicLag | None) -> str:
    """The lag in words."""
    if lag is None:
        return "lag unknown"
    if not lag.records:
        return "nothing left to read"
    within = "" if lag.seconds is None else f", written within the last {lasted(lag.seconds * 1_000)}"
    return f"{counted(lag.records, 'record')} behind{within}"


class StreamProgress(NamedTuple):
    """A stream since the start of the process."""

    batches: int = 0
    records: int = 0
    quarantined: int = 0
    gap_offsets: int = 0
    busy_s: float = 0.0
    """Time of all batches."""
    last_s: float | None = None
    """Time of the last batch."""
    written_ms: int | None = None
    """When the last batch was written."""
    lag: TopicLag | None = None


class IngestProgress:
    """The streams of one process: their threads report, and metrics are read from it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._streams: dict[str, StreamProgress] = {}
        self._rows: Counter[str] = Counter()

    def add(self, report: BatchReport) -> None:
        """Count a batch."""
        with self._lock:
            was = self._streams.get(report.stream, StreamProgress())
            self._streams[report.stream] = StreamProgress(
                batches=was.batches + 1,
                records=was.records + report.records,
                quarantined=was.quarantined + report.quarantined,
                gap_offsets=was.gap_offsets + report.gap_offsets,
                busy_s=was.busy_s + report.seconds,
                last_s=report.seconds,
                written_ms=report.written_ms,
                lag=report.lag,
            )
            # Of gold the first write of a table alone is counted, which is no count of gold's rows.
            known = {table: rows for table, rows in report.rows.items() if rows is not None}
            self._rows.update({table: rows for table, rows in known.items() if not table.startswith("gold.")})

    def set_lag(self, stream: str, lag: TopicLag | None) -> None:
        """What the brokers say between two batches."""
        with self._lock:
            self._streams[stream] = self._streams.get(stream, StreamProgress())._replace(lag=lag)

    def streams(self) -> dict[str, StreamProgress]:
        """Each stream by name, sorted."""
        with self._lock:
            return dict(sorted(self._streams.items()))

    def rows(self) -> dict[str, int]:
        """Table of bronze or silver -> rows written, of writes whose rows were counted; sorted."""
        with self._lock:
            return dict(sorted(self._rows.items()))


def lag_of(position: Mapping[int, int], end: Mapping[int, int], newest_ms: Mapping[int, int], now_ms: int) -> TopicLag:
    """The lag at ``position`` (partition -> next offset), where topics end at ``end``.

    ``newest_ms`` is when the newest record read of a partition was written, epoch milliseconds: what comes behind it is
    not older. A partition without a position was not read yet.
    """
    waiting = {part: offset - position.get(part, 0) for part, offset in end.items() if offset > position.get(part, 0)}
    if not waiting:
        return TopicLag(0, 0.0)
    known = [newest_ms[part] for part in waiting if part in newest_ms]
    seconds = max(0.0, (now_ms - min(known)) / 1_000) if len(known) == len(waiting) else None
    return TopicLag(sum(waiting.values()), seconds)

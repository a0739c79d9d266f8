"""Which agents write telemetry of a cluster, and which of them leads? By their newest cycle reports.

Several agents may write to one topic: a leader, agents that stand by, a dry run with other settings. Pure but for the
function that reads the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.record.reader import Read, TopicReader
from agent.telemetry.derived import ReportData
from agent.telemetry.events import Kind, from_lines
from agent.values.limits import Mode
from agent.values.typed_json import UnreadableError, from_json

WINDOW_MS = 120_000
"""An agent whose newest report is older than the newest of all by more than this is not counted."""
_EXECUTE = Mode.EXECUTE.value
_FIRST_STEP = 256
_GROWTH = 4
_MOST_RECORDS = 20_000


class Heard(NamedTuple):
    """One run of an agent, as its newest report tells."""

    instance: str
    cluster: str
    report: ReportData
    first_ms: int
    """Epoch milliseconds of the oldest report of it that was read, and of the newest."""
    newest_ms: int

    @property
    def name(self) -> str:
        """``agent rw-1 on host kafka-1, process 4711``."""
        if not self.report.agent:
            return "an agent without a name"
        process = f", process {self.report.pid}" if self.report.pid is not None else ""
        return f"agent {self.report.agent} on host {self.report.host}{process}"


def heard_in(values: Iterable[bytes], cluster: str | None) -> tuple[Heard, ...]:
    """The agents that write now, the one to judge by first; what cannot be read is left out."""
    found: dict[str, Heard] = {}
    reports = (value for value in values if b"report" in value)
    for event in from_lines(reports, lambda _: None):
        if event.kind is not Kind.REPORT or cluster not in (None, event.cluster):
            continue
        known = found.get(event.instance)
        first_ms = event.taken_ms if known is None else min(known.first_ms, event.taken_ms)
        if known is not None and known.newest_ms > event.taken_ms:
            found[event.instance] = known._replace(first_ms=first_ms)
            continue
        try:
            report = from_json(ReportData, event.data)
        except UnreadableError:
            continue
        found[event.instance] = Heard(event.instance, event.cluster, report, first_ms, event.taken_ms)
    return ordered(list(found.values()))


def ordered(heard: Sequence[Heard]) -> tuple[Heard, ...]:
    """The leader first, then mode execute, then the newest; without runs that have ended."""
    newest_ms = max((one.newest_ms for one in heard), default=0)
    running = [one for one in heard if newest_ms - one.newest_ms <= WINDOW_MS and not _over(one, heard)]
    return tuple(sorted(running, key=_rank, reverse=True))


def _rank(one: Heard) -> tuple[bool, bool, int]:
    return one.report.leads is True, one.report.mode == _EXECUTE, one.newest_ms


def _over(one: Heard, heard: Iterable[Heard]) -> bool:
    """Whether its agent was started again: another run of the same name and host began after its last report.

    An agent in mode execute is not ended by a dry run of the same name: its next report may only be due later.
    """
    mine = (one.report.agent, one.report.host)
    return any(
        other.first_ms > one.newest_ms
        and mine == (other.report.agent, other.report.host)
        and (other.report.mode == _EXECUTE or one.report.mode != _EXECUTE)
        for other in heard
    )


def heard_of(reader: TopicReader, cluster: str | None) -> tuple[Heard, ...]:
    """The agents of the topic's tail: as far back as agents count, or as far as the time lasts. Raises KafkaException.

    Reports lie in one partition, as their subject is the cluster; only its tail is read on.
    """
    spans, step = reader.spans(), _FIRST_STEP
    heard: tuple[Heard, ...] = ()
    while spans:
        tail = tuple(span._replace(first=max(span.first, span.end - step)) for span in spans)
        told = [read for read in reader.read(tail) if read.value is not None and b"report" in read.value]
        if not reader.in_time:
            break
        heard = heard_in((read.value for read in told if read.value is not None), cluster)
        whole = all(cut.first <= span.first for cut, span in zip(tail, spans, strict=True))
        if whole or step >= _MOST_RECORDS or _far_enough(told, cluster):
            break
        holding = {read.partition for read in told}
        spans = tuple(span for span in spans if span.partition in holding) or spans
        step *= _GROWTH
    return heard


def _far_enough(reads: Sequence[Read], cluster: str | None) -> bool:
    events = from_lines((read.value for read in reads if read.value is not None), lambda _: None)
    times = [one.taken_ms for one in events if one.kind is Kind.REPORT and cluster in (None, one.cluster)]
    return bool(times) and max(times) - min(times) > WINDOW_MS

"""Which agents write telemetry of a cluster, and which of them leads? By their newest cycle reports.

Several agents may write to one topic: a leader, agents that stand by, a dry run with other settings. Their clocks may
differ: a report is as old as the broker says that appended it, where the topic has its time (`message.timestamp.type=
LogAppendTime`), else as its agent says; a time of the future counts as now. Pure but for what reads the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.record.reader import TopicReader
from agent.telemetry.derived import ReportData
from agent.telemetry.events import Event, Kind, from_lines
from agent.values.clock import system_clock
from agent.values.limits import Mode
from agent.values.typed_json import UnreadableError, from_json

WINDOW_MS = 120_000
"""An agent that is silent for longer, and for longer than three of its looks take, is not counted beside others."""
_LOOKS = 3
_FAR_MS = 900_000
"""So far back a leader is looked for: three looks of one that looks every five minutes."""
_EXECUTE = Mode.EXECUTE.value
_FIRST_STEP = 256
_GROWTH = 4
_MOST_RECORDS = 20_000


class Heard(NamedTuple):
    """One run of an agent, as its newest report tells."""

    instance: str
    cluster: str
    report: ReportData
    newest_ms: int
    """Epoch milliseconds of the newest report."""
    first: int
    """Place of its first report among all that were read, and of its last: whatever the clocks say."""
    last: int
    ahead_ms: int = 0
    """How far the newest one is in the future: by its agent's clock, or by the broker's that appended it."""

    @property
    def window_ms(self) -> int:
        """How long it may be silent."""
        return max(WINDOW_MS, _LOOKS * (self.report.poll_ms or 0))

    @property
    def name(self) -> str:
        """``agent rw-1 on host kafka-1, process 4711``."""
        if not self.report.agent:
            return "an agent without a name"
        process = f", process {self.report.pid}" if self.report.pid is not None else ""
        return f"agent {self.report.agent} on host {self.report.host}{process}"


class Written(NamedTuple):
    """An event's line in telemetry."""

    value: bytes
    appended_ms: int | None = None
    """By the broker's clock; None in a file, and where the topic does not have it."""


def wall_ms() -> int:
    """Epoch milliseconds by this process's clock."""
    return system_clock().wall_ms


def heard_in(lines: Iterable[Written], cluster: str | None, now_ms: int) -> tuple[Heard, ...]:
    """The agents that write now, the one to judge by first; what cannot be read is left out.

    ``lines`` in the order in which they were written, ``now_ms`` by the reader's clock.
    """
    found: dict[str, Heard] = {}
    silent = _Silences()
    for place, (event, at_ms) in enumerate(_reports(lines, cluster)):
        known, seen_ms = found.get(event.instance), min(at_ms, now_ms)
        try:
            report = from_json(ReportData, event.data)
        except UnreadableError:
            continue
        # What came last is the newest: an agent's clock may have been set back since.
        first, ahead_ms = place if known is None else known.first, max(0, at_ms - now_ms)
        found[event.instance] = Heard(event.instance, event.cluster, report, seen_ms, first, place, ahead_ms)
        silent.wrote(event.instance, seen_ms)
    return ordered([one for one in found.values() if silent.for_ms(one.instance) <= one.window_ms])


class _Silences:
    """For how long others have written since each agent's last report: by one clock each, so all may be wrong."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str, int]] = {}
        self._newest: dict[str, int] = {}

    def wrote(self, instance: str, at_ms: int) -> None:
        for others in self._since.values():
            others.setdefault(instance, at_ms)
        self._since[instance], self._newest[instance] = {}, at_ms

    def for_ms(self, instance: str) -> int:
        others: Mapping[str, int] = self._since[instance]
        return max((self._newest[other] - at_ms for other, at_ms in others.items()), default=0)


def ordered(heard: Sequence[Heard]) -> tuple[Heard, ...]:
    """The leader first, then mode execute, then a clock that may be right, then the newest; no runs that have ended."""
    newest_ms = max((one.newest_ms for one in heard), default=0)
    running = [one for one in heard if newest_ms - one.newest_ms <= one.window_ms and not _over(one, heard)]
    return tuple(sorted(running, key=_rank, reverse=True))


def _rank(one: Heard) -> tuple[bool, bool, bool, int]:
    return one.report.leads is True, one.report.mode == _EXECUTE, one.ahead_ms <= WINDOW_MS, one.newest_ms


def _reports(lines: Iterable[Written], cluster: str | None) -> Iterable[tuple[Event, int]]:
    """The cycle reports of a cluster, or of all, each with its time."""
    for line in lines:
        if b"report" not in line.value:
            continue
        for event in from_lines((line.value,), lambda _: None):
            if event.kind is Kind.REPORT and cluster in (None, event.cluster):
                yield event, event.taken_ms if line.appended_ms is None else line.appended_ms


def _over(one: Heard, heard: Iterable[Heard]) -> bool:
    """Whether its agent was started again: another run of the same name and host began after its last report.

    An agent in mode execute is not ended by a dry run of the same name: its next report may only be due later.
    """
    mine = (one.report.agent, one.report.host)
    return any(
        other.first > one.last
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
        now_ms, lines = wall_ms(), [Written(read.value, read.appended_ms) for read in told if read.value is not None]
        heard = heard_in(lines, cluster, now_ms)
        whole = all(cut.first <= span.first for cut, span in zip(tail, spans, strict=True))
        if whole or step >= _MOST_RECORDS or _far_enough(lines, cluster, heard, now_ms):
            break
        holding = {read.partition for read in told}
        spans = tuple(span for span in spans if span.partition in holding) or spans
        step *= _GROWTH
    return heard


def _far_enough(lines: Sequence[Written], cluster: str | None, heard: Sequence[Heard], now_ms: int) -> bool:
    """Whether no agent that counts can be further back: a leader may look seldom."""
    times = [min(at_ms, now_ms) for _, at_ms in _reports(lines, cluster)]
    needed_ms = WINDOW_MS if any(one.report.leads for one in heard) else _FAR_MS
    return bool(times) and max(times) - min(times) > needed_ms

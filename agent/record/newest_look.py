"""The newest telemetry of a cluster: events of given kinds from the topic's tail, and agents by cycle report.

Commands use it beside their own look: the agent's memory is the base of rates, its limits are those it acts by. The
tail is read in growing steps until each kind is found or the deadline. Events about the cluster lie in one partition,
so the last one is the newest. Invariant: no broker or record makes it raise; an unknown has a clause with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaException

from agent.record.librdkafka import error_text
from agent.record.reader import MEMORY_PARTITION, TopicReader, open_reader
from agent.telemetry.derived import ReportData
from agent.telemetry.events import EventKind, TelemetryEvent, from_lines
from agent.values.clock import system_clock
from agent.values.limits import AgentMode
from agent.values.plan import STALE_MS, AgentDocument
from agent.values.typed_json import UnreadableError, from_json

# Agents by their newest cycle reports: a leader, standbys, a dry run with other settings. A report's age is the
# broker's append time where the topic has it (message.timestamp.type=LogAppendTime), else the agent's own time; a
# future time counts as now.

WINDOW_MS = 120_000
"""An agent that is silent for longer, and for longer than three of its looks take, is not counted beside others."""
_LOOKS = 3
_FAR_MS = 900_000
"""So far back a leader is looked for: three looks of one that looks every five minutes."""
_EXECUTE = AgentMode.EXECUTE.value
_FIRST_STEP_BACK = 256
_STEP_GROWTH = 4
_MOST_RECORDS = 20_000


class AgentRun(NamedTuple):
    """One run of an agent by its newest report."""

    instance: str
    cluster: str
    report: ReportData
    newest_ms: int
    """Epoch milliseconds of the newest report."""
    first: int
    """Index of its first report among all that were read, and of its last, independent of clocks."""
    last: int
    ahead_ms: int = 0
    """How far the newest one is in the future: by its agent's clock, or by the broker's that appended it."""

    @property
    def window_ms(self) -> int:
        """Milliseconds of silence after which it no longer counts."""
        return max(WINDOW_MS, _LOOKS * (self.report.poll_ms or 0))

    @property
    def name(self) -> str:
        """``agent rw-1 on host kafka-1, process 4711``."""
        if not self.report.agent:
            return "an agent without a name"
        process = f", process {self.report.pid}" if self.report.pid is not None else ""
        return f"agent {self.report.agent} on host {self.report.host}{process}"


class TelemetryLine(NamedTuple):
    """An event's line in telemetry."""

    value: bytes
    appended_ms: int | None = None
    """By the broker's clock; None in a file, and where the topic does not have it."""


def wall_ms() -> int:
    """Epoch milliseconds by this process's clock."""
    return system_clock().wall_ms


def runs_in_lines(lines: Iterable[TelemetryLine], cluster: str | None, now_ms: int) -> tuple[AgentRun, ...]:
    """The agents that write now, the leader first; unreadable reports are left out.

    ``lines`` in the order in which they were written, ``now_ms`` by the reader's clock.
    """
    found: dict[str, AgentRun] = {}
    silent = _Silences()
    for place, (event, at_ms) in enumerate(_reports(lines, cluster)):
        known, seen_ms = found.get(event.instance), min(at_ms, now_ms)
        try:
            report = from_json(ReportData, event.data)
        except UnreadableError:
            continue
        # What came last is the newest: an agent's clock may have been set back since.
        first, ahead_ms = place if known is None else known.first, max(0, at_ms - now_ms)
        found[event.instance] = AgentRun(event.instance, event.cluster, report, seen_ms, first, place, ahead_ms)
        silent.wrote(event.instance, seen_ms)
    return ranked_runs([one for one in found.values() if silent.for_ms(one.instance) <= one.window_ms])


class _Silences:
    """For each agent, for how long others have written since its last report: each by its own clock."""

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


def ranked_runs(runs: Sequence[AgentRun]) -> tuple[AgentRun, ...]:
    """The leader first, then mode execute, then a clock that may be right, then the newest; no runs that have ended.

    Where every agent has stopped, the one that stopped last.
    """
    newest_ms = max((one.newest_ms for one in runs), default=0)
    counted = [one for one in runs if newest_ms - one.newest_ms <= one.window_ms and not _over(one, runs)]
    running = [one for one in counted if not one.report.stopped]
    return tuple(sorted(running, key=_rank, reverse=True)) or tuple(sorted(counted, key=_rank)[-1:])


def _rank(one: AgentRun) -> tuple[bool, bool, bool, int]:
    return one.report.leads is True, one.report.mode == _EXECUTE, one.ahead_ms <= WINDOW_MS, one.newest_ms


def _reports(lines: Iterable[TelemetryLine], cluster: str | None) -> Iterable[tuple[TelemetryEvent, int]]:
    """The cycle reports of a cluster, or of all, each with its time."""
    for line in lines:
        if b"report" not in line.value:
            continue
        for event in from_lines((line.value,), lambda _: None):
            if event.kind is EventKind.REPORT and cluster in (None, event.cluster):
                yield event, event.taken_ms if line.appended_ms is None else line.appended_ms


def _over(one: AgentRun, runs: Iterable[AgentRun]) -> bool:
    """Whether the run has ended: another run of the same name and host began after its last report.

    An agent in mode execute is not ended by a dry run of the same name: its next report may only be due later.
    """
    mine = (one.report.agent, one.report.host)
    return any(
        other.first > one.last
        and mine == (other.report.agent, other.report.host)
        and (other.report.mode == _EXECUTE or one.report.mode != _EXECUTE)
        for other in runs
    )


def agent_runs(reader: TopicReader, cluster: str | None) -> tuple[AgentRun, ...]:
    """The agents of the topic's tail: as far back as agents count, or as far as the time lasts. Raises KafkaException.

    Reports lie in one partition, as their subject is the cluster; only its tail is read on.
    """
    spans, step = reader.spans(), _FIRST_STEP_BACK
    runs: tuple[AgentRun, ...] = ()
    while spans:
        tail = tuple(span._replace(first=max(span.first, span.end - step)) for span in spans)
        reports = [read for read in reader.read(tail) if read.value is not None and b"report" in read.value]
        if not reader.in_time:
            break
        now_ms = wall_ms()
        lines = [TelemetryLine(read.value, read.appended_ms) for read in reports if read.value is not None]
        runs = runs_in_lines(lines, cluster, now_ms)
        whole = all(cut.first <= span.first for cut, span in zip(tail, spans, strict=True))
        if whole or step >= _MOST_RECORDS or _far_enough(lines, cluster, runs, now_ms):
            break
        holding = {read.partition for read in reports}
        spans = tuple(span for span in spans if span.partition in holding) or spans
        step *= _STEP_GROWTH
    return runs


def _far_enough(lines: Sequence[TelemetryLine], cluster: str | None, runs: Sequence[AgentRun], now_ms: int) -> bool:
    """Whether no counted agent can be further back: a leader may look seldom."""
    times = [min(at_ms, now_ms) for _, at_ms in _reports(lines, cluster)]
    needed_ms = WINDOW_MS if any(one.report.leads for one in runs) else _FAR_MS
    return bool(times) and max(times) - min(times) > needed_ms


ONE_PER_LOOK = frozenset({EventKind.LOOK, EventKind.GAPS, EventKind.LIMITS, EventKind.MEMORY, EventKind.REPORT})
"""Kinds whose subject is the cluster: one event in every look that is written in full."""
_FIRST_STEP = 32
_GROWTH = 8
T = TypeVar("T")


class NewestLook(NamedTuple):
    """The newest event of each requested kind, of one cluster."""

    events: Mapping[EventKind, TelemetryEvent]
    why_not: str | None = None
    """Why an event is missing, as one clause; None when all are there."""


def newest_look(
    config: Mapping[str, str | int],
    topic: str,
    cluster: str | None,
    kinds: AbstractSet[EventKind],
    *,
    prefix: str,
    timeout_ms: int,
) -> NewestLook:
    """The newest events of those kinds; ``cluster`` None takes any cluster's. Raises ValueError: not `ONE_PER_LOOK`.

    ``config`` is confluent-kafka's. Joins no group, commits nothing, creates nothing.
    """
    if not kinds <= ONE_PER_LOOK:
        raise ValueError(f"a look has more than one event of these kinds: {sorted(kinds - ONE_PER_LOOK)}")
    found = _asked(lambda reader: newest_of(reader, topic, kinds, cluster), config, topic, prefix, timeout_ms)
    return NewestLook({}, found) if isinstance(found, str) else found


def leading_look(
    config: Mapping[str, str | int],
    topic: str,
    cluster: str | None,
    kinds: AbstractSet[EventKind],
    *,
    prefix: str,
    timeout_ms: int,
) -> tuple[NewestLook, tuple[AgentRun, ...]]:
    """The newest events of the agent that leads, or of the newest one where none does; and all agents, it first.

    Where its own events cannot be read in time, those of no other agent take their place.
    """
    found = _asked(
        lambda reader: leading_of(
            lambda *whose: newest_of(reader, topic, kinds, *whose), lambda: agent_runs(reader, cluster), cluster
        ),
        config, topic, prefix, timeout_ms,
    )  # fmt: skip
    return (NewestLook({}, found), ()) if isinstance(found, str) else found


def leading_of(
    newest_of_agent: Callable[[str | None, str | None], NewestLook],
    agents: Callable[[], tuple[AgentRun, ...]],
    cluster: str | None,
) -> tuple[NewestLook, tuple[AgentRun, ...]]:
    """`leading_look` of any telemetry: by its newest events of (cluster, instance), None for any, and its agents."""
    newest = newest_of_agent(cluster, None)
    if newest.why_not is not None:
        return newest, ()
    runs = agents()
    if not runs:
        return NewestLook({}, "it did not show in time which agents write it"), ()
    first = runs[0]
    if all(event.instance == first.instance for event in newest.events.values()):
        return newest, runs
    own = newest_of_agent(first.cluster, first.instance)
    if own.why_not is None:
        return own, runs
    return NewestLook({}, f"{first.name} {'leads' if first.report.leads else 'writes it'}, but {own.why_not}"), runs


def agents_in(config: Mapping[str, str | int], topic: str, *, prefix: str, timeout_ms: int) -> tuple[AgentRun, ...]:
    """The agents of any cluster that write to a topic, the leader first; none where it cannot be read."""
    found = agents_or_why(config, topic, prefix=prefix, timeout_ms=timeout_ms)
    return () if isinstance(found, str) else found


def agents_or_why(
    config: Mapping[str, str | int], topic: str, *, prefix: str, timeout_ms: int
) -> tuple[AgentRun, ...] | str:
    """The same; or why the topic could not be read, as one clause."""
    return _asked(lambda reader: agent_runs(reader, None), config, topic, prefix, timeout_ms)


def agent_document(runs: Iterable[AgentRun], cluster: str, taken_ms: int) -> AgentDocument | None:
    """The first agent of a cluster with all others, at that time; None where none is of this cluster."""
    found = [one for one in runs if one.cluster == cluster]
    if not found:
        return None
    first, *others = found
    report = first.report
    return {
        "name": report.agent,
        "host": report.host,
        "mode": report.mode,
        "leads": report.leads,
        "acting": list(report.acting),
        "age_ms": _age_ms(first, taken_ms),
        "pid": report.pid,
        "stopped": report.stopped,
        "others": [
            {
                "name": one.report.agent,
                "host": one.report.host,
                "pid": one.report.pid,
                "mode": one.report.mode,
                "leads": one.report.leads,
                "same_settings": one.report.limits_digest == report.limits_digest,
                "age_ms": _age_ms(one, taken_ms),
            }
            for one in others
        ],
    }


def _age_ms(one: AgentRun, taken_ms: int) -> int | None:
    return None if one.ahead_ms > STALE_MS else max(0, taken_ms - one.newest_ms)


def _asked(
    ask: Callable[[TopicReader], T], config: Mapping[str, str | int], topic: str, prefix: str, timeout_ms: int
) -> T | str:
    """The answer with an open reader; or why the topic could not be read, as one clause."""
    try:
        with open_reader({**config, "log_level": 0}, topic, prefix=prefix, timeout_ms=timeout_ms) as reader:
            return ask(reader)
    except KafkaException as error:
        return f"{topic} could not be read ({error_text(error.args[0])})"


def newest_of(
    reader: TopicReader, topic: str, kinds: AbstractSet[EventKind], cluster: str | None, instance: str | None = None
) -> NewestLook:
    """The same of an open reader; with an instance, of that agent alone. Raises KafkaException."""
    spans = reader.spans(only=frozenset({MEMORY_PARTITION}) if kinds == {EventKind.MEMORY} else None)
    if not spans:
        return NewestLook({}, f"there is no topic {topic}")
    found: dict[EventKind, TelemetryEvent] = {}
    left_out: list[str] = []
    step, whole = _FIRST_STEP, False
    while not whole and kinds - found.keys():
        tail = tuple(span._replace(first=max(span.first, span.end - step)) for span in spans)
        values: dict[int, list[bytes]] = {span.partition: [] for span in tail}
        for read in reader.read(tail):
            if read.value is not None:
                values[read.partition].append(read.value)
        if not reader.in_time:  # what came so far need not be the newest
            break
        left_out = []
        found = newest_events(values.values(), cluster, kinds, left_out.append, instance)
        whole = all(cut.first <= span.first for cut, span in zip(tail, spans, strict=True))
        step *= _GROWTH
    missing = kinds - found.keys()
    if not missing:
        return NewestLook(found)
    named = ", ".join(sorted(missing))
    why_not = f"{topic} holds no {named}" if whole else f"{topic} did not show its {named} in time"
    if left_out:
        why_not = f"{why_not}; {len(left_out)} of its records could not be read: {left_out[0]}"
    return NewestLook(found, why_not)


def newest_events(
    partitions: Iterable[list[bytes]],
    cluster: str | None,
    kinds: AbstractSet[EventKind],
    left_out: Callable[[str], None],
    instance: str | None = None,
) -> dict[EventKind, TelemetryEvent]:
    """The newest event of each kind, given each partition's values in order; older events are not even decoded."""
    newest: dict[EventKind, TelemetryEvent] = {}
    for values in partitions:
        open_kinds = set(kinds)
        for event in from_lines(reversed(values), left_out):
            if event.kind in open_kinds and cluster in (None, event.cluster) and instance in (None, event.instance):
                open_kinds.discard(event.kind)
                known = newest.get(event.kind)
                if known is None or known.taken_ms < event.taken_ms:
                    newest[event.kind] = event
            if not open_kinds:
                break
    return newest

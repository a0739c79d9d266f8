"""Records each cycle: telemetry of every cycle, proposals when they change.

A look is written in full where the last full one is old, was not written whole, or is not in this topic and file.

Invariants: mode observe creates and writes no topic; brokers and disks never make it raise, they give sentences; it
holds the loop no longer than its deadline.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException

from agent.record.files import TelemetryFile
from agent.record.librdkafka import ProducerRecord, RecordCounts, TopicPublisher
from agent.record.own_topics import OwnTopic, OwnTopics
from agent.record.proposals import PublishedProposal, standing_in, update
from agent.record.reader import MEMORY_PARTITION, RestoredMemory, open_reader, restore
from agent.telemetry.changes import FullLook, LookHead
from agent.telemetry.derived import derived_events, derived_rows, last_report
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines
from agent.telemetry.looks import observation_rows
from agent.values.clock import ClockReading
from agent.values.cycle import AgentIdentity, Cycle
from agent.values.memory import Memory
from agent.values.number_format import counted
from agent.values.observation import Observation

RESTORE_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlan:
    """Topics and file of the recording. A topic that is None is neither created nor written."""

    telemetry: OwnTopic | None = None
    proposals: OwnTopic | None = None
    file: Path | None = None
    file_max_bytes: int = 1_073_741_824
    every_ms: int = 60_000
    """Least time between two looks that are recorded; one with a planning always is."""
    full_every_ms: int = 1_200_000
    """Least time between two of them in full; those in between are written by changes."""
    queue_records: int = 200_000
    deadline_ms: int = 3_000
    prefix: str = "rackwise"
    agent: str = "rackwise"
    """Name of this agent among those of the cluster."""
    poll_ms: int | None = None
    """Time between two of its looks; None where it has no pace."""

    @property
    def topics(self) -> tuple[OwnTopic, ...]:
        """The topics that are created where they are missing."""
        return tuple(topic for topic in (self.telemetry, self.proposals) if topic is not None)


class RecordingResult(NamedTuple):
    """The outcome of one cycle's records."""

    recorded: bool
    """Whether the look can be rebuilt from what was written, in full or by changes."""
    counts: RecordCounts
    """Of all records since the start, the file's included."""
    waiting: int
    """Records that the brokers have not confirmed yet."""
    problems: tuple[str, ...]


class _Line(NamedTuple):
    kind: EventKind
    subject: str
    text: str


class _WrittenLook(NamedTuple):
    """A full look that was written, and what holds as long as later ones can stand on it."""

    look: FullLook
    monotonic_ms: int
    lost: int
    """Records that were lost before it."""
    topic_id: str | None
    """Of the telemetry topic, as soon as a look shows it."""


class CycleRecorder:
    """Owns the producer, the file and the known state of the proposals topic."""

    def __init__(self, plan: RecordPlan, config: Mapping[str, str | int]) -> None:
        self._plan = plan
        self._config = config
        self._topics = OwnTopics(config, plan.topics, plan.deadline_ms)
        self._publisher = (
            TopicPublisher(config, queue_records=plan.queue_records, on_gone=self._topics.forget)
            if plan.topics
            else None
        )
        self._file = TelemetryFile(plan.file, plan.file_max_bytes) if plan.file else None
        self._standing: Mapping[str, PublishedProposal] | None = None
        self._recorded_ms: int | None = None
        self._full: _WrittenLook | None = None
        self._last: Cycle | None = None

    @property
    def _identity(self) -> AgentIdentity:
        return AgentIdentity(self._plan.agent, socket.gethostname(), os.getpid(), self._plan.poll_ms)

    def restore(self, observation: Observation, now: ClockReading) -> RestoredMemory:
        """The memory of an earlier process from the telemetry topic, where that exists."""
        if self._plan.telemetry is None:
            return RestoredMemory(Memory(), "no memory was restored: no telemetry topic is written", found=False)
        name = self._plan.telemetry.name
        if not any(topic.name == name for topic in observation.topics):
            return RestoredMemory(Memory(), f"no memory was restored: there is no topic {name}", found=False)
        prefix, cluster = self._plan.prefix, observation.cluster_id
        return restore(self._config, name, cluster, now, prefix=prefix, timeout_ms=RESTORE_MS)

    def record(self, cycle: Cycle) -> RecordingResult:
        """Write the cycle. Never raises because of a broker or a disk; problems are in the result."""
        recorded, self._last = self._is_recorded(cycle), cycle
        if self._publisher is None:
            deque(self._copied(self._lines(cycle, recorded=recorded)), maxlen=0)
            return RecordingResult(recorded, self.counts(), 0, self._problems())
        self._publisher.begin()
        before = self._publisher.counts()
        self._topics.ensure(cycle.observation)
        lines = self._lines(cycle, recorded=recorded)
        self._publisher.write(self._telemetry_records(lines), self._plan.deadline_ms)
        unread = self._publish_proposals(cycle)
        waiting = self._publisher.flush(self._plan.deadline_ms)
        if waiting or self._publisher.counts()[1:] != before[1:]:
            self._standing = None  # the topic's state is not certain any more: it is read again
        late = (f"not confirmed yet: {counted(waiting, 'record')}",) if waiting else ()
        return RecordingResult(recorded, self.counts(), waiting, (*unread, *late, *self._problems()))

    def counts(self) -> RecordCounts:
        """All records since the start, by outcome."""
        topic = self._publisher.counts() if self._publisher else RecordCounts(0, 0, 0)
        if self._file is None:
            return topic
        return RecordCounts(topic.written + self._file.written, topic.failed, topic.dropped + self._file.dropped)

    def missing_topics(self) -> tuple[str, ...]:
        """A sentence for each topic that could not be created so far."""
        return self._topics.problems()

    def close(self, deadline_ms: int, at_ms: int) -> int:
        """Report that the agent has stopped at that time, and write what is waiting; how many records were lost."""
        if self._last is not None:
            lines = _written(last_report(self._last, self._identity, at_ms))
            if self._publisher is None:
                deque(self._copied(lines), maxlen=0)
            else:
                self._publisher.write(self._telemetry_records(lines), deadline_ms)
        return self._publisher.close(deadline_ms) if self._publisher else 0

    def _is_recorded(self, cycle: Cycle) -> bool:
        now_ms, last_ms = cycle.snapshot.monotonic_ms, self._recorded_ms
        recorded = cycle.planned or last_ms is None or now_ms - last_ms >= self._plan.every_ms
        if recorded:
            self._recorded_ms = now_ms
        return recorded

    def _lines(self, cycle: Cycle, *, recorded: bool) -> Iterator[_Line]:
        """The look's events where it is recorded, then the derived ones; one event in memory at a time."""
        if recorded:
            events = self._recorded_events(cycle)
        else:
            events = derived_events(cycle, 0, full=False, agent=self._identity)
        return (line for event in events for line in _written(event))

    def _recorded_events(self, cycle: Cycle) -> Iterator[TelemetryEvent]:
        """In full, or by changes since the last look that was, where that is where this one goes."""
        findings = cycle.after.first_seen
        rows = chain(
            observation_rows(cycle.observation, cycle.before, cycle.limits, findings),
            derived_rows(cycle, full=True, agent=self._identity),
        )
        head = LookHead(cycle.snapshot.cluster_id, cycle.look, cycle.snapshot.taken_ms)
        now = _WrittenLook(FullLook(head), cycle.snapshot.monotonic_ms, self._lost(), self._topic_id(cycle))
        known = self._full
        if self._is_new_topic() or known is None or not self._stands(known, now):
            self._full = now if self._goes_everywhere() else None
            return now.look.events(rows)
        self._full = known._replace(topic_id=now.topic_id or known.topic_id)
        return known.look.changed_events(head, rows)

    def _stands(self, full: _WrittenLook, now: _WrittenLook) -> bool:
        """Whether the next look can stand on it: it is young and whole, in the same topic and the same file."""
        return (
            now.monotonic_ms - full.monotonic_ms < self._plan.full_every_ms
            and now.lost == full.lost
            and (None in (full.topic_id, now.topic_id) or full.topic_id == now.topic_id)
            and self._goes_everywhere()
            and not (self._file is not None and self._file.begins_anew())
        )

    def _goes_everywhere(self) -> bool:
        """Whether the topic is there; a file that cannot be written counts its lines as lost."""
        topic = self._plan.telemetry
        return topic is None or self._topics.is_ready(topic.name)

    def _is_new_topic(self) -> bool:
        return self._plan.telemetry is not None and self._topics.take_new(self._plan.telemetry.name)

    def _lost(self) -> int:
        counts = self.counts()
        return counts.failed + counts.dropped

    def _topic_id(self, cycle: Cycle) -> str | None:
        """Of the telemetry topic; None where the look does not show it."""
        topic = self._plan.telemetry
        rows = cycle.observation.topics if topic is not None else ()
        return next((row.topic_id for row in rows if topic is not None and row.name == topic.name), None)

    def _telemetry_records(self, lines: Iterable[_Line]) -> Iterable[ProducerRecord]:
        """Records of the lines, which go into the file on their way; all are used up, also when none is written."""
        topic = self._plan.telemetry
        writable = topic is not None and self._topics.is_ready(topic.name)
        for line in self._copied(lines):
            if topic is not None and writable:
                partition = MEMORY_PARTITION if line.kind is EventKind.MEMORY else None
                yield ProducerRecord(topic.name, line.subject, line.text.encode(), (), partition)

    def _copied(self, lines: Iterable[_Line]) -> Iterable[_Line]:
        return self._file.copied(lines) if self._file is not None else lines

    def _publish_proposals(self, cycle: Cycle) -> tuple[str, ...]:
        topic = self._plan.proposals
        if topic is None or self._publisher is None or not cycle.planned or not self._topics.is_ready(topic.name):
            return ()
        cluster = cycle.snapshot.cluster_id
        problems: tuple[str, ...] = ()
        if self._topics.take_new(topic.name):
            self._standing = {}
        if self._standing is None:
            try:
                self._standing = self._read_standing(topic.name, cluster)
            except KafkaException as error:
                # Written all the same: at worst a record is written twice, and a void one stays until it expires.
                self._standing = {}
                problems = (f"{topic.name}: its earlier records could not be read ({error})",)
        change = update(
            self._standing,
            cycle.proposals,
            now_ms=cycle.snapshot.taken_ms,
            topic=topic.name,
            cluster=cluster,
            agent=self._plan.agent,
        )
        self._publisher.write(change.records, self._plan.deadline_ms)
        self._standing = change.standing
        return problems

    def _read_standing(self, topic: str, cluster: str) -> dict[str, PublishedProposal]:
        with open_reader(self._config, topic, prefix=self._plan.prefix, timeout_ms=RESTORE_MS) as reader:
            return standing_in(reader.read(reader.spans()), cluster)

    def _problems(self) -> tuple[str, ...]:
        published = self._publisher.problems() if self._publisher else ()
        filed = self._file.problem() if self._file else None
        return (*self._topics.problems(), *published, *([filed] if filed else []))


def _written(event: TelemetryEvent) -> Iterator[_Line]:
    return (_Line(event.kind, event.subject, text) for text in to_lines(event))

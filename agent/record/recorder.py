"""Records each cycle: telemetry of every cycle, proposals when they change.

Invariants: mode observe creates and writes no topic; brokers and disks never make it raise, they give sentences; it
holds the loop no longer than its deadline.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException

from agent.record.files import TelemetryFile
from agent.record.librdkafka import ProducerRecord, RecordCounts, TopicPublisher
from agent.record.own_topics import OwnTopic, OwnTopics
from agent.record.proposals import PublishedProposal, standing_in, update
from agent.record.reader import MEMORY_PARTITION, RestoredMemory, open_reader, restore
from agent.telemetry.derived import derived_events, last_report
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines
from agent.telemetry.looks import observation_to_events
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
    full_every_ms: int = 60_000
    """Least time between two looks that are written in full; one with a planning always is."""
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

    full: bool
    counts: RecordCounts
    """Of all records since the start, the file's included."""
    waiting: int
    """Records that the brokers have not confirmed yet."""
    problems: tuple[str, ...]


class _Line(NamedTuple):
    kind: EventKind
    subject: str
    text: str


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
        self._last_full_ms: int | None = None
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
        full, self._last = self._is_full(cycle), cycle
        lines = _lines(cycle, self._identity, full=full)
        if self._publisher is None:
            deque(self._copied(lines), maxlen=0)
            return RecordingResult(full, self.counts(), 0, self._problems())
        self._publisher.begin()
        before = self._publisher.counts()
        self._topics.ensure(cycle.observation)
        self._publisher.write(self._telemetry_records(lines), self._plan.deadline_ms)
        unread = self._publish_proposals(cycle)
        waiting = self._publisher.flush(self._plan.deadline_ms)
        if waiting or self._publisher.counts()[1:] != before[1:]:
            self._standing = None  # the topic's state is not certain any more: it is read again
        late = (f"not confirmed yet: {counted(waiting, 'record')}",) if waiting else ()
        return RecordingResult(full, self.counts(), waiting, (*unread, *late, *self._problems()))

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

    def _is_full(self, cycle: Cycle) -> bool:
        now_ms, last_ms = cycle.snapshot.monotonic_ms, self._last_full_ms
        full = cycle.planned or last_ms is None or now_ms - last_ms >= self._plan.full_every_ms
        if full:
            self._last_full_ms = now_ms
        return full

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


def _lines(cycle: Cycle, agent: AgentIdentity, *, full: bool) -> Iterator[_Line]:
    """The look's events where it is written in full, then the derived ones; one event in memory at a time."""
    number = 0
    if full:
        findings = cycle.after.first_seen
        events = observation_to_events(
            cycle.observation, cycle.before, cycle.limits, look=cycle.look, findings=findings
        )
        for event in events:
            number += 1
            yield from _written(event)
    for event in derived_events(cycle, number, full=full, agent=agent):
        yield from _written(event)


def _written(event: TelemetryEvent) -> Iterator[_Line]:
    return (_Line(event.kind, event.subject, text) for text in to_lines(event))

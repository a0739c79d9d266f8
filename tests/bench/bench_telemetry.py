"""What a look costs as telemetry: bytes as a broker stores them, by part, in full and by changes, and CPU of both.

The large synthetic world with three replicas, a look a minute, 1 % of the groups rebalance in each. Topics differ in
their rate by three powers of ten, a fifth is idle; partitions, followers and consumers jitter. Every record goes
through the agent's producer settings to a real broker, whose segments are measured. What lies between two full looks
is sampled, as it grows with the age of the full look.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from agent.loop import CycleStages, run_cycle
from agent.record.librdkafka import PRODUCER
from agent.telemetry.changes import FullLook, LookHead, whole_look
from agent.telemetry.derived import derived_rows
from agent.telemetry.events import EventKind, LookRow, TelemetryEvent, from_lines, to_lines
from agent.telemetry.looks import observation_from_events, observation_rows
from agent.values.cycle import Cycle
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from assignors.problem import TopicPartition
from config.settings import Settings
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.synthetic_cluster import BROKERS, RACKS, next_look, synthetic_cluster

GROUPS = 10_000
GOAL_GB_A_DAY = 5.0
MINUTE_MS = 60_000
PARTITIONS = 6
SAMPLES = 4
PARTS: Mapping[str, frozenset[EventKind]] = {
    "topics, end offsets, sizes": frozenset({EventKind.TOPIC}),
    "groups": frozenset({EventKind.GROUP, EventKind.LISTED_GROUPS}),
    "committed offsets": frozenset({EventKind.COMMITTED_OFFSETS}),
    "memory": frozenset({EventKind.MEMORY}),
    "findings and assessments": frozenset({EventKind.FINDING, EventKind.ASSESSMENT}),
}


class TopicFlow(NamedTuple):
    """What happens in a topic in a minute."""

    records: int
    bytes_each: int


def main() -> None:
    record = Settings.model_validate({}).record
    looks = record.full_every_ms // MINUTE_MS
    cycles = list(_cycles(looks))
    full = FullLook(head_of(cycles[0]))
    began = time.process_time()
    in_full = list(keyed_lines(full.events(rows_of(cycles[0]))))
    _tell("CPU of a look in full, s", time.process_time() - began)
    with EmbeddedCluster.start(ClusterSpec(racks=("a",))) as cluster:
        wire = _Wire(cluster)
        before = wire.stored(in_full, "lz4")
        _tell("look in full, JSON, MB", sum(len(text) for _, text in in_full) / 1e6)
        _tell("look in full with lz4, MB", before / 1e6)
        first = wire.stored(in_full)
        _tell("look in full, MB", first / 1e6)
        stored = []
        for cycle in cycles[1:]:
            began = time.process_time()
            changed = list(keyed_lines(full.changed_events(head_of(cycle), rows_of(cycle))))
            cpu_s = time.process_time() - began
            stored.append(wire.stored(changed))
            name = f"look by changes, {cycle.number} min after the one in full"
            _tell(f"{name}, JSON, MB", sum(len(text) for _, text in changed) / 1e6)
            _tell(f"{name}, MB", stored[-1] / 1e6)
            _tell(f"{name}, CPU, s", cpu_s)
        for part, kinds in PARTS.items():
            of_part = FullLook(head_of(cycles[0]))
            whole = wire.stored(keyed_lines(of_part.events(_only(cycles[0], kinds))))
            later = wire.stored(keyed_lines(of_part.changed_events(head_of(cycles[-1]), _only(cycles[-1], kinds))))
            _tell(f"of it {part}, in full, MB", whole / 1e6)
            _tell(f"of it {part}, by changes, MB", later / 1e6)
    a_day = 24 * 60 / looks * (first + (looks - 1) * sum(stored) / len(stored)) / 1e9
    _tell("a day of one look a minute before, GB", 24 * 60 * before / 1e9)
    _tell("a day of one look a minute, GB", a_day, GOAL_GB_A_DAY)
    _read_back(in_full, changed, cycles[-1])


def _tell(case: str, value: float, goal: float | None = None) -> None:
    line = {"bench": "telemetry", "case": case, "value": round(value, 3)}
    print(json.dumps(line if goal is None else {**line, "goal": goal, "ok": value <= goal}), flush=True)


def _read_back(full: list[tuple[str, str]], changed: list[tuple[str, str]], cycle: Cycle) -> None:
    """Rebuilds the last look, which is the one that was seen."""
    base = list(from_lines(text for _, text in full))
    began = time.process_time()
    events = whole_look(from_lines(text for _, text in changed), base)
    rebuilt = observation_from_events(events)
    _tell("CPU of rebuilding a look by changes, its full look read before, s", time.process_time() - began)
    if rebuilt.observation != cycle.observation or rebuilt.memory != cycle.before:
        raise SystemExit("the look that was rebuilt is another one")


class _Wire:
    """A topic for each measurement, on a real broker."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._servers = {"bootstrap.servers": cluster.bootstrap_servers}
        self._admin = AdminClient(self._servers)
        self._folder = Path(cluster.directory)
        self._topics = 0

    def stored(self, lines: Iterable[tuple[str, str]], compression: str | None = None) -> int:
        """Bytes of the segments that hold these lines, each with its key."""
        self._topics += 1
        topic = f"telemetry-{self._topics}"
        for answer in self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
            answer.result(30)
        more = {} if compression is None else {"compression.type": compression}
        producer = Producer({**PRODUCER, **self._servers, **more})
        for key, text in lines:
            while True:
                try:
                    producer.produce(topic, text.encode(), key.encode())
                except BufferError:
                    producer.poll(0.1)
                else:
                    break
        if producer.flush(120):
            raise SystemExit("a record was not taken")
        return sum(file.stat().st_size for file in self._folder.glob(f"**/{topic}-*/*.log"))


def keyed_lines(events: Iterable[TelemetryEvent]) -> Iterator[tuple[str, str]]:
    """Records of the topic: key and value."""
    return ((event.subject, text) for event in events for text in to_lines(event))


def head_of(cycle: Cycle) -> LookHead:
    """Of the cycle's look."""
    return LookHead(cycle.observation.cluster_id, cycle.look, cycle.observation.taken_ms)


def rows_of(cycle: Cycle) -> Iterator[LookRow]:
    """All that an agent records of a cycle."""
    yield from observation_rows(cycle.observation, cycle.before, cycle.limits, cycle.after.first_seen)
    yield from derived_rows(cycle, full=True)


def _only(cycle: Cycle, kinds: frozenset[EventKind]) -> Iterator[LookRow]:
    return (row for row in rows_of(cycle) if row.kind in kinds)


def _cycles(looks: int) -> Iterator[Cycle]:
    """A look and `SAMPLES` later ones, the last just before the next one in full."""
    random = Random(7)
    world = with_three_replicas(synthetic_cluster(GROUPS, improvable=0.3))
    flows = {topic.name: drawn_flow(random) for topic in world.topics}
    stages, memory = CycleStages(Limits()), Memory()
    wanted = {0, *(max(1, (looks - 1) * (sample + 1) // SAMPLES) for sample in range(SAMPLES))}
    for number in range(looks):
        cycle = run_cycle(
            stages, lambda seen=world: seen, world, memory, number=number, name=f"12345678-{number}", planning=False
        )
        memory = cycle.after
        if number in wanted:
            yield cycle
        world = later_look(world, flows, random, number)


def drawn_flow(random: Random) -> TopicFlow:
    """Of a topic: a fifth is idle, the others differ by three powers of ten."""
    if random.random() < 0.2:
        return TopicFlow(0, 1)
    return TopicFlow(round(10 ** random.uniform(1.5, 4.5)), round(10 ** random.uniform(2, 3.3)))


def with_three_replicas(world: Observation) -> Observation:
    """The same with a third replica, and with offsets and sizes of topics that have been there for long."""
    random = Random(3)
    step = BROKERS // len(RACKS)
    topics = tuple(
        topic._replace(
            partitions=tuple(
                row._replace(replicas=of, isr=of)
                for row in topic.partitions
                for of in [(*row.replicas, (row.replicas[0] // 3 * 3 + (row.partition + 2) % 3) % (3 * step))]
            )
        )
        for topic in world.topics
    )
    ends = {tp: round(10 ** random.uniform(5, 10)) for tp in world.end_offsets}
    return replace(
        world,
        topics=topics,
        end_offsets=ends,
        committed_offsets={
            group: {tp: ends[tp] - random.randrange(1_000) for tp in offsets}
            for group, offsets in world.committed_offsets.items()
        },
        replica_bytes={
            (broker, TopicPartition(topic.name, row.partition)): ends[topic.name, row.partition] * 200
            for topic in topics
            for row in topic.partitions
            for broker in row.replicas
        },
    )


def later_look(
    world: Observation, flows: Mapping[str, TopicFlow], random: Random, number: int, every_ms: int = MINUTE_MS
) -> Observation:
    """The next look, `every_ms` later: 1 % of the groups rebalanced, and every topic flowed on."""
    minutes = every_ms / MINUTE_MS
    after = next_look(world, share=0.01, improvable=0.3, seed=100 + number)
    grown = {
        tp: max(0, round(random.gauss(mean, mean**0.5 + mean * 0.05)))
        for tp in world.end_offsets
        for mean in [flows[tp.topic].records * minutes]
    }
    ends = {tp: end + grown[tp] for tp, end in world.end_offsets.items()}
    sizes = {
        tp: records * flow.bytes_each + random.randrange(flow.bytes_each)
        for tp, records in grown.items()
        for flow in [flows[tp.topic]]
    }
    return replace(
        after,
        end_offsets=ends,
        committed_offsets={
            group: {
                tp: max(offset, ends[tp] - random.randrange(1 + flows[tp.topic].records // 10))
                for tp, offset in offsets.items()
            }
            for group, offsets in world.committed_offsets.items()
        },
        replica_bytes={
            (broker, tp): size + sizes[tp] - random.randrange(1 + sizes[tp] // 1_000)
            for (broker, tp), size in world.replica_bytes.items()
        },
        taken_ms=world.taken_ms + every_ms,
        monotonic_ms=world.monotonic_ms + every_ms,
    )


if __name__ == "__main__":
    main()

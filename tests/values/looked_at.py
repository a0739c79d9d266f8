"""An agent that takes in looks one after the other as the loop does, and a cluster with something wrong everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent.loop import CycleStages, run_cycle
from agent.record.librdkafka import RecordCounts
from agent.record.recorder import RecordingResult
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.last_known import LastKnown
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, Observation, ObservationPart, RawPartition
from agent.web.agent_view import LoopMonitor, LoopState
from agent.web.metrics import RackwiseCollector, SeriesCaps
from tests.synthetic_cluster import next_look, synthetic_cluster

LIMITS = Limits()
FAILING = (GapCause.TIMED_OUT, GapCause.UNREACHABLE, GapCause.ERROR, GapCause.UNUSABLE, GapCause.TOO_LARGE)
RECORDING = RecordingResult(True, RecordCounts(0, 0, 0), 0, ())
DONE = ClockReading(0, 0)


def trouble(world: Observation) -> Observation:
    """Something is wrong with everything: replicas in one rack, an absent broker, a partition under min ISR."""
    first, second, *others = world.topics
    rows = [
        RawPartition(
            row.partition, row.replicas[0], (row.replicas[0], (row.replicas[0] + 3) % 12), row.replicas[:1], ()
        )
        for row in first.partitions
    ]
    absent = [row._replace(replicas=(*row.replicas[:1], 77), isr=row.replicas[:1]) for row in second.partitions]
    topics = (first._replace(partitions=tuple(rows)), second._replace(partitions=tuple(absent)), *others)
    configs = {name: {**values, "min.insync.replicas": "2"} for name, values in world.topic_configs.items()}
    return replace(world, topics=topics, topic_configs=configs)


WORLD = trouble(synthetic_cluster(6, improvable=1.0))
AFTER = replace(trouble(next_look(synthetic_cluster(6, improvable=1.0), share=0.0)), replica_bytes={})
Lose = Callable[[Observation], Mapping[str, Any]]
LOSSES: Mapping[ObservationPart, Lose] = {
    ObservationPart.TOPICS: lambda _: {"topics": (), "topic_configs": {}, "end_offsets": {}},
    ObservationPart.TOPIC_CONFIGS: lambda _: {"topic_configs": {}},
    ObservationPart.BROKER_CONFIGS: lambda _: {"broker_configs": {}},
    ObservationPart.GROUPS: lambda _: {"listed_groups": (), "groups": (), "committed_offsets": {}},
    ObservationPart.COMMITTED_OFFSETS: lambda _: {"committed_offsets": {}},
    ObservationPart.END_OFFSETS: lambda _: {"end_offsets": {}},
    ObservationPart.REASSIGNMENTS: lambda _: {"reassignments": ()},
    ObservationPart.LOG_DIRS: lambda _: {"replica_bytes": {}},
}


def without(world: Observation, parts: Iterable[ObservationPart], cause: GapCause) -> Observation:
    """The same look, in which these parts did not answer."""
    for part in parts:
        gap = Gap(part, cause, "", "a test")
        world = replace(world, gaps=tuple(sorted({*world.gaps, gap})), **LOSSES[part](world))
    return world


class Agent:
    """Looks one after the other, as the loop takes them in."""

    def __init__(self, *looks: Observation, planning: bool = True) -> None:
        self.watch, self._memory, self._line = LoopMonitor(DONE), Memory(), CycleStages(LIMITS)
        for look in looks:
            self.look(look, planning=planning)

    def look(self, world: Observation, *, planning: bool = True) -> Cycle:
        cycle = run_cycle(
            self._line,
            lambda: world,
            world,
            self._memory,
            number=1,
            name="l",
            planning=planning,
            known=self.watch.state.known,
        )
        self._memory = cycle.after
        self.watch.succeeded(cycle, RECORDING, DONE)
        return cycle

    def copy(self) -> Agent:
        """As it is now; the memos of the line are shared, as they change no result."""
        other = Agent()
        other.watch._state, other._memory, other._line = self.watch.state, self._memory, self._line
        return other

    @property
    def known(self) -> LastKnown:
        assert self.watch.state.known is not None
        return self.watch.state.known

    def series(self) -> dict[tuple[str, tuple[str, ...]], float]:
        return exported(self.watch.state)


def exported(seen: LoopState) -> dict[tuple[str, tuple[str, ...]], float]:
    samples = RackwiseCollector(lambda: seen, "1", SeriesCaps()).samples()
    return {(name, labels): value for name, rows in samples.items() for labels, value in rows}


FIRST, SECOND = Agent(WORLD), Agent(WORLD, AFTER)

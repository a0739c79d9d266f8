"""A Streams application that runs, rebalances and catches up, to see where repeated assignments lead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from assignors.kafka.high_availability import high_availability
from assignors.kafka.streams_problem import (
    RUNNING_ACTIVE,
    AssignmentConfigs,
    RackFacts,
    StreamsClient,
    StreamsProblem,
    StreamsResult,
)
from assignors.problem import TaskId

Assignor = Callable[[StreamsProblem], StreamsResult]
END = 1_000_000
"""Offsets of a task's changelogs: the lag of a process that has no state."""


def process_id(number: int) -> str:
    return str(UUID(int=number))


def tasks(*texts: str) -> tuple[TaskId, ...]:
    return tuple(TaskId(*map(int, text.split("_"))) for text in " ".join(texts).split())


@dataclass
class Instance:
    """One process: what it runs, and how far it is behind on each task whose state it has."""

    capacity: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)
    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()
    lag: dict[TaskId, int] = field(default_factory=dict)


@dataclass
class StreamsApplication:
    """Instances by number. State stays on disk when a task goes; it is as old as it was then."""

    all_tasks: tuple[TaskId, ...]
    stateful: tuple[TaskId, ...]
    configs: AssignmentConfigs
    racks: RackFacts | None = None
    assignor: Assignor = high_availability
    instances: dict[int, Instance] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def problem(self) -> StreamsProblem:
        return StreamsProblem(
            tasks=self.all_tasks,
            stateful=self.stateful,
            clients=tuple(self._client(number, instance) for number, instance in self.instances.items()),
            configs=self.configs,
            racks=self.racks,
            iteration="sorted",
        )

    def _client(self, number: int, instance: Instance) -> StreamsClient:
        lags = {task: instance.lag.get(task, END) for task in self.stateful}
        lags |= {task: RUNNING_ACTIVE for task in instance.active if task in lags}
        return StreamsClient(
            id=process_id(number),
            capacity=instance.capacity,
            tags=instance.tags,
            prev_active=instance.active,
            prev_standby=instance.standby,
            lags=lags,
        )

    def rebalance(self) -> StreamsResult:
        result = self.assignor(self.problem())
        for number, instance in self.instances.items():
            instance.active = result.active[process_id(number)]
            instance.standby = result.standby[process_id(number)]
        self.history.append(f"{self.shown()} {'probing' if result.followup_rebalance else 'done'}")
        return result

    def catch_up(self) -> None:
        """All tasks restore what they miss."""
        for instance in self.instances.values():
            for task in {*instance.active, *instance.standby} & set(self.stateful):
                instance.lag[task] = 0

    def settle(self, most_rounds: int) -> int:
        """Rebalance and catch up until no probing is asked for; the number of rounds."""
        for rounds in range(1, most_rounds + 1):
            probing = self.rebalance().followup_rebalance
            self.catch_up()
            if not probing:
                return rounds
        raise AssertionError(f"still probing after {most_rounds} rounds:\n" + "\n".join(self.history))

    def copies(self, task: TaskId) -> int:
        return sum(task in instance.standby for instance in self.instances.values())

    def shown(self) -> dict[int, tuple[str, str]]:
        """Active tasks and standbys of each instance, as text."""
        return {
            number: (" ".join(map(str, instance.active)), " ".join(map(str, instance.standby)))
            for number, instance in self.instances.items()
        }

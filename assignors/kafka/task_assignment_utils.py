"""Kafka's ``TaskAssignmentUtils`` for custom task assignors (KIP-924): the rack-aware steps and the validation.

The rack-aware step is KIP-925's, with Kafka's differences (some of them faults):
- it runs only if both costs are configured;
- an active task also costs for its changelogs;
- processes come in the order of a hash map, so that ties may end otherwise;
- standbys are swapped under the configured strategy, so ``balance_subtopology`` redistributes the standbys of every
  pair of processes, and the client-tag rule compares a process with itself, so that it never holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import combinations

import numpy as np
import numpy.typing as npt

from assignors.kafka.rack_aware import RackAwareness, RackMisses, rack_misses
from assignors.kafka.rack_optimize import MOST_ROUNDS, RackOptimization, optimize_active
from assignors.kafka.streams_problem import (
    BALANCE_SUBTOPOLOGY,
    NO_STRATEGY,
    ClientState,
    FlowAnswer,
    RackFacts,
    Replicas,
    StreamsProblem,
    StreamsResult,
)
from assignors.kafka.swap_flow import swap
from assignors.kafka.task_flow import balance_subtopology
from assignors.problem import TaskId, TopicPartition

Ints = npt.NDArray[np.int64]
_FAR = 1 << 40
"""More than any task costs."""


class AssignmentError(StrEnum):
    """What can be wrong with an assignment, under Kafka's names."""

    NONE = "NONE"
    UNKNOWN_TASK_ID = "UNKNOWN_TASK_ID"
    ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES = "ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES"
    INVALID_STANDBY_TASK = "INVALID_STANDBY_TASK"
    MISSING_PROCESS_ID = "MISSING_PROCESS_ID"
    UNKNOWN_PROCESS_ID = "UNKNOWN_PROCESS_ID"


def validate_task_assignment(problem: StreamsProblem, result: StreamsResult) -> AssignmentError:
    """Return the first error that Kafka finds. A task that no process runs is none: Kafka does not look for it."""
    tasks, stateful = frozenset(problem.tasks), frozenset(problem.stateful)
    active: set[TaskId] = set()
    standby: set[TaskId] = set()
    processes = list(dict.fromkeys((*result.active, *result.standby)))
    for process in processes:
        for task in (*result.active.get(process, ()), *result.standby.get(process, ())):
            if task not in tasks:
                return AssignmentError.UNKNOWN_TASK_ID
        for task in result.active.get(process, ()):
            if task in active:
                return AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES
            active.add(task)
        standby.update(result.standby.get(process, ()))
    if standby - stateful:
        return AssignmentError.INVALID_STANDBY_TASK
    known = {client.id for client in problem.clients}
    if known - set(processes):
        return AssignmentError.MISSING_PROCESS_ID
    return AssignmentError.UNKNOWN_PROCESS_ID if set(processes) - known else AssignmentError.NONE


class RackAwareUtils:
    """The rack-aware step over the states of all processes, given in the order of Kafka's hash map of them."""

    def __init__(self, problem: StreamsProblem, states: Sequence[ClientState]) -> None:
        self._states = states
        facts = problem.racks
        self._sources: Mapping[TaskId, tuple[TopicPartition, ...]] = facts.task_partitions if facts else {}
        self._changelogs: Mapping[TaskId, tuple[TopicPartition, ...]] = facts.changelog_partitions if facts else {}
        self._partitions = {
            task: tuple(dict.fromkeys((*self._sources.get(task, ()), *self._changelogs.get(task, ()))))
            for task in problem.tasks
        }
        # Where the shared step reads source partitions it shall read all of a task's partitions.
        self._problem = replace(problem, racks=replace(facts, task_partitions=self._partitions)) if facts else problem
        self._awareness = RackAwareness(
            valid_client_rack=True,
            enabled=True,
            reason="",
            process_racks=_process_racks(facts, states),
            partition_racks=_partition_racks(facts) if facts else {},
        )

    def why_not(self, *, standby: bool) -> str:
        """Why the step cannot run for active tasks or standbys, as a sentence; empty when it can."""
        configs = self._problem.configs
        if configs.rack_aware_assignment_strategy == NO_STRATEGY:
            return "rack.aware.assignment.strategy is none"
        for name in ("traffic_cost", "non_overlap_cost"):
            if getattr(configs, f"rack_aware_assignment_{name}") is None:
                return f"rack.aware.assignment.{name} is not set; this assignor needs both costs to use racks"
        for state in self._states:
            if state.id not in self._awareness.process_racks:
                return f"process {state.id} has no rack; set client.rack"
        for task in self._problem.tasks:
            for partition in (self._changelogs if standby else self._partitions).get(task, ()):
                if not self._awareness.partition_racks.get(partition):
                    return f"the racks of partition {partition} of task {task} are unknown"
        return ""

    def optimize_active(self, tasks: Iterable[TaskId], costs: tuple[int, int]) -> RackOptimization:
        """Move these active tasks; ``costs`` are traffic and non-overlap. Only when ``why_not`` is empty."""
        return optimize_active(self._problem, self._awareness, self._states, tasks, costs)

    def optimize_standby(self, costs: tuple[int, int]) -> FlowAnswer:
        """Deal standbys anew between pairs of processes in different racks. Only when ``why_not`` is empty."""
        tasks = sorted({task for state in self._states for task in state.standby})
        if not tasks:
            return "not run"
        balance = self._problem.configs.rack_aware_assignment_strategy == BALANCE_SUBTOPOLOGY
        misses = rack_misses(self._awareness, tasks, [s.id for s in self._states], self._changelogs, costs)
        _StandbyPairs(self._states, tasks, misses, costs, balance=balance).run()
        return "as Kafka"


class _StandbyPairs:
    """Standbys of pairs of processes, and the pairs that are known to have nothing to gain."""

    def __init__(
        self,
        states: Sequence[ClientState],
        tasks: Sequence[TaskId],
        misses: RackMisses,
        costs: tuple[int, int],
        *,
        balance: bool,
    ) -> None:
        self._states, self._balance, self._stay = states, balance, costs[1]
        self._traffic, self._rack = misses.costs(costs[0]), misses.rack.tolist()
        self._number = {task: index for index, task in enumerate(tasks)}
        self._least = np.array([self._least_extra(index) for index in range(len(states))])
        """``[one, other]``: the least cost of passing a standby from one to the other."""
        self._changes = [0] * len(states)
        self._settled: dict[tuple[int, int], tuple[int, int]] = {}

    def run(self) -> None:
        apart = [
            pair for pair in combinations(range(len(self._states)), 2) if self._rack[pair[0]] != self._rack[pair[1]]
        ]
        for _ in range(MOST_ROUNDS):
            moved = [self._try(one, other) for one, other in apart]
            if not any(moved):
                break

    def _least_extra(self, index: int) -> Ints:
        rows = self._traffic[[self._number[task] for task in sorted(self._states[index].standby)]]
        extra: Ints = (rows - rows[:, [index]]).min(axis=0, initial=_FAR) + self._stay
        return extra

    def _try(self, one: int, other: int) -> bool:
        """Deal what the two can exchange anew; whether anything moved."""
        if not self._balance and self._least[one, other] + self._least[other, one] >= 0:
            return False  # no swap pays; a new deal by subtopology may move tasks even so
        before = self._changes[one], self._changes[other]
        if self._settled.get((one, other)) == before:
            return False
        if not self._exchange(one, other):
            self._settled[one, other] = before
            return False
        for index in (one, other):
            self._changes[index] += 1
            self._least[index] = self._least_extra(index)
        return True

    def _exchange(self, one: int, other: int) -> bool:
        pair = sorted((one, other), key=lambda index: self._states[index].key)
        first, second = (self._states[index] for index in pair)
        movable = (
            [task for task in first.standby if not second.has(task)],
            [task for task in second.standby if not first.has(task)],
        )
        if not all(movable):
            return False
        tasks = sorted((*movable[0], *movable[1]))
        owner = np.array([0 if task in first.standby else 1 for task in tasks], np.int64)
        price = self._traffic[np.ix_([self._number[task] for task in tasks], pair)] + self._stay
        price[np.arange(len(tasks)), owner] -= self._stay
        moves = [
            (task, before)
            for task, before, after in zip(tasks, owner.tolist(), self._deal(price, owner, tasks), strict=True)
            if before != after
        ]
        for task, before in moves:
            (first, second)[before].standby.remove(task)
            (first, second)[1 - before].standby.add(task)
        return bool(moves)

    def _deal(self, price: Ints, owner: Ints, tasks: Sequence[TaskId]) -> list[int]:
        if not self._balance:
            return swap([(here, there) for here, there in price.tolist()], owner.tolist())
        subtopology = np.array([task.subtopology for task in tasks], np.int64)
        dealt: list[int] = balance_subtopology(price, owner, subtopology).tolist()
        return dealt


def _process_racks(facts: RackFacts | None, states: Sequence[ClientState]) -> dict[str, str]:
    """Process -> the rack of its first consumer; the others are not looked at."""
    first = {
        process: next(iter(racks.values()), None) for process, racks in (facts.consumer_racks if facts else {}).items()
    }
    return {state.id: rack for state in states if (rack := first.get(state.id))}


def _partition_racks(facts: RackFacts) -> dict[TopicPartition, frozenset[str]]:
    """The racks of every partition of the application, brokers without one left out.

    Changelogs that are no source are described. So are sources of which some partition has no replicas in the
    metadata; the rest is believed.
    """
    sources = {partition for partitions in facts.task_partitions.values() for partition in partitions}
    changelogs = {partition for partitions in facts.changelog_partitions.values() for partition in partitions}
    to_describe = {partition.topic for partition in changelogs - sources}
    to_describe |= {partition.topic for partition in sources if _known(facts.cluster, partition) == ()}
    racks = {}
    for partition in sources | changelogs:
        replicas = _known(facts.described if partition.topic in to_describe else facts.cluster, partition)
        racks[partition] = frozenset(rack for rack in replicas or () if rack)
    return racks


def _known(topics: Mapping[str, tuple[Replicas, ...]], partition: TopicPartition) -> Replicas | None:
    """The replicas of a partition; None when it is not known at all."""
    partitions = topics.get(partition.topic, ())
    return partitions[partition.partition] if partition.partition < len(partitions) else None

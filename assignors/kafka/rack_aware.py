"""Kafka's ``RackAwareTaskAssignor``: whether racks can be used, and the cost of a task on a process (KIP-925).

All or nothing: one consumer without a rack, one source partition without metadata or one replica on a broker without
a rack disables it, also for active tasks when only a changelog is affected. The first obstacle is the reason.

A task costs ``traffic_cost`` per partition (active: sources, standby: changelogs) without a replica, in sync or not, in
the rack of the process, plus ``non_overlap_cost`` where it is not placed yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assignors.kafka.streams_problem import NO_STRATEGY, RackFacts, Replicas, StreamsProblem
from assignors.problem import BadProblem, TaskId, TopicPartition

Ints = npt.NDArray[np.int64]
PartitionRacks = Mapping[TopicPartition, frozenset[str]]

STATELESS_TRAFFIC_COST = 1
STATELESS_NON_OVERLAP_COST = 0
"""Traffic and non-overlap cost of stateless tasks, which no setting changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackAwareness:
    """The racks that the leader knows, and whether they suffice (Kafka's ``RackAwareTaskAssignor``)."""

    valid_client_rack: bool
    """Every process has consumers, and these name one rack per process."""
    enabled: bool
    """Whether the rack-aware step runs at all."""
    reason: str
    """Why it does not, as a sentence; empty when it does."""
    unexpected: bool = False
    """The step is configured and cannot run: Kafka logs the reason."""
    process_racks: Mapping[str, str] = field(default_factory=dict)
    partition_racks: PartitionRacks = field(default_factory=dict)
    """As far as the check came."""


def rack_awareness(problem: StreamsProblem) -> RackAwareness:
    """Check what Kafka checks, in its order: the strategy, clients, source partitions, changelogs."""
    configured = problem.configs.rack_aware_assignment_strategy != NO_STRATEGY
    process_racks, clients_missing = _process_racks(problem.racks)
    valid = not clients_missing
    partition_racks: dict[TopicPartition, set[str]] = {}
    if not configured:
        reason = "rack.aware.assignment.strategy is none"
    elif problem.racks is None or not valid:
        reason = clients_missing
    else:
        reason = _source_racks(problem.racks, partition_racks)
        if not reason and problem.configs.num_standby_replicas > 0:
            changelogs = {each.topic for all_ in problem.racks.changelog_partitions.values() for each in all_}
            reason = _described_racks(problem.racks.described, changelogs, partition_racks)
    return RackAwareness(
        valid_client_rack=valid,
        enabled=not reason,
        reason=reason,
        unexpected=configured and bool(reason),
        process_racks=process_racks,
        partition_racks={partition: frozenset(racks) for partition, racks in partition_racks.items()},
    )


class RackMisses(NamedTuple):
    """How many partitions of a task have no replica in the rack of a process: ``crossing[task, rack[process]]``."""

    crossing: Ints
    rack: Ints

    def costs(self, traffic_cost: int) -> Ints:
        """``[task, process]``: what traffic costs, without the cost of moving."""
        costs: Ints = self.crossing[:, self.rack] * traffic_cost
        return costs


def rack_misses(
    awareness: RackAwareness,
    tasks: Sequence[TaskId],
    processes: Sequence[str],
    partitions: Mapping[TaskId, tuple[TopicPartition, ...]],
    costs: tuple[int, int],
) -> RackMisses:
    """Count the partitions of each task that each process would read across racks.

    Raises ``BadProblem`` for a task without partitions, a partition or process without a known rack, and when these
    costs (traffic, non-overlap) add up to more than 32 bit for a task.
    """
    racks = _racks_of(awareness, processes)
    number = {rack: index for index, rack in enumerate(dict.fromkeys(racks))}
    rows = [_misses(awareness.partition_racks, task, partitions.get(task, ()), number) for task in tasks]
    most = max((len(partitions[task]) for task in tasks), default=0) * costs[0] + costs[1]
    if most > 2**31 - 1:
        raise BadProblem(f"costs of {costs[0]} (traffic) and {costs[1]} (non-overlap) exceed 32 bits; lower them")
    return RackMisses(
        np.array(rows, np.int64).reshape(len(tasks), len(number)),
        np.array([number[rack] for rack in racks], np.int64),
    )


def both_tags_and_racks(problem: StreamsProblem, awareness: RackAwareness) -> tuple[str, ...]:
    """The warning that KIP-925 asks for when tags and ``client.rack`` are both set and differ.

    Standbys follow the tags, which can hold more than a rack.
    """
    tags = problem.configs.rack_aware_assignment_tags
    if not tags or not awareness.valid_client_rack or not awareness.process_racks:
        return ()
    names = ", ".join(tags)
    if "rack" not in tags:
        return (f"rack.aware.assignment.tags ({names}) and client.rack are both set; standbys follow the tags",)
    for client in problem.clients:
        rack, tag = awareness.process_racks.get(client.id), client.tags.get("rack")
        if rack != tag:
            differ = f"process {client.id} has client.rack {rack} and client.tag.rack {tag}"
            return (f"rack.aware.assignment.tags and client.rack are both set, but {differ}; standbys follow the tags",)
    return ()


def _process_racks(facts: RackFacts | None) -> tuple[dict[str, str], str]:
    """The rack of each process, and why clients are not enough to go by (empty: they are)."""
    racks: dict[str, str] = {}
    if facts is None:
        return racks, "no racks are known"
    for process, consumers in sorted(facts.consumer_racks.items()):
        if not consumers:
            return racks, f"process {process} has no consumer, so no rack; it must join with client.rack set"
        for consumer, rack in consumers.items():
            if not rack:
                return racks, f"consumer {consumer} of process {process} has no rack; set client.rack"
            if racks.setdefault(process, rack) != rack:
                return (
                    racks,
                    f"consumers of process {process} have two racks, {racks[process]} and {rack}; set one client.rack",
                )
    return racks, ""


def _source_racks(facts: RackFacts, racks: dict[TopicPartition, set[str]]) -> str:
    """Fill in the racks of source partitions; return the first that is missing, if any."""
    to_describe: set[str] = set()
    for partitions in facts.task_partitions.values():
        for partition in partitions:
            known = facts.cluster.get(partition.topic, ())
            if partition.partition >= len(known):
                return f"partition {partition} is not in the leader's metadata; does the topic exist?"
            if not known[partition.partition]:
                to_describe.add(partition.topic)
            elif reason := _add(partition, known[partition.partition], racks):
                return reason
    return _described_racks(facts.described, to_describe, racks)


def _described_racks(
    described: Mapping[str, tuple[Replicas, ...]], topics: Iterable[str], racks: dict[TopicPartition, set[str]]
) -> str:
    for topic in sorted(topics):
        if topic not in described:
            return f"topic {topic} could not be described; does it exist, and may the application describe it?"
        for number, replicas in enumerate(described[topic]):
            if reason := _add(TopicPartition(topic, number), replicas, racks):
                return reason
    return ""


def _add(partition: TopicPartition, replicas: Replicas, racks: dict[TopicPartition, set[str]]) -> str:
    if not replicas:
        return f"the replicas of partition {partition} are unknown"
    for rack in replicas:
        if not rack:
            where = "on a broker without a rack: it is down or removed, or has no broker.rack"
            return f"a replica of partition {partition} is {where}"
        racks.setdefault(partition, set()).add(rack)
    return ""


def _racks_of(awareness: RackAwareness, processes: Sequence[str]) -> list[str]:
    for process in processes:
        if process not in awareness.process_racks:
            raise BadProblem(f"process {process} has no consumer with a rack; list its consumers")
    return [awareness.process_racks[process] for process in processes]


def _misses(
    racks: PartitionRacks, task: TaskId, partitions: tuple[TopicPartition, ...], number: Mapping[str, int]
) -> list[int]:
    """How many partitions have no replica in each of the numbered racks."""
    if not partitions:
        raise BadProblem(f"task {task} has no partitions; a task reads at least one, and keeps state in a changelog")
    misses = [len(partitions)] * len(number)
    for partition in partitions:
        local = racks.get(partition)
        if not local:
            raise BadProblem(f"the racks of partition {partition} of task {task} are unknown")
        for rack in local:
            if rack in number:
                misses[number[rack]] -= 1
    return misses

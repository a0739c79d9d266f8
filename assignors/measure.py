"""Measures of an assignment: balance, stickiness, traffic between racks, moves, and spread of standbys.

An unknown rack is local nowhere and far from none. Both balances of tasks are KIP-441's (processes differ by at most
one task; subtopologies differ by at most one in how many processes run them).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from assignors.problem import (
    ConsumerProblem,
    ReplicaProblem,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TopicPartition,
)

_T = TypeVar("_T")
PartitionAssignment = Mapping[str, Iterable[TopicPartition]]
TaskAssignment = Mapping[str, Iterable[TaskId]]


# --- consumer partitions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMeasure:
    """One assignment of a consumer group, measured."""

    loads: Mapping[str, int]
    """Member -> number of partitions."""
    crossing_partitions: int
    crossing: int
    """Weight of the crossing partitions times its price; their number when the problem has neither."""
    kept: int
    moved: int
    """Partitions that another member owned; one that none or several owned is neither kept nor moved."""

    @property
    def gap(self) -> int:
        """Largest load minus smallest."""
        return max(self.loads.values(), default=0) - min(self.loads.values(), default=0)


def measure_consumer(problem: ConsumerProblem, assignment: PartitionAssignment) -> ConsumerMeasure:
    """Measure an assignment; partitions and members that the problem does not know are counted as crossing."""
    rack = {member.id: member.rack for member in problem.members}
    owner = sole_owners((member.id, member.owned) for member in problem.members)
    loads = dict.fromkeys(sorted(rack), 0)
    partitions = weight = kept = moved = 0
    for member, given in assignment.items():
        for partition in given:
            loads[member] = loads.get(member, 0) + 1
            if rack.get(member) not in _racks(problem, partition):
                partitions += 1
                price = reading_price(problem, _racks(problem, partition), rack.get(member))
                weight += price * (1 if problem.weights is None else problem.weights.get(partition, 1))
            if partition in owner:
                kept += owner[partition] == member
                moved += owner[partition] != member
    return ConsumerMeasure(loads=loads, crossing_partitions=partitions, crossing=weight, kept=kept, moved=moved)


def reading_price(problem: ConsumerProblem, replicas: frozenset[str], reader: str | None) -> int:
    """What a unit of weight costs that is read in rack ``reader`` from the cheapest of the racks with a replica."""
    if reader in replicas:
        return 0
    prices = problem.prices or {}
    if reader is None or not replicas:
        return max(1, *prices.values()) if prices else 1
    return min(prices.get((rack, reader), 1) for rack in replicas)


def sole_owners(claims: Iterable[tuple[str, Iterable[_T]]]) -> dict[_T, str]:
    """Partition (or task) -> the only one that claims it; what several claim belongs to none."""
    owner: dict[_T, str] = {}
    contested: set[_T] = set()
    for name, claimed in claims:
        for each in claimed:
            if owner.setdefault(each, name) != name:
                contested.add(each)
    return {each: name for each, name in owner.items() if each not in contested}


def _racks(problem: ConsumerProblem, partition: TopicPartition) -> frozenset[str]:
    racks = problem.racks.get(partition.topic, ())
    return racks[partition.partition] if 0 <= partition.partition < len(racks) else frozenset()


# --- Streams tasks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMeasure:
    """One assignment of a Streams application, measured."""

    active: Mapping[str, int]
    """Process -> active tasks."""
    standby: Mapping[str, int]
    instances: Mapping[int | str, int]
    """Subtopology -> processes that run some of its tasks."""
    off_share: int
    """Active tasks above the rounded-up or short of the rounded-down share by capacity, summed over processes."""
    off_subtopology_share: int
    """The same per subtopology and process."""
    crossing: int
    """Source partitions of active tasks without a replica in the rack of their process."""
    crossing_weight: int
    standby_crossing: int
    """Changelog partitions of standbys without a replica in the rack of their process."""
    kept: int
    moved: int
    """Active tasks that are not where they were; one that none or several ran counts as moved."""
    standby_kept: int
    standby_moved: int
    """Standbys on a process that held no copy of the task."""
    shared: Mapping[str, int]
    """Tag (or ``"rack"``) -> copies of a task that share its value with another copy, the first left out."""
    cost: int
    """KIP-925's cost of the active tasks."""


def measure_tasks(
    problem: TaskProblem,
    active: TaskAssignment,
    standby: TaskAssignment | None = None,
    weights: Mapping[TaskId, int] | None = None,
) -> TaskMeasure:
    """Measure an assignment of known tasks to known processes; ``weights``: what one source partition of a task weighs.

    A task without a weight weighs 1; without ``weights`` those of the problem count. Raises ``KeyError`` for a task or
    process that the problem does not know.
    """
    tasks = {task.id: task for task in problem.tasks}
    processes = {process.id: process for process in problem.processes}
    running = [(tasks[task], processes[name]) for name, given in active.items() for task in given]
    helping = [(tasks[task], processes[name]) for name, given in (standby or {}).items() for task in given]
    crossing = {task.id: _misses(task.sources, process) for task, process in running}
    weight = sum(_weight(task, process) for task, process in running)
    owner = sole_owners((process.id, process.active) for process in problem.processes)
    kept = sum(owner.get(task.id) == process.id for task, process in running)
    held = sum(task.id in process.standby or task.id in process.active for task, process in helping)
    moved = len(running) - kept
    pairs = Counter((task.id.subtopology, process.id) for task, process in running)
    return TaskMeasure(
        active=_count(processes, running),
        standby=_count(processes, helping),
        instances=Counter(subtopology for subtopology, _ in pairs),
        off_share=_off_share(problem, Counter(process.id for _, process in running), len(problem.tasks)),
        off_subtopology_share=sum(
            _off_share(problem, {p: pairs[subtopology, p] for p in processes}, size)
            for subtopology, size in Counter(task.subtopology for task in tasks).items()
        ),
        crossing=sum(crossing.values()),
        crossing_weight=weight if weights is None else sum(n * weights.get(task, 1) for task, n in crossing.items()),
        standby_crossing=sum(_misses(task.changelogs, process) for task, process in helping),
        kept=kept,
        moved=moved,
        standby_kept=held,
        standby_moved=len(helping) - held,
        shared=dict(_shared(problem, running, helping)),
        cost=problem.traffic_cost * weight + problem.non_overlap_cost * moved,
    )


def _count(processes: Iterable[str], placed: Iterable[tuple[StreamsTask, TaskProcess]]) -> dict[str, int]:
    counts = Counter(process.id for _, process in placed)
    return {name: counts[name] for name in sorted(processes)}


def _misses(partitions: Iterable[frozenset[str]], process: TaskProcess) -> int:
    return sum(process.rack is None or process.rack not in racks for racks in partitions)


def _weight(task: StreamsTask, process: TaskProcess) -> int:
    """What its crossing sources weigh, by the problem's own weights."""
    if task.weights is None:
        return _misses(task.sources, process)
    rows = zip(task.sources, task.weights, strict=True)
    return sum(weight for racks, weight in rows if process.rack is None or process.rack not in racks)


def _off_share(problem: TaskProblem, counts: Mapping[str, int], tasks: int) -> int:
    capacity = sum(process.capacity for process in problem.processes)
    off = 0
    for process in problem.processes:
        low, high = process.capacity * tasks // capacity, -(-process.capacity * tasks // capacity)
        off += max(0, low - counts.get(process.id, 0), counts.get(process.id, 0) - high)
    return off


def _shared(
    problem: TaskProblem, running: list[tuple[StreamsTask, TaskProcess]], helping: list[tuple[StreamsTask, TaskProcess]]
) -> Iterator[tuple[str, int]]:
    copies: dict[TaskId, list[TaskProcess]] = {}
    for task, process in (*running, *helping):
        copies.setdefault(task.id, []).append(process)
    for tag in problem.rack_aware_tags or ("rack",):
        more = 0
        for holders in copies.values():
            values = {value for value in (_value(process, tag, problem) for process in holders) if value is not None}
            more += len(holders) - max(1, len(values))
        yield tag, more


def _value(process: TaskProcess, tag: str, problem: TaskProblem) -> str | None:
    return dict(process.tags).get(tag) if problem.rack_aware_tags else process.rack


# --- replicas -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMeasure:
    """Replica lists after some changes, measured."""

    counts: Mapping[int, int]
    """Broker -> replicas."""
    leaders: Mapping[str, int]
    """Rack -> partitions whose preferred leader is there; leaders without a known rack are left out."""
    crowded: int
    """Replicas beyond what the rack rule allows, summed over partitions."""
    moved_replicas: int
    moved_bytes: int
    leaders_changed: int


def measure_replicas(
    problem: ReplicaProblem, changes: Mapping[TopicPartition, tuple[int, ...]] | None = None
) -> ReplicaMeasure:
    """Measure the problem's replica lists with ``changes`` put in their place."""
    rack = {broker.id: broker.rack for broker in problem.brokers}
    racks = len({name for name in rack.values() if name is not None})
    counts = Counter(dict.fromkeys(sorted(rack), 0))
    leaders: Counter[str] = Counter()
    crowded = moved = moved_bytes = leaders_changed = 0
    for partition in problem.partitions:
        after = (changes or {}).get(partition.id, partition.replicas)
        counts.update(after)
        leader = rack.get(after[0]) if after else None
        if leader is not None:
            leaders[leader] += 1
        crowded += sum(crowding(after, rack, racks).values())
        new = len(set(after) - set(partition.replicas))
        moved += new
        moved_bytes += new * (1 if partition.size_bytes is None else partition.size_bytes)
        leaders_changed += after[:1] != partition.replicas[:1]
    return ReplicaMeasure(
        counts=dict(counts),
        leaders=dict(sorted(leaders.items())),
        crowded=crowded,
        moved_replicas=moved,
        moved_bytes=moved_bytes,
        leaders_changed=leaders_changed,
    )


def crowding(replicas: Iterable[int], rack: Mapping[int, str | None], racks: int) -> dict[str, int]:
    """Rack -> replicas of a partition beyond ceil(RF / racks), only racks with such; unknown racks are left out."""
    brokers = list(replicas)
    if not racks:
        return {}
    most = -(-len(brokers) // racks)
    held = Counter(name for name in map(rack.get, brokers) if name is not None)
    return {name: count - most for name, count in sorted(held.items()) if count > most}

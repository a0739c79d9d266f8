"""Assessment of Kafka Streams applications: the best process for each active task (KIP-925).

Priorities: balance by threads (per subtopology where the application asks for it), then source partitions in the
process's rack, then fewest moved tasks. Standbys have findings of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.detect.assess_consumers import LocalityCounts, count_reads, gain, localities, racks_by_partition
from agent.values.assessment import NOWHERE, Assessment, GroupLocality, LocalityMeasure, NotAssessed, TopicMasks
from agent.values.kafka import BALANCE_SUBTOPOLOGY, STABLE
from agent.values.limits import GroupLimits
from agent.values.snapshot import StreamsGroup, StreamsTopology, TaskState, TaskStatefulness
from assignors.optimal import optimal_tasks
from assignors.problem import StreamsTask, TaskId, TaskProblem, TaskProcess, TaskResult, TopicPartition


class TaskOptimum(NamedTuple):
    """The exact optimum by one measure."""

    tally: LocalityCounts
    gap: int = 0
    slack: int = 0
    """How far below the optimum the proven bound may lie; 0 for an exact answer."""
    result: TaskResult | None = None
    """None when the present assignment is as good."""


def assess_tasks(group: StreamsGroup, locality: GroupLocality, settings: GroupLimits) -> Assessment:
    """Current and optimal locality of the active tasks by both measures, or why they are unknown."""
    readers = [locality.bits.reader(process.rack) for process in group.processes]
    topology = group.topology
    why_not = _why_not(group, readers, locality.masks)
    if why_not is not None or topology is None:
        return Assessment(group_id=group.id, why_not=why_not or NotAssessed.TOPOLOGY_UNKNOWN)

    active = [process.active for process in group.processes]
    kafka, read = count_reads(reads_of_tasks(topology, readers, active), locality.masks)
    best = _optimum(group, topology, locality, settings, LocalityMeasure.KAFKA)
    best_read = best if read is kafka else _optimum(group, topology, locality, settings, LocalityMeasure.READ_LOCAL)
    return Assessment(
        group_id=group.id,
        current=localities(kafka, read),
        optimal=localities(best.tally, best_read.tally),
        crossing=kafka.crossing,
        optimal_crossing=kafka.crossing - best.gap,
        lower_bound=kafka.crossing - best.gap - best.slack,
        moved=best.result.moved if best.result else 0,
        result=best.result,
        away=0 if locality.blurred else readers.count(NOWHERE),
        locality=locality,
    )


def reads_of_tasks(
    topology: StreamsTopology, readers: Sequence[int], active: Sequence[Sequence[TaskId]]
) -> list[tuple[int, list[TopicPartition]]]:
    """(bit of the process's rack, source partitions of its active tasks), process by process."""
    sources = {task.id: task.sources for task in topology.tasks}
    return [
        (bit, [source for task in tasks for source in sources.get(task, ())])
        for bit, tasks in zip(readers, active, strict=True)
    ]


def task_problem(
    group: StreamsGroup,
    topology: StreamsTopology,
    locality: GroupLocality,
    settings: GroupLimits,
    measure: LocalityMeasure,
) -> TaskProblem:
    """The active tasks as the assignors' contract puts them.

    One crossing costs more than moving every task, so that the optimum crosses least first and moves least second.
    """
    racks = racks_by_partition(locality, measure)
    processes = [
        TaskProcess(
            id=process.id,
            rack=process.rack.name if locality.bits.reader(process.rack) else None,
            capacity=process.capacity,
            active=process.active,
        )
        for process in group.processes
    ]
    return TaskProblem(
        tasks=tuple(_task(task, racks) for task in topology.tasks),
        processes=tuple(processes),
        balance="subtopology" if settings.rack_aware_assignment_strategy == BALANCE_SUBTOPOLOGY else "none",
        traffic_cost=_traffic_cost(topology),
        non_overlap_cost=1,
    )


def _why_not(group: StreamsGroup, readers: Sequence[int], masks: Mapping[str, TopicMasks]) -> NotAssessed | None:
    if any(member.defects for member in group.members):
        return NotAssessed.UNDECODABLE
    if group.topology is None or not group.processes:
        return NotAssessed.TOPOLOGY_UNKNOWN
    known = {task.id for task in group.topology.tasks}
    if any(task not in known for process in group.processes for task in process.active):
        return NotAssessed.TOPOLOGY_UNKNOWN
    if any(source.topic not in masks for task in group.topology.tasks for source in task.sources):
        return NotAssessed.TOPICS_UNKNOWN
    runs = [task for process in group.processes for task in process.active]
    twice = group.state == STABLE and len(set(runs)) < len(runs)  # what is read twice would be measured twice
    if twice or any(source.partition < 0 for task in group.topology.tasks for source in task.sources):
        return NotAssessed.CONTRADICTORY
    return None if any(readers) else NotAssessed.NO_RACKS


def _optimum(
    group: StreamsGroup,
    topology: StreamsTopology,
    locality: GroupLocality,
    settings: GroupLimits,
    measure: LocalityMeasure,
) -> TaskOptimum:
    """The best by one measure; the present itself when nothing better is possible or nothing can be claimed."""
    readers = [locality.bits.reader(process.rack) for process in group.processes]
    by_read = measure is LocalityMeasure.READ_LOCAL
    reads = reads_of_tasks(topology, readers, [process.active for process in group.processes])
    now = count_reads(reads, locality.masks)[by_read]
    if not now.crossing or (by_read and locality.bits.selector_is_rack_aware is None):
        return TaskOptimum(now)
    if not now.unknown and now.crossing <= _unavoidable(group, topology, locality, measure):
        return TaskOptimum(now)
    result = optimal_tasks(task_problem(group, topology, locality, settings, measure))
    wanted = reads_of_tasks(topology, readers, [result.active[process.id] for process in group.processes])
    best = count_reads(wanted, locality.masks)[by_read]
    gap = gain(now, best)
    slack = 0 if result.optimal else max(0, result.crossing - result.lower_bound // _traffic_cost(topology))
    return TaskOptimum(best, gap, slack, result) if gap else TaskOptimum(now)


def _unavoidable(
    group: StreamsGroup, topology: StreamsTopology, locality: GroupLocality, measure: LocalityMeasure
) -> int:
    """Crossings of the running tasks that no assignment avoids, as no process lives near enough; balance left aside."""
    racks = {locality.bits.reader(process.rack) for process in group.processes} - {0}
    running = {task for process in group.processes for task in process.active}
    least = 0
    for task in topology.tasks:
        if task.id in running:
            near = [_mask(source, locality.masks, measure) for source in task.sources]
            least += min(sum(not mask & bit for mask in near) for bit in racks)
    return least


def _mask(source: TopicPartition, masks: Mapping[str, TopicMasks], measure: LocalityMeasure) -> int:
    of = masks[source.topic].kafka if measure is LocalityMeasure.KAFKA else masks[source.topic].read
    return of[source.partition] if source.partition < len(of) else 0


def _task(task: TaskState, racks: Mapping[str, tuple[frozenset[str], ...]]) -> StreamsTask:
    near = [
        racks[source.topic][source.partition] if source.partition < len(racks[source.topic]) else frozenset[str]()
        for source in task.sources
    ]
    return StreamsTask(id=task.id, stateful=task.statefulness is not TaskStatefulness.STATELESS, sources=tuple(near))


def _traffic_cost(topology: StreamsTopology) -> int:
    return len(topology.tasks) + 1

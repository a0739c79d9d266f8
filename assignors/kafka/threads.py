"""Tasks of a process over its stream threads: ``StreamsPartitionAssignor.assignTasksToThreads``, without racks.

Priorities: every thread within one task of the others, then stickiness by reported state; stateful active tasks first,
then standbys, then stateless active tasks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from assignors.kafka.java import JavaHeap, utf16_key
from assignors.kafka.streams_order import tasks_in_hash_order
from assignors.kafka.streams_problem import RUNNING_ACTIVE, UNKNOWN_LAG
from assignors.problem import BadProblem, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamThread:
    """One stream thread, known by its consumer, and the state that it reported when it joined."""

    consumer: str
    offset_sums: Mapping[TaskId, int]
    """Task -> sum of the offsets of its stores, or ``RUNNING_ACTIVE``, or ``UNKNOWN_LAG``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadProblem:
    """What one process got, and the threads that shall run it."""

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    threads: tuple[StreamThread, ...]
    """In the order in which the leader read their subscriptions: the last report of a task counts."""
    end_offset_sums: Mapping[TaskId, int]
    """Task -> sum of its changelogs' end offsets, for every stateful task of the application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTasks:
    """What one thread runs; every tuple is sorted."""

    active_stateful: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    active_stateless: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadResult:
    """Every consumer of the process with its tasks, and what Kafka would warn of."""

    threads: Mapping[str, ThreadTasks]
    warnings: tuple[str, ...] = ()


def assign_threads(problem: ThreadProblem) -> ThreadResult:
    """Deal a process's tasks to its threads as Kafka does. Raises ``BadProblem`` where an id is listed twice."""
    _check(problem)
    warnings: list[str] = []
    lags = _lags(problem, warnings)
    order = sorted(problem.threads, key=lambda thread: utf16_key(thread.consumer))
    previous = [
        (thread.consumer, sorted((task for task in thread.offset_sums if task in lags), key=lambda t: (lags[t], t)))
        for thread in order
    ]
    no_history: list[tuple[str, list[TaskId]]] = [(thread.consumer, []) for thread in order]
    stateful = [task for task in sorted(problem.active) if task in lags]
    stateless = [task for task in sorted(problem.active) if task not in lags]

    load = dict.fromkeys((thread.consumer for thread in order), 0)
    actives = _deal(tasks_in_hash_order(stateful), previous, load)
    standbys = _deal(sorted(problem.standby), previous, load)
    others = _deal(tasks_in_hash_order(stateless), no_history, load)
    return ThreadResult(
        threads={
            consumer: ThreadTasks(
                active_stateful=tuple(sorted(actives[consumer])),
                standby=tuple(sorted(standbys[consumer])),
                active_stateless=tuple(sorted(others[consumer])),
            )
            for consumer in load
        },
        warnings=tuple(warnings),
    )


def _check(problem: ThreadProblem) -> None:
    if not problem.threads:
        raise BadProblem("the process has no consumers; a process that got tasks has at least one thread")
    for what, ids in (
        ("consumer", [thread.consumer for thread in problem.threads]),
        ("task", [*problem.active, *problem.standby]),
    ):
        seen: set[object] = set()
        for each in ids:
            if each in seen:
                raise BadProblem(f"{what} {each} is listed twice; a process has it once, and active or as a standby")
            seen.add(each)


def _lags(problem: ThreadProblem, warnings: list[str]) -> dict[TaskId, int]:
    """The lag of every stateful task on this process; one that it reported nothing of lags by all there is."""
    sums: dict[TaskId, int] = {}
    for thread in problem.threads:
        sums |= thread.offset_sums
    lags = {}
    for task, end in problem.end_offset_sums.items():
        offset = sums.get(task, 0)
        if offset in (RUNNING_ACTIVE, UNKNOWN_LAG):
            lags[task] = offset
        elif end < offset:
            lags[task] = end
            warnings.append(
                f"task {task} has offset sum {offset} beyond its end offset sum {end}: its state is probably corrupted "
                "and will be restored from scratch"
            )
        else:
            lags[task] = end - offset
    return lags


def _deal(
    tasks: Iterable[TaskId], previous: list[tuple[str, list[TaskId]]], load: dict[str, int]
) -> dict[str, list[TaskId]]:
    """Deal one kind of tasks on top of the load that the threads have, and add to that load.

    ``previous`` names the consumers in order, each with the tasks that it has state of, the least lag first.
    """
    waiting = JavaHeap(tasks)
    dealt: dict[str, list[TaskId]] = {consumer: [] for consumer in load}
    if not len(waiting):
        return dealt
    least = (len(waiting) + sum(load.values())) // len(load)

    skipped: dict[TaskId, str] = {}
    unplaced = set(waiting)
    for consumer, tasks_with_state in previous:
        for task in tasks_with_state:
            if task in unplaced:
                if load[consumer] < least:
                    _give(task, consumer, dealt, load)
                    waiting.discard(task)
                    unplaced.remove(task)
                else:
                    skipped[task] = consumer  # of several threads with its state, the last is remembered

    below = deque(consumer for consumer in load if load[consumer] < least)
    while below:
        consumer = below.popleft()
        _give(waiting.pop(), consumer, dealt, load)
        if load[consumer] < least:
            below.append(consumer)

    for task, consumer in _one_more(waiting, skipped, [consumer for consumer in load if load[consumer] == least]):
        _give(task, consumer, dealt, load)
    return dealt


def _one_more(waiting: JavaHeap[TaskId], skipped: dict[TaskId, str], open_: list[str]) -> Iterator[tuple[TaskId, str]]:
    """The remaining tasks, at most one for each of the open threads: to where their state is, else as the heap lies."""
    free = dict.fromkeys(open_)
    unplaced = set(waiting)
    for task, consumer in sorted(skipped.items()):
        if consumer in free and task in unplaced:
            waiting.discard(task)
            del free[consumer]
            yield task, consumer
    yield from zip(waiting, free, strict=False)


def _give(task: TaskId, consumer: str, dealt: dict[str, list[TaskId]], load: dict[str, int]) -> None:
    dealt[consumer].append(task)
    load[consumer] += 1

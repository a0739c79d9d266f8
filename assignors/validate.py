"""Defects of a result, by name: broken constraints and wrong figures.

Shares no code with the assignors. A result without defects keeps every hard constraint of its problem (each partition
once, balance, replication factor, ...); optimality is shown by its bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from assignors.measure import crowding, measure_consumer, measure_replicas, measure_tasks
from assignors.problem import (
    ConsumerProblem,
    ConsumerResult,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaResult,
    TaskId,
    TaskProblem,
    TaskProcess,
    TaskResult,
    TopicPartition,
)


class DefectKind(StrEnum):
    """What can be wrong with a result."""

    UNKNOWN_MEMBER = "a member that the group does not have"
    MEMBER_MISSING = "a member without an entry"
    UNKNOWN_PARTITION = "a partition that does not exist"
    ASSIGNED_TWICE = "a partition assigned twice"
    NOT_SUBSCRIBED = "a partition of a topic that its member does not subscribe to"
    PARTITION_MISSING = "a subscribed partition that is not assigned"
    UNBALANCED = "loads that could be fairer"
    COPARTITIONS_APART = "equal partition numbers of co-partitioned topics with different members"

    UNKNOWN_PROCESS = "a process that the application does not have"
    PROCESS_MISSING = "a process without an entry"
    UNKNOWN_TASK = "a task that does not exist"
    ACTIVE_TWICE = "a task active on two processes"
    TASK_LOST = "a task that runs on no process"
    COUNT_CHANGED = "a process with another number of tasks though counts are fixed"
    OVER_CAPACITY = "a process with more tasks than its share"
    UNDER_CAPACITY = "a process with fewer tasks than its share"
    SUBTOPOLOGY_UNBALANCED = "a process with more or fewer tasks of a subtopology than its share"
    STANDBY_OF_STATELESS = "a standby of a task without state"
    STANDBY_WITH_ACTIVE = "a standby on the process of its active task"
    STANDBY_TWICE = "two standbys of a task on one process"
    TOO_MANY_STANDBYS = "more standbys of a task than asked for"
    TOO_FEW_STANDBYS = "fewer standbys of a task than possible"

    UNKNOWN_BROKER = "a new replica on a broker that does not exist"
    BROKER_REFUSES = "a new replica on a broker that accepts nothing"
    RACK_UNKNOWN = "a new replica on a broker without a known rack"
    REPLICA_TWICE = "a broker twice in one replica list"
    REPLICATION_FACTOR_CHANGED = "another number of replicas than before"
    RACK_RULE_BROKEN = "more replicas in one rack than there must be"
    LEADER_DISPLACED = "a preferred leader that stays but is no longer first"
    NOTHING_CHANGED = "a change that changes nothing"
    NEEDLESS_MOVE = "a move of a partition that kept the rack rule"

    WRONG_FIGURE = "a stated figure that does not hold"


class ResultDefect(NamedTuple):
    """One defect of an assignment, with its sentence."""

    kind: DefectKind
    sentence: str


# --- consumer partitions --------------------------------------------------------------------------------------


def consumer_defects(problem: ConsumerProblem, result: ConsumerResult) -> tuple[ResultDefect, ...]:
    """Return the defects of a consumer group's result; none means it is valid and balanced."""
    return tuple(_consumer_defects(problem, result))


def _consumer_defects(problem: ConsumerProblem, result: ConsumerResult) -> Iterator[ResultDefect]:
    yield from _given_partitions(problem, result)
    yield from _range_balance(problem, result) if problem.copartitioned else _fair_loads(problem, result)
    measured = measure_consumer(problem, result.assignment)
    yield from _figures(("crossing", result.crossing, measured.crossing), ("moved", result.moved, measured.moved))
    yield from _bound(result.lower_bound, result.crossing)


def _given_partitions(problem: ConsumerProblem, result: ConsumerResult) -> Iterator[ResultDefect]:
    topics = {member.id: frozenset(member.topics) for member in problem.members}
    holders: defaultdict[TopicPartition, list[str]] = defaultdict(list)
    for name, partitions in result.assignment.items():
        if name not in topics:
            yield ResultDefect(DefectKind.UNKNOWN_MEMBER, f"{name} is not a member of the group")
        for partition in partitions:
            holders[partition].append(name)
            if not 0 <= partition.partition < len(problem.racks.get(partition.topic, ())):
                yield ResultDefect(DefectKind.UNKNOWN_PARTITION, f"{partition} of {name} does not exist")
            elif partition.topic not in topics.get(name, ()):
                yield ResultDefect(
                    DefectKind.NOT_SUBSCRIBED, f"{name} is assigned {partition} but does not subscribe to its topic"
                )
    for name in sorted(set(topics) - set(result.assignment)):
        yield ResultDefect(DefectKind.MEMBER_MISSING, f"{name} has no entry, not even an empty one")
    for partition, names in sorted(holders.items()):
        if len(names) > 1:
            yield ResultDefect(DefectKind.ASSIGNED_TWICE, f"{partition} is assigned to {', '.join(sorted(names))}")
    subscribed = set().union(*topics.values()) & set(problem.racks)
    wanted = {TopicPartition(topic, number) for topic in subscribed for number in range(len(problem.racks[topic]))}
    for partition in sorted(wanted - set(holders)):
        yield ResultDefect(DefectKind.PARTITION_MISSING, f"{partition} is not assigned")


def _fair_loads(problem: ConsumerProblem, result: ConsumerResult) -> Iterator[ResultDefect]:
    """Loads are fairest when no chain of handing on leads from a member to one with two partitions less."""
    load = {member.id: len(result.assignment.get(member.id, ())) for member in problem.members}
    subscribers: defaultdict[str, list[str]] = defaultdict(list)
    holders: defaultdict[str, set[str]] = defaultdict(set)
    for member in problem.members:
        for topic in dict.fromkeys(member.topics):
            subscribers[topic].append(member.id)
    for name, partitions in result.assignment.items():
        for partition in partitions:
            holders[partition.topic].add(name)
    topics = {member.id: member.topics for member in problem.members}
    reached: set[str] = set()
    for poorest in sorted(load, key=lambda name: (load[name], name)):
        waiting = [poorest]
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            if load[name] >= load[poorest] + 2:
                yield ResultDefect(
                    DefectKind.UNBALANCED,
                    f"{name} has {load[name]} partitions and could give one to {poorest}, which has {load[poorest]}",
                )
                return
            waiting += [giver for topic in topics[name] for giver in holders.pop(topic, ()) if giver in load]


def _range_balance(problem: ConsumerProblem, result: ConsumerResult) -> Iterator[ResultDefect]:
    holder = {partition: name for name, given in result.assignment.items() for partition in given}
    subscribers: defaultdict[str, list[str]] = defaultdict(list)
    for member in problem.members:
        for topic in dict.fromkeys(member.topics):
            subscribers[topic].append(member.id)
    alike: defaultdict[tuple[frozenset[str], int], list[str]] = defaultdict(list)
    for topic in sorted(set(subscribers) & set(problem.racks)):
        size = len(problem.racks[topic])
        alike[frozenset(subscribers[topic]), size].append(topic)
        loads = Counter(holder.get(TopicPartition(topic, number)) for number in range(size))
        for name in subscribers[topic]:
            if not size // len(subscribers[topic]) <= loads[name] <= -(-size // len(subscribers[topic])):
                yield ResultDefect(
                    DefectKind.UNBALANCED,
                    f"{name} has {loads[name]} of {size} partitions of {topic}, which {len(subscribers[topic])} share",
                )
    for (_, size), topics in alike.items():
        for number in range(size):
            names = {holder.get(TopicPartition(topic, number)) for topic in topics}
            if len(names) > 1:
                yield ResultDefect(
                    DefectKind.COPARTITIONS_APART,
                    f"partition {number} of {', '.join(topics)} is assigned to {', '.join(sorted(map(str, names)))}",
                )


# --- Streams tasks ----------------------------------------------------------------------------------------------


def task_defects(problem: TaskProblem, result: TaskResult) -> tuple[ResultDefect, ...]:
    """Return the defects of a Streams application's result; none means it keeps every bound of its problem."""
    return tuple(_task_defects(problem, result))


def _task_defects(problem: TaskProblem, result: TaskResult) -> Iterator[ResultDefect]:
    stateful = {task.id: task.stateful for task in problem.tasks}
    strangers = [*_strangers(problem, "active", result.active), *_strangers(problem, "standby", result.standby)]
    yield from strangers
    actives: defaultdict[TaskId, list[str]] = defaultdict(list)
    for name, tasks in result.active.items():
        for task in tasks:
            actives[task].append(name)
    for task in sorted(stateful):
        if len(actives[task]) > 1:
            yield ResultDefect(DefectKind.ACTIVE_TWICE, f"{task} is active on {', '.join(sorted(actives[task]))}")
        if not actives[task]:
            yield ResultDefect(DefectKind.TASK_LOST, f"{task} is active on no process")
    size = Counter(task.id.subtopology for task in problem.tasks)
    capacity = sum(process.capacity for process in problem.processes)
    for process in problem.processes:
        before = len(stateful.keys() & set(process.active))
        tasks = result.active.get(process.id, ())
        yield from _share_defects(problem, process, tasks, before, size=size, capacity=capacity)
    yield from _standby_defects(problem, result, actives, stateful)
    if all(defect.kind is DefectKind.PROCESS_MISSING for defect in strangers):
        measured = measure_tasks(problem, result.active, result.standby)
        yield from _figures(
            ("crossing", result.crossing, measured.crossing_weight),
            ("moved", result.moved, measured.moved),
            ("cost", result.cost, measured.cost),
        )
    yield from _bound(result.lower_bound, result.cost)


def _strangers(problem: TaskProblem, role: str, given: Mapping[str, Iterable[TaskId]]) -> Iterator[ResultDefect]:
    known = {process.id for process in problem.processes}
    for name in sorted(set(given) - known):
        yield ResultDefect(DefectKind.UNKNOWN_PROCESS, f"{name} is not a process of the application ({role})")
    for name in sorted(known - set(given)):
        yield ResultDefect(DefectKind.PROCESS_MISSING, f"{name} has no {role} entry, not even an empty one")
    tasks = {task for each in given.values() for task in each}
    for task in sorted(tasks - {task.id for task in problem.tasks}):
        yield ResultDefect(DefectKind.UNKNOWN_TASK, f"{task} does not exist ({role})")


def _share_defects(
    problem: TaskProblem,
    process: TaskProcess,
    tasks: Iterable[TaskId],
    before: int,
    *,
    size: Counter[int | str],
    capacity: int,
) -> Iterator[ResultDefect]:
    """``before``: its tasks until now; ``size``: tasks per subtopology; ``capacity``: of all processes."""
    mine = Counter(task.subtopology for task in tasks)
    count = mine.total()
    low, high = process.capacity * size.total() // capacity, -(-process.capacity * size.total() // capacity)
    if problem.counts == "fixed":
        if count != before:
            yield ResultDefect(DefectKind.COUNT_CHANGED, f"{process.id} has {count} tasks instead of {before}")
    elif count > high:
        yield ResultDefect(DefectKind.OVER_CAPACITY, f"{process.id} has {count} tasks, its share is at most {high}")
    elif count < low:
        yield ResultDefect(DefectKind.UNDER_CAPACITY, f"{process.id} has {count} tasks, its share is at least {low}")
    if problem.balance == "none":
        return
    for subtopology, tasks_of_it in size.items():
        low, high = process.capacity * tasks_of_it // capacity, -(-process.capacity * tasks_of_it // capacity)
        if problem.counts == "fixed":
            share = before * 1.0 / size.total() * tasks_of_it
            low, high = 0, int(share) + (share > int(share))
        if not low <= mine[subtopology] <= high:
            yield ResultDefect(
                DefectKind.SUBTOPOLOGY_UNBALANCED,
                f"{process.id} has {mine[subtopology]} tasks of subtopology {subtopology}, its share {low} to {high}",
            )


def _standby_defects(
    problem: TaskProblem, result: TaskResult, actives: dict[TaskId, list[str]], stateful: dict[TaskId, bool]
) -> Iterator[ResultDefect]:
    standbys: defaultdict[TaskId, list[str]] = defaultdict(list)
    for name, tasks in result.standby.items():
        for task in tasks:
            standbys[task].append(name)
    for task, names in sorted(standbys.items()):
        if not stateful.get(task, True):
            yield ResultDefect(DefectKind.STANDBY_OF_STATELESS, f"{task} has no state but a standby on {names[0]}")
        for name in sorted(set(names) & set(actives.get(task, ()))):
            yield ResultDefect(DefectKind.STANDBY_WITH_ACTIVE, f"{task} is active and standby on {name}")
        for name, count in Counter(names).items():
            if count > 1:
                yield ResultDefect(DefectKind.STANDBY_TWICE, f"{name} holds {count} standbys of {task}")
        if len(names) > problem.num_standby_replicas:
            yield ResultDefect(DefectKind.TOO_MANY_STANDBYS, f"{task} has {len(names)} standbys")
    wanted = min(problem.num_standby_replicas, len(problem.processes) - 1)
    for task in sorted(task for task, state in stateful.items() if state and len(standbys[task]) < wanted):
        yield ResultDefect(DefectKind.TOO_FEW_STANDBYS, f"{task} has {len(standbys[task])} of {wanted} standbys")


# --- replicas -----------------------------------------------------------------------------------------------------


def replica_defects(problem: ReplicaProblem, result: ReplicaResult) -> tuple[ResultDefect, ...]:
    """Return the defects of a plan for replicas; none means the rack rule holds wherever the plan did not excuse it."""
    return tuple(_replica_defects(problem, result))


def _replica_defects(problem: ReplicaProblem, result: ReplicaResult) -> Iterator[ResultDefect]:
    brokers = {broker.id: broker for broker in problem.brokers}
    rack = {broker.id: broker.rack for broker in problem.brokers}
    racks = len({name for name in rack.values() if name is not None})
    before = {partition.id: partition.replicas for partition in problem.partitions}
    excused = {each.id for each in result.infeasible}
    for name, old in sorted(before.items()):
        replicas = result.replicas.get(name, old)
        if name not in excused:
            for crowded, more in crowding(replicas, rack, racks).items():
                yield ResultDefect(
                    DefectKind.RACK_RULE_BROKEN, f"{name} has {more} replicas too many in rack {crowded}"
                )
    for name, replicas in sorted(result.replicas.items()):
        if name not in before:
            yield ResultDefect(DefectKind.UNKNOWN_PARTITION, f"{name} does not exist")
            continue
        old = before[name]
        yield from _list_defects(name, old, replicas)
        for number in sorted(set(replicas) - set(old)):
            yield from _target_defects(name, number, brokers.get(number))
        if not problem.balance and set(replicas) != set(old) and not crowding(old, rack, racks):
            yield ResultDefect(DefectKind.NEEDLESS_MOVE, f"{name} would move though it keeps the rack rule")
    measured = measure_replicas(problem, {name: new for name, new in result.replicas.items() if name in before})
    yield from _figures(
        ("moved_bytes", result.moved_bytes, measured.moved_bytes),
        ("moved_replicas", result.moved_replicas, measured.moved_replicas),
    )
    yield from _bound(result.lower_bound, result.moved_bytes)


def _target_defects(name: TopicPartition, number: int, broker: ReplicaBroker | None) -> Iterator[ResultDefect]:
    if broker is None:
        yield ResultDefect(DefectKind.UNKNOWN_BROKER, f"{name} would move to broker {number}, which does not exist")
    elif not broker.accepts:
        yield ResultDefect(
            DefectKind.BROKER_REFUSES, f"{name} would move to broker {number}, which accepts no replicas"
        )
    elif broker.rack is None:
        yield ResultDefect(DefectKind.RACK_UNKNOWN, f"{name} would move to broker {number}, whose rack is unknown")


def _list_defects(name: TopicPartition, old: tuple[int, ...], replicas: tuple[int, ...]) -> Iterator[ResultDefect]:
    if len(set(replicas)) != len(replicas):
        yield ResultDefect(DefectKind.REPLICA_TWICE, f"{name} would have one broker twice: {replicas}")
    if len(replicas) != len(old):
        yield ResultDefect(
            DefectKind.REPLICATION_FACTOR_CHANGED, f"{name} would have {len(replicas)} replicas instead of {len(old)}"
        )
    if replicas == old:
        yield ResultDefect(DefectKind.NOTHING_CHANGED, f"{name} is listed with the replicas it has")
    if replicas and old and old[0] in replicas and replicas[0] != old[0]:
        yield ResultDefect(DefectKind.LEADER_DISPLACED, f"{name} keeps broker {old[0]} but no longer first")


# --- all kinds ----------------------------------------------------------------------------------------------------


def _figures(*figures: tuple[str, int, int]) -> Iterator[ResultDefect]:
    for name, stated, measured in figures:
        if stated != measured:
            yield ResultDefect(DefectKind.WRONG_FIGURE, f"{name} is given as {stated} but is {measured}")


def _bound(bound: int, value: int) -> Iterator[ResultDefect]:
    if bound > value:
        yield ResultDefect(DefectKind.WRONG_FIGURE, f"the lower bound {bound} is above {value}")

"""Every defect is found and called by its name, and valid results have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from assignors import (
    ConsumerMember,
    ConsumerProblem,
    ConsumerResult,
    DefectKind,
    InfeasiblePartition,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaResult,
    ReplicaSet,
    ResultDefect,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TaskResult,
    TopicPartition,
    consumer_defects,
    optimal_consumer,
    optimal_replicas,
    optimal_tasks,
    replica_defects,
    task_defects,
)

A, B = frozenset("a"), frozenset("b")


def parts(names: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each[0], int(each[1:])) for each in names.split())


def kinds(defects: tuple[ResultDefect, ...]) -> set[DefectKind]:
    assert all(defect.sentence for defect in defects)
    return {defect.kind for defect in defects}


# --- consumer partitions ------------------------------------------------------------------------------------------

GROUP = ConsumerProblem(
    members=(
        ConsumerMember(id="x", rack="a", topics=("t", "u")),
        ConsumerMember(id="y", rack="b", topics=("t",)),
        ConsumerMember(id="z", rack="b", topics=("t",)),
    ),
    racks={"t": (A, B, B), "u": (A,)},
)
PAIRS = ConsumerProblem(
    members=tuple(ConsumerMember(id=name, rack="a", topics=("t", "u")) for name in "xy"),
    racks={"t": (A, A), "u": (A, A)},
    copartitioned=True,
)


def group_result(crossing: int = 0, moved: int = 0, lower_bound: int = 0, **given: str) -> ConsumerResult:
    assignment = {name: parts(names) for name, names in given.items()}
    return ConsumerResult(assignment=assignment, crossing=crossing, moved=moved, lower_bound=lower_bound, optimal=True)


CONSUMER = {
    "a stranger in the assignment": (
        GROUP, group_result(x="t0 u0", y="t1", z="t2", w=""), {DefectKind.UNKNOWN_MEMBER},
    ),
    "a member left out": (
        GROUP, group_result(x="t0 u0", y="t1 t2"), {DefectKind.MEMBER_MISSING, DefectKind.UNBALANCED},
    ),
    "a partition number beyond the topic": (
        GROUP, group_result(1, x="t0 u0", y="t1", z="t2 t9"), {DefectKind.UNKNOWN_PARTITION},
    ),
    "a topic that does not exist": (
        GROUP, group_result(1, x="t0 u0", y="t1", z="t2 v0"), {DefectKind.UNKNOWN_PARTITION},
    ),
    "a partition given twice": (
        GROUP, group_result(1, x="t0 u0", y="t1 t0", z="t2"), {DefectKind.ASSIGNED_TWICE},
    ),
    "a partition of a topic not subscribed": (
        GROUP, group_result(1, x="t0", y="t1 u0", z="t2"), {DefectKind.NOT_SUBSCRIBED},
    ),
    "a partition forgotten": (GROUP, group_result(x="u0", y="t1", z="t2"), {DefectKind.PARTITION_MISSING}),
    "a load that could be handed on": (GROUP, group_result(2, x="t0 t1 t2 u0", y="", z=""), {DefectKind.UNBALANCED}),
    "a load that could be handed on over a third member": (
        ConsumerProblem(
            members=(
                ConsumerMember(id="x", rack="a", topics=("t",)),
                ConsumerMember(id="y", rack="a", topics=("t", "u")),
                ConsumerMember(id="z", rack="a", topics=("u",)),
            ),
            racks={"t": (A, A), "u": (A,)},
        ),
        group_result(x="t0 t1", y="u0", z=""),
        {DefectKind.UNBALANCED},
    ),
    "a topic divided unevenly under range": (
        PAIRS, group_result(x="t0 t1 u0 u1", y=""), {DefectKind.UNBALANCED},
    ),
    "equal numbers with different members under range": (
        PAIRS, group_result(x="t0 u1", y="t1 u0"), {DefectKind.COPARTITIONS_APART},
    ),
    "a crossing weight that was made up": (
        GROUP, group_result(7, x="t0 u0", y="t1", z="t2"), {DefectKind.WRONG_FIGURE},
    ),
    "a number of moves that was made up": (
        GROUP, group_result(0, 1, x="t0 u0", y="t1", z="t2"), {DefectKind.WRONG_FIGURE},
    ),
    "a bound above the figure": (
        GROUP, group_result(0, 0, 1, x="t0 u0", y="t1", z="t2"), {DefectKind.WRONG_FIGURE},
    ),
    "nothing at all": (GROUP, group_result(x="t0 u0", y="t1", z="t2"), set()),
    "nothing at all under range": (PAIRS, group_result(x="t0 u0", y="t1 u1"), set()),
}  # fmt: skip


@pytest.mark.parametrize(("problem", "result", "expected"), CONSUMER.values(), ids=CONSUMER.keys())
def test_consumer_result_with(problem: ConsumerProblem, result: ConsumerResult, expected: set[DefectKind]) -> None:
    assert kinds(consumer_defects(problem, result)) == expected


# --- Streams tasks --------------------------------------------------------------------------------------------------

APPLICATION = TaskProblem(
    tasks=tuple(StreamsTask(id=TaskId(s, p), stateful=s == 0, sources=(A,)) for s in (0, 1) for p in range(3)),
    processes=tuple(TaskProcess(id=name, rack="a", capacity=1) for name in "xyz"),
    num_standby_replicas=1,
)
FINE = optimal_tasks(APPLICATION)
FIXED = replace(
    APPLICATION,
    processes=tuple(replace(process, active=FINE.active[process.id]) for process in APPLICATION.processes),
    counts="fixed",
)
FINE_FIXED = optimal_tasks(FIXED)


def task(name: str) -> TaskId:
    subtopology, partition = map(int, name.split("_"))
    return TaskId(subtopology, partition)


def changed(given: Mapping[str, tuple[TaskId, ...]], **more: str) -> dict[str, tuple[TaskId, ...]]:
    """The same but for some processes: ``x="0_0 +0_1"`` sets, a single ``-`` removes the entry."""
    result = {**given, **{name: tuple(map(task, tasks.split())) for name, tasks in more.items() if tasks != "-"}}
    return {name: tasks for name, tasks in result.items() if more.get(name) != "-"}


def active(**more: str) -> TaskResult:
    return replace(FINE, active=changed(FINE.active, **more))


def standby(**more: str) -> TaskResult:
    return replace(FINE, standby=changed(FINE.standby, **more))


TASKS = {
    "a process that does not exist": (APPLICATION, active(w=""), {DefectKind.UNKNOWN_PROCESS}),
    "a process left out": (APPLICATION, standby(x="-"), {DefectKind.PROCESS_MISSING, DefectKind.TOO_FEW_STANDBYS}),
    "a task that does not exist": (
        APPLICATION,
        active(x="0_0 1_0 9_9"),
        {DefectKind.UNKNOWN_TASK, DefectKind.OVER_CAPACITY},
    ),
    "a task run twice": (
        APPLICATION,
        active(x="0_0 1_0 1_1"),
        {DefectKind.ACTIVE_TWICE, DefectKind.OVER_CAPACITY, DefectKind.SUBTOPOLOGY_UNBALANCED, DefectKind.WRONG_FIGURE},
    ),
    "a task lost": (
        APPLICATION,
        active(x="0_0"),
        {
            DefectKind.TASK_LOST,
            DefectKind.UNDER_CAPACITY,
            DefectKind.SUBTOPOLOGY_UNBALANCED,
            DefectKind.WRONG_FIGURE,
        },
    ),
    "a subtopology on one process": (
        APPLICATION,
        active(x="0_0 0_1", y="1_0 1_1"),
        {DefectKind.SUBTOPOLOGY_UNBALANCED, DefectKind.STANDBY_WITH_ACTIVE},
    ),
    "another number of tasks though counts are fixed": (
        FIXED,
        replace(FINE_FIXED, active=changed(FINE.active, x="0_0", y="0_1 1_1 1_0")),
        {DefectKind.COUNT_CHANGED, DefectKind.SUBTOPOLOGY_UNBALANCED, DefectKind.WRONG_FIGURE},
    ),
    "a standby of a stateless task": (APPLICATION, standby(x="0_1 1_1"), {DefectKind.STANDBY_OF_STATELESS}),
    "a standby beside its active": (
        APPLICATION,
        standby(x="0_0"),
        {DefectKind.STANDBY_WITH_ACTIVE, DefectKind.TOO_FEW_STANDBYS, DefectKind.TOO_MANY_STANDBYS},
    ),
    "two standbys on one process": (
        APPLICATION,
        standby(x="0_1 0_1"),
        {DefectKind.STANDBY_TWICE, DefectKind.TOO_MANY_STANDBYS},
    ),
    "too many standbys": (APPLICATION, standby(x="0_1 0_2"), {DefectKind.TOO_MANY_STANDBYS}),
    "too few standbys": (APPLICATION, standby(x=""), {DefectKind.TOO_FEW_STANDBYS}),
    "a cost that was made up": (APPLICATION, replace(FINE, cost=FINE.cost + 1), {DefectKind.WRONG_FIGURE}),
    "a bound above the cost": (APPLICATION, replace(FINE, lower_bound=FINE.cost + 1), {DefectKind.WRONG_FIGURE}),
    "nothing at all": (APPLICATION, FINE, set()),
    "nothing at all with fixed counts": (FIXED, FINE_FIXED, set()),
}


@pytest.mark.parametrize(("problem", "result", "expected"), TASKS.values(), ids=TASKS.keys())
def test_task_result_with(problem: TaskProblem, result: TaskResult, expected: set[DefectKind]) -> None:
    assert kinds(task_defects(problem, result)) == expected


# --- replicas ---------------------------------------------------------------------------------------------------------

CLUSTER = ReplicaProblem(
    brokers=(
        *(ReplicaBroker(id=number, rack="aabbcc"[number]) for number in range(6)),
        ReplicaBroker(id=6, rack="c", accepts=False),
        ReplicaBroker(id=7, rack=None),
    ),
    partitions=(
        ReplicaSet(id=TopicPartition("t", 0), replicas=(0, 1, 2), size_bytes=10),
        ReplicaSet(id=TopicPartition("t", 1), replicas=(0, 2, 4), size_bytes=10),
    ),
    balance=False,
)


def plan(moved: int, moved_bytes: int, **lists: tuple[int, ...]) -> ReplicaResult:
    """``t0=(…)`` is the new list of partition t-0."""
    replicas = {TopicPartition(name[0], int(name[1:])): new for name, new in lists.items()}
    return ReplicaResult(replicas=replicas, moved_replicas=moved, moved_bytes=moved_bytes)


REPLICAS = {
    "a partition that does not exist": (plan(1, 10, t0=(0, 4, 2), u0=(1,)), {DefectKind.UNKNOWN_PARTITION}),
    "a broker that does not exist": (plan(1, 10, t0=(0, 99, 2)), {DefectKind.UNKNOWN_BROKER}),
    "a broker that accepts nothing": (plan(1, 10, t0=(0, 6, 2)), {DefectKind.BROKER_REFUSES}),
    "a broker without a known rack": (plan(1, 10, t0=(0, 7, 2)), {DefectKind.RACK_UNKNOWN}),
    "a broker twice": (plan(1, 10, t0=(0, 4, 4)), {DefectKind.REPLICA_TWICE, DefectKind.RACK_RULE_BROKEN}),
    "another replication factor": (plan(1, 10, t0=(0, 4)), {DefectKind.REPLICATION_FACTOR_CHANGED}),
    "the rule still broken": (plan(1, 10, t0=(0, 1, 4)), {DefectKind.RACK_RULE_BROKEN}),
    "a partition that breaks the rule and is not mentioned": (plan(0, 0), {DefectKind.RACK_RULE_BROKEN}),
    "a leader that stays but no longer leads": (plan(1, 10, t0=(4, 0, 2)), {DefectKind.LEADER_DISPLACED}),
    "a list that is what it was": (
        plan(1, 10, t0=(0, 4, 2), t1=(0, 2, 4)), {DefectKind.NOTHING_CHANGED},
    ),
    "a move of a healthy partition": (plan(2, 20, t0=(0, 4, 2), t1=(0, 2, 5)), {DefectKind.NEEDLESS_MOVE}),
    "a number of moves that was made up": (plan(2, 10, t0=(0, 4, 2)), {DefectKind.WRONG_FIGURE}),
    "a number of bytes that was made up": (plan(1, 11, t0=(0, 4, 2)), {DefectKind.WRONG_FIGURE}),
    "a bound above the bytes": (replace(plan(1, 10, t0=(0, 4, 2)), lower_bound=11), {DefectKind.WRONG_FIGURE}),
    "nothing at all": (plan(1, 10, t0=(0, 4, 2)), set()),
    "an excuse for what cannot be mended": (
        replace(plan(0, 0), infeasible=(InfeasiblePartition(id=TopicPartition("t", 0), why="no broker"),)), set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("result", "expected"), REPLICAS.values(), ids=REPLICAS.keys())
def test_replica_result_with(result: ReplicaResult, expected: set[DefectKind]) -> None:
    assert kinds(replica_defects(CLUSTER, result)) == expected


def test_every_kind_of_defect_is_seeded_above() -> None:
    seeded = {kind for table in (CONSUMER, TASKS) for _, _, expected in table.values() for kind in expected}
    seeded |= {kind for _, expected in REPLICAS.values() for kind in expected}
    assert seeded == set(DefectKind)


def test_the_optimal_answers_to_these_problems_have_no_defect() -> None:
    assert consumer_defects(GROUP, optimal_consumer(GROUP)) == ()
    assert task_defects(APPLICATION, FINE) == ()
    assert replica_defects(CLUSTER, optimal_replicas(CLUSTER)) == ()

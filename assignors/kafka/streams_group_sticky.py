"""The broker's ``StickyTaskAssignor`` of Streams groups, Kafka 4.2 to 4.3 (KIP-1071): no racks, tags or warm-ups.

Priorities: a member's share of active tasks, then of all tasks; stickiness (last active member, else a standby's); the
least loaded process and its least loaded member. Two copies of a task never share a process. Members are in the
coordinator's order, processes and their members in that of Java's maps, equally loaded ones in that of its heap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assignors.kafka.java import JavaHeap, hash_order, sized_table, string_hash, utf16_key
from assignors.kafka.streams_group_problem import (
    StreamsGroupProblem,
    StreamsGroupResult,
    StreamsMember,
    check_streams_group,
    claimed,
    shortfall,
    tasks_of,
)
from assignors.problem import TaskId


def streams_group_sticky(problem: StreamsGroupProblem) -> StreamsGroupResult:
    """Return the target assignment that a 4.2 or 4.3 broker makes. Raises as ``check_streams_group`` does."""
    check_streams_group(problem)
    group = _Group(problem)
    _place_active(group, tasks_of(problem.subtopologies))
    warnings = _place_standbys(group, tasks_of(each for each in problem.subtopologies if each.stateful))
    return StreamsGroupResult(
        active={member.id: tuple(sorted(group.active[member.id])) for member in problem.members},
        standby={member.id: tuple(sorted(group.standby[member.id])) for member in problem.members},
        warnings=tuple(warnings),
    )


class _Held(NamedTuple):
    """A member that held a copy of a task."""

    process: _Process
    member: str


class _Process:
    """The members of one process and their tasks so far."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.counts: dict[str, int] = {}
        self.tasks: set[TaskId] = set()
        self._by_load: JavaHeap[str] | None = None

    @property
    def load(self) -> float:
        return len(self.tasks) / len(self.counts)

    def add(self, member: str, task: TaskId) -> None:
        self._put(member, task)
        self._by_load = None  # counts changed behind the heap's back

    def add_to_least_loaded(self, task: TaskId) -> str:
        """Give the task to the member with the fewest, and return that member."""
        if len(self.counts) == 1:
            member = next(iter(self.counts))
            self._put(member, task)
            return member
        if self._by_load is None:
            self._by_load = JavaHeap(key=self.counts.__getitem__)
            for member in hash_order(self.counts, string_hash, order=utf16_key):
                self._by_load.push(member)
        member = self._by_load.pop()
        self._put(member, task)
        self._by_load.push(member)
        return member

    def _put(self, member: str, task: TaskId) -> None:
        self.counts[member] += 1
        self.tasks.add(task)


class _Share:
    """How many tasks a member may have. It shrinks or grows with what is left once members have theirs in full."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.size = self._rounded_up()

    def reached(self, count: int) -> None:
        """Set a member's number of tasks; with its full share it is no longer counted."""
        if count == self.size:
            self._members -= 1
            self._tasks -= count
            self.size = self._rounded_up()

    def _rounded_up(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Group:
    """Former and new holders of the tasks, and the shares."""

    def __init__(self, problem: StreamsGroupProblem) -> None:
        processes: dict[str, _Process] = {}
        self.previous_active: dict[TaskId, _Held] = {}
        self.previous_standby: dict[TaskId, list[_Held]] = {}
        for member in problem.members:
            process = processes.setdefault(member.process_id, _Process(member.process_id))
            process.counts[member.id] = 0
            self._remember(_Held(process, member.id), member)
        order = hash_order(processes, string_hash, sized_table(len(problem.members)), utf16_key)
        self.processes = [processes[id_] for id_ in order]
        self.active: dict[str, list[TaskId]] = {member.id: [] for member in problem.members}
        self.standby: dict[str, list[TaskId]] = {member.id: [] for member in problem.members}

        self.standbys = problem.num_standby_replicas
        total = sum(each.partitions for each in problem.subtopologies)
        stateful = sum(each.partitions for each in problem.subtopologies if each.stateful)
        self.active_share = _Share(total, len(problem.members))
        self.share = _Share(total + stateful * self.standbys, len(problem.members))

    def _remember(self, held: _Held, member: StreamsMember) -> None:
        for task in claimed(member.active):
            self.previous_active[task] = held
        for task in claimed(member.standby):
            self.previous_standby.setdefault(task, []).append(held)

    def by_load(self) -> JavaHeap[_Process]:
        heap: JavaHeap[_Process] = JavaHeap(key=lambda process: process.load)
        for process in self.processes:
            heap.push(process)
        return heap

    def give_active(self, task: TaskId, process: _Process, member: str) -> None:
        self.active[member].append(task)
        self.active_share.reached(process.counts[member])
        self.share.reached(process.counts[member])

    def give_standby(self, task: TaskId, process: _Process, member: str) -> None:
        self.standby[member].append(task)
        self.share.reached(process.counts[member])


def _place_active(group: _Group, tasks: list[TaskId]) -> None:
    tasks.sort(key=_by_partition)  # equal partitions of all subtopologies together, as a range assignment has them
    tasks = [task for task in tasks if not _back_to(group, task, group.previous_active.get(task))]
    tasks = [
        task for task in tasks if not _back_to(group, task, _least_loaded(group.previous_standby.get(task, ()), None))
    ]
    by_load = group.by_load()
    for task in sorted(tasks, key=_by_subtopology):
        process = by_load.pop()
        group.give_active(task, process, process.add_to_least_loaded(task))
        by_load.push(process)


def _back_to(group: _Group, task: TaskId, held: _Held | None) -> bool:
    """Give an active task to a member that held a copy of it, if its share allows; True when it did."""
    if held is None or held.process.counts[held.member] >= group.active_share.size:
        return False
    held.process.add(held.member, task)
    group.give_active(task, held.process, held.member)
    return True


def _least_loaded(candidates: Sequence[_Held], task: TaskId | None) -> _Held | None:
    """The least loaded of those that held a standby of the task, by process and by member at once.

    With a task, processes that have a copy of it are passed over, but for one thing that Kafka does: when the first
    candidate has a copy, none is found, also where another was better.
    """
    if not candidates:
        return None
    first = best = candidates[0]
    load, count = first.process.load, first.process.counts[first.member]
    for held in candidates[1:]:
        process = held.process
        if process.load < load and process.counts[held.member] < count and task not in process.tasks:
            best, load, count = held, process.load, process.counts[held.member]
    return None if task in first.process.tasks else best


def _place_standbys(group: _Group, tasks: list[TaskId]) -> list[str]:
    """Standbys back to where copies were, then the rest to the least loaded; return what Kafka would warn of."""
    left: list[tuple[TaskId, int]] = []
    for task in sorted(tasks, key=_by_partition, reverse=True):
        for given in range(group.standbys):
            held = _standby_back_to(group, task)
            if held is None:
                left.append((task, group.standbys - given))
                break
            held.process.add(held.member, task)
            group.give_standby(task, held.process, held.member)

    warnings = []
    by_load = group.by_load()
    for task, missing in sorted(left, key=lambda each: _by_subtopology(each[0]), reverse=True):
        for given in range(missing):
            if not _to_least_loaded(group, by_load, task):
                warnings.append(shortfall(missing - given, group.standbys, task))
                break
    return warnings


def _standby_back_to(group: _Group, task: TaskId) -> _Held | None:
    """A member that had a copy of the task, has room in its share, and whose process has no copy now."""
    active = group.previous_active.get(task)
    standby = _least_loaded(group.previous_standby.get(task, ()), task)
    for held in (active, standby):
        if held and task not in held.process.tasks and held.process.counts[held.member] < group.share.size:
            return held
    return None


def _to_least_loaded(group: _Group, by_load: JavaHeap[_Process], task: TaskId) -> bool:
    passed = []
    found = False
    while len(by_load) and not found:
        process = by_load.pop()
        passed.append(process)
        if task not in process.tasks:
            group.give_standby(task, process, process.add_to_least_loaded(task))
            found = True
    for process in reversed(passed):  # back in the order in which Kafka's recursion returns: it shapes the heap
        by_load.push(process)
    return found


def _by_partition(task: TaskId) -> tuple[int, bytes]:
    return task.partition, utf16_key(str(task.subtopology))


def _by_subtopology(task: TaskId) -> tuple[bytes, int]:
    return utf16_key(str(task.subtopology)), task.partition

"""The broker's ``StickyTaskAssignor`` of Streams groups up to Kafka 4.1 (KIP-1071): no racks, tags or warm-ups.

Priorities: stickiness within a member's share of active tasks (last active member, else the standby on the least loaded
process), then the least loaded process and member; standbys likewise. Among candidates a process that shares no other
task with a copy of this one is preferred. Kafka keeps candidates in sets by identity, so that ties differ from run to
run; here the first listed wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from assignors.kafka.java import hash_order, signed_32, string_hash, utf16_key
from assignors.kafka.load_queue import LoadQueue
from assignors.kafka.streams_group_problem import (
    StreamsGroupProblem,
    StreamsGroupResult,
    check_streams_group,
    claimed,
    shortfall,
    tasks_of,
)
from assignors.problem import TaskId


def streams_group_sticky_41(problem: StreamsGroupProblem) -> StreamsGroupResult:
    """Return a target assignment that a 4.0 or 4.1 broker may make. Raises as ``check_streams_group`` does."""
    check_streams_group(problem)
    group = _Group(problem)
    _place_active(group, _in_hash_order(tasks_of(problem.subtopologies)))
    stateful = _in_hash_order(tasks_of(each for each in problem.subtopologies if each.stateful))
    warnings = [warning for task in stateful for warning in _place_standbys(group, task)]
    return StreamsGroupResult(
        active={member: tuple(sorted(tasks)) for member, tasks in group.active.items()},
        standby={member: tuple(sorted(tasks)) for member, tasks in group.standby.items()},
        warnings=tuple(warnings),
    )


class _Process:
    """The members of one process and their tasks so far."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.counts: dict[str, int] = {}
        self.active = 0
        self.tasks: set[TaskId] = set()
        self._order: list[str] = []

    @property
    def load(self) -> float:
        return len(self.tasks) / len(self.counts)

    def least_loaded_member(self) -> str:
        self._order = self._order or hash_order(self.counts, string_hash, order=utf16_key)
        return min(self._order, key=self.counts.__getitem__)


class _Held(NamedTuple):
    """A member that held a copy of a task."""

    process: _Process
    member: str


class _Group:
    """Former and new holders of the tasks, and a member's share of the active ones."""

    def __init__(self, problem: StreamsGroupProblem) -> None:
        processes: dict[str, _Process] = {}
        self.previous_active: dict[TaskId, _Held] = {}
        self.previous_standby: dict[TaskId, list[_Held]] = {}
        for member in problem.members:
            process = processes.setdefault(member.process_id, _Process(len(processes)))
            process.counts[member.id] = 0
            held = _Held(process, member.id)
            self.previous_active |= dict.fromkeys(claimed(member.active), held)
            for task in claimed(member.standby):
                self.previous_standby.setdefault(task, []).append(held)
        self.active: dict[str, list[TaskId]] = {member.id: [] for member in problem.members}
        self.standby: dict[str, list[TaskId]] = {member.id: [] for member in problem.members}
        self.standbys = problem.num_standby_replicas
        self.by_load = LoadQueue(processes.values(), lambda process: (process.load, process.rank))

        self._left = sum(each.partitions for each in problem.subtopologies)
        self._members = len(problem.members)
        self.share = _rounded_up(self._left, self._members)
        self._homes: dict[TaskId, list[_Process]] = {}
        self._tasks = tasks_of(problem.subtopologies)
        self._pairs_at_most = 0
        self._together = 0

    def give_active(self, task: TaskId, held: _Held) -> None:
        self._give(task, held)
        self.active[held.member].append(task)
        held.process.active += 1
        if held.process.active == self.share:  # Kafka compares a process's tasks with a member's share
            self._members -= 1
            self._left -= held.process.active
            self.share = _rounded_up(self._left, self._members)

    def give_standby(self, task: TaskId, held: _Held) -> None:
        self._give(task, held)
        self.standby[held.member].append(task)

    def brings_new_pair(self, task: TaskId, process: _Process) -> bool:
        """Whether the process has a task that is nowhere together with this one; an empty process counts as well.

        Two tasks are together where one process has a copy of each. Once all pairs are together nothing is new.
        """
        if self._all_are_together():
            return False
        homes = self._homes.get(task)
        if not homes or not process.tasks:
            return True
        return any(not any(other in home.tasks for home in homes) for other in process.tasks)

    def _all_are_together(self) -> bool:
        """Whether each task shares a process with each other one. Once true it stays true, for every single task."""
        count = len(self._tasks)
        if self._pairs_at_most < count * (count - 1) // 2:
            return False
        while count > 1 and self._together < count:
            homes = self._homes.get(self._tasks[self._together], ())
            if len(set().union(*(home.tasks for home in homes))) < count:
                return False
            self._together += 1
        return True

    def _give(self, task: TaskId, held: _Held) -> None:
        self._pairs_at_most += len(held.process.tasks)
        self._homes.setdefault(task, []).append(held.process)
        held.process.tasks.add(task)
        held.process.counts[held.member] += 1
        self.by_load.changed(held.process)


def _place_active(group: _Group, tasks: list[TaskId]) -> None:
    tasks = [task for task in tasks if not _back_to(group, task, group.previous_active.get(task))]
    tasks = [
        task
        for task in tasks
        if not _back_to(group, task, _least_loaded(group, task, group.previous_standby.get(task, ())))
    ]
    for task in tasks:
        # The task has no copy yet, so every process brings new pairs as long as there are any.
        process = group.by_load.least()
        group.give_active(task, _Held(process, process.least_loaded_member()))


def _back_to(group: _Group, task: TaskId, held: _Held | None) -> bool:
    """Give an active task to a member that held a copy of it, if its share allows; True when it did."""
    if held is None or held.process.counts[held.member] >= group.share:
        return False
    group.give_active(task, held)
    return True


def _place_standbys(group: _Group, task: TaskId) -> list[str]:
    for given in range(group.standbys):
        held = _for_standby(group, task)
        if held is None:
            return [shortfall(group.standbys - given, group.standbys, task)]
        group.give_standby(task, held)
    return []


def _for_standby(group: _Group, task: TaskId) -> _Held | None:
    """Where the next standby goes: None when every process has a copy."""
    last_active = group.previous_active.get(task)
    if (
        last_active
        and task not in last_active.process.tasks
        and _is_load_balanced(group, last_active.process)
        and group.brings_new_pair(task, last_active.process)
    ):
        return last_active
    holders = [held for held in group.previous_standby.get(task, ()) if task not in held.process.tasks]
    holder = _least_loaded(group, task, holders)
    if holder and _is_load_balanced(group, holder.process):
        return holder
    process = group.by_load.first(
        lambda process: task not in process.tasks, lambda process: group.brings_new_pair(task, process)
    )
    return _Held(process, process.least_loaded_member()) if process else None


def _is_load_balanced(group: _Group, process: _Process) -> bool:
    return process.load < 1 or group.by_load.least().load >= process.load


def _least_loaded(group: _Group, task: TaskId, holders: Iterable[_Held]) -> _Held | None:
    """Of those that held a standby, the one whose process is least loaded, with new pairs before without."""
    return min(
        holders, key=lambda held: (not group.brings_new_pair(task, held.process), held.process.load), default=None
    )


def _rounded_up(tasks: int, members: int) -> int:
    return -(-tasks // members) if members else 0


def _in_hash_order(tasks: list[TaskId]) -> list[TaskId]:
    return hash_order(tasks, lambda task: signed_32(31 * string_hash(str(task.subtopology)) + task.partition))

"""Common steps of Kafka's sticky Streams assignors: active tasks, then standbys, near their previous process.

A process takes back its active tasks up to its share by threads, then tasks of its standbys; the rest goes to a process
with a copy unless that is full and another has more room, else to the least loaded one. Among equals a process with a
*new pair* is preferred (a task of it has no copy beside a copy of this task), so that a lost process's work spreads.
``StickyRules`` holds what differs between ``LegacyStickyTaskAssignor`` and ``StickyTaskAssignor`` (KIP-924).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from assignors.kafka.exceptions import KafkaRefusal
from assignors.kafka.java import copied_set_table, grown_table, halves_hash, hash_order
from assignors.kafka.load_queue import LoadQueue
from assignors.kafka.streams_order import process_ranks, tasks_in_hash_order, tasks_in_order
from assignors.kafka.streams_problem import ClientState, StreamsProblem
from assignors.problem import BadProblem, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyRules:
    """In what the two assignors differ."""

    more_threads_first: bool
    """Of equally loaded processes the one with more threads has more room; otherwise they are equal."""
    candidates_hashed: bool
    """All processes as candidates for an active task come in the order of a hash set, not of the map of clients."""
    must_preserve_active: bool
    """An active task stays where it was, beyond any share."""


class IllegalStateException(KafkaRefusal):
    """No thread at all."""

    kafka_name = "IllegalStateException"


class StickySteps:
    """One run of the steps over the states of all processes, which it fills."""

    def __init__(self, problem: StreamsProblem, states: Sequence[ClientState], rules: StickyRules) -> None:
        """Take the states in the order in which Kafka's map of clients iterates."""
        for client in problem.clients:
            if client.assigned_active or client.assigned_standby:
                raise BadProblem(
                    f"client {client.id} has tasks assigned already; the sticky assignors place all of them"
                )
        self._problem = problem
        self._states = states
        self._rules = rules
        self._hash = {state: halves_hash(state.key) for state in states}
        self._was_active: dict[TaskId, ClientState] = {}
        self._was_standby: defaultdict[TaskId, list[ClientState]] = defaultdict(list)
        for state in states:
            self._was_active |= dict.fromkeys(sorted(set(state.client.prev_active)), state)
            for task in sorted(set(state.client.prev_standby)):
                self._was_standby[task].append(state)
        self._queues: dict[int, LoadQueue[ClientState]] = {}
        self._placed_with: dict[TaskId, frozenset[TaskId]] = {}
        self._copies: defaultdict[TaskId, list[ClientState]] = defaultdict(list)

    def place_active(self) -> None:
        """Give every task to one process. Raises IllegalStateException when there is no process."""
        if not self._states:
            raise IllegalStateException("`totalCapacity` should never be zero.")
        per_thread = len(self._problem.tasks) // sum(state.capacity for state in self._states)
        share = {state: state.capacity * per_thread for state in self._states}
        unplaced = set(self._problem.tasks)
        self._take_back(unplaced, share)
        self._take_over(unplaced, share)
        processes = self._queue_of_all()
        for task in sorted(unplaced):
            state = self._best(task, processes)
            state.active.add(task)
            processes.changed(state)
        self._remember_company()

    def _take_back(self, unplaced: set[TaskId], share: Mapping[ClientState, int]) -> None:
        """To every process what it ran, in hash order as far as its share goes."""
        ran: defaultdict[ClientState, list[TaskId]] = defaultdict(list)
        for task, state in self._was_active.items():
            if task in unplaced:
                ran[state].append(task)
        rank: dict[TaskId, int] = {}
        for state, tasks in ran.items():
            room = len(tasks) if self._rules.must_preserve_active else share[state]
            if len(tasks) > room:
                # The order takes its time to find out in a large application; mostly everything fits.
                rank = rank or {task: place for place, task in enumerate(tasks_in_hash_order(self._was_active))}
                tasks.sort(key=rank.__getitem__)
            state.active.update(tasks[:room])
            unplaced.difference_update(tasks[:room])

    def _take_over(self, unplaced: set[TaskId], share: Mapping[ClientState, int]) -> None:
        """To processes with some of their share left, what they held a standby of."""
        held = [
            task
            for task in unplaced
            if any(len(state.active) < share[state] for state in self._was_standby.get(task, ()))
        ]
        if len(held) > 1:
            all_tasks = tasks_in_order(self._problem, self._problem.tasks)
            among = frozenset(held)
            held = [task for task in tasks_in_hash_order(all_tasks, copied_set_table(len(all_tasks))) if task in among]
        for task in held:
            for state in self._visited(self._was_standby[task]):
                if len(state.active) < share[state]:
                    state.active.add(task)
                    unplaced.remove(task)
                    break

    def place_standbys(self, tasks: Iterable[TaskId]) -> Iterator[str]:
        """Give every task its standbys where a process without a copy is left; yield what Kafka would warn of."""
        self._queues.clear()
        self._copies.clear()
        for state in self._states:
            for task in state.active:
                self._copies[task].append(state)
        wanted = self._problem.configs.num_standby_replicas
        for task in tasks:
            for given in range(wanted):
                free = len(self._states) - len(self._copies[task])
                if not free:
                    yield (
                        f"unable to assign {wanted - given} of {wanted} standby tasks for task {task}: every process "
                        "has a copy of it; add application instances"
                    )
                    break
                state = self._best(task, self._queue(grown_table(free)))
                state.standby.add(task)
                self._copies[task].append(state)
                for queue in self._queues.values():
                    queue.changed(state)

    # --- the choice of a process for one task ---------------------------------------------------------------------

    def _best(self, task: TaskId, queue: LoadQueue[ClientState]) -> ClientState:
        """Where a copy was, if that process has room or none has more; else the least loaded without a copy."""
        least = queue.least()
        was_active = self._was_active.get(task)
        holder = was_active if was_active and not was_active.has(task) else self._least_loaded_holder(task)
        if holder and self._is_full(holder, least):
            holder = self._least_loaded_holder(task)
            if holder and self._is_full(holder, least):
                holder = None
        if holder:
            return holder
        found = queue.first(lambda state: not state.has(task), lambda state: self._brings_new_pair(task, state))
        if found is None:
            raise AssertionError(f"every process has a copy of {task}; that is for the caller to see")
        return found

    def _is_full(self, state: ClientState, least: ClientState) -> bool:
        return state.load >= 1 and self._room(least) < self._room(state)

    def _room(self, state: ClientState) -> tuple[float, int]:
        """Smaller is more room."""
        return state.load, -state.capacity if self._rules.more_threads_first else 0

    def _least_loaded_holder(self, task: TaskId) -> ClientState | None:
        """Of the processes that held a standby of the task and have no copy now."""
        best = fallback = None
        for state in self._visited_copy(task):
            if state.has(task):
                continue
            if not state.task_count:
                return state
            if fallback is None or self._room(state) < self._room(fallback):
                fallback = state
            if (best is None or self._room(state) < self._room(best)) and self._brings_new_pair(task, state):
                best = state
        return best or fallback

    def _brings_new_pair(self, task: TaskId, state: ClientState) -> bool:
        """Whether some task of this process was never put on a process with a copy of the given one.

        Two tasks were put together when one came to a process that had the other. The rack-aware step between active
        tasks and standbys swaps tasks without counting that; so active tasks are together as they were first placed.
        """
        if not state.task_count:
            return True
        together: list[frozenset[TaskId] | set[TaskId]] = [self._placed_with.get(task, frozenset())]
        for holder in self._copies.get(task, ()):
            together.append(holder.standby)
            if task in holder.standby:
                together.append(holder.active)
        return any(not any(other in tasks for tasks in together) for other in chain(state.active, state.standby))

    def _remember_company(self) -> None:
        for state in self._states:
            tasks = frozenset(state.active)
            self._placed_with |= dict.fromkeys(tasks, tasks)

    # --- orders ---------------------------------------------------------------------------------------------------

    def _visited(self, states: list[ClientState]) -> list[ClientState]:
        return states if len(states) == 1 else hash_order(states, self._hash.__getitem__, order=_key)

    def _visited_copy(self, task: TaskId) -> list[ClientState]:
        holders = self._was_standby.get(task, [])
        if len(holders) < 2:
            return holders
        return hash_order(self._visited(holders), self._hash.__getitem__, copied_set_table(len(holders)), _key)

    def _queue_of_all(self) -> LoadQueue[ClientState]:
        if self._rules.candidates_hashed:
            return self._queue(grown_table(len(self._states)))
        rank = {state: place for place, state in enumerate(self._states)}
        return LoadQueue(self._states, lambda state: self._queue_key(state, rank))

    def _queue(self, table: int) -> LoadQueue[ClientState]:
        """All processes by load, equal ones as a hash set of that table visits them, whatever else is in it."""
        if table not in self._queues:
            rank = process_ranks(self._states, self._hash, table)
            self._queues[table] = LoadQueue(self._states, lambda state: self._queue_key(state, rank))
        return self._queues[table]

    def _queue_key(self, state: ClientState, rank: dict[ClientState, int]) -> tuple[float, int, int]:
        room = self._room(state) if state.task_count else (0.0, 0)  # the first idle one wins, however many threads
        return *room, rank[state]


def _key(state: ClientState) -> tuple[int, int]:
    return state.key

"""Lag of each copy of a stateful task, its source, and whether the copy has caught up (KIP-441).

Sources, best first: the application's own endpoint; task offsets of KIP-1071; the offset sum of the last join, which is
a range from zero to the lag then plus all appended since, narrowed by measured restore rates. Sums: -2 is a running
active task, -3 unknown; above the end is no state. ``caught_up`` is True only when the highest lag is acceptable, never
for supposed changelogs; an estimate never proves that a copy lags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from agent.decode.values import RUNNING_ACTIVE
from agent.memory.streams import NOTHING, appended_per_s, current_join, last_look_of, with_reading
from agent.model.streams import OffsetFacts, closing_rate, eta_s, restore_rate, shared_rate, still_missing
from agent.values.kafka import NO_STRATEGY, STREAM_THREAD
from agent.values.limits import GroupLimits
from agent.values.memory import CopyKey, Join, Memory, StreamsMemory
from agent.values.observation import RawApplicationLag
from agent.values.snapshot import (
    GroupKind,
    LagSource,
    Range,
    StreamsGroup,
    StreamsProcess,
    TaskCopy,
    TaskRole,
    TaskState,
    TaskStatefulness,
)
from agent.values.weights import RestoreWeight
from assignors.problem import TaskId, TopicPartition

# Assignments list warm-ups (KIP-441) as standbys. Evidence: a probing deadline exists only with warm-ups; a copy that
# was caught up at the assignment is a standby; copies beyond ``num.standby.replicas`` are warm-ups; and a warm-up is
# where the assignor deals the task (by process id; only with equal threads and no rack strategy): not certain alone.

_SIGN = 1 << 63


class InferredRole(NamedTuple):
    """A role, and whether it is certain."""

    role: TaskRole
    certain: bool


def inferred_roles(
    group: StreamsGroup,
    stateful: Sequence[TaskId],
    caught_up: Mapping[CopyKey, bool | None],
    settings: GroupLimits,
    *,
    follow_up: bool,
) -> Mapping[CopyKey, InferredRole]:
    """The role of every standby copy of a classic group.

    ``stateful``: all tasks with state, in the order of their ids; ``caught_up``: of each copy whether it had caught up
    when it was assigned, None where that is unknown.
    """
    holders: dict[TaskId, list[str]] = {}
    for process in group.processes:
        for task in process.standby:
            holders.setdefault(task, []).append(process.id)
    if settings.known and settings.num_standby_replicas == 0:
        return _all(holders, InferredRole(TaskRole.WARMUP, certain=True))
    if group.next_rebalance_ms is None:
        return _all(holders, InferredRole(TaskRole.STANDBY, certain=not follow_up))
    dealt = _dealt(group.processes, stateful, settings)
    return {
        (process, task): _verdict((process, task), processes, caught_up, settings, dealt)
        for task, processes in holders.items()
        for process in processes
    }


def java_uuid_order(process_id: str) -> tuple[int, int] | tuple[int, int, str]:
    """``UUID.compareTo`` of Java for process ids: both halves as signed numbers. Other texts come last."""
    try:
        number = UUID(process_id).int
    except ValueError:
        return _SIGN, 0, process_id
    high, low = number >> 64, number & ((1 << 64) - 1)
    return high - 2 * (high & _SIGN), low - 2 * (low & _SIGN)


def _all(holders: Mapping[TaskId, Iterable[str]], verdict: InferredRole) -> dict[CopyKey, InferredRole]:
    return {(process, task): verdict for task, processes in holders.items() for process in processes}


def _dealt(
    processes: Sequence[StreamsProcess], stateful: Sequence[TaskId], settings: GroupLimits
) -> Mapping[TaskId, str] | None:
    """Task -> the process that the assignor deals it to; None where more than the order decides."""
    capacities = {process.capacity for process in processes}
    if len(capacities) != 1 or settings.rack_aware_assignment_strategy != NO_STRATEGY:
        return None
    ids = sorted([process.id for process in processes], key=java_uuid_order)
    return {task: ids[index % len(ids)] for index, task in enumerate(stateful)}


def _verdict(
    copy: CopyKey,
    holders: Sequence[str],
    caught_up: Mapping[CopyKey, bool | None],
    settings: GroupLimits,
    dealt: Mapping[TaskId, str] | None,
) -> InferredRole:
    process, task = copy
    if caught_up.get(copy):
        return InferredRole(TaskRole.STANDBY, certain=True)
    behind = [holder for holder in holders if caught_up.get((holder, task)) is not True]
    surplus = len(holders) - settings.num_standby_replicas if settings.known else 0
    if surplus > 0 and len(behind) == surplus:
        return InferredRole(TaskRole.WARMUP, certain=True)
    wanted = dealt is None or dealt.get(task) == process
    return InferredRole(TaskRole.WARMUP if wanted else TaskRole.STANDBY, certain=False)


FRESH_MS = 30_000
"""A reading of the application older than this proves nothing about now."""
WITH_CHANGELOG = frozenset((TaskStatefulness.CHANGELOG, TaskStatefulness.SOURCE_CHANGELOG))
_ROLES = tuple(TaskRole)


class LagOffsets(NamedTuple):
    """End and committed offsets that lags are measured against."""

    end: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int] | None
    """The group's own; None when they did not answer."""


class ObservationTime(NamedTuple):
    """The instant of the look, on both clocks."""

    taken_ms: int
    monotonic_ms: int


class _Reading(NamedTuple):
    lag: Range
    source: LagSource
    age_ms: int | None
    running: bool = False
    """True for a running active task, which needs no end to have caught up."""


class _View(NamedTuple):
    group: StreamsGroup
    tasks: Mapping[TaskId, TaskState]
    ends: Mapping[TaskId, int]
    facts: OffsetFacts
    applications: Mapping[CopyKey, tuple[RawApplicationLag, ...]]
    known: StreamsMemory
    join: Join
    settings: GroupLimits
    clock: ObservationTime
    learned: tuple[RestoreWeight, ...]
    """How fast the pipeline found it to restore."""
    backlog: Mapping[str, int | None]
    """Process -> records that all of its copies together had not restored at the last join; None when one is unknown.

    A thread restores its tasks in turn, so a copy may wait until everything else is through.
    """


def copies_of(
    group: StreamsGroup,
    facts: OffsetFacts,
    offsets: LagOffsets,
    reported: Sequence[RawApplicationLag],
    *,
    memory: Memory,
    settings: GroupLimits,
    clock: ObservationTime,
    learned: tuple[RestoreWeight, ...] = (),
) -> tuple[TaskCopy, ...]:
    """Every copy of the group's tasks that have or may have state, sorted by task, role and process."""
    if group.topology is None or group.hidden or group.join is None:
        return ()
    held = {task for process in group.processes for task in (*process.standby, *process.warmup)}
    tasks = {t.id: t for t in group.topology.tasks if t.statefulness in WITH_CHANGELOG or t.id in held}
    ends = {name: end for name, task in tasks.items() if (end := _end_sum(task, offsets)) is not None}
    known = memory.streams.get(group.id, NOTHING)
    join = current_join(known.join, group.join, clock.monotonic_ms, last_look_of(memory, group.id))
    if join is not known.join and join.after_ms is not None:
        join = join._replace(end_sums=ends)
    backlog = {process.id: _backlog(process, tasks, ends, facts) for process in group.processes}
    view = _View(
        group,
        tasks,
        ends,
        facts,
        readings_by_copy(group.processes, tasks, reported),
        known,
        join,
        settings,
        clock,
        learned,
        backlog,
    )
    copies = [_copy(view, process, task, verdict) for process, task, verdict in _placed(view) if task in tasks]
    numbers = {task: number for number, task in enumerate(tasks)}
    return tuple(sorted(copies, key=lambda copy: (numbers[copy.task], _ROLES.index(copy.role), copy.process_id)))


def _end_sum(task: TaskState, offsets: LagOffsets) -> int | None:
    """Where the task's changelogs end; None when one end is missing or no changelog is known."""
    if not task.changelogs:
        return None
    total = 0
    for changelog in task.changelogs:
        if changelog in task.sources:  # Kafka restores an optimised KTable up to the group's commit, 0 without one
            end = None if offsets.committed is None else offsets.committed.get(changelog, 0)
        else:
            end = offsets.end.get(changelog)
        if end is None:
            return None
        total += end
    return total


def _backlog(
    process: StreamsProcess, tasks: Mapping[TaskId, TaskState], ends: Mapping[TaskId, int], facts: OffsetFacts
) -> int | None:
    total = 0
    for task in (*process.active, *process.standby):
        offset_sum = facts.sums.get((process.id, task), 0)
        if task not in tasks or offset_sum == RUNNING_ACTIVE:
            continue
        if task not in ends or offset_sum < 0:
            return None
        total += _missing(ends[task], offset_sum)
    return total


def _placed(view: _View) -> Iterable[tuple[str, TaskId, InferredRole]]:
    roles: Mapping[CopyKey, InferredRole] = {}
    if view.group.kind is GroupKind.CLASSIC_STREAMS:
        caught_up = {
            (process.id, task): _was_caught_up(view, process.id, task)
            for process in view.group.processes
            for task in process.standby
        }
        roles = inferred_roles(view.group, tuple(view.tasks), caught_up, view.settings, follow_up=view.facts.follow_up)
    for process in view.group.processes:
        for task in process.active:
            yield process.id, task, InferredRole(TaskRole.ACTIVE, certain=True)
        for task in process.standby:
            yield process.id, task, roles.get((process.id, task), InferredRole(TaskRole.STANDBY, certain=True))
        for task in process.warmup:
            yield process.id, task, InferredRole(TaskRole.WARMUP, certain=True)


def _was_caught_up(view: _View, process: str, task: TaskId) -> bool | None:
    """True when the copy had caught up at the assignment, by the leader's offsets."""
    offset_sum = view.facts.sums.get((process, task), 0)
    if offset_sum < 0:
        return True if offset_sum == RUNNING_ACTIVE else None
    end = view.join.end_sums.get(task)
    if end is not None:
        return _missing(end, offset_sum) <= view.settings.acceptable_recovery_lag
    now = view.ends.get(task)
    return True if now is not None and 0 <= now - offset_sum <= view.settings.acceptable_recovery_lag else None


def _missing(end: int, offset_sum: int) -> int:
    """Records behind by ``ClientState.computeTaskLags``: a sum beyond the end is corrupt and counts as no state."""
    return end if end < offset_sum else end - offset_sum


def _copy(view: _View, process: str, task: TaskId, verdict: InferredRole) -> TaskCopy:
    reading = (
        _from_application(view, process, task, verdict.role)
        or _from_broker(view, process, task)
        or _from_join(view, process, task, verdict.role)
    )
    rate, samples = _rate(view, process, task, reading)
    acceptable = view.settings.acceptable_recovery_lag
    offset_sum = view.facts.sums.get((process, task))
    return TaskCopy(
        view.group.id,
        process,
        task,
        verdict.role,
        verdict.certain,
        view.ends.get(task),
        reading.lag if reading else None,
        reading.source if reading else None,
        reading.age_ms if reading else None,
        rate,
        eta_s(reading.lag, acceptable, rate) if reading else None,
        _caught_up(view, task, reading),
        offset_sum if offset_sum is not None and offset_sum >= 0 else None,
        samples,
    )


def _from_application(view: _View, process: str, task: TaskId, role: TaskRole) -> _Reading | None:
    """The newest reading of the copy; one of the other role was taken before the last rebalance."""
    wanted = "active" if role is TaskRole.ACTIVE else "standby"
    rows = [row for row in view.applications.get((process, task), ()) if row.role == wanted and row.lag >= 0]
    if not rows:
        return None
    newest = max(rows, key=lambda row: row.observed_ms)
    return _Reading(_exactly(newest.lag), LagSource.APPLICATION, max(0, view.clock.taken_ms - newest.observed_ms))


def _from_broker(view: _View, process: str, task: TaskId) -> _Reading | None:
    offsets = view.facts.broker.get((process, task))
    if offsets is None:
        return None
    # Members report at an interval of their own, so its age is unknown.
    return _Reading(_exactly(max(0, offsets[1] - offsets[0])), LagSource.BROKER, None)


def _from_join(view: _View, process: str, task: TaskId, role: TaskRole) -> _Reading | None:
    end = view.ends.get(task)
    if end is None or view.group.kind is not GroupKind.CLASSIC_STREAMS:
        return None
    offset_sum = view.facts.sums.get((process, task), 0)
    age_ms = view.clock.monotonic_ms - view.join.seen_ms if view.join.after_ms is not None else None
    if offset_sum == RUNNING_ACTIVE and role is TaskRole.ACTIVE:
        return _Reading(_exactly(0), LagSource.LAST_JOIN, age_ms, running=True)
    if offset_sum == RUNNING_ACTIVE:  # it was at the end then
        then = view.join.end_sums.get(task)
        return None if then is None else _estimate(view, process, end, then, age_ms)
    return _estimate(view, process, end, offset_sum, age_ms) if offset_sum >= 0 else None


def _estimate(view: _View, process: str, end: int, offset: int, age_ms: int | None) -> _Reading:
    if end < offset:
        return _Reading(Range(0.0, float(end), float(end)), LagSource.LAST_JOIN, age_ms)
    missing, backlog, rate = float(end - offset), view.backlog[process], restore_rate(view.known.rates, view.learned)
    if rate is None or backlog is None:
        return _Reading(Range(0.0, missing, missing), LagSource.LAST_JOIN, age_ms)
    shortest_s = (view.clock.monotonic_ms - view.join.seen_ms) / 1000
    longest_s = None if view.join.after_ms is None else (view.clock.monotonic_ms - view.join.after_ms) / 1000
    return _Reading(still_missing(missing, backlog, rate, shortest_s, longest_s), LagSource.MODEL, age_ms)


def _rate(view: _View, process: str, task: TaskId, reading: _Reading | None) -> tuple[Range | None, int]:
    """(net closing rate, readings that it rests on)."""
    if reading is None or reading.source is LagSource.LAST_JOIN:
        return None, 0
    if reading.source is LagSource.MODEL:
        return _modelled_rate(view, process, task), 0
    copy = view.known.copies.get((process, task))
    taken_ms = view.clock.monotonic_ms - (reading.age_ms or 0)
    samples = with_reading(copy.samples if copy else (), taken_ms, int(reading.lag.likely), reading.source)
    return closing_rate(samples), len(samples)


def _modelled_rate(view: _View, process: str, task: TaskId) -> Range | None:
    measured, backlog, end = restore_rate(view.known.rates, view.learned), view.backlog[process], view.ends.get(task)
    if measured is None or not backlog or end is None:
        return None
    appended = appended_per_s(view.join, task, end, view.clock.monotonic_ms)
    missing = _missing(end, max(0, view.facts.sums.get((process, task), 0)))
    return None if appended is None else shared_rate(measured, missing / backlog, appended)


def _caught_up(view: _View, task: TaskId, reading: _Reading | None) -> bool | None:
    if reading is None:
        return None
    if reading.source is LagSource.APPLICATION and (reading.age_ms or 0) > FRESH_MS:
        return None
    acceptable = view.settings.acceptable_recovery_lag
    if reading.lag.low > acceptable:
        return None if reading.source is LagSource.MODEL else False
    if reading.lag.high > acceptable:
        return None
    measured = reading.running or reading.source in (LagSource.APPLICATION, LagSource.BROKER)
    return True if measured or not _supposed(view, task) else None


def _supposed(view: _View, task: TaskId) -> bool:
    """True where a source topic was only taken for the changelog: then the ends may be those of another topic."""
    return view.tasks[task].statefulness is TaskStatefulness.SOURCE_CHANGELOG and bool(view.tasks[task].note)


def _exactly(lag: int) -> Range:
    return Range(float(lag), float(lag), float(lag))


# A reading of an endpoint names a process by its id or by a client id; an ambiguous reading belongs to no process.


def readings_by_copy(
    processes: Sequence[StreamsProcess], tasks: Iterable[TaskId], reported: Iterable[RawApplicationLag]
) -> Mapping[CopyKey, tuple[RawApplicationLag, ...]]:
    """Endpoint readings of one application by copy; brokers name subtopologies by numbers too."""
    named = {str(task): task for task in tasks}
    by_reporter: dict[str, list[RawApplicationLag]] = {}
    for row in reported:
        by_reporter.setdefault(row.process_id, []).append(row)
    readings: dict[CopyKey, tuple[RawApplicationLag, ...]] = {}
    for reporter, rows in by_reporter.items():
        matching = [process.id for process in processes if _goes_by(process, reporter)]
        if len(matching) == 1:
            for row in rows:
                copy = matching[0], named.get(str(row.task), row.task)
                readings[copy] = (*readings.get(copy, ()), row)
    return readings


def _goes_by(process: StreamsProcess, name: str) -> bool:
    """True for its process id, a thread's client id, and the client id that all of its threads' begin with."""
    return name == process.id or any(c == name or c.startswith(f"{name}{STREAM_THREAD}") for c in process.client_ids)

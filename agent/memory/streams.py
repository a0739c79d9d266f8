"""Last rebalance of each Streams application, and restore rates of its processes.

A classic member reports offsets only when it joins: two joins bound the restored records and the time; a process that
has caught up by the second bounds them from below only. Rates are per process, because a thread restores its tasks in
turn. Only readings count, never estimates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.values.memory import CopyKey, CopyMemory, Join, Memory, RestoreRate, StreamsMemory
from agent.values.snapshot import LagSource, StreamsGroup, TaskCopy, TaskRole
from assignors.problem import TaskId

SAMPLES_KEPT = 8
RATES_KEPT = 16
RESTORING_SHARE = 0.02
"""A copy this near to the end of its changelog may be waiting for records: no measure of the rate."""
SAME_READING_MS = 60_000
"""The shortest interval of reports through the broker; an equal reading is new only after it."""

NOTHING = StreamsMemory(None, {}, {}, ())


def current_join(before: Join | None, key: str, now_ms: int, last_look_ms: int | None) -> Join:
    """The join in force: the remembered one while its key is the same, else a new one without end sums yet.

    ``last_look_ms``: monotonic time of the last look with the group, or without it for certain; None without one.
    """
    if before is not None and before.key == key:
        return before
    return Join(key, last_look_ms, now_ms, {})


def last_look_of(memory: Memory, group_id: str) -> int | None:
    """Monotonic time of the last look that could place a join of this group in time; None when there was none."""
    if not memory.cycle:
        return None
    observed = group_id in memory.streams or group_id in memory.rebalancing or group_id not in memory.groups
    return memory.monotonic_ms if observed else None


def remember_streams(
    before: StreamsMemory | None, group: StreamsGroup, copies: Sequence[TaskCopy], now_ms: int, last_look_ms: int | None
) -> StreamsMemory:
    """The application's memory after this look; unchanged while the group hides its members."""
    known = before or NOTHING
    if group.hidden or group.join is None:
        return known
    join = current_join(known.join, group.join, now_ms, last_look_ms)
    rebalanced = join is not known.join
    if rebalanced and join.after_ms is not None:
        join = join._replace(
            end_sums={copy.task: copy.end_offset_sum for copy in copies if copy.end_offset_sum is not None}
        )
    read_now = {_key(copy): _copy(known.copies.get(_key(copy)), copy, now_ms) for copy in copies if _is_followed(copy)}
    measured = _between_joins(known, copies, now_ms, last_look_ms) if rebalanced else ()
    measured = (*measured, *_between_readings(known, copies, read_now, join, now_ms))
    return StreamsMemory(
        join,
        {_key(copy): copy.offset_sum or 0 for copy in copies if _is_followed(copy)},
        read_now,
        (*known.rates, *measured)[-RATES_KEPT:],
        _ready_ms(None if rebalanced else known.ready_ms, copies, now_ms),
    )


def with_reading(
    samples: tuple[tuple[int, int], ...], taken_ms: int, lag: int, source: LagSource
) -> tuple[tuple[int, int], ...]:
    """The samples (ms, lag in records) with one more, unless it is the reading that they end with."""
    if samples:
        last_ms, last_lag = samples[-1]
        if taken_ms <= last_ms:
            return samples
        if source is LagSource.BROKER and lag == last_lag and taken_ms - last_ms < SAME_READING_MS:
            return samples
    return (*samples, (taken_ms, lag))[-SAMPLES_KEPT:]


def is_reading(copy: TaskCopy) -> bool:
    """True when the copy's lag was reported, not estimated."""
    return copy.lag is not None and copy.lag_source in (LagSource.APPLICATION, LagSource.BROKER)


def appended_per_s(join: Join | None, task: TaskId, end_offset_sum: int, now_ms: int) -> float | None:
    """Records appended to a task's changelogs per second since the last join; None when that is unknown."""
    if join is None or task not in join.end_sums or now_ms <= join.seen_ms:
        return None
    return max(0.0, (end_offset_sum - join.end_sums[task]) * 1000 / (now_ms - join.seen_ms))


def _key(copy: TaskCopy) -> CopyKey:
    return copy.process_id, copy.task


def _is_followed(copy: TaskCopy) -> bool:
    """True for copies that restore or follow: standbys, warm-ups, active tasks that were not running at the join."""
    return copy.role is not TaskRole.ACTIVE or copy.offset_sum is not None


def _copy(before: CopyMemory | None, copy: TaskCopy, now_ms: int) -> CopyMemory:
    since_ms, samples, _, nearest = before or CopyMemory(now_ms, (), warmup=False, nearest=None)
    if is_reading(copy) and copy.lag is not None and copy.lag_source is not None:
        taken_ms, lag = now_ms - (copy.lag_age_ms or 0), int(copy.lag.likely)
        samples = with_reading(samples, taken_ms, lag, copy.lag_source)
        nearest = (taken_ms, lag) if nearest is None or lag < nearest[1] else nearest
    return CopyMemory(since_ms, samples, copy.role is TaskRole.WARMUP, nearest)


def _ready_ms(before: int | None, copies: Iterable[TaskCopy], now_ms: int) -> int | None:
    """Since when a warm-up has caught up, surely or probably."""
    ready = any(copy.role is TaskRole.WARMUP and (copy.caught_up or _probably(copy)) for copy in copies)
    return (now_ms if before is None else before) if ready else None


def _probably(copy: TaskCopy) -> bool:
    return copy.eta_s is not None and copy.eta_s.likely == 0


def _between_joins(
    known: StreamsMemory, copies: Iterable[TaskCopy], now_ms: int, last_look_ms: int | None
) -> tuple[RestoreRate, ...]:
    """Restore rates by process: the offsets of this join against those of the last."""
    join = known.join
    if join is None or join.after_ms is None or last_look_ms is None:
        return ()
    longest_ms, shortest_ms = now_ms - join.after_ms, last_look_ms - join.seen_ms
    now = {_key(copy): copy for copy in copies}
    rates = []
    for process in sorted({process for process, _ in known.sums}):
        behind = {
            task: had
            for (owner, task), had in known.sums.items()
            if owner == process and join.end_sums.get(task, 0) - had > RESTORING_SHARE * join.end_sums.get(task, 0)
        }
        restored, restoring = 0, False
        for task, had in behind.items():
            copy = now.get((process, task))
            if copy is None:  # given to another process: what became of it here is unknown
                continue
            end = copy.end_offset_sum or 0
            now_sum = join.end_sums[task] if copy.offset_sum is None else copy.offset_sum  # promoted: it was at the end
            restored += max(0, now_sum - had)
            restoring = restoring or end - now_sum > RESTORING_SHARE * end
        if restored:
            high = restored * 1000 / shortest_ms if restoring and shortest_ms > 0 else None
            rates.append(RestoreRate(restored * 1000 / longest_ms, high))
    return tuple(rates)


def _between_readings(
    known: StreamsMemory, copies: Iterable[TaskCopy], read_now: Mapping[CopyKey, CopyMemory], join: Join, now_ms: int
) -> tuple[RestoreRate, ...]:
    """Restore rate of a restoring process, from the oldest kept reading to this one."""
    by_process: dict[str, float] = {}
    for copy in copies:
        key, end = _key(copy), copy.end_offset_sum
        if key not in read_now or key not in known.copies or end is None or len(read_now[key].samples) < 2:
            continue
        if read_now[key].samples == known.copies[key].samples:  # no new reading
            continue
        (first_ms, first_lag), (at_ms, lag) = read_now[key].samples[0], read_now[key].samples[-1]
        if lag > RESTORING_SHARE * end:
            rate = (first_lag - lag) * 1000 / (at_ms - first_ms) + (appended_per_s(join, copy.task, end, now_ms) or 0.0)
            by_process[copy.process_id] = by_process.get(copy.process_id, 0.0) + rate
    return tuple(RestoreRate(rate, rate) for _, rate in sorted(by_process.items()) if rate > 0)

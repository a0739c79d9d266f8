"""Findings about Kafka Streams applications: unknown state, warm-ups, standbys that fall behind or share a rack.

Each warm-up has its own finding, everything else is one per application and reason; lags change every cycle, so nothing
is reused. A warm-up is promotable only when it has certainly caught up and the group is Stable; "never" and "grows"
need several readings over some time; copies of unknown rack make no finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from agent.detect.detect_context import DetectContext, first
from agent.memory.streams import is_reading
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.kafka import STABLE, STREAM_THREAD
from agent.values.limits import GroupLimits
from agent.values.memory import CopyKey, Join, Memory
from agent.values.number_format import counted, lasted, listed
from agent.values.snapshot import (
    NO_CHANGELOG_SEEN,
    GroupKind,
    LagSource,
    Range,
    StreamsGroup,
    StreamsProcess,
    TaskCopy,
    TaskRole,
    TaskStatefulness,
)
from assignors.problem import TaskId

# Progress of warm-ups: only copies that a process hosts count, because state of other tasks may be deleted at any time
# (``state.cleanup.delay.ms``).

LEARN_AFTER_MS = 30_000
"""With nothing to estimate from, so much time is given to warm-ups before one rebalance is spent on learning."""
LONG_MS = 4 * LEARN_AFTER_MS
CHECKED_AT = 4
"""A restore that is estimated to take longer than that is checked after this part of its time."""


class WarmupArrival(NamedTuple):
    """A warm-up that is still restoring."""

    copy: CopyKey
    eta_s: Range
    """Seconds until its lag is acceptable."""
    estimated: bool = False
    """True where the lag is no reading."""


class WarmupUncertainty(StrEnum):
    """Clause: only a rebalance brings fresh offset sums."""

    LIKELY = "they have probably caught up"
    NOTHING_KNOWN = "no recent lag of them is known"
    LONG_ESTIMATE = "the estimate of their restore time is long, and part of that time is over"


class WarmupReadiness(NamedTuple):
    """The warm-ups of one application; each is in one of the five."""

    caught_up: tuple[CopyKey, ...]
    """For certain."""
    likely: tuple[CopyKey, ...]
    """Caught up by the model's middle, not by its worst case."""
    arriving: tuple[WarmupArrival, ...]
    """By likely time of arrival."""
    unknown: tuple[CopyKey, ...]
    """Nothing but the lag at the last join is known, or the reading is old."""
    stuck: tuple[CopyKey, ...]
    """Behind by readings, without a time of arrival: too few readings, or no progress."""


def readiness(copies: Iterable[TaskCopy], acceptable: int) -> WarmupReadiness:
    """Sorts the warm-ups among the copies. ``acceptable``: ``acceptable.recovery.lag``, in records."""
    copies = [copy for copy in copies if copy.role is TaskRole.WARMUP]
    caught_up: list[CopyKey] = []
    likely: list[CopyKey] = []
    arriving: list[WarmupArrival] = []
    unknown: list[CopyKey] = []
    stuck: list[CopyKey] = []
    for copy in copies:
        key = copy.process_id, copy.task
        if copy.caught_up:
            caught_up.append(key)
        elif copy.caught_up is False:
            _on_its_way(copy, key, arriving, stuck)
        elif copy.lag_source is LagSource.MODEL and copy.lag is not None:
            if copy.lag.likely <= acceptable:
                likely.append(key)
            else:
                _on_its_way(copy, key, arriving, unknown)
        else:
            unknown.append(key)
    arriving += _in_turn(copies, stuck, acceptable)
    arriving.sort(key=lambda one: (one.eta_s.likely, one.copy[0], str(one.copy[1])))
    arriving_copies = {one.copy for one in arriving}
    still = tuple(key for key in stuck if key not in arriving_copies)
    return WarmupReadiness(tuple(caught_up), tuple(likely), tuple(arriving), tuple(unknown), still)


def doubt_about(
    warm: WarmupReadiness, join: Join | None, now_ms: int
) -> tuple[WarmupUncertainty, tuple[CopyKey, ...]] | None:
    """Clause on warm-ups whose progress only a rebalance shows; None where it is known or soon will be.

    ``join`` is the last rebalance of the group, ``now_ms`` the monotonic time.
    """
    if warm.caught_up:
        return None
    if warm.likely:
        return WarmupUncertainty.LIKELY, warm.likely
    age_ms = 0 if join is None else now_ms - join.seen_ms
    if warm.unknown and not warm.arriving:
        return (WarmupUncertainty.NOTHING_KNOWN, warm.unknown) if age_ms >= LEARN_AFTER_MS else None
    if warm.arriving and all(one.estimated for one in warm.arriving):
        whole_ms = age_ms + warm.arriving[0].eta_s.likely * 1_000
        if whole_ms >= LONG_MS and age_ms >= whole_ms / CHECKED_AT:
            return WarmupUncertainty.LONG_ESTIMATE, tuple(one.copy for one in warm.arriving)
    return None


def _on_its_way(copy: TaskCopy, key: CopyKey, arriving: list[WarmupArrival], rest: list[CopyKey]) -> None:
    if copy.eta_s is None:
        rest.append(key)
    else:
        arriving.append(WarmupArrival(key, copy.eta_s, copy.lag_source is LagSource.MODEL))


def _in_turn(copies: Sequence[TaskCopy], stuck: Sequence[CopyKey], acceptable: int) -> list[WarmupArrival]:
    """Arrival of copies without progress while their process restores others: a thread takes them in turn."""
    arrivals = []
    for process in sorted({process for process, _ in stuck}):
        here = [copy for copy in copies if copy.process_id == process and copy.lag is not None]
        speed = max((copy.rate_per_s.likely for copy in here if copy.rate_per_s is not None), default=0.0)
        if speed <= 0:
            continue
        ahead = sum(_missing(copy, acceptable) for copy in here if (process, copy.task) not in stuck)
        for copy in sorted(here, key=lambda copy: _missing(copy, acceptable)):
            if (process, copy.task) in stuck:
                own = _missing(copy, acceptable)
                ahead += own
                arrivals.append(
                    WarmupArrival((process, copy.task), Range(own / speed, ahead / speed, 2 * ahead / speed))
                )
    return arrivals


def _missing(copy: TaskCopy, acceptable: int) -> float:
    return 0.0 if copy.lag is None else max(0.0, copy.lag.likely - acceptable)


ENOUGH_SAMPLES = 4
ENOUGH_MS = 30_000
"""A rate counts as lasting after so many milliseconds without a smaller lag, whatever the interval of looks."""
RACK = "rack"


def streams_findings(view: DetectContext) -> list[Finding]:
    """Findings about every application, those that the settings leave out excepted."""
    findings: list[Finding] = []
    for name, copies in view.snapshot.copies.items():
        group = view.snapshot.groups.get(name)
        if isinstance(group, StreamsGroup) and not group.hidden and not view.limits.excludes_group(name):
            settings = view.limits.group(name)
            findings += _state_unknown(group, view)
            restoring = _restoring(copies)
            for copy in copies:
                findings += _warmup(group, copy, settings, restoring, view)
            findings += _unsure(group, copies, settings, view)
            findings += _standbys_grow(group, copies, settings, view)
            findings += _copies_share(group, copies, settings, view)
    return findings


def _state_unknown(group: StreamsGroup, view: DetectContext) -> Iterable[Finding]:
    if group.topology is None:
        return
    open_tasks = [task for task in group.topology.tasks if task.statefulness is TaskStatefulness.UNKNOWN]
    notes: dict[str, list[str]] = {}
    for task in open_tasks:
        subtopologies = notes.setdefault(task.note, [])
        if str(task.id.subtopology) not in subtopologies:
            subtopologies.append(str(task.id.subtopology))
    if not notes:
        return
    harmless = all(note == NO_CHANGELOG_SEEN for note in notes)
    reasons = [
        f"{counted(len(subs), 'subtopology', 'subtopologies')} ({listed(subs)}): {note}" for note, subs in notes.items()
    ]
    yield Finding(
        reason=FindingReason.STATE_UNKNOWN,
        subject=SubjectId("group", group.id),
        sentence=f"it is unknown whether {counted(len(open_tasks), 'task')} of {group.id} "
        f"{'is' if len(open_tasks) == 1 else 'are'} stateful, {'; '.join(reasons)}; "
        "a topology hint in the settings of the group answers it",
        evidence=(
            ("tasks", len(open_tasks)),
            ("of", len(group.topology.tasks)),
            ("first", first([str(task.id) for task in open_tasks])),
            ("notes", tuple(notes)),
            ("topology", group.topology.source),
        ),
        severity=FindingSeverity.INFO if harmless else FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _restoring(copies: Iterable[TaskCopy]) -> frozenset[str]:
    """Processes on which some copy closes in, or just did: a thread restores tasks in turn, so others may wait."""
    rates = [(copy, copy.rate_per_s) for copy in copies if copy.rate_per_s is not None]
    return frozenset(
        copy.process_id for copy, rate in rates if rate.low > 0 or (not copy.caught_up and rate.likely > 0)
    )


def _warmup(
    group: StreamsGroup, copy: TaskCopy, settings: GroupLimits, restoring: frozenset[str], view: DetectContext
) -> Iterable[Finding]:
    if copy.role is not TaskRole.WARMUP:
        return
    where = f"warm-up of task {copy.task} of {group.id} on process {_name(group, copy.process_id)}"
    if copy.caught_up is True and group.state == STABLE:
        waits = ""
        if group.next_rebalance_ms is not None and group.next_rebalance_ms > view.snapshot.taken_ms:
            left = lasted(group.next_rebalance_ms - view.snapshot.taken_ms)
            waits = f"; otherwise it waits {left} for the next probing rebalance"
        sentence = f"the {where} has caught up ({_lag(copy)}, acceptable {settings.acceptable_recovery_lag:,})"
        sentence += f" and can be promoted now{waits}"
        yield _about_copy(FindingReason.WARMUP_PROMOTABLE, copy, sentence, FindingSeverity.INFO, view)
    elif (
        copy.process_id not in restoring
        and _falls_behind(copy)
        and _lasting(copy, view.memory, view.snapshot.monotonic_ms)
    ):
        sentence = (
            f"the {where} will not catch up at this rate: {_lag(copy)}, and it falls behind or makes no progress "
        )
        sentence += f"({_rate(copy)})"
        yield _about_copy(FindingReason.WARMUP_NEVER, copy, sentence, FindingSeverity.WARNING, view)


def _unsure(
    group: StreamsGroup, copies: Sequence[TaskCopy], settings: GroupLimits, view: DetectContext
) -> Iterable[Finding]:
    """Warm-ups whose progress only a rebalance shows, where the leader wants to promote some."""
    if group.state != STABLE or group.kind is not GroupKind.CLASSIC_STREAMS or group.next_rebalance_ms is None:
        return
    now_ms = view.snapshot.monotonic_ms
    known = view.memory.streams.get(group.id)
    join = known.join if known is not None and known.join is not None and known.join.key == group.join else None
    doubt = doubt_about(readiness(copies, settings.acceptable_recovery_lag), join, now_ms)
    if doubt is None:
        return
    why, keys = doubt
    warm = [copy for copy in copies if (copy.process_id, copy.task) in set(keys) and copy.role is TaskRole.WARMUP]
    yield Finding(
        reason=FindingReason.WARMUP_UNSURE,
        subject=SubjectId("group", group.id),
        sentence=f"the lag of {counted(len(keys), 'warm-up')} of {group.id} is unknown until the next rebalance: "
        f"{why.value}",
        evidence=(
            ("warm-ups", len(keys)),
            ("first", first([f"{copy.task} on {_name(group, copy.process_id)}" for copy in warm])),
            *_lag_evidence(warm[0]),
        ),
        severity=FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms,
    )


def growing_standbys(
    copies: Iterable[TaskCopy], settings: GroupLimits, memory: Memory, now_ms: int
) -> tuple[TaskCopy, ...]:
    """Standbys that fall behind all the time. ``now_ms`` is monotonic."""
    return tuple(
        copy
        for copy in copies
        if copy.role is TaskRole.STANDBY
        and copy.rate_per_s is not None
        and copy.rate_per_s.high < 0
        and copy.lag is not None
        and copy.lag.low > settings.acceptable_recovery_lag
        and _lasting(copy, memory, now_ms)
    )


def _standbys_grow(
    group: StreamsGroup, copies: Sequence[TaskCopy], settings: GroupLimits, view: DetectContext
) -> Iterable[Finding]:
    growing = growing_standbys(copies, settings, view.memory, view.snapshot.monotonic_ms)
    if not growing:
        return
    worst = max(growing, key=lambda copy: copy.lag.likely if copy.lag else 0.0)
    yield Finding(
        reason=FindingReason.STANDBY_LAG_GROWS,
        subject=SubjectId("group", group.id),
        sentence=f"{group.id} has {counted(len(growing), 'standby', 'standbys')} falling further behind, the worst "
        f"of task {worst.task} on process {_name(group, worst.process_id)}: {_lag(worst)}"
        f", {_rate(worst)}",
        evidence=(
            ("standbys", len(growing)),
            ("first", first([f"{copy.task} on {_name(group, copy.process_id)}" for copy in growing])),
            *_lag_evidence(worst),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _copies_share(
    group: StreamsGroup, copies: Sequence[TaskCopy], settings: GroupLimits, view: DetectContext
) -> Iterable[Finding]:
    """Active and standby copies of a task in one rack (or under one tag value) while another is free; not warm-ups."""
    leaving = {(copy.process_id, copy.task) for copy in copies if copy.role is TaskRole.WARMUP}
    holders: dict[TaskId, list[StreamsProcess]] = {}
    for process in group.processes:
        for task in (*process.active, *process.standby):
            if (process.id, task) not in leaving:
                holders.setdefault(task, []).append(process)
    shared = {task: processes for task, processes in holders.items() if len(processes) > 1}
    if not shared:
        return
    configured = settings.rack_aware_assignment_tags
    for key in (RACK, *(configured or sorted({key for process in group.processes for key, _ in process.tags}))):
        yield from _share_of(group, key, shared, view, asked=key in configured or key == RACK)


def _share_of(
    group: StreamsGroup,
    key: str,
    holders: Mapping[TaskId, Sequence[StreamsProcess]],
    view: DetectContext,
    *,
    asked: bool,
) -> Iterable[Finding]:
    values = {process.id: _value(process, key) for process in group.processes}
    known = {value for value in values.values() if value is not None}
    crowded: list[tuple[TaskId, str, list[str]]] = []
    for task, processes in sorted(holders.items(), key=lambda row: (isinstance(row[0].subtopology, str), row[0])):
        used = [values[process.id] for process in processes]
        free = sorted(known.difference(used))
        twice = sorted({value for value in used if value is not None and used.count(value) > 1})
        if twice and len(free) > used.count(None):  # a copy of unknown rack may be where it seems free
            crowded.append((task, twice[0], free))
    if not crowded:
        return
    task, value, free = crowded[0]
    what = "rack" if key == RACK else f"tag {key}"
    on = [_name(group, process.id) for process in holders[task] if values[process.id] == value]
    yield Finding(
        reason=FindingReason.COPIES_SHARE_RACK,
        subject=SubjectId("group", group.id),
        sentence=f"{group.id} has {counted(len(crowded), 'task')} with copies that share a {what} while another is"
        f" free: {task} is on {listed(on)}, both {value}; {listed(free)} is free",
        evidence=(
            ("key", key),
            ("tasks", len(crowded)),
            ("of", len(holders)),
            ("first", first([str(name) for name, _, _ in crowded])),
            ("free", tuple(free)),
            ("asked for", asked),
        ),
        severity=FindingSeverity.WARNING if asked else FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms,
        detail=key,
    )


def _value(process: StreamsProcess, key: str) -> str | None:
    return process.rack.name if key == RACK else dict(process.tags).get(key)


def _about_copy(
    reason: FindingReason, copy: TaskCopy, sentence: str, severity: FindingSeverity, view: DetectContext
) -> Finding:
    return Finding(
        reason=reason,
        subject=SubjectId("task", f"{copy.group_id}/{copy.task}/{copy.process_id}"),
        sentence=sentence,
        evidence=_lag_evidence(copy),
        severity=severity,
        since_ms=view.snapshot.taken_ms,
        task_of=copy.group_id,
    )


def _lasting(copy: TaskCopy, memory: Memory, now_ms: int) -> bool:
    """True when the rate rests on enough readings, and none of them came nearer to the end for some time."""
    known = memory.streams.get(copy.group_id)
    before = known.copies.get((copy.process_id, copy.task)) if known is not None else None
    if before is None or before.nearest is None or not is_reading(copy) or copy.samples < ENOUGH_SAMPLES:
        return False
    return now_ms - before.nearest[0] >= ENOUGH_MS


def _lag_evidence(copy: TaskCopy) -> tuple[tuple[str, str | float | bool | tuple[int, ...] | None], ...]:
    def bounds(of: Range | None) -> tuple[int, ...] | None:
        return None if of is None else (round(of.low), round(of.likely), round(of.high))

    return (
        ("lag", bounds(copy.lag)),
        ("source", None if copy.lag_source is None else str(copy.lag_source)),
        ("age ms", copy.lag_age_ms),
        ("rate per s", bounds(copy.rate_per_s)),
        ("eta s", bounds(copy.eta_s)),
        ("role certain", copy.role_certain),
    )


def _lag(copy: TaskCopy) -> str:
    if copy.lag is None:
        return "lag unknown"
    low, high = round(copy.lag.low), round(copy.lag.high)
    return f"lag {low:,}" if low == high else f"lag {low:,} to {high:,}"


def _falls_behind(copy: TaskCopy) -> bool:
    """True for a copy that has not caught up and does not come nearer, even at the best that its readings allow."""
    return copy.caught_up is False and copy.rate_per_s is not None and copy.rate_per_s.high <= 0


def _rate(copy: TaskCopy) -> str:
    return "" if copy.rate_per_s is None else f"{-copy.rate_per_s.likely:+.0f} records/s"


def _name(group: StreamsGroup, process_id: str) -> str:
    """A process by its ``client.id``, without the thread's part."""
    process = next((process for process in group.processes if process.id == process_id), None)
    if process is None or not process.client_ids:
        return process_id
    return process.client_ids[0].partition(STREAM_THREAD)[0]

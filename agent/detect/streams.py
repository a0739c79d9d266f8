"""Findings about Kafka Streams applications: unknown state, warm-ups, standbys that fall behind or crowd.

Warm-ups are few, so each has its own finding; everything else is one per application and reason. Lags move in every
cycle, so nothing here is reused.

Invariants: a warm-up is promotable only when it has caught up for certain and the group is Stable; "never" and "grows"
need several readings over some time, never an estimate; copies of unknown rack make no finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.detect.ground import View
from agent.detect.warmups import doubt_about, readiness
from agent.detect.words import count, first, listed
from agent.memory.streams import is_reading
from agent.model.topology import NO_CHANGELOG_SEEN
from agent.values.finding import Finding, FindingReason, Severity, Subject
from agent.values.kafka import STABLE
from agent.values.limits import GroupLimits
from agent.values.memory import Memory
from agent.values.snapshot import GroupKind, Range, Role, Statefulness, StreamsGroup, StreamsProcess, TaskCopy
from assignors.problem import TaskId

ENOUGH_SAMPLES = 4
ENOUGH_MS = 30_000
"""For so long no reading must have come nearer before a rate is called lasting, however often rackwise looks."""
RACK = "rack"


def streams_findings(view: View) -> list[Finding]:
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


def _state_unknown(group: StreamsGroup, view: View) -> Iterable[Finding]:
    if group.topology is None:
        return
    open_tasks = [task for task in group.topology.tasks if task.statefulness is Statefulness.UNKNOWN]
    notes: dict[str, list[str]] = {}
    for task in open_tasks:
        subtopologies = notes.setdefault(task.note, [])
        if str(task.id.subtopology) not in subtopologies:
            subtopologies.append(str(task.id.subtopology))
    if not notes:
        return
    harmless = all(note == NO_CHANGELOG_SEEN for note in notes)
    told = [
        f"{count(len(subs), 'subtopology', 'subtopologies')} ({listed(subs)}): {note}" for note, subs in notes.items()
    ]
    yield Finding(
        reason=FindingReason.STATE_UNKNOWN,
        subject=Subject("group", group.id),
        sentence=f"it is unknown whether {count(len(open_tasks), 'task')} of {group.id} "
        f"{'is' if len(open_tasks) == 1 else 'are'} stateful, {'; '.join(told)}; "
        "a topology hint in the settings of the group answers it",
        evidence=(
            ("tasks", len(open_tasks)),
            ("of", len(group.topology.tasks)),
            ("first", first([str(task.id) for task in open_tasks])),
            ("notes", tuple(notes)),
            ("topology", group.topology.source),
        ),
        severity=Severity.INFO if harmless else Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _restoring(copies: Iterable[TaskCopy]) -> frozenset[str]:
    """Processes on which some copy closes in, or just did: a thread restores tasks in turn, so others may wait."""
    rates = [(copy, copy.rate_per_s) for copy in copies if copy.rate_per_s is not None]
    return frozenset(
        copy.process_id for copy, rate in rates if rate.low > 0 or (not copy.caught_up and rate.likely > 0)
    )


def _warmup(
    group: StreamsGroup, copy: TaskCopy, settings: GroupLimits, restoring: frozenset[str], view: View
) -> Iterable[Finding]:
    if copy.role is not Role.WARMUP:
        return
    where = f"warm-up of task {copy.task} of {group.id} on process {_name(group, copy.process_id)}"
    if copy.caught_up is True and group.state == STABLE:
        waits = ""
        if group.next_rebalance_ms is not None and group.next_rebalance_ms > view.snapshot.taken_ms:
            left_s = (group.next_rebalance_ms - view.snapshot.taken_ms) // 1000
            waits = f"; otherwise it waits {left_s} s for the next probing rebalance"
        sentence = f"the {where} has caught up ({_lag(copy)}, acceptable {settings.acceptable_recovery_lag:,})"
        sentence += f" and can be promoted now{waits}"
        yield _about_copy(FindingReason.WARMUP_PROMOTABLE, copy, sentence, Severity.INFO, view)
    elif (
        copy.process_id not in restoring
        and _falls_behind(copy)
        and _lasting(copy, view.memory, view.snapshot.monotonic_ms)
    ):
        sentence = (
            f"the {where} will not catch up at this rate: {_lag(copy)}, and it falls behind or makes no progress "
        )
        sentence += f"({_rate(copy)})"
        yield _about_copy(FindingReason.WARMUP_NEVER, copy, sentence, Severity.WARNING, view)


def _unsure(group: StreamsGroup, copies: Sequence[TaskCopy], settings: GroupLimits, view: View) -> Iterable[Finding]:
    """Warm-ups of which only a rebalance can tell how far they are; asked where the leader wants to promote some."""
    if group.state != STABLE or group.kind is not GroupKind.CLASSIC_STREAMS or group.next_rebalance_ms is None:
        return
    now_ms = view.snapshot.monotonic_ms
    known = view.memory.streams.get(group.id)
    join = known.join if known is not None and known.join is not None and known.join.key == group.join else None
    doubt = doubt_about(readiness(copies, settings.acceptable_recovery_lag), join, now_ms)
    if doubt is None:
        return
    why, keys = doubt
    warm = [copy for copy in copies if (copy.process_id, copy.task) in set(keys) and copy.role is Role.WARMUP]
    yield Finding(
        reason=FindingReason.WARMUP_UNSURE,
        subject=Subject("group", group.id),
        sentence=f"the lag of {count(len(keys), 'warm-up')} of {group.id} is unknown until the next rebalance: "
        f"{why.value}",
        evidence=(
            ("warm-ups", len(keys)),
            ("first", first([f"{copy.task} on {_name(group, copy.process_id)}" for copy in warm])),
            *_lag_evidence(warm[0]),
        ),
        severity=Severity.INFO,
        since_ms=view.snapshot.taken_ms,
    )


def growing_standbys(
    copies: Iterable[TaskCopy], settings: GroupLimits, memory: Memory, now_ms: int
) -> tuple[TaskCopy, ...]:
    """Standbys that fall behind all the time. ``now_ms`` is monotonic."""
    return tuple(
        copy
        for copy in copies
        if copy.role is Role.STANDBY
        and copy.rate_per_s is not None
        and copy.rate_per_s.high < 0
        and copy.lag is not None
        and copy.lag.low > settings.acceptable_recovery_lag
        and _lasting(copy, memory, now_ms)
    )


def _standbys_grow(
    group: StreamsGroup, copies: Sequence[TaskCopy], settings: GroupLimits, view: View
) -> Iterable[Finding]:
    growing = growing_standbys(copies, settings, view.memory, view.snapshot.monotonic_ms)
    if not growing:
        return
    worst = max(growing, key=lambda copy: copy.lag.likely if copy.lag else 0.0)
    yield Finding(
        reason=FindingReason.STANDBY_LAG_GROWS,
        subject=Subject("group", group.id),
        sentence=f"{group.id} has {count(len(growing), 'standby', 'standbys')} falling further behind, the worst "
        f"of task {worst.task} on process {_name(group, worst.process_id)}: {_lag(worst)}"
        f", {_rate(worst)}",
        evidence=(
            ("standbys", len(growing)),
            ("first", first([f"{copy.task} on {_name(group, copy.process_id)}" for copy in growing])),
            *_lag_evidence(worst),
        ),
        severity=Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _copies_share(
    group: StreamsGroup, copies: Sequence[TaskCopy], settings: GroupLimits, view: View
) -> Iterable[Finding]:
    """Active and standby copies of a task in one rack (or under one tag value) while another is free; not warm-ups."""
    leaving = {(copy.process_id, copy.task) for copy in copies if copy.role is Role.WARMUP}
    holders: dict[TaskId, list[StreamsProcess]] = {}
    for process in group.processes:
        for task in (*process.active, *process.standby):
            if (process.id, task) not in leaving:
                holders.setdefault(task, []).append(process)
    shared = {task: processes for task, processes in holders.items() if len(processes) > 1}
    if not shared:
        return
    told = settings.rack_aware_assignment_tags
    for key in (RACK, *(told or sorted({key for process in group.processes for key, _ in process.tags}))):
        yield from _share_of(group, key, shared, view, asked=key in told or key == RACK)


def _share_of(
    group: StreamsGroup, key: str, holders: Mapping[TaskId, Sequence[StreamsProcess]], view: View, *, asked: bool
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
        subject=Subject("group", group.id),
        sentence=f"{group.id} has {count(len(crowded), 'task')} with copies that share a {what} while another is free: "
        f"{task} is on {listed(on)}, both {value}; {listed(free)} is free",
        evidence=(
            ("key", key),
            ("tasks", len(crowded)),
            ("of", len(holders)),
            ("first", first([str(name) for name, _, _ in crowded])),
            ("free", tuple(free)),
            ("asked for", asked),
        ),
        severity=Severity.WARNING if asked else Severity.INFO,
        since_ms=view.snapshot.taken_ms,
        detail=key,
    )


def _value(process: StreamsProcess, key: str) -> str | None:
    return process.rack.name if key == RACK else dict(process.tags).get(key)


def _about_copy(reason: FindingReason, copy: TaskCopy, sentence: str, severity: Severity, view: View) -> Finding:
    return Finding(
        reason=reason,
        subject=Subject("task", f"{copy.group_id}/{copy.task}/{copy.process_id}"),
        sentence=sentence,
        evidence=_lag_evidence(copy),
        severity=severity,
        since_ms=view.snapshot.taken_ms,
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
    """A process by its client id, which people know, without the thread's part."""
    process = next((process for process in group.processes if process.id == process_id), None)
    if process is None or not process.client_ids:
        return process_id
    return process.client_ids[0].partition("-StreamThread-")[0]

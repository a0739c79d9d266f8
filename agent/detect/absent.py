"""Findings about brokers that are absent: since when, what they hold, and until when nothing is moved because of it.

What an absence costs now (partitions under or at min ISR, or without a leader) is found by its own detectors. That
another replica leads while the preferred leader's broker is absent is no fault.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agent.detect.ground import View
from agent.detect.words import count
from agent.memory.absences import Absence, absence_words
from agent.values.finding import Finding, FindingReason, Severity, Subject
from agent.values.memo import Memo
from agent.values.snapshot import Snapshot
from agent.values.words import lasted


class _Load(NamedTuple):
    """What every broker holds, by replica lists."""

    replicas: Counter[int]
    preferred: Counter[int]
    """Partitions of which it is the preferred leader..."""
    leaderless: Counter[int]
    """...and those of them that have no leader now."""


def absent_findings(view: View, memo: Memo) -> list[Finding]:
    """One finding per absent broker; of one that holds no replica only while it may be restarting."""
    if not view.absences:
        return []
    load = memo.of(("load",), (view.snapshot.topics,), lambda: _load(view.snapshot))
    return [
        _absent(broker, absence, load, view)
        for broker, absence in view.absences.items()
        if absence.has_replicas or (absence.for_ms is not None and absence.for_ms < view.limits.broker_absent_ms)
    ]


def _load(snapshot: Snapshot) -> _Load:
    rows = Counter(
        (state.replicas, state.leader is None) for topic in snapshot.topics.values() for state in topic.partitions
    )
    load = _Load(Counter(), Counter(), Counter())
    for (replicas, leaderless), times in rows.items():
        for broker in replicas:
            load.replicas[broker] += times
        for broker in replicas[:1]:
            load.preferred[broker] += times
            load.leaderless[broker] += times if leaderless else 0
    return load


def _absent(broker: int, absence: Absence, load: _Load, view: View) -> Finding:
    state = next((one for one in view.ground.brokers if one.id == broker), None)
    rack = state.rack.name if state is not None else None
    last = rack is not None and not any(one.alive and one.rack.name == rack for one in view.ground.brokers)
    parts = [absence_words(broker, absence), _holds(broker, load, absence)]
    parts += [f"no live broker of rack {rack} is left"] if last else []
    parts += ["its rack was never seen"] if state is not None and rack is None and not state.rack.claims else []
    parts += _wait(absence, view.limits.broker_absent_ms)
    return Finding(
        reason=FindingReason.BROKER_ABSENT,
        subject=Subject("broker", str(broker)),
        sentence="; ".join(parts),
        evidence=(
            ("absent_s", None if absence.for_ms is None else absence.for_ms // 1_000),
            ("absent before the first look", absence.for_ms is not None and not absence.seen_before),
            ("fenced", absence.fenced),
            ("rack", rack),
            ("replicas", load.replicas[broker]),
            ("preferred leader of", load.preferred[broker]),
            ("last live broker of its rack", last),
            *((("removed in this simulation", True),) if absence.removed else ()),
        ),
        severity=Severity.WARNING if absence.has_replicas else Severity.INFO,
        since_ms=view.snapshot.taken_ms - (absence.for_ms or 0),
        held=absence.awaited(view.limits.broker_absent_ms),
    )


def _holds(broker: int, load: _Load, absence: Absence) -> str:
    replicas, preferred, leaderless = (of[broker] for of in load)
    if not absence.has_replicas:
        return "it holds no replica"
    if not replicas:
        return "the replicas that it held are not shown"
    held = f"it holds {count(replicas, 'replica')}"
    if not preferred:
        return held
    held += f" and is the preferred leader of {count(preferred, 'partition')}"
    if leaderless:
        return f"{held}, of which {count(leaderless, 'partition')} {'has' if leaderless == 1 else 'have'} no leader"
    return f"{held}, which {'another replica leads' if preferred == 1 else 'other replicas lead'} now"


def _wait(absence: Absence, absent_for_ms: int) -> list[str]:
    if not absence.has_replicas:
        return []
    until = f"until it has been absent for {lasted(absent_for_ms)}"
    if absence.for_ms is None and absent_for_ms:
        return [f"one look cannot tell a restart from a loss, and an agent moves nothing because of it {until}"]
    if absence.awaited(absent_for_ms):
        return [f"nothing is moved because of it {until}"]
    return []

"""Findings about moved replicas: rack changes with their cause, foreign reassignments, leftover throttles.

A relabelled broker is one finding; every other change is one per topic and cause. A throttle is leftover once no
reassignment has run for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.detect.detect_context import DetectContext, first, placed
from agent.memory.rack_history import rack_changes
from agent.values.cycle import gaps_of
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.memory import ChangeCause, PartitionChange, RackChange
from agent.values.number_format import counted
from agent.values.observation import ObservationPart
from agent.values.replicas import crowding, target_replicas
from agent.values.snapshot import Reassignment
from agent.values.throttles import broker_rates, idle_throttles, topic_throttles

_BECAUSE = {
    ChangeCause.REASSIGNED: "because they were reassigned by another tool than rackwise",
    ChangeCause.NEW_PARTITIONS: "because they were added",
    ChangeCause.CREATED_BLIND: "because the topic was created without regard to racks",
    ChangeCause.RECREATED: "because the topic was deleted and created again",
}


def move_findings(view: DetectContext) -> list[Finding]:
    """Findings about rack changes, running reassignments and leftover throttles."""
    findings = [
        _relabelled(change.subject, change, view)
        if isinstance(change.subject, int)
        else _changed(change.subject, change, view)
        for change in rack_changes(view.memory, view.snapshot)
        if isinstance(change.subject, int)
        or not (view.limits.excludes_topic(change.subject) or _is_gone(change.subject, view))
    ]
    findings += _foreign(view)
    findings += _throttles(view)
    return findings


def _is_gone(topic: str, view: DetectContext) -> bool:
    """Whether this look certainly has no such topic, so that nothing of it is left to mend."""
    snapshot = view.snapshot
    is_whole = not gaps_of(snapshot, (ObservationPart.TOPICS,)) and snapshot.rights.topics_hidden == 0
    return topic not in snapshot.topics and is_whole


def _relabelled(broker: int, change: RackChange, view: DetectContext) -> Finding:
    seen = view.sightings.get(broker)
    previous, now = (seen.previous, seen.known) if seen is not None else (None, None)
    affected = f"{counted(change.partitions, 'partition')} in {counted(change.topics, 'topic')}"
    example = change.examples[0].id
    return Finding(
        reason=FindingReason.REPLICA_RACKS_CHANGED,
        subject=SubjectId("broker", str(broker)),
        broker=broker,
        sentence=f"the replica racks of {affected} changed, {example} among them, "
        f"because broker {broker} came back in rack {now} instead of {previous}",
        evidence=(
            ("cause", str(change.cause)),
            ("partitions", change.partitions),
            ("topics", change.topics),
            ("first", first([str(row.id) for row in change.examples])),
            ("rack now", now),
            ("rack before", previous),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=change.at_ms,
        held=broker in view.broker_racks.unsteady,
        detail=change.cause.name.lower(),
    )


def _changed(topic: str, change: RackChange, view: DetectContext) -> Finding:
    rack_of: Mapping[int, str] = view.broker_racks.room.rack_of
    example = change.examples[0]
    shares_rack = _shares_rack(topic, change, view)
    shares = ", and replicas share a rack now while another is free" if shares_rack else ""
    since = (("running since", change.running_since_ms),) if change.running_since_ms is not None else ()
    return Finding(
        reason=FindingReason.REPLICA_RACKS_CHANGED,
        subject=SubjectId("topic", topic),
        sentence=f"the replica racks of {counted(change.partitions, 'partition')} of {topic} changed, "
        f"{_BECAUSE[change.cause]}: {_went(example, rack_of)}{shares}",
        evidence=(
            ("cause", str(change.cause)),
            ("partitions", change.partitions),
            ("first", first([_went(row, rack_of) for row in change.examples])),
            ("shares a rack", shares_rack),
            *since,
        ),
        severity=FindingSeverity.WARNING if shares_rack else FindingSeverity.INFO,
        since_ms=change.at_ms,
        detail=change.cause.name.lower(),
    )


def _shares_rack(topic: str, change: RackChange, view: DetectContext) -> bool:
    """Whether replicas share a rack in this look: the change is kept for longer than it takes to mend the topic.

    Of a topic that this look does not show, it is as it was at the change.
    """
    seen = view.snapshot.topics.get(topic)
    if seen is None or not change.shares_rack:
        return change.shares_rack
    running, room = view.snapshot.reassignments, view.broker_racks.room
    return any(crowding(target_replicas(row, running.get(row.id)), room) is not None for row in seen.partitions)


def _went(change: PartitionChange, rack_of: Mapping[int, str]) -> str:
    """``orders-0 went from 1 (a), 2 (b) to 1 (a), 4 (a)``."""
    after = placed(change.after, rack_of)
    return (
        f"{change.id} went from {placed(change.before, rack_of)} to {after}"
        if change.before
        else f"{change.id} is on {after}"
    )


def _foreign(view: DetectContext) -> Iterable[Finding]:
    by_topic: dict[str, list[Reassignment]] = {}
    for move in view.snapshot.reassignments.values():
        if not move.own and not view.limits.excludes_topic(move.id.topic):
            by_topic.setdefault(move.id.topic, []).append(move)
    for topic, moves in by_topic.items():
        move = moves[0]
        target = tuple([replica for replica in move.replicas if replica not in move.removing])
        yield Finding(
            reason=FindingReason.FOREIGN_REASSIGNMENT,
            subject=SubjectId("topic", topic),
            sentence=f"a reassignment of {counted(len(moves), 'partition')} of {topic} is running that rackwise did "
            f"not start: {move.id} goes to {placed(target, view.broker_racks.room.rack_of)}; rackwise leaves it alone",
            evidence=(
                ("partitions", len(moves)),
                ("first", first([str(move.id) for move in moves])),
                ("adding", move.adding),
                ("removing", move.removing),
            ),
            severity=FindingSeverity.INFO,
            since_ms=view.snapshot.taken_ms,
        )


def _throttles(view: DetectContext) -> Iterable[Finding]:
    now_ms = view.snapshot.monotonic_ms
    for resource in idle_throttles(view.snapshot):
        kind, name = resource.subject
        since_ms = view.memory.throttles.get(str(resource.subject), now_ms)
        if now_ms - since_ms < view.limits.detect.throttle_grace_ms:
            continue
        if resource.broker is not None:
            what = "; ".join(f"{config}={rate}" for config, rate in broker_rates(view.snapshot, resource.broker))
        elif view.limits.excludes_topic(name):
            continue
        else:
            what = topic_throttles(view.snapshot.topics[name]) or ""
        standing = " (* throttles every replica and may be meant to stay)" if "*" in what else ""
        yield Finding(
            reason=FindingReason.THROTTLE_LEFT_BEHIND,
            subject=resource.subject,
            broker=resource.broker,
            sentence=f"{kind} {name} is throttled although no reassignment needs it: {_short(what)}{standing}",
            evidence=(("throttle", _short(what)),),
            severity=FindingSeverity.INFO if kind == "broker" or "*" in what else FindingSeverity.WARNING,
            since_ms=view.snapshot.taken_ms,
        )


def _short(text: str) -> str:
    """A throttle may list every replica of a large topic."""
    return text if len(text) <= 120 else f"{text[:117]}..."

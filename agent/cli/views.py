"""Rows for people out of the snapshot and what was found in it. Pure; unknown stays None."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.detect.assessment import Assessment, Locality, Measure
from agent.detect.located import whence
from agent.model.snapshot import (
    ConsumerGroup,
    Group,
    Member,
    OtherGroup,
    Rack,
    RackState,
    Range,
    Snapshot,
    StreamsGroup,
    TaskCopy,
)

if TYPE_CHECKING:
    from agent.plan.loss import LostTask, RackLoss
    from agent.seen import Seen

UNKNOWN = "(unknown)"


def summary(look: Seen) -> dict[str, Any]:
    """The cluster in ten lines."""
    snapshot = look.snapshot
    kinds = Counter(_kind(group) for group in snapshot.groups.values())
    severities = Counter(finding.severity.value for finding in look.detection.findings)
    by_rack: dict[str, list[int]] = {}
    for broker in snapshot.brokers:
        by_rack.setdefault(rack_name(broker.rack), []).append(broker.id)
    return {
        "cluster": snapshot.cluster_id,
        "brokers": dict(sorted(by_rack.items())),
        "topics": len(snapshot.topics),
        "partitions": sum(len(topic.partitions) for topic in snapshot.topics.values()),
        "groups": dict(sorted(kinds.items())),
        "findings": {name: severities[name] for name in ("critical", "warning", "info") if severities[name]},
        "proposals": len(look.proposals),
        "not_seen": len(snapshot.gaps),
        "took_ms": look.took_ms,
    }


def status(look: Seen) -> dict[str, Any]:
    """The whole status as one document."""
    return {
        **summary(look),
        "findings": findings(look),
        "gaps": [
            {"part": gap.part.value, "cause": gap.cause.value, "subject": gap.subject, "detail": gap.detail}
            for gap in look.snapshot.gaps
        ],
    }


def findings(look: Seen) -> list[dict[str, Any]]:
    """Every finding, the gravest first."""
    order = {"critical": 0, "warning": 1, "info": 2}
    return [
        {
            "severity": finding.severity.value,
            "finding": finding.reason.value,
            "subject": str(finding.subject),
            "sentence": finding.sentence,
            "evidence": dict(finding.evidence),
            "since_ms": finding.since_ms,
            "held": finding.held,
            "id": finding.id,
        }
        for finding in sorted(look.detection.findings, key=lambda found: (order[found.severity.value], found.id))
    ]


def racks(snapshot: Snapshot) -> list[dict[str, Any]]:
    """One row per rack with what losing it costs, and one for what has no known rack."""
    from agent.plan.loss import rack_losses

    losses = {loss.rack: loss for loss in rack_losses(snapshot)}
    names: dict[int, str] = {broker.id: rack_name(broker.rack) for broker in snapshot.brokers}
    brokers: dict[str, list[int]] = {}
    for broker in snapshot.brokers:
        brokers.setdefault(names[broker.id], []).append(broker.id)
    partitions = [partition for topic in snapshot.topics.values() for partition in topic.partitions]
    replicas = Counter(names.get(replica, UNKNOWN) for partition in partitions for replica in partition.replicas)
    leaders = Counter(names.get(row.leader, UNKNOWN) for row in partitions if row.leader is not None)
    members = Counter(rack_name(member.rack) for group in snapshot.groups.values() for member in _members(group))
    sources = _sources_by_rack(snapshot)
    active, standby = _tasks_by_rack(snapshot)
    every = {*brokers, *replicas, *leaders, *members, *active, *standby}
    return [
        {
            "rack": name,
            "known_from": dict(sorted(sources.get(name, Counter()).items())),
            "brokers": brokers.get(name, []),
            "replicas": replicas[name],
            "leaders": leaders[name],
            "members": members[name],
            "active_tasks": active[name],
            "standby_tasks": standby[name],
            **_loss(losses.get(name)),
        }
        for name in sorted(every, key=lambda name: (name == UNKNOWN, name))
    ]


def _sources_by_rack(snapshot: Snapshot) -> dict[str, Counter[str]]:
    """Rack -> how many brokers and members are known to be in it, by what knows it."""
    sources: dict[str, Counter[str]] = {}
    racks = [(broker.rack, "broker.rack") for broker in snapshot.brokers]
    racks += [(member.rack, "client.rack") for group in snapshot.groups.values() for member in _members(group)]
    for rack, setting in racks:
        source = whence(rack, setting)
        if source is not None:
            sources.setdefault(rack_name(rack), Counter())[source] += 1
    return sources


def _loss(loss: RackLoss | None) -> dict[str, Any]:
    """What losing a rack costs; everything None where there is no rack to lose."""
    from agent.plan.loss_words import loss_sentence

    if loss is None:
        return {"losing_it": None, "loss": None}
    return {
        "losing_it": loss_sentence(loss),
        "loss": {
            "leaderless": [str(partition) for partition in loss.leaderless],
            "under_min_isr": [str(partition) for partition in loss.under_min_isr],
            "untold": [str(partition) for partition in loss.untold],
            "tasks_without_caught_up_standby": [_lost_task(task) for task in loss.tasks],
            "untold_tasks": [_lost_task(task) for task in loss.untold_tasks],
            "untold_groups": list(loss.untold_groups),
            "survivors": [survivor._asdict() for survivor in loss.survivors],
        },
    }


def _lost_task(lost: LostTask) -> dict[str, str]:
    return {"group": lost.group, "task": str(lost.task), "process": lost.process}


def _tasks_by_rack(snapshot: Snapshot) -> tuple[Counter[str], Counter[str]]:
    active: Counter[str] = Counter()
    standby: Counter[str] = Counter()
    for group in snapshot.groups.values():
        for process in group.processes if isinstance(group, StreamsGroup) else ():
            active[rack_name(process.rack)] += len(process.active)
            standby[rack_name(process.rack)] += len(process.standby) + len(process.warmup)
    return active, standby


def groups(look: Seen) -> list[dict[str, Any]]:
    """One row per group."""
    return [_group_row(look, group) for _, group in sorted(look.snapshot.groups.items())]


def group(look: Seen, group_id: str) -> dict[str, Any]:
    """One group with its members and the copies of its tasks."""
    found = look.snapshot.groups[group_id]
    document = _group_row(look, found)
    document["members"] = [
        {
            "member": member.id,
            "client_id": member.client_id,
            "host": member.client_host,
            "rack": rack_name(member.rack),
            "known_from": whence(member.rack, "client.rack"),
            "assigned": None if member.assigned is None else [str(partition) for partition in member.assigned],
            "defects": [defect.sentence for defect in member.defects],
        }
        for member in _members(found)
    ]
    if isinstance(found, StreamsGroup):
        where = {process.id: process.rack for process in found.processes}
        document["tasks"] = [
            _copy_row(copy, where.get(copy.process_id)) for copy in look.snapshot.copies.get(group_id, ())
        ]
    return document


def rack_name(rack: Rack) -> str:
    """The rack as a person reads it: unknown and conflicting say so."""
    match rack.state:
        case RackState.KNOWN:
            return f"{rack.name} (last known)" if rack.remembered else str(rack.name)
        case RackState.UNKNOWN:
            return UNKNOWN
        case RackState.CONFLICTING:
            return "(conflicting: " + " / ".join(rack.claims) + ")"


def _group_row(look: Seen, group: Group) -> dict[str, Any]:
    assessment = look.detection.assessments.get(group.id)
    members = _members(group)
    return {
        "group": group.id,
        "kind": _kind(group),
        "state": group.state,
        "assignor": None if isinstance(group, OtherGroup) else group.assignor,
        "members": None if isinstance(group, OtherGroup) else len(members),
        "racks": sorted({rack_name(member.rack) for member in members}),
        "local_kafka": _share(assessment, Measure.KAFKA),
        "local_read": _share(assessment, Measure.READ_LOCAL),
        "best": _share(assessment, Measure.KAFKA, best=True),
        "gap": assessment.gap if assessment and assessment.why_not is None else None,
        "not_assessed": assessment.why_not.value if assessment and assessment.why_not else None,
    }


def _share(assessment: Assessment | None, measure: Measure, *, best: bool = False) -> str | None:
    if assessment is None or assessment.why_not is not None:
        return None
    rows: tuple[Locality, ...] = assessment.optimal if best else assessment.current
    for row in rows:
        if row.measure is measure and row.unit == "partitions" and row.total:
            return f"{100 * row.local / row.total:.0f} %" + (
                f" ({100 * row.unknown / row.total:.0f} % unknown)" if row.unknown else ""
            )
    return None


def _copy_row(copy: TaskCopy, rack: Rack | None) -> dict[str, Any]:
    return {
        "task": str(copy.task),
        "role": copy.role.value + ("" if copy.role_certain else "?"),
        "process": copy.process_id,
        "rack": None if rack is None else rack_name(rack),
        "lag": _range(copy.lag),
        "rate_per_s": _range(copy.rate_per_s),
        "eta_s": _range(copy.eta_s),
        "caught_up": copy.caught_up,
        "source": copy.lag_source.value if copy.lag_source else None,
        "age_ms": copy.lag_age_ms,
    }


def _range(value: Range | None) -> str | None:
    if value is None:
        return None
    if value.low == value.high:
        return f"{value.likely:,.0f}"
    return f"{value.likely:,.0f} ({value.low:,.0f} to {value.high:,.0f})"


def _members(group: Group) -> tuple[Member, ...]:
    return group.members if isinstance(group, ConsumerGroup | StreamsGroup) else ()


def _kind(group: Group) -> str:
    return group.kind.value

"""Rows for people and machines out of the snapshot and what was found in it. Pure; unknown stays None."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from agent.cli.views_money import money, unknown_groups, worst_groups
from agent.detect.located import whence
from agent.money.costs import costs_of
from agent.money.traffic import border
from agent.values.absences import absence_words, absences
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.observation import Part
from agent.values.snapshot import Group, Member, OtherGroup, Rack, RackState, Snapshot, StreamsGroup
from agent.values.unseen import hidden_groups, seen_of

if TYPE_CHECKING:
    from agent.cli.documents.racks import LossDocument, LostTaskDocument, RackDocument, SurvivorDocument
    from agent.cli.documents.status import FindingDocument, RackBrokers, StatusDocument
    from agent.simulate.evaluation import Seen
    from agent.simulate.loss import LostTask, RackLoss

UNKNOWN = "(unknown)"


def summary(look: Seen) -> dict[str, Any]:
    """The cluster in ten lines."""
    snapshot = look.snapshot
    kinds = Counter(group.kind.value for group in snapshot.groups.values())
    severities = Counter(finding.severity.value for finding in look.detection.findings)
    by_rack: dict[str, list[int]] = {}
    for broker in snapshot.brokers:
        by_rack.setdefault(rack_name(broker.rack), []).append(broker.id)
    return {
        "cluster": snapshot.cluster_id,
        "brokers": seen_of(dict(sorted(by_rack.items())), snapshot, Part.BROKERS),
        "absent_brokers": seen_of(sorted(absences(look.before, snapshot)), snapshot, Part.BROKERS),
        "topics": seen_of(len(snapshot.topics), snapshot, Part.TOPICS),
        "partitions": seen_of(sum(len(one.partitions) for one in snapshot.topics.values()), snapshot, Part.TOPICS),
        "groups": seen_of(dict(sorted(kinds.items())), snapshot, Part.GROUPS),
        "rebalancing_groups": seen_of(list(hidden_groups(snapshot, look.limits)), snapshot, Part.GROUPS),
        "findings": {name: severities[name] for name in ("critical", "warning", "info") if severities[name]},
        "proposals": len(look.proposals),
        "not_seen": len(snapshot.gaps),
        "took_ms": look.took_ms,
    }


def status(look: Seen) -> StatusDocument:
    """The whole status as one document."""
    told = summary(look)
    by_rack, costs = told["brokers"], costs_of(look.snapshot)
    return {
        "cluster": told["cluster"],
        "brokers": None if by_rack is None else [_rack_row(name, of) for name, of in by_rack.items()],
        "absent_brokers": told["absent_brokers"],
        "topics": told["topics"],
        "partitions": told["partitions"],
        "groups": told["groups"],
        "rebalancing_groups": told["rebalancing_groups"],
        "proposals": told["proposals"],
        "not_seen": told["not_seen"],
        "agent": look.agent,
        "took_ms": told["took_ms"],
        "money": money(costs, look),
        "worst_groups": worst_groups(costs, look),
        "unknown_groups": unknown_groups(costs, look),
        "findings": findings(look),
        "gaps": [
            {"part": gap.part.value, "cause": gap.cause.value, "subject": gap.subject, "detail": gap.detail}
            for gap in look.snapshot.gaps
        ],
    }


def _rack_row(name: str, brokers: list[int]) -> RackBrokers:
    return {"rack": None if name == UNKNOWN else name, "brokers": brokers}


def findings(look: Seen) -> list[FindingDocument]:
    """Every finding, the gravest first."""
    order = {"critical": 0, "warning": 1, "info": 2}
    return [
        {
            "severity": finding.severity.value,
            "finding": finding.reason.value,
            "subject": str(finding.subject),
            "sentence": finding.sentence,
            "evidence": {name: list(of) if isinstance(of, tuple) else of for name, of in finding.evidence},
            "since_ms": finding.since_ms,
            "held": finding.held,
            "id": finding.id,
        }
        for finding in sorted(look.detection.findings, key=lambda found: (order[found.severity.value], found.id))
    ]


def racks(look: Seen) -> list[RackDocument]:
    """One row per rack with what crosses its border and what losing it costs, and one for what has no known rack."""
    from agent.simulate.loss import rack_losses
    from agent.simulate.loss_words import loss_sentence

    snapshot, costs = look.snapshot, costs_of(look.snapshot)

    absent = absences(look.before, snapshot)
    losses = {loss.rack: loss for loss in rack_losses(snapshot)}
    names: dict[int, str] = {broker.id: rack_name(broker.rack) for broker in snapshot.brokers}
    brokers: dict[str, list[int]] = {}
    for broker in snapshot.brokers:
        brokers.setdefault(names[broker.id], []).append(broker.id)
    for gone in absent.keys() - names.keys():  # registered nowhere, and in no replica list: the agent has seen it
        brokers.setdefault(UNKNOWN, []).append(gone)
    brokers = {name: sorted(of) for name, of in brokers.items()}
    partitions = [partition for topic in snapshot.topics.values() for partition in topic.partitions]
    replicas = Counter(names.get(replica, UNKNOWN) for partition in partitions for replica in partition.replicas)
    leaders = Counter(names.get(row.leader, UNKNOWN) for row in partitions if row.leader is not None)
    members = Counter(rack_name(member.rack) for group in snapshot.groups.values() for member in members_of(group))
    sources = _sources_by_rack(snapshot)
    active, standby = _tasks_by_rack(snapshot)
    crossed = {rack for pair in costs.crossing.flows for rack in pair}
    every = {*brokers, *replicas, *leaders, *members, *active, *standby, *crossed}
    borders = {name: border(costs.crossing, name) for name in every}
    return [
        {
            "rack": None if name == UNKNOWN else name,
            "known_from": dict(sorted(sources.get(name, Counter()).items())),
            "brokers": seen_of(brokers.get(name, []), snapshot, Part.BROKERS),
            "absent_brokers": seen_of([one for one in brokers.get(name, []) if one in absent], snapshot, Part.BROKERS),
            "absences": [
                {"broker": one, "for_ms": absent[one].for_ms, "sentence": absence_words(one, absent[one])}
                for one in brokers.get(name, [])
                if one in absent
            ],
            "replicas": seen_of(replicas[name], snapshot, Part.TOPICS, Part.BROKERS),
            "leaders": seen_of(leaders[name], snapshot, Part.TOPICS, Part.BROKERS),
            "members": seen_of(members[name], snapshot, Part.GROUPS),
            "active_tasks": seen_of(active[name], snapshot, Part.GROUPS),
            "standby_tasks": seen_of(standby[name], snapshot, Part.GROUPS),
            # What crosses the border of a rack that is not known is in no rack's figure.
            "cross_rack_in_bytes_per_s": None if name == UNKNOWN else borders[name].into.bytes_per_s,
            "cross_rack_out_bytes_per_s": None if name == UNKNOWN else borders[name].out.bytes_per_s,
            "usd_per_day": None if name == UNKNOWN else borders[name].into.usd_per_day(look.limits),
            "unknown_parts": costs.crossing.unknown,
            "rates": look.rates.measured.value,
            "losing_it": None if name not in losses else loss_sentence(losses[name]),
            "loss": None if name not in losses else _loss(losses[name]),
        }
        # Members may claim any number of racks: those of brokers come first, so that no claim pushes one out of sight.
        for name in sorted(every, key=lambda name: (name == UNKNOWN, name not in brokers, name))
    ]


def _sources_by_rack(snapshot: Snapshot) -> dict[str, Counter[str]]:
    """Rack -> how many brokers and members are known to be in it, by what knows it."""
    sources: dict[str, Counter[str]] = {}
    racks = [(broker.rack, BROKER_RACK) for broker in snapshot.brokers]
    racks += [(member.rack, CLIENT_RACK) for group in snapshot.groups.values() for member in members_of(group)]
    for rack, setting in racks:
        source = whence(rack, setting)
        if source is not None:
            sources.setdefault(rack_name(rack), Counter())[source] += 1
    return sources


def _loss(loss: RackLoss) -> LossDocument:
    return {
        "leaderless": [str(partition) for partition in loss.leaderless],
        "under_min_isr": [str(partition) for partition in loss.under_min_isr],
        "untold": [str(partition) for partition in loss.untold],
        "tasks_without_caught_up_standby": [_lost_task(task) for task in loss.tasks],
        "untold_tasks": [_lost_task(task) for task in loss.untold_tasks],
        "untold_groups": list(loss.untold_groups),
        "not_seen": list(loss.unseen),
        "survivors": [cast("SurvivorDocument", one._asdict()) for one in loss.survivors],
    }


def _lost_task(lost: LostTask) -> LostTaskDocument:
    return {"group": lost.group, "task": str(lost.task), "process": lost.process}


def _tasks_by_rack(snapshot: Snapshot) -> tuple[Counter[str], Counter[str]]:
    active: Counter[str] = Counter()
    standby: Counter[str] = Counter()
    for group in snapshot.groups.values():
        for process in group.processes if isinstance(group, StreamsGroup) else ():
            active[rack_name(process.rack)] += len(process.active)
            standby[rack_name(process.rack)] += len(process.standby) + len(process.warmup)
    return active, standby


def rack_name(rack: Rack) -> str:
    """The rack as a person reads it: unknown and conflicting say so."""
    match rack.state:
        case RackState.KNOWN:
            return f"{rack.name} (last known)" if rack.remembered else str(rack.name)
        case RackState.UNKNOWN:
            return UNKNOWN
        case RackState.CONFLICTING:
            return "(conflicting: " + " / ".join(rack.claims) + ")"


def members_of(group: Group) -> tuple[Member, ...]:
    """The members that are visible."""
    return () if isinstance(group, OtherGroup) else group.members

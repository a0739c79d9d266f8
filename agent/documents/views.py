"""Documents of ``racks`` and ``groups``, and findings, from one look. Pure; unknown stays None."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from agent.documents.views_money import priced_document
from agent.money.costs import CrossRackCosts, costs_of, lag_of, worst_task_lag
from agent.money.traffic import border, worst_first
from agent.plan.plugin_gain import plugin_question, plugin_sentence
from agent.predict.applications import assignor_name
from agent.simulate.rack_loss import LostTask, RackLoss, loss_sentence, rack_losses
from agent.values.assessment import Assessment, Locality, LocalityMeasure
from agent.values.cycle import known_part
from agent.values.kafka import BROKER_RACK, CLIENT_RACK, MEMBERLESS_STATES, STREAMS_PROTOCOL
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import BrokerAbsence, absence_words, absences
from agent.values.observation import ObservationPart
from agent.values.snapshot import (
    Group,
    GroupKind,
    Member,
    OtherGroup,
    Rack,
    RackState,
    Range,
    Snapshot,
    StreamsGroup,
    TaskCopy,
    rack_source,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent.documents.cluster import (
        AbsenceDocument,
        BrokerDocument,
        FindingDocument,
        LossDocument,
        LostTaskDocument,
        RackDocument,
        SurvivorDocument,
    )
    from agent.documents.groups import (
        GroupDetailsDocument,
        GroupDocument,
        GroupTopicDocument,
        ListedPartition,
        MemberDocument,
        RangeDocument,
        TaskCopyDocument,
    )
    from agent.simulate.evaluation import StageEvaluation

UNKNOWN = "(unknown)"


def findings(look: StageEvaluation) -> list[FindingDocument]:
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


def racks(look: StageEvaluation, costs: CrossRackCosts | None = None) -> list[RackDocument]:
    """One row per rack with what crosses its border and what losing it costs, and one for what has no known rack."""
    snapshot, costs = look.snapshot, costs or costs_of(look.snapshot)
    absent = absences(look.before, snapshot)
    losses = {loss.rack: loss for loss in rack_losses(snapshot)}
    names: dict[int, str] = {broker.id: rack_name(broker.rack) for broker in snapshot.brokers}
    brokers = brokers_by_rack(snapshot)
    for gone in absent.keys() - names.keys():  # registered nowhere, and in no replica list: the agent has seen it
        brokers.setdefault(UNKNOWN, []).append(gone)
    brokers = {name: sorted(of) for name, of in brokers.items()}
    replicas, leaders = _replicas_by_rack(snapshot, names)
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
            "brokers": known_part(brokers.get(name, []), snapshot, ObservationPart.BROKERS),
            "absent_brokers": known_part(
                [one for one in brokers.get(name, []) if one in absent], snapshot, ObservationPart.BROKERS
            ),
            "absences": _absence_rows(brokers.get(name, []), absent),
            "replicas": known_part(replicas[name], snapshot, ObservationPart.TOPICS, ObservationPart.BROKERS),
            "leaders": known_part(leaders[name], snapshot, ObservationPart.TOPICS, ObservationPart.BROKERS),
            "members": known_part(members[name], snapshot, ObservationPart.GROUPS),
            "active_tasks": known_part(active[name], snapshot, ObservationPart.GROUPS),
            "standby_tasks": known_part(standby[name], snapshot, ObservationPart.GROUPS),
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


def brokers(look: StageEvaluation) -> list[BrokerDocument]:
    """One row per broker, by id; brokers that only an earlier look saw among them."""
    snapshot = look.snapshot
    absent = absences(look.before, snapshot)
    replicas, leaders, preferred = _placed(snapshot)
    leaders_load = _led(snapshot)
    rows: list[BrokerDocument] = []
    known = {broker.id: broker for broker in snapshot.brokers}
    for one in sorted({*known, *absent}):
        broker = known.get(one)
        rate, size = leaders_load.get(one, (0.0, 0))
        rows.append(
            {
                "broker": one,
                "host": None if broker is None else broker.host,
                "port": None if broker is None else broker.port,
                "rack": None if broker is None else _rack(broker.rack),
                "known_from": None if broker is None else rack_source(broker.rack, BROKER_RACK),
                "live": one not in absent and broker is not None and broker.alive,
                "absent": absence_words(one, absent[one]) if one in absent else None,
                "fenced": None if broker is None else broker.fenced,
                "cordoned": broker is not None and broker.cordoned,
                "replicas": known_part(replicas[one], snapshot, ObservationPart.TOPICS),
                "leaders": known_part(leaders[one], snapshot, ObservationPart.TOPICS),
                "preferred_leaders": known_part(preferred[one], snapshot, ObservationPart.TOPICS),
                "in_bytes_per_s": rate if snapshot.topics else None,
                "led_bytes": size if snapshot.topics else None,
            }
        )
    return rows


def _placed(snapshot: Snapshot) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """Broker -> number of replicas, of leaders, and of partitions that it is the preferred leader of."""
    partitions = [partition for topic in snapshot.topics.values() for partition in topic.partitions]
    replicas = Counter(replica for partition in partitions for replica in partition.replicas)
    leaders = Counter(partition.leader for partition in partitions if partition.leader is not None)
    return replicas, leaders, Counter(partition.replicas[0] for partition in partitions if partition.replicas)


def _led(snapshot: Snapshot) -> dict[int, tuple[float | None, int | None]]:
    """Broker -> bytes per second and bytes on disk of what it leads; None where those of one partition are unknown."""
    found: dict[int, tuple[float | None, int | None]] = {}
    for topic in snapshot.topics.values():
        for state in topic.partitions:
            if state.leader is not None:
                rate, size = found.get(state.leader, (0.0, 0))
                more, bigger = snapshot.bytes_per_s.get(state.id), snapshot.size_bytes.get(state.id)
                found[state.leader] = (
                    None if rate is None or more is None else rate + more,
                    None if size is None or bigger is None else size + bigger,
                )
    return found


def _replicas_by_rack(snapshot: Snapshot, racks: Mapping[int, str]) -> tuple[Counter[str], Counter[str]]:
    """Rack -> number of replicas, and of leaders; ``racks``: broker id -> rack."""
    partitions = [partition for topic in snapshot.topics.values() for partition in topic.partitions]
    replicas = Counter(racks.get(replica, UNKNOWN) for partition in partitions for replica in partition.replicas)
    return replicas, Counter(racks.get(row.leader, UNKNOWN) for row in partitions if row.leader is not None)


def _absence_rows(brokers: list[int], absent: Mapping[int, BrokerAbsence]) -> list[AbsenceDocument]:
    return [
        {"broker": one, "for_ms": absent[one].for_ms, "sentence": absence_words(one, absent[one])}
        for one in brokers
        if one in absent
    ]


def partitions(look: StageEvaluation) -> list[ListedPartition]:
    """Every partition of the look."""
    return [
        {
            "topic": of.id.topic,
            "partition": of.id.partition,
            "leader": of.leader,
            "replicas": list(of.replicas),
            "isr": list(of.isr),
        }
        for topic in look.snapshot.topics.values()
        for of in topic.partitions
    ]


def brokers_by_rack(snapshot: Snapshot) -> dict[str, list[int]]:
    """Rack, as a person reads it -> ids of its brokers."""
    found: dict[str, list[int]] = {}
    for broker in snapshot.brokers:
        found.setdefault(rack_name(broker.rack), []).append(broker.id)
    return found


def _sources_by_rack(snapshot: Snapshot) -> dict[str, Counter[str]]:
    """Rack -> how many brokers and members are known to be in it, by what knows it."""
    sources: dict[str, Counter[str]] = {}
    racks = [(broker.rack, BROKER_RACK) for broker in snapshot.brokers]
    racks += [(member.rack, CLIENT_RACK) for group in snapshot.groups.values() for member in members_of(group)]
    for rack, setting in racks:
        source = rack_source(rack, setting)
        if source is not None:
            sources.setdefault(rack_name(rack), Counter())[source] += 1
    return sources


def _loss(loss: RackLoss) -> LossDocument:
    return {
        "leaderless": [str(partition) for partition in loss.leaderless],
        "under_min_isr": [str(partition) for partition in loss.under_min_isr],
        "untold": [str(partition) for partition in loss.unknown_partitions],
        "tasks_without_caught_up_standby": [_lost_task(task) for task in loss.tasks],
        "untold_tasks": [_lost_task(task) for task in loss.unknown_tasks],
        "untold_groups": list(loss.unknown_groups),
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


def groups(
    costs: CrossRackCosts, look: StageEvaluation, *, every: bool = True, gains: Mapping[str, str] | None = None
) -> list[GroupDocument]:
    """One row per group, the dearest first; without ``every`` groups that have no members are left out.

    ``gains``: `plugin_gains` of the look, where they are there already.
    """
    ranked = sorted(costs.groups, key=lambda name: (worst_first(costs.groups[name], look.limits), name))
    known = plugin_gains(look) if gains is None else gains
    return [group_row(name, costs, look, known.get(name)) for name in ranked if every or not is_empty(look, name)]


def is_empty(look: StageEvaluation, name: str) -> bool:
    """Whether the group has no members, for certain."""
    group = look.snapshot.groups[name]
    return group.state in MEMBERLESS_STATES and not members_of(group)


def group(name: str, costs: CrossRackCosts, look: StageEvaluation) -> GroupDetailsDocument:
    """One group with its members, the copies of its tasks, and the topics that it reads."""
    found = look.snapshot.groups[name]
    return {
        **group_row(name, costs, look, plugin_gains(look, (name,)).get(name)),
        "member_list": [_member(member) for member in members_of(found)],
        "task_list": task_rows(name, look),
        "topic_list": _topics(name, costs, look),
        "assigned_by": _assigned_by(found, look.limits),
    }


def _assigned_by(group: Group, limits: Limits) -> str | None:
    """As a plan names it: the protocol of a Streams group is ``stream``, whatever assigns its tasks."""
    shown = None if isinstance(group, OtherGroup) else group.assignor
    if group.kind is GroupKind.CLASSIC_STREAMS and shown != STREAMS_PROTOCOL:
        return shown
    return assignor_name(group.kind, shown, limits.group(group.id))


def task_rows(name: str, look: StageEvaluation) -> list[TaskCopyDocument]:
    """The copies of a group's stateful tasks; none for other groups than Kafka Streams."""
    found = look.snapshot.groups[name]
    where = {process.id: process.rack for process in found.processes} if isinstance(found, StreamsGroup) else {}
    return [_copy(copy, where.get(copy.process_id)) for copy in look.snapshot.copies.get(name, ())]


def plugin_gains(look: StageEvaluation, only: Iterable[str] | None = None) -> dict[str, str]:
    """Group -> what the plug-in for brokers would bring it, for those that it concerns; ``only``: of these groups."""
    snapshot, assessments, memo = look.snapshot, look.detection.assessments, Memo()
    gains: dict[str, str] = {}
    for name in snapshot.groups if only is None else only:
        question = plugin_question(snapshot.groups[name], assessments.get(name), snapshot, look.limits, memo)
        if question is not None:
            gains[name] = plugin_sentence(question)
    return gains


def group_row(name: str, costs: CrossRackCosts, look: StageEvaluation, gain: str | None) -> GroupDocument:
    """One group; ``gain``: what the plug-in would bring it."""
    group, assessment = look.snapshot.groups[name], look.detection.assessments.get(name)
    judged = assessment if assessment is not None and assessment.why_not is None else None
    read, kafka = _now(judged, LocalityMeasure.READ_LOCAL), _now(judged, LocalityMeasure.KAFKA)
    members, traffic, lag = members_of(group), costs.groups.get(name), lag_of(look.snapshot, name)
    return {
        "group": name,
        "kind": group.kind.value,
        "state": group.state,
        "assignor": None if isinstance(group, OtherGroup) else group.assignor,
        "members": None if isinstance(group, OtherGroup) else len(members),
        "racks": sorted({_rack(member.rack) for member in members}, key=lambda name: (name is None, name or "")),
        "local_share": _share(read),
        "unknown_share": _unknown(read),
        "best_local_share": _share(_best(judged, LocalityMeasure.READ_LOCAL)),
        "kafka_local_share": _share(kafka),
        "kafka_unknown_share": _unknown(kafka),
        "kafka_best_local_share": _share(_best(judged, LocalityMeasure.KAFKA)),
        "gap_partitions": None if judged is None or (judged.unknown and not judged.gap) else judged.gap,
        "not_assessed": assessment.why_not.value if assessment is not None and assessment.why_not else None,
        "plugin_gain": gain,
        "reads": None if traffic is None else traffic.parts,
        "unknown_reads": None if traffic is None else traffic.unknown,
        **priced_document(traffic, look),
        "rates": look.rates.measured.value,
        "lag_records": None if lag is None else lag.known,
        "lag_unknown_partitions": None if lag is None else lag.unknown,
        "lag_worst_partition": None if lag is None or lag.worst is None else str(lag.worst),
        "lag_worst_records": None if lag is None else lag.worst_records,
        "max_task_lag_records": worst_task_lag(look.snapshot, name),
    }


def _rack(rack: Rack) -> str | None:
    """The rack as it is named; None where it is not known."""
    return None if rack.state is RackState.UNKNOWN else rack_name(rack)


def _now(assessment: Assessment | None, measure: LocalityMeasure) -> Locality | None:
    return None if assessment is None else _of(assessment.current, measure)


def _best(assessment: Assessment | None, measure: LocalityMeasure) -> Locality | None:
    return None if assessment is None else _of(assessment.optimal, measure)


def _of(rows: Sequence[Locality], measure: LocalityMeasure) -> Locality | None:
    found = (row for row in rows if row.measure is measure and row.unit == "partitions" and row.total)
    return next(found, None)


def _share(row: Locality | None) -> float | None:
    return None if row is None else round(row.local / row.total, 4)


def _unknown(row: Locality | None) -> float | None:
    return None if row is None else round(row.unknown / row.total, 4)


def _member(member: Member) -> MemberDocument:
    return {
        "member": member.id,
        "client_id": member.client_id,
        "host": member.client_host,
        "rack": _rack(member.rack),
        "known_from": rack_source(member.rack, CLIENT_RACK),
        "assigned": None if member.assigned is None else [str(partition) for partition in member.assigned],
        "defects": [defect.sentence for defect in member.defects],
    }


def _topics(name: str, costs: CrossRackCosts, look: StageEvaluation) -> list[GroupTopicDocument]:
    readings = [(topic, one) for topic, cost in costs.topics.items() for one in cost.readings if one.group == name]
    readings.sort(key=lambda row: (worst_first(row[1].traffic, look.limits), row[0], row[1].rack or ""))
    return [
        {
            "topic": topic,
            "rack": reading.rack,
            "partitions": reading.partitions,
            **priced_document(reading.traffic, look),
            "unknown_reads": reading.traffic.unknown,
        }
        for topic, reading in readings
    ]


def _copy(copy: TaskCopy, rack: Rack | None) -> TaskCopyDocument:
    return {
        "task": str(copy.task),
        "role": copy.role.value,
        "role_certain": copy.role_certain,
        "process": copy.process_id,
        "rack": None if rack is None else _rack(rack),
        "lag_records": _range(copy.lag),
        "rate_records_per_s": _range(copy.rate_per_s),
        "eta_s": _range(copy.eta_s),
        "caught_up": copy.caught_up,
        "source": copy.lag_source.value if copy.lag_source else None,
        "lag_age_ms": copy.lag_age_ms,
    }


def _range(value: Range | None) -> RangeDocument | None:
    return None if value is None else {"low": value.low, "likely": value.likely, "high": value.high}

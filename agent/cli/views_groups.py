"""Groups, and one group with its members, tasks and topics, as rows. Pure; unknown stays None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cli.views import members_of, rack_name
from agent.cli.views_money import priced
from agent.detect.located import whence
from agent.money.costs import Costs
from agent.money.lags import lag_of, worst_task_lag
from agent.money.words import worst_first
from agent.values.assessment import Assessment, Locality, Measure
from agent.values.kafka import CLIENT_RACK, MEMBERLESS_STATES
from agent.values.snapshot import Member, OtherGroup, Rack, RackState, Range, StreamsGroup, TaskCopy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.cli.documents.groups import (
        GroupDetailsDocument,
        GroupDocument,
        GroupTopicDocument,
        MemberDocument,
        RangeDocument,
        TaskCopyDocument,
    )
    from agent.simulate.evaluation import Seen


def groups(costs: Costs, look: Seen, *, every: bool = True) -> list[GroupDocument]:
    """One row per group, the dearest first; without ``every`` groups that have no members are left out."""
    ranked = sorted(costs.groups, key=lambda name: (worst_first(costs.groups[name], look.limits), name))
    return [group_row(name, costs, look) for name in ranked if every or not is_empty(look, name)]


def is_empty(look: Seen, name: str) -> bool:
    """Whether the group has no members, for certain."""
    group = look.snapshot.groups[name]
    return group.state in MEMBERLESS_STATES and not members_of(group)


def group(name: str, costs: Costs, look: Seen) -> GroupDetailsDocument:
    """One group with its members, the copies of its tasks, and the topics that it reads."""
    found = look.snapshot.groups[name]
    where = {process.id: process.rack for process in found.processes} if isinstance(found, StreamsGroup) else {}
    copies = look.snapshot.copies.get(name, ())
    return {
        **group_row(name, costs, look),
        "member_list": [_member(member) for member in members_of(found)],
        "task_list": [_copy(copy, where.get(copy.process_id)) for copy in copies],
        "topic_list": _topics(name, costs, look),
    }


def group_row(name: str, costs: Costs, look: Seen) -> GroupDocument:
    """One group."""
    group, assessment = look.snapshot.groups[name], look.detection.assessments.get(name)
    judged = assessment if assessment is not None and assessment.why_not is None else None
    read, kafka = _now(judged, Measure.READ_LOCAL), _now(judged, Measure.KAFKA)
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
        "best_local_share": _share(_best(judged, Measure.READ_LOCAL)),
        "kafka_local_share": _share(kafka),
        "kafka_unknown_share": _unknown(kafka),
        "kafka_best_local_share": _share(_best(judged, Measure.KAFKA)),
        "gap_partitions": None if judged is None or (judged.unknown and not judged.gap) else judged.gap,
        "not_assessed": assessment.why_not.value if assessment is not None and assessment.why_not else None,
        "reads": None if traffic is None else traffic.parts,
        "unknown_reads": None if traffic is None else traffic.unknown,
        **priced(traffic, look),
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


def _now(assessment: Assessment | None, measure: Measure) -> Locality | None:
    return None if assessment is None else _of(assessment.current, measure)


def _best(assessment: Assessment | None, measure: Measure) -> Locality | None:
    return None if assessment is None else _of(assessment.optimal, measure)


def _of(rows: Sequence[Locality], measure: Measure) -> Locality | None:
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
        "known_from": whence(member.rack, CLIENT_RACK),
        "assigned": None if member.assigned is None else [str(partition) for partition in member.assigned],
        "defects": [defect.sentence for defect in member.defects],
    }


def _topics(name: str, costs: Costs, look: Seen) -> list[GroupTopicDocument]:
    readings = [(topic, one) for topic, cost in costs.topics.items() for one in cost.readings if one.group == name]
    readings.sort(key=lambda row: (worst_first(row[1].traffic, look.limits), row[0], row[1].rack or ""))
    return [
        {
            "topic": topic,
            "rack": reading.rack,
            "partitions": reading.partitions,
            **priced(reading.traffic, look),
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

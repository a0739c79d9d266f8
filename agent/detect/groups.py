"""Findings about groups: members, distance from the optimum, rebalances, contradictory assignments.

One finding per group and reason. All but the duration of a rebalance depends on the group, its topics' racks and its
assessment alone, and is reused while these are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from agent.detect.assess_consumers import claimed_twice
from agent.detect.awareness import GroupTopicFacts, awareness_findings, is_rack_blind, readings
from agent.detect.detect_context import DetectContext, first, member_disagreements, of_all
from agent.detect.members import member_findings
from agent.memory.remember import prediction_mismatch
from agent.values.assessment import Assessment, LocalityMeasure, WeightedAssessment
from agent.values.finding import Evidence, Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.kafka import SETTLED_STATES, STABLE
from agent.values.limits import GainLimits
from agent.values.memo import Memo, each
from agent.values.number_format import counted, lasted, listed, sized
from agent.values.snapshot import Group, Member, OtherGroup, Rack, ReaderGroup
from assignors.problem import TopicPartition

_Row = tuple[Group, GroupTopicFacts, Assessment, frozenset[str]]
"""A group, its topics, its assessment, and its topics deleted between two answers of this observation."""
_NOTHING_GONE: frozenset[str] = frozenset()


class GroupFindings(NamedTuple):
    """Findings of all groups."""

    findings: list[Finding]
    racks: set[tuple[str, str]]
    """Every rack that a member sends: (rack after aliases, ``client.rack`` as sent)."""


def group_findings(view: DetectContext, assessments: Mapping[str, Assessment], memo: Memo) -> GroupFindings:
    """Findings about all groups, those that the settings leave out excepted."""
    groups = view.snapshot.groups
    read = readings(view, memo)
    gone = frozenset(view.snapshot.vanished_topics)
    away = [gone.intersection(reading.topics) for reading in read] if gone else [_NOTHING_GONE] * len(read)
    rows: Iterable[_Row] = zip(groups.values(), read, map(assessments.__getitem__, groups), away, strict=True)
    results = each(
        memo, "groups", rows, _group_id, lambda row: _of_one(*row, view), context=(view.broker_racks, view.limits)
    )
    findings = list(chain.from_iterable(map(itemgetter(0), results)))
    return GroupFindings(findings + list(_stuck(view)), set().union(*set(map(itemgetter(1), results))))


def _of_one(
    group: Group, reading: GroupTopicFacts, assessment: Assessment, gone: frozenset[str], view: DetectContext
) -> tuple[tuple[Finding, ...], frozenset[tuple[str, str]]]:
    """(findings, racks that members send) of one group."""
    if isinstance(group, OtherGroup) or view.limits.excludes_group(group.id):
        return (), frozenset()
    racks = _different_racks(group)
    findings = member_findings(group, racks, view)
    findings += claim_findings(group, reading, gone, view)
    awareness = awareness_findings(group, racks, reading, assessment, view)
    findings += awareness
    if assessment.improvable:
        findings.append(_worse(group, assessment, reading, view))
        if is_rack_blind(group, awareness):
            findings.append(_not_fixed(group, assessment, awareness, reading, view))
    findings += member_disagreements(group, racks, view)
    return tuple(findings), frozenset(
        [(rack.name or sent, sent) for rack in racks if (sent := rack.rack_id) is not None]
    )


def _group_id(row: _Row) -> str:
    return row[0].id


def _different_racks(group: ReaderGroup) -> list[Rack]:
    """The racks of its members, with few equal ones among them: equal ones are mostly one object."""
    racks = [member.rack for member in group.members]
    return list(dict(zip(map(id, racks), racks, strict=True)).values())


def _worse(group: ReaderGroup, assessment: Assessment, reading: GroupTopicFacts, view: DetectContext) -> Finding:
    """How much more work could be local: in bytes by weights of the pipeline, else in partitions."""
    sentence, bounds, is_enough = (
        _in_partitions(group.id, assessment, view.limits.gain)
        if assessment.weighing is None
        else _in_bytes(group.id, assessment.weighing, view.limits.gain)
    )
    return Finding(
        reason=FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM,
        subject=SubjectId("group", group.id),
        sentence=sentence,
        evidence=(
            ("crossing", assessment.crossing),
            ("optimal crossing", assessment.optimal_crossing),
            *bounds,
            ("measure", str(LocalityMeasure.KAFKA)),
            ("bytes/s gained", _bytes_gained(assessment)),
            ("moved by the optimum", assessment.moved),
        ),
        severity=FindingSeverity.WARNING if is_enough else FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms,
        held=reading.unsteady,
    )


def _in_partitions(group: str, assessment: Assessment, least: GainLimits) -> tuple[str, Evidence, bool]:
    """The sentence, the rows of evidence in its unit, and whether the least gain is reached."""
    total = max((of.total for of in assessment.current if of.measure is LocalityMeasure.KAFKA), default=0.0)
    gained = _bytes_gained(assessment)
    in_bytes = f" ({sized(gained)}/s by the replicas that serve the reads)" if gained else ""
    sentence = (
        f"group {group} reads {counted(assessment.crossing, 'partition')} across racks, by Kafka's measure, and could "
        f"read {assessment.optimal_crossing}{in_bytes}"
    )
    is_enough = assessment.gap >= least.min_partitions and assessment.gap >= least.min_share * total
    return sentence, (("lower bound", assessment.lower_bound),), is_enough


def _in_bytes(group: str, weighing: WeightedAssessment, least: GainLimits) -> tuple[str, Evidence, bool]:
    sentence = (
        f"group {group} reads {sized(weighing.crossing)}/s of {sized(weighing.total)}/s across racks, by Kafka's "
        f"measure and weights of the pipeline, and could read {sized(weighing.optimal_crossing)}/s"
    )
    bounds = (
        ("crossing bytes/s", weighing.crossing),
        ("optimal crossing bytes/s", weighing.optimal_crossing),
        ("lower bound bytes/s", weighing.lower_bound),
    )
    return sentence, bounds, weighing.gained >= max(least.min_share * weighing.total, least.min_bytes_per_s)


def _bytes_gained(assessment: Assessment) -> float | None:
    pairs = zip(assessment.current, assessment.optimal, strict=True)
    gains = [
        best.local - now.local
        for now, best in pairs
        if now.unit == "bytes_per_s" and now.measure is LocalityMeasure.READ_LOCAL
    ]
    return gains[0] if gains else None


def _not_fixed(
    group: ReaderGroup,
    assessment: Assessment,
    awareness: Iterable[Finding],
    reading: GroupTopicFacts,
    view: DetectContext,
) -> Finding:
    finding = next(iter(awareness), None)
    why = "" if finding is None else finding.sentence
    causes = () if finding is None else dict(finding.evidence)["causes"]
    reads = f"its {counted(assessment.gap, 'partition')}"
    if assessment.weighing is not None:
        reads = f"the {sized(assessment.weighing.gained)}/s in question"
    return Finding(
        reason=FindingReason.ASSIGNOR_WOULD_NOT_FIX,
        subject=SubjectId("group", group.id),
        sentence=f"a rebalance of group {group.id} would not make {reads} local: {why}",
        evidence=(
            ("causes", causes),
            ("assignor", group.assignor),
            ("kind", str(group.kind)),
            ("gap", assessment.gap),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
        held=reading.unsteady,
    )


def _stuck(view: DetectContext) -> Iterable[Finding]:
    """Groups that were out of Stable at every look for too long."""
    now_ms = view.snapshot.monotonic_ms
    for name, since_ms in view.memory.rebalancing.items():
        group = view.snapshot.groups.get(name)
        if group is None or isinstance(group, OtherGroup) or view.limits.excludes_group(name):
            continue
        if group.state in SETTLED_STATES or now_ms - since_ms < view.limits.detect.stuck_rebalance_after_ms:
            continue
        long = lasted(view.limits.detect.stuck_rebalance_after_ms)
        yield Finding(
            reason=FindingReason.GROUP_STUCK_IN_REBALANCE,
            subject=SubjectId("group", name),
            sentence=f"group {name} was out of Stable in every look for over {long} and is {group.state} now",
            evidence=(("state", group.state), ("members", len(group.members))),
            severity=FindingSeverity.WARNING,
            since_ms=view.snapshot.taken_ms,
        )


def prediction_findings(view: DetectContext) -> list[Finding]:
    """One finding for each group whose last rebalance differs from its prediction."""
    findings = []
    for name, prediction in view.memory.predictions.items():
        if view.limits.excludes_group(name):
            continue
        why = prediction_mismatch(prediction, view.snapshot.groups.get(name), view.snapshot)
        if why is not None:
            findings.append(
                Finding(
                    reason=FindingReason.PREDICTION_MISSED,
                    subject=SubjectId("group", name),
                    sentence=f"group {name} was predicted wrongly: {why}; the configured or assumed settings are "
                    "probably not those that it runs with",
                    evidence=(
                        ("predicted by", prediction.by),
                        ("known from", prediction.basis),
                        ("crossing predicted", prediction.crossing),
                        ("prediction", "exact assignment" if prediction.exact else "cost only"),
                    ),
                    severity=FindingSeverity.INFO,
                    since_ms=view.snapshot.taken_ms,
                )
            )
    return findings


# Claims: partitions with two readers or without a topic. Classic members write their own assignments. Judged only in
# Stable groups, and of topics only by visible ones, because assignments overlap during a rebalance.


def claim_findings(
    group: ReaderGroup, reading: GroupTopicFacts, gone: frozenset[str], view: DetectContext
) -> list[Finding]:
    """Findings where assignments contradict each other or the topics; ``gone`` were deleted just now."""
    if group.state != STABLE or group.hidden:
        return []
    return [*_twice(group, view), *_not_there(group, reading, gone, view)]


def _twice(group: ReaderGroup, view: DetectContext) -> Iterable[Finding]:
    twice = claimed_twice(group.members)
    if not twice:
        return
    partition, readers = next(iter(twice.items()))
    involved = {member.id: member for of in twice.values() for member in of}
    yield Finding(
        reason=FindingReason.PARTITION_CLAIMED_TWICE,
        subject=SubjectId("group", group.id),
        sentence=f"group {group.id} has {counted(len(twice), 'partition')} that more than one member is assigned: "
        f"{partition} is assigned to {listed([member.id for member in readers])}, and each of them reads it",
        evidence=(
            ("partitions", len(twice)),
            ("first", first([str(name) for name in twice])),
            ("members", first(sorted(involved))),
            ("clients", first(sorted({member.client_id for member in involved.values()}))),
            ("hosts", first(sorted({member.client_host for member in involved.values()}))),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _not_there(
    group: ReaderGroup, reading: GroupTopicFacts, gone: frozenset[str], view: DetectContext
) -> Iterable[Finding]:
    sizes = {name: facts.size for name, facts in zip(reading.topics, reading.facts, strict=True) if facts is not None}
    whole = view.broker_racks.topics_whole
    strays: dict[TopicPartition, Member] = {}
    for member in group.members:
        for partition in member.assigned or ():
            size = sizes.get(partition.topic, 0 if whole else None)
            if size is not None and not 0 <= partition.partition < size and partition.topic not in gone:
                strays.setdefault(partition, member)
    if not strays:
        return
    names = sorted(strays)
    example = names[0]
    held = len({partition for member in group.members for partition in member.assigned or ()})
    if example.topic in sizes:
        why = f"{example.topic} has {counted(sizes[example.topic], 'partition')}"
    else:
        why = f"no broker shows a topic {example.topic}"
    involved = {member.id: member for member in strays.values()}
    yield Finding(
        reason=FindingReason.ASSIGNED_WHAT_IS_NOT_THERE,
        subject=SubjectId("group", group.id),
        sentence=f"group {group.id} has {of_all(len(names), held, 'assigned partition')} that "
        f"{'does' if len(names) == 1 else 'do'} not exist: {example} is assigned to {strays[example].id}, and {why}",
        evidence=(
            ("partitions", len(names)),
            ("of", held),
            ("first", first([str(name) for name in names])),
            ("members", first(sorted(involved))),
            ("clients", first(sorted({member.client_id for member in involved.values()}))),
            ("hosts", first(sorted({member.client_host for member in involved.values()}))),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )

"""Advice on rack-aware assignors and strategies.

The gain is measured: the group's exact optimum at equal balance against the present assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent.detect.members import libraries_of, rack_aware_arguments
from agent.plan.gain_thresholds import optimum_worth, total_reads
from agent.plan.placements import Skipped
from agent.plan.plan_context import PlanContext, addressed_findings
from agent.values.assessment import Assessment
from agent.values.finding import Finding, FindingReason
from agent.values.kafka import (
    CLASSIC_GROUP,
    COOPERATIVE_STICKY_CLASS,
    GROUP_PROTOCOL,
    MIN_TRAFFIC,
    NO_STRATEGY,
    PARTITION_ASSIGNMENT_STRATEGY,
    RACK_AWARE_STRATEGY,
    RACK_BLIND_ASSIGNORS,
)
from agent.values.limits import Limits
from agent.values.number_format import counted, listed, sized
from agent.values.plan import AdvicePlan, Unplanned
from agent.values.proposal import ProposalReason
from agent.values.snapshot import (
    COORDINATOR_KINDS,
    ConsumerGroup,
    OtherGroup,
    RackState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    TaskRole,
    is_assigned_blindly,
)

Advised = list[AdvicePlan | Skipped]


def findings_by_group(context: PlanContext, reason: FindingReason) -> dict[str, list[Finding]]:
    """Group -> its findings of that reason, also those about its tasks; groups that are gone left out."""
    by_group: dict[str, list[Finding]] = {}
    for finding in context.found.of(reason):
        if (group := finding.group) is not None and group in context.snapshot.groups:
            by_group.setdefault(group, []).append(finding)
    return dict(sorted(by_group.items()))


def unless_held(findings: Iterable[Finding], plan: Callable[[tuple[str, ...]], AdvicePlan]) -> Advised:
    """The plan that answers these findings, or that they are held, or nothing where there are none."""
    answers = addressed_findings(findings)
    if answers is None:
        return []
    return [[(name, Unplanned.HELD) for name in answers.ids]] if answers.held else [plan(answers.ids)]


def racks_to_choose(snapshot: Snapshot) -> str:
    """The racks of the brokers, as a choice to fill in: ``<a|b|c>``."""
    names = {b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    return f"<{'|'.join(sorted(names))}>" if names else "<rack>"


STRATEGY = f"{RACK_AWARE_STRATEGY}={MIN_TRAFFIC}"


def change_assignors(context: PlanContext) -> Advised:
    """Advice for every group with a gap whose assignor, or whole kind, ignores racks."""
    advised: Advised = []
    groups, assessments = context.snapshot.groups.get, context.detection.assessments.get
    for group_id, answers in context.improvable.items():
        group = groups(group_id)
        if group is None or isinstance(group, OtherGroup) or not _blind(group, context):
            continue
        assessment = assessments(group_id)
        if assessment is None or not assessment.improvable:
            continue
        why_not = _why_not(group, assessment, context, held=answers.held)
        if why_not is not None:
            advised.append([(name, why_not) for name in answers.ids])
        else:
            advised.append(_advice(group, assessment, answers.ids, context))
    return advised


def assignor_lines(group: ReaderGroup, limits: Limits, racks: str) -> tuple[str, ...]:
    """The settings that give a group an assignor that looks at racks; ``racks`` is the choice of `racks_to_choose`."""
    strategy = (STRATEGY,) if isinstance(group, StreamsGroup) else ()
    if group.kind in COORDINATOR_KINDS:
        return (f"{GROUP_PROTOCOL}={CLASSIC_GROUP}", *strategy)
    if strategy:
        return strategy
    libraries = libraries_of(group.members, limits.group(group.id).client_software_name)
    drop_ins = tuple(rack_aware_arguments(library, group.assignor, racks) for library in libraries)
    return drop_ins or (f"{PARTITION_ASSIGNMENT_STRATEGY}={COOPERATIVE_STICKY_CLASS}",)


def _blind(group: ReaderGroup, context: PlanContext) -> bool:
    if group.kind in COORDINATOR_KINDS:
        return is_assigned_blindly(group)
    if isinstance(group, ConsumerGroup):
        return group.assignor in RACK_BLIND_ASSIGNORS
    return context.limits.group(group.id).rack_aware_assignment_strategy == NO_STRATEGY


def _why_not(group: ReaderGroup, assessment: Assessment, context: PlanContext, *, held: bool) -> Unplanned | None:
    if held:
        return Unplanned.HELD
    if context.limits.excludes_group(group.id):
        return Unplanned.EXCLUDED
    if any(copy.role is TaskRole.WARMUP for copy in context.snapshot.copies.get(group.id, ())):
        return Unplanned.WARMING_UP  # the gap is that of a scale-out which is still on its way
    if not optimum_worth(assessment, context.limits):
        return Unplanned.BELOW_THRESHOLD
    return None


def _measured(assessment: Assessment) -> str:
    weighing = assessment.weighing
    if weighing is None:
        reads = counted(round(total_reads(assessment)), "read")
        cross = "crosses" if assessment.crossing == 1 else "cross"
        return (
            f"{assessment.crossing} of its {reads} {cross} racks by Kafka's measure, "
            f"and {assessment.optimal_crossing} would do at the same balance"
        )
    return (
        f"{sized(weighing.crossing)}/s of the {sized(weighing.total)}/s that it reads cross racks by Kafka's measure, "
        f"and {sized(weighing.optimal_crossing)}/s would do at the same balance"
    )


def _advice(group: ReaderGroup, assessment: Assessment, ids: tuple[str, ...], context: PlanContext) -> AdvicePlan:
    measured = _measured(assessment)
    libraries = libraries_of(group.members, context.limits.group(group.id).client_software_name)
    reason, now = ProposalReason.CHANGE_ASSIGNOR, group.assignor
    if group.kind in COORDINATOR_KINDS:
        setting, wanted, now = GROUP_PROTOCOL, CLASSIC_GROUP, group.kind.value
        why = f"{measured}; the brokers' assignors do not look at racks, range and cooperative-sticky do (KIP-881)"
        if isinstance(group, StreamsGroup):
            why = f"{measured}; brokers assign tasks without looking at racks, the classic assignor can (KIP-925)"
    elif isinstance(group, StreamsGroup):
        reason, now = ProposalReason.SET_STRATEGY, NO_STRATEGY
        setting, wanted = RACK_AWARE_STRATEGY, MIN_TRAFFIC
        why = f"{measured}; every process needs client.rack for it (KIP-925)"
    elif libraries:
        setting, wanted = "partition_assignment_strategy", f"Strategy of assignors.clients for {listed(libraries)}"
        why = f"{measured}; the libraries' own assignors ignore racks, these use them"
    else:
        setting, wanted = PARTITION_ASSIGNMENT_STRATEGY, COOPERATIVE_STICKY_CLASS
        why = f"{measured}; go there in two rolls, with both assignors listed first (KIP-429)"
    return AdvicePlan(
        subject_kind="group",
        subject=group.id,
        reason=reason,
        setting=setting,
        now=now,
        wanted=wanted,
        lines=assignor_lines(group, context.limits, racks_to_choose(context.snapshot)),
        why=why,
        who=tuple(sorted({member.client_id for member in group.members})),
        findings=ids,
    )

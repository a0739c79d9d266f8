"""Which groups need another assignor or strategy before racks can count at all, and what it would bring.

The gain is measured, not assumed: the group's exact optimum at equal balance against what it does now. It is what a
rack-aware assignor could reach at best.
"""

from __future__ import annotations

from agent.detect.software import drop_in, libraries_of
from agent.detect.words import listed
from agent.plan.found import Scene
from agent.plan.owners import Advised, racks_to_choose
from agent.plan.worth import optimum_worth, total_reads
from agent.values.assessment import Assessment
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
from agent.values.plan import AdvicePlan, Unplanned
from agent.values.proposal import ProposalReason
from agent.values.snapshot import COORDINATOR_KINDS, ConsumerGroup, OtherGroup, ReaderGroup, Role, StreamsGroup
from agent.values.words import counted, sized

STRATEGY = "rack.aware.assignment.strategy=min_traffic"


def change_assignors(scene: Scene) -> Advised:
    """Advice for every group with a gap whose assignor, or whole kind, does not look at racks."""
    advised: Advised = []
    groups, assessments = scene.snapshot.groups.get, scene.detection.assessments.get
    for group_id, answers in scene.improvable.items():
        group = groups(group_id)
        if group is None or isinstance(group, OtherGroup) or not _blind(group, scene):
            continue
        assessment = assessments(group_id)
        if assessment is None or not assessment.improvable:
            continue
        why_not = _why_not(group, assessment, scene, held=answers.held)
        if why_not is not None:
            advised.append([(name, why_not) for name in answers.ids])
        else:
            advised.append(_advice(group, assessment, answers.ids, scene))
    return advised


def assignor_lines(group: ReaderGroup, limits: Limits, racks: str) -> tuple[str, ...]:
    """The settings that give a group an assignor that looks at racks; ``racks`` is the choice of `racks_to_choose`."""
    strategy = (STRATEGY,) if isinstance(group, StreamsGroup) else ()
    if group.kind in COORDINATOR_KINDS:
        return ("group.protocol=classic", *strategy)
    if strategy:
        return strategy
    libraries = libraries_of(group.members, limits.group(group.id).client_software_name)
    drop_ins = tuple(drop_in(library, group.assignor, racks) for library in libraries)
    return drop_ins or (f"partition.assignment.strategy={COOPERATIVE_STICKY_CLASS}",)


def _blind(group: ReaderGroup, scene: Scene) -> bool:
    """True when racks play no part in how the group's work is dealt out."""
    if group.kind in COORDINATOR_KINDS:
        return True
    if isinstance(group, ConsumerGroup):
        return group.assignor in RACK_BLIND_ASSIGNORS
    return scene.limits.group(group.id).rack_aware_assignment_strategy == NO_STRATEGY


def _why_not(group: ReaderGroup, assessment: Assessment, scene: Scene, *, held: bool) -> Unplanned | None:
    if held:
        return Unplanned.HELD
    if scene.limits.excludes_group(group.id):
        return Unplanned.EXCLUDED
    if any(copy.role is Role.WARMUP for copy in scene.snapshot.copies.get(group.id, ())):
        return Unplanned.UNSTABLE  # the gap is that of a scale-out which is still on its way
    if not optimum_worth(assessment, scene.limits):
        return Unplanned.BELOW_THRESHOLD
    return None


def _measured(assessment: Assessment) -> str:
    weighing = assessment.weighing
    if weighing is None:
        reads = counted(round(total_reads(assessment)), "read")
        return (
            f"{assessment.crossing} of its {reads} cross racks by Kafka's measure, "
            f"and {assessment.optimal_crossing} would do at the same balance"
        )
    return (
        f"{sized(weighing.crossing)}/s of the {sized(weighing.total)}/s that it reads cross racks by Kafka's measure, "
        f"and {sized(weighing.optimal_crossing)}/s would do at the same balance"
    )


def _advice(group: ReaderGroup, assessment: Assessment, ids: tuple[str, ...], scene: Scene) -> AdvicePlan:
    measured = _measured(assessment)
    libraries = libraries_of(group.members, scene.limits.group(group.id).client_software_name)
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
        line="\n".join(assignor_lines(group, scene.limits, racks_to_choose(scene.snapshot))),
        why=why,
        who=tuple(sorted({member.client_id for member in group.members})),
        findings=ids,
    )

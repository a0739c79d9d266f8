"""Rebalances of classic groups that are worth their cost.

Reasons: warm-ups that have caught up or only a rebalance can prove (KIP-441); a gain by the group's own rack-aware
assignor (KIP-881, KIP-925); where the settings allow it, lagging standbys. Never for KIP-848 and KIP-1071 groups, nor
while rebalancing, rolling or warming up; eager groups and static members only by the settings. The gain must be above
the thresholds and not rest on an unknown rack or selector; without a prediction it is that of the optimum, and the
sentence names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from operator import itemgetter

from agent.plan.gain_thresholds import (
    Moves,
    assessed_locality,
    assignment_gain,
    best_moves,
    brings_worth,
    crossing_bytes,
    more_local_worth,
    optimum_worth,
    own_moves,
)
from agent.plan.placements import Skipped
from agent.plan.plan_context import AddressedFindings, PlanContext, addressed_findings
from agent.values.assessment import Assessment
from agent.values.finding import Finding, FindingReason, SubjectId
from agent.values.kafka import COOPERATIVE_ASSIGNORS, EAGER_ASSIGNORS, NO_STRATEGY, RACK_AWARE_ASSIGNORS, STABLE
from agent.values.limits import Limits
from agent.values.memo import each
from agent.values.plan import PredictedAssignment, Prediction, TriggerPlan, Unplanned
from agent.values.proposal import ProposalReason
from agent.values.snapshot import (
    CLASSIC_KINDS,
    ConsumerGroup,
    Group,
    GroupKind,
    Rack,
    RackState,
    ReaderGroup,
    StreamsGroup,
    TaskCopy,
    TaskRole,
    TopicState,
    topics_of,
)
from assignors.problem import TaskId

_Row = tuple[
    str,
    ReaderGroup,
    Assessment,
    AddressedFindings,
    tuple[TaskCopy, ...] | None,
    tuple[TopicState | None, ...],
    Prediction | None,
]
_ID = itemgetter(0)


def plan_triggers(context: PlanContext) -> tuple[list[TriggerPlan], Skipped]:
    """Classic groups that one rebalance would improve, by group, and which were left out and why."""
    plans: list[TriggerPlan] = []
    skipped: Skipped = []
    for plan_or_skips in (*_warmups(context), *_improvements(context)):
        if isinstance(plan_or_skips, TriggerPlan):
            plans.append(plan_or_skips)
        else:
            skipped += plan_or_skips
    best: dict[str, TriggerPlan] = {}
    for plan in plans:  # one rebalance does both: the warm-ups come first, and name the reason
        best.setdefault(plan.group_id, plan)
    return [best[group_id] for group_id in sorted(best)], skipped


def worth_predicting(context: PlanContext) -> list[Group]:
    """Groups that need a prediction.

    A rebalance of them may be proposed, or what is assumed of an application may turn out wrong.
    """
    groups, assessments = context.snapshot.groups.get, context.detection.assessments.get
    rows = [(groups(name), assessments(name), answers.held, name) for name, answers in context.improvable.items()]
    wanted = each(context.memo, "worth predicting", rows, itemgetter(3), partial(_decides, context.limits),
                  context=(context.limits,))  # fmt: skip
    return sorted([row[0] for row, yes in zip(rows, wanted, strict=True) if yes and row[0] is not None], key=_ID)


def _decides(limits: Limits, row: tuple[Group | None, Assessment | None, bool, str]) -> bool:
    group, assessment, held, name = row
    if group is None or assessment is None or not assessment.improvable or limits.excludes_group(name):
        return False
    if isinstance(group, StreamsGroup):
        return True
    if not isinstance(group, ConsumerGroup) or group.kind not in CLASSIC_KINDS or held:
        return False
    possible = _not_triggerable(group, limits) is None and group.assignor in RACK_AWARE_ASSIGNORS
    return possible and optimum_worth(assessment, limits)


def _warmups(context: PlanContext) -> list[TriggerPlan | Skipped]:
    if not context.found.any(
        FindingReason.WARMUP_PROMOTABLE, FindingReason.WARMUP_UNSURE, FindingReason.STANDBY_LAG_GROWS
    ):
        return []
    results: list[TriggerPlan | Skipped] = []
    for group_id, copies in context.snapshot.copies.items():
        group = context.snapshot.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            results += [_of_copies(context, group, *wanted) for wanted in _wanted(context, group, copies)[:1]]
    return results


def _wanted(
    context: PlanContext, group: StreamsGroup, copies: tuple[TaskCopy, ...]
) -> list[tuple[AddressedFindings, tuple[TaskCopy, ...]]]:
    """(findings, copies) for which the group may be asked to rebalance, the surest first."""
    about = context.found.about
    ready = tuple(copy for copy in copies if copy.role is TaskRole.WARMUP and copy.caught_up)
    unsure = tuple(copy for copy in copies if copy.role is TaskRole.WARMUP)
    wanted = [
        (_about_warmups(context, group.id, ready), ready),
        (about(FindingReason.WARMUP_UNSURE, SubjectId("group", group.id)), unsure),
    ]
    if context.limits.probing.standbys:
        wanted.append((about(FindingReason.STANDBY_LAG_GROWS, SubjectId("group", group.id)), ()))
    return [(answers, of) for found, of in wanted if (answers := addressed_findings(found)) is not None]


def _of_copies(
    context: PlanContext, group: StreamsGroup, answers: AddressedFindings, copies: tuple[TaskCopy, ...]
) -> TriggerPlan | Skipped:
    why = Unplanned.HELD if answers.held else _not_triggerable(group, context.limits)
    if group.kind is not GroupKind.CLASSIC_STREAMS:
        why = Unplanned.NO_LEVER
    if why is not None:
        return [(name, why) for name in answers.ids]
    promotable = tuple(sorted({(copy.process_id, copy.task) for copy in copies}))
    return TriggerPlan(
        group_id=group.id,
        reason=ProposalReason.WARMUP_PROMOTABLE,
        promotable=promotable,
        moves=_promotions(group, promotable),
        findings=answers.ids,
    )


def _about_warmups(context: PlanContext, group_id: str, ready: Iterable[TaskCopy]) -> list[Finding]:
    subjects = [SubjectId("task", f"{group_id}/{copy.task}/{copy.process_id}") for copy in ready]
    return context.found.about(FindingReason.WARMUP_PROMOTABLE, SubjectId("group", group_id), *subjects)


def _promotions(group: StreamsGroup, promotable: tuple[tuple[str, TaskId], ...]) -> Moves:
    """The source partitions of every promoted task, from the process that runs it now to the one that waits."""
    runs = {task: process.id for process in group.processes for task in process.active}
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology else {}
    return tuple(
        sorted(
            (source, runs[task], process)
            for process, task in promotable
            if task in runs and runs[task] != process
            for source in sources.get(task, ())
        )
    )


def _improvements(context: PlanContext) -> list[TriggerPlan | Skipped]:
    snapshot, names = context.snapshot, context.detection.topics
    groups, assessments, predictions = snapshot.groups.get, context.detection.assessments.get, context.predictions.get
    topics, copies = snapshot.topics.get, snapshot.copies.get
    rows: list[_Row] = []
    for group_id, answers in context.improvable.items():
        group, assessment = groups(group_id), assessments(group_id)
        if assessment is None or not assessment.improvable:
            continue
        # The owners of groups that brokers assign can be advised, but they cannot be triggered.
        if isinstance(group, ReaderGroup) and group.kind in CLASSIC_KINDS:
            read = tuple(map(topics, names.get(group_id) or topics_of(group)))
            rows.append((group_id, group, assessment, answers, copies(group_id), read, predictions(group_id)))
    judged_by = (snapshot.brokers, snapshot.selector_is_rack_aware, context.held, context.limits)
    judged = each(context.memo, "triggers", rows, _ID, partial(_judge_row, context), context=judged_by)
    return _above_bytes(judged, context)


def unplanned_reason(group: ReaderGroup, assessment: Assessment, context: PlanContext) -> Unplanned | None:
    """Why no rebalance is proposed for a group with a gap; None when one is."""
    if context.held and context.held.intersection(_brokers_of(group, context)):
        return Unplanned.HELD
    why = _not_triggerable(group, context.limits) or _not_rack_aware(group, context)
    if why is None and any(copy.role is TaskRole.WARMUP for copy in context.snapshot.copies.get(group.id, ())):
        why = Unplanned.WARMING_UP
    return why or _not_worth(group, assessment, context)


def _not_worth(group: ReaderGroup, assessment: Assessment, context: PlanContext) -> Unplanned | None:
    if not optimum_worth(assessment, context.limits):
        return Unplanned.BELOW_THRESHOLD
    # Its assignor decides by the racks that it gets: a rack that only a locator knows, or under another name, is none.
    if any(rack.state is not RackState.KNOWN or rack.rack_id != rack.name for rack in _racks(group, context)):
        return Unplanned.UNKNOWN_RACK
    locality = assessed_locality(group, assessment, context.snapshot, context.memo)
    given = own_answer(context.predictions.get(group.id))
    does = assignment_gain(group, assessment, locality, given)
    if does is not None:
        if given is not None and not brings_worth(does.kafka, assessment, context.limits):
            return Unplanned.OWN_ASSIGNOR
        # What Kafka's measure calls local saves nothing unless a broker in the rack really serves the read.
        if more_local_worth(does.read, context.limits):
            return None
    return Unplanned.UNKNOWN_SELECTOR if context.snapshot.selector_is_rack_aware is None else Unplanned.BELOW_THRESHOLD


def own_answer(prediction: Prediction | None) -> PredictedAssignment | None:
    """Where the group comes to rest by its own assignor; None where that is unknown."""
    return None if prediction is None else prediction.settled


def _judge_row(context: PlanContext, row: _Row) -> TriggerPlan | Skipped:
    _, group, assessment, answers, _, _, prediction = row
    why = Unplanned.HELD if answers.held else unplanned_reason(group, assessment, context)
    if why is not None:
        return [(name, why) for name in answers.ids]
    given = own_answer(prediction)
    return TriggerPlan(
        group_id=group.id,
        reason=ProposalReason.REBALANCE_IMPROVES,
        moves=best_moves(group, assessment.result) if given is None else own_moves(group, given),
        findings=answers.ids,
        prediction=prediction,
    )


def _above_bytes(judged: list[TriggerPlan | Skipped], context: PlanContext) -> list[TriggerPlan | Skipped]:
    """The same, without the plans that save fewer bytes than asked for; rates change too often to be reused."""
    least = context.limits.gain.min_bytes_per_s
    if least <= 0 or not context.snapshot.bytes_per_s:
        return judged
    kept: list[TriggerPlan | Skipped] = []
    for plan in judged:
        if isinstance(plan, TriggerPlan):
            group, assessment = context.snapshot.groups[plan.group_id], context.detection.assessments[plan.group_id]
            if isinstance(group, ReaderGroup):
                locality = assessed_locality(group, assessment, context.snapshot, context.memo)
                weighed = crossing_bytes(group, assessment, locality, context.snapshot, own_answer(plan.prediction))
                if weighed is not None and weighed[0] - weighed[1] < least:
                    kept.append([(name, Unplanned.BELOW_THRESHOLD) for name in plan.findings])
                    continue
        kept.append(plan)
    return kept


def _not_triggerable(group: ReaderGroup, limits: Limits) -> Unplanned | None:
    if limits.excludes_group(group.id):
        return Unplanned.EXCLUDED
    if group.hidden or group.state != STABLE:
        return Unplanned.UNSTABLE
    if isinstance(group, StreamsGroup) and len(group.metadata_versions) > 1:
        return Unplanned.ROLLING
    allowed = limits.trigger_of(group.id)
    if not allowed.allow_static and any(member.instance_id is not None for member in group.members):
        return Unplanned.STATIC
    if group.assignor in EAGER_ASSIGNORS:
        return None if allowed.allow_eager else Unplanned.EAGER
    return None if group.assignor in COOPERATIVE_ASSIGNORS else Unplanned.NO_LEVER


def _not_rack_aware(group: ReaderGroup, context: PlanContext) -> Unplanned | None:
    """The reason when the assignor ignores racks: a rebalance cannot gain."""
    if context.found.about(FindingReason.RACK_AWARENESS_OFF, SubjectId("group", group.id)):
        return Unplanned.RACKS_OFF
    if isinstance(group, StreamsGroup):
        off = context.limits.group(group.id).rack_aware_assignment_strategy == NO_STRATEGY
        return Unplanned.RACKS_OFF if off else None
    return None if group.assignor in RACK_AWARE_ASSIGNORS else Unplanned.RACKS_OFF


def _racks(group: ReaderGroup, context: PlanContext) -> list[Rack]:
    """The racks of its readers, and of the brokers of which only a locator knows the rack."""
    located = {broker.id: broker.rack for broker in context.snapshot.brokers if broker.rack.source is not None}
    of_brokers = [located[broker] for broker in _brokers_of(group, context) if broker in located] if located else []
    return [*(reader.rack for reader in group.readers), *of_brokers]


def _brokers_of(group: ReaderGroup, context: PlanContext) -> set[int]:
    topics = [context.snapshot.topics[name] for name in topics_of(group) if name in context.snapshot.topics]
    return {broker for topic in topics for state in topic.partitions for broker in state.replicas}

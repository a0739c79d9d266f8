"""Proposals to make one classic group rebalance once, so that its own assignor can place work nearer to its data.

The exact optimum at equal balance stands in for the assignor's own answer, so the figures are the best possible ones,
and the sentence says so. Replication is the same before and after, so only reads are counted in bytes. Promotions of
warm-ups, which are certain, are in `warmups`.
"""

from __future__ import annotations

from functools import partial

from agent.detect.assessment import Assessment
from agent.detect.finding import Subject
from agent.detect.traffic import optimal_reads
from agent.model.snapshot import ConsumerGroup, StreamsGroup
from agent.plan.plan import TriggerPlan
from agent.propose.forecast import Work, forecast, work_of
from agent.propose.proposal import Move, Proposal, ProposalKind, ProposalReason, Row
from agent.propose.scene import Draft, Scene, finished
from agent.propose.warmups import promotion
from agent.propose.words import counted
from assignors.problem import ConsumerResult, TaskResult


def rebalance(plan: TriggerPlan, scene: Scene) -> Proposal:
    """The proposal that carries out a trigger plan."""
    group = scene.snapshot.groups[plan.group_id]
    if not isinstance(group, ConsumerGroup | StreamsGroup):
        raise TypeError(f"group {plan.group_id} assigns no partitions, so there is nothing to rebalance in it")
    work = work_of(group, scene)
    assessment = scene.detection.assessments.get(plan.group_id) or Assessment(group_id=plan.group_id)
    copies = scene.snapshot.copies.get(plan.group_id, ())
    draft, rests_on = scene.memo.of(
        ("rebalance", plan.group_id),
        (plan, group, assessment, work.ground.bits, work.rates, scene.limits, copies, *work.topics),
        partial(_draft, plan, assessment, work, scene),
    )
    return finished(draft, rests_on, scene.snapshot, scene.limits)


def _draft(plan: TriggerPlan, assessment: Assessment, work: Work, scene: Scene) -> tuple[Draft, str]:
    if plan.reason is ProposalReason.WARMUP_PROMOTABLE and isinstance(work.group, StreamsGroup):
        draft = promotion(plan, work.group, work, scene)
    else:
        draft = _improvement(plan, assessment, work, scene)
    return draft, scene.rests.hash(draft.reason, draft.subject, draft.before, draft.after)


def _improvement(plan: TriggerPlan, assessment: Assessment, work: Work, scene: Scene) -> Draft:
    group = work.group
    before, after = _rows(group, assessment)
    then = optimal_reads(group, work.ground, assessment.result) if assessment.result else work.now
    stateful = isinstance(group, StreamsGroup)
    total = sum(len(partitions) for _, partitions in work.now)
    what = counted(assessment.moved, "task" if stateful else "partition")
    return Draft(
        kind=ProposalKind.TRIGGER,
        reason=plan.reason,
        subject=Subject("group", group.id),
        sentence=(
            f"Rebalance {group.id} once: at best its own assignor brings {assessment.gap} of {counted(total, 'read')} "
            f"home by Kafka's measure (crossing {assessment.crossing} -> {assessment.optimal_crossing}), moving {what}"
        ),
        before=before,
        after=after,
        # What a consumer reads is not copied; what a task has to restore is not known from outside.
        moves=tuple(
            Move("partition", str(partition), source, target, None if stateful else 0)
            for partition, source, target in plan.moves
        ),
        predicted=forecast(work, then, moves=len(plan.moves), bytes_to_move=None if stateful else 0, scene=scene),
        evidence=(
            ("assignor", group.assignor),
            ("members", len(group.members)),
            ("crossing_now", assessment.crossing),
            ("crossing_at_best", assessment.optimal_crossing),
            ("lower_bound", assessment.lower_bound),
            ("measure", "kafka: any replica in the member's rack"),
            ("prediction", "the exact optimum at equal balance, not the assignor's own answer"),
        ),
        findings=plan.findings,
        lower_bound=float(assessment.lower_bound),
        optimal=assessment.optimal_crossing == assessment.lower_bound,
    )


def _rows(group: ConsumerGroup | StreamsGroup, assessment: Assessment) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """What changes only: members with other partitions, or processes with other active tasks."""
    now: dict[str, tuple[str, ...]] = {}
    then: dict[str, tuple[str, ...]] = {}
    match assessment.result:
        case ConsumerResult() as result if isinstance(group, ConsumerGroup):
            now = {member.id: tuple(map(str, sorted(member.assigned or ()))) for member in group.members}
            then = {member: tuple(map(str, partitions)) for member, partitions in result.assignment.items()}
        case TaskResult() as result if isinstance(group, StreamsGroup):
            now = {process.id: tuple(map(str, sorted(process.active, key=repr))) for process in group.processes}
            then = {process: tuple(map(str, sorted(tasks, key=repr))) for process, tasks in result.active.items()}
        case _:
            pass
    changed = [key for key in sorted(now) if now[key] != then.get(key)]
    return tuple(Row(key, now[key]) for key in changed), tuple(Row(key, then.get(key, ())) for key in changed)

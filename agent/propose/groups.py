"""Proposals to make one classic group rebalance once, so that its own assignor can place work nearer to its data.

The exact optimum at equal balance stands in for the assignor's own answer, so the figures are the best possible ones,
and the sentence says so. Replication is the same before and after, so only reads are counted in bytes. Promotions of
warm-ups, which are certain, are in `warmups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter

from agent.detect.assess import topics_by_group
from agent.detect.assessment import Assessment
from agent.detect.finding import Subject
from agent.detect.traffic import Rates, optimal_reads, topic_rates
from agent.model.snapshot import ConsumerGroup, Group, StreamsGroup, TaskCopy, TopicState
from agent.plan.plan import TriggerPlan
from agent.plan.worth import group_ground
from agent.propose.forecast import Work, forecast
from agent.propose.proposal import Move, Proposal, ProposalKind, ProposalReason, Row
from agent.propose.scene import Draft, Rested, Scene, dated, rested
from agent.propose.warmups import promotion
from agent.propose.words import counted
from agent.reuse import each
from assignors.problem import ConsumerResult, TaskResult

_ID = itemgetter(0)
_Row = tuple[TriggerPlan, Group, Assessment | None, tuple[TaskCopy, ...], tuple[TopicState, ...], Rates | None]
"""All that a proposal depends on beside brokers and settings."""


def rebalances(plans: Sequence[TriggerPlan], scene: Scene) -> list[Proposal]:
    """The proposals that carry out trigger plans, in their order."""
    snapshot = scene.snapshot
    names = topics_by_group(snapshot, scene.memo)
    rows: list[_Row] = []
    for plan in plans:
        group = snapshot.groups[plan.group_id]
        topics = tuple([snapshot.topics[name] for name in names[plan.group_id] if name in snapshot.topics])
        assessment = scene.detection.assessments.get(plan.group_id)
        copies = snapshot.copies.get(plan.group_id, ())
        rows.append((plan, group, assessment, copies, topics, topic_rates(topics, snapshot)))
    context = (snapshot.brokers, snapshot.selector_is_rack_aware, scene.limits)
    made = each(scene.memo, "rebalances", rows, _row_id, partial(_draft, scene), context=context)
    return [dated(one, snapshot, scene.limits) for one in made]


def _draft(scene: Scene, row: _Row) -> Rested:
    plan, group, assessment, _, topics, rates = row
    if not isinstance(group, ConsumerGroup | StreamsGroup):
        raise TypeError(f"group {plan.group_id} assigns no partitions, so there is nothing to rebalance in it")
    work = Work(group, group_ground(group, scene.snapshot, scene.memo), topics, rates)
    if plan.reason is ProposalReason.WARMUP_PROMOTABLE and isinstance(group, StreamsGroup):
        draft = promotion(plan, group, work, scene)
    else:
        draft = _improvement(plan, assessment or Assessment(group_id=group.id), work, scene)
    return rested(draft, scene.rests.hash(draft.reason, draft.subject, draft.before, draft.after))


def _row_id(row: _Row) -> str:
    return row[0].group_id


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

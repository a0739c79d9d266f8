"""Trigger proposals: one rebalance of a classic group, for nearer work or to promote warm-ups (KIP-441).

The figures are the predicted result of the group's own assignor; where that is unknown, the exact optimum at equal
balance, and the sentence names it. Replication does not change, so only reads are counted in bytes.

Without a trigger warm-ups are promoted at the application's next probing rebalance, by default within ten minutes. A
promotion restores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TypeVar

from agent.detect.assess_consumers import Reads
from agent.detect.assess_tasks import reads_of_tasks
from agent.detect.traffic import LEAST_GAIN, current_reads
from agent.plan.gain_thresholds import GroupComparison, assessed_locality, group_comparison, group_rates, wanted_reads
from agent.propose.propose_context import (
    ForecastInput,
    ProposalDraft,
    ProposeContext,
    UndatedProposal,
    basis_ages,
    forecast,
    proposal_at,
    undated,
)
from agent.values.assessment import Assessment, WeightedAssessment
from agent.values.cycle import basis_of_group
from agent.values.finding import Evidence, SubjectId
from agent.values.memo import each
from agent.values.number_format import counted, records, sized
from agent.values.plan import PredictedAssignment, Prediction, PredictionCertainty, TriggerPlan
from agent.values.proposal import Proposal, ProposalKind, ProposalMove, ProposalReason, ProposalRow
from agent.values.snapshot import (
    ConsumerGroup,
    Group,
    GroupKind,
    ReaderGroup,
    StreamsGroup,
    StreamsProcess,
    TaskCopy,
    TaskRole,
    TopicState,
    topics_of,
)
from assignors.problem import ConsumerResult, TaskId, TaskResult, TopicPartition

_ID = itemgetter(0)
_Held = TypeVar("_Held", TopicPartition, TaskId)
_Row = tuple[
    str,
    TriggerPlan,
    Group,
    Assessment | None,
    tuple[TaskCopy, ...],
    tuple[TopicState, ...],
    Mapping[TopicPartition, float] | None,
]
"""The group's id, and all that a proposal depends on beside brokers and settings."""


def rebalances(plans: Sequence[TriggerPlan], context: ProposeContext) -> list[Proposal]:
    """The proposals that carry out trigger plans, in their order."""
    snapshot, names = context.snapshot, context.detection.topics
    assessments, states, copies = context.detection.assessments.get, snapshot.topics.get, snapshot.copies.get
    rows: list[_Row] = []
    for plan in plans:
        group_id = plan.group_id
        group, assessment = snapshot.groups[group_id], assessments(group_id)
        topics = tuple(filter(None, map(states, names.get(group_id) or topics_of(group))))
        rates = group_rates(assessment, topics, snapshot)
        rows.append((group_id, plan, group, assessment, copies(group_id, ()), topics, rates))
    drafted_by = (snapshot.brokers, snapshot.selector_is_rack_aware, context.limits)
    made = each(context.memo, "rebalances", rows, _ID, partial(_draft, context), context=drafted_by)
    ages, ttl_ms = basis_ages(snapshot), context.limits.proposals.ttl_ms
    return [proposal_at(one, snapshot.taken_ms, ttl_ms, ages[one.basis]) for one in made]


def _draft(context: ProposeContext, row: _Row) -> UndatedProposal:
    _, plan, group, assessment, _, topics, rates = row
    if not isinstance(group, ReaderGroup):
        raise TypeError(f"group {plan.group_id} assigns no partitions, so there is nothing to rebalance in it")
    locality = assessed_locality(group, assessment, context.snapshot, context.memo)
    work = ForecastInput(group, locality, topics, rates, current_reads(group, locality))
    if plan.reason is ProposalReason.WARMUP_PROMOTABLE and isinstance(group, StreamsGroup):
        draft = promotion(plan, group, work, context)
    else:
        draft = _improvement(plan, assessment or Assessment(group_id=group.id), work, context)
    draft = draft._replace(basis=basis_of_group(assessment))
    return undated(draft, context.preconditions.hash(draft.reason, draft.subject, draft.before, draft.after))


def _improvement(
    plan: TriggerPlan, assessment: Assessment, work: ForecastInput, context: ProposeContext
) -> ProposalDraft:
    group, prediction = work.group, plan.prediction
    given = prediction.settled if prediction is not None else None
    before, after = _rows(group, assessment, given)
    then = wanted_reads(group, assessment, work.ground, given) or work.now
    columns = group_comparison(group, assessment, prediction, context.snapshot, context.limits, context.memo)
    bound, optimal = _bound(assessment, columns)
    stateful = isinstance(group, StreamsGroup)
    return ProposalDraft(
        kind=ProposalKind.TRIGGER,
        reason=plan.reason,
        subject=SubjectId("group", group.id),
        sentence=_sentence_in_bytes(columns, assessment.weighing)
        or _sentence(columns, assessment, sum(len(partitions) for _, partitions in work.now)),
        before=before,
        after=after,
        # What a consumer reads is not copied; what a task has to restore is not known from outside.
        moves=tuple(
            ProposalMove("partition", str(partition), source, target, None if stateful else 0)
            for partition, source, target in plan.moves
        ),
        predicted=forecast(
            work, then, moves=len(plan.moves), bytes_to_move=_bytes_to_move(work, prediction), context=context
        ),
        evidence=(
            ("assignor", group.assignor),
            ("members", len(group.members)),
            *_shown(columns),
            ("lower_bound", assessment.lower_bound if assessment.weighing is None else bound),
            ("measure", "kafka: any replica in the member's rack"),
            ("prediction", _certainty(prediction)),
        ),
        findings=plan.findings,
        lower_bound=bound,
        optimal=optimal,
    )


def _bound(assessment: Assessment, columns: GroupComparison) -> tuple[float, bool]:
    """(Least crossing of any rebalance, whether this one reaches it): bytes by weights, else partitions."""
    if assessment.weighing is None:
        crossing = assessment.optimal_crossing if columns.own is None else columns.own.crossing
        return float(assessment.lower_bound), crossing == assessment.lower_bound
    left = assessment.weighing.optimal_crossing if columns.own_bytes is None else columns.own_bytes
    return round(assessment.weighing.lower_bound, 3), left < assessment.weighing.lower_bound + LEAST_GAIN


def _sentence_in_bytes(columns: GroupComparison, weighing: WeightedAssessment | None) -> str | None:
    """The sentence by weights of the pipeline; None where partitions are counted."""
    if weighing is None:
        return None
    now, total, what = weighing.crossing, f"{sized(weighing.total)}/s", _moved_in(columns)
    if columns.own is None or columns.own_bytes is None or columns.prediction is None:
        moved = 0 if columns.optimum is None else columns.optimum.moved
        return (
            f"Rebalance {columns.group_id} once: at best its own assignor makes {sized(weighing.gained)}/s of {total} "
            f"local by Kafka's measure (crossing {sized(now)}/s -> {sized(weighing.optimal_crossing)}/s), moving "
            f"{counted(moved, what)}; its exact result is unknown: {_why_not(columns.prediction)}"
        )
    return (
        f"Rebalance {columns.group_id} once: its own assignor, {columns.prediction.assignor}, which counts partitions, "
        f"makes {sized(now - columns.own_bytes)}/s of {total} local by Kafka's measure (crossing {sized(now)}/s -> "
        f"{sized(columns.own_bytes)}/s, at best {sized(weighing.optimal_crossing)}/s), moving "
        f"{counted(columns.own.moved, what)}{_after_moving(columns.prediction)}"
    )


def _moved_in(columns: GroupComparison) -> str:
    return "task" if columns.kind is GroupKind.CLASSIC_STREAMS else "partition"


def _sentence(columns: GroupComparison, assessment: Assessment, total: int) -> str:
    """The gain of one rebalance: by the group's own assignor where predicted, else at best."""
    what = _moved_in(columns)
    own, now = columns.own, assessment.crossing
    reads = counted(total, "read")
    if own is None or columns.prediction is None:
        return (
            f"Rebalance {columns.group_id} once: at best its own assignor makes {assessment.gap} of {reads} local by "
            f"Kafka's measure (crossing {now} -> {assessment.optimal_crossing}), moving "
            f"{counted(assessment.moved, what)}; its exact result is unknown: {_why_not(columns.prediction)}"
        )
    return (
        f"Rebalance {columns.group_id} once: its own assignor, {columns.prediction.assignor}, makes "
        f"{now - own.crossing} of {reads} local by Kafka's measure (crossing {now} -> {own.crossing}, at best "
        f"{assessment.optimal_crossing}), moving {counted(own.moved, what)}"
        f"{_after_moving(columns.prediction)}"
    )


def _why_not(prediction: Prediction | None) -> str:
    why = prediction.why_not if prediction is not None else None
    return why.value if why is not None else "no prediction was asked for"


def _after_moving(prediction: Prediction) -> str:
    exact = "" if prediction.certainty is PredictionCertainty.EXACT else ", though the exact assignment may differ"
    if (warmups := prediction.warmups) is None:
        return exact
    known = warmups.disk_bytes is not None
    size = f"{warmups.disk_bytes:,} bytes of disk and of broker reads" if known else "disk size unknown"
    return f"{exact}; {counted(warmups.tasks, 'task')} warm up first, {warmups.at_once} at once ({size})"


def _shown(columns: GroupComparison) -> Evidence:
    """The three columns: crossing partitions, crossing bytes per second, moves."""
    rows: list[tuple[str, str | int | float | bool | tuple[str | int, ...] | None]] = []
    for name, column in (("now", columns.now), ("own", columns.own), ("at_best", columns.optimum)):
        rows.append((f"crossing_{name}", None if column is None else column.crossing))
        rows.append((f"crossing_bytes_per_s_{name}", None if column is None else column.crossing_bytes_per_s))
        if name != "now":
            rows.append((f"moved_{name}", None if column is None else column.moved))
    return tuple(rows)


def _certainty(prediction: Prediction | None) -> str:
    if prediction is None or prediction.settled is None:
        return "the exact optimum at equal balance, not the assignor's own answer"
    parts = [f"its own assignor's answer, {prediction.certainty.value}", prediction.basis.value]
    return "; ".join([*parts, *([prediction.settings] if prediction.settings else []), *prediction.notes])


def _bytes_to_move(work: ForecastInput, prediction: Prediction | None) -> int | None:
    """Consumers copy nothing; a task's restore is known where it warms up and its size is known."""
    if not isinstance(work.group, StreamsGroup):
        return 0
    return prediction.warmups.read_bytes if prediction is not None and prediction.warmups is not None else None


def _rows(
    group: ReaderGroup, assessment: Assessment, given: PredictedAssignment | None
) -> tuple[tuple[ProposalRow, ...], tuple[ProposalRow, ...]]:
    """(before, after) of members with other partitions, or of processes with other active tasks."""
    if isinstance(group, ConsumerGroup):
        had = {member.id: tuple(sorted(member.assigned or ())) for member in group.members}
        return _changed(had, given.reads if given is not None else _assignment(assessment))
    if given is None and not isinstance(assessment.result, TaskResult):
        return (), ()
    now = {process.id: tuple(sorted(process.active, key=repr)) for process in group.processes}
    active = given.active if given is not None else assessment.result.active  # type: ignore[union-attr]  # see above
    return _changed(now, {process: tuple(sorted(tasks, key=repr)) for process, tasks in active.items()})


def _changed(
    now: Mapping[str, tuple[_Held, ...]], then: Mapping[str, tuple[_Held, ...]]
) -> tuple[tuple[ProposalRow, ...], tuple[ProposalRow, ...]]:
    changed = [key for key in sorted(now) if now[key] != then.get(key)]
    return (
        tuple([ProposalRow(key, tuple(map(str, now[key]))) for key in changed]),
        tuple([ProposalRow(key, tuple(map(str, then.get(key, ())))) for key in changed]),
    )


def _assignment(assessment: Assessment) -> Mapping[str, tuple[TopicPartition, ...]]:
    return assessment.result.assignment if isinstance(assessment.result, ConsumerResult) else {}


def promotion(plan: TriggerPlan, group: StreamsGroup, work: ForecastInput, context: ProposeContext) -> ProposalDraft:
    """The proposal to rebalance once so that these warm-ups take over."""
    runs = {task: process.id for process in group.processes for task in process.active}
    racks = {process.id: process.rack.name or process.rack.state.value for process in group.processes}
    before: list[ProposalRow] = []
    after: list[ProposalRow] = []
    for process_id, task in plan.promotable:
        if task in runs:
            before.append(ProposalRow(f"{runs[task]} {task} active", (racks.get(runs[task], "unknown"),)))
        before.append(ProposalRow(f"{process_id} {task} warm-up", (racks.get(process_id, "unknown"),)))
        after.append(ProposalRow(f"{process_id} {task} active", (racks.get(process_id, "unknown"),)))
    return ProposalDraft(
        kind=ProposalKind.TRIGGER,
        reason=plan.reason,
        subject=SubjectId("group", group.id),
        sentence=_warmup_sentence(plan, group, context),
        before=tuple(before),
        after=tuple(after),
        moves=tuple(
            ProposalMove("task", str(task), runs.get(task), process_id, 0) for process_id, task in plan.promotable
        ),
        predicted=forecast(
            work, _reads_after(plan, group, work), moves=len(plan.promotable), bytes_to_move=0, context=context
        ),
        evidence=_evidence(plan, group, context),
        findings=plan.findings,
    )


def _warmup_sentence(plan: TriggerPlan, group: StreamsGroup, context: ProposeContext) -> str:
    waiting, verb = counted(len(plan.promotable), "warm-up"), "has" if len(plan.promotable) == 1 else "have"
    if not plan.promotable:
        return (
            f"Rebalance {group.id} once: standbys fall further behind, and the group leader may assign them to other "
            "processes"
        )
    ready = {(one.process_id, one.task) for one in context.snapshot.copies.get(group.id, ()) if one.caught_up is True}
    if ready.issuperset(plan.promotable):
        return (
            f"Rebalance {group.id} once: {waiting} {verb} caught up and can take over now instead of at the "
            f"application's next probing rebalance"
        )
    return (
        f"Rebalance {group.id} once: {waiting} may have caught up, which is unknown until a rebalance; those that "
        f"have take over, and the others report their lag"
    )


def _reads_after(plan: TriggerPlan, group: StreamsGroup, work: ForecastInput) -> Reads:
    if group.topology is None:
        return ()
    goes: dict[TaskId, str] = {}
    for process_id, task in plan.promotable:
        goes.setdefault(task, process_id)

    def active(process: StreamsProcess) -> list[TaskId]:
        kept = [task for task in process.active if task not in goes]
        return kept + [task for task, target in goes.items() if target == process.id]

    readers = [work.ground.bits.reader(process.rack) for process in group.processes]
    return reads_of_tasks(group.topology, readers, [active(process) for process in group.processes])


def _evidence(plan: TriggerPlan, group: StreamsGroup, context: ProposeContext) -> Evidence:
    settings = context.limits.group(group.id)
    wanted = set(plan.promotable)
    copies = [
        copy
        for copy in context.snapshot.copies.get(group.id, ())
        if copy.role is TaskRole.WARMUP and (copy.process_id, copy.task) in wanted
    ]
    return (
        ("tasks", tuple(f"{task} on {process_id}" for process_id, task in plan.promotable)),
        ("lags", tuple(_lag(copy) for copy in copies)),
        ("acceptable_recovery_lag", settings.acceptable_recovery_lag),
        ("acceptable_recovery_lag_is", "set for this application" if settings.known else "Kafka's default, assumed"),
        ("next_probing_rebalance_ms", group.next_rebalance_ms),
    )


def _lag(copy: TaskCopy) -> str:
    lag = "lag unknown" if copy.lag is None else f"{records(copy.lag)} behind"
    source = copy.lag_source.value if copy.lag_source is not None else "unknown source"
    return f"{copy.task} on {copy.process_id}: {lag} ({source})"

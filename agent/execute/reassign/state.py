"""State of the reassignment executor between two events, and its changes by events.

Invariant: ``records`` mirrors the journal and is all that matters; the rest is durations and requests that may still
take effect, which `resume` resets to the cautious side. A look is used for one decision only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    AppendJournal,
    AwaitedCommand,
    BatchPermission,
    CancelReassignments,
    ClusterChange,
    CommandReceived,
    ElectLeaders,
    NotifyOperator,
    ReadCluster,
    RequestDone,
    RequestFate,
)
from agent.execute.reassign.throttles import resources_of
from agent.values.memo import IdentityMemo
from agent.values.reassignment import (
    Batch,
    BatchState,
    ClearedThrottle,
    PlanState,
    ReassignmentEntry,
    ReassignmentPlan,
    ReassignmentPolicy,
    ReassignmentRecords,
    ReassignmentTarget,
    ThrottleDebt,
)
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition

NOT_YET = BatchPermission(begin=False)
_MOST_TIMES = 10
"""Doubling more often than that makes no difference."""
_FEW = 64
"""So many are looked through each time; of more it is worked out once."""
_OPEN: IdentityMemo[Batch | None] = IdentityMemo(4)
_IDLE: IdentityMemo[Mapping[TopicPartition, int]] = IdentityMemo(4)


class PartitionWatch(NamedTuple):
    """Time without progress of one partition of the batch; ``token`` changes with any progress."""

    id: TopicPartition
    token: tuple[object, ...]
    idle_ms: int = 0


class PlanBackoff(NamedTuple):
    """A plan whose latest requests were answered with "not now", and which is left alone for a while."""

    proposal_id: str
    left_ms: int
    times: int
    """Number of such answers in a row."""
    why: str


class MachineState(NamedTuple):
    """An executor between two events."""

    records: ReassignmentRecords
    waiting: AwaitedCommand | None = None
    """The command whose answer is awaited."""
    settle_ms: int = 0
    """Until then a request of a former leader, or one without an answer, may still take effect."""
    settled: bool = False
    """No such request was left when the latest look began. Nothing is ever closed without it."""
    next_look_ms: int = 0
    unsure: frozenset[TopicPartition] = frozenset()
    """Partitions that a reassignment of ours may still begin to move."""
    uncancelled: frozenset[TopicPartition] = frozenset()
    """Partitions for which a cancel of ours may still be under way."""
    unsent: frozenset[TopicPartition | ThrottleResource] = frozenset()
    """What the latest request about it certainly did not bring about, because it was too late to send it or the answer
    was "not now": that does not count."""
    acked: frozenset[TopicPartition] = frozenset()
    refused: frozenset[TopicPartition] = frozenset()
    watches: tuple[PartitionWatch, ...] = ()
    down: tuple[tuple[int, int], ...] = ()
    """(broker of the plan, how long it has been down)."""
    weak_ms: int | None = None
    """How long a partition of the open batch has been under its min ISR; None: none is."""
    may: BatchPermission = NOT_YET
    backoffs: tuple[PlanBackoff, ...] = ()
    passed: frozenset[str] = frozenset()
    """Plans that had to wait when it was their turn, since something was last begun: the next one has its turn."""
    commands: tuple[CommandReceived, ...] = ()
    """Operators' commands that are not appended yet."""
    incoming: tuple[ReassignmentPlan, ...] = ()
    """Accepted plans that are not appended yet."""
    notices: tuple[tuple[str, NotifyOperator], ...] = ()
    """Plan -> the last reported reason of its waiting (empty: none), so that it is reported once."""
    fenced: bool = False

    @property
    def batch(self) -> Batch | None:
        """The open batch; there is one at most."""
        batches = self.records.batches
        if len(batches) <= _FEW:
            return _open_in(batches)
        return _OPEN.of((batches,), lambda: _open_in(batches), lambda _: 1)

    @property
    def plan(self) -> ReassignmentPlan | None:
        """The plan to work on: that of the open batch, else the first whose turn it is."""
        batch, plans = self.batch, self.records.plans
        if batch is not None:
            return next(plan for plan in plans if plan.proposal_id == batch.proposal_id)
        return next((plan for plan in self.waiting_plans if plan.proposal_id not in self.passed), None) or next(
            iter(self.waiting_plans), plans[0] if plans else None
        )

    @property
    def waiting_plans(self) -> tuple[ReassignmentPlan, ...]:
        """Plans that may have their turn: not one that is paused, nor one that changes what an earlier one does."""
        return eligible_plans(self.records.plans)

    @property
    def idle(self) -> bool:
        """True when there is nothing to look for."""
        return not self.records.plans and not self.records.debts

    @property
    def held(self) -> Mapping[str, str]:
        """Plan -> what kept it from going on when it was its turn last. While a batch is open the others queue."""
        plans = self.records.plans if self.batch is None or self.plan is None else (self.plan,)
        names = {plan.proposal_id for plan in plans}
        return {name: notice.sentence for name, notice in self.notices if notice.hold and name in names}

    def over(self, plan: ReassignmentPlan) -> str | None:
        """Why that plan may not begin any more; None when it may, or when a batch of it was sent."""
        why = dict(self.may.lapsed).get(plan.proposal_id) if plan.state is PlanState.OPEN else None
        if why is None or any(
            batch.proposal_id == plan.proposal_id and batch.sendings for batch in self.records.batches
        ):
            return None
        return why

    def rest(self, proposal_id: str) -> PlanBackoff | None:
        """The backoff of that plan; None when it has none."""
        return next((one for one in self.backoffs if one.proposal_id == proposal_id and one.left_ms > 0), None)

    def down_ms(self, broker: int) -> int:
        """Milliseconds for which a broker has been down; 0 for one that is up or was just lost."""
        return dict(self.down).get(broker, 0)

    def idle_ms(self, partition: TopicPartition) -> int:
        """Milliseconds for which a partition of the batch has shown no progress."""
        watches = self.watches
        if len(watches) <= _FEW:
            return next((watch.idle_ms for watch in watches if watch.id == partition), 0)
        return _IDLE.of((watches,), lambda: {it.id: it.idle_ms for it in watches}, lambda _: 1).get(partition, 0)


def latest_batch(state: MachineState, proposal_id: str) -> int:
    """The number of a plan's latest batch; 0 without one."""
    batches = state.records.batches
    after = bisect_right(batches, proposal_id, key=_plan_of)
    return batches[after - 1].number if after and batches[after - 1].proposal_id == proposal_id else 0


def batches_of(state: MachineState, proposal_id: str) -> tuple[Batch, ...]:
    """A plan's batches, by number."""
    batches = state.records.batches
    return batches[bisect_left(batches, proposal_id, key=_plan_of) : bisect_right(batches, proposal_id, key=_plan_of)]


def initial_state(records: ReassignmentRecords, policy: ReassignmentPolicy) -> MachineState:
    """The state of an agent that has just taken over, or just started: everything may still be under way."""
    state = MachineState(records)
    batch = state.batch
    if batch is None and not records.debts:
        return state
    state = state._replace(settle_ms=policy.settle_ms)
    if batch is None:
        return state
    open_ids = frozenset(target.id for target in batch.targets) - {end.id for end in batch.ends}
    unsure = open_ids if batch.state is BatchState.SENT else frozenset[TopicPartition]()
    return state._replace(unsure=unsure, uncancelled=frozenset(batch.cancelling))


def ticked(state: MachineState, elapsed_ms: int, policy: ReassignmentPolicy) -> MachineState:
    """The state when time has passed. Clocks stop where waiting longer makes no difference."""
    stuck_ms, grace_ms = policy.limits.stuck_after_ms, policy.limits.grace_after_broker_loss_ms
    return state._replace(
        settle_ms=max(0, state.settle_ms - elapsed_ms),
        next_look_ms=max(0, state.next_look_ms - elapsed_ms),
        backoffs=tuple(one._replace(left_ms=max(0, one.left_ms - elapsed_ms)) for one in state.backoffs),
        watches=tuple(watch._replace(idle_ms=min(watch.idle_ms + elapsed_ms, stuck_ms)) for watch in state.watches),
        down=tuple((broker, min(ms + elapsed_ms, grace_ms)) for broker, ms in state.down),
        weak_ms=None if state.weak_ms is None else min(state.weak_ms + elapsed_ms, grace_ms),
    )


def looking(state: MachineState) -> tuple[MachineState, ReadCluster]:
    """The state that asks for a look, and the look."""
    settled = state.settle_ms == 0
    none: frozenset[TopicPartition] = frozenset()
    topics, resources = _interesting(state.plan, state.batch, state.records.debts)
    look = ReadCluster(topics, resources)
    unsure, uncancelled = (none, none) if settled else (state.unsure, state.uncancelled)
    return state._replace(waiting=look, settled=settled, unsure=unsure, uncancelled=uncancelled), look


def appended(state: MachineState, append: AppendJournal) -> MachineState:
    """The state once the changes are durable; what comes next is already awaited."""
    records = state.records
    for change in append.changes:
        records = _changed(records, change)
    state = state._replace(records=records, waiting=append.then, next_look_ms=0, passed=frozenset())
    names = {plan.proposal_id for plan in records.plans}
    state = state._replace(backoffs=tuple(one for one in state.backoffs if one.proposal_id in names))
    batch = state.batch
    if batch is None:
        none: frozenset[TopicPartition] = frozenset()
        state = state._replace(unsent=frozenset(), acked=none, refused=none, watches=(), weak_ms=None)
    elif any(isinstance(change, Batch) and change.repaced for change in append.changes):
        state = state._replace(watches=tuple(watch._replace(idle_ms=0) for watch in state.watches))
    return state


def answered(state: MachineState, act: ClusterChange, answer: RequestDone, policy: ReassignmentPolicy) -> MachineState:
    """The state when a request was answered, or was not."""
    kinds: Mapping[object, RequestFate] = {result.subject: result.kind for result in answer.results}
    fates = {subject: kinds.get(subject, RequestFate.UNKNOWN) for subject in _subjects(act)}
    by_kind = {kind: frozenset(it for it in fates if fates[it] is kind) for kind in RequestFate}
    unsent = by_kind[RequestFate.NOT_SENT] | by_kind[RequestFate.RETRY]
    state = state._replace(waiting=None, unsent=(state.unsent - frozenset(fates)) | unsent)
    if isinstance(act, AlterReassignments | AlterThrottles) and state.batch is not None:
        took = isinstance(act, AlterReassignments) and bool(by_kind[RequestFate.OK])
        state = state._replace(backoffs=_backoffs(state, state.batch.proposal_id, answer, policy, took=took))
    if by_kind[RequestFate.UNKNOWN]:
        state = state._replace(settle_ms=policy.settle_ms)
    if isinstance(act, AlterReassignments):
        state = state._replace(
            unsure=state.unsure | _partitions(by_kind[RequestFate.UNKNOWN]),
            acked=state.acked | _partitions(by_kind[RequestFate.OK]),
            refused=state.refused | _partitions(by_kind[RequestFate.REFUSED]),
        )
    elif isinstance(act, CancelReassignments):
        state = state._replace(uncancelled=state.uncancelled | _partitions(by_kind[RequestFate.UNKNOWN]))
    # What did not simply succeed is looked at after a while, lest it is asked for in a tight loop.
    paced = isinstance(act, ElectLeaders) or len(by_kind[RequestFate.OK]) < len(fates)
    return state._replace(next_look_ms=policy.look_ms if paced else 0)


def _backoffs(
    state: MachineState, proposal_id: str, answer: RequestDone, policy: ReassignmentPolicy, *, took: bool
) -> tuple[PlanBackoff, ...]:
    """A plan of which something was answered "not now" is left alone, each time for twice as long until moves begin."""
    others = tuple(one for one in state.backoffs if one.proposal_id != proposal_id)
    refused = [result.sentence for result in answer.results if result.kind is RequestFate.RETRY]
    if not refused:
        return others if took else state.backoffs
    before = 0 if took else next((one.times for one in state.backoffs if one.proposal_id == proposal_id), 0)
    left_ms = min(policy.look_ms << before, policy.idle_look_ms)
    return tuple(sorted((*others, PlanBackoff(proposal_id, left_ms, min(before + 1, _MOST_TIMES), refused[0]))))


def _subjects(act: ClusterChange) -> Iterable[TopicPartition | ThrottleResource]:
    match act:
        case AlterReassignments(moves):
            return [move.id for move in moves]
        case CancelReassignments() | ElectLeaders():
            return act.partitions
        case _:
            return [setting.resource for setting in act.settings]


def _partitions(subjects: Iterable[object]) -> frozenset[TopicPartition]:
    return frozenset(subject for subject in subjects if isinstance(subject, TopicPartition))


def _interesting(
    plan: ReassignmentPlan | None, batch: Batch | None, debts: tuple[ThrottleDebt, ...]
) -> tuple[tuple[str, ...], tuple[ThrottleResource, ...]]:
    """What to look at: all of the plan while something of it may begin, and of a batch that was taken only its own."""
    waits = batch is not None and batch.state is BatchState.ACKED
    targets = batch.targets if batch is not None and waits else () if plan is None else plan.targets
    of = plan_scope(targets)
    topics = {topic for debt in debts if (topic := debt.resource.topic) is not None}
    resources = {debt.resource for debt in debts}
    return (
        of.topics if topics <= set(of.topics) else tuple(sorted(topics.union(of.topics))),
        of.resources if resources <= set(of.resources) else tuple(sorted(resources.union(of.resources))),
    )


def _open_in(batches: tuple[Batch, ...]) -> Batch | None:
    return next((batch for batch in batches if batch.state is not BatchState.CLOSED), None)


def _plan_of(batch: Batch) -> str:
    return batch.proposal_id


def _place(batch: Batch) -> tuple[str, int]:
    return batch.proposal_id, batch.number


def _changed(records: ReassignmentRecords, change: ReassignmentEntry) -> ReassignmentRecords:
    match change:
        case ReassignmentPlan():
            return _with_plan(records, change)
        case Batch():
            batches = records.batches
            at = bisect_left(batches, _place(change), key=_place)
            rest = batches[at + 1 :] if batches[at : at + 1] and _place(batches[at]) == _place(change) else batches[at:]
            return records._replace(batches=(*batches[:at], change, *rest))
        case ThrottleDebt():
            return records._replace(
                debts=tuple(sorted([*_other_debts(records, change), change], key=lambda it: (it.resource, it.key)))
            )
        case _:
            return records._replace(debts=tuple(_other_debts(records, change)))


def _with_plan(records: ReassignmentRecords, plan: ReassignmentPlan) -> ReassignmentRecords:
    plans = [other for other in records.plans if other.proposal_id != plan.proposal_id]
    if plan.ended:
        batches = tuple(batch for batch in records.batches if batch.proposal_id != plan.proposal_id)
        return records._replace(plans=tuple(plans), batches=batches)
    ordered = tuple(sorted([*plans, plan], key=lambda it: it.order))
    return records._replace(plans=ordered, known=records.known | {plan.proposal_id})


def _other_debts(records: ReassignmentRecords, change: ThrottleDebt | ClearedThrottle) -> list[ThrottleDebt]:
    return [debt for debt in records.debts if (debt.resource, debt.key) != (change.resource, change.key)]


# Facts of a plan that stay constant while it is carried out, for up to 100,000 partitions.


class PlanScope(NamedTuple):
    """Partitions, topics, brokers and throttle resources of all targets of a plan."""

    ids: frozenset[TopicPartition]
    topics: tuple[str, ...]
    """Sorted."""
    resources: tuple[ThrottleResource, ...]
    """Brokers and topics whose throttle settings the plan may change, sorted."""
    brokers: frozenset[int]
    """Brokers with a replica before or after."""
    moves_data: bool
    """False where only orders change."""


_WHOLE: IdentityMemo[PlanScope] = IdentityMemo(1_000_000)
_TURNS: IdentityMemo[tuple[ReassignmentPlan, ...]] = IdentityMemo(8)


def plan_scope(targets: tuple[ReassignmentTarget, ...]) -> PlanScope:
    """The scope of these targets; kept for the very same tuple."""
    return _WHOLE.of((targets,), lambda: _whole(targets), lambda _: len(targets) + 1)


def eligible_plans(plans: tuple[ReassignmentPlan, ...]) -> tuple[ReassignmentPlan, ...]:
    """Plans that may have their turn: not one that is paused, nor one that changes what an earlier one does."""
    if len(plans) < 2:
        return tuple(plan for plan in plans if not plan.paused)
    return _TURNS.of((plans,), lambda: _in_turn(plans), lambda _: 1)


def _whole(targets: tuple[ReassignmentTarget, ...]) -> PlanScope:
    return PlanScope(
        frozenset(target.id for target in targets),
        tuple(sorted({target.id.topic for target in targets})),
        resources_of(targets, ()),
        frozenset(broker for pair in {(one.before, one.after) for one in targets} for of in pair for broker in of),
        any(target.moves_data for target in targets),
    )


def _in_turn(plans: tuple[ReassignmentPlan, ...]) -> tuple[ReassignmentPlan, ...]:
    taken: set[TopicPartition] = set()
    eligible: list[ReassignmentPlan] = []
    for plan in plans:
        ids = plan_scope(plan.targets).ids
        if not plan.paused and taken.isdisjoint(ids):
            eligible.append(plan)
        taken |= ids
    return tuple(eligible)

"""Reassignment machine: the next state and commands from the state and an event.

Pure: the live shell and the model checker run these very functions. Invariants, each of them checked over every
interleaving of two agents, crashes, pauses, late requests, faults of brokers and moves of others:

- nothing is done that is not in the journal, and nothing twice;
- every throttle of ours is taken away, and no other is touched;
- an agent that was fenced asks for nothing more;
- a cancelled partition ends with its former or its planned replicas, and their number never changes;
- a plan ends once faults do.

What starts after a crash, a restart or a takeover is `resume`, and it does nothing that `step` does not do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.execute.reassign.batch_step import BatchDecision, work_on_batch
from agent.execute.reassign.executor_view import view_of
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    AppendJournal,
    BatchPermission,
    CancelReassignments,
    ClusterRead,
    ClusterView,
    CommandReceived,
    ElectLeaders,
    FinishPlan,
    JournalAppended,
    LeaderFenced,
    MachineCommand,
    MachineEvent,
    NotifyOperator,
    PlanAccepted,
    PlanCommand,
    PlansKnown,
    ReadCluster,
    RequestDone,
    RequestFate,
    TimePassed,
)
from agent.execute.reassign.plan_step import clear_throttles, work_on_plan
from agent.execute.reassign.state import MachineState, answered, appended, initial_state, latest_batch, looking, ticked
from agent.values.reassignment import (
    ENDED,
    Batch,
    BatchState,
    PlanState,
    ReassignmentPlan,
    ReassignmentPolicy,
    ReassignmentRecords,
    limits_words,
    moved_by,
    of_plan,
)

# What does an operator's command make of a plan that has not ended, and what is the answer? One table for both.
#
# The machine takes the plan, the answer to the operator the sentence: none is worked out beside the other.
#
# ==============  ============  ==============  =============
# state           cancel        rollback        pause, resume
# ==============  ============  ==============  =============
# open, electing  cancelling    rolling back    yes
# cancelling      is so         rolling back    refused
# rolling back    cancelling    is so           yes
# ==============  ============  ==============  =============
#
# A rollback that is cancelled moves nothing more back; what is back stays so. Pure.

RUNNING = (PlanState.OPEN, PlanState.ELECTING, PlanState.ROLLING_BACK)
"""States in which a plan can be paused, and new batches of it may begin."""
TURNED_BACK = (PlanState.OPEN, PlanState.ELECTING, PlanState.CANCELLING)
"""States from which a plan goes back."""

_CANCELLED: Mapping[PlanState, str] = {
    PlanState.OPEN: "no new batch begins, and moves in progress are taken back",
    PlanState.ELECTING: "all its moves have ended, and no more leaders are elected",
    PlanState.ROLLING_BACK: "its rollback stops, no new batch begins, and moves in progress are taken back; "
    "partitions that were moved back stay so",
}
_PAUSED: Mapping[PlanCommand, str] = {
    PlanCommand.PAUSE: "no new batch of it begins; moves in progress continue",
    PlanCommand.RESUME: "new batches of it may begin",
}
_IS: Mapping[PlanCommand, str] = {PlanCommand.PAUSE: "paused already", PlanCommand.RESUME: "not paused"}


class PlanTransition(NamedTuple):
    """The plan after a command, and the answer to the operator."""

    plan: ReassignmentPlan
    """As the command leaves it; the very same where nothing changes."""
    done: bool
    """False: refused."""
    sentence: str
    """The answer."""


def transition(plan: ReassignmentPlan, received: CommandReceived, batches: int = 0) -> PlanTransition:
    """The plan, which has not ended, after the command; ``batches`` is the number of its latest batch, 0 without one.

    A command that the plan has had already (`ReassignmentPlan.heard`) changes nothing.
    """
    match received.command:
        case PlanCommand.CANCEL:
            result = _cancelled(plan, received)
        case PlanCommand.ROLLBACK:
            result = _rolled_back(plan, received, batches)
        case PlanCommand.PAUSE | PlanCommand.RESUME:
            result = _paused(plan, received)
    again = result.plan != plan and received.id and received.id == plan.heard
    return result._replace(plan=plan if again or result.plan == plan else result.plan._replace(heard=received.id))


def _cancelled(plan: ReassignmentPlan, received: CommandReceived) -> PlanTransition:
    if plan.state is PlanState.CANCELLING:
        return PlanTransition(plan, done=True, sentence=f"{plan.proposal_id} is cancelling already")
    sentence = f"{plan.proposal_id} is cancelling: {_CANCELLED[plan.state]}"
    return PlanTransition(_ending(plan, PlanState.CANCELLING, received), done=True, sentence=sentence)


def _rolled_back(plan: ReassignmentPlan, received: CommandReceived, batches: int) -> PlanTransition:
    if plan.state not in TURNED_BACK:
        return PlanTransition(plan, done=True, sentence=f"{plan.proposal_id} is {plan.state.value} already")
    back_at = limits_words(plan.throttle_bytes_per_s, plan.max_moves)
    sentence = f"{plan.proposal_id} is rolling back: its moves, finished and in progress, are taken back{back_at}"
    after = _ending(plan, PlanState.ROLLING_BACK, received)._replace(turned=batches)
    return PlanTransition(after, done=True, sentence=sentence)


def _paused(plan: ReassignmentPlan, received: CommandReceived) -> PlanTransition:
    name, pausing = plan.proposal_id, received.command is PlanCommand.PAUSE
    if plan.state not in RUNNING:
        return PlanTransition(plan, done=False, sentence=f"{name} is {plan.state.value}, which is not paused")
    if plan.paused is pausing:
        return PlanTransition(plan, done=True, sentence=f"{name} is {_IS[received.command]}")
    return PlanTransition(plan._replace(paused=pausing), done=True, sentence=f"{name}: {_PAUSED[received.command]}")


def _ending(plan: ReassignmentPlan, state: PlanState, received: CommandReceived) -> ReassignmentPlan:
    by = f" by {received.who}" if received.who else ""
    sentence = f"{received.command.value} requested{by}"
    return plan._replace(state=state, paused=False, elections=0, sentence=sentence)


MachineCommands = tuple[MachineCommand, ...]


def resume(records: ReassignmentRecords, policy: ReassignmentPolicy) -> tuple[MachineState, MachineCommands]:
    """The state of an agent that begins to lead, and its first command: a look, if there is anything to look for."""
    return _go_on(initial_state(records, policy))


def step(state: MachineState, event: MachineEvent, policy: ReassignmentPolicy) -> tuple[MachineState, MachineCommands]:
    """The state after the event, and what is asked for: one asking command at most, and none while one is awaited."""
    if state.fenced:
        return state, ()
    if isinstance(event, ClusterRead | JournalAppended | RequestDone):
        return _answer(state, event, policy)
    match event:
        case TimePassed(elapsed_ms):
            state = ticked(state, elapsed_ms, policy)
        case CommandReceived():
            state = state._replace(commands=(*state.commands, event))
        case PlanAccepted(plan):
            state = state._replace(incoming=(*state.incoming, plan))
        case PlansKnown(plans):
            return state._replace(records=state.records._replace(known=plans)), ()
        case BatchPermission():
            state = state._replace(may=event)
        case LeaderFenced():
            return state._replace(fenced=True, waiting=None), ()
    return _go_on(state)


def begins(state: MachineState, act: AlterReassignments | ElectLeaders) -> bool:
    """Whether the request begins moves, or elects, and does not only put back the order that a cancel has left."""
    if isinstance(act, ElectLeaders):
        return True
    batch = state.batch
    return batch is None or not {move.id for move in act.moves} <= set(batch.cancelling)


def _answer(
    state: MachineState, event: ClusterRead | JournalAppended | RequestDone, policy: ReassignmentPolicy
) -> tuple[MachineState, MachineCommands]:
    """The answer to what was asked for. One that is not waited for changes nothing."""
    asked = state.waiting
    if isinstance(event, ClusterRead) and isinstance(asked, ReadCluster):
        state = state._replace(waiting=None)
        return (
            _decide(state, event.cluster, policy)
            if event.cluster is not None
            else _go_on(_unseen(state, event, policy))
        )
    if isinstance(event, JournalAppended) and isinstance(asked, AppendJournal):
        return _written(_awaiting_throttle(state, asked, policy), asked)
    if isinstance(event, RequestDone) and isinstance(
        asked, AlterReassignments | CancelReassignments | AlterThrottles | ElectLeaders
    ):
        return _go_on(*_troubles(answered(state, asked, event, policy), event))
    return state, ()


def _unseen(state: MachineState, event: ClusterRead, policy: ReassignmentPolicy) -> MachineState:
    """The state after a look that failed.

    A broker without a controller keeps what it is to pass on, and passes it on once there is one again: so time without
    a controller does not count for what may be on its way.
    """
    waits_anew = event.silent and not state.settled
    return state._replace(next_look_ms=policy.look_ms, settle_ms=policy.settle_ms if waits_anew else state.settle_ms)


def _go_on(state: MachineState, notices: MachineCommands = ()) -> tuple[MachineState, MachineCommands]:
    """Append operators' commands, then look when it is time; nothing while an answer is awaited."""
    if state.waiting is not None:
        return state, notices
    if state.commands or state.incoming or lapsed(state):
        state, append, more = _with_commands(state)
        notices += more
        if append.changes:
            return state._replace(waiting=append), (*notices, append)
    if state.idle or state.next_look_ms > 0:
        return state, notices
    state, look = looking(state)
    return state, (*notices, look)


def _decide(
    state: MachineState, cluster: ClusterView, policy: ReassignmentPolicy
) -> tuple[MachineState, MachineCommands]:
    view = view_of(state, cluster, policy)
    decision = _first(work_on_batch(view), clear_throttles(view), work_on_plan(view))
    state, notices = view.state, decision.notices
    if decision.append is not None:
        return state._replace(waiting=decision.append), (*notices, decision.append)
    name = "" if view.plan is None else view.plan.proposal_id
    notice = NotifyOperator(alarm=False, sentence=decision.wait_for, proposal_id=name, hold=decision.held)
    if notice.sentence and notice != dict(state.notices).get(name):
        notices = (*notices, notice)
        state = _with_notice(state, notice)
    pause = policy.look_ms if state.records.plans else policy.idle_look_ms
    # Operators' commands may have come while the look was under way.
    return _go_on(_passed_on(state)._replace(next_look_ms=pause), notices)


def _with_notice(state: MachineState, notice: NotifyOperator) -> MachineState:
    open_ = {"", *(plan.proposal_id for plan in state.records.plans)}
    last = {plan: before for plan, before in state.notices if plan in open_} | {notice.proposal_id: notice}
    return state._replace(notices=tuple(sorted(last.items())))


def _passed_on(state: MachineState) -> MachineState:
    """A plan that has to wait is not in the way of the next one; after the last one it is the first one's turn."""
    if state.batch is not None or state.plan is None:
        return state
    passed = state.passed | {state.plan.proposal_id}
    every = {plan.proposal_id for plan in state.waiting_plans}
    return state._replace(passed=frozenset() if every <= passed else passed)


def _first(batch: BatchDecision | None, debts: BatchDecision | None, plan: BatchDecision | None) -> BatchDecision:
    """The first that does something; else what is waited for, debts of brokers that are down last."""
    acting = (it for it in (batch, debts, plan) if it is not None and it.append is not None)
    return next(acting, batch or plan or debts or BatchDecision())


def _troubles(state: MachineState, answer: RequestDone) -> tuple[MachineState, MachineCommands]:
    """Report what was refused, once."""
    sentences = {
        RequestFate.REFUSED: "the controller refuses",
        RequestFate.UNCLEAN: (
            "cannot be cancelled without an unclean election; it is kept, and cancelled when it can be"
        ),
    }
    bad = [result for result in answer.results if result.kind in sentences]
    if not bad:
        return state, ()
    words = "; ".join(f"{it.subject}: {sentences[it.kind]} {it.sentence}".rstrip() for it in bad[:5])
    notice = NotifyOperator(
        alarm=True, sentence=words, proposal_id=state.plan.proposal_id if state.plan is not None else ""
    )
    return _with_notice(state, notice), () if notice == dict(state.notices).get(notice.proposal_id) else (notice,)


def _awaiting_throttle(state: MachineState, append: AppendJournal, policy: ReassignmentPolicy) -> MachineState:
    """The state when a batch is withdrawn that was to be throttled.

    Its throttle may be set and not shown yet, because brokers report settings late: until that is over, what no look
    shows is not taken to be gone. Of a batch that was sent it was seen before.
    """
    batch = state.batch
    if batch is None or batch.state is not BatchState.INTENT:
        return state
    of = batch.proposal_id, batch.number
    withdrawn = any(
        isinstance(it, Batch) and (it.proposal_id, it.number) == of and it.state is BatchState.CLOSED
        for it in append.changes
    )
    throttled = withdrawn and any((debt.proposal_id, debt.number) == of for debt in state.records.debts)
    return state._replace(settle_ms=policy.settle_ms) if throttled else state


def _written(state: MachineState, append: AppendJournal) -> tuple[MachineState, MachineCommands]:
    after = appended(state, append)
    finished = tuple(
        FinishPlan(change.proposal_id, change.state, change.sentence)
        for change in append.changes
        if isinstance(change, ReassignmentPlan) and change.state in ENDED
    )
    if append.then is not None:
        return after, (*finished, append.then)
    return _go_on(after, finished)


def _with_commands(state: MachineState) -> tuple[MachineState, AppendJournal, MachineCommands]:
    """Operators' commands as changes of plans."""
    plans = {plan.proposal_id: plan for plan in state.records.plans}
    notices: list[MachineCommand] = []
    changed: dict[str, ReassignmentPlan] = {}
    order = max((plan.order for plan in state.records.plans), default=0)
    for plan in state.incoming:
        if (why := _why_not(plan, state.records.known | set(changed), plans)) is not None:
            notices.append(NotifyOperator(alarm=False, sentence=f"{plan.proposal_id} is not accepted: {why}"))
            continue
        order += 1
        plans[plan.proposal_id] = changed[plan.proposal_id] = plan._replace(order=order)
    for name_, why in lapsed(state):
        ended = plans[name_]._replace(state=PlanState.CANCELLED, sentence=why)
        plans[name_] = changed[name_] = ended._replace(moved=moved_by(ended, ()))
    for received in state.commands:
        former = plans.get(received.proposal_id)
        after = (
            None
            if former is None or former.ended
            else transition(former, received, latest_batch(state, received.proposal_id)).plan
        )
        if after is None or after == former:
            sentence = f"{received.command} {received.proposal_id}: nothing to do"
            notices.append(NotifyOperator(alarm=False, sentence=sentence))
            continue
        plans[received.proposal_id] = changed[received.proposal_id] = after
    return state._replace(commands=(), incoming=()), AppendJournal(tuple(changed.values())), tuple(notices)


def lapsed(state: MachineState) -> tuple[tuple[str, str], ...]:
    """(plan, why) of those whose time to begin is over: none of their batches was sent, and none is open."""
    open_ = None if state.batch is None else state.batch.proposal_id
    over = ((plan.proposal_id, state.over(plan)) for plan in state.records.plans if plan.proposal_id != open_)
    return tuple((name_, why) for name_, why in over if why is not None)


def _why_not(plan: ReassignmentPlan, known: frozenset[str], unended: Mapping[str, ReassignmentPlan]) -> str | None:
    """Why a plan is not accepted: each attempt begins once, and one attempt at a time; None when it is."""
    if plan.proposal_id in known:
        return "it was accepted before"
    of = of_plan(plan).of
    other = next((name for name, one in unended.items() if of_plan(one).of == of and not one.ended), None)
    return None if other is None else f"attempt {other} has not ended"

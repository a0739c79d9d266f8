"""Effects of operators' commands: journal writes, and commands to the reassignment machine. Pure.

Invariants: each command is answered once, in one transaction with its effects, also after an error; an answered command
is replayed to the machine until its plan shows it (`replay_undelivered`), so that a crash between the two loses
nothing, and for the attempt that it was about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from agent.errors import BadInput, unexpected
from agent.execute.commands import approve, plan_commands
from agent.execute.commands.command_context import (
    ANSWERED_FOR_MS,
    STOPPING,
    BatchPermissionCheck,
    CommandContext,
    CommandDecision,
    CommandOrigin,
    ExecutorInput,
    OperatorKeys,
    VerdictForecast,
    refused,
    sender_of,
    sender_refusal,
    too_early,
    too_late,
    unplanned,
    with_sender,
    with_writes,
)
from agent.execute.reassign.machine import transition
from agent.execute.reassign.messages import BatchPermission, CommandReceived, PlanAccepted, PlanCommand
from agent.journal import plan_entries
from agent.journal.commands import (
    CommandAnswered,
    CommandVerb,
    LeaderAnswer,
    OperatorCommand,
    answer_to,
    answered,
    command_cleanup,
    command_from_json,
    history,
    signed_until,
)
from agent.journal.entries import JournalKey, JournalState, JournalWrite, numbered
from agent.journal.record_trust import leader_in
from agent.values.limits import Limits
from agent.values.proposal import PlanAttempt, Proposal
from agent.values.reassignment import ReassignmentPlan, attempt, rollback_name, rolled_back_plan
from agent.values.typed_json import UnreadableError

_PAUSING = (CommandVerb.PAUSE, CommandVerb.RESUME)
_PLAN_COMMANDS = {
    CommandVerb.PAUSE: PlanCommand.PAUSE,
    CommandVerb.RESUME: PlanCommand.RESUME,
    CommandVerb.CANCEL: PlanCommand.CANCEL,
    CommandVerb.ROLLBACK: PlanCommand.ROLLBACK,
}


class PendingCommand(Protocol):
    """A command as an inbox returns it."""

    @property
    def id(self) -> str:
        """Unique id of the command, by its sender."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The command."""

    @property
    def after(self) -> JournalWrite:
        """Journal write that goes into the transaction of the answer: the position after this command."""

    @property
    def came(self) -> CommandOrigin:
        """How and when the command reached this agent."""


class CommandEffects(NamedTuple):
    """Journal writes of one append, and the commands to the machine that follow it."""

    writes: tuple[JournalWrite, ...] = ()
    commands: tuple[ExecutorInput, ...] = ()
    look_now: bool = False
    """True when something was approved or resumed, so that the next planning need not be waited for."""
    unanswered: bool = False
    """True when a command that is to stop something waits for the first planning."""
    holds_plans: bool = False
    """True when one of these is about a plan in the journal that has not ended; only such a plan has batches."""


def apply_commands(  # noqa: PLR0917 (what is commanded, then what it is judged by)
    waiting: Sequence[PendingCommand],
    view: JournalState,
    proposals: Sequence[Proposal] | None,
    limits: Limits,
    now_ms: int,
    foresee: VerdictForecast = lambda _proposal, _view: None,
    begins: BatchPermissionCheck = lambda _plan, _view: BatchPermission(begin=True),
    *,
    people: OperatorKeys = MappingProxyType({}),
    witnesses: Sequence[JournalKey] = (),
    full: bool = False,
) -> CommandEffects:
    """Answers and effects of the commands in their order; each finds what the earlier ones have changed.

    ``proposals`` are those of the last planning, None before the first: until then a command that rests on them waits,
    and so do the commands behind it; only one that stops something is answered out of order. A leader that no longer
    has that answer applies the command once more, which changes nothing: commands are idempotent. ``full``: more
    commands may wait behind these, so that none of these can wait. ``foresee`` is the guard's verdict on a proposal and
    ``begins`` that before each batch, so that an answer agrees with what the agent does next;
    ``people`` are those who can prove a command, ``witnesses`` the keys of agents that vouch for people who sign in.

    Raises UnreadableError when plans in the journal cannot be read: without knowing what has begun, nothing of it may
    be changed.
    """
    if not waiting:
        return CommandEffects()
    by_id, planned = {proposal.id: proposal for proposal in proposals or ()}, proposals is not None
    context = CommandContext(view, by_id, _plans(view), limits, now_ms, foresee, begins, planned)
    total, waits = CommandEffects(), False
    for one in waiting:
        if answer_to(view, one.id) is not None:
            continue
        if not full and _must_wait(one, context, behind=waits):
            waits, total = True, _waiting(one, context, total)
            continue
        command, result, signed_ms = _apply_one(one, context, people, witnesses)
        result = _writable(result, now_ms)
        answer = LeaderAnswer(result.done, result.sentence, now_ms, result.plan, result.unknown, signed_ms, result.todo)
        # The position stays before what waits.
        writes = (*result.writes, answered(command, answer), *(() if waits else (one.after,)))
        view = with_writes(view, writes, now_ms)
        context = context._replace(view=view, plans=_plans(view))
        total = total._replace(
            writes=(*total.writes, *writes),
            commands=(*total.commands, *result.commands),
            look_now=total.look_now or result.look_now,
        )
    if not total.writes:
        return total
    return total._replace(writes=(*total.writes, *command_cleanup(view, now_ms - ANSWERED_FOR_MS, _needed(view))))


def _must_wait(one: PendingCommand, context: CommandContext, *, behind: bool) -> bool:
    """Whether a command waits for the first planning: it rests on proposals, or is behind one that does."""
    try:
        command = command_from_json(dict(one.value))
    except UnreadableError:
        return behind
    return not context.can_answer(command) or (behind and command.verb not in STOPPING)


def _waiting(one: PendingCommand, context: CommandContext, total: CommandEffects) -> CommandEffects:
    """The effects with one that waits for the first planning."""
    if not stops_something((one,)):
        return total
    name = one.value.get("proposal_id")
    plan = context.meant(name) if isinstance(name, str) else None
    holds = not isinstance(name, str) or (plan is not None and not plan.ended)
    return total._replace(unanswered=True, holds_plans=total.holds_plans or holds)


def stops_something(waiting: Iterable[PendingCommand]) -> bool:
    """Whether any of them is to stop something; a rollback stops what it takes back."""
    return any(_verb(one) in (*STOPPING, CommandVerb.ROLLBACK) for one in waiting)


def _verb(one: PendingCommand) -> CommandVerb | None:
    """None for what is no command."""
    name = one.value.get("verb")
    return CommandVerb.__members__.get(name) if isinstance(name, str) else None


def _plans(view: JournalState) -> tuple[ReassignmentPlan, ...]:
    """The plans with every answered command applied."""
    every = {plan.proposal_id: plan for plan in plan_entries.plans(view)}
    for command in replay_undelivered(view):
        if isinstance(command, PlanAccepted):
            every[command.plan.proposal_id] = command.plan
        else:
            every[command.proposal_id] = transition(every[command.proposal_id], command).plan
    return tuple(every.values())


def replay_undelivered(view: JournalState, valid_ms: int = 3_600_000) -> tuple[ExecutorInput, ...]:
    """Commands that the previous leader may not have delivered; the executor treats them as idempotent.

    A plan knows the latest command that changed it (`ReassignmentPlan.heard`), so what was answered before that is not
    repeated. ``valid_ms`` is how long an approval lasts, and with it what is taken back by a plan of its own.
    """
    by_plan = _asked(view).items()
    return tuple(one for name, asked in by_plan for one in _undelivered(name, asked, view, valid_ms))


def _needed(view: JournalState) -> frozenset[str]:
    """Ids of commands whose answers must stay: the last one that a plan has, and those that it does not show yet."""
    needed: set[str] = set()
    for name, asked in _asked(view).items():
        plan = plan_entries.plan_of(view, name)
        if plan is None:
            needed.update([one.command.id for one in asked if _to_roll_back(one, name, view) is not None][-1:])
        else:
            needed.add(plan.heard)
            needed.update(one.command.id for one in _latest(_after(asked, plan.heard)))
    return frozenset(needed)


def _asked(view: JournalState) -> Mapping[str, list[CommandAnswered]]:
    """Plan -> the commands about it that were obeyed, in their order, without approvals."""
    by_plan: dict[str, list[CommandAnswered]] = {}
    for one in history(view):
        # Before there were attempts, the proposal's id was the plan's name.
        name = one.answer.plan or one.command.proposal_id
        if one.answer.done and name is not None and one.command.verb not in approve.VERBS:
            by_plan.setdefault(name, []).append(one)
    return by_plan


def _undelivered(name: str, asked: list[CommandAnswered], view: JournalState, valid_ms: int) -> Iterator[ExecutorInput]:
    """Commands whose effect the plan does not show yet, in the order of their answers."""
    plan = plan_entries.plan_of(view, name)
    if plan is None:
        rollbacks = (_rollback_again(one, name, view, valid_ms) for one in asked)
        yield from [one for one in rollbacks if one is not None][-1:]
        return
    for one in _latest(_after(asked, plan.heard)):
        command = one.command
        if command.verb is CommandVerb.ROLLBACK and attempt(name).of != attempt(command.proposal_id or "").of:
            continue  # the rollback that was promised: it was accepted
        if command.verb is CommandVerb.ROLLBACK and _missed_rollback(plan, view):
            if (accepted := _new_rollback(one, plan, PlanAttempt(rollback_name(name)), view, valid_ms)) is not None:
                yield accepted
            continue
        command_again = CommandReceived(_PLAN_COMMANDS[command.verb], name, command.who, command.id)
        if not plan.ended and (after := transition(plan, command_again).plan) != plan:
            plan = after
            yield command_again


def _after(asked: list[CommandAnswered], last_id: str) -> list[CommandAnswered]:
    at = next((at for at, one in enumerate(asked) if last_id and one.command.id == last_id), None)
    return asked if at is None else asked[at + 1 :]


def _latest(asked: list[CommandAnswered]) -> list[CommandAnswered]:
    """Of pauses and resumes the last, and of cancels and rollbacks: it alone decides where the plan ends."""
    last = {one.command.verb in _PAUSING: at for at, one in enumerate(asked)}
    return [asked[at] for at in sorted(last.values())]


def _missed_rollback(plan: ReassignmentPlan, view: JournalState) -> bool:
    """Whether the plan ended before the executor received its rollback."""
    if (
        plan.state not in plan_commands.TAKEN_BACK
        or plan_entries.plan_of(view, rollback_name(plan.proposal_id)) is not None
    ):
        return False
    # From before plans knew which command they had: one with batches back had it.
    return bool(plan.heard) or not any(batch.back for batch in plan_entries.batches(view, plan.proposal_id))


def _rollback_again(one: CommandAnswered, name: str, view: JournalState, valid_ms: int) -> PlanAccepted | None:
    """The rollback that was promised, where its plan was not accepted yet."""
    plan = _to_roll_back(one, name, view)
    return None if plan is None else _new_rollback(one, plan, attempt(name), view, valid_ms)


def _to_roll_back(one: CommandAnswered, name: str, view: JournalState) -> ReassignmentPlan | None:
    """The plan that the plan of that name was promised to take back."""
    of = rolled_back_plan(name)
    return plan_entries.plan_of(view, of) if of is not None and one.command.verb is CommandVerb.ROLLBACK else None


def _new_rollback(
    one: CommandAnswered, plan: ReassignmentPlan, begins: PlanAttempt, view: JournalState, valid_ms: int
) -> PlanAccepted | None:
    new_plan = plan_commands.rollback_plan(plan, one.command, view, begins, one.answer.at_ms + valid_ms)
    return PlanAccepted(new_plan) if new_plan.targets else None


def _apply_one(
    one: PendingCommand, context: CommandContext, people: OperatorKeys, witnesses: Sequence[JournalKey]
) -> tuple[OperatorCommand, CommandDecision, int | None]:
    """The command as the journal records it, its decision, and the signed time."""
    try:
        command = command_from_json(dict(one.value))
    except UnreadableError as error:
        unread = OperatorCommand(one.id, CommandVerb.PAUSE, "", context.now_ms)
        return unread, CommandDecision(done=False, sentence=str(error)), None
    signed_ms = None
    try:
        leader = leader_in(context.view)
        sender = sender_of(one, people, "" if leader is None else leader.cluster, witnesses)
        command = with_sender(sender, command)
        signed_ms = command.at_ms if sender.signed else None
        unproven = sender_refusal(sender, command, people)
        late = too_late(one, sender, command, context.limits, context.now_ms)
        late = late or too_early(sender, command, signed_until(context.view))
        command = command._replace(at_ms=min(command.at_ms, context.now_ms))  # a time of the future counts as now
        return command, _result(command, context, unproven, late), signed_ms
    except UnreadableError:
        raise
    except Exception as error:  # noqa: BLE001 else this command would come again to every agent in turn, and end each
        return command, refused(unexpected(error)), signed_ms


def _result(
    command: OperatorCommand, context: CommandContext, unproven: str | None, late: str | None
) -> CommandDecision:
    """The decision on a command, or its refusal where it is not proven, too late or too early."""
    if unproven is not None:
        return refused(
            unproven, "Set operator.name and operator.key_file where it is sent from, or sign in at the page."
        )
    if late is not None:
        return refused(late, "Send it again if it is still wanted, from a clock that is right.")
    return _VERBS[command.verb](command, context) if context.can_answer(command) else unplanned(command)


def _writable(result: CommandDecision, now_ms: int) -> CommandDecision:
    """The decision; a refusal where no journal can hold its writes, as one append has all answers and would fail."""
    try:
        numbered(result.writes, at_ms=now_ms, epoch=0, first_seq=0)
    except BadInput as error:
        return refused(str(error))
    return result


_VERBS: Mapping[CommandVerb, Callable[[OperatorCommand, CommandContext], CommandDecision]] = {
    **approve.VERBS,
    **plan_commands.VERBS,
}

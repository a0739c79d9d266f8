"""Context and decision of one operator's command. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agent.execute.reassign.messages import BatchPermission, CommandReceived, PlanAccepted
from agent.journal.approvals import approvals
from agent.journal.commands import CommandVerb, OperatorCommand
from agent.journal.entries import MOST_EPOCH, Entry, JournalState, JournalWrite
from agent.journal.triggers import triggers
from agent.values.limits import Limits
from agent.values.number_format import sized_apart
from agent.values.proposal import Proposal
from agent.values.reassignment import ReassignmentPlan, attempt, latest, newest_rollback

ExecutorInput = CommandReceived | PlanAccepted
_UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


class ExpectedVerdict(NamedTuple):
    """The guard's verdict on a proposal if its approval were in the journal."""

    allowed: bool
    sentence: str
    """Reason of a verdict that does not allow it; empty when it is allowed."""
    comes: bool = True
    """False when it is held for good: neither time nor the cluster changes that, only settings do."""
    until_ms: int | None = None
    """Epoch milliseconds until when it is held at least; None when unknown."""


VerdictForecast = Callable[[Proposal, JournalState], ExpectedVerdict | None]
"""Returns None before the agent's first look at the cluster."""


BatchPermissionCheck = Callable[[ReassignmentPlan, JournalState], BatchPermission]
"""Whether a new batch of that plan may begin now, with this journal: the machine gets the same answer."""


class CommandContext(NamedTuple):
    """What a command is judged by: journal, open proposals, plans and limits."""

    view: JournalState
    standing: Mapping[str, Proposal]
    plans: tuple[ReassignmentPlan, ...]
    limits: Limits
    now_ms: int
    foresee: VerdictForecast
    begins: BatchPermissionCheck = lambda _plan, _view: BatchPermission(begin=True)
    planned: bool = True
    """False before the first planning: then it is not known what is proposed."""

    def plan(self, name: str | None) -> ReassignmentPlan | None:
        """The plan that an operator means: one named in full, or the newest attempt at a proposal."""
        if name is None:
            return None
        if attempt(name).number > 1:
            return next((plan for plan in self.plans if plan.proposal_id == name), None)
        return latest(self.plans, name)

    def meant(self, name: str | None) -> ReassignmentPlan | None:
        """The plan that a command stops: `plan`, or the rollback that is taking an ended `plan` back."""
        plan = self.plan(name)
        back = newest_rollback(self.plans, plan.proposal_id) if plan is not None and plan.ended else None
        return plan if back is None or back.ended else back

    def can_answer(self, command: OperatorCommand) -> bool:
        """Whether the answer rests on nothing but the journal, or what is proposed is known."""
        if self.planned or command.proposal_id is None:
            return True
        if command.verb in (CommandVerb.APPROVE, CommandVerb.APPLY, CommandVerb.CANCEL):
            plan = (self.meant if command.verb is CommandVerb.CANCEL else self.plan)(command.proposal_id)
            return plan is not None and not plan.ended
        return self.plan(command.proposal_id) is not None

    def knows_nothing_of(self, name: str | None) -> bool:
        """True when the name is none of an open proposal, and the journal has no plan, approval or trigger of it."""
        if name is None:
            return False
        of = attempt(name).of
        if of in self.standing or latest(self.plans, of) is not None:
            return False
        approved = (given.proposal_id for given in approvals(self.view))
        triggered = (entry.proposal_id for entry in triggers(self.view))
        return all(one != of for one in (*approved, *triggered))

    def held(self, plan: ReassignmentPlan) -> str:
        """What keeps new batches of that plan from beginning, as the end of an answer; empty when nothing does."""
        may = self.begins(plan, self.view)
        return "" if may.begin else f"; no new batch begins for now: {may.sentence}"


class CommandDecision(NamedTuple):
    """Effects and answer of one command."""

    done: bool
    sentence: str
    writes: tuple[JournalWrite, ...] = ()
    commands: tuple[ExecutorInput, ...] = ()
    look_now: bool = False
    plan: str | None = None
    """Name of the plan that it is about."""
    unknown: bool = False
    """True when the proposal that the command names is neither open nor in the journal."""
    todo: str = ""
    """The remedy of a refusal, where it is another than the checks of the guard."""


def refused(sentence: str, todo: str = "") -> CommandDecision:
    """The decision to refuse a command, for this reason."""
    return CommandDecision(done=False, sentence=sentence, todo=todo)


def not_begun(name: str | None, why: str, context: CommandContext) -> CommandDecision:
    """The refusal of a command about a proposal that has no plan: it has not begun, or is not known at all."""
    if not context.knows_nothing_of(name):
        return refused(f"{name} has not begun{why}")
    sentence = f"no proposal {name} is known: it is not open, and the journal has no plan or approval of it"
    return refused(sentence)._replace(unknown=True)


def unplanned(command: OperatorCommand) -> CommandDecision:
    """The refusal of a command that waited for the first planning and can wait no longer."""
    return refused(
        f"the leading agent has not planned yet, so it is not known whether {command.proposal_id} is open;"
        " send it again once rackwise proposals shows it"
    )


def with_writes(view: JournalState, writes: Sequence[JournalWrite], now_ms: int) -> JournalState:
    """The journal with these writes, as what is judged after them finds it."""
    after = dict(view)
    for seq, write in enumerate(writes):
        if write.value is None:
            after.pop(write.key, None)
        else:
            after[write.key] = Entry(write.key, write.kind, write.value, now_ms, MOST_EPOCH, seq)
    return after


def limits_refusal(command: OperatorCommand, limits: Limits) -> CommandDecision | None:
    """The refusal where no plan may have the operator's own limits; None when one may."""
    rate, most = command.throttle_bytes_per_s, command.max_moves
    low, high = limits.execute.throttle_floor, limits.execute.throttle_ceiling
    if rate is not None and not low <= rate <= high:
        (asked, floor), (over, ceiling) = sized_apart(rate, low), sized_apart(rate, high)
        fits = f"{_option(low)} or more, or lower execute.throttle_floor"
        if rate > high:
            asked, fits = over, f"{_option(high)} or less, or raise execute.throttle_ceiling"
        bounds = f"execute.throttle_floor ({floor}/s) and execute.throttle_ceiling ({ceiling}/s)"
        return refused(f"a rate of {asked}/s is not between {bounds}", f"Give --throttle {fits}.")
    if most is not None and most > limits.execute.max_moves_per_cluster:
        bound = limits.execute.max_moves_per_cluster
        return refused(
            f"{most} moves at once are more than execute.max_moves_per_cluster ({bound})",
            f"Give --max-moves {bound} or fewer, or raise execute.max_moves_per_cluster.",
        )
    return None


def _option(rate: int) -> str:
    """A rate as ``--throttle`` reads it, exactly: ``1MB/s``."""
    size, unit = next((one for one in _UNITS if rate % one[0] == 0), (1, ""))
    return f"{rate // size}{unit}/s"


def command_reason(command: OperatorCommand) -> str:
    """The operator's reason in brackets, after a blank; empty without one."""
    return in_brackets(command.reason)


def in_brackets(reason: str) -> str:
    """A reason in brackets, after a blank; empty without one."""
    return f" ({reason})" if reason else ""

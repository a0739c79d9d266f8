"""Attempts at one proposal for tests: their names, and journals in which the first is in a given state."""

from __future__ import annotations

from agent.execute.commands.apply import apply_commands
from agent.journal import plan_entries
from agent.journal.approvals import next_attempt
from agent.journal.commands import CommandVerb, LeaderAnswer
from agent.journal.entries import JournalState
from agent.values.reassignment import Batch, BatchState, PartitionEnd, PartitionEndReason, PlanState
from tests.execute.commands import EMPTY, LIMITS, MINUTE, MOVE, STANDING, TARGET, ask, done, plan
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

FIRST, SECOND, BACK = MOVE.id, f"{MOVE.id}.2", f"{MOVE.id}-back"
NEVER, APPROVED, UNKNOWN, AGAIN = "never approved", "approved", "unknown", "approved again"
MOVED = plan_entries.change_writes(
    Batch(FIRST, 1, (TARGET,), BatchState.CLOSED, ends=(PartitionEnd(tp("t-0"), PartitionEndReason.DONE),))
)
OPEN, ELECTING = PlanState.OPEN, PlanState.ELECTING
CANCELLING, ROLLING = PlanState.CANCELLING, PlanState.ROLLING_BACK
DONE, CANCELLED, FAILED, ROLLED = PlanState.DONE, PlanState.CANCELLED, PlanState.FAILED, PlanState.ROLLED_BACK
A, C, R, P, G = CommandVerb.APPROVE, CommandVerb.CANCEL, CommandVerb.ROLLBACK, CommandVerb.PAUSE, CommandVerb.RESUME
VOID = "void if it has not begun within 60 min"


def journal_with_plan(state: PlanState | str) -> JournalState:
    """A journal in which the first attempt is in that state, with what moved by then."""
    if isinstance(state, PlanState):
        return journal(plan(state), MOVED, at_ms=NOW_MS - MINUTE)
    if state == AGAIN:
        first = journal(plan(PlanState.ROLLED_BACK), at_ms=NOW_MS - MINUTE)
        return after_command(first, CommandVerb.APPROVE)[0]
    return after_command(EMPTY, CommandVerb.APPROVE)[0] if state == APPROVED else EMPTY


def after_command(
    view: JournalState, verb: CommandVerb, name: str = "c0", about: str = FIRST
) -> tuple[JournalState, LeaderAnswer]:
    """The journal after a command, and its answer; as the command line does, it names the attempt that was shown."""
    shown = next_attempt(plan_entries.plans(view), view, FIRST).number
    command = ask(verb, MOVE if about == FIRST else about, id_=name, attempt=shown)
    result = apply_commands([command], view, STANDING, LIMITS, NOW_MS)
    after = journal(*result.writes, at_ms=NOW_MS, view=view)
    return after, done(result, view, name)

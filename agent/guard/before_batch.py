"""May the plan at hand begin its next batch now? Asked again right before each one, as a window may have closed.

What moves goes on: only beginning is held. Order: mode, pause, time of day, budget. What cannot be read holds. Pure.
"""

from __future__ import annotations

from agent.execute.messages import May
from agent.execute.values import Plan
from agent.guard.budgets import batches_left
from agent.guard.ground import Records
from agent.guard.verdict import Hold
from agent.journal.commands import pause_in
from agent.limits import Limits, Mode
from agent.propose.proposal import ProposalKind
from agent.windows import closed


def may_begin(records: Records, limits: Limits, now_ms: int, plan: Plan | None = None) -> May:
    """Whether a new batch may begin, by default for the plan whose turn it is, and why not.

    A batch that takes partitions back is one as well.
    """
    if limits.mode is not Mode.EXECUTE:
        return May(begin=False, sentence=f"mode is {limits.mode.value}, a dry run")
    if records.unreadable is not None:
        return May(begin=False, sentence=f"the plans cannot be read from the journal ({records.unreadable})")
    pause = pause_in(records.view)
    if pause is not None:
        why = f" ({pause.reason})" if pause.reason else ""
        return May(begin=False, sentence=f"{pause.who} paused acting{why}")
    plan = plan or records.turn
    shut = closed(limits.execute.windows, kind_of(plan), now_ms) if plan is not None else None
    if shut is not None:
        return May(begin=False, sentence=shut.sentence)
    left = batches_left("", records.batches, limits.execute, now_ms)
    return May(not isinstance(left, Hold), left.sentence.removeprefix("held: "))


def kind_of(plan: Plan) -> str:
    """What a window calls it: a plan that only changes orders moves no data."""
    moving = any(target.moves_data for target in plan.targets)
    return ProposalKind.REASSIGN.value if moving else ProposalKind.LEADERS.value

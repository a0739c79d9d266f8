"""May a new batch begin now, and of which plan? Asked again right before each one: what was accepted is judged again.

What moves goes on: only beginning is held. Order: mode, pause, budget for all plans; then for each the time of day,
what the settings leave out, the racks that it rests on, and how long its approval lasts. What cannot be read holds.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.execute.messages import May
from agent.execute.whole import whole
from agent.guard.budgets import batches_left
from agent.guard.ground import Records
from agent.journal.commands import pause_in
from agent.values.limits import ExecuteLimits, Limits, Mode, any_of
from agent.values.proposal import ProposalKind
from agent.values.reassignment import BatchState, Plan, PlanState
from agent.values.verdict import Hold
from agent.values.windows import closed
from agent.values.words import lasted

Racks = Mapping[int, str | None]
"""Broker that is up -> its rack by the latest look; None: it is not known."""


def may_begin(records: Records, limits: Limits, now_ms: int, racks: Racks | None = None) -> May:
    """Whether a new batch may begin, and of which of the plans that have not ended none may.

    A batch that takes partitions back is one as well. ``racks`` is None before the first look.
    """
    if (why := _for_all(records, limits, now_ms)) is not None:
        return May(begin=False, sentence=why, lapsed=_lapsed(records, limits.execute, now_ms))
    plans = ((plan, plan_held(plan, limits.execute, now_ms, racks)) for plan in records.unended)
    held = tuple((plan.proposal_id, why) for plan, why in plans if why is not None)
    return May(begin=True, held=held, lapsed=_lapsed(records, limits.execute, now_ms))


def may_begin_plan(plan: Plan, records: Records, limits: Limits, now_ms: int, racks: Racks | None = None) -> May:
    """The same for one plan, which need not be in the journal yet."""
    why = _for_all(records, limits, now_ms) or plan_held(plan, limits.execute, now_ms, racks)
    return May(begin=why is None, sentence=why or "")


def plan_held(plan: Plan, execute: ExecuteLimits, now_ms: int, racks: Racks | None) -> str | None:
    """Why no new batch of that plan may begin now; None when one may."""
    shut = closed(execute.windows, kind_of(plan), now_ms)
    if shut is not None:
        return shut.sentence
    return _left_out(plan, execute) or _in_other_racks(plan, racks)


def kind_of(plan: Plan) -> str:
    """What a window calls it: a plan that only changes orders moves no data."""
    return ProposalKind.REASSIGN.value if whole(plan.targets).moves_data else ProposalKind.LEADERS.value


def _for_all(records: Records, limits: Limits, now_ms: int) -> str | None:
    if limits.mode is not Mode.EXECUTE:
        return f"mode is {limits.mode.value}, a dry run"
    if records.unreadable is not None:
        return f"the plans cannot be read from the journal ({records.unreadable})"
    pause = pause_in(records.view)
    if pause is not None:
        why = f" ({pause.reason})" if pause.reason else ""
        return f"{pause.who} paused acting{why}"
    # The open batch, of which there is one at most, is the one that is asked for: it does not count against itself.
    through = [sent for sent in records.batches if sent.batch.state is BatchState.CLOSED]
    left = batches_left("", through, limits.execute, now_ms)
    return left.sentence.removeprefix("held: ") if isinstance(left, Hold) else None


def _left_out(plan: Plan, execute: ExecuteLimits) -> str | None:
    """The settings may be others than when it was accepted."""
    excluded, included = any_of(execute.exclude_topics), any_of(execute.include_topics)
    for topic in whole(plan.targets).topics:
        if excluded.fullmatch(topic):
            return f"{topic} is excluded (execute.exclude_topics)"
        if execute.include_topics and not included.fullmatch(topic):
            return f"{topic} matches no pattern of execute.include_topics"
    return None


def _in_other_racks(plan: Plan, racks: Racks | None) -> str | None:
    """What it brings was worked out for brokers in these racks. What takes it back does not rest on them."""
    if not plan.racks or plan.state is PlanState.ROLLING_BACK:
        return None
    if racks is None:
        return "the racks of its brokers are unknown until the first look"
    for broker, rack in plan.racks:
        if broker not in racks:
            continue  # it is down, which the executor sees by itself
        if (now := racks[broker]) != rack:
            is_in = f"is in rack {now}" if now is not None else "has an unknown rack"
            return f"broker {broker} {is_in}, and was in rack {rack} when the plan was accepted"
    return None


def _lapsed(records: Records, execute: ExecuteLimits, now_ms: int) -> tuple[tuple[str, str], ...]:
    """Of those of which no batch was sent; what has begun goes on."""
    if records.unreadable is not None:
        return ()
    sent = {one.batch.proposal_id for one in records.batches if one.batch.sendings}
    fresh = (plan for plan in records.unended if plan.state is PlanState.OPEN and plan.proposal_id not in sent)
    found = ((plan.proposal_id, _over(plan, execute, now_ms)) for plan in fresh)
    return tuple((name, why) for name, why in found if why is not None)


def _over(plan: Plan, execute: ExecuteLimits, now_ms: int) -> str | None:
    """Why it is too late for its first batch; None when it is not."""
    if plan.begin_by_ms is None:
        return None
    late_ms = now_ms - plan.begin_by_ms
    if late_ms >= 0:
        return f"void: its approval ended {lasted(late_ms)} ago, and no batch of it was sent"
    if -late_ms > 2 * execute.approval_valid_ms:
        return "void: its approval is of the future by this agent's clock, and no batch of it was sent"
    return None

"""Checks of mode execute: leadership, plans already begun, pauses, excludes, windows; and whether a batch may start.

Order: another leader or an unreadable journal; another cluster; a plan already begun; its size; the group; warm-ups;
a pause; excludes of the settings; the time of day. The check of warm-ups also answers `explain` and names the time of
the next look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from agent.execute.probing_decision import ProbingContext, decide
from agent.execute.probing_values import (
    NO_ANCHORS,
    ProbingDecision,
    ProbingOff,
    ProbingOffReason,
    ProbingTrigger,
    ProbingWait,
    ProbingWaitReason,
    past_triggers,
)
from agent.execute.reassign.messages import BatchPermission
from agent.execute.reassign.state import plan_scope
from agent.execute.trigger_refusals import refusal
from agent.guard.guard_context import Check, GuardContext, GuardJournal, batches_left
from agent.journal.approvals import attempt_text
from agent.journal.commands import pause_in
from agent.journal.entries import JournalState
from agent.journal.record_trust import leader_in
from agent.journal.targets import MOST_TARGETS, estimated_plan_size, no_room_reason, too_large_reason
from agent.values.clock import closed_window
from agent.values.limits import AgentMode, ApproveLimits, ExecuteLimits, Limits, any_of
from agent.values.memory import Memory
from agent.values.number_format import counted, lasted
from agent.values.proposal import CheckPassed, Hold, HoldReason, Proposal, ProposalKind, ProposalReason
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan
from agent.values.snapshot import Snapshot

PROBED = frozenset((ProposalReason.WARMUP_PROMOTABLE,))
"""Reasons that probing decides about."""
_ESTIMATES = (ProbingWaitReason.RESTORING, ProbingWaitReason.REBALANCING)
"""Reasons whose end has no known time."""
_ENDS = {
    ProbingOffReason.SWITCHED_OFF: "this waits until probing.enabled is true",
    ProbingOffReason.NOT_CLASSIC: "this waits until it is a classic Streams application",
    ProbingOffReason.EMPTY: "this waits until it has members and is Stable",
    ProbingOffReason.NO_WARMUPS: "this waits until a process of it has a warm-up",
    ProbingOffReason.NOTHING_WANTED: "this waits until its leader schedules one",
}
"""The change that ends each; time alone does not."""


class ProbingHold(NamedTuple):
    """A trigger is not due; the guard turns it into a verdict."""

    reason: str
    """A value of `ProbingWaitReason` or `ProbingOffReason`."""
    why: str
    until_ms: int | None
    """Epoch milliseconds of its end; None when that is unknown."""


def probing_check(
    proposal: Proposal, fresh: Snapshot, memory: Memory, view: JournalState, limits: Limits
) -> ProbingHold | None:
    """Why a trigger for warm-ups has to wait; None where probing does not hold it, or for other proposals.

    ``view`` is the journal.
    """
    if proposal.kind is not ProposalKind.TRIGGER or proposal.reason not in PROBED:
        return None
    past, _ = past_triggers(view, NO_ANCHORS, taken_ms=fresh.taken_ms, monotonic_ms=fresh.monotonic_ms)
    name = proposal.subject.name
    decision = decide(name, ProbingContext(fresh, memory, limits), past.get(name, ()))
    if isinstance(decision, ProbingTrigger):
        return None
    if isinstance(decision, ProbingOff):
        return ProbingHold(decision.reason.value, f"{decision.sentence}; {_ENDS[decision.reason]}", None)
    return ProbingHold(decision.reason.value, decision.why, _wall_ms(decision, fresh))


def _wall_ms(wait: ProbingWait, fresh: Snapshot) -> int | None:
    if wait.until_ms is None or wait.reason in _ESTIMATES:
        return None
    return fresh.taken_ms + max(0, wait.until_ms - fresh.monotonic_ms)


# Looks for warm-ups: one at the earliest arrival that the readings allow, then one after each quarter of the likely
# remaining time, so each arrival costs a handful. Slow looks are spread, so that they cost a bounded share of the time.

LEAST_MS = 1_000
"""Least time between looks."""
_SPREAD = 10
"""A look that took a second is not repeated within ten."""
_PART = 4


def next_look_ms(
    decisions: Iterable[ProbingDecision], now_ms: int, *, poll_ms: int, took_ms: int = 0, acted: bool = False
) -> int | None:
    """Milliseconds from now until the next look; None where the next poll, every ``poll_ms``, is soon enough.

    ``now_ms``: monotonic time of the decided snapshot; ``took_ms``: duration of a cycle; ``acted``: whether a group was
    triggered in this cycle. A decided trigger that was not sent is held for another reason and needs no look.
    """
    least_ms = max(LEAST_MS, _SPREAD * took_ms)
    soonest_ms = least_ms if acted else min((_wanted_ms(decision, now_ms) for decision in decisions), default=inf)
    delay_ms = max(least_ms, soonest_ms)
    return round(delay_ms) if delay_ms < poll_ms else None


def _wanted_ms(decision: ProbingDecision, now_ms: int) -> float:
    if isinstance(decision, ProbingTrigger | ProbingOff):
        return inf
    until_ms = inf if decision.until_ms is None else float(decision.until_ms - now_ms)
    if decision.reason is not ProbingWaitReason.RESTORING:
        return until_ms
    return min(_arrival_ms(decision), until_ms)


def _arrival_ms(wait: ProbingWait) -> float:
    """Milliseconds until the next arrival is worth a look."""
    if not wait.arriving:
        return inf
    etas = [arrival.eta_s for arrival in wait.arriving]
    return min(max(eta.low, eta.likely / _PART) for eta in etas) * 1_000


def _leading(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed:
    leader = leader_in(context.records.view)
    if not context.leads:
        return Hold(
            proposal.id,
            HoldReason.NOT_LEADING,
            "this agent does not lead: another agent does, or none; it only observes",
        )
    if (why := context.records.unreadable) is not None:
        sentence = f"the plans cannot be read from the journal ({why})"
        return Hold(proposal.id, HoldReason.UNKNOWN, sentence, lasting=True)
    return CheckPassed("this agent leads" if leader is None else f"{leader.agent} on {leader.host} leads")


def _right_cluster(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed:
    wanted, here = context.limits.cluster.id, context.fresh.cluster_id
    leader = leader_in(context.records.view)
    if wanted is not None and here != wanted:
        sentence = f"this is cluster {here}, and cluster.id allows changes of {wanted} only"
        return Hold(proposal.id, HoldReason.WRONG_CLUSTER, sentence)
    if leader is not None and leader.cluster and leader.cluster != here:
        sentence = f"this is cluster {here}, and the journal is of cluster {leader.cluster}"
        return Hold(proposal.id, HoldReason.WRONG_CLUSTER, sentence)
    return CheckPassed(f"this is cluster {here}")


def _not_in_progress(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    """One attempt at a time; an ended one holds no other, and its approval covers no other."""
    if proposal.kind is ProposalKind.TRIGGER:
        return None
    newest = context.records.newest(proposal.id)
    if newest is None:
        return CheckPassed("no attempt has begun")
    if newest.ended:
        ended = attempt_text(newest, context.records.every)
        return CheckPassed(f"{ended}; {context.records.next(proposal.id).number} is the next attempt")
    how = ", paused" if newest.paused else ""
    sentence = f"it is in progress ({newest.state.value}{how}), approved by {newest.approved_by or 'an unknown user'}"
    return Hold(proposal.id, HoldReason.BEGUN, sentence)


def _fits_one_plan(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    """A proposal too large for a plan: an approval of it would have no effect."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return None
    need = estimated_plan_size(proposal)
    if (why := too_large_reason(need)) is not None:
        return Hold(proposal.id, HoldReason.TOO_LARGE, f"{why}; lower proposals.max_moves", lasting=True)
    if (why := no_room_reason(context.records.view, need)) is not None:
        return Hold(proposal.id, HoldReason.TOO_LARGE, why)
    return CheckPassed(f"{counted(need.partitions, 'partition')} of at most {MOST_TARGETS:,} in one plan")


def _group_may_be_triggered(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    if proposal.kind is not ProposalKind.TRIGGER:
        return None
    view, limits = context.records.view, context.limits
    if proposal.reason is ProposalReason.WARMUP_PROMOTABLE and not limits.probing.enabled:
        sentence = "triggers for warm-ups are switched off (probing.enabled)"
        return Hold(proposal.id, HoldReason.GROUP_REFUSED, sentence, lasting=True)
    found = refusal(proposal, context.fresh, context.memory, view, limits, moved=context.records.moved)
    if found is None:
        return CheckPassed(f"no known reason forbids a trigger of group {proposal.subject.name}")
    sentence = f"{found.reason.value}: {found.sentence} ({found.known_by})"
    return Hold(proposal.id, HoldReason.GROUP_REFUSED, sentence, found.until_ms, lasting=found.lasting)


def _worth_a_rebalance(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    """Whether it is time for a trigger for warm-ups (KIP-441); other proposals do not wait for any."""
    if proposal.kind is not ProposalKind.TRIGGER or proposal.reason not in PROBED:
        return None
    held = probing_check(proposal, context.fresh, context.memory, context.records.view, context.limits)
    if held is None:
        return CheckPassed("its warm-ups are worth a rebalance now")
    return Hold(proposal.id, HoldReason.PROBING, held.why, held.until_ms)


def _not_paused(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed:
    pause = pause_in(context.records.view)
    if pause is None:
        return CheckPassed("acting is not paused")
    why = f" ({pause.reason})" if pause.reason else ""
    since = lasted(context.now_ms - pause.since_ms)
    sentence = f"{pause.who} paused acting {since} ago{why}; resume with: rackwise resume"
    return Hold(proposal.id, HoldReason.PAUSED, sentence)


def _not_excluded(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed:
    execute, name = context.limits.execute, proposal.subject.name
    kind = "groups" if proposal.kind is ProposalKind.TRIGGER else "topics"
    include = execute.include_groups if kind == "groups" else execute.include_topics
    exclude = execute.exclude_groups if kind == "groups" else execute.exclude_topics
    if any_of(exclude).fullmatch(name):
        sentence = f"{name} is excluded (execute.exclude_{kind})"
        return Hold(proposal.id, HoldReason.EXCLUDED, sentence)
    if include and not any_of(include).fullmatch(name):
        sentence = f"{name} matches no pattern of execute.include_{kind} ({len(include)})"
        return Hold(proposal.id, HoldReason.EXCLUDED, sentence)
    return CheckPassed(f"{name} is not excluded (patterns: {len(include)} include, {len(exclude)} exclude)")


def _window_open(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed:
    windows = context.limits.windows
    shut = closed_window(windows, proposal.kind.value, context.now_ms)
    if shut is not None:
        never = shut.until_ms is None
        return Hold(proposal.id, HoldReason.OUTSIDE_WINDOW, shut.sentence, shut.until_ms, lasting=never)
    return CheckPassed(
        f"allowed at this time (windows set: {len(windows.allow)} allow, {len(windows.blackout)} black out)"
    )


ACTING_CHECKS: tuple[Check, ...] = (
    _leading,
    _right_cluster,
    _not_in_progress,
    _fits_one_plan,
    _group_may_be_triggered,
    _worth_a_rebalance,
    _not_paused,
    _not_excluded,
    _window_open,
)
"""Gravest first."""

JOURNAL_CHECKS: tuple[Check, ...] = (
    _leading,
    _right_cluster,
    _not_in_progress,
    _fits_one_plan,
    _not_paused,
    _not_excluded,
    _window_open,
)
"""Checks whose answer may change without a look at the cluster."""


# The start of a batch, checked right before each one; running moves go on. Order: mode, pause, budget of all plans;
# then for each plan the window, excludes, racks and the approval's expiry. What is unreadable holds. Pure.

Racks = Mapping[int, str | None]
"""Broker that is up -> its rack by the latest look; None: it is not known."""


def may_begin(records: GuardJournal, limits: Limits, now_ms: int, racks: Racks | None = None) -> BatchPermission:
    """Whether a new batch may begin, and the open plans that are held.

    A rollback's batch is one as well. ``racks`` is None before the first look.
    """
    if (why := _for_all(records, limits, now_ms)) is not None:
        return BatchPermission(begin=False, sentence=why, lapsed=_lapsed(records, limits.approve, now_ms))
    plans = ((plan, plan_held(plan, limits, now_ms, racks)) for plan in records.unended)
    held = tuple((plan.proposal_id, why) for plan, why in plans if why is not None)
    return BatchPermission(begin=True, held=held, lapsed=_lapsed(records, limits.approve, now_ms))


def may_begin_plan(
    plan: ReassignmentPlan, records: GuardJournal, limits: Limits, now_ms: int, racks: Racks | None = None
) -> BatchPermission:
    """Whether a new batch of one plan may begin; the plan need not be in the journal yet."""
    why = _for_all(records, limits, now_ms) or plan_held(plan, limits, now_ms, racks)
    return BatchPermission(begin=why is None, sentence=why or "")


def plan_held(plan: ReassignmentPlan, limits: Limits, now_ms: int, racks: Racks | None) -> str | None:
    """Why no new batch of that plan may begin now; None when one may."""
    shut = closed_window(limits.windows, kind_of(plan), now_ms)
    if shut is not None:
        return shut.sentence
    return _excluded(plan, limits.execute) or _in_other_racks(plan, racks)


def kind_of(plan: ReassignmentPlan) -> str:
    """The plan's kind in windows: ``leaders`` when it only reorders replicas."""
    return ProposalKind.REASSIGN.value if plan_scope(plan.targets).moves_data else ProposalKind.LEADERS.value


def _for_all(records: GuardJournal, limits: Limits, now_ms: int) -> str | None:
    if limits.mode is not AgentMode.EXECUTE:
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
    return left.why if isinstance(left, Hold) else None


def _excluded(plan: ReassignmentPlan, execute: ExecuteLimits) -> str | None:
    """The settings may have changed since it was accepted."""
    excluded, included = any_of(execute.exclude_topics), any_of(execute.include_topics)
    for topic in plan_scope(plan.targets).topics:
        if excluded.fullmatch(topic):
            return f"{topic} is excluded (execute.exclude_topics)"
        if execute.include_topics and not included.fullmatch(topic):
            return f"{topic} matches no pattern of execute.include_topics"
    return None


def _in_other_racks(plan: ReassignmentPlan, racks: Racks | None) -> str | None:
    """A plan depends on the racks of its brokers; a rollback does not."""
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


def _lapsed(records: GuardJournal, approve: ApproveLimits, now_ms: int) -> tuple[tuple[str, str], ...]:
    """(plan, why) of plans without a sent batch whose approval is over; begun plans go on."""
    if records.unreadable is not None:
        return ()
    sent = {one.batch.proposal_id for one in records.batches if one.batch.sendings}
    fresh = (plan for plan in records.unended if plan.state is PlanState.OPEN and plan.proposal_id not in sent)
    found = ((plan.proposal_id, _over(plan, approve, now_ms)) for plan in fresh)
    return tuple((name, why) for name, why in found if why is not None)


def _over(plan: ReassignmentPlan, approve: ApproveLimits, now_ms: int) -> str | None:
    """Why its approval is over before its first batch; None when it is not."""
    if plan.begin_by_ms is None:
        return None
    late_ms = now_ms - plan.begin_by_ms
    if late_ms >= 0:
        return f"its approval ended {lasted(late_ms)} ago, and no batch of it was sent"
    if -late_ms > 2 * approve.valid_ms:
        return "its approval is of the future by this agent's clock, and no batch of it was sent"
    return None

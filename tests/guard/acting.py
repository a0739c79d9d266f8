"""What tests of the guard in mode execute share: worlds with one proposal, and what a journal says of it."""

from __future__ import annotations

from dataclasses import replace

from agent.guard.judge import guard
from agent.journal import plan_entries, triggers
from agent.journal.approvals import ApprovalState, ProposalApproval, plan_hash, written
from agent.journal.entries import JournalState, JournalWrite
from agent.journal.triggers import TriggerEffect, TriggerEntry, TriggerExpectation, TriggerJudgement, TriggerVerdict
from agent.values.clock import TimeWindow
from agent.values.limits import AgentMode, ApprovalRule, Limits, TriggerLimits, TriState
from agent.values.memory import Memory
from agent.values.proposal import Hold, Proposal, Verdict
from agent.values.reassignment import Batch, BatchState, PlanState, ReassignmentPlan, ReassignmentTarget
from agent.values.snapshot import Snapshot
from tests.guard.test_judge import proposals_of
from tests.journals import journal
from tests.limits import with_limits
from tests.plan.test_triggers import copy, warming
from tests.snapshots import NOW_MS, Builder, tp

MINUTE, HOUR = 60_000, 3_600_000
EMPTY_JOURNAL: JournalState = {}
PLAIN = TriggerLimits(transactional=TriState.NO)
CALM = Limits(mode=AgentMode.EXECUTE, trigger=PLAIN)
SMALL = ApprovalRule(name="small", max_bytes=1_000, max_moves=1)
ELSEWHEN = TimeWindow("never-now", "UTC", 0, 1)
"""NOW_MS is in the morning."""


def limits_of(**changes: object) -> Limits:
    return with_limits(CALM, **changes)


def only(built: Builder) -> tuple[Snapshot, Proposal]:
    snapshot = built.snapshot()
    (proposal,) = proposals_of(snapshot)
    return snapshot, proposal


def judged(built: Builder, view: JournalState, **changes: object) -> Verdict:
    """The verdict on the one proposal of a world."""
    snapshot, proposal = only(built)
    (answer,) = guard([proposal], snapshot, Memory(), limits_of(**changes), view)
    return answer


def held(built: Builder, view: JournalState, **changes: object) -> Hold:
    answer = judged(built, view, **changes)
    assert isinstance(answer, Hold), answer
    assert answer.sentence.startswith("held: ")
    return answer


def promoted() -> Builder:
    return warming(copy("p2", "0_1", caught_up=True), next_rebalance_ms=NOW_MS + 8 * MINUTE)


def approval(built: Builder, *, by: str = "ann@desk", age_ms: int = MINUTE, **changes: object) -> JournalWrite:
    _, proposal = only(built)
    given = ProposalApproval(
        proposal.id, plan_hash(proposal), ApprovalState.APPROVED, by, NOW_MS - age_ms, NOW_MS - age_ms + HOUR
    )
    return written(given._replace(**changes))  # type: ignore[arg-type] # a table's row


def triggered(
    name: str, at_ms: int, *, proposal: str = "", verdict: TriggerVerdict | None = None, **changes: object
) -> JournalWrite:
    """A trigger in the journal."""
    empty = TriggerExpectation(generation=None, readers=(), holds={}, moves=(), items=0)
    judgement = TriggerJudgement(verdict, at_ms, "seen") if verdict is not None else None
    entry = TriggerEntry(
        group_id=name,
        proposal_id=proposal or f"p-{at_ms}",
        reason="REBALANCE_IMPROVES",
        intended_ms=at_ms,
        expected=empty,
        effect=TriggerEffect.REBALANCING,
        acted_ms=at_ms,
        judgement=judgement,
    )
    return triggers.outcome(replace(entry, **changes))  # type: ignore[arg-type] # a table's row


def batch(number: int, *, state: BatchState = BatchState.CLOSED, size: int | None = 1_000) -> tuple[JournalWrite, ...]:
    target = ReassignmentTarget(tp("t-0"), "id", (1, 4), (1, 2), size)
    return plan_entries.change_writes(Batch("p-other", number, (target,), state, sendings=1))


def plan_of(built: Builder, state: PlanState, **changes: object) -> tuple[JournalWrite, ...]:
    _, proposal = only(built)
    plan = ReassignmentPlan(
        proposal.id, (ReassignmentTarget(tp("t-0"), "id", (1, 4), (1, 2)),), state, approved_by="ann@desk"
    )
    return plan_entries.change_writes(plan._replace(**changes))  # type: ignore[arg-type] # a table's row


def with_approval(built: Builder, *writes: JournalWrite | tuple[JournalWrite, ...]) -> JournalState:
    return journal(approval(built), *writes, at_ms=NOW_MS)

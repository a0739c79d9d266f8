"""What tests of the guard in mode execute share: worlds with one proposal, and what a journal says of it."""

from __future__ import annotations

from dataclasses import replace

from agent.guard.judge import guard
from agent.journal import moves, triggers
from agent.journal.approvals import Approval, ApprovalState, plan_hash, written
from agent.journal.triggers import Effect, Expectation, Judgement, TriggerEntry, TriggerVerdict
from agent.values.journal import View, Write
from agent.values.limits import ApprovalRule, Limits, Mode, Told, TriggerLimits
from agent.values.memory import Memory
from agent.values.proposal import Proposal
from agent.values.reassignment import Batch, BatchState, Plan, PlanState, Target
from agent.values.snapshot import Snapshot
from agent.values.verdict import Hold, Verdict
from agent.values.windows import Window
from tests.journals import journal
from tests.limits import with_limits
from tests.plan.test_triggers import copy, warming
from tests.snapshots import NOW_MS, Builder, tp
from tests.test_guard import proposals_of

MINUTE, HOUR = 60_000, 3_600_000
NOBODY: View = {}
PLAIN = TriggerLimits(transactional=Told.NO)
CALM = Limits(mode=Mode.EXECUTE, trigger=PLAIN)
SMALL = ApprovalRule(name="small", max_bytes=1_000, max_moves=1)
ELSEWHEN = Window("never-now", "UTC", 0, 1)
"""NOW_MS is in the morning."""


def limits_of(**changes: object) -> Limits:
    return with_limits(CALM, **changes)


def only(built: Builder) -> tuple[Snapshot, Proposal]:
    snapshot = built.snapshot()
    (proposal,) = proposals_of(snapshot)
    return snapshot, proposal


def judged(built: Builder, view: View, **changes: object) -> Verdict:
    """The verdict on the one proposal of a world."""
    snapshot, proposal = only(built)
    (answer,) = guard([proposal], snapshot, Memory(), limits_of(**changes), view)
    return answer


def held(built: Builder, view: View, **changes: object) -> Hold:
    answer = judged(built, view, **changes)
    assert isinstance(answer, Hold), answer
    assert answer.sentence.startswith("held: ")
    return answer


def promoted() -> Builder:
    return warming(copy("p2", "0_1", caught_up=True), next_rebalance_ms=NOW_MS + 8 * MINUTE)


def approval(built: Builder, *, by: str = "ann@desk", age_ms: int = MINUTE, **changes: object) -> Write:
    _, proposal = only(built)
    given = Approval(
        proposal.id, plan_hash(proposal), ApprovalState.APPROVED, by, NOW_MS - age_ms, NOW_MS - age_ms + HOUR
    )
    return written(given._replace(**changes))  # type: ignore[arg-type] # a table's row


def triggered(
    name: str, at_ms: int, *, proposal: str = "", verdict: TriggerVerdict | None = None, **changes: object
) -> Write:
    """A trigger in the journal."""
    empty = Expectation(generation=None, readers=(), holds={}, moves=(), items=0)
    judgement = Judgement(verdict, at_ms, "seen") if verdict is not None else None
    entry = TriggerEntry(
        group_id=name,
        proposal_id=proposal or f"p-{at_ms}",
        reason="REBALANCE_IMPROVES",
        intended_ms=at_ms,
        expected=empty,
        effect=Effect.REBALANCING,
        acted_ms=at_ms,
        judgement=judgement,
    )
    return triggers.outcome(replace(entry, **changes))  # type: ignore[arg-type] # a table's row


def batch(number: int, *, state: BatchState = BatchState.CLOSED, size: int | None = 1_000) -> tuple[Write, ...]:
    target = Target(tp("t-0"), "id", (1, 4), (1, 2), size)
    return moves.write(Batch("p-other", number, (target,), state, sendings=1))


def plan_of(built: Builder, state: PlanState, **changes: object) -> tuple[Write, ...]:
    _, proposal = only(built)
    plan = Plan(proposal.id, (Target(tp("t-0"), "id", (1, 4), (1, 2)),), state, approved_by="ann@desk")
    return moves.write(plan._replace(**changes))  # type: ignore[arg-type] # a table's row


def with_approval(built: Builder, *writes: Write | tuple[Write, ...]) -> View:
    return journal(approval(built), *writes, at_ms=NOW_MS)

"""An allowed reassignment becomes a plan, which the mover takes over."""

from __future__ import annotations

from agent.act.mover import Mover
from agent.execute.accepting import NotCarriedOut, plan_of
from agent.journal.room import need_of, too_large
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot
from agent.values.verdict import Allow, Outcome
from agent.values.words import counted


def hand_over(  # noqa: PLR0917 (what is handed over, and when)
    mover: Mover, proposal: Proposal, allow: Allow, fresh: Snapshot, now_ms: int, begin_by_ms: int
) -> Outcome:
    """Give the plan to the mover, to begin no later than ``begin_by_ms`` (ms since 1970). Raises NotCarriedOut."""
    plan = plan_of(
        proposal,
        fresh,
        approved_by=allow.by,
        reason=allow.reason,
        throttle_bytes_per_s=allow.throttle_bytes_per_s,
        max_moves=allow.max_moves,
        begin_by_ms=begin_by_ms,
    )
    if (why := too_large(need_of(plan))) is not None:
        raise NotCarriedOut(f"{proposal.id}: {why}")
    mover.accept(plan._replace(proposal_id=allow.plan or proposal.id, order=now_ms))
    sentence = f"begun: {counted(len(plan.targets), 'partition')}, approved by {allow.by}"
    return Outcome(proposal.id, done=True, sentence=sentence)

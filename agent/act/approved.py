"""The proposals that were approved and wait, also while one planning does not propose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.act.reassign.mover import Mover
from agent.execute.reassign.accepting import NotCarriedOut, plan_of
from agent.guard.approving import still_rests
from agent.journal.approvals import Approval, approvals, plan_hash
from agent.journal.room import need_of, too_large
from agent.values.journal import View
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot
from agent.values.verdict import Allow, Outcome
from agent.values.words import counted


class Approved:
    """Remembers them from planning to planning; a new leader knows those that it has proposed itself."""

    def __init__(self) -> None:
        self._by_hash: Mapping[str, Proposal] = {}

    def planned(self, view: View, proposals: Iterable[Proposal]) -> None:
        """After each planning."""
        wanted = {one.plan_hash for one in approvals(view)}
        every = {plan_hash(one): one for one in (*self._by_hash.values(), *proposals)}
        self._by_hash = {digest: one for digest, one in every.items() if digest in wanted}

    def rests(self, approval: Approval, snapshot: Snapshot) -> bool:
        """Whether what was approved may rest on what is there; also true where it is not known what that is."""
        proposal = self._by_hash.get(approval.plan_hash)
        return proposal is None or still_rests(proposal, snapshot)


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

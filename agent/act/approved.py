"""The proposals that were approved and wait, also while one planning does not propose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.guard.resting import still_rests
from agent.journal.approvals import Approval, approvals, plan_hash
from agent.values.journal import View
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot


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

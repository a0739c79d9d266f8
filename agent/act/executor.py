"""Executor interface: carries out the allowed actions and no others, and none in a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot
from agent.values.verdict import Allow, Outcome


class ProposalExecutor(Protocol):
    """What can change a cluster."""

    def carry_out(self, proposal: Proposal, allow: Allow, fresh: Snapshot) -> Outcome:
        """Do what the proposal says, or say why not; ``fresh`` is what it was allowed by. Raises FencedOut."""


class NoopExecutor:
    """Executor of observe mode: changes nothing."""

    def carry_out(self, proposal: Proposal, allow: Allow, fresh: Snapshot) -> Outcome:
        """Say that nothing was done."""
        del allow, fresh
        return Outcome(proposal.id, done=False, sentence="not done: this agent observes and proposes, it does not act")


def act(hands: ProposalExecutor, allowed: Sequence[tuple[Proposal, Allow]], fresh: Snapshot) -> tuple[Outcome, ...]:
    """One outcome for each allowed proposal, in their order."""
    return tuple(hands.carry_out(proposal, allow, fresh) for proposal, allow in allowed)

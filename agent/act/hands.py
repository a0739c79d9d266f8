"""act: carry out what the guard allowed, and nothing else.

Invariant: what is not in ``allowed`` is never touched; nothing is allowed in a dry run. This release has no hands: the
guard allows nothing in any mode, and should it ever, the outcome says that nothing was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from agent.propose.proposal import Proposal


class Outcome(NamedTuple):
    """What became of one allowed proposal."""

    proposal_id: str
    done: bool
    sentence: str


class Hands(Protocol):
    """What can change a cluster."""

    def carry_out(self, proposal: Proposal) -> Outcome:
        """Do what the proposal says, or say why not."""


class NoHands:
    """Changes nothing."""

    def carry_out(self, proposal: Proposal) -> Outcome:
        """Say that nothing was done."""
        return Outcome(proposal.id, done=False, sentence="not done: this release watches and proposes, it does not act")


def act(hands: Hands, allowed: Sequence[Proposal]) -> tuple[Outcome, ...]:
    """One outcome for each allowed proposal, in their order."""
    return tuple(hands.carry_out(proposal) for proposal in allowed)

"""Does the ground still hold on which a proposal was approved? It does until it was seen to be another.

A planning that did not see everything proposes less, and its proposals are not the same: that voids nothing. Pure.
"""

from __future__ import annotations

from agent.propose.rests import Rests
from agent.values.memo import Memo
from agent.values.observation import Gap
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot


def still_rests(proposal: Proposal, fresh: Snapshot) -> bool:
    """False when what the proposal rests on was seen, and is not what it was."""
    if any(_concerns(gap, proposal, fresh) for gap in fresh.gaps):
        return True
    now = Rests(fresh, Memo()).hash(proposal.reason, proposal.subject, proposal.before, proposal.after)
    return now == proposal.snapshot_hash


def _concerns(gap: Gap, proposal: Proposal, fresh: Snapshot) -> bool:
    """Whether it may be about something that the proposal rests on: any gap but one of another topic, or group."""
    kind, name = proposal.subject.kind, proposal.subject.name
    others = fresh.groups if kind == "group" else fresh.topics
    return gap.subject == name or gap.subject not in others

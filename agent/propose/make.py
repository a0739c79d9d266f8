"""Makes the proposals of a cycle: one for each part of the plan.

Invariants: the same snapshot gives byte-same proposals; an id depends only on the change and its preconditions, so it
survives cycles, restarts and a second agent; unknown is never zero.
"""

from __future__ import annotations

from agent.propose.advice import advice
from agent.propose.groups import rebalances
from agent.propose.propose_context import propose_context, with_absences
from agent.propose.replicas import placement
from agent.values.assessment import DetectionResult
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import Plan
from agent.values.proposal import Proposal, ProposalKind
from agent.values.snapshot import Snapshot


def propose(
    snapshot: Snapshot, plan: Plan, detection: DetectionResult, limits: Limits, memo: Memo | None
) -> tuple[Proposal, ...]:
    """All proposals of a cycle, sorted by kind, subject and reason."""
    context = propose_context(snapshot, detection, limits, memo)
    others = [placement(part, context) for part in plan.placements]
    others += [advice(part, context) for part in plan.advice]
    others.sort(key=lambda p: (p.kind, p.subject, p.reason.name, p.id))
    made = (
        *[proposal for proposal in others if proposal.kind < ProposalKind.TRIGGER],
        *rebalances(plan.triggers, context),  # by group already, one each: there can be thousands
        *[proposal for proposal in others if proposal.kind > ProposalKind.TRIGGER],
    )
    return with_absences(made, context)

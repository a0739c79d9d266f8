"""docs/reference/proposals.md, read off the code. Write it anew: python -m tests.docs.proposal_reference"""

from __future__ import annotations

from collections.abc import Mapping

from agent.values.plan import Unplanned
from agent.values.proposal import ProposalKind, ProposalReason
from tests.docs.reference_pages import ROOT, member_docs, table, write

HEAD = """\
# Proposals

A proposal is one change: before, after, moves, predicted effect, lower bound, evidence, and when it expires. Its id
is a digest of what it changes and of the state that it rests on, so two agents that see the same give the same id,
and an approval is for exactly one plan. Its document: [proposal.v1.json](../schemas/proposal.v1.json).
"""
KIND_OF: Mapping[str, ProposalKind] = {
    "MEND_RACK_SPREAD": ProposalKind.REASSIGN,
    "LEADERS_TO_READERS": ProposalKind.LEADERS,
    "LEADERS_EVEN": ProposalKind.LEADERS,
    "WARMUP_PROMOTABLE": ProposalKind.TRIGGER,
    "REBALANCE_IMPROVES": ProposalKind.TRIGGER,
}
"""Reason -> the kind of its proposals; all others advise."""
_CARRIED_OUT = {
    ProposalKind.REASSIGN: "mode `execute`, approved: throttled batches, see [moves](../acting-moves.md)",
    ProposalKind.LEADERS: "mode `execute`, approved: replica order, then the preferred election",
    ProposalKind.TRIGGER: "mode `execute`, within its budgets, see [rebalances](../acting-triggers.md)",
    ProposalKind.ADVISE: "never by rackwise: the owner of the client or broker changes the line",
}


def page() -> str:
    """Kinds, reasons, and why a change is left out."""
    docs = member_docs(ROOT / "agent" / "values" / "proposal.py", "ProposalKind")
    kinds = [(f"`{kind.value}`", docs[kind.name], _CARRIED_OUT[kind]) for kind in ProposalKind]
    reasons = [
        (f"`{one.name.lower().replace('_', '-')}`", one.value, f"`{KIND_OF.get(one.name, ProposalKind.ADVISE).value}`")
        for one in ProposalReason
    ]
    left_out = [(one.value,) for one in Unplanned]
    return "\n".join(
        [
            HEAD, "## Kinds", "", table(("kind", "what it is", "carried out"), kinds), "",
            "## Reasons", "", "Rules (`approve.rules`) name a reason as in the first column.", "",
            table(("reason", "sentence", "kind"), reasons), "",
            "## Why a change is left out", "",
            "A planning counts what it left out (`rackwise_unplanned`); `rackwise explain` names it.", "",
            table(("reason",), left_out), "",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    write("proposals.md", page())

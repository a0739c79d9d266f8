"""One proposal with its changed rows, the guard's verdict, its rules, and its history. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from agent.documents.explanation import explained_rows
from agent.documents.journal import history_rows
from agent.journal.approvals import plan_hash
from agent.propose.codec import proposal_to_json
from agent.values.journal import JournalState
from agent.values.proposal import Proposal
from agent.values.reassignment import attempt
from agent.values.verdict import Allow, Hold, Verdict

if TYPE_CHECKING:
    from agent.documents.proposals import HistoryRow, ProposalChange, ProposalDetailsDocument, VerdictRow
    from agent.propose.codec import ProposalDocument
    from agent.simulate.evaluation import StageEvaluation


def proposal_rows(look: StageEvaluation) -> list[ProposalDocument]:
    """One row per proposal, as ``plan`` prints them."""
    return [cast("ProposalDocument", proposal_to_json(one)) for one in look.proposals]


def proposal_details(
    proposal: Proposal, look: StageEvaluation, verdict: Verdict | None, view: JournalState | None, now_ms: int
) -> ProposalDetailsDocument:
    """One proposal. ``view``: the journal, where it could be read; ``now_ms``: epoch milliseconds."""
    return {
        "proposal": cast("ProposalDocument", proposal_to_json(proposal)),
        "plan_hash": plan_hash(proposal),
        "expired": now_ms >= proposal.expires_ms,
        "changes": changes(proposal),
        "verdict": None if verdict is None else verdict_row(verdict),
        "rules": explained_rows(proposal.id, look, view),
        "history": None if view is None else history_of(proposal.id, view),
    }


def changes(proposal: Proposal) -> list[ProposalChange]:
    """The rows that differ, before and after; a row that is new or goes has an empty side."""
    before = {row.key: list(row.value) for row in proposal.before}
    after = {row.key: list(row.value) for row in proposal.after}
    return [
        {"key": key, "before": before.get(key, []), "after": after.get(key, [])}
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    ]


def history_of(proposal_id: str, view: JournalState) -> list[HistoryRow]:
    """What the journal says of every attempt at a proposal, the latest last."""
    return [row for row in history_rows(view) if _is_about(row["about"], proposal_id)]


def _is_about(about: str | None, proposal_id: str) -> bool:
    plan = (about or "").partition(" of group ")[0]
    return bool(plan) and attempt(plan).of == attempt(proposal_id).of


def verdict_rows(verdicts: Mapping[str, Verdict]) -> list[VerdictRow]:
    """One row for each proposal that the guard was asked about."""
    return [verdict_row(one) for one in verdicts.values()]


def verdict_row(verdict: Verdict) -> VerdictRow:
    """What the guard said of one proposal."""
    allowed = isinstance(verdict, Allow)
    return {
        "proposal": verdict.proposal_id,
        "verdict": "allow" if allowed else "hold" if isinstance(verdict, Hold) else "refuse",
        "reason": None if isinstance(verdict, Allow) else verdict.reason.value,
        "sentence": verdict.sentence,
        "by": verdict.by or None if isinstance(verdict, Allow) else None,
        "until_ms": verdict.until_ms if isinstance(verdict, Allow | Hold) else None,
        "lasting": not verdict.passes if isinstance(verdict, Hold) else None,
    }

"""Documents of ``explain`` and of one proposal. Pure.

``explain``: each rule and each check of the guard about a subject, with its numbers. A proposal: its changed rows,
verdict, rules and history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from agent.documents.journal import history_of_proposal
from agent.execute.probing_decision import ProbingContext
from agent.execute.probing_values import NO_ANCHORS, past_triggers
from agent.explain.explain import about_probing, explain
from agent.guard.judge import explained
from agent.journal.approvals import plan_hash
from agent.journal.entries import JournalState
from agent.propose.codec import proposal_to_json
from agent.values.limits import AgentMode
from agent.values.plan import ExplainedRule, RuleAnswer
from agent.values.proposal import Allow, Hold, Proposal, Verdict

if TYPE_CHECKING:
    from agent.documents.plan import ExplainedRow
    from agent.documents.proposals import ProposalChange, ProposalDetailsDocument, VerdictRow
    from agent.propose.codec import ProposalDocument
    from agent.simulate.evaluation import StageEvaluation


NO_JOURNAL_IN_FILE = "a telemetry file holds no journal"
"""Why the journal was not read, beside a recorded look."""


def explained_rows(
    subject: str, look: StageEvaluation, view: JournalState | None, unread: str = "the journal could not be read"
) -> list[ExplainedRow]:
    """Every rule that proposes or rejects a change of the subject, the guard's checks, and what probing says.

    ``view``: the journal where `needs_journal` says so and it was read; ``unread``: why it was not.
    """
    return [*rule_rows(subject, look), *check_rows(subject, look, view, unread)]


def rule_rows(subject: str, look: StageEvaluation) -> list[ExplainedRow]:
    """Every rule that proposes or rejects a change of the subject, with the figures of its proposals."""
    rules = explain(subject, look.snapshot, look.detection, look.plan, look.proposals, look.limits)
    return [_row(one) for one in rules]


def check_rows(
    subject: str, look: StageEvaluation, view: JournalState | None, unread: str = "the journal could not be read"
) -> list[ExplainedRow]:
    """The guard's checks of the subject's proposals, and what probing says; ``view`` and ``unread`` as above."""
    return [_row(one) for one in _guarded(subject, look, view, unread)]


def needs_journal(subject: str, look: StageEvaluation) -> bool:
    """Whether checks of the guard about this subject read the journal."""
    asked = subject.startswith("group/") or bool(_meant(subject, look))
    return asked and look.limits.mode is AgentMode.EXECUTE


def _row(rule: ExplainedRule) -> ExplainedRow:
    value = list(rule.value) if isinstance(rule.value, tuple) else rule.value
    return {
        "about": rule.about,
        "rule": rule.rule,
        "answer": rule.answer.value,
        "sentence": rule.sentence,
        "value": value,
    }


def _meant(subject: str, look: StageEvaluation) -> list[Proposal]:
    """The proposals of a subject, or the one with this id."""
    kind, _, name = subject.partition("/")
    name = name.partition("/")[0] if kind == "topic" else name
    return [p for p in look.proposals if subject == p.id or (p.subject.kind, p.subject.name) == (kind, name)]


def _guarded(subject: str, look: StageEvaluation, view: JournalState | None, unread: str) -> list[ExplainedRule]:
    """What every check of the guard says of the proposals about a subject, as if this agent led; and probing's say."""
    rows = [row for one in _meant(subject, look) for row in _checks(one, look, view, unread)]
    kind, _, name = subject.partition("/")
    if kind == "group":
        taken_ms, monotonic_ms = look.snapshot.taken_ms, look.snapshot.monotonic_ms
        past, _ = past_triggers(view or {}, NO_ANCHORS, taken_ms=taken_ms, monotonic_ms=monotonic_ms)
        rows += about_probing(name, ProbingContext(look.snapshot, look.before, look.limits), past.get(name, ()))
    return rows


def _checks(
    proposal: Proposal, look: StageEvaluation, view: JournalState | None, unread: str
) -> Iterable[ExplainedRule]:
    """Without a journal the checks that need it are unknown, and one row says why it was not read."""
    rows = explained(proposal, look.snapshot, look.before, look.limits, view)
    if view is not None or not any(row.rule == "leading" for row in rows):
        return rows
    why = unread
    if unread != NO_JOURNAL_IN_FILE and look.limits.mode is not AgentMode.EXECUTE:
        why = f"the journal is read in mode execute only, and the mode is {look.limits.mode.value}"
    sentence = f"{why}: approvals, budgets, pauses and earlier attempts are unknown"
    row = ExplainedRule(proposal.id, "journal", RuleAnswer.UNKNOWN, sentence)
    return (*(one for one in rows if one.rule != "leading"), row)


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
        "history": None if view is None else history_of_proposal(view, proposal.id),
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

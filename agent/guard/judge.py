"""Judges proposals: the first check that does not pass, gravest first, gives the verdict. Pure.

Order: the cluster (`cluster_checks`); then, in mode execute, the journal and settings (`execute_checks`), gain
(`cluster_checks` too), budgets and approval. `Hold` may end by itself, `Refuse` is final for this proposal.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.guard.approval_checks import approved
from agent.guard.cluster_checks import CHECKS, WORTH_CHECKS
from agent.guard.execute_checks import ACTING_CHECKS, JOURNAL_CHECKS
from agent.guard.guard_context import BUDGET_CHECKS, EMPTY, Check, GuardContext, GuardJournal
from agent.journal.leader import in_past
from agent.memory.rack_history import sightings, unsteady
from agent.propose.preconditions import ProposalPreconditions
from agent.values.journal import JournalState
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory, absences
from agent.values.plan import ExplainedRule, RuleAnswer
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot
from agent.values.verdict import Allow, CheckPassed, Hold, Verdict

ALL_CHECKS: tuple[Check, ...] = (*CHECKS, *ACTING_CHECKS, *WORTH_CHECKS, *BUDGET_CHECKS)
"""Gravest first; approval comes after them."""
APPROVED = "approved"
"""The name of that last check."""
_LEADING = ACTING_CHECKS[0]
"""Where it holds there is no journal, so earlier plans and approvals are unknown."""
_WITHOUT_JOURNAL = WORTH_CHECKS[-1:]
"""The later check that needs no journal: the pay-back of copies."""


def guard(  # noqa: PLR0917 (what the cycle has, then what only an agent that leads has)
    proposals: Sequence[Proposal],
    fresh: Snapshot,
    memory: Memory,
    limits: Limits,
    view: JournalState | None = None,
    now_ms: int | None = None,
) -> tuple[Verdict, ...]:
    """One verdict per proposal, in their order.

    ``view`` is the journal's state, None for an agent that does not lead; ``now_ms`` is epoch milliseconds, by default
    the snapshot's.
    """
    context = guard_context(fresh, memory, limits, view, now_ms)
    verdicts: list[Verdict] = []
    for proposal in proposals:
        verdict = _judge(proposal, context, ALL_CHECKS)
        verdicts.append(verdict)
        if isinstance(verdict, Allow):
            context = context._replace(granted=(*context.granted, proposal))
    return tuple(verdicts)


def recheck(proposal: Proposal, fresh: Snapshot, limits: Limits, view: JournalState | None, now_ms: int) -> Verdict:
    """The verdict on a just allowed proposal by the journal's present state.

    Called right before its execution: operators may have paused acting, cancelled or approved otherwise since.
    """
    context = guard_context(fresh, Memory(), limits, view, now_ms)
    return _judge(proposal, context, JOURNAL_CHECKS)


def explained(
    proposal: Proposal, fresh: Snapshot, memory: Memory, limits: Limits, view: JournalState | None = None
) -> tuple[ExplainedRule, ...]:
    """The answers of all checks about one proposal, with their numbers, in their order; also in a dry run.

    Without a journal (``view`` is None) checks that need it are left out after ``leading``, whose result has that.
    """
    context = guard_context(fresh, memory, limits, view)
    lines: list[ExplainedRule] = []
    readable = True
    for check in ALL_CHECKS:
        if not readable and check not in _WITHOUT_JOURNAL:
            continue
        answer = check(proposal, context)
        if answer is not None:
            lines.append(_line(proposal.id, check_name(check), answer))
        readable = readable and not (check is _LEADING and isinstance(answer, Hold))
    return (*lines, _line(proposal.id, APPROVED, approved(proposal, context))) if readable else tuple(lines)


def check_name(check: Check) -> str:
    """What is true where it holds, such as ``not paused``: the name of its function in words."""
    return getattr(check, "__name__", "check").strip("_").replace("_", " ")


def guard_context(
    fresh: Snapshot, memory: Memory, limits: Limits, view: JournalState | None, now_ms: int | None = None
) -> GuardContext:
    """The context of all checks of one round."""
    steady = unsteady(sightings(memory, fresh), fresh.monotonic_ms, limits)
    at_ms = fresh.taken_ms if now_ms is None else now_ms
    records = GuardJournal(EMPTY if view is None else in_past(view, at_ms))
    leads, absent = view is not None, absences(memory, fresh)
    return GuardContext(
        fresh, memory, limits, ProposalPreconditions(fresh, Memo()), steady, records, leads, at_ms, absences=absent
    )


def _judge(proposal: Proposal, context: GuardContext, checks: Sequence[Check]) -> Verdict:
    for check in checks:
        answer = check(proposal, context)
        if answer is not None and not isinstance(answer, CheckPassed):
            return answer
    return approved(proposal, context)


def _line(about: str, rule: str, answer: Verdict | CheckPassed) -> ExplainedRule:
    """``wait`` only for what can come without a change of settings."""
    match answer:
        case CheckPassed() | Allow():
            return ExplainedRule(about, rule, RuleAnswer.YES, answer.sentence)
        case Hold():
            word = RuleAnswer.WAIT if answer.passes else RuleAnswer.NO
            return ExplainedRule(about, rule, word, answer.sentence.removeprefix("held: "))
        case _:
            return ExplainedRule(about, rule, RuleAnswer.NO, answer.sentence.removeprefix("refused: "))

"""Judges proposals: the first check that does not pass, gravest first, gives the verdict. Pure.

Order: the cluster (`cluster_checks`); then, in mode execute, the journal and settings (`execute_checks`), gain
(`cluster_checks` too), budgets and approval. `Hold` may end by itself, `Refuse` is final for this proposal.

Approval is a person's approval or refusal of this very plan; the default rule for triggers; then the settings' rules by
name. The first that holds is recorded. An unknown figure is above every upper bound and below every lower one, so no
rule approves it. An approval is for one attempt; a second attempt needs a person, because a rule would at once redo a
rollback or a cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.execute.commands.command_context import ExpectedVerdict
from agent.guard.cluster_checks import CHECKS, WORTH_CHECKS, may_hide_preconditions
from agent.guard.execute_checks import ACTING_CHECKS, JOURNAL_CHECKS
from agent.guard.guard_context import BUDGET_CHECKS, EMPTY, Check, GuardContext, GuardJournal
from agent.journal.approvals import ApprovalState, ProposalApproval, approval_of, plan_hash
from agent.journal.entries import JournalState
from agent.journal.record_trust import in_past
from agent.memory.rack_history import sightings, unsteady
from agent.propose.propose_context import ProposalPreconditions
from agent.values.limits import ApprovalRule, Limits, any_of
from agent.values.memo import Memo
from agent.values.memory import Memory, absences
from agent.values.number_format import counted, lasted, sized, sized_apart, usd
from agent.values.plan import ExplainedRule, RuleAnswer
from agent.values.proposal import (
    Allow,
    CheckPassed,
    Hold,
    HoldReason,
    PlanAttempt,
    Proposal,
    ProposalKind,
    Verdict,
    saved_bytes_per_s,
    saved_usd_per_day,
)
from agent.values.snapshot import Snapshot

DEFAULT_RULE = "triggers-within-budget"
_APPROVE = "rackwise proposals approve"


def approved(proposal: Proposal, context: GuardContext) -> Allow | Hold:
    """The person or rule that approves it, or a hold with the reason."""
    # Only plans are attempts: a group that is triggered again has checks of its own.
    attempt = PlanAttempt(proposal.id) if proposal.kind is ProposalKind.TRIGGER else context.records.next(proposal.id)
    given = approval_of(context.records.view, str(attempt))
    cancelled = given is not None and given.is_no_to(plan_hash(proposal))
    if given is not None and given.rule is not None:
        given = given if cancelled else None  # only a record: a rule is asked anew, as it may be another by now
    why_not = _no_person(given, proposal, context.now_ms)
    if given is not None and why_not is None:
        return Allow(
            proposal.id,
            f"allowed: {given.sentence or f'approved by {given.by}'}",
            by=given.by,
            throttle_bytes_per_s=given.throttle_bytes_per_s,
            max_moves=given.max_moves,
            reason=given.reason,
            attempt=attempt,
            until_ms=given.expires_ms,
        )
    if cancelled:
        sentence = f"{why_not}, and no rule overrules that; approve it with: {_APPROVE} {proposal.id}"
        return Hold(proposal.id, HoldReason.NEEDS_APPROVAL, sentence)
    if proposal.kind is ProposalKind.TRIGGER and context.limits.approve.triggers:
        return _allowed(
            proposal, DEFAULT_RULE, "triggers within budget need no approval by a person (approve.triggers)"
        )
    against: list[str] = []
    asked = context.limits.approve.rules
    if asked and attempt.number > 1:
        against.append("rules approve first attempts only")
        asked = ()
    for rule in asked:
        bound = broken(rule, proposal)
        if bound is None:
            return _allowed(proposal, rule.name, kept(rule, proposal))
        against.append(f"rule {rule.name}: {bound}")
    rules = f"; {'; '.join(against)}" if against else ""
    which = f"attempt {attempt.number}: " if attempt.number > 1 else ""
    sentence = f"{which}{why_not}{rules}; approve it with: {_APPROVE} {proposal.id}"
    return Hold(proposal.id, HoldReason.NEEDS_APPROVAL, sentence)


def broken(rule: ApprovalRule, proposal: Proposal) -> str | None:
    """The first bound of a rule that a proposal breaks; None when it breaks none."""
    return next(_broken(rule, proposal), None)


def kept(rule: ApprovalRule, proposal: Proposal) -> str:
    """The figures of a proposal within a rule's bounds."""
    predicted = proposal.predicted
    figures = [
        f"{predicted.moves:,} of {counted(rule.max_moves, 'move')}" if rule.max_moves is not None else "",
        f"{' of '.join(_sizes(predicted.bytes_to_move, rule.max_bytes))} to copy" if rule.max_bytes is not None else "",
        "no preferred leader changes" if rule.keep_leaders else "",
        f"{_usd(saved_usd_per_day(predicted))} a day saved" if rule.min_gain_usd_per_day is not None else "",
        f"{_rate(saved_bytes_per_s(predicted))} saved" if rule.min_gain_bytes_per_s is not None else "",
        f"{proposal.subject} matches" if rule.topics or rule.groups else "",
        f"the reason is {reason_word(proposal)}" if rule.reasons else "",
    ]
    return ", ".join(one for one in figures if one)


def new_leaders(proposal: Proposal) -> int:
    """Partitions whose preferred leader it changes."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return 0
    before = {row.key: row.value[:1] for row in proposal.before}
    return sum(before.get(row.key) != row.value[:1] for row in proposal.after)


def _broken(rule: ApprovalRule, proposal: Proposal) -> Iterator[str]:
    predicted, subject = proposal.predicted, proposal.subject
    patterns, others = (rule.groups, rule.topics) if subject.kind == "group" else (rule.topics, rule.groups)
    if proposal.kind.value not in rule.kinds:
        yield f"its kinds do not include {proposal.kind.value}"
    if rule.reasons and reason_word(proposal) not in rule.reasons:
        yield f"its reasons do not include {reason_word(proposal)}"
    if (others and not patterns) or (patterns and not any_of(patterns).fullmatch(subject.name)):
        yield f"its patterns do not match {subject}"
    if rule.max_moves is not None and predicted.moves > rule.max_moves:
        yield f"{counted(predicted.moves, 'move')}, and at most {rule.max_moves} are allowed"
    if rule.max_bytes is not None and (predicted.bytes_to_move is None or predicted.bytes_to_move > rule.max_bytes):
        size, most = _sizes(predicted.bytes_to_move, rule.max_bytes)
        yield f"{size} to copy, and at most {most} is allowed"
    if rule.keep_leaders and (changed := new_leaders(proposal)):
        yield f"{counted(changed, 'preferred leader')} {'changes' if changed == 1 else 'change'}"
    dollars, rate = saved_usd_per_day(predicted), saved_bytes_per_s(predicted)
    if (least := rule.min_gain_usd_per_day) is not None and (dollars is None or dollars < least):
        yield f"{_usd(dollars)} a day saved, and at least {usd(least)} is required"
    if (least := rule.min_gain_bytes_per_s) is not None and (rate is None or rate < least):
        saved, needed = _sizes(rate, least)
        yield f"{saved if rate is None else f'{saved}/s'} saved, and at least {needed}/s is required"


def reason_word(proposal: Proposal) -> str:
    """The reason as rules name it: ``mend-rack-spread``."""
    return proposal.reason.name.lower().replace("_", "-")


def _no_person(given: ProposalApproval | None, proposal: Proposal, now_ms: int) -> str | None:
    """Why no person's approval holds; None when one does."""
    if given is None:
        return "it is not approved"
    if given.plan_hash != (hashed := plan_hash(proposal)):
        cancelled = "a person cancelled this plan, and what came after it under this id is of other plans"
        other = f"{given.by} approved another plan under this id, and that approval is void"
        return cancelled if given.is_no_to(hashed) else other
    match given.state:
        case ApprovalState.VOID:
            why = given.sentence
            return f"it was {why}" if given.vetoed else f"its approval is {given.word} ({why})"
        case ApprovalState.REQUESTED:
            return f"requested by {given.by} {lasted(now_ms - given.at_ms)} ago, a second person must approve it"
        case ApprovalState.APPROVED:
            if now_ms < given.expires_ms:
                return None
            return f"its approval by {given.by} expired {lasted(now_ms - given.expires_ms)} ago"


def _allowed(proposal: Proposal, rule: str, why: str) -> Allow:
    return Allow(proposal.id, f"allowed by rule {rule}: {why}", by=f"rule {rule}", rule=rule, reason=why)


def _usd(value: float | None) -> str:
    return "an unknown amount" if value is None else usd(value)


def _sizes(size: float | None, bound: float) -> tuple[str, str]:
    return ("an unknown number of bytes", sized(bound)) if size is None else sized_apart(size, bound)


def _rate(bytes_per_s: float | None) -> str:
    return "an unknown number of bytes" if bytes_per_s is None else f"{sized(bytes_per_s)}/s"


# An approved proposal's preconditions hold until another state is seen: a planning with gaps proposes less and voids
# nothing.


def preconditions_hold(proposal: Proposal, fresh: Snapshot) -> bool:
    """False when its preconditions were seen, and are others now."""
    if any(may_hide_preconditions(gap, proposal, fresh) for gap in fresh.gaps):
        return True
    now = ProposalPreconditions(fresh, Memo()).hash(proposal.reason, proposal.subject, proposal.before, proposal.after)
    return now == proposal.snapshot_hash


def foreseen(verdict: Verdict) -> ExpectedVerdict:
    """The expected verdict for the answer to an approval. A refused proposal is proposed and approved anew."""
    match verdict:
        case Allow():
            return ExpectedVerdict(allowed=True, sentence="")
        case Hold():
            comes, until_ms = verdict.passes, verdict.until_ms
            return ExpectedVerdict(allowed=False, sentence=verdict.why, comes=comes, until_ms=until_ms)
        case _:
            return ExpectedVerdict(allowed=False, sentence=verdict.why, comes=False)


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
            return ExplainedRule(about, rule, word, answer.why)
        case _:
            return ExplainedRule(about, rule, RuleAnswer.NO, answer.why)

"""Approvals in the journal, and `plan_hash` of what is approved; the person or rule, and the expiry. Pure.

Key ``approval/<plan>``: the proposal id, with the attempt number from the second on. The kind is the state:
``requested`` (awaits a second person), ``approved``, ``void``. Invariants: an approval is of one exact plan, by hash,
and of one attempt. An unreadable entry approves nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from agent.journal.commands import CommandVerb, history
from agent.journal.entries import JournalState, JournalWrite, read_value, read_values, under
from agent.journal.triggers import TriggerEffect, triggers
from agent.values.number_format import lasted
from agent.values.proposal import PlanAttempt, Proposal
from agent.values.reassignment import (
    ReassignmentPlan,
    attempt,
    latest,
    of_plan,
    rollback_words,
    rolled_back_plan,
    taken_back_by,
)
from agent.values.typed_json import to_json

PREFIX = "approval"
NO_REBALANCE = (TriggerEffect.NOT_SENT, TriggerEffect.REFUSED)
"""Effects of a trigger that uses no approval up."""
KEPT = 200
"""Void approvals that stay, and so many noes of persons to what is proposed no more."""
KEPT_NOES = 32
"""Noes to other plans that an approval of the same attempt goes on with."""
KEPT_HIDDEN = 1_000
"""Noes that stay while a planning may only have missed what they are to; one planning proposes no more by default."""
NO_COUNTS_MS = 86_400_000
"""A no stays for so long in any case."""


class ApprovalState(StrEnum):
    """State of an approval."""

    REQUESTED = "requested"
    """One person asked for it; another has to approve it."""
    APPROVED = "approved"
    VOID = "void"


class ProposalApproval(NamedTuple):
    """One person's, or one rule's, yes to one exact plan."""

    proposal_id: str
    plan_hash: str
    state: ApprovalState
    by: str
    """Who approved it, as ``user@host`` or ``rule NAME``; who asked for it, while a second person is awaited."""
    at_ms: int
    """Epoch milliseconds."""
    expires_ms: int
    """Epoch milliseconds; the approval is void when nothing has begun by then."""
    rule: str | None = None
    """Name of the rule, where no person did it."""
    requested_by: str | None = None
    """Who asked for it, where a second person approved it."""
    reason: str = ""
    """What the person wrote, or by which numbers the rule held."""
    throttle_bytes_per_s: int | None = None
    """The operator's own rate, bytes/s; None: by the settings."""
    max_moves: int | None = None
    """At most so many partitions at a time; None: by the settings."""
    sentence: str = ""
    """How it came to this state; the state is not named in it."""
    attempt: int = 1
    """Which attempt it lets begin."""
    vetoed: bool = False
    """True where a person cancelled this very plan, approved or not: no rule approves it then, only a person does."""
    used: bool = False
    """True where it is void because the rebalance that it approved was triggered."""
    person: str | None = None
    """Whose identity is proven, the same as ``by``; None: self-declared, or a rule."""
    noes: tuple[str, ...] = ()
    """Hashes of other plans of this attempt that persons cancelled, at most `KEPT_NOES` of them, the newest last."""

    @property
    def word(self) -> str:
        """The state as persons read it: ``used`` where a rebalance made it void."""
        return "used" if self.used else self.state.value

    @property
    def plan(self) -> str:
        """Name of the plan that it lets begin."""
        return str(PlanAttempt(self.proposal_id, self.attempt))

    def is_no_to(self, hashed: str) -> bool:
        """Whether a person cancelled the plan of this hash and no person has approved it since."""
        return hashed in self.noes or (self.vetoed and hashed == self.plan_hash)


def plan_hash(proposal: Proposal) -> str:
    """32 hex digits of everything that a person who approves it relies on: what is changed, and what it rests on.

    Sizes and times are no part of it: they change all the time, and change nothing of what is done.
    """
    facts = (
        proposal.id,
        proposal.kind.value,
        proposal.reason.name,
        str(proposal.subject),
        tuple((row.key, tuple(row.value)) for row in proposal.before),
        tuple((row.key, tuple(row.value)) for row in proposal.after),
        tuple((move.what, move.subject, move.source, move.target) for move in proposal.moves),
        proposal.snapshot_hash,
    )
    return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def written(approval: ProposalApproval) -> JournalWrite:
    """The journal write of an approval."""
    return JournalWrite(_key(approval), approval.state.value, to_json(ProposalApproval, approval))


def replacing_approval(before: ProposalApproval | None, approval: ProposalApproval) -> ProposalApproval:
    """The approval that takes the place of an earlier one of the same attempt, with the noes to other plans."""
    if before is None:
        return approval
    every = (*before.noes, before.plan_hash) if before.vetoed else before.noes
    return approval._replace(noes=tuple(one for one in every if one != approval.plan_hash)[-KEPT_NOES:])


def by_rule(proposal: Proposal, rule: str, why: str, *, now_ms: int, valid_ms: int) -> ProposalApproval:
    """The approval by a rule, so that the journal names the rule of each action."""
    return ProposalApproval(
        proposal.id,
        plan_hash(proposal),
        ApprovalState.APPROVED,
        f"rule {rule}",
        now_ms,
        now_ms + valid_ms,
        rule=rule,
        reason=why,
        sentence=f"approved by rule {rule}: {why}",
    )


def voided(approval: ProposalApproval, now_ms: int, why: str) -> ProposalApproval:
    """The approval with state VOID, for this reason."""
    return approval._replace(state=ApprovalState.VOID, at_ms=now_ms, sentence=why)


def used(approval: ProposalApproval, at_ms: int) -> ProposalApproval:
    """The same, void because the rebalance that it approved was triggered at this time: it lets no other one begin."""
    sentence = "the rebalance that it approved was triggered"
    return approval._replace(state=ApprovalState.VOID, at_ms=at_ms, sentence=sentence, used=True)


def vetoed(proposal: Proposal, attempt: int, *, who: str, now_ms: int, why: str) -> ProposalApproval:
    """A person's no to one exact plan that no person has approved."""
    return ProposalApproval(
        proposal.id,
        plan_hash(proposal),
        ApprovalState.VOID,
        who,
        now_ms,
        now_ms,
        sentence=why,
        attempt=attempt,
        vetoed=True,
    )


def why_void(approval: ProposalApproval, proposal: Proposal | None, now_ms: int, *, holds: bool) -> str | None:
    """Why it no longer holds, given the open proposal with its id; None when it does.

    ``holds`` is true unless what the approved plan rests on was seen to be another.
    """
    if now_ms >= approval.expires_ms:
        return f"it expired {lasted(now_ms - approval.expires_ms)} ago, and the plan had not begun"
    if holds:
        return None
    if proposal is None:
        return "the approved plan is no longer proposed"
    if plan_hash(proposal) != approval.plan_hash:
        return "the plan is not the one that was approved"
    return None


def approvals(view: JournalState) -> tuple[ProposalApproval, ...]:
    """All that can be read, in the order in which they were written."""
    return read_values(ProposalApproval, under(view, PREFIX))


def approval_of(view: JournalState, plan: str) -> ProposalApproval | None:
    """The approval of that attempt, by the plan's name; None without a readable one."""
    return read_value(ProposalApproval, view.get(f"{PREFIX}/{plan}"))


def approval_cleanup(
    view: JournalState,
    proposals: Iterable[Proposal],
    begun: frozenset[str],
    now_ms: int,
    holds: Callable[[ProposalApproval], bool] = lambda _: False,
) -> tuple[JournalWrite, ...]:
    """Voids what no longer holds, and deletes the oldest of what is long void. What was begun stays as it is.

    ``begun`` holds names of plans; ``holds``: whether what an approved plan rests on may be as it was, so that one
    planning that could not see everything voids nothing. Forgotten, a person's no would be overruled by a rule: it
    stays while its plan is proposed, or may be proposed again, whatever else is void.
    """
    by_id = {proposal.id: proposal for proposal in proposals}
    triggered = {entry.proposal_id: entry.intended_ms for entry in triggers(view) if entry.effect not in NO_REBALANCE}
    writes: list[JournalWrite] = []
    old: list[ProposalApproval] = []
    noes: list[ProposalApproval] = []
    for one in approvals(view):
        if one.state is ApprovalState.VOID or one.plan in begun:
            if not (one.vetoed or one.noes):
                old.append(one)
            elif one.proposal_id not in by_id and now_ms - one.at_ms >= NO_COUNTS_MS:
                noes.append(one)
        elif why := why_void(one, by_id.get(one.proposal_id), now_ms, holds=holds(one)):
            at_ms = triggered.get(one.proposal_id, one.expires_ms)
            gone = used(one, at_ms) if one.at_ms <= at_ms < one.expires_ms else voided(one, now_ms, why)
            writes.append(written(gone))
    dropped = (*old[: max(0, len(old) - KEPT)], *_forgotten(noes, holds))
    return (*writes, *(JournalWrite(_key(one), "deleted", None) for one in dropped))


def _forgotten(noes: list[ProposalApproval], holds: Callable[[ProposalApproval], bool]) -> Iterable[ProposalApproval]:
    """The oldest noes to what is not proposed, those last whose plan this planning may only have missed."""
    if len(noes) <= KEPT:
        return ()
    rated = [(one, holds(one)) for one in noes]
    hidden = [one for one, may_come_back in rated if may_come_back]
    seen_gone = [one for one, may_come_back in rated if not may_come_back]
    return (*seen_gone[: max(0, len(seen_gone) - KEPT)], *hidden[: max(0, len(hidden) - KEPT_HIDDEN)])


def _key(approval: ProposalApproval) -> str:
    return f"{PREFIX}/{approval.plan}"


_APPROVING = (CommandVerb.APPROVE, CommandVerb.APPLY)
"""What these name has not begun."""


def next_attempt(plans: Iterable[ReassignmentPlan], view: JournalState, proposal_id: str) -> PlanAttempt:
    """The attempt that an approval given now is for; that of the newest plan while it has not ended.

    ``plans`` are those of the journal, read already.
    """
    newest = latest(plans, proposal_id)
    if newest is not None and not newest.ended:
        return of_plan(newest)
    # A plan's name is never used again, even after the plan is dropped: the next number is above all that are named.
    named = [answer.plan for command, answer in history(view) if answer.plan and command.verb not in _APPROVING]
    every = (attempt(name) for plan in named for name in (plan, rolled_back_plan(plan)) if name is not None)
    began = [one.number for one in every if one.of == proposal_id]
    return PlanAttempt(proposal_id, 1 + max((*began, 0 if newest is None else of_plan(newest).number)))


def attempt_text(plan: ReassignmentPlan, plans: tuple[ReassignmentPlan, ...] = ()) -> str:
    """An attempt and its state in words: ``attempt 1 rolled back (rollback requested by ann@desk)``.

    ``plans``: those of the journal; one of them may have taken it back.
    """
    how = f" ({plan.sentence})" if plan.sentence else ""
    back = taken_back_by(plans, plan.proposal_id)
    return f"attempt {of_plan(plan).number} {plan.state.value}{how}" + (f"; {rollback_words(back)}" if back else "")

"""A proposal's standing by journal, verdict and clock; its commands to copy and files to download. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agent.documents.journal import plan_row
from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, ProposalApproval, approval_of, next_attempt, plan_hash
from agent.journal.entries import JournalState
from agent.propose.codec import proposal_to_json, reassignment_json, rollback_json
from agent.values.kafka import BOOTSTRAP_SERVERS
from agent.values.number_format import counted, lasted
from agent.values.proposal import Allow, Hold, HoldReason, Proposal, ProposalKind, Refuse, Verdict
from agent.values.reassignment import (
    PlanState,
    ReassignmentPlan,
    in_force,
    latest,
    of_plan,
    rollback_words,
    taken_back_by,
)
from agent.web.cycle_history import EndedProposal
from config.foreign_text import json_text


class ProposalStanding(NamedTuple):
    """Where a proposal is."""

    state: str
    """One or two words."""
    sentence: str
    tone: str = ""
    mark: str = ""
    can_approve: bool = False
    can_cancel: bool = False
    """Whether there is something to stop: a plan in progress, or an approval."""
    is_over: bool = False
    """Whether there is nothing left to decide: it was carried out, or is not proposed any more."""


CARRIED_OUT = frozenset({"done", "carried out"})
"""States of what was done."""


def standing_of(
    proposal: Proposal,
    verdict: Verdict | None,
    view: JournalState,
    plans: tuple[ReassignmentPlan, ...],
    now_ms: int,
    *,
    ended: EndedProposal | None = None,
) -> ProposalStanding:
    """Its plan, else its end, else its approval, else what the guard says of it. ``ended``: no longer proposed."""
    newest = latest(plans, proposal.id)
    if newest is not None and not newest.ended:
        return _in_progress(newest, view)
    back = None if newest is None else taken_back_by(plans, newest.proposal_id)
    if back is not None and not back.ended:
        return ProposalStanding("rolling back", f"{rollback_words(back)}.", "accent", "▶", can_cancel=True)
    if newest is not None and _is_done(proposal, newest, plans, view):
        sentence = (
            f"{newest.proposal_id} was done after these figures: by the journal the planned replicas are in place. "
            f"Check it with: rackwise reassign verify {newest.proposal_id}"
        )
        return ProposalStanding("done", sentence, "good", "✓", is_over=True)
    if ended is not None:
        return _ended(ended)
    if now_ms >= proposal.expires_ms:
        sentence = f"It expired {lasted(now_ms - proposal.expires_ms)} ago, and was not proposed again."
        return ProposalStanding("expired", sentence, "quiet", "○")
    approval = approval_of(view, str(next_attempt(plans, view, proposal.id)))
    approved = None if approval is None else _by_approval(proposal, approval, now_ms)
    return approved or _by_verdict(proposal, verdict)


def _ended(ended: EndedProposal) -> ProposalStanding:
    if ended.is_done:
        return ProposalStanding("carried out", _whole(ended.why), "good", "✓", is_over=True)
    return ProposalStanding("ended", _whole(ended.why), "quiet", "○", is_over=True)


def attempts_of(plans: tuple[ReassignmentPlan, ...], proposal_id: str) -> tuple[ReassignmentPlan, ...]:
    """The attempts at a proposal that the journal has, the first one first."""
    return tuple(sorted((one for one in plans if of_plan(one).of == proposal_id), key=lambda one: of_plan(one).number))


def _in_progress(plan: ReassignmentPlan, view: JournalState) -> ProposalStanding:
    row = plan_row(plan, plan_entries.batches(view, plan.proposal_id))
    paused = ", paused" if plan.paused else ""
    state = "in progress" if plan.state is PlanState.OPEN else plan.state.value
    sentence = f"{row['done']:,} of {counted(row['partitions'], 'partition')} done, {row['moving']:,} moving"
    return ProposalStanding(f"{state}{paused}", f"{plan.proposal_id}: {sentence}.", "accent", "▶", can_cancel=True)


def _is_done(
    proposal: Proposal, newest: ReassignmentPlan, plans: tuple[ReassignmentPlan, ...], view: JournalState
) -> bool:
    """Whether its latest attempt is done, was not taken back, and ended after the proposal was made."""
    return in_force(plans, newest) and proposal.created_ms <= view[f"plan/{newest.proposal_id}"].at_ms


def _by_approval(proposal: Proposal, approval: ProposalApproval, now_ms: int) -> ProposalStanding | None:
    if approval.state is ApprovalState.VOID or now_ms >= approval.expires_ms:
        if approval.is_no_to(plan_hash(proposal)):
            sentence = f"{approval.by} cancelled this very plan, so no rule approves it."
            return ProposalStanding("cancelled", sentence, "quiet", "✕", can_approve=True)
        return None
    if approval.plan_hash != plan_hash(proposal):
        return None
    until = f"until {lasted(approval.expires_ms - now_ms)} from now"
    if approval.state is ApprovalState.REQUESTED:
        sentence = f"{approval.by} approved it; a second person has to approve it {until}."
        return ProposalStanding("one of two approvals", sentence, "warn", "◐", can_approve=True, can_cancel=True)
    sentence = f"Approved by {approval.by}; it begins as soon as its checks allow it, {until}."
    return ProposalStanding("approved", sentence, "good", "✓", can_cancel=True)


def _by_verdict(proposal: Proposal, verdict: Verdict | None) -> ProposalStanding:
    if proposal.kind is ProposalKind.ADVISE:
        sentence = "The owner of the client or broker sets it; no agent can."
        return ProposalStanding("advice", sentence, "", "✎")
    match verdict:
        case None:
            return ProposalStanding("proposed", "The guard has not judged it yet.", "", "○", can_approve=True)
        case Allow():
            return ProposalStanding("allowed", _whole(verdict.sentence), "good", "✓", can_approve=True)
        case Refuse():
            return ProposalStanding("stale", _whole(verdict.sentence), "bad", "✕")
        case Hold():
            return _held(verdict)


def _held(hold: Hold) -> ProposalStanding:
    sentence = _whole(hold.sentence)
    if hold.reason is HoldReason.NEEDS_APPROVAL:
        return ProposalStanding("waits for approval", sentence, "warn", "◆", can_approve=True)
    if hold.reason is HoldReason.DRY_RUN:
        return ProposalStanding("proposed", sentence, "", "○", can_approve=True)
    return ProposalStanding("held", sentence, "", "◇", can_approve=hold.reason is not HoldReason.OWNER_ACTS)


def _whole(sentence: str) -> str:
    """The guard's words as a sentence. What follows ``held:`` keeps its case: it may begin with the name of a topic."""
    return f"{sentence[:1].upper()}{sentence[1:]}" + ("" if sentence.endswith(".") else ".")


_FILE_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class CopiedCommand(NamedTuple):
    """A command with what it is for."""

    title: str
    command: str


class WrittenFile(NamedTuple):
    """A file to download."""

    key: str
    """Its name in the address."""
    title: str
    name: str
    content: Callable[[], str]


def copied_commands(proposal: Proposal, kafka: Mapping[str, Any], *, is_heard: bool) -> list[CopiedCommand]:
    """What a terminal can do with it: rackwise's commands, and Kafka's own tools with the downloaded file.

    ``is_heard``: there is a journal, so an agent in mode execute can hear an approval.
    """
    if proposal.kind is ProposalKind.ADVISE:
        found = [CopiedCommand("The setting", proposal.line)] if proposal.line else []
        return [*found, CopiedCommand("Why", f"rackwise explain {proposal.id}")]
    servers = shlex.quote(str(kafka.get(BOOTSTRAP_SERVERS, "localhost:9092")))
    found = [CopiedCommand("Approve it", f"rackwise proposals approve {proposal.id}")] if is_heard else []
    found.append(CopiedCommand("Why", f"rackwise explain {proposal.id}"))
    if proposal.kind in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        name = f"{_name(proposal)}-reassignment.json"
        run = f"kafka-reassign-partitions.sh --bootstrap-server {servers} --reassignment-json-file {name} --execute"
        found.append(CopiedCommand("With Kafka's own tool", run))
    if proposal.kind is ProposalKind.LEADERS:
        election = "kafka-leader-election.sh --election-type PREFERRED"
        run = f"{election} --bootstrap-server {servers} --path-to-json-file {name}"
        found.append(CopiedCommand("Then elect the leaders", run))
    return found


def written_files(proposal: Proposal) -> list[WrittenFile]:
    """Its document, and for a change of replicas the lists after and before it."""
    name = _name(proposal)
    files = [
        WrittenFile(
            "proposal", "Proposal (JSON)", f"{name}.json", lambda: json_text(proposal_to_json(proposal), indent=2)
        )
    ]
    if proposal.kind in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        files += [
            WrittenFile(
                "reassignment",
                "kafka-reassign-partitions (JSON)",
                f"{name}-reassignment.json",
                lambda: reassignment_json((proposal,)) + "\n",
            ),
            WrittenFile(
                "rollback", "The way back (JSON)", f"{name}-rollback.json", lambda: rollback_json((proposal,)) + "\n"
            ),
        ]
    return files


def _name(proposal: Proposal) -> str:
    return _FILE_NAME.sub("-", proposal.id)

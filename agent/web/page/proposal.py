"""One proposal: what changes, what it costs, why this and no other change, every check, and how it is approved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from starlette.responses import Response

from agent.documents.explanation import check_rows, rule_rows
from agent.documents.journal import history_of_proposal
from agent.guard.cluster_checks import copying_usd
from agent.guard.judge import preconditions_hold
from agent.journal.approvals import attempt_text, next_attempt, plan_hash
from agent.propose.codec import proposal_to_json
from agent.simulate.evaluation import StageEvaluation
from agent.values.assessment import Locality, LocalityMeasure
from agent.values.number_format import counted, lasted, usd
from agent.values.proposal import Proposal, ProposalKind, saved_usd_per_day
from agent.values.reassignment import attempt
from agent.web.access.person import AccessRole
from agent.web.cycle_history import EndedProposal, newest_ended, racks_of
from agent.web.page.environment import rendered, subject_link
from agent.web.page.page_documents import ActingRecords
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.proposal_standing import (
    CARRIED_OUT,
    ProposalStanding,
    attempts_of,
    change_table,
    copied_commands,
    move_table,
    rule_table,
    standing_of,
    written_files,
)
from agent.web.page.proposals import copied_cell, history_table, saving_cell
from agent.web.page.tables import TableSource, value_words
from config.foreign_text import json_text

DAY_MS = 86_400_000
_DIFFERENCES = 8


class ShownProposal(NamedTuple):
    """A proposal with whether it is still made."""

    proposal: Proposal
    ended: EndedProposal | None
    """None where it is open."""
    instead: tuple[Proposal, ...]
    """Open proposals of the same subject, where it ended."""


class SharePair(NamedTuple):
    """Local reads before and after, by one measure."""

    measure: str
    unit: str
    before: Locality
    after: Locality


def proposal_view(asked: PageRequest) -> Response:
    """The page of the proposal that ``id`` names."""
    found = found_proposal(asked, asked.query.get("id", ""))
    return no_proposal(asked, asked.query.get("id", "")) if found is None else proposal_page(asked, found)


def found_proposal(asked: PageRequest, proposal_id: str) -> ShownProposal | None:
    """The open proposal with this id, else the ended one; None where this agent knows none."""
    proposals = () if asked.finished is None else asked.look.proposals
    for one in proposals:
        if one.id == proposal_id:
            return ShownProposal(one, None, ())
    ended = newest_ended(asked.agent.state.ended_proposals, proposal_id)
    if ended is None:
        return None
    same = tuple(one for one in proposals if one.subject == ended.proposal.subject)
    return ShownProposal(ended.proposal, ended, same)


def differences(before: Proposal, now: Proposal) -> list[str]:
    """What the plan does otherwise than the one before it, row by row; the first few."""
    was, is_ = ({row.key: row.value for row in one.after} for one in (before, now))
    changed = [key for key in dict.fromkeys((*was, *is_)) if was.get(key) != is_.get(key)]
    words = [f"{key}: {_side(was.get(key))} before, {_side(is_.get(key))} now" for key in changed[:_DIFFERENCES]]
    more = len(changed) - len(words)
    return [*words, *([f"and {counted(more, 'more row')}"] if more else [])]


def _side(value: Sequence[object] | None) -> str:
    return "not changed" if value is None else value_words(value)


def no_proposal(asked: PageRequest, proposal_id: str) -> Response:
    """Why there is no such proposal, with what the journal says of it."""
    acting = ActingRecords(asked)
    tried = attempts_of(acting.plans, attempt(proposal_id).of)
    sentence = f" The journal has it: {attempt_text(tried[-1], acting.plans)}." if tried else ""
    return asked.problem(
        404,
        "No such proposal",
        f"No proposal {proposal_id or 'without an id'} is open, and none has ended since this agent started.{sentence}",
        "The list of proposals has what is open now; published ones are listed by: rackwise proposals",
    )


def proposal_page(asked: PageRequest, found: ShownProposal, *, status: int = 200, refused: str = "") -> Response:
    """The page; ``refused``: why what was just sent was not carried out."""
    proposal, look, now_ms = found.proposal, asked.look, asked.clock().wall_ms
    acting = ActingRecords(asked)
    standing = standing_of(
        proposal, acting.verdicts.get(proposal.id), acting.view, acting.plans, now_ms, ended=found.ended
    )
    stale = stale_words(found, look, standing)
    if stale:
        standing = standing._replace(can_approve=False)
    tried = attempts_of(acting.plans, proposal.id)
    history = history_of_proposal(acting.view, proposal.id)
    files, servers = written_files(proposal), asked.agent.settings.settings.kafka.root
    return asked.page(
        "proposal.html",
        f"Proposal {proposal.id}",
        status=status,
        tables=(
            change_table(proposal, racks_of(look.snapshot) if found.ended is None else found.ended.racks),
            move_table(proposal),
            *([] if standing.is_over else _rule_tables(asked, proposal, acting)),
            history_table(history, acting.unreadable),
        ),
        shown=found,
        instead=[(one, differences(proposal, one)) for one in found.instead],
        proposal=proposal,
        subject_href=subject_link(proposal.subject.kind, proposal.subject.name),
        standing=standing,
        stale=stale,
        refused=refused,
        figures=figures_of(proposal, look),
        shares=shares_of(proposal),
        hashed=plan_hash(proposal),
        attempt=next_attempt(acting.plans, acting.view, proposal.id).number,
        attempts=[attempt_text(one, acting.plans) for one in tried],
        acting=acting,
        answer=acting.answer,
        commands=[] if standing.is_over else copied_commands(proposal, servers, is_heard=not acting.missing),
        files=files,
        document=_document(proposal),
        now_ms=now_ms,
        may="" if standing.is_over else may_words(asked, proposal, is_heard=not acting.missing),
        execute=asked.agent.settings.settings.execute,
    )


def stale_words(found: ShownProposal, look: StageEvaluation, standing: ProposalStanding) -> str:
    """Why it must not be approved as it is shown; empty where it may be, and where it was carried out."""
    if standing.state in CARRIED_OUT:
        return ""
    if found.ended is not None:
        return f"This proposal is over: {found.ended.why}."
    if not preconditions_hold(found.proposal, look.snapshot):
        return (
            f"The state of {found.proposal.subject} has changed since it was proposed, so the agent refuses it; "
            "the next planning makes a new one if there is still something to propose."
        )
    return ""


def may_words(asked: PageRequest, proposal: Proposal, *, is_heard: bool) -> str:
    """Why this person cannot approve it here; empty where the form is shown. ``is_heard``: there is a journal."""
    settings = asked.agent.settings.settings
    if proposal.kind is ProposalKind.ADVISE:
        return "Only the owner of the client or broker can do it, so there is nothing to approve."
    if settings.mode != "execute":
        why = f"This agent runs in mode {settings.mode} and sends nothing that changes the cluster."
        if is_heard:
            return f"{why} An agent in mode execute carries it out, once it is approved there or by the command below."
        return f"{why} Start an agent in mode execute to approve proposals."
    if not asked.person.may(AccessRole.APPROVE):
        who = "You are not signed in" if asked.person.name is None else f"{asked.person.name} has no role approve"
        return f"{who}, so this page only shows it. Approve it with the command below."
    return ""


def _rule_tables(asked: PageRequest, proposal: Proposal, acting: ActingRecords) -> list[TableSource]:
    """The checks of the guard, and the rules; an ended proposal has neither."""
    checks = check_rows(proposal.id, asked.look, _journal_of(acting), "the journal cannot be read")
    own, others = _rules(asked, proposal)
    return [
        rule_table("checks", "Checks of the guard", checks, "check", "No check of the guard applies to it."),
        rule_table("why", "Why this one", own, "figure", "It has no figures."),
        rule_table("others", "Why not the others", others, "rule", "No other change was considered."),
    ]


def _journal_of(acting: ActingRecords) -> Any:
    return acting.view if acting.records.known and not acting.records.why else None


def _rules(asked: PageRequest, proposal: Proposal) -> tuple[list[Any], list[Any]]:
    """(what the proposal says of itself, every rule about its subject)."""
    rows = asked.made(("rules", proposal.id), lambda look: rule_rows(proposal.id, look))
    own = [row for row in rows if row["about"] == proposal.id]
    return own, [row for row in rows if row["about"] != proposal.id]


class ProposalFigure(NamedTuple):
    """A figure of the head."""

    title: str
    words: str | Markup | None
    """None is unknown."""
    more: str = ""


def figures_of(proposal: Proposal, look: StageEvaluation) -> list[ProposalFigure]:
    """What it saves, copies and costs, when that is paid back, and how good any such change can be."""
    saved, cost = saved_usd_per_day(proposal.predicted), copying_usd(proposal.predicted, look.limits)
    predicted = proposal.predicted
    rates = rendered(
        "before_after.html",
        before=predicted.cross_rack_bytes_per_s_before,
        after=predicted.cross_rack_bytes_per_s_after,
        unit="rate",
    )
    dollars = rendered(
        "before_after.html", before=predicted.usd_per_day_before, after=predicted.usd_per_day_after, unit="dollars"
    )
    found = [
        ProposalFigure("Saves a day", saving_cell(proposal).words, "across racks, by its own forecast"),
        ProposalFigure("Across racks", rates, "bytes per second, before and after"),
        ProposalFigure("A day", dollars, "before and after"),
    ]
    if proposal.kind in (ProposalKind.REASSIGN, ProposalKind.TRIGGER):
        most = "its price is unknown" if cost is None else f"up to {usd(cost)}, once"
        found.append(ProposalFigure("To copy", copied_cell(proposal).words, most))
        found.append(_payback(cost, saved))
    return found


def _payback(cost: float | None, saved: float | None) -> ProposalFigure:
    if cost == 0:
        return ProposalFigure("Pay-back", "at once", "it copies nothing")
    if cost is None or saved is None:
        return ProposalFigure("Pay-back", None, "its saving a day, or the price of the copy, is unknown")
    if saved <= 0:
        return ProposalFigure("Pay-back", "never", "it saves no money; it mends something else")
    return ProposalFigure("Pay-back", lasted(cost / saved * DAY_MS), f"{usd(cost)} at {usd(saved)} a day")


def shares_of(proposal: Proposal) -> list[SharePair]:
    """Local reads before and after, by each measure and unit that the forecast has."""
    after = {(one.measure, one.unit): one for one in proposal.predicted.after}
    names = {LocalityMeasure.KAFKA: "by Kafka's rule", LocalityMeasure.READ_LOCAL: "as read"}
    units = {"partitions": "partitions", "bytes_per_s": "bytes/s"}
    return [
        SharePair(names[one.measure], units.get(one.unit, one.unit), one, after[one.measure, one.unit])
        for one in proposal.predicted.before
        if (one.measure, one.unit) in after
    ]


MOST_COPIED = 48_000
"""Characters of a document that the page carries for copying; a longer one is a download only."""


def _document(proposal: Proposal) -> Markup | None:
    """For copying, so not shortened."""
    written = json_text(proposal_to_json(proposal), indent=2)
    return escape(written) if len(written) <= MOST_COPIED else None


def file_view(asked: PageRequest) -> Response:
    """A file of the proposal: its document, or the replica lists for Kafka's own tool."""
    asked.check_query()
    found = found_proposal(asked, asked.query.get("id", ""))
    if found is None:
        return no_proposal(asked, asked.query.get("id", ""))
    wanted = next((one for one in written_files(found.proposal) if one.key == asked.query.get("file")), None)
    if wanted is None:
        return asked.problem(404, "No such file", "The proposal has no file of that name.", "Its page lists its files.")
    headers = {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-disposition": f'attachment; filename="{wanted.name}"',
    }
    return Response(wanted.content(), media_type="application/json", headers=headers)


VIEWS = (
    PageView("/proposals/proposal", proposal_view, fields={"id": ()}, at_times=("checks", "why", "others")),
    PageView("/proposals/file", file_view, fields={"id": (), "file": ()}),
)

"""The proposals: those that are open, those that ended, and what was said and done about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from agent.documents.journal import history_rows
from agent.money.traffic import saving_words, usd_between
from agent.propose.codec import proposal_to_json
from agent.simulate.evaluation import StageEvaluation
from agent.values.limits import AgentMode
from agent.values.number_format import counted, lasted, sized
from agent.values.proposal import Proposal, ProposalKind, saved_usd_per_day
from agent.web.cycle_history import IN_PLACE, EndedProposal
from agent.web.page.environment import proposal_link, rendered, subject_link
from agent.web.page.page_documents import ActingRecords
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.proposal_standing import ProposalStanding, attempts_of, standing_of
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, fields_of, instant_cell

KINDS = tuple(kind.value for kind in ProposalKind)


def proposals_view(asked: PageRequest) -> Response:
    """The list of open proposals, with the ended ones and the history of the journal."""
    acting = ActingRecords(asked)
    standings = {
        one.id: standing_of(one, acting.verdicts.get(one.id), acting.view, acting.plans, asked.clock().wall_ms)
        for one in asked.look.proposals
    }
    is_open = {name: one for name, one in standings.items() if not one.is_over}
    rows = [row for row in asked.made("proposals", _documents) if row["id"] in is_open]
    done = [one for one in asked.look.proposals if one.id not in is_open]  # until the next planning
    return asked.page(
        "proposals.html",
        "Proposals",
        tables=(
            _open_table(rows, is_open, {one.id: one for one in asked.look.proposals}, asked.clock().wall_ms),
            ended_table((*asked.agent.state.ended_proposals, *_carried_out(done, acting)), asked.clock().wall_ms),
            history_table(history_rows(acting.view), acting.unreadable),
        ),
        lead=lead(asked.look, is_open),
        acting=acting,
        planned_ms=None if asked.finished is None else asked.finished.planned_ms,
        since_ms=asked.agent.state.started.wall_ms,
    )


def lead(look: StageEvaluation, standings: Mapping[str, ProposalStanding]) -> str:
    """What there is to decide, in one sentence. ``standings`` are those of the open proposals."""
    proposals = [one for one in look.proposals if one.id in standings]
    if not proposals:
        return "Nothing is proposed." if not look.snapshot.gaps else "Nothing is proposed for what was seen."
    acts = look.limits.mode is AgentMode.EXECUTE
    waiting = sum(one.can_approve and one.state != "approved" for one in standings.values()) if acts else 0
    total = known_savings(proposals)
    parts = [counted(len(proposals), "proposal is open", "proposals are open")]
    if waiting:
        parts.append(f"{waiting:,} can be approved")
    if total:
        unknown = sum(saved_usd_per_day(proposal.predicted) is None for proposal in proposals)
        save = "it saves" if unknown == 1 else "they save"
        rest = f"; of {counted(unknown, 'proposal')} it is unknown what {save}" if unknown else ""
        parts.append(f"those with a known saving take {total} a day off the bill{rest}")
    return "; ".join(parts) + "."


def known_savings(proposals: Iterable[Proposal]) -> str | None:
    """Dollars a day that the proposals with a known saving take off the bill; None where none has one.

    What another proposal costs is not taken off: it mends something else, and is decided on its own.
    """
    saved = (saved_usd_per_day(proposal.predicted) for proposal in proposals)
    return saving_words(sum(one for one in saved if one is not None and one > 0) or None)


def _documents(look: StageEvaluation) -> list[dict[str, Any]]:
    return [proposal_to_json(proposal) for proposal in look.proposals]


def _open_table(
    rows: Sequence[TableRow],
    standings: Mapping[str, ProposalStanding],
    by_id: Mapping[str, Proposal],
    now_ms: int,
) -> TableSource:
    def state(row: TableRow) -> TableCell:
        one = standings[row["id"]]
        return TableCell(rendered("standing.html", standing=one))

    def saves(row: TableRow) -> TableCell:
        return saving_cell(by_id[row["id"]])

    return TableSource(
        title="Open proposals",
        unit="proposal",
        rows=rows,
        columns=(
            _PROPOSAL,
            TableColumn("subject", "About", _subject, _subject_text),
            TableColumn("sentence", "Change", lambda row: TableCell(row["sentence"], tone="wide"),
                        lambda row: row["sentence"]),
            TableColumn("saves_usd_per_day", "Saves a day", saves,
                        lambda row: saved_usd_per_day(by_id[row["id"]].predicted), is_number=True, falls=True,
                        beside={"at_most_saves_usd_per_day": lambda row: most_saved(by_id[row["id"]])}),
            TableColumn("bytes_to_copy", "To copy", lambda row: copied_cell(by_id[row["id"]]),
                        lambda row: row["predicted"]["bytes_to_move"], is_number=True, falls=True),
            TableColumn("state", "State", state, lambda row: standings[row["id"]].state),
            TableColumn("age", "Planned", lambda row: TableCell(f"{lasted(now_ms - row['created_ms'])} ago"),
                        lambda row: row["created_ms"], is_number=True, falls=True),
        ),
        text=lambda row: f"{row['id']} {_subject_text(row)} {row['sentence']} {standings[row['id']].state}",
        choices=(
            TableChoice("kind", "Kind", KINDS, lambda row: row["kind"]),
            TableChoice("state", "State", sorted({one.state for one in standings.values()}),
                        lambda row: standings[row["id"]].state, is_of_rows=True),
        ),
        empty="No proposal is open.",
        page_rows=25,
        stacks=True,
    )  # fmt: skip


def saving_cell(proposal: Proposal) -> TableCell:
    """Dollars a day that it takes off the bill; unknown is unknown, and at most what crosses now."""
    saved = saved_usd_per_day(proposal.predicted)
    if saved is not None:
        return TableCell(saving_words(saved), tone="good" if saved > 0 else "")
    if not proposal.predicted.before:
        return TableCell(None, hint="its effect on reads is not predicted")
    return TableCell(usd_between(None, most_saved(proposal)))


def most_saved(proposal: Proposal) -> float | None:
    """Dollars a day that it saves at most, where how many is unknown: what crosses now."""
    predicted = proposal.predicted
    unknown = saved_usd_per_day(predicted) is None and predicted.before
    return predicted.usd_per_day_before if unknown else None


def copied_cell(proposal: Proposal) -> TableCell:
    """Bytes to copy; nothing where no data moves."""
    if proposal.kind in (ProposalKind.LEADERS, ProposalKind.ADVISE):
        return TableCell("none", tone="quiet")
    size = proposal.predicted.bytes_to_move
    return TableCell(None if size is None else sized(size))


def _carried_out(done: Iterable[Proposal], acting: ActingRecords) -> list[EndedProposal]:
    """Proposals whose plan is done by the journal, with the time of its end."""
    newest = {one.id: attempts_of(acting.plans, one.id)[-1].proposal_id for one in done}
    return [EndedProposal(one, acting.view[f"plan/{newest[one.id]}"].at_ms, IN_PLACE, is_done=True) for one in done]


def ended_table(ended: Sequence[EndedProposal], now_ms: int) -> TableSource:
    """Proposals that are made no more, the newest first."""
    rows = [{**proposal_to_json(one.proposal), "ended_ms": one.ended_ms, "why": one.why} for one in reversed(ended)]
    return TableSource(
        key="ended",
        title="Ended proposals",
        unit="ended proposal",
        rows=rows,
        columns=(
            TableColumn("ended", "Ended", lambda row: TableCell(f"{lasted(now_ms - row['ended_ms'])} ago"),
                        lambda row: row["ended_ms"], falls=True),
            _PROPOSAL,
            TableColumn("subject", "About", _subject, _subject_text),
            TableColumn("why", "Why", lambda row: TableCell(row["why"], tone="wide"), lambda row: row["why"]),
        ),
        empty="No proposal is ended now: one that ended and is made again is among the open ones.",
        page_rows=10,
        stacks=True,
    )  # fmt: skip


def history_table(rows: Sequence[Any], unreadable: str) -> TableSource:
    """What the journal has of approvals, commands, plans and triggers, the latest first."""
    return TableSource(
        key="history",
        title="What was said and done",
        unit="record",
        rows=tuple(reversed(rows)),
        columns=(
            TableColumn("at", "When", lambda row: instant_cell(row["at_ms"]),
                        lambda row: row["at_ms"], falls=True),
            TableColumn("what", "What", lambda row: TableCell(row["what"]), lambda row: row["what"]),
            TableColumn("about", "About", lambda row: TableCell(row["about"] or "everything", tone="code"),
                        lambda row: row["about"]),
            TableColumn("who", "Who", lambda row: TableCell(row["who"] or "none"), lambda row: row["who"]),
            TableColumn("state", "State", lambda row: TableCell(row["state"]), lambda row: row["state"]),
            TableColumn("sentence", "How", lambda row: TableCell(row["sentence"], tone="wide"),
                        lambda row: row["sentence"]),
        ),
        empty=unreadable or "The journal has no approval, command, plan or triggered rebalance.",
        is_unknown=bool(unreadable),
        page_rows=10,
        stacks=True,
    )  # fmt: skip


def _name(row: TableRow) -> TableCell:
    return TableCell(rendered("proposal_name.html", id=row["id"], kind=row["kind"], href=proposal_link(row["id"])))


_PROPOSAL = TableColumn("proposal", "Proposal", _name, lambda row: row["id"], beside=fields_of("kind"))


def _subject(row: TableRow) -> TableCell:
    kind, name = row["subject"]["kind"], row["subject"]["name"]
    return TableCell(f"{kind}/{name}", subject_link(kind, name), tone="name")


def _subject_text(row: TableRow) -> str:
    return f"{row['subject']['kind']}/{row['subject']['name']}"


VIEWS = (PageView("/proposals", proposals_view),)

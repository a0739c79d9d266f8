"""A proposal's standing by journal, verdict and clock, and its tables: changes, every move, rules and checks. Pure.

The standing has the proposal's commands to copy and its files to download.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.documents.journal import plan_row
from agent.explain.explain import label
from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, ProposalApproval, approval_of, next_attempt, plan_hash
from agent.journal.entries import JournalState
from agent.propose.codec import proposal_to_json, reassignment_json, rollback_json
from agent.values.kafka import BOOTSTRAP_SERVERS
from agent.values.number_format import counted, lasted, sized
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
from agent.web.page.environment import short_client
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, replica_tiles, value_words
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


_COPY_OF_TASK = re.compile(r"(\S+) (\S*\d+_\d+) (active|standby|warm-up)")
"""A row of a triggered rebalance of a Streams application: process, task and role."""
_ANSWERS = {
    "yes": ("good", "✓"),
    "no": ("bad", "✕"),
    "wait": ("warn", "◐"),
    "unknown": ("", "?"),
    "found": ("warn", "◆"),
}
_WORDS = {"yes": "holds", "no": "does not hold", "wait": "waits", "fact": "figure", "found": "finding"}


def change_table(proposal: Proposal, racks: Mapping[int, str | None]) -> TableSource:
    """Before and after, one row for each thing that changes."""
    before = {row.key: row.value for row in proposal.before}
    after = {row.key: row.value for row in proposal.after}
    is_placement = proposal.kind in (ProposalKind.REASSIGN, ProposalKind.LEADERS)
    rows: list[dict[str, Any]] = [
        {"key": key, "before": _listed(before.get(key)), "after": _listed(after.get(key))}
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    ]
    if rows and all(_COPY_OF_TASK.fullmatch(row["key"]) for row in rows):
        rows = _task_rows(rows)

    def side(name: str, other: str) -> Any:
        def cell(row: TableRow) -> TableCell:
            if row[name] is None:
                return TableCell("none", tone="quiet")
            if is_placement:
                return TableCell(replica_tiles(row[name], row[other] or [], racks, is_after=name == "after"))
            return TableCell(value_words(row[name]), tone="wide")

        return cell

    return TableSource(
        key="changes",
        title="Before and after",
        unit="changed row",
        rows=rows,
        columns=(
            TableColumn(
                "key", _head_of(proposal), lambda row: TableCell(row["key"], tone="name"), lambda row: row["key"]
            ),
            TableColumn("before", "Before", side("before", "after"), lambda row: row["before"]),
            TableColumn("after", "After", side("after", "before"), lambda row: row["after"]),
        ),
        text=lambda row: row["key"],
        empty="Nothing that the proposal lists changes.",
        page_rows=25,
    )


def _task_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each task, with all its copies: where each is active or warms up, before and after."""
    tasks: dict[str, dict[str, Any]] = {}
    for row in rows:
        process, task, role = _COPY_OF_TASK.fullmatch(row["key"]).groups()  # type: ignore[union-attr] # the caller looked
        shown = tasks.setdefault(task, {"key": f"task {task}", "before": None, "after": None})
        for side in ("before", "after"):
            if row[side] is not None:
                copy = f"{role} in {value_words(row[side])} ({short_client(process, 24)})"
                shown[side] = [*(shown[side] or ()), copy]
    return [tasks[task] for task in sorted(tasks)]


def _of(name: str) -> Callable[[TableRow], Any]:
    return lambda row: row[name]


def _cell(name: str, tone: str = "") -> Callable[[TableRow], TableCell]:
    """A field that may be missing, such as the place that something comes from."""
    return lambda row: TableCell("none" if row[name] is None else str(row[name]), tone=tone)


def _head_of(proposal: Proposal) -> str:
    match proposal.kind:
        case ProposalKind.REASSIGN | ProposalKind.LEADERS:
            return "Partition"
        case ProposalKind.TRIGGER:
            return "Member or task"
        case _:
            return "Setting"


def _listed(value: Sequence[Any] | None) -> list[Any] | None:
    return None if value is None else list(value)


def move_table(proposal: Proposal) -> TableSource:
    """Every elementary change."""
    rows = proposal_to_json(proposal._replace(before=(), after=(), evidence=()))["moves"]
    return TableSource(
        key="moves",
        title="Moves",
        unit="move",
        rows=rows,
        columns=(
            TableColumn("what", "What", lambda row: TableCell(row["what"]), lambda row: row["what"]),
            TableColumn(
                "subject", "Of", lambda row: TableCell(row["subject"], tone="name"), lambda row: row["subject"]
            ),
            TableColumn("source", "From", lambda row: TableCell(row["source"] or "none"), lambda row: row["source"]),
            TableColumn("target", "To", lambda row: TableCell(row["target"] or "none"), lambda row: row["target"]),
            TableColumn("bytes", "Bytes", _bytes_of(proposal), lambda row: row["bytes"], is_number=True, falls=True),
        ),
        text=lambda row: f"{row['what']} {row['subject']} {row['source']} {row['target']}",
        empty="It moves nothing.",
        page_rows=10,
    )


def _bytes_of(proposal: Proposal) -> Any:
    def cell(row: TableRow) -> TableCell:
        if row["bytes"] is None and proposal.kind in (ProposalKind.LEADERS, ProposalKind.ADVISE):
            return TableCell("none", tone="quiet")
        return TableCell(None if row["bytes"] is None else sized(row["bytes"]))

    return cell


def rule_table(key: str, title: str, rows: Sequence[TableRow], unit: str, empty: str) -> TableSource:
    """Rules or checks with their answers and numbers."""
    return TableSource(
        key=key,
        title=title,
        unit=unit,
        rows=rows,
        columns=(
            TableColumn("answer", "Answer", _check_answer if key == "checks" else _rule_answer, _of("answer")),
            *(column for column in _RULE_COLUMNS if key == "others" or column.name != "about"),
        ),
        text=lambda row: f"{row['rule']} {row['about']} {row['sentence']}",
        choices=(TableChoice("answer", "Answer", _answers(rows), lambda row: row["answer"], is_of_rows=True),),
        empty=empty,
        page_rows=50 if key == "checks" else 15,
        stacks=True,
    )  # fmt: skip


def _answers(rows: Sequence[TableRow]) -> list[str]:
    return sorted({row["answer"] for row in rows})


def _check_answer(row: TableRow) -> TableCell:
    tone, mark = _ANSWERS.get(row["answer"], ("quiet", "·"))
    if row["answer"] == "unknown":
        return TableCell(None)
    return TableCell(_WORDS.get(row["answer"], row["answer"]), tone=tone, mark=mark)


def _rule_answer(row: TableRow) -> TableCell:
    """Of a rule about a subject: a fact, which neither passes nor fails."""
    answer = row["answer"]
    if answer == "unknown":
        return TableCell(None)
    return TableCell(answer if answer in {"yes", "no"} else _WORDS.get(answer, answer), tone="quiet", mark="·")


_RULE_COLUMNS = (
    TableColumn("rule", "Rule", lambda row: TableCell(label(row["rule"])), _of("rule")),
    TableColumn("about", "About", _cell("about", "code"), _of("about")),
    TableColumn("sentence", "With its numbers", _cell("sentence", "wide"), _of("sentence")),
)

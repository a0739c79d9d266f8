"""Tables of one proposal: what changes, every move, and rules or checks with their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.explain.explain import label
from agent.propose.codec import proposal_to_json
from agent.values.number_format import sized
from agent.values.proposal import Proposal, ProposalKind
from agent.web.page.environment import short_client
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, replica_tiles, value_words

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

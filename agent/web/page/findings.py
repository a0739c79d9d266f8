"""The findings: each with its evidence, since when it is there, and what mends it."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from agent.simulate.evaluation import StageEvaluation
from agent.values.number_format import lasted, sized
from agent.web.page.environment import proposal_link, rendered, subject_link, subject_words
from agent.web.page.page_documents import FindingRemedies, FindingRemedy, shared_findings
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, severity_cell

_SEVERITIES = ("critical", "warning", "info")
_RANK = {name: rank for rank, name in enumerate(_SEVERITIES)}


def findings_view(asked: PageRequest) -> Response:
    """The view; with ``id`` the one finding."""
    rows = shared_findings(asked)
    wanted = asked.query.get("id")
    if wanted is not None:
        rows = [row for row in rows if row["id"] == wanted]
        if not rows:
            return asked.problem(
                404,
                "No such finding",
                "The last look has no finding with this id.",
                "It has ended, or its subject was not seen. The list of findings has what there is now.",
            )
    return asked.page(
        "findings.html",
        "Findings",
        tables=(_table(asked, rows, is_one=wanted is not None),),
        is_one=wanted is not None,
        gaps=bool(asked.look.snapshot.gaps),
    )


def _table(asked: PageRequest, rows: list[Any], *, is_one: bool) -> TableSource:
    look = asked.look
    by_id = asked.made("findings by id", lambda fresh: {one.id: one for one in fresh.detection.findings})
    kinds = sorted({row["subject"].partition("/")[0] for row in rows})

    remedies = asked.made("remedies", FindingRemedies)

    def remedy(row: TableRow) -> FindingRemedy:
        return remedies.of(by_id[row["id"]]) if row["id"] in by_id else FindingRemedy((), ())

    return TableSource(
        title="Findings",
        unit="finding",
        rows=rows,
        columns=(
            TableColumn("severity", "Severity", _severity, lambda row: _RANK[row["severity"]]),
            TableColumn(
                "subject",
                "About",
                lambda row: _subject(row, look),
                lambda row: row["subject"],
            ),
            TableColumn("finding", "Finding", lambda row: _sentence(row, is_open=is_one), lambda row: row["sentence"]),
            TableColumn(
                "since",
                "Since",
                lambda row: TableCell(_age(row, look), hint="time since the first look that saw it"),
                lambda row: row["since_ms"],
                hint="time since the first look that saw it",
            ),
            TableColumn(
                "mends",
                "What mends it",
                lambda row: TableCell(_remedy(remedy(row)), tone="wide"),
                lambda row: remedy(row).words,
                is_sorted=False,
            ),
        ),
        text=lambda row: f"{row['subject']} {row['finding']} {row['sentence']}",
        choices=(
            TableChoice("severity", "Severity", _SEVERITIES, lambda row: row["severity"]),
            TableChoice("kind", "About", kinds, lambda row: row["subject"].partition("/")[0], is_of_rows=True),
        ),
        empty="No part of the cluster is unseen, and nothing was found."
        if not look.snapshot.gaps
        else "Nothing was found in what was seen; parts of the cluster were not seen.",
        page_rows=25,
        stacks=True,
    )


def _severity(row: TableRow) -> TableCell:
    return severity_cell(row["severity"])


def _subject(row: TableRow, look: StageEvaluation) -> TableCell:
    kind, _, name = row["subject"].partition("/")
    is_there = kind != "group" or name in look.snapshot.groups
    link = subject_link(kind, name) if is_there else None
    return TableCell(subject_words(row["subject"]), link, tone="name", hint=row["subject"])


def _sentence(row: TableRow, *, is_open: bool) -> TableCell:
    evidence = [(name.replace("_", " "), _rounded(name, value)) for name, value in row["evidence"].items()]
    return TableCell(rendered("evidence.html", row=row, evidence=evidence, is_open=is_open), tone="wide")


def _rounded(name: str, value: object) -> object:
    """A rate as elsewhere on the page; the document has all its digits."""
    if not isinstance(value, float):
        return value
    return f"{sized(value)}/s" if "bytes/s" in name else f"{value:,.6g}"


def _age(row: TableRow, look: StageEvaluation) -> Markup:
    return rendered("since.html", ms=row["since_ms"], age=lasted(look.snapshot.taken_ms - row["since_ms"]))


def _remedy(remedy: FindingRemedy) -> Markup:
    links = [(f"{kind} {proposal_id}", proposal_link(proposal_id)) for proposal_id, kind in remedy.proposals]
    return rendered("remedy.html", remedy=remedy, links=links)


VIEWS = (PageView("/findings", findings_view, fields={"id": ()}),)

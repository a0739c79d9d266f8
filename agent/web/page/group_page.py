"""One group: its readers and what they read under each assignor, and why it is not made to rebalance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from agent.documents.comparison import columns_row, prediction_of
from agent.documents.explanation import explained_rows, needs_journal
from agent.documents.views import group as group_document
from agent.explain.explain import label
from agent.money.traffic import bytes_between, usd_between
from agent.plan.gain_thresholds import group_comparison
from agent.plan.new_partitions import unknown_group
from agent.plan.plugin_gain import plugin_question
from agent.values.finding import SubjectId
from agent.values.memo import Memo
from agent.values.observation import ObservationPart
from agent.values.plan import Plan
from agent.values.proposal import Allow, Hold, Proposal, Verdict
from agent.values.snapshot import ReaderGroup
from agent.web.page.environment import proposal_link, rack_link, rendered, short_name, utc_words
from agent.web.page.group_tiles import COLUMNS, AssignmentRow, ColumnShown, GroupTiles
from agent.web.page.groups import heat_cell, shared_ledger
from agent.web.page.page_documents import shared_costs
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, fields_of

if TYPE_CHECKING:
    from agent.simulate.evaluation import StageEvaluation

_ANSWERS = ("yes", "no", "wait", "unknown", "found", "fact")
_PER_READ = "local"
"""The rule that is asked of every read: the tiles show it."""


class VerdictShown(NamedTuple):
    """A proposal about the group, and what the guard says of it."""

    proposal: Proposal
    href: Markup
    word: str
    """``allowed``, ``held``, ``refused``, or ``not judged``."""
    sentence: str
    until: str
    """When it is judged anew; empty where that is unknown."""


def group_view(asked: PageRequest) -> Response:
    """The view of the group ``id``."""
    name, look = asked.query.get("id", ""), asked.look
    if name not in look.snapshot.groups:
        why = unknown_group(name, look.snapshot)
        return asked.problem(
            404, "No such group", f"{why.what}: {why.why}." if why.why else f"{why.what}.", why.todo or ""
        )
    document = asked.made(("group", name), lambda fresh: group_document(name, shared_costs(asked), fresh))
    group = look.snapshot.groups[name]
    prediction = asked.made(("prediction", name), lambda fresh: prediction_of(name, fresh))
    tiles, columns = None, list[ColumnShown]()
    tables = [_members_table(document["member_list"]), _topics_table(document["topic_list"])]
    comparison = None
    if isinstance(group, ReaderGroup):
        assessment = look.detection.assessments.get(name)
        question = plugin_question(group, assessment, look.snapshot, look.limits, Memo())
        tiles = GroupTiles(group, assessment, prediction, look.snapshot, question)
        columns = tiles.columns()
        tables.append(_assignments_table(tiles, [one.key for one in columns]))
        compared = group_comparison(group, assessment, prediction, look.snapshot, look.limits)
        comparison = columns_row(compared, question)
    tables.append(_rules_table(_rules(asked, name, look)))
    shares = shared_ledger(asked).shares(name)
    return asked.page(
        "group.html",
        f"Group {short_name(name)}",
        tables=tables,
        name=name,
        document=document,
        comparison=comparison,
        columns=columns,
        keys=tiles.keys if tiles is not None else (),
        shares=[(rack, heat_cell(shares[rack])) for rack in sorted(shares, key=lambda one: (one is None, one or ""))],
        across=bytes_between(document["cross_rack_bytes_per_s"], document["at_most_cross_rack_bytes_per_s"]),
        money=usd_between(document["usd_per_day"], document["at_most_usd_per_day"]),
        verdicts=_verdicts(asked, name),
        why_not=_why_not(look, name),
        is_hidden=look.snapshot.gaps and not document["member_list"],
        groups_gap=any(gap.part is ObservationPart.GROUPS for gap in look.snapshot.gaps),
    )


def _rules(asked: PageRequest, name: str, look: StageEvaluation) -> list[dict[str, Any]]:
    """Every rule and check about the group, but for the one that is asked of each read."""
    subject = f"group/{name}"
    view, why = None, "the journal is not read by this agent"
    if needs_journal(subject, look):
        records = asked.agent.journal()
        view, why = (records.view, "") if records.known else (None, records.why)
    rows = explained_rows(subject, look, view, why)
    return [dict(row) for row in rows if row["rule"] != _PER_READ]


def _verdicts(asked: PageRequest, name: str) -> list[VerdictShown]:
    verdicts = asked.agent.verdicts(asked.finished)
    about = [p for p in asked.look.proposals if (p.subject.kind, p.subject.name) == ("group", name)]
    return [_verdict(proposal, verdicts.get(proposal.id)) for proposal in about]


def _verdict(proposal: Proposal, verdict: Verdict | None) -> VerdictShown:
    until = utc_words(verdict.until_ms) if isinstance(verdict, Hold) and verdict.until_ms is not None else ""
    word = "not judged" if verdict is None else {Allow: "allowed", Hold: "held"}.get(type(verdict), "refused")
    sentence = "the guard has not judged it yet" if verdict is None else verdict.sentence
    return VerdictShown(proposal, proposal_link(proposal.id), word, sentence, until)


def _why_not(look: StageEvaluation, name: str) -> str | None:
    """Why nothing is planned for the group; None where something is, or where there is no reason to plan."""
    plan = look.plan or Plan()
    keys = {SubjectId("group", name), *(one.id for one in look.detection.findings if one.group == name)}
    found = (why.value for key, why in plan.unplanned if key in keys)
    return next(found, None)


def _text(name: str, title: str, tone: str = "") -> TableColumn:
    return TableColumn(name, title, lambda row: TableCell(row[name], tone=tone), lambda row: row[name])


def _rack_column(name: str, title: str) -> TableColumn:
    def cell(row: TableRow) -> TableCell:
        return TableCell(row[name], rack_link(row[name]) if row[name] is not None else None)

    return TableColumn(name, title, cell, lambda row: row[name])


def _count_cell(count: int | None) -> TableCell:
    return TableCell(None if count is None else f"{count:,}")


def _members_table(rows: Sequence[Any]) -> TableSource:
    def assigned(row: TableRow) -> int | None:
        return None if row["assigned"] is None else len(row["assigned"])

    return TableSource(
        key="members",
        title="Members",
        unit="member",
        rows=rows,
        columns=(
            _text("client_id", "Client", "name"),
            _text("host", "Host"),
            _rack_column("rack", "Rack"),
            TableColumn("known_from", "Known from", _known_from, lambda row: row["known_from"]),
            TableColumn("assigned", "Partitions", lambda row: _count_cell(assigned(row)), assigned, is_number=True),
            TableColumn(
                "defects",
                "Defects",
                lambda row: TableCell("; ".join(row["defects"]) or "none", tone="wide" if row["defects"] else "quiet"),
                lambda row: row["defects"],
            ),
            _text("member", "Member id", "code"),
        ),
        text=lambda row: f"{row['client_id']} {row['host']} {row['rack'] or ''} {row['member']}",
        empty="No member is shown.",
        page_rows=20,
        stacks=True,
    )


def _known_from(row: TableRow) -> TableCell:
    return TableCell(row["known_from"] or "nowhere", tone="quiet")


def _topics_table(rows: Sequence[Any]) -> TableSource:
    return TableSource(
        key="topics",
        title="Reads by topic and rack",
        unit="row",
        rows=rows,
        columns=(
            _text("topic", "Topic", "name"),
            _rack_column("rack", "Readers in"),
            TableColumn(
                "partitions", "Partitions", lambda row: _count_cell(row["partitions"]), lambda row: row["partitions"],
                is_number=True,
            ),
            TableColumn(
                "cross_rack_bytes_per_s",
                "Across racks",
                lambda row: TableCell(
                    bytes_between(row["cross_rack_bytes_per_s"], row["at_most_cross_rack_bytes_per_s"])
                ),
                lambda row: row["cross_rack_bytes_per_s"],
                is_number=True,
                falls=True,
                beside=fields_of("at_most_cross_rack_bytes_per_s"),
            ),
            TableColumn(
                "usd_per_day",
                "$ a day",
                lambda row: TableCell(usd_between(row["usd_per_day"], row["at_most_usd_per_day"])),
                lambda row: row["usd_per_day"],
                is_number=True,
                falls=True,
                beside=fields_of("at_most_usd_per_day"),
            ),
        ),
        text=lambda row: f"{row['topic']} {row['rack'] or ''}",
        empty="No read is shown.",
        page_rows=20,
    )  # fmt: skip


def _assignments_table(tiles: GroupTiles, keys: Sequence[str]) -> TableSource:
    rows = tiles.rows()
    readers = {(row.name, row.role): row.readers for row in rows}

    def reader(name: str) -> TableColumn:
        def racks(row: TableRow) -> str | None:
            of = readers[row["name"], row["role"]][name]
            return ", ".join(tiles.rack_of(one) or "unknown rack" for one in of) or None

        def cell(row: TableRow) -> TableCell:
            if row[name] is None:
                return TableCell("·", tone="none")
            return TableCell(f"{row[name]} ({racks(row)})", tone="code")

        return TableColumn(name, COLUMNS[name], cell, lambda row: row[name], beside={f"{name}_racks": racks})

    return TableSource(
        key="assignments",
        title="Partitions or tasks under each assignor",
        unit="row",
        rows=[_assignment(row) for row in rows],
        columns=(
            _text("name", "Partition or task", "name"),
            _text("role", "Role"),
            _rack_column("leader_rack", "Leader in"),
            *map(reader, keys),
        ),
        text=lambda row: " ".join(str(value) for value in row.values() if value is not None),
        empty="No assignment is shown.",
        page_rows=20,
    )


def _assignment(row: AssignmentRow) -> dict[str, str | None]:
    readers = {column: ", ".join(of) or None for column, of in row.readers.items()}
    return {"name": row.name, "role": row.role, "leader_rack": row.leader_rack, **readers}


def _rule_cell(row: TableRow) -> TableCell:
    return TableCell(label(row["rule"]), tone="name")


def _rules_table(rows: Sequence[Any]) -> TableSource:
    """Without what they are about where that is the group alone; the other names do not break."""
    several = len({row["about"] for row in rows}) > 1
    about = TableColumn(
        "about", "About", lambda row: TableCell(row["about"], tone="one-line"), lambda row: row["about"]
    )
    return TableSource(
        key="rules",
        title="Every rule, with its numbers",
        unit="rule",
        rows=rows,
        columns=(
            TableColumn(
                "answer", "Answer", lambda row: TableCell(rendered("answer.html", answer=row["answer"])),
                lambda row: row["answer"],
            ),
            TableColumn("rule", "Rule", _rule_cell, lambda row: row["rule"]),
            _text("sentence", "Why", "wide"),
            *([about] if several else []),
        ),
        text=lambda row: f"{row['rule']} {row['sentence']} {row['about']}",
        choices=(TableChoice("answer", "Answer", _ANSWERS, lambda row: row["answer"]),),
        page_rows=15,
        stacks=True,
    )  # fmt: skip


VIEWS = (PageView("/groups/group", group_view, fields={"id": ()}, at_times=("assignments",)),)

"""What if: simulated changes as a form, answered for every assignor; the question is the address."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from agent.errors import BadInput
from agent.money.traffic import bytes_words, usd_words
from agent.plan.new_partitions import did_you_mean
from agent.simulate.change_texts import QUESTIONS, ChangeQuestion, changes_of
from agent.values.kafka import COOPERATIVE_STICKY
from agent.values.number_format import counted, sized
from agent.values.snapshot import OtherGroup, StreamsGroup
from agent.web.page.environment import group_link, rendered, subject_link, subject_words
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, fields_of, severity_cell
from agent.web.what_if_answers import MOST_CHANGES, WhatIfAnswer
from config.foreign_text import safe_text

COLUMNS = ("now", "own_assignor", "plugin", "optimum")
_TITLES = {
    "now": "Now", "own_assignor": "Its own assignor then", "plugin": "With the plug-in then", "optimum": "Optimum then",
}  # fmt: skip
_LONGEST = 500
_OF_PAGE = ("format", "table", "view", "told")
"""Fields of the query that any page may have."""
_TABLES = ("groups", "findings", "proposals", "copies", "racks")
"""Keys of the answer's tables, which have fields of their own: ``groups.sort``."""
_SUGGESTED = 200
"""Groups, topics and brokers that the form suggests."""


class AskedQuestion(NamedTuple):
    """A kind of change with the texts that were asked for."""

    question: ChangeQuestion
    texts: tuple[str, ...]
    example: str


def whatif_view(asked: PageRequest) -> Response:
    """The form, and the answer where something is asked."""
    texts = texts_of(asked)
    answer = _unknown_question(asked) or (_answer(asked, texts) if any(texts.values()) else None)
    document = answer.document["simulation"] if answer is not None and answer.document is not None else None
    tables = () if document is None else _tables(document)
    made = asked.page(
        "whatif.html",
        "What if",
        tables=tables,
        questions=_asked_questions(asked, texts),
        answer=answer,
        document=document,
        summary="" if document is None else summary(document),
        command=command_of(texts),
        suggestions=_suggestions(asked),
        most=MOST_CHANGES,
        now_ms=asked.clock().wall_ms,
    )
    if answer is not None and answer.is_pending:
        made.headers["refresh"] = "2"
    return made


def texts_of(asked: PageRequest) -> dict[str, tuple[str, ...]]:
    """Kind of change -> the texts of the query, each once."""
    fields = asked.request.query_params
    return {
        one.name: tuple(dict.fromkeys(text[:_LONGEST].strip() for text in fields.getlist(one.name) if text.strip()))
        for one in QUESTIONS
    }


def _unknown_question(asked: PageRequest) -> WhatIfAnswer | None:
    """The refusal of a field that is no kind of change: an answer without it would be one to another question."""
    known = [one.name for one in QUESTIONS]
    own = (*known, *_OF_PAGE)
    unknown = [one for one in asked.request.query_params if one not in own and one.partition(".")[0] not in _TABLES]
    if not unknown:
        return None
    near = did_you_mean(unknown[0][:_LONGEST], known)
    return WhatIfAnswer(
        refused=f"{safe_text(unknown[0], _LONGEST) or 'a field without a name'}: there is no such change",
        remedy=f"{near}Changes: {', '.join(known)}.",
    )


def _answer(asked: PageRequest, texts: Mapping[str, Sequence[str]]) -> WhatIfAnswer:
    try:
        changes = changes_of(texts)
    except BadInput as error:
        return WhatIfAnswer(refused=f"{error.what.removeprefix('--')}: {error.why}", remedy=error.todo)
    return asked.agent.what_if.ask(asked.look, changes)


def command_of(texts: Mapping[str, Sequence[str]]) -> str:
    """The same question on the command line."""
    words = [f"--{name} {shlex.quote(text)}" for name, some in texts.items() for text in some]
    return " ".join(("rackwise simulate", *words))


def summary(document: Mapping[str, Any]) -> str:
    """What comes of it, in one sentence."""
    groups, found = document["groups"], document["findings"]
    parts = [counted(len(groups), "group is affected", "groups are affected") if groups else "No group is affected"]
    new, gone = (sum(row["change"] == change for row in found) for change in ("new", "gone"))
    if new or gone:
        parts.append(f"{counted(new, 'finding comes', 'findings come')}, {gone:,} {'goes' if gone == 1 else 'go'}")
    proposals = sum(row["change"] == "new" for row in document["proposals"])
    if proposals:
        parts.append(f"{counted(proposals, 'new proposal')} would be made")
    if document["racks"]:
        parts.append(f"the effect of losing a rack changes for {counted(len(document['racks']), 'rack')}")
    return "; ".join(parts) + "."


def _asked_questions(asked: PageRequest, texts: Mapping[str, tuple[str, ...]]) -> list[AskedQuestion]:
    snapshot = asked.look.snapshot
    group = next((name for name, of in snapshot.groups.items() if not isinstance(of, OtherGroup)), "my-group")
    streams = next((name for name, of in snapshot.groups.items() if isinstance(of, StreamsGroup)), "my-application")
    rack = next((one.rack.name for one in snapshot.brokers if one.rack.name), "rack-1")
    broker = snapshot.brokers[0].id if snapshot.brokers else 1
    topic = next(iter(snapshot.topics), "my-topic")
    new = max((one.id for one in snapshot.brokers), default=0) + 1
    examples = {
        "add-member": f"{group}={rack}",
        "remove-member": f"{group}=MEMBER",
        "strategy": f"{group}={COOPERATIVE_STICKY}",
        "standbys": f"{streams}=1",
        "remove-rack": rack,
        "remove-broker": str(broker),
        "add-rack": f"new-rack={new},{new + 1}",
        "add-broker": f"{new}={rack}",
        "add-replica": f"{topic}-0={broker}",
        "remove-replica": f"{topic}-0={broker}",
        "replication-factor": f"{topic}=3",
    }
    return [AskedQuestion(one, texts[one.name], examples[one.name]) for one in QUESTIONS]


def _suggestions(asked: PageRequest) -> dict[str, list[str]]:
    """Values that a field may take, by kind of change; a large cluster's are too many."""
    snapshot = asked.look.snapshot
    racks = sorted({one.rack.name for one in snapshot.brokers if one.rack.name})
    brokers = [str(one.id) for one in snapshot.brokers[:_SUGGESTED]]
    groups = [name for name, of in snapshot.groups.items() if not isinstance(of, OtherGroup)][:_SUGGESTED]
    members = [f"{name}={rack}" for name in groups for rack in racks]
    return {
        "remove-rack": racks[:_SUGGESTED],
        "remove-broker": brokers,
        "add-member": members if len(members) <= _SUGGESTED else groups,
        "strategy": [f"{name}=" for name in groups],
        "standbys": [f"{name}=1" for name in groups if isinstance(snapshot.groups[name], StreamsGroup)],
        "replication-factor": [f"{name}=3" for name in list(snapshot.topics)[:_SUGGESTED]],
    }


def _tables(document: Mapping[str, Any]) -> tuple[TableSource, ...]:
    return (
        group_table(document["groups"]),
        finding_table(document["findings"]),
        proposal_table(document["proposals"]),
        copies_table(document["copies"]),
        rack_table(document["racks"]),
    )


def group_table(rows: Sequence[TableRow]) -> TableSource:
    """Affected groups; the plug-in has a column where it concerns one of them."""
    names = [one for one in COLUMNS if one != "plugin" or any(row["plugin_gain"] is not None for row in rows)]

    def outcome(row: TableRow, name: str) -> TableCell:
        if name == "plugin" and row[name] is None:
            return TableCell(row["plugin_gain"] or "·", tone="wide" if row["plugin_gain"] else "none")
        return TableCell(rendered("outcome.html", of=row[name]))

    def column(name: str) -> TableColumn:
        return TableColumn(
            name,
            _TITLES[name],
            lambda row: outcome(row, name),
            lambda row: None if row[name] is None else row[name]["crossing"],
            falls=True,
            beside={
                **{f"{name}_{field}": _figure(name, field) for field in _COSTS},
                **(fields_of("plugin_gain") if name == "plugin" else {}),
            },
        )

    return TableSource(
        key="groups",
        title="Groups: now, and what each assignor gives then",
        unit="group",
        rows=rows,
        columns=(
            TableColumn("group", "Group", lambda row: TableCell(row["group"], group_link(row["group"]), tone="name"),
                        lambda row: row["group"]),
            *(column(name) for name in names),
            TableColumn("waiting", "Waits", _waiting, lambda row: row["waiting"], is_number=True,
                        hint="partitions without a reader until the group has rebalanced"),
            TableColumn("note", "Note", lambda row: TableCell(row["note"], tone="wide"), lambda row: row["note"]),
        ),
        text=lambda row: f"{row['group']} {row['kind']} {row['note']}",
        empty="No group is affected.",
        page_rows=25,
        stacks=True,
    )  # fmt: skip


_COSTS = ("reads", "unknown", "crossing_bytes_per_s", "usd_per_day", "moved", "standbys", "standbys_sharing_a_rack")


def _figure(column: str, field: str) -> Any:
    """One figure of an assignment."""
    return lambda row: None if row[column] is None else row[column][field]


def _waiting(row: TableRow) -> TableCell:
    return TableCell(None if row["waiting"] is None else f"{row['waiting']:,}")


def finding_table(rows: Sequence[TableRow]) -> TableSource:
    """Findings that come and go."""
    return TableSource(
        key="findings",
        title="Findings that come and go",
        unit="finding",
        rows=rows,
        columns=(
            TableColumn("change", "Change", _change, lambda row: row["change"]),
            TableColumn("severity", "Severity", lambda row: severity_cell(row["severity"]),
                        lambda row: row["severity"]),
            TableColumn("subject", "About", lambda row: TableCell(subject_words(row["subject"]), tone="name"),
                        lambda row: row["subject"]),
            TableColumn("sentence", "Finding", lambda row: TableCell(row["sentence"], tone="wide"),
                        lambda row: row["sentence"]),
        ),
        text=lambda row: f"{row['subject']} {row['sentence']}",
        empty="No finding comes or goes.",
        page_rows=15,
        stacks=True,
    )  # fmt: skip


def _change(row: TableRow) -> TableCell:
    marks = {
        "new": ("one-line", "+", "comes"),
        "gone": ("quiet one-line", "−", "goes"),  # noqa: RUF001 (a minus sign is meant)
        "unchanged": ("quiet one-line", "=", "stays"),
    }
    tone, mark, words = marks[row["change"]]
    return TableCell(words, tone=tone, mark=mark)


def proposal_table(rows: Sequence[TableRow]) -> TableSource:
    """What would be proposed."""
    return TableSource(
        key="proposals",
        title="Proposals then",
        unit="proposal",
        rows=rows,
        columns=(
            TableColumn("change", "Change", _change, lambda row: row["change"]),
            TableColumn("kind", "Kind", lambda row: TableCell(row["kind"]), lambda row: row["kind"]),
            TableColumn("subject", "About",
                        lambda row: TableCell(row["subject"], subject_link(*_pair(row["subject"])), tone="name"),
                        lambda row: row["subject"]),
            TableColumn("sentence", "Change of it", lambda row: TableCell(row["sentence"], tone="wide"),
                        lambda row: row["sentence"]),
        ),
        text=lambda row: f"{row['subject']} {row['sentence']}",
        choices=(TableChoice("change", "Change", ("new", "gone", "unchanged"), lambda row: row["change"]),),
        sort="-change",
        empty="Nothing would be proposed.",
        page_rows=15,
        stacks=True,
    )  # fmt: skip


def _pair(subject: str) -> tuple[str, str]:
    kind, _, name = subject.partition("/")
    return kind, name


def copies_table(rows: Sequence[TableRow]) -> TableSource:
    """What added replicas cost."""

    def rate(name: str) -> Any:
        return lambda row: TableCell(bytes_words(row[name]))

    def dollars(name: str) -> Any:
        return lambda row: TableCell(usd_words(row[name]))

    return TableSource(
        key="copies",
        title="Cost of the added replicas",
        unit="topic",
        rows=rows,
        columns=(
            TableColumn("topic", "Topic", lambda row: TableCell(row["topic"], tone="name"), lambda row: row["topic"]),
            TableColumn("replicas_added", "Added", lambda row: TableCell(f"{row['replicas_added']:,}"),
                        lambda row: row["replicas_added"], is_number=True),
            TableColumn("bytes_to_copy", "To copy, once",
                        lambda row: TableCell(None if row["bytes_to_copy"] is None else sized(row["bytes_to_copy"])),
                        lambda row: row["bytes_to_copy"], is_number=True),
            TableColumn("cross_rack_bytes_per_s_now", "Copied across racks now", rate("cross_rack_bytes_per_s_now"),
                        lambda row: row["cross_rack_bytes_per_s_now"], is_number=True),
            TableColumn("cross_rack_bytes_per_s_then", "Then", rate("cross_rack_bytes_per_s_then"),
                        lambda row: row["cross_rack_bytes_per_s_then"], is_number=True),
            TableColumn("usd_per_day_now", "A day now", dollars("usd_per_day_now"),
                        lambda row: row["usd_per_day_now"], is_number=True),
            TableColumn("usd_per_day_then", "A day then", dollars("usd_per_day_then"),
                        lambda row: row["usd_per_day_then"], is_number=True),
        ),
        empty="No replica is added.",
    )  # fmt: skip


def rack_table(rows: Sequence[TableRow]) -> TableSource:
    """Racks whose loss costs something else."""

    def loss(name: str) -> Any:
        return lambda row: TableCell(row[name] or "there is no such rack", tone="wide" if row[name] else "quiet")

    return TableSource(
        key="racks",
        title="Losing a rack",
        unit="rack",
        rows=rows,
        columns=(
            TableColumn("rack", "Rack", lambda row: TableCell(row["rack"], tone="name"), lambda row: row["rack"]),
            TableColumn("now", "Now", loss("now"), lambda row: row["now"]),
            TableColumn("then", "Then", loss("then"), lambda row: row["then"]),
        ),
        empty="Losing a rack costs the same.",
        stacks=True,
    )


VIEWS = (PageView("/whatif", whatif_view, at_times=_TABLES, has_questions=True),)

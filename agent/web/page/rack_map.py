"""The rack map: racks as rooms, what flows between them, the same as a matrix, and what losing a rack costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from agent.documents.views_money import PATH_WORDS, RackFlow, RackFlows, rack_flows
from agent.money.traffic import bytes_words, usd_words
from agent.values.number_format import counted, sized
from agent.web.page.environment import group_link, rack_link
from agent.web.page.page_documents import shared_costs, shared_racks
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.svg_rack_map import MOST_FLOWS, MOST_ROOMS, rack_map
from agent.web.page.tables import TableCell, TableColumn, TableRow, TableSource, fields_of

if TYPE_CHECKING:
    from agent.documents.cluster import LossDocument, RackDocument

MOST_IN_MATRIX = 24
"""Racks of the matrix; the table of flows has all pairs."""


class MatrixCell(NamedTuple):
    """What goes from one rack to another."""

    words: str | None
    """None is unknown."""
    hint: str
    tone: str = ""


class MatrixRow(NamedTuple):
    """What goes out of one rack."""

    rack: str
    cells: Sequence[MatrixCell]


def rack_view(asked: PageRequest) -> Response:
    """The view; with ``rack`` the loss of that rack."""
    racks, flows = shared_racks(asked), shared_flows(asked)
    wanted = asked.query.get("rack")
    chosen = next((row for row in racks if wanted is not None and row["rack"] == wanted), None)
    names = [str(row["rack"]) for row in racks if row["rack"] is not None]
    tables = [_racks_table(racks), _flows_table(flows)]
    if chosen is not None and chosen["loss"] is not None:
        tables.append(_loss_table(chosen["loss"]))
        tables.append(_survivors_table(chosen["loss"]))
    return asked.page(
        "racks.html",
        "Rack map",
        tables=tables,
        picture=rack_map(racks, flows, selected=wanted),
        racks=len(names),
        flows=len(flows.flows),
        most_flows=MOST_FLOWS,
        most_rooms=MOST_ROOMS,
        matrix=_matrix(names[:MOST_IN_MATRIX], flows),
        matrix_names=names[:MOST_IN_MATRIX],
        matrix_left_out=max(0, len(names) - MOST_IN_MATRIX),
        unknown=[
            _unknown_words(one.path, one.unknown, one.parts, one.open_bytes_per_s, one.unbounded)
            for one in flows.unknown
        ],
        paths=PATH_WORDS,
        wanted=wanted,
        chosen=chosen,
        is_measured=flows.is_measured,
        why_not=asked.look.rates.why_not,
    )


def shared_flows(asked: PageRequest) -> RackFlows:
    """Flows between racks of the look."""
    costs = shared_costs(asked)
    copies = asked.moves.copies
    return asked.made("flows", lambda look: rack_flows(costs, look.snapshot, look.limits, copies))


def _unknown_words(path: str, unknown: int, parts: int, open_bytes_per_s: float, unbounded: int) -> str:
    what = counted(parts, "read", "reads") if path == "consume" else counted(parts, "copy", "copies")
    words = f"{path}: of {unknown:,} of {what} it is unknown between which racks they go"
    if open_bytes_per_s:
        words += f", {sized(open_bytes_per_s)}/s at most"
    return words + (f"; the rate of {unbounded:,} of them is unknown too" if unbounded else "")


def _matrix(names: Sequence[str], flows: RackFlows) -> list[MatrixRow]:
    """From each rack to each rack, all paths together."""
    by_pair: dict[tuple[str, str], list[RackFlow]] = {}
    for flow in flows.flows:
        by_pair.setdefault((flow.source, flow.target), []).append(flow)
    may_hide = bool(flows.unknown) or not flows.is_measured
    return [
        MatrixRow(source, [_cell(source, target, by_pair.get((source, target), ()), may_hide) for target in names])
        for source in names
    ]


def _cell(source: str, target: str, flows: Sequence[RackFlow], may_hide: bool) -> MatrixCell:  # noqa: FBT001
    if source == target:
        return MatrixCell("·", "inside the rack", "quiet")
    if not flows:
        return MatrixCell(None if may_hide else "0 B/s", f"{source} to {target}")
    known = [flow for flow in flows if flow.bytes_per_s is not None]
    if not known:
        return MatrixCell(None, f"{source} to {target}: a reassignment of unknown rate")
    rate = bytes_words(sum(flow.bytes_per_s or 0.0 for flow in known), at_least=may_hide or len(known) < len(flows))
    prices = [flow.usd_per_day for flow in known]
    price = None if None in prices else usd_words(sum(one or 0.0 for one in prices))
    return MatrixCell(f"{rate}{f' · {price}' if price else ''}", f"{source} to {target}")


def _rack(name: str | None, *, linked: bool = True) -> TableCell:
    return TableCell(name, rack_link(name) if name is not None and linked else None, tone="name")


def _count(name: str) -> TableColumn:
    title = name.replace("_tasks", "").replace("active", "tasks").capitalize()
    return TableColumn(
        name,
        title,
        lambda row: TableCell(None if row[name] is None else f"{row[name]:,}"),
        lambda row: row[name],
        is_number=True,
        falls=True,
    )


def _bytes(name: str, title: str) -> TableColumn:
    def cell(row: TableRow) -> TableCell:
        return TableCell(bytes_words(row[name], at_least=bool(row.get("unknown_parts"))))

    return TableColumn(name, title, cell, lambda row: row[name], is_number=True, falls=True)


def _usd(name: str = "usd_per_day") -> TableColumn:
    def cell(row: TableRow) -> TableCell:
        return TableCell(usd_words(row[name], at_least=bool(row.get("unknown_parts"))))

    return TableColumn(name, "$ a day", cell, lambda row: row[name], is_number=True, falls=True)


def _racks_table(racks: Sequence[RackDocument]) -> TableSource:
    return TableSource(
        key="racks",
        title="Racks",
        unit="row",
        rows=racks,
        columns=(
            TableColumn("rack", "Rack", lambda row: _rack(row["rack"]), lambda row: row["rack"]),
            TableColumn(
                "brokers",
                "Brokers",
                lambda row: TableCell(
                    None if row["brokers"] is None else ", ".join(map(str, row["brokers"])) or "none"
                ),
                lambda row: row["brokers"],
            ),
            *map(_count, ("leaders", "replicas", "members", "active_tasks", "standby_tasks")),
            _bytes("cross_rack_in_bytes_per_s", "In"),
            _bytes("cross_rack_out_bytes_per_s", "Out"),
            _usd()._replace(beside=fields_of("unknown_parts")),
            TableColumn(
                "losing_it",
                "Losing it",
                lambda row: TableCell("·" if row["losing_it"] is None else row["losing_it"], tone="wide"),
                lambda row: row["losing_it"],
            ),
        ),
        text=lambda row: str(row["rack"]),
        empty="No broker answered.",
        stacks=True,
    )


def _flows_table(flows: RackFlows) -> TableSource:
    rows: list[dict[str, Any]] = [
        {
            "from_rack": flow.source,
            "to_rack": flow.target,
            "path": flow.path,
            "bytes_per_s": flow.bytes_per_s,
            "usd_per_day": flow.usd_per_day,
            "replicas": flow.parts,
        }
        for flow in flows.flows
    ]
    may_hide = bool(flows.unknown) or not flows.is_measured
    return TableSource(
        key="flows",
        title="Flows between racks",
        unit="flow",
        rows=rows,
        columns=(
            TableColumn("from_rack", "From", lambda row: _rack(row["from_rack"]), lambda row: row["from_rack"]),
            TableColumn("to_rack", "To", lambda row: _rack(row["to_rack"]), lambda row: row["to_rack"]),
            TableColumn("path", "Path", lambda row: TableCell(row["path"]), lambda row: row["path"]),
            _bytes("bytes_per_s", "Bytes per second"),
            _usd(),
        ),
        text=lambda row: f"{row['from_rack']} {row['to_rack']} {row['path']}",
        empty="No flow is known; that does not say that there is none." if may_hide else "Nothing crosses racks.",
    )


def _loss_table(loss: LossDocument) -> TableSource:
    """What stops or restores, one row for each partition or task."""
    rows: list[dict[str, str | None]] = []
    for what, effect in (
        ("leaderless", "has no leader"),
        ("under_min_isr", "is under min ISR: acks=all is refused"),
        ("untold", "unknown"),
    ):
        rows += [{"kind": "partition", "name": name, "group": None, "effect": effect} for name in loss[what]]  # type: ignore[literal-required]
    for what, effect in (
        ("tasks_without_caught_up_standby", "restores: no caught-up standby is elsewhere"),
        ("untold_tasks", "unknown"),
    ):
        rows += [
            {"kind": "task", "name": task["task"], "group": task["group"], "effect": effect}
            for task in loss[what]  # type: ignore[literal-required]
        ]
    rows += [
        {"kind": "application", "name": name, "group": name, "effect": "unknown"} for name in loss["untold_groups"]
    ]
    rows += [{"kind": "not seen", "name": name, "group": None, "effect": "may hide more"} for name in loss["not_seen"]]

    def name_cell(row: TableRow) -> TableCell:
        named = f"{row['group']} {row['name']}" if row["kind"] == "task" else row["name"]
        return TableCell(named, None if row["group"] is None else group_link(row["group"]), tone="name")

    return TableSource(
        key="loss",
        title="What stops or restores",
        unit="row",
        rows=rows,
        columns=(
            TableColumn("kind", "Kind", lambda row: TableCell(row["kind"]), lambda row: row["kind"]),
            TableColumn("name", "Name", name_cell, lambda row: row["name"], beside=fields_of("group")),
            TableColumn(
                "effect",
                "Effect",
                lambda row: TableCell(None if row["effect"] == "unknown" else row["effect"]),
                lambda row: row["effect"],
            ),
        ),
        text=lambda row: f"{row['kind']} {row['name']} {row['effect']}",
        empty="Nothing that was seen stops or restores.",
        page_rows=20,
    )


def _survivors_table(loss: LossDocument) -> TableSource:
    return TableSource(
        key="survivors",
        title="Load on the other brokers",
        unit="broker",
        rows=loss["survivors"],
        columns=(
            TableColumn("broker", "Broker", lambda row: TableCell(str(row["broker"])), lambda row: row["broker"]),
            TableColumn("rack", "Rack", lambda row: _rack(row["rack"]), lambda row: row["rack"]),
            _count("leaders"),
            _after("leaders_after", "Leads then", lambda value: f"{value:,}"),
            _after("bytes_per_s", "Takes in", lambda value: f"{sized(value)}/s"),
            _after("bytes_per_s_after", "Takes in then", lambda value: f"{sized(value)}/s"),
        ),
        empty="No topic was seen and some may be hidden, so the load is unknown.",
        page_rows=20,
    )


def _after(name: str, title: str, words: Any) -> TableColumn:
    def cell(row: TableRow) -> TableCell:
        return TableCell(None if row[name] is None else words(row[name]))

    return TableColumn(name, title, cell, lambda row: row[name], is_number=True, falls=True)


VIEWS = (PageView("/racks", rack_view, is_of_all=True, fields={"rack": ()}, at_times=("loss", "survivors")),)

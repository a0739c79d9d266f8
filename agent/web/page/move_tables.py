"""Tables of moves: plans, their partitions, copies by partition and broker, throttles, and moves of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent.values.number_format import counted, lasted, sized
from agent.web.page.environment import address, percent, rendered
from agent.web.page.replica_tiles import replica_tiles
from agent.web.page.tables import TableCell, TableColumn, TableRow, TableSource
from config.foreign_text import listed

if TYPE_CHECKING:
    from agent.documents.proposals import CopyRow, MoveRow, PlanRow, ThrottleRow

_TONES = {"done": ("good", "✓"), "failed": ("bad", "✕"), "cancelled": ("quiet", "✕"), "rolled back": ("quiet", "↺")}
_OURS = {True: "rackwise", False: "another tool"}


def _size(value: int | None, unit: str = "") -> TableCell:
    return TableCell(None if value is None else f"{sized(value)}{unit}")


def _left(seconds: int | None) -> TableCell:
    return TableCell(None if seconds is None else lasted(1_000 * seconds))


def broker_table(rows: Sequence[TableRow]) -> TableSource:
    """One row for each broker that takes copies."""
    return TableSource(
        key="brokers",
        title="Copies by broker",
        unit="broker",
        rows=rows,
        columns=(
            TableColumn("broker", "Broker", lambda row: TableCell(str(row["broker"])), lambda row: row["broker"]),
            TableColumn("copies", "Copies", lambda row: TableCell(f"{row['copies']:,}"), lambda row: row["copies"],
                        is_number=True, falls=True),
            TableColumn("bytes", "There", lambda row: _size(row["bytes"]), lambda row: row["bytes"], is_number=True),
            TableColumn("of_bytes", "Of", lambda row: _size(row["of_bytes"]), lambda row: row["of_bytes"],
                        is_number=True),
            TableColumn("bytes_per_s", "Rate", lambda row: _size(row["bytes_per_s"], "/s"),
                        lambda row: row["bytes_per_s"], is_number=True, falls=True),
            TableColumn("seconds_left", "Time left", lambda row: _left(row["seconds_left"]),
                        lambda row: row["seconds_left"], is_number=True, falls=True),
        ),
        empty="No broker takes a copy.",
    )  # fmt: skip


def copy_table(rows: Sequence[CopyRow]) -> TableSource:
    """Every replica that is being copied."""
    return TableSource(
        key="copies",
        title="Copies by partition",
        unit="copy",
        rows=rows,
        columns=(
            TableColumn("partition", "Partition", lambda row: TableCell(row["partition"], tone="name"),
                        lambda row: row["partition"]),
            TableColumn("to_broker", "To broker", lambda row: TableCell(str(row["to_broker"])),
                        lambda row: row["to_broker"], is_number=True),
            TableColumn("copied_share", "Copied", _share, lambda row: row["copied_share"], is_number=True),
            TableColumn("bytes", "There", lambda row: _size(row["bytes"]), lambda row: row["bytes"], is_number=True),
            TableColumn("of_bytes", "Of", lambda row: _size(row["of_bytes"]), lambda row: row["of_bytes"],
                        is_number=True),
            TableColumn("bytes_per_s", "Rate", lambda row: _size(row["bytes_per_s"], "/s"),
                        lambda row: row["bytes_per_s"], is_number=True, falls=True),
            TableColumn("seconds_left", "Time left", lambda row: _left(row["seconds_left"]),
                        lambda row: row["seconds_left"], is_number=True, falls=True),
            TableColumn("ours", "By", lambda row: TableCell(_OURS.get(row["ours"])), lambda row: row["ours"]),
        ),
        text=lambda row: f"{row['partition']} broker {row['to_broker']}",
        empty="No replica is being copied.",
        page_rows=25,
    )  # fmt: skip


def _share(row: TableRow) -> TableCell:
    share = row["copied_share"]
    return TableCell(None if share is None else rendered("copied_share.html", share=share, words=percent(share)))


def plan_table(rows: Sequence[PlanRow], unreadable: str) -> TableSource:
    """Every plan of the journal, the latest first."""
    return TableSource(
        key="plans",
        title="Plans of the journal",
        unit="plan",
        rows=tuple(reversed(rows)),
        columns=(
            TableColumn("plan", "Plan",
                        lambda row: TableCell(row["plan"], address("/moves/plan", id=row["plan"]), tone="code"),
                        lambda row: row["plan"]),
            TableColumn("state", "State", state_cell, lambda row: row["state"]),
            TableColumn("done", "Done", lambda row: TableCell(f"{row['done']:,} of {row['partitions']:,}"),
                        lambda row: row["done"], is_number=True),
            TableColumn("partitions", "Partitions", lambda row: TableCell(f"{row['partitions']:,}"),
                        lambda row: row["partitions"], is_number=True),
            TableColumn("approved_by", "Approved by", lambda row: TableCell(row["approved_by"]),
                        lambda row: row["approved_by"]),
            TableColumn("sentence", "How", lambda row: TableCell(row["sentence"] or row["reason"], tone="wide"),
                        lambda row: row["sentence"]),
        ),
        text=lambda row: f"{row['plan']} {row['state']} {row['approved_by']} {row['sentence']}",
        empty=unreadable or "The journal has no plan.",
        is_unknown=bool(unreadable),
        page_rows=10,
        stacks=True,
    )  # fmt: skip


def state_cell(row: TableRow) -> TableCell:
    """The state of a plan, with a sign of its own."""
    tone, mark = _TONES.get(row["state"], ("accent", "▶"))
    words = f"{row['state']}{', paused' if row['paused'] else ''}"
    return TableCell(rendered("badge.html", tone=tone, mark="⏸" if row["paused"] else mark, words=words))


def target_table(
    plan: PlanRow,
    racks: Mapping[int, str | None],
    copies: Mapping[tuple[str, int], CopyRow],
    moving: frozenset[str] | set[str],
) -> TableSource:
    """The partitions of one plan: before, after, and how far each is."""

    def progress(row: TableRow) -> TableCell:
        name = f"{row['topic']}-{row['partition']}"
        if row["end"] is not None:
            is_done = row["end"] == "moved as planned"
            return TableCell(row["end"], tone="good" if is_done else "warn", mark="✓" if is_done else "◆")
        if name not in moving:
            return TableCell("not begun", tone="quiet", mark="○")
        own = [copies[name, broker] for broker in row["after"] if (name, broker) in copies]
        shares = [one["copied_share"] for one in own]
        if not shares or None in shares:
            return TableCell(rendered("badge.html", tone="accent", mark="▶", words="moves, how far is unknown"))
        least = min(one for one in shares if one is not None)
        return TableCell(rendered("copied_share.html", share=least, words=f"moves, {percent(least)}"))

    return TableSource(
        key="partitions",
        title="Partitions",
        unit="partition",
        rows=plan["targets"],
        columns=(
            TableColumn("partition", "Partition",
                        lambda row: TableCell(f"{row['topic']}-{row['partition']}", tone="name"),
                        lambda row: [row["topic"], row["partition"]]),
            TableColumn("before", "Before",
                        lambda row: TableCell(replica_tiles(row["before"], row["after"], racks, is_after=False)),
                        lambda row: row["before"]),
            TableColumn("after", "After",
                        lambda row: TableCell(replica_tiles(row["after"], row["before"], racks, is_after=True)),
                        lambda row: row["after"]),
            TableColumn("end", "Progress", progress, lambda row: row["end"]),
        ),
        text=lambda row: f"{row['topic']}-{row['partition']} {row['end'] or ''}",
        empty="The journal keeps the number of this old plan's partitions only.",
        page_rows=25,
    )  # fmt: skip


def throttle_table(rows: Sequence[ThrottleRow], unreadable: str) -> TableSource:
    """Throttle settings of rackwise that are set and are to be removed."""
    return TableSource(
        key="throttles",
        title="Throttles to be removed",
        unit="throttle setting",
        rows=rows,
        columns=(
            TableColumn("resource", "Of", lambda row: TableCell(f"{row['resource_kind']} {row['resource']}"),
                        lambda row: f"{row['resource_kind']}/{row['resource']}"),
            TableColumn("key", "Setting", lambda row: TableCell(row["key"], tone="code"), lambda row: row["key"]),
            TableColumn("rate_bytes_per_s", "Value", _throttle, lambda row: row["rate_bytes_per_s"]),
            TableColumn("plan", "Set by", lambda row: TableCell(row["plan"], address("/moves/plan", id=row["plan"])),
                        lambda row: row["plan"]),
        ),
        empty=unreadable or "No throttle of rackwise is set.",
        is_unknown=bool(unreadable),
        page_rows=10,
    )  # fmt: skip


def _throttle(row: TableRow) -> TableCell:
    if row["rate_bytes_per_s"] is not None:
        return TableCell(f"{sized(row['rate_bytes_per_s'])}/s")
    replicas = row["replicas"] or []
    return TableCell(f"for {counted(len(replicas), 'replica')}", hint=listed(replicas))


def other_table(rows: Sequence[MoveRow], not_reported: bool) -> TableSource:  # noqa: FBT001 (a fact about the rows)
    """Reassignments that are not known to be rackwise's own."""
    return TableSource(
        key="others",
        title="Reassignments of other tools",
        unit="reassignment",
        rows=rows,
        columns=(
            TableColumn("partition", "Partition", lambda row: TableCell(row["partition"], tone="name"),
                        lambda row: row["partition"]),
            TableColumn("adding", "Adds", lambda row: TableCell(_brokers(row["adding"])), lambda row: row["adding"]),
            TableColumn("removing", "Removes", lambda row: TableCell(_brokers(row["removing"])),
                        lambda row: row["removing"]),
            TableColumn("replicas", "Replicas now", lambda row: TableCell(_brokers(row["replicas"])),
                        lambda row: row["replicas"]),
            TableColumn("by", "By", lambda row: TableCell(row["by"]), lambda row: row["by"]),
        ),
        text=lambda row: row["partition"],
        empty="Reassignments are unknown: the brokers did not report them."
        if not_reported
        else "The brokers report no reassignment of another tool.",
        page_rows=10,
    )  # fmt: skip


def _brokers(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"

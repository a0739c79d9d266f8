"""Cells of the tables of the journal: plans, copies, throttles and history. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING, Any

from agent.values.number_format import counted, lasted, sized

if TYPE_CHECKING:
    from agent.documents.proposals import CopyRow, HistoryRow, PlanRow, ReassignStatus, ThrottleRow

JournalRow = dict[str, Any]


def plan_cells(row: PlanRow) -> JournalRow:
    """The same for a table."""
    rate = row["rate_bytes_per_s"]
    return {
        **row,
        "state": state_words(row),
        "throttle": None if rate is None else f"{sized(rate)}/s",
    }


def state_words(row: PlanRow) -> str:
    """``open, paused``, or ``done; rollback: p-1-back``."""
    back = f"; rollback: {row['taken_back_by']}" if row["taken_back_by"] is not None else ""
    return f"{row['state']}{', paused' if row['paused'] else ''}{back}"


def copy_cells(row: CopyRow) -> JournalRow:
    """The same for a table."""
    share, rate, left = row["copied_share"], row["bytes_per_s"], row["seconds_left"]
    return {
        **row,
        "copied": None if row["bytes"] is None else sized(row["bytes"]),
        "of": None if row["of_bytes"] is None else sized(row["of_bytes"]),
        "share": None if share is None else f"{floor(100 * share)} %",  # all is said only of all
        "rate": None if rate is None else f"{sized(rate)}/s",
        "time left": None if left is None else lasted(1_000 * left),
    }


def throttle_line(row: ThrottleRow) -> str:
    """``broker 1: leader.replication.throttled.rate 50.0 MB/s (rackwise)``."""
    rate, replicas = row["rate_bytes_per_s"], row["replicas"] or []
    value = f"for {counted(len(replicas), 'replica')}" if rate is None else f"{sized(rate)}/s"
    return f"{row['resource_kind']} {row['resource']}: {row['key']} {value} (rackwise)"


def head_row(document: ReassignStatus) -> JournalRow:
    """For a table: which agent leads, and whether acting is paused."""
    leader, pause = document["leader"], document["paused"]
    return {
        "leader": None if leader is None else f"{leader['agent']} on {leader['host']}",
        "paused": None
        if pause is None
        else f"by {pause['by']} since {_time(pause['since_ms'])}: {pause['reason'] or 'no reason given'}",
    }


def history_cells(row: HistoryRow) -> JournalRow:
    """The same for a table."""
    given = {name: row.get(name) or "-" for name in ("who", "reason", "plan_hash")}
    return {**row, **given, "at": _time(row["at_ms"]), "about": row["about"] or "everything"}


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

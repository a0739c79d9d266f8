"""Cells of the tables of groups, topics, racks, checks and the journal, with units and "≥" where a part is unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING, Any

from agent.cli.output import CellMark, OutputFormat, emit, emit_line, emit_one, emit_text
from agent.cli.output import cell as shown
from agent.documents.views_money import UNKNOWN
from agent.money.traffic import bytes_between, bytes_words, usd_between, usd_words
from agent.values.number_format import counted, lasted, sized
from config.foreign_text import listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from agent.documents.cluster import CheckDocument, LookDocument, RackDocument, UnknownGroups, WorstGroup
    from agent.documents.groups import (
        CrossingDocument,
        GroupDetailsDocument,
        GroupDocument,
        PricedDocument,
        RangeDocument,
        TaskCopyDocument,
        TopicDetailsDocument,
        TopicDocument,
    )
    from agent.documents.proposals import CopyRow, HistoryRow, PlanRow, ReassignStatus, ThrottleRow


GROUPS = ("group", "kind", "members", "local", "best", "across racks", "$/day", "lag")
MOST_LOSSES = 20
"""Racks whose loss is described."""
MOST_ABSENCES = 10
MOST_GAINS = 10
"""Answers about the plug-in for brokers below a table."""
TOPICS = ("topic", "written", "copied", "read", "$/day", "readers")
ACROSS = "copied and read: across racks"
"""Below a table of topics, whose heads have no room for it."""
_BROKER_IDS = "broker ids"
RACKS = ("rack", _BROKER_IDS, "replicas", "leaders", "members", "tasks")
BORDERS = ("rack", "from other racks", "to other racks", "$/day for what comes in")
WORST = ("group", "across racks", "$/day")
BEHIND = "changelog lag"
"""Records by which the copy of a task is behind its changelog, restoring or not: not the lag of a group."""
_MANY = 3
"""Rows from which on a column of one value is said once."""
_WHOLE, _LEAST = 0.995, 0.005


def across_racks(total: CrossingDocument, look: LookDocument) -> str | None:
    """All that crosses racks, as one cell."""
    if not look["topics"]:
        return "nothing to measure: no topic was seen"
    rate = bytes_between(total["bytes_per_s"], total["at_most_bytes_per_s"])
    money = usd_between(total["usd_per_day"], total["at_most_usd_per_day"])
    if rate is None:
        return None
    parts = counted(total["parts"], "read or copy", "reads and copies")
    unknown = f" ({total['unknown']} of {parts} unknown)" if total["unknown"] else ""
    return f"{rate}{'' if money is None else f', {money}/day'}{unknown}"


def with_money(columns: Iterable[str], *, priced: bool) -> tuple[str, ...]:
    """The columns of a table; without those of money where no price is set."""
    return tuple(name for name in columns if priced or "$/day" not in name)


def basis(look: LookDocument) -> None:
    """Below a table: where its rates are from, and the price."""
    emit_text(look["rates_sentence"])
    if look["measured_partitions"]:
        emit_text(look["price_sentence"])


def share(local: float | None, unknown: float | None = None) -> str | None:
    """A share as per cent, never all or nothing where it is not quite that; ``50 to 80 %`` where a part is unknown."""
    if local is None:
        return None
    if unknown:
        return f"{100 * local:.0f} to {100 * (local + unknown):.0f} %"
    return "> 99 %" if _WHOLE <= local < 1 else "< 1 %" if 0 < local < _LEAST else f"{100 * local:.0f} %"


def worst(rows: Iterable[WorstGroup]) -> list[dict[str, Any]]:
    """The groups that cost most."""
    return [{"group": row["group"], **_priced(row, "across racks")} for row in rows]


def groups(rows: Iterable[GroupDocument]) -> list[dict[str, Any]]:
    """Groups as cells."""
    return [
        {
            "group": row["group"],
            "kind": row["kind"],
            "members": row["members"],
            "local": share(row["local_share"], row["unknown_share"]),
            "best": f"≥ {best}" if (best := share(row["best_local_share"])) and row["unknown_share"] else best,
            **_priced(row, "across racks"),
            "lag": _at_least(row["lag_records"], row["lag_unknown_partitions"]),
        }
        for row in rows
    ]


def emit_gains(rows: Iterable[Mapping[str, Any]], *, every: bool) -> None:
    """Below a table of groups: what the plug-in for brokers would bring, a line for each answer."""
    from agent.plan.plugin_gain import merged_gains

    lines = merged_gains((row["group"], row["plugin_gain"]) for row in rows if row["plugin_gain"] is not None)
    for line in lines if every else lines[:MOST_GAINS]:
        emit_text(line)
    if len(lines) > MOST_GAINS and not every:
        emit_text(f"and {len(lines) - MOST_GAINS:,} more answers about the plug-in: --all or -o json")


def unknown_cost(unknown: UnknownGroups) -> str | None:
    """How many groups have an unknown cost, and what they cost at most; None where there are none."""
    if not unknown["groups"]:
        return None
    unbounded = unknown["unbounded_groups"] or []
    bounded = [name for name in unknown["groups"] if name not in unbounded]
    rate, money = unknown["at_most_cross_rack_bytes_per_s"], unknown["at_most_usd_per_day"]
    most = bytes_words(rate) if money is None else f"{usd_words(money)}/day"
    head = f"{counted(len(unknown['groups']), 'group')} with unknown cost"
    if most is None:
        return f"{head}, and no bound is known: {listed(unknown['groups'])}"
    if not unbounded:
        return f"{head}, at most {most}: {listed(unknown['groups'])}"
    together = "" if len(bounded) == 1 else " together"
    return f"{head}: {listed(bounded)} at most {most}{together}; no bound is known for {listed(unbounded)}"


def show_group(document: GroupDetailsDocument, look: LookDocument, *, every: bool) -> None:
    """One group, its topics, members and tasks."""
    facts: dict[str, Any] = {
        **{name: document[name] for name in ("group", "kind", "state")},
        "assignor": document["assigned_by"],
        "racks": [rack or UNKNOWN for rack in document["racks"]],
        **{name: value for name, value in groups([document])[0].items() if name not in ("group", "kind")},
        "worst lag": _worst_lag(document),
    }
    if document["plugin_gain"] is not None:
        facts["plug-in for brokers"] = document["plugin_gain"]
    if document["not_assessed"]:
        facts["not assessed"] = document["not_assessed"]
    emit_one(facts, OutputFormat.TABLE, with_money(facts, priced=look["priced"]))
    basis(look)
    topics_read = [_reader(row, "topic", "across racks") for row in document["topic_list"]]
    reads = with_money(("topic", "rack", "partitions", "across racks", "$/day"), priced=look["priced"])
    _below(topics_read, reads, every=every)
    members = ("member", "client_id", "host", "rack", "known_from", "assigned", "defects")
    _below(
        [
            {**row, "rack": _rack(row), "known_from": row["known_from"] or CellMark.NONE}
            for row in document["member_list"]
        ],
        members,
        every=every,
    )
    tasks = ("task", "role", "process", "rack", BEHIND, "records/s", "time left", "caught_up", "source")
    _below_in_table([_task(row) for row in document["task_list"]], tasks, every=every)


def topics(rows: Iterable[TopicDocument]) -> list[dict[str, Any]]:
    """Topics as cells."""
    return [
        {
            "topic": row["topic"],
            "leaders": {one["rack"] or UNKNOWN: one["partitions"] for one in row["leaders"]},
            "written": bytes_words(row["in_bytes_per_s"], at_least=bool(row["in_unknown_partitions"])),
            "copied": bytes_between(row["replicate_bytes_per_s"], row["at_most_replicate_bytes_per_s"]),
            "read": bytes_between(row["read_bytes_per_s"], row["at_most_read_bytes_per_s"]),
            "$/day": usd_between(row["usd_per_day"], row["at_most_usd_per_day"]),
            "readers": None if row["readers"] is None else list(dict.fromkeys(one["group"] for one in row["readers"])),
        }
        for row in rows
    ]


def show_topic(document: TopicDetailsDocument, look: LookDocument, *, every: bool) -> None:
    """One topic, its readers by rack, and its partitions."""
    names = {"copied": "copied across", "read": "read across"}
    cells = {**topics([document])[0], "partitions": document["partitions"]}
    facts = {names.get(name, name): cell for name, cell in cells.items() if name != "readers"}
    emit_one(facts, OutputFormat.TABLE, with_money(facts, priced=look["priced"]))
    basis(look)
    readers = [_reader(row, "group", "read across") for row in document["readers"] or ()]
    _below(
        readers, with_money(("group", "rack", "partitions", "read across", "$/day"), priced=look["priced"]), every=every
    )
    partitions = [
        {
            "partition": row["partition"],
            "leader": f"{shown(row['leader'])} ({shown(row['leader_rack'])})",
            "replicas": [
                f"{broker} ({shown(rack)})" for broker, rack in zip(row["replicas"], row["replica_racks"], strict=True)
            ],
            "written": bytes_words(row["in_bytes_per_s"]),
            "read by": None
            if row["readers"] is None
            else [f"{reader['group']} ({shown(reader['rack'])})" for reader in row["readers"]],
        }
        for row in document["partition_list"]
    ]
    _below(partitions, ("partition", "leader", "replicas", "written", "read by"), every=every)


def racks(rows: Iterable[RackDocument]) -> list[dict[str, Any]]:
    """Racks as cells: what is in them."""
    return [
        {
            **row,
            "rack": _rack(row),
            _BROKER_IDS: None if row["brokers"] is None else marked(row["brokers"], row["absent_brokers"]),
            "tasks": None if row["active_tasks"] is None else row["active_tasks"] + (row["standby_tasks"] or 0),
        }
        for row in rows
    ]


def marked(brokers: Iterable[int], absent: Collection[int] | None) -> list[str]:
    """Brokers as a person reads them: ``1``, ``2 (absent)``."""
    return [f"{broker} (absent)" if broker in (absent or ()) else str(broker) for broker in brokers]


def borders(rows: Iterable[RackDocument]) -> list[dict[str, Any]]:
    """Racks as cells: what crosses their borders; no row for what has no known rack, as it is in no rack's figure."""
    return [
        {
            "rack": row["rack"],
            "from other racks": bytes_words(row["cross_rack_in_bytes_per_s"], at_least=bool(row["unknown_parts"])),
            "to other racks": bytes_words(row["cross_rack_out_bytes_per_s"], at_least=bool(row["unknown_parts"])),
            "$/day for what comes in": usd_words(row["usd_per_day"], at_least=bool(row["unknown_parts"])),
        }
        for row in rows
        if row["rack"] is not None
    ]


def losses(rows: Sequence[RackDocument], *, every: bool) -> None:
    """From where each rack is known, and what losing it costs, a paragraph each."""
    live = {_plain(row) for row in rows if set(row["brokers"] or ()) - set(row["absent_brokers"] or ())} | {UNKNOWN}
    for row in rows if every else rows[:MOST_LOSSES]:
        if row["known_from"]:
            sources = ", ".join(f"{source} ({number})" for source, number in row["known_from"].items())
            emit_text(f"{_rack(row)} is known from {sources}")
        if row["losing_it"] is not None:
            emit_text(f"losing {row['rack']}: {row['losing_it']}")
        if row["brokers"] and row["brokers"] == row["absent_brokers"] and _plain(row) not in live:
            emit_text(f"rack {_plain(row)} has no live broker")
        _emit_absences(row, every=every)
    if len(rows) > MOST_LOSSES and not every:
        emit_text(f"and {len(rows) - MOST_LOSSES:,} more racks: --all or -o json")


def _emit_absences(row: RackDocument, *, every: bool) -> None:
    for absence in row["absences"] if every else row["absences"][:MOST_ABSENCES]:
        emit_text(f"{_plain(row)}: {absence['sentence']}")
    if len(row["absences"]) > MOST_ABSENCES and not every:
        emit_text(f"{_plain(row)}: {len(row['absences']) - MOST_ABSENCES:,} more absent brokers: --all or -o json")


def _rack(row: Mapping[str, Any]) -> str:
    return row["rack"] or UNKNOWN


def _plain(row: RackDocument) -> str:
    """The rack's name, also where brokers or members were in it last."""
    return _rack(row).removesuffix(" (last known)")


def fault_words(row: CheckDocument) -> str | None:
    """What a fault costs, for a person; None where that is unknown or nothing."""
    bound = usd_words(row["at_most_usd_per_day"])
    if not row["cross_rack_bytes_per_s"]:
        return f"costs up to {bound}/day: Kafka does not know the racks of these members" if bound else None
    money = "" if row["usd_per_day"] is None else f", {usd_words(row['usd_per_day'])}/day"
    more = f"; up to {bound}/day with the reads that are unknown" if bound else ""
    return f"costs {bytes_words(row['cross_rack_bytes_per_s'])} across racks{money}{more}"


def _priced(row: PricedDocument | Mapping[str, Any], bytes_head: str) -> dict[str, Any]:
    """What crosses racks and what it costs, between their bounds."""
    return {
        bytes_head: bytes_between(row["cross_rack_bytes_per_s"], row["at_most_cross_rack_bytes_per_s"]),
        "$/day": usd_between(row["usd_per_day"], row["at_most_usd_per_day"]),
    }


def _reader(row: Mapping[str, Any], name: str, bytes_head: str) -> dict[str, Any]:
    """Readers in one rack as cells."""
    rack = {"rack": _rack(row), "partitions": row["partitions"]}
    return {name: row[name], **rack, **_priced(row, bytes_head)}


def _below(rows: list[Any], columns: tuple[str, ...], *, every: bool) -> None:
    """One more table after an empty line; nothing where it has no rows."""
    if rows:
        emit_line()
        emit(rows, columns, OutputFormat.TABLE, every=every)


def _below_in_table(rows: list[dict[str, Any]], columns: tuple[str, ...], *, every: bool) -> None:
    """The same without columns that hold one value in all of many rows: they are one line below the table."""
    if len(rows) < _MANY:
        _below(rows, columns, every=every)
        return
    same = [name for name in columns[1:] if len({str(row[name]) for row in rows}) == 1]
    _below(rows, tuple(name for name in columns if name not in same), every=every)
    if same:
        equal = (
            f"{name.replace('_', ' ')}: {'unknown' if rows[0][name] is None else shown(rows[0][name])}" for name in same
        )
        emit_text(f"of all {len(rows):,}: {'; '.join(equal)}")


def _task(row: TaskCopyDocument) -> dict[str, Any]:
    return {
        **row,
        "role": row["role"] if row["role_certain"] else "standby or warm-up (unknown)",
        BEHIND: _range(row["lag_records"]),
        "records/s": _range(row["rate_records_per_s"]),
        "time left": None if (left := _range(row["eta_s"])) is None else f"{left} s",
    }


def _range(value: RangeDocument | None) -> str | None:
    if value is None:
        return None
    likely = f"{value['likely']:,.0f}"
    return likely if value["low"] == value["high"] else f"{likely} ({value['low']:,.0f} to {value['high']:,.0f})"


def _at_least(number: float | None, unknown: float | None) -> str | None:
    return None if number is None else f"{'≥ ' if unknown else ''}{number:,.0f}"


def _worst_lag(document: GroupDocument) -> str | CellMark | None:
    if document["lag_records"] is None:
        return None
    worst = document["lag_worst_partition"]
    return CellMark.NONE if worst is None else f"{worst}: {document['lag_worst_records']:,}"


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
    """For a table: which agent led last and when it said so, and whether acting is paused."""
    leader, pause = document["leader"], document["paused"]
    return {
        "leader": None
        if leader is None
        else f"{leader['agent']} on {leader['host']}, confirmed {_time(leader['confirmed_ms'])}",
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

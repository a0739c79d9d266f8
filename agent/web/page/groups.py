"""The groups: a heat map of local reads by rack, with what crosses racks, its cost and the lag; costliest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from agent.money.costs import reads_of
from agent.money.traffic import bytes_between, read_route, usd_between
from agent.simulate.evaluation import StageEvaluation
from agent.values.assessment import rack_bits
from agent.values.number_format import counted
from agent.values.snapshot import TASK_KINDS, PartitionState, Rack, RackState, ReaderGroup, Snapshot, states_of
from agent.web.page.environment import group_link, percent
from agent.web.page.look_documents import DocumentMaker
from agent.web.page.page_documents import shared_groups
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, fields_of
from assignors.problem import TopicPartition

LEVELS = (0.2, 0.4, 0.6, 0.8, 0.95, 0.995)
"""Shares from which a cell has the next colour."""


class RackShare(NamedTuple):
    """Reads of a group's readers in one rack."""

    local: int
    crossing: int
    unknown: int
    """Reads of which it is unknown whether they leave the rack."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.local + self.crossing + self.unknown

    @property
    def share(self) -> float | None:
        """The local part, at least; None where nothing is known."""
        return None if self.unknown == self.total else self.local / self.total

    @property
    def most(self) -> float:
        """The local part, at most."""
        return (self.local + self.unknown) / self.total if self.total else 0.0


def level(share: float) -> int:
    """The colour of a share, 0 (all reads leave the rack) to 6 (none does)."""
    return sum(share >= bound for bound in LEVELS)


class ShareLedger:
    """Shares of one look, group by group; what they rest on is worked out once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
        self._bits = rack_bits(snapshot.brokers, selector_is_rack_aware=snapshot.selector_is_rack_aware)
        self._states: dict[str, Mapping[TopicPartition, PartitionState]] = {}
        self._shares: dict[str, Mapping[str | None, RackShare]] = {}

    def shares(self, group_id: str) -> Mapping[str | None, RackShare]:
        """Rack of the readers (None: not known) -> their reads; empty for a group that shows none."""
        if group_id not in self._shares:
            self._shares[group_id] = self._counted(group_id)
        return self._shares[group_id]

    def elsewhere(self, group_id: str, racks: Collection[str]) -> RackShare | None:
        """Reads of readers in racks other than these, also in racks without brokers; None without any."""
        found = [of for rack, of in self.shares(group_id).items() if rack is not None and rack not in racks]
        return RackShare(*map(sum, zip(*found, strict=True))) if found else None

    def _counted(self, group_id: str) -> Mapping[str | None, RackShare]:
        counts: dict[str | None, list[int]] = {}
        group = self._snapshot.groups.get(group_id)
        for rack, partition in reads_of(group) if group is not None else ():
            name = rack.name if rack.state is RackState.KNOWN else None
            counts.setdefault(name, [0, 0, 0])[self._kind(rack, name, partition)] += 1
        return {name: RackShare(*of) for name, of in counts.items()}

    def _kind(self, rack: Rack, name: str | None, partition: TopicPartition | None) -> int:
        """0 local, 1 crossing, 2 unknown."""
        state = None if partition is None else self._topic(partition.topic).get(partition)
        serves = self._bits.serves((rack,)) if self._snapshot.rack_locators else self._bits.selector_is_rack_aware
        route = read_route(state, name, self._racks, serves=serves)
        return 2 if route is None else int(route.source != route.target)

    def _topic(self, name: str) -> Mapping[TopicPartition, PartitionState]:
        if name not in self._states:
            topic = self._snapshot.topics.get(name)
            self._states[name] = {} if topic is None else states_of([topic])
        return self._states[name]


MOST_RACKS = 8
"""Racks with a column of their own; readers elsewhere are on the group's page."""
_NOWHERE = "no rack known"
_ELSEWHERE = "other racks"


def groups_view(asked: PageRequest) -> Response:
    """The view."""
    rows = shared_groups(asked)
    racks = _racks(asked)
    return asked.page(
        "groups.html",
        "Groups",
        tables=(_table(asked, rows, racks[:MOST_RACKS]),),
        racks_left_out=max(0, len(racks) - MOST_RACKS),
    )


def shared_ledger(of: DocumentMaker) -> ShareLedger:
    """The shares of the look."""
    return of.made("shares", lambda look: ShareLedger(look.snapshot))


def _racks(asked: PageRequest) -> list[str]:
    brokers = asked.look.snapshot.brokers
    return sorted({b.rack.name for b in brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None})


def _table(asked: PageRequest, rows: Sequence[Any], racks: Sequence[str]) -> TableSource:
    ledger = shared_ledger(asked)

    has_elsewhere = asked.made("readers elsewhere", lambda look: _has_elsewhere(look, racks))

    def elsewhere(group_id: str) -> RackShare | None:
        return ledger.elsewhere(group_id, racks)

    kinds = sorted({row["kind"] for row in rows})
    figures = (
        ("local_share", "Local", _local, "reads inside the own rack", ("unknown_share",)),
        ("best_local_share", "At best", _best, "at the optimum", ()),
        ("cross_rack_bytes_per_s", "Across racks", _bytes, "", ("at_most_cross_rack_bytes_per_s",)),
        ("usd_per_day", "$ a day", _usd, "", ("at_most_usd_per_day",)),
        ("lag_records", "Lag", _lag, "records behind", ("lag_unknown_partitions",)),
        ("max_task_lag_records", "Task lag", _task_lag, "the worst copy of a task's state, in records", ()),
    )
    columns = [
        TableColumn("group", "Group", _name, _of("group")),
        TableColumn("kind", "Kind", lambda row: TableCell(row["kind"], tone="quiet"), _of("kind")),
        TableColumn("members", "Members", _members, _of("members"), is_number=True, falls=True),
        *(_heat(f"in_{rack}", rack, _share_in(rack, ledger)) for rack in racks),
        *([_heat("elsewhere", _ELSEWHERE, elsewhere)] if has_elsewhere else []),
        *(
            [_heat("without_rack", _NOWHERE, _share_in(None, ledger))]
            if asked.made("readers without a rack", _has_rackless)
            else []
        ),
        *(
            TableColumn(
                name,
                title,
                cell,
                _of(name),
                is_number=True,
                hint=hint,
                falls="share" not in name,
                beside=fields_of(*beside),
            )
            for name, title, cell, hint, beside in figures
        ),
    ]
    return TableSource(
        title="Reads inside the own rack",
        unit="group",
        rows=rows,
        columns=columns,
        text=lambda row: f"{row['group']} {row['kind']} {row['assignor'] or ''}",
        choices=(TableChoice("kind", "Kind", kinds, lambda row: row["kind"], is_of_rows=True),),
        empty="No group was seen, and some may be hidden." if asked.look.snapshot.gaps else "There are no groups.",
        stacks=True,
    )


def _has_rackless(look: StageEvaluation) -> bool:
    """Whether some reader's rack is not known."""
    return any(rack.state is not RackState.KNOWN for rack in _reader_racks(look))


def _has_elsewhere(look: StageEvaluation, racks: Collection[str]) -> bool:
    """Whether some reader is in a rack that is not one of these."""
    return any(rack.state is RackState.KNOWN and rack.name not in racks for rack in _reader_racks(look))


def _reader_racks(look: StageEvaluation) -> Iterator[Rack]:
    groups = look.snapshot.groups.values()
    return (reader.rack for group in groups if isinstance(group, ReaderGroup) for reader in group.readers)


def _of(name: str) -> Any:
    return lambda row: row[name]


def _name(row: TableRow) -> TableCell:
    return TableCell(row["group"], group_link(row["group"]), tone="name")


def _members(row: TableRow) -> TableCell:
    return TableCell(None if row["members"] is None else f"{row['members']:,}")


def _share_in(rack: str | None, ledger: ShareLedger) -> Callable[[str], RackShare | None]:
    return lambda group_id: ledger.shares(group_id).get(rack)


def _heat(name: str, title: str, share_of: Callable[[str], RackShare | None]) -> TableColumn:
    """A column of the heat map; it is in CSV, and not sorted by: that would need the shares of every group."""

    def cell(row: TableRow) -> TableCell:
        return heat_cell(share_of(row["group"]))

    def value(row: TableRow) -> float | None:
        share = share_of(row["group"])
        return None if share is None or share.share is None else round(share.share, 4)

    def most(row: TableRow) -> float | None:
        share = share_of(row["group"])
        return None if share is None or share.share is None else round(share.most, 4)

    hint = f"reads of members in {title}"
    beside = {f"at_most_local_share_{name}": most}
    return TableColumn(
        f"local_share_{name}", title, cell, value, is_number=True, is_sorted=False, hint=hint, beside=beside
    )


def heat_cell(share: RackShare | None) -> TableCell:
    """The share of local reads with its colour; hatched where it is unknown, a dash where nothing is read there."""
    if share is None:
        return TableCell("·", tone="heat none", hint="no reader in this rack")
    hint = f"{share.local:,} of {counted(share.total, 'read')} local"
    if share.share is None:
        return TableCell(None, tone="heat is-unknown", hint=f"unknown whether local: {counted(share.total, 'read')}")
    if share.unknown:
        hint += f", unknown: {share.unknown:,}"
        words = f"{100 * share.share:.0f} to {100 * share.most:.0f} %"
        return TableCell(words, tone=f"heat s{level(share.share)} in-part", hint=hint)
    return TableCell(percent(share.share), tone=f"heat s{level(share.share)}", hint=hint)


def _local(row: TableRow) -> TableCell:
    if row["local_share"] is None:
        return TableCell(None, hint=row["not_assessed"] or "")
    if row["unknown_share"]:
        most = row["local_share"] + row["unknown_share"]
        return TableCell(f"{100 * row['local_share']:.0f} to {100 * most:.0f} %", tone="strong")
    return TableCell(percent(row["local_share"]), tone="strong")


def _best(row: TableRow) -> TableCell:
    best = row["best_local_share"]
    least = "≥ " if row["unknown_share"] else ""
    return TableCell(None if best is None else f"{least}{percent(best)}", hint=row["not_assessed"] or "")


def _bytes(row: TableRow) -> TableCell:
    return TableCell(bytes_between(row["cross_rack_bytes_per_s"], row["at_most_cross_rack_bytes_per_s"]))


def _usd(row: TableRow) -> TableCell:
    return TableCell(usd_between(row["usd_per_day"], row["at_most_usd_per_day"]))


def _lag(row: TableRow) -> TableCell:
    if row["lag_records"] is None:
        return TableCell(None)
    least = "≥ " if row["lag_unknown_partitions"] else ""
    worst = row["lag_worst_partition"]
    hint = f"worst: {worst}, {row['lag_worst_records']:,}" if worst is not None else ""
    return TableCell(f"{least}{row['lag_records']:,}", hint=hint)


def _task_lag(row: TableRow) -> TableCell:
    if row["kind"] not in TASK_KINDS:
        return TableCell("·", tone="none")
    lag = row["max_task_lag_records"]
    return TableCell(None if lag is None else f"{lag:,.0f}")


VIEWS = (PageView("/groups", groups_view, is_of_all=True),)

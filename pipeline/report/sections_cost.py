"""Sections about money and bytes: cost per day, the ledger by path and pair of racks, locality."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent.values.number_format import counted
from pipeline.report import words
from pipeline.report.document import BarPlot, ColumnHead, Columns, HeatMap, ReportGrid, ReportSection, Row, ValueUnit
from pipeline.report.facts import LASTING_PATHS, DailyCost, RackPairBytes, ReaderLocality, ReportFacts
from pipeline.report.pace import DAY, CoveredPace, price_applied, sum_of_known
from pipeline.report.summaries import CONSUME
from pipeline.schemas.zones import CROSS_ZONE, SAME_ZONE, UNKNOWN_ZONE

CLUSTER = ColumnHead("cluster")
_NO_RACK = "rack unknown"
_UNDECIDED = ColumnHead("unknown whether avoidable", ValueUnit.BYTES)


def grid(
    facts: ReportFacts, columns: Columns[Row], rows: Sequence[Row], hidden: Collection[ColumnHead] = ()
) -> ReportGrid:
    """A grid without the hidden columns, which names clusters only where there are several."""
    hidden = {*hidden, *(() if facts.several else (CLUSTER,))}
    kept = [(head, value) for head, value in columns if head not in hidden]
    return ReportGrid(tuple(head for head, _ in kept), tuple(tuple(value(row) for _, value in kept) for row in rows))


def labelled(facts: ReportFacts, cluster: str, name: str) -> str:
    """A name for a plot; the cluster is named only where there are several."""
    return f"{words.short(name, 28)} @ {words.short(cluster, 8)}" if facts.several else words.short(name, 32)


def cost_section(facts: ReportFacts) -> ReportSection:
    """What crossed racks on each day, by group and by the paths that no group is the cause of."""
    columns: Columns[DailyCost] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("day (UTC)"), lambda row: row.day),
        (ColumnHead("group or path"), _part),
        (ColumnHead("price", ValueUnit.USD), lambda row: row.usd),
        (ColumnHead("crossed racks", ValueUnit.BYTES), lambda row: row.cross_bytes),
        (ColumnHead("of it without a price", ValueUnit.BYTES), lambda row: row.unpriced_bytes),
        (ColumnHead("unknown whether across racks", ValueUnit.BYTES), lambda row: row.unknown_bytes),
        (ColumnHead("rows of unknown size", ValueUnit.COUNT), lambda row: row.sizeless),
    )
    return ReportSection(
        name="cost",
        title="Cost per day by group",
        lead=_cost_lead(facts),
        grid=grid(facts, columns, facts.costs),
        plot=_cost_bars(facts),
        alternative_text="Bytes or cost across racks on each day, stacked by group and path.",
    )


def _cost_lead(facts: ReportFacts) -> str:
    if not facts.costs:
        return "The ledger has no rows of this period."
    usd = sum_of_known(row.usd for row in facts.costs)
    size = sum(row.cross_bytes or 0.0 for row in facts.costs)
    bill = "have no known price" if usd is None else f"cost {words.money(usd)}{price_applied(facts)}"
    text = f"{words.volume(size)} crossed racks in this period and {bill}"
    pace = CoveredPace(facts)
    daily = sum_of_known(pace.over(row.usd, row.cluster, DAY) for row in facts.costs)
    if daily is not None:
        text += f", which is {words.money(daily)} a day at this pace"
    without = sum(row.unpriced_bytes or 0.0 for row in facts.costs)
    return text + (f"; {words.volume(without)} of these have no price." if without and usd is not None else ".")


def _cost_bars(facts: ReportFacts) -> BarPlot | None:
    """In dollars; in bytes where nothing has a price."""
    if not facts.costs:
        return None
    priced = any(row.usd for row in facts.costs)
    days = tuple(sorted({row.day for row in facts.costs}))
    totals, sizes = _cost_sums(facts, priced=priced)
    parts = tuple(sorted(totals, key=lambda part: (-totals[part], part)))
    return BarPlot(
        bars=days,
        parts=parts,
        sizes=tuple(tuple(sizes.get((part, day), 0.0) for day in days) for part in parts),
        label="cost across racks" if priced else "bytes across racks",
        unit=ValueUnit.USD if priced else ValueUnit.BYTES,
        upright=True,
    )


def _cost_sums(facts: ReportFacts, *, priced: bool) -> tuple[dict[str, float], dict[tuple[str, str], float | None]]:
    """Part -> its total, and (part, day) -> its sum, None where a part of it is unknown."""
    totals: dict[str, float] = {}
    sizes: dict[tuple[str, str], float | None] = {}
    for row in facts.costs:
        part = labelled(facts, row.cluster, _part(row)) + ("" if row.path == CONSUME else " (path)")
        amount = row.usd if priced else row.cross_bytes
        totals[part] = totals.get(part, 0.0) + (amount or 0.0)
        known = sizes.get((part, row.day), 0.0)
        sizes[part, row.day] = None if amount is None or known is None else known + amount
    return totals, sizes


def _part(row: DailyCost) -> str:
    return row.group if row.path == CONSUME else row.path


def _price_date(row: RackPairBytes) -> str:
    """Empty for a price without a date, and where no price applies."""
    return row.price_date or (words.UNKNOWN if row.zone == CROSS_ZONE and row.usd is None else "")


def ledger_section(facts: ReportFacts) -> ReportSection:
    """Bytes by path and pair of racks; what is unavoidable and what is paid once are apart."""
    columns: Columns[RackPairBytes] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("path"), lambda row: row.path),
        (ColumnHead("from rack"), lambda row: row.source_rack or _NO_RACK),
        (ColumnHead("to rack"), lambda row: row.target_rack or _NO_RACK),
        (ColumnHead("zone"), lambda row: row.zone),
        (ColumnHead("bytes", ValueUnit.BYTES), lambda row: row.bytes),
        (ColumnHead("of it unavoidable", ValueUnit.BYTES), lambda row: row.unavoidable_bytes),
        (ColumnHead("avoidable", ValueUnit.BYTES), _avoidable),
        (_UNDECIDED, _undecided),
        (ColumnHead("price", ValueUnit.USD), lambda row: row.usd),
        (ColumnHead("price dated"), _price_date),
        (ColumnHead("rows of unknown size", ValueUnit.COUNT), lambda row: row.sizeless),
        (ColumnHead("why unknown"), lambda row: row.why_unknown or ""),
    )
    return ReportSection(
        name="ledger",
        title="Ledger by path and pair of racks",
        lead=_ledger_lead(facts),
        grid=grid(facts, columns, facts.pairs, hidden=() if any(map(_undecided, facts.pairs)) else (_UNDECIDED,)),
        plot=_ledger_bars(facts),
        alternative_text="Bytes of each path: within a rack, across racks and unavoidable, across racks and avoidable, "
        "across racks and paid once, unknown.",
    )


def _ledger_lead(facts: ReportFacts) -> str:
    if all(row.zone == UNKNOWN_ZONE for row in facts.pairs):
        return "For all bytes it is unknown whether they crossed racks." if facts.pairs else "The ledger is empty."
    sizes = _sizes(facts.pairs)
    unsure, once = sizes[_UNSURE], sizes[_ONCE]
    cross, total = sizes[_NEEDED] + sizes[_SPARED] + once + unsure, sum(sizes.values())
    return (
        f"{words.share(cross, total)} of {words.volume(total)} crossed racks; "
        f"{words.volume(sizes[_NEEDED])} of these no placement avoids at this replication factor, "
        f"{words.volume(sizes[_SPARED])} could stay within a rack"
        + (f", for {words.volume(unsure)} it is unknown whether a placement avoids them" if unsure else "")
        + (f", and {words.volume(once)} were copied, which is paid once" if once else "")
        + f"; for {words.volume(sizes[_OF_UNKNOWN_RACKS])} it is unknown."
    )


def _ledger_bars(facts: ReportFacts) -> BarPlot | None:
    if not facts.pairs:
        return None
    paths = tuple(sorted({row.path for row in facts.pairs}))
    sizes = [_sizes([row for row in facts.pairs if row.path == path]) for path in paths]
    shown = tuple(part for part in _PARTS if part not in _SELDOM or any(one[part] for one in sizes))
    return BarPlot(
        bars=paths,
        parts=shown,
        sizes=tuple(tuple(one[part] for one in sizes) for part in shown),
        label="bytes",
        unit=ValueUnit.BYTES,
        upright=False,
        hatched=frozenset({_OF_UNKNOWN_RACKS, _UNSURE} & set(shown)),
    )


_WITHIN, _NEEDED, _SPARED, _ONCE = ("within a rack", "across, unavoidable", "across, avoidable", "across, paid once")
_OF_UNKNOWN_RACKS, _UNSURE = "unknown", "across, unknown whether avoidable"
_PARTS = (_WITHIN, _NEEDED, _SPARED, _ONCE, _OF_UNKNOWN_RACKS, _UNSURE)
_SELDOM = frozenset({_ONCE, _UNSURE})
"""Parts that are left out where none of the bytes is in them."""


def _sizes(rows: Sequence[RackPairBytes]) -> dict[str, float]:
    """The bytes of the rows by what became of them: every byte is in one of `_PARTS`."""
    sizes = dict.fromkeys(_PARTS, 0.0)
    for row in rows:
        for part, size in _split(row).items():
            sizes[part] += size
    return sizes


def _split(row: RackPairBytes) -> dict[str, float]:
    size = row.bytes or 0.0
    if row.zone != CROSS_ZONE:
        return {_WITHIN if row.zone == SAME_ZONE else _OF_UNKNOWN_RACKS: size}
    if row.is_paid_once:
        return {_ONCE: size}
    avoidable, undecided = _avoidable(row) or 0.0, _undecided(row)
    return {_NEEDED: max(size - avoidable - undecided, 0.0), _SPARED: avoidable, _UNSURE: undecided}


def _avoidable(row: RackPairBytes) -> float | None:
    if row.zone == SAME_ZONE or row.path not in LASTING_PATHS:
        return 0.0
    if row.zone != CROSS_ZONE:
        return None
    undecided = _undecided(row)
    if row.bytes is None or 0.0 < row.bytes <= undecided:
        return None
    return max(row.bytes - undecided - (row.unavoidable_bytes or 0.0), 0.0)


def _undecided(row: RackPairBytes) -> float:
    return 0.0 if row.is_paid_once else row.undecided_bytes or 0.0


def locality_section(facts: ReportFacts) -> ReportSection:
    """How much each group's readers read within their own rack."""
    columns: Columns[ReaderLocality] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("group"), lambda row: row.group),
        (ColumnHead("rack of the readers"), lambda row: row.rack or _NO_RACK),
        (ColumnHead("read within the rack", ValueUnit.SHARE), local_share),
        (
            ColumnHead("measured in"),
            lambda row: "" if local_share(row) is None else "bytes" if _in_bytes(row) else "partitions",
        ),
        (ColumnHead("bytes read", ValueUnit.BYTES), lambda row: row.total_bytes),
        (ColumnHead("assigned partitions, summed over looks", ValueUnit.COUNT), lambda row: row.total),
        (ColumnHead("of these unknown", ValueUnit.COUNT), lambda row: row.unknown),
    )
    shares = [found for row in facts.near if (found := local_share(row)) is not None]
    unknown = len(facts.near) - len(shares)
    lead = "No group had readers in this period."
    if facts.near:
        local = sum(found >= 0.95 for found in shares)
        lead = (
            f"{local} of {counted(len(facts.near), 'pair')} of group and rack {'reads' if local == 1 else 'read'} "
            f"at least 95 % within their rack; for {unknown} it is unknown."
        )
    return ReportSection(
        name="locality",
        title="Locality by group and rack",
        lead=lead,
        grid=grid(facts, columns, facts.near),
        plot=_locality_heat(facts),
        alternative_text="Share of reads within the rack of the readers; hatched cells are unknown, blank ones have no "
        "readers.",
    )


def local_share(row: ReaderLocality) -> float | None:
    """By bytes where they are known, else by assigned partitions; None where the readers' rack is unknown."""
    if not row.rack:
        return None
    if _in_bytes(row):
        return (row.local_bytes or 0.0) / (row.total_bytes or 1.0)
    if row.local is None or row.total is None:
        return None
    known = row.total - (row.unknown or 0.0)
    return row.local / known if known > 0 else None


def _in_bytes(row: ReaderLocality) -> bool:
    return row.local_bytes is not None and bool(row.total_bytes)


def _locality_heat(facts: ReportFacts) -> HeatMap | None:
    if not facts.near:
        return None
    found = {(labelled(facts, row.cluster, row.group), row.rack): local_share(row) for row in facts.near}
    groups = tuple(dict.fromkeys(group for group, _ in found))
    racks = tuple(sorted({rack for _, rack in found}, key=lambda rack: (rack == "", rack)))
    return HeatMap(
        rows=groups,
        columns=tuple(words.short(rack, 16) if rack else _NO_RACK for rack in racks),
        shares=tuple(tuple(found.get((group, rack)) for rack in racks) for group in groups),
        absent=frozenset(
            (i, j) for i, group in enumerate(groups) for j, rack in enumerate(racks) if (group, rack) not in found
        ),
    )

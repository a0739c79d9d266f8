"""Sections about what can be saved: avoidable cost by remedy, cost by owner, and the findings behind both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from agent.values.number_format import counted, few
from pipeline.owner_rules import OwnerBook, OwnerRule, teams
from pipeline.report import words
from pipeline.report.avoidable import AvoidableCost, AvoidableLine
from pipeline.report.document import ColumnHead, Columns, HeadlineFigure, ReportSection, ValueUnit
from pipeline.report.facts import LASTING_PATHS, OpenFinding, ReportFacts, TopicCost
from pipeline.report.pace import DAY, CoveredPace, price_applied, sum_of_known
from pipeline.report.period import minute_of
from pipeline.report.sections_cost import CLUSTER, grid
from pipeline.report.weeks import latest_days
from pipeline.schemas.zones import UNKNOWN_ZONE

FINDING, PROPOSAL = "finding", "proposal"
_NAMED = 3
_NO_OWNER = "no owner"
_OWNER = ColumnHead("owner")
_UNPRICED = ColumnHead("of it without a price", ValueUnit.BYTES)
_CHANGE = ColumnHead("against the week before", ValueUnit.USD_PER_DAY, sign=True)


def avoidable_section(facts: ReportFacts, cost: AvoidableCost) -> ReportSection:
    """What can be saved, one line for each remedy, the dearest first."""
    columns: Columns[AvoidableLine] = (
        (ColumnHead("avoidable", ValueUnit.USD_PER_DAY), lambda line: line.usd_per_day),
        (ColumnHead("a month", ValueUnit.USD), lambda line: line.usd_per_month),
        (_CHANGE, lambda line: line.change_usd_per_day),
        (ColumnHead("group"), lambda line: _names(line.groups)),
        (ColumnHead("topic"), lambda line: _names(line.topics)),
        (_OWNER, lambda line: teams(line.owners) or _NO_OWNER),
        (ColumnHead("what ends it"), lambda line: line.remedy.todo),
        (ColumnHead("command or setting", is_code=True), lambda line: line.remedy.command),
        (ColumnHead("proposal", links=PROPOSAL), _proposal),
        (ColumnHead("finding", links=FINDING), lambda line: ", ".join(one.id for one in line.remedy.findings)),
        (CLUSTER, lambda line: line.remedy.cluster),
        (ColumnHead("avoidable bytes", ValueUnit.BYTES), lambda line: line.avoidable_bytes),
        (_UNPRICED, lambda line: line.unpriced_bytes),
    )
    needed = {
        _UNPRICED: any(line.unpriced_bytes for line in cost.lines),
        _OWNER: bool(facts.owners),
        _CHANGE: any(line.change_usd_per_day is not None for line in cost.lines),
    }
    return ReportSection(
        name="avoidable",
        title="Avoidable cost",
        lead=_lead(facts, cost),
        grid=grid(facts, columns, cost.lines, hidden=[head for head, is_so in needed.items() if not is_so]),
        notes=tuple(_notes(facts, cost)),
        as_cards=True,
    )


def figures(facts: ReportFacts, cost: AvoidableCost) -> tuple[HeadlineFigure, ...]:
    """What the report leads with."""
    unknown = sum(row.bytes or 0.0 for row in facts.pairs if row.zone == UNKNOWN_ZONE)
    without = _no_dollars(facts, cost)
    daily, monthly = (without if usd is None else words.money(usd) for usd in (cost.usd_per_day, cost.usd_per_month))
    change = cost.change_usd_per_day
    return (
        HeadlineFigure("avoidable a day", daily, "at the pace of this period"),
        HeadlineFigure("avoidable a month", monthly, "of 30 days"),
        HeadlineFigure(
            "against the week before",
            words.UNKNOWN if change is None else f"{words.money(change, sign=True)} a day",
            _why_no_trend(facts) if change is None else f"from {words.money(cost.before_usd_per_day)} a day",
        ),
        HeadlineFigure(
            "unavoidable a day",
            words.money(cost.unavoidable_usd_per_day),
            "no placement or setting avoids it at this replication factor",
        ),
        HeadlineFigure("unknown", words.volume(unknown), "may or may not have crossed racks"),
    )


def owner_section(facts: ReportFacts) -> ReportSection:
    """What the topics and groups of each owner send across racks."""
    pace, owners = CoveredPace(facts), OwnerBook(facts.owners)
    costs: dict[OwnerRule | None, list[TopicCost]] = defaultdict(list)
    for cost in facts.topics:
        found = owners.of(cost.topic, cost.group)
        costs[None if found is None else found._replace(kind="", pattern="")].append(cost)

    def daily(owner: OwnerRule | None, of: Callable[[TopicCost], float | None]) -> float | None:
        return sum_of_known(
            pace.over(of(cost), cost.cluster, DAY) for cost in costs[owner] if cost.path in LASTING_PATHS
        )

    columns: Columns[OwnerRule | None] = (
        (ColumnHead("owner"), lambda owner: _NO_OWNER if owner is None else owner.team),
        (ColumnHead("cost centre"), lambda owner: (owner.cost_centre if owner else None) or ""),
        (ColumnHead("avoidable", ValueUnit.USD_PER_DAY), lambda owner: daily(owner, lambda cost: cost.avoidable_usd)),
        (ColumnHead("across racks", ValueUnit.USD_PER_DAY), lambda owner: daily(owner, lambda cost: cost.usd)),
        (
            ColumnHead("crossed racks in the period", ValueUnit.BYTES),
            lambda owner: sum(cost.cross_bytes for cost in costs[owner]),
        ),
    )
    rows = sorted(costs, key=lambda owner: (-(daily(owner, lambda cost: cost.avoidable_usd) or 0.0), str(owner)))
    unowned = sum(cost.cross_bytes for cost in costs.get(None, ()))
    lead = f"{counted(len([row for row in rows if row]), 'owner')}; {words.volume(unowned)} have no owner."
    return ReportSection(name="owners", title="Cost by owner", lead=lead, grid=grid(facts, columns, rows))


def finding_section(facts: ReportFacts, cost: AvoidableCost) -> ReportSection:
    """The findings that the lines of avoidable cost name."""
    columns: Columns[OpenFinding] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("finding", names=FINDING), lambda row: row.id),
        (ColumnHead("severity"), lambda row: (row.severity or "").lower()),
        (ColumnHead("about"), lambda row: row.subject),
        (ColumnHead("since (UTC)"), lambda row: None if row.since_ms is None else minute_of(row.since_ms)),
        (ColumnHead("what is found"), lambda row: row.sentence),
    )
    rows = tuple(dict.fromkeys(one for line in cost.lines for one in line.remedy.findings))
    lead = f"{counted(len(rows), 'finding')} of the newest look about what is avoidable."
    return ReportSection(name="findings", title="Findings behind it", lead=lead, grid=grid(facts, columns, rows))


def _lead(facts: ReportFacts, cost: AvoidableCost) -> str:
    if not cost.lines:
        return "Nothing is known to cross racks that could be avoided."
    ways = counted(len(cost.lines), "way")
    if cost.usd_per_day is None:
        size = words.volume(sum(line.avoidable_bytes for line in cost.lines))
        return f"{size} of this period are avoidable, in {ways}; they have no known price."
    daily, monthly = words.money(cost.usd_per_day), words.money(cost.usd_per_month)
    return f"{daily} a day, {monthly} a month{price_applied(facts)} can be avoided, in {ways}, the dearest first."


def _notes(facts: ReportFacts, cost: AvoidableCost) -> Iterator[str]:
    if cost.lines and cost.change_usd_per_day is None:
        yield f"No trend is shown: {_why_no_trend(facts)}."
    if cost.unsure_bytes:
        yield f"For {words.volume(cost.unsure_bytes)} across racks it is unknown whether they are avoidable."
    moved = sum(row.usd or 0.0 for row in facts.topics if row.path not in LASTING_PATHS)
    if moved:
        yield f"What was copied, {words.money(moved)} in this period, is paid once and is in no line."


def _why_no_trend(facts: ReportFacts) -> str:
    if not facts.coverage:
        return "there is no look of this period"
    begin, end = map(minute_of, latest_days(facts.coverage).week_before)
    stretch = f"{begin} to {end} UTC"
    if not any(week.before_s for week in facts.weeks):
        return f"there is no look of the week before ({stretch})"
    return f"looks cover too little of the week before ({stretch}), or prices of it are unknown"


def _no_dollars(facts: ReportFacts, cost: AvoidableCost) -> str:
    """Nothing, where every byte is known to stay in its rack or to be unavoidable."""
    known = facts.pairs and not any(row.zone == UNKNOWN_ZONE or row.sizeless for row in facts.pairs)
    return words.money(0.0) if known and not cost.lines and not cost.unsure_bytes else words.UNKNOWN


def _proposal(line: AvoidableLine) -> str:
    return "" if line.remedy.proposal is None else line.remedy.proposal.proposal


def _names(names: Sequence[str]) -> str:
    return few([words.short(name) for name in names], _NAMED)

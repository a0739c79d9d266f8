"""A cloud's bill beside the ledger: what of each day's data transfer is explained, and what remains."""

from __future__ import annotations

from typing import NamedTuple

from agent.values.number_format import counted
from pipeline.report import words
from pipeline.report.document import ColumnHead, Columns, ReportSection, ValueUnit
from pipeline.report.facts import ReportFacts
from pipeline.report.pace import sum_of_known
from pipeline.report.sections_cost import grid

_REMAINDER = (
    "The remainder is traffic that is not Kafka's, traffic in hours without looks, bytes of unknown racks or "
    "producers, and the difference of prices; below zero the ledger has more than the bill."
)


class ReconciledDay(NamedTuple):
    """One day of the bill."""

    day: str
    billed: float
    explained: float | None
    """What the ledger has for the day; None where it has none, or where nothing has a price."""
    covered_s: float
    """Seconds of the day that looks cover, over all clusters."""
    hours: int
    """Hours with looks, over all clusters."""
    unknown_bytes: float

    @property
    def remainder(self) -> float:
        """What the ledger does not explain; below zero where it has more than the bill."""
        return self.billed - (self.explained or 0.0)


def reconciled(facts: ReportFacts) -> tuple[ReconciledDay, ...]:
    """Every day of the bill, in the order of days."""
    return tuple(_day(facts, day, billed) for day, billed in sorted(facts.bill))


def bill_section(facts: ReportFacts) -> ReportSection:
    """The days of the bill, with what is explained of each."""
    days = reconciled(facts)
    columns: Columns[ReconciledDay] = (
        (ColumnHead("day (UTC)"), lambda row: row.day),
        (ColumnHead("billed", ValueUnit.USD), lambda row: row.billed),
        (ColumnHead("explained by the ledger", ValueUnit.USD), lambda row: row.explained),
        (ColumnHead("share explained", ValueUnit.SHARE), _share),
        (ColumnHead("remainder", ValueUnit.USD), lambda row: row.remainder),
        (ColumnHead("hours with looks", ValueUnit.COUNT), lambda row: row.hours),
        (ColumnHead("time covered by looks", ValueUnit.SECONDS), lambda row: row.covered_s),
        (ColumnHead("unknown whether across racks", ValueUnit.BYTES), lambda row: row.unknown_bytes),
    )
    return ReportSection(
        name="bill",
        title="Reconciliation with the cloud's bill",
        lead=_lead(days),
        grid=grid(facts, columns, days),
        notes=(_REMAINDER,),
    )


def _day(facts: ReportFacts, day: str, billed: float) -> ReconciledDay:
    costs = [row for row in facts.costs if row.day == day]
    covered = [row for row in facts.days if row.day == day]
    return ReconciledDay(
        day,
        billed,
        sum_of_known(row.usd for row in costs),
        sum(row.seconds for row in covered),
        sum(row.hours for row in covered),
        sum(row.unknown_bytes or 0.0 for row in costs),
    )


def _share(row: ReconciledDay) -> float | None:
    return None if row.explained is None or not row.billed else row.explained / row.billed


def _lead(days: tuple[ReconciledDay, ...]) -> str:
    billed, explained = sum(row.billed for row in days), sum(row.explained or 0.0 for row in days)
    unseen = sum(row.explained is None for row in days)
    text = (
        f"Of {words.money(billed)} on {counted(len(days), 'day')} of the bill the ledger explains "
        f"{words.money(explained)} ({words.share(explained, billed)}); {words.money(billed - explained)} remain."
    )
    return text + (f" For {counted(unseen, 'day')} the ledger has no cost." if unseen else "")

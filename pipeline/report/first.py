"""First line of a report: the most valuable thing to do, with what it can save.

The order of priorities: the avoidable cost that is dearest, or a proposal whose predicted gain is larger; then other
open proposals; then what is unknown because racks are unknown. What no placement avoids is never named as a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.values.number_format import counted
from config.foreign_text import shortened
from pipeline.report import words
from pipeline.report.advice import todo
from pipeline.report.avoidable import AvoidableCost, AvoidableLine
from pipeline.report.facts import OpenProposal, RackPairBytes, ReportFacts
from pipeline.report.pace import DAY, HOUR, MONTH, CoveredPace
from pipeline.report.summaries import CONSUME
from pipeline.schemas import gold
from pipeline.schemas.zones import CROSS_ZONE, UNKNOWN_ZONE


def first_line(facts: ReportFacts, cost: AvoidableCost) -> str:
    """One sentence. ``cost`` is `avoidable.avoidable_cost` of the facts."""
    pace = CoveredPace(facts)
    line = cost.lines[0] if cost.lines else None
    named = {one.remedy.proposal for one in cost.lines}
    for row in by_worth(facts):
        if may_save(row) and row not in named and (line is None or _gain(row) > (line.usd_per_day or 0.0)):
            return f"{todo(row)}: {worth(row, pace)}."
    if line is not None:
        return _sentence(facts, line, pace)
    if gold.OUTCOMES.name in facts.absent:
        return f"Unknown: the table {gold.OUTCOMES.name} does not exist yet, so no proposal can be shown."
    return _nothing_to_save(facts, cost, pace)


def _sentence(facts: ReportFacts, line: AvoidableLine, pace: CoveredPace) -> str:
    remedy = line.remedy
    crossing = _crossing(line.avoidable_bytes, line.usd, remedy.cluster, pace)
    if remedy.proposal is None:
        absent = gold.OUTCOMES.name in facts.absent
        head = "What is proposed is unknown" if absent else "Nothing is proposed yet"
        return f"{head} for {_what(line)}: {crossing}; run {remedy.command} to see why."
    gain = _gain(remedy.proposal)
    return f"{remedy.todo}: {crossing}{f', {_predicted(gain)}' if gain else ''}."


def _what(line: AvoidableLine) -> str:
    if line.groups:
        return f"what group {words.short(line.groups[0])} reads"
    path = f"path {line.paths[0]} of " if line.paths != (CONSUME,) else ""
    return f"{path}topic {words.short(line.topics[0])}"


def _nothing_to_save(facts: ReportFacts, cost: AvoidableCost, pace: CoveredPace) -> str:
    """The sentence without a byte that is known to be avoidable, and without a proposal that saves one."""
    if not facts.pairs:
        return "Unknown: the tables hold no traffic of this period."
    unknown = [row for row in facts.pairs if row.zone == UNKNOWN_ZONE]
    crossing = [row for row in facts.pairs if row.zone == CROSS_ZONE and not row.is_paid_once]
    copied = any(row.bytes for row in facts.pairs if row.is_paid_once)
    if unknown:
        return _unknown_racks(unknown, every=len(unknown) == len(facts.pairs))
    if any(row.sizeless for row in crossing):
        return "Unknown: records cross racks, and the size of some of them is unknown."
    if cost.unsure_bytes:
        return f"Unknown: {words.volume(cost.unsure_bytes)} cross racks, and it is unknown whether they are avoidable."
    size = sum(row.bytes or 0.0 for row in crossing)
    about = f"; {counted(len(facts.standing), 'open proposal')} about placement" if facts.standing else ""
    if size:
        bill = cost.unavoidable_usd_per_day
        costs = "" if bill is None else f" ({words.money(bill)} a day{pace.price})"
        beside = " beside copies that are paid once" if copied else ""
        return f"Nothing to save: what crosses racks{beside}, {words.volume(size)}, is unavoidable{costs}{about}."
    nothing = "only copies, which are paid once, cross racks" if copied else "no byte crosses racks"
    return f"Nothing to do: {nothing}{about or ', and there are no open proposals'}."


def _unknown_racks(unknown: Sequence[RackPairBytes], *, every: bool) -> str:
    why = "; ".join(sorted({shortened(row.why_unknown) for row in unknown if row.why_unknown})[:2])
    size = "all bytes" if every else words.volume(sum(row.bytes or 0.0 for row in unknown))
    because = f" ({why})" if why else ""
    return f"Set the missing racks first: for {size} it is unknown whether they cross racks{because}."


def may_save(row: OpenProposal) -> bool:
    """False where it is known that its subject sends nothing across racks that can be avoided."""
    return row.avoidable_bytes != 0.0 or bool(row.unknown_bytes or row.undecided_bytes)


def by_worth(facts: ReportFacts) -> tuple[OpenProposal, ...]:
    """The open proposals, the most valuable first."""
    pace = CoveredPace(facts)

    def key(row: OpenProposal) -> tuple[float, float, float, str, str, str]:
        usd = pace.over(row.usd, row.cluster, DAY)
        hourly = pace.over(row.avoidable_bytes, row.cluster, HOUR)
        return (
            -(row.predicted_usd_per_day if row.predicted_usd_per_day is not None else _possible(row, usd) or 0.0),
            -(hourly or 0.0),
            -((row.unknown_bytes or 0.0) + (row.undecided_bytes or 0.0)),
            row.kind,
            row.subject or "",
            row.proposal,
        )

    return tuple(sorted(facts.standing, key=key))


def worth(row: OpenProposal, pace: CoveredPace) -> str:
    """What it is about in figures: what crosses racks avoidably now, what that costs, what is saved."""
    parts: list[str] = []
    if row.avoidable_bytes:
        parts.append(_crossing(row.avoidable_bytes, _possible(row, row.usd), row.cluster, pace))
    if row.undecided_bytes:
        undecided = pace.volume(row.undecided_bytes, row.cluster)
        parts.append(f"for {undecided} it is unknown whether a placement avoids them")
    if row.unknown_bytes:
        parts.append(f"for {pace.volume(row.unknown_bytes, row.cluster)} it is unknown whether they cross racks")
    if row.predicted_usd_per_day:
        parts.append(_predicted(row.predicted_usd_per_day))
    elif row.predicted_bytes_per_s is not None:
        parts.append(f"predicted to leave {words.per_second(row.predicted_bytes_per_s)} across racks")
    return ", ".join(parts) or "its bytes are unknown"


def _gain(row: OpenProposal) -> float:
    return max(row.predicted_usd_per_day or 0.0, 0.0)


def _possible(row: OpenProposal, usd: float | None) -> float | None:
    """The part of its subject's bill that a placement is known to avoid, where there is no prediction."""
    if usd is None or not row.cross_bytes or row.avoidable_bytes is None:
        return None
    return usd * row.avoidable_bytes / row.cross_bytes


def _crossing(avoidable_bytes: float, usd: float | None, cluster: str, pace: CoveredPace) -> str:
    crossing = f"{pace.volume(avoidable_bytes, cluster)} cross racks avoidably"
    if usd is None:
        return f"{crossing}, without a known price"
    daily, monthly = pace.over(usd, cluster, DAY), pace.over(usd, cluster, MONTH)
    if daily is None:
        return f"{crossing}, {words.money(usd)} in the period{pace.price}"
    return f"{crossing}, about {words.money(daily)} a day and {words.money(monthly)} a month{pace.price}"


def _predicted(usd_per_day: float) -> str:
    return f"predicted to change the cost by {words.money(-usd_per_day, sign=True)} a day"

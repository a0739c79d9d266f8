"""Where do bytes per second come from? Said wherever money is shown.

Rates need two looks at end offsets, and sizes on disk to know how large a record is: of this command, or of the agent
whose newest memory its telemetry holds. Weights of the pipeline need none.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agent.values.limits import Limits
from agent.values.snapshot import Snapshot
from agent.values.words import counted, lasted, usd_per_gb


class RatesFrom(StrEnum):
    """Who measured."""

    COMMAND = "command"
    """This command, by two looks."""
    AGENT = "agent"
    """The running agent: its earlier looks are the base of this one."""
    FILE = "file"
    """The agent that wrote the replayed file."""
    WEIGHTS = "weights"
    """The pipeline, for every partition of which there is a rate."""
    UNKNOWN = "unknown"


class Rates(NamedTuple):
    """Who measured, and when."""

    measured: RatesFrom = RatesFrom.UNKNOWN
    seconds: float | None = None
    """Over how long."""
    look: str | None = None
    """The agent's look that the base was taken from, and how old that look is."""
    look_age_ms: int | None = None
    why_not: str | None = None
    """Why the agent's telemetry gives none, as one clause."""
    remedy: str = "--for 10s measures them"
    """What measures them where there are none; empty where nothing does."""


UNKNOWN_RATES = Rates()
_NO_TOPICS = "no topic was seen"
_NO_END_OFFSETS = "end offsets did not answer"
_NO_SIZES = "log dirs did not answer, so the size of a record is not known"
_NO_RECORD_SIZE = {
    RatesFrom.COMMAND: ("no log dir grew between the two looks, so the size of a record is not known", ""),
    RatesFrom.AGENT: ("the agent has not seen a log dir grow yet, so the size of a record is not known", None),
    RatesFrom.FILE: ("the look in the file is the first of its agent, or no log dir grew before it", ""),
}
"""Why there is none although all parts answered, and what measures them: None for the remedy as ever."""


def judged(rates: Rates, snapshot: Snapshot) -> Rates:
    """The same, by what the snapshot really has: weights come before what was measured, and without rates none was."""
    if not snapshot.bytes_per_s:
        return rates if rates.measured is RatesFrom.UNKNOWN else _unmeasured(rates, snapshot)
    weighed = snapshot.weighed.bytes_per_s
    if weighed and (rates.measured is RatesFrom.UNKNOWN or snapshot.bytes_per_s.keys() <= weighed.keys()):
        return Rates(RatesFrom.WEIGHTS)
    return rates


def _unmeasured(rates: Rates, snapshot: Snapshot) -> Rates:
    """Why two looks gave none."""
    if not snapshot.topics:
        return Rates(why_not=_NO_TOPICS, remedy="")
    if not snapshot.end_offsets:
        return Rates(why_not=_NO_END_OFFSETS, remedy="")
    if not snapshot.size_bytes:
        return Rates(why_not=_NO_SIZES, remedy="")
    why, remedy = _NO_RECORD_SIZE.get(rates.measured, (rates.why_not, None))
    return Rates(why_not=why, remedy=rates.remedy if remedy is None else remedy)


def sentence(rates: Rates, snapshot: Snapshot) -> str:
    """Where the rates come from, for a person."""
    weighed = len(snapshot.weighed.bytes_per_s)
    also = (
        f"; weights of the pipeline for {weighed:,} of {counted(len(snapshot.bytes_per_s), 'partition')}"
        if weighed
        else ""
    )
    match rates.measured:
        case RatesFrom.COMMAND:
            return f"rates: measured over {rates.seconds:.0f} s by this command{also}"
        case RatesFrom.AGENT:
            age = f"look {rates.look}, {lasted(rates.look_age_ms or 0)} old"
            return f"rates: from the agent's telemetry ({age}), over {rates.seconds:.0f} s{also}"
        case RatesFrom.FILE:
            return f"rates: as the agent that wrote the file measured them{also}"
        case RatesFrom.WEIGHTS:
            return "rates: weights of the pipeline"
        case RatesFrom.UNKNOWN if not snapshot.topics:
            return "rates: nothing to measure, as no topic was seen"
        case RatesFrom.UNKNOWN:
            why = rates.why_not or "this is one look"
            return f"rates: unknown, as {why}{f'; {rates.remedy}' if rates.remedy else ''}"


def price_sentence(limits: Limits) -> str:
    """The price that is assumed, and the setting that says so."""
    if limits.price.usd_per_gb is None and not limits.price.between:
        return "no price is set (price.usd_per_gb), so no money is shown"
    price = "no price (price.usd_per_gb)" if limits.price.usd_per_gb is None else usd_per_gb(limits.price.usd_per_gb)
    pairs = counted(len({frozenset(pair) for pair in limits.price.between}), "pair")
    between = f"; price.between sets another price for {pairs} of racks" if limits.price.between else ""
    named = " (price.usd_per_gb)" if limits.price.usd_per_gb is not None else ""
    return f"money: at {price}{named}, both directions together{between}"

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


UNKNOWN_RATES = Rates()
_NO_TOPICS = "no topic was seen"
_NO_END_OFFSETS = "end offsets did not answer"
_NO_SIZES = "log dirs did not answer, so the size of a record is not known"


def judged(rates: Rates, snapshot: Snapshot) -> Rates:
    """The same, by what the snapshot really has: weights come before what was measured, and without rates none was."""
    if not snapshot.bytes_per_s:
        return Rates(why_not=rates.why_not or _why_not(rates, snapshot))
    weighed = snapshot.weighed.bytes_per_s
    if weighed and (rates.measured is RatesFrom.UNKNOWN or snapshot.bytes_per_s.keys() <= weighed.keys()):
        return Rates(RatesFrom.WEIGHTS)
    return rates


def _why_not(rates: Rates, snapshot: Snapshot) -> str | None:
    if rates.measured is RatesFrom.UNKNOWN:
        return None
    if not snapshot.topics:
        return _NO_TOPICS
    if not snapshot.end_offsets:
        return _NO_END_OFFSETS
    return _NO_SIZES if not snapshot.size_bytes else None


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
            remedy = "" if why in (_NO_TOPICS, _NO_END_OFFSETS, _NO_SIZES) else "; --for 10s measures them"
            return f"rates: unknown, as {why}{remedy}"


def price_sentence(limits: Limits) -> str:
    """The price that is assumed, and the setting that says so."""
    if limits.usd_per_gb is None and not limits.prices:
        return "no price is set (price.usd_per_gb), so no money is shown"
    price = "no price (price.usd_per_gb)" if limits.usd_per_gb is None else usd_per_gb(limits.usd_per_gb)
    pairs = counted(len({frozenset(pair) for pair in limits.prices}), "pair")
    between = f"; price.between sets another price for {pairs} of racks" if limits.prices else ""
    named = " (price.usd_per_gb)" if limits.usd_per_gb is not None else ""
    return f"money: at {price}{named}, both directions together{between}"

"""What several documents say of rates and of money."""

from __future__ import annotations

from typing import Literal, TypedDict

RatesSource = Literal["command", "agent", "file", "weights", "unknown"]


class RatesDocument(TypedDict):
    """Where bytes per second come from."""

    source: RatesSource
    """``command``: two looks of this command; ``agent``: the running agent's telemetry; ``file``: the replayed file's
    agent; ``weights``: the pipeline; ``unknown``: one look, and no other source."""
    measured_over_s: float | None
    """Seconds over which they were measured; null where that is not known."""
    agent_look: str | None
    """The agent's look that they rest on; null unless the source is ``agent``."""
    agent_look_age_ms: int | None
    """How old that look is; null unless the source is ``agent``."""
    why_not: str | None
    """Why they are unknown; null where they are known."""


class PriceDocument(TypedDict):
    """What a byte that crosses racks is assumed to cost."""

    usd_per_gb: float | None
    """Price of 10^9 bytes, both directions together (``price.usd_per_gb``); null where none is set."""
    pairs_with_own_price: int
    """Pairs of racks that ``price.between`` gives another price."""


class PricedDocument(TypedDict):
    """What crosses racks, and what it costs: at least, and at most."""

    cross_rack_bytes_per_s: float | None
    """Bytes per second that cross racks: at least, where some are unknown; null: unknown."""
    usd_per_day: float | None
    """What they cost a day, in the same way; null also where no price is set."""
    at_most_cross_rack_bytes_per_s: float | None
    """Bytes per second that cross racks at most; null: no bound is known."""
    at_most_usd_per_day: float | None
    """What they cost a day at most; null also where no price is set."""


class CrossingDocument(TypedDict):
    """What crosses racks of some reads and copies."""

    bytes_per_s: float | None
    """Bytes per second that cross racks: at least, where ``unknown`` is above 0; null where none of it is known."""
    usd_per_day: float | None
    """What they cost a day, in the same way; null also where no price is set."""
    at_most_bytes_per_s: float | None
    """Bytes per second that cross racks at most; null: no bound is known."""
    at_most_usd_per_day: float | None
    """What they cost a day at most; null also where no price is set."""
    parts: int
    """Reads (one partition by one reader) and copies (one partition to one follower) that were looked at."""
    unknown: int
    """Those of which it is not known how many bytes cross; a missing answer that may hide some counts as one."""


class MoneyDocument(TypedDict):
    """Everything that crosses racks, by path. What producers send is not visible and in none of the figures."""

    rates: RatesDocument
    price: PriceDocument
    total: CrossingDocument
    replicate: CrossingDocument
    """From leaders to followers."""
    consume: CrossingDocument
    """From brokers to the members of groups, changelogs that standbys read included."""
    groups_with_hidden_reads: list[str]
    """Groups with a member whose reads are not visible now."""

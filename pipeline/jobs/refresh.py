"""Brings silver and gold up to date with bronze, for the looks and hours that new records touched.

Invariant: what is written for an hour depends on bronze alone, never on what an earlier refresh wrote there or on how
often it ran. So it may be killed and run again, and a refresh of everything gives what many small ones gave.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.tables import Tables
from pipeline.transforms.prices import PriceRow
from pipeline.transforms.producers import ProducerRow


class LookKey(NamedTuple):
    """A look of which telemetry events came."""

    cluster: str
    look: str
    taken_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """What is known besides the topics."""

    prices: tuple[PriceRow, ...] = ()
    """What a gigabyte costs from rack to rack; without any, nothing has a price."""
    producers: tuple[ProducerRow, ...] = ()
    """Where producers stand, as far as somebody told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh did."""

    looks: int = 0
    """Looks that were read again."""
    hours: int = 0
    """Hours, of all clusters, that were worked out again."""
    rows: dict[str, int] = field(default_factory=dict)
    """Table -> rows written; a table that did not change is missing."""
    messages: tuple[str, ...] = ()
    """What a person should know: pairs without a price, looks that could not be read. Each once, sorted."""
    seconds: float = 0.0


def refresh(
    tables: Tables,
    looks: Collection[LookKey] | None = None,
    *,
    settings: RefreshSettings,
    acted: bool = True,
) -> Refreshed:
    """Works out silver and gold again for these looks and the hours that they touch; for all looks when None.

    ``acted``: whether proposals or journal entries may be new; outcomes are left as they are otherwise.
    """
    raise NotImplementedError

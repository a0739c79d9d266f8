"""CSV files that the settings name: dated prices, and the racks of producers. The first line names the columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

from agent.errors import ConfigError
from pipeline.csv_files import csv_rows
from pipeline.transforms.prices import PriceRow, ProducerRow

if TYPE_CHECKING:
    from config.sections import PriceSettings

_PRICE = ("source_rack", "target_rack", "usd_per_gb", "from_date")
_PRODUCER = ("topic", "rack", "share")
_TOO_MUCH = 1.000_001


def price_rows(settings: PriceSettings) -> tuple[PriceRow, ...]:
    """Every price, dated or not. Raises ConfigError with the file, the line and what is wrong."""
    dated = csv_rows(settings.table, "price.table", _PRICE, _price) if settings.table else ()
    between = tuple(PriceRow(*_pair(name), price) for name, price in sorted(settings.between.items()))
    everywhere = () if settings.usd_per_gb is None else (PriceRow(None, None, settings.usd_per_gb),)
    return (*dated, *between, *everywhere)


def producer_rows(settings: PriceSettings) -> tuple[ProducerRow, ...]:
    """Shares of topics by the producers' racks, one row for each rack of a topic.

    Raises ConfigError as `price_rows`, also for shares of more than 1.
    """
    rows = csv_rows(settings.producers, "price.producers", _PRODUCER, _producer) if settings.producers else ()
    of_racks: dict[tuple[str, str], float] = {}
    shares: dict[str, float] = {}
    for row in rows:
        of_racks[row.topic, row.rack] = of_racks.get((row.topic, row.rack), 0.0) + row.share
        shares[row.topic] = shares.get(row.topic, 0.0) + row.share
    for topic, share in shares.items():
        if share > _TOO_MUCH:
            raise ConfigError(
                f"the shares of {topic} in {settings.producers} add up to {share:g}",
                why="the shares of a topic add up to 1 at most; the rest counts as unknown",
            )
    return tuple(ProducerRow(topic, rack, share) for (topic, rack), share in of_racks.items())


def _price(row: Mapping[str, str]) -> PriceRow:
    if not row["source_rack"] or not row["target_rack"]:
        raise ValueError("a price needs a source_rack and a target_rack")
    try:
        day = date.fromisoformat(row["from_date"]).isoformat()
    except ValueError:
        raise ValueError(f"from_date {row['from_date']!r} is not a date: write it as yyyy-mm-dd") from None
    return PriceRow(row["source_rack"], row["target_rack"], _number("usd_per_gb", row["usd_per_gb"], math.inf), day)


def _producer(row: Mapping[str, str]) -> ProducerRow:
    if not row["topic"] or not row["rack"]:
        raise ValueError("a share needs a topic (* for all others) and a rack")
    return ProducerRow(row["topic"], row["rack"], _number("share", row["share"], 1.0))


def _number(name: str, text: str, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= most or math.isinf(number):
        raise ValueError(f"{name} {text!r} is no number from 0" + ("" if math.isinf(most) else f" to {most:g}"))
    return number


def _pair(name: str) -> tuple[str, str]:
    source, _, target = name.partition("->")
    return source.strip(), target.strip()

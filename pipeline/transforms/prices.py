"""Price of a gigabyte from rack to rack on a day, and the racks of producers.

A price is the newest dated one of the very pair and direction, else the undated one of the pair, else the undated one
for all. A pair that has none of them has no price, which is null and never 0.

Racks of producers are known as far as a file names them; no broker has them. A row is a topic pattern with the share
of its records that producers of one rack write. Shares of a topic add up to 1; the rest is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.local_relation import local_relation
from pipeline.schemas.table import DOUBLE, STRING, column, columns
from pipeline.schemas.zones import CROSS_ZONE, SAME_ZONE

BYTES_PER_GB = 1_000_000_000
PRICES = columns(
    column("source_rack", STRING, "Rack that the bytes leave; null for every rack."),
    column("target_rack", STRING, "Rack that they reach; null for every rack."),
    column("usd_per_gb", DOUBLE, "Price of 10**9 bytes.", required=True),
    column("from_date", STRING, "First UTC day, yyyy-mm-dd; null for a price without a date."),
)


class PriceRow(NamedTuple):
    """A price, from that day on."""

    source_rack: str | None
    target_rack: str | None
    usd_per_gb: float
    from_date: str | None = None


def price_table(spark: SparkSession, rows: tuple[PriceRow, ...]) -> DataFrame:
    """The rows as `PRICES`."""
    return local_relation(spark, rows, PRICES)


def priced(flows: DataFrame, prices: DataFrame) -> DataFrame:
    """The flows with ``usd`` and ``price_date``; they have cluster, zone, source_rack, target_rack, bytes and day."""
    price_rows = prices.agg(
        F.collect_list(F.struct("source_rack", "target_rack", "from_date", "usd_per_gb")).alias("price_rows")
    )
    best = F.array_max(F.transform(F.filter("price_rows", _applies), _rank))
    crossing, local = F.col("zone") == CROSS_ZONE, F.col("zone") == SAME_ZONE
    usd = F.when(local & F.col("bytes").isNotNull(), F.lit(0.0)).when(
        crossing, F.col("bytes") / BYTES_PER_GB * F.col("best.usd_per_gb")
    )
    return (
        flows.crossJoin(F.broadcast(price_rows))
        .withColumn("best", best)
        .withColumns({"usd": usd, "price_date": F.when(crossing, F.col("best.from_date"))})
        .drop("price_rows", "best")
    )


def unpriced(ledger: DataFrame) -> DataFrame:
    """Pairs of racks (source_rack, target_rack) that have a cost and no price."""
    return (
        ledger.where((F.col("zone") == CROSS_ZONE) & (F.col("bytes") > 0) & F.col("usd").isNull())
        .select("source_rack", "target_rack")
        .distinct()
    )


def _applies(price: Column) -> Column:
    pair = (price["source_rack"] == F.col("source_rack")) & (price["target_rack"] == F.col("target_rack"))
    everywhere = price["source_rack"].isNull() & price["target_rack"].isNull()
    dated = price["from_date"].isNull() | (price["from_date"] <= F.col("day"))
    return (F.coalesce(pair, F.lit(False)) | everywhere) & dated  # noqa: FBT003


def _rank(price: Column) -> Column:
    """The nearer the better, then the newer: structs compare field by field, nulls first."""
    return F.struct(
        price["source_rack"].isNotNull().alias("of_pair"),
        price["from_date"].alias("from_date"),
        price["usd_per_gb"].alias("usd_per_gb"),
    )


# --- producers ------------------------------------------------------------------------------------------------------

PRODUCERS = columns(
    column("topic", STRING, "Topic; * for all topics that no other row names.", required=True),
    column("rack", STRING, "Rack of the producers.", required=True),
    column("share", DOUBLE, "Share of the topic's records that they write, 0 to 1.", required=True),
)


class ProducerRow(NamedTuple):
    """Producers of a topic in one rack."""

    topic: str
    rack: str
    share: float


def producer_table(spark: SparkSession, rows: tuple[ProducerRow, ...]) -> DataFrame:
    """The rows as `PRODUCERS`."""
    return local_relation(spark, rows, PRODUCERS)

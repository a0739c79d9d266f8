"""Racks of producers, as far as a file names them: no broker does.

A row is a topic pattern with the share of its records that producers of one rack write. Shares of a topic add up to 1;
what is left over is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from pipeline.local_relation import local_relation
from pipeline.schemas.table import DOUBLE, STRING, column, columns

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

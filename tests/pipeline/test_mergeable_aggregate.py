"""Sums of looks: what does not fit into 64 bits any more is unknown, and ends no task."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.transforms.ledger import COPY_SUMS, PLACEMENT_SUMS
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.reads import LAG_SUMS, READ_SUMS
from pipeline.transforms.traffic import TRAFFIC_SUMS


@pytest.mark.parametrize(
    ("sums", "names"),
    [
        pytest.param(PLACEMENT_SUMS, ("records", "gap_records"), id="placements"),
        pytest.param(COPY_SUMS, ("bytes", "gap_bytes"), id="copies"),
        pytest.param(READ_SUMS, ("records", "appended", "gap_records", "by_commits"), id="reads"),
        pytest.param(LAG_SUMS, ("total",), id="lags"),
        pytest.param(TRAFFIC_SUMS, ("records", "gap_records", "grown_bytes", "grown_records"), id="traffic"),
    ],
)
def test_a_sum_beyond_64_bits_is_unknown(spark: SparkSession, sums: MergeableAggregate, names: tuple[str, ...]) -> None:
    figures = {name: F.lit(2**53) for name in names}
    rows = spark.range(1_100).select(F.lit("k").alias("key"), *(one.alias(name) for name, one in figures.items()))
    of_figures = MergeableAggregate(("key",), {name: sums.by[name] for name in names})
    assert [tuple(row) for row in of_figures.aggregate(rows).collect()] == [("k", *(None,) * len(names))]
    few = of_figures.aggregate(rows.limit(1_000))
    assert [tuple(row) for row in few.collect()] == [("k", *(1_000 * 2**53,) * len(names))]

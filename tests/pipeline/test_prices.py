"""What a gigabyte costs: directions, dates, what holds where nothing is dated, and files that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from agent.errors import ConfigError
from config.sections import PriceSettings
from pipeline.price_files import price_rows, producer_rows
from pipeline.transforms.prices import PriceRow, ProducerRow, price_table, priced, unpriced

GB = 10.0**9
FLOW = "cluster string, source_rack string, target_rack string, zone string, bytes double, day string"
PRICED = f"{FLOW}, usd double, price_date string"
TABLE = (
    PriceRow("a", "b", 0.01, "2026-01-01"),
    PriceRow("a", "b", 0.03, "2026-06-01"),
    PriceRow("b", "a", 0.02, "2026-06-01"),
    PriceRow("b", "a", 0.05),
    PriceRow("c", "c", 9.0),
)


def test_prices_by_pair_direction_and_date(spark: SparkSession) -> None:
    flows = [
        (("a", "b", "CROSS_ZONE", GB, "2026-05-31"), 0.01, "2026-01-01"),
        (("a", "b", "CROSS_ZONE", 2 * GB, "2026-06-01"), 0.06, "2026-06-01"),
        (("a", "b", "CROSS_ZONE", GB, "2025-12-31"), None, None),
        (("b", "a", "CROSS_ZONE", GB, "2026-05-31"), 0.05, None),
        (("b", "a", "CROSS_ZONE", GB, "2026-06-02"), 0.02, "2026-06-01"),
        (("a", "c", "CROSS_ZONE", GB, "2026-06-02"), None, None),
        (("a", "b", "CROSS_ZONE", None, "2026-06-02"), None, "2026-06-01"),
        (("c", "c", "SAME_ZONE", GB, "2026-06-02"), 0.0, None),
        (("", "b", "UNKNOWN", GB, "2026-06-02"), None, None),
    ]
    given = spark.createDataFrame([("k", *flow) for flow, _, _ in flows], FLOW)
    expected = spark.createDataFrame([("k", *flow, usd, date) for flow, usd, date in flows], PRICED)
    found = priced(given, price_table(spark, TABLE))
    assertDataFrameEqual(found, expected)
    missing = spark.createDataFrame([("a", "b"), ("a", "c")], "source_rack string, target_rack string")
    assertDataFrameEqual(unpriced(found), missing)


def crossing(source: str, target: str) -> tuple[object, ...]:
    return "k", source, target, "CROSS_ZONE", GB, "2026-01-01"


def test_a_price_for_everything_holds_where_no_pair_has_one(spark: SparkSession) -> None:
    given = spark.createDataFrame([crossing("a", "b"), crossing("x", "y")], FLOW)
    prices = (PriceRow(None, None, 0.02), PriceRow("a", "b", 0.0))
    expected = [(*crossing("a", "b"), 0.0, None), (*crossing("x", "y"), 0.02, None)]
    assertDataFrameEqual(priced(given, price_table(spark, prices)), spark.createDataFrame(expected, PRICED))


def test_without_any_price_nothing_has_one(spark: SparkSession) -> None:
    given = spark.createDataFrame([crossing("a", "b")], FLOW)
    expected = spark.createDataFrame([(*crossing("a", "b"), None, None)], PRICED)
    assertDataFrameEqual(priced(given, price_table(spark, ())), expected)


def written(folder: Path, text: str) -> str:
    file = folder / "given.csv"
    file.write_text(text)
    return str(file)


def test_the_files_beside_the_settings(tmp_path: Path) -> None:
    table = written(tmp_path, "from_date,source_rack,target_rack,usd_per_gb\n2026-06-01,a,b,0.01\n")
    settings = PriceSettings(usd_per_gb=0.02, between={"a->b": 0.03}, table=table)
    assert price_rows(settings) == (
        PriceRow("a", "b", 0.01, "2026-06-01"),
        PriceRow("a", "b", 0.03),
        PriceRow(None, None, 0.02),
    )
    producers = written(tmp_path, "topic,rack,share\norders,a,0.25\n*,b,1\n")
    rows = producer_rows(PriceSettings(producers=producers))
    assert rows == (ProducerRow("orders", "a", 0.25), ProducerRow("*", "b", 1.0))
    assert price_rows(PriceSettings(usd_per_gb=None)) == ()
    assert producer_rows(PriceSettings()) == ()


HEAD = "source_rack,target_rack,usd_per_gb,from_date"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("source_rack,target_rack,usd_per_gb\n", "no column from_date", id="a column is missing"),
        pytest.param(f"{HEAD}\na,b,cheap,2026-01-01\n", "'cheap' is no number", id="a word for a price"),
        pytest.param(f"{HEAD}\na,b,-1,2026-01-01\n", "'-1' is no number from 0", id="a negative price"),
        pytest.param(f"{HEAD}\na,b,1,June\n", "'June' is not a date", id="a month for a date"),
        pytest.param(f"{HEAD}\n,b,1,2026-01-01\n", "line 2", id="a price from nowhere"),
        pytest.param(None, "cannot be read", id="no such file"),
    ],
)
def test_a_price_table_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str | None, said: str) -> None:
    file = str(tmp_path / "none.csv") if text is None else written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        price_rows(PriceSettings(table=file))
    assert said in f"{caught.value}"
    assert file in f"{caught.value}"


def test_several_rows_of_a_topic_and_a_rack_are_one(tmp_path: Path) -> None:
    file = written(tmp_path, "topic,rack,share\norders,a,0.25\norders,b,0.375\norders,a,0.25\n*,a,0.5\n")
    assert producer_rows(PriceSettings(producers=file)) == (
        ProducerRow("orders", "a", 0.5),
        ProducerRow("orders", "b", 0.375),
        ProducerRow("*", "a", 0.5),
    )


def test_producers_of_a_topic_write_no_more_than_all_of_it(tmp_path: Path) -> None:
    file = written(tmp_path, "topic,rack,share\norders,a,0.7\norders,b,0.7\n")
    with pytest.raises(ConfigError, match=r"orders in .* 1\.4"):
        producer_rows(PriceSettings(producers=file))

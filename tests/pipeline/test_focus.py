"""The ledger in the columns of FOCUS, and beside a cloud's bill."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from agent.errors import BadInput, ConfigError
from pipeline.bill_lines import bill_by_day
from pipeline.jobs.focus import write_focus
from pipeline.owner_rules import OwnerRule
from pipeline.report.compose import compose
from pipeline.report.facts import DayCoverage
from pipeline.report.focus import COLUMNS, DECIMALS
from pipeline.report.period import ReportPeriod
from pipeline.report.sections_bill import reconciled
from pipeline.schemas import gold
from pipeline.tables import TableStore
from tests.pipeline.report_facts import cost, facts
from tests.pipeline.report_tables import BEGIN_MS, DAY_MS, GB, C, ledger_row, write

MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost",
    "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ServiceCategory", "ServiceName",
}  # fmt: skip
"""Columns of feature level Mandatory in FOCUS 1.2."""
MAY_BE_NULL = {"BillingAccountName", "ChargeClass", "x_AvoidableCost", "x_ConsumerGroup"}
LEDGER = [
    ledger_row(group="billing", bytes=3 * GB),
    ledger_row(group="billing", bytes=GB / 3, hour_ms=BEGIN_MS + 3_600_000),
    ledger_row(group="=cmd()", bytes=GB, hour_ms=BEGIN_MS + DAY_MS),
    ledger_row(group="billing", bytes=GB, target_rack="x", usd=None),
    ledger_row(group="billing", bytes=9 * GB, zone="SAME_ZONE"),
    ledger_row(group="billing", bytes=9 * GB, zone="UNKNOWN"),
    ledger_row(path="replicate", bytes=4 * GB, unavoidable_bytes=3 * GB),
    ledger_row(path="replicate", bytes=4 * GB, unavoidable_bytes=None, target_rack="c"),
    ledger_row(path="move", bytes=5 * GB),
]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the charges as CSV and as Parquet."""
    folder = tmp_path_factory.mktemp("focus")
    tables = TableStore(spark, str(folder / "tables"), "parquet")
    write(tables, {gold.LEDGER: LEDGER})
    owners = (OwnerRule("group", "bill*", "payments", "CC-1"),)
    export = write_focus(tables, ReportPeriod(), folder, ("focus", "focus-parquet"), owners)
    assert (export.charges, export.unpriced) == (5, 1)
    assert [file.name for file in export.files] == ["focus.csv", "focus.parquet"]
    assert not list(folder.glob(".*"))
    return folder


@pytest.fixture(scope="module")
def charges(written: Path) -> list[dict[str, str]]:
    with (written / "focus.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_mandatory_column_is_there_and_every_other_one_is_of_the_specification_or_marked(
    charges: list[dict[str, str]],
):
    assert {*COLUMNS} >= MANDATORY
    own = [name for name in COLUMNS if name.startswith("x_")]
    assert list(COLUMNS) == [*sorted({*COLUMNS} - {*own}), *sorted(own)]
    for row in charges:
        assert {name for name, value in row.items() if not value} <= MAY_BE_NULL


def test_a_charge_is_a_day_of_a_topic_between_two_racks(charges: list[dict[str, str]]):
    found = [row for row in charges if row["x_ConsumerGroup"] == "billing"]
    (row,) = found
    told = {
        name: row[name] for name in ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
    }
    assert [*told.values()] == [
        "2025-11-01T00:00:00Z", "2025-12-01T00:00:00Z", "2025-11-21T00:00:00Z", "2025-11-22T00:00:00Z"
    ]  # fmt: skip
    assert row["ChargeDescription"] == "group billing reads topic orders from rack a to b"
    assert json.loads(row["Tags"]) == {"cost_centre": "CC-1", "team": "payments"}
    assert (row["ResourceId"], row["BillingAccountId"]) == (f"{C}/topic/orders", C)
    assert Decimal(row["PricingQuantity"]) == pytest.approx(Decimal(10) / 3)
    assert row["BilledCost"] == "0", "the cloud is paid, not rackwise"


def test_price_times_quantity_is_the_cost_and_all_costs_are_those_of_the_ledger(charges: list[dict[str, str]]):
    for row in charges:
        quantity = Decimal(row["PricingQuantity"])
        for price, amount in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
            assert abs(Decimal(row[price]) * quantity - Decimal(row[amount])) <= Decimal("1e-12")
        assert row["EffectiveCost"] == row["ListCost"]
        assert row["ConsumedQuantity"] == row["PricingQuantity"]
    priced = sum(line["usd"] or 0.0 for line in LEDGER)
    assert float(sum(Decimal(row["ListCost"]) for row in charges)) == pytest.approx(priced, abs=1e-9)
    avoidable = {(row["x_Path"], row["x_TargetRack"]): row["x_AvoidableCost"] for row in charges}
    assert (avoidable["replicate", "b"], avoidable["replicate", "c"], avoidable["move", "b"]) == ("0.02", "", "0")


def test_no_name_is_a_formula(charges: list[dict[str, str]]):
    assert [row["x_ConsumerGroup"] for row in charges if "cmd" in row["x_ConsumerGroup"]] == ["'=cmd()"]


def test_parquet_has_the_same_charges_with_types(written: Path, charges: list[dict[str, str]]):
    table = pq.read_table(written / "focus.parquet")
    assert table.column_names == list(COLUMNS)
    assert {str(table.schema.field(name).type) for name in DECIMALS} == {"decimal128(38, 12)"}
    assert str(table.schema.field("ChargePeriodStart").type) == "timestamp[ms, tz=UTC]"
    assert [row["ListCost"] for row in table.to_pylist()] == [Decimal(row["ListCost"]) for row in charges]


def test_a_root_without_a_ledger_and_a_folder_that_cannot_be_written_are_told(spark: SparkSession, tmp_path: Path):
    tables = TableStore(spark, str(tmp_path / "tables"), "parquet")
    with pytest.raises(BadInput, match="has no table gold"):
        write_focus(tables, ReportPeriod(), tmp_path, ("focus",))
    write(tables, {gold.LEDGER: LEDGER[:1]})
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        write_focus(tables, ReportPeriod(), tmp_path / "file" / "out", ("focus",))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("day,usd\n2025-11-21,1.5\n2025-11-22,3\n2025-11-21,0.5\n", id="days and dollars"),
        pytest.param(
            "ChargePeriodStart,ChargePeriodEnd,EffectiveCost,BillingCurrency,x\n"
            "2025-11-21T00:00:00Z,2025-11-21T01:00:00Z,1.5,USD,\n"
            "2025-11-22T01:00:00+01:00,2025-11-22T02:00:00+01:00,3,USD,\n"
            "2025-11-22T00:30:00+01:00,2025-11-22T01:00:00+01:00,0.5,USD,\n",
            id="FOCUS, in UTC whatever the offset",
        ),
        pytest.param(
            "line_item_usage_start_date,line_item_usage_end_date,line_item_unblended_cost\n"
            "2025-11-21 00:00:00,2025-11-22 00:00:00,2.0\n2025-11-22 00:00:00,2025-11-23 00:00:00,3.0\n",
            id="AWS",
        ),
    ],
)
def test_a_bill_is_added_up_by_day(text: str, tmp_path: Path):
    file = tmp_path / "bill.csv"
    file.write_text(text)
    assert bill_by_day(str(file)) == {"2025-11-21": 2.0, "2025-11-22": 3.0}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("a,b\n", "is no bill that is known here", id="unknown columns"),
        pytest.param("day,usd\nsoon,1\n", "line 2, is invalid: day 'soon' is no date", id="no date"),
        pytest.param("day,usd\n2025-11-21,nan\n", "usd 'nan' is no number", id="no number"),
        pytest.param(
            "ChargePeriodStart,ChargePeriodEnd,EffectiveCost\n2025-11-01T00:00Z,2025-12-01T00:00Z,9\n",
            "it is about more than a day",
            id="a whole month in a line",
        ),
        pytest.param(
            "ChargePeriodStart,EffectiveCost,BillingCurrency\n2025-11-01T00:00Z,9,EUR\n",
            "its currency is EUR, and prices here are dollars",
            id="another currency",
        ),
        pytest.param(
            f'day,usd\n"{"x" * 200_000}",1\n', "line 2, is invalid: field larger", id="a field without an end"
        ),
    ],
)
def test_a_bill_that_cannot_be_used_is_told_in_one_sentence(text: str, sentence: str, tmp_path: Path):
    file = tmp_path / "bill.csv"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        bill_by_day(str(file))
    assert sentence in f"{raised.value.what}: {raised.value.why}"


def test_each_day_of_a_bill_has_what_is_explained_and_what_remains():
    told = facts(
        costs=(
            cost(day="2025-11-21", usd=1.5),
            cost(day="2025-11-21", path="replicate", group="", usd=0.25, unknown_bytes=7e9),
            cost(day="2025-11-22", usd=None, cross_bytes=None),
            cost(day="2025-11-24", usd=9.0),
        ),
        days=(DayCoverage("c", "2025-11-21", 20, 70_000.0), DayCoverage("d", "2025-11-21", 4, 9_000.0)),
        bill=(("2025-11-21", 2.0), ("2025-11-22", 3.0), ("2025-11-23", 0.0)),
    )
    first, second, third = reconciled(told)
    assert (first.explained, first.remainder, first.hours, first.covered_s) == (1.75, 0.25, 24, 79_000.0)
    assert first.unknown_bytes == 7e9
    assert (second.explained, second.remainder) == (None, 3.0), "unknown is not 0, and all of it remains"
    assert (third.explained, third.remainder) == (None, 0.0)
    (section,) = (one for one in compose(told).sections if one.name == "bill")
    assert section.lead == (
        "Of $5.00 on 3 days of the bill the ledger explains $1.75 (35 %); $3.25 remain. "
        "For 2 days the ledger has no cost."
    )
    assert [row[3] for row in section.grid.rows] == [0.875, None, None]
    assert "bill" not in [one.name for one in compose(told._replace(bill=())).sections]

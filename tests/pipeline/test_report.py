"""A report of written-out tables: what Spark adds up, the files, byte for byte, and a browser that opens them."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from agent.errors import BadInput
from pipeline.jobs.report import texts_of, write_report
from pipeline.report import balance, summaries, topic_sums
from pipeline.report.avoidable import avoidable_cost
from pipeline.report.collect import collect
from pipeline.report.compose import compose
from pipeline.report.document import FORMATS, BarPlot
from pipeline.report.facts import ReportFacts
from pipeline.report.html import to_html
from pipeline.report.ledger_sums import ledger_sums
from pipeline.report.period import ReportPeriod
from pipeline.report.weeks import LatestDays
from pipeline.schemas import gold
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore
from tests.pipeline.report_tables import BEGIN_MS, DAY_MS, GB, HOUR_MS, C, ledger_row, outcome_row, whole, world, write

GOLDEN = Path(__file__).with_name("golden") / "report"
SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)


def rows(spark: SparkSession, table: TableSpec, *told: dict[str, object]):
    return spark.createDataFrame([whole(table, row) for row in told], table.schema)


def expected(spark: SparkSession, kind: type, schema, *values: tuple[object, ...]):
    return spark.createDataFrame([kind(*value) for value in values], schema)


def summed(ledger: DataFrame) -> DataFrame:
    """All of it, without a week before."""
    return ledger_sums(ledger, ReportPeriod(), LatestDays(0, 0))


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ReportFacts:
    """What is collected of the written-out world."""
    tables = TableStore(spark, str(tmp_path_factory.mktemp("tables")), "parquet")
    write(tables, world())
    return collect(tables, ReportPeriod())


def test_costs_fold_all_groups_but_the_dearest_and_count_what_is_unknown(spark: SparkSession):
    ledger = rows(
        spark,
        gold.LEDGER,
        ledger_row(group="dear", bytes=3 * GB),
        ledger_row(group="dear", bytes=None, usd=None),
        ledger_row(group="dear", zone="SAME_ZONE", bytes=9 * GB),
        ledger_row(group="cheap", bytes=2 * GB),
        ledger_row(group="free", bytes=1 * GB, usd=None),
        ledger_row(group="free", zone="UNKNOWN", bytes=5 * GB),
        ledger_row(path="replicate", bytes=4 * GB),
        ledger_row(path="produce", zone="UNKNOWN", bytes=2 * GB),
        ledger_row(path="move", zone="SAME_ZONE", bytes=2 * GB),
    )
    found = summaries.costs(summed(ledger), most=1)
    day = "2025-11-21"
    assertDataFrameEqual(
        found,
        expected(
            spark,
            tuple_of,
            found.schema,
            (C, day, "consume", "dear", 3 * GB, 0.0, 0.06, None, 1),
            (C, day, summaries.OTHER_READS, "", 3 * GB, 5 * GB, 0.04, GB, 0),
            (C, day, "move", "", 0.0, 0.0, 0.0, 0.0, 0),
            (C, day, "produce", "", None, 2 * GB, None, 0.0, 0),
            (C, day, "replicate", "", 4 * GB, 0.0, 0.08, 0.0, 0),
        ),
        checkRowOrder=True,
    )


def test_hours_that_looks_cover_are_counted_and_thin_ones_in_between_told(spark: SparkSession):
    traffic = rows(
        spark,
        gold.PARTITION_TRAFFIC,
        *(
            {
                "cluster": C,
                "hour_ms": BEGIN_MS + hour * HOUR_MS,
                "topic": "t",
                "partition": partition,
                "seconds": seconds - partition,
            }
            for hour, seconds in enumerate((600.0, 3600.0, 1800.0, 300.0))
            for partition in range(2)
        ),
        {"cluster": C, "hour_ms": BEGIN_MS + 2 * HOUR_MS, "topic": "t", "partition": 3, "seconds": 0.0}
        | {"gap_seconds": 1_800.0},
        {"cluster": "gaps", "hour_ms": BEGIN_MS, "topic": "t", "partition": 0, "seconds": 0.0, "gap_seconds": 3_600.0},
    )
    found = summaries.coverage(summaries.covered_hours(traffic))
    last = BEGIN_MS + 3 * HOUR_MS
    none = [("gaps", BEGIN_MS, BEGIN_MS, 0, 0.0, 0, 3_600.0, 0.0)]
    assertDataFrameEqual(
        found, expected(spark, tuple_of, found.schema, (C, BEGIN_MS, last, 4, 6300.0, 1, 1_800.0, 0.0), *none)
    )


def test_what_an_hour_has_more_than_an_hour_is_counted_apart(spark: SparkSession):
    """An instance runs through an hour twice where its clock is set back."""
    traffic = rows(
        spark,
        gold.PARTITION_TRAFFIC,
        *(
            {"cluster": C, "hour_ms": BEGIN_MS + hour * HOUR_MS, "topic": "t", "partition": 0, "seconds": seconds}
            for hour, seconds in enumerate((3000.0, 5400.0))
        ),
    )
    (found,) = summaries.coverage(summaries.covered_hours(traffic)).collect()
    assert (found.seconds, found.twice_s) == (8400.0, 1800.0)


WEEK = LatestDays(BEGIN_MS, BEGIN_MS + 2 * DAY_MS)
"""Two days, which are compared with those a week before."""


def test_what_can_be_avoided_is_summed_by_group_and_topic_and_unknown_parts_apart(spark: SparkSession):
    week = {"hour_ms": BEGIN_MS - 7 * DAY_MS}
    ledger = rows(
        spark,
        gold.LEDGER,
        ledger_row(group="g", bytes=3 * GB),
        ledger_row(group="g", bytes=GB, usd=None, source_rack="x"),
        ledger_row(group="g", bytes=9 * GB, zone="SAME_ZONE"),
        ledger_row(group="g", bytes=9 * GB, zone="UNKNOWN"),
        ledger_row(group="g", bytes=None),
        ledger_row(group="g", bytes=5 * GB, **week),
        ledger_row(group="gone", bytes=GB, **week),
        ledger_row(group="older", bytes=GB, hour_ms=BEGIN_MS - 8 * DAY_MS),
        ledger_row(path="replicate", bytes=4 * GB, unavoidable_bytes=3 * GB),
        ledger_row(path="replicate", bytes=2 * GB, unavoidable_bytes=None),
        ledger_row(path="move", bytes=7 * GB),
    )
    found = topic_sums.topic_costs(ledger_sums(ledger, ReportPeriod(BEGIN_MS), WEEK))
    assert found.columns[4:] == [
        "cross_bytes", "usd", "avoidable_bytes", "avoidable_usd", "unpriced_bytes", "unsure_bytes", "recent_usd",
        "before_usd",
    ]  # fmt: skip
    assertDataFrameEqual(
        found,
        expected(
            spark,
            tuple_of,
            found.schema,
            (C, "consume", "g", "orders", 4 * GB, 0.06, 4 * GB, 0.06, GB, 0.0, 0.06, 0.1),
            (C, "replicate", "", "orders", 6 * GB, 0.12, GB, 0.02, 0.0, 2 * GB, 0.02, 0.0),
            (C, "move", "", "orders", 7 * GB, 0.14, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            (C, "consume", "gone", "orders", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02),
        ),
        checkRowOrder=True,
    )


def test_a_ledger_is_compared_with_its_counters_and_the_worst_topic_and_most_frequent_reason_named(
    spark: SparkSession,
):
    told = [
        ("a", 0, "x", 90.0, 100.0, None),
        ("a", 1, "x", 130.0, 100.0, None),
        ("a", 0, "y", 80.0, 100.0, None),
        ("a", 1, "y", 5.0, None, "zebra"),
        ("a", 2, "x", 5.0, None, "ape"),
        ("a", 0, "z", 5.0, None, "yak"),
        ("a", 1, "z", 5.0, None, "yak"),
        ("a", 2, "z", 5.0, None, "ape"),
        ("b", 0, "x", 7.0, 7.5, None),
        ("c", 0, "x", 7.0, None, "ape"),
    ]
    conservation = rows(
        spark,
        gold.CONSERVATION,
        *(
            {"cluster": cluster, "hour_ms": BEGIN_MS + hour * HOUR_MS, "topic": topic, "path": "consume"}
            | {"booked_bytes": booked, "counted_bytes": counted, "why_unknown": why}
            | {"difference_bytes": None if counted is None else booked - counted}
            for cluster, hour, topic, booked, counted, why in told
        ),
    )
    expectation = (
        ("a", 300.0, 300.0, 30.0, 30.0, "consume", "x", 5, "ape"),
        ("b", 7.0, 7.5, 0.5, 0.0, None, None, 0, None),
        ("c", 0.0, 0.0, 0.0, 0.0, None, None, 1, "ape"),
    )
    found = balance.balances(conservation)
    expectation = (
        ("a", 300.0, 300.0, 30.0, 30.0, "consume", "x", 5, "ape"),
        ("b", 7.0, 7.5, 0.5, 0.0, None, None, 0, None),
        ("c", 0.0, 0.0, 0.0, 0.0, None, None, 1, "ape"),
    )
    assertDataFrameEqual(found, expected(spark, tuple_of, found.schema, *expectation), checkRowOrder=True)


def test_a_week_before_a_requested_period_is_read_too(spark: SparkSession, tmp_path: Path):
    tables = TableStore(spark, str(tmp_path), "parquet")
    sizes = {BEGIN_MS - 7 * DAY_MS: GB, BEGIN_MS: 4 * GB}
    seen = {"cluster": C, "topic": "orders", "partition": 0, "seconds": 3600.0}
    ledger = [ledger_row(group="billing", hour_ms=hour, bytes=size) for hour, size in sizes.items()]
    write(tables, {gold.LEDGER: ledger, gold.PARTITION_TRAFFIC: [{**seen, "hour_ms": hour} for hour in sizes]})
    found = collect(tables, ReportPeriod(BEGIN_MS))
    assert [(row.usd, row.recent_usd, row.before_usd) for row in found.topics] == [(0.08, 0.08, 0.02)]
    assert [row[1:] for row in found.weeks] == [(3600.0, 3600.0)]
    assert [row.cross_bytes for row in found.costs] == [4 * GB], "what lies before the period is in nothing else"
    assert avoidable_cost(found).change_usd_per_day == pytest.approx(24 * 0.06)


def test_locality_adds_up_bytes_only_where_both_are_known_and_takes_the_least_local_groups(spark: SparkSession):
    def cell(group: str, rack: str, local: float, local_bytes: float | None, hour: int = 0) -> dict[str, object]:
        at = {"cluster": C, "hour_ms": BEGIN_MS + hour * HOUR_MS, "group": group, "rack": rack}
        return {**at, "local": local, "total": 10.0, "unknown": 0.0, "local_bytes": local_bytes, "total_bytes": 100.0}

    locality = rows(
        spark,
        gold.LOCALITY,
        cell("far", "b", 1.0, 10.0),
        cell("far", "b", 2.0, None, hour=1),
        cell("far", "a", 9.0, 90.0),
        cell("near", "a", 10.0, 100.0),
    )
    found = summaries.near(locality, most=1)
    assertDataFrameEqual(
        found,
        expected(
            spark,
            tuple_of,
            found.schema,
            (C, "far", "a", 9.0, 10.0, 0.0, 90.0, 100.0),
            (C, "far", "b", 3.0, 20.0, 0.0, 10.0, 100.0),
        ),
        checkRowOrder=True,
    )


def test_errors_are_of_proposals_that_tell_both_and_nothing_is_divided_by_zero(spark: SparkSession):
    applied = {"applied_ms": BEGIN_MS}
    proposals = rows(
        spark,
        gold.OUTCOMES,
        outcome_row("a", "done", predicted_moves=10, measured_moves=12, **applied),
        outcome_row("b", "done", predicted_moves=10, measured_moves=5, **applied),
        outcome_row("c", "done", predicted_moves=0, measured_moves=5, predicted_seconds=4.0, **applied),
        outcome_row("d", "standing", predicted_moves=1, measured_moves=9),
    )
    found = summaries.errors(proposals)
    assertDataFrameEqual(found, expected(spark, tuple_of, found.schema, ("moves", 2, -0.43, -0.15, 0.13, -0.5)))


def test_a_standing_proposal_has_the_flows_of_its_subject_without_moves(spark: SparkSession):
    proposals = rows(
        spark,
        gold.OUTCOMES,
        outcome_row("p-1", subject="topic/orders"),
        outcome_row("p-2", subject="group/orders"),
        outcome_row("p-3", subject="broker/1"),
        outcome_row("p-4", "void", subject="group/orders"),
    )
    ledger = rows(
        spark,
        gold.LEDGER,
        ledger_row(group="orders", topic="other", bytes=GB),
        ledger_row(path="replicate", bytes=3 * GB, unavoidable_bytes=2 * GB),
        # A broker has no rack: nothing of it counts as avoidable.
        ledger_row(path="replicate", target_rack="c", bytes=5 * GB, unavoidable_bytes=None),
        # What is copied is paid once: a wiped replica leaves nothing undecided.
        ledger_row(path="move", bytes=7 * GB),
        ledger_row(path="catch-up", bytes=11 * GB, unavoidable_bytes=None),
    )
    found = summaries.standing(proposals, summed(ledger)).select(
        "proposal", "cross_bytes", "avoidable_bytes", "unknown_bytes", "usd", "undecided_bytes"
    )
    assertDataFrameEqual(
        found,
        expected(
            spark,
            tuple_of,
            found.schema,
            ("p-1", 8 * GB, GB, 0.0, 0.16, 5 * GB),
            ("p-2", GB, GB, 0.0, 0.02, 0.0),
            ("p-3", None, None, None, None, None),
        ),
        checkRowOrder=True,
    )


def tuple_of(*values: object) -> tuple[object, ...]:
    return values


def test_a_period_leaves_out_what_lies_elsewhere(spark: SparkSession, tmp_path: Path):
    tables = TableStore(spark, str(tmp_path), "parquet")
    write(tables, {gold.LEDGER: [ledger_row(group="billing", hour_ms=BEGIN_MS + day * DAY_MS) for day in range(3)]})
    found = collect(tables, ReportPeriod(BEGIN_MS + DAY_MS, BEGIN_MS + 2 * DAY_MS, (C,)))
    assert [(row.day, row.cross_bytes) for row in found.costs] == [("2025-11-22", GB)]
    assert collect(tables, ReportPeriod(clusters=("another",))).costs == ()


def test_the_report_is_the_golden_one(facts: ReportFacts):
    """Another text is a decision: RACKWISE_GOLDEN=write writes it anew."""
    texts = texts_of(compose(facts), FORMATS)
    texts["report.html"] = SVG.sub("<svg/>", texts["report.html"])
    if os.environ.get("RACKWISE_GOLDEN") == "write":
        shutil.rmtree(GOLDEN, ignore_errors=True)
        GOLDEN.mkdir(parents=True)
        for name, text in texts.items():
            (GOLDEN / name).write_bytes(text.encode())
    assert {file.name: file.read_bytes().decode() for file in GOLDEN.iterdir()} == texts


@pytest.mark.drill
def test_two_processes_write_the_same_bytes(facts: ReportFacts, tmp_path: Path):
    (tmp_path / "facts").write_bytes(pickle.dumps(facts))
    program = (
        "import pickle, sys; from pathlib import Path;"
        "from pipeline.report.compose import compose; from pipeline.report.html import to_html;"
        "sys.stdout.write(to_html(compose(pickle.loads(Path(sys.argv[1]).read_bytes()))))"
    )
    digests = {
        hashlib.sha256(
            subprocess.run(
                [sys.executable, "-c", program, tmp_path / "facts"],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8", "MPLBACKEND": "agg"},
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
        ).hexdigest()
        for seed in ("1", "2")
    }
    assert digests == {hashlib.sha256(to_html(compose(facts)).encode()).hexdigest()}


def test_the_page_is_well_formed_fetches_nothing_and_takes_no_name_for_markup(facts: ReportFacts):
    page = to_html(compose(facts))
    tree = ET.fromstring(page.removeprefix("<!DOCTYPE html>"))  # noqa: S314 our own page
    names = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(names) == len(set(names)), "ids are unique over all plots"
    links = [
        value
        for element in tree.iter()
        for key, value in element.attrib.items()
        if key.rpartition("}")[2] in {"href", "src"} or "url(" in value
    ]
    assert links
    inside = re.compile(r"#(.+)|.*url\(#(.+?)\).*")
    for link in links:
        found = inside.fullmatch(link)
        assert found, f"{link} leads out of the page"
        assert (found[1] or found[2]) in names
    assert "<b>ird</b>" not in page
    assert "we &lt;b&gt;ird&lt;/b&gt; $x^2$ | name" in page
    assert not re.search(r"<script|@import|javascript:", page)


def test_every_plot_has_a_table_beside_it(facts: ReportFacts):
    plotted = [section for section in compose(facts).sections if section.plot is not None]
    assert [section.name for section in plotted] == [
        "cost",
        "ledger",
        "locality",
        "warmups",
        "restores",
        "rebalances",
        "outcomes",
    ]
    assert [section.name for section in plotted if not section.grid.rows or not section.alternative_text] == []


def test_several_clusters_are_told_apart(facts: ReportFacts):
    other = facts.pairs[0]._replace(cluster="another")
    grids = {section.name: section.grid for section in compose(facts._replace(pairs=(*facts.pairs, other))).sections}
    assert grids["ledger"].heads[0].title == "cluster"
    assert grids["ledger"].rows[-1][0] == "another"


def test_a_price_without_a_date_is_not_called_unknown(facts: ReportFacts):
    undated = facts.pairs[0]._replace(zone="CROSS_ZONE", usd=1.0, price_date=None)
    pairs = (undated, undated._replace(usd=None), undated._replace(price_date="2026-01-01"))
    ledger = next(one for one in compose(facts._replace(pairs=pairs)).sections if one.name == "ledger")
    at = [head.title for head in ledger.grid.heads].index("price dated")
    assert [row[at] for row in ledger.grid.rows] == ["", "unknown", "2026-01-01"]


def test_what_is_copied_once_is_neither_avoidable_nor_unavoidable(facts: ReportFacts):
    pair = next(row for row in facts.pairs if row.path == "replicate")._replace(
        zone="CROSS_ZONE", source_rack="a", target_rack="b", bytes=8e9, unavoidable_bytes=5e9, undecided_bytes=1e9
    )
    copied = pair._replace(path="catch-up", bytes=4e9, unavoidable_bytes=None, undecided_bytes=4e9)
    moved = pair._replace(path="move", bytes=3e9, unavoidable_bytes=0.0, undecided_bytes=0.0)
    ledger = next(one for one in compose(facts._replace(pairs=(copied, moved, pair))).sections if one.name == "ledger")
    assert ledger.lead == (
        "100 % of 15.0 GB crossed racks; 5.0 GB of these no placement avoids at this replication factor, 2.0 GB could "
        "stay within a rack, for 1.0 GB it is unknown whether a placement avoids them, and 7.0 GB were copied, which "
        "is paid once; for 0 B it is unknown."
    )
    titles = [head.title for head in ledger.grid.heads]
    columns = [titles.index(title) for title in ("path", "avoidable", "unknown whether avoidable")]
    assert [tuple(row[at] for at in columns) for row in ledger.grid.rows] == [
        ("catch-up", 0.0, 0.0),
        ("move", 0.0, 0.0),
        ("replicate", 2e9, 1e9),
    ]
    assert isinstance(ledger.plot, BarPlot)
    assert dict(zip(ledger.plot.parts, ledger.plot.sizes, strict=True)) == {
        "within a rack": (0.0, 0.0, 0.0),
        "across, unavoidable": (0.0, 0.0, 5e9),
        "across, avoidable": (0.0, 0.0, 2e9),
        "across, paid once": (4e9, 3e9, 0.0),
        "unknown": (0.0, 0.0, 0.0),
        "across, unknown whether avoidable": (0.0, 0.0, 1e9),
    }
    assert ledger.plot.hatched == {"unknown", "across, unknown whether avoidable"}


def test_tables_that_do_not_exist_yet_are_told_and_a_root_without_gold_is_refused(tables: TableStore, tmp_path: Path):
    with pytest.raises(BadInput, match="rackwise spark refresh"):
        write_report(tables, ReportPeriod(), tmp_path / "out")
    write(tables, {gold.LEDGER: [ledger_row(group="billing")]})
    written = write_report(tables, ReportPeriod(), tmp_path / "out", ("md",))
    assert [file.name for file in written.files] == ["report.md"]
    text = written.files[0].read_text()
    assert text.startswith("**What is proposed is unknown for what group billing reads: 1.0 GB cross racks avoidably, ")
    assert "do not exist yet" in text
    assert r"gold.partition\_traffic" in text


def test_a_folder_that_cannot_be_written_is_told(delta_tables: TableStore, tmp_path: Path):
    write(delta_tables, {gold.LEDGER: [ledger_row(group="billing")]})
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        write_report(delta_tables, ReportPeriod(), tmp_path / "file" / "out", ("md",))

"""The SQL script of a root: plain Spark SQL runs it, and its views give what the report has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from agent.errors import BadInput, ConfigError
from config.settings import Settings
from pipeline.commands.sql import sql
from pipeline.jobs.owners import owners_in_force, write_owners
from pipeline.options import SparkOptions
from pipeline.owner_rules import OwnerRule, owner_rules
from pipeline.report.avoidable import avoidable_cost
from pipeline.report.collect import collect
from pipeline.report.facts import ReportFacts
from pipeline.report.period import ReportPeriod
from pipeline.schemas.gold import GOLD, LEDGER, OWNERS, RACK_DRIFT
from pipeline.session import setting
from pipeline.sql.script import DIALECTS, TABLES, columns_of, script, view_name
from pipeline.tables import TableStore
from tests.deploy.alerts import ROOT
from tests.pipeline.report_tables import C, world, write

RULES = (
    OwnerRule("group", "bill*", "payments", "CC-1"),
    OwnerRule("group", "[am]*", "mail", None),
    OwnerRule("topic", "cl?cks", "web", "CC-2"),
    OwnerRule("topic", "*", "platform", "CC-9"),
)
HEAD = "kind,pattern,team,cost_centre\n"
QUESTIONS = (
    "avoidable_cost_by_day",
    "cost_by_owner",
    "cost_by_path",
    "cost_by_rack_pair",
    "cost_by_group",
    "locality_by_group",
    "unknown_traffic",
    "coverage_by_day",
    "lag_by_group",
    "proposal_results",
)

COSTS = json.loads((ROOT / "deploy/grafana/dashboards/rackwise-costs.json").read_text())
PANELS = {panel["title"]: panel for panel in COSTS["panels"] if panel["type"] != "row"}
SHOWN = {
    "schema": "rackwise_test",
    "__from:date:iso": "2025-11-20T05:06:07.000Z",
    "__to:date:iso": "2025-11-30T00:00:00.000Z",
}


def statements(text: str) -> list[str]:
    """The statements of a script, without its comments: for what takes one at a time."""
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return [one.strip().removesuffix(";") for one in "\n".join(lines).split(";\n") if one.strip()]


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    """Gold tables as Delta Lake; no table of lags or of reads, which no look has shown yet."""
    tables = TableStore(spark, str(tmp_path_factory.mktemp("it's") / "tables"))
    write(tables, {table: rows for table, rows in world().items() if table in GOLD})
    assert write_owners(tables, RULES)
    return tables


@pytest.fixture(scope="module")
def registered(spark: SparkSession, root: TableStore) -> Iterator[SparkSession]:
    """The script, run statement by statement as a notebook does."""
    locations = {table.name: root.path(table) for table in TABLES if root.exists(table)}
    # Reserved words of the standard are no names then, in what is run here and in what tests ask.
    with setting(spark, {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.enforceReservedKeywords": "true"}):
        every = statements(script(locations, "rackwise_test"))
        for statement in (*every, *every[:3], every[-1]):  # a second time it finds what it made
            spark.sql(statement)
        yield spark
        spark.sql("USE default")
        spark.sql("DROP SCHEMA rackwise_test CASCADE")


def test_the_ten_questions_are_answered_by_names_that_need_no_quotes(registered: SparkSession):
    for view in (*map(view_name, TABLES), "group_owners", "topic_owners", "owned_ledger"):
        registered.sql(f"SELECT {', '.join(registered.table(view).columns)} FROM {view}")  # noqa: S608 our own views
    for view in QUESTIONS:
        names = registered.table(view).columns
        rows = registered.sql(f"SELECT {', '.join(names)} FROM {view} LIMIT 1").collect()  # noqa: S608 as above
        assert rows or view == "lag_by_group", view


@pytest.fixture(scope="module")
def plain_names(spark: SparkSession) -> Iterator[None]:
    """Delta Lake parses its statistics' schema with the session's settings, and a column there is named group."""
    with setting(spark, {"spark.sql.ansi.enforceReservedKeywords": "false"}):
        yield


@pytest.fixture(scope="module")
def facts(root: TableStore) -> ReportFacts:
    return collect(root, ReportPeriod(), RULES)


def test_views_say_what_the_report_says(registered: SparkSession, facts: ReportFacts):
    cost = avoidable_cost(facts)
    (by_day,) = registered.sql("SELECT sum(avoidable_usd), sum(avoidable_bytes) FROM avoidable_cost_by_day").collect()
    assert by_day[0] == pytest.approx(sum(line.usd or 0.0 for line in cost.lines))
    assert by_day[1] == pytest.approx(sum(line.avoidable_bytes for line in cost.lines))
    owners = registered.sql("SELECT team, cost_centre, sum(avoidable_usd) FROM cost_by_owner GROUP BY 1, 2").collect()
    assert {tuple(row[:2]): round(row[2] or 0.0, 6) for row in owners} == {
        ("payments", "CC-1"): 2.304,
        ("mail", None): 0.0,
        ("web", "CC-2"): 0.192,
        ("platform", "CC-9"): 0.192,
    }
    (covered,) = registered.sql("SELECT sum(seconds), sum(hours) FROM coverage_by_day").collect()
    assert tuple(covered) == (pytest.approx(46.2 * 3600, abs=400), 47)


def test_hours_are_timestamps_beside_their_milliseconds(registered: SparkSession):
    (row,) = registered.sql("SELECT min(hour), min(hour_ms), min(utc_day) FROM ledger").collect()
    assert (str(row[0]), row[1], row[2]) == ("2025-11-21 00:00:00", 1_763_683_200_000, "2025-11-21")


def test_a_month_is_utc_in_every_time_zone_of_a_session(registered: SparkSession):
    """The first hour of December in UTC is of November in California."""
    (view,) = (one for one in statements(script({}, "rackwise_test")) if "VIEW cost_by_owner" in one)
    row = "TIMESTAMP'2025-12-01 00:00:00+00:00' AS hour, '2025-12-01' AS utc_day, 'x' AS team, 'y' AS cost_centre"
    costs = "'c' AS cluster, 1e0 AS usd, 1e0 AS avoidable_usd, 1e0 AS bytes, 'CROSS_ZONE' AS zone"
    with setting(registered, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
        registered.sql(f"SELECT {row}, {costs}").createOrReplaceTempView("owned_ledger")
        try:
            (month,) = registered.sql(view.partition(" AS\n")[2]).collect()
        finally:
            registered.catalog.dropTempView("owned_ledger")
    assert month["utc_month"] == date(2025, 12, 1)


@pytest.mark.parametrize("table", [LEDGER, RACK_DRIFT, OWNERS])
def test_comments_reach_the_tables_and_the_views(registered: SparkSession, root: TableStore, table):
    of_table = registered.sql(f"DESCRIBE delta.`{root.path(table)}`").collect()
    comments = {row.col_name: row.comment for row in of_table if row.col_name in table.schema.names}
    assert comments == {field.name: field.metadata["comment"] for field in table.schema}
    of_view = {row.col_name: row.comment for row in registered.sql(f"DESCRIBE {view_name(table)}").collect()}
    assert of_view == {name: comment for name, _, comment in columns_of(table)}


@pytest.mark.usefixtures("plain_names")
def test_changes_of_gold_tables_can_be_followed(delta_tables: TableStore):
    """What is replaced comes as deleted and inserted rows, with the version that did it."""
    write(delta_tables, {LEDGER: world()[LEDGER]})
    rows = delta_tables.read(LEDGER).where("hour_ms = 1763683200000 AND path = 'move'")
    delta_tables.replace_where(LEDGER, rows, {"day": ["2025-11-21"], "cluster": [C], "hour_ms": [1_763_683_200_000]})
    changes = delta_tables.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    found = changes.load(delta_tables.path(LEDGER)).groupBy("_change_type").count().collect()
    kinds = {row["_change_type"]: row["count"] for row in found}
    assert kinds["insert"] == 1
    assert kinds["delete"] > 1


def test_owners_are_written_where_they_changed_and_read_where_no_file_is_named(root: TableStore):
    assert not write_owners(root, RULES), "the same rules are no change"
    assert not write_owners(root, ()), "without a file the table stays"
    assert owners_in_force(root, ()) == RULES
    assert owners_in_force(root, RULES[:1]) == RULES[:1]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        pytest.param(None, "which spark.owners names, cannot be read", id="no file"),
        pytest.param("kind,pattern,team", "has no column cost_centre", id="a column is missing"),
        pytest.param(
            "kind,pattern,team,cost_centre\nuser,x,t,", "line 2, is invalid: kind 'user' is neither", id="kind"
        ),
        pytest.param(
            "kind,pattern,team,cost_centre\ntopic,,t,", "an owner needs a pattern and a team", id="no pattern"
        ),
        pytest.param(
            "kind,pattern,team,cost_centre\ntopic,[z-a],t,", "pattern '[z-a]' is none", id="no pattern at all"
        ),
    ],
)
def test_a_file_of_owners_that_cannot_be_used_is_told_in_one_sentence(lines: str | None, sentence: str, tmp_path: Path):
    file = tmp_path / "owners.csv"
    if lines is not None:
        file.write_text(lines)
    with pytest.raises(ConfigError) as raised:
        owner_rules(str(file))
    assert sentence in f"{raised.value.what}: {raised.value.why}"
    assert Settings.model_validate({"spark": {"owners": str(file)}}).spark.owners == str(file)


def test_a_file_of_owners_is_read_in_its_order(tmp_path: Path):
    file = tmp_path / "owners.csv"
    file.write_text("\ufeffteam,kind,pattern,cost_centre,more\npayments,group,bill*,CC-1,x\nweb,topic,*,,\n")
    assert owner_rules(str(file)) == (RULES[0], OwnerRule("topic", "*", "web", None))


def test_what_is_no_schema_or_cannot_be_registered_is_refused():
    with pytest.raises(BadInput, match="no name of a schema"):
        sql(SparkOptions(), schema="a; DROP TABLE b")
    with pytest.raises(BadInput, match="parquet cannot be registered"):
        sql(SparkOptions(format="parquet"))


def test_a_table_that_is_not_there_is_a_view_without_rows(registered: SparkSession):
    text = script({}, "rackwise_test")
    assert "LOCATION" not in text
    assert registered.table("lags").count() == 0


# --- the dashboard of costs ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(registered: SparkSession, plain_names: None) -> dict[str, list[dict[str, Any]]]:
    """Panel -> what its query answers, with variables written as Grafana and the plugin write them."""
    return {title: answer(registered, title, f"'no-such','{C}'") for title in PANELS}


def answer(session: SparkSession, title: str, clusters: str) -> list[dict[str, Any]]:
    (target,) = PANELS[title]["targets"]
    given = SHOWN | {"cluster": clusters}
    asked = re.sub(r"\$\{([^}]+)\}|\$(\w+)", lambda found: given[found[1] or found[2]], target["rawSQL"])
    return [row.asDict() for row in session.sql(asked).collect()]


@pytest.mark.parametrize("title", PANELS)
def test_each_panel_of_the_dashboard_of_costs_gets_what_it_shows(shown: dict[str, list[dict[str, Any]]], title: str):
    panel, rows = PANELS[title], shown[title]
    assert rows or title == "Lags", "no table of lags is there"
    (target,) = panel["targets"]
    assert "$cluster" in target["rawSQL"]
    if panel["type"] == "table":
        heads = [one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"]]
        assert target["format"] == 1
        assert all(list(row) == heads for row in rows)
    elif panel["type"] == "stat":
        (row,) = rows
        assert [type(value) for value in row.values()] == [float]
    else:
        assert target["format"] == 0
        assert all(list(row)[:2] == ["time", "metric"] for row in rows)
        assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)


@pytest.mark.usefixtures("plain_names")
def test_the_dashboard_of_costs_shows_the_clusters_that_are_chosen(registered: SparkSession):
    assert answer(registered, "From rack to rack", "'another'") == []
    assert answer(registered, "Cost", "'another'") == [{"usd": None}], "nothing is known, which is not zero"


def test_the_dashboard_of_costs_says_what_the_report_says(shown: dict[str, list[dict[str, Any]]], facts: ReportFacts):
    avoidable = sum(line.usd or 0.0 for line in avoidable_cost(facts).lines)
    cost = sum(one.usd or 0.0 for one in facts.costs)
    for title, figure, whole in (
        ("Avoidable", "avoidable_usd", avoidable),
        ("What can be saved", "avoidable_usd", avoidable),
        ("Avoidable by cluster", "avoidable_usd", avoidable),
        ("Owners", "avoidable_usd", avoidable),
        ("Owners", "usd", cost),
        ("Cost", "usd", cost),
        ("Cost by path", "usd", cost),
        ("From rack to rack", "usd", cost),
        ("Unknown bytes", "bytes", sum(pair.bytes or 0.0 for pair in facts.pairs if pair.zone == "UNKNOWN")),
        ("Why unknown", "bytes", sum(pair.bytes or 0.0 for pair in facts.pairs if pair.zone == "UNKNOWN")),
    ):
        assert whole > 0
        assert sum(row[figure] or 0.0 for row in shown[title]) == pytest.approx(whole), title
    assert shown["Covered"][0]["covered"] == pytest.approx(46.2 / 47, abs=0.01)


def test_trino_gets_its_own_names_locations_and_types():
    """What differs from Spark's script; the questions are the same text."""
    text = script({LEDGER.name: "s3://bucket/it's/gold/ledger"}, "delta.rackwise", "trino")
    every = statements(text)
    assert every[:3] == [
        "CREATE SCHEMA IF NOT EXISTS delta.rackwise",
        "USE delta.rackwise",
        "CALL system.register_table('rackwise', 'gold_ledger', 's3://bucket/it''s/gold/ledger')",
    ]
    views = [one for one in every if one.startswith("CREATE OR REPLACE VIEW")]
    assert len(views) == len(every) - 3
    for table, view in zip(TABLES, views, strict=False):
        for name, value, _ in columns_of(table, DIALECTS["trino"]):
            assert f"{value} AS {name}" in view
    before_questions = text[: text.index("-- The ten usual questions")]
    assert not re.search(r"`|\bstring\b|timestamp_millis|USING delta", before_questions)
    assert text.endswith(script({}, "x")[-2_000:])

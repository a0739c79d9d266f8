"""The backtest on Spark: whole looks and groups apart, results that are found again, bad input that is reported."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from agent.errors import BadInput
from agent.propose.codec import proposal_to_bytes
from agent.simulate.evaluation import replay_look
from agent.telemetry import events
from agent.telemetry.looks import CycleInputs
from agent.values.memo import Memo
from pipeline.backtest.look import whole_look
from pipeline.backtest.ranking import markdown, ranked, scores_of
from pipeline.backtest.replay import replay
from pipeline.backtest.slices import LookRebuilder, LookSlicer
from pipeline.backtest.strategies import chosen
from pipeline.jobs.backtest import BacktestRequest, run_backtest
from pipeline.owner_rules import OwnerBook, OwnerRule, whole_name
from pipeline.schemas.backtest import UNITS
from pipeline.schemas.bronze import TELEMETRY
from pipeline.tables import TableStore, WriterBatch
from tests.builders import TAKEN_MS
from tests.pipeline.histories import bronze_rows, events_of, recorded, shop, with_tasks, without

STRETCH_MS = 240_000
COLUMNS = (
    "topic string, partition int, offset long, at double, event_id string, v int, kind string, subject string, "
    "cluster string, look string, n int, taken_ms long, data string, more string, late boolean, base string, "
    "base_taken_ms long, day string"
)


def ingest(tables: TableStore, rows: Iterable[tuple[Any, ...]], number: int = 0) -> None:
    """Write bronze as ingest would have."""
    frame = tables.spark.createDataFrame(list(rows), COLUMNS)
    told = frame.withColumn("kafka_time", F.timestamp_millis((F.col("at") * 1000).cast("long"))).drop("at")
    tables.append(TELEMETRY, told, WriterBatch("test", number))


def history() -> list[CycleInputs]:
    return recorded(lambda minute: with_tasks(shop(swapped=minute < 6, generation=4 + (minute > 5))), 9)


def wanted(names: str = "as-recorded,no-action,execute", **more: Any) -> BacktestRequest:
    return BacktestRequest(strategies=chosen(names), stretch_ms=STRETCH_MS, **more)


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    """Tables with nine looks in bronze, some events in fragments and some written twice."""
    tables = TableStore(spark, str(tmp_path_factory.mktemp("filled")), "parquet")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(events, "MAX_RECORD_CHARS", 600)
        rows = bronze_rows(events_of(history()))
    assert any(row[6] == "fragment" for row in rows)
    ingest(tables, [*rows, *rows[5:9]])
    return tables


def test_a_history_is_lived_through_once_and_found_again(filled: TableStore) -> None:
    looks = history()
    said: list[str] = []
    first = run_backtest(filled, wanted("as-recorded,execute"), said.append)
    units = filled.read(UNITS).select("said", "acts").collect()
    live = [(look.look, proposal_to_bytes(one)) for look in looks for one in replay_look(look).proposals]
    assert sorted((one.look, one.document.encode()) for row in units for one in row.said) == sorted(live)
    acts = [act for row in units for act in row.acts]
    assert acts
    assert all(json.loads(act.document)["id"] == act.proposal for act in acts)
    assert first.messages == ()

    more = run_backtest(filled, wanted(), said.append)
    stretches = len({row["stretch_ms"] for row in more.rows})
    assert stretches == 3
    assert said == [
        "6 of 6 units are computed; 0 were already there",
        "3 of 3 units are computed; 6 were already there",
    ]
    assert {row["unit"] for row in first.rows} < {row["unit"] for row in more.rows}

    table = ranked(more.rows)
    assert {row.strategy for row in table} == {"as-recorded", "no-action", "execute"}
    (nothing,) = (row for row in table if row.strategy == "no-action")
    assert nothing.scores.groups == 18
    text = markdown(table, {"execute": "What if."})
    assert "18 group snapshots in 9 looks" in text
    assert "**execute**: What if." in text


@pytest.mark.drill
def test_groups_apart_come_to_what_they_come_to_without_spark(filled: TableStore) -> None:
    strategies = chosen("no-action,execute")
    done = run_backtest(filled, wanted("no-action,execute", by="groups", buckets=2, tasks=1))
    assert {row["by"] for row in done.rows} == {"groups"}
    assert 0.3 < done.shared < 1
    decode, model = Memo(), Memo()
    looks = [whole_look(look, decode, model) for look in history()]
    found = {(row["strategy"], row["stretch_ms"], row["bucket"]): scores_of(row) for row in done.rows}
    checked = 0
    for stretch, of_stretch in groupby(looks, key=lambda look: look.snapshot.taken_ms // STRETCH_MS * STRETCH_MS):
        cutter = LookSlicer(2)
        rows = [list(cutter.rows(look)) for look in of_stretch]
        for bucket in sorted({row.bucket for of in rows for row in of}):
            rebuilt = LookRebuilder("test-cluster")
            part = [rebuilt.look([row for row in of if row.bucket == bucket]) for of in rows]
            for result in replay(part, strategies):
                assert found[result.strategy, stretch, bucket] == result.scores
                checked += 1
    assert checked == len(found) == len(done.rows)

    # Cut into shorter stretches and back: what the shorter ones left in the table counts no second time.
    apart = wanted("no-action,execute", by="groups", buckets=2, tasks=1)
    shorter = run_backtest(filled, replace(apart, stretch_ms=STRETCH_MS // 3))
    assert sum(row["snapshots"] for row in shorter.rows) == sum(row["snapshots"] for row in done.rows)
    assert len(shorter.rows) > len(done.rows)
    again = run_backtest(filled, apart)
    assert {(row["strategy"], row["stretch_ms"], row["bucket"]): scores_of(row) for row in again.rows} == found

    some = run_backtest(filled, wanted("execute", by="groups", buckets=2, groups="read*"))
    assert sum(row["snapshots"] for row in some.rows) == 9
    assert sum(row["triggers"] for row in some.rows) >= 1


def test_looks_that_cannot_be_used_are_left_out_and_told(spark: SparkSession, tmp_path: Path) -> None:
    tables = TableStore(spark, str(tmp_path), "parquet")
    broken = bronze_rows(without(events_of(history()[:4]), "0000abcd-1", 3, 4))
    newer = [(*row[:5], 2, *row[6:]) if row[9] == "0000abcd-2" else row for row in broken]
    ingest(tables, newer)
    done = run_backtest(tables, wanted("no-action"))
    assert done.messages[0] == "2 looks could not be replayed: left out"
    assert "look 0000abcd-1 lacks 2 of its" in " ".join(done.messages)
    assert "version 2 needs a newer rackwise" in " ".join(done.messages)
    assert sum(row["looks"] for row in done.rows) == 2


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        pytest.param({"to_ms": TAKEN_MS - 1}, "whole looks cover 2025-10-09", id="an empty stretch"),
        pytest.param({"from_ms": 2, "to_ms": 2}, "--from is not before --to", id="a stretch that ends as it begins"),
        pytest.param({"cluster": "elsewhere"}, "of test-cluster", id="a cluster that is not there"),
        pytest.param({"groups": "a*"}, "--by groups", id="a pattern with whole looks"),
        pytest.param({"groups": "[z-a]", "by": "groups"}, "'[z-a]' is none: bad", id="a range that runs backwards"),
        pytest.param({"groups": "a\udcff", "by": "groups"}, "surrogates not allowed", id="a byte that is no text"),
    ],
)
def test_what_cannot_be_lived_through_is_told(filled: TableStore, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput) as raised:
        run_backtest(filled, wanted("no-action", **more))
    assert sentence in str(raised.value)


NAMES = (
    "x[a[b]", "xa", "x[", "a&&b", "&", "^", "a^", "a", "ab", "\\", "a\\b", "a.b", "a\nb", "a\n", "😀", "😀😀", "]",
)  # fmt: skip
PATTERNS = (
    "x[a[b]", "x[[]", "a[&&]*", "a&&b", "[^a]", "[!^]", "^", "a", "?", "a?", "*", "\\", "a[\\]b", "[\\a]", "a.b",
    "a$", "[😀-😁]", "[!😀]", "[]]", "[!]]", "[", "a\n", "[a-]", "[]-a]", "{a}", "[a~|-]",
)  # fmt: skip


def test_a_pattern_of_groups_names_on_spark_what_it_names_elsewhere(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(name,) for name in NAMES], "name string")
    fits = [F.col("name").rlike(whole_name(pattern)) for pattern in PATTERNS]
    found = {row[0]: row[1:] for row in rows.select("name", *fits).collect()}
    books = [OwnerBook((OwnerRule("group", pattern, "team"),)) for pattern in PATTERNS]
    for name in NAMES:
        expected = tuple(fnmatchcase(name, pattern) for pattern in PATTERNS)
        assert found[name] == tuple(book.of("", name) is not None for book in books) == expected


def test_tables_without_telemetry_and_strategies_that_read_otherwise_are_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = TableStore(spark, str(tmp_path), "parquet")
    with pytest.raises(BadInput, match="has no whole look") as missing:
        run_backtest(tables, wanted("no-action"))
    assert f"there is no such table below {tmp_path}" in str(missing.value)
    strategies = chosen("own", changes=("own:group.acceptable_recovery_lag=1",))
    with pytest.raises(BadInput, match="--by looks"):
        run_backtest(tables, BacktestRequest(strategies=strategies, by="groups"))

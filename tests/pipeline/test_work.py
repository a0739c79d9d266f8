"""What a refresh writes: histories that stay as they are are left alone, whatever else stands in their tables."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pipeline.jobs.work import RefreshWork, SparkJobs, TableWrite
from pipeline.schemas.gold import REBALANCES
from pipeline.tables import TableStore

DAY, HOUR_MS = "2025-10-09", 1_760_004_000_000
HERE = ({"day": [DAY], "cluster": ["c"], "hour_ms": [HOUR_MS]},)


def rebalances(spark: SparkSession, *told: dict[str, Any]) -> DataFrame:
    common = {"cluster": "c", "hour_ms": HOUR_MS, "day": DAY, "at_ms": HOUR_MS, "seen_ms": HOUR_MS}
    required = {"string": "x", "bigint": HOUR_MS, "int": 0, "boolean": False, "double": 0.0}

    def value(row: dict[str, Any], name: str, kind: str, nullable: bool) -> Any:
        return {**common, **row}.get(name, None if nullable else required[kind])

    fields = [(field.name, field.dataType.simpleString(), field.nullable) for field in REBALANCES.schema]
    return spark.createDataFrame([tuple(value(row, *field) for field in fields) for row in told], REBALANCES.schema)


def changes(tables: TableStore) -> int:
    return len(list(Path(tables.path(REBALANCES), "_delta_log").glob("*.json")))


def test_a_history_is_written_when_it_changed_and_only_then(delta_tables: TableStore) -> None:
    spark = delta_tables.spark
    another = {"group": "b", "cluster": "another"}

    def write(*told: dict[str, Any], where: tuple[dict[str, list[Any]], ...] = HERE) -> list[str]:
        work = RefreshWork(delta_tables)
        work.write([TableWrite(REBALANCES, rebalances(spark, *told), where)])
        return list(work.rows)

    def groups() -> list[str]:
        return sorted(row["group"] for row in delta_tables.read(REBALANCES).collect())

    assert write() == []
    assert not delta_tables.exists(REBALANCES)
    assert write({"group": "a"}, another, where=()) == [REBALANCES.name]
    assert (write({"group": "a"}), changes(delta_tables)) == ([], 1)
    assert (write({"group": "a"}, {"group": "c"}), groups()) == ([REBALANCES.name], ["a", "b", "c"])
    assert (write({"group": "c"}, {"group": "a"}), changes(delta_tables)) == ([], 2)
    assert (write({"group": "a"}, {"group": "a"}), groups()) == ([REBALANCES.name], ["a", "a", "b"])
    assert (write(), groups()) == ([REBALANCES.name], ["b"])
    assert (write(), changes(delta_tables)) == ([], 4)


def test_what_goes_wrong_beside_other_work_is_raised_once_all_of_it_has_ended(delta_tables: TableStore) -> None:
    spark, work = delta_tables.spark, RefreshWork(delta_tables)
    unlike = spark.createDataFrame([("no such day",)], "day string")

    def begin() -> None:
        with SparkJobs(work.spark) as jobs:
            jobs.start(work.write_one, TableWrite(REBALANCES, unlike))
            jobs.start(work.write_one, TableWrite(REBALANCES, rebalances(spark, {"group": "b"}), HERE))

    with pytest.raises(AnalysisException, match="cluster"):
        begin()
    assert [row["group"] for row in delta_tables.read(REBALANCES).collect()] == ["b"]


def test_a_job_gets_what_jobs_before_it_gave_however_many_of_them_wait(spark: SparkSession) -> None:
    with SparkJobs(spark) as jobs:
        may_begin = Event()
        first = jobs.submit(may_begin.wait, 60)
        chain = [jobs.submit(lambda: 1)]
        for _ in range(20):
            chain.append(jobs.submit(lambda of, *, more: of + more, chain[-1], more=chain[-1]))
        after = jobs.submit(lambda _, of: of, first, chain[-1])
        failed = jobs.submit(lambda: 1 // 0)
        beyond = jobs.submit(lambda of: of, failed)
        may_begin.set()
        assert after.result(60) == 2**20
        with pytest.raises(ZeroDivisionError):
            beyond.result(60)

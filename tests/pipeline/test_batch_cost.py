"""What a batch of one look costs by count, from bronze to gold: Spark's jobs and Delta's commits.

Of a small look nearly all time goes into plans and commits, so their number bounds it. It is the same in each run,
where times swing with whatever else the machine does.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from agent.telemetry.looks import CycleInputs
from pipeline.jobs.refresh import RefreshSettings
from pipeline.schemas.bronze import TELEMETRY
from pipeline.stream.live import LiveRefresh
from pipeline.tables import TableStore, WriterBatch
from tests.pipeline.histories import events_of, recorded, shop, with_tasks
from tests.pipeline.look_events import telemetry

SILVER = ("brokers", "groups", "looks", "partitions", "reads")
GOLD = ("conservation", "lags", "ledger", "locality", "partition_traffic", "read_traffic")
TABLES = ["bronze.telemetry", *(f"gold.{name}" for name in GOLD), *(f"silver.{name}" for name in SILVER)]
"""Those that each look changes; histories that stay as they are are not written again."""
SELDOM_MS = 10**9
PATIENCE_S = 30.0


class BatchCost(NamedTuple):
    """What a batch took."""

    jobs: int
    commits: dict[str, int]
    """Table -> commits to its log; those without any are left out."""


@pytest.mark.timeout(2400)  # three whole batches: minutes, and more than ten where other tests run beside it
def test_a_batch_takes_so_many_jobs_and_a_commit_for_each_table(delta_tables: TableStore) -> None:
    """Four looks a minute apart, all in one hour."""
    first, second, third, fourth = recorded(lambda _: with_tasks(shop()), 4)
    runner = LiveRefresh(delta_tables, RefreshSettings(), print, histories_every_ms=SELDOM_MS)
    batch_cost(delta_tables, runner, first, second)  # makes the tables, some of which take two looks
    adding = batch_cost(delta_tables, runner, third)
    restarted = LiveRefresh(delta_tables, RefreshSettings(), print, histories_every_ms=0)
    reading = batch_cost(delta_tables, restarted, fourth)
    assert adding.jobs <= 105, "it adds to the sums of the hour"
    assert reading.jobs <= 142, "it reads the hour, and has histories and outcomes"
    assert adding.commits == reading.commits == dict.fromkeys(TABLES, 1)


def batch_cost(tables: TableStore, runner: LiveRefresh, *looks: CycleInputs) -> BatchCost:
    """What it takes from the looks' rows to gold."""
    rows = telemetry(tables.spark, events_of(looks)).persist()
    rows.count()
    commits, job = commits_of(tables), a_job(tables.spark)
    tables.append(TELEMETRY, rows.coalesce(1), WriterBatch("cost", looks[-1].observation.taken_ms))
    runner.on_telemetry(rows, more=lambda: False)
    jobs = a_job(tables.spark) - job - 1
    rows.unpersist()
    more = {table: number - commits.get(table, 0) for table, number in sorted(commits_of(tables).items())}
    return BatchCost(jobs, {table: number for table, number in more.items() if number})


def a_job(spark: SparkSession) -> int:
    """Number of a job that is run for it: jobs are numbered one after the other."""
    context, group = spark.sparkContext, uuid.uuid4().hex
    context.setJobGroup(group, "marks a place among the jobs")
    try:
        spark.range(1).collect()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None takes it away
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]  # as above
    until = time.monotonic() + PATIENCE_S
    while not (found := context.statusTracker().getJobIdsForGroup(group)):
        assert time.monotonic() < until, "Spark has not noted the job"
        time.sleep(0.05)
    (number,) = found
    return int(number)


def commits_of(tables: TableStore) -> dict[str, int]:
    """Table -> commits in its log."""
    root = Path(tables.root)
    logs = root.glob("*/*/_delta_log")
    return {".".join(log.relative_to(root).parts[:2]): len(list(log.glob("*.json"))) for log in logs}

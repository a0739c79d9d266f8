"""How long `rackwise spark report` takes over a month of many clusters.

``python -m tests.bench.spark_report``: gold of 30 days of 10 clusters is made up by Spark first, a file for each hour
of a cluster as batches leave them: a hundred groups that each read a topic of ten partitions from two racks,
replication between three, locality, conservation, proposals and a look a minute. The daily vacuum compacts all days but
the last. Then the command runs as a person types it. The figure is its wall clock from start to end; CPU and memory are
of all its processes. ``--clusters``, ``--days`` and ``--groups`` make it less. ``--folder DIR`` keeps gold there, or
takes it from there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.schemas import gold, silver
from pipeline.schemas.table import TableSpec
from pipeline.session import setting, spark_session
from pipeline.tables import TableStore, WriterBatch
from tests.bench import told
from tests.bench.process_family import ProcessFamily

GOAL_S = 60.0
PARTITIONS = 10
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
LAST_MS = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS + DAY_MS
"""Begin of the last day, tomorrow: a vacuum is due a day after a table was made."""


tell = partial(told.tell, "report")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--folder")
    given = parser.parse_args()
    with nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory() as folder:
        if not Path(folder, "gold").exists():
            began = time.monotonic()
            rows = made(folder, given.clusters, given.days, given.groups)
            tell("gold made up", time.monotonic() - began, "s", note=", ".join(f"{n:,} of {name}" for name, n in rows))
        command = [
            sys.executable, "-m", "agent", "spark", "report", "--master", "local[2]", "--tables", folder,
            "--out", f"{folder}/report",
        ]  # fmt: skip
        wall_s, cpu_s, peak_bytes = taken(command)
        size = sum(file.stat().st_size for file in Path(folder, "report").iterdir())
    what = f"{given.days} days of {given.clusters} clusters"
    note = f"{given.groups} groups and {given.groups * PARTITIONS:,} partitions each, {size // 1024:,} KiB of files"
    tell(what, wall_s, "s", GOAL_S, note=note, cpu_s=round(cpu_s, 1))
    tell(f"{what}, peak memory of driver and Python", peak_bytes / 2**20, "MiB")
    return 0


def made(root: str, clusters: int, days: int, groups: int) -> list[tuple[str, int]]:
    """Table and number of rows."""
    spark = spark_session("report-made", master="local[2]", conf={"spark.driver.memory": "3g"})
    tables = TableStore(spark, root)
    hours = spark.range(clusters * days * 24, numPartitions=8).select(
        F.concat(F.lit("cluster-"), F.col("id") % clusters).alias("cluster"),
        (F.lit(LAST_MS - (days - 1) * DAY_MS) + (F.col("id") / clusters).cast("long") * HOUR_MS).alias("hour_ms"),
    )
    hours = hours.withColumn("day", F.date_format(F.timestamp_millis("hour_ms"), "yyyy-MM-dd"))
    by_group = hours.crossJoin(spark.range(groups).select(F.col("id").alias("g")))
    sizes = (F.lit(1e6) * (F.col("g") + 1) * (F.hash("cluster", "g", "hour_ms") % 10 + 20)).alias("bytes")
    written = [
        (gold.LEDGER, _ledger(by_group, spark, sizes)),
        (gold.PARTITION_TRAFFIC, _traffic(by_group, spark, sizes)),
        (gold.LOCALITY, _locality(by_group, spark)),
        (gold.CONSERVATION, _conservation(by_group, spark, sizes)),
        (gold.OUTCOMES, _outcomes(by_group)),
        (silver.LOOKS, _looks(hours, spark)),
    ]
    hourly = clusters * days * 24
    counts = []
    for number, (table, frame) in enumerate(written):
        rows = _whole(frame, table)
        size = rows.count()
        counts.append((table.name, size))
        in_order = rows.sortWithinPartitions("cluster", "day", *(("hour_ms",) if "hour_ms" in rows.columns else ()))
        with setting(spark, {"spark.sql.files.maxRecordsPerFile": str(max(size // hourly, 1))}):
            tables.append(table, in_order, WriterBatch("bench", number))
        files = len(tables.read(table).inputFiles())
        began = time.monotonic()
        tables.vacuum(table, LAST_MS + DAY_MS - 1)
        left = len(tables.read(table).inputFiles())
        tell(f"vacuum of {table.name}", time.monotonic() - began, "s", note=f"{files:,} files before, {left:,} after")
    spark.stop()
    return counts


def _ledger(by_group: DataFrame, spark: SparkSession, sizes: Column) -> DataFrame:
    """Each group reads its topic from two racks in each of three, and the topic is replicated from rack to rack."""
    pairs = spark.createDataFrame(
        [("consume", source, target) for target in "abc" for source in (target, "abc"[(ord(target) - 96) % 3])]
        + [("replicate", source, target) for source in "abc" for target in "abc" if source != target]
        + [("produce", "", target) for target in "abc"],
        "path string, source_rack string, target_rack string",
    )
    local = F.col("source_rack") == F.col("target_rack")
    unknown = F.col("path") == "produce"
    rows = by_group.crossJoin(F.broadcast(pairs)).withColumn("bytes", sizes)
    zone = F.when(unknown, "UNKNOWN").when(local, "SAME_ZONE").otherwise("CROSS_ZONE")
    return rows.select(
        "cluster", "hour_ms", "day", "path", "source_rack", "target_rack", "bytes",
        F.when(F.col("path") == "consume", _named("group")).otherwise("").alias("group"),
        _named("topic").alias("topic"),
        zone.alias("zone"),
        (F.when(F.col("path") == "replicate", F.col("bytes") * 0.9).otherwise(0.0)).alias("unavoidable_bytes"),
        F.when(local, 0.0).when(~unknown, F.col("bytes") * 2e-11).alias("usd"),
        F.when(~unknown, "2026-01").alias("price_date"),
        F.when(unknown, "producers are not seen").alias("why_unknown"),
        F.lit(3_600.0).alias("seconds"),
    )  # fmt: skip


def _traffic(by_group: DataFrame, spark: SparkSession, sizes: Column) -> DataFrame:
    parts = spark.range(PARTITIONS).select(F.col("id").cast("int").alias("partition"))
    return by_group.crossJoin(F.broadcast(parts)).select(
        "cluster", "hour_ms", "day", "partition", _named("topic").alias("topic"), F.lit(3_600.0).alias("seconds"),
        sizes, (sizes / 1_000).cast("long").alias("records"), F.lit(1_000.0).alias("bytes_per_record"),
        F.lit("measured").alias("confidence"),
    )  # fmt: skip


def _locality(by_group: DataFrame, spark: SparkSession) -> DataFrame:
    racks = spark.createDataFrame([(rack,) for rack in "abc"], "rack string")
    return by_group.crossJoin(F.broadcast(racks)).select(
        "cluster", "hour_ms", "day", "rack", _named("group").alias("group"),
        *(F.lit(value).alias(name) for name, value in (("local", 2.0), ("total", 4.0), ("unknown", 0.0))),
        *(F.lit(value).alias(name) for name, value in (("local_bytes", 2e9), ("total_bytes", 4e9))),
    )  # fmt: skip


def _conservation(by_group: DataFrame, spark: SparkSession, sizes: Column) -> DataFrame:
    paths = spark.createDataFrame([("produce",), ("replicate",), ("consume",)], "path string")
    return by_group.crossJoin(F.broadcast(paths)).select(
        "cluster", "hour_ms", "day", "path", _named("topic").alias("topic"), sizes.alias("booked_bytes"),
        sizes.alias("counted_bytes"), F.lit(0.0).alias("difference_bytes"), F.lit(0.0).alias("difference_share"),
    )  # fmt: skip


def _outcomes(by_group: DataFrame) -> DataFrame:
    """A proposal a day about each tenth group."""
    rows = by_group.where((F.col("hour_ms") % DAY_MS == 0) & (F.col("g") % 10 == 0))
    return rows.select(
        "cluster", "day", F.concat(F.lit("p-"), F.col("hour_ms"), F.lit("-"), F.col("g")).alias("proposal"),
        F.lit("advise").alias("kind"), F.lit("set_client_rack").alias("reason"), F.lit("standing").alias("state"),
        F.concat(F.lit("group/"), _named("group")).alias("subject"), F.col("hour_ms").alias("created_ms"),
    )  # fmt: skip


def _looks(hours: DataFrame, spark: SparkSession) -> DataFrame:
    taken = F.col("hour_ms") + F.col("minute") * 60_000
    minutes = spark.range(60).select(F.col("id").alias("minute"))
    return hours.crossJoin(F.broadcast(minutes)).select(
        "cluster", "hour_ms", "day", F.concat(F.lit("l-"), taken).alias("look"), taken.alias("taken_ms"),
        F.lit(True).alias("complete"),
    )  # fmt: skip


def _named(what: str) -> Column:
    return F.concat(F.lit(f"{what}-"), F.col("g"))


def _whole(frame: DataFrame, table: TableSpec) -> DataFrame:
    """With every column of the table; those that are not given are null."""
    return frame.select(
        *((F.col(one.name) if one.name in frame.columns else F.lit(None)).cast(one.dataType).alias(one.name)
          for one in table.schema)
    )  # fmt: skip


def taken(command: list[str]) -> tuple[float, float, float]:
    """Wall clock, CPU seconds and the peak of resident memory of a command and all its processes."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=sys.stderr)
    with ProcessFamily(process.pid) as family:
        code = process.wait()
    if code:
        raise SystemExit(f"{command} ended with {code}")
    return time.monotonic() - began, family.cpu_s(), family.peak_bytes


if __name__ == "__main__":
    sys.exit(main())

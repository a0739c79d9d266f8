"""The one Spark session of a command: where it runs, with which jars, and how it is tuned.

On this machine (``local[…]``, ``local-cluster[…]``) the connectors come from `pipeline.maven` and Spark is tuned for a
few cores; below ``spark-submit`` its options say where it runs and with which jars. What the caller sets wins.
Every session speaks UTC. Nothing of Kafka's connection is part of a session's settings: those show in process lists.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import ConfigError, RackwiseError
from pipeline import held_rows
from pipeline.object_stores import connectors, store_settings
from pipeline.spark_java import start_java
from pipeline.store_errors import innermost_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = re.compile(r"local(-cluster)?(\[.*\])?")
DEFAULT_MASTER = "local[*]"
DRIVER_MEMORY = "896m"

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Delta: a column that a newer rackwise writes is added to the table, instead of refusing the batch.
    "spark.databricks.delta.schema.autoMerge.enabled": "true",
    # A stopped query ends between two tasks; nothing half-written counts, so there is nothing to wait for.
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.numRecentProgressUpdates": "8",
    # Rows that a refresh held go once nothing refers to them, which Java finds out when it collects garbage.
    "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
    "spark.cleaner.periodicGC.interval": "5min",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Every batch leaves a file or two in each table; opening thousands of them would soon take longer than reading.
    "spark.databricks.delta.autoCompact.enabled": "true",
    # Files of past days become one up to this size, and what has half of it stays: to write it anew gains nothing.
    "spark.databricks.delta.optimize.maxFileSize": f"{128 << 20}",
    "spark.databricks.delta.optimize.minFileSize": f"{64 << 20}",
    # Every batch replaces the current hour: a week of replaced files, Delta's default, would be most of the disk. And
    # each change lists the log's folder on a disk: that of a month, its default, would soon take longer than a batch.
    "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration": "interval 1 day",
    "spark.databricks.delta.properties.defaults.logRetentionDuration": "interval 1 day",
}
_JAVA_OPTIONS = "-Xss4m -XX:+UseSerialGC -XX:TrimNativeHeapInterval=10000 -Dlog4j2.configurationFile={log}"
_FIRST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java's first compiler alone, with room for what it compiles (48 MB by default, which Spark fills).

What a job of some minutes runs is hardly ever hot: the second compiler takes a third of its time and gives little back.
"""
_TUNED = {
    "spark.driver.memory": DRIVER_MEMORY,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Rows that are held are read one by one, for which Java's own serializer takes almost three times as long.
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    # A row of telemetry has kilobytes: by default Python workers would hold 10,000 of them in Arrow, and again as text.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
    # And Java 4,096 of a file, in arrays that double.
    "spark.sql.parquet.columnarReaderBatchSize": "512",
    # Each aggregation and sort of a task takes a page at least: 16 MB by default, often for a few rows.
    "spark.buffer.pageSize": "1m",
    # A row group is in memory as a whole while it is written, and column by column while it is read: by default 128 MB.
    "spark.hadoop.parquet.block.size": f"{8 << 20}",
    # Plans are not looked at here, and to write them out in full takes a fiftieth of all time.
    "spark.sql.ui.explainMode": "simple",
    # Tables are small files here: Spark's 200 and Delta's 50 tasks would each cost more than the data.
    "spark.databricks.delta.snapshotPartitions": "1",
    # A batch runs some hundred different plans again and again: with room for less they are all compiled each time.
    "spark.sql.codegen.cache.maxEntries": "4000",
    # As by default; left alone, interpreted code asks the environment for it value by value, for a tenth of its time.
    "spark.sql.types.framework.enabled": "false",
    # Left on, Spark puts a small shuffle into one task, and one core works while the other waits.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
_SMALL_BATCHES = {
    # A few rows are through before anything is compiled for them, or a plan made anew in the middle.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Where nothing is compiled, what is common to some columns is kept in a cache that is emptied row by row.
    "spark.sql.subexpressionElimination.enabled": "false",
    # One task of such a batch takes less time than the start of a second one.
    "spark.sql.shuffle.partitions": "1",
}
_MANY = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.subexpressionElimination.enabled": "true",
}
_RANGE = 100_000
"""More than any cluster has cores."""
MANY_ROWS = 100_000
"""From about here on, to compile what is done with each row and to use all cores pays."""


class NeedsSpark(ConfigError):  # noqa: N818 named as its base
    """The Spark extra, or the Java below it, is not installed."""


def need_spark() -> None:
    """Raise NeedsSpark, with what to install, unless pyspark can be imported and there is a Java for it."""
    try:
        import pyspark  # noqa: F401, PLC0415 the very question
    except ImportError as error:
        raise NeedsSpark(
            "This needs the Spark extra", why=str(error), todo="Install it: pip install 'rackwise[spark]'"
        ) from None
    if not is_submitted() and not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise NeedsSpark(
            "Spark needs Java",
            why="JAVA_HOME is not set, and java is not on PATH",
            todo="Install Java 17 or 21, for example with `apt install openjdk-17-jre-headless`.",
        )


def spark_session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    format: str = "delta",  # noqa: A002 Spark's own word for it
    roots: Iterable[str] = (),
    on_progress: Callable[[str], None] | None = None,
) -> SparkSession:
    """The session, new or the one that runs already; ``conf`` wins over everything that is set here.

    ``master`` None is that of ``spark-submit``, else every core of this machine. ``roots`` are the URIs that it reads
    and writes: those in object stores need the connector of their scheme. Raises NeedsSpark, ToolError when
    the connectors are missing, and RackwiseError when Spark does not start.
    """
    need_spark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 an optional extra

    settings = settings_of(master, dict(conf), format, on_progress, tuple(roots))
    if is_here(settings.get("spark.master")):
        settings.setdefault(held_rows.SETTING, held_rows.temporary_folder())
    builder = SparkSession.builder.appName(f"rackwise {name}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        if not is_submitted():
            start_java(settings)
        return builder.getOrCreate()
    except Exception as error:  # py4j's errors among them, which have no common base with pyspark's
        check = "Check that Java is 17 or 21 (java -version, JAVA_HOME)"
        if (elsewhere := settings.get("spark.master")) is not None and not is_here(elsewhere):
            check = f"Check that {elsewhere} runs and can be reached"
        raise RackwiseError(
            "Spark did not start",
            why=innermost_cause(str(error), type(error).__name__),
            todo=f"{check}; see Spark's output above.",
        ) from error


def settings_of(
    master: str | None,
    conf: Mapping[str, str],
    format: str,  # noqa: A002 as above
    on_progress: Callable[[str], None] | None = None,
    roots: Sequence[str] = (),
) -> dict[str, str]:
    """Every setting of the session that is not Spark's own default."""
    settings = dict(_ALWAYS)
    if format == "delta":
        settings |= _DELTA
    submitted = is_submitted()
    if not submitted or master is not None:
        settings["spark.master"] = master or conf.get("spark.master", DEFAULT_MASTER)
    if is_here(settings.get("spark.master")):
        settings |= _local(settings["spark.master"], conf, on_progress, connectors(roots))
    return settings | store_settings(roots) | dict(conf)


def small_batches(master: str | None) -> dict[str, str]:
    """What to set for many small batches on this machine; nothing elsewhere, where batches may be of any size.

    Java keeps its second compiler: what makes the plans of batch after batch is as hot as code can be.
    """
    return dict(_SMALL_BATCHES) if is_here(master) else {}


@contextmanager
def setting(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Within the block the session has these settings, then what it had before. They have defaults, or are set."""
    before = {name: str(spark.conf.get(name)) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def sized(spark: SparkSession, rows: int) -> AbstractContextManager[None]:
    """In a session of `small_batches`, what is set for a few rows is not set within the block, if ``rows`` are many.

    Without compiled code a row costs three times as much; with it, a plan costs half as much again.
    What the user set otherwise stays. All threads of the session are meant: one block at a time.
    """
    if rows < MANY_ROWS or any(spark.conf.get(name) != few for name, few in _SMALL_BATCHES.items()):
        return nullcontext()
    return setting(spark, {**_MANY, "spark.sql.shuffle.partitions": str(task_slots(spark))})


def task_slots(spark: SparkSession) -> int:
    """How many tasks Spark takes to run at a time: among so many it divides a range."""
    from pyspark.sql import functions as F  # noqa: PLC0415 an optional extra

    (row,) = spark.range(_RANGE).select(F.spark_partition_id().alias("task")).agg(F.max("task").alias("last")).collect()
    return int(row["last"]) + 1


def short_job(master: str | None) -> dict[str, str]:
    """What to set for a job of some minutes on this machine, most of which is Java's start; nothing elsewhere."""
    return {"spark.driver.extraJavaOptions": f"{_java_options()} {_FIRST_COMPILER}"} if is_here(master) else {}


def is_here(master: str | None) -> bool:
    """Whether Spark runs on this machine and is started by this process."""
    return not is_submitted() and LOCAL.fullmatch(master or DEFAULT_MASTER) is not None


def _java_options() -> str:
    return _JAVA_OPTIONS.format(log=Path(__file__).with_name("log4j2.properties").as_uri())


def is_submitted() -> bool:
    """Whether ``spark-submit`` started this process: then Java runs already, with its jars and memory."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _local(
    master: str, conf: Mapping[str, str], on_progress: Callable[[str], None] | None, stores: tuple[str, ...]
) -> dict[str, str]:
    from pipeline.maven import spark_jars  # noqa: PLC0415 Maven runs only where jars are needed

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = dict(_TUNED)
    settings["spark.driver.extraJavaOptions"] = _java_options()
    settings["spark.sql.shuffle.partitions"] = str(cores(master))
    settings["spark.sql.warehouse.dir"] = str(Path(tempfile.gettempdir()) / "rackwise-warehouse")
    if "spark.jars" not in conf and "spark.jars.packages" not in conf:
        settings["spark.jars"] = ",".join(str(jar) for jar in spark_jars(on_progress, stores))
    return settings


def cores(master: str) -> int:
    """How many tasks run at a time on this machine. Raises ConfigError for a local master without a number of them."""
    inside = re.fullmatch(r"local(-cluster)?\[([^\]]*)\]", master)
    if inside is None:
        return 1
    numbers = [part.strip() for part in inside.group(2).split(",")]
    if inside.group(1) is None and numbers[0] == "*":
        return os.cpu_count() or 1
    try:
        number = int(numbers[0]) * (int(numbers[1]) if inside.group(1) else 1)
    except (ValueError, IndexError):
        number = 0
    if number < 1:
        raise ConfigError(
            f"the master {master} does not say how many cores are used",
            why="inside the brackets is a number, or * for all cores; of local-cluster workers, cores and MB of each",
            todo="Set spark.master to local[*], local[4] or local-cluster[2,4,1024].",
        )
    return number

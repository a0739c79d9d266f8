"""What a session is set to: for a few cores here, for nothing on another Spark, and which setting wins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from agent.errors import ConfigError
from pipeline.session import MANY_ROWS, cores, settings_of, short_job, sized, small_batches

JAVA = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("master", "number"),
    [("local[3]", 3), ("local", 1), ("local-cluster[2,4,1024]", 8), ("spark://head:7077", 1)],
)
def test_as_many_partitions_as_tasks_run_at_a_time(master: str, number: int) -> None:
    assert cores(master) == number


@pytest.mark.parametrize(
    "master",
    ["local[]", "local[x]", "local[0]", "local[-1]", "local[,4]", "local-cluster[2]", "local-cluster[*,4,1024]"],
)
def test_a_local_master_without_a_number_of_cores_is_refused(master: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_of(master, {}, "parquet")
    assert f"the master {master} does not say how many cores" in refused.value.what


def test_another_masters_spark_is_told_only_what_rackwise_needs() -> None:
    settings = settings_of("spark://head:7077", {"spark.executor.memory": "4g"}, "parquet")
    assert {"spark.master": "spark://head:7077", "spark.executor.memory": "4g"}.items() <= settings.items()
    assert not {JAVA, "spark.driver.memory", "spark.jars", "spark.sql.extensions"} & settings.keys()
    assert small_batches("spark://head:7077") == short_job("spark://head:7077") == {}


@pytest.mark.usefixtures("spark")  # its jars are there
def test_short_jobs_here_run_with_javas_first_compiler_and_what_a_user_sets_wins() -> None:
    plain = settings_of("local[2]", {}, "delta")[JAVA]
    quick = settings_of("local[2]", short_job("local[2]"), "delta")[JAVA]
    assert quick.startswith(f"{plain} ")
    assert "TieredStopAtLevel=1" in quick.removeprefix(plain)
    assert settings_of("local[2]", small_batches("local[2]"), "delta")[JAVA] == plain, "what runs for days gets hot"
    assert settings_of("local[2]", {**short_job("local[2]"), JAVA: "-Xss8m"}, "delta")[JAVA] == "-Xss8m"


def test_below_spark_submit_java_runs_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert small_batches("local[2]") == short_job(None) == {}
    assert not {JAVA, "spark.master", "spark.jars"} & settings_of(None, {}, "delta").keys()


def test_many_rows_are_worked_on_with_compiled_code_and_all_cores_and_few_again_without(spark: SparkSession) -> None:
    def now() -> dict[str, str | None]:
        return {name: spark.conf.get(name) for name in small_batches("local[2]")}

    few = now()
    assert few == small_batches("local[2]")
    with sized(spark, MANY_ROWS - 1):
        assert now() == few
    with sized(spark, MANY_ROWS):
        assert now() == {
            "spark.sql.codegen.wholeStage": "true",
            "spark.sql.codegen.factoryMode": "FALLBACK",
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.subexpressionElimination.enabled": "true",
            "spark.sql.shuffle.partitions": str(spark.sparkContext.defaultParallelism),
        }
    with pytest.raises(OSError, match="the disk is full"), sized(spark, MANY_ROWS):
        raise OSError("the disk is full")
    assert now() == few


def test_what_a_user_set_otherwise_stays_whatever_the_size(spark: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    few = spark.conf.get(name)
    spark.conf.set(name, "7")
    try:
        with sized(spark, MANY_ROWS):
            assert (spark.conf.get(name), spark.conf.get("spark.sql.codegen.wholeStage")) == ("7", "false")
    finally:
        spark.conf.set(name, few)


_STARTS = """
import pathlib, sys
from pipeline.session import spark_session

secret = sys.stdin.readline().strip()
spark = spark_session("test", master="local[1]", format="parquet", conf={
    "spark.hadoop.fs.s3a.secret.key": secret, "spark.hadoop.x": f"https://h/?sig={secret}",
    "spark.driver.memory": "600m", "spark.jars": "",
})
lines = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if path.parent.is_dir()]
print(sum(secret.encode() in line for line in lines), sum(b"spark.driver.memory=6" + b"00m" in line for line in lines))
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
print(hadoop.get("fs.s3a.secret.key"), hadoop.get("x"), spark.range(3).count())
system = spark.sparkContext._jvm.java.lang.System
system.out.println("a library's chat")
system.err.println("a fault of Spark" + chr(27) + "[31m")
system.err.flush()
spark.stop()
"""


@pytest.mark.usefixtures("spark")  # its jars are there
def test_no_process_shows_a_secret_of_sparks_settings_among_its_arguments_and_java_prints_faults_alone() -> None:
    secret = f"canary-{uuid4().hex}"
    done = subprocess.run(
        [sys.executable, "-c", _STARTS], input=f"{secret}\n", capture_output=True, text=True, timeout=300,
        check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown, arrived = done.stdout.splitlines()
    assert done.stderr == "a fault of Spark\\x1b[31m\n"
    of_secret, of_memory = map(int, shown.split())
    assert of_secret == 0
    assert of_memory >= 1, "Java was started with what is no secret"
    assert arrived == f"{secret} https://h/?sig={secret} 3", "and the secrets arrived all the same"

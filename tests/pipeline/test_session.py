"""What a session is set to: for a few cores here, for nothing where somebody else's Spark runs, and whose word wins."""

from __future__ import annotations

import pytest

from pipeline.session import cores, settings_of, short_job, small_batches

JAVA = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("master", "number"),
    [("local[3]", 3), ("local", 1), ("local-cluster[2,4,1024]", 8), ("spark://head:7077", 1)],
)
def test_as_many_partitions_as_tasks_run_at_a_time(master: str, number: int) -> None:
    assert cores(master) == number


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

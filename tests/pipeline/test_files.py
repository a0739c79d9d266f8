"""Small files next to the tables: whole or not at all, wherever a URI points; and no way around public PySpark."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from pyarrow import fs as arrow
from pyspark.sql import SparkSession

from agent.errors import BadInput, RackwiseError
from pipeline.files import StoredFiles, located
from pipeline.session import task_slots
from pipeline.tables import TableStore

ROOT = Path(__file__).parents[2]
WAYS_AROUND = frozenset(
    ("_jvm", "_jsc", "_sc", "_jdf", "_jsparkSession", "_jseq", "_jconf", "_java_obj", "sparkContext", "rdd", "py4j")
)
"""What a session of Spark Connect does not have."""


def test_no_module_of_the_pipeline_reaches_around_public_pyspark_into_java() -> None:
    files = sorted((ROOT / "pipeline").rglob("*.py"))
    assert len(files) > 80
    found = [
        f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {name}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        for name in _names(node)
        if name in WAYS_AROUND
    ]
    assert found == []


def _names(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)  # getattr(spark, "_jvm")
    if isinstance(node, ast.ImportFrom):
        return ((node.module or "").partition(".")[0],)
    return tuple(alias.name.partition(".")[0] for alias in node.names) if isinstance(node, ast.Import) else ()


def test_a_file_is_written_whole_read_listed_moved_and_deleted(spark: SparkSession, tmp_path: Path) -> None:
    files, folder = StoredFiles(spark), f"file://{tmp_path}/a b/ü"
    assert (files.names(folder), files.read(f"{folder}/x"), files.exists(folder)) == ((), None, False)
    files.write(f"{folder}/x", "first")
    files.write(f"{folder}/x", "second")
    files.delete(f"{folder}/nothing")
    there = tmp_path / "a b" / "ü"
    (there / ".x.crc").write_bytes(b"as Hadoop leaves them")
    assert (files.names(str(there)), files.read(str(there / "x"))) == (("x",), "second")
    assert files.read(str(there)) is None, "a folder has no text"
    os.utime(there / "x", (1, 1))
    assert files.modified_ms(f"{folder}/x") == 1_000
    assert files.modified_ms(f"{folder}/nothing") > 1_000
    assert files.move(folder, str(tmp_path / "deep" / "er"))
    assert not files.move(str(tmp_path / "deep"), str(tmp_path / "a b")), "the target is there"
    assert (tmp_path / "deep" / "er" / "x").read_text() == "second"
    files.delete(str(tmp_path / "deep"))
    assert not (tmp_path / "deep").exists()


def test_a_path_without_a_scheme_is_on_this_machine_for_spark_as_well(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert located("tables/x") == f"file:{tmp_path}/tables/x"
    assert located(f"file:{tmp_path}") == f"file:{tmp_path}"
    assert located("s3a://bucket/x") == "s3a://bucket/x"
    StoredFiles(spark).write("tables/x", "1")
    assert spark.read.text(located("tables/x")).collect()[0][0] == "1"


def test_what_the_file_system_refuses_is_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    files = StoredFiles(spark)
    with pytest.raises(BadInput, match="nowhere://host cannot be used for tables"):
        files.read("nowhere://host/x")
    (tmp_path / "file").touch()
    with pytest.raises(RackwiseError, match="cannot be read or written"):
        files.write(str(tmp_path / "file" / "below"), "x")


def test_options_of_s3a_in_the_session_are_those_of_its_small_files(spark: SparkSession) -> None:
    """Those of one bucket win; requests end in a minute, a connection in ten seconds."""
    given = {
        "spark.hadoop.fs.s3a.access.key": "me", "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9", "spark.hadoop.fs.s3a.endpoint.region": "elsewhere",
        "spark.hadoop.fs.s3a.bucket.bucket.endpoint.region": "here",
    }  # fmt: skip
    for name, value in given.items():
        spark.conf.set(name, value)
    try:
        system, at = StoredFiles(spark)._at("s3a://bucket/tables/x")
    finally:
        for name in given:
            spark.conf.unset(name)
    assert at == "bucket/tables/x"
    same = arrow.S3FileSystem(
        access_key="me", secret_key="secret", endpoint_override="127.0.0.1:9", region="here", scheme="http",
        request_timeout=60, connect_timeout=10, allow_delayed_open=True,
    )  # fmt: skip
    assert system.equals(same)


def test_an_object_store_has_no_parquet_tables(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match="s3a://bucket/root cannot have Parquet tables"):
        TableStore(spark, "s3a://bucket/root", "parquet")


def test_the_number_of_tasks_at_a_time_is_sparks_own(spark: SparkSession) -> None:
    assert task_slots(spark) == spark.sparkContext.defaultParallelism

"""Roots in object stores, without one: which jars and settings a scheme asks for, and what is said of a bad root."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import BadInput, ConfigError, NotAllowed, RackwiseError
from pipeline.delta_changes import is_second, settled
from pipeline.maven import ToolError, locked_jars, spark_jars
from pipeline.object_stores import check_root, connectors, store_settings
from pipeline.store_errors import store_error, told

KEY, SECRET = "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key"
CONDITIONAL = "spark.hadoop.fs.s3a.create.conditional.enabled"


@pytest.mark.parametrize(
    ("roots", "sets"),
    [
        (["/data", "rackwise-tables", "hdfs:///rackwise"], ()),
        (["s3a://lake/rackwise"], ("s3a",)),
        (["S3A://lake/rackwise", "s3a://other/x"], ("s3a",)),
        (["abfss://c@a.dfs.core.windows.net/x", "gs://lake"], ("abfs", "gs")),
    ],
)
def test_only_the_schemes_of_the_roots_ask_for_connectors(roots: list[str], sets: tuple[str, ...]) -> None:
    assert connectors(roots) == sets
    assert (not sets) == (store_settings(roots) == {})


@pytest.mark.parametrize(
    ("connector", "jar"),
    [("s3a", "hadoop-aws-3.5.0.jar"), ("gs", "gcs-connector-3.0.4-shaded.jar"), ("abfs", "hadoop-azure-3.5.0.jar")],
)
def test_each_connector_is_pinned_apart_from_sparks(connector: str, jar: str) -> None:
    locked = locked_jars(connector)
    assert jar in locked
    assert not locked.keys() & locked_jars().keys()
    assert all(len(digest) == 64 for digest in locked.values())


def test_the_log_of_tables_in_s3_is_one_that_several_drivers_may_write() -> None:
    settings = store_settings(["s3a://lake/x"])
    assert settings["spark.delta.logStore.s3a.impl"] == "rackwise.tables.ConditionalLogStore"
    assert "spark.delta.logStore.s3a.impl" not in store_settings(["gs://lake/x"])


def test_an_installation_without_the_jar_for_s3_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pipeline.maven.TABLES_JAR", tmp_path / "none.jar")
    with pytest.raises(ToolError, match=r"no jar for tables in S3: there is no .*none\.jar") as refused:
        spark_jars(connectors=("s3a",))
    assert "Run `make jar` in the clone" in str(refused.value)


@pytest.mark.parametrize(
    ("root", "conf", "sentence"),
    [
        ("s4://lake/x", {}, "spark.tables has the scheme s4, which rackwise does not know: a folder is expected"),
        ("s3://lake/x", {}, "spark.tables begins with s3:: the connector's scheme is s3a:"),
        ("s3a:///x", {}, "There is no bucket in spark.tables"),
        ("s3a:x", {}, "There is no bucket in spark.tables"),
        ("s3a://key:canary@lake/x", {}, "spark.tables has credentials in it"),
        ("abfss://account.dfs.core.windows.net/x", {}, "There is no container of an account in spark.tables"),
        ("s3a://lake/x", {KEY: "k"}, "spark.hadoop.fs.s3a.secret.key is not set: fs.s3a.access.key is"),
        ("s3a://lake/x", {SECRET: "canary"}, "spark.hadoop.fs.s3a.access.key is not set: fs.s3a.secret.key is"),
        ("s3a://lake/x", {CONDITIONAL: "false"}, "two writers at once would overwrite each other's commits"),
        (
            "s3a://lake/x",
            {"spark.hadoop.fs.s3a.bucket.lake.access.key": "k"},
            "spark.hadoop.fs.s3a.secret.key is not set",
        ),
    ],
)
def test_a_root_that_cannot_be_is_refused_with_what_to_write(root: str, conf: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_root(root, conf)
    assert sentence in str(refused.value)
    assert "canary" not in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    "root",
    [
        "tables",
        "/data/a:b",
        "file:/x",
        "hdfs://h:9000/x",
        "s3a://lake",
        "gs://lake/x",
        "abfs://c@a.dfs.core.windows.net/x",
    ],
)
def test_a_root_that_can_be_is_let_through(root: str) -> None:
    check_root(root, {})
    check_root(root, {KEY: "k", SECRET: "s"})


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        (
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            ConfigError,
            "Spark has no connector for the object store",
        ),
        (
            "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://lake/x': Bucket does not exist",
            BadInput,
            "The bucket does not exist",
        ),
        (
            "AccessDeniedException: lake: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS Credentials",
            ConfigError,
            "There are no credentials for the object store",
        ),
        (
            "s3a://lake/x: software.amazon.awssdk.services.s3.model.S3Exception: (Service: S3, Status Code: 403)",
            NotAllowed,
            "The object store refuses access",
        ),
        (
            "Caused by: org.apache.hadoop.fs.s3a.AWSStatus500Exception: PUT 0-object-create on x: Connection refused",
            RackwiseError,
            "The object store failed or did not answer",
        ),
    ],
)
def test_what_a_store_or_its_connector_says_is_a_sentence(text: str, kind: type[RackwiseError], sentence: str) -> None:
    found = store_error(text)
    assert type(found) is kind
    assert sentence in str(found)


def test_errors_of_anything_else_stay_what_they_are() -> None:
    assert store_error("org.apache.kafka.common.errors.TimeoutException: Connection refused") is None
    with pytest.raises(ValueError, match="other"), told(["s3a://lake"]):
        raise ValueError("other")
    with pytest.raises(OSError, match="s3a"), told(["/data"]):
        raise OSError("awssdk s3a")
    with pytest.raises(RackwiseError, match="The object store failed"), told(["s3a://lake"]):
        raise OSError("software.amazon.awssdk.core.exception.SdkClientException: no route")


def test_a_change_that_came_second_is_made_again_and_any_other_error_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    tries: list[bool] = []

    def second_twice(is_first: bool) -> None:
        tries.append(is_first)
        if len(tries) < 3:
            raise OSError("org.apache.hadoop.fs.s3a.RemoteFileChangedException: 0001.json")

    settled(second_twice)
    assert tries == [True, False, False]
    with pytest.raises(OSError, match="disk is full"):
        settled(_full)
    assert not is_second(OSError("the disk is full"))


def _full(_: bool) -> None:
    raise OSError("the disk is full")

"""No brokers, no Spark extra, odd options: a sentence and an exit code, before Spark is started where that can be."""

from __future__ import annotations

import builtins
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from agent.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, NotAllowed, RackwiseError, TlsFailed
from config.kafka_client import KafkaClientConfig
from pipeline import errors, session
from pipeline.cli import spark_app
from pipeline.errors import DataLost
from pipeline.kafka import TopicClient
from pipeline.stream.ingest import TELEMETRY, StreamRunner
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.observe.live import wait_for


def unused_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_brokers_that_do_not_answer_are_named_with_exit_code_5() -> None:
    servers = f"127.0.0.1:{unused_port()}"
    brokers = TopicClient(KafkaClientConfig.of({"bootstrap.servers": servers}), timeout_s=1)
    with pytest.raises(ClusterUnreachable) as refused:
        brokers.topic("t")
    assert servers in refused.value.why
    assert refused.value.exit_code == 5


@pytest.mark.integration
def test_a_topic_that_is_looked_for_is_not_made_by_that() -> None:
    spec = ClusterSpec(racks=("a",), broker_properties={"auto.create.topics.enable": "true"})
    with EmbeddedCluster.start(spec) as cluster:
        brokers = TopicClient(KafkaClientConfig.of({"bootstrap.servers": cluster.bootstrap_servers}))
        assert [brokers.topic("nobodys"), brokers.topic("nobodys")] == [None, None]
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        assert "nobodys" not in admin.list_topics(timeout=10).topics
        # Asked for by name the way clients do, it comes: the broker may make topics.
        admin.list_topics("nobodys", timeout=10)
        wait_for(lambda: brokers.topic("nobodys"), "the topic is made")


def test_without_brokers_in_the_settings_the_option_is_named() -> None:
    with pytest.raises(ConfigError, match="No brokers are named"):
        TopicClient(KafkaClientConfig.of({}))


def test_without_the_extra_the_command_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_spark(name: str, *rest: Any, **named: Any) -> Any:
        if name == "pyspark":
            raise ImportError("No module named 'pyspark'")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_spark)
    with pytest.raises(session.NeedsSpark) as refused:
        session.need_spark()
    assert "pip install 'rackwise[spark]'" in refused.value.todo
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ["--conf", "spark.x"],
            "An argument of --conf is no setting: NAME=VALUE is expected",
            id="a conf without value",
        ),
        pytest.param(["--format", "iceberg"], "spark.format: iceberg is not offered", id="an unknown format"),
        pytest.param(["--set", "spark.intervall=1s"], "did you mean", id="a misspelt setting"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_spark_starts(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(spark_app, ["ingest", *arguments])
    assert isinstance(result.exception, ConfigError)
    assert sentence in str(result.exception)


JAVA = "org.apache.spark.SparkException: Job aborted\nCaused by: {}"


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        pytest.param(
            JAVA.format("org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment."),
            ClusterUnreachable, 5, id="silence",
        ),
        pytest.param(
            JAVA.format("org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed"),
            AuthenticationFailed, 2, id="a wrong password",
        ),
        pytest.param(
            JAVA.format("org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed"),
            TlsFailed, 2, id="a certificate of another owner",
        ),
        pytest.param(
            JAVA.format("org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized: [t]"),
            NotAllowed, 2, id="no right to read",
        ),
        pytest.param(
            JAVA.format("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host"),
            ConfigError, 2, id="a topic that was deleted meanwhile",
        ),
        pytest.param(
            JAVA.format('java.lang.IllegalStateException: ... set the source option "failOnDataLoss" to "false"'),
            DataLost, 1, id="records that were deleted meanwhile",
        ),
        pytest.param("java.lang.IllegalStateException: something else", RackwiseError, 1, id="anything else"),
        pytest.param("", RackwiseError, 1, id="nothing at all"),
    ],
)  # fmt: skip
def test_the_end_of_a_query_is_told_by_its_cause(text: str, kind: type[RackwiseError], code: int) -> None:
    found = errors.of_spark("t", text)
    assert type(found) is kind
    assert found.exit_code == code
    assert found.todo


class Silent:
    """A stream whose brokers fall silent; no broker falls silent and comes back on a beat."""

    def __init__(self, ends: list[RackwiseError | None]) -> None:
        self.plan = type("P", (), {"name": TELEMETRY, "topic": "t"})
        self.problem: RackwiseError | None = None
        self.records = 0
        self.is_in_batch = False
        self._ends = ends
        self.starts = 0

    def check(self, _expected: str | None) -> bool:
        return True

    def start(self, *, once: bool) -> None:
        self.starts += 1
        self.problem = self._ends.pop(0)

    def is_running(self) -> bool:
        return self.problem is None

    def stop(self) -> None:
        return


def test_brokers_that_fall_silent_are_waited_for_as_long_as_patience_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.stream.ingest._RETRY_S", 0.0)
    silent = ClusterUnreachable("silent")
    stop = Event()
    back = Silent([silent, silent, None])
    told: list[str] = []

    def say(line: str) -> None:
        told.append(line)
        if len(told) == 2:
            stop.set()

    StreamRunner([back], expected_cluster=None, patience_ms=60_000, say=say).run(stop)  # type: ignore[list-item]
    assert len(told) == 2
    assert all(line.startswith("telemetry: silent; retrying for ") for line in told)
    assert back.starts == 2

    with pytest.raises(ClusterUnreachable):
        StreamRunner([Silent([silent])], expected_cluster=None, patience_ms=0, say=say).run(Event())  # type: ignore[list-item]


class Missing(Silent):
    """A stream whose topic is not there yet, until no broker answers any more."""

    def __init__(self, silent: list[bool]) -> None:
        super().__init__([])
        self.plan = type("P", (), {"name": "journal", "topic": "j"})
        self._silent = silent

    def check(self, _expected: str | None) -> bool:
        if self._silent.pop(0):
            raise ClusterUnreachable("silent")
        return False


def test_a_topic_that_was_never_there_does_not_end_the_patience_with_silent_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipeline.stream.ingest._RETRY_S", 0.0)
    monkeypatch.setattr("pipeline.stream.ingest._LOOK_AGAIN_S", 0.0)
    stop = Event()
    told: list[str] = []

    def say(line: str) -> None:
        told.append(line)
        if len(told) == 3:
            stop.set()

    both = [Silent([None]), Missing([False, True, True])]
    StreamRunner(both, expected_cluster=None, patience_ms=60_000, say=say).run(stop)  # type: ignore[arg-type]
    assert told[0] == "journal: topic j does not exist yet"
    assert all(line.startswith("journal: silent; retrying for ") for line in told[1:])

    with pytest.raises(ClusterUnreachable):  # no broker ever answered
        StreamRunner([Missing([True])], expected_cluster=None, patience_ms=60_000, say=say).run(Event())  # type: ignore[list-item]


def test_anything_but_silence_ends_ingest_at_once() -> None:
    with pytest.raises(DataLost):
        StreamRunner(
            [Silent([DataLost("gone")])],  # type: ignore[list-item]
            expected_cluster=None, patience_ms=60_000, say=print,
        ).run(Event())  # fmt: skip


@pytest.mark.drill
def test_a_master_of_spark_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """Spark asks it for a minute."""
    master = f"spark://127.0.0.1:{unused_port()}"
    where = ("--tables", str(tmp_path), "--out", str(tmp_path / "report"), "--master", master)
    command = [sys.executable, "-m", "agent", "spark", "report", *where]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    assert "Spark did not start" in ended.stderr
    assert f"Check that {master} runs and can be reached" in ended.stderr
    assert "Internal error" not in ended.stderr

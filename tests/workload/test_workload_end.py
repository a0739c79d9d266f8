"""Nothing outlives its owner, and what cannot start says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import WorkloadError
from testbed.demo.workload.__main__ import main
from testbed.demo.workload.java import JavaHost
from testbed.demo.workload.java_classes import compiled
from testbed.demo.workload.plan import TopologyPlan
from tests.workload import brokers


@pytest.mark.integration
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, id="killed, so that it can do nothing itself"),
        pytest.param(signal.SIGTERM, id="asked to end", marks=pytest.mark.drill),
        pytest.param(signal.SIGINT, id="interrupted from the keyboard", marks=pytest.mark.drill),
    ],
)
def test_jvm_and_its_directory_go_with_their_owner(
    demo_cluster: EmbeddedCluster, tmp_path: Path, how: signal.Signals
) -> None:
    command = [sys.executable, "-m", "testbed.demo.workload", "--scene", "parts"]
    with subprocess.Popen(
        [*command, "--bootstrap-servers", demo_cluster.bootstrap_servers],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True,
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        assert any(line.startswith("the workload runs") for line in owner.stdout)
        (jvm,) = psutil.Process(owner.pid).children()
        assert list(tmp_path.iterdir()), "the JVM keeps its state somewhere"
        owner.send_signal(how)
        owner.wait(30)
    jvm.wait(20) if jvm.is_running() else None
    assert not jvm.is_running()
    assert list(tmp_path.iterdir()) == []
    assert owner.returncode == (0 if how is not signal.SIGKILL else -signal.SIGKILL)


@pytest.mark.integration
def test_jvm_ends_in_time_when_the_brokers_are_out_of_reach(demo_cluster: EmbeddedCluster) -> None:
    host = JavaHost("127.0.0.1:1", demo_cluster.spec.version)
    host.start_consumer("lonely", "lonely", "orders", rack="a", settings={})
    host.start_instance("alone", "alone", TopologyPlan(input="orders"), rack="a", tags={}, settings={})
    (instance,) = host.lags("alone")["instances"]
    assert instance["tasks"] == []
    brokers.eventually(lambda: "127.0.0.1:1" in host.log(), "the JVM's log names no address")
    host.close()
    assert not psutil.pid_exists(host.pid)


@pytest.mark.integration
def test_instance_with_an_impossible_setting_is_refused_with_kafkas_words(demo_cluster: EmbeddedCluster) -> None:
    host = JavaHost(demo_cluster.bootstrap_servers, demo_cluster.spec.version)
    try:
        with pytest.raises(WorkloadError, match=r"num\.standby\.replicas"):
            host.start_instance(
                "x", "x", TopologyPlan(input="orders"), rack=None, tags={}, settings={"num.standby.replicas": "many"}
            )
        assert host.assignment()["instances"] == []
    finally:
        host.close()


def test_missing_compiler_is_a_sentence_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, demo_cluster: EmbeddedCluster
) -> None:
    only_java = tmp_path / "bin"
    only_java.mkdir()
    (only_java / "java").symlink_to(demo_cluster.jars.java)
    monkeypatch.setattr("testbed.demo.workload.java_classes.cache_home", lambda: tmp_path / "cache")
    monkeypatch.setenv("PATH", str(only_java))
    with pytest.raises(WorkloadError, match=r"javac is not on PATH.*Install a JDK 17"):
        compiled(demo_cluster.spec.version, lambda _line: None)


def test_compiler_that_refuses_leaves_nothing_half_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, demo_cluster: EmbeddedCluster
) -> None:
    sources = tmp_path / "java"
    sources.mkdir()
    (sources / "Broken.java").write_text("class Broken {")
    monkeypatch.setattr("testbed.demo.workload.java_classes.cache_home", lambda: tmp_path / "cache")
    monkeypatch.setattr("testbed.demo.workload.java_classes._SOURCES", sources)
    with pytest.raises(WorkloadError, match=r"could not be compiled.*Broken\.java"):
        compiled(demo_cluster.spec.version, lambda _line: None)
    assert list((tmp_path / "cache" / "workload").iterdir()) == []


def test_command_says_why_it_could_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version", "not-a-version", "--compile-only"]) == 1
    assert "not-a-version" in capsys.readouterr().out


def test_setting_without_a_value_is_a_wrong_argument(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--set", "max.warmup.replicas"])
    assert ended.value.code == 2
    assert "is not NAME=VALUE" in capsys.readouterr().err

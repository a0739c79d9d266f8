"""Nothing stays behind, however the process that started a cluster goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from testbed.cluster.leftovers import ClusterState, clear_cluster, find_cluster, find_clusters, tagged
from testbed.cluster.processes import ProcessId, wait_gone
from tests.cluster.live import eventually

pytestmark = pytest.mark.integration

PARENT = """
import sys, time
from testbed.cluster import ClusterSpec, EmbeddedCluster
with EmbeddedCluster.start(ClusterSpec(racks=("a",)), name="orphaned"):
    print("ready", flush=True)
    time.sleep(600)
"""


class Parent:
    """A process that started a cluster of one broker and holds it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen((sys.executable, "-c", PARENT), stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "ready"

    @property
    def directory(self) -> Path:
        found = find_cluster("orphaned")
        assert found is not None
        return found.directory

    @property
    def brokers(self) -> tuple[ProcessId, ...]:
        return tagged(self.directory)

    @property
    def watchdogs(self) -> list[psutil.Process]:
        return [one for one in psutil.Process(self.process.pid).children() if "watchdog.py" in " ".join(one.cmdline())]

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(30)


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parent]:
    monkeypatch.setenv("RACKWISE_STATE", str(tmp_path))
    started = Parent()
    yield started
    started.process.kill()
    started.process.wait()
    if started.process.stdout:
        started.process.stdout.close()
    clear_cluster(tmp_path / "clusters" / "orphaned")


def test_brokers_and_data_go_with_the_process_that_started_them(parent: Parent) -> None:
    brokers, directory = parent.brokers, parent.directory
    assert len(brokers) == 1
    parent.end(signal.SIGKILL)
    assert wait_gone(brokers, 20) == ()
    assert eventually(lambda: not directory.exists())
    assert find_clusters() == ()


def test_a_cluster_whose_owner_lives_is_never_cleared_and_ends_with_ctrl_c(parent: Parent) -> None:
    brokers = parent.brokers
    found = find_cluster("orphaned")
    assert found is not None
    assert (found.held, found.state) == (True, ClusterState.RUNNING)
    assert "is removed" not in rackwise_cluster("status", "--clear").stderr
    assert "is removed" not in rackwise_cluster("down", "--all").stderr
    assert [one for one in brokers if not one.alive] == []

    parent.end(signal.SIGINT)
    assert wait_gone(brokers, 20) == ()
    assert find_clusters() == ()


def test_what_outlives_even_the_watchdog_is_found_and_cleared_when_asked(parent: Parent) -> None:
    brokers = parent.brokers
    for watchdog in parent.watchdogs:
        watchdog.kill()
    parent.end(signal.SIGKILL)
    assert [one for one in brokers if not one.alive] == []

    seen = rackwise_cluster("status")
    assert [(row["name"], row["state"], row["brokers_running"]) for row in json.loads(seen.stdout)] == [
        ("orphaned", "left behind", 1)
    ]
    assert "remove it with: rackwise cluster status --clear" in seen.stderr
    assert [one for one in brokers if not one.alive] == []

    cleared = rackwise_cluster("status", "--clear")
    assert "cluster orphaned is removed" in cleared.stderr
    assert wait_gone(brokers, 20) == ()
    assert find_clusters() == ()


def rackwise_cluster(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-c", "from testbed.cluster.commands import cluster_app; cluster_app()", *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=os.environ)

"""Brokers are killed, frozen, stopped and moved; each test leaves the cluster as it found it."""

from __future__ import annotations

import time

import pytest

from testbed.cluster import ClusterError, EmbeddedCluster
from tests.cluster.driver import ClusterDriver
from tests.cluster.live import described, eventually

pytestmark = pytest.mark.harm


def test_racks_are_those_that_were_asked_for(cluster: ClusterDriver) -> None:
    assert described(cluster.bootstrap_servers) == {1: "a", 2: "b", 3: "c"}


def test_a_killed_broker_leaves_the_cluster_and_comes_back_as_it_was(cluster: ClusterDriver) -> None:
    cluster.broker(2).kill()
    assert eventually(lambda: described(cluster.bootstrap_servers) == {1: "a", 3: "c"})
    began = time.monotonic()
    cluster.broker(2).start()
    back_s = time.monotonic() - began
    print(f"a killed broker serves again {back_s:.1f} s after it was started")
    assert described(cluster.bootstrap_servers) == {1: "a", 2: "b", 3: "c"}
    assert back_s < 20


def test_a_broker_restarted_in_another_rack_is_described_there(cluster: ClusterDriver) -> None:
    cluster.broker(3).restart("z")
    assert described(cluster.bootstrap_servers) == {1: "a", 2: "b", 3: "z"}
    cluster.broker(3).restart("c")
    assert described(cluster.bootstrap_servers) == {1: "a", 2: "b", 3: "c"}


def test_a_frozen_broker_is_fenced_and_returns_when_it_is_thawed(cluster: ClusterDriver) -> None:
    cluster.broker(1).freeze()
    try:
        others = ",".join(cluster.bootstrap_servers.split(",")[1:])
        assert eventually(lambda: set(described(others)) == {2, 3})
    finally:
        cluster.broker(1).thaw()
    cluster.broker(1).wait_ready()
    assert described(cluster.bootstrap_servers) == {1: "a", 2: "b", 3: "c"}


def test_a_frozen_broker_can_be_stopped_and_started(cluster: ClusterDriver) -> None:
    cluster.broker(1).freeze()
    cluster.broker(1).kill()
    cluster.broker(1).start()
    assert described(cluster.bootstrap_servers) == {1: "a", 2: "b", 3: "c"}


def test_a_broker_keeps_ports_and_directory_but_not_its_pid(embedded_cluster: EmbeddedCluster) -> None:
    broker = embedded_cluster.broker(2)
    node, pid = broker.node, broker.pid
    broker.restart()
    assert broker.node == node
    assert broker.alive
    assert broker.pid != pid


def test_a_broker_can_lose_its_rack(embedded_cluster: EmbeddedCluster) -> None:
    embedded_cluster.broker(2).restart(None)
    assert described(embedded_cluster.bootstrap_servers) == {1: "a", 2: None, 3: "c"}
    embedded_cluster.broker(2).restart("b")
    assert described(embedded_cluster.bootstrap_servers) == {1: "a", 2: "b", 3: "c"}


def test_a_running_broker_is_not_started_twice(embedded_cluster: EmbeddedCluster) -> None:
    pid = embedded_cluster.broker(1).pid
    with pytest.raises(ClusterError, match=f"Broker 1 is already running, as pid {pid}"):
        embedded_cluster.broker(1).start()
    assert embedded_cluster.broker(1).pid == pid


def test_a_stopped_broker_cannot_be_frozen(embedded_cluster: EmbeddedCluster) -> None:
    broker = embedded_cluster.broker(3)
    broker.stop()
    try:
        assert not broker.alive
        broker.stop()
        with pytest.raises(ClusterError, match="Broker 3 cannot be sent SIGSTOP: it is not running"):
            broker.freeze()
    finally:
        broker.start()

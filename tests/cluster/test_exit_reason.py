"""Why a broker ended: its last ERROR line, else the end of what it wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.cluster.broker import BrokerProcesses
from testbed.cluster.launch import home
from testbed.cluster.manifest import ClusterManifest, ManifestBroker
from testbed.cluster.processes import ProcessId
from testbed.cluster.settings import BrokerNode
from testbed.cluster.spec import ClusterSpec

NODE = BrokerNode(id=1, rack="a", internal_port=1, controller_port=2, client_port=3, data_directory="broker-1/data")
MANIFEST = ClusterManifest(
    name="c",
    cluster_id="id",
    spec=ClusterSpec(),
    members=(ManifestBroker(node=NODE),),
    owner=None,
    starter=ProcessId.of(os.getpid()),
)
INFO = "2026-11-24T03:00:00,123 INFO [BrokerServer id=1] Transition from STARTED to SHUTTING_DOWN (kafka.server)"
OLDER = "2026-11-24 02:00:00,123 ERROR Error processing partition t-0 (kafka.server.ReplicaManager)"
ERROR = "2026-11-24T03:00:00,123 ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)"
WHY = "java.lang.RuntimeException: No readable meta.properties files found."
TRACE = "\tat kafka.Kafka$.main(Kafka.scala:112)"


@pytest.mark.parametrize(
    ("log", "output", "why"),
    [
        pytest.param([OLDER, ERROR, WHY, TRACE, *[INFO] * 90], "", f"{ERROR}\n{WHY}", id="an error with an exception"),
        pytest.param([INFO, OLDER, INFO, INFO], "a warning of the JVM", OLDER, id="an error alone, of log4j 1"),
        pytest.param([OLDER, *[INFO] * 500], "", "\n".join([INFO] * 8), id="an error of an earlier run"),
        pytest.param([INFO] * 9, "no room for the heap", "no room for the heap", id="no error: what the JVM writes"),
        pytest.param([INFO], "", INFO, id="no error: the end of the log"),
        pytest.param([], "", "nothing was written", id="nothing"),
    ],
)
def test_a_broker_that_ended_names_its_last_error(tmp_path: Path, log: list[str], output: str, why: str) -> None:
    where = home(tmp_path, 1)
    where.directory.mkdir(parents=True)
    where.log.write_text("\n".join(log))
    where.output.write_text(output)
    assert BrokerProcesses(tmp_path, MANIFEST).exit_reason(1) == why

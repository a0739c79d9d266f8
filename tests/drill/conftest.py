"""The cluster of the drills, and the table of all of them at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.cluster import embedded as embedding
from tests.drill.harness import OUTCOMES, table
from tests.drill.reassignment_proxy import WatchingProxy

_CONTROLLER_FAULT = "Encountered quorum controller fault: registerBroker"


@pytest.fixture(scope="session")
def _arenas() -> Iterator[list[EmbeddedCluster]]:
    """The cluster that runs, if any."""
    running: list[EmbeddedCluster] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "RecordingProxy", WatchingProxy)
        yield running
        for one in running:
            one.stop()


@pytest.fixture
def arena(_arenas: list[EmbeddedCluster]) -> EmbeddedCluster:
    """Four brokers in as many racks, behind a proxy that keeps every line of reassignment requests.

    One cluster for all drills, until its controller meets a fault of its own. Kafka 4.3.1 may keep a deleted topic in
    its list of in-sync replicas after a cancelled reassignment: from then on no broker that restarts is registered, and
    all later drills would fail for it.
    """
    if _arenas and _has_controller_fault(_arenas[0]):
        _arenas.pop().stop()
    if not _arenas:
        spec = ClusterSpec(racks=("a", "b", "c", "d"), proxied=True)
        _arenas.append(EmbeddedCluster.start(spec, on_progress=print))
    return _arenas[0]


def _has_controller_fault(cluster: EmbeddedCluster) -> bool:
    logs = cluster.directory.glob("broker-*/server.log*")
    return any(_CONTROLLER_FAULT in log.read_text(errors="replace") for log in logs)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if OUTCOMES:
        terminalreporter.section("drills")
        for line in table(OUTCOMES):
            terminalreporter.write_line(line)

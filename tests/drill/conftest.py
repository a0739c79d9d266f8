"""The cluster of the drills, and the table of all of them at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.cluster import embedded as embedding
from tests.drill.harness import OUTCOMES, table
from tests.drill.reassignment_proxy import WatchingProxy


@pytest.fixture(scope="session")
def arena() -> Iterator[EmbeddedCluster]:
    """Four brokers in as many racks, behind a proxy that keeps every line of reassignment requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "RecordingProxy", WatchingProxy)
        with EmbeddedCluster.start(ClusterSpec(racks=("a", "b", "c", "d"), proxied=True), on_progress=print) as started:
            yield started


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if OUTCOMES:
        terminalreporter.section("drills")
        for line in table(OUTCOMES):
            terminalreporter.write_line(line)

"""One cluster as the demo wants it, and the demo's workload on it, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.cluster import ClusterSpec, EmbeddedCluster
from agent.demo.workload import Workload, demo_plan
from agent.demo.workload.scenes import DEMO_RACKS


@pytest.fixture(scope="package")
def demo_cluster() -> Iterator[EmbeddedCluster]:
    """Four brokers in the racks a, b, c, a."""
    with EmbeddedCluster.start(ClusterSpec(racks=DEMO_RACKS), on_progress=print) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def work(demo_cluster: EmbeddedCluster) -> Iterator[Workload]:
    """The demo's workload, settled."""
    with Workload.start(demo_cluster.bootstrap_servers, plan=demo_plan, on_progress=print) as workload:
        workload.wait_settled()
        yield workload

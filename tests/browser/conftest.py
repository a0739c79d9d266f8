"""The demo's cluster with an agent in mode execute, and a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from tests.browser.browsed_agent import BrowsedAgent, browsed_agent
from tests.browser.browser import chromium


# Of this package, not of the run: Playwright's event loop occupies the thread, and other tests have loops of their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def browsed(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowsedAgent]:
    with browsed_agent(demo_cluster, work, tmp_path_factory.mktemp("browsed")) as running:
        yield running

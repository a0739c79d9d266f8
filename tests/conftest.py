"""Clusters for tests: one shared by the whole run, others on demand, or a foreign one given by the environment.

`RACKWISE_TEST_BOOTSTRAP` names a foreign cluster; then tests marked `harm` are deselected unless
`RACKWISE_TEST_DRIVER=compose` says how its brokers may be stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from agent.cluster import ClusterSpec, EmbeddedCluster

BOOTSTRAP = "RACKWISE_TEST_BOOTSTRAP"

ClusterFactory = Callable[[ClusterSpec], EmbeddedCluster]


@pytest.fixture(scope="session")
def cluster() -> Iterator[EmbeddedCluster]:
    """Three brokers of the default version in racks a, b, c, with proxies; shared, so leave it as you found it."""
    with EmbeddedCluster.start(ClusterSpec(), on_progress=print) as started:
        yield started


@pytest.fixture
def cluster_factory() -> Iterator[ClusterFactory]:
    """Starts clusters of any spec; all are ended with the test."""
    with ExitStack() as stack:
        yield lambda spec: stack.enter_context(EmbeddedCluster.start(spec, on_progress=print))

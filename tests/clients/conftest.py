"""The demo's topics on the shared cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.cluster import EmbeddedCluster
from tests.clients.live import Lab, demo_topics


@pytest.fixture(scope="session")
def lab(embedded_cluster: EmbeddedCluster) -> Iterator[Lab]:
    made = demo_topics(embedded_cluster, "drop-in")
    try:
        yield made
    finally:
        made.close()

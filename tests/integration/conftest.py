"""The demo's scene for the end-to-end tests, and eyes on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agent.values.cycle import Cycle
from config.settings import Settings
from testbed.cluster import EmbeddedCluster
from testbed.demo.run import demo_settings
from testbed.demo.workload import ClusterWorkload
from tests.watching_agent import WatchingAgent

EyeOn = Callable[..., WatchingAgent]


@pytest.fixture
def scene_settings(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> Settings:
    """As the demo's agent has them."""
    return demo_settings(demo_cluster, work).settings


@pytest.fixture
def eye(scene_settings: Settings) -> Iterator[WatchingAgent]:
    """A fresh eye on the scene, which remembers nothing yet."""
    with WatchingAgent(scene_settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def still(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> Cycle:
    """One cycle on the scene while it does not change."""
    with WatchingAgent(demo_settings(demo_cluster, work).settings) as opened:
        return opened.look(planning=True)

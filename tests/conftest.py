"""Clusters for tests: one shared by the whole run, others on demand, or a foreign one given by the environment.

`RACKWISE_TEST_BOOTSTRAP` names a foreign cluster for the tests that only watch. Tests marked `harm` then need
`RACKWISE_TEST_DRIVER=compose`; without it they are deselected, and the header says so.
A test that uses one of these clusters is an integration test, whether it is marked or not.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.cluster.errors import ClusterError
from testbed.demo.workload import ClusterWorkload, demo_plan
from testbed.demo.workload.scenes import DEMO_RACKS
from tests.cluster.driver import BrokerDriver, ClusterDriver, ComposeDriver

# Quick and the same every time for each change; RACKWISE_TEST_HYPOTHESIS=night looks for more.
# No test says anything about time: a machine that is busy with brokers is slow.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", UNTIMED, derandomize=True)
settings.register_profile("night", UNTIMED, max_examples=5_000)
settings.load_profile(os.environ.get("RACKWISE_TEST_HYPOTHESIS", "quick"))

# A shell that runs this in the background has Ctrl-C ignored; what is started here is interrupted all the same.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BOOTSTRAP = "RACKWISE_TEST_BOOTSTRAP"
DRIVER = "RACKWISE_TEST_DRIVER"
COMPOSE_FILE = Path(__file__).resolve().parents[1] / "docker-compose.yml"
CLUSTER_FIXTURES = {"cluster", "embedded_cluster", "cluster_factory", "demo_cluster"}

ClusterFactory = Callable[[ClusterSpec], EmbeddedCluster]


@dataclass(frozen=True, slots=True)
class WatchedCluster:
    """A foreign cluster: it may be looked at."""

    bootstrap_servers: str
    brokers: Sequence[BrokerDriver] = ()

    def broker(self, broker_id: int) -> BrokerDriver:
        raise ClusterError(f"Broker {broker_id} is foreign", todo=f"Mark the test `harm`, or set {DRIVER}=compose.")


@pytest.fixture(scope="session")
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """Three brokers of the default version in racks a, b, c, with proxies. Shared: leave it as you found it."""
    with EmbeddedCluster.start(ClusterSpec(proxied=True), on_progress=print) as started:
        yield started


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> ClusterDriver | WatchedCluster:
    """The foreign cluster when one is named, else `embedded_cluster`; for tests that need no more than a driver."""
    if (foreign := os.environ.get(BOOTSTRAP)) is None:
        own: EmbeddedCluster = request.getfixturevalue("embedded_cluster")
        return own
    return ComposeDriver(COMPOSE_FILE) if _foreign_may_be_harmed() else WatchedCluster(foreign)


@pytest.fixture(scope="session")
def demo_cluster() -> Iterator[EmbeddedCluster]:
    """Four brokers in the racks a, b, c, a, with proxies. Shared: leave it as you found it."""
    with EmbeddedCluster.start(ClusterSpec(racks=DEMO_RACKS, proxied=True), on_progress=print) as started:
        yield started


@pytest.fixture(scope="session")
def work(demo_cluster: EmbeddedCluster) -> Iterator[ClusterWorkload]:
    """The demo's workload, settled. Shared: leave it as you found it."""
    with ClusterWorkload.start(demo_cluster.bootstrap_servers, plan=demo_plan, on_progress=print) as workload:
        workload.wait_settled()
        yield workload


@pytest.fixture
def cluster_factory() -> Iterator[ClusterFactory]:
    """Starts embedded clusters of any spec, also beside a foreign one; all are ended with the test."""
    with ExitStack() as stack:
        yield lambda spec: stack.enter_context(EmbeddedCluster.start(spec, on_progress=print))


@pytest.hookimpl(tryfirst=True)  # before `-m` is looked at, also in a worker process
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if CLUSTER_FIXTURES & set(getattr(item, "fixturenames", ())) or "integration" in item.path.parts:
            item.add_marker(pytest.mark.integration)
    # The workload takes its part of the machine: what needs no workload runs before there is one.
    # Instances that come and go are missed only when their sessions end, so applications are scaled out last of all.
    items.sort(
        key=lambda item: (
            "demo_cluster" in getattr(item, "fixturenames", ()),
            item.path.name == "test_scale_out.py",
        )
    )
    if BOOTSTRAP not in os.environ or _foreign_may_be_harmed():
        return
    harmful = [item for item in items if _harms_foreign(item)]
    if harmful:
        config.hook.pytest_deselected(items=harmful)
        items[:] = [item for item in items if item not in set(harmful)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """No cluster of ours starts in a test that is not marked: it would run in the lane of those without brokers."""
    marked = any(item.get_closest_marker(name) for name in ("integration", "drill"))
    _start.allowed = marked


class _Start:
    """`EmbeddedCluster.start`, for tests that are marked."""

    def __init__(self) -> None:
        self.allowed = True
        self._start = EmbeddedCluster.start

    def __call__(self, *arguments: Any, **named: Any) -> EmbeddedCluster:
        started = self._start(*arguments, **named)
        if not self.allowed:
            started.stop()
            pytest.fail("mark this test `integration`: it starts a cluster")
        return started


_start = _Start()
EmbeddedCluster.start = _start  # type: ignore[method-assign, assignment]


def pytest_report_header() -> list[str]:
    if BOOTSTRAP not in os.environ:
        return []
    may = "may be harmed through docker compose"
    may_not = f"is only watched: tests marked harm are deselected unless {DRIVER}=compose"
    return [f"cluster: {os.environ[BOOTSTRAP]}, which {may if _foreign_may_be_harmed() else may_not}"]


def _harms_foreign(item: pytest.Item) -> bool:
    return item.get_closest_marker("harm") is not None and "cluster" in getattr(item, "fixturenames", ())


def _foreign_may_be_harmed() -> bool:
    driver = os.environ.get(DRIVER)
    if driver not in (None, "compose"):
        raise pytest.UsageError(f"{DRIVER}={driver} is unknown: the only foreign driver is compose.")
    return driver == "compose"

"""The cluster of the drills, and the table of all of them at the end of the run."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.cluster import embedded as embedding
from tests.drill.harness import OUTCOMES, REPEATED, table
from tests.drill.reassignment_proxy import WatchingProxy

_CONTROLLER_FAULT = "Encountered quorum controller fault: registerBroker"
_FAULT_CHARS = 1_000
_AGAIN = "again"
"""Folder of a drill's second time."""


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
    return _sound_cluster(_arenas)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A drill that failed on a cluster whose controller met a fault of its own is done once more, on another one."""
    outcomes = len(OUTCOMES)
    try:
        return (yield)
    except Exception:
        given: dict[str, Any] = pyfuncitem.funcargs
        fault = _controller_fault(given["arena"]) if "arena" in given else None
        if fault is None or given["tmp_path"].name == _AGAIN:
            raise
        REPEATED.append(f"{pyfuncitem.name}: {fault}")
        del OUTCOMES[outcomes:]
        directory = given["tmp_path"] / _AGAIN
        directory.mkdir()
        given.update(arena=_sound_cluster(given["_arenas"]), tmp_path=directory)
        pyfuncitem.runtest()
        return True


def _sound_cluster(running: list[EmbeddedCluster]) -> EmbeddedCluster:
    """The one that runs; another one when its controller has met a fault of its own."""
    if running and _controller_fault(running[0]) is not None:
        running.pop().stop()
    if not running:
        spec = ClusterSpec(racks=("a", "b", "c", "d"), proxied=True)
        running.append(EmbeddedCluster.start(spec, on_progress=print))
    return running[0]


def _controller_fault(cluster: EmbeddedCluster) -> str | None:
    """What the controller's log says of it, with its cause."""
    for log in sorted(cluster.directory.glob("broker-*/server.log*")):
        _, found, rest = log.read_text(errors="replace").partition(_CONTROLLER_FAULT)
        if found:
            return found + " ".join(rest[:_FAULT_CHARS].splitlines()[:2])
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if OUTCOMES:
        terminalreporter.section("drills")
        for line in table(OUTCOMES):
            terminalreporter.write_line(line)
    if REPEATED:
        terminalreporter.write_line("done again on another cluster, as the controller of the first met a fault:")
        for line in REPEATED:
            terminalreporter.write_line(f"  {line}")

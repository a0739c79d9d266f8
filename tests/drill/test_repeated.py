"""A drill that Kafka's own fault spoiled is done again on another cluster; one that failed by itself is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.drill import conftest, harness

FAULT = (
    "ERROR Encountered quorum controller fault: registerBroker: event failed\njava.lang.RuntimeException: no topic\n at"
)


class Cluster:
    """What a drill's fixture asks of a cluster."""

    def __init__(self, directory: Path, log: str) -> None:
        self.directory = directory
        self.stopped = False
        (directory / "broker-1").mkdir(parents=True)
        (directory / "broker-1" / "server.log").write_text(log)

    def stop(self) -> None:
        self.stopped = True


class Drill:
    """What pytest keeps of a test; each of its runs ends as the next of ``ends`` says."""

    def __init__(self, arena: Cluster, directory: Path, ends: list[Exception | None]) -> None:
        self.name = "test_a_plan_survives[fault-1]"
        self.funcargs: dict[str, object] = {"arena": arena, "_arenas": [arena], "tmp_path": directory}
        self.used: list[object] = []
        self.ends = ends

    def runtest(self) -> object:
        self.used.append((self.funcargs["arena"], self.funcargs["tmp_path"]))
        hook = conftest.pytest_pyfunc_call(self)
        next(hook)
        harness.OUTCOMES.append(harness.Outcome("fault", 1, self.ends[0] is None, None, None))
        end = self.ends.pop(0)
        try:
            hook.send(True) if end is None else hook.throw(end)
        except StopIteration as done:
            return done.value
        raise AssertionError("the hook has no end")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of this run has none of it."""
    for name in ("OUTCOMES", "REPEATED"):
        fresh: list[object] = []
        for module in (conftest, harness):
            monkeypatch.setattr(module, name, fresh)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    """The cluster that starts next."""
    cluster = Cluster(tmp_path / "other", "INFO all is well")
    monkeypatch.setattr(conftest, "EmbeddedCluster", SimpleNamespace(start=lambda *_args, **_more: cluster))
    return cluster


def test_it_is_done_again_on_another_cluster(tmp_path: Path, other: Cluster) -> None:
    first = Cluster(tmp_path / "first", FAULT)
    drill = Drill(first, tmp_path, [AssertionError("not registered"), None])
    assert drill.runtest() is True
    assert drill.used == [(first, tmp_path), (other, tmp_path / "again")]
    assert first.stopped
    (told,) = harness.REPEATED
    assert told.startswith(f"{drill.name}: Encountered quorum controller fault: registerBroker")
    assert told.endswith("java.lang.RuntimeException: no topic"), "with its cause"


def test_another_cluster_does_not_help_twice(tmp_path: Path, other: Cluster) -> None:
    (other.directory / "broker-1" / "server.log").write_text(FAULT)
    drill = Drill(Cluster(tmp_path / "first", FAULT), tmp_path, [AssertionError("once"), AssertionError("twice")])
    with pytest.raises(AssertionError, match="twice"):
        drill.runtest()
    assert len(drill.used) == 2


def test_a_drill_that_failed_by_itself_has_failed(tmp_path: Path, other: Cluster) -> None:
    drill = Drill(Cluster(tmp_path / "first", "INFO all is well"), tmp_path, [AssertionError("a record is lost")])
    with pytest.raises(AssertionError, match="a record is lost"):
        drill.runtest()
    assert len(drill.used) == 1
    assert harness.REPEATED == []
    assert not other.stopped


@pytest.mark.usefixtures("other")
def test_the_outcome_of_the_first_time_does_not_count(tmp_path: Path) -> None:
    drill = Drill(Cluster(tmp_path / "first", FAULT), tmp_path, [AssertionError("not registered"), None])
    drill.runtest()
    assert [outcome.survived for outcome in harness.OUTCOMES] == [True]

"""Modules are loaded beside a look by one thread, which says nothing and is done before anything else is loaded."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from agent.cli import rates, running_agents, session
from agent.cli.running_agents import AgentReportQuery
from config.load import LoadedSettings, load_settings
from tests.builders import an_observation
from tests.cli.conftest import Record
from tests.command import ROOT


@pytest.fixture
def loaded() -> LoadedSettings:
    return load_settings(assignments=["kafka.bootstrap.servers=127.0.0.1:1"], environ={})


def test_a_module_that_cannot_be_loaded_is_not_told_by_the_thread(capfd: pytest.CaptureFixture[str]) -> None:
    running_agents.load_beside("agent.no_such_module").join()
    assert capfd.readouterr() == ("", "")


def test_a_look_is_over_once_all_is_loaded(loaded: LoadedSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, done = threading.Event(), []

    def load(_name: str) -> None:
        asked.wait(10)
        done.append("loaded")

    def observe(*_: object) -> object:
        asked.set()
        done.append("observed")
        return an_observation().at()

    monkeypatch.setattr("agent.cli.running_agents.import_module", load)
    monkeypatch.setattr("agent.observe.observe_cluster.observe", observe)
    with session.looking(loaded) as take:
        take()
        assert sorted(done) == ["loaded", "observed"]


@pytest.mark.parametrize("asking", [rates.AgentLookQuery, AgentReportQuery])
def test_what_a_thread_that_asks_for_telemetry_needs_is_loaded_before_it(
    loaded: LoadedSettings, monkeypatch: pytest.MonkeyPatch, asking: type[rates.AgentLookQuery | AgentReportQuery]
) -> None:
    told: list[str] = []
    monkeypatch.setattr("agent.cli.running_agents.import_module", told.append)
    monkeypatch.setattr(asking, "_ask", lambda _self: told.append("asked"))
    asking(loaded.settings)._asked.answer(10)
    assert told == ["agent.record.newest_look", "asked"]


FOREIGN = {
    "apscheduler", "cryptography", "fastapi", "networkx", "numpy", "ortools", "pandas", "pyspark",
    "rich", "starlette", "structlog", "uvicorn", "yaml",
}  # fmt: skip
"""What takes long to load and is of no use to a look without a problem to solve."""
OWN = {
    "agent.act", "agent.explain.doctor", "agent.execute.reassign.machine", "pipeline.maven", "testbed",
    "agent.execute.probing_decision", "agent.execute.probing_values", "agent.simulate.simulate",
    "agent.daemon.start", "agent.web",
}  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    """The modules that Python holds after it."""
    asked = f"import sys; {statement}; print(*sys.modules, file=sys.stderr)"
    return set(
        subprocess.run(
            [sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT
        ).stderr.split()
    )


def assert_only_what_is_used(loaded: set[str]) -> None:
    assert {name.partition(".")[0] for name in loaded} & FOREIGN == set()
    assert loaded & OWN == set()


def test_a_status_loads_nothing_that_it_does_not_use(record: Record) -> None:
    file = record(an_observation().topic("orders", (1, 2), (2, 3)))
    loaded = loaded_by(
        "from agent.cli.command_exit import run; "
        f"run(['status', '--replay', {str(file)!r}], debug=False, interruptible=False)"
    )
    assert "agent.simulate.evaluation" in loaded
    assert loaded & {"confluent_kafka", "kafka"} == set()
    assert_only_what_is_used(loaded)


def test_what_a_look_at_a_live_cluster_loads_is_used_by_it() -> None:
    loaded = loaded_by(
        "from agent.cli import options; from agent.cli.rates import AgentLookQuery; "
        "import agent.observe.observe_cluster; "
        "import agent.record.weights; import agent.record.running_agent; "
        "import agent.simulate.evaluation; import agent.cli.tables; "
        "options.settings(options.SettingsOptions(bootstrap='127.0.0.1:9092'))"
    )
    assert {"kafka", "confluent_kafka", "config.settings"} <= loaded
    assert_only_what_is_used(loaded)

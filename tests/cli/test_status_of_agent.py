"""What ``status`` tells of the running agent: by its newest report, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agent.cli import running_agents
from agent.cli.running_agents import AgentReportQuery, agent_line
from agent.loop import CycleStages, run_cycle
from agent.record.newest_look import TelemetryLine, runs_in_lines
from agent.telemetry.derived import derived_events, last_report
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines
from agent.values.cycle import AgentIdentity
from agent.values.limits import Limits, ScopeLimits
from agent.values.memory import Memory
from agent.values.observation import Observation, RawTopic
from agent.values.plan import ExecuteFault, ExecuteState
from config.settings import Settings
from tests.synthetic_cluster import synthetic_cluster

WORLD = synthetic_cluster(2)
WITH_TOPIC = replace(WORLD, topics=(*WORLD.topics, RawTopic("rackwise.telemetry", "id", False, (), None)))
CYCLE = run_cycle(CycleStages(Limits()), lambda: WORLD, WORLD, Memory(), number=1, name="l-1", planning=False)
HELD = ExecuteState(
    leads=True,
    plans=1,
    troubles={ExecuteFault.LOOK: "only one broker described the topics"},
    waits="no new batch: paused",
)


def report(
    monkeypatch: pytest.MonkeyPatch,
    acting: ExecuteState | None,
    observation: Observation = WITH_TOPIC,
    why: str = "",
    *,
    others: Iterable[TelemetryEvent] = (),
) -> Any:
    """What a command learns beside a look, where the telemetry holds that agent's cycle."""
    events = derived_events(replace(CYCLE, acting=acting), 0, full=False, agent=AgentIdentity("rw-1", "host-1"))
    told = [event for event in (*events, *others) if event.kind is EventKind.REPORT]
    lines = [TelemetryLine(line.encode()) for event in told for line in to_lines(event)]
    heard = () if why else runs_in_lines(lines, None, observation.taken_ms)
    monkeypatch.setattr("agent.record.newest_look.agents_in", lambda *_given, **_named: heard)
    return AgentReportQuery(Settings.model_validate({})).of(observation)


def test_an_agent_that_leads_is_told_with_what_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(WITH_TOPIC, taken_ms=WITH_TOPIC.taken_ms + 7_000)
    assert report(monkeypatch, HELD, later) == {
        "name": "rw-1",
        "host": "host-1",
        "mode": "propose",
        "leads": True,
        "acting": ["plans are not carried on: only one broker described the topics", "no new batch: paused"],
        "age_ms": 7_000,
        "pid": None,
        "stopped": False,
        "others": [],
    }


def test_an_agent_that_cannot_lead_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = report(monkeypatch, ExecuteState(leads=False, troubles={ExecuteFault.LEAD: "Topic authorization failed"}))
    assert (agent["leads"], agent["acting"]) == (False, ["this agent cannot lead: Topic authorization failed"])


@pytest.mark.parametrize(
    ("observation", "why"),
    [
        pytest.param(WORLD, "", id="there is no such topic"),
        pytest.param(WITH_TOPIC, "rackwise.telemetry holds no report", id="it holds no report"),
        pytest.param(replace(WITH_TOPIC, cluster_id="another"), "", id="it is of another cluster"),
    ],
)
def test_without_a_report_nothing_is_said_of_an_agent(
    monkeypatch: pytest.MonkeyPatch, observation: Observation, why: str
) -> None:
    assert report(monkeypatch, HELD, observation, why) is None


def test_a_report_that_does_not_come_is_waited_for_no_longer_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_agents, "REPORT_MS", 1)
    started = SimpleNamespace(start=lambda: None, join=lambda timeout: timeout)
    monkeypatch.setattr("agent.cli.running_agents.threading.Thread", lambda **_named: started)
    assert AgentReportQuery(Settings.model_validate({})).of(WITH_TOPIC) is None


@pytest.mark.parametrize(
    ("acting", "line"),
    [
        pytest.param(None, "rw-1 on host-1, mode propose, last report 0 s ago", id="a dry run"),
        pytest.param(HELD, "rw-1 on host-1, mode propose, leads, last report 0 s ago", id="the leader"),
        pytest.param(
            ExecuteState(leads=False), "rw-1 on host-1, mode propose, stands by, last report 0 s ago", id="another"
        ),
    ],
)
def test_the_line_of_the_table(monkeypatch: pytest.MonkeyPatch, acting: ExecuteState | None, line: str) -> None:
    look = SimpleNamespace(agent=report(monkeypatch, acting))
    assert agent_line(look.agent) == line
    assert agent_line(None) is None


def test_the_age_of_a_report_of_the_future_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an agent that stopped with a wrong clock it would be 0 s for years."""
    agent = report(monkeypatch, HELD, replace(WITH_TOPIC, taken_ms=WITH_TOPIC.taken_ms - 310_000))
    assert agent["age_ms"] is None
    line = agent_line(agent)
    assert line == "rw-1 on host-1, mode propose, leads, age unknown: its clock is ahead"
    near = report(monkeypatch, HELD, replace(WITH_TOPIC, taken_ms=WITH_TOPIC.taken_ms - 10_000))
    assert near["age_ms"] == 0


def test_a_dry_run_beside_the_leader_is_told_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = replace(WORLD, taken_ms=WORLD.taken_ms + 3_000)
    dry = run_cycle(
        CycleStages(Limits(scope=ScopeLimits(exclude_topics=("t",)))),
        lambda: seen,
        seen,
        Memory(),
        number=1,
        name="m-1",
        planning=False,
    )
    others = list(derived_events(dry, 0, full=False, agent=AgentIdentity("rw-2", "host-1", 12)))
    later = replace(WITH_TOPIC, taken_ms=WITH_TOPIC.taken_ms + 4_000)
    agent = report(monkeypatch, HELD, later, others=others)
    assert (agent["leads"], agent["age_ms"]) == (True, 4_000)
    assert [(one["pid"], one["mode"], one["same_settings"], one["age_ms"]) for one in agent["others"]] == [
        (12, "propose", False, 1_000)
    ]
    assert agent_line(agent) == (
        "rw-1 on host-1, mode propose, leads, last report 4 s ago; "
        "rw-2 on host-1, process 12, mode propose, last report 1 s ago; "
        "agents with different settings write to the same telemetry"
    )


def test_an_agent_that_was_stopped_neither_leads_nor_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sign-off is its last report; beside an agent that runs it is not counted."""
    later = replace(WITH_TOPIC, taken_ms=WITH_TOPIC.taken_ms + 78_000)
    cycle = run_cycle(CycleStages(Limits()), lambda: WORLD, WORLD, Memory(), number=1, name="i-1", planning=False)
    off = last_report(cycle, AgentIdentity("rw-1", "host-1"), WORLD.taken_ms + 2_000)
    agent = report(monkeypatch, HELD, later, others=[off])
    assert (agent["stopped"], agent["leads"], agent["acting"], agent["age_ms"]) == (True, None, [], 76_000)
    assert agent_line(agent) == "rw-1 on host-1, mode propose, stopped 76 s ago"
    other = run_cycle(CycleStages(Limits()), lambda: WORLD, WORLD, Memory(), number=1, name="m-1", planning=False)
    runs = list(derived_events(other, 0, full=False, agent=AgentIdentity("rw-2", "host-1", 12)))
    beside = report(monkeypatch, HELD, later, others=[off, *runs])
    assert agent_line(beside) == "rw-2 on host-1, mode propose, last report 78 s ago"

"""Which of several agents that write to one telemetry topic leads, and which of them still run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.daemon.start import record_plan
from agent.loop import CycleStages, run_cycle
from agent.record.newest_look import WINDOW_MS, AgentRun, TelemetryLine, agent_runs, runs_in_lines
from agent.telemetry.derived import derived_events
from agent.telemetry.events import EventKind, to_lines
from agent.values.cycle import AgentIdentity
from agent.values.limits import AgentMode, Limits
from agent.values.memory import Memory
from agent.values.plan import ExecuteState
from config.settings import Settings
from tests.record.test_newest_look import Topic
from tests.synthetic_cluster import synthetic_cluster

WORLD = synthetic_cluster(2)
DAY_S = 86_400
YEARS_S = 10 * 365 * DAY_S


def reports(
    instance: str,
    pid: int,
    *at_s: int,
    mode: AgentMode = AgentMode.PROPOSE,
    leads: bool | None = None,
    poll_ms: int | None = None,
) -> list[Any]:
    """Reports of one run of agent rw-1, at seconds by its clock."""
    found = []
    for number, second in enumerate(at_s):
        seen = replace(WORLD, taken_ms=WORLD.taken_ms + second * 1_000)
        look = f"{instance}-{number}"
        cycle = run_cycle(
            CycleStages(Limits(mode=mode)),
            lambda seen=seen: seen,
            seen,
            Memory(),
            number=number,
            name=look,
            planning=False,
        )
        cycle = replace(cycle, acting=None if leads is None else ExecuteState(leads=leads))
        found += [
            event
            for event in derived_events(cycle, 0, full=False, agent=AgentIdentity("rw-1", "kafka-1", pid, poll_ms))
            if event.kind is EventKind.REPORT
        ]
    return found


def heard(*events: Any, now_s: int = DAY_S) -> tuple[AgentRun, ...]:
    """In the order in which they were written."""
    lines = [TelemetryLine(line.encode()) for event in events for line in to_lines(event)]
    return runs_in_lines(lines, None, WORLD.taken_ms + now_s * 1_000)


def instances(found: tuple[AgentRun, ...]) -> list[str]:
    return [one.instance for one in found]


LEADER = reports("aa", 11, 0, 30, 60, mode=AgentMode.EXECUTE, leads=True)
SLOW = reports("aa", 11, 0, mode=AgentMode.EXECUTE, leads=True, poll_ms=180_000)
"""A leader that looks every three minutes."""


def test_the_leader_comes_first_though_a_dry_run_writes_more_often() -> None:
    leader = reports("aa", 11, 0, 30, mode=AgentMode.EXECUTE, leads=True)
    first, other = heard(*leader, *reports("bb", 12, *range(0, 40, 2)))
    assert (first.instance, first.report.mode, first.report.leads) == ("aa", "execute", True)
    assert first.name == "agent rw-1 on host kafka-1, process 11"
    assert other.name == "agent rw-1 on host kafka-1, process 12"
    assert first.report.limits_digest != other.report.limits_digest


@pytest.mark.parametrize(
    ("events", "running"),
    [
        pytest.param(
            (*reports("aa", 1, 0, 10, mode=AgentMode.EXECUTE, leads=True),
             *reports("bb", 2, 12, mode=AgentMode.EXECUTE, leads=False)),
            ["bb"], id="an agent that was started again has one run",
        ),
        pytest.param(
            (*reports("aa", 1, 0, 10, mode=AgentMode.EXECUTE, leads=True), *reports("bb", 2, 12, 14)),
            ["aa", "bb"], id="a dry run ends no leader",
        ),
        pytest.param((*reports("aa", 1, 0), *reports("bb", 2, WINDOW_MS // 1_000 + 1)), ["bb"], id="long silent"),
        pytest.param(
            (*reports("bb", 2, 10, mode=AgentMode.EXECUTE, leads=False), *reports("aa", 1, 0, 20)), ["bb", "aa"],
            id="mode execute comes before the newest",
        ),
    ],
)  # fmt: skip
def test_runs_that_have_ended_do_not_count(events: tuple[Any, ...], running: list[str]) -> None:
    assert instances(heard(*events)) == running


def test_a_leader_behind_many_reports_of_another_agent_is_found_in_the_topic() -> None:
    leader = reports("aa", 11, 0, mode=AgentMode.EXECUTE, leads=True)
    (one,) = reports("bb", 12, 0)
    many = [one._replace(look=f"bb-{number}", taken_ms=one.taken_ms + number * 100) for number in range(600)]
    found = agent_runs(Topic([], [*leader, *many], []), None)  # type: ignore[arg-type] # reads as the reader does
    assert [each.instance for each in found] == ["aa", "bb"]


@pytest.mark.parametrize("ahead_s", [300, YEARS_S])
def test_a_dry_run_whose_clock_is_ahead_puts_no_leader_out(ahead_s: int) -> None:
    first, other = heard(*LEADER, *reports("bb", 12, 61 + ahead_s), now_s=65)
    assert (first.instance, first.report.leads, first.ahead_ms) == ("aa", True, 0)
    assert (other.instance, other.newest_ms - first.newest_ms) == ("bb", 5_000), "a time of the future counts as now"
    assert other.ahead_ms == (ahead_s - 4) * 1_000


def test_a_leader_counts_for_three_of_its_looks() -> None:
    assert instances(heard(*SLOW, *reports("bb", 12, 130))) == ["aa", "bb"]
    assert instances(heard(*SLOW, *reports("bb", 12, *range(0, 540, 10)))) == ["aa", "bb"]
    assert instances(heard(*SLOW, *reports("bb", 12, 541))) == ["bb"]


def test_an_agent_that_stopped_with_its_clock_in_the_future_ends_once_another_writes_on() -> None:
    """What the other has written since says for how long, by its own clock."""
    stopped = reports("aa", 11, YEARS_S, mode=AgentMode.EXECUTE, leads=True)
    assert instances(heard(*stopped, *reports("bb", 12, *range(0, 120, 10)), now_s=120)) == ["aa", "bb"]
    assert instances(heard(*stopped, *reports("bb", 12, *range(0, 140, 10)), now_s=140)) == ["bb"]


def test_of_two_that_say_that_they_lead_the_one_with_a_possible_clock_comes_first() -> None:
    stopped = reports("aa", 11, YEARS_S, mode=AgentMode.EXECUTE, leads=True)
    before, after = (reports("bb", 12, second, mode=AgentMode.EXECUTE, leads=True) for second in (10, 20))
    assert instances(heard(*before, *stopped, *after, now_s=30)) == ["bb", "aa"]


def test_a_clock_that_was_set_back_is_right_from_then_on() -> None:
    (one,) = heard(*reports("aa", 11, YEARS_S, 20), now_s=30)
    assert (one.ahead_ms, one.newest_ms - WORLD.taken_ms) == (0, 20_000)


def test_a_report_is_as_old_as_the_broker_says_where_the_topic_has_its_time() -> None:
    (event,) = reports("aa", 11, YEARS_S)
    lines = [TelemetryLine(line.encode(), WORLD.taken_ms) for line in to_lines(event)]
    (one,) = runs_in_lines(lines, None, WORLD.taken_ms + 7_000)
    assert (one.newest_ms, one.ahead_ms) == (WORLD.taken_ms, 0)


def test_a_leader_that_looks_seldom_is_found_behind_one_whose_clock_jumps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many minutes of a dry run lie between; one of its records is of the future."""
    monkeypatch.setattr("agent.record.newest_look.wall_ms", lambda: WORLD.taken_ms + 310_000)
    many = reports("bb", 12, *range(300))
    topic = Topic([], [*SLOW, *many, *reports("bb", 12, YEARS_S)], [])
    found = agent_runs(topic, None)  # type: ignore[arg-type] # reads as the reader does
    assert instances(found) == ["aa", "bb"]


def test_an_agents_reports_get_the_brokers_time_and_say_how_often_it_looks() -> None:
    plan = record_plan(Settings.model_validate({"poll": {"interval": "3m"}}))
    assert plan.poll_ms == 180_000
    assert plan.telemetry is not None
    assert dict(plan.telemetry.configs)["message.timestamp.type"] == "LogAppendTime"

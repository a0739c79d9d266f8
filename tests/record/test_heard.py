"""Which of several agents that write to one telemetry topic leads, and which of them still run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.loop import Line, run_cycle
from agent.record.heard import WINDOW_MS, Heard, heard_in, heard_of
from agent.telemetry.derived import Teller, derived_events
from agent.telemetry.events import Kind, to_lines
from agent.values.limits import Limits, Mode
from agent.values.memory import Memory
from agent.values.progress import ActingNow
from tests.record.test_newest_look import Topic
from tests.world import a_world

WORLD = a_world(2)


def reports(instance: str, pid: int, *at_s: int, mode: Mode = Mode.PROPOSE, leads: bool | None = None) -> list[Any]:
    """Reports of one run of agent rw-1, at seconds."""
    found = []
    for number, second in enumerate(at_s):
        seen = replace(WORLD, taken_ms=WORLD.taken_ms + second * 1_000)
        look = f"{instance}-{number}"
        cycle = run_cycle(
            Line(Limits(mode=mode)), lambda seen=seen: seen, seen, Memory(), number=number, name=look, planning=False
        )
        cycle = replace(cycle, acting=None if leads is None else ActingNow(leads=leads))
        found += [
            event
            for event in derived_events(cycle, 0, full=False, teller=Teller("rw-1", "kafka-1", pid))
            if event.kind is Kind.REPORT
        ]
    return found


def heard(*events: Any) -> tuple[Heard, ...]:
    return heard_in([line.encode() for event in events for line in to_lines(event)], None)


def test_the_leader_comes_first_though_a_dry_run_writes_more_often() -> None:
    leader = reports("aa", 11, 0, 30, mode=Mode.EXECUTE, leads=True)
    first, other = heard(*leader, *reports("bb", 12, *range(0, 40, 2)))
    assert (first.instance, first.report.mode, first.report.leads) == ("aa", "execute", True)
    assert first.name == "agent rw-1 on host kafka-1, process 11"
    assert other.name == "agent rw-1 on host kafka-1, process 12"
    assert first.report.limits_digest != other.report.limits_digest


@pytest.mark.parametrize(
    ("events", "instances"),
    [
        pytest.param(
            (*reports("aa", 1, 0, 10, mode=Mode.EXECUTE, leads=True),
             *reports("bb", 2, 12, mode=Mode.EXECUTE, leads=False)),
            ["bb"], id="an agent that was started again has one run",
        ),
        pytest.param(
            (*reports("aa", 1, 0, 10, mode=Mode.EXECUTE, leads=True), *reports("bb", 2, 12, 14)),
            ["aa", "bb"], id="a dry run ends no leader",
        ),
        pytest.param((*reports("aa", 1, 0), *reports("bb", 2, WINDOW_MS // 1_000 + 1)), ["bb"], id="long silent"),
        pytest.param(
            (*reports("aa", 1, 0, 20), *reports("bb", 2, 10, mode=Mode.EXECUTE, leads=False)), ["bb", "aa"],
            id="mode execute comes before the newest",
        ),
    ],
)  # fmt: skip
def test_runs_that_have_ended_do_not_count(events: tuple[Any, ...], instances: list[str]) -> None:
    assert [one.instance for one in heard(*events)] == instances


def test_a_leader_behind_many_reports_of_another_agent_is_found_in_the_topic() -> None:
    leader = reports("aa", 11, 0, mode=Mode.EXECUTE, leads=True)
    (one,) = reports("bb", 12, 0)
    many = [one._replace(look=f"bb-{number}", taken_ms=one.taken_ms + number * 100) for number in range(600)]
    found = heard_of(Topic([], [*leader, *many], []), None)  # type: ignore[arg-type] # reads as the reader does
    assert [each.instance for each in found] == ["aa", "bb"]

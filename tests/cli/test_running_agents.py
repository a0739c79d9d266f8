"""Commands that look judge with what only the running agent is set to or remembers, as its telemetry tells."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli import rates, running_agents
from agent.loop import CycleStages, run_cycle
from agent.record import newest_look
from agent.telemetry.derived import derived_events, last_report
from agent.telemetry.events import to_lines
from agent.values.cycle import AgentIdentity
from agent.values.limits import GroupLimits, Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from tests.builders import Answers, Run, an_observation, instance
from tests.cli.conftest import Run as Command
from tests.recorded_looks import observation_to_events

MIN_TRAFFIC = Limits(groups={"shop": GroupLimits(rack_aware_assignment_strategy="min_traffic", known=True)})
BY_AGENT = "settings of groups: by the running agent (agent rw-1 on host kafka-host, 8 s ago)"
LINE = "rack.aware.assignment.strategy"


def shop() -> Answers:
    topics = an_observation(a=(1,), b=(2,)).topic("orders", (1,), (2,))
    return topics.streams("shop", instance(1, "a", {"0_1": "orders-1"}), instance(2, "b", {"0_0": "orders-0"}))


def without_3() -> Answers:
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("t", (3, 1), isr={0: (1,)})
    return answers.broker(3, "c", fenced=True)


def earlier(observation: Observation, seconds: int) -> Observation:
    ms = seconds * 1_000
    return replace(observation, taken_ms=observation.taken_ms - ms, monotonic_ms=observation.monotonic_ms - ms)


Look = Callable[..., tuple[str, ...]]


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """The options of a command that looks at a cluster, beside whose telemetry of an agent lies in a file."""
    monkeypatch.setattr(running_agents, "READ_MS", 100)
    monkeypatch.setattr(running_agents, "REPORT_MS", 100)
    asked = newest_look.newest_look
    monkeypatch.setattr(newest_look, "newest_look", lambda *of, **how: asked(*of, **{**how, "timeout_ms": 100}))
    file = tmp_path / "telemetry.jsonl"

    def write(
        now: Observation, limits: Limits, memory: Memory | None = None, *, age_s: int = 8, stopped: bool = False
    ) -> tuple[str, ...]:
        monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: now)
        then = earlier(now, age_s)
        before = memory or Memory()
        cycle = run_cycle(CycleStages(limits), lambda: then, then, before, number=1, name="i-1", planning=True)
        inputs = list(observation_to_events(then, before, limits, look="i-1"))
        events = (*inputs, *derived_events(cycle, len(inputs), full=True, agent=AgentIdentity("rw-1", "kafka-host")))
        if stopped:
            events = (*events, last_report(cycle, AgentIdentity("rw-1", "kafka-host"), now.taken_ms - 1_000))
        file.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
        return "--set", "weights.enabled=false", "--set", f"record.file={file}", "-b", "127.0.0.1:1", "-o", "json"

    return write


@pytest.mark.parametrize("command", ["status", "doctor", "plan"])
def test_groups_are_judged_with_the_settings_of_the_agent_that_runs(here: Command, look: Look, command: str) -> None:
    done = here(command, *look(shop().at(), MIN_TRAFFIC))
    assert BY_AGENT in done.stderr.splitlines()
    assert f"{LINE} is none" not in done.stdout
    assert f"{LINE}=min_traffic" not in done.stdout, "the fix is in place"


def test_top_judges_with_them_too(here: Command, look: Look) -> None:
    *options, _form, _json = look(shop().at(), MIN_TRAFFIC)
    assert BY_AGENT in here("top", "--count", "1", *options).stderr.splitlines()


@pytest.mark.parametrize(
    ("age_s", "own", "says"),
    [
        pytest.param(3_600, (), None, id="the agent has stopped"),
        pytest.param(
            8,
            ("--set", f"{LINE}=none"),
            "settings of groups: by this command; those of the running agent differ (agent rw-1 on host kafka-host, "
            "8 s ago)",
            id="the command has its own",
        ),
    ],
)
def test_otherwise_with_those_of_the_command(
    here: Command, look: Look, age_s: int, own: tuple[str, ...], says: str | None
) -> None:
    done = here("status", *look(shop().at(), MIN_TRAFFIC, age_s=age_s), *own)
    told = [line for line in done.stderr.splitlines() if line.startswith("settings of groups")]
    assert told == ([says] if says else [])
    assert f"{LINE} is none" in done.stdout


def test_an_agent_that_has_signed_off_is_not_the_running_one(here: Command, look: Look) -> None:
    """A second after its end: by the age of its last look it would still be taken for running."""
    done = here("status", *look(shop().at(), MIN_TRAFFIC, stopped=True))
    assert "settings of groups" not in done.stderr
    assert f"{LINE} is none" in done.stdout
    explained = here("explain", *look(shop().at(), MIN_TRAFFIC, stopped=True), "group/shop")
    assert "no running agent's telemetry (it stopped 1 s ago): judged with the settings given here" in explained.stderr


@pytest.mark.parametrize("command", ["status", "doctor", "plan"])
def test_an_agent_that_is_not_read_in_time_is_said_to_be_left_out(
    here: Command, look: Look, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    never = threading.Event()
    monkeypatch.setattr(rates, "AGENT_MS", 10)
    monkeypatch.setattr(running_agents, "read", lambda *_: never.wait(20))
    done = here(command, *look(shop().at(), MIN_TRAFFIC))
    never.set()
    late = "settings of groups: by this command; those of a running agent were not read within 0.01 s"
    assert late in done.stderr.splitlines()
    assert f"{LINE} is none" in done.stdout or f"{LINE}=min_traffic" in done.stdout


def test_the_same_settings_need_no_line(here: Command, look: Look) -> None:
    assert "settings of groups" not in here("status", *look(shop().at(), Limits())).stderr


def test_an_agent_of_another_cluster_does_not_count(here: Command, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    given = look(shop().at(), MIN_TRAFFIC)
    elsewhere = replace(shop().at(), cluster_id="another")
    monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: elsewhere)
    assert "settings of groups" not in here("status", *given).stderr


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_since_when_a_broker_is_absent_is_known_from_the_agent(here: Command, look: Look, command: str) -> None:
    now = without_3().at(2_000)
    memory = Run().look(earlier(now, 428)).look(earlier(now, 68)).memory
    done = here(command, *look(now, Limits(), memory))
    assert "broker 3 has been fenced for at least 7 min" in done.stdout
    assert "since when is unknown" not in done.stdout
    unknown = here(command, *look(now, Limits(), memory, age_s=3_600))
    assert "since when is unknown" in unknown.stdout, "an agent that stopped does not know of its return in between"


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_an_absence_that_the_agents_memory_has_not_yet_is_bounded_by_when_it_saw_the_broker(
    here: Command, look: Look, command: str
) -> None:
    """The agent has looked twice without it by now; what it wrote in full last is the look before."""
    now = without_3().at(2_000)
    there = an_observation(a=(1,), b=(2,), c=(3,)).topic("t", (3, 1)).at(2_000)
    done = here(command, *look(now, Limits(), Run().look(earlier(there, 48)).memory))
    assert "broker 3 is fenced now, and was live 48 s ago, as the running agent saw it" in done.stdout


def test_an_absent_broker_of_a_rack_that_was_never_seen_is_among_the_racks(here: Command, look: Look) -> None:
    """It holds no replica, so only the agent that has seen it knows of it."""
    now = an_observation(a=(1,), b=(2,)).topic("t", (1, 2)).at(2_000)
    there = an_observation(a=(1,), b=(2,), _=(9,)).topic("t", (1, 2)).at(2_000)
    memory = Run().look(earlier(there, 500)).look(earlier(now, 428)).look(earlier(now, 68)).memory
    *_, row = here("racks", *look(now, Limits(), memory)).json
    assert (row["rack"], row["brokers"], row["absent_brokers"]) == (None, [9], [9])
    (absence,) = row["absences"]
    assert absence == {"broker": 9, "for_ms": 428_000, "sentence": "broker 9 has been absent for at least 7 min"}
    *options, _json = look(now, Limits(), memory)
    table = here("racks", *options, "table").stdout
    assert "9 (absent)" in table
    assert "(unknown): broker 9 has been absent for at least 7 min" in table


def test_a_plan_waits_for_an_absent_broker_as_the_agent_does(here: Command, look: Look) -> None:
    now = without_3().at(2_000)
    memory = Run().look(earlier(now, 428)).look(earlier(now, 68)).memory
    assert "nothing is moved because of it until" in here("plan", *look(now, Limits(), memory)).stderr

"""The agent as a process: every run, skip and overrun is an event, an error ends a cycle and not the agent.

The cluster is a function here: a real one cannot be made to answer late, wrongly or never at will.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from agent.daemon import daemon
from agent.daemon.daemon import AgentDaemon, LoopPace
from agent.daemon.schedule import plan_trigger
from agent.errors import LOOKS, ClusterUnreachable, ConfigError, ThreadRule, WrongCluster
from agent.loop import CycleStages
from agent.record.files import read_events
from agent.record.own_topics import OwnTopic
from agent.record.recorder import CycleRecorder, RecordPlan
from agent.values.clock import ClockReading, system_clock
from agent.values.limits import AgentMode, Limits
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.web.agent_view import live, ready
from tests.synthetic_cluster import synthetic_cluster

WORLD = synthetic_cluster(3)
Events = list[Any]


@pytest.fixture
def events() -> Iterator[Events]:
    structlog.reset_defaults()
    with capture_logs() as captured:
        yield captured


def an_agent(
    look: Callable[[], Observation], path: Path | None = None, *, mode: AgentMode = AgentMode.PROPOSE, **pace: Any
) -> AgentDaemon:
    pace.setdefault("poll_ms", 1_000)
    pace.setdefault("plan_ms", 60_000)
    return AgentDaemon(
        look=look,
        stages=CycleStages(Limits(mode=mode)),
        recorder=CycleRecorder(RecordPlan(file=path), {}),
        pace=LoopPace(**pace),
    )


@contextmanager
def stopped_after(agent: AgentDaemon, until: Callable[[], bool], within_s: float = 20.0) -> Iterator[None]:
    """Stops the agent, which runs in this thread, once something is true."""

    def watch() -> None:
        end = time.monotonic() + within_s
        while not until() and time.monotonic() < end:
            time.sleep(0.02)
        agent.stop()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def ended(rule: ThreadRule) -> None:
    """Wait for the end of every thread of that kind."""
    for thread in threading.enumerate():
        if thread.name == rule.name:
            thread.join(20)
            assert not thread.is_alive()


def named(events: Events, name: str) -> Events:
    return [event for event in events if event["event"] == name]


def test_it_looks_on_schedule_and_plans_at_once_and_then_as_its_own_schedule_says(
    events: Events, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    agent = an_agent(lambda: WORLD, path, plan_ms=60_000)
    with stopped_after(agent, lambda: agent.watch.state.succeeded >= 3):
        assert agent.run() == 0
    cycles = named(events, "cycle")
    assert [event["cycle"] for event in cycles] == [1, 2, 3]
    assert [event["planned"] for event in cycles] == [True, False, False]
    assert cycles[0]["sentence"].startswith("saw 12 brokers in 3 racks, 3 topics and 3 groups; ")
    late = {"cycle_overrun", "look_skipped"}  # as a busy machine may have it
    told = [event["event"] for event in events if event["event"] not in late]
    assert told == ["own_topics", "restored", "cycle", "finding", "proposals", "cycle", "cycle", "stopped"]
    (finding,) = named(events, "finding")
    assert (finding["log_level"], finding["finding"]) == ("warning", cycles[0]["new_findings"][0])
    assert finding["sentence"].startswith("group/")
    assert len({event.look for event in read_events(path) if not event.data.get("stopped")}) == 3
    state = agent.watch.state
    assert (state.succeeded, state.failed, state.stopping) == (3, 0, True)


def test_it_says_which_topics_it_creates_before_it_does_and_which_right_it_lacks(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str], Events]] = []

    class Refuses:
        def __init__(self, _config: object) -> None: ...

        def create_topics(self, topics: list[Any], **_options: float) -> dict[str, Future[None]]:
            asked.append(([topic.topic for topic in topics], named(events, "own_topics")))
            refused: Future[None] = Future()
            refused.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
            return {topic.topic: refused for topic in topics}

    monkeypatch.setattr("agent.record.own_topics.AdminClient", Refuses)
    topic = OwnTopic(
        name="rackwise.telemetry", partitions=6, replication_factor=3, min_insync_replicas=2, cleanup_policy="delete",
        retention_ms=86_400_000,
    )  # fmt: skip
    plan = RecordPlan(telemetry=topic)
    agent = AgentDaemon(
        look=lambda: WORLD,
        stages=CycleStages(Limits()),
        recorder=CycleRecorder(plan, {"bootstrap.servers": "127.0.0.1:1"}),
        pace=LoopPace(),
        own_topics=plan.topics,
    )
    agent.once()
    agent.once()
    agent.close(0)
    ((names, said),) = asked
    assert names == ["rackwise.telemetry"]
    (event,) = said
    assert event["creates"] == names
    assert event["sentence"].startswith("creates rackwise.telemetry (6 partitions, replication factor 3,")
    (missing,) = named(events, "own_topic_missing")
    assert missing["sentence"] == (
        "topic rackwise.telemetry: it could not be created: Broker: Topic authorization failed; "
        "grant CREATE on the topic or on the cluster"
    )
    assert len(named(events, "own_topics")) == 1


def test_what_it_creates_is_said_by_the_first_look_that_shows_it(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that starts in an outage sees too little at first."""
    monkeypatch.setattr("agent.record.own_topics.OwnTopics._create", lambda *_: None)
    topic = OwnTopic(
        name="rackwise.telemetry", partitions=1, replication_factor=3, min_insync_replicas=2, cleanup_policy="delete",
        retention_ms=86_400_000,
    )  # fmt: skip
    hidden = replace(WORLD, topics=(), gaps=(Gap(ObservationPart.TOPICS, GapCause.TIMED_OUT, "", "no answer"),))
    looks = iter([hidden, hidden, WORLD, WORLD])
    plan = RecordPlan(telemetry=topic)
    agent = AgentDaemon(
        look=lambda: next(looks, WORLD), stages=CycleStages(Limits()),
        recorder=CycleRecorder(plan, {"bootstrap.servers": "127.0.0.1:1"}), pace=LoopPace(), own_topics=plan.topics,
    )  # fmt: skip
    for _ in range(4):
        agent._cycle(planning=False)
    agent.close(0)
    before, then = (event["sentence"] for event in named(events, "own_topics"))
    assert before == "creates no topic before the brokers list topics; needs rackwise.telemetry"
    assert then.startswith("creates rackwise.telemetry (1 partition, replication factor 3,")


def test_an_agent_that_writes_no_topic_says_that_it_creates_none(events: Events) -> None:
    agent = an_agent(lambda: WORLD)
    agent.once()
    assert [event["sentence"] for event in named(events, "own_topics")] == [
        "creates no topic: the settings publish none"
    ]
    assert named(events, "own_topic_missing") == []


def test_a_planning_on_a_short_interval_comes_again(events: Events) -> None:
    agent = an_agent(lambda: WORLD, plan_ms=1_000)
    with stopped_after(agent, lambda: len(named(events, "cycle")) >= 3):
        agent.run()
    assert [event["planned"] for event in named(events, "cycle")][:2] == [True, True]


def test_a_look_that_is_due_while_one_is_running_is_skipped_and_told(events: Events) -> None:
    release = threading.Event()

    def slow() -> Observation:
        release.wait(15)
        return WORLD

    agent = an_agent(slow)
    with stopped_after(agent, lambda: bool(named(events, "cycle_overrun"))):
        threading.Timer(2.6, release.set).start()
        agent.run()
    skipped = named(events, "look_skipped")
    assert skipped[0]["sentence"] == "look skipped: cycle 1 is still running"
    assert agent.watch.state.skipped == len(skipped) >= 2
    (overrun,) = named(events, "cycle_overrun")
    assert overrun["took_ms"] > overrun["poll_ms"] == 1_000
    assert agent.watch.state.overran == 1


def test_an_unreachable_cluster_ends_the_cycle_and_the_planning_is_made_up_for(events: Events) -> None:
    answers: list[Observation | Exception] = [
        ClusterUnreachable("no broker answers", why="a:1 refused the connection", todo="Start it."), WORLD,
    ]  # fmt: skip

    def look() -> Observation:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    agent = an_agent(look)
    with stopped_after(agent, lambda: agent.watch.state.succeeded >= 1):
        agent.run()
    (failed,) = named(events, "cycle_failed")
    assert failed["sentence"] == "cycle 1 failed: no broker answers: a:1 refused the connection. Start it."
    assert failed["exc_info"] is None, "what is expected needs no traceback"
    assert named(events, "cycle")[0]["planned"] is True
    assert agent.watch.state.failed == 1
    assert agent.watch.state.failure is None


def test_a_fault_of_its_own_ends_the_cycle_only_and_is_logged_with_its_traceback(events: Events) -> None:
    looks = iter([RuntimeError("boom")])

    def look() -> Observation:
        for error in looks:
            raise error
        return WORLD

    agent = an_agent(look)
    with stopped_after(agent, lambda: agent.watch.state.succeeded >= 1):
        assert agent.run() == 0
    (failed,) = named(events, "cycle_failed")
    assert isinstance(failed["exc_info"], RuntimeError)
    assert failed["sentence"] == "cycle 1 failed: internal error of rackwise (RuntimeError: boom); report it"


def test_a_fatal_error_ends_the_agent(events: Events) -> None:
    def look() -> Observation:
        raise WrongCluster("this is cluster x", why="cluster.id is y", todo="Correct one of them.")

    with pytest.raises(WrongCluster):
        an_agent(look).run()
    assert len(named(events, "cycle_failed")) == len(named(events, "stopped")) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_time_though_a_look_hangs(events: Events, number: signal.Signals) -> None:
    began, answers = threading.Event(), threading.Event()

    def hangs() -> Observation:
        began.set()
        answers.wait(60)
        return WORLD

    agent = an_agent(hangs)
    before = signal.getsignal(number)
    sent: list[float] = []

    def send() -> None:
        began.wait(20)
        sent.append(time.monotonic())
        signal.raise_signal(number)

    threading.Thread(target=send, daemon=True).start()
    try:
        assert agent.run() == 0
        assert time.monotonic() - sent[0] < 5.0
        assert named(events, "cycle_abandoned")[0]["sentence"] == "cycle 1 did not end within the time for shutdown"
        assert signal.getsignal(number) == before, "the handlers are given back"
    finally:
        answers.set()
        ended(LOOKS)


def test_a_cycle_that_is_running_is_finished_and_recorded_before_the_end(events: Events, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    began = threading.Event()

    def slow() -> Observation:
        began.set()
        time.sleep(0.5)
        return WORLD

    agent = an_agent(slow, path, poll_ms=60_000)
    with stopped_after(agent, began.is_set):
        agent.run()
    told = [event["event"] for event in events]
    assert told == ["own_topics", "restored", "cycle", "finding", "proposals", "stopped"]
    assert [event.kind.value for event in read_events(path)][-1] == "report"


def test_its_last_record_says_that_it_was_stopped(tmp_path: Path) -> None:
    agent = an_agent(lambda: WORLD, tmp_path / "t.jsonl")
    agent.once()
    agent.close()
    *before, last = read_events(tmp_path / "t.jsonl")
    assert (before[-1].kind.value, before[-1].data["stopped"]) == ("report", False)
    assert (last.kind.value, last.data["stopped"], last.data["full"]) == ("report", True, False)
    assert last.look.rpartition("-")[2] == "2", "no look of that number comes"
    never = an_agent(lambda: WORLD, tmp_path / "none.jsonl")
    never.close()
    assert not (tmp_path / "none.jsonl").exists()


def test_over_its_memory_ceiling_it_ends_with_seven(events: Events) -> None:
    agent = an_agent(lambda: WORLD, memory_ceiling_bytes=1)
    assert agent.run() == 7
    assert "above process.memory_ceiling (1 B)" in named(events, "memory_ceiling")[0]["sentence"]


def test_a_wall_clock_that_is_set_back_does_not_stop_the_looks(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library goes by the wall clock: set back by a day, its next look would come in a day."""
    agent = an_agent(lambda: WORLD)
    monkeypatch.setattr(daemon, "_LATE_LOOKS", 1.2)

    def set_back() -> bool:
        if agent.watch.state.succeeded == 1:
            scheduler = agent._schedule._scheduler
            job = scheduler.get_job("look")
            scheduler.modify_job("look", next_run_time=job.next_run_time.replace(year=job.next_run_time.year + 1))
        return agent.watch.state.succeeded >= 2

    with stopped_after(agent, set_back):
        agent.run()
    assert agent.watch.state.succeeded >= 2
    assert named(events, "clock_jumped")


def after(at: ClockReading, seconds: float) -> ClockReading:
    return ClockReading(at.wall_ms, at.monotonic_ms + round(seconds * 1_000))


def test_live_and_ready_follow_the_loop(events: Events) -> None:
    agent = an_agent(lambda: WORLD)
    start = system_clock()
    assert live(agent.watch.state, start, 120_000).well
    assert ready(agent.watch.state, start, 60_000).reasons == ("no look has succeeded yet",)
    agent.once()
    now = system_clock()
    assert ready(agent.watch.state, now, 60_000) == (True, ())
    assert ready(agent.watch.state, after(now, 90), 60_000).reasons == ("the last successful look was 90 s ago",)
    assert live(agent.watch.state, after(now, 119), 120_000).well
    assert live(agent.watch.state, after(now, 125), 120_000).reasons == ("no cycle has ended for 125 s",)
    agent.watch.stopping()
    assert ready(agent.watch.state, now, 60_000).reasons == ("the agent is stopping",)


@pytest.mark.parametrize(
    ("cron", "wanted"),
    [
        pytest.param(
            "*/15 * * * *", {"minute": "*/15", "hour": "*", "day_of_week": "*"}, id="every quarter of an hour"
        ),
        pytest.param("0 3 * * 0", {"hour": "3", "day_of_week": "sun"}, id="cron's day 0 is Sunday"),
        pytest.param("0 3 * * 7", {"day_of_week": "sun"}, id="and so is day 7"),
        pytest.param("0 3 * * 1-5", {"day_of_week": "mon,tue,wed,thu,fri"}, id="working days"),
        pytest.param("0 3 * * */2", {"day_of_week": "sun,tue,thu,sat"}, id="every second day from Sunday on"),
        pytest.param("0 3 * * sat,sun", {"day_of_week": "sat,sun"}, id="names"),
    ],
)
def test_a_cron_means_what_cron_means(cron: str, wanted: dict[str, str]) -> None:
    fields = {field.name: str(field) for field in plan_trigger(None, cron).fields}
    assert {name: fields[name] for name in wanted} == wanted
    assert fields["second"] == "0"


@pytest.mark.parametrize("cron", ["61 * * * *", "* * * * 8", "* * * * 5-1", "* * * x *", "* * *", "* * * * 1/x"])
def test_a_cron_that_cannot_be_read_is_a_setting_to_correct(cron: str) -> None:
    with pytest.raises(ConfigError) as refused:
        plan_trigger(None, cron)
    assert refused.value.exit_code == 2
    assert repr(cron) in str(refused.value)


def test_proposals_are_named_once_with_the_command_that_lists_them(events: Events) -> None:
    agent = an_agent(lambda: WORLD, plan_ms=1_000)
    with stopped_after(agent, lambda: len(named(events, "cycle")) >= 2):
        agent.run()
    (cycle, *_), (told,) = named(events, "cycle"), named(events, "proposals")
    assert cycle["proposals"]
    assert all(name in told["sentence"] for name in cycle["proposals"][:5])
    assert told["sentence"].endswith("; all, with their sentences: rackwise proposals")


def test_an_agent_that_publishes_no_proposals_names_no_command_that_lists_them(events: Events) -> None:
    agent = an_agent(lambda: WORLD, plan_ms=1_000, mode=AgentMode.OBSERVE)
    with stopped_after(agent, lambda: bool(named(events, "proposals"))):
        agent.run()
    (told,) = named(events, "proposals")
    assert told["sentence"].endswith("; mode observe publishes none")

"""What keeps an agent from leading is reported for as long as it does, and not longer; without brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from agent.act import leadership as module
from agent.act.journal.journal import TopicRead
from agent.act.journal.journal_topic import JournalWatermark, TopicOffsets
from agent.act.journal.kafka_journal import KafkaJournal
from agent.act.leadership import JournalLeadership
from agent.act.lease import KafkaLease, LeadershipPlan, LeasePlan
from agent.errors import BadInput, JournalUnavailable, RackwiseError
from agent.values.observation import Observation
from tests.builders import an_observation

TIMED_OUT = JournalUnavailable("The journal rackwise.journal could not be read or written", why="Local: Timed out")
OTHER_KEY = BadInput("The journal rackwise.journal is signed with another key")


def refused(code: int) -> JournalUnavailable:
    error = JournalUnavailable("The journal rackwise.journal could not be read or written", why="not authorized")
    error.__cause__ = KafkaException(KafkaError(code))
    return error


@dataclass
class World:
    """Brokers and the other agents, as far as one agent sees them."""

    now: float = 1_000.0
    chosen: bool = True
    opening: RackwiseError | KafkaException | None = None
    """Why a journal cannot be opened."""
    looking: RackwiseError | None = None
    """Why the journal is not believed, or not read."""
    looks: int = 0
    leases: list[Any] = field(default_factory=list)

    def opens(self, *_: object, **__: object) -> Any:
        if self.opening is not None:
            raise self.opening
        return Opened()

    def believed(self, *_: object) -> None:
        self.looks += 1
        if self.looking is not None:
            raise self.looking

    def lease(self, _plan: object) -> Any:
        self.leases.append(Lease(self))
        return self.leases[-1]


@dataclass
class Lease:
    world: World

    @property
    def term(self) -> int | None:
        return 1 if self.world.chosen else None

    def start(self) -> None:
        pass

    def set_reached(self, reached: JournalWatermark) -> None:
        pass

    def problem(self) -> None:
        return None

    def notice(self) -> None:
        return None

    def close(self, timeout_s: float = 0) -> None:
        pass


class Opened:
    ended = None
    reached = JournalWatermark(1, 5)

    def close(self) -> None:
        pass


class UnchangedTopic:
    """The journal's topic as the former leader left it: its epoch is the newest, its end the one that it reached."""

    def __init__(self, *_: object) -> None:
        pass

    def bounds(self, _until: float) -> TopicOffsets:
        return TopicOffsets(topic_id="", first=0, decided=Opened.reached.end, end=Opened.reached.end)

    def read(self, end: int, _until: float) -> TopicRead:
        return TopicRead({}, newest_epoch=Opened.reached.epoch, end=end)

    def close(self) -> None:
        pass


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    one = World()
    monkeypatch.setattr(module, "KafkaLease", one.lease)
    monkeypatch.setattr(module, "check_watermark", one.believed)
    monkeypatch.setattr(module, "JournalTopic", UnchangedTopic)
    monkeypatch.setattr(module, "committed_watermark", lambda *_: JournalWatermark())
    monkeypatch.setattr(module, "end_of", lambda *_: pytest.fail("not asked"))
    monkeypatch.setattr(KafkaJournal, "open", one.opens)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: one.now))
    monkeypatch.setattr(JournalLeadership, "_commands_end", lambda _: None)
    monkeypatch.setattr(JournalLeadership, "_named", lambda _: ())
    return one


@pytest.fixture
def leadership(world: World) -> Iterator[JournalLeadership]:
    one = JournalLeadership(LeadershipPlan(config={}, agent="one"))
    one.begin("c-1")
    yield one
    one.close()


def turns(world: World, leadership: JournalLeadership, seconds: float) -> None:
    until = world.now + seconds
    while world.now < until:
        world.now += leadership._turn()


@pytest.mark.parametrize("failed", [TIMED_OUT, KafkaException(KafkaError(KafkaError._TIMED_OUT))])
def test_a_standby_that_failed_when_it_was_chosen_is_well_again_once_the_journal_is_read(
    world: World, leadership: JournalLeadership, failed: RackwiseError | KafkaException
) -> None:
    world.opening = failed
    turns(world, leadership, 3)
    assert "Timed out" in (leadership.problem() or "")
    world.chosen, world.looking = False, TIMED_OUT
    turns(world, leadership, 120)
    assert "Timed out" in (leadership.problem() or ""), "another agent leads, and this one still could not"
    world.looking = None
    turns(world, leadership, 60)
    assert leadership.problem() is None
    looks = world.looks
    turns(world, leadership, 600)
    assert world.looks == looks, "it does not look for what is known"


def test_so_is_one_that_stood_aside_for_a_journal_that_it_did_not_believe(
    world: World, leadership: JournalLeadership
) -> None:
    world.opening = world.looking = OTHER_KEY
    turns(world, leadership, 1)
    world.chosen = False
    turns(world, leadership, 300)
    assert leadership.problem() == str(OTHER_KEY)
    world.looking = None
    turns(world, leadership, 90)
    assert leadership.problem() is None


@pytest.mark.parametrize(
    "code", [KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED]
)
def test_a_missing_right_to_write_is_not_forgotten_because_the_journal_can_be_read(
    world: World, leadership: JournalLeadership, code: int
) -> None:
    world.opening = refused(code)
    turns(world, leadership, 3)
    world.chosen = False
    turns(world, leadership, 600)
    assert leadership.problem() is not None
    world.chosen, world.opening = True, None
    turns(world, leadership, 60)
    assert (leadership.may_act(), leadership.problem()) == (True, None)


def test_what_was_wrong_with_the_topics_is_not_told_by_one_that_no_longer_leads(
    world: World, leadership: JournalLeadership
) -> None:
    turns(world, leadership, 1)
    leadership._wrong = ("min.insync.replicas of rackwise.journal is 1",)
    assert leadership.notices() == leadership._wrong
    world.chosen = False
    turns(world, leadership, 1)
    assert (leadership.may_act(), leadership.notices()) == (False, ())


def test_what_is_wrong_with_the_topics_is_looked_at_again_while_it_leads(
    world: World, leadership: JournalLeadership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JournalLeadership, "_reaffirm", lambda *_: setattr(leadership, "_reaffirmed_at", world.now))
    turns(world, leadership, 1)
    leadership._wrong = ("min.insync.replicas of rackwise.journal is 1",)
    turns(world, leadership, module.STATE_MS / 1_000 + 1)
    assert leadership.notices() == ()


class Topics:
    """Own topics: those that the last look showed."""

    def __init__(self, missing: Callable[[], tuple[str, ...]]) -> None:
        self._missing = missing

    def ensure(self, observation: Observation) -> None:
        pass

    def problems(self) -> tuple[str, ...]:
        return self._missing()

    def is_ready(self, _name: str) -> bool:
        return not self._missing()


def test_a_topic_that_one_look_does_not_show_is_a_problem_for_as_long_as_looks_do_not_show_it(
    world: World, leadership: JournalLeadership
) -> None:
    missing = ["rackwise.leader: it does not exist yet"]
    leadership._topics = Topics(lambda: tuple(missing))  # type: ignore[assignment]
    world.chosen = False
    leadership.observed(an_observation().at())
    assert leadership.problem() == "rackwise.leader: it does not exist yet"
    missing.clear()
    leadership.observed(an_observation().at())
    assert leadership.problem() is None


def test_the_group_that_does_not_remember_is_a_notice_until_it_remembers() -> None:
    lease = KafkaLease(LeasePlan(config={}), clock_ms=lambda: 0)
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    lease._on_commit(denied, [])
    assert (lease.notice() or "").startswith("the group does not remember how far the journal has come: ")
    assert lease.problem() is None, "it leads all the same"
    lease._on_commit(KafkaError(KafkaError.REBALANCE_IN_PROGRESS), [])
    assert lease.notice() is not None
    lease._on_commit(None, [])
    assert lease.notice() is None

"""Which topic is it, where brokers report no topic ids, or zero? Without brokers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Uuid

from agent.act import commands_topic
from agent.act.commands_topic import TopicEndOffset, TopicInbox
from agent.act.inbox import MOST_AT_ONCE, POSITION
from agent.act.journal.journal import UNKNOWN, TopicRead, id_of, is_other
from agent.act.journal.journal_topic import TopicOffsets
from agent.act.journal.kafka_journal import KafkaJournal
from agent.errors import BadInput
from agent.journal.entries import JournalState, JournalWrite
from agent.values.clock import system_clock
from tests.act.journals import plan
from tests.journals import journal

ZERO, ONE, TWO = "A" * 22, "x" * 22, "y" * 22


class Sent:
    """A message of the commands topic."""

    def __init__(self, offset: int, name: str) -> None:
        self._offset, self._value = offset, json.dumps({"id": name}).encode()

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_LOG_APPEND_TIME, 5_000


class AtEnd:
    """The end of the partition, as the client tells it."""

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._PARTITION_EOF)

    def offset(self) -> int:
        return 0


class Topic:
    """A commands topic: which id brokers report of it, its first offset that is not cut, and its records."""

    def __init__(self, reported: object, names: Mapping[int, str]) -> None:
        self.id, self.names = id_of(reported), names

    def end(self, *_: object) -> TopicEndOffset:
        return TopicEndOffset(self.id, max(self.names, default=-1) + 1)

    def consumer(self, _config: object) -> Topic:
        return self

    def assign(self, given: list[Any]) -> None:
        self.at = given[0].offset

    def consume(self, most: int, timeout: float) -> list[Any]:
        found = [Sent(offset, name) for offset, name in sorted(self.names.items()) if offset >= self.at][:most]
        self.at = max((one.offset() + 1 for one in found), default=self.at)
        return found or [AtEnd()]

    def close(self) -> None:
        pass


def read(
    monkeypatch: pytest.MonkeyPatch, topic: Topic, view: JournalState, led_from: TopicEndOffset | None = None
) -> dict[str, bool]:
    """Id of each command that arrives -> whether it came while this agent led."""
    monkeypatch.setattr(commands_topic, "end_of", topic.end)
    monkeypatch.setattr(commands_topic, "Consumer", topic.consumer)
    inbox = TopicInbox({}, "rackwise.commands", "rackwise", led_from)
    found = {one.id: one.came.live for one in inbox.read(view)}
    assert inbox.problem() is None
    return found


def kept(topic_id: object, following: int) -> JournalState:
    return journal(JournalWrite(POSITION, "offset", {"topic_id": topic_id, "next": following}), at_ms=1)


@pytest.mark.parametrize("none", [Uuid(0, 0), None, "", ZERO])
def test_zero_is_no_id_and_equals_none(none: object) -> None:
    assert id_of(none) == UNKNOWN
    assert not is_other(id_of(none), id_of(none))
    assert not is_other(id_of(none), ONE)
    assert is_other(ONE, TWO)
    assert id_of(Uuid(1, 2)) == str(Uuid(1, 2)) != UNKNOWN


@pytest.mark.parametrize(("before", "now"), [(ZERO, Uuid(0, 0)), (None, None), (ZERO, TWO), (ONE, Uuid(0, 0))])
def test_a_topic_of_unknown_id_that_is_shorter_than_the_position_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, before: object, now: object
) -> None:
    assert read(monkeypatch, Topic(now, {0: "a", 1: "b"}), kept(before, 500)) == {"a": False, "b": False}


@pytest.mark.parametrize(("before", "now"), [(ZERO, Uuid(0, 0)), (ZERO, TWO), (ONE, Uuid(0, 0)), (ONE, ONE)])
def test_a_topic_that_may_be_the_same_is_read_from_the_position(
    monkeypatch: pytest.MonkeyPatch, before: object, now: object
) -> None:
    assert read(monkeypatch, Topic(now, {6: "old", 7: "new"}), kept(before, 7)) == {"new": False}


def test_a_topic_of_another_id_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, Topic(TWO, {0: "a", 8: "b"}), kept(ONE, 7)) == {"a": False, "b": False}


def test_a_command_behind_the_cut_of_a_topic_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its position is beyond the end, and new commands come to stand below it."""
    topic = Topic(ONE, {4: "of-old"})
    monkeypatch.setattr(commands_topic, "end_of", topic.end)
    monkeypatch.setattr(commands_topic, "Consumer", topic.consumer)
    inbox, view = TopicInbox({}, "rackwise.commands", "rackwise"), kept(ONE, 8)
    assert inbox.read(view) == ()
    topic.names = {4: "of-old", 5: "new"}
    topic.at = 5
    assert [one.id for one in inbox.read(view)] == ["new"]


@pytest.mark.parametrize("led_from", [ZERO, ONE, TWO])
def test_without_an_id_what_stood_there_before_this_agent_led_is_not_taken_for_new(
    monkeypatch: pytest.MonkeyPatch, led_from: str
) -> None:
    topic = Topic(Uuid(0, 0), {6: "before", 7: "since"})
    assert read(monkeypatch, topic, kept(ZERO, 6), TopicEndOffset(id_of(led_from), 7)) == {
        "before": False,
        "since": True,
    }


def test_an_inbox_has_caught_up_once_the_end_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(ONE, {number: f"c{number}" for number in range(MOST_AT_ONCE + 2)})
    monkeypatch.setattr(commands_topic, "end_of", topic.end)
    monkeypatch.setattr(commands_topic, "Consumer", topic.consumer)
    inbox, view = TopicInbox({}, "rackwise.commands", "rackwise"), kept(ONE, 0)
    assert not inbox.caught_up()
    assert [one.id for one in inbox.read(view)] == list(topic.names.values())[:MOST_AT_ONCE]
    assert not inbox.caught_up(), "two more wait for a place"
    assert [one.id for one in inbox.read(kept(ONE, 3))] == list(topic.names.values())[3:]
    assert (inbox.caught_up(), inbox.problem()) == (True, None)


class Reader:
    """The journal's topic, as it is after something was done to it."""

    def __init__(self, topic_id: str, end: int, epoch: int) -> None:
        self._bounds = TopicOffsets(topic_id, 0, end, end)
        self._told = TopicRead(MappingProxyType({}), newest_epoch=epoch, end=end)

    def bounds(self, until: float) -> TopicOffsets:
        return self._bounds

    def read(self, end: int, until: float) -> TopicRead:
        return self._told

    def close(self) -> None:
        pass


def writer(topic_id: str, reader: Reader) -> KafkaJournal:
    """Of epoch 7, in a topic that went to offset 40."""
    one = KafkaJournal(plan("127.0.0.1:1", "rackwise"), producer=None, clock=system_clock)  # type: ignore[arg-type]
    one._topic_id, one._epoch, one._end, one._doubtful = topic_id, 7, 40, True
    one._reader = reader  # type: ignore[assignment]
    return one


@pytest.mark.parametrize(("before", "now"), [(UNKNOWN, UNKNOWN), (ONE, UNKNOWN), (UNKNOWN, TWO), (ONE, ONE)])
def test_a_journal_whose_id_is_not_reported_is_the_same_one_as_long_as_it_says_the_same(before: str, now: str) -> None:
    assert writer(before, Reader(now, 41, 7)).view() == {}


@pytest.mark.parametrize(
    ("before", "reader"),
    [
        pytest.param(ONE, Reader(TWO, 41, 7), id="of another id"),
        pytest.param(UNKNOWN, Reader(UNKNOWN, 41, 2), id="without the epoch of its writer"),
        pytest.param(UNKNOWN, Reader(UNKNOWN, 39, 7), id="shorter than it was"),
    ],
)
def test_a_journal_that_was_made_anew_ends_its_writer(before: str, reader: Reader) -> None:
    one = writer(before, reader)
    with pytest.raises(BadInput, match="has lost records"):
        one.view()
    assert isinstance(one.ended, BadInput)

"""What the running agent's telemetry tells a command: the newest event of each kind, from the topic's tail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent.record import newest_look as module
from agent.record.newest_look import NewestLook, newest_look
from agent.record.reader import ConsumerRecord, OffsetRange
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines


class Topic:
    """Telemetry by partition, read as `TopicReader` reads it; counts the records that were handed out."""

    def __init__(self, *partitions: list[TelemetryEvent]) -> None:
        self.values = [[line.encode() for event in events for line in to_lines(event)] for events in partitions]
        self.handed_out = 0
        self.in_time = True

    def spans(self, only: frozenset[int] | None = None) -> tuple[OffsetRange, ...]:
        every = tuple(OffsetRange(number, 0, len(values)) for number, values in enumerate(self.values))
        return tuple(span for span in every if only is None or span.partition in only)

    def read(self, spans: tuple[OffsetRange, ...]) -> Iterator[ConsumerRecord]:
        for partition, first, end in spans:
            for offset in range(first, end):
                self.handed_out += 1
                yield ConsumerRecord(partition, offset, "", self.values[partition][offset], {})


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    def asked(topic: Topic, *kinds: EventKind, cluster: str | None = "c-1") -> NewestLook:
        @contextmanager
        def opened(*_: object, **__: object) -> Iterator[Topic]:
            yield topic

        monkeypatch.setattr(module, "open_reader", opened)
        return newest_look({}, "rackwise.telemetry", cluster, frozenset(kinds), prefix="rackwise", timeout_ms=1)

    return asked


def an_event(kind: EventKind, at_ms: int, *, cluster: str = "c-1", text: str = "") -> TelemetryEvent:
    return TelemetryEvent(kind, f"cluster/{cluster}", cluster, f"agent-{at_ms}", 0, at_ms, {"text": text})


def many(kind: EventKind, number: int) -> list[TelemetryEvent]:
    return [an_event(kind, at_ms) for at_ms in range(number)]


def test_the_newest_of_each_kind_is_found_whichever_partition_holds_it(ask: Any) -> None:
    topic = Topic([an_event(EventKind.MEMORY, 1), an_event(EventKind.MEMORY, 2)], [], [an_event(EventKind.LIMITS, 2)])
    found = ask(topic, EventKind.MEMORY, EventKind.LIMITS)
    assert (found.events[EventKind.MEMORY].taken_ms, found.events[EventKind.LIMITS].taken_ms) == (2, 2)
    assert found.why_not is None


def test_only_the_tail_is_read(ask: Any) -> None:
    topic = Topic(many(EventKind.MEMORY, 5_000))
    assert ask(topic, EventKind.MEMORY).events[EventKind.MEMORY].taken_ms == 4_999
    assert topic.handed_out < 100


def test_a_memory_behind_many_other_events_is_reached(ask: Any) -> None:
    topic = Topic([an_event(EventKind.MEMORY, 7), *many(EventKind.FINDING, 3_000)])
    assert ask(topic, EventKind.MEMORY).events[EventKind.MEMORY].taken_ms == 7


def test_other_partitions_are_not_asked_for_a_memory(ask: Any) -> None:
    topic = Topic([an_event(EventKind.MEMORY, 1)], many(EventKind.LOOK, 50))
    ask(topic, EventKind.MEMORY)
    assert topic.handed_out == 1


def test_another_cluster_s_events_are_left_aside(ask: Any) -> None:
    topic = Topic([an_event(EventKind.MEMORY, 1), an_event(EventKind.MEMORY, 2, cluster="c-2")])
    assert ask(topic, EventKind.MEMORY).events[EventKind.MEMORY].taken_ms == 1
    assert ask(topic, EventKind.MEMORY, cluster=None).events[EventKind.MEMORY].taken_ms == 2


def test_an_event_in_fragments_is_joined(ask: Any) -> None:
    text = "m" * 1_000_000
    found = ask(Topic([an_event(EventKind.MEMORY, 1, text=text)]), EventKind.MEMORY)
    assert found.events[EventKind.MEMORY].data["text"] == text


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        pytest.param(Topic(), "there is no topic rackwise.telemetry", id="no topic"),
        pytest.param(Topic([an_event(EventKind.LOOK, 1)]), "rackwise.telemetry holds no memory", id="no memory in it"),
    ],
)
def test_what_is_not_there_is_named(topic: Topic, why: str, ask: Any) -> None:
    assert ask(topic, EventKind.MEMORY) == NewestLook({}, why)


def test_what_was_read_when_the_time_was_over_is_not_taken_for_the_newest(ask: Any) -> None:
    topic = Topic([an_event(EventKind.MEMORY, 1)])
    topic.in_time = False
    assert ask(topic, EventKind.MEMORY) == NewestLook({}, "rackwise.telemetry did not show its memory in time")


def test_a_topic_that_holds_something_else_is_a_reason_and_no_error(ask: Any) -> None:
    topic = Topic([])
    topic.values[0] = [b"\x00not telemetry"]
    assert "could not be read" in ask(topic, EventKind.MEMORY).why_not


def test_kinds_of_which_a_look_has_many_are_refused(ask: Any) -> None:
    with pytest.raises(ValueError, match="more than one event of these kinds"):
        ask(Topic([]), EventKind.TOPIC)

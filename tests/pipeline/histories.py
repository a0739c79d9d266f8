"""Histories for backtests: looks of a small cluster, minute by minute, as the agent would have recorded them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agent.loop import CycleStages
from agent.telemetry.events import TelemetryEvent, from_lines, to_lines
from agent.telemetry.looks import CycleInputs
from agent.values.limits import GroupLimits, Limits, TriggerLimits
from agent.values.memory import Memory
from assignors.problem import TopicPartition
from tests.builders import Answers, an_observation, instance, reader
from tests.recorded_looks import observation_to_events

MINUTE_S = 60
RECORDS, RECORD_BYTES = 60_000, 1_000
"""Appended to each partition in a minute, and how large one is: a megabyte per second."""
FREE = Limits(trigger=TriggerLimits(allow_transactional=True))
"""Settings under which a plain consumer group may be asked to rebalance."""

Scene = Callable[[int], Answers]
"""Minute -> what the brokers answer then."""


def shop(*, swapped: bool = True, generation: int = 4) -> Answers:
    """Two racks, a topic with partitions 0 and 1 in a, 2 and 3 in b; each member holds one far partition if swapped."""
    answers = an_observation(a=(1, 3), b=(2, 4))
    answers.topic("orders", (1, 3), (3, 1), (2, 4), (4, 2))
    held = ("orders-0 orders-2", "orders-1 orders-3") if swapped else ("orders-0 orders-1", "orders-2 orders-3")
    members = [reader(f"m-{rack}", rack, of, generation=generation) for rack, of in zip("ab", held, strict=True)]
    return answers.group("readers", *members)


def with_tasks(answers: Answers) -> Answers:
    """The same with an application whose two instances run each other's tasks."""
    for name in ("clicks",):
        answers.topic(name, (1, 3), (2, 4))
    return answers.streams(
        "app", instance(1, "a", {"0_1": "clicks-1"}), instance(2, "b", {"0_0": "clicks-0"}, topics=("clicks",))
    )


def recorded(scene: Scene, minutes: int | Iterable[int], limits: Limits = FREE) -> list[CycleInputs]:
    """What an agent in dry run would have written: a look in full every minute, or in these minutes."""
    line, memory, looks = CycleStages(limits), Memory(), list[CycleInputs]()
    for minute in range(minutes) if isinstance(minutes, int) else minutes:
        observation = flowing(scene(minute), minute).at(minute * MINUTE_S)
        looks.append(CycleInputs(look=f"0000abcd-{minute}", observation=observation, memory=memory, limits=limits))
        snapshot = line.snapshot(observation, memory)
        detection = line.detect(snapshot, memory)
        memory = line.remember(memory, snapshot, detection, line.plan(snapshot, detection))
        line.turn()
    return looks


def flowing(answers: Answers, minute: int) -> Answers:
    """End offsets and sizes of that minute."""
    for topic in answers.topics.values():
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition)
            answers.ends[partition] = RECORDS * (minute + 1)
            for broker in row.replicas:
                answers.sizes[broker, partition] = RECORDS * RECORD_BYTES * (minute + 1)
    return answers


def events_of(looks: Iterable[CycleInputs]) -> Iterator[TelemetryEvent]:
    """All events that rebuild the looks, as the topic has them: one too large comes in fragments."""
    for look in looks:
        for event in observation_to_events(look.observation, look.memory, look.limits, look=look.look):
            yield from map(_event, to_lines(event))


def bronze_rows(events: Iterable[TelemetryEvent]) -> list[tuple[Any, ...]]:
    """Rows of bronze.telemetry."""
    rows = []
    for offset, event in enumerate(events):
        at = event.taken_ms / 1000
        name = f"{event.cluster}/{event.look}/{event.n}/{event.data.get('part', '')}"
        data = json.dumps(event.data)
        rows.append(
            ("t", 0, offset, at, name, event.v, str(event.kind), event.subject, event.cluster, event.look, event.n,
             event.taken_ms, data, None, False, event.base, event.base_taken_ms, "2025-10-09")
        )  # fmt: skip
    return rows


def without(events: Iterable[TelemetryEvent], look: str, *numbers: int) -> list[TelemetryEvent]:
    """The events without some of one look."""
    return [event for event in events if event.look != look or event.n not in numbers]


def strategy_limits(limits: Limits = FREE, **group: Any) -> Limits:
    """The limits with the settings of the application."""
    return replace(limits, groups={"app": GroupLimits(known=True, **group)})


def _event(line: str) -> TelemetryEvent:
    fields: dict[str, Any] = json.loads(line)
    if fields["kind"] == "fragment":
        return TelemetryEvent(**fields)
    (event,) = from_lines([line])
    return event


def times(looks: Sequence[CycleInputs]) -> list[int]:
    """When the looks were taken."""
    return [look.observation.taken_ms for look in looks]

"""Silver rows of one part of a large look, so that several tasks share its work. Pure; no Spark.

Part 0 has what is about the cluster; each other part has some topics and groups, and what is about the cluster beside
them. A topic or group is of one part, by its name alone. Invariant: the rows of all parts are those of the whole look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from zlib import crc32

from agent.decode.members import decode_members
from agent.decode.values import DecodedGroups, StreamsAssignment
from agent.memory.codec import memory_to_json
from agent.model.build_snapshot import build_snapshot
from agent.telemetry.events import APPLICATION_SHAPES, INPUT_SHAPES, EventKind, TelemetryEvent, TopicData
from agent.telemetry.looks import memory_of, observation_from_events
from agent.values.kafka import STREAMS_PROTOCOL
from agent.values.observation import Observation
from agent.values.typed_json import from_json
from assignors.problem import TopicPartition
from pipeline.transforms.look_rows import (
    BronzeEvent,
    ModelledLook,
    Row,
    SilverRow,
    events_of,
    problem_of,
    rows_of_events,
)

TOPIC, GROUP = "topic/", "group/"
"""Subjects of what is divided; everything else is about the cluster."""
APPLICATION = f'"{STREAMS_PROTOCOL}"'
"""In the text of each classic group that may be a Kafka Streams application."""


class LookPart(NamedTuple):
    """A part of a look."""

    number: int
    of: int
    """Parts that have topics and groups: from 1 to this number."""

    def owns(self, subject: str) -> bool:
        """Whether the topic or group is of this part."""
        # As Spark encodes a text, half a surrogate pair included.
        return crc32(subject.encode("utf-8", "replace")) % self.of + 1 == self.number

    def has(self, event: BronzeEvent | TelemetryEvent) -> bool:
        """Whether the event counts in this part."""
        return self.owns(event.subject) if event.subject.startswith((TOPIC, GROUP)) else not self.number


def events_about_the_cluster(raw: Iterable[BronzeEvent]) -> tuple[BronzeEvent, ...]:
    """Those of a look for its parts: fragments joined, and of the memory what silver rows need.

    Where they cannot be read they stay as they are, and each part finds out.
    """
    given = tuple(raw)
    try:
        return tuple(_as_bronze(event) for event in events_of(given))
    except Exception:  # noqa: BLE001 foreign bytes; the reason is told by the parts
        return given


def part_events(rows: Iterable[BronzeEvent], part: LookPart) -> list[BronzeEvent]:
    """The events of a part: topics of other parts come last, and are kept for applications alone."""
    events: list[BronzeEvent] = []
    has_application = False
    for event in rows:
        has_application = has_application or _may_be_application(event)
        if has_application or not event.subject.startswith(TOPIC) or part.owns(event.subject):
            events.append(event)
    return events


def rows_of_part(raw: Iterable[BronzeEvent], part: LookPart) -> tuple[SilverRow, ...]:
    """The silver rows of a part, the look itself from part 0 alone; first a row of ``part``, with its problem."""
    told: Row = {**part._asdict(), "events": None, "expected": None, "topics": 0, "groups": 0, "problem": None}
    try:
        events = tuple(events_of(raw))
        last = [event.data.get("events") for event in events if event.kind is EventKind.LOOK]
        told["expected"] = last[0] if last and isinstance(last[0], int) else None
        told["events"] = len({event.n for event in events if event.kind in INPUT_SHAPES and part.has(event)})
        mine = [event for event in events if part.has(event) or _is_shared(event)]
        others = [event for event in events if event.kind is EventKind.TOPIC and not part.has(event)]
        rows = rows_of_events(mine, partial(_modelled, part, others))
    except Exception as error:  # noqa: BLE001 foreign bytes in one look must not end the work on all others
        return (SilverRow("part", told | {"problem": problem_of(error)}),)
    look = rows[0].row
    told |= {"topics": look.get("topics"), "groups": look.get("groups")}
    return SilverRow("part", told), *(given for given in rows if not part.number or _is_of_parts(given))


def _is_shared(event: TelemetryEvent) -> bool:
    """Whether every part needs the event: it is about the cluster, and no finding."""
    about_the_cluster = not event.subject.startswith((TOPIC, GROUP))
    return about_the_cluster and (event.kind in INPUT_SHAPES or event.kind is EventKind.REPORT)


def _is_of_parts(given: SilverRow) -> bool:
    """Not the look itself, and of brokers those alone that only replicas name: part 0 has the others."""
    return given.table != "looks" and not (given.table == "brokers" and given.row["alive"])


def _modelled(part: LookPart, others: Iterable[TelemetryEvent], inputs: Iterable[TelemetryEvent]) -> ModelledLook:
    """The look with the topics and groups of the part. ``others``: topics of other parts."""
    recorded = observation_from_events(_as_all(list(inputs)))
    decoded = decode_members(recorded.observation, None)
    observation = _with_topics(recorded.observation, decoded, others)
    snapshot = build_snapshot(observation, decoded, recorded.memory, recorded.limits, None)
    own = replace(
        snapshot,
        topics={name: topic for name, topic in snapshot.topics.items() if part.owns(f"{TOPIC}{name}")},
        groups={name: group for name, group in snapshot.groups.items() if part.owns(f"{GROUP}{name}")},
    )
    return ModelledLook(replace(recorded, observation=observation), own)


def _as_all(inputs: list[TelemetryEvent]) -> Iterator[TelemetryEvent]:
    """The events, of which the last one says that they are all: whether they are is a matter of all parts."""
    number = len({event.n for event in inputs})
    for event in inputs:
        known = event.kind is EventKind.LOOK and "events" in event.data
        yield event._replace(data={**event.data, "events": number}) if known else event


def _with_topics(observation: Observation, decoded: DecodedGroups, others: Iterable[TelemetryEvent]) -> Observation:
    """With those of the other topics that an application of this part has to do with."""
    applications, names = _applications(observation, decoded)
    topics = []
    for event in others:
        name = event.subject.removeprefix(TOPIC)
        if name in names or any(name[:at] in applications for at, char in enumerate(name) if char == "-"):
            topics.append(from_json(TopicData, event.data))
    ends = {TopicPartition(topic.name, at.partition): at.offset for topic in topics for at in topic.end_offsets}
    return replace(
        observation,
        topics=(*observation.topics, *(topic.row for topic in topics if topic.row is not None)),
        end_offsets={**observation.end_offsets, **ends},
    )


def _applications(observation: Observation, decoded: DecodedGroups) -> tuple[set[str], set[str]]:
    """Ids of the Kafka Streams applications, and the topics that they name; changelogs begin with the id."""
    applications: set[str] = set()
    names: set[str] = set()
    for streams in [one for shape in APPLICATION_SHAPES.values() for one in observation.described(shape)]:
        applications.add(streams.group_id)
        for sub in streams.subtopologies or ():
            names.update(sub.source_topics, sub.repartition_source_topics, sub.changelog_topics)
    for group in decoded.groups:
        if group.raw.protocol != STREAMS_PROTOCOL:
            continue
        applications.add(group.raw.group_id)
        for member in group.members:
            names.update(getattr(member.subscription, "topics", ()))
            if isinstance(member.assignment_data, StreamsAssignment):
                names.update(at.topic for _, partitions in member.assignment_data.standby for at in partitions)
    return applications, names


def _may_be_application(event: BronzeEvent) -> bool:
    kind = event.kind
    if kind == EventKind.GROUP:
        return APPLICATION in event.data
    return kind in APPLICATION_SHAPES or (kind == EventKind.FRAGMENT and event.subject.startswith(GROUP))


def _as_bronze(event: TelemetryEvent) -> BronzeEvent:
    data = event.data
    if event.kind is EventKind.MEMORY:
        whole = memory_of(event)
        # By far the most of it: earlier offsets, sizes and replicas, from which the agent takes rates and changes.
        slim = replace(
            whole, topics={}, rate_bases=(), size_base=None, widened={}, predictions={}, first_seen={}, gone={}
        )
        data = {"text": memory_to_json(slim)}
    head = (event.v, event.kind.value, event.subject, event.cluster, event.look, event.n, event.taken_ms)
    return BronzeEvent(*head, json.dumps(data))

"""What is written to the telemetry topic and file: events, one JSON object each, and the shape of their data by kind.

Events of one look share its id and are numbered; the `LOOK` event comes last of those that rebuild it and counts them.
An event that is too large for a record of Kafka's default size travels in fragments. Additive only: a reader leaves
aside what it does not know, and refuses a newer major version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from agent.errors import reason
from agent.limits import Limits
from agent.observation import (
    Gap,
    Part,
    RawApplicationLag,
    RawBroker,
    RawConsumerGroup,
    RawGroup,
    RawListedGroup,
    RawRackTable,
    RawReassignment,
    RawStreamsGroup,
    RawTopic,
    Rights,
)
from agent.typed_json import UnreadableError
from agent.weights.kept import Told

VERSION = 1
MAX_RECORD_CHARS = 900_000
"""A record below Kafka's default ``max.message.bytes`` of 1,048,588, with room for key and headers."""
_MAX_OPEN = 64


class Kind(StrEnum):
    """What an event tells. Those of `INPUTS` rebuild a look; the others are what was made of it."""

    LOOK = "look"
    GAPS = "gaps"
    BROKER = "broker"
    BROKER_CONFIGS = "broker_configs"
    TOPIC = "topic"
    LISTED_GROUPS = "listed_groups"
    GROUP = "group"
    CONSUMER_GROUP = "consumer_group"
    STREAMS_GROUP = "streams_group"
    GROUP_CONFIGS = "group_configs"
    COMMITTED_OFFSETS = "committed_offsets"
    REASSIGNMENTS = "reassignments"
    APPLICATION_LAGS = "application_lags"
    RACK_TABLE = "rack_table"
    WEIGHTS = "weights"
    LIMITS = "limits"
    MEMORY = "memory"
    REPORT = "report"
    FINDING = "finding"
    ASSESSMENT = "assessment"
    TASK_COPIES = "task_copies"
    FRAGMENT = "fragment"


class Event(NamedTuple):
    """One event; ``data`` has the shape that `SHAPES` names for its kind."""

    kind: Kind
    subject: str
    """``kind/name``, also the record's key."""
    cluster: str
    look: str
    """Id of the look: the agent's instance and the number of the cycle."""
    n: int
    """Its number among the events of the look, from 0."""
    taken_ms: int
    data: Mapping[str, Any]
    v: int = VERSION


class LookData(NamedTuple):
    """The look itself: the last event of those that rebuild it, which says that they are complete."""

    controller: int | None
    taken_ms: int
    monotonic_ms: int
    took_ms: int
    cordoned: frozenset[int]
    rights: Rights
    vanished_topics: tuple[str, ...]
    vanished_groups: tuple[str, ...]
    ages_ms: Mapping[Part, int]
    events: int
    """How many events, this one included, rebuild the look."""


class GapsData(NamedTuple):
    """What did not answer."""

    gaps: tuple[Gap, ...]


class BrokerConfigsData(NamedTuple):
    """Configs of one broker that matter."""

    broker: int
    configs: Mapping[str, str]


class PartitionOffset(NamedTuple):
    """An offset in a partition of the event's topic."""

    partition: int
    offset: int


class ReplicaBytes(NamedTuple):
    """Size of one replica on disk."""

    partition: int
    broker: int
    bytes: int


class TopicData(NamedTuple):
    """A topic with its configs, end offsets and sizes; ``row`` is None for one that metadata did not name."""

    name: str
    row: RawTopic | None
    configs: Mapping[str, str] | None
    end_offsets: tuple[PartitionOffset, ...]
    replica_bytes: tuple[ReplicaBytes, ...]


class ListedGroupsData(NamedTuple):
    """The answer of ListGroups."""

    groups: tuple[RawListedGroup, ...]


class GroupConfigsData(NamedTuple):
    """Configs of one group."""

    group: str
    configs: Mapping[str, str]


class CommittedOffset(NamedTuple):
    """A committed offset."""

    topic: str
    partition: int
    offset: int


class CommittedOffsetsData(NamedTuple):
    """What one group has committed."""

    group: str
    offsets: tuple[CommittedOffset, ...]


class ReassignmentsData(NamedTuple):
    """Reassignments in flight."""

    reassignments: tuple[RawReassignment, ...]


class ApplicationLagsData(NamedTuple):
    """Lags as the applications told them."""

    lags: tuple[RawApplicationLag, ...]


class LimitsData(NamedTuple):
    """The limits that were in force, and their digest."""

    digest: str
    limits: Limits


class MemoryData(NamedTuple):
    """The memory that went into the look, as its own codec writes it."""

    text: str


class FragmentData(NamedTuple):
    """A piece of the JSON text of an event that was too large for one record."""

    part: int
    parts: int
    text: str


INPUT_SHAPES: Mapping[Kind, type] = {
    Kind.LOOK: LookData,
    Kind.GAPS: GapsData,
    Kind.BROKER: RawBroker,
    Kind.BROKER_CONFIGS: BrokerConfigsData,
    Kind.TOPIC: TopicData,
    Kind.LISTED_GROUPS: ListedGroupsData,
    Kind.GROUP: RawGroup,
    Kind.CONSUMER_GROUP: RawConsumerGroup,
    Kind.STREAMS_GROUP: RawStreamsGroup,
    Kind.GROUP_CONFIGS: GroupConfigsData,
    Kind.COMMITTED_OFFSETS: CommittedOffsetsData,
    Kind.REASSIGNMENTS: ReassignmentsData,
    Kind.APPLICATION_LAGS: ApplicationLagsData,
    Kind.RACK_TABLE: RawRackTable,
    Kind.WEIGHTS: Told,
    Kind.LIMITS: LimitsData,
    Kind.MEMORY: MemoryData,
}
"""Kinds that rebuild a look, with the shape of their data."""


def to_lines(event: Event) -> Iterator[str]:
    """The event as JSON text without line breaks: one line, or several fragments when it is too large for a record."""
    text = _dumps(event)
    if len(text) <= MAX_RECORD_CHARS:
        yield text
        return
    step = MAX_RECORD_CHARS // 2  # quoting a text once more makes it longer, at most twice
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    for part, piece in enumerate(pieces):
        data = {"part": part, "parts": len(pieces), "text": piece}
        yield _dumps(event._replace(kind=Kind.FRAGMENT, data=data))


def from_lines(lines: Iterable[str | bytes]) -> Iterator[Event]:
    """Events of lines or record values, fragments joined. Raises UnreadableError for what is no event.

    Events of kinds that this version does not know are left out; a newer major version is refused.
    """
    pieces: dict[tuple[str, int], dict[int, str]] = {}
    for line in lines:
        event = _loads(line)
        if event is None:
            continue
        if event.kind is not Kind.FRAGMENT:
            yield event
            continue
        whole = _joined(pieces, event)
        if whole is not None:
            yield whole


def _joined(pieces: dict[tuple[str, int], dict[int, str]], event: Event) -> Event | None:
    held = pieces.setdefault((event.look, event.n), {})
    if len(pieces) > _MAX_OPEN:  # the oldest will not be completed any more
        del pieces[next(iter(pieces))]
    held[int(event.data["part"])] = str(event.data["text"])
    if len(held) < int(event.data["parts"]):
        return None
    pieces.pop((event.look, event.n), None)
    return _loads("".join(text for _, text in sorted(held.items())))


def _dumps(event: Event) -> str:
    fields = {"v": event.v, **event._asdict()}
    # Kept to ASCII: foreign text may hold half a surrogate pair or a line separator.
    return json.dumps(fields, separators=(",", ":"), allow_nan=False, check_circular=False)


def _loads(line: str | bytes) -> Event | None:
    try:
        data = json.loads(line)
        version = data["v"]
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"a line is not a telemetry event: {reason(error)}") from error
    except (TypeError, KeyError) as error:
        raise UnreadableError("a line is not a telemetry event: it has no version (v)") from error
    if not isinstance(version, int) or version > VERSION:
        raise UnreadableError(f"an event of version {version} needs a newer rackwise; this one reads up to {VERSION}")
    try:
        if data["kind"] not in Kind._value2member_map_:
            return None
        return Event(**{name: data[name] for name in Event._fields} | {"kind": Kind(data["kind"])})
    except (TypeError, KeyError) as error:
        raise UnreadableError(f"a line is not a telemetry event: it needs {', '.join(Event._fields)}") from error

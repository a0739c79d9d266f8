"""Telemetry events: one JSON object each, kinds, the shape of their data, fragments.

Events of one look share its id and are numbered; `LOOK` comes last of those that rebuild it and counts them. A look by
changes has those that a full look before it does not have, and `KEPT` events that name the others. An event above
Kafka's default record size travels in fragments. Additive: unknown fields are ignored, a newer major is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from agent.values.observation import (
    Gap,
    ObservationPart,
    PrincipalRights,
    RawApplicationLag,
    RawBroker,
    RawClassicGroup,
    RawConsumerGroup,
    RawGroup,
    RawListedGroup,
    RawRackTable,
    RawReassignment,
    RawStreamsGroup,
    RawTopic,
)
from agent.values.typed_json import ForeignJsonError, UnreadableError, from_json, is_time, read_json
from agent.values.weights import WeightsReading

VERSION = 1
MAX_RECORD_CHARS = 900_000
"""A record below Kafka's default ``max.message.bytes`` of 1,048,588, with room for key and headers."""
MOST_LINE_BYTES = 2 * MAX_RECORD_CHARS
_MOST_PARTS = 128
"""Fragments of one event, and of all incomplete ones. The memory of 100,000 partitions has 40."""
MOST_EVENT_BYTES = _MOST_PARTS * MAX_RECORD_CHARS
"""Of an event whose fragments are joined."""
_NEEDED = ("kind", "subject", "cluster", "look", "n", "taken_ms", "data", "v")
_FIELD_TYPES = (str, str, str, str, int, int, dict, int)
"""Of `TelemetryEvent` as JSON, where it needs them."""


class EventKind(StrEnum):
    """Kinds of events. Those of `INPUT_SHAPES` rebuild a look; the others are derived from it."""

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
    KEPT = "kept"
    FRAGMENT = "fragment"


class TelemetryEvent(NamedTuple):
    """One event; ``data`` has the shape that `SHAPES` names for its kind."""

    kind: EventKind
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
    base: str | None = None
    """Id of the full look on which a look by changes stands; None of a look in full, as all below."""
    base_taken_ms: int | None = None
    """When that one began, epoch milliseconds."""

    @property
    def instance(self) -> str:
        """Of the agent that wrote it: one run of one process."""
        return self.look.rpartition("-")[0]


class LookRow(NamedTuple):
    """An event without what all events of its look have in common; its number is its place among them."""

    kind: EventKind
    subject: str
    data: Any
    """A value of the kind's shape."""


class LookData(NamedTuple):
    """The look itself: the last event of those that rebuild it, which says that they are complete."""

    controller: int | None
    taken_ms: int
    monotonic_ms: int
    took_ms: int
    cordoned: frozenset[int]
    rights: PrincipalRights
    vanished_topics: tuple[str, ...]
    vanished_groups: tuple[str, ...]
    ages_ms: Mapping[ObservationPart, int]
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
    limits: Mapping[str, object]
    """As `agent.telemetry.looks` writes them."""


class MemoryData(NamedTuple):
    """The memory that went into the look, as its own codec writes it; and the findings of the look."""

    text: str
    findings: Mapping[str, int] | None = None
    """Id of each finding of the look -> epoch milliseconds; None in a record of an older rackwise."""


class KeptRun(NamedTuple):
    """Neighbours among the events of a full look that are events of this look as well."""

    n: int
    """Number of the first one in this look; the others follow."""
    of: int
    """Number of the first one in the full look."""
    events: int
    deltas: tuple[int, ...] = ()
    """What their offsets and sizes have grown by, event by event (`agent.telemetry.changes`); empty: nothing moved."""


class KeptData(NamedTuple):
    """Events of the full look ``base`` that a look by changes does not repeat."""

    part: int
    """Number among the events of this kind in the look, from 0."""
    parts: int
    """How many of them there are."""
    runs: tuple[KeptRun, ...]


class FragmentData(NamedTuple):
    """A piece of the JSON text of an event that was too large for one record."""

    part: int
    parts: int
    text: str


GROUP_SHAPES: Mapping[EventKind, type[RawGroup]] = {
    EventKind.GROUP: RawClassicGroup,
    EventKind.CONSUMER_GROUP: RawConsumerGroup,
    EventKind.STREAMS_GROUP: RawStreamsGroup,
}
"""The kind of event for each kind of group."""
APPLICATION_SHAPES: Mapping[EventKind, type[RawStreamsGroup]] = {EventKind.STREAMS_GROUP: RawStreamsGroup}
"""Those whose groups are always applications with tasks; a classic group may be one."""
INPUT_SHAPES: Mapping[EventKind, type] = {
    EventKind.LOOK: LookData,
    EventKind.GAPS: GapsData,
    EventKind.BROKER: RawBroker,
    EventKind.BROKER_CONFIGS: BrokerConfigsData,
    EventKind.TOPIC: TopicData,
    EventKind.LISTED_GROUPS: ListedGroupsData,
    **GROUP_SHAPES,
    EventKind.GROUP_CONFIGS: GroupConfigsData,
    EventKind.COMMITTED_OFFSETS: CommittedOffsetsData,
    EventKind.REASSIGNMENTS: ReassignmentsData,
    EventKind.APPLICATION_LAGS: ApplicationLagsData,
    EventKind.RACK_TABLE: RawRackTable,
    EventKind.WEIGHTS: WeightsReading,
    EventKind.LIMITS: LimitsData,
    EventKind.MEMORY: MemoryData,
}
"""Kinds that rebuild a look, with the shape of their data."""


def to_lines(event: TelemetryEvent) -> Iterator[str]:
    """The event as JSON text without line breaks: one line, or several fragments when it is too large for a record."""
    text = _dumps(event)
    if len(text) <= MAX_RECORD_CHARS:
        yield text
        return
    step = MAX_RECORD_CHARS // 2  # quoting a text again makes it longer, at most twice
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    for part, piece in enumerate(pieces):
        data = {"part": part, "parts": len(pieces), "text": piece}
        yield _dumps(event._replace(kind=EventKind.FRAGMENT, data=data))


def from_lines(lines: Iterable[str | bytes], left_out: Callable[[str], None] | None = None) -> Iterator[TelemetryEvent]:
    """Events of lines or record values, fragments joined.

    Events of unknown kinds are skipped. A line that is no event, or of a newer major version, raises UnreadableError;
    with ``left_out`` that is reported instead, and the others are read.
    """
    open_events: dict[tuple[str, int], dict[int, str]] = {}
    for line in lines:
        try:
            event = _loads(line, MOST_LINE_BYTES)
            if event is not None and event.kind is EventKind.FRAGMENT:
                event = _joined(open_events, event)
        except UnreadableError as error:
            if left_out is None:
                raise
            left_out(str(error))
            continue
        if event is not None:
            yield event


def _joined(open_events: dict[tuple[str, int], dict[int, str]], event: TelemetryEvent) -> TelemetryEvent | None:
    piece = from_json(FragmentData, event.data)
    if not 0 <= piece.part < piece.parts <= _MOST_PARTS:
        raise UnreadableError(f"a fragment is part {piece.part} of {piece.parts}, and at most {_MOST_PARTS} are read")
    held = open_events.setdefault((event.look, event.n), {})
    held[piece.part] = piece.text
    while len(open_events) > 1 and sum(map(len, open_events.values())) > _MOST_PARTS:
        del open_events[next(iter(open_events))]  # the oldest: it will not be completed any more
    if len(held) < piece.parts:
        return None
    open_events.pop((event.look, event.n), None)
    return from_pieces(held)


def from_pieces(pieces: Mapping[int, str]) -> TelemetryEvent | None:
    """The event whose fragments these are, by their numbers; None of an unknown kind. Raises UnreadableError."""
    whole = _loads("".join(text for _, text in sorted(pieces.items())), MOST_EVENT_BYTES)
    if whole is not None and whole.kind is EventKind.FRAGMENT:
        raise UnreadableError("a fragment is made of fragments")
    return whole


def _dumps(event: TelemetryEvent) -> str:
    # Kept to ASCII: foreign text may hold half a surrogate pair or a line separator.
    fields = {"v": event.v, **event._asdict()}
    if event.base is None:
        del fields["base"], fields["base_taken_ms"]
    return json.dumps(fields, separators=(",", ":"), allow_nan=False, check_circular=False)


def _loads(line: str | bytes, most_bytes: int) -> TelemetryEvent | None:
    try:
        data = read_json(line, most_bytes=most_bytes, as_seen=True)
        version = data["v"]
    except ForeignJsonError as error:
        raise UnreadableError(f"a line is not a telemetry event: {error}") from error
    except (TypeError, KeyError, IndexError) as error:
        raise UnreadableError("a line is not a telemetry event: it has no version (v)") from error
    if type(version) is not int or version > VERSION:
        shown = repr(version)[:40]
        raise UnreadableError(f"an event of version {shown} needs a newer rackwise; this one reads up to {VERSION}")
    kind = data.get("kind")
    if isinstance(kind, str) and kind not in EventKind._value2member_map_:
        return None
    if tuple(map(type, map(data.get, _NEEDED))) != _FIELD_TYPES or not is_time(data["taken_ms"]):
        raise UnreadableError(f"a line is not a telemetry event: it needs {', '.join(_NEEDED)}")
    base, base_taken_ms = data.get("base"), data.get("base_taken_ms")
    if (base, base_taken_ms) != (None, None) and (
        (type(base), type(base_taken_ms)) != (str, int) or not is_time(base_taken_ms)
    ):
        raise UnreadableError("a line is not a telemetry event: base and base_taken_ms do not name a full look")
    event = TelemetryEvent(EventKind(kind), *[data[name] for name in _NEEDED[1:]])
    return event if base is None else event._replace(base=base, base_taken_ms=base_taken_ms)

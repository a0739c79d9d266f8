"""Looks as telemetry events and back: observation, memory and limits, exactly. Pure.

One event per broker, topic, group and part; `observation_from_events` of `observation_to_events` gives equal values.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from pydantic_core import SchemaError

from agent.memory.codec import UnreadableMemoryError, memory_from_json, memory_to_json
from agent.model.rack_locators import RackNetworkIndex, RackPatternIndex
from agent.telemetry.events import (
    GROUP_SHAPES,
    INPUT_SHAPES,
    ApplicationLagsData,
    BrokerConfigsData,
    CommittedOffset,
    CommittedOffsetsData,
    EventKind,
    GapsData,
    GroupConfigsData,
    LimitsData,
    ListedGroupsData,
    LookData,
    LookRow,
    MemoryData,
    PartitionOffset,
    ReassignmentsData,
    ReplicaBytes,
    TelemetryEvent,
    TopicData,
)
from agent.telemetry.limits_names import limits_from_record, limits_to_record, recorded_names
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.number_format import counted
from agent.values.observation import Observation
from agent.values.typed_json import UnreadableError, from_json, is_time
from agent.values.windows import DAY_MINUTES
from assignors.problem import TopicPartition

# Bounds of limits in telemetry, whose topic or file anyone with the right to write may fill: a negative budget or an
# unknown time zone is refused here, before a stage fails on it.

_MOST = 2**63
"""As a float it is the same; the largest number of 64 bits is not."""


def checked(limits: Limits) -> Limits:
    """The same limits. Raises UnreadableError with the first that is out of bounds."""
    for name, path in recorded_names().items():
        for at, number in _numbers(name, reduce(getattr, path, limits)):
            if not 0 <= number <= _MOST:
                raise UnreadableError(f"the limit {at} is {number}, and no limit is below 0 or has more than 64 bits")
    if limits.proposals.move_bytes_per_s < 1:
        raise UnreadableError(f"the limit move_bytes_per_s is {limits.proposals.move_bytes_per_s}, and is at least 1")
    windows = limits.windows
    for window in (*windows.allow, *windows.blackout):
        if max(window.start_minute, window.end_minute) > DAY_MINUTES or window.start_minute == DAY_MINUTES:
            raise UnreadableError("a window among the limits begins or ends after midnight of its day")
    _check_names(limits)
    return limits


def _check_names(limits: Limits) -> None:
    """Raises UnreadableError when a zone or a pattern is none."""
    windows = limits.windows
    try:
        for window in (*windows.allow, *windows.blackout):
            ZoneInfo(window.zone)
        for locator in limits.rack_locators:
            RackPatternIndex(locator.patterns)
            RackNetworkIndex(locator.networks)
    except (KeyError, ValueError, OSError, SchemaError) as error:
        why = str(error)[:200]
        raise UnreadableError(f"a window or a rack locator among the limits cannot be used: {why}") from error


def _numbers(name: str, value: Any) -> Iterator[tuple[str, int | float]]:
    """Every number in it with its path: ``execute.tick_ms``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value
    for inner, one in _parts(value):
        yield from _numbers(f"{name}{inner}", one)


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    """The parts of a value, by name."""
    if is_dataclass(value):
        return [(f".{field.name}", getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [(f"[{str(key)[:100]!r}]", one) for key, one in value.items()]
    if hasattr(value, "_fields"):
        return [(f".{name}", getattr(value, name)) for name in value._fields]
    return [("[]", one) for one in value] if isinstance(value, tuple | frozenset) else ()


class IncompleteLookError(ValueError):
    """Some events of the look are missing; the sentence names the look and how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleInputs:
    """The input of a cycle's pure stages."""

    look: str
    observation: Observation
    memory: Memory
    limits: Limits


def observation_rows(
    observation: Observation, memory: Memory, limits: Limits, findings: Mapping[str, int] | None = None
) -> Iterator[LookRow]:
    """Every event that rebuilds the look in full, in order; the last has their number.

    ``findings``: id -> epoch milliseconds, of this look; they rebuild nothing, and are for `restored_memory`.
    """
    n = 0
    for row in _rows(observation, memory, limits, findings):
        yield row
        n += 1
    yield _look_row(observation, n + 1)


def observation_from_events(events: Iterable[TelemetryEvent]) -> CycleInputs:
    """The look of these events, in any order, repeated or among events of other kinds.

    Raises IncompleteLookError when some are missing, UnreadableError when one cannot be read.
    """
    by_look_and_number = {(event.look, event.n): event for event in events if event.kind in INPUT_SHAPES}
    looks = {look for look, _ in by_look_and_number}
    if len(looks) != 1:
        raise IncompleteLookError(f"the events belong to {len(looks)} looks; give those of one")
    look = looks.pop()
    by_number = {n: event for (_, n), event in by_look_and_number.items()}
    last = by_number[max(by_number)]
    if last.kind is not EventKind.LOOK:
        raise IncompleteLookError(f"look {look} has no last event, so it is not known how many there were")
    head = from_json(LookData, last.data)
    if not is_time(head.taken_ms):
        raise UnreadableError(f"look {look} was taken at {head.taken_ms}, which is not a time in epoch milliseconds")
    missing = head.events - len(by_number)
    if missing:
        raise IncompleteLookError(f"look {look} lacks {missing} of its {counted(head.events, 'event')}")
    data: dict[EventKind, list[Any]] = defaultdict(list)
    for _, event in sorted(by_number.items()):
        kept_as = EventKind.GROUP if event.kind in GROUP_SHAPES else event.kind  # one list, in the order of the look
        data[kept_as].append(from_json(INPUT_SHAPES[event.kind], event.data))
    return CycleInputs(
        look=look,
        observation=_observation(last.cluster, head, data),
        memory=_read_memory(_only(data, EventKind.MEMORY)),
        limits=_limits(data),
    )


def looks_in(events: Iterable[TelemetryEvent]) -> Iterator[tuple[TelemetryEvent, ...]]:
    """The events of one look after the other; those of a look lie together in a file."""
    for _, look in groupby(events, key=lambda event: event.look):
        yield tuple(look)


def memory_of(event: TelemetryEvent) -> Memory:
    """The memory of a `MEMORY` event. Raises UnreadableError."""
    return _read_memory(from_json(MemoryData, event.data))


def restored_memory(event: TelemetryEvent) -> Memory:
    """The same with the findings of that look, so that none of them is new in the next one. Raises UnreadableError.

    Where the look began without a memory, its time is that of the look: a time of 0 would be 1970.
    """
    data = from_json(MemoryData, event.data)
    memory = _read_memory(data)
    if not memory.cycle:
        memory = replace(memory, taken_ms=event.taken_ms)
    if data.findings is None:
        return memory
    if not all(is_time(since) for since in data.findings.values()):
        raise UnreadableError("the findings beside the memory have a time that is not one in epoch milliseconds")
    past = {
        name: (since, memory.monotonic_ms) for name, since in memory.first_seen.items() if name not in data.findings
    }
    gone = {name: span for name, span in memory.gone.items() if name not in data.findings}
    return replace(memory, first_seen=data.findings, gone=gone | past)


def limits_data(limits: Limits) -> LimitsData:
    """The limits as their event has them; the digest is sixteen hex digits that change when any limit changes."""
    record = limits_to_record(limits)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return LimitsData(hashlib.sha256(text.encode()).hexdigest()[:16], record)


def limits_digest(limits: Limits) -> str:
    """Sixteen hex digits that change when any limit changes."""
    return limits_data(limits).digest


_OF_LOOK = tuple(name for name in LookData._fields if name != "events")
"""Fields that the last event of a look has in common with the observation."""


def _look_row(observation: Observation, events: int) -> LookRow:
    data = LookData(**{name: getattr(observation, name) for name in _OF_LOOK}, events=events)
    return LookRow(EventKind.LOOK, f"cluster/{observation.cluster_id}", data)


_KIND_OF_GROUP = {shape: kind for kind, shape in GROUP_SHAPES.items()}


def _rows(
    observation: Observation, memory: Memory, limits: Limits, findings: Mapping[str, int] | None
) -> Iterator[LookRow]:
    cluster = f"cluster/{observation.cluster_id}"
    yield LookRow(EventKind.LIMITS, cluster, limits_data(limits))
    yield LookRow(EventKind.MEMORY, cluster, MemoryData(memory_to_json(memory), findings))
    yield LookRow(EventKind.GAPS, cluster, GapsData(observation.gaps))
    yield LookRow(EventKind.REASSIGNMENTS, cluster, ReassignmentsData(observation.reassignments))
    yield LookRow(EventKind.APPLICATION_LAGS, cluster, ApplicationLagsData(observation.application_lags))
    yield LookRow(EventKind.LISTED_GROUPS, cluster, ListedGroupsData(observation.listed_groups))
    if observation.weights is not None:
        yield LookRow(EventKind.WEIGHTS, cluster, observation.weights)
    yield from (LookRow(EventKind.RACK_TABLE, f"locator/{table.locator}", table) for table in observation.rack_tables)
    yield from (LookRow(EventKind.BROKER, f"broker/{broker.id}", broker) for broker in observation.brokers)
    for broker, configs in observation.broker_configs.items():
        yield LookRow(EventKind.BROKER_CONFIGS, f"broker/{broker}", BrokerConfigsData(broker, configs))
    yield from _topic_rows(observation)
    yield from (LookRow(_KIND_OF_GROUP[type(group)], f"group/{group.group_id}", group) for group in observation.groups)
    for name, configs in observation.group_configs.items():
        yield LookRow(EventKind.GROUP_CONFIGS, f"group/{name}", GroupConfigsData(name, configs))
    for name, offsets in observation.committed_offsets.items():
        rows = tuple(CommittedOffset(*partition, offset) for partition, offset in offsets.items())
        yield LookRow(EventKind.COMMITTED_OFFSETS, f"group/{name}", CommittedOffsetsData(name, rows))


def _topic_rows(observation: Observation) -> Iterator[LookRow]:
    """A row per topic of the metadata, in its order, then one per topic that only other answers name."""
    ends: dict[str, list[PartitionOffset]] = defaultdict(list)
    for partition, offset in observation.end_offsets.items():
        ends[partition.topic].append(PartitionOffset(partition.partition, offset))
    sizes: dict[str, list[ReplicaBytes]] = defaultdict(list)
    for (broker, partition), size in observation.replica_bytes.items():
        sizes[partition.topic].append(ReplicaBytes(partition.partition, broker, size))
    configs: dict[str, Mapping[str, str]] = dict(observation.topic_configs)
    for row in observation.topics:
        name = row.name
        beside = configs.pop(name, None), tuple(ends.pop(name, ())), tuple(sizes.pop(name, ()))
        yield LookRow(EventKind.TOPIC, f"topic/{name}", TopicData(name, row, *beside))
    for name in dict.fromkeys((*configs, *ends, *sizes)):
        beside = configs.get(name), tuple(ends.get(name, ())), tuple(sizes.get(name, ()))
        yield LookRow(EventKind.TOPIC, f"topic/{name}", TopicData(name, None, *beside))


def _observation(cluster_id: str, head: LookData, data: Mapping[EventKind, list[Any]]) -> Observation:
    topics: list[TopicData] = data[EventKind.TOPIC]
    return Observation(
        **{name: getattr(head, name) for name in _OF_LOOK},
        cluster_id=cluster_id,
        brokers=tuple(data[EventKind.BROKER]),
        topics=tuple(topic.row for topic in topics if topic.row is not None),
        topic_configs={topic.name: topic.configs for topic in topics if topic.configs is not None},
        broker_configs={row.broker: row.configs for row in data[EventKind.BROKER_CONFIGS]},
        group_configs={row.group: row.configs for row in data[EventKind.GROUP_CONFIGS]},
        committed_offsets={
            row.group: {TopicPartition(at.topic, at.partition): at.offset for at in row.offsets}
            for row in data[EventKind.COMMITTED_OFFSETS]
        },
        end_offsets={
            TopicPartition(topic.name, at.partition): at.offset for topic in topics for at in topic.end_offsets
        },
        listed_groups=_only(data, EventKind.LISTED_GROUPS).groups,
        groups=tuple(data[EventKind.GROUP]),
        reassignments=_only(data, EventKind.REASSIGNMENTS).reassignments,
        replica_bytes={
            (at.broker, TopicPartition(topic.name, at.partition)): at.bytes
            for topic in topics
            for at in topic.replica_bytes
        },
        application_lags=_only(data, EventKind.APPLICATION_LAGS).lags,
        rack_tables=tuple(data[EventKind.RACK_TABLE]),
        weights=_only(data, EventKind.WEIGHTS) if data.get(EventKind.WEIGHTS) else None,
        gaps=_only(data, EventKind.GAPS).gaps,
    )


def _read_memory(data: MemoryData) -> Memory:
    try:
        return memory_from_json(data.text)
    except UnreadableMemoryError as error:
        raise UnreadableError(str(error)) from error


def _limits(data: Mapping[EventKind, list[Any]]) -> Limits:
    return checked(limits_from_record(_only(data, EventKind.LIMITS).limits))


def _only(data: Mapping[EventKind, list[Any]], kind: EventKind) -> Any:
    found = data.get(kind, [])
    if len(found) != 1:
        has = counted(len(found), "event")
        raise IncompleteLookError(f"the look has {has} of kind {kind}, where exactly one is expected")
    return found[0]

"""Looks as telemetry events and back: observation, memory and limits, exactly. Pure.

One event per broker, topic, group and part; `observation_from_events` of `observation_to_events` gives equal values,
and so does `limits_from_record` of `limits_to_record`. Limits have names of their own in format 1, which is nearly flat
and older than the settings' sections; a limit without one is written under its section and its setting's name.
"""

from __future__ import annotations

import hashlib
import json
import typing
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, reduce
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
from agent.values.clock import DAY_MINUTES
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.number_format import counted
from agent.values.observation import Observation
from agent.values.typed_json import UnreadableError, from_json, is_time, to_json
from assignors.problem import TopicPartition

_NAMES = """
mode groups default_group own_prefix=topics.prefix include_own_topics=scope.include_own_topics
exclude_topics=scope.exclude_topics exclude_groups=scope.exclude_groups keep_leaders=plan.keep_leaders rack_locators
rack_stable_ms=racks.stable_for_ms rack_stable_polls=racks.stable_polls rack_flap_changes=racks.flap_changes
rack_flap_window_ms=racks.flap_window_ms broker_absent_ms=racks.broker_absent_for_ms
stuck_rebalance_ms=detect.stuck_rebalance_after_ms min_gain_partitions=gain.min_partitions
min_gain_share=gain.min_share min_gain_bytes_per_s=gain.min_bytes_per_s leader_skew_share=detect.leader_skew_share
usd_per_gb=price.usd_per_gb prices=price.between predict_limit=plan.predict_limit
move_bytes_per_s=proposals.move_bytes_per_s max_proposals=proposals.max_per_cycle
max_moves_per_proposal=proposals.max_moves proposal_ttl_ms=proposals.ttl_ms
trigger_cooldown_ms=proposals.trigger_cooldown_ms throttle_grace_ms=detect.throttle_grace_ms
weights_max_age_ms=weights.max_age_ms

execute.cluster_id=cluster.id execute.request_timeout_ms execute.tick_ms execute.intent_valid_ms
execute.include_topics execute.exclude_topics execute.include_groups execute.exclude_groups execute.windows=windows
execute.max_moves_per_broker execute.max_moves_per_cluster execute.max_bytes_in_flight execute.batch_partitions
execute.throttle_bytes_per_s=execute.throttle execute.throttle_floor_bytes_per_s=execute.throttle_floor
execute.throttle_ceiling_bytes_per_s=execute.throttle_ceiling execute.throttle_headroom_share
execute.broker_bytes_per_s=execute.broker_bandwidth execute.min_isr_guard execute.stuck_after_ms
execute.grace_after_broker_loss_ms

execute.trigger.allow_eager=trigger.allow_eager execute.trigger.allow_static=trigger.allow_static
execute.trigger.allow_long_poll=trigger.allow_long_poll execute.trigger.allow_rolling=trigger.allow_rolling
execute.trigger.allow_transactional=trigger.allow_transactional execute.trigger.transactional=trigger.transactional
execute.trigger.long_poll=trigger.long_poll execute.trigger.rolling=trigger.rolling
execute.trigger.long_poll_ms=trigger.long_poll_ms execute.trigger.rolling_window_ms=trigger.rolling_window_ms
execute.group_triggers=group_triggers execute.own_rebalance_wait_ms=trigger.own_rebalance_wait_ms
execute.trigger_budget_per_group_per_hour=trigger.budget_per_group_per_hour
execute.trigger_budget_per_cycle=trigger.budget_per_cycle execute.trigger_budget_per_hour=trigger.budget_per_hour
execute.trigger_budget_per_day=trigger.budget_per_day execute.batch_budget_per_hour=execute.batches_per_hour
execute.batch_budget_per_day=execute.batches_per_day execute.move_budget_bytes_per_day=execute.bytes_per_day

execute.probing=probing.enabled execute.probing_floor_ms=probing.floor_ms
execute.probing_backoff_factor=probing.backoff_factor execute.probing_backoff_max_ms=probing.backoff_max_ms
execute.probing_near_deadline_ms=probing.near_deadline_ms execute.probing_share_ms=probing.share_ms
execute.probing_budget_per_group_per_hour=probing.budget_per_group_per_hour execute.probing_standbys=probing.standbys

execute.payback_max_days=execute.payback_days execute.hysteresis_share execute.hysteresis_window_ms
execute.move_cooldown_ms=execute.cooldown_ms execute.approve_triggers=approve.triggers
execute.approval_rules=approve.rules execute.approval_valid_ms=approve.valid_ms
execute.second_person=approve.second_person
"""
"""Name in a record, and the limit's path where that is another one; in the order in which they are written."""


@cache
def recorded_names() -> Mapping[str, tuple[str, ...]]:
    """Name in a record, dotted -> path of the limit. All limits, in the order in which they are written."""
    named = {name: path or name for name, _, path in (one.partition("=") for one in _NAMES.split())}
    named |= {path: path for path in _unnamed(Limits, frozenset(named.values()))}
    return {name: tuple(path.split(".")) for name, path in named.items()}


def limits_to_record(limits: Limits) -> dict[str, Any]:
    """The limits as telemetry has them: JSON-ready data."""
    data, record = to_json(Limits, limits), dict[str, Any]()
    for name, path in recorded_names().items():
        _put(record, tuple(name.split(".")), reduce(lambda section, key: section[key], path, data))
    return record


def limits_from_record(record: Mapping[str, Any]) -> Limits:
    """The limits; what the record leaves out keeps its default. Raises UnreadableError."""
    data: dict[str, Any] = {}
    for name, path in recorded_names().items():
        *sections, last = name.split(".")
        section: Any = record
        for key in sections:
            section = section.get(key, {})
            if not isinstance(section, dict):
                raise UnreadableError(f"no Limits: an object expected, {type(section).__name__} found")
        if last in section:
            _put(data, path, section[last])
    return from_json(Limits, data)


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1]] = value


def _unnamed(kind: Any, named: frozenset[str], section: str = "") -> Iterator[str]:
    """Paths of limits that have no other name."""
    for name, hint in typing.get_type_hints(kind).items():
        path = f"{section}{name}"
        if path not in named:
            yield from _unnamed(hint, named, f"{path}.") if is_dataclass(hint) else (path,)


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

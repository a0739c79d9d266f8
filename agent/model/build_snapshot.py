"""The snapshot of one observation: topics, sizes, weights of the pipeline, groups, lags and rates.

Invariants: equal observations and memories give equal snapshots, with a memo or without; an unchanged value is the
same object as before; a missing answer does not make anything count as deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple, TypeVar

from agent.decode.values import DecodedGroups
from agent.model.groups import SnapshotGroups, groups_of
from agent.model.lags import LagOffsets, ObservationTime, copies_of
from agent.model.members import brokers_of, selector_is_rack_aware
from agent.model.rack_locators import located, locator_states
from agent.model.streams import NO_OFFSETS, byte_rates
from agent.values.kafka import CLEANUP_POLICY, FOLLOWER_REPLICAS, LEADER_REPLICAS, MIN_INSYNC_REPLICAS
from agent.values.limits import Limits
from agent.values.memo import Memo, each
from agent.values.memory import Memory
from agent.values.number_format import counted, lasted
from agent.values.observation import (
    Gap,
    GapCause,
    Observation,
    ObservationPart,
    RawApplicationLag,
    RawPartition,
    RawTopic,
)
from agent.values.snapshot import PartitionState, Reassignment, Snapshot, StreamsGroup, TaskCopy, TopicState
from agent.values.weights import (
    NOT_WEIGHED,
    FreshWeights,
    GroupRates,
    RateColumn,
    RestoreWeight,
    TopicRates,
    WeightsReading,
    WeightsState,
)
from assignors.problem import TopicPartition

# Topics: a topic that the brokers could not describe is left out; its gap is in the observation.

_new = tuple.__new__
"""Constructor under a named tuple's ``__new__``, in less than half its time."""
_MOST_PARTITIONS = 1_000_000
"""More than a whole cluster has; arrays are as long as a topic's highest number."""
_NO_CONFIG: Mapping[str, str] = {}
_NAME = _NUMBER = itemgetter(0)


class SnapshotTopics(NamedTuple):
    """The topics of the cluster and the brokers of their replicas."""

    by_name: Mapping[str, TopicState]
    """Sorted."""
    brokers: frozenset[int]
    """Every broker that holds a replica of something."""


def topics_of(observation: Observation, limits: Limits, memo: Memo) -> SnapshotTopics:
    """Every described topic by name."""
    rows, configs, prefix = observation.topics, observation.topic_configs, limits.topics.prefix
    return memo.of(("topics",), (rows, configs, prefix), lambda: _topics(rows, configs, prefix, memo))


def is_own(name: str, prefix: str) -> bool:
    """True for a topic or group of rackwise itself: its prefix, alone or before a separator."""
    return name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in ("", ".", "-", "_")


def _topics(
    rows: tuple[RawTopic, ...], configs: Mapping[str, Mapping[str, str]], prefix: str, memo: Memo
) -> SnapshotTopics:
    described = [(row, configs.get(row.name, _NO_CONFIG)) for row in rows if row.error is None or row.partitions]
    built = each(
        memo, "topics", described, lambda pair: pair[0].name, lambda pair: _topic(*pair, prefix), context=(prefix,)
    )
    by_name = {topic.name: topic for topic in sorted(built, key=_NAME)}
    brokers = frozenset().union(*[state.replicas for topic in built for state in topic.partitions])
    return SnapshotTopics(by_name, brokers)


def _topic(raw: RawTopic, config: Mapping[str, str], prefix: str) -> TopicState:
    name = raw.name
    return TopicState(
        name,
        raw.topic_id,
        raw.internal,
        is_own(name, prefix),
        tuple(
            [
                _new(PartitionState, (_new(TopicPartition, (name, number)), leader, replicas, isr, offline))
                for number, leader, replicas, isr, offline in _possible(sorted(raw.partitions, key=_NUMBER))
            ]
        ),
        _number(config.get(MIN_INSYNC_REPLICAS)),
        config.get(CLEANUP_POLICY) or None,
        config.get(LEADER_REPLICAS) or None,
        config.get(FOLLOWER_REPLICAS) or None,
    )


def _possible(rows: list[RawPartition]) -> list[RawPartition]:
    """Without what no topic has: a number twice, below zero or too high, a replica twice, no replica at all."""
    if all(row[0] == at and 0 < len(row[2]) == len(set(row[2])) for at, row in enumerate(rows)):
        return rows
    first: dict[int, RawPartition] = {}
    for row in rows:
        if 0 <= row.partition < _MOST_PARTITIONS and row.replicas:
            first.setdefault(row.partition, row._replace(replicas=tuple(dict.fromkeys(row.replicas))))
    return list(first.values())


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


def _sizes(replica_bytes: Mapping[tuple[int, TopicPartition], int]) -> dict[TopicPartition, int]:
    """Bytes of the largest replica of each partition in DescribeLogDirs."""
    sizes: dict[TopicPartition, int] = {}
    for (_, partition), size in replica_bytes.items():
        if size > sizes.get(partition, -1):
            sizes[partition] = size
    return sizes


# Weights of the pipeline: their age is that of the last observation in them, by both wall clocks. Records that are too
# old, or from the future by more than the same bound, are ignored. What is laid out is bounded by the cluster's topics.


def weighed(observation: Observation, limits: Limits, memo: Memo) -> tuple[FreshWeights, WeightsState | None]:
    """The fresh weights by name, and the state of all weights; None where none are read."""
    raw = observation.weights
    if raw is None:
        return NOT_WEIGHED, None
    now_ms, most_ms = observation.taken_ms, limits.weights.max_age_ms
    topics = tuple([one for one in raw.topics if _is_fresh(one, now_ms, most_ms)])
    groups = tuple([one for one in raw.groups if _is_fresh(one, now_ms, most_ms)])
    laid_out = NOT_WEIGHED
    if topics:
        sizes = {topic.name: len(topic.partitions) for topic in observation.topics}
        laid_out = memo.of(("weighed",), (topics, groups, sizes), lambda: _lay_out(topics, groups, sizes))
    fresh: tuple[TopicRates | GroupRates, ...] = (*topics, *groups) if topics else ()
    state = WeightsState(
        to_ms=max([one.to_ms for one in fresh], default=None),
        from_ms=min([one.from_ms for one in fresh], default=None),
        why_not=None if fresh else _why_not(raw, now_ms, most_ms),
        silent=not fresh and not raw.topics and not raw.groups and not raw.unreadable,
        stale=len(raw.topics) + len(raw.groups) - len(topics) - len(groups),
        unreadable=raw.unreadable,
        example=raw.example,
    )
    return laid_out, state


def rates_with(weights: FreshWeights, own: Mapping[TopicPartition, float]) -> Mapping[TopicPartition, float]:
    """Bytes per second of each partition with a known rate: by weights, else by the agent's own."""
    if not own:
        return weights.bytes_per_s
    return {**own, **weights.bytes_per_s} if weights.bytes_per_s else own


def _is_fresh(one: TopicRates | GroupRates, now_ms: int, most_ms: int) -> bool:
    return abs(now_ms - one.to_ms) <= most_ms


def _why_not(raw: WeightsReading, now_ms: int, most_ms: int) -> str:
    """The newest of the weights decides."""
    ends = [*[one.to_ms for one in raw.topics], *[one.to_ms for one in raw.groups]]
    if raw.missing is None and ends:
        return _too_old(min((now_ms - end for end in ends), key=abs), most_ms)
    if raw.missing is None and raw.unreadable:
        return f"0 of {counted(raw.unreadable, 'record')} in {raw.topic} can be read; example: {raw.example}"
    return raw.missing or f"{raw.topic} holds {'weights of other clusters only' if raw.others else 'no weights'}"


def _too_old(age_ms: int, most_ms: int) -> str:
    if age_ms < -most_ms:
        return f"they come from {lasted(-age_ms)} after this look, so one of the two clocks is wrong"
    if age_ms <= most_ms:
        return "they contain groups only, and no topic"
    return f"they are {lasted(age_ms)} old, {lasted(age_ms - most_ms)} more than weights.max_age allows"


def _lay_out(topics: Sequence[TopicRates], groups: Sequence[GroupRates], sizes: Mapping[str, int]) -> FreshWeights:
    columns: dict[str, RateColumn] = {}
    for topic in topics:
        size = sizes.get(topic.topic, 0)
        if size:
            columns[topic.topic] = _column(columns.get(topic.topic) or (None,) * size, topic)
    restores = {group.group: group.restores for group in groups if group.restores}
    return FreshWeights(
        topics=columns,
        groups=_reads(groups, columns),
        restores=dict(sorted(restores.items())),
        bytes_per_s={
            TopicPartition(topic, number): rate
            for topic, column in columns.items()
            for number, rate in enumerate(column)
            if rate is not None
        },
    )


def _column(before: RateColumn, topic: TopicRates) -> RateColumn:
    """The column with these rates in it; partitions that the topic does not have are left aside."""
    column = list(before)
    for number, rate in zip(topic.partitions, topic.bytes_per_s, strict=True):
        if number < len(column):
            column[number] = rate
    return tuple(column)


def _reads(groups: Iterable[GroupRates], columns: Mapping[str, RateColumn]) -> dict[str, dict[TopicPartition, float]]:
    """Bytes per second that groups read of partitions, where they differ from the inbound rate."""
    reads: dict[str, dict[TopicPartition, float]] = {}
    for group in groups:
        for topic, partitions, rates in group.reads:
            inbound = columns.get(topic)
            if inbound is None:
                continue
            for number, rate in zip(partitions, rates, strict=True):
                if number < len(inbound) and rate != inbound[number]:
                    reads.setdefault(group.group, {})[TopicPartition(topic, number)] = rate
    return reads


_Value = TypeVar("_Value")


def build_snapshot(
    observation: Observation, decoded: DecodedGroups, memory: Memory, limits: Limits, memo: Memo | None = None
) -> Snapshot:
    """The cluster as one value. With a memo, only changed parts are built again."""
    memo = memo if memo is not None else Memo()
    topics = topics_of(observation, limits, memo)
    by_locators = located(observation, limits.rack_locators, memo)
    groups = groups_of(
        observation, decoded, topics.by_name, memory=memory, limits=limits, memo=memo, located=by_locators
    )
    weights, weights_state = weighed(observation, limits, memo)
    brokers = _same("brokers", brokers_of(observation, topics.brokers, memory, by_locators), memo)
    return Snapshot(
        cluster_id=observation.cluster_id,
        controller=observation.controller,
        brokers=brokers,
        topics=topics.by_name,
        groups=groups.by_id,
        copies=_copies(observation, groups, memory, limits, weights.restores),
        reassignments=_reassignments(observation, memory),
        broker_configs=observation.broker_configs,
        group_configs=observation.group_configs,
        selector_is_rack_aware=selector_is_rack_aware(brokers, observation.broker_configs),
        end_offsets=observation.end_offsets,
        committed_offsets=observation.committed_offsets,
        size_bytes=memo.of(("sizes",), (observation.replica_bytes,), partial(_sizes, observation.replica_bytes)),
        sizes_fresh=ObservationPart.LOG_DIRS not in observation.ages_ms,
        bytes_per_s=rates_with(weights, byte_rates(observation.end_offsets, memory, observation.monotonic_ms)),
        weighed=weights,
        weights=weights_state,
        rack_locators=locator_states(observation, limits.rack_locators),
        rights=observation.rights,
        vanished_topics=observation.vanished_topics,
        vanished_groups=observation.vanished_groups,
        gaps=_same("gaps", _gaps(observation), memo),
        taken_ms=observation.taken_ms,
        monotonic_ms=observation.monotonic_ms,
    )


def _same(name: str, value: _Value, memo: Memo) -> _Value:
    """The last object when this one is equal, so that later stages compare by identity."""
    return memo.of((name,), (value,), lambda: value)


def _copies(
    observation: Observation,
    groups: SnapshotGroups,
    memory: Memory,
    limits: Limits,
    restores: Mapping[str, tuple[RestoreWeight, ...]],
) -> Mapping[str, tuple[TaskCopy, ...]]:
    reported: dict[str, list[RawApplicationLag]] = {}
    for row in observation.application_lags:
        reported.setdefault(row.group_id, []).append(row)
    clock = ObservationTime(observation.taken_ms, observation.monotonic_ms)
    none: Sequence[RawApplicationLag] = ()
    copies = {}
    for name in sorted(groups.offsets):
        group = groups.by_id[name]
        if isinstance(group, StreamsGroup):
            facts = groups.offsets.get(name, NO_OFFSETS)
            offsets = LagOffsets(observation.end_offsets, observation.committed_offsets.get(name))
            copies[name] = copies_of(
                group,
                facts,
                offsets,
                reported.get(name, none),
                memory=memory,
                settings=limits.group(name),
                clock=clock,
                learned=restores.get(name, ()),
            )
    return copies


def _reassignments(observation: Observation, memory: Memory) -> Mapping[TopicPartition, Reassignment]:
    moves = {}
    for raw in sorted(observation.reassignments):
        running = memory.reassignments.get(raw.id)
        own = raw.id in memory.own_reassignments or (running is not None and running.own)
        moves[raw.id] = Reassignment(raw.id, tuple(dict.fromkeys(raw.replicas)), raw.adding, raw.removing, own)
    return moves


def _gaps(observation: Observation) -> tuple[Gap, ...]:
    """The gaps of the observation; an answer without brokers is one too."""
    gaps = list(observation.gaps)
    if not observation.brokers and not any(gap.part is ObservationPart.BROKERS for gap in gaps):
        sentence = "the metadata lists no broker; brokers count as unknown, not as gone"
        gaps.append(Gap(ObservationPart.BROKERS, GapCause.DOUBTED, "", sentence))
    return tuple(sorted(set(gaps), key=lambda gap: (gap.part, gap.cause, gap.subject, gap.detail)))

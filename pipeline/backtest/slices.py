"""Looks split by group, so that history is replayed in parts: groups with the topics that they read, and brokers.

A row is a group in a look. What seldom changes, the group and its topics, is written where it is first seen in a part
and named by its digest from then on, for each group by itself; figures are in each row. The parts of a cluster are
its buckets of groups; each has a row about the world in every look. Cutting runs the agent's decoding and modelling
once for all strategies.

Invariant: what `LookRebuilder` makes of the rows holds the same groups, topics and brokers as the look that was cut.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np

from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory, RackChange, RackSighting, StreamsMemory
from agent.values.observation import Gap
from agent.values.snapshot import (
    BrokerState,
    ConsumerGroup,
    Group,
    LocatorState,
    Reassignment,
    Snapshot,
    StreamsGroup,
    TaskCopy,
    TopicState,
    topics_of,
)
from agent.values.typed_json import from_json, to_json
from agent.values.weights import NOT_WEIGHED, FreshWeights, RateColumn, RestoreWeight, WeightsState
from assignors.problem import TopicPartition
from pipeline.backtest.costs import rates_of
from pipeline.backtest.look import HistoryLook, Rates

T = TypeVar("T")
WORLD, GROUP = 0, 1
"""Kinds of row, in the order of a look's rows."""


class LookSlice(NamedTuple):
    """A row: columns of backtest.slices."""

    bucket: int
    taken_ms: int
    look: str
    kind: int
    subject: str
    """Group; empty for the world."""
    group_digest: int
    topics_digest: int
    group_body: bytes | None
    """The digest's content as JSON; None where it was written before. The world is written in each row."""
    topics_body: bytes | None
    moving: bytes | None
    """What changes in each look: copies of tasks and what is remembered of the group. None for a plain group."""
    weights_digest: int
    """Which weights of the pipeline, for this group and its topics; 0 for none."""
    weights_body: bytes | None
    """That digest's content as JSON, where it comes first."""
    rates: bytes | None
    """Bytes per second by topic and partition, as 32-bit floats, little end first, NaN for unknown; None for all."""


class WorldData(NamedTuple):
    """What all groups of a look have in common."""

    controller: int | None
    brokers: tuple[BrokerState, ...]
    selector_is_rack_aware: bool | None
    rack_locators: tuple[LocatorState, ...]
    reassignments: tuple[Reassignment, ...]
    gaps: tuple[Gap, ...]
    monotonic_ms: int
    cycle: int
    sightings: Mapping[int, RackSighting]
    changes: tuple[RackChange, ...]
    acts: Mapping[str, int]
    limits: Limits
    weights: WeightsState | None = None


class GroupData(NamedTuple):
    """One of the two."""

    consumer: ConsumerGroup | None = None
    streams: StreamsGroup | None = None


class TopicsData(NamedTuple):
    """Topics that decide about a group."""

    topics: tuple[TopicState, ...]


class WeightsData(NamedTuple):
    """Weights that a plan for a group may rest on."""

    topics: Mapping[str, RateColumn] = {}
    reads: Mapping[TopicPartition, float] | None = None
    """What the group reads of a partition, where that is not what the partition takes in."""
    restores: tuple[RestoreWeight, ...] | None = None


class MovingData(NamedTuple):
    """What changes in each look."""

    copies: tuple[TaskCopy, ...] = ()
    memory: StreamsMemory | None = None
    rebalancing_ms: int | None = None


class TornSlices(ValueError):  # noqa: N818 named for the rows
    """Rows name something that was never written."""


def bucket_of(group: str, buckets: int) -> int:
    """The part of a cluster that a group belongs to, the same in every look."""
    return zlib.crc32(group.encode("utf-8", "surrogatepass")) % buckets


class LookSlicer:
    """Cuts the looks of one stretch, in their order."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._written: set[tuple[str, int]] = set()
        self._digests = Memo()

    def rows(self, look: HistoryLook) -> Iterator[LookSlice]:
        """The rows of a look, those about the world first."""
        snapshot = look.snapshot
        world = _bytes(WorldData, _world(look))
        groups = [one for one in snapshot.groups.values() if isinstance(one, ConsumerGroup | StreamsGroup)]
        of = {group.id: bucket_of(group.id, self._buckets) for group in groups}
        for bucket in sorted(set(of.values())):
            yield LookSlice(bucket, snapshot.taken_ms, look.name, WORLD, "", 0, 0, world, None, None, 0, None, None)
        for group in groups:
            yield self._row(look, group, of[group.id])
        self._digests.turn()

    def _row(self, look: HistoryLook, group: ConsumerGroup | StreamsGroup, bucket: int) -> LookSlice:
        snapshot, memory = look.snapshot, look.memory
        of = self._digests.of
        names = of(("names", group.id), (group,), lambda: topics_of(group))
        topics = tuple([snapshot.topics[name] for name in names if name in snapshot.topics])
        body, digest = of(("group", group.id), (group,), lambda: _digested(GroupData, _data(group)))
        topics_body, topics_digest = of(
            ("topics", group.id), (topics,), lambda: _digested(TopicsData, TopicsData(topics))
        )
        weights = _weights(snapshot.weighed, group.id, names)
        weights_body, weights_digest = of(
            ("weights", group.id), (weights,), lambda: (b"", 0) if weights is None else _digested(WeightsData, weights)
        )
        moving = MovingData(
            snapshot.copies.get(group.id, ()), memory.streams.get(group.id), memory.rebalancing.get(group.id)
        )
        rates = look.rates.get(group.id) if look.rates is not None else rates_of(snapshot, topics)
        known = rates is not None and not np.isnan(rates).all()
        return LookSlice(
            bucket,
            snapshot.taken_ms,
            look.name,
            GROUP,
            group.id,
            digest,
            topics_digest,
            self._once(group.id, digest, body),
            self._once(group.id, topics_digest, topics_body),
            None if moving == MovingData() else _bytes(MovingData, moving),
            weights_digest,
            self._once(group.id, weights_digest, weights_body) if weights_digest else None,
            rates.astype("<f4").tobytes() if rates is not None and known else None,
        )

    def _once(self, group: str, digest: int, body: bytes) -> bytes | None:
        """Once for each group, though others may read the same topics: groups are picked and planned apart."""
        if (group, digest) in self._written:
            return None
        self._written.add((group, digest))
        return body


class LookRebuilder:
    """Rebuilds looks from rows, for one bucket of one cluster; looks come in their order."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._groups: dict[int, Group] = {}
        self._topics: dict[int, tuple[TopicState, ...]] = {}
        self._known: dict[str, TopicState] = {}
        self._weights: dict[int, WeightsData] = {}
        self._same = Memo()
        self._before: tuple[list[int], list[str]] = ([], [])
        self._laid: tuple[Mapping[str, Group], Mapping[str, TopicState]] = ({}, {})

    def look(self, rows: Sequence[Sequence[Any]]) -> HistoryLook:
        """The look of these rows: a `LookSlice` each, or something in the same order. Raises TornSlices."""
        world: WorldData | None = None
        digests: list[int] = []
        names: list[str] = []
        rates: dict[str, Rates] = {}
        moving: dict[str, bytes] = {}
        weight_digests: dict[str, int] = {}
        for row in map(LookSlice._make, rows):
            if row.kind == WORLD:
                world = from_json(WorldData, json.loads(row.group_body or b""))
                continue
            self._keep(row)
            if row.weights_digest:
                weight_digests[row.subject] = row.weights_digest
            digests += (row.group_digest, row.topics_digest)
            names.append(row.subject)
            if row.rates is not None:
                rates[row.subject] = np.frombuffer(row.rates, dtype="<f4").astype(np.float64)
            if row.moving is not None:
                moving[row.subject] = row.moving
        _, taken_ms, name, *_ = rows[0]
        if world is None:
            raise TornSlices(f"look {name} of cluster {self._cluster} has no row about the world")
        groups, topics_by_name = self._arranged(digests, names, name)
        moving_data = {subject: from_json(MovingData, json.loads(body)) for subject, body in moving.items()}
        parts = _Parts(groups, topics_by_name, moving_data, rates, self._weighed(weight_digests, name))
        return _look(self._cluster, name, taken_ms, world, parts, self._same)

    def _keep(self, row: LookSlice) -> None:
        """Keep the bodies that are written here first."""
        if row.group_body is not None and row.group_digest not in self._groups:
            self._groups[row.group_digest] = _group(row.group_body)
        if row.topics_body is not None and row.topics_digest not in self._topics:
            self._topics[row.topics_digest] = self._topic_states(row.topics_body)
        if row.weights_body is not None and row.weights_digest not in self._weights:
            self._weights[row.weights_digest] = from_json(WeightsData, json.loads(row.weights_body))

    def _weighed(self, digests: Mapping[str, int], look: str) -> FreshWeights:
        """The weights of all groups; one object for as long as they are the same."""
        if not digests:
            return NOT_WEIGHED
        key = tuple(digests.items())
        try:
            return self._same.of(("weighed",), (key,), lambda: _together({n: self._weights[d] for n, d in key}))
        except KeyError as error:
            raise TornSlices(
                f"look {look} of cluster {self._cluster} names {error}, which was never written"
            ) from error

    def _topic_states(self, body: bytes) -> tuple[TopicState, ...]:
        """The topics; one that other groups read too is the same object for all."""
        states = []
        for topic in from_json(TopicsData, json.loads(body)).topics:
            known = self._known.get(topic.name)
            states.append(known if known == topic else topic)
        return tuple(states)

    def _arranged(
        self, digests: list[int], names: list[str], look: str
    ) -> tuple[Mapping[str, Group], Mapping[str, TopicState]]:
        """Groups and topics by name; the same objects as long as nothing changes."""
        if (digests, names) == self._before:
            return self._laid
        try:
            found = {name: self._groups[digest] for name, digest in zip(names, digests[::2], strict=True)}
            read = [self._topics[digest] for digest in digests[1::2]]
        except KeyError as error:
            raise TornSlices(
                f"look {look} of cluster {self._cluster} names {error}, which was never written"
            ) from error
        topics = {topic.name: topic for states in read for topic in states}
        self._known = topics
        self._before = digests, names
        self._laid = dict(sorted(found.items())), dict(sorted(topics.items()))
        return self._laid


class _Parts(NamedTuple):
    groups: Mapping[str, Group]
    topics: Mapping[str, TopicState]
    moving: Mapping[str, MovingData]
    rates: Mapping[str, Rates]
    weighed: FreshWeights


def _look(  # noqa: PLR0917 the parts of a look
    cluster: str, name: str, taken_ms: int, world: WorldData, parts: _Parts, same: Memo
) -> HistoryLook:
    brokers = same.of(("brokers",), (world.brokers,), lambda: world.brokers)
    gaps = same.of(("gaps",), (world.gaps,), lambda: world.gaps)
    limits = same.of(("limits",), (world.limits,), lambda: world.limits)
    same.turn()
    snapshot = Snapshot(
        cluster_id=cluster,
        controller=world.controller,
        brokers=brokers,
        topics=parts.topics,
        groups=parts.groups,
        copies={name: of.copies for name, of in sorted(parts.moving.items()) if of.copies},
        reassignments={move.id: move for move in world.reassignments},
        selector_is_rack_aware=world.selector_is_rack_aware,
        rack_locators=world.rack_locators,
        bytes_per_s=parts.weighed.bytes_per_s,
        weighed=parts.weighed,
        weights=world.weights,
        gaps=gaps,
        taken_ms=taken_ms,
        monotonic_ms=world.monotonic_ms,
    )
    moving = parts.moving.items()
    memory = Memory(
        cycle=world.cycle,
        brokers=world.sightings,
        changes=world.changes,
        acts=world.acts,
        streams={name: of.memory for name, of in moving if of.memory is not None},
        rebalancing={name: of.rebalancing_ms for name, of in moving if of.rebalancing_ms is not None},
        # What became of topics is in `changes`; nothing is looked for in a part.
        topic_states=snapshot.topics,
    )
    return HistoryLook(name=name, snapshot=snapshot, memory=memory, limits=limits, whole=False, rates=parts.rates)


def _world(look: HistoryLook) -> WorldData:
    snapshot, memory = look.snapshot, look.memory
    return WorldData(
        controller=snapshot.controller,
        brokers=snapshot.brokers,
        selector_is_rack_aware=snapshot.selector_is_rack_aware,
        rack_locators=snapshot.rack_locators,
        reassignments=tuple(snapshot.reassignments.values()),
        gaps=snapshot.gaps,
        monotonic_ms=snapshot.monotonic_ms,
        cycle=memory.cycle,
        sightings=memory.brokers,
        changes=memory.changes,
        acts=memory.acts,
        limits=look.limits,
        weights=snapshot.weights,
    )


def _weights(weighed: FreshWeights, group: str, topics: Iterable[str]) -> WeightsData | None:
    """What concerns a group; None for nothing."""
    if weighed is NOT_WEIGHED:
        return None
    columns = {name: weighed.topics[name] for name in topics if name in weighed.topics}
    weights = WeightsData(columns, weighed.groups.get(group), weighed.restores.get(group))
    return None if weights == WeightsData() else weights


def _together(by_group: Mapping[str, WeightsData]) -> FreshWeights:
    topics = {name: column for one in by_group.values() for name, column in one.topics.items()}
    return FreshWeights(
        topics=dict(sorted(topics.items())),
        groups={name: one.reads for name, one in by_group.items() if one.reads is not None},
        restores={name: one.restores for name, one in by_group.items() if one.restores is not None},
        bytes_per_s={
            TopicPartition(name, number): rate
            for name, column in topics.items()
            for number, rate in enumerate(column)
            if rate is not None
        },
    )


def _data(group: ConsumerGroup | StreamsGroup) -> GroupData:
    return GroupData(consumer=group) if isinstance(group, ConsumerGroup) else GroupData(streams=group)


def _group(body: bytes) -> Group:
    data = from_json(GroupData, json.loads(body))
    group = data.consumer or data.streams
    if group is None:
        raise TornSlices("a row names a group and tells none")
    return group


def _digested(kind: type[T], value: T) -> tuple[bytes, int]:
    body = _bytes(kind, value)
    return body, int.from_bytes(blake2b(body, digest_size=8).digest(), "big", signed=True)


def _bytes(kind: type[T], value: T) -> bytes:
    return json.dumps(to_json(kind, value), separators=(",", ":")).encode()

"""Rack changes of partitions with their causes, and how long each broker's rack has been steady.

Partitions are compared by the racks of their replicas, after a running reassignment against the time before it. A
partition with all its replicas and more counts as moving for one observation, as the two answers may differ in age.
The first observation, unknown racks and missing parts give no change. A change is kept for `KEPT_MS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from agent.values.limits import Limits
from agent.values.memory import ChangeCause, Memory, PartitionChange, RackChange, RackSighting, Replicas, TopicMemory
from agent.values.observation import ObservationPart
from agent.values.snapshot import RackState, Snapshot, TopicState
from agent.values.throttles import RackRoom, crowding, original_replicas, rack_room, target_replicas
from assignors.problem import TopicPartition

# Steadiness (hysteresis): in time, in observations and in the number of changes. Racks of the first observation count
# as steady. An absent broker keeps its last rack. A missing rack is never a changed rack, only an unsteady one.

CHANGES_KEPT = 16
"""The settings let no more of them be needed for a rack that flaps."""


class RackSteadiness(StrEnum):
    """How far a broker's rack may be planned from."""

    STEADY = "steady"
    NEW = "changed a moment ago"
    FLAPPING = "changes too often"


def sightings(memory: Memory, snapshot: Snapshot) -> dict[int, RackSighting]:
    """The sightings of every broker ever seen, with this look counted in."""
    counted_in = dict(memory.brokers)
    for broker in snapshot.brokers:
        if broker.rack.remembered or broker.host is None or broker.rack.state is RackState.CONFLICTING:
            continue
        counted_in[broker.id] = _look(counted_in.get(broker.id), broker.rack.name, snapshot.monotonic_ms)
    return dict(sorted(counted_in.items()))


def steadiness(sighting: RackSighting, now_ms: int, limits: Limits) -> RackSteadiness:
    """Steadiness of the rack: flapping comes before new."""
    recent = sum(now_ms - at <= limits.racks.flap_window_ms for at in sighting.changes)
    if recent >= limits.racks.flap_changes:
        return RackSteadiness.FLAPPING
    if sighting.changes and not _held_still(sighting, now_ms, limits):
        return RackSteadiness.NEW
    return RackSteadiness.STEADY


def unsteady(brokers: Mapping[int, RackSighting], now_ms: int, limits: Limits) -> frozenset[int]:
    """Brokers whose racks are not steady: no plan rests on them."""
    return frozenset(
        broker
        for broker, sighting in brokers.items()
        if steadiness(sighting, now_ms, limits) is not RackSteadiness.STEADY
    )


def _held_still(sighting: RackSighting, now_ms: int, limits: Limits) -> bool:
    return now_ms - sighting.since_ms >= limits.racks.stable_for_ms and sighting.polls >= limits.racks.stable_polls


def _look(before: RackSighting | None, rack: str | None, now_ms: int) -> RackSighting:
    if before is None:
        return RackSighting(rack, rack, None, now_ms, 1)
    if rack == before.rack:
        return before._replace(polls=before.polls + 1)
    changes = (*before.changes, now_ms)[-CHANGES_KEPT:]
    if rack is None or before.known is None or rack == before.known:
        return before._replace(
            rack=rack, known=before.known if rack is None else rack, since_ms=now_ms, polls=1, changes=changes
        )
    return RackSighting(rack, rack, before.known, now_ms, 1, changes)


KEPT_MS = 1_800_000
EXAMPLES = 5

_Racks = Mapping[int, str | None]


class _ComparedRacks(NamedTuple):
    """Racks of the brokers in the last observation and in this one, and partitions that are not comparable yet."""

    before: _Racks
    now: _Racks
    doubted: AbstractSet[TopicPartition]
    """They may be moving."""
    blind: bool
    """Moves are not shown: each partition may be moving."""


def rack_changes(memory: Memory, snapshot: Snapshot) -> tuple[RackChange, ...]:
    """The changes between the last look and this one and those still kept, newest first, one per cause and subject."""
    kept = {
        (change.cause, change.subject): change
        for change in memory.changes
        if snapshot.monotonic_ms - change.seen_ms <= KEPT_MS
    }
    if memory.cycle:
        kept |= {(change.cause, change.subject): change for change in _new_changes(memory, snapshot)}
    return tuple(sorted(kept.values(), key=lambda change: (-change.seen_ms, change.cause.name, str(change.subject))))


def _new_changes(memory: Memory, snapshot: Snapshot) -> list[RackChange]:
    now = sightings(memory, snapshot)
    racks = _ComparedRacks(
        {broker: sighting.known for broker, sighting in memory.brokers.items()},
        {broker: sighting.known for broker, sighting in now.items()},
        widened_partitions(memory, snapshot).keys(),
        moves_hidden(snapshot),
    )
    room = rack_room(snapshot.brokers)
    changes = [
        change
        for broker in _relabelled(memory.brokers, now)
        if (change := _relabelling(broker, racks, memory, snapshot)) is not None
    ]
    for topic in topics_to_compare(memory, snapshot):
        changes.extend(_changes_of(topic, racks, room, memory, snapshot))
    return changes


def topics_to_compare(memory: Memory, snapshot: Snapshot) -> Iterator[TopicState]:
    """The topics that differ from the last look, and those in which something moves, moved or may move."""
    touched = {tp.topic for tp in (*memory.reassignments, *memory.widened, *snapshot.reassignments)}
    if snapshot.topics is memory.topic_states and not touched:
        return
    for name, topic in snapshot.topics.items():
        if memory.topic_states.get(name) is not topic or name in touched:
            yield topic


def moves_hidden(snapshot: Snapshot) -> bool:
    """True when the running reassignments are unknown."""
    return any(gap.part is ObservationPart.REASSIGNMENTS for gap in snapshot.gaps)


def widened_partitions(memory: Memory, snapshot: Snapshot) -> Mapping[TopicPartition, Replicas]:
    """Partitions with added replicas and no listed reassignment -> replicas; they count as moving at this look."""
    widened = {}
    for topic in topics_to_compare(memory, snapshot):
        known = memory.topics.get(topic.name)
        if known is None or _recreated(known, topic):
            continue
        for state in topic.partitions:
            previous = known.replicas[state.id.partition] if state.id.partition < len(known.replicas) else ()
            more = 0 < len(previous) < len(state.replicas) and set(previous) <= set(state.replicas)
            if more and state.id not in snapshot.reassignments:
                widened[state.id] = state.replicas
    return {id_: replicas for id_, replicas in sorted(widened.items()) if memory.widened.get(id_) != replicas}


def _relabelled(before: Mapping[int, RackSighting], now: Mapping[int, RackSighting]) -> list[int]:
    return [
        broker
        for broker, sighting in now.items()
        if broker in before and before[broker].known is not None and sighting.known != before[broker].known
    ]


def _relabelling(broker: int, racks: _ComparedRacks, memory: Memory, snapshot: Snapshot) -> RackChange | None:
    """The change of all partitions on one broker with a new rack."""
    count = 0
    topics = set()
    examples: list[PartitionChange] = []
    for name, known in memory.topics.items():
        for partition, replicas in enumerate(known.replicas):
            if broker in replicas and _differ(_racks(replicas, racks.before), _racks(replicas, racks.now)):
                count += 1
                topics.add(name)
                if len(examples) < EXAMPLES:
                    examples.append(PartitionChange(TopicPartition(name, partition), replicas, replicas))
    if not count:
        return None
    return RackChange(
        ChangeCause.RELABELLED,
        broker,
        snapshot.taken_ms,
        snapshot.monotonic_ms,
        count,
        len(topics),
        tuple(examples),
    )


def _changes_of(
    topic: TopicState, racks: _ComparedRacks, room: RackRoom, memory: Memory, snapshot: Snapshot
) -> Iterable[RackChange]:
    known = memory.topics.get(topic.name)
    if known is None:
        if memory.topics:
            yield from _created(topic, room, snapshot)
        return
    if not known.replicas:  # it was there, but could not be described
        return
    recreated = _recreated(known, topic)
    moved: list[PartitionChange] = []
    added: list[PartitionChange] = []
    for state in topic.partitions:
        running = snapshot.reassignments.get(state.id)
        before = known.replicas[state.id.partition] if state.id.partition < len(known.replicas) else ()
        after = target_replicas(state, running)
        if not before:
            added.append(PartitionChange(state.id, (), after))
        elif running is not None or state.id in racks.doubted or (racks.blind and not recreated):
            continue
        elif _moved_racks(before, after, racks):
            moved.append(PartitionChange(state.id, before, after))
    if recreated:
        yield from _change(ChangeCause.RECREATED, [*moved, *added], room, snapshot)
        return
    foreign = [change for change in moved if not _own(change.id, memory)]
    since = [memory.reassignments[change.id].since_ms for change in foreign if change.id in memory.reassignments]
    yield from _change(ChangeCause.REASSIGNED, foreign, room, snapshot, min(since, default=None))
    yield from _change(ChangeCause.NEW_PARTITIONS, added, room, snapshot)


def _recreated(known: TopicMemory, topic: TopicState) -> bool:
    return None not in (known.topic_id, topic.topic_id) and known.topic_id != topic.topic_id


def _created(topic: TopicState, room: RackRoom, snapshot: Snapshot) -> Iterable[RackChange]:
    """A new topic is a change only when its replicas were placed without regard to racks."""
    placed = [PartitionChange(state.id, (), state.replicas) for state in topic.partitions]
    crowded = [change for change in placed if crowding(change.after, room) is not None]
    yield from _change(ChangeCause.CREATED_BLIND, crowded, room, snapshot)


def _change(
    cause: ChangeCause,
    changed: list[PartitionChange],
    room: RackRoom,
    snapshot: Snapshot,
    running_since_ms: int | None = None,
) -> Iterable[RackChange]:
    if changed:
        shares = any(crowding(change.after, room) is not None for change in changed)
        yield RackChange(
            cause,
            changed[0].id.topic,
            snapshot.taken_ms,
            snapshot.monotonic_ms,
            len(changed),
            1,
            tuple(changed[:EXAMPLES]),
            running_since_ms,
            shares,
        )


def _moved_racks(before: Replicas, after: Replicas, racks: _ComparedRacks) -> bool:
    """True when other replicas live in other racks; the same replicas in another rack are a relabelled broker."""
    if before == after or sorted(before) == sorted(after):
        return False
    return _differ(_racks(before, racks.before), _racks(after, racks.now))


def _racks(replicas: Replicas, racks: _Racks) -> Counter[str] | None:
    names = [racks.get(replica) for replica in replicas]
    return None if None in names else Counter(name for name in names if name is not None)


def _differ(one: Counter[str] | None, other: Counter[str] | None) -> bool:
    return one is not None and other is not None and one != other


def _own(partition: TopicPartition, memory: Memory) -> bool:
    running = memory.reassignments.get(partition)
    return partition in memory.own_reassignments or (running is not None and running.own)


def topic_memory(
    topic: TopicState,
    before: TopicMemory | None,
    snapshot: Snapshot,
    doubted: AbstractSet[TopicPartition],
    *,
    blind: bool,
) -> TopicMemory:
    """The topic for the memory: as it is, but as before where a reassignment runs or may run."""
    size = topic.partitions[-1].id.partition + 1 if topic.partitions else 0
    same = before is not None and before.topic_id == topic.topic_id
    replicas: list[Replicas] = [()] * size
    for state in topic.partitions:
        number = state.id.partition
        running = snapshot.reassignments.get(state.id)
        previous = before.replicas[number] if before is not None and same and number < len(before.replicas) else ()
        moving = running is not None or blind or state.id in doubted
        replicas[number] = previous if previous and moving else original_replicas(state, running)
    return TopicMemory(topic.topic_id, tuple(replicas))

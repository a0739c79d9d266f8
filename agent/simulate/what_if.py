"""A snapshot as it would be: members, racks, brokers and replicas that come or go, other strategies, RF, standbys.

Pure: snapshot and settings in, snapshot and settings out, for the agent's own stages to look at. What goes, goes before
what comes; settings change last. Nothing moves by itself: replicas stay where they are, and what has no reader any more
waits for the group's assignor.

Invariants: what nothing was asked about is the same object as before; changes that contradict each other, or that the
snapshot has no place for, are refused with a sentence, and nothing is simulated then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.errors import BadInput, PartialAnswer
from agent.plan.subjects import unknown_topic
from agent.simulate.changes import (
    AddBroker,
    AddMember,
    AddRack,
    AddReplica,
    Change,
    RemoveBroker,
    RemoveMember,
    RemoveRack,
    RemoveReplica,
    SetReplicationFactor,
    SetStandbys,
    SetStrategy,
    check_changes,
)
from agent.simulate.what_if_groups import (
    reader_group,
    with_group,
    with_member,
    with_standbys,
    with_strategy,
    without_member,
    without_rack,
)
from agent.simulate.what_if_replicas import resized, with_brokers, with_replicas, without_brokers
from agent.values.limits import Limits
from agent.values.observation import Part
from agent.values.snapshot import PartitionState, ReaderGroup, Snapshot
from agent.values.unseen import gaps_of
from agent.values.words import counted
from assignors.problem import TopicPartition


class World(NamedTuple):
    """A snapshot and the settings."""

    snapshot: Snapshot
    limits: Limits


def what_if(world: World, changes: Sequence[Change]) -> World:
    """The world after all changes. Raises ``BadInput`` for none, for contradictions, and for what is not there."""
    check_changes(changes)
    kinds = list(_APPLY)
    for change in sorted(changes, key=lambda change: kinds.index(type(change))):
        world = _APPLY[type(change)](world, change)
    return world


def _remove_member(world: World, change: RemoveMember) -> World:
    group = without_member(reader_group(world.snapshot, change.group), change.member)
    return world._replace(snapshot=with_group(world.snapshot, group))


def _add_member(world: World, change: AddMember) -> World:
    _check_rack(world.snapshot, change.rack)
    group = with_member(reader_group(world.snapshot, change.group), change.rack)
    return world._replace(snapshot=with_group(world.snapshot, group))


def _remove_rack(world: World, change: RemoveRack) -> World:
    snapshot, rack = world.snapshot, change.rack
    gone = frozenset(broker.id for broker in snapshot.brokers if broker.rack.name == rack and broker.alive)
    if not gone:
        raise _no_rack(snapshot, rack)
    snapshot = without_brokers(snapshot, gone)
    for group in snapshot.groups.values():
        if isinstance(group, ReaderGroup):
            left = without_rack(group, rack)
            if left is not group:
                snapshot = with_group(snapshot, left)
    return world._replace(snapshot=snapshot)


def _add_rack(world: World, change: AddRack) -> World:
    snapshot = world.snapshot
    if change.rack in _racks(snapshot):
        raise BadInput(
            f"rack {change.rack} is there already",
            why=f"brokers are in {', '.join(_racks(snapshot))}",
            todo=f"Add a broker to it: --add-broker ID={change.rack}",
        )
    _check_new(snapshot, change.brokers)
    return world._replace(snapshot=with_brokers(snapshot, dict.fromkeys(change.brokers, change.rack)))


def _remove_broker(world: World, change: RemoveBroker) -> World:
    _check_broker(world.snapshot, change.broker)
    return world._replace(snapshot=without_brokers(world.snapshot, frozenset({change.broker})))


def _add_broker(world: World, change: AddBroker) -> World:
    _check_new(world.snapshot, (change.broker,))
    _check_rack(world.snapshot, change.rack)
    return world._replace(snapshot=with_brokers(world.snapshot, {change.broker: change.rack}))


def _add_replica(world: World, change: AddReplica) -> World:
    _check_broker(world.snapshot, change.broker)
    state = _partition(world.snapshot, change.partition)
    if change.broker in state.replicas:
        raise BadInput(
            f"broker {change.broker} has a replica of {change.partition} already",
            why=f"its replicas are on {', '.join(map(str, state.replicas))}",
            todo="Name another broker.",
        )
    return world._replace(snapshot=with_replicas(world.snapshot, {change.partition: (*state.replicas, change.broker)}))


def _remove_replica(world: World, change: RemoveReplica) -> World:
    state = _partition(world.snapshot, change.partition)
    rest = tuple(replica for replica in state.replicas if replica != change.broker)
    if len(rest) == len(state.replicas) or not rest:
        what = (
            f"broker {change.broker} has no replica of {change.partition}"
            if rest
            else f"{change.partition} would have no replica left"
        )
        why = f"its replicas are on {', '.join(map(str, state.replicas))}"
        raise BadInput(what, why=why, todo="Name another broker.")
    return world._replace(snapshot=with_replicas(world.snapshot, {change.partition: rest}))


def _set_replication_factor(world: World, change: SetReplicationFactor) -> World:
    topic = world.snapshot.topics.get(change.topic)
    if topic is None:
        raise unknown_topic(change.topic, world.snapshot)
    lists = resized(world.snapshot, topic, change.replication_factor)
    return world._replace(snapshot=with_replicas(world.snapshot, lists))


def _set_strategy(world: World, change: SetStrategy) -> World:
    group, limits = with_strategy(reader_group(world.snapshot, change.group), world.limits, change.strategy)
    return World(with_group(world.snapshot, group), limits)


def _set_standbys(world: World, change: SetStandbys) -> World:
    group = reader_group(world.snapshot, change.group)
    return World(*with_standbys(group, world.snapshot, world.limits, change.standbys))


_APPLY: Mapping[type[Change], Callable[[World, Any], World]] = {
    RemoveMember: _remove_member,
    RemoveRack: _remove_rack,
    RemoveBroker: _remove_broker,
    AddRack: _add_rack,
    AddBroker: _add_broker,
    RemoveReplica: _remove_replica,
    AddReplica: _add_replica,
    SetReplicationFactor: _set_replication_factor,
    AddMember: _add_member,
    SetStrategy: _set_strategy,
    SetStandbys: _set_standbys,
}
"""In the order in which they are made."""


def _partition(snapshot: Snapshot, partition: TopicPartition) -> PartitionState:
    topic = snapshot.topics.get(partition.topic)
    if topic is None:
        raise unknown_topic(partition.topic, snapshot, todo="Write the partition as TOPIC-NUMBER.")
    state = next((row for row in topic.partitions if row.id == partition), None)
    if state is None:
        raise BadInput(
            f"there is no partition {partition}",
            why=f"topic {topic.name} has {counted(len(topic.partitions), 'partition')}",
            todo="Name one of them, as TOPIC-NUMBER.",
        )
    return state


def _check_broker(snapshot: Snapshot, broker: int) -> None:
    found = snapshot.broker(broker)
    if found is None:
        _check_all_seen(snapshot, f"broker {broker}")
    if found is None or not found.alive:
        alive = [str(one.id) for one in snapshot.brokers if one.alive]
        raise BadInput(
            f"there is no broker {broker}" if found is None else f"broker {broker} is away",
            why=f"brokers {', '.join(alive)} are there",
            todo="Name one of them.",
        )


def _check_new(snapshot: Snapshot, brokers: Iterable[int]) -> None:
    for broker in brokers:
        if broker < 0:
            raise BadInput(f"{broker} is no id of a broker", why="ids begin at 0", todo="Name another id.")
        found = snapshot.broker(broker)
        if found is not None and found.alive:
            raise BadInput(f"broker {broker} is there already", why="ids are unique", todo="Name another id.")


def _check_rack(snapshot: Snapshot, rack: str | None) -> None:
    if rack is not None and rack not in _racks(snapshot):
        raise _no_rack(snapshot, rack)


def _check_all_seen(snapshot: Snapshot, what: str) -> None:
    """Raises where a broker or a rack that was not found may exist all the same."""
    gap = next(iter(gaps_of(snapshot, (Part.BROKERS,))), None)
    if gap is not None:
        raise PartialAnswer(
            f"{what} was not found",
            why=f"not all brokers could be read ({gap.cause.value}), so it may exist",
            todo="Try again once all brokers answer.",
        )


def _no_rack(snapshot: Snapshot, rack: str) -> BadInput:
    _check_all_seen(snapshot, f"rack {rack!r}")
    return BadInput(
        f"there is no rack {rack!r}",
        why=f"brokers are in {', '.join(_racks(snapshot)) or 'no known rack'}",
        todo=f"Name one of them, or add it: --add-rack {rack}=ID,ID",
    )


def _racks(snapshot: Snapshot) -> list[str]:
    return sorted({broker.rack.name for broker in snapshot.brokers if broker.alive and broker.rack.name is not None})

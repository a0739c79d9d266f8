"""Replica lists in a reassignment, racks with room for replicas, and racks with too many (KIP-36, KIP-455). Pure.

While a reassignment runs, ``PartitionState.replicas`` is the union of old and new. Plans go by the target (without the
removing replicas); losses are judged by the replicas from before it (without the adding ones), as Kafka counts
under-replicated partitions (``Partition.isUnderReplicated``). A rack is crowded when it holds two replicas more than
another rack with a broker to take one; a replica of unknown rack counts against each rack that seems free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from agent.values.snapshot import BrokerState, PartitionState, RackState, Reassignment, Snapshot, TopicState

Replicas = tuple[int, ...]


class RackRoom(NamedTuple):
    """Racks of brokers, and the brokers of a rack that may take a replica."""

    rack_of: Mapping[int, str]
    """Broker -> rack, brokers of known rack only."""
    takers: Mapping[str, tuple[int, ...]]
    """Rack -> its brokers that are alive, unfenced and not cordoned, sorted; racks and brokers sorted."""


class CrowdedRack(NamedTuple):
    """A rack with more replicas of a partition than it must hold."""

    rack: str
    replicas: Replicas
    """The replicas in it."""
    free: tuple[str, ...]
    """Racks that could take one of them, sorted."""


def rack_room(brokers: Iterable[BrokerState], leave_out: frozenset[int] = frozenset()) -> RackRoom:
    """The racks of a set of brokers; those in ``leave_out`` take no more replicas."""
    rack_of: dict[int, str] = {}
    takers: dict[str, list[int]] = {}
    for broker in brokers:
        if broker.rack.state is not RackState.KNOWN or broker.rack.name is None:
            continue
        rack_of[broker.id] = broker.rack.name
        if broker.alive and not broker.cordoned and broker.id not in leave_out:
            takers.setdefault(broker.rack.name, []).append(broker.id)
    return RackRoom(rack_of, {rack: tuple(sorted(takers[rack])) for rack in sorted(takers)})


def crowding(replicas: Replicas, room: RackRoom) -> CrowdedRack | None:
    """The fullest rack that could give a replica to an emptier one, or None."""
    held: dict[str, list[int]] = {}
    unknown = 0
    for replica in replicas:
        rack = room.rack_of.get(replica)
        if rack is None:
            unknown += 1
        else:
            held.setdefault(rack, []).append(replica)
    if len(held) + unknown == len(replicas):  # one replica in each rack
        return None
    fullest = min(held, key=lambda rack: (-len(held[rack]), rack))
    limit = len(held[fullest]) - 2
    free = tuple(
        rack
        for rack, takers in room.takers.items()
        if len(held.get(rack, ())) <= limit and any(taker not in replicas for taker in takers)
    )
    # Each replica of unknown rack may be in one of the racks that seem free.
    return CrowdedRack(fullest, tuple(held[fullest]), free) if len(free) > unknown else None


def target_replicas(state: PartitionState, reassignment: Reassignment | None) -> Replicas:
    """The replicas after the running reassignment, in assignment order; the present ones where none runs."""
    if reassignment is None:
        return state.replicas
    target = tuple([replica for replica in reassignment.replicas if replica not in reassignment.removing])
    return target or state.replicas


def original_replicas(state: PartitionState, reassignment: Reassignment | None) -> Replicas:
    """The replicas from before the running reassignment, in assignment order; the present ones where none runs."""
    if reassignment is None or not reassignment.adding:
        return state.replicas
    return tuple(replica for replica in state.replicas if replica not in reassignment.adding)


def settled(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the target of every running reassignment as its partition's replicas.

    Nothing is planned for such a partition, but replicas and preferred leaders of brokers count with the target, as in
    findings. Topics without a reassignment are the same objects.
    """
    if not snapshot.reassignments:
        return snapshot
    moving = {partition.topic for partition in snapshot.reassignments}
    topics = {
        name: settled_topic(topic, snapshot) if name in moving else topic for name, topic in snapshot.topics.items()
    }
    return replace(snapshot, topics=topics)


def settled_topic(topic: TopicState, snapshot: Snapshot) -> TopicState:
    """One topic of `settled`."""
    running = snapshot.reassignments
    if not any(state.id in running for state in topic.partitions):
        return topic
    partitions = (
        state._replace(replicas=target_replicas(state, running[state.id])) if state.id in running else state
        for state in topic.partitions
    )
    return topic._replace(partitions=tuple(partitions))

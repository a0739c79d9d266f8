"""Kafka's ``AdminUtils`` (KIP-36, 0.10 to 3.9 with ZooKeeper): replicas of new topics and partitions.

Leaders go round the brokers, followers at a shift that grows with each round. Brokers are ordered rack by turn, and a
follower skips racks that have a replica while another has none. Kafka's random start and first shift are given as
``PlacementStart``. KRaft controllers use ``striped_placer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from assignors.kafka.exceptions import (
    AdminOperationException,
    InvalidPartitionsException,
    InvalidReplicationFactorException,
)
from assignors.kafka.java import utf16_key
from assignors.problem import BadProblem


class BrokerMetadata(NamedTuple):
    """A broker that replicas may go to."""

    id: int
    rack: str | None


class PlacementStart(NamedTuple):
    """Where the round of leaders begins, and by how much the first round of followers is shifted."""

    at: int
    shift: int

    @classmethod
    def fixed(cls, index: int) -> PlacementStart:
        """Kafka's fixed start index: the shift is the same number."""
        return cls(index, index)

    @classmethod
    def drawn(cls, next_int: Callable[[int], int], brokers: int) -> PlacementStart:
        """Two draws below the number of brokers, as Kafka draws them."""
        return cls(next_int(brokers), next_int(brokers))


def create_topic(
    brokers: Iterable[BrokerMetadata],
    partitions: int,
    replication_factor: int,
    start: PlacementStart | Callable[[int], PlacementStart],
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of a new topic by partition, preferred leader first. Raises as ``assign_replicas``."""
    return assign_replicas(usable(brokers), partitions, replication_factor, start)


def add_partitions(
    brokers: Iterable[BrokerMetadata],
    topic: str,
    existing: Mapping[int, Sequence[int]],
    partitions: int,
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of the partitions that ``topic`` lacks to have ``partitions``; nothing is random here.

    The round begins at the preferred leader of partition 0 (or the next broker). Kafka counts to that leader in the
    order of ids even where the round itself goes by racks, so leaders may end uneven. Raises what Kafka throws.
    """
    lined_up = usable(brokers)
    if 0 not in existing or not existing[0]:
        raise AdminOperationException(
            f"Unexpected existing replica assignment for topic '{topic}', partition id 0 is missing. "
            f"Assignment: {dict(existing)}"
        )
    if partitions <= len(existing):
        raise InvalidPartitionsException(
            "The number of partitions for a topic can only be increased. "
            f"Topic {topic} currently has {len(existing)} partitions, {partitions} would not be an increase."
        )
    leader = existing[0][0]
    index = next((place for place, broker in enumerate(lined_up) if broker.id >= leader), 0)
    return assign_replicas(
        lined_up,
        partitions - len(existing),
        len(existing[0]),
        PlacementStart.fixed(index),
        first_partition=len(existing),
    )


def usable(brokers: Iterable[BrokerMetadata]) -> list[BrokerMetadata]:
    """The brokers by id. Raises AdminOperationException when only some have a rack (``RackAwareMode.Enforced``)."""
    lined_up = sorted(brokers, key=lambda broker: broker.id)
    without = sum(broker.rack is None for broker in lined_up)
    if 0 < without < len(lined_up):
        raise AdminOperationException(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return lined_up


def assign_replicas(
    brokers: Sequence[BrokerMetadata],
    partitions: int,
    replication_factor: int,
    start: PlacementStart | Callable[[int], PlacementStart],
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of ``partitions`` partitions from ``first_partition`` on (``AdminUtils`` of Kafka).

    ``start`` is given, or made from the number of brokers once all is known to be in order. Raises
    ``InvalidPartitionsException``, ``InvalidReplicationFactorException`` or ``AdminOperationException`` as Kafka does,
    ``BadProblem`` for a broker id that occurs twice.
    """
    if len({broker.id for broker in brokers}) != len(brokers):
        raise BadProblem("brokers has an id twice; ids are unique")
    if partitions <= 0:
        raise InvalidPartitionsException("Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise InvalidReplicationFactorException("Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactorException(
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}."
        )
    if all(broker.rack is None for broker in brokers):
        ring, rack_of = [broker.id for broker in brokers], None
    else:
        ring = alternate_racks(brokers)
        rack_of = {broker.id: broker.rack for broker in brokers}
    racks = frozenset(broker.rack for broker in brokers)
    begin = start if isinstance(start, PlacementStart) else start(len(ring))
    size, first = len(ring), max(0, first_partition)
    placed = {}
    for partition in range(first, first + partitions):
        # Kafka shifts once more at each multiple of the ring's size, the first partition of this call included.
        shift = begin.shift + partition // size - max(0, first - 1) // size
        leader = (partition + begin.at) % size
        if rack_of is None:
            placed[partition] = _followers(ring, leader, shift, replication_factor)
        else:
            placed[partition] = _followers_by_rack(
                ring, rack_of, racks, leader=leader, shift=shift, count=replication_factor
            )
    return placed


def alternate_racks(brokers: Iterable[BrokerMetadata]) -> list[int]:
    """Broker ids, one of each rack in turn: racks by name, brokers of a rack by id.

    Raises ``AdminOperationException`` when a broker has no rack.
    """
    of_rack: dict[str, list[int]] = {}
    for broker in brokers:
        if broker.rack is None:
            raise AdminOperationException("Not all brokers have rack information for replica rack aware assignment.")
        of_rack.setdefault(broker.rack, []).append(broker.id)
    left = [iter(sorted(of_rack[rack])) for rack in sorted(of_rack, key=utf16_key)]
    ring: list[int] = []
    while left:
        still = []
        for ids in left:
            if (broker_id := next(ids, None)) is not None:
                ring.append(broker_id)
                still.append(ids)
        left = still
    return ring


def _followers(ring: Sequence[int], leader: int, shift: int, count: int) -> tuple[int, ...]:
    behind = (ring[(leader + 1 + (shift + place) % (len(ring) - 1)) % len(ring)] for place in range(count - 1))
    return (ring[leader], *behind)


def _followers_by_rack(
    ring: Sequence[int],
    rack_of: Mapping[int, str | None],
    racks: frozenset[str | None],
    *,
    leader: int,
    shift: int,
    count: int,
) -> tuple[int, ...]:
    replicas = [ring[leader]]
    unserved = set(racks) - {rack_of[ring[leader]]}
    size, place = len(ring), 0
    while len(replicas) < count:
        # Never the leader again: the ring without it, from the shifted place on, round and round.
        broker = ring[(leader + 1 + (shift * len(racks) + place) % (size - 1)) % size]
        place += 1
        if broker not in replicas and (not unserved or rack_of[broker] in unserved):
            replicas.append(broker)
            unserved.discard(rack_of[broker])
    return tuple(replicas)

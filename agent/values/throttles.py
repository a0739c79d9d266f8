"""Replica lists and replication throttles of reassignments (KIP-36, KIP-455). Pure.

While a reassignment runs, ``PartitionState.replicas`` is the union of old and new. Plans go by the target (without the
removing replicas); losses are judged by the replicas from before it (without the adding ones), as Kafka counts
under-replicated partitions (``Partition.isUnderReplicated``). A rack is crowded when it holds two replicas more than
another rack with a broker to take one; a replica of unknown rack counts against each rack that seems free.

Throttles: config keys, settings with layers, changes, and throttles without a reassignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal, NamedTuple

from agent.values.finding import SubjectId
from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIRS_RATE
from agent.values.observation import ObservationPart
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


KEYS_OF: Mapping[str, tuple[str, ...]] = {
    "topic": (LEADER_REPLICAS, FOLLOWER_REPLICAS),
    "broker": (LEADER_RATE, FOLLOWER_RATE),
}
"""Kind of resource -> its keys that may be changed."""
BROKER_RATES = (*KEYS_OF["broker"], LOG_DIRS_RATE)
"""The keys that limit a broker; the last one is only read."""
UNLIMITED = str((1 << 63) - 1)
"""Kafka's default for each of these rates."""


@dataclass(frozen=True, slots=True)
class ThrottleResource:
    """A broker or a topic that has throttle settings; exactly one of both is given. Sorted by kind, then name."""

    broker: int | None = None
    topic: str | None = None

    @property
    def kind(self) -> Literal["broker", "topic"]:
        """Kafka's ConfigResource.Type in lower case."""
        return "topic" if self.broker is None else "broker"

    @property
    def name(self) -> str:
        """Kafka's ConfigResource.name: topic name, or the broker's id as text."""
        return self.topic or "" if self.broker is None else str(self.broker)

    @property
    def subject(self) -> SubjectId:
        """The same as the subject of a finding."""
        return SubjectId(self.kind, self.name)

    def __lt__(self, other: ThrottleResource) -> bool:
        return (self.kind, self.name) < (other.kind, other.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SeenThrottle(NamedTuple):
    """A throttle setting with its layers."""

    resource: ThrottleResource
    key: str
    own: str | None
    """Value in the dynamic config of that topic or broker; None when unset."""
    default: str | None = None
    """Value below that layer: the cluster-wide default, or that of the broker's own file."""

    @property
    def in_force(self) -> str | None:
        """The value in force; None where no layer has one."""
        return self.default if self.own is None else self.own


class OpType(IntEnum):
    """Kafka's AlterConfigOp.OpType of IncrementalAlterConfigs; the last two are for lists (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ThrottleChange(NamedTuple):
    """One change of one throttle key."""

    resource: ThrottleResource
    key: str
    op: OpType
    value: str | None = None
    """None where the key is deleted."""
    expected: tuple[str | None, ...] | None = None
    """Own values (None: unset) of which it must have one right before the change; None: any."""
    alone: bool = False
    """True: not changed where there is a default for it."""
    topic_id: str | None = None
    """Not changed where the topic of that name has another id; None: not a topic's."""


def list_entries(value: str | None) -> tuple[str, ...]:
    """The entries of a list of throttled replicas, such as ``0:1``."""
    return tuple(entry for part in (value or "").split(",") if (entry := part.strip()))


def idle_throttles(snapshot: Snapshot) -> tuple[ThrottleResource, ...]:
    """Topics and brokers throttled without a reassignment, sorted; none if reassignments are unknown."""
    if any(gap.part is ObservationPart.REASSIGNMENTS for gap in snapshot.gaps):
        return ()
    moving = {tp.topic for tp in snapshot.reassignments}
    topics = (
        ThrottleResource(topic=name)
        for name, topic in snapshot.topics.items()
        if (topic.leader_throttle is not None or topic.follower_throttle is not None) and name not in moving
    )
    asked = () if moving else snapshot.broker_configs
    brokers = (ThrottleResource(broker=broker) for broker in asked if broker_rates(snapshot, broker))
    return tuple(sorted([*topics, *brokers]))


def topic_throttles(topic: TopicState) -> str | None:
    """The topic's throttled replicas, such as ``leader 0:1; follower 0:2``; None without any."""
    sides = (("leader", topic.leader_throttle), ("follower", topic.follower_throttle))
    return "; ".join(f"{side} {value}" for side, value in sides if value is not None) or None


def broker_rates(snapshot: Snapshot, broker: int) -> tuple[tuple[str, str], ...]:
    """(config, bytes per second) of the replication throttles that are set on a broker."""
    configs = snapshot.broker_configs.get(broker, {})
    rates = ((name, configs.get(name, "")) for name in BROKER_RATES)
    return tuple((name, value) for name, value in rates if value and value != UNLIMITED)

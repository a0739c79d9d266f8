"""Input of Kafka's assignors: topics, replica racks as brokers report them, and the order of members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from agent.values.snapshot import BrokerState, TopicState
from assignors.kafka.java import grown_table, string_hash

ReplicaRacks = tuple[str | None, ...]
"""The rack of each replica of a partition; None is a broker without one."""


class RackSets(dict[tuple[int, ...], frozenset[str]]):
    """List of replicas -> their racks, without those that have none; few lists serve all partitions of a cluster."""

    __slots__ = ("_racks",)

    def __init__(self, racks: Mapping[int, str]) -> None:
        super().__init__()
        self._racks = racks

    def __missing__(self, replicas: tuple[int, ...]) -> frozenset[str]:
        racks = self[replicas] = frozenset([self._racks[broker] for broker in replicas if broker in self._racks])
        return racks


class AssignorInput(NamedTuple):
    """A group's topics and the racks of the brokers."""

    topics: Mapping[str, TopicState]
    racks: Mapping[int, str]
    """Broker -> its broker.rack; clients get none for an absent broker."""
    sets: RackSets
    """The same for lists of replicas."""
    registered: RackSets
    """Racks of lists of replicas as the coordinator has them: brokers that are stopped stay registered."""

    def replicas(self, topic: str) -> tuple[ReplicaRacks, ...] | None:
        """For each partition by number the racks of its replicas; None where a partition is missing."""
        state = self.topics.get(topic)
        if state is None or has_holes(state):
            return None
        return tuple([tuple(map(self.racks.get, one.replicas)) for one in state.partitions])

    def rack_sets(self, topic: str) -> tuple[frozenset[str], ...] | None:
        """The same as sets, without the replicas that have no rack."""
        state = self.topics.get(topic)
        if state is None or has_holes(state):
            return None
        return tuple([self.sets[one.replicas] for one in state.partitions])


def has_holes(topic: TopicState) -> bool:
    """True when a partition number is missing; they are sorted and differ."""
    return bool(topic.partitions) and topic.partitions[-1].id.partition != len(topic.partitions) - 1


def broker_racks(brokers: Iterable[BrokerState]) -> dict[int, str]:
    """Live broker -> ``broker.rack``, as clients get it."""
    return {broker.id: broker.rack.rack_id for broker in brokers if broker.alive and broker.rack.rack_id}


SHARED_BUCKET = "two members share a bucket of Kafka's hash map, where their order depends on which came first"


def share_a_bucket(members: Collection[str]) -> bool:
    """True when the order of Java's ``HashMap`` of these ids depends on that of insertion, which is unknown."""
    mask = grown_table(len(members)) - 1
    buckets = {((value := string_hash(member)) ^ (value & 0xFFFFFFFF) >> 16) & mask for member in members}
    return len(buckets) < len(members)

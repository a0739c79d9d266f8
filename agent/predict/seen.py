"""What Kafka's assignors get to see of racks, which is what brokers and clients tell, and in which order of members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from agent.model.snapshot import BrokerState, TopicState
from assignors.kafka.java import grown_table, string_hash

Replicas = tuple[str | None, ...]
"""The rack of each replica of a partition; None is a broker without one."""


class Ground(NamedTuple):
    """A group's topics and the racks of the brokers."""

    topics: Mapping[str, TopicState]
    racks: Mapping[int, str]
    """Broker -> the rack that it tells; clients are told nothing of a broker that is away."""

    def replicas(self, topic: str) -> tuple[Replicas, ...] | None:
        """For each partition by number the racks of its replicas; None where a partition is missing."""
        state = self.topics.get(topic)
        if state is None or any(number != one.id.partition for number, one in enumerate(state.partitions)):
            return None
        return tuple([tuple(map(self.racks.get, one.replicas)) for one in state.partitions])

    def rack_sets(self, topic: str) -> tuple[frozenset[str], ...] | None:
        """The same as sets, without the replicas that have no rack."""
        state = self.topics.get(topic)
        if state is None or any(number != one.id.partition for number, one in enumerate(state.partitions)):
            return None
        known: dict[tuple[int, ...], frozenset[str]] = {}  # few replica lists serve many partitions
        sets = []
        for one in state.partitions:
            racks = known.get(one.replicas)
            if racks is None:
                racks = known[one.replicas] = frozenset([self.racks[b] for b in one.replicas if b in self.racks])
            sets.append(racks)
        return tuple(sets)


def told_racks(brokers: Iterable[BrokerState]) -> dict[int, str]:
    """Broker -> rack as clients hear it."""
    return {broker.id: broker.rack.told for broker in brokers if broker.alive and broker.rack.told}


SHARED_BUCKET = "two members share a bucket of Kafka's hash map, where their order depends on who came first"


def share_a_bucket(members: Collection[str]) -> bool:
    """Whether the order of a hash map of these ids is decided by the order of insertion, which nobody is told."""
    mask = grown_table(len(members)) - 1
    buckets = {((value := string_hash(member)) ^ (value & 0xFFFFFFFF) >> 16) & mask for member in members}
    return len(buckets) < len(members)

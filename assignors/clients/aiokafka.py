"""Rack-aware assignors for aiokafka 0.14; user data repeats what its leader does not see of a member.

aiokafka sends ``client_rack`` with fetches only and its own assignors know no racks. A `Strategy` goes where they go:

    strategy = Strategy("range", client_rack="az-a")
    consumer = AIOKafkaConsumer(..., client_rack="az-a", partition_assignment_strategy=strategy)

What the library does not do:

- Its leader reads of a subscription the topics and the user data only. Racks of members that do not repeat theirs there
  (Java, librdkafka) are unknown to it; an aiokafka member's own rack reaches every leader, by the subscription.
- It revokes everything before each rebalance, so there is no cooperative-sticky: its leader would assign partitions
  that Java members still hold.
- Its assignors get no generation, and its leader no instance ids: give ``group_instance_id`` here as well.
- It keeps replicas in an attribute without a public name. If that is gone, the assignors balance without racks.
- It joins once per listed assignor, each time with one more of them: a second name costs a second rebalance.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Self

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from assignors.clients.leader import JoinedMember, assign, rack_sets
from assignors.clients.strategy import OPTIMAL, RANGE, STICKY, checked, checked_rack
from assignors.clients.user_data import RackwiseUserData, by_topic, subscription, user_data
from assignors.kafka.consumer_problem import NO_GENERATION, RackSets
from assignors.problem import TopicPartition

log = logging.getLogger(__name__)

_OFFERED = frozenset({RANGE, STICKY, OPTIMAL})
_ASSIGNMENT_VERSION = 0


class Strategy(tuple["AiokafkaAssignor", ...]):
    """A value for ``partition_assignment_strategy``: range, sticky and optimal, the preferred one first.

    One strategy is for one consumer. The broker takes a name that all members list, so a second name is what the group
    agrees on while other clients are in it.
    """

    __slots__ = ()

    def __new__(cls, *protocols: str, client_rack: str | None, group_instance_id: str | None = None) -> Self:
        """Raise ``BadStrategy`` for a name that is unknown or given twice."""
        names = checked(protocols, _OFFERED)
        rack = checked_rack(client_rack)
        possession = _Possession()
        return super().__new__(cls, (AiokafkaAssignor(name, rack, group_instance_id, possession) for name in names))


class _Possession:
    """What one consumer was given last."""

    given: tuple[TopicPartition, ...] = ()


class AiokafkaAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka ships no types
    """The assignor of one protocol name; made by `Strategy`.

    An object, where aiokafka's own are classes, because two consumers in one process own different partitions.
    """

    def __init__(self, name: str, rack: str | None, instance_id: str | None, possession: _Possession) -> None:
        self._name = name
        self._rack = rack
        self._instance_id = instance_id or None
        self._possession = possession
        self._max_generation = NO_GENERATION

    @property
    def name(self) -> str:
        """The protocol name."""
        return self._name

    def metadata(self, topics: Iterable[str]) -> bytes:
        """Return the bytes of this member's subscription (``ConsumerProtocolSubscription``)."""
        subscribed = frozenset(topics)
        owned = tuple(each for each in self._possession.given if each.topic in subscribed)
        known = RackwiseUserData(rack=self._rack, instance_id=self._instance_id, owned=owned)
        return subscription(subscribed, known, user_data(self._name, known))

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return what the leader gives each member."""
        joined = [
            JoinedMember(id=member, topics=tuple(metadata.subscription), user_data=metadata.user_data or b"")
            for member, metadata in members.items()
        ]
        topics = {topic for member in joined for topic in member.topics}
        racks = _racks(cluster, topics)
        if topics - racks.keys():
            log.info("no metadata yet, assigned in the next rebalance: %s", ", ".join(sorted(topics - racks.keys())))
        answer = assign(self._name, joined, racks, self._max_generation)
        self._max_generation = answer.max_generation
        for warning in answer.warnings:
            log.warning("%s: %s", self._name, warning)
        return {
            member: ConsumerProtocolMemberAssignment(_ASSIGNMENT_VERSION, by_topic(partitions), b"")
            for member, partitions in answer.assignment.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Remember what the consumer was given."""
        self._possession.given = tuple(TopicPartition(*each) for each in assignment.partitions())


def _racks(cluster: Any, topics: Iterable[str]) -> Mapping[str, RackSets]:
    """The racks of each partition's replicas, as far as the metadata has them."""
    rack_of = {broker.nodeId: broker.rack for broker in cluster.brokers() if broker.rack}
    known = getattr(cluster, "_partitions", None)
    if known is None:
        log.warning(
            "this version of aiokafka does not expose replicas as 0.14 did: partitions are assigned without racks"
        )
        known = {}

    def brokers_of(partition: TopicPartition) -> tuple[int, ...]:
        brokers = known.get(partition.topic, {}).get(partition.partition)
        return () if brokers is None else tuple(brokers.replicas)

    return rack_sets(topics, cluster.partitions_for_topic, brokers_of, rack_of)

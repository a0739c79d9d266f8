"""Rack-aware assignors for kafka-python 3.0: the rack is in the subscription (KIP-881).

kafka-python sends ``client_rack`` with fetches only and its own assignors know no racks. A `Strategy` goes where they
go, under Kafka's protocol names, so members of other clients can be in the same group:

    strategy = Strategy("cooperative-sticky", client_rack="az-a")
    consumer = KafkaConsumer(..., client_rack="az-a", partition_assignment_strategy=strategy)
    strategy.follow(consumer)

What the library does not do: its leader asks for a rebalance when a topic gets partitions, not when a broker's rack
changes, as Java's does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, Self

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.clients.leader import JoinedMember, assign, rack_sets
from assignors.clients.strategy import COOPERATIVE, EAGER_ONLY, checked, checked_rack
from assignors.clients.user_data import RackwiseUserData, by_topic, user_data
from assignors.kafka.consumer_problem import NO_GENERATION, RackSets
from assignors.problem import TopicPartition

log = logging.getLogger(__name__)

_SUBSCRIPTION_VERSION = 3
_ASSIGNMENT_VERSION = 0
"""All versions have the same bytes; this one every client reads."""


class AssignedConsumer(Protocol):
    """The methods of ``KafkaConsumer`` that are used."""

    def assignment(self) -> Iterable[Any] | None:
        """Return the partitions that it reads now."""


class Strategy(tuple["KafkaPythonAssignor", ...]):
    """A value for ``partition_assignment_strategy``: assignors that know of each other what their consumer holds.

    One strategy is for one consumer. Names are range, sticky, cooperative-sticky and optimal, the preferred one first.
    The broker takes one that all members list, so a second name is what the group agrees on while other clients are in
    it. All of a consumer's assignors must use one rebalance protocol: with range or sticky among them it revokes all
    partitions before each rebalance (EAGER).
    """

    __slots__ = ()

    def __new__(cls, *protocols: str, client_rack: str | None) -> Self:
        """Raise ``BadStrategy`` for a name that is unknown or given twice."""
        names = checked(protocols, EAGER_ONLY | COOPERATIVE)
        rack = checked_rack(client_rack)
        possession = _Possession()
        cooperative = EAGER_ONLY.isdisjoint(names)
        return super().__new__(
            cls, (KafkaPythonAssignor(name, rack, possession, cooperative=cooperative) for name in names)
        )

    def follow(self, consumer: AssignedConsumer) -> None:
        """Ask the consumer itself what it holds, and help it over two slips of kafka-python 3.0.

        Its own assignors have both: they go on claiming what was lost with the membership; and where the leader joins
        again because metadata came, a ``poll`` that ends in the middle forgets the join, so nothing is read any more.
        """
        for assignor in self:
            assignor.possession.consumer = consumer


class _Possession:
    """What one consumer holds."""

    def __init__(self) -> None:
        self.consumer: AssignedConsumer | None = None
        self.given: Iterable[Any] = ()
        self.generation = NO_GENERATION

    def joins(self) -> None:
        """Let the consumer know that a join is under way, so that its next poll waits for it."""
        request_rejoin = getattr(getattr(self.consumer, "_coordinator", None), "request_rejoin", None)
        if request_rejoin is not None:
            request_rejoin()  # the end of the join takes it back

    def user_data(self, topics: Iterable[str], rack: str | None, *, held: bool) -> RackwiseUserData:
        owned = self.given if self.consumer is None else self.consumer.assignment() or ()
        subscribed = frozenset(topics)
        return RackwiseUserData(
            rack=rack,
            owned=tuple(sorted(TopicPartition(*each) for each in owned if each.topic in subscribed)),
            generation=None if self.generation == NO_GENERATION else self.generation,
            held=held,
        )


class KafkaPythonAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # kafka-python ships no types
    """The assignor of one protocol name; made by `Strategy`."""

    def __init__(self, name: str, rack: str | None, possession: _Possession, *, cooperative: bool) -> None:
        self._name = name
        self._rack = rack
        self._cooperative = cooperative
        self._max_generation = NO_GENERATION
        self.possession = possession

    @property
    def name(self) -> str:
        """The protocol name."""
        return self._name

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the one way to revoke partitions that all assignors of the strategy have in common."""
        return [RebalanceProtocol.COOPERATIVE if self._cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return this member's subscription."""
        self.possession.joins()
        known = self.possession.user_data(topics, self._rack, held=self._cooperative)
        of = ConsumerProtocolSubscription.TopicPartition
        held = known.owned if known.held else ()
        return ConsumerProtocolSubscription(
            version=_SUBSCRIPTION_VERSION,
            topics=sorted(set(topics)),
            user_data=user_data(self._name, known),
            owned_partitions=[of(topic=topic, partitions=numbers) for topic, numbers in by_topic(held)],
            generation_id=self.possession.generation,
            rack_id=self._rack,
        )

    def assign(self, cluster: Any, members: Iterable[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Return what the leader gives each member; topics that its metadata lacks come with the next rebalance."""
        joined = [_joined(member) for member in members]
        topics = {topic for member in joined for topic in member.topics}
        racks = _racks(cluster, topics)
        if topics - racks.keys():
            log.info("no metadata yet, assigned in the next rebalance: %s", ", ".join(sorted(topics - racks.keys())))
        answer = assign(self._name, joined, racks, self._max_generation)
        self._max_generation = answer.max_generation
        for warning in answer.warnings:
            log.warning("%s: %s", self._name, warning)
        return {
            member: ConsumerProtocolAssignment(_ASSIGNMENT_VERSION, by_topic(partitions), b"")
            for member, partitions in answer.assignment.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember what the consumer was given, and when."""
        self.possession.given = tuple(assignment.partitions())
        self.possession.generation = generation


def _joined(member: Any) -> JoinedMember:
    """What kafka-python decoded of a member; a subscription of an older version lacks what came later."""
    subscription = member.metadata
    generation = subscription.generation_id
    return JoinedMember(
        id=member.member_id,
        topics=tuple(subscription.topics),
        user_data=bytes(subscription.user_data or b""),
        instance_id=member.group_instance_id or None,
        rack=subscription.rack_id or None,
        owned=tuple(
            TopicPartition(each.topic, number)
            for each in subscription.owned_partitions or ()
            for number in each.partitions
        ),
        generation=None if generation is None or generation < 0 else generation,
    )


def _racks(cluster: Any, topics: Iterable[str]) -> Mapping[str, RackSets]:
    """The racks of each partition's replicas, as far as the metadata has them."""
    rack_of = {broker.node_id: broker.rack for broker in cluster.brokers() if broker.rack}
    return rack_sets(
        topics,
        cluster.partitions_for_topic,
        lambda partition: tuple(broker for broker in rack_of if cluster.is_replica_node(partition, broker)),
        rack_of,
    )

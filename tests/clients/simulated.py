"""A group without a broker: members of both clients that join with real bytes, led by any of them.

A stand-in because a real group rebalances in seconds, and random histories need thousands of rebalances. What it says
of a consumer is what both libraries do: an eager one revokes before it joins, a cooperative one revokes what its
assignment lacks and then asks for another rebalance; a lost membership leaves a consumer with nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from aiokafka.coordinator.protocol import ConsumerProtocol
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from assignors.clients import aiokafka, kafka_python
from assignors.problem import TopicPartition

Clusters = tuple[Any, Any]
"""The same metadata as kafka-python's and as aiokafka's."""


class InJoin(NamedTuple):
    """A member of a JoinGroup answer, with kafka-python's names."""

    member_id: str
    group_instance_id: str | None
    metadata: ConsumerProtocolSubscription


class Consumer:
    """One member with what it reads now."""

    def __init__(self, name: str, strategy: Any, rack: str | None, topics: Sequence[str]) -> None:
        self.name = name
        self.strategy = strategy
        self.rack = rack
        self.topics = frozenset(topics)
        self.reads: frozenset[TopicPartition] = frozenset()
        self.is_kafka_python = isinstance(strategy, kafka_python.Strategy)
        if self.is_kafka_python:
            strategy.follow(self)

    def assignment(self) -> frozenset[TopicPartition]:
        return self.reads

    @property
    def cooperative(self) -> bool:
        return self.is_kafka_python and self.strategy[0].supported_protocols() == [RebalanceProtocol.COOPERATIVE]

    def join(self) -> dict[str, bytes]:
        """Protocol name -> the bytes it sends, after it has revoked what it must."""
        sent = {each.name: each.metadata(set(self.topics)) for each in self.strategy}
        self.reads = (
            frozenset(each for each in self.reads if each.topic in self.topics) if self.cooperative else frozenset()
        )
        return {name: data if isinstance(data, bytes) else data.encode() for name, data in sent.items()}

    def lead(self, protocol: str, joined: dict[str, bytes], clusters: Clusters) -> dict[str, bytes]:
        (assignor,) = (each for each in self.strategy if each.name == protocol)
        if self.is_kafka_python:
            members = [InJoin(name, None, ConsumerProtocolSubscription.decode(sent)) for name, sent in joined.items()]
            return {name: given.encode() for name, given in assignor.assign(clusters[0], members).items()}
        metadata = {name: ConsumerProtocol.METADATA.decode(sent) for name, sent in joined.items()}
        return {name: given.encode() for name, given in assignor.assign(clusters[1], metadata).items()}

    def sync(self, protocol: str, data: bytes, generation: int) -> bool:
        """Take the assignment; True when it asks for another rebalance."""
        (assignor,) = (each for each in self.strategy if each.name == protocol)
        if self.is_kafka_python:
            given = ConsumerProtocolAssignment.decode(data)
        else:
            given = ConsumerProtocol.ASSIGNMENT.decode(data)
        now = frozenset(TopicPartition(*each) for each in given.partitions())
        revoked = self.reads - now
        self.reads = now
        if self.is_kafka_python:
            assignor.on_assignment(given, generation)
        else:
            assignor.on_assignment(given)
        return self.cooperative and bool(revoked)


class Group:
    """Members by name, and one rebalance after the other."""

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self.members: dict[str, Consumer] = {}
        self.generation = 0
        self.protocol = ""

    def rebalance(self, leader: str) -> int:
        """Rebalance until no member asks for another; return how many it took."""
        for round_ in range(1, 6):
            if not self._once(leader):
                return round_
        raise AssertionError("after five rebalances a member still asks for another")

    def _once(self, leader: str) -> bool:
        self.generation += 1
        joined = {name: member.join() for name, member in sorted(self.members.items())}
        first = joined[leader]
        self.protocol = next(name for name in first if all(name in sent for sent in joined.values()))
        answer = self.members[leader].lead(
            self.protocol, {name: sent[self.protocol] for name, sent in joined.items()}, self.clusters
        )
        assert answer.keys() == self.members.keys()
        before = {name: member.reads for name, member in self.members.items()}
        again = [member.sync(self.protocol, answer[name], self.generation) for name, member in self.members.items()]
        for name, member in self.members.items():
            for other, held in before.items():
                both = (member.reads & held) if other != name else ()
                assert not both, f"{name} was given {sorted(both)} while {other} still read them"
        return any(again)


def make(client: str, protocols: Sequence[str], rack: str | None) -> Any:
    """A strategy of that client."""
    module = {"kafka-python": kafka_python, "aiokafka": aiokafka}[client]
    return module.Strategy(*protocols, client_rack=rack)

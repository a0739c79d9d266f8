"""A day of ten thousand groups, made up: ten members and fifty partitions each, a look every ten minutes.

Varied as clusters vary. Groups: eight of ten run cooperative-sticky, one range, one the consumer protocol of KIP-848;
one of twenty tells no rack. A third begins with one to three pairs of members that hold each other's partitions, which
could be read at home. From look to look one group of a hundred rebalances (its generation grows, and it is put right
or wrong anew), one topic of five hundred loses a replica from its ISR for a look, and every rate is another one:
lognormal over partitions, with the time of day and a tenth of noise. Once in the day a broker of twelve is away for
three looks, which changes every topic twice. Equal seeds give equal histories.

Every look goes through the agent's own decoding and modelling and is cut by the backtest's own cutter; rates are
given, as end offsets of half a million partitions would only be subtracted from each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import pi, sin
from random import Random

import numpy as np

from agent.decode.values import Assignment, StickyUserData, Subscription
from agent.execute.probe_bytes import encode_sticky, encode_subscription
from agent.telemetry.looks import CycleInputs
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.observation import (
    Observation,
    PrincipalRights,
    RawBroker,
    RawClassicGroup,
    RawConsumerGroup,
    RawConsumerMember,
    RawListedGroup,
    RawMember,
    RawPartition,
    RawTopic,
)
from assignors.problem import TopicPartition
from pipeline.backtest.look import HistoryLook, whole_look
from tests.decode.assignments import encode_assignment

CLUSTER = "made-up"
RACKS = ("eu-1a", "eu-1b", "eu-1c")
BROKERS, PARTITIONS, MEMBERS = 12, 50, 10
EVERY_MS = 600_000
BEGIN_MS = 1_760_054_400_000  # midnight, UTC
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
EACH = PARTITIONS // MEMBERS
AWAY = (40, 43)
"""Looks in which one broker is away."""


class History:
    """The looks of some of the groups; all parts of a cluster have the same brokers."""

    def __init__(self, first: int, groups: int, seed: int = 1) -> None:
        self._random = Random(seed * 1_000_003 + first)
        self._numbers = range(first, first + groups)
        self._rates = np.random.default_rng(seed * 7 + first)
        self._base = self._rates.lognormal(10.0, 1.2, size=(groups, PARTITIONS))
        self._topics = [_topic(number, self._random) for number in self._numbers]
        self._groups = [self._group(number, 4, wrong=self._random.random() < 0.33) for number in self._numbers]
        self._generation = [4] * groups

    def looks(self, count: int) -> Iterator[HistoryLook]:
        """So many looks, one every ten minutes."""
        decode, model = Memo(), Memo()
        memory = Memory(cycle=1, monotonic_ms=1, taken_ms=BEGIN_MS - EVERY_MS)
        for number in range(count):
            if number:
                self._rebalance()
            look = whole_look(self._recorded(number, memory), decode, model)
            decode.turn()
            model.turn()
            yield replace(look, rates=self._flow(number))

    def _rebalance(self) -> None:
        for place in self._random.sample(range(len(self._groups)), max(1, len(self._groups) // 100)):
            self._generation[place] += 1
            wrong = self._random.random() < 0.33
            self._groups[place] = self._group(self._numbers[place], self._generation[place], wrong=wrong)

    def _recorded(self, number: int, memory: Memory) -> CycleInputs:
        away = 5 if AWAY[0] <= number < AWAY[1] else None
        flapping = set(self._random.sample(range(len(self._topics)), max(1, len(self._topics) // 500)))
        topics = tuple(_seen(topic, away, flaps=place in flapping) for place, topic in enumerate(self._topics))
        at_ms = number * EVERY_MS
        names = [topic.name for topic in topics]
        config = {"min.insync.replicas": "1", "cleanup.policy": "delete"}
        classic = tuple(group for group in self._groups if isinstance(group, RawClassicGroup))
        newer = tuple(group for group in self._groups if isinstance(group, RawConsumerGroup))
        groups: tuple[RawClassicGroup | RawConsumerGroup, ...] = (*classic, *newer)
        observation = Observation(
            cluster_id=CLUSTER,
            controller=0,
            brokers=tuple(
                RawBroker(broker, f"kafka-{broker}", 9092, RACKS[broker % 3], False)
                for broker in range(BROKERS)
                if broker != away
            ),
            topics=topics,
            topic_configs=dict.fromkeys(names, config),
            broker_configs={broker: {"replica.selector.class": SELECTOR} for broker in range(BROKERS)},
            listed_groups=tuple(RawListedGroup(group.group_id, "consumer", "Stable", "classic") for group in groups),
            groups=groups,
            rights=PrincipalRights(cluster_describe=True, cluster_describe_configs=True, cluster_alter=False),
            taken_ms=BEGIN_MS + at_ms,
            monotonic_ms=10_000_000 + at_ms,
            took_ms=500,
        )
        return CycleInputs(look=f"0000abcd-{number}", observation=observation, memory=memory, limits=Limits())

    def _flow(self, number: int) -> dict[str, np.ndarray]:
        day = 1.0 + 0.6 * sin(2 * pi * (number * EVERY_MS / 86_400_000 - 0.3))
        noise = self._rates.normal(1.0, 0.1, size=self._base.shape).clip(0.2)
        flow = self._base * day * noise
        return {group.group_id: flow[place] for place, group in enumerate(self._groups)}

    def _group(self, number: int, generation: int, *, wrong: bool) -> RawClassicGroup | RawConsumerGroup:
        """Member i has partitions i, i + 10, …, whose leaders are in its rack; wrong: pairs hold each other's."""
        holds = list(range(MEMBERS))
        if wrong:
            for i in self._random.sample(range(0, MEMBERS - 1, 2), self._random.randrange(1, 4)):
                holds[i], holds[i + 1] = holds[i + 1], holds[i]
        topic = f"topic-{number:06d}"
        held = [tuple(TopicPartition(topic, of + MEMBERS * place) for place in range(EACH)) for of in holds]
        racks = [None if number % 20 == 7 else RACKS[i % 3] for i in range(MEMBERS)]
        if number % 10 == 9:
            newer = tuple(
                RawConsumerMember(f"m-{i}-{number:06x}", None, racks[i], generation, f"client-{i}", f"/10.0.0.{i}",
                                  (topic,), None, of, of, 1)
                for i, of in enumerate(held)
            )  # fmt: skip
            return RawConsumerGroup(f"group-{number:06d}", "Stable", generation, generation, "uniform", newer, 1)
        protocol = "range" if number % 10 == 8 else "cooperative-sticky"
        members = tuple(_member(number, i, of, generation, racks[i], protocol) for i, of in enumerate(held))
        return RawClassicGroup(f"group-{number:06d}", "Stable", "consumer", protocol, members, number % BROKERS)


def _topic(number: int, random: Random) -> RawTopic:
    """Partition p is led in the rack of member p modulo 10 and followed in another."""
    rows = []
    for partition in range(PARTITIONS):
        rack = partition % MEMBERS % 3
        base = [random.randrange(BROKERS // 3) * 3 for _ in range(2)]
        replicas = (base[0] + rack, base[1] + (rack + 1 + random.randrange(2)) % 3)
        rows.append(RawPartition(partition, replicas[0], replicas, replicas, ()))
    return RawTopic(f"topic-{number:06d}", f"id-{number}", False, tuple(rows), None)


def _seen(topic: RawTopic, away: int | None, *, flaps: bool) -> RawTopic:
    """The topic while a broker is away, and while one of its followers is slow."""
    if away is None and not flaps:
        return topic
    rows = []
    for row in topic.partitions:
        isr = tuple(broker for broker in row.replicas if broker != away)
        if flaps and row.partition == 0:
            isr = isr[:1]
        offline = tuple(broker for broker in row.replicas if broker == away)
        rows.append(row._replace(leader=isr[0] if isr else None, isr=isr, offline=offline))
    return topic._replace(partitions=tuple(rows))


def _member(  # noqa: PLR0917 what a member says
    group: int, number: int, held: tuple[TopicPartition, ...], generation: int, rack: str | None, protocol: str
) -> RawMember:
    sticky = encode_sticky(StickyUserData(None, generation)) if protocol == "cooperative-sticky" else None
    subscription = Subscription(3, (held[0].topic,), sticky, held, generation, rack)
    return RawMember(
        member_id=f"client-{number}-{group:08x}{number:04x}-4e0b-9d5a-1c2d3e4f5a6b",
        instance_id=None,
        client_id=f"client-{number}",
        client_host=f"/10.{number}.{group // 250 % 250}.{group % 250}",
        metadata=encode_subscription(subscription),
        assignment=encode_assignment(Assignment(3, held, None)),
    )

"""Where would new partitions go, by Kafka's own placer and at best? For a new topic, or for a topic that gets more.

Kafka draws where to begin, from a generator that is not known outside: of its answer only the distribution is Kafka's,
and one answer of that distribution is shown. The best answer is `assignors.optimal.new_partitions`; it looks at all
replicas and preferred leaders that there are, which Kafka does not. Nothing that exists moves.

Kafka sees the racks that brokers tell it; the best answer uses what is known of them by any locator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from agent.errors import BadInput
from agent.plan.subjects import unknown_topic
from agent.values.replicas import target_replicas
from agent.values.snapshot import RackState, Snapshot
from agent.values.words import counted
from assignors.kafka.refusal import KafkaRefusal
from assignors.kafka.replica_placement import BrokerMetadata, Start, add_partitions, create_topic
from assignors.kafka.striped_placer import UsableBroker, place_striped
from assignors.optimal.new_partitions import Standing, optimal_new_partitions
from assignors.problem import BadProblem, Broker

MOST_PARTITIONS = 100_000
"""Kafka's controller refuses more than 10,000 in one request; beyond this a typing error is the likelier reading."""
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")

NextInt = Callable[[int], int]
"""Bound -> a number from 0 to below it."""


class Placer(StrEnum):
    """Which of Kafka's placers the cluster has."""

    STRIPED = "striped"
    """KRaft controllers, Kafka 3.0 on; the only one from 4.0 on."""
    KIP_36 = "kip-36"
    """Clusters with ZooKeeper, up to 3.9."""


class Kafka(NamedTuple):
    """The placer of the cluster, and what it draws."""

    placer: Placer
    next_int: NextInt


class Spread(NamedTuple):
    """How even a placement leaves things; each pair is the least and the most of all brokers that take replicas."""

    most_in_a_rack: int
    """Replicas of one new partition in one rack."""
    against_the_rule: int
    """New partitions with more than ceil(RF / racks) replicas in one rack."""
    topic_replicas: tuple[int, int]
    """Of the topic, those that were there included."""
    topic_leaders: tuple[int, int]
    cluster_replicas: tuple[int, int]
    cluster_leaders: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlacement:
    """The replicas of the new partitions, by one placer."""

    by: Literal["kafka", "optimum"]
    """``kafka`` or ``optimum``."""
    topic: str
    existing: tuple[tuple[int, ...], ...]
    """Replicas of the partitions that are there, by number; empty for a new topic."""
    replicas: tuple[tuple[int, ...], ...]
    """Replicas of the new ones, preferred leader first; they are numbered on from ``existing``. Empty when refused."""
    spread: Spread | None
    sentence: str
    """How it was found, and what it can be trusted for."""
    refused: str | None = None
    """What Kafka says instead of an answer."""


def place_new_topic(
    snapshot: Snapshot, topic: str, partitions: int, replication_factor: int, kafka: Kafka
) -> tuple[NewPlacement, NewPlacement]:
    """Kafka's placement of a new topic and the best one. Raises ``BadInput``."""
    _check_name(topic, snapshot)
    return _both(_Asked(topic, (), partitions, replication_factor), snapshot, kafka)


def place_added(snapshot: Snapshot, topic: str, partitions: int, kafka: Kafka) -> tuple[NewPlacement, NewPlacement]:
    """Kafka's placement of the partitions that a topic lacks to have ``partitions``, and the best. Raises BadInput."""
    state = snapshot.topics.get(topic)
    if state is None:
        raise unknown_topic(topic, snapshot)
    if not state.partitions:
        raise BadInput(f"topic {topic} has no partitions yet", why="it is still being created", todo="Try again.")
    now = len(state.partitions)
    if partitions <= now:
        raise BadInput(
            f"topic {topic} has {counted(now, 'partition')} already",
            why=f"{partitions} would not be more, and Kafka takes none away",
            todo=f"Name a number above {now}: it is the whole number, as in kafka-topics --partitions.",
        )
    existing = tuple(target_replicas(p, snapshot.reassignments.get(p.id)) for p in state.partitions)
    return _both(_Asked(topic, existing, partitions - now, len(existing[0])), snapshot, kafka)


class _Asked(NamedTuple):
    topic: str
    existing: tuple[tuple[int, ...], ...]
    more: int
    replication_factor: int


def _check_name(topic: str, snapshot: Snapshot) -> None:
    if topic in snapshot.topics:
        raise BadInput(
            f"topic {topic} is there already",
            why=f"it has {counted(len(snapshot.topics[topic].partitions), 'partition')}",
            todo=f"Give it more with: rackwise plan --add-partitions {topic}=N",
        )
    if _LEGAL.fullmatch(topic) is None or topic in (".", ".."):
        raise BadInput(
            f"{topic!r} is no name for a topic",
            why="Kafka takes 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'",
            todo="Name the topic otherwise.",
        )
    same = sorted(name for name in snapshot.topics if name.replace(".", "_") == topic.replace(".", "_"))
    if same:
        raise BadInput(
            f"topic {topic} would collide with {same[0]}",
            why="Kafka's metrics write '.' and '_' alike, so it refuses the second name",
            todo="Name the topic otherwise.",
        )


def _both(asked: _Asked, snapshot: Snapshot, kafka: Kafka) -> tuple[NewPlacement, NewPlacement]:
    for what, number in (("partitions", asked.more), ("replicas of a partition", asked.replication_factor)):
        if number < 1:
            raise BadInput(f"a topic cannot have {number} {what}", why="there is at least one", todo="Name 1 or more.")
    if asked.more > MOST_PARTITIONS:
        raise BadInput(
            f"{asked.more} new partitions are too many",
            why=f"more than {MOST_PARTITIONS} are not placed at once",
            todo="Add them in several steps.",
        )
    best = _best(asked, snapshot)
    return _kafka(asked, snapshot, kafka), best


def _best(asked: _Asked, snapshot: Snapshot) -> NewPlacement:
    brokers = takers(snapshot)
    try:
        placed = optimal_new_partitions(brokers, asked.more, asked.replication_factor, _standing(asked, snapshot))
    except BadProblem as error:
        raise BadInput(
            f"{counted(asked.replication_factor, 'replica')} of a partition cannot be placed",
            why=f"only {counted(_usable(brokers), 'broker')} can take replicas (alive, not fenced, not cordoned, "
            "rack known)",
            todo="Name a smaller replication factor, or bring brokers back.",
        ) from error
    proof = "no placement is more even" if placed.leaders_optimal else "leaders as even as these replicas allow"
    sentence = f"at most {placed.most_in_a_rack} of a partition in one rack, the least that is possible; {proof}"
    if away := [broker.id for broker in snapshot.brokers if not broker.alive]:
        sentence += f"; brokers that are absent take nothing: {', '.join(map(str, away))}"
    if _without_rack(brokers):
        sentence += f"; brokers without a known rack take nothing: {', '.join(map(str, _without_rack(brokers)))}"
    return NewPlacement(
        by="optimum",
        topic=asked.topic,
        existing=asked.existing,
        replicas=placed.replicas,
        spread=_spread(asked, placed.replicas, snapshot),
        sentence=sentence,
    )


def takers(snapshot: Snapshot) -> tuple[Broker, ...]:
    """All brokers; those accept replicas that are surely there and open for them."""
    return tuple(
        Broker(
            id=broker.id,
            rack=broker.rack.name if broker.rack.state is RackState.KNOWN else None,
            accepts=broker.alive and not broker.fenced and not broker.cordoned,
        )
        for broker in snapshot.brokers
    )


def _kafka(asked: _Asked, snapshot: Snapshot, kafka: Kafka) -> NewPlacement:
    try:
        replicas, how = (_striped if kafka.placer is Placer.STRIPED else _kip_36)(asked, snapshot, kafka.next_int)
    except KafkaRefusal as refusal:
        why = f"Kafka would refuse: {refusal.kafka_name}: {refusal}"
        return NewPlacement(
            by="kafka", topic=asked.topic, existing=asked.existing, replicas=(), spread=None, sentence=why,
            refused=str(refusal),
        )  # fmt: skip
    return NewPlacement(
        by="kafka",
        topic=asked.topic,
        existing=asked.existing,
        replicas=replicas,
        spread=_spread(asked, replicas, snapshot),
        sentence=how,
    )


def _striped(asked: _Asked, snapshot: Snapshot, next_int: NextInt) -> tuple[tuple[tuple[int, ...], ...], str]:
    brokers = [
        UsableBroker(broker.id, broker.rack.told, fenced=not broker.alive or broker.fenced is True)
        for broker in snapshot.brokers
        if broker.host is not None and not broker.cordoned
    ]
    replicas = place_striped(brokers, asked.more, asked.replication_factor, next_int)
    return replicas, (
        "one answer of the controller's striped placer; its draws are random, so only the distribution is Kafka's"
    )


def _kip_36(asked: _Asked, snapshot: Snapshot, next_int: NextInt) -> tuple[tuple[tuple[int, ...], ...], str]:
    brokers = [BrokerMetadata(broker.id, broker.rack.told) for broker in snapshot.brokers if broker.alive]
    if asked.existing:
        placed = add_partitions(brokers, asked.topic, dict(enumerate(asked.existing)), len(asked.existing) + asked.more)
        return tuple(placed[number] for number in sorted(placed)), "Kafka's answer (KIP-36), of which nothing is random"
    placed = create_topic(brokers, asked.more, asked.replication_factor, lambda count: Start.drawn(next_int, count))
    return tuple(placed[number] for number in sorted(placed)), (
        "one answer of KIP-36's placer; where it begins is random, so only the distribution is Kafka's"
    )


def _standing(asked: _Asked, snapshot: Snapshot) -> Standing:
    lists = [
        target_replicas(state, snapshot.reassignments.get(state.id))
        for topic in snapshot.topics.values()
        for state in topic.partitions
    ]
    return Standing(
        replicas=Counter(broker for replicas in lists for broker in replicas),
        leaders=Counter(replicas[0] for replicas in lists if replicas),
        topic_replicas=Counter(broker for replicas in asked.existing for broker in replicas),
        topic_leaders=Counter(replicas[0] for replicas in asked.existing if replicas),
    )


def _spread(asked: _Asked, replicas: Iterable[tuple[int, ...]], snapshot: Snapshot) -> Spread:
    rows = list(replicas)
    rack_of = {broker.id: broker.rack.name for broker in snapshot.brokers}
    racks = len({name for name in rack_of.values() if name is not None}) or 1
    fullest = [max(Counter(rack_of.get(broker) for broker in of).values()) for of in rows]
    rule = -(-asked.replication_factor // racks)
    before = _standing(asked, snapshot)
    taking = [broker.id for broker in takers(snapshot) if broker.accepts]
    held = Counter(broker for of in rows for broker in of)
    led = Counter(of[0] for of in rows)

    def ends(old: Mapping[int, int], new: Mapping[int, int]) -> tuple[int, int]:
        sums = [old.get(broker, 0) + new.get(broker, 0) for broker in taking]
        return min(sums, default=0), max(sums, default=0)

    return Spread(
        most_in_a_rack=max(fullest),
        against_the_rule=sum(count > rule for count in fullest),
        topic_replicas=ends(before.topic_replicas, held),
        topic_leaders=ends(before.topic_leaders, led),
        cluster_replicas=ends(before.replicas, held),
        cluster_leaders=ends(before.leaders, led),
    )


def _usable(brokers: Iterable[Broker]) -> int:
    taking = [broker for broker in brokers if broker.accepts]
    return sum(broker.rack is not None for broker in taking) or len(taking)


def _without_rack(brokers: Iterable[Broker]) -> list[int]:
    """Brokers that are left out for want of a rack, because others have one."""
    taking = [broker for broker in brokers if broker.accepts]
    blank = [broker.id for broker in taking if broker.rack is None]
    return blank if len(blank) < len(taking) else []

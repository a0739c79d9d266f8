"""The synthetic cluster of the benchmarks: as many groups as asked for, each reading a topic of its own.

Ten partitions a topic on two of three racks, ten members a group spread over the racks, every member with its rack, its
owned partitions and the assignor's user data in real bytes. Most groups read everything in their own rack; of the
improvable ones some members hold partitions of another rack that a colleague could read at home.

Equal parameters give equal clusters. `next_look` is the look after it: some groups rebalanced, all offsets moved.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from agent.decode.values import Assignment, StickyUserData, Subscription
from agent.execute.probe_bytes import encode_sticky, encode_subscription
from agent.values.observation import (
    Observation,
    PrincipalRights,
    RawBroker,
    RawClassicGroup,
    RawListedGroup,
    RawMember,
    RawPartition,
    RawTopic,
)
from assignors.problem import TopicPartition
from tests.decode.assignments import encode_assignment

RACKS = ("eu-1a", "eu-1b", "eu-1c")
PARTITIONS = 10
MEMBERS = 10
BROKERS = 12
TAKEN_MS = 1_760_000_000_000
MONOTONIC_MS = 100_000_000
POLL_MS = 10_000
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
PROTOCOL = "cooperative-sticky"


def synthetic_cluster(groups: int = 10_000, *, seed: int = 1, improvable: float = 0.3) -> Observation:
    """One look at a cluster with that many groups, ten times as many partitions and members."""
    random = Random(seed)
    brokers = tuple(
        RawBroker(broker, f"kafka-{broker}.internal", 9092, RACKS[broker % len(RACKS)], False)
        for broker in range(BROKERS)
    )
    topics = tuple(_topic(number, random) for number in range(groups))
    worse = set(random.sample(range(groups), round(groups * improvable)))
    partitions = [TopicPartition(topic.name, row.partition) for topic in topics for row in topic.partitions]
    config = {"min.insync.replicas": "1", "cleanup.policy": "delete"}
    ends = {partition: random.randrange(1_000, 1_000_000) for partition in partitions}
    return Observation(
        cluster_id="synthetic-world",
        controller=0,
        brokers=brokers,
        topics=topics,
        topic_configs={topic.name: config for topic in topics},
        broker_configs={broker.id: {"replica.selector.class": SELECTOR} for broker in brokers},
        committed_offsets={
            group_name(number): {
                TopicPartition(topic.name, row.partition): ends[topic.name, row.partition] - random.randrange(1_000)
                for row in topic.partitions
            }
            for number, topic in enumerate(topics)
        },
        end_offsets=ends,
        listed_groups=tuple(RawListedGroup(group_name(n), "consumer", "Stable", "classic") for n in range(groups)),
        groups=tuple(
            a_group(number, generation=3, swaps=_swaps(random) if number in worse else ()) for number in range(groups)
        ),
        replica_bytes={
            (broker, TopicPartition(topic.name, row.partition)): 1_000_000 + row.partition
            for topic in topics
            for row in topic.partitions
            for broker in row.replicas
        },
        rights=PrincipalRights(cluster_describe=True, cluster_describe_configs=True, cluster_alter=False),
        taken_ms=TAKEN_MS,
        monotonic_ms=MONOTONIC_MS,
        took_ms=1_000,
    )


def next_look(
    world: Observation, *, share: float = 0.01, improvable: float = 1.0, seed: int = 2, fresh_rows: bool = False
) -> Observation:
    """The look after: that share of the groups rebalanced, every offset moved on.

    ``improvable`` is the share of those that can be improved afterwards, whatever they could be before.
    Unchanged rows are the same objects, as ``observe`` hands them on; ``fresh_rows`` makes all of them equal copies.
    """
    random = Random(seed)
    drawn = random.sample(range(len(world.groups)), round(len(world.groups) * share))
    changed, worse = set(drawn), set(drawn[: round(len(drawn) * improvable)])
    groups = tuple(
        a_group(number, generation=4, swaps=_swaps(random) if number in worse else ()) if number in changed else group
        for number, group in enumerate(world.groups)
    )
    topics = world.topics
    if fresh_rows:
        topics = tuple(
            topic._replace(
                partitions=tuple(
                    RawPartition(row.partition, row.leader, (*row.replicas,), (*row.isr,), ())
                    for row in topic.partitions
                )
            )
            for topic in topics
        )
        groups = tuple(group._replace(members=tuple(RawMember(*row) for row in group.members)) for group in groups)
    return replace(
        world,
        topics=topics,
        groups=groups,
        end_offsets={partition: end + 50 for partition, end in world.end_offsets.items()},
        committed_offsets={
            group: {partition: offset + 50 for partition, offset in offsets.items()}
            for group, offsets in world.committed_offsets.items()
        },
        taken_ms=world.taken_ms + POLL_MS,
        monotonic_ms=world.monotonic_ms + POLL_MS,
    )


def group_name(number: int) -> str:
    return f"group-{number:06d}"


def topic_name(number: int) -> str:
    return f"topic-{number:06d}"


def a_group(number: int, *, generation: int, swaps: tuple[int, ...] = ()) -> RawClassicGroup:
    """A group whose member i holds partition i; each swap makes members i and i + 1 hold each other's."""
    held = list(range(PARTITIONS))
    for i in swaps:
        held[i], held[i + 1] = held[i + 1], held[i]
    members = tuple(_member(number, i, held[i], generation) for i in range(MEMBERS))
    return RawClassicGroup(group_name(number), "Stable", "consumer", PROTOCOL, members, number % BROKERS)


def _swaps(random: Random) -> tuple[int, ...]:
    """One to three pairs of neighbours that do not touch."""
    return tuple(random.sample(range(0, MEMBERS - 1, 2), random.randrange(1, 4)))


def _topic(number: int, random: Random) -> RawTopic:
    rows = []
    for partition in range(PARTITIONS):
        base = random.randrange(BROKERS // len(RACKS)) * len(RACKS)
        replicas = (base + partition % len(RACKS), base + (partition + 1) % len(RACKS))
        rows.append(RawPartition(partition, replicas[0], replicas, replicas, ()))
    return RawTopic(topic_name(number), f"id-{number}", False, tuple(rows), None)


def _member(group: int, number: int, partition: int, generation: int) -> RawMember:
    held = (TopicPartition(topic_name(group), partition),)
    subscription = Subscription(
        version=3,
        topics=(topic_name(group),),
        user_data=encode_sticky(StickyUserData(None, generation)),
        owned=held,
        generation=generation,
        rack=RACKS[number % len(RACKS)],
    )
    return RawMember(
        member_id=f"client-{number}-{group:08x}{number:04x}-4e0b-9d5a-1c2d3e4f5a6b",
        instance_id=None,
        client_id=f"client-{number}",
        client_host=f"/10.{number}.{group // 250 % 250}.{group % 250}",
        metadata=encode_subscription(subscription),
        assignment=encode_assignment(Assignment(3, held, None)),
    )

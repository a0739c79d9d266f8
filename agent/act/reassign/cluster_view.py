"""ClusterView of the executor: reassignments, topic metadata, configs and brokers, described right before acting.

Invariants: ListPartitionReassignments precedes topic metadata, so metadata shows the end of a move that is not listed.
Metadata counts where two brokers report the same topic ids and replicas; a topic is gone if both report so. With one
live broker its answer counts, but an unknown topic is unread unless the cluster has that broker only. What could not
be described is absent or named as unread, never empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from agent.errors import NoBrokersYet
from agent.execute.reassign.messages import ClusterView, PartitionView, ReadCluster, ReassignmentView
from agent.values.kafka import MIN_INSYNC_REPLICAS, UNKNOWN_TOPIC_OR_PARTITION
from agent.values.observation import RawReassignment, RawTopic
from agent.values.throttles import ThrottleResource
from agent.wire.admin_client import WireAdminClient
from agent.wire.changes import DescribedThrottles
from agent.wire.cluster_calls import DescribedConfigs, Sizes
from agent.wire.failure import CallFailed, Deadline, gather
from assignors.problem import TopicPartition

_OWN_MS = 300
"""To put the answers together."""

TrafficReader = Callable[[], Mapping[int, float]]
"""Broker -> bytes per second that it takes in, as far as it is known."""


class LookFailedError(Exception):
    """The cluster could not be seen well enough to act upon; the sentence names what was missing."""

    def __init__(self, sentence: str, *, silent: bool = False) -> None:
        super().__init__(sentence)
        self.silent = silent
        """True when a call got no answer; False when answers contradict each other or are not enough."""


class _Rest(NamedTuple):
    """What does not depend on the order of looking."""

    throttles: DescribedThrottles
    min_isrs: DescribedConfigs
    sizes: Sizes


def no_traffic() -> Mapping[int, float]:
    """An empty mapping: the traffic of every broker is unknown."""
    return {}


def read_cluster(
    admin: WireAdminClient, wanted: ReadCluster, timeout_ms: int, traffic: TrafficReader = no_traffic
) -> ClusterView:
    """What there is by now of these topics, resources and of all reassignments. Raises LookFailedError.

    ``timeout_ms`` is the deadline of each call. They follow on one another, so that in a network that delays every
    answer the whole takes longer than any of them may.
    """
    try:
        cluster = admin.describe_brokers(timeout_ms)
        up = frozenset(broker.id for broker in cluster.brokers if not broker.fenced)
        moves = admin.list_reassignments(timeout_ms)
        # A broker that is too old to list fenced ones may be one of many.
        only_one = len(cluster.brokers) == 1 and all(broker.fenced is not None for broker in cluster.brokers)
        topics = _two_witnesses(admin, sorted(set(wanted.topics)), up, timeout_ms, only_one=only_one)
    except (CallFailed, NoBrokersYet) as error:
        raise LookFailedError(str(error), silent=True) from error
    rest = _rest(admin, wanted, moves, up, timeout_ms)
    min_isrs = {name: values.get(MIN_INSYNC_REPLICAS) for name, values in rest.min_isrs.values.items()}
    return ClusterView(
        brokers=up,
        partitions=tuple(sorted(_partitions(topics, min_isrs))),
        moves=tuple(ReassignmentView(*row) for row in moves),
        gone=frozenset(name for name, pair in topics.items() if pair[0].error == UNKNOWN_TOPIC_OR_PARTITION),
        throttles=tuple(sorted(one for one in rest.throttles.settings.values() if one.in_force is not None)),
        unread=_unread(wanted.resources, rest.throttles, up),
        traffic=tuple(sorted(traffic().items())),
        bytes=tuple(sorted((partition, broker, size) for (partition, broker), size in rest.sizes.items())),
        racks=tuple((broker.id, broker.rack) for broker in cluster.brokers),
    )


def _two_witnesses(
    admin: WireAdminClient, names: list[str], up: frozenset[int], timeout_ms: int, *, only_one: bool
) -> dict[str, tuple[RawTopic, RawTopic]]:
    """Topic -> its descriptions by both witnesses; they agree on all but leaders and ISRs."""
    if not names:
        return {}
    first = admin.describe_topics(timeout_ms, names=names)
    if len(up) <= 1:
        known = (topic for topic in first.topics if only_one or topic.error != UNKNOWN_TOPIC_OR_PARTITION)
        return {topic.name: (topic, topic) for topic in known}
    second = admin.describe_topics(timeout_ms, names=names, avoid=first.answered_by)
    if first.answered_by is None or first.answered_by == second.answered_by:
        raise LookFailedError("only one broker described the topics, and two are needed")
    other = {topic.name: topic for topic in second.topics}
    pairs = {topic.name: (topic, other[topic.name]) for topic in first.topics if topic.name in other}
    for name, (one, two) in pairs.items():
        if _placement(one) != _placement(two):
            who = f"brokers {first.answered_by} and {second.answered_by}"
            raise LookFailedError(f"{who} do not agree about topic {name} yet")
    return pairs


def _placement(topic: RawTopic) -> object:
    unknown = topic.error == UNKNOWN_TOPIC_OR_PARTITION
    return unknown, topic.topic_id, tuple((row.partition, row.replicas) for row in topic.partitions)


def _rest(
    admin: WireAdminClient, wanted: ReadCluster, moves: Iterable[RawReassignment], up: frozenset[int], timeout_ms: int
) -> _Rest:
    """Configs and sizes, side by side."""
    topics = sorted(set(wanted.topics))
    named = [one.topic for one in wanted.resources if one.topic is not None]
    # A broker that is down is not asked: it would take the whole deadline without an answer.
    brokers = [one.broker for one in wanted.resources if one.broker in up]
    replicas = _moving(moves, frozenset(topics), up)
    jobs: dict[str, Callable[[], DescribedThrottles | DescribedConfigs | Sizes]] = {
        "throttles": lambda: admin.describe_throttles(named, brokers, timeout_ms),
        "min isr": lambda: admin.describe_topic_configs(topics, [MIN_INSYNC_REPLICAS], timeout_ms),
        "sizes": lambda: admin.replica_sizes(replicas, timeout_ms),
    }
    answers = gather(jobs, Deadline.after_ms(timeout_ms + _OWN_MS), name="look")
    throttles, min_isrs, sizes = answers["throttles"], answers["min isr"], answers["sizes"]
    if isinstance(throttles, CallFailed):
        raise LookFailedError(f"the throttles could not be read: {throttles.detail}")
    if isinstance(throttles, DescribedThrottles) and throttles.differing:
        raise LookFailedError(f"brokers do not agree about the throttles of topic {throttles.differing[0]} yet")
    return _Rest(
        cast("DescribedThrottles", throttles),
        min_isrs if isinstance(min_isrs, DescribedConfigs) else DescribedConfigs({}, ()),
        sizes if isinstance(sizes, dict) else {},
    )


def _moving(
    moves: Iterable[RawReassignment], topics: frozenset[str], up: frozenset[int]
) -> dict[int, list[TopicPartition]]:
    """Broker -> partitions of these topics that move to or from it, or stay there meanwhile."""
    replicas: dict[int, list[TopicPartition]] = {}
    for row in moves:
        if row.id.topic in topics:
            for broker in {*row.replicas} & up:
                replicas.setdefault(broker, []).append(row.id)
    return replicas


def _partitions(
    topics: Mapping[str, tuple[RawTopic, RawTopic]], min_isrs: Mapping[str, str | None]
) -> Iterator[PartitionView]:
    """The weaker of both witnesses' ISRs; a leader on whom they do not agree is unknown."""
    for name, (one, two) in topics.items():
        if one.error is not None or one.topic_id is None:
            continue
        value = min_isrs.get(name)
        for row, other in zip(one.partitions, two.partitions, strict=True):
            yield PartitionView(
                TopicPartition(name, row.partition),
                one.topic_id,
                row.leader if row.leader == other.leader else None,
                row.replicas,
                frozenset(row.isr) & frozenset(other.isr),
                int(value) if value is not None and value.isdecimal() else None,
                leader_known=row.leader == other.leader,
            )


def _unread(
    wanted: Iterable[ThrottleResource], read: DescribedThrottles, up: frozenset[int]
) -> frozenset[ThrottleResource]:
    """Those that did not answer although they could: a broker that is down is known to be."""
    answered = {resource for resource, _ in read.settings}
    asked = (one for one in wanted if one.broker is None or one.broker in up)
    return frozenset(one for one in asked if one not in answered)

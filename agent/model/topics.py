"""Topics with their partitions, sizes included: what metadata, configs and log dirs say, put together.

Invariant: a topic that did not change is the same object as in the last snapshot, and so is the mapping when none did.
A topic that the brokers could not describe is left out; the gap that came with it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from agent.values.kafka import CLEANUP_POLICY, FOLLOWER_REPLICAS, LEADER_REPLICAS, MIN_INSYNC_REPLICAS
from agent.values.limits import Limits
from agent.values.memo import Memo, each
from agent.values.observation import Observation, RawTopic
from agent.values.snapshot import PartitionState, TopicState
from assignors.problem import TopicPartition

_new = tuple.__new__
"""What a named tuple's own ``__new__`` calls; without that detour it takes less than half the time."""
_NO_CONFIG: Mapping[str, str] = {}
_NAME = _NUMBER = itemgetter(0)


class Topics(NamedTuple):
    """The topics, and what is read off all of them at once."""

    by_name: Mapping[str, TopicState]
    """Sorted."""
    brokers: frozenset[int]
    """Every broker that holds a replica of something."""


def topics_of(observation: Observation, limits: Limits, memo: Memo) -> Topics:
    """Every described topic by name."""
    rows, configs, prefix = observation.topics, observation.topic_configs, limits.topics.prefix
    return memo.of(("topics",), (rows, configs, prefix), lambda: _topics(rows, configs, prefix, memo))


def sizes_of(observation: Observation, memo: Memo) -> Mapping[TopicPartition, int]:
    """The largest replica on disk of each partition that some log dir told of."""
    return memo.of(("sizes",), (observation.replica_bytes,), partial(_sizes, observation.replica_bytes))


def is_own(name: str, prefix: str) -> bool:
    """True for a topic or group of rackwise itself: its prefix, alone or before a separator."""
    return name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in ("", ".", "-", "_")


def _topics(rows: tuple[RawTopic, ...], configs: Mapping[str, Mapping[str, str]], prefix: str, memo: Memo) -> Topics:
    described = [(row, configs.get(row.name, _NO_CONFIG)) for row in rows if row.error is None or row.partitions]
    built = each(
        memo, "topics", described, lambda pair: pair[0].name, lambda pair: _topic(*pair, prefix), context=(prefix,)
    )
    by_name = {topic.name: topic for topic in sorted(built, key=_NAME)}
    brokers = frozenset().union(*[state.replicas for topic in built for state in topic.partitions])
    return Topics(by_name, brokers)


def _topic(raw: RawTopic, config: Mapping[str, str], prefix: str) -> TopicState:
    name = raw.name
    return TopicState(
        name,
        raw.topic_id,
        raw.internal,
        is_own(name, prefix),
        tuple(
            [
                _new(PartitionState, (_new(TopicPartition, (name, number)), leader, replicas, isr, offline))
                for number, leader, replicas, isr, offline in sorted(raw.partitions, key=_NUMBER)
            ]
        ),
        _number(config.get(MIN_INSYNC_REPLICAS)),
        config.get(CLEANUP_POLICY) or None,
        config.get(LEADER_REPLICAS) or None,
        config.get(FOLLOWER_REPLICAS) or None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


def _sizes(replica_bytes: Mapping[tuple[int, TopicPartition], int]) -> dict[TopicPartition, int]:
    sizes: dict[TopicPartition, int] = {}
    for (_, partition), size in replica_bytes.items():
        if size > sizes.get(partition, -1):
            sizes[partition] = size
    return sizes

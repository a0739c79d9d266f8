"""Throttles of reassignments: how one is read, changed and found idle, the same in every module that handles them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIRS_RATE
from agent.values.observation import ObservationPart
from agent.values.snapshot import Snapshot, TopicState

KEYS_OF: Mapping[str, tuple[str, ...]] = {
    "topic": (LEADER_REPLICAS, FOLLOWER_REPLICAS),
    "broker": (LEADER_RATE, FOLLOWER_RATE),
}
"""Kind of resource -> every key of it that may be changed."""
BROKER_RATES = (*KEYS_OF["broker"], LOG_DIRS_RATE)
"""The keys that limit a broker; the last one is only read."""
UNLIMITED = str((1 << 63) - 1)
"""Kafka's default for each of these rates."""


class ThrottleResource(NamedTuple):
    """What a setting belongs to."""

    kind: str
    """``broker`` or ``topic``."""
    name: str
    """Topic name, or the broker's id as text."""


class SeenThrottle(NamedTuple):
    """A throttle setting with its layers."""

    resource: ThrottleResource
    key: str
    own: str | None
    """In the dynamic config of that very topic or broker; None when nothing is set there."""
    default: str | None = None
    """What holds without that: the cluster-wide default or the broker's own file."""

    @property
    def in_force(self) -> str | None:
        """What holds; None where nothing is set in any layer."""
        return self.default if self.own is None else self.own


class OpType(IntEnum):
    """Kafka's numbers of what IncrementalAlterConfigs can do to a key; the last two are for lists (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ThrottleChange(NamedTuple):
    """One change of one throttle key."""

    resource: ThrottleResource
    key: str
    op: OpType
    value: str | None = None
    """None where the key is deleted."""
    expected: tuple[str | None, ...] | None = None
    """It is not changed when, right before, its own value (None: it has none) is not one of these; None: any may be."""
    alone: bool = False
    """Nor when there is a default for it."""
    topic_id: str | None = None
    """Nor when the topic of that name is another one; None: not a topic's."""


def idle_throttles(snapshot: Snapshot) -> tuple[str, ...]:
    """Subjects (``topic/name``, ``broker/id``) throttled for nothing, sorted; none while moves are not shown."""
    if any(gap.part is ObservationPart.REASSIGNMENTS for gap in snapshot.gaps):
        return ()
    moving = {tp.topic for tp in snapshot.reassignments}
    topics = [
        f"topic/{name}"
        for name, topic in snapshot.topics.items()
        if (topic.leader_throttle is not None or topic.follower_throttle is not None) and name not in moving
    ]
    brokers = (
        [] if moving else [f"broker/{broker}" for broker in snapshot.broker_configs if broker_rates(snapshot, broker)]
    )
    return tuple(sorted(topics + brokers))


def topic_throttles(topic: TopicState) -> str | None:
    """The topic's throttled replicas, or None; the two lists are written one after the other."""
    if topic.leader_throttle is None and topic.follower_throttle is None:
        return None
    return "; ".join(
        f"{side} {value}"
        for side, value in (("leader", topic.leader_throttle), ("follower", topic.follower_throttle))
        if value is not None
    )


def broker_rates(snapshot: Snapshot, broker: int) -> tuple[tuple[str, str], ...]:
    """(config, bytes per second) of the replication throttles that are set on a broker."""
    configs = snapshot.broker_configs.get(broker, {})
    rates = ((name, configs.get(name, "")) for name in BROKER_RATES)
    return tuple((name, value) for name, value in rates if value and value != UNLIMITED)

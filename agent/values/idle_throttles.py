"""Finds throttles that are set although no reassignment runs that would need them."""

from __future__ import annotations

from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE, LOG_DIRS_RATE
from agent.values.observation import Part
from agent.values.snapshot import Snapshot, TopicState

BROKER_RATES = (
    LEADER_RATE,
    FOLLOWER_RATE,
    LOG_DIRS_RATE,
)
UNLIMITED = str((1 << 63) - 1)
"""Kafka's default for each of these rates."""


def idle_throttles(snapshot: Snapshot) -> tuple[str, ...]:
    """Subjects (``topic/name``, ``broker/id``) throttled for nothing, sorted; none while moves are not shown."""
    if any(gap.part is Part.REASSIGNMENTS for gap in snapshot.gaps):
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

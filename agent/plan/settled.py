"""The snapshot as it is once what moves has moved: replica lists are the targets of the reassignments that run.

While a reassignment runs, a replica list is the union of old and new. Nothing is planned for such a partition, but it
counts: for how many replicas and preferred leaders each broker has, it counts with its target, as in the findings.

Invariant: topics of which nothing moves are the same objects as before.
"""

from __future__ import annotations

from dataclasses import replace

from agent.values.rack_room import target_replicas
from agent.values.snapshot import Snapshot, TopicState


def settled(snapshot: Snapshot) -> Snapshot:
    """The same snapshot with the target of every running reassignment as its partition's replicas."""
    if not snapshot.reassignments:
        return snapshot
    moving = {partition.topic for partition in snapshot.reassignments}
    topics = {
        name: settled_topic(topic, snapshot) if name in moving else topic for name, topic in snapshot.topics.items()
    }
    return replace(snapshot, topics=topics)


def settled_topic(topic: TopicState, snapshot: Snapshot) -> TopicState:
    """The same of one topic."""
    running = snapshot.reassignments
    if not any(state.id in running for state in topic.partitions):
        return topic
    partitions = (
        state._replace(replicas=target_replicas(state, running[state.id])) if state.id in running else state
        for state in topic.partitions
    )
    return topic._replace(partitions=tuple(partitions))

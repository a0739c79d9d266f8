"""What the next look shall know of this one: the only place where a memory is made from another.

Invariants: a part that did not answer keeps what was known of it; what is only no longer shown stays known until a
witness says that it is gone; nothing grows with time but with the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import TYPE_CHECKING

from agent.memory.changes import moves_hidden, rack_changes, topic_memory, topics_to_compare, widened_partitions
from agent.memory.foretold import after_look, foretold_of
from agent.memory.rate_bases import learned_bytes_per_record, next_rate_bases, next_size_base
from agent.memory.sightings import sightings
from agent.memory.streams import last_look_of, remember_streams
from agent.values.absences import absent_since
from agent.values.assessment import Detection
from agent.values.kafka import SETTLED_STATES
from agent.values.memory import Foretold, Memory, RunningReassignment, StreamsMemory, TopicMemory
from agent.values.observation import Part
from agent.values.snapshot import OtherGroup, Snapshot, StreamsGroup
from agent.values.throttles import idle_throttles
from assignors.problem import TopicPartition

if TYPE_CHECKING:  # what predicts reads this package
    from agent.values.prediction import Prediction

GONE_KEPT_MS = 300_000
"""A finding that comes back within this time keeps its age."""
ACTS_KEPT_MS = 86_400_000


def remember(
    memory: Memory,
    snapshot: Snapshot,
    detection: Detection,
    predictions: Mapping[str, Prediction] = MappingProxyType({}),
) -> Memory:
    """The memory after this look, and after what was predicted from it."""
    now_ms = snapshot.monotonic_ms
    widened = widened_partitions(memory, snapshot)
    seen = {finding.id: finding.since_ms for finding in detection.findings}
    return Memory(
        cycle=memory.cycle + 1,
        taken_ms=snapshot.taken_ms,
        monotonic_ms=now_ms,
        first_seen=seen,
        gone=_gone(memory, seen, now_ms),
        brokers=sightings(memory, snapshot),
        absent=absent_since(memory, snapshot),
        topics=_topics(memory, snapshot, widened.keys()),
        groups=_groups(memory, snapshot),
        changes=rack_changes(memory, snapshot),
        reassignments=_reassignments(memory, snapshot, widened.keys()),
        own_reassignments=memory.own_reassignments,
        widened=widened,
        rebalancing=_rebalancing(memory, snapshot),
        streams=_streams(memory, snapshot),
        throttles={subject: memory.throttles.get(subject, now_ms) for subject in idle_throttles(snapshot)},
        acts={subject: at for subject, at in memory.acts.items() if now_ms - at <= ACTS_KEPT_MS},
        rate_bases=next_rate_bases(memory, snapshot),
        size_base=next_size_base(memory, snapshot),
        foretold=_foretold(memory, snapshot, predictions),
        bytes_per_record=learned_bytes_per_record(memory, snapshot),
        topic_states=snapshot.topics,
    )


def _foretold(memory: Memory, snapshot: Snapshot, predictions: Mapping[str, Prediction]) -> Mapping[str, Foretold]:
    """The last prediction of each group, until its next rebalance has shown whether it was right."""
    if not memory.foretold and not predictions:
        return memory.foretold
    groups = snapshot.groups
    kept = {name: after_look(known, groups.get(name), snapshot) for name, known in memory.foretold.items()}
    for name, prediction in predictions.items():
        if name in groups:
            new = foretold_of(prediction, groups[name], snapshot, kept.get(name))
            kept[name] = new if new is not None else kept.get(name)
    return {name: known for name, known in sorted(kept.items()) if known is not None}


def _gone(memory: Memory, seen: Mapping[str, int], now_ms: int) -> dict[str, tuple[int, int]]:
    gone = {name: was for name, was in memory.gone.items() if name not in seen and now_ms - was[1] <= GONE_KEPT_MS}
    gone |= {name: (since, memory.monotonic_ms) for name, since in memory.first_seen.items() if name not in seen}
    return gone


def _topics(memory: Memory, snapshot: Snapshot, doubted: AbstractSet[TopicPartition]) -> Mapping[str, TopicMemory]:
    """Topics as they are, and those that are only not shown as they were."""
    blind = moves_hidden(snapshot)
    missing = {gap.subject for gap in snapshot.gaps if gap.part is Part.TOPICS}
    compared = {topic.name for topic in topics_to_compare(memory, snapshot)}
    if snapshot.topics is memory.topic_states and not compared and not missing:
        return memory.topics
    topics: dict[str, TopicMemory] = {}
    for name, topic in snapshot.topics.items():
        before = memory.topics.get(name)
        if before is None or name in compared:
            topics[name] = topic_memory(topic, before, snapshot, doubted, blind=blind)
        else:
            topics[name] = before
    if not missing:
        return topics
    hidden = {name: known for name, known in memory.topics.items() if name not in topics}
    undescribed = [name for name in missing if name and " " not in name and name not in topics]  # others count many
    hidden |= {name: TopicMemory(None, ()) for name in undescribed if name not in hidden}
    topics |= {name: known for name, known in hidden.items() if name not in snapshot.vanished_topics}
    return dict(sorted(topics.items()))


def _groups(memory: Memory, snapshot: Snapshot) -> tuple[str, ...]:
    shown = tuple(snapshot.groups)
    if any(gap.part is Part.GROUPS for gap in snapshot.gaps):
        hidden = set(memory.groups) - snapshot.groups.keys() - set(snapshot.vanished_groups)
        shown = tuple(sorted({*shown, *hidden}))
    return memory.groups if shown == memory.groups else shown


def _reassignments(
    memory: Memory, snapshot: Snapshot, doubted: AbstractSet[TopicPartition]
) -> Mapping[TopicPartition, RunningReassignment]:
    """What runs, what ran and may not be through, and what is our own: whose it is must be known when it is through."""
    if moves_hidden(snapshot):
        return memory.reassignments
    kept = {one for one in memory.reassignments if one in doubted}
    moving = {*snapshot.reassignments, *kept, *memory.own_reassignments}
    return {one: _running(one, memory, snapshot) for one in sorted(moving)}


def _running(partition: TopicPartition, memory: Memory, snapshot: Snapshot) -> RunningReassignment:
    known = memory.reassignments.get(partition)
    listed = snapshot.reassignments.get(partition)
    own = partition in memory.own_reassignments or any(move is not None and move.own for move in (known, listed))
    return RunningReassignment(known.since_ms if known is not None else snapshot.taken_ms, own)


def _rebalancing(memory: Memory, snapshot: Snapshot) -> dict[str, int]:
    return {
        name: memory.rebalancing.get(name, snapshot.monotonic_ms)
        for name, group in snapshot.groups.items()
        if group.state not in SETTLED_STATES and not isinstance(group, OtherGroup)
    }


def _streams(memory: Memory, snapshot: Snapshot) -> dict[str, StreamsMemory]:
    streams = {
        name: remember_streams(
            memory.streams.get(name),
            group,
            snapshot.copies.get(name, ()),
            snapshot.monotonic_ms,
            last_look_of(memory, name),
        )
        for name, group in snapshot.groups.items()
        if isinstance(group, StreamsGroup)
    }
    if any(gap.part is Part.GROUPS for gap in snapshot.gaps):
        streams |= {name: known for name, known in memory.streams.items() if name not in snapshot.groups}
    return dict(sorted(streams.items()))

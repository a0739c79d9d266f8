"""The next memory from the last one and this snapshot; no other module makes a memory from another.

Invariants: a missing part keeps its memory; a subject stays until its deletion is proven; the size is bounded by the
cluster, not by time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import TYPE_CHECKING
from zlib import crc32

from agent.memory.rack_history import (
    moves_hidden,
    rack_changes,
    sightings,
    topic_memory,
    topics_to_compare,
    widened_partitions,
)
from agent.memory.streams import last_look_of, remember_streams
from agent.values.assessment import DetectionResult
from agent.values.kafka import SETTLED_STATES, STABLE
from agent.values.memory import (
    Memory,
    PredictionMemory,
    RateBase,
    RunningReassignment,
    StreamsMemory,
    TopicMemory,
    absent_since,
)
from agent.values.number_format import counted
from agent.values.observation import ObservationPart
from agent.values.snapshot import ConsumerGroup, Group, OtherGroup, ReaderGroup, Snapshot, StreamsGroup
from agent.values.throttles import idle_throttles
from assignors.problem import TopicPartition

if TYPE_CHECKING:
    from agent.values.plan import PredictedAssignment, Prediction

# Two rate bases are kept: one is always old enough to be smooth and young enough to be current. Bytes per record come
# only from observations with both sizes and end offsets. Above `MAX_PARTITIONS` rates come from the pipeline alone.

MAX_PARTITIONS = 10_000
WINDOW_MS = 60_000
"""A base for rates is replaced when it is twice as old, one for sizes when it is this old."""


def next_rate_bases(memory: Memory, snapshot: Snapshot) -> tuple[RateBase, ...]:
    """The bases for the next look: this look joins them when the youngest is a window old."""
    if _unusable(snapshot):
        return memory.rate_bases if not snapshot.end_offsets else ()
    if memory.rate_bases and snapshot.monotonic_ms - memory.rate_bases[-1].monotonic_ms < WINDOW_MS:
        return memory.rate_bases
    return (*memory.rate_bases, rate_base(snapshot))[-2:]


def rate_base(snapshot: Snapshot) -> RateBase:
    """This look as the base for rates."""
    return RateBase(snapshot.monotonic_ms, snapshot.end_offsets)


def next_size_base(memory: Memory, snapshot: Snapshot) -> RateBase | None:
    """The base for the size of records: this look when it asked for sizes and the one before is a window old."""
    base = memory.size_base
    if _unusable(snapshot):
        return base if not snapshot.end_offsets else None
    if not snapshot.sizes_fresh or not snapshot.size_bytes:
        return base
    if base is not None and snapshot.monotonic_ms - base.monotonic_ms < WINDOW_MS:
        return base
    return size_base(snapshot)


def size_base(snapshot: Snapshot) -> RateBase:
    """This look as the base for the size of records."""
    sizes = {partition: size for partition, size in snapshot.size_bytes.items() if partition in snapshot.end_offsets}
    return RateBase(snapshot.monotonic_ms, snapshot.end_offsets, sizes)


def learned_bytes_per_record(memory: Memory, snapshot: Snapshot) -> Mapping[str, float]:
    """Bytes per record of each topic: growth on disk by records appended, between two observations with both.

    A partition that did not grow is left out: old segments may have been deleted meanwhile.
    """
    known = {topic: size for topic, size in memory.bytes_per_record.items() if topic in snapshot.topics}
    base = memory.size_base
    if base is None or not snapshot.sizes_fresh or not snapshot.end_offsets:
        return known
    grown: dict[str, tuple[int, int]] = {}
    for partition, base_bytes in base.size_bytes.items():
        records = snapshot.end_offsets.get(partition, 0) - base.end_offsets[partition]
        size_bytes = snapshot.size_bytes.get(partition, base_bytes) - base_bytes
        if records > 0 and size_bytes > 0:
            so_far = grown.get(partition.topic, (0, 0))
            grown[partition.topic] = so_far[0] + size_bytes, so_far[1] + records
    known |= {topic: size_bytes / records for topic, (size_bytes, records) in grown.items()}
    return dict(sorted(known.items()))


def _unusable(snapshot: Snapshot) -> bool:
    return not snapshot.end_offsets or len(snapshot.end_offsets) > MAX_PARTITIONS


# Predictions are compared after the group's next rebalance, only where assignor and settings are known or assumed, and
# not where readers or topics changed or tasks are still moving.

Reads = Mapping[str, Iterable[TopicPartition]]


def prediction_memory(
    prediction: Prediction, group: Group, snapshot: Snapshot, before: PredictionMemory | None
) -> PredictionMemory | None:
    """The prediction for the memory; None where it proves nothing or is not comparable."""
    if not isinstance(group, ReaderGroup) or prediction.first is None or prediction.settled is None:
        return None
    exact = prediction.certainty.name == "EXACT"
    if not exact and prediction.basis.name == "READ":
        return None
    rebalance = _rebalance(group)
    if rebalance is None:
        return None
    return PredictionMemory(
        rebalance=rebalance,
        subject=_subject(group, snapshot),
        by=", ".join(part for part in (prediction.assignor, prediction.settings) if part),
        basis=prediction.basis.value,
        crossing=_crossing(prediction.settled.reads, group, snapshot),
        outcomes=tuple(
            dict.fromkeys(
                _outcome(assignment.reads, _copies(assignment), group, snapshot, exact=exact)
                for assignment in (prediction.first, prediction.settled)
            )
        ),
        exact=exact,
        missed=before.missed if before is not None and before.rebalance == rebalance else None,
    )


def prediction_mismatch(prediction: PredictionMemory, group: Group | None, snapshot: Snapshot) -> str | None:
    """The difference of the group's last rebalance from its prediction, as a clause; None without one."""
    if not isinstance(group, ReaderGroup) or group.hidden or group.state != STABLE:
        return prediction.missed
    if _rebalance(group) == prediction.rebalance:
        return prediction.missed
    reads = _reads(group)
    if _subject(group, snapshot) != prediction.subject or not _complete(group, reads):
        return None
    copies = sum(len(p.standby) + len(p.warmup) for p in group.processes) if isinstance(group, StreamsGroup) else 0
    if _outcome(reads, copies, group, snapshot, exact=prediction.exact) in prediction.outcomes:
        return None
    crossing = _crossing(reads, group, snapshot)
    return (
        f"{prediction.by} ({prediction.basis}) predicted {counted(prediction.crossing, 'read')} across racks; after "
        f"the rebalance the group has another assignment, with {crossing}"
    )


def kept_prediction(prediction: PredictionMemory, group: Group | None, snapshot: Snapshot) -> PredictionMemory | None:
    """The prediction to keep after an observation without a new one; None once it is right or void."""
    if not isinstance(group, ReaderGroup):
        return None
    rebalance = _rebalance(group)
    if group.hidden or group.state != STABLE or rebalance is None or rebalance == prediction.rebalance:
        return prediction
    reads = _reads(group)
    if _subject(group, snapshot) == prediction.subject and not _complete(group, reads):
        return prediction  # work is still being handed over
    why = prediction_mismatch(prediction, group, snapshot)
    return None if why is None else prediction._replace(rebalance=rebalance, missed=why)


def _rebalance(group: ReaderGroup) -> str | None:
    if isinstance(group, StreamsGroup):
        return group.join
    if group.assignment_epoch is not None:
        return f"epoch {group.assignment_epoch}"
    generations = [member.generation for member in group.members if member.generation is not None]
    return f"generation {max(generations)}" if generations else None


def _subject(group: ReaderGroup, snapshot: Snapshot) -> int:
    """Digest of the readers and the racks of their topics' replicas."""
    parts = sorted(reader.id for reader in group.readers)
    for topic in sorted({tp.topic for held in _reads(group).values() for tp in held}):
        state = snapshot.topics.get(topic)
        parts.append(f"{topic} {[one.replicas for one in state.partitions] if state is not None else None}")
    return crc32("\n".join(parts).encode(errors="surrogatepass"))


def _reads(group: ReaderGroup) -> Reads:
    if isinstance(group, ConsumerGroup):
        return {member.id: member.assigned or () for member in group.members}
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology is not None else {}
    return {process.id: [tp for t in process.active for tp in sources.get(t, ())] for process in group.processes}


def _complete(group: ReaderGroup, reads: Reads) -> bool:
    """True when nothing is still moving: all tasks run, or each partition up to the highest is read."""
    if isinstance(group, StreamsGroup):
        tasks = {task.id for task in group.topology.tasks} if group.topology is not None else set()
        return {task for process in group.processes for task in process.active} == tasks
    numbers: dict[str, set[int]] = {}
    for held in reads.values():
        for topic, number in held:
            numbers.setdefault(topic, set()).add(number)
    return bool(numbers) and all(len(found) == max(found) + 1 for found in numbers.values())


def _outcome(reads: Reads, copies: int, group: ReaderGroup, snapshot: Snapshot, *, exact: bool) -> str:
    """Key of equal assignments: partitions by reader, or only loads and cost; and the number of copies."""
    if exact:
        text = "\n".join(f"{name} {sorted(held)}" for name, held in sorted(reads.items()))
        return f"{crc32(text.encode(errors='surrogatepass')):08x} {copies}"
    loads = sorted(len(list(held)) for held in reads.values())
    return f"{crc32(repr(loads).encode()):08x} {_crossing(reads, group, snapshot)} {copies}"


def _copies(assignment: PredictedAssignment) -> int:
    return sum(len(held) for kind in (assignment.standby, assignment.warmup) for held in kind.values())


def _crossing(reads: Reads, group: ReaderGroup, snapshot: Snapshot) -> int:
    """The number of reads without a replica in the reader's own rack id."""
    rack_of = {reader.id: reader.rack.rack_id for reader in group.readers}
    racks = {broker.id: broker.rack.rack_id for broker in snapshot.brokers if broker.rack.rack_id}
    crossing = 0
    for name, held in reads.items():
        for topic, number in held:
            state = snapshot.topics.get(topic)
            if state is not None and number < len(state.partitions):
                crossing += rack_of.get(name) not in {racks.get(broker) for broker in state.partitions[number].replicas}
    return crossing


GONE_KEPT_MS = 300_000
"""A finding that comes back within this time keeps its age."""
ACTS_KEPT_MS = 86_400_000


def remember(
    memory: Memory,
    snapshot: Snapshot,
    detection: DetectionResult,
    predictions: Mapping[str, Prediction] = MappingProxyType({}),
) -> Memory:
    """The memory after this snapshot and its predictions."""
    now_ms = snapshot.monotonic_ms
    widened = widened_partitions(memory, snapshot)
    first_seen = {finding.id: finding.since_ms for finding in detection.findings}
    return Memory(
        cycle=memory.cycle + 1,
        taken_ms=snapshot.taken_ms,
        monotonic_ms=now_ms,
        first_seen=first_seen,
        gone=_gone(memory, first_seen, now_ms),
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
        throttles={str(it.subject): memory.throttles.get(str(it.subject), now_ms) for it in idle_throttles(snapshot)},
        acts={subject: at for subject, at in memory.acts.items() if now_ms - at <= ACTS_KEPT_MS},
        rate_bases=next_rate_bases(memory, snapshot),
        size_base=next_size_base(memory, snapshot),
        predictions=_predictions(memory, snapshot, predictions),
        bytes_per_record=learned_bytes_per_record(memory, snapshot),
        topic_states=snapshot.topics,
    )


def _predictions(
    memory: Memory, snapshot: Snapshot, predictions: Mapping[str, Prediction]
) -> Mapping[str, PredictionMemory]:
    """The last prediction of each group, until its next rebalance."""
    if not memory.predictions and not predictions:
        return memory.predictions
    groups = snapshot.groups
    kept = {name: kept_prediction(known, groups.get(name), snapshot) for name, known in memory.predictions.items()}
    for name, prediction in predictions.items():
        if name in groups:
            new = prediction_memory(prediction, groups[name], snapshot, kept.get(name))
            kept[name] = new if new is not None else kept.get(name)
    return {name: known for name, known in sorted(kept.items()) if known is not None}


def _gone(memory: Memory, first_seen: Mapping[str, int], now_ms: int) -> dict[str, tuple[int, int]]:
    gone = {
        name: span for name, span in memory.gone.items() if name not in first_seen and now_ms - span[1] <= GONE_KEPT_MS
    }
    gone |= {name: (since, memory.monotonic_ms) for name, since in memory.first_seen.items() if name not in first_seen}
    return gone


def _topics(memory: Memory, snapshot: Snapshot, doubted: AbstractSet[TopicPartition]) -> Mapping[str, TopicMemory]:
    """Topics as shown now; those that are only hidden as before."""
    blind = moves_hidden(snapshot)
    gaps = [gap for gap in snapshot.gaps if gap.part is ObservationPart.TOPICS]
    compared = {topic.name for topic in topics_to_compare(memory, snapshot)}
    if snapshot.topics is memory.topic_states and not compared and not gaps:
        return memory.topics
    topics: dict[str, TopicMemory] = {}
    for name, topic in snapshot.topics.items():
        before = memory.topics.get(name)
        if before is None or name in compared:
            topics[name] = topic_memory(topic, before, snapshot, doubted, blind=blind)
        else:
            topics[name] = before
    if not gaps:
        return topics
    hidden = {name: known for name, known in memory.topics.items() if name not in topics}
    undescribed = {gap.name for gap in gaps if gap.name}
    hidden |= {name: TopicMemory(None, ()) for name in undescribed - topics.keys() - hidden.keys()}
    topics |= {name: known for name, known in hidden.items() if name not in snapshot.vanished_topics}
    return dict(sorted(topics.items()))


def _groups(memory: Memory, snapshot: Snapshot) -> tuple[str, ...]:
    shown = tuple(snapshot.groups)
    if any(gap.part is ObservationPart.GROUPS for gap in snapshot.gaps):
        hidden = set(memory.groups) - snapshot.groups.keys() - set(snapshot.vanished_groups)
        shown = tuple(sorted({*shown, *hidden}))
    return memory.groups if shown == memory.groups else shown


def _reassignments(
    memory: Memory, snapshot: Snapshot, doubted: AbstractSet[TopicPartition]
) -> Mapping[TopicPartition, RunningReassignment]:
    """Reassignments that run or may still run, with rackwise's own marked until they are complete."""
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
    if any(gap.part is ObservationPart.GROUPS for gap in snapshot.gaps):
        streams |= {name: known for name, known in memory.streams.items() if name not in snapshot.groups}
    return dict(sorted(streams.items()))

"""Bytes per second that a group reads locally, now and at its optimum.

The agent's own rates change in every cycle while the structure stays, so they are laid over an assessment afterwards.
The optimum's bytes are then those of the assignment that is optimal by partitions (what a rack-aware assignor would
reach for); the optimum by bytes, for which rates must hold still, is in `weighted`.

Invariant: one unknown rate makes all bytes of the group unknown; a part is never passed off as the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from agent.detect.assess_consumers import consumer_problem
from agent.detect.assess_tasks import reads_of_tasks, task_problem
from agent.detect.tally import Reads, localities, measures_agree, tally_reads
from agent.values.assessment import Assessment, Locality, Measure
from agent.values.limits import GroupLimits
from agent.values.locality import UNKNOWN, Ground, TopicMasks
from agent.values.snapshot import ConsumerGroup, PartitionState, ReaderGroup, Snapshot, StreamsGroup, TopicState
from assignors.optimal import optimal_consumer, optimal_tasks
from assignors.problem import ConsumerResult, TaskResult, TopicPartition

Rates = tuple[tuple[TopicPartition, float], ...]
"""Bytes per second of each partition of some topics."""


class Bytes(NamedTuple):
    """Bytes per second by what is known of them."""

    local: float
    total: float
    unknown: float


def topic_rates(topics: Iterable[TopicState], snapshot: Snapshot) -> Rates | None:
    """The rate of every partition of those topics; None when one of them is unknown."""
    rates: list[tuple[TopicPartition, float]] = []
    for topic in topics:
        for state in topic.partitions:
            rate = snapshot.bytes_per_s.get(state.id)
            if rate is None:
                return None
            rates.append((state.id, rate))
    return tuple(rates)


def with_bytes(
    assessment: Assessment,
    group: ReaderGroup,
    rates: Mapping[TopicPartition, float],
    ground: Ground,
    settings: GroupLimits,
) -> Assessment:
    """The assessment with one more locality per measure, in bytes per second; unchanged where a rate is missing."""
    if any(partition not in rates for _, partitions in current_reads(group, ground) for partition in partitions):
        return assessment
    now = weigh(current_reads(group, ground), ground.masks, rates)
    best: list[Bytes] = []
    for index, measure in enumerate((Measure.KAFKA, Measure.READ_LOCAL)):
        result = None
        if assessment.optimal[index].local > assessment.current[index].local:
            by_kafka = measure is Measure.KAFKA or measures_agree(ground.masks)
            result = assessment.result if by_kafka else _read_optimum(group, ground, settings)
        wanted = current_reads(group, ground) if result is None else optimal_reads(group, ground, result)
        best.append(weigh(wanted, ground.masks, rates)[index])
    return replace(
        assessment,
        current=assessment.current + byte_localities(*now),
        optimal=assessment.optimal + byte_localities(*best),
    )


def current_reads(group: ReaderGroup, ground: Ground) -> Reads:
    """Who reads what now."""
    if isinstance(group, ConsumerGroup):
        return [(ground.bits.reader(member.rack), member.assigned or ()) for member in group.members]
    if group.topology is None:
        return ()
    readers = [ground.bits.reader(process.rack) for process in group.processes]
    return reads_of_tasks(group.topology, readers, [process.active for process in group.processes])


def optimal_reads(group: ReaderGroup, ground: Ground, result: ConsumerResult | TaskResult) -> Reads:
    """Who would read what under that result."""
    if isinstance(group, ConsumerGroup) and isinstance(result, ConsumerResult):
        return [(ground.bits.reader(member.rack), result.assignment[member.id]) for member in group.members]
    if isinstance(group, StreamsGroup) and isinstance(result, TaskResult) and group.topology is not None:
        readers = [ground.bits.reader(process.rack) for process in group.processes]
        return reads_of_tasks(group.topology, readers, [result.active[process.id] for process in group.processes])
    raise TypeError(f"a {type(result).__name__} does not answer for group {group.id}, which is a {group.kind} group")


def weigh(reads: Reads, masks: Mapping[str, TopicMasks], rates: Mapping[TopicPartition, float]) -> tuple[Bytes, Bytes]:
    """Bytes per second of those reads by Kafka's measure and by the read-local one."""
    total = local = unknown = read_local = read_unknown = 0.0
    for bit, partitions in reads:
        for partition in partitions:
            rate = rates[partition]
            of, number = masks[partition.topic], partition.partition
            total += rate
            if not bit or number >= len(of.kafka):
                unknown += rate
                read_unknown += rate
                continue
            if of.kafka[number] & bit:
                local += rate
            elif of.kafka[number] & UNKNOWN:
                unknown += rate
            if of.read[number] & bit:
                read_local += rate
            elif of.read_possible[number] & (bit | UNKNOWN):
                read_unknown += rate
    return Bytes(local, total, unknown), Bytes(read_local, total, read_unknown)


def _read_optimum(group: ReaderGroup, ground: Ground, settings: GroupLimits) -> ConsumerResult | TaskResult | None:
    if isinstance(group, ConsumerGroup):
        return optimal_consumer(consumer_problem(group, ground, Measure.READ_LOCAL))
    if group.topology is None:
        return None
    return optimal_tasks(task_problem(group, group.topology, ground, settings, Measure.READ_LOCAL))


def byte_localities(kafka: Bytes, read: Bytes) -> tuple[Locality, Locality]:
    """Bytes by both measures as others see them."""
    return Locality(Measure.KAFKA, "bytes_per_s", *kafka), Locality(Measure.READ_LOCAL, "bytes_per_s", *read)


def measured(
    reads: Reads, masks: Mapping[str, TopicMasks], rates: Mapping[TopicPartition, float]
) -> tuple[Locality, ...]:
    """One locality per measure, and one more each in bytes when the rate of everything read is known."""
    kafka, read = tally_reads(reads, masks)
    shares = localities(kafka, read)
    if not reads or any(partition not in rates for _, partitions in reads for partition in partitions):
        return shares
    by_kafka, by_read = weigh(reads, masks, rates)
    return (
        *shares,
        Locality(Measure.KAFKA, "bytes_per_s", *by_kafka),
        Locality(Measure.READ_LOCAL, "bytes_per_s", *by_read),
    )


def states_of(topics: Iterable[TopicState]) -> dict[TopicPartition, PartitionState]:
    """Partition -> its state."""
    return {state.id: state for topic in topics for state in topic.partitions}

"""Reads as shares by both measures, in partitions and, where every rate is known, in bytes per second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.detect.tally import Reads, localities, tally_reads
from agent.detect.traffic import weigh
from agent.values.assessment import Locality, Measure
from agent.values.locality import TopicMasks
from agent.values.snapshot import PartitionState, TopicState
from assignors.problem import TopicPartition


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

"""How many reads are local, how many cross racks, and of how many it cannot be told.

The same small sums serve consumers and tasks, the present assignment and the optimal one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.detect.assessment import Locality, Measure
from agent.detect.locality import UNKNOWN, Ground, TopicMasks
from assignors.problem import TopicPartition


class Tally(NamedTuple):
    """Reads by what is known of them."""

    local: int
    crossing: int
    unknown: int

    @property
    def total(self) -> int:
        """All reads."""
        return self.local + self.crossing + self.unknown


def tally_reads(
    reads: Iterable[tuple[int, Sequence[TopicPartition]]], masks: Mapping[str, TopicMasks]
) -> tuple[Tally, Tally]:
    """(bit of the reader's rack, what it reads) summed up by Kafka's measure and by the read-local one.

    A reader whose rack is not known has the bit 0: nothing of it can be told.
    """
    if measures_agree(masks):
        kafka = _tally(reads, {topic: (of.kafka, of.kafka) for topic, of in masks.items()})
        return kafka, kafka
    reads = tuple(reads)
    return (
        _tally(reads, {topic: (of.kafka, of.kafka) for topic, of in masks.items()}),
        _tally(reads, {topic: (of.read, of.read_possible) for topic, of in masks.items()}),
    )


def _tally(
    reads: Iterable[tuple[int, Sequence[TopicPartition]]],
    masks: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]],
) -> Tally:
    """Reads by (what is certain, what is possible)."""
    total = local = unknown = 0
    for bit, partitions in reads:
        total += len(partitions)
        if not bit:
            unknown += len(partitions)
            continue
        for topic, number in partitions:
            certain, possible = masks[topic]
            if number >= len(certain):
                unknown += 1
            elif certain[number] & bit:
                local += 1
            elif possible[number] & (bit | UNKNOWN):
                unknown += 1
    return Tally(local, total - local - unknown, unknown)


def gain(now: Tally, best: Tally) -> int:
    """Reads that leave "crossing" and arrive in "local"; what merely becomes known or unknown is no gain."""
    return max(0, min(now.crossing - best.crossing, best.local - now.local))


def locality(measure: Measure, tally: Tally) -> Locality:
    """The tally as others see it."""
    return Locality(measure, "partitions", float(tally.local), float(tally.total), float(tally.unknown))


def measures_agree(masks: Mapping[str, TopicMasks]) -> bool:
    """True when both measures say the same of every partition: all replicas in sync and a rack-aware selector."""
    return all(of.read is of.kafka and of.read_possible is of.read for of in masks.values())


def racks_by_partition(ground: Ground, measure: Measure) -> dict[str, tuple[frozenset[str], ...]]:
    """The racks in which each partition can be read locally for certain, as the assignors' contract wants them."""
    names: dict[int, frozenset[str]] = {}
    racks: dict[str, tuple[frozenset[str], ...]] = {}
    for topic, of in ground.masks.items():
        chosen = of.kafka if measure is Measure.KAFKA else of.read
        for mask in chosen:
            if mask not in names:
                names[mask] = ground.bits.names(mask)
        racks[topic] = tuple([names[mask] for mask in chosen])
    return racks

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
    total = local = unknown = read_local = read_unknown = 0
    for bit, partitions in reads:
        total += len(partitions)
        if not bit:
            unknown += len(partitions)
            read_unknown += len(partitions)
            continue
        for topic, number in partitions:
            of = masks[topic]
            if number >= len(of.kafka):
                unknown += 1
                read_unknown += 1
                continue
            mask = of.kafka[number]
            if mask & bit:
                local += 1
            elif mask & UNKNOWN:
                unknown += 1
            if of.read[number] & bit:
                read_local += 1
            elif of.read_possible[number] & (bit | UNKNOWN):
                read_unknown += 1
    return (
        Tally(local, total - local - unknown, unknown),
        Tally(read_local, total - read_local - read_unknown, read_unknown),
    )


def gain(now: Tally, best: Tally) -> int:
    """Reads that leave "crossing" and arrive in "local"; what merely becomes known or unknown is no gain."""
    return max(0, min(now.crossing - best.crossing, best.local - now.local))


def locality(measure: Measure, tally: Tally) -> Locality:
    """The tally as others see it."""
    return Locality(measure, "partitions", float(tally.local), float(tally.total), float(tally.unknown))


def measures_agree(masks: Mapping[str, TopicMasks]) -> bool:
    """True when both measures say the same of every partition: all replicas in sync and a rack-aware selector."""
    return all(of.read == of.kafka and of.read_possible is of.read for of in masks.values())


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

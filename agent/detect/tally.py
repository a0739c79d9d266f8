"""How many reads are local, how many cross racks, and of how many it is unknown.

The same small sums serve consumers and tasks, the present assignment and the optimal one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.values.assessment import Locality, Measure
from agent.values.locality import UNKNOWN, Ground, TopicMasks
from assignors.problem import TopicPartition

Reads = Sequence[tuple[int, Sequence[TopicPartition]]]
"""(bit of the reader's rack, what it reads)."""
Masks = Mapping[str, tuple[int, ...]]
"""Topic -> the racks of each of its partitions."""

_new = tuple.__new__
"""What a named tuple's own ``__new__`` calls; without that detour it takes less than half the time."""


class Tally(NamedTuple):
    """Reads by what is known of them."""

    local: int
    crossing: int
    unknown: int

    @property
    def total(self) -> int:
        """All reads."""
        return self.local + self.crossing + self.unknown


def tally_reads(reads: Reads, masks: Mapping[str, TopicMasks]) -> tuple[Tally, Tally]:
    """(bit of the reader's rack, what it reads) summed up by Kafka's measure and by the read-local one.

    A reader whose rack is not known has the bit 0: nothing of it can be told. Where the measures agree both are one
    object.
    """
    total = sum([len(partitions) for _, partitions in reads])
    by_replicas = {topic: of.kafka for topic, of in masks.items()}
    kafka = _tally(total, reads, by_replicas, by_replicas)
    if measures_agree(masks):
        return kafka, kafka
    certain = {topic: of.read for topic, of in masks.items()}
    possible = {topic: of.read_possible for topic, of in masks.items()}
    return kafka, _tally(total, reads, certain, possible)


def _tally(total: int, reads: Reads, certain: Masks, possible: Masks) -> Tally:
    """Reads by where they are local for certain, and where possibly; what is neither told is unknown."""
    try:
        local, crossing = _told(reads, certain, possible)
    except IndexError:  # some partition's number is beyond what its topic shows
        shown = [
            (bit, [p for p in partitions if 0 <= p.partition < len(certain[p.topic])]) for bit, partitions in reads
        ]
        local, crossing = _told(shown, certain, possible)
    return Tally(local, crossing, total - local - crossing)


def _told(reads: Reads, certain: Masks, possible: Masks) -> tuple[int, int]:
    """(local, crossing) for certain. Counted in C: every read of a cluster passes here."""
    near = [certain[topic][number] & bit for bit, partitions in reads if bit for topic, number in partitions]
    away = near.count(0)
    if not away:
        return len(near), 0
    maybe = [
        possible[topic][number] & (bit | UNKNOWN) for bit, partitions in reads if bit for topic, number in partitions
    ]
    return len(near) - away, maybe.count(0)


def gain(now: Tally, best: Tally) -> int:
    """Reads that leave "crossing" and arrive in "local"; what merely becomes known or unknown is no gain."""
    return max(0, min(now.crossing - best.crossing, best.local - now.local))


def localities(kafka: Tally, read: Tally) -> tuple[Locality, Locality]:
    """The tallies by both measures as others see them."""
    return _locality(Measure.KAFKA, kafka), _locality(Measure.READ_LOCAL, read)


def _locality(measure: Measure, tally: Tally) -> Locality:
    local, crossing, unknown = tally
    return _new(Locality, (measure, "partitions", float(local), float(local + crossing + unknown), float(unknown)))


def measures_agree(masks: Mapping[str, TopicMasks]) -> bool:
    """True when both measures say the same of every partition: all replicas in sync and a rack-aware selector."""
    return all(of.read is of.kafka and of.read_possible is of.read for of in masks.values())


def racks_by_partition(ground: Ground, measure: Measure) -> dict[str, tuple[frozenset[str], ...]]:
    """The racks in which each partition can be read locally for certain, as the assignors' contract wants them."""
    names = ground.bits.names.__getitem__
    by_kafka = measure is Measure.KAFKA
    return {topic: tuple(map(names, of.kafka if by_kafka else of.read)) for topic, of in ground.masks.items()}

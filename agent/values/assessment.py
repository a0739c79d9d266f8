"""Assessments: the locality of a group's work now and at the best possible assignment.

Two measures, always named: Kafka's (any replica in the rack, which its assignors look at; for predictions) and
read-local (where bytes are really read; for bytes and money). The optimum is exact and carries its lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from agent.values.finding import Finding
from agent.values.snapshot import BrokerState, PartitionState, Rack, RackState, TopicState
from assignors.problem import ConsumerResult, TaskResult, TopicPartition

# A rack is a bit, and a partition a mask of the racks in which reading it is local. Three masks a partition: *Kafka's*
# (any replica, also on an absent broker whose rack is remembered), *read-local* for clients that send their rack, and
# *possibly* read-local while the brokers' selector is unknown (KIP-392). An unknown rack sets the bit ``UNKNOWN`` and
# no other: the partition is local to the known racks and of unknown locality, never "crossing", for all others.

UNKNOWN = 1
"""Mask bit of a partition that has a replica (or leader) whose rack is unknown."""
NOWHERE = 2
"""Bit of a reader whose rack is known and has no broker: nothing is local to it."""


class _Masks(dict[tuple[int, ...], int]):
    """Brokers -> the bits of their racks; made once per distinct list of replicas."""

    __slots__ = ("_bits",)

    def __init__(self, bits: Mapping[int, int]) -> None:
        super().__init__()
        self._bits = bits

    def __missing__(self, brokers: tuple[int, ...]) -> int:
        mask = 0
        for broker in brokers:
            mask |= self._bits.get(broker, UNKNOWN)
        self[brokers] = mask = mask or UNKNOWN
        return mask


class _Names(dict[int, frozenset[str]]):
    """Mask -> the names of its racks."""

    __slots__ = ("_bits",)

    def __init__(self, bits: Mapping[str, int]) -> None:
        super().__init__()
        self._bits = bits

    def __missing__(self, mask: int) -> frozenset[str]:
        names = self[mask] = frozenset([name for name, bit in self._bits.items() if mask & bit])
        return names


class RackBits:
    """The racks of a cluster as bits; made once per set of brokers, and compared by identity."""

    __slots__ = ("bit_of", "broker_bits", "masks", "names", "rack_ids", "selector_is_rack_aware")

    def __init__(
        self,
        bit_of: Mapping[str, int],
        broker_bits: Mapping[int, int],
        *,
        selector_is_rack_aware: bool | None,
        rack_ids: Mapping[str, frozenset[str | None]] | None = None,
    ) -> None:
        self.bit_of = bit_of
        """Rack name -> bit; only racks that some broker has."""
        self.broker_bits = broker_bits
        """Broker id -> bit of its rack, or ``UNKNOWN``."""
        self.selector_is_rack_aware = selector_is_rack_aware
        self.rack_ids = rack_ids or {}
        """Rack name -> values of ``broker.rack`` in it."""
        self.masks: Mapping[tuple[int, ...], int] = _Masks(broker_bits)
        """The racks of any brokers; ``UNKNOWN`` is set when one of them is unknown, or when there are none."""
        self.names: Mapping[int, frozenset[str]] = _Names(bit_of)
        """The rack names in any mask."""

    def reader(self, rack: Rack) -> int:
        """The bit of a reader's rack; 0 when it is not known."""
        if rack.name is None or rack.state is not RackState.KNOWN:
            return 0
        return self.bit_of.get(rack.name, NOWHERE)

    def serves(self, racks: Iterable[Rack]) -> bool | None:
        """Whether the nearest replica serves readers in these racks; None when it serves some, or is unknown.

        A selector compares ``client.rack`` with ``broker.rack`` (KIP-392). Where only a locator knows one of the two,
        or an alias makes them one, the leader serves.
        """
        if self.selector_is_rack_aware is False:
            return False
        equal: set[bool] = set()
        for rack in racks:
            broker_racks = self.rack_ids.get(rack.name, ()) if rack.name is not None else ()
            equal |= {rack.rack_id is not None and rack.rack_id == one for one in broker_racks}
        return self.selector_is_rack_aware if equal <= {True} else None if True in equal else False

    def bit(self, rack_name: str) -> int:
        """The bit of a known rack."""
        return self.bit_of.get(rack_name, NOWHERE)


class TopicMasks(NamedTuple):
    """A topic's partitions by number (a number that metadata left out has the mask ``UNKNOWN``)."""

    kafka: tuple[int, ...]
    """Racks of all replicas."""
    read: tuple[int, ...]
    """Racks in which a read is local for certain, for clients that the bits' selector serves."""
    read_possible: tuple[int, ...]
    """Racks in which a read may be local; ``read`` itself unless the selector is unknown."""
    kafka_histogram: tuple[tuple[int, int], ...]
    """(mask by Kafka's measure, number of partitions), sorted."""
    read_histogram: tuple[tuple[int, int], ...]


class GroupLocality(NamedTuple):
    """The cluster's racks, and the masks of a group's topics."""

    bits: RackBits
    masks: Mapping[str, TopicMasks]
    """Topic -> masks, for the topics that the snapshot has; sorted."""

    @property
    def blurred(self) -> bool:
        """True when some replica's rack is unknown, so that a better assignment may be hidden."""
        return any(mask & UNKNOWN for of in self.masks.values() for mask, _ in of.kafka_histogram)


def rack_bits(brokers: Iterable[BrokerState], *, selector_is_rack_aware: bool | None) -> RackBits:
    """Racks as bits, in the order of their names; an absent broker counts in its remembered rack."""
    brokers = tuple(brokers)
    known = {b.id: b.rack.name for b in brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    names = sorted(set(known.values()))
    bit_of = {name: NOWHERE << (index + 1) for index, name in enumerate(names)}
    broker_bits = {b.id: bit_of[known[b.id]] if b.id in known else UNKNOWN for b in brokers}
    broker_racks = {
        name: frozenset(b.rack.rack_id for b in brokers if b.alive and b.rack.name == name) for name in names
    }
    return RackBits(bit_of, broker_bits, selector_is_rack_aware=selector_is_rack_aware, rack_ids=broker_racks)


def topic_masks(topic: TopicState, bits: RackBits) -> TopicMasks:
    """The masks of every partition of a topic."""
    if bits.selector_is_rack_aware:
        usual = _all_in_sync(topic.partitions, bits)
        if usual is not None:
            histogram = _histogram(usual)
            return TopicMasks(usual, usual, usual, histogram, histogram)
    size = topic.partitions[-1].id.partition + 1 if topic.partitions else 0
    kafka = [UNKNOWN] * size
    certain = [UNKNOWN] * size
    possible = [UNKNOWN] * size
    for (_, number), leader, replicas, isr, _ in topic.partitions:
        kafka[number] = bits.masks[replicas]
        certain[number], possible[number] = _read_masks(leader, isr, bits)
    by_kafka, histogram = tuple(kafka), _histogram(kafka)
    if certain == kafka:
        read, read_histogram = by_kafka, histogram
    else:
        read, read_histogram = tuple(certain), _histogram(certain)
    known = bits.selector_is_rack_aware is not None
    return TopicMasks(by_kafka, read, read if known else tuple(possible), histogram, read_histogram)


def _all_in_sync(partitions: Sequence[PartitionState], bits: RackBits) -> tuple[int, ...] | None:
    """The masks where all replicas are in sync and both measures agree; None where a replica or number is missing."""
    masks: list[int] = []
    of_brokers = bits.masks
    for (_, number), leader, replicas, isr, _ in partitions:
        if number != len(masks) or isr != replicas or leader is None:
            return None
        masks.append(of_brokers[replicas])
    return tuple(masks)


def _read_masks(leader: int | None, isr: tuple[int, ...], bits: RackBits) -> tuple[int, int]:
    """(certain, possible). Without a leader no read is possible, so neither is known."""
    if leader is None:
        return UNKNOWN, UNKNOWN
    at_leader = bits.broker_bits.get(leader, UNKNOWN)
    if bits.selector_is_rack_aware is False or not isr:
        return at_leader, at_leader
    near = at_leader | bits.masks[isr]
    return (near, near) if bits.selector_is_rack_aware else (at_leader, near)


def _histogram(masks: Iterable[int]) -> tuple[tuple[int, int], ...]:
    counts: dict[int, int] = {}
    for mask in masks:
        counts[mask] = counts.get(mask, 0) + 1
    return tuple(sorted(counts.items()))


class LocalityMeasure(StrEnum):
    """The rule by which a partition counts as local. Every share names its measure."""

    KAFKA = "kafka"
    """Any replica is in the rack, as Kafka's assignors count. For predictions."""
    READ_LOCAL = "read-local"
    """The leader is in the rack; or an in-sync replica is, where the brokers have a rack-aware selector and the client
    sends its rack. For bytes and money."""


class Locality(NamedTuple):
    """The local part of a subject's work, by one named measure."""

    measure: LocalityMeasure
    unit: str
    """``partitions`` or ``bytes_per_s``."""
    local: float
    total: float
    unknown: float
    """Part of ``total`` of which locality is unknown (a rack is unknown)."""


class WeightedAssessment(NamedTuple):
    """A group against its optimum by bytes, where every partition has a fresh weight; all in bytes per second."""

    total: float
    crossing: float
    """Read across racks now, by Kafka's measure."""
    optimal_crossing: float
    lower_bound: float
    gained: float
    """Bytes per second that the optimum makes local; 0.0 below one byte per second."""
    rates: Mapping[TopicPartition, float]
    """Bytes per second that the group reads of each partition."""


class NotAssessed(StrEnum):
    """Reason why a group has no assessment."""

    HIDDEN = "a rebalance is running, so no assignment is shown"
    EMPTY = "the group has no members"
    NO_RACKS = "no member's rack is known"
    UNDECODABLE = "member bytes could not be read"
    TOPICS_UNKNOWN = "a subscribed topic could not be described"
    TOPOLOGY_UNKNOWN = "the application's topology is unknown"
    CONTRADICTORY = "the group's data contradicts itself, such as a partition or task with two owners"
    OTHER_KIND = "the group assigns no partitions to readers"
    EXCLUDED = "excluded by the settings"
    OWN = "a group of rackwise itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One group against its optimum. ``why_not`` is set, and everything else empty, when it cannot be judged."""

    group_id: str
    why_not: NotAssessed | None = None
    current: tuple[Locality, ...] = ()
    """One per measure (and unit, when bytes are known)."""
    optimal: tuple[Locality, ...] = ()
    """The same measures and units, in the same order, for the exact optimum at equal balance."""
    crossing: int = 0
    """Partitions (tasks' source partitions) read across racks now, by Kafka's measure."""
    optimal_crossing: int = 0
    lower_bound: int = 0
    moved: int = 0
    """Partitions or tasks that the optimum moves away from their present owner."""
    result: ConsumerResult | TaskResult | None = None
    """The optimal assignment by Kafka's measure."""
    weighing: WeightedAssessment | None = None
    """Set where the optimum is the one by bytes: ``optimal``, ``optimal_crossing``, ``moved`` and ``result`` are then
    its figures, and may cross more partitions than now, of less weight."""
    away: int = 0
    """Readers (members, or Streams processes) in a rack that no broker has: all that they read crosses racks.
    None is counted where a replica may be in any rack."""
    locality: GroupLocality | None = field(default=None, repr=False, compare=False)
    """Racks and masks of this assessment, for later stages; None where there is none."""

    @property
    def gap(self) -> int:
        """Crossing partitions that the optimum would make local; by bytes it may be below 0."""
        return self.crossing - self.optimal_crossing

    @property
    def unknown(self) -> float:
        """Partitions of unknown locality by Kafka's measure."""
        return max(
            (of.unknown for of in self.current if (of.measure, of.unit) == (LocalityMeasure.KAFKA, "partitions")),
            default=0.0,
        )

    @property
    def at_optimum(self) -> bool:
        """Whether there is certainly no gain: unknown locality may hide one."""
        if self.why_not is not None or self.improvable or self.unknown:
            return False
        return not self.crossing or (self.locality is not None and not self.locality.blurred)

    @property
    def improvable(self) -> bool:
        """Whether the optimum is better than the present: by bytes where weights are known, else by partitions."""
        return self.gap > 0 if self.weighing is None else self.weighing.gained > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionResult:
    """Result of `detect`: findings sorted by (severity, id), and every group's assessment."""

    findings: tuple[Finding, ...] = ()
    assessments: Mapping[str, Assessment] = field(default_factory=dict)
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Group -> the topics that decide its assessment, sorted."""

"""Assessment of consumer groups against their optimum (KIP-881), by a bound or by the exact solver.

Priorities: balance (each member gets floor or ceil of its share), co-partitioning (range), locality, stickiness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.values.assessment import (
    NOWHERE,
    UNKNOWN,
    Assessment,
    GroupLocality,
    Locality,
    LocalityMeasure,
    NotAssessed,
    TopicMasks,
)
from agent.values.kafka import RANGE, STABLE
from agent.values.snapshot import ConsumerGroup, Member
from assignors.optimal import optimal_consumer
from assignors.problem import ConsumerMember, ConsumerProblem, ConsumerResult, TopicPartition

# Sums of local, crossing and unknown reads, for consumers and tasks.

Reads = Sequence[tuple[int, Sequence[TopicPartition]]]
"""(bit of the reader's rack, its partitions)."""
Masks = Mapping[str, tuple[int, ...]]
"""Topic -> the racks of each of its partitions."""

_new = tuple.__new__
"""Constructor under a named tuple's ``__new__``, in less than half its time."""


class LocalityCounts(NamedTuple):
    """Numbers of reads (a partition by a reader): local, crossing, unknown."""

    local: int
    crossing: int
    unknown: int

    @property
    def total(self) -> int:
        """All reads."""
        return self.local + self.crossing + self.unknown


def count_reads(reads: Reads, masks: Mapping[str, TopicMasks]) -> tuple[LocalityCounts, LocalityCounts]:
    """Sums of (bit of the reader's rack, its partitions) by Kafka's rule and as read.

    A reader of unknown rack has the bit 0: its reads count as unknown. Where the measures agree both are one object.
    """
    total = sum([len(partitions) for _, partitions in reads])
    by_replicas = {topic: of.kafka for topic, of in masks.items()}
    kafka = _tally(total, reads, by_replicas, by_replicas)
    if measures_agree(masks):
        return kafka, kafka
    certain = {topic: of.read for topic, of in masks.items()}
    return kafka, _tally(total, reads, certain, {topic: of.read_possible for topic, of in masks.items()})


def _tally(total: int, reads: Reads, certain: Masks, possible: Masks) -> LocalityCounts:
    """Reads by the racks where they are certainly or possibly local; the rest is unknown."""
    try:
        local, crossing = _local_and_crossing(reads, certain, possible)
    except IndexError:  # some partition's number is beyond what its topic shows
        shown = [
            (bit, [p for p in partitions if 0 <= p.partition < len(certain[p.topic])]) for bit, partitions in reads
        ]
        local, crossing = _local_and_crossing(shown, certain, possible)
    return LocalityCounts(local, crossing, total - local - crossing)


def _local_and_crossing(reads: Reads, certain: Masks, possible: Masks) -> tuple[int, int]:
    """(local, crossing) for certain. Counted in C: every read of a cluster passes here."""
    near = [certain[topic][number] & bit for bit, partitions in reads if bit for topic, number in partitions]
    away = near.count(0)
    if not away:
        return len(near), 0
    maybe = [
        possible[topic][number] & (bit | UNKNOWN) for bit, partitions in reads if bit for topic, number in partitions
    ]
    return len(near) - away, maybe.count(0)


def gain(now: LocalityCounts, best: LocalityCounts) -> int:
    """Reads that leave "crossing" and join "local"; a change to or from unknown is no gain."""
    return max(0, min(now.crossing - best.crossing, best.local - now.local))


def localities(kafka: LocalityCounts, read: LocalityCounts) -> tuple[Locality, Locality]:
    """Both tallies as `Locality`, in partitions."""
    return _locality(LocalityMeasure.KAFKA, kafka), _locality(LocalityMeasure.READ_LOCAL, read)


def _locality(measure: LocalityMeasure, tally: LocalityCounts) -> Locality:
    local, crossing, unknown = tally
    return _new(Locality, (measure, "partitions", float(local), float(local + crossing + unknown), float(unknown)))


def measures_agree(masks: Mapping[str, TopicMasks]) -> bool:
    """True when both measures are equal for every partition: all replicas in sync and a rack-aware selector."""
    return all(of.read is of.kafka and of.read_possible is of.read for of in masks.values())


def racks_by_partition(locality: GroupLocality, measure: LocalityMeasure) -> dict[str, tuple[frozenset[str], ...]]:
    """The racks in which each partition can be read locally for certain, in the form of the assignors' contract."""
    names = locality.bits.names.__getitem__
    by_kafka = measure is LocalityMeasure.KAFKA
    return {topic: tuple(map(names, of.kafka if by_kafka else of.read)) for topic, of in locality.masks.items()}


COPARTITIONING = frozenset({RANGE})
"""Assignors that promise to keep partition p of all topics together."""


_Meaning = dict[tuple[tuple[str, ...], str | None], tuple[str, ...]]
"""(Subscribed topics, pattern) -> the topics that are meant."""


class ConsumerOptimum(NamedTuple):
    """The exact optimum by one measure."""

    tally: LocalityCounts
    gap: int = 0
    slack: int = 0
    """How far below the optimum the proven bound may lie; 0 for an exact answer."""
    result: ConsumerResult | None = None
    """None when the bound alone shows what can be gained."""


def assess_consumers(group: ConsumerGroup, locality: GroupLocality) -> Assessment:
    """Current and optimal locality by both measures, or why they are unknown."""
    readers = _readers(group, locality)
    why_not = _why_not(group, readers, locality.masks)
    if why_not is not None:
        return Assessment(group_id=group.id, why_not=why_not)

    reads = list(zip(readers, [member.assigned or () for member in group.members], strict=True))
    kafka, read = count_reads(reads, locality.masks)
    best = _optimum(group, readers, locality, kafka, LocalityMeasure.KAFKA)
    best_read = best if read is kafka else _optimum(group, readers, locality, read, LocalityMeasure.READ_LOCAL)
    current = localities(kafka, read)
    at_optimum = best.tally is kafka and best_read.tally is read
    return Assessment(
        group_id=group.id,
        current=current,
        optimal=current if at_optimum else localities(best.tally, best_read.tally),
        crossing=kafka.crossing,
        optimal_crossing=kafka.crossing - best.gap,
        lower_bound=kafka.crossing - best.gap - best.slack,
        moved=best.result.moved if best.result else 0,
        result=best.result,
        away=0 if locality.blurred else readers.count(NOWHERE),
        locality=locality,
    )


def consumer_problem(group: ConsumerGroup, locality: GroupLocality, measure: LocalityMeasure) -> ConsumerProblem:
    """The group as an assignor's problem; a member owns its present partitions."""
    topics = _topics_by_subscription(group.members, locality.masks)
    return _problem(group, _readers(group, locality), topics, locality, measure)


def _problem(
    group: ConsumerGroup, readers: Sequence[int], topics: _Meaning, facts: GroupLocality, measure: LocalityMeasure
) -> ConsumerProblem:
    members = [
        ConsumerMember(
            id=member.id,
            rack=member.rack.name if bit else None,
            topics=topics[member.topics, member.topic_regex],
            owned=member.assigned or (),
        )
        for member, bit in zip(group.members, readers, strict=True)
    ]
    return ConsumerProblem(
        members=tuple(members), racks=racks_by_partition(facts, measure), copartitioned=_copartitioned(group, facts)
    )


def _readers(group: ConsumerGroup, locality: GroupLocality) -> list[int]:
    reader = locality.bits.reader
    return [reader(member.rack) for member in group.members]


def _why_not(group: ConsumerGroup, readers: Sequence[int], masks: Mapping[str, TopicMasks]) -> NotAssessed | None:
    for member in group.members:
        if member.defects and any(defect.what in ("subscription", "assignment") for defect in member.defects):
            return NotAssessed.UNDECODABLE
        if member.assigned is None:
            return NotAssessed.HIDDEN
        for topic, number in member.assigned:
            if topic not in masks:
                return NotAssessed.TOPICS_UNKNOWN
            if number < 0:
                return NotAssessed.CONTRADICTORY
    if group.state == STABLE and claimed_twice(group.members):
        return NotAssessed.CONTRADICTORY
    return None if any(readers) else NotAssessed.NO_RACKS


def _optimum(
    group: ConsumerGroup, readers: Sequence[int], locality: GroupLocality, now: LocalityCounts, measure: LocalityMeasure
) -> ConsumerOptimum:
    """The best by one measure; the present itself when nothing better is possible or nothing can be claimed."""
    if not now.crossing or (measure is LocalityMeasure.READ_LOCAL and locality.bits.selector_is_rack_aware is None):
        return ConsumerOptimum(now)
    topics = _topics_by_subscription(group.members, locality.masks)
    bound = None if _copartitioned(group, locality) else _bound(topics, readers, locality, measure)
    if bound is not None and bound.local <= now.local:
        return ConsumerOptimum(now)
    if bound is not None and measure is LocalityMeasure.READ_LOCAL and not now.unknown:
        return ConsumerOptimum(bound, gain(now, bound))
    problem = _problem(group, readers, topics, locality, measure)
    result = optimal_consumer(problem, may_stay=bound is None)
    reads = [(bit, result.assignment[m.id]) for m, bit in zip(group.members, readers, strict=True)]
    best = count_reads(reads, locality.masks)[measure is LocalityMeasure.READ_LOCAL]
    gap = gain(now, best)
    return ConsumerOptimum(best, gap, result.crossing - result.lower_bound, result) if gap else ConsumerOptimum(now)


def _bound(
    topics: _Meaning, readers: Sequence[int], locality: GroupLocality, measure: LocalityMeasure
) -> LocalityCounts | None:
    """The optimum's tally where it is known without an assignment: every member may read everything."""
    if len(topics) > 1:
        return None
    histogram: list[tuple[int, int]] = []
    for topic in next(iter(topics.values())):
        of = locality.masks[topic]
        histogram += of.kafka_histogram if measure is LocalityMeasure.KAFKA else of.read_histogram
    members: dict[int, int] = {}
    for bit in readers:
        members[bit] = members.get(bit, 0) + 1
    best = most_local(histogram, members, len(readers))
    return None if best is None else LocalityCounts(best, sum(count for _, count in histogram) - best, 0)


def _topics_by_subscription(members: Sequence[Member], masks: Mapping[str, TopicMasks]) -> _Meaning:
    """Topics of each subscription; of a pattern, the topics assigned to its members."""
    meaning: _Meaning = {}
    for member in members:
        key = (member.topics, member.topic_regex)
        if key not in meaning:
            topics = set(member.topics)
            if member.topic_regex is not None:
                topics |= _matched(member.topic_regex, members)
            meaning[key] = tuple(sorted(topic for topic in topics if topic in masks))
    return meaning


def _matched(pattern: str, members: Sequence[Member]) -> set[str]:
    assigned: list[TopicPartition] = []
    for member in members:
        if member.topic_regex == pattern:
            assigned += member.assigned or ()
    return {partition.topic for partition in assigned}


def _copartitioned(group: ConsumerGroup, locality: GroupLocality) -> bool:
    return len(locality.masks) > 1 and group.assignor in COPARTITIONING


# The most local partitions of a group with equal subscriptions, exact: balanced loads of racks are the bases of a
# polymatroid of rank f(S) = q * members(S) + min(r, members(S)), q, r = divmod(N, M); by Hall's theorem the maximum is
# the least, over sets S of racks, of f(S) plus the partitions that have a replica outside S.

MAX_RACKS = 8
"""All subsets of the members' racks are tried; with more racks than this the solver is asked instead."""


def most_local(histogram: Iterable[tuple[int, int]], members: Mapping[int, int], member_count: int) -> int | None:
    """The largest number of local partitions at equal balance, or None above `MAX_RACKS` racks.

    ``histogram`` has (mask of racks, partitions), ``members`` the number of members by the bit of their rack;
    ``member_count`` counts those of unknown rack as well, to whom nothing is local.
    """
    bits = [bit for bit in members if bit]
    if len(bits) > MAX_RACKS:
        return None
    everywhere = sum(bits)
    masks: dict[int, int] = {}
    total = 0
    for mask, count in histogram:
        total += count
        masks[mask & everywhere] = masks.get(mask & everywhere, 0) + count
    if not total or not member_count:
        return 0
    share, rest = divmod(total, member_count)
    rows = tuple(masks.items())
    least = total
    for racks, size in _subsets(bits, members):
        outside = ~racks
        reachable = share * size + min(rest, size)
        for mask, count in rows:
            if mask & outside:
                reachable += count
        least = min(least, reachable)
    return least


def _subsets(bits: Sequence[int], members: Mapping[int, int]) -> list[tuple[int, int]]:
    """(union of racks, members in them) for every subset of the racks."""
    subsets = [(0, 0)]
    for bit in bits:
        subsets += [(racks | bit, size + members[bit]) for racks, size in subsets]
    return subsets


def claimed_twice(members: Iterable[Member]) -> dict[TopicPartition, list[Member]]:
    """Partitions that more than one member is assigned, each with these members; in order."""
    rows = [(member, member.assigned) for member in members if member.assigned]
    assigned = [held for _, held in rows]
    if sum(map(len, assigned)) == len(frozenset().union(*assigned)):  # the usual case, in C
        return {}
    readers: dict[TopicPartition, list[Member]] = {}
    for member, held in rows:
        for partition in frozenset(held):
            readers.setdefault(partition, []).append(member)
    return {partition: readers[partition] for partition in sorted(readers) if len(readers[partition]) > 1}

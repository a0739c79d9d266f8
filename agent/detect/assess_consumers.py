"""A group of plain consumers against its optimum: the easy, common case by a bound, the rest by the exact solver.

Priorities as in KIP-881: balance, then (for range) co-partitioning, then locality, then stickiness. "Equal balance" is
therefore part of the question: the optimum gives every member floor or ceil of its share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.detect.tally import Tally, gain, localities, racks_by_partition, tally_reads
from agent.values.assessment import Assessment, Measure, NotAssessed
from agent.values.kafka import RANGE, STABLE
from agent.values.locality import NOWHERE, Ground, TopicMasks
from agent.values.snapshot import ConsumerGroup, Member
from assignors.optimal import optimal_consumer
from assignors.problem import ConsumerMember, ConsumerProblem, ConsumerResult, TopicPartition

COPARTITIONING = frozenset({RANGE})
"""Assignors that promise to keep partition p of all topics together."""


_Meaning = dict[tuple[tuple[str, ...], str | None], tuple[str, ...]]
"""(Subscribed topics, pattern) -> the topics that are meant."""


class Optimum(NamedTuple):
    """What an exact answer says about one measure."""

    tally: Tally
    gap: int = 0
    slack: int = 0
    """How far below the optimum the proven bound may lie; 0 for an exact answer."""
    result: ConsumerResult | None = None
    """None when the bound alone shows what can be gained."""


def assess_consumers(group: ConsumerGroup, ground: Ground) -> Assessment:
    """Current and optimal locality by both measures, or why they are unknown."""
    readers = _readers(group, ground)
    why_not = _why_not(group, readers, ground.masks)
    if why_not is not None:
        return Assessment(group_id=group.id, why_not=why_not)

    reads = list(zip(readers, [member.assigned or () for member in group.members], strict=True))
    kafka, read = tally_reads(reads, ground.masks)
    best = _optimum(group, readers, ground, kafka, Measure.KAFKA)
    best_read = best if read is kafka else _optimum(group, readers, ground, read, Measure.READ_LOCAL)
    current = localities(kafka, read)
    at_best = best.tally is kafka and best_read.tally is read
    return Assessment(
        group_id=group.id,
        current=current,
        optimal=current if at_best else localities(best.tally, best_read.tally),
        crossing=kafka.crossing,
        optimal_crossing=kafka.crossing - best.gap,
        lower_bound=kafka.crossing - best.gap - best.slack,
        moved=best.result.moved if best.result else 0,
        result=best.result,
        away=0 if ground.blurred else readers.count(NOWHERE),
        ground=ground,
    )


def consumer_problem(group: ConsumerGroup, ground: Ground, measure: Measure) -> ConsumerProblem:
    """The group as the assignors' contract puts it; what a member holds now is what it owns."""
    topics = _topics_by_subscription(group.members, ground.masks)
    return _problem(group, _readers(group, ground), topics, ground, measure)


def _problem(
    group: ConsumerGroup, readers: Sequence[int], topics: _Meaning, ground: Ground, measure: Measure
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
        members=tuple(members), racks=racks_by_partition(ground, measure), copartitioned=_copartitioned(group, ground)
    )


def _readers(group: ConsumerGroup, ground: Ground) -> list[int]:
    """The bit of each member's rack."""
    reader = ground.bits.reader
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


def _optimum(group: ConsumerGroup, readers: Sequence[int], ground: Ground, now: Tally, measure: Measure) -> Optimum:
    """The best by one measure; the present itself when nothing better is possible or nothing can be claimed."""
    if not now.crossing or (measure is Measure.READ_LOCAL and ground.bits.selector_is_rack_aware is None):
        return Optimum(now)
    topics = _topics_by_subscription(group.members, ground.masks)
    bound = None if _copartitioned(group, ground) else _bound(topics, readers, ground, measure)
    if bound is not None and bound.local <= now.local:
        return Optimum(now)
    if bound is not None and measure is Measure.READ_LOCAL and not now.unknown:
        return Optimum(bound, gain(now, bound))
    problem = _problem(group, readers, topics, ground, measure)
    result = optimal_consumer(problem, may_stay=bound is None)
    reads = [(bit, result.assignment[m.id]) for m, bit in zip(group.members, readers, strict=True)]
    best = tally_reads(reads, ground.masks)[measure is Measure.READ_LOCAL]
    gap = gain(now, best)
    return Optimum(best, gap, result.crossing - result.lower_bound, result) if gap else Optimum(now)


def _bound(topics: _Meaning, readers: Sequence[int], ground: Ground, measure: Measure) -> Tally | None:
    """The optimum's tally where it is known without an assignment: every member may read everything."""
    if len(topics) > 1:
        return None
    histogram: list[tuple[int, int]] = []
    for topic in next(iter(topics.values())):
        of = ground.masks[topic]
        histogram += of.kafka_histogram if measure is Measure.KAFKA else of.read_histogram
    members: dict[int, int] = {}
    for bit in readers:
        members[bit] = members.get(bit, 0) + 1
    best = most_local(histogram, members, len(readers))
    return None if best is None else Tally(best, sum(count for _, count in histogram) - best, 0)


def _topics_by_subscription(members: Sequence[Member], masks: Mapping[str, TopicMasks]) -> _Meaning:
    """What each subscription means; a pattern means what its members were assigned."""
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


def _copartitioned(group: ConsumerGroup, ground: Ground) -> bool:
    return len(ground.masks) > 1 and group.assignor in COPARTITIONING


# How many partitions can be read locally at best? For groups whose members all subscribe to the same topics.
#
# Answers without an assignment, in microseconds, so that the many groups that are already as good as they can be cost
# nothing. It is exact, not an estimate: with N partitions and M members a balanced assignment gives each member floor
# or ceil of N / M, so the racks' loads are the bases of a polymatroid whose rank is f(S) = q * members(S) + min(r,
# members(S)) for q, r = divmod(N, M), and by Hall's theorem for polymatroids the most partitions that can be local is
# the least, over all sets S of racks, of f(S) plus the partitions that have a replica outside S.

MAX_RACKS = 8
"""All subsets of the members' racks are tried; with more racks than this the solver is asked instead."""


def most_local(histogram: Iterable[tuple[int, int]], members: Mapping[int, int], member_count: int) -> int | None:
    """The largest number of local partitions at equal balance, or None when there are too many racks to say at once.

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

"""Bytes per second that a group reads locally, now and at its optimum; and the optimum by bytes.

The agent's own rates change every cycle, so they are laid over an assessment: its optimum stays the one by partitions.
One unknown rate makes all bytes of the group unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agent.detect.assess_consumers import Reads, consumer_problem, count_reads, localities, measures_agree
from agent.detect.assess_tasks import reads_of_tasks, task_problem
from agent.values.assessment import (
    UNKNOWN,
    Assessment,
    GroupLocality,
    Locality,
    LocalityMeasure,
    TopicMasks,
    WeightedAssessment,
)
from agent.values.limits import GroupLimits
from agent.values.snapshot import ConsumerGroup, ReaderGroup, Snapshot, StreamsGroup, TopicState
from agent.values.weights import RateColumn
from assignors.optimal import optimal_consumer, optimal_tasks
from assignors.problem import ConsumerResult, StreamsTask, TaskId, TaskResult, TopicPartition

Rates = tuple[tuple[TopicPartition, float], ...]
"""Bytes per second of each partition of some topics."""


class LocalityRates(NamedTuple):
    """Bytes per second: local, crossing, unknown."""

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
    locality: GroupLocality,
    settings: GroupLimits,
) -> Assessment:
    """The assessment with one more locality per measure, in bytes per second; unchanged where a rate is missing."""
    if any(partition not in rates for _, partitions in current_reads(group, locality) for partition in partitions):
        return assessment
    now = weigh(current_reads(group, locality), locality.masks, rates)
    best: list[LocalityRates] = []
    for index, measure in enumerate((LocalityMeasure.KAFKA, LocalityMeasure.READ_LOCAL)):
        result = None
        if assessment.optimal[index].local > assessment.current[index].local:
            by_kafka = measure is LocalityMeasure.KAFKA or measures_agree(locality.masks)
            result = assessment.result if by_kafka else _read_optimum(group, locality, settings)
        wanted = current_reads(group, locality) if result is None else optimal_reads(group, locality, result)
        best.append(weigh(wanted, locality.masks, rates)[index])
    return replace(
        assessment,
        current=assessment.current + byte_localities(*now),
        optimal=assessment.optimal + byte_localities(*best),
    )


def current_reads(group: ReaderGroup, locality: GroupLocality) -> Reads:
    """Partitions by reader now."""
    if isinstance(group, ConsumerGroup):
        return [(locality.bits.reader(member.rack), member.assigned or ()) for member in group.members]
    if group.topology is None:
        return ()
    readers = [locality.bits.reader(process.rack) for process in group.processes]
    return reads_of_tasks(group.topology, readers, [process.active for process in group.processes])


def optimal_reads(group: ReaderGroup, locality: GroupLocality, result: ConsumerResult | TaskResult) -> Reads:
    """Partitions by reader in that result. Raises TypeError for a result of the other kind of group."""
    if isinstance(group, ConsumerGroup) and isinstance(result, ConsumerResult):
        return [(locality.bits.reader(member.rack), result.assignment[member.id]) for member in group.members]
    if isinstance(group, StreamsGroup) and isinstance(result, TaskResult) and group.topology is not None:
        readers = [locality.bits.reader(process.rack) for process in group.processes]
        return reads_of_tasks(group.topology, readers, [result.active[process.id] for process in group.processes])
    raise TypeError(f"a {type(result).__name__} does not answer for group {group.id}, which is a {group.kind} group")


def weigh(
    reads: Reads, masks: Mapping[str, TopicMasks], rates: Mapping[TopicPartition, float]
) -> tuple[LocalityRates, LocalityRates]:
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
    return LocalityRates(local, total, unknown), LocalityRates(read_local, total, read_unknown)


def _read_optimum(
    group: ReaderGroup, locality: GroupLocality, settings: GroupLimits
) -> ConsumerResult | TaskResult | None:
    if isinstance(group, ConsumerGroup):
        return optimal_consumer(consumer_problem(group, locality, LocalityMeasure.READ_LOCAL))
    if group.topology is None:
        return None
    return optimal_tasks(task_problem(group, group.topology, locality, settings, LocalityMeasure.READ_LOCAL))


def byte_localities(kafka: LocalityRates, read: LocalityRates) -> tuple[Locality, Locality]:
    """Both measures as `Locality`, in bytes per second."""
    return Locality(LocalityMeasure.KAFKA, "bytes_per_s", *kafka), Locality(
        LocalityMeasure.READ_LOCAL, "bytes_per_s", *read
    )


def measured(
    reads: Reads, masks: Mapping[str, TopicMasks], rates: Mapping[TopicPartition, float]
) -> tuple[Locality, ...]:
    """One locality per measure, and one more each in bytes when the rate of everything read is known."""
    kafka, read = count_reads(reads, masks)
    shares = localities(kafka, read)
    if not reads or any(partition not in rates for _, partitions in reads for partition in partitions):
        return shares
    by_kafka, by_read = weigh(reads, masks, rates)
    return (
        *shares,
        Locality(LocalityMeasure.KAFKA, "bytes_per_s", *by_kafka),
        Locality(LocalityMeasure.READ_LOCAL, "bytes_per_s", *by_read),
    )


# The optimum by bytes needs fresh weights of all partitions of the group's topics. Priorities: balance by partitions as
# in Kafka's assignors, bytes across racks, partitions across racks, moves. Proven to the unit of `integer_weights`;
# where less than a byte per second can be gained, or nothing crosses, it is the present assignment.

LEAST_GAIN = 1.0
"""Bytes per second; weights are no more exact than that."""
_MOST_WEIGHT, _MOST_TOTAL = 2**40, 2**59
"""Small enough for one level of costs in a group of a few hundred partitions, and a trillion steps of precision."""
_LEAST_UNIT = 0.001
_NO_READS: Mapping[TopicPartition, float] = {}


class _Best(NamedTuple):
    reads: Reads
    bytes: LocalityRates
    bound: float
    """Bytes per second that cross at least."""
    result: ConsumerResult | TaskResult | None
    """None for the present one."""


def rates_of(
    columns: Mapping[str, RateColumn], reads: Mapping[TopicPartition, float] | None
) -> dict[TopicPartition, float]:
    """Bytes per second that a group reads of each partition: its own rate, else the inbound rate."""
    own = reads or _NO_READS
    return {
        partition: own.get(partition, rate)
        for topic, column in columns.items()
        for number, rate in enumerate(column)
        if rate is not None
        for partition in (TopicPartition(topic, number),)
    }


def with_weights(
    assessment: Assessment,
    group: ReaderGroup,
    rates: Mapping[TopicPartition, float],
    locality: GroupLocality,
    settings: GroupLimits,
) -> Assessment:
    """The assessment with its optimum by bytes; unchanged where a partition is read that has no weight."""
    reads = current_reads(group, locality)
    if any(partition not in rates for _, partitions in reads for partition in partitions):
        return assessment
    now = weigh(reads, locality.masks, rates)
    kafka = _best(LocalityMeasure.KAFKA, assessment, group, rates, locality, settings, _present(reads, now[0]))
    if measures_agree(locality.masks):
        read, best_read = kafka, weigh(kafka.reads, locality.masks, rates)[1] if kafka.result is not None else now[1]
    else:
        read = _best(LocalityMeasure.READ_LOCAL, assessment, group, rates, locality, settings, _present(reads, now[1]))
        best_read = read.bytes
    shares, crossing = assessment.current, assessment.crossing
    if kafka.result is not None or read.result is not None:
        tallies = count_reads(kafka.reads, locality.masks)[0], count_reads(read.reads, locality.masks)[1]
        shares, crossing = localities(*tallies), tallies[0].crossing
    return replace(
        assessment,
        current=assessment.current + byte_localities(*now),
        optimal=shares + byte_localities(kafka.bytes, best_read),
        optimal_crossing=crossing,
        moved=kafka.result.moved if kafka.result is not None else 0,
        result=kafka.result,
        weighing=WeightedAssessment(
            total=now[0].total,
            crossing=_crossing(now[0]),
            optimal_crossing=_crossing(kafka.bytes),
            lower_bound=kafka.bound,
            gained=gained(now[0], kafka.bytes) if kafka.result is not None else 0.0,
            rates=rates,
        ),
    )


def _present(reads: Reads, now: LocalityRates) -> _Best:
    return _Best(reads, now, _crossing(now), None)


def gained(now: LocalityRates, best: LocalityRates) -> float:
    """Bytes per second that leave "crossing" and join "local"; a change from unknown is no gain."""
    return max(0.0, min(_crossing(now) - _crossing(best), best.local - now.local))


def integer_weights(rates: Mapping[TopicPartition, float]) -> dict[TopicPartition, int]:
    """Weights for the solvers: one unit of rate weighs more than all partitions together, and each of these 1.

    A unit is a thousandth of a byte per second, or more where the largest rate would not fit otherwise.
    """
    count = len(rates) + 1
    most = min(_MOST_WEIGHT, _MOST_TOTAL // count)
    unit = max(_LEAST_UNIT, max(rates.values(), default=0.0) * count / most)
    return {partition: round(rate / unit) * count + 1 for partition, rate in rates.items()}


def _best(  # noqa: PLR0917 (a group, its measures, and the cluster)
    measure: LocalityMeasure,
    assessment: Assessment,
    group: ReaderGroup,
    rates: Mapping[TopicPartition, float],
    locality: GroupLocality,
    settings: GroupLimits,
    present: _Best,
) -> _Best:
    now = present.bytes
    unsure = measure is LocalityMeasure.READ_LOCAL and locality.bits.selector_is_rack_aware is None
    if unsure or _crossing(now) < LEAST_GAIN:
        return present
    result, bound = _solved(measure, assessment, group, rates, locality, settings)
    reads = optimal_reads(group, locality, result)
    best = weigh(reads, locality.masks, rates)[int(measure is LocalityMeasure.READ_LOCAL)]
    if gained(now, best) < LEAST_GAIN:
        return present
    return _Best(reads, best, _crossing(best) if bound is None else min(bound, _crossing(best)), result)


def _solved(  # noqa: PLR0917 (as above)
    measure: LocalityMeasure,
    assessment: Assessment,
    group: ReaderGroup,
    rates: Mapping[TopicPartition, float],
    locality: GroupLocality,
    settings: GroupLimits,
) -> tuple[ConsumerResult | TaskResult, float | None]:
    """(The best assignment, bytes per second that cross at least where it is not proven to be the best)."""
    known = assessment.result
    if measure is LocalityMeasure.KAFKA and known is not None and _crosses_nothing(assessment.optimal):
        return known, None
    weights = integer_weights(rates)
    result: ConsumerResult | TaskResult
    if isinstance(group, ConsumerGroup):
        result = optimal_consumer(replace(consumer_problem(group, locality, measure), weights=weights))
    else:
        if group.topology is None:
            raise TypeError(f"group {group.id} was assessed without a topology")
        problem = task_problem(group, group.topology, locality, settings, measure)
        sources = {task.id: task.sources for task in group.topology.tasks}
        tasks = tuple(_weighed(task, sources, weights) for task in problem.tasks)
        result = optimal_tasks(replace(problem, tasks=tasks, traffic_cost=1, non_overlap_cost=0))
    if result.optimal:
        return result, None
    share = result.lower_bound / max(1, result.crossing)
    wanted = weigh(optimal_reads(group, locality, result), locality.masks, rates)[
        int(measure is LocalityMeasure.READ_LOCAL)
    ]
    return result, max(0.0, share * _crossing(wanted) - len(rates))


def _crosses_nothing(shares: Iterable[Locality]) -> bool:
    return any(
        share.measure is LocalityMeasure.KAFKA and share.unit == "partitions" and share.local == share.total
        for share in shares
    )


def _weighed(
    task: StreamsTask, sources: Mapping[TaskId, Sequence[TopicPartition]], weights: Mapping[TopicPartition, int]
) -> StreamsTask:
    return replace(task, weights=tuple([weights.get(source, 1) for source in sources[task.id]]))


def _crossing(of: LocalityRates) -> float:
    return of.total - of.local - of.unknown

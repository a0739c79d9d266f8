"""The optimum by bytes: which assignment of equal balance reads the fewest bytes per second across racks.

Asked only where every partition of the group's topics has a fresh weight. Rates that change in every look would give
another optimum in every look, so the agent's own are laid over the optimum by partitions instead (`traffic`).

Priorities: balance by partitions, as Kafka's assignors keep it; then bytes across racks; then partitions across racks;
then moves. Invariants: the bound is proven, to the unit of `integer_weights`; where less than a byte per second can be
gained the optimum is the present assignment itself; an assignment that crosses nothing is optimal for any weights, so
nothing is solved twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agent.detect.assess_consumers import consumer_problem
from agent.detect.assess_tasks import task_problem
from agent.detect.tally import Reads, localities, measures_agree, tally_reads
from agent.detect.traffic import Bytes, byte_localities, current_reads, optimal_reads, weigh
from agent.values.assessment import Assessment, Locality, Measure, Weighing
from agent.values.limits import GroupLimits
from agent.values.locality import Ground
from agent.values.snapshot import ConsumerGroup, ReaderGroup
from agent.values.weighed import Column
from assignors.optimal import optimal_consumer, optimal_tasks
from assignors.problem import ConsumerResult, Task, TaskId, TaskResult, TopicPartition

LEAST_GAIN = 1.0
"""Bytes per second; weights are no more exact than that."""
_MOST_WEIGHT, _MOST_TOTAL = 2**40, 2**59
"""Small enough for one level of costs in a group of a few hundred partitions, and a trillion steps of precision."""
_LEAST_UNIT = 0.001
_NO_READS: Mapping[TopicPartition, float] = {}


class _Best(NamedTuple):
    """The best assignment by one measure."""

    reads: Reads
    bytes: Bytes
    bound: float
    """Bytes per second that cross at least."""
    result: ConsumerResult | TaskResult | None
    """None for the present one."""


def rates_of(
    columns: Mapping[str, Column], reads: Mapping[TopicPartition, float] | None
) -> dict[TopicPartition, float]:
    """What a group reads of each partition: its own figure, else what the partition takes in."""
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
    ground: Ground,
    settings: GroupLimits,
) -> Assessment:
    """The assessment with its optimum by bytes; unchanged where a partition is read that has no weight."""
    reads = current_reads(group, ground)
    if any(partition not in rates for _, partitions in reads for partition in partitions):
        return assessment
    now = weigh(reads, ground.masks, rates)
    kafka = _best(Measure.KAFKA, assessment, group, rates, ground, settings, _present(reads, now[0]))
    if measures_agree(ground.masks):
        read, best_read = kafka, weigh(kafka.reads, ground.masks, rates)[1] if kafka.result is not None else now[1]
    else:
        read = _best(Measure.READ_LOCAL, assessment, group, rates, ground, settings, _present(reads, now[1]))
        best_read = read.bytes
    shares, crossing = assessment.current, assessment.crossing
    if kafka.result is not None or read.result is not None:
        tallies = tally_reads(kafka.reads, ground.masks)[0], tally_reads(read.reads, ground.masks)[1]
        shares, crossing = localities(*tallies), tallies[0].crossing
    return replace(
        assessment,
        current=assessment.current + byte_localities(*now),
        optimal=shares + byte_localities(kafka.bytes, best_read),
        optimal_crossing=crossing,
        moved=kafka.result.moved if kafka.result is not None else 0,
        result=kafka.result,
        weighing=Weighing(
            total=now[0].total,
            crossing=_crossing(now[0]),
            optimal_crossing=_crossing(kafka.bytes),
            lower_bound=kafka.bound,
            gained=gained(now[0], kafka.bytes) if kafka.result is not None else 0.0,
            rates=rates,
        ),
    )


def _present(reads: Reads, now: Bytes) -> _Best:
    return _Best(reads, now, _crossing(now), None)


def gained(now: Bytes, best: Bytes) -> float:
    """Bytes per second that leave "crossing" and arrive in "local"; what merely becomes known is no gain."""
    return max(0.0, min(_crossing(now) - _crossing(best), best.local - now.local))


def integer_weights(rates: Mapping[TopicPartition, float]) -> dict[TopicPartition, int]:
    """Weights for the solvers: one unit of rate weighs more than all partitions together, and each of these 1.

    A unit is a thousandth of a byte per second, or more where the largest rate would not fit otherwise.
    """
    count = len(rates) + 1
    most = min(_MOST_WEIGHT, _MOST_TOTAL // count)
    unit = max(_LEAST_UNIT, max(rates.values(), default=0.0) * count / most)
    return {partition: round(rate / unit) * count + 1 for partition, rate in rates.items()}


def _best(  # noqa: PLR0917 (a group, what is known of it, and the world)
    measure: Measure,
    assessment: Assessment,
    group: ReaderGroup,
    rates: Mapping[TopicPartition, float],
    ground: Ground,
    settings: GroupLimits,
    present: _Best,
) -> _Best:
    now = present.bytes
    unsure = measure is Measure.READ_LOCAL and ground.bits.selector_is_rack_aware is None
    if unsure or _crossing(now) < LEAST_GAIN:
        return present
    result, bound = _solved(measure, assessment, group, rates, ground, settings)
    then = optimal_reads(group, ground, result)
    best = weigh(then, ground.masks, rates)[int(measure is Measure.READ_LOCAL)]
    if gained(now, best) < LEAST_GAIN:
        return present
    return _Best(then, best, _crossing(best) if bound is None else min(bound, _crossing(best)), result)


def _solved(  # noqa: PLR0917 (as above)
    measure: Measure,
    assessment: Assessment,
    group: ReaderGroup,
    rates: Mapping[TopicPartition, float],
    ground: Ground,
    settings: GroupLimits,
) -> tuple[ConsumerResult | TaskResult, float | None]:
    """(The best assignment, bytes per second that cross at least where it is not proven to be the best)."""
    known = assessment.result
    if measure is Measure.KAFKA and known is not None and _crosses_nothing(assessment.optimal):
        return known, None
    weights = integer_weights(rates)
    result: ConsumerResult | TaskResult
    if isinstance(group, ConsumerGroup):
        result = optimal_consumer(replace(consumer_problem(group, ground, measure), weights=weights))
    else:
        if group.topology is None:
            raise TypeError(f"group {group.id} was assessed without a topology")
        problem = task_problem(group, group.topology, ground, settings, measure)
        sources = {task.id: task.sources for task in group.topology.tasks}
        tasks = tuple(_weighed(task, sources, weights) for task in problem.tasks)
        result = optimal_tasks(replace(problem, tasks=tasks, traffic_cost=1, non_overlap_cost=0))
    if result.optimal:
        return result, None
    share = result.lower_bound / max(1, result.crossing)
    wanted = weigh(optimal_reads(group, ground, result), ground.masks, rates)[int(measure is Measure.READ_LOCAL)]
    return result, max(0.0, share * _crossing(wanted) - len(rates))


def _crosses_nothing(shares: Iterable[Locality]) -> bool:
    """Whether everything is local by Kafka's measure."""
    return any(
        share.measure is Measure.KAFKA and share.unit == "partitions" and share.local == share.total for share in shares
    )


def _weighed(
    task: Task, sources: Mapping[TaskId, Sequence[TopicPartition]], weights: Mapping[TopicPartition, int]
) -> Task:
    return replace(task, weights=tuple([weights.get(source, 1) for source in sources[task.id]]))


def _crossing(of: Bytes) -> float:
    return of.total - of.local - of.unknown

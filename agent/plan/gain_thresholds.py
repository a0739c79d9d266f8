"""Gains of changes against the thresholds, and the effect of a rebalance on a group.

Gains are bytes per second where the group has fresh weights of the pipeline, and partitions everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from agent.detect.assess import bits_for, locality_of
from agent.detect.assess_consumers import LocalityCounts, Reads, count_reads, gain
from agent.detect.traffic import LEAST_GAIN, LocalityRates, current_reads, gained, optimal_reads, topic_rates, weigh
from agent.detect.traffic import gained as gained_bytes
from agent.values.assessment import Assessment, GroupLocality, LocalityMeasure, WeightedAssessment
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.number_format import counted, sized
from agent.values.plan import PredictedAssignment, Prediction
from agent.values.rates import RackReads, priced, read_flows, usd_per_day
from agent.values.snapshot import (
    ConsumerGroup,
    GroupKind,
    RackState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    TopicState,
    states_of,
    topics_of,
)
from assignors.problem import ConsumerResult, TaskId, TaskResult, TopicPartition


class MeasureGain(NamedTuple):
    """Effect of another assignment on the reads by one measure."""

    before: LocalityCounts
    after: LocalityCounts
    bytes_before: LocalityRates | None = None
    """By weights; None where partitions are counted."""
    bytes_after: LocalityRates | None = None

    def brings(self) -> float:
        """Reads that leave "crossing" and join "local": bytes per second by weights, else partitions."""
        if self.bytes_before is None or self.bytes_after is None:
            return gain(self.before, self.after)
        return gained(self.bytes_before, self.bytes_after)

    def more_local(self) -> float:
        """Reads that become local, in the same unit."""
        if self.bytes_before is None or self.bytes_after is None:
            return self.after.local - self.before.local
        return self.bytes_after.local - self.bytes_before.local


class AssignmentGain(NamedTuple):
    """Effect of another assignment on the reads by both measures."""

    kafka: MeasureGain
    read: MeasureGain
    """As they really happen."""


def passes_thresholds(gained: float, total: float, limits: Limits) -> bool:
    """True when a gain of so many of ``total`` reads passes every threshold of reads."""
    return gained >= max(1, limits.gain.min_partitions, limits.gain.min_share * total)


def worth_bytes(bytes_per_s: float, total: float, limits: Limits) -> bool:
    """The same for a gain of ``total``, both bytes per second; ``gain.min_share`` is then a share of the bytes."""
    return bytes_per_s >= max(LEAST_GAIN, limits.gain.min_share * total, limits.gain.min_bytes_per_s)


def optimum_worth(assessment: Assessment, limits: Limits) -> bool:
    """True when the optimum's gain passes the thresholds."""
    weighing = assessment.weighing
    if weighing is None:
        return passes_thresholds(assessment.gap, total_reads(assessment), limits)
    return worth_bytes(weighing.gained, weighing.total, limits)


def brings_worth(reading: MeasureGain, assessment: Assessment, limits: Limits) -> bool:
    """True when the reads that leave "crossing" pass them."""
    if reading.bytes_before is None:
        return passes_thresholds(reading.brings(), total_reads(assessment), limits)
    return worth_bytes(reading.brings(), reading.bytes_before.total, limits)


def more_local_worth(reading: MeasureGain, limits: Limits) -> bool:
    """True when the reads that become local pass them."""
    if reading.bytes_before is None:
        return passes_thresholds(reading.more_local(), reading.after.total, limits)
    return worth_bytes(reading.more_local(), reading.bytes_before.total, limits)


def group_locality(group: ReaderGroup, snapshot: Snapshot, memo: Memo) -> GroupLocality:
    """Where a group's topics have their replicas."""
    names = memo.of(("group topics", group.id), (group,), lambda: topics_of(group))
    return locality_of(names, bits_for((group,), snapshot, memo), snapshot, memo)


def assessed_locality(
    group: ReaderGroup, assessment: Assessment | None, snapshot: Snapshot, memo: Memo
) -> GroupLocality:
    """The same, as the group's assessment has it already."""
    locality = None if assessment is None else assessment.locality
    return group_locality(group, snapshot, memo) if locality is None else locality


def wanted_reads(
    group: ReaderGroup, assessment: Assessment, locality: GroupLocality, given: PredictedAssignment | None
) -> Reads | None:
    """Partitions by reader as predicted, else at the optimum; None without both."""
    if given is not None:
        return given_reads(group, locality, given)
    return None if assessment.result is None else optimal_reads(group, locality, assessment.result)


def given_reads(group: ReaderGroup, locality: GroupLocality, given: PredictedAssignment) -> Reads:
    """Partitions by reader in that assignment, hidden topics left out."""
    return [
        (locality.bits.reader(reader.rack), [p for p in given.reads.get(reader.id, ()) if p.topic in locality.masks])
        for reader in group.readers
    ]


def assignment_gain(
    group: ReaderGroup, assessment: Assessment, locality: GroupLocality, given: PredictedAssignment | None
) -> AssignmentGain | None:
    """Effect of the predicted assignment, else of the optimum; None without both."""
    then = wanted_reads(group, assessment, locality, given)
    if then is None:
        return None
    now = current_reads(group, locality)
    before, after = count_reads(now, locality.masks), count_reads(then, locality.masks)
    rates = assessment.weighing.rates if assessment.weighing is not None else None
    if rates is None or not _covered(rates, now, then):
        return AssignmentGain(MeasureGain(before[0], after[0]), MeasureGain(before[1], after[1]))
    bytes_before, bytes_after = weigh(now, locality.masks, rates), weigh(then, locality.masks, rates)
    kafka, read = zip(before, after, bytes_before, bytes_after, strict=True)
    return AssignmentGain(MeasureGain(*kafka), MeasureGain(*read))


def group_rates(
    assessment: Assessment | None, topics: Iterable[TopicState], snapshot: Snapshot
) -> Mapping[TopicPartition, float] | None:
    """Bytes per second that the group reads of each partition: by weights, else inbound; None when one is unknown."""
    if assessment is not None and assessment.weighing is not None:
        return assessment.weighing.rates
    rates = topic_rates(topics, snapshot)
    return None if rates is None else dict(rates)


def crossing_bytes(
    group: ReaderGroup,
    assessment: Assessment,
    locality: GroupLocality,
    snapshot: Snapshot,
    given: PredictedAssignment | None = None,
) -> tuple[float, float] | None:
    """Bytes per second really read across racks before and after either; None when a rate or rack is unknown."""
    rates = group_rates(assessment, [snapshot.topics[name] for name in locality.masks], snapshot)
    then = wanted_reads(group, assessment, locality, given)
    if rates is None or then is None:
        return None
    now = current_reads(group, locality)
    if not _covered(rates, now, then):
        return None
    before, after = weigh(now, locality.masks, rates)[1], weigh(then, locality.masks, rates)[1]
    return None if before.unknown or after.unknown else (before.total - before.local, after.total - after.local)


def _covered(rates: Mapping[TopicPartition, float], *reads: Reads) -> bool:
    return all(partition in rates for of in reads for _, partitions in of for partition in partitions)


def total_reads(assessment: Assessment) -> float:
    """All reads of a group, in partitions."""
    found = (x for x in assessment.current if x.measure is LocalityMeasure.KAFKA and x.unit == "partitions")
    return next(found).total


# Effects have three columns: now, by the group's own assignor, at the optimum. Partitions count by Kafka's rule, bytes
# per second as really read. Unknown is None.

Moves = tuple[tuple[TopicPartition, str, str], ...]
"""(partition, from, to): members, or Streams processes."""


class ComparisonColumn(NamedTuple):
    """Cost of an assignment."""

    crossing: int
    """Partitions read across racks, by Kafka's measure."""
    unknown: int
    """Partitions of which that is unknown."""
    crossing_bytes_per_s: float | None
    """Bytes per second read across racks, by where reads really go; None where a rate, rack or selector is unknown."""
    moved: int
    """Partitions (Streams: tasks) that have another owner than now."""
    reads: int
    """Partitions that are read."""
    usd_per_day: float | None
    """USD per day of those bytes; None where they are unknown or have no price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """One group in three columns."""

    group_id: str
    kind: GroupKind
    now: ComparisonColumn | None
    """None where the group has no assessment; ``worth`` has the reason."""
    own: ComparisonColumn | None
    """In the end, after follow-up rebalances and warm-ups; None where nothing is predicted, see the prediction."""
    optimum: ComparisonColumn | None
    own_bytes: float | None = None
    """Bytes per second that cross with its own assignor, by Kafka's measure and weights; None without either."""
    worth: str
    """Why a rebalance is worth it, or why not, as one sentence."""
    prediction: Prediction | None
    """None where it was not asked for."""


def group_comparison(  # noqa: PLR0917 (a group, what is known of it, and the world)
    group: ReaderGroup,
    assessment: Assessment | None,
    prediction: Prediction | None,
    snapshot: Snapshot,
    limits: Limits,
    memo: Memo | None = None,
) -> GroupComparison:
    """The columns of one group, by any snapshot: a changed one is a what-if."""
    if assessment is None or assessment.why_not is not None:
        why = "it was not assessed" if assessment is None or assessment.why_not is None else assessment.why_not.value
        return GroupComparison(
            group_id=group.id, kind=group.kind, now=None, own=None, optimum=None, worth=f"It cannot be judged: {why}.",
            prediction=prediction,
        )  # fmt: skip
    locality = assessed_locality(group, assessment, snapshot, memo if memo is not None else Memo())
    rates = group_rates(assessment, [snapshot.topics[name] for name in locality.masks], snapshot)
    given = prediction.settled if prediction is not None else None
    now = current_reads(group, locality)
    column = partial(assignment_column, locality=locality, rates=rates, snapshot=snapshot, limits=limits)
    first, now_tally, now_bytes = column(now, 0)
    own, gained, saved, left = None, 0, None, None
    if given is not None:
        own, own_tally, own_bytes = column(given_reads(group, locality, given), moved_by(group, given))
        gained = min(now_tally.crossing - own_tally.crossing, gain(now_tally, own_tally))
        if now_bytes is not None and own_bytes is not None:
            saved, left = gained_bytes(now_bytes, own_bytes), own_bytes.total - own_bytes.local - own_bytes.unknown
    best = now if assessment.result is None else optimal_reads(group, locality, assessment.result)
    return GroupComparison(
        group_id=group.id,
        kind=group.kind,
        now=first,
        own=own,
        own_bytes=None if assessment.weighing is None else left,
        optimum=column(best, assessment.moved)[0],
        worth=_worth(assessment, prediction, gained, limits)
        if assessment.weighing is None
        else _worth_in_bytes(assessment, assessment.weighing, prediction, saved, limits),
        prediction=prediction,
    )


def assignment_column(
    reads: Reads,
    moved: int,
    *,
    locality: GroupLocality,
    rates: Mapping[TopicPartition, float] | None,
    snapshot: Snapshot,
    limits: Limits,
) -> tuple[ComparisonColumn, LocalityCounts, LocalityRates | None]:
    """The cost of an assignment, its reads by Kafka's measure, and their bytes; ``rates`` None: they are unknown."""
    tally, read = count_reads(reads, locality.masks)
    if rates is None or not all(p in rates for _, partitions in reads for p in partitions):
        return ComparisonColumn(tally.crossing, tally.unknown, None, moved, tally.total, None), tally, None
    kafka, weighed = weigh(reads, locality.masks, rates)
    in_bytes = None if read.unknown or weighed.unknown else weighed.total - weighed.local
    usd = crossing_usd_per_day(reads, locality, in_bytes, rates, snapshot, limits)
    return ComparisonColumn(tally.crossing, tally.unknown, in_bytes, moved, tally.total, usd), tally, kafka


def moved_by(group: ReaderGroup, given: PredictedAssignment) -> int:
    """Partitions (Streams: active tasks) with another owner afterwards; those without an owner do not count."""
    if isinstance(group, ConsumerGroup):
        return len(own_moves(group, given))
    runs = {task: process.id for process in group.processes for task in process.active}
    return sum(runs.get(task, process) != process for process, tasks in given.active.items() for task in tasks)


def own_moves(group: ReaderGroup, given: PredictedAssignment) -> Moves:
    """Partitions with another owner in the prediction."""
    owner = {partition: reader for reader, held in _held(group) for partition in held}
    return tuple(
        sorted(
            (partition, owner[partition], reader)
            for reader, partitions in given.reads.items()
            for partition in partitions
            if owner.get(partition, reader) != reader
        )
    )


def best_moves(group: ReaderGroup, result: ConsumerResult | TaskResult | None) -> Moves:
    """Everything that the optimum gives to another owner."""
    match result:
        case ConsumerResult():
            return own_moves(group, PredictedAssignment(result.assignment))
        case TaskResult() if isinstance(group, StreamsGroup):
            return own_moves(group, PredictedAssignment(_sources(group, result.active)))
        case _:
            return ()


def _held(group: ReaderGroup) -> Iterable[tuple[str, tuple[TopicPartition, ...]]]:
    if isinstance(group, ConsumerGroup):
        return [(member.id, member.assigned or ()) for member in group.members]
    return list(_sources(group, {process.id: process.active for process in group.processes}).items())


def _sources(group: StreamsGroup, active: Mapping[str, tuple[TaskId, ...]]) -> dict[str, tuple[TopicPartition, ...]]:
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology is not None else {}
    return {
        process: tuple([source for task in tasks for source in sources.get(task, ())])
        for process, tasks in active.items()
    }


AWAY = ("reader in no broker's rack reads", "readers in no broker's rack read")


def _nothing_to_gain(assessment: Assessment, best: str) -> str:
    """Only what is known can be called the best; a reader in a rack without brokers is none of what can be gained."""
    if not assessment.at_optimum:
        unknown = (
            f"{counted(round(assessment.unknown), 'read')} of unknown locality" if assessment.unknown else "some racks"
        )
        return f"No further known read can be made local by Kafka's rule; not judged: {unknown}."
    away = f"; {counted(assessment.away, *AWAY)} all across racks" if assessment.away else ""
    return f"No further read can be made local by Kafka's rule: {best}{away}."


def _worth_in_bytes(
    assessment: Assessment,
    weighing: WeightedAssessment,
    prediction: Prediction | None,
    saved: float | None,
    limits: Limits,
) -> str:
    """By weights of the pipeline; ``saved`` by the group's own assignor, None where it is not predicted."""
    total, best = f"{sized(weighing.total)}/s", f"the optimum would make {sized(weighing.gained)}/s more"
    if not weighing.gained:
        return _nothing_to_gain(assessment, "by weights it is at its optimum")
    if prediction is None or prediction.settled is None or saved is None:
        why = (
            "no prediction was asked for"
            if prediction is None or prediction.why_not is None
            else prediction.why_not.value
        )
        home = f"The optimum makes {sized(weighing.gained)}/s more of {total} local"
        return f"{home}; the result of its own assignor is unknown: {why}."
    enough = worth_bytes(saved, weighing.total, limits)
    verdict = "Worth a rebalance by the thresholds" if enough else "Not worth a rebalance"
    return f"{verdict}: its own assignor would make {sized(saved)}/s more of {total} local, {best}."


def _worth(assessment: Assessment, prediction: Prediction | None, gained: int, limits: Limits) -> str:
    total = total_reads(assessment)
    reads = counted(round(total), "read")
    if gained < 0:
        verb = "crosses" if gained == -1 else "cross"
        return f"Not worth a rebalance: with its own assignor {counted(-gained, 'more read')} {verb} than now."
    if assessment.gap <= 0:
        return _nothing_to_gain(assessment, "it is at its optimum")
    if prediction is None or prediction.settled is None:
        why = (
            "no prediction was asked for"
            if prediction is None or prediction.why_not is None
            else prediction.why_not.value
        )
        best = f"The optimum makes {assessment.gap} more of {reads} local"
        return f"{best}; the result of its own assignor is unknown: {why}."
    best = f"the optimum would make {assessment.gap} more"
    if gained <= 0:
        return f"Not worth a rebalance: its own assignor would make no further read local, {best} of {total:,.12g}."
    if not passes_thresholds(gained, total, limits):
        return f"Not worth a rebalance: its own assignor would make {gained} more of {reads} local, {best}."
    return f"Worth a rebalance by the thresholds: its own assignor would make {gained} more of {reads} local, {best}."


_ELSEWHERE = "(no broker's)"
"""A rack without brokers has no name in the ground, but it is known, and known to be none of theirs."""


def crossing_usd_per_day(  # noqa: PLR0917 (an assignment, what is known of it, and the world)
    reads: Reads,
    locality: GroupLocality,
    crossing_bytes_per_s: float | None,
    rates: Mapping[TopicPartition, float],
    snapshot: Snapshot,
    limits: Limits,
) -> float | None:
    """Dollars a day of the bytes that cross; None where they are unknown, or a pair of racks has no price."""
    if crossing_bytes_per_s is None:
        return None
    if not limits.price.between:
        return None if limits.price.usd_per_gb is None else priced(crossing_bytes_per_s, limits.price.usd_per_gb)
    names = {bit: name for name, bit in locality.bits.bit_of.items()}
    readers = [
        RackReads(partition, names.get(bit, _ELSEWHERE) if bit else None)
        for bit, partitions in reads
        for partition in partitions
    ]
    states = states_of(snapshot.topics[name] for name in locality.masks)
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
    return usd_per_day(read_flows(readers, states, racks, rates, selector=locality.bits.selector_is_rack_aware), limits)

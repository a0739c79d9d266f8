"""Is a gain worth a change? Below the thresholds the answer is "nothing worth doing".

Gains are bytes per second where the group has fresh weights of the pipeline, and partitions everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.detect.assess import bits_for, ground_of, topics_of
from agent.detect.tally import Reads, Tally, gain, tally_reads
from agent.detect.traffic import Bytes, current_reads, optimal_reads, topic_rates, weigh
from agent.detect.weighted import LEAST_GAIN, gained
from agent.values.assessment import Assessment, Measure
from agent.values.limits import Limits
from agent.values.locality import Ground
from agent.values.memo import Memo
from agent.values.prediction import Given
from agent.values.snapshot import ReaderGroup, Snapshot, TopicState
from assignors.problem import TopicPartition


class Reading(NamedTuple):
    """What another assignment does to the reads by one measure."""

    before: Tally
    after: Tally
    bytes_before: Bytes | None = None
    """By weights; None where partitions are counted."""
    bytes_after: Bytes | None = None

    def brings(self) -> float:
        """What leaves "crossing" and arrives in "local": bytes per second by weights, else partitions."""
        if self.bytes_before is None or self.bytes_after is None:
            return gain(self.before, self.after)
        return gained(self.bytes_before, self.bytes_after)

    def more_local(self) -> float:
        """What is local afterwards and was not, in the same unit."""
        if self.bytes_before is None or self.bytes_after is None:
            return self.after.local - self.before.local
        return self.bytes_after.local - self.bytes_before.local


class Change(NamedTuple):
    """What another assignment does to the reads by both measures."""

    kafka: Reading
    read: Reading
    """As they really happen."""


def worth(gained: float, total: float, limits: Limits, bytes_per_s: float | None = None) -> bool:
    """True when a gain passes every threshold that can be judged; unknown bytes fail none."""
    if gained < max(1, limits.gain.min_partitions) or gained < limits.gain.min_share * total:
        return False
    return bytes_per_s is None or bytes_per_s >= limits.gain.min_bytes_per_s


def worth_bytes(bytes_per_s: float, total: float, limits: Limits) -> bool:
    """The same for a gain in bytes per second; ``min_gain_share`` is then a share of the bytes."""
    return bytes_per_s >= max(LEAST_GAIN, limits.gain.min_share * total, limits.gain.min_bytes_per_s)


def optimum_worth(assessment: Assessment, limits: Limits) -> bool:
    """True when the optimum's gain passes the thresholds."""
    weighing = assessment.weighing
    if weighing is None:
        return worth(assessment.gap, total_reads(assessment), limits)
    return worth_bytes(weighing.gained, weighing.total, limits)


def brings_worth(reading: Reading, assessment: Assessment, limits: Limits) -> bool:
    """True when what leaves "crossing" passes them."""
    if reading.bytes_before is None:
        return worth(reading.brings(), total_reads(assessment), limits)
    return worth_bytes(reading.brings(), reading.bytes_before.total, limits)


def more_local_worth(reading: Reading, limits: Limits) -> bool:
    """True when what becomes local passes them."""
    if reading.bytes_before is None:
        return worth(reading.more_local(), reading.after.total, limits)
    return worth_bytes(reading.more_local(), reading.bytes_before.total, limits)


def group_ground(group: ReaderGroup, snapshot: Snapshot, memo: Memo) -> Ground:
    """Where a group's topics have their replicas."""
    names = memo.of(("group topics", group.id), (group,), lambda: topics_of(group))
    return ground_of(names, bits_for((group,), snapshot, memo), snapshot, memo)


def judged_ground(group: ReaderGroup, assessment: Assessment | None, snapshot: Snapshot, memo: Memo) -> Ground:
    """The same, as the group's assessment has it already."""
    ground = None if assessment is None else assessment.ground
    return group_ground(group, snapshot, memo) if ground is None else ground


def wanted_reads(group: ReaderGroup, assessment: Assessment, ground: Ground, given: Given | None) -> Reads | None:
    """Who would read what: as the group's own assignor gives it, or at the optimum; None when there is neither."""
    if given is not None:
        return given_reads(group, ground, given)
    return None if assessment.result is None else optimal_reads(group, ground, assessment.result)


def given_reads(group: ReaderGroup, ground: Ground, given: Given) -> Reads:
    """Who reads what under that assignment; a topic that is not shown is left out."""
    return [
        (ground.bits.reader(reader.rack), [p for p in given.reads.get(reader.id, ()) if p.topic in ground.masks])
        for reader in group.readers
    ]


def change(group: ReaderGroup, assessment: Assessment, ground: Ground, given: Given | None) -> Change | None:
    """What the group's own assignor gives does to its reads, else the optimum; None when there is neither."""
    then = wanted_reads(group, assessment, ground, given)
    if then is None:
        return None
    now = current_reads(group, ground)
    before, after = tally_reads(now, ground.masks), tally_reads(then, ground.masks)
    rates = assessment.weighing.rates if assessment.weighing is not None else None
    if rates is None or not _covered(rates, now, then):
        return Change(Reading(before[0], after[0]), Reading(before[1], after[1]))
    bytes_before, bytes_after = weigh(now, ground.masks, rates), weigh(then, ground.masks, rates)
    kafka, read = zip(before, after, bytes_before, bytes_after, strict=True)
    return Change(Reading(*kafka), Reading(*read))


def group_rates(
    assessment: Assessment | None, topics: Iterable[TopicState], snapshot: Snapshot
) -> Mapping[TopicPartition, float] | None:
    """What the group reads of each partition: by weights, else what each takes in; None when a rate is unknown."""
    if assessment is not None and assessment.weighing is not None:
        return assessment.weighing.rates
    rates = topic_rates(topics, snapshot)
    return None if rates is None else dict(rates)


def crossing_bytes(
    group: ReaderGroup,
    assessment: Assessment,
    ground: Ground,
    snapshot: Snapshot,
    given: Given | None = None,
) -> tuple[float, float] | None:
    """Bytes per second really read across racks before and after either; None when a rate or rack is unknown."""
    rates = group_rates(assessment, [snapshot.topics[name] for name in ground.masks], snapshot)
    then = wanted_reads(group, assessment, ground, given)
    if rates is None or then is None:
        return None
    now = current_reads(group, ground)
    if not _covered(rates, now, then):
        return None
    before, after = weigh(now, ground.masks, rates)[1], weigh(then, ground.masks, rates)[1]
    return None if before.unknown or after.unknown else (before.total - before.local, after.total - after.local)


def _covered(rates: Mapping[TopicPartition, float], *reads: Reads) -> bool:
    """Whether the rate of everything read is known."""
    return all(partition in rates for of in reads for _, partitions in of for partition in partitions)


def total_reads(assessment: Assessment) -> float:
    """All reads of a group, in partitions."""
    found = (x for x in assessment.current if x.measure is Measure.KAFKA and x.unit == "partitions")
    return next(found).total

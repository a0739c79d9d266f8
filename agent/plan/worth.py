"""Is a gain worth a change? Below the thresholds the answer is "nothing worth doing"."""

from __future__ import annotations

from typing import NamedTuple

from agent.detect.assess import bits_for, ground_of, topics_of
from agent.detect.assessment import Assessment, Measure
from agent.detect.locality import Ground
from agent.detect.tally import Tally, tally_reads
from agent.detect.traffic import current_reads, optimal_reads, topic_rates, weigh
from agent.limits import Limits
from agent.memo import Memo
from agent.model.snapshot import ConsumerGroup, Snapshot, StreamsGroup


class Reading(NamedTuple):
    """What a group's optimum by Kafka's measure does to the reads as they really happen (read-local measure)."""

    before: Tally
    after: Tally


def worth(gained: float, total: float, limits: Limits, bytes_per_s: float | None = None) -> bool:
    """True when a gain passes every threshold that can be judged; unknown bytes fail none."""
    if gained < max(1, limits.min_gain_partitions) or gained < limits.min_gain_share * total:
        return False
    return bytes_per_s is None or bytes_per_s >= limits.min_gain_bytes_per_s


def group_ground(group: ConsumerGroup | StreamsGroup, snapshot: Snapshot, memo: Memo) -> Ground:
    """Where a group's topics have their replicas."""
    names = memo.of(("group topics", group.id), (group,), lambda: topics_of(group))
    return ground_of(names, bits_for((group,), snapshot, memo), snapshot, memo)


def reading(group: ConsumerGroup | StreamsGroup, assessment: Assessment, ground: Ground) -> Reading | None:
    """Reads before and after the optimum; None when there is no optimum to go to."""
    if assessment.result is None:
        return None
    now, then = current_reads(group, ground), optimal_reads(group, ground, assessment.result)
    return Reading(tally_reads(now, ground.masks)[1], tally_reads(then, ground.masks)[1])


def crossing_bytes(
    group: ConsumerGroup | StreamsGroup, assessment: Assessment, ground: Ground, snapshot: Snapshot
) -> tuple[float, float] | None:
    """Bytes per second really read across racks before and after the optimum; None when a rate or rack is unknown."""
    rates = topic_rates([snapshot.topics[name] for name in ground.masks], snapshot)
    if rates is None or assessment.result is None:
        return None
    now, then = current_reads(group, ground), optimal_reads(group, ground, assessment.result)
    rate_of = dict(rates)
    if any(partition not in rate_of for _, partitions in now for partition in partitions):
        return None
    before, after = weigh(now, ground.masks, rate_of)[1], weigh(then, ground.masks, rate_of)[1]
    return None if before.unknown or after.unknown else (before.total - before.local, after.total - after.local)


def total_reads(assessment: Assessment) -> float:
    """All reads of a group, in partitions."""
    found = (x for x in assessment.current if x.measure is Measure.KAFKA and x.unit == "partitions")
    return next(found).total

"""Is a gain worth a change? Below the thresholds the answer is "nothing worth doing"."""

from __future__ import annotations

from typing import NamedTuple

from agent.detect.assess import bits_for, ground_of, topics_of
from agent.detect.assessment import Assessment, Measure
from agent.detect.locality import Ground
from agent.detect.tally import Reads, Tally, tally_reads
from agent.detect.traffic import current_reads, optimal_reads, topic_rates, weigh
from agent.limits import Limits
from agent.memo import Memo
from agent.model.snapshot import ConsumerGroup, Snapshot, StreamsGroup
from agent.predict.prediction import Given


class Reading(NamedTuple):
    """What another assignment does to the reads by one measure."""

    before: Tally
    after: Tally


class Change(NamedTuple):
    """What another assignment does to the reads by both measures."""

    kafka: Reading
    read: Reading
    """As they really happen."""


def worth(gained: float, total: float, limits: Limits, bytes_per_s: float | None = None) -> bool:
    """True when a gain passes every threshold that can be judged; unknown bytes fail none."""
    if gained < max(1, limits.min_gain_partitions) or gained < limits.min_gain_share * total:
        return False
    return bytes_per_s is None or bytes_per_s >= limits.min_gain_bytes_per_s


def group_ground(group: ConsumerGroup | StreamsGroup, snapshot: Snapshot, memo: Memo) -> Ground:
    """Where a group's topics have their replicas."""
    names = memo.of(("group topics", group.id), (group,), lambda: topics_of(group))
    return ground_of(names, bits_for((group,), snapshot, memo), snapshot, memo)


def judged_ground(
    group: ConsumerGroup | StreamsGroup, assessment: Assessment | None, snapshot: Snapshot, memo: Memo
) -> Ground:
    """The same, as the group's assessment has it already."""
    ground = None if assessment is None else assessment.ground
    return group_ground(group, snapshot, memo) if ground is None else ground


def wanted_reads(
    group: ConsumerGroup | StreamsGroup, assessment: Assessment, ground: Ground, given: Given | None
) -> Reads | None:
    """Who would read what: as the group's own assignor gives it, or at the optimum; None when there is neither."""
    if given is not None:
        return given_reads(group, ground, given)
    return None if assessment.result is None else optimal_reads(group, ground, assessment.result)


def given_reads(group: ConsumerGroup | StreamsGroup, ground: Ground, given: Given) -> Reads:
    """Who reads what under that assignment; a topic that is not shown is left out."""
    readers = group.members if isinstance(group, ConsumerGroup) else group.processes
    return [
        (ground.bits.reader(reader.rack), [p for p in given.reads.get(reader.id, ()) if p.topic in ground.masks])
        for reader in readers
    ]


def change(
    group: ConsumerGroup | StreamsGroup, assessment: Assessment, ground: Ground, given: Given | None
) -> Change | None:
    """What the group's own assignor gives does to its reads, else the optimum; None when there is neither."""
    then = wanted_reads(group, assessment, ground, given)
    if then is None:
        return None
    before, after = tally_reads(current_reads(group, ground), ground.masks), tally_reads(then, ground.masks)
    return Change(Reading(before[0], after[0]), Reading(before[1], after[1]))


def crossing_bytes(
    group: ConsumerGroup | StreamsGroup,
    assessment: Assessment,
    ground: Ground,
    snapshot: Snapshot,
    given: Given | None = None,
) -> tuple[float, float] | None:
    """Bytes per second really read across racks before and after either; None when a rate or rack is unknown."""
    rates = topic_rates([snapshot.topics[name] for name in ground.masks], snapshot)
    then = wanted_reads(group, assessment, ground, given)
    if rates is None or then is None:
        return None
    now = current_reads(group, ground)
    rate_of = dict(rates)
    if any(partition not in rate_of for _, partitions in (*now, *then) for partition in partitions):
        return None
    before, after = weigh(now, ground.masks, rate_of)[1], weigh(then, ground.masks, rate_of)[1]
    return None if before.unknown or after.unknown else (before.total - before.local, after.total - after.local)


def total_reads(assessment: Assessment) -> float:
    """All reads of a group, in partitions."""
    found = (x for x in assessment.current if x.measure is Measure.KAFKA and x.unit == "partitions")
    return next(found).total

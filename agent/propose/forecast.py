"""What a change of who reads what does to shares, bytes and money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.detect.tally import Reads
from agent.detect.traffic import current_reads, measured, states_of
from agent.plan.worth import group_rates, judged_ground
from agent.propose.scene import Scene
from agent.values.assessment import Locality
from agent.values.flows import Flows, Reader, bytes_per_s, read_flows, usd_per_day
from agent.values.locality import Ground
from agent.values.proposal import Predicted
from agent.values.snapshot import ReaderGroup, TopicState
from assignors.problem import TopicPartition


class Work(NamedTuple):
    """A group, where its topics are, who reads what now, and how fast its partitions grow."""

    group: ReaderGroup
    ground: Ground
    topics: tuple[TopicState, ...]
    rates: Mapping[TopicPartition, float] | None
    """None when the rate of one of its partitions is unknown."""
    now: Reads
    """Who reads what now."""


def work_of(group: ReaderGroup, scene: Scene) -> Work:
    """What is known of a group's work."""
    ground = judged_ground(group, scene.detection.assessments.get(group.id), scene.snapshot, scene.memo)
    topics = tuple([scene.snapshot.topics[name] for name in ground.masks])
    rates = group_rates(scene.detection.assessments.get(group.id), topics, scene.snapshot)
    return Work(group, ground, topics, rates, current_reads(group, ground))


def forecast(work: Work, then: Reads, *, moves: int, bytes_to_move: int | None, scene: Scene) -> Predicted:
    """Shares, cross-rack bytes and money of the group's reads, now and then."""
    before, after = _state(work, work.now, scene), _state(work, then, scene)
    return Predicted(
        before=before[0],
        after=after[0],
        cross_rack_bytes_per_s_before=bytes_per_s(before[1]),
        cross_rack_bytes_per_s_after=bytes_per_s(after[1]),
        usd_per_day_before=usd_per_day(before[1], scene.limits),
        usd_per_day_after=usd_per_day(after[1], scene.limits),
        moves=moves,
        bytes_to_move=bytes_to_move,
    )


def _state(work: Work, reads: Reads, scene: Scene) -> tuple[tuple[Locality, ...], Flows | None]:
    rates = work.rates or {}
    covered = all(p.topic in work.ground.masks for _, partitions in reads for p in partitions)
    shares = measured(reads, work.ground.masks, rates) if covered else ()
    if work.rates is None:
        return shares, None
    names = {bit: name for name, bit in work.ground.bits.bit_of.items()}
    rows = [
        # A rack without brokers has no name here, but it is known, and known to be none of theirs.
        Reader(partition, names.get(bit, "elsewhere") if bit else None)
        for bit, partitions in reads
        for partition in partitions
    ]
    states = states_of(work.topics)
    selector = work.ground.bits.selector_is_rack_aware
    return shares, read_flows(rows, states, scene.racks, rates, selector=selector)

"""Restore rates of task copies, time until caught up, and bytes per second of partitions.

A rate is a range: over the whole time, and the least and most of its two halves, wider where readings are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.values.memory import Memory, RestoreRate
from agent.values.rates import SHORTEST_BASE_MS
from agent.values.snapshot import Range
from agent.values.weights import RestoreWeight
from assignors.problem import TopicPartition

SURE_RATES = 3
"""With fewer restores measured, the range is doubled to both sides."""


def closing_rate(samples: Sequence[tuple[int, int]]) -> Range | None:
    """Records per second by which a lag shrinks, out of (monotonic ms, lag) in order; negative when it grows.

    Restores go in batches, so few readings are uncertain: the range is widened by ``1 + 2 / readings``.
    """
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
        return None
    overall = _slope(samples[0], samples[-1])
    middle = samples[len(samples) // 2]
    slopes = (overall, _slope(samples[0], middle), _slope(middle, samples[-1])) if len(samples) > 2 else (overall,)
    wider = 1 + 2 / len(samples)
    low, high = min(slopes), max(slopes)
    return Range(low / wider if low > 0 else low * wider, overall, high * wider if high > 0 else high / wider)


class MeasuredRestoreRate(NamedTuple):
    """Records that a process restores per second."""

    low: float
    likely: float
    high: float | None
    """None when nothing bounds it from above."""


def restore_rate(measured: Sequence[RestoreRate], learned: Sequence[RestoreWeight] = ()) -> MeasuredRestoreRate | None:
    """How fast a process restores, as measured in earlier rounds; None when nothing was.

    Measurements that are bounded on both sides count; those bounded from below only where there are no others. While
    they are few, the rates that the pipeline learned over a longer time replace them, with the range doubled too: they
    are of another time, and one copy may restore a part only of what its process restores.
    """
    bounded = [(rate.low, rate.high) for rate in measured if rate.high is not None]
    if len(bounded) < SURE_RATES and any(one.samples and one.high for one in learned):
        return _with_learned(bounded, [one for one in learned if one.samples and one.high])
    if not measured:
        return None
    if not bounded:
        lows = [rate.low for rate in measured]
        return MeasuredRestoreRate(min(lows) / 2, max(lows), None)
    spread = 1.0 if len(bounded) >= SURE_RATES else 2.0
    middles = sorted((low + high) / 2 for low, high in bounded)
    return MeasuredRestoreRate(
        min(low for low, _ in bounded) / spread,
        middles[len(middles) // 2],
        max(high for _, high in bounded) * spread,
    )


def _with_learned(bounded: Sequence[tuple[float, float]], learned: Sequence[RestoreWeight]) -> MeasuredRestoreRate:
    """The rate by few measurements or none, and by the pipeline's restore weights."""
    lows = [low for low, _ in bounded] + [one.low for one in learned]
    highs = [high for _, high in bounded] + [one.high for one in learned]
    middles = sorted([(low + high) / 2 for low, high in bounded] + [one.median for one in learned])
    return MeasuredRestoreRate(min(lows) / 2, middles[len(middles) // 2], max(highs) * 2)


def still_missing(
    missing: float, backlog: float, rate: MeasuredRestoreRate, shortest_s: float, longest_s: float | None
) -> Range:
    """Records of one copy not yet restored, when its process has restored for that long.

    A thread restores its tasks in turn: at best this copy was the first, at worst it is the last of the backlog, and
    likely all advanced evenly. ``longest_s`` is None where the beginning was not seen.
    """
    least = 0.0 if rate.high is None or longest_s is None else max(0.0, missing - rate.high * longest_s)
    most = min(missing, max(least, backlog - rate.low * shortest_s))
    middle_s = shortest_s if longest_s is None else (shortest_s + longest_s) / 2
    restored_share = min(1.0, rate.likely * middle_s / backlog) if backlog else 1.0
    return Range(least, min(most, max(least, missing * (1 - restored_share))), most)


def shared_rate(rate: MeasuredRestoreRate, share: float, appended_per_s: float) -> Range | None:
    """Records per second by which one copy closes in: from its share of its process's rate to all of it."""
    if rate.high is None:
        return None
    low, likely = rate.low * share - appended_per_s, rate.likely * share - appended_per_s
    return Range(low, likely, max(likely, rate.high - appended_per_s))


def eta_s(lag: Range, acceptable: int, rate: Range | None) -> Range | None:
    """Seconds until the lag is acceptable; None when that is unknown, or never at the least rate."""
    left = Range(*(max(0.0, bound - acceptable) for bound in lag))
    if left.high == 0:
        return Range(0.0, 0.0, 0.0)
    if rate is None or rate.low <= 0:
        return None
    return Range(left.low / rate.high, left.likely / rate.likely, left.high / rate.low)


def byte_rates(
    end_offsets: Mapping[TopicPartition, int], memory: Memory, now_ms: int
) -> Mapping[TopicPartition, float]:
    """Inbound bytes per second of each partition with known records and record size.

    Empty where no base is kept: on the first look, and in large clusters.
    """
    base = next((base for base in memory.rate_bases if now_ms - base.monotonic_ms >= SHORTEST_BASE_MS), None)
    if base is None:
        return {}
    seconds = (now_ms - base.monotonic_ms) / 1000
    rates: dict[TopicPartition, float] = {}
    for partition, end in end_offsets.items():
        records = end - base.end_offsets.get(partition, end + 1)
        if records == 0:
            rates[partition] = 0.0
        elif records > 0 and partition.topic in memory.bytes_per_record:
            rates[partition] = records / seconds * memory.bytes_per_record[partition.topic]
    return rates


def _slope(earlier: tuple[int, int], later: tuple[int, int]) -> float:
    took_ms = later[0] - earlier[0]
    return (earlier[1] - later[1]) * 1000 / took_ms if took_ms > 0 else 0.0

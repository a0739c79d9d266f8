"""How fast a copy closes in, how long until it has caught up, and how many bytes a partition takes in.

A rate is always a range: what the readings say over the whole time, and the least and most over its two halves,
widened where the readings are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.memory.values import Memory, RestoreRate
from agent.model.snapshot import Range
from assignors.problem import TopicPartition

SHORTEST_BASE_MS = 5_000
SURE_RATES = 3
"""With fewer restores measured, the range is doubled to both sides."""


def closing_rate(samples: Sequence[tuple[int, int]]) -> Range | None:
    """Records per second by which a lag shrinks, out of (monotonic ms, lag) in order; negative when it grows.

    Restores go in batches, so few readings say little: the range is widened by ``1 + 2 / readings``.
    """
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
        return None
    overall = _slope(samples[0], samples[-1])
    middle = samples[len(samples) // 2]
    slopes = (overall, _slope(samples[0], middle), _slope(middle, samples[-1])) if len(samples) > 2 else (overall,)
    wider = 1 + 2 / len(samples)
    low, high = min(slopes), max(slopes)
    return Range(low / wider if low > 0 else low * wider, overall, high * wider if high > 0 else high / wider)


def restore_rate(measured: Sequence[RestoreRate]) -> tuple[float, float, float | None] | None:
    """(low, likely, high) records restored per second, as measured in earlier rounds; high None when unbounded."""
    if not measured:
        return None
    spread = 1.0 if len(measured) >= SURE_RATES else 2.0
    low = min(rate.low for rate in measured) / spread
    bounded = sorted((rate.low + rate.high) / 2 for rate in measured if rate.high is not None)
    likely = bounded[len(bounded) // 2] if bounded else max(rate.low for rate in measured)
    highs = [rate.high for rate in measured]
    high = None if None in highs else max(high for high in highs if high is not None) * spread
    return low, likely, high


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
    """Inbound bytes per second of each partition of which records and their size can be told.

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

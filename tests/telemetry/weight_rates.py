"""Weights as a look has them, in one breath: ``told({"orders": (100.0, None)}, until_s=-60)``."""

from __future__ import annotations

from collections.abc import Mapping

from agent.values.weights import GroupRates, ReadRates, RestoreWeight, TopicRates, WeightsReading
from tests.builders import TAKEN_MS

HOUR_MS = 3_600_000
TOPIC = "rackwise.weights"


def topic_rates(name: str, rates: tuple[float | None, ...], until_s: float = -60.0) -> TopicRates:
    """Rates by partition; None where there is none."""
    until_ms = TAKEN_MS + round(until_s * 1_000)
    known = [(number, rate) for number, rate in enumerate(rates) if rate is not None]
    return TopicRates(
        name, until_ms - 24 * HOUR_MS, until_ms, tuple(n for n, _ in known), tuple(rate for _, rate in known)
    )


def group_rates(
    name: str,
    reads: Mapping[str, tuple[float | None, ...]] | None = None,
    restores: tuple[RestoreWeight, ...] = (),
    until_s: float = -60.0,
) -> GroupRates:
    """What a group reads, by topic and partition, and how fast it restores."""
    columns = [topic_rates(topic, rates, until_s) for topic, rates in (reads or {}).items()]
    until_ms = TAKEN_MS + round(until_s * 1_000)
    rows = tuple(ReadRates(one.topic, one.partitions, one.bytes_per_s) for one in columns)
    return GroupRates(name, until_ms - 24 * HOUR_MS, until_ms, rows, restores)


def reading_of(
    topics: Mapping[str, tuple[float | None, ...]], *groups: GroupRates, until_s: float = -60.0
) -> WeightsReading:
    """What the weights topic tells of this cluster."""
    return WeightsReading(TOPIC, tuple(topic_rates(name, rates, until_s) for name, rates in topics.items()), groups)

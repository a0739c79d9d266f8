"""What the agent keeps of the weights topic: columns instead of rows, as there may be hundreds of thousands of rates.

Only what a plan can use is kept: rates that are known, and until when they were measured. Records per second and the
sizes of records stay with the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from agent.weights.values import GroupWeights, RestoreWeight, TopicWeights


class TopicRates(NamedTuple):
    """Bytes per second of some partitions of a topic."""

    topic: str
    from_ms: int
    to_ms: int
    """The looks that it rests on were taken between these two, epoch milliseconds."""
    partitions: tuple[int, ...]
    bytes_per_s: tuple[float, ...]
    """One for each of ``partitions``."""


class ReadRates(NamedTuple):
    """Bytes per second that a group reads of some partitions of a topic."""

    topic: str
    partitions: tuple[int, ...]
    bytes_per_s: tuple[float, ...]
    """One for each of ``partitions``."""


class GroupRates(NamedTuple):
    """What a group reads, and how fast it restores."""

    group: str
    from_ms: int
    to_ms: int
    """The looks that it rests on were taken between these two, epoch milliseconds."""
    reads: tuple[ReadRates, ...]
    restores: tuple[RestoreWeight, ...]


class Told(NamedTuple):
    """What the weights topic tells about this cluster."""

    topic: str
    """Name of the weights topic."""
    topics: tuple[TopicRates, ...] = ()
    """Sorted by topic and part."""
    groups: tuple[GroupRates, ...] = ()
    """Sorted by group and part."""
    missing: str | None = None
    """Why there is none at all, as one clause; None when there is something, or records of other clusters alone."""
    others: int = 0
    """Records about other clusters."""
    unreadable: int = 0
    """Records that could not be read."""
    example: str | None = None
    """What was wrong with one of them, as one sentence."""


def topic_rates(weights: TopicWeights) -> TopicRates:
    """The rates that are known, by partition."""
    rows = sorted((row.partition, row.bytes_per_s) for row in weights.partitions if row.bytes_per_s is not None)
    partitions, rates = zip(*rows, strict=True) if rows else ((), ())
    return TopicRates(weights.topic, weights.from_ms, weights.to_ms, partitions, rates)


def group_rates(weights: GroupWeights) -> GroupRates:
    """What it reads, topic by topic, and how fast it restores."""
    reads = tuple(_columns(topic, rows) for topic, rows in groupby(sorted(weights.reads), key=attrgetter("topic")))
    restores = tuple(sorted(weights.restores, key=attrgetter("subtopology")))  # named twice: other fields may be None
    return GroupRates(weights.group, weights.from_ms, weights.to_ms, reads, restores)


def _columns(topic: str, rows: Iterable[tuple[str, int, float]]) -> ReadRates:
    _, partitions, rates = zip(*rows, strict=True)
    return ReadRates(topic, partitions, rates)

"""Weights of the pipeline: the records of their topic, and the columns that the agent keeps of them.

Each record stands by itself: it says over which time it was measured, and until when. A subject with more rows than fit
into one record has several, told apart by ``part``. Of the rows only what a plan can use is kept: rates that are known,
and until when they were measured; there may be hundreds of thousands. Records per second and the sizes of records stay
with the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from assignors.problem import TopicPartition


class PartitionWeight(NamedTuple):
    """What one partition took in; a rate that is unknown is null."""

    partition: int
    bytes_per_s: float | None
    """Bytes as they lie on disk, which is how they travel."""
    records_per_s: float | None
    bytes_per_record: float | None
    confidence: str
    """``measured``, ``topic``, ``remembered`` or ``none``: where bytes_per_record comes from."""


class ReadWeight(NamedTuple):
    """What the group read of one partition."""

    topic: str
    partition: int
    bytes_per_s: float


class RestoreWeight(NamedTuple):
    """How fast the processes of an application restore the state of one subtopology, in records per second."""

    subtopology: int
    low: float
    """Tenth percentile of the restores measured."""
    median: float
    high: float
    """Ninetieth percentile."""
    samples: int
    """Restores measured."""
    stalled_share: float | None
    """Share of the time in which nothing was restored; null where it could not be told."""


class TopicWeights(NamedTuple):
    """The partitions of one topic."""

    cluster: str
    topic: str
    computed_ms: int
    """Epoch milliseconds: when the pipeline worked it out."""
    from_ms: int
    to_ms: int
    """The looks that it rests on were taken between these two; its age counts from the later one."""
    partitions: tuple[PartitionWeight, ...]
    part: int = 0

    @property
    def subject(self) -> str:
        """``kind/name``."""
        return f"topic/{self.topic}"


class GroupWeights(NamedTuple):
    """One group: what it reads, and how fast it restores where it is an application with state."""

    cluster: str
    group: str
    computed_ms: int
    from_ms: int
    to_ms: int
    reads: tuple[ReadWeight, ...]
    restores: tuple[RestoreWeight, ...]
    part: int = 0

    @property
    def subject(self) -> str:
        """``kind/name``."""
        return f"group/{self.group}"


Weights = TopicWeights | GroupWeights


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


class WeightsReading(NamedTuple):
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


RateColumn = tuple[float | None, ...]
"""Bytes per second of a topic's partitions by number; None where unknown."""


class FigureBasis(StrEnum):
    """What a figure in bytes, or the lack of one, rests on."""

    WEIGHTS = "weights of the pipeline"
    """What the pipeline measured over hours; the optimum is the one by bytes."""
    OWN_RATES = "own rates"
    """What the agent itself saw within minutes: bytes are known, but the optimum counts partitions."""
    COUNTS = "counts"
    """Partitions alone."""


class FreshWeights(NamedTuple):
    """Fresh weights, laid out by name. One object for as long as the same weights are fresh."""

    topics: Mapping[str, RateColumn]
    groups: Mapping[str, Mapping[TopicPartition, float]]
    """Group -> what it reads of a partition, where that is not what the partition takes in."""
    restores: Mapping[str, tuple[RestoreWeight, ...]]
    """Application -> how fast it restores, by subtopology."""
    bytes_per_s: Mapping[TopicPartition, float]
    """The rates of ``topics`` by partition."""


class WeightsState(NamedTuple):
    """Whether there are weights that a plan can rest on, and why not."""

    to_ms: int | None
    """Until when the newest fresh ones were measured, epoch milliseconds; None when none is fresh."""
    from_ms: int | None
    """Since when these were measured."""
    why_not: str | None
    """Why none is fresh, as one clause; None when some are."""
    silent: bool
    """True when no weights are published, so that there is nothing to mend."""
    stale: int
    """Topics and groups whose weights are too old."""
    unreadable: int
    """Records that could not be read..."""
    example: str | None
    """... and what was wrong with one of them."""


NOT_WEIGHED = FreshWeights({}, {}, {}, {})

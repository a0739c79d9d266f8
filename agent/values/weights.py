"""Weights of the pipeline: records of the weights topic, and the columns that the agent keeps of them.

Each record has the time span of its measurement. A subject with more rows than fit into one record has several,
numbered by ``part``. The agent keeps known rates and their time alone, as there may be hundreds of thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from agent.values.finding import SubjectId
from assignors.problem import TopicPartition


class PartitionWeight(NamedTuple):
    """The traffic of one partition; an unknown rate is null."""

    partition: int
    bytes_per_s: float | None
    """Bytes as on disk and on the wire."""
    records_per_s: float | None
    bytes_per_record: float | None
    confidence: str
    """Source of bytes_per_record: ``measured``, ``topic``, ``remembered`` or ``none``."""


class ReadWeight(NamedTuple):
    """Bytes per second that the group read of one partition."""

    topic: str
    partition: int
    bytes_per_s: float


class RestoreWeight(NamedTuple):
    """Restore rate of an application's processes for one subtopology, in records per second."""

    subtopology: int
    low: float
    """Tenth percentile of the restores measured."""
    median: float
    high: float
    """Ninetieth percentile."""
    samples: int
    """Number of restores measured."""
    stalled_share: float | None
    """Share of the time without restoring; null where unknown."""


class TopicWeights(NamedTuple):
    """The partitions of one topic."""

    cluster: str
    topic: str
    computed_ms: int
    """Epoch milliseconds of the computation."""
    from_ms: int
    to_ms: int
    """Its looks were taken between these two; its age counts from the later one."""
    partitions: tuple[PartitionWeight, ...]
    part: int = 0

    @property
    def subject(self) -> SubjectId:
        """The topic."""
        return SubjectId("topic", self.topic)


class GroupWeights(NamedTuple):
    """The reads of one group, and the restore rates of an application with state."""

    cluster: str
    group: str
    computed_ms: int
    from_ms: int
    to_ms: int
    reads: tuple[ReadWeight, ...]
    restores: tuple[RestoreWeight, ...]
    part: int = 0

    @property
    def subject(self) -> SubjectId:
        """The group."""
        return SubjectId("group", self.group)


Weights = TopicWeights | GroupWeights


class TopicRates(NamedTuple):
    """Bytes per second of some partitions of a topic."""

    topic: str
    from_ms: int
    to_ms: int
    """Its looks were taken between these two, epoch milliseconds."""
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
    """The reads and restore rates of a group."""

    group: str
    from_ms: int
    to_ms: int
    """Its looks were taken between these two, epoch milliseconds."""
    reads: tuple[ReadRates, ...]
    restores: tuple[RestoreWeight, ...]


class WeightsReading(NamedTuple):
    """The records of the weights topic about this cluster."""

    topic: str
    """Name of the weights topic."""
    topics: tuple[TopicRates, ...] = ()
    """Sorted by topic and part."""
    groups: tuple[GroupRates, ...] = ()
    """Sorted by group and part."""
    missing: str | None = None
    """Why there is none, as one clause; None when there is some, or only records of other clusters."""
    others: int = 0
    """Records about other clusters."""
    unreadable: int = 0
    """Records that could not be read."""
    example: str | None = None
    """The defect of one of them, as one sentence."""


def topic_rates(weights: TopicWeights) -> TopicRates:
    """The known rates, by partition."""
    rows = sorted((row.partition, row.bytes_per_s) for row in weights.partitions if row.bytes_per_s is not None)
    partitions, rates = zip(*rows, strict=True) if rows else ((), ())
    return TopicRates(weights.topic, weights.from_ms, weights.to_ms, partitions, rates)


def group_rates(weights: GroupWeights) -> GroupRates:
    """The reads by topic and the restore rates, sorted."""
    reads = tuple(_columns(topic, rows) for topic, rows in groupby(sorted(weights.reads), key=attrgetter("topic")))
    restores = tuple(sorted(weights.restores, key=attrgetter("subtopology")))  # named twice: other fields may be None
    return GroupRates(weights.group, weights.from_ms, weights.to_ms, reads, restores)


def _columns(topic: str, rows: Iterable[tuple[str, int, float]]) -> ReadRates:
    _, partitions, rates = zip(*rows, strict=True)
    return ReadRates(topic, partitions, rates)


RateColumn = tuple[float | None, ...]
"""Bytes per second of a topic's partitions by number; None where unknown."""


class FigureBasis(StrEnum):
    """The basis of a figure in bytes."""

    WEIGHTS = "weights of the pipeline"
    """Measured by the pipeline over hours; the optimum is the one by bytes."""
    OWN_RATES = "own rates"
    """Measured by the agent within minutes: bytes are known, but the optimum counts partitions."""
    COUNTS = "counts"
    """Partitions alone."""


class FreshWeights(NamedTuple):
    """Fresh weights by name. One object for as long as the same weights are fresh."""

    topics: Mapping[str, RateColumn]
    groups: Mapping[str, Mapping[TopicPartition, float]]
    """Group -> bytes per second that it reads of a partition, where these differ from the partition's own rate."""
    restores: Mapping[str, tuple[RestoreWeight, ...]]
    """Application -> restore rates by subtopology."""
    bytes_per_s: Mapping[TopicPartition, float]
    """The rates of ``topics`` by partition."""


class WeightsState(NamedTuple):
    """Whether weights are fresh enough for a plan."""

    to_ms: int | None
    """Epoch milliseconds of the last look of the newest fresh weights; None when none is fresh."""
    from_ms: int | None
    """Of their first look."""
    why_not: str | None
    """Why none is fresh, as one clause; None when some are."""
    silent: bool
    """True when no weights are published, so that nothing needs a remedy."""
    stale: int
    """Topics and groups whose weights are too old."""
    unreadable: int
    """Number of unreadable records."""
    example: str | None
    """The defect of one of them."""


NOT_WEIGHED = FreshWeights({}, {}, {}, {})

"""What a record of the weights topic says: what a topic's partitions take in, or what a group reads and restores.

Each record stands by itself: it says over which time it was measured, and until when. A subject with more rows than fit
into one record has several, told apart by ``part``.
"""

from __future__ import annotations

from typing import NamedTuple


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

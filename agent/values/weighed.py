"""Weights of the pipeline as the snapshot has them: rates by topic and group, and whether a plan may rest on them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from agent.values.weights import RestoreWeight
from assignors.problem import TopicPartition

Column = tuple[float | None, ...]
"""Bytes per second of a topic's partitions by number; None where unknown."""


class Basis(StrEnum):
    """What a figure in bytes, or the lack of one, rests on."""

    WEIGHTS = "weights of the pipeline"
    """What the pipeline measured over hours; the optimum is the one by bytes."""
    OWN_RATES = "own rates"
    """What the agent itself saw within minutes: bytes are known, but the optimum counts partitions."""
    COUNTS = "counts"
    """Partitions alone."""


class Weighed(NamedTuple):
    """Fresh weights, laid out by name. One object for as long as the same weights are fresh."""

    topics: Mapping[str, Column]
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


NOT_WEIGHED = Weighed({}, {}, {}, {})

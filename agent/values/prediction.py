"""What a group's own assignor would give it, and how far that can be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from agent.values.words import counted
from assignors.problem import TaskId, TopicPartition


class Certainty(StrEnum):
    """How literally a prediction may be taken."""

    EXACT = "exact"
    """Kafka is deterministic here and everything that it looks at is known."""
    COST_EQUAL = "equal cost, not the exact assignment"
    """Balance and cost are Kafka's, but who gets what may differ: a note says why."""


class Basis(StrEnum):
    """Whence it is known which assignor the group uses, and with which settings."""

    READ = "read from the group"
    SET = "set by the user"
    ASSUMED = "Kafka's defaults, assumed"


class NotPredicted(StrEnum):
    """Why nothing is predicted for a group."""

    OTHER_KIND = "the group assigns no partitions to readers"
    HIDDEN = "a rebalance is running, so its members are not shown"
    EMPTY = "the group has no members"
    UNDECODABLE = "member bytes could not be read"
    TOPICS_UNKNOWN = "a topic that it reads could not be described"
    TOPOLOGY_UNKNOWN = "the application's topology is unknown"
    UNKNOWN_ASSIGNOR = "its assignor is not one of Kafka's"
    TOO_LARGE = "it is larger than plan.predict_limit"
    REFUSED = "its assignor would answer with an error"


class Given(NamedTuple):
    """Who gets what. Readers are members of a consumer group, and processes of a Streams application."""

    reads: Mapping[str, tuple[TopicPartition, ...]]
    """Every reader -> the partitions that it reads (of its active tasks), sorted."""
    active: Mapping[str, tuple[TaskId, ...]] = {}
    """Streams: every process -> its active tasks."""
    standby: Mapping[str, tuple[TaskId, ...]] = {}
    """Streams: every process -> its standbys; warm-ups are not among them."""
    warmup: Mapping[str, tuple[TaskId, ...]] = {}
    """Streams: process -> tasks that it warms up until it may run them (KIP-441)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUps:
    """What warm-ups add until they are done (KIP-441). Bytes are None where a size is unknown."""

    at_once: int
    """Additional replicas of tasks at any one time, at most."""
    tasks: int
    """Tasks that warm up somewhere until all have arrived."""
    disk_bytes: int | None
    """Disk that the application's hosts need beyond now, over the whole way."""
    read_bytes: int | None
    """What brokers serve for restoring, over the whole way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the next rebalance of a group gives. ``why_not`` is set, and the rest empty, where it is unknown."""

    group_id: str
    assignor: str | None = None
    """By Kafka's name, such as ``cooperative-sticky``, ``uniform`` or ``HighAvailabilityTaskAssignor``."""
    settings: str = ""
    """With what it runs, as one clause, such as ``rack.aware.assignment.strategy min_traffic, num.standby.replicas 1``;
    empty for assignors without settings."""
    basis: Basis = Basis.READ
    certainty: Certainty = Certainty.EXACT
    first: Given | None = None
    """After the next rebalance alone. Under cooperative-sticky a partition that changes hands has no owner then;
    under HighAvailability tasks stay where their state is."""
    settled: Given | None = None
    """In the end: after the follow-up rebalances, with warm-ups caught up."""
    rebalances: int | None = None
    """Rebalances until then; None where they were not counted because there are many."""
    warmups: WarmUps | None = None
    """None where nothing warms up."""
    why_not: NotPredicted | None = None
    notes: tuple[str, ...] = field(default=())
    """What is assumed, why it is cost-equal only, and what Kafka would warn of: clauses for a reader."""


_TASK = re.compile(r"\btask \d+_\d+(, active on [0-9a-f-]+)?")


def told_once(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes in their order; those that differ only in their tasks are one."""
    alike: dict[str, list[str]] = {}
    for note in notes:
        alike.setdefault(_TASK.sub("task", note), []).append(note)
    return tuple(
        first if not others else f"{first} (the same of {counted(len(others), 'more task')})"
        for first, *others in alike.values()
    )

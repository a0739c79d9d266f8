"""What the threads of one KafkaStreams instance have in common, and what its processes told of their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.values.memory import CopyKey
from assignors.problem import TaskId


class OffsetFacts(NamedTuple):
    """What the processes told of their offsets; not part of the group, because only lags are made of it."""

    sums: Mapping[CopyKey, int]
    """Classic: offset sum at the last join, or one of Kafka's sentinels."""
    broker: Mapping[CopyKey, tuple[int, int]]
    """KIP-1071: (offset, end offset) as the coordinator passes them on."""
    follow_up: bool
    """Classic: True while a follow-up rebalance is due, because revoked tasks are not handed on yet."""


NO_OFFSETS = OffsetFacts({}, {}, follow_up=False)


def agreed_tags(told: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    """The client tags on which all threads of a process agree, sorted."""
    common: set[tuple[str, str]] | None = None
    for tags in told:
        common = set(tags) if common is None else common & set(tags)
    return tuple(sorted(common or ()))


def distinct_tasks(tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
    """Each task once, sorted; subtopologies with numbers come before those with names."""
    return tuple(sorted(set(tasks), key=lambda task: (isinstance(task.subtopology, str), task)))

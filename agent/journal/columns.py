"""Partitions that are to move as columns: the same topic, and the same replica lists, are written once.

A target takes some sixty bytes, whatever its topic is named. Invariants: `targets_of(columns(targets)) == targets`;
foreign columns give targets or `UnreadableError`, in time and memory linear in their length; every number in them that
points into a table is in that table, and every partition has replicas, each on a broker of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agent.values.reassignment import Target
from agent.values.typed_json import UnreadableError, from_json
from assignors.problem import TopicPartition

MOST_NAMED = 4_000_000
"""Replicas that the targets of one value name together; lists are shared, so few bytes could name very many."""
_MOST_ID = 2**31 - 1
"""Of a partition or a broker, as Kafka has them."""

Columns = Mapping[str, Any]


class Table(NamedTuple):
    """Partitions that are to move, as columns of the same length, and the two tables that they point into."""

    topic: tuple[int, ...]
    """Number of its row in ``topics``, from 0."""
    partition: tuple[int, ...]
    before: tuple[int, ...]
    """Number of its row in ``replicas``, from 0."""
    after: tuple[int, ...]
    bytes: tuple[int | None, ...]
    """Size of one replica; null when unknown."""
    bytes_per_s: tuple[float | None, ...]
    """What producers write; null when unknown."""
    gain: tuple[float, ...]
    topics: tuple[tuple[str, str], ...]
    """Name and topic id."""
    replicas: tuple[tuple[int, ...], ...]
    """Brokers in order; the first is the preferred leader."""


def columns(targets: Sequence[Target]) -> Columns:
    """The targets as JSON-ready columns, beside tables of topics and replica lists; the order stays."""
    topics: dict[tuple[str, str], int] = {}
    lists: dict[tuple[int, ...], int] = {}
    return {
        "topic": [topics.setdefault((one.id.topic, one.topic_id), len(topics)) for one in targets],
        "partition": [one.id.partition for one in targets],
        "before": [lists.setdefault(one.before, len(lists)) for one in targets],
        "after": [lists.setdefault(one.after, len(lists)) for one in targets],
        "bytes": [one.bytes for one in targets],
        "bytes_per_s": [one.bytes_per_s for one in targets],
        "gain": [one.gain for one in targets],
        "topics": [list(topic) for topic in topics],
        "replicas": [list(replicas) for replicas in lists],
    }


def targets_of(value: Columns) -> tuple[Target, ...]:
    """The targets. Raises UnreadableError."""
    try:
        return _targets(from_json(Table, value))
    except ValueError as error:
        raise UnreadableError(f"no columns of partitions: {str(error)[:100]}") from error


class Size:
    """Bytes of JSON that targets take as columns, one after the other; never fewer than they take."""

    def __init__(self, each: int = 0) -> None:
        """``each`` are bytes that every one of them takes beside its columns."""
        self.bytes = 0
        self._each = each
        self._seen: set[object] = set()

    def more(self, one: Target) -> int:
        """What that target adds: numbers of tables below a million, and what the tables do not have yet."""
        cost = self._each + 3 * 7 + len(str(one.id.partition)) + 4
        cost += sum(4 if number is None else len(repr(number)) for number in (one.bytes, one.bytes_per_s, one.gain))
        if (topic := (one.id.topic, one.topic_id)) not in self._seen:
            cost += len(json.dumps(topic)) + 2
        for replicas in {one.before, one.after} - self._seen:
            cost += sum(len(str(broker)) + 2 for broker in replicas) + 3
        return cost

    def add(self, one: Target) -> None:
        """Take it in."""
        self.bytes += self.more(one)
        self._seen.update(((one.id.topic, one.topic_id), one.before, one.after))


def runs(targets: Iterable[Target], most_bytes: int, each: int = 0) -> Iterator[list[Target]]:
    """The targets in order, cut into runs of at most so many bytes of JSON; none is empty.

    A single target that has more is a run of its own.
    """
    run: list[Target] = []
    size = Size(each)
    for one in targets:
        if run and size.bytes + size.more(one) > most_bytes:
            yield run
            run, size = [], Size(each)
        run.append(one)
        size.add(one)
    if run:
        yield run


def _targets(table: Table) -> tuple[Target, ...]:
    """The targets of columns that point into their tables. Raises ValueError for all others."""
    cells, (topics, lists) = table[:-2], table[-2:]
    if len(set(map(len, cells))) != 1:
        raise ValueError("they are of different lengths")
    for indexes, rows in ((table.topic, topics), (table.before, lists), (table.after, lists)):
        if indexes and not 0 <= min(indexes) <= max(indexes) < len(rows):
            raise ValueError("a row of a table is missing")
    for ids in (table.partition, *lists):
        if ids and not 0 <= min(ids) <= max(ids) <= _MOST_ID:
            raise ValueError("a partition or broker has no such id")
    if any(len(set(replicas)) != len(replicas) or not replicas for replicas in lists):
        raise ValueError("a partition has no replicas, or two on one broker")
    if sum(len(lists[index]) for column in (table.before, table.after) for index in column) > MOST_NAMED:
        raise ValueError("they name too many replicas")
    return tuple(
        Target(TopicPartition(topics[at][0], partition), topics[at][1], lists[was], lists[will], size, rate, gain)
        for at, partition, was, will, size, rate, gain in zip(*cells, strict=True)
    )

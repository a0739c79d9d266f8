"""Gives rows that are equal to last look's rows back as the same objects, so that later stages reuse by identity.

Invariant: the result is equal to what came in; only which objects it is made of differs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from agent.values.observation import Observation, RawGroup, RawRackTable, RawTopic

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
V = TypeVar("V")


def interned_observation(new: Observation, last: Observation | None) -> Observation:
    """The observation, made of the last look's objects as far as they are equal."""
    if last is None:
        return new
    return replace(
        new,
        brokers=interned(new.brokers, last.brokers, lambda row: row.id),
        topics=interned(new.topics, last.topics, lambda row: row.name, _topic),
        topic_configs=interned_values(new.topic_configs, last.topic_configs),
        broker_configs=interned_values(new.broker_configs, last.broker_configs),
        group_configs=interned_values(new.group_configs, last.group_configs),
        committed_offsets=interned_values(new.committed_offsets, last.committed_offsets),
        end_offsets=interned_values(new.end_offsets, last.end_offsets),
        listed_groups=interned(new.listed_groups, last.listed_groups, lambda row: row.group_id),
        groups=interned(new.groups, last.groups, lambda row: row.group_id, _group),
        reassignments=interned(new.reassignments, last.reassignments, lambda row: row.id),
        replica_bytes=interned_values(new.replica_bytes, last.replica_bytes),
        application_lags=interned(new.application_lags, last.application_lags, lambda row: row[:4]),
        rack_tables=interned(new.rack_tables, last.rack_tables, lambda row: row.locator, _rack_table),
    )


def interned(
    rows: tuple[R, ...],
    last: tuple[R, ...],
    key: Callable[[R], Hashable],
    inner: Callable[[R, R], R] | None = None,
) -> tuple[R, ...]:
    """The rows, each the last look's object where equal; the very tuple of the last look when all are.

    ``inner`` makes a changed row of the last look's unchanged parts.
    """
    before = {key(row): row for row in last}
    same = len(rows) == len(last)
    result: list[R] = []
    for at, row in enumerate(rows):
        old = before.get(key(row))
        if old is None:
            kept = row
        elif old == row:
            kept = old
        else:
            kept = inner(row, old) if inner else row
        same = same and kept is last[at]
        result.append(kept)
    return last if same else tuple(result)


def interned_values(values: Mapping[K, V], last: Mapping[K, V]) -> Mapping[K, V]:
    """The mapping, each value the last look's object where equal; the last look's mapping when all are."""
    result: dict[K, V] = {}
    same = len(values) == len(last)
    for key, value in values.items():
        old = last.get(key)
        kept = old if old is not None and old == value else value
        same = same and kept is old
        result[key] = kept
    return last if same else result


def _rack_table(new: RawRackTable, old: RawRackTable) -> RawRackTable:
    return new._replace(rows=old.rows) if new.rows == old.rows else new


def _topic(new: RawTopic, old: RawTopic) -> RawTopic:
    return new._replace(partitions=interned(new.partitions, old.partitions, lambda row: row.partition))


def _group(new: RawGroup, old: RawGroup) -> RawGroup:
    members: tuple[Any, ...] = interned(new.members, old.members, lambda row: row.member_id)
    return new._replace(members=members)

"""Parts that change seldom and cost much: asked now and then, carried in between, with their age.

Invariant: a carried answer was whole. A config that is missing in it is asked for at every look, and its gap repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from agent.observe.context import Context
from agent.values.kafka import (
    AUTO_CREATE_TOPICS,
    AUTO_LEADER_REBALANCE,
    CLEANUP_POLICY,
    DEFAULT_REPLICATION_FACTOR,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    GROUP_STANDBYS_DEFAULT,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
    MIN_INSYNC_REPLICAS,
    NUM_PARTITIONS,
    OFFSETS_REPLICATION_FACTOR,
    REMOTE_STORAGE,
    REPLICA_SELECTOR,
    STREAMS_INITIAL_DELAY,
    UNCLEAN_ELECTION,
)
from agent.values.observation import Gap, Part
from agent.wire.cluster_calls import LogDirs

TOPIC_KEYS = (
    CLEANUP_POLICY,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    MIN_INSYNC_REPLICAS,
    REMOTE_STORAGE,
    UNCLEAN_ELECTION,
)
BROKER_KEYS = (
    AUTO_CREATE_TOPICS,
    AUTO_LEADER_REBALANCE,
    DEFAULT_REPLICATION_FACTOR,
    FOLLOWER_RATE,
    STREAMS_INITIAL_DELAY,  # which brokers have from 4.2 on
    GROUP_STANDBYS_DEFAULT,
    LEADER_RATE,
    MIN_INSYNC_REPLICAS,
    NUM_PARTITIONS,
    OFFSETS_REPLICATION_FACTOR,
    LOG_DIRS_RATE,
    REPLICA_SELECTOR,
    UNCLEAN_ELECTION,
)

ByName = Mapping[str, Mapping[str, str]]
Fetch = Callable[[tuple[str, ...]], tuple[ByName, tuple[Gap, ...]]]


class Configs(NamedTuple):
    """Configs of a part after this look, by resource name as text."""

    values: ByName
    gaps: tuple[Gap, ...]
    asked_all: bool
    """False when some were carried from an earlier look."""


NO_CONFIGS = Configs({}, (), asked_all=False)
NO_LOG_DIRS = LogDirs({}, frozenset(), ())


def topic_configs(context: Context, topics: Iterable[str]) -> Configs:
    """Configs of the topics."""
    last = context.recall.last
    wire = context.clients.wire
    return _refreshed(
        context,
        Part.TOPIC_CONFIGS,
        topics,
        last.topic_configs if last else {},
        lambda names: wire.describe_topic_configs(names, TOPIC_KEYS, context.timeout_ms),
    )


def broker_configs(context: Context) -> Configs:
    """Configs of the brokers that serve."""
    last = context.recall.last
    wire = context.clients.wire
    return _refreshed(
        context,
        Part.BROKER_CONFIGS,
        map(str, wire.broker_ids),
        {str(broker): values for broker, values in last.broker_configs.items()} if last else {},
        lambda _missing: wire.describe_broker_configs(BROKER_KEYS, context.timeout_ms),
    )


def group_configs(context: Context, groups: Iterable[str]) -> Configs:
    """Configs of KIP-848 and KIP-1071 groups."""
    last = context.recall.last
    wire = context.clients.wire
    return _refreshed(
        context,
        Part.GROUP_CONFIGS,
        groups,
        last.group_configs if last else {},
        lambda names: wire.describe_group_configs(names, context.timeout_ms),
    )


def log_dirs(context: Context) -> tuple[LogDirs, bool]:
    """Sizes on disk and whether they were asked for now; carried only when the last answer was whole."""
    last = context.recall.last
    if last is None or context.recall.is_due(Part.LOG_DIRS, context.now_ms, context.scope.refresh_ms):
        return context.clients.wire.describe_log_dirs(context.timeout_ms), True
    return LogDirs(last.replica_bytes, last.cordoned, ()), False


def _refreshed(context: Context, part: Part, names: Iterable[str], carried: ByName, fetch: Fetch) -> Configs:
    """All names when due, else the carried ones and what is not known yet."""
    wanted = tuple(sorted(names))
    due = context.recall.is_due(part, context.now_ms, context.scope.refresh_ms)
    known = {} if due else {name: carried[name] for name in wanted if name in carried}
    missing = tuple(name for name in wanted if name not in known)
    values, gaps = fetch(missing) if missing else ({}, ())
    return Configs({**known, **values}, gaps, asked_all=due)

"""The first wave: what can be asked at once, knowing no more than who the brokers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from agent.observe.application import ApplicationLags, read_application_lags
from agent.observe.context import Ask, Context, ask_together
from agent.observe.locators.ask import locator_asks, told_tables
from agent.observe.slow import NO_CONFIGS, NO_LOG_DIRS, Configs, broker_configs, log_dirs
from agent.values.observation import (
    Gap,
    Part,
    RawApplicationLag,
    RawListedGroup,
    RawRackTable,
    RawReassignment,
    RawTopic,
)
from agent.wire.cluster_calls import LogDirs, TopicsAnswer
from agent.wire.group_calls import ListedGroups
from assignors.problem import TopicPartition
from config.secrets import without_url_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Topics and groups by name, and what does not depend on them."""

    topics: tuple[RawTopic, ...] | None
    """None when they did not answer or were not asked for."""
    topics_answered_by: int | None
    groups: tuple[RawListedGroup, ...] | None
    """None when they were not asked for; a broker that did not list its groups is a gap."""
    groups_complete: bool
    coordinators: Mapping[str, int]
    reassignments: tuple[RawReassignment, ...]
    log_dirs: LogDirs
    log_dirs_fresh: bool
    broker_configs: Configs
    application_lags: tuple[RawApplicationLag, ...]
    rack_tables: tuple[RawRackTable, ...]
    gaps: tuple[Gap, ...]


def ask_world(context: Context) -> World:
    """Everything of the first wave, side by side; never raises."""
    wire, scope, timeout_ms = context.clients.wire, context.scope, context.timeout_ms
    topics: Ask[TopicsAnswer | None] = Ask(Part.TOPICS, lambda: wire.describe_topics(timeout_ms), None)
    listed: Ask[ListedGroups | None] = Ask(Part.GROUPS, lambda: wire.list_groups(timeout_ms), None)
    moves: Ask[tuple[RawReassignment, ...]] = Ask(Part.REASSIGNMENTS, lambda: wire.list_reassignments(timeout_ms), ())
    disks: Ask[tuple[LogDirs, bool]] = Ask(Part.LOG_DIRS, partial(log_dirs, context), (NO_LOG_DIRS, False))
    configs: Ask[Configs] = Ask(Part.BROKER_CONFIGS, partial(broker_configs, context), NO_CONFIGS)
    lags = [_lags_of(url, context) for url in scope.application_urls]
    locators = locator_asks(context)
    gaps = ask_together(context, (topics, listed, moves, disks, configs, *lags, *locators), name="world")
    tables, gaps = told_tables(context, locators, gaps)
    found = listed.answer
    dirs, fresh = disks.answer
    told = [ask.answer for ask in lags]
    return World(
        topics=tuple(row for row in topics.answer.topics if scope.takes_topic(row.name)) if topics.answer else None,
        topics_answered_by=topics.answer.answered_by if topics.answer else None,
        groups=tuple(row for row in found.groups if scope.takes_group(row.group_id)) if found else None,
        groups_complete=found is not None and len(found.silent) == 0,
        coordinators=found.coordinators if found else {},
        reassignments=tuple(row for row in moves.answer if scope.takes_topic(row.id.topic)),
        log_dirs=LogDirs(_sizes_in_scope(dirs, context), dirs.cordoned, dirs.gaps),
        log_dirs_fresh=fresh,
        broker_configs=configs.answer,
        application_lags=tuple(sorted(lag for one in told for lag in one.lags)),
        rack_tables=tables,
        gaps=(
            *gaps,
            *(found.gaps if found else ()),
            *dirs.gaps,
            *configs.answer.gaps,
            *(gap for one in told for gap in one.gaps),
        ),
    )


def _lags_of(url: str, context: Context) -> Ask[ApplicationLags]:
    question = partial(
        read_application_lags, url, timeout_ms=context.timeout_ms, max_bytes=context.scope.application_max_bytes
    )
    return Ask(Part.APPLICATION_LAGS, question, ApplicationLags((), ()), subject=without_url_secrets(url))


def _sizes_in_scope(dirs: LogDirs, context: Context) -> Mapping[tuple[int, TopicPartition], int]:
    scope = context.scope
    if scope.takes_all_topics:
        return dirs.replica_bytes
    return {key: size for key, size in dirs.replica_bytes.items() if scope.takes_topic(key[1].topic)}

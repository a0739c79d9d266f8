"""One look at the cluster, in three waves of calls side by side, each part with its own deadline and failure.

First topics, groups, broker configs, reassignments, log dirs, application lags; then group members, offsets, other
configs and vanished names; end offsets last, as lag could be negative if committed offsets were read after them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from agent.errors import ClusterUnreachable, RackwiseError, UnsupportedCluster, WrongCluster
from agent.observe.assemble import ObservationAnswers, VanishedNamesByKind, asked_whole, assemble, judge_names
from agent.observe.cluster_details import ask_details, ask_ends
from agent.observe.cluster_listing import ask_listing
from agent.observe.context import ObserveContext, ObserverClients, ObserverState, ObserveScope
from agent.values.clock import Clock
from agent.values.observation import GapCause, Observation, RawGroup, RawRackTable, RawTopic
from agent.wire.cluster_calls import ClusterAnswer
from agent.wire.failure import CallFailed, Deadline
from config.kafka_client import KafkaClientConfig

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
V = TypeVar("V")


def interned_observation(new: Observation, last: Observation | None) -> Observation:
    """The equal observation with the last look's objects for equal rows, so that later stages reuse by identity."""
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
    rows: tuple[R, ...], last: tuple[R, ...], key: Callable[[R], Hashable], inner: Callable[[R, R], R] | None = None
) -> tuple[R, ...]:
    """The rows, each the last look's object where equal; the very tuple of the last look when all are.

    ``inner`` replaces the unchanged parts of a changed row by the last look's objects.
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


def no_answer(failure: CallFailed, timeout_ms: int, passed_ms: float) -> RackwiseError:
    """The error for a cluster that did not report its id in ``passed_ms``; it names a time that has passed."""
    if failure.error is not None:
        return failure.error
    if failure.cause is GapCause.UNSUPPORTED:
        return UnsupportedCluster(
            "The brokers are too old", why=failure.detail, todo="rackwise needs Apache Kafka 3.0 or newer."
        )
    waited = f" within {timeout_ms / 1000:g} s" if round(passed_ms) >= timeout_ms else ""
    return ClusterUnreachable(
        f"No broker answered{waited}", why=failure.detail, todo="Check bootstrap.servers and that the brokers run."
    )


def wrong_cluster(actual: str, expected: str) -> WrongCluster:
    """The error for a cluster with another id than expected."""
    return WrongCluster(
        f"The brokers belong to cluster {actual}",
        why=f"cluster {expected} is expected",
        todo="Check bootstrap.servers, or cluster.id.",
    )


def reach_cluster(config: KafkaClientConfig, timeout_ms: int, *, expected_cluster: str | None = None) -> str:
    """The cluster id, before librdkafka is used, which would retry without a cause. Raises as `observe`."""
    with ObserverClients.open(config) as clients:
        cluster_id = first_answer(clients, timeout_ms).cluster_id
    if expected_cluster is not None and cluster_id != expected_cluster:
        raise wrong_cluster(cluster_id, expected_cluster)
    return cluster_id


def first_answer(clients: ObserverClients, timeout_ms: int) -> ClusterAnswer:
    """The first answer of a cluster. Raises as `observe` when no broker answers."""
    began = time.monotonic()
    try:
        return clients.wire.describe_brokers(timeout_ms)
    except CallFailed as failure:
        raise no_answer(failure, timeout_ms, (time.monotonic() - began) * 1000) from failure


def observe(
    clients: ObserverClients, clock: Clock, scope: ObserveScope | None = None, recall: ObserverState | None = None
) -> Observation:
    """The observation of one look, with a gap for each missing answer.

    ``recall`` is the state of the last look, and is updated; without one no answer is carried and no name doubted.
    Raises ClusterUnreachable, NoBrokersYet, AuthenticationFailed, TlsFailed or UnsupportedCluster when no broker
    answered, and WrongCluster when the cluster id is not the expected one, or that of the last look.
    """
    scope = scope or ObserveScope()
    recall = recall or ObserverState()
    began, deadline = clock(), Deadline.after_ms(scope.deadline_ms)
    cluster = _expected_cluster(clients, scope, recall)
    context = ObserveContext(
        clients=clients, scope=scope, recall=recall, began=began, cluster=cluster, deadline=deadline
    )
    listing = ask_listing(context)
    details = ask_details(context, listing)
    answers = ObservationAnswers(listing, details, ask_ends(context, listing))
    judged = judge_names(context, answers)
    observation = interned_observation(assemble(context, answers, judged), recall.last)
    observation = replace(observation, took_ms=clock().monotonic_ms - began.monotonic_ms)
    _remember(context, observation, answers, judged)
    return observation


def _expected_cluster(clients: ObserverClients, scope: ObserveScope, recall: ObserverState) -> ClusterAnswer:
    cluster = first_answer(clients, scope.call_timeout_ms)
    last_id = recall.last.cluster_id if recall.last else None
    expected = scope.expected_cluster_id or last_id or cluster.cluster_id
    if cluster.cluster_id != expected:
        raise wrong_cluster(cluster.cluster_id, expected)
    return cluster


def _remember(
    context: ObserveContext, observation: Observation, answers: ObservationAnswers, judged: VanishedNamesByKind
) -> None:
    """Update the state for the next look. A part that did not answer keeps its known names."""
    recall = context.recall
    recall.last = observation
    if answers.listing.topics is not None:
        recall.known_topics = frozenset(topic.name for topic in observation.topics) | judged.topics.hidden
    if answers.listing.groups is not None:
        recall.known_groups = frozenset(group.group_id for group in observation.listed_groups) | judged.groups.hidden
    for part in asked_whole(answers):
        recall.taken_ms[part] = context.now_ms

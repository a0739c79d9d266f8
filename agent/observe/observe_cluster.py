"""One look at the cluster, in three waves of calls side by side, each part with its own deadline and failure.

First topics, groups, broker configs, reassignments, log dirs, application lags; then group members, offsets, other
configs and vanished names; end offsets last, as lag could be negative if committed offsets were read after them.
The observation of their answers has rights, vanished names, ages and gaps.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from agent.errors import ClusterUnreachable, RackwiseError, UnsupportedCluster, WrongCluster
from agent.observe.cluster_details import (
    ClusterDetails,
    NameVisibility,
    VanishedNames,
    ask_details,
    ask_ends,
    names_on_disk,
    vanished_names,
)
from agent.observe.cluster_listing import ClusterListing, ask_listing
from agent.observe.context import ObserveContext, ObserverClients, ObserverState, ObserveScope
from agent.values.clock import Clock
from agent.values.observation import (
    Gap,
    GapCause,
    Observation,
    ObservationPart,
    PrincipalRights,
    RawGroup,
    RawRackTable,
    RawTopic,
)
from agent.wire.client import EndOffsets
from agent.wire.cluster_calls import ClusterAnswer
from agent.wire.failure import CallFailed, Deadline
from config.kafka_client import KafkaClientConfig

_NOTHING_JUDGED = VanishedNames(frozenset(), frozenset(), ())


class ObservationAnswers(NamedTuple):
    """The answers of all three waves."""

    listing: ClusterListing
    details: ClusterDetails
    ends: EndOffsets


class VanishedNamesByKind(NamedTuple):
    """The judgement on topics and groups that are no longer shown."""

    topics: VanishedNames
    groups: VanishedNames


def judge_names(context: ObserveContext, answers: ObservationAnswers) -> VanishedNamesByKind:
    """Topics and groups that are gone or hidden; those of a part that did not answer stay known."""
    return VanishedNamesByKind(_judge_topics(context, answers), _judge_groups(context, answers))


def assemble(context: ObserveContext, answers: ObservationAnswers, judged: VanishedNamesByKind) -> Observation:
    """The observation; ``took_ms`` is left to the caller."""
    listing, details, ends = answers
    rights = _rights(context, judged)
    return Observation(
        cluster_id=context.cluster.cluster_id,
        controller=context.cluster.controller,
        brokers=context.cluster.brokers,
        topics=listing.topics or (),
        topic_configs=details.topic_configs.values,
        broker_configs={int(broker): values for broker, values in listing.broker_configs.values.items()},
        group_configs=details.group_configs.values,
        committed_offsets=details.committed,
        end_offsets=ends.offsets,
        listed_groups=listing.groups or (),
        groups=details.groups,
        reassignments=listing.reassignments,
        replica_bytes=listing.log_dirs.replica_bytes,
        cordoned=listing.log_dirs.cordoned,
        application_lags=listing.application_lags,
        rack_tables=listing.rack_tables,
        rights=rights,
        vanished_topics=tuple(sorted(judged.topics.gone)),
        vanished_groups=tuple(sorted(judged.groups.gone)),
        ages_ms=_ages(context, answers),
        gaps=folded((*_all_gaps(answers, judged), *_rights_gaps(listing, rights))),
        taken_ms=context.began.wall_ms,
        monotonic_ms=context.began.monotonic_ms,
        took_ms=0,
    )


def asked_whole(answers: ObservationAnswers) -> tuple[ObservationPart, ...]:
    """Slow parts that were requested as a whole in this look and answered."""
    listing, details, _ = answers
    fresh = {
        ObservationPart.LOG_DIRS: listing.log_dirs_fresh and not listing.log_dirs.gaps,
        ObservationPart.BROKER_CONFIGS: listing.broker_configs.asked_all,
        ObservationPart.TOPIC_CONFIGS: details.topic_configs.asked_all,
        ObservationPart.GROUP_CONFIGS: details.group_configs.asked_all,
    }
    return tuple(part for part, whole in fresh.items() if whole)


def _judge_topics(context: ObserveContext, answers: ObservationAnswers) -> VanishedNames:
    listing, details, _ = answers
    if listing.topics is None:
        return _NOTHING_JUDGED
    shown = frozenset(topic.name for topic in listing.topics)
    # A topic that only log dirs have may be new or just deleted; it counts only where a broker denies DESCRIBE.
    visible = details.topic_visibility
    disk = frozenset(name for name in names_on_disk(listing) if visible.get(name) is NameVisibility.HIDDEN)
    known = context.recall.known_topics | disk
    share = context.scope.shrink_share
    return vanished_names(ObservationPart.TOPICS, known, shown, visible, complete=True, shrink_share=share)


def _judge_groups(context: ObserveContext, answers: ObservationAnswers) -> VanishedNames:
    listing, details, _ = answers
    if listing.groups is None:
        return _NOTHING_JUDGED
    shown = frozenset(group.group_id for group in listing.groups)
    return vanished_names(
        ObservationPart.GROUPS,
        context.recall.known_groups,
        shown,
        details.group_visibility,
        complete=listing.groups_complete,
        shrink_share=context.scope.shrink_share,
    )


def _rights(context: ObserveContext, judged: VanishedNamesByKind) -> PrincipalRights:
    """Rights with hidden counts: a count of zero needs DESCRIBE on the cluster, else it is unknown."""
    operations = context.cluster.operations
    none_hidden = 0 if operations is not None and _DESCRIBE in operations else None
    return rights_of(
        operations,
        topics_hidden=len(judged.topics.hidden) or none_hidden,
        groups_hidden=len(judged.groups.hidden) or none_hidden,
    )


def _ages(context: ObserveContext, answers: ObservationAnswers) -> Mapping[ObservationPart, int]:
    listing, details, _ = answers
    fresh = asked_whole(answers)
    ages = {part: context.recall.age_ms(part, context.now_ms) for part in context.scope.refresh_ms if part not in fresh}
    carried = {
        ObservationPart.LOG_DIRS: not listing.log_dirs_fresh and bool(listing.log_dirs.replica_bytes),
        ObservationPart.BROKER_CONFIGS: bool(listing.broker_configs.values),
        ObservationPart.TOPIC_CONFIGS: bool(details.topic_configs.values),
        ObservationPart.GROUP_CONFIGS: bool(details.group_configs.values),
    }
    return {part: age for part, age in ages.items() if age is not None and carried.get(part, False)}


def _all_gaps(answers: ObservationAnswers, judged: VanishedNamesByKind) -> tuple[Gap, ...]:
    listing, details, ends = answers
    return (*listing.gaps, *details.gaps, *ends.gaps, *judged.topics.gaps, *judged.groups.gaps)


def _rights_gaps(listing: ClusterListing, rights: PrincipalRights) -> tuple[Gap, ...]:
    # An empty list while a broker does not answer is no evidence about rights.
    unclear = listing.groups is None or (not listing.groups and not listing.groups_complete)
    return rights_gaps(
        rights,
        topics_shown=None if listing.topics is None else len(listing.topics),
        groups_shown=None if unclear else len(listing.groups or ()),
    )


MOST_OF_A_KIND = 100
_NAMED = 3


def folded(gaps: Iterable[Gap], *, most: int = MOST_OF_A_KIND) -> tuple[Gap, ...]:
    """Gaps sorted, each once; more than ``most`` named ones of a part and cause become one with their number.

    A broker's is none of these: it hides names that are not known.
    """
    by_kind: dict[tuple[ObservationPart, GapCause], list[Gap]] = defaultdict(list)
    for gap in sorted(set(gaps)):
        by_kind[gap.part, gap.cause].append(gap)
    result: list[Gap] = []
    for (part, cause), same in by_kind.items():
        named = [gap for gap in same if gap.name]
        others = [gap for gap in same if not gap.name]
        result += others + (named if len(named) <= most else [_counted(part, cause, named)])
    return tuple(sorted(result))


def _counted(part: ObservationPart, cause: GapCause, same: list[Gap]) -> Gap:
    names = ", ".join(gap.subject for gap in same[:_NAMED])
    # The empty subject would mean the whole part.
    return Gap.of_several(part, cause, f"{len(same)} of them", f"among them {names}: {same[0].detail}")


# Kafka's AclOperation codes. A list that is empty or may be cut short for want of a right always has a gap.
_ALTER = 7
_DESCRIBE = 8
_DESCRIBE_CONFIGS = 10


def rights_of(
    operations: frozenset[int] | None, *, topics_hidden: int | None, groups_hidden: int | None
) -> PrincipalRights:
    """Rights on the cluster by the broker's operation codes; None where it does not report them."""
    if operations is None:
        return PrincipalRights(topics_hidden=topics_hidden, groups_hidden=groups_hidden)
    return PrincipalRights(
        cluster_describe=_DESCRIBE in operations,
        cluster_describe_configs=_DESCRIBE_CONFIGS in operations,
        cluster_alter=_ALTER in operations,
        topics_hidden=topics_hidden,
        groups_hidden=groups_hidden,
    )


def rights_gaps(rights: PrincipalRights, *, topics_shown: int | None, groups_shown: int | None) -> tuple[Gap, ...]:
    """Gaps for want of rights; a count is None when that part did not answer (it has its own gap)."""
    gaps: list[Gap] = []
    if rights.cluster_describe is None:
        detail = "the broker does not report rackwise's authorized operations"
        gaps.append(Gap(ObservationPart.RIGHTS, GapCause.UNSUPPORTED, "", detail))
    if groups_shown is not None and not rights.cluster_describe:
        gaps.append(_groups_gap(groups_shown))
    if topics_shown == 0 and not rights.cluster_describe:
        detail = "no topic is listed; without DESCRIBE on topics a broker lists none, and returns no error"
        gaps.append(Gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED, "", detail))
    return tuple(gaps)


def _groups_gap(shown: int) -> Gap:
    if shown == 0:
        detail = (
            "no group is listed; without DESCRIBE on the cluster or on groups a broker lists none, and returns no error"
        )
        return Gap(ObservationPart.GROUPS, GapCause.NOT_ALLOWED, "", detail)
    detail = "only groups with DESCRIBE are listed; grant DESCRIBE on the cluster to see all"
    return Gap(ObservationPart.RIGHTS, GapCause.NOT_ALLOWED, "groups", detail)


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

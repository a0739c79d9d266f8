"""Second wave of a look: groups described, committed offsets, configs, vanished names by name; then end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from agent.observe.cluster_listing import ClusterListing
from agent.observe.context import (
    NO_CONFIGS,
    CachedConfigs,
    ObserveContext,
    ObserveQuery,
    ask_together,
    group_configs,
    topic_configs,
)
from agent.values.kafka import (
    CLASSIC_GROUP,
    CONSUMER_PROTOCOL_TYPE,
    SHARE_GROUP,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from agent.values.number_format import few
from agent.values.observation import Gap, GapCause, GapScope, ObservationPart, RawGroup, RawListedGroup, RawTopic
from agent.wire.client import CommittedOffsets, EndOffsets, WireClient
from agent.wire.failure import CallFailed
from agent.wire.group_calls import DESCRIBE_CALLS, EPOCH_GROUP_CALLS, DescribedGroups
from assignors.problem import TopicPartition

# Brokers without rights answer as if there were nothing, and a lagging broker answers with old metadata. So known names
# that are no longer shown are described *by name*, where a broker must answer "no such topic" or "not allowed". A name
# stays known until a broker reports it as gone, or it vanished alone and from a complete answer.

_NAMED = 3


class NameVisibility(Enum):
    """A broker's answer about a name."""

    GONE = auto()
    """It does not exist."""
    HIDDEN = auto()
    """DESCRIBE is denied: it may exist."""
    THERE = auto()
    """It exists: the list was incomplete."""


class VanishedNames(NamedTuple):
    """The judgement on names that are no longer shown."""

    gone: frozenset[str]
    """Reported as gone by a broker."""
    hidden: frozenset[str]
    """Still known, not shown: remembered for the next look and counted in the rights."""
    gaps: tuple[Gap, ...]


def names_to_ask(known: frozenset[str], shown: frozenset[str], most: int) -> tuple[str, ...]:
    """Names to describe one by one, sorted; at most ``most``, so that a lost right does not cause a storm."""
    return tuple(sorted(known - shown)[:most])


def vanished_names(
    part: ObservationPart,
    known: frozenset[str],
    shown: frozenset[str],
    words: Mapping[str, NameVisibility],
    *,
    complete: bool,
    shrink_share: float,
) -> VanishedNames:
    """The known names that are not shown, as gone or hidden.

    A name without an answer in ``words`` counts as gone only when the list was complete and no more than
    ``shrink_share`` of all known names vanished without an answer.
    """
    missing = known - shown
    gone, hidden, there = (
        frozenset(name for name in missing if words.get(name) is word)
        for word in (NameVisibility.GONE, NameVisibility.HIDDEN, NameVisibility.THERE)
    )
    silent = missing - gone - hidden - there
    shrunk = len(silent) > shrink_share * len(known)
    kept_silent = silent if shrunk or not complete else frozenset()
    gaps: list[Gap] = []
    if hidden:
        detail = f"{_are(part, hidden)} no longer visible: DESCRIBE is denied; grant DESCRIBE on {part}"
        gaps.append(_names_gap(part, GapCause.NOT_ALLOWED, hidden, detail))
    if there:
        detail = f"{_are(part, there)} still there, but missing from the list of all {part}"
        gaps.append(_names_gap(part, GapCause.DOUBTED, there, detail))
    if shrunk:
        detail = f"{_are(part, silent)} no longer listed, and it is unknown whether they were deleted"
        gaps.append(_names_gap(part, GapCause.DOUBTED, silent, detail))
    return VanishedNames(gone, hidden | there | kept_silent, tuple(gaps))


def _names_gap(part: ObservationPart, cause: GapCause, names: frozenset[str], detail: str) -> Gap:
    """The subject is never empty, which would mean the whole part."""
    if len(names) == 1:
        return Gap(part, cause, next(iter(names)), detail)
    return Gap.of_several(part, cause, f"{len(names)} {part}", detail)


def _are(part: ObservationPart, names: frozenset[str]) -> str:
    first = sorted(names)
    if len(first) == 1:
        return f"{first[0]} is"
    return f"{len(first)} {part} ({few(first, _NAMED)}) are"


_NOT_CLASSIC = "not a classic"
"""In a coordinator's message for a group of another type."""


def ask_about_topics(
    wire: WireClient, names: Sequence[str], timeout_ms: int, *, answered_by: int | None
) -> Mapping[str, NameVisibility]:
    """The answer about each topic of another broker than ``answered_by``; absent where no other answered.

    A lagging broker leaves a topic out, and does not know it by name either.
    """
    alone = len(wire.broker_ids) <= 1
    if not names or (answered_by is None and not alone):
        return {}
    try:
        answer = wire.describe_topics(timeout_ms, names=names, avoid=None if alone else answered_by)
    except CallFailed:
        return {}
    if answer.answered_by == answered_by and not alone:
        return {}
    words = {
        None: NameVisibility.THERE,
        UNKNOWN_TOPIC_OR_PARTITION: NameVisibility.GONE,
        TOPIC_AUTHORIZATION_FAILED: NameVisibility.HIDDEN,
    }
    return {topic.name: words[topic.error] for topic in answer.topics if topic.error in words}


def ask_about_groups(
    wire: WireClient, names: Sequence[str], timeout_ms: int, *, listed: Iterable[RawListedGroup]
) -> Mapping[str, NameVisibility]:
    """The answer of each group's coordinator; ``listed`` has the last known types of groups."""
    types = {row.group_id: row.group_type or CLASSIC_GROUP for row in listed}
    by_type: dict[str, list[str]] = {}
    for name in names:
        by_type.setdefault(types.get(name, CLASSIC_GROUP), []).append(name)
    words: dict[str, NameVisibility] = {}
    for group_type, some in by_type.items():
        words |= _ask_about_type(wire, group_type, some, timeout_ms)
    return words


def _ask_about_type(wire: WireClient, group_type: str, names: list[str], timeout_ms: int) -> dict[str, NameVisibility]:
    described_as = group_type if group_type in DESCRIBE_CALLS else CLASSIC_GROUP
    described = wire.describe_groups(names, timeout_ms, group_type=described_as)
    words = {group.group_id: NameVisibility.THERE for group in described.groups}
    for gap in described.gaps:
        if gap.cause is GapCause.VANISHED:
            words[gap.subject] = NameVisibility.THERE if _NOT_CLASSIC in gap.detail else NameVisibility.GONE
        elif gap.cause is GapCause.NOT_ALLOWED:
            words[gap.subject] = NameVisibility.HIDDEN
    return words


_COMMITTING_PROTOCOLS = (CONSUMER_PROTOCOL_TYPE, "")
"""Protocol types of classic groups that commit offsets; the empty one is a group that only commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDetails:
    """Groups described, their offsets, configs, and answers about names that are no longer shown."""

    groups: tuple[RawGroup, ...]
    committed: Mapping[str, Mapping[TopicPartition, int]]
    topic_configs: CachedConfigs
    group_configs: CachedConfigs
    topic_visibility: Mapping[str, NameVisibility]
    group_visibility: Mapping[str, NameVisibility]
    gaps: tuple[Gap, ...]


def ask_details(context: ObserveContext, listing: ClusterListing) -> ClusterDetails:
    """Everything of the second wave, side by side; never raises."""
    wire, timeout_ms, places = context.clients.wire, context.timeout_ms, listing.coordinators
    groups = listing.groups or ()
    names = {kind: [row.group_id for row in groups if _type_of(row) == kind] for kind in DESCRIBE_CALLS}
    described = _ask_members(context, listing, names)
    committed: ObserveQuery[CommittedOffsets] = ObserveQuery(
        ObservationPart.COMMITTED_OFFSETS,
        lambda: wire.fetch_committed(_committing(groups), timeout_ms, coordinators=places),
        CommittedOffsets({}, ()),
    )
    shared: ObserveQuery[CommittedOffsets] = ObserveQuery(
        ObservationPart.COMMITTED_OFFSETS,
        lambda: wire.fetch_committed(_sharing(groups), timeout_ms, coordinators=places, are_shared=True),
        CommittedOffsets({}, ()),
        subject="share groups",
        scope=GapScope.SEVERAL,
    )
    configs: ObserveQuery[CachedConfigs] = ObserveQuery(
        ObservationPart.TOPIC_CONFIGS, partial(topic_configs, context, _present(listing.topics)), NO_CONFIGS
    )
    newer = list(chain.from_iterable(names[kind] for kind in EPOCH_GROUP_CALLS))
    own_configs: ObserveQuery[CachedConfigs] = ObserveQuery(
        ObservationPart.GROUP_CONFIGS, partial(group_configs, context, newer), NO_CONFIGS
    )
    topic_visibility: ObserveQuery[Mapping[str, NameVisibility]] = ObserveQuery(
        ObservationPart.TOPICS, partial(_words_on_topics, context, listing), {}
    )
    group_visibility: ObserveQuery[Mapping[str, NameVisibility]] = ObserveQuery(
        ObservationPart.GROUPS, partial(_words_on_groups, context, listing), {}
    )
    by_topics = (configs, topic_visibility) if listing.topics is not None else ()
    offsets = (committed, shared) if _sharing(groups) else (committed,)
    asked_by_name: tuple[ObserveQuery[Any], ...] = (*described, *offsets, own_configs, group_visibility)
    by_groups = asked_by_name if listing.groups is not None else ()
    gaps = ask_together(context, (*by_topics, *by_groups), name="insides")
    with_gaps: list[ObserveQuery[Any]] = [*described, *offsets, configs, own_configs]
    return ClusterDetails(
        groups=tuple(chain.from_iterable(ask.answer.groups for ask in described)),
        committed={group: held for query in offsets for group, held in query.answer.offsets.items()},
        topic_configs=configs.answer,
        group_configs=own_configs.answer,
        topic_visibility=topic_visibility.answer,
        group_visibility=group_visibility.answer,
        gaps=(
            *gaps,
            *chain.from_iterable(ask.answer.gaps for ask in with_gaps),
            *_without_names(context, listing),
        ),
    )


def _without_names(context: ObserveContext, listing: ClusterListing) -> Iterator[Gap]:
    """A gap for each part that cannot be asked for, as the names it needs are not known."""
    if listing.topics is None:
        yield from _unanswerable(context, "topics", ObservationPart.TOPIC_CONFIGS)
    if listing.groups is None:
        yield from _unanswerable(context, "groups", ObservationPart.COMMITTED_OFFSETS, ObservationPart.GROUP_CONFIGS)


def _ask_members(
    context: ObserveContext, listing: ClusterListing, names: Mapping[str, Sequence[str]]
) -> tuple[ObserveQuery[DescribedGroups], ...]:
    """One question for each group type, about the groups of these names."""
    return tuple(
        ObserveQuery(
            ObservationPart.GROUPS,
            partial(
                context.clients.wire.describe_groups,
                some,
                context.timeout_ms,
                group_type=kind,
                coordinators=listing.coordinators,
            ),
            DescribedGroups((), ()),
            subject=f"members of {DESCRIBE_CALLS[kind].title}",
            scope=GapScope.SEVERAL,
        )
        for kind, some in names.items()
    )


def ask_ends(context: ObserveContext, listing: ClusterListing) -> EndOffsets:
    """End offsets of every partition that has a leader; never raises."""
    if not context.wants(ObservationPart.END_OFFSETS) or listing.topics is None:
        return EndOffsets({}, _unanswerable(context, "topics", ObservationPart.END_OFFSETS))
    leaders = {
        TopicPartition(topic.name, row.partition): row.leader
        for topic in listing.topics
        for row in topic.partitions
        if row.leader is not None
    }
    wire, timeout_ms = context.clients.wire, context.timeout_ms
    ends = ObserveQuery(
        ObservationPart.END_OFFSETS, lambda: wire.list_end_offsets(leaders, timeout_ms), EndOffsets({}, ())
    )
    gaps = ask_together(context, (ends,), name="ends")
    return EndOffsets(ends.answer.offsets, (*gaps, *ends.answer.gaps))


def names_on_disk(listing: ClusterListing) -> frozenset[str]:
    """Topics that the log dirs hold, when they were asked in this look."""
    return frozenset(tp.topic for _, tp in listing.log_dirs.replica_bytes) if listing.log_dirs_fresh else frozenset()


def _committing(groups: Iterable[RawListedGroup]) -> list[str]:
    return [
        row.group_id
        for row in groups
        if _type_of(row) in EPOCH_GROUP_CALLS
        or (_type_of(row) == CLASSIC_GROUP and row.protocol_type in _COMMITTING_PROTOCOLS)
    ]


def _sharing(groups: Iterable[RawListedGroup]) -> list[str]:
    return [row.group_id for row in groups if row.group_type == SHARE_GROUP]


def _type_of(row: RawListedGroup) -> str:
    """A broker that reports no types has classic groups alone, or describes no others."""
    return CLASSIC_GROUP if row.group_type is None else row.group_type


def _present(topics: Iterable[RawTopic] | None) -> list[str]:
    return [topic.name for topic in topics or () if topic.error is None]


def _words_on_topics(context: ObserveContext, listing: ClusterListing) -> Mapping[str, NameVisibility]:
    known = context.recall.known_topics | names_on_disk(listing)
    names = names_to_ask(known, frozenset(topic.name for topic in listing.topics or ()), context.scope.names_asked)
    return ask_about_topics(context.clients.wire, names, context.timeout_ms, answered_by=listing.topics_answered_by)


def _words_on_groups(context: ObserveContext, listing: ClusterListing) -> Mapping[str, NameVisibility]:
    shown = frozenset(group.group_id for group in listing.groups or ())
    names = names_to_ask(context.recall.known_groups, shown, context.scope.names_asked)
    listed = context.recall.last.listed_groups if context.recall.last else ()
    return ask_about_groups(context.clients.wire, names, context.timeout_ms, listed=listed)


def _unanswerable(context: ObserveContext, what: str, *parts: ObservationPart) -> tuple[Gap, ...]:
    """Gaps of parts that could not be requested, as the list of their topics or groups did not answer."""
    wanted = (
        Gap(part, GapCause.ERROR, "", f"the list of {what} is unknown in this look")
        for part in parts
        if context.wants(part)
    )
    return (*wanted, *(gap for part in parts for gap in context.not_asked(part)))

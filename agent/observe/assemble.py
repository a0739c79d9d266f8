"""Assembles the observation of one look: rights, vanished names, ages and gaps of its answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.observe.cluster_details import ClusterDetails, NameVisibility, VanishedNames, names_on_disk, vanished_names
from agent.observe.cluster_listing import ClusterListing
from agent.observe.context import ObserveContext
from agent.values.observation import Gap, GapCause, Observation, ObservationPart, PrincipalRights
from agent.wire.offset_calls import EndOffsets

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
    """Gaps sorted, each once; more than ``most`` of one part and cause become one with their number."""
    by_kind: dict[tuple[ObservationPart, GapCause], list[Gap]] = defaultdict(list)
    for gap in sorted(set(gaps)):
        by_kind[gap.part, gap.cause].append(gap)
    result: list[Gap] = []
    for (part, cause), same in by_kind.items():
        whole = [gap for gap in same if not gap.subject]
        single = [gap for gap in same if gap.subject]
        result += whole + (single if len(single) <= most else [_counted(part, cause, single)])
    return tuple(sorted(result))


def _counted(part: ObservationPart, cause: GapCause, same: list[Gap]) -> Gap:
    names = ", ".join(gap.subject for gap in same[:_NAMED])
    # The empty subject would mean the whole part.
    return Gap(part, cause, f"{len(same)} of them", f"among them {names}: {same[0].detail}")


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

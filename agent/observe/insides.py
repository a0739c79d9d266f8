"""The second wave: what the names of topics and groups lead to; then the end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from agent.observe.context import Ask, Context, ask_together
from agent.observe.doubt import Word, ask_about_groups, ask_about_topics, to_ask
from agent.observe.slow import NO_CONFIGS, Configs, group_configs, topic_configs
from agent.observe.world import World
from agent.values.kafka import CLASSIC_GROUP, CONSUMER_PROTOCOL_TYPE
from agent.values.observation import Gap, GapCause, Part, RawGroup, RawListedGroup, RawTopic
from agent.wire.epoch_group_calls import EPOCH_GROUP_CALLS
from agent.wire.group_calls import DESCRIBE_CALLS, DescribedGroups
from agent.wire.offset_calls import CommittedOffsets, EndOffsets
from assignors.problem import TopicPartition

_COMMITTING_PROTOCOLS = (CONSUMER_PROTOCOL_TYPE, "")
"""Protocol types of classic groups that commit offsets; the empty one is a group that only commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insides:
    """Groups described, their offsets, configs, and what was said about names that are no longer shown."""

    groups: tuple[RawGroup, ...]
    committed: Mapping[str, Mapping[TopicPartition, int]]
    topic_configs: Configs
    group_configs: Configs
    topic_words: Mapping[str, Word]
    group_words: Mapping[str, Word]
    gaps: tuple[Gap, ...]


def ask_insides(context: Context, world: World) -> Insides:
    """Everything of the second wave, side by side; never raises."""
    wire, timeout_ms, places = context.clients.wire, context.timeout_ms, world.coordinators
    groups = world.groups or ()
    names = {kind: [row.group_id for row in groups if _type_of(row) == kind] for kind in DESCRIBE_CALLS}
    described = _ask_members(context, world, names)
    committed: Ask[CommittedOffsets] = Ask(
        Part.COMMITTED_OFFSETS,
        lambda: wire.fetch_committed(_committing(groups), timeout_ms, coordinators=places),
        CommittedOffsets({}, ()),
    )
    configs: Ask[Configs] = Ask(Part.TOPIC_CONFIGS, partial(topic_configs, context, _present(world.topics)), NO_CONFIGS)
    newer = list(chain.from_iterable(names[kind] for kind in EPOCH_GROUP_CALLS))
    own_configs: Ask[Configs] = Ask(Part.GROUP_CONFIGS, partial(group_configs, context, newer), NO_CONFIGS)
    topic_words: Ask[Mapping[str, Word]] = Ask(Part.TOPICS, partial(_words_on_topics, context, world), {})
    group_words: Ask[Mapping[str, Word]] = Ask(Part.GROUPS, partial(_words_on_groups, context, world), {})
    by_topics = (configs, topic_words) if world.topics is not None else ()
    asked_by_name: tuple[Ask[Any], ...] = (*described, committed, own_configs, group_words)
    by_groups = asked_by_name if world.groups is not None else ()
    gaps = ask_together(context, (*by_topics, *by_groups), name="insides")
    with_gaps: list[Ask[Any]] = [*described, committed, configs, own_configs]
    return Insides(
        groups=tuple(chain.from_iterable(ask.answer.groups for ask in described)),
        committed=committed.answer.offsets,
        topic_configs=configs.answer,
        group_configs=own_configs.answer,
        topic_words=topic_words.answer,
        group_words=group_words.answer,
        gaps=(
            *gaps,
            *chain.from_iterable(ask.answer.gaps for ask in with_gaps),
            *(_unanswerable(context, "topics", Part.TOPIC_CONFIGS) if world.topics is None else ()),
            *(
                _unanswerable(context, "groups", Part.COMMITTED_OFFSETS, Part.GROUP_CONFIGS)
                if world.groups is None
                else ()
            ),
        ),
    )


def _ask_members(
    context: Context, world: World, names: Mapping[str, Sequence[str]]
) -> tuple[Ask[DescribedGroups], ...]:
    """One question for each group type, about the groups of these names."""
    return tuple(
        Ask(
            Part.GROUPS,
            partial(
                context.clients.wire.describe_groups,
                some,
                context.timeout_ms,
                group_type=kind,
                coordinators=world.coordinators,
            ),
            DescribedGroups((), ()),
            subject=f"members of {DESCRIBE_CALLS[kind].title}",
        )
        for kind, some in names.items()
    )


def ask_ends(context: Context, world: World) -> EndOffsets:
    """End offsets of every partition that has a leader; never raises."""
    if not context.wants(Part.END_OFFSETS) or world.topics is None:
        return EndOffsets({}, _unanswerable(context, "topics", Part.END_OFFSETS))
    leaders = {
        TopicPartition(topic.name, row.partition): row.leader
        for topic in world.topics
        for row in topic.partitions
        if row.leader is not None
    }
    wire, timeout_ms = context.clients.wire, context.timeout_ms
    ends = Ask(Part.END_OFFSETS, lambda: wire.list_end_offsets(leaders, timeout_ms), EndOffsets({}, ()))
    gaps = ask_together(context, (ends,), name="ends")
    return EndOffsets(ends.answer.offsets, (*gaps, *ends.answer.gaps))


def names_on_disk(world: World) -> frozenset[str]:
    """Topics that the log dirs hold, when they were asked in this look."""
    return frozenset(tp.topic for _, tp in world.log_dirs.replica_bytes) if world.log_dirs_fresh else frozenset()


def _committing(groups: Iterable[RawListedGroup]) -> list[str]:
    return [
        row.group_id
        for row in groups
        if _type_of(row) in EPOCH_GROUP_CALLS
        or (_type_of(row) == CLASSIC_GROUP and row.protocol_type in _COMMITTING_PROTOCOLS)
    ]


def _type_of(row: RawListedGroup) -> str:
    """A broker that reports no types has classic groups alone, or describes no others."""
    return CLASSIC_GROUP if row.group_type is None else row.group_type


def _present(topics: Iterable[RawTopic] | None) -> list[str]:
    return [topic.name for topic in topics or () if topic.error is None]


def _words_on_topics(context: Context, world: World) -> Mapping[str, Word]:
    known = context.recall.known_topics | names_on_disk(world)
    names = to_ask(known, frozenset(topic.name for topic in world.topics or ()), context.scope.names_asked)
    return ask_about_topics(context.clients.wire, names, context.timeout_ms, answered_by=world.topics_answered_by)


def _words_on_groups(context: Context, world: World) -> Mapping[str, Word]:
    shown = frozenset(group.group_id for group in world.groups or ())
    names = to_ask(context.recall.known_groups, shown, context.scope.names_asked)
    listed = context.recall.last.listed_groups if context.recall.last else ()
    return ask_about_groups(context.clients.wire, names, context.timeout_ms, listed=listed)


def _unanswerable(context: Context, what: str, *parts: Part) -> tuple[Gap, ...]:
    """Gaps of parts that could not be asked about, as what they hang on did not answer."""
    wanted = (
        Gap(part, GapCause.ERROR, "", f"the list of {what} is unknown in this look")
        for part in parts
        if context.wants(part)
    )
    return (*wanted, *(gap for part in parts for gap in context.not_asked(part)))

"""The second wave: what the names of topics and groups lead to; then the end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from agent.observe.context import Ask, Context, ask_together
from agent.observe.doubt import Word, ask_about_groups, ask_about_topics, to_ask
from agent.observe.slow import NO_CONFIGS, Configs, group_configs, topic_configs
from agent.observe.world import World
from agent.values.kafka import CLASSIC_GROUP, CONSUMER_GROUP, CONSUMER_PROTOCOL_TYPE, STREAMS_GROUP
from agent.values.observation import (
    Gap,
    GapCause,
    Part,
    RawConsumerGroup,
    RawGroup,
    RawListedGroup,
    RawStreamsGroup,
    RawTopic,
)
from agent.wire.epoch_group_calls import ConsumerGroups, StreamsGroups
from agent.wire.group_calls import DescribedGroups
from agent.wire.offset_calls import CommittedOffsets, EndOffsets
from assignors.problem import TopicPartition

_CLASSIC_TYPES = (CLASSIC_GROUP, None)
"""None: a broker that does not tell types knows no others."""
_COMMITTING_PROTOCOLS = (CONSUMER_PROTOCOL_TYPE, "")
"""Protocol types of classic groups that commit offsets; the empty one is a group that only commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insides:
    """Groups described, their offsets, configs, and what was said about names that are no longer shown."""

    classic: tuple[RawGroup, ...]
    consumer: tuple[RawConsumerGroup, ...]
    streams: tuple[RawStreamsGroup, ...]
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
    classic = [row.group_id for row in groups if row.group_type in _CLASSIC_TYPES]
    consumer = [row.group_id for row in groups if row.group_type == CONSUMER_GROUP]
    streams = [row.group_id for row in groups if row.group_type == STREAMS_GROUP]
    described: Ask[DescribedGroups] = Ask(
        Part.GROUPS,
        lambda: wire.describe_groups(classic, timeout_ms, coordinators=places),
        DescribedGroups((), ()),
        subject="members of classic groups",
    )
    consumers: Ask[ConsumerGroups] = Ask(
        Part.GROUPS,
        lambda: wire.consumer_group_describe(consumer, timeout_ms, coordinators=places),
        ConsumerGroups((), ()),
        subject="members of consumer groups",
    )
    apps: Ask[StreamsGroups] = Ask(
        Part.GROUPS,
        lambda: wire.streams_group_describe(streams, timeout_ms, coordinators=places),
        StreamsGroups((), ()),
        subject="members of streams groups",
    )
    committed: Ask[CommittedOffsets] = Ask(
        Part.COMMITTED_OFFSETS,
        lambda: wire.fetch_committed(_committing(groups), timeout_ms, coordinators=places),
        CommittedOffsets({}, ()),
    )
    configs: Ask[Configs] = Ask(Part.TOPIC_CONFIGS, partial(topic_configs, context, _present(world.topics)), NO_CONFIGS)
    own_configs: Ask[Configs] = Ask(
        Part.GROUP_CONFIGS, partial(group_configs, context, [*consumer, *streams]), NO_CONFIGS
    )
    topic_words: Ask[Mapping[str, Word]] = Ask(Part.TOPICS, partial(_words_on_topics, context, world), {})
    group_words: Ask[Mapping[str, Word]] = Ask(Part.GROUPS, partial(_words_on_groups, context, world), {})
    by_topics = (configs, topic_words) if world.topics is not None else ()
    by_groups = (described, consumers, apps, committed, own_configs, group_words) if world.groups is not None else ()
    gaps = ask_together(context, (*by_topics, *by_groups), name="insides")
    return Insides(
        classic=described.answer.groups,
        consumer=consumers.answer.groups,
        streams=apps.answer.groups,
        committed=committed.answer.offsets,
        topic_configs=configs.answer,
        group_configs=own_configs.answer,
        topic_words=topic_words.answer,
        group_words=group_words.answer,
        gaps=(
            *gaps,
            *described.answer.gaps,
            *consumers.answer.gaps,
            *apps.answer.gaps,
            *committed.answer.gaps,
            *configs.answer.gaps,
            *own_configs.answer.gaps,
            *(_unanswerable(context, "topics", Part.TOPIC_CONFIGS) if world.topics is None else ()),
            *(
                _unanswerable(context, "groups", Part.COMMITTED_OFFSETS, Part.GROUP_CONFIGS)
                if world.groups is None
                else ()
            ),
        ),
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
        if row.group_type in (CONSUMER_GROUP, STREAMS_GROUP)
        or (row.group_type in _CLASSIC_TYPES and row.protocol_type in _COMMITTING_PROTOCOLS)
    ]


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

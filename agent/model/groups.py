"""Groups of all kinds from the coordinators' answers.

A classic group shows its members' bytes in state Stable only: in any other state it is hidden, and keeps the kind of an
earlier observation. A listed group without a description keeps the state of the listing. An unchanged answer gives the
same object as in the last snapshot.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import compress
from operator import itemgetter, not_
from typing import NamedTuple

from agent.decode.values import DecodedGroup, DecodedGroups, StreamsAssignment
from agent.model.members import MemberRacks, classic_member, consumer_member
from agent.model.rack_locators import RackLocatorChain
from agent.model.streams import OffsetFacts, blank_streams_group, classic_streams_group, streams_group
from agent.model.topology import CHANGELOG_SUFFIX, ApplicationTopics
from agent.values.kafka import (
    CLASSIC_GROUP,
    CONSUMER_PROTOCOL_TYPE,
    MEMBERLESS_STATES,
    SHARE_GROUP,
    STABLE,
    STREAMS_PROTOCOL,
)
from agent.values.limits import Limits
from agent.values.memo import Memo, each
from agent.values.memory import Memory
from agent.values.observation import (
    Observation,
    ObservationPart,
    RawClassicGroup,
    RawConsumerGroup,
    RawListedGroup,
    RawStreamsGroup,
)
from agent.values.snapshot import ConsumerGroup, Group, GroupKind, Member, OtherGroup, TopicState

_ID = itemgetter(0)


class SnapshotGroups(NamedTuple):
    """The groups by id, and the offsets for their lags."""

    by_id: Mapping[str, Group]
    """Sorted."""
    offsets: Mapping[str, OffsetFacts]
    """Streams group -> reported offsets of its processes."""


def groups_of(
    observation: Observation,
    decoded: DecodedGroups,
    topics: Mapping[str, TopicState],
    *,
    memory: Memory,
    limits: Limits,
    memo: Memo,
    located: RackLocatorChain | None = None,
) -> SnapshotGroups:
    """Every group by id."""
    racks: MemberRacks = memo.of(("racks",), (located,), lambda: MemberRacks(located))
    # A locator's answer may change at every look; groups whose racks stay equal stay the same objects.
    before: list[Mapping[str, Group]] = memo.of(("groups before",), (), lambda: [{}])
    classic, consumer = partial(_classic, racks, before[0]), partial(_consumer, racks, before[0])
    names = _Names(observation, topics, memo)
    by_name: dict[str, Group] = {}
    offsets: dict[str, OffsetFacts] = {}
    plain = each(memo, "classic", decoded.groups, lambda group: group.raw.group_id, classic, context=(racks,))
    for group in compress(decoded.groups, map(not_, plain)):
        raw = group.raw
        if raw.state != STABLE or raw.protocol_type != CONSUMER_PROTOCOL_TYPE:
            was = raw.group_id in memory.streams
            by_name[raw.group_id] = memo.of(
                ("unsettled", raw.group_id), (group, was, racks), partial(_unsettled, group, racks, was_streams=was)
            )
        else:
            hint, own = limits.group(raw.group_id).topology, names.of(group)
            make = partial(classic_streams_group, group, own, hint, racks)
            by_name[raw.group_id], offsets[raw.group_id] = memo.of(
                (STREAMS_PROTOCOL, raw.group_id), (group, own, hint, racks), make
            )
    consumers = list(filter(None, plain))
    newer = observation.described(RawConsumerGroup)
    consumers += each(memo, "consumer", newer, _ID, consumer, context=(racks,))
    by_name.update(zip(map(_ID, consumers), consumers, strict=True))
    for streams in observation.described(RawStreamsGroup):
        name = streams.group_id
        hint, sizes = limits.group(name).topology, names.declared(streams)
        make = partial(streams_group, streams, dict(sizes), hint, racks)
        by_name[name], offsets[name] = memo.of(("streams", name), (streams, sizes, hint, racks), make)
    listed = observation.listed_groups
    others = list(compress(listed, map(not_, map(by_name.__contains__, map(_ID, listed)))))
    by_name.update(zip(map(_ID, others), each(memo, "listed", others, _ID, _listed), strict=True))
    groups = tuple(by_name.values())
    by_id = memo.of(("groups",), (groups,), lambda: _by_name(by_name, before[0]))
    before[0] = by_id
    return SnapshotGroups(by_id, offsets)


def _is_plain(group: DecodedGroup) -> bool:
    raw = group.raw
    return raw.state == STABLE and raw.protocol_type == CONSUMER_PROTOCOL_TYPE and raw.protocol != STREAMS_PROTOCOL


class _Names:
    """Which topics belong to which application, found by the beginning of their names."""

    def __init__(self, observation: Observation, topics: Mapping[str, TopicState], memo: Memo) -> None:
        self._topics = topics
        self._complete = not any(gap.part is ObservationPart.TOPICS for gap in observation.gaps)
        self._changelogs: list[str] = memo.of(
            ("changelogs",), (topics,), lambda: [name for name in topics if name.endswith(CHANGELOG_SUFFIX)]
        )
        self._listed = observation.listed_groups
        self._memo = memo

    def of(self, group: DecodedGroup) -> ApplicationTopics:
        """Partition counts of the group's topics, and the changelogs that carry its name."""
        application = group.raw.group_id
        changelogs = self._starting(self._changelogs, f"{application}-")
        longer = [f"{other}-" for other in self._starting(self._groups(), f"{application}-")]
        own = tuple([name for name in changelogs if not any(name.startswith(other) for other in longer)])
        sizes = {name: len(self._topics[name].partitions) for name in {*own, *_sources(group)} if name in self._topics}
        return ApplicationTopics(sizes, own, self._complete)

    def declared(self, group: RawStreamsGroup) -> tuple[tuple[str, int], ...]:
        """Partition counts of the topics that a KIP-1071 group declares, as far as they are shown."""
        reads = {t for sub in group.subtopologies or () for t in (*sub.source_topics, *sub.repartition_source_topics)}
        return tuple((name, len(self._topics[name].partitions)) for name in sorted(reads) if name in self._topics)

    def _groups(self) -> list[str]:
        listed = self._listed
        return self._memo.of(("group ids",), (listed,), lambda: sorted(row.group_id for row in listed))

    @staticmethod
    def _starting(names: list[str], prefix: str) -> list[str]:
        starting = []
        for index in range(bisect_left(names, prefix), len(names)):
            if not names[index].startswith(prefix):
                break
            starting.append(names[index])
        return starting


def _sources(group: DecodedGroup) -> Iterable[str]:
    topics: set[str] = set()
    for member in group.members:
        topics.update(getattr(member.subscription, "topics", ()))
        if isinstance(member.assignment_data, StreamsAssignment):
            topics.update(tp.topic for _, partitions in member.assignment_data.standby for tp in partitions)
    return topics


def _by_name(groups: Mapping[str, Group], before: Mapping[str, Group]) -> dict[str, Group]:
    """Sorted; without new or deleted groups in the order of before."""
    names = list(before) if before.keys() == groups.keys() else sorted(groups)
    return dict(zip(names, map(groups.__getitem__, names), strict=True))


def _classic(racks: MemberRacks, before: Mapping[str, Group], group: DecodedGroup) -> ConsumerGroup | None:
    if not _is_plain(group):
        return None
    raw = group.raw
    members = [classic_member(member, racks, stable=True) for member in group.members]
    return _same(_consumers(raw, raw.protocol or None, members, hidden=False), before)


def _unsettled(group: DecodedGroup, racks: MemberRacks, *, was_streams: bool) -> Group:
    """A classic group that shows nothing of its members, or that holds no consumers."""
    raw = group.raw
    if raw.protocol_type not in (CONSUMER_PROTOCOL_TYPE, ""):
        return OtherGroup(raw.group_id, GroupKind.OTHER, raw.state, raw.protocol_type, CLASSIC_GROUP)
    hidden = raw.state not in MEMBERLESS_STATES
    members = [classic_member(member, racks, stable=False) for member in group.members]
    if was_streams:
        return blank_streams_group(raw.group_id, raw.state, _by_id(members), hidden=hidden)
    return _consumers(raw, None, members, hidden=hidden)


def _consumers(raw: RawClassicGroup, assignor: str | None, members: list[Member], *, hidden: bool) -> ConsumerGroup:
    return ConsumerGroup(
        raw.group_id,
        GroupKind.CLASSIC_CONSUMER,
        raw.state,
        assignor,
        _by_id(members),
        hidden,
        epoch=None,
        assignment_epoch=None,
    )


def _consumer(racks: MemberRacks, before: Mapping[str, Group], raw: RawConsumerGroup) -> ConsumerGroup:
    group = ConsumerGroup(
        raw.group_id,
        GroupKind.CONSUMER,
        raw.state,
        raw.assignor or None,
        _by_id([consumer_member(member, racks) for member in raw.members]),
        hidden=False,
        epoch=raw.group_epoch,
        assignment_epoch=raw.assignment_epoch,
    )
    return _same(group, before)


def _same(group: ConsumerGroup, before: Mapping[str, Group]) -> ConsumerGroup:
    old = before.get(group.id)
    return old if isinstance(old, ConsumerGroup) and old == group else group


def _by_id(members: list[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=_ID))


def _listed(row: RawListedGroup) -> OtherGroup:
    kind = GroupKind.SHARE if row.group_type == SHARE_GROUP else GroupKind.OTHER
    return OtherGroup(row.group_id, kind, row.state, row.protocol_type, row.group_type)

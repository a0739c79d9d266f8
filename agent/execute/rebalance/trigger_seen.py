"""What the brokers show of a group, as far as it matters to a trigger. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.decode.consumer_protocol import decode_cooperative_sticky, decode_sticky, decode_subscription
from agent.decode.subscription_info import decode_subscription_info
from agent.decode.values import StreamsSubscription, StreamsSubscriptionHeader, Undecodable
from agent.values.kafka import CONSUMER_PROTOCOL_TYPE, COOPERATIVE_STICKY, STABLE, STICKY, STREAMS_PROTOCOL
from agent.values.observation import RawClassicGroup, RawMember
from agent.values.snapshot import Group, GroupKind, OtherGroup, StreamsGroup
from assignors.problem import TopicPartition


class Seen(NamedTuple):
    """A group as far as a trigger is concerned."""

    group_id: str
    kind: GroupKind | None
    """None for a raw group that shows nothing of its members now."""
    state: str
    assignor: str | None
    members: frozenset[str]
    """Member ids."""
    static: tuple[str, ...]
    """Group instance ids."""
    generations: frozenset[int]
    """Generations in which the members were before they joined; newcomers have none."""
    versions: frozenset[int]
    """Versions of the Streams members' metadata; more than one while an application is rolled."""
    unreadable: tuple[str, ...]
    """Client id and reason of each member whose bytes cannot be read."""

    @property
    def generation(self) -> int | None:
        """The highest generation that a member told; each rebalance raises it by one."""
        return max(self.generations, default=None)


def seen_in(group: Group | None) -> Seen | None:
    """What a snapshot shows of a group; None of one that is not there."""
    if group is None:
        return None
    if isinstance(group, OtherGroup):
        nothing: frozenset[int] = frozenset()
        return Seen(group.id, group.kind, group.state or "", None, frozenset(), (), nothing, nothing, ())
    return Seen(
        group.id,
        group.kind,
        "hidden" if group.hidden and group.state == STABLE else group.state,
        group.assignor,
        frozenset(member.id for member in group.members),
        tuple(sorted(member.instance_id for member in group.members if member.instance_id is not None)),
        frozenset(member.generation for member in group.members if member.generation is not None),
        frozenset(group.metadata_versions) if isinstance(group, StreamsGroup) else frozenset(),
        tuple(
            f"{member.client_id}: {defect.sentence}" for member in group.members for defect in member.defects[:1]
        ),
    )  # fmt: skip


def seen_raw(group: RawClassicGroup) -> Seen:
    """What a description taken this moment shows."""
    told = [_told(member, group.protocol) for member in group.members] if group.state == STABLE else []
    streams = group.protocol == STREAMS_PROTOCOL
    kind = GroupKind.CLASSIC_STREAMS if streams else GroupKind.CLASSIC_CONSUMER
    if group.protocol_type not in (CONSUMER_PROTOCOL_TYPE, ""):
        kind = GroupKind.OTHER
    return Seen(
        group.group_id,
        kind,
        group.state,
        group.protocol or None,
        frozenset(member.member_id for member in group.members),
        tuple(sorted(member.instance_id for member in group.members if member.instance_id is not None)),
        frozenset(one.generation for one in told if one.generation is not None),
        frozenset(one.version for one in told if one.version is not None),
        tuple(one.unreadable for one in told if one.unreadable is not None),
    )


class _Told(NamedTuple):
    """What one member's bytes say."""

    generation: int | None = None
    version: int | None = None
    unreadable: str | None = None


def _told(member: RawMember, protocol: str) -> _Told:
    subscription = decode_subscription(member.metadata)
    if isinstance(subscription, Undecodable):
        return _Told(unreadable=f"{member.client_id}: {subscription.sentence}")
    generation, data = subscription.generation, subscription.user_data
    if protocol == STREAMS_PROTOCOL:
        info = decode_subscription_info(data or b"")
        if isinstance(info, StreamsSubscription | StreamsSubscriptionHeader):
            return _Told(generation, info.version)
        return _Told(generation, unreadable=f"{member.client_id}: {info.sentence}")
    if protocol in (STICKY, COOPERATIVE_STICKY) and data:
        read = decode_sticky(data) if protocol == STICKY else decode_cooperative_sticky(data)
        if isinstance(read, Undecodable):
            return _Told(generation, unreadable=f"{member.client_id}: {read.sentence}")
        generation = generation if generation is not None else read.generation
    return _Told(generation)


# Do a group's members write in transactions? What the transaction coordinators show, read for one group. Pure.
#
# Kafka Streams names its transactional ids after the application (``<application>-<process>-<thread>``, before KIP-447
# ``<application>-<task>``). Other clients name them as they please; but a transaction that commits a group's offsets
# includes the partition of ``__consumer_offsets`` that holds them, which several groups share.

_OF_STREAMS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+|\d+_\d+")


def transactions_of(
    group_id: str,
    ids: Iterable[str],
    ongoing: Mapping[str, tuple[TopicPartition, ...]],
    offsets: TopicPartition,
    *,
    streams: bool,
) -> str | None:
    """What shows that the group's members write in transactions, as a clause; None where nothing does.

    ``ongoing`` holds the partitions of each ongoing transaction, ``offsets`` is the partition of the group's offsets.
    """
    if streams:
        own = sorted(name for name in ids if _is_of(group_id, name))
        if own:
            return f"the application writes in transactions, such as {own[0]}"
    touching = sorted(name for name, partitions in ongoing.items() if offsets in partitions)
    if touching:
        return f"the transaction {touching[0]} includes {offsets}, which holds the group's offsets"
    return None


def offsets_partition(group_id: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that holds a group's offsets: Java's hash of the name."""
    value = 0
    units = group_id.encode("utf-16-be", errors="surrogatepass")
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    # As Kafka: the smallest number has no absolute value, and counts as 0.
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _is_of(application: str, transactional_id: str) -> bool:
    begin = f"{application}-"
    return transactional_id.startswith(begin) and _OF_STREAMS.fullmatch(transactional_id[len(begin) :]) is not None

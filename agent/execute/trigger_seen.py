"""What the brokers show of a group, as far as it matters to a trigger. Pure."""

from __future__ import annotations

from typing import NamedTuple

from agent.decode.consumer_protocol import decode_subscription
from agent.decode.sticky import decode_cooperative_sticky, decode_sticky
from agent.decode.subscription_info import decode_subscription_info
from agent.decode.values import StreamsSubscription, StreamsSubscriptionHeader, Undecodable
from agent.values.kafka import (
    CONSUMER_PROTOCOL_TYPE,
    COOPERATIVE_STICKY,
    STABLE,
    STICKY,
    STREAMS_PROTOCOL,
)
from agent.values.observation import RawGroup, RawMember
from agent.values.snapshot import Group, GroupKind, OtherGroup, StreamsGroup


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


def seen_raw(group: RawGroup) -> Seen:
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

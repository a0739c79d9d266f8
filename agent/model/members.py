"""Members as one kind of value, whether their bytes were decoded or a broker described them.

Invariant: what was not shown or could not be read is None with a defect beside it, never an empty subscription.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.decode.values import (
    Assignment,
    DecodedMember,
    StickyUserData,
    StreamsAssignment,
    Subscription,
    Undecodable,
)
from agent.model.located import Located, client_subject
from agent.model.racks import known_rack
from agent.values.observation import RawConsumerMember, RawMember, RawStreamsMember
from agent.values.snapshot import UNKNOWN_RACK, Defect, Member, Rack, RackState
from agent.values.words import counted
from assignors.problem import TopicPartition

_NO_DEFECTS: tuple[Defect, ...] = ()


class Racks:
    """The racks of members: as members send them, or as the locators know them. Equal racks are one object."""

    __slots__ = ("_located", "_told")

    def __init__(self, located: Located | None = None) -> None:
        self._located = located
        self._told: dict[str, Rack] = {}

    def of(self, told: str | None, raw: RawMember | RawConsumerMember | RawStreamsMember) -> Rack:
        """The rack of a member that tells this one of itself, or none."""
        if self._located is not None:
            subject = client_subject(raw.client_id, raw.instance_id, raw.client_host)
            return self._located.rack(subject, (told,) if told else ())
        if not told:
            return UNKNOWN_RACK
        rack = self._told.get(told)
        if rack is None:
            rack = self._told[told] = known_rack(told)
        return rack


def classic_member(decoded: DecodedMember, racks: Racks, *, stable: bool) -> Member:
    """A member of a classic group. What it tells while it shows no bytes is unknown, and so is its rack then."""
    raw, subscription, user_data, assignment, assignment_data = decoded
    if isinstance(subscription, Subscription):
        version, topics, owned, generation = (
            subscription.version,
            subscription.topics,
            subscription.owned,
            subscription.generation,
        )
        rack = racks.of(subscription.rack, raw)
        if isinstance(user_data, StickyUserData):
            # An eager sticky member gives everything up before it joins, and says in its user data what that was.
            owned = user_data.owned if user_data.owned is not None else owned
            generation = generation if generation is not None else user_data.generation
    else:
        version, topics, owned, generation, rack = None, (), None, None, UNKNOWN_RACK
    assigned = assignment.partitions if stable and isinstance(assignment, Assignment) else None
    defects = (
        _defects(decoded)
        if Undecodable in (type(subscription), type(user_data), type(assignment), type(assignment_data))
        else _NO_DEFECTS
    )
    if not defects and isinstance(assignment_data, StreamsAssignment) and assigned is not None:
        defects = _misfit(assignment_data, assigned)
    # The same as Member(...), in half the time.
    return tuple.__new__(
        Member,
        (
            raw.member_id,
            raw.instance_id,
            raw.client_id,
            raw.client_host,
            rack,
            version,
            topics,
            None,
            owned,
            assigned,
            None,
            generation,
            None,
            defects,
        ),
    )


def consumer_member(raw: RawConsumerMember, racks: Racks) -> Member:
    """A member of a KIP-848 group."""
    return Member(
        raw.member_id,
        raw.instance_id,
        raw.client_id,
        raw.client_host,
        racks.of(raw.rack_id, raw),
        None,
        raw.topics,
        raw.topic_regex,
        None,
        raw.assignment,
        raw.target,
        None,
        raw.member_epoch,
    )


def streams_member(
    raw: RawStreamsMember,
    rack: Rack,
    topics: tuple[str, ...],
    assigned: tuple[TopicPartition, ...] | None,
    target: tuple[TopicPartition, ...] | None,
) -> Member:
    """A member of a KIP-1071 group; its topics are those of the topology."""
    return Member(
        raw.member_id,
        raw.instance_id,
        raw.client_id,
        raw.client_host,
        rack,
        None,
        topics,
        None,
        None,
        assigned,
        target,
        None,
        raw.member_epoch,
    )


def with_process_rack(members: Iterable[Member], rack: Rack) -> list[Member]:
    """The members of one process: where they contradict each other, none of their racks is believed."""
    if rack.state is not RackState.CONFLICTING:
        return list(members)
    if rack.source is None:
        return [member._replace(rack=rack) for member in members]
    return [member._replace(rack=rack._replace(sent=member.rack.told)) for member in members]


def _defects(decoded: DecodedMember) -> tuple[Defect, ...]:
    parts = (
        ("subscription", decoded.subscription),
        ("subscription user data", decoded.user_data),
        ("assignment", decoded.assignment),
        ("assignment user data", decoded.assignment_data),
    )
    return tuple(
        Defect(what, str(value.reason), f"{value.sentence} (byte {value.offset})")
        for what, value in parts
        if isinstance(value, Undecodable)
    )


def _misfit(data: StreamsAssignment, assigned: tuple[TopicPartition, ...]) -> tuple[Defect, ...]:
    """Tasks and partitions belong together by position, so their numbers must agree."""
    if len(data.active) == len(assigned):
        return _NO_DEFECTS
    sentence = f"listed for {counted(len(assigned), 'assigned partition')}: {counted(len(data.active), 'active task')}"
    return (Defect("assignment user data", "tasks and partitions do not match", sentence),)

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
from agent.model.racks import known_rack
from agent.model.snapshot import UNKNOWN_RACK, Defect, Member, Rack, RackState
from agent.observation import RawConsumerMember, RawStreamsMember
from assignors.problem import TopicPartition

_NO_DEFECTS: tuple[Defect, ...] = ()


def classic_member(decoded: DecodedMember, racks: dict[str, Rack], *, stable: bool) -> Member:
    """A member of a classic group; ``racks`` shares one rack value among all members that name it."""
    raw, subscription, user_data, assignment, assignment_data = decoded
    if isinstance(subscription, Subscription):
        version, topics, owned, generation = (
            subscription.version,
            subscription.topics,
            subscription.owned,
            subscription.generation,
        )
        rack = _shared(subscription.rack, racks)
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
    return Member(
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
    )


def consumer_member(raw: RawConsumerMember, racks: dict[str, Rack]) -> Member:
    """A member of a KIP-848 group."""
    return Member(
        raw.member_id,
        raw.instance_id,
        raw.client_id,
        raw.client_host,
        _shared(raw.rack_id, racks),
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
    if rack.state is RackState.CONFLICTING:
        return [member._replace(rack=rack) for member in members]
    return list(members)


def _shared(name: str | None, racks: dict[str, Rack]) -> Rack:
    if not name:
        return UNKNOWN_RACK
    rack = racks.get(name)
    if rack is None:
        rack = racks[name] = known_rack(name)
    return rack


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
    sentence = f"{len(data.active)} active tasks are listed for {len(assigned)} assigned partitions"
    return (Defect("assignment user data", "tasks and partitions do not match", sentence),)

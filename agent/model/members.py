"""Members and brokers with their racks: decoded classic members and described KIP-848 and KIP-1071 members.

Missing or unreadable bytes are None with a defect, never an empty subscription.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.decode.values import (
    Assignment,
    DecodedMember,
    StickyUserData,
    StreamsAssignment,
    Subscription,
    Undecodable,
)
from agent.model.rack_locators import RackLocatorChain, broker_subject, client_subject
from agent.values.kafka import RACK_AWARE_SELECTOR, REPLICA_SELECTOR
from agent.values.memory import Memory
from agent.values.number_format import counted
from agent.values.observation import (
    Observation,
    ObservationPart,
    RawBroker,
    RawConsumerMember,
    RawMember,
    RawStreamsMember,
)
from agent.values.snapshot import UNKNOWN_RACK, BrokerState, Member, MemberDefect, Rack, RackState, known_rack
from assignors.problem import TopicPartition

# Racks are known, unknown (an empty rack too) or conflicting (members of one process that disagree). An absent broker
# keeps its last rack, marked as remembered. KIP-881 and KIP-925 compare rack ids exactly: nothing is trimmed or folded.


def agreed_racks(racks: Sequence[Rack]) -> Rack:
    """The one rack of all known ones, conflicting when they differ; ``rack_id`` comes from the first."""
    known = [rack for rack in racks if rack.name is not None]
    names = tuple(sorted({str(rack.name) for rack in known}))
    if len(names) > 1:
        reported_racks = {rack.rack_id for rack in racks} - {None}
        source = None if len(reported_racks) > 1 else min(rack.source for rack in known if rack.source is not None)
        return Rack(RackState.CONFLICTING, None, names, source=source)
    return min(known, key=lambda rack: (rack.source or "", rack.sent or "", rack.others), default=UNKNOWN_RACK)


def agreed_rack(claims: Iterable[str | None]) -> Rack:
    """The one rack of all claims; unknown without a claim, conflicting when they differ."""
    racks = sorted({claim for claim in claims if claim})
    if not racks:
        return UNKNOWN_RACK
    return known_rack(racks[0]) if len(racks) == 1 else Rack(RackState.CONFLICTING, None, tuple(racks))


def brokers_of(
    observation: Observation, named: Iterable[int], memory: Memory, located: RackLocatorChain | None = None
) -> tuple[BrokerState, ...]:
    """Every broker that answered or that is named by a replica list or remembered with replicas, sorted by id."""
    answered: dict[int, list[RawBroker]] = {}
    for row in observation.brokers:
        answered.setdefault(row.id, []).append(row)
    unanswered = any(gap.part is ObservationPart.RACK_LOCATORS for gap in observation.gaps)
    brokers: list[BrokerState] = []
    for broker, rows in answered.items():
        rack = _broker_rack(rows, located)
        if unanswered and rack.state is RackState.UNKNOWN:  # a locator that did not answer may know it
            rack = _remembered(broker, memory)._replace(source=rack.source or "", sent=rack.sent)
        brokers.append(_present(rows, rack, observation.cordoned))
    brokers += [_absent(broker, memory, located) for broker in set(named) - answered.keys()]
    return tuple(sorted(brokers, key=lambda broker: broker.id))


def selector_is_rack_aware(brokers: Iterable[BrokerState], configs: Mapping[int, Mapping[str, str]]) -> bool | None:
    """True when every live broker serves reads from the nearest replica; None when one is unknown.

    Of a selector that is not Kafka's own it is unknown.
    """
    rack_aware = [broker_is_rack_aware(configs.get(broker.id)) for broker in brokers if broker.alive]
    if not rack_aware:
        return None
    if False in rack_aware:
        return False
    return None if None in rack_aware else True


def broker_is_rack_aware(config: Mapping[str, str] | None) -> bool | None:
    """Whether the broker of this config sends reads of the partitions that it leads to the nearest replica.

    None where its config did not answer, and of a selector that is not Kafka's own.
    """
    if config is None:
        return None
    selector = config.get(REPLICA_SELECTOR)
    return (selector == RACK_AWARE_SELECTOR or None) if selector else False


def _broker_rack(rows: list[RawBroker], located: RackLocatorChain | None) -> Rack:
    claims = sorted({row.rack for row in rows if row.rack})
    return agreed_rack(claims) if located is None else located.rack(broker_subject(rows[0].id, rows[0].host), claims)


def _present(rows: list[RawBroker], rack: Rack, cordoned: frozenset[int]) -> BrokerState:
    row = rows[0]
    fenced = None if any(r.fenced is None for r in rows) else all(r.fenced for r in rows)
    return BrokerState(row.id, row.host, row.port, rack, fenced is not True, fenced, row.id in cordoned)


def _absent(broker: int, memory: Memory, located: RackLocatorChain | None) -> BrokerState:
    rack = UNKNOWN_RACK if located is None else located.rack(broker_subject(broker, None), ())
    if rack.state is RackState.UNKNOWN:
        rack = _remembered(broker, memory)
    return BrokerState(broker, None, None, rack, alive=False, fenced=None, cordoned=False)


def _remembered(broker: int, memory: Memory) -> Rack:
    sighting = memory.brokers.get(broker)
    rack = known_rack(sighting.known if sighting is not None else None)
    return rack if rack is UNKNOWN_RACK else rack._replace(remembered=True)


_NO_DEFECTS: tuple[MemberDefect, ...] = ()


class MemberRacks:
    """The racks of members: as members send them, or as the locators know them. Equal racks are one object."""

    __slots__ = ("_by_id", "_located")

    def __init__(self, located: RackLocatorChain | None = None) -> None:
        self._located = located
        self._by_id: dict[str, Rack] = {}

    def of(self, rack_id: str | None, raw: RawMember | RawConsumerMember | RawStreamsMember) -> Rack:
        """The rack of a member with this rack id, or without one."""
        if self._located is not None:
            subject = client_subject(raw.client_id, raw.instance_id, raw.client_host)
            return self._located.rack(subject, (rack_id,) if rack_id else ())
        if not rack_id:
            return UNKNOWN_RACK
        rack = self._by_id.get(rack_id)
        if rack is None:
            rack = self._by_id[rack_id] = known_rack(rack_id)
        return rack


def classic_member(decoded: DecodedMember, racks: MemberRacks, *, stable: bool) -> Member:
    """A member of a classic group; without visible bytes its subscription and rack are unknown."""
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
            # An eager sticky member revokes all partitions before it joins, and sends them in its user data.
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


def consumer_member(raw: RawConsumerMember, racks: MemberRacks) -> Member:
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
    """The members of one process: where they contradict each other, none of their racks counts."""
    if rack.state is not RackState.CONFLICTING:
        return list(members)
    if rack.source is None:
        return [member._replace(rack=rack) for member in members]
    return [member._replace(rack=rack._replace(sent=member.rack.rack_id)) for member in members]


def _defects(decoded: DecodedMember) -> tuple[MemberDefect, ...]:
    parts = (
        ("subscription", decoded.subscription),
        ("subscription user data", decoded.user_data),
        ("assignment", decoded.assignment),
        ("assignment user data", decoded.assignment_data),
    )
    return tuple(
        MemberDefect(what, str(value.reason), f"{value.sentence} (byte {value.offset})")
        for what, value in parts
        if isinstance(value, Undecodable)
    )


def _misfit(data: StreamsAssignment, assigned: tuple[TopicPartition, ...]) -> tuple[MemberDefect, ...]:
    """Tasks and partitions belong together by position, so their numbers must agree."""
    if len(data.active) == len(assigned):
        return _NO_DEFECTS
    sentence = f"listed for {counted(len(assigned), 'assigned partition')}: {counted(len(data.active), 'active task')}"
    return (MemberDefect("assignment user data", "tasks and partitions do not match", sentence),)

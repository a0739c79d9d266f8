"""What the leader of a classic consumer group will give its members.

The problem is the leader's: subscriptions, racks and ownership as members will send them at their next join, members in
the order in which a Java leader visits them. Members of a settled group were all in the same generation, so its number
decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from enum import StrEnum

from agent.predict.seen import SHARED_BUCKET, Ground, share_a_bucket
from agent.values.kafka import COOPERATIVE_STICKY, RANGE, ROUND_ROBIN, STICKY
from agent.values.limits import GroupLimits
from agent.values.prediction import Basis, Certainty, Given, NotPredicted, Prediction
from agent.values.snapshot import ConsumerGroup, Member
from assignors.kafka.consumer_problem import ClassicMember, ClassicProblem, GroupAssignment, leader_order
from assignors.kafka.cooperative_sticky import MOST_FOLLOW_UPS, Settled, cooperative_sticky_settled
from assignors.kafka.range import range_assign
from assignors.kafka.roundrobin import roundrobin_assign
from assignors.kafka.sticky import sticky_assign

EAGER: Mapping[str, Callable[[ClassicProblem], GroupAssignment]] = {
    RANGE: range_assign,
    ROUND_ROBIN: roundrobin_assign,
    STICKY: sticky_assign,
}
"""Protocol name -> Kafka's assignor, where one rebalance does it all."""
ASSIGNORS = frozenset({*EAGER, COOPERATIVE_STICKY})
"""Protocol names whose answer can be predicted."""
ORDERED = frozenset({STICKY, COOPERATIVE_STICKY})
"""Assignors that depend on the order of the members, unless all subscribe to the same."""
GENERATION = 1


def predict_classic(group: ConsumerGroup, ground: Ground, settings: GroupLimits) -> Prediction:
    """The first rebalance and the state in which the group comes to rest. ``BadProblem`` where Kafka's would throw."""
    assignor = group.assignor or ""
    if assignor not in ASSIGNORS:
        return Prediction(
            group_id=group.id, assignor=group.assignor, why_not=NotPredicted.UNKNOWN_ASSIGNOR,
            notes=(f"its protocol name is {group.assignor or 'unknown'}",),
        )  # fmt: skip
    racks = {}
    for topic in sorted({topic for member in group.members for topic in member.topics}):
        of_topic = ground.rack_sets(topic)
        if of_topic is not None:
            racks[topic] = of_topic
        elif topic in ground.topics:
            return Prediction(group_id=group.id, assignor=group.assignor, why_not=NotPredicted.TOPICS_UNKNOWN)
    leader = leader_of(group, settings.client_software_name)
    looks_at_racks = leader is not Leader.PYTHON
    members = tuple([_member(member, looks_at_racks=looks_at_racks) for member in group.members])
    if group.assignor in ORDERED and len({member.topics for member in members}) > 1:
        members = leader_order(members)
    unordered = leader is Leader.JAVA and _order_counts(group, racks) and share_a_bucket([m.id for m in members])
    settled = _settled(ClassicProblem(members=members, racks=racks), assignor)
    notes = [*_about(leader), *settled.first.warnings, *([SHARED_BUCKET] if unordered else [])]
    if settled.still_moving:
        notes.append(f"it does not converge within {MOST_FOLLOW_UPS} rebalances")
    return Prediction(
        group_id=group.id,
        assignor=group.assignor,
        basis=Basis.READ,
        certainty=Certainty.EXACT if leader is Leader.JAVA and not unordered else Certainty.COST_EQUAL,
        first=(first := _given(settled.first)),
        settled=first if settled.last is settled.first else _given(settled.last),
        rebalances=settled.rebalances,
        notes=tuple(dict.fromkeys(notes)),
    )


def _order_counts(group: ConsumerGroup, racks: Mapping[str, Sized]) -> bool:
    """Whether the order of the members decides something: who gets one partition more, or anything at all."""
    alike = len({member.topics for member in group.members}) == 1
    uneven = sum(map(len, racks.values())) % len(group.members)
    return group.assignor in ORDERED and (bool(uneven) or not alike)


def _member(member: Member, *, looks_at_racks: bool) -> ClassicMember:
    return ClassicMember(
        id=member.id,
        topics=member.topics,
        rack=member.rack.told if looks_at_racks else None,
        instance_id=member.instance_id,
        owned=member.assigned or (),
        generation=GENERATION,
        subscription_generation=GENERATION,
    )


def _settled(problem: ClassicProblem, assignor: str) -> Settled:
    """A cooperative leader holds back what a member has to give up first, so that another rebalance follows."""
    if assignor == COOPERATIVE_STICKY:
        return cooperative_sticky_settled(problem)
    result = EAGER[assignor](problem)
    return Settled(result, result, 1, still_moving=False)


def _given(result: GroupAssignment) -> Given:
    return Given(
        {
            member: partitions if len(partitions) < 2 else tuple(sorted(partitions))
            for member, partitions in sorted(result.assignment.items())
        }
    )


def _about(leader: Leader) -> list[str]:
    match leader:
        case Leader.JAVA:
            return []
        case Leader.UNKNOWN:
            return ["the client that leads the group is unknown; Java's assignor is predicted"]
        case Leader.PYTHON:
            return ["a Python client leads the group; its assignor ignores racks and breaks ties in its own way"]
        case Leader.LIBRDKAFKA:
            return ["librdkafka leads the group and breaks ties in its own way"]


# Whose code assigns the partitions of a classic group: Java's, librdkafka's or a Python client's.
#
# The leader is one of the members, and brokers do not tell which. So a group has a known leader only when all its
# members run the same client: by what the user says of the group, else by the client ids that clients give themselves.


class Leader(StrEnum):
    """The client software of a group's leader."""

    JAVA = "Java"
    LIBRDKAFKA = "librdkafka"
    PYTHON = "a Python client"
    UNKNOWN = "unknown"


_BY_SOFTWARE = (
    (re.compile(r"(?i)kafka-python|aiokafka"), Leader.PYTHON),
    (re.compile(r"(?i)librdkafka|confluent-kafka|rdkafka"), Leader.LIBRDKAFKA),
    (re.compile(r"(?i)java"), Leader.JAVA),
)
"""Names as clients send them in ``client.software.name`` (KIP-511)."""
_BY_CLIENT_ID = (
    (re.compile(r"consumer-.+-\d+"), Leader.JAVA),
    (re.compile(r"rdkafka"), Leader.LIBRDKAFKA),
    (re.compile(r"kafka-python-.+|aiokafka-.+"), Leader.PYTHON),
)
"""What clients call themselves unless they are given a ``client.id``."""


def leader_of(group: ConsumerGroup, software: str | None) -> Leader:
    """The leader's client, as far as it can be told."""
    if software is not None:
        return next((leader for name, leader in _BY_SOFTWARE if name.search(software)), Leader.UNKNOWN)
    first = _by_client_id(group.members[0].client_id) if group.members else Leader.UNKNOWN
    others = () if first is Leader.UNKNOWN else group.members[1:]
    return first if all(_by_client_id(member.client_id) is first for member in others) else Leader.UNKNOWN


def _by_client_id(client_id: str) -> Leader:
    return next((leader for name, leader in _BY_CLIENT_ID if name.fullmatch(client_id)), Leader.UNKNOWN)

"""Cases of Kafka's client-side assignors (``consumer.*``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assignors.cases.fields import an_object, each, text, text_or_none, truth, whole
from assignors.kafka.consumer_problem import NO_GENERATION, ClassicMember, ClassicProblem, GroupAssignment, RackSets
from assignors.kafka.cooperative_sticky import cooperative_sticky_assign
from assignors.kafka.range import range_assign
from assignors.kafka.roundrobin import roundrobin_assign
from assignors.kafka.sticky import sticky_assign
from assignors.problem import BadProblem, TopicPartition

_MOST_PARTITIONS = 10_000_000
"""Of one topic; without racks they cost nothing in the file but room here."""


def classic_problem(case: Mapping[str, Any]) -> ClassicProblem:
    """Return the problem of a case. Raises BadProblem for a missing or wrong field, or a topic that is listed twice."""
    topics = each(case.get("topics"), "topics", _topic)
    racks = dict(topics)
    if len(racks) < len(topics):
        names = [name for name, _ in topics]
        raise BadProblem(f"topics has {next(name for name in names if names.count(name) > 1)!r} twice")
    return ClassicProblem(
        members=each(case.get("members"), "members", _member),
        racks=racks,
        prefer_rack_aware_logic=truth(case.get("prefer_rack_aware_logic", False), "prefer_rack_aware_logic"),
        max_generation_before=whole(case.get("max_generation_before", NO_GENERATION), "max_generation_before"),
    )


def _topic(value: Any, field: str) -> tuple[str, RackSets]:
    topic = an_object(value, field)
    name = text(topic.get("name"), f"{field}.name")
    count = whole(topic.get("partitions"), f"{field}.partitions", 0, _MOST_PARTITIONS)
    if topic.get("replica_racks") is None:
        return name, (frozenset(),) * count
    racks = each(topic["replica_racks"], f"{field}.replica_racks", _racks)
    if len(racks) != count:
        raise BadProblem(f"{field}.replica_racks has {len(racks)} entries; the topic has {count} partitions")
    return name, racks


def _racks(value: Any, field: str) -> frozenset[str]:
    return frozenset(rack for rack in each(value, field, text_or_none) if rack is not None)


def _member(value: Any, field: str) -> ClassicMember:
    member = an_object(value, field)
    owned = an_object(member.get("owned", {}), f"{field}.owned")
    return ClassicMember(
        id=text(member.get("id"), f"{field}.id"),
        topics=each(member.get("topics"), f"{field}.topics", text),
        rack=text_or_none(member.get("rack"), f"{field}.rack"),
        instance_id=text_or_none(member.get("instance_id"), f"{field}.instance_id"),
        owned=tuple(
            TopicPartition(topic, number)
            for topic, numbers in owned.items()
            for number in each(numbers, f"{field}.owned.{topic}", whole)
        ),
        generation=_generation(member, "generation", field),
        subscription_generation=_generation(member, "subscription_generation", field),
    )


def _generation(member: Mapping[str, Any], name: str, field: str) -> int | None:
    value = member.get(name)
    return None if value is None else whole(value, f"{field}.{name}")


def _output(result: GroupAssignment) -> dict[str, Any]:
    assignment: dict[str, dict[str, list[int]]] = {}
    for member, partitions in result.assignment.items():
        topics = assignment[member] = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
    return {"assignment": assignment}


def _sticky_output(result: GroupAssignment) -> dict[str, Any]:
    transferring = result.transferring
    return {
        **_output(result),
        "branch": result.branch,
        "partitions_transferring_ownership": None
        if transferring is None
        else {str(partition): member for partition, member in transferring.items()},
    }


RUNNERS: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    "consumer.range": lambda case, _version: _output(range_assign(classic_problem(case))),
    "consumer.roundrobin": lambda case, _version: _output(roundrobin_assign(classic_problem(case))),
    "consumer.sticky": lambda case, _version: _sticky_output(sticky_assign(classic_problem(case))),
    "consumer.cooperative_sticky": lambda case, _version: _sticky_output(
        cooperative_sticky_assign(classic_problem(case))
    ),
}
"""Assignor of a file -> (input of a case, Kafka's version) -> output; every version gives the same."""

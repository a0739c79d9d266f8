"""Run the cases of Kafka's client-side assignors (``consumer.*``).

Whatever does not have the shape of a case raises ``BadProblem`` with a sentence naming the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assignors.cases.streams_input import a_list, a_map, text, whole
from assignors.kafka.consumer_problem import NO_GENERATION, ClassicMember, ClassicProblem, GroupAssignment, RackSets
from assignors.kafka.cooperative_sticky import cooperative_sticky_assign
from assignors.kafka.range import range_assign
from assignors.kafka.roundrobin import roundrobin_assign
from assignors.kafka.sticky import sticky_assign
from assignors.problem import BadProblem, TopicPartition


def classic_problem(case: Mapping[str, Any]) -> ClassicProblem:
    """Return the problem of a case."""
    topics = [a_map(topic, f"topics[{at}]") for at, topic in enumerate(a_list(case.get("topics"), "topics"))]
    racks = {text(topic.get("name"), f"topics[{at}].name"): _racks(topic, at) for at, topic in enumerate(topics)}
    if len(racks) < len(topics):
        raise BadProblem("topics has a name twice")
    preferred = case.get("prefer_rack_aware_logic", False)
    if not isinstance(preferred, bool):
        raise BadProblem(f"prefer_rack_aware_logic is {preferred!r}; it must be true or false")
    return ClassicProblem(
        members=tuple(
            _member(member, f"members[{at}]") for at, member in enumerate(a_list(case.get("members"), "members"))
        ),
        racks=racks,
        prefer_rack_aware_logic=preferred,
        max_generation_before=whole(case.get("max_generation_before", NO_GENERATION), "max_generation_before"),
    )


def _racks(topic: Mapping[str, Any], at: int) -> RackSets:
    count = whole(topic.get("partitions"), f"topics[{at}].partitions")
    if count < 0:
        raise BadProblem(f"topics[{at}].partitions is {count}; it cannot be negative")
    if topic.get("replica_racks") is None:
        return (frozenset(),) * count
    field = f"topics[{at}].replica_racks"
    partitions = a_list(topic["replica_racks"], field)
    if len(partitions) != count:
        raise BadProblem(f"{field} has {len(partitions)} entries for {count} partitions")
    return tuple(
        frozenset(text(rack, f"{field}[{p}]") for rack in a_list(racks, f"{field}[{p}]") if rack is not None)
        for p, racks in enumerate(partitions)
    )


def _member(value: Any, field: str) -> ClassicMember:
    member = a_map(value, field)
    topics = a_list(member.get("topics"), f"{field}.topics")
    owned = a_map(member.get("owned", {}), f"{field}.owned")
    return ClassicMember(
        id=text(member.get("id"), f"{field}.id"),
        topics=tuple(text(topic, f"{field}.topics") for topic in topics),
        rack=_optional(member, "rack", field, text),
        instance_id=_optional(member, "instance_id", field, text),
        owned=tuple(
            TopicPartition(topic, whole(number, f"{field}.owned.{topic}"))
            for topic, numbers in owned.items()
            for number in a_list(numbers, f"{field}.owned.{topic}")
        ),
        generation=_optional(member, "generation", field, whole),
        subscription_generation=_optional(member, "subscription_generation", field, whole),
    )


def _optional(member: Mapping[str, Any], name: str, field: str, read: Callable[[Any, str], Any]) -> Any:
    value = member.get(name)
    return None if value is None else read(value, f"{field}.{name}")


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

"""Cases of the broker's assignors of consumer groups: ``group.range`` and ``group.uniform`` (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assignors.cases.fields import MOST_PARTITIONS, an_object, each, one_of, text, text_or_none, whole
from assignors.kafka.group_problem import GroupMember, GroupProblem, TargetAssignment
from assignors.kafka.group_range import assign_group_range
from assignors.kafka.group_uniform import assign_group_uniform
from assignors.problem import BadProblem

TYPES = ("homogeneous", "heterogeneous")


def group_problem(case: Mapping[str, Any]) -> GroupProblem:
    """Return the problem of a case; raises ``BadProblem`` with a sentence naming the field."""
    topics = each(case.get("topics"), "topics", _topic)
    if len(dict(topics)) != len(topics):
        raise BadProblem("topics has an id twice; ids are unique")
    return GroupProblem(
        members=each(case.get("members"), "members", _member),
        partitions=dict(topics),
        homogeneous=one_of(case.get("subscription_type"), "subscription_type", TYPES) == "homogeneous",
    )


def _topic(value: Any, field: str) -> tuple[str, int]:
    topic = an_object(value, field)
    count = whole(topic.get("partitions"), f"{field}.partitions", 1, MOST_PARTITIONS)
    return text(topic.get("id"), f"{field}.id"), count


def _member(value: Any, field: str) -> GroupMember:
    member = an_object(value, field)
    return GroupMember(
        id=text(member.get("id"), f"{field}.id"),
        instance_id=text_or_none(member.get("instance_id"), f"{field}.instance_id"),
        topics=each(member.get("topics"), f"{field}.topics", text),
        assigned={
            topic: each(partitions, f"{field}.assigned.{topic}", lambda number, where: whole(number, where, 0))
            for topic, partitions in an_object(member.get("assigned", {}), f"{field}.assigned").items()
        },
    )


def _run(assign: Callable[[GroupProblem], TargetAssignment], case: Mapping[str, Any]) -> dict[str, Any]:
    assignment = assign(group_problem(case))
    return {
        "assignment": {
            member: {topic: list(partitions) for topic, partitions in mine.items()}
            for member, mine in assignment.items()
        }
    }


RUNNERS: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    "group.range": lambda case, _version: _run(assign_group_range, case),
    "group.uniform": lambda case, _version: _run(assign_group_uniform, case),
}

"""Which partitions more than one member of a group is assigned: bytes that members write may say anything."""

from __future__ import annotations

from collections.abc import Iterable

from agent.values.snapshot import Member
from assignors.problem import TopicPartition


def claimed_twice(members: Iterable[Member]) -> dict[TopicPartition, list[Member]]:
    """Partitions that more than one member is assigned, each with these members; in order."""
    rows = [(member, member.assigned) for member in members if member.assigned]
    assigned = [held for _, held in rows]
    if sum(map(len, assigned)) == len(frozenset().union(*assigned)):  # the usual case, in C
        return {}
    readers: dict[TopicPartition, list[Member]] = {}
    for member, held in rows:
        for partition in frozenset(held):
            readers.setdefault(partition, []).append(member)
    return {partition: readers[partition] for partition in sorted(readers) if len(readers[partition]) > 1}

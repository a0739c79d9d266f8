"""Findings about assignments that do not add up: a partition with two readers, and readers of what is not there.

Members write their own assignments (classic groups), so any member can do it; an assignor with a fault can,
too. Judged only in groups that are Stable, and of topics only by what was shown: while a rebalance runs, assignments
overlap, and a topic that is hidden may well be there. One finding per group and reason, with the first names.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.detect.facts import Reading
from agent.detect.ground import View
from agent.detect.words import count, first, listed, of_all
from agent.model.claims import claimed_twice
from agent.values.finding import Finding, FindingReason, Severity, Subject
from agent.values.kafka import STABLE
from agent.values.snapshot import ConsumerGroup, Member, StreamsGroup
from assignors.problem import TopicPartition

_Group = ConsumerGroup | StreamsGroup


def claim_findings(group: _Group, reading: Reading, gone: frozenset[str], view: View) -> list[Finding]:
    """What of a group's assignments contradicts itself or the topics that are there; ``gone`` went away just now."""
    if group.state != STABLE or group.hidden:
        return []
    return [*_twice(group, view), *_not_there(group, reading, gone, view)]


def _twice(group: _Group, view: View) -> Iterable[Finding]:
    twice = claimed_twice(group.members)
    if not twice:
        return
    partition, readers = next(iter(twice.items()))
    involved = {member.id: member for of in twice.values() for member in of}
    yield Finding(
        reason=FindingReason.PARTITION_CLAIMED_TWICE,
        subject=Subject("group", group.id),
        sentence=f"group {group.id} has {count(len(twice), 'partition')} that more than one member is assigned: "
        f"{partition} is assigned to {listed([member.id for member in readers])}, and each of them reads it",
        evidence=(
            ("partitions", len(twice)),
            ("first", first([str(name) for name in twice])),
            ("members", first(sorted(involved))),
            ("clients", first(sorted({member.client_id for member in involved.values()}))),
            ("hosts", first(sorted({member.client_host for member in involved.values()}))),
        ),
        severity=Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _not_there(group: _Group, reading: Reading, gone: frozenset[str], view: View) -> Iterable[Finding]:
    sizes = {name: facts.size for name, facts in zip(reading.topics, reading.facts, strict=True) if facts is not None}
    whole = view.ground.topics_whole
    strays: dict[TopicPartition, Member] = {}
    for member in group.members:
        for partition in member.assigned or ():
            size = sizes.get(partition.topic, 0 if whole else None)
            if size is not None and not 0 <= partition.partition < size and partition.topic not in gone:
                strays.setdefault(partition, member)
    if not strays:
        return
    names = sorted(strays)
    example = names[0]
    held = len({partition for member in group.members for partition in member.assigned or ()})
    if example.topic in sizes:
        why = f"{example.topic} has {count(sizes[example.topic], 'partition')}"
    else:
        why = f"no broker shows a topic {example.topic}"
    involved = {member.id: member for member in strays.values()}
    yield Finding(
        reason=FindingReason.ASSIGNED_WHAT_IS_NOT_THERE,
        subject=Subject("group", group.id),
        sentence=f"group {group.id} has {of_all(len(names), held, 'assigned partition')} that "
        f"{'does' if len(names) == 1 else 'do'} not exist: {example} is assigned to {strays[example].id}, and {why}",
        evidence=(
            ("partitions", len(names)),
            ("of", held),
            ("first", first([str(name) for name in names])),
            ("members", first(sorted(involved))),
            ("clients", first(sorted({member.client_id for member in involved.values()}))),
            ("hosts", first(sorted({member.client_host for member in involved.values()}))),
        ),
        severity=Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )

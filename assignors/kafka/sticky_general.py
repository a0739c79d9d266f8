"""``GeneralAssignmentBuilder`` of Kafka's ``AbstractStickyAssignor``: members subscribe to different topics.

Priorities: owned partitions (if local), racks for free partitions, then balance without racks (``sticky_balance``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace

from assignors.kafka.numbered_group import NumberedGroup, RackInfo
from assignors.kafka.sticky_balance import PartitionBlock, StickyBalance
from assignors.kafka.sticky_claims import StickyClaims

UNOWNED = -1


def assign_general(group: NumberedGroup, claims: StickyClaims, racks: RackInfo) -> list[list[int]]:
    """Return member -> partitions; raise ``AssignorFailedError`` where Kafka throws."""
    subscribers = _subscribers(group)
    owner, revoked = _kept(group, claims, racks)
    initializing = all(member == UNOWNED for member in owner)
    topics = sorted(range(len(subscribers)), key=lambda topic: len(subscribers[topic]))  # equal ones stay by name
    everything = [PartitionBlock(topic, subscribers[topic], group.partitions(topic)) for topic in topics]
    free = [
        block._replace(partitions=left)
        for block in everything
        if (left := [partition for partition in block.partitions if owner[partition] == UNOWNED])
    ]
    count = _fill(group, free, racks, owner)

    balance = StickyBalance(group, claims, everything, owner, count)
    if not revoked:
        balance.even_out(free)
    if balance.even_out(everything) and not initializing:
        balance.keep_if_better()
    given: list[list[int]] = [[] for _ in group.ids]
    for partition, member in enumerate(balance.owner):
        given[member].append(partition)
    return given


def _subscribers(group: NumberedGroup) -> list[list[int]]:
    """Topic -> its subscribers; one that names a topic twice is there twice, as with Kafka."""
    topics = {name: topic for topic, name in enumerate(group.names)}
    subscribers: list[list[int]] = [[] for _ in topics]
    for member, names in enumerate(group.subscriptions):
        for name in names:
            if name in topics:
                subscribers[topics[name]].append(member)
    return subscribers


def _kept(group: NumberedGroup, claims: StickyClaims, racks: RackInfo) -> tuple[list[int], bool]:
    """Partition -> the member that keeps it, and whether a member has to revoke an existing partition."""
    owner = [UNOWNED] * group.total
    topic_of = [name for topic, name in enumerate(group.names) for _ in group.sets[topic]]
    revoked = False
    for member, own in enumerate(claims.owned):
        topics, rack = frozenset(group.subscriptions[member]), racks.of_member[member]
        local = None if rack is None else racks.local[rack]
        for partition in own:
            if topic_of[partition] in topics and (local is None or local[racks.set_of[partition]]):
                owner[partition] = member
            else:
                revoked = True
    return owner, revoked


def _fill(group: NumberedGroup, free: Sequence[PartitionBlock], racks: RackInfo, owner: list[int]) -> list[int]:
    """Give each free partition to its least-loaded subscriber, local ones first; return member -> partitions."""
    loads = [0] * len(group.ids)
    for member in owner:
        if member != UNOWNED:
            loads[member] += 1
    if racks.followed:
        for block in free:
            _fill_locally(group, block, racks, owner, loads)
    for block in free:
        line = _line(group, block.subscribers, loads)
        for partition in block.partitions:
            if owner[partition] == UNOWNED:
                _give(line, partition, owner, loads)
    return loads


def _fill_locally(
    group: NumberedGroup, block: PartitionBlock, racks: RackInfo, owner: list[int], loads: list[int]
) -> None:
    in_rack: defaultdict[str | None, list[int]] = defaultdict(list)
    for member in block.subscribers:
        in_rack[racks.of_member[member]].append(member)
    lines = {rack: _line(group, members, loads) for rack, members in in_rack.items()}
    for partition in block.partitions:
        # A member without a rack is local everywhere.
        near = [lines[rack] for rack in (None, *racks.sets[racks.set_of[partition]]) if rack in lines]
        if near:
            _give(min(near), partition, owner, loads)


def _line(group: NumberedGroup, members: Iterable[int], loads: Sequence[int]) -> list[tuple[int, int, int]]:
    """A heap of members by load, then id."""
    line = [(loads[member], group.rank[member], member) for member in set(members)]
    heapify(line)
    return line


def _give(line: list[tuple[int, int, int]], partition: int, owner: list[int], loads: list[int]) -> None:
    load, rank, member = line[0]
    owner[partition] = member
    loads[member] = load + 1
    heapreplace(line, (load + 1, rank, member))

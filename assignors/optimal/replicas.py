"""Optimal set of moves after which no rack has more replicas of a partition than it must (KIP-36, KIP-455).

Rack rule: at most ceil(RF / racks) replicas of a partition in one rack, counting all racks that have brokers. Brokers
that accept nothing keep their replicas, but give first where a rack has too many. Priorities without ``balance``: the
rule; fewest bytes and replicas; relief of brokers that accept nothing; preferred leaders stay; fewest fetches across
racks of followers and readers; replica counts as even as the choices left allow. With ``balance``: the rule; even
counts; bytes; replicas; brokers that accept nothing; leaders. A replica on a broker of unknown rack counts as in
whichever rack would hurt, so a move is planned only where it helps in any case.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, pairwise, repeat
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from assignors.optimal.replica_flow import PartitionChoice, ReplicaChange, choose, nearest
from assignors.optimal.tight_flow import Ints
from assignors.problem import BadProblem, InfeasiblePartition, ReplicaProblem, ReplicaResult, ReplicaSet, TopicPartition


def optimal_replicas(problem: ReplicaProblem) -> ReplicaResult:
    """Return new replica lists for the partitions that change; equal input gives an equal answer in any input order.

    A partition for which no allowed placement keeps the rule is reported and the rest is still planned. Raises
    ``BadProblem`` when a broker or a partition occurs twice.
    """
    cluster = _read(problem)
    seats = _seats(problem, cluster)
    suspects = problem.partitions if problem.balance else _suspects(problem, cluster, seats)
    open_ones, infeasible = [], []
    for partition in sorted(suspects, key=attrgetter("id")):
        case = _case(cluster, partition, balance=problem.balance)
        if isinstance(case, InfeasiblePartition):
            infeasible.append(case)
        elif case is not None:
            open_ones.append((partition, case))
    counts = np.bincount(seats.broker[seats.broker >= 0], minlength=len(cluster.ids)).tolist()
    changes, exact = _choose(cluster, [case for _, case in open_ones], counts, balance=problem.balance)
    replicas: dict[TopicPartition, tuple[int, ...]] = {}
    moved = moved_bytes = needed = 0
    for (partition, case), change in zip(open_ones, changes, strict=True):
        needed += sum(case.over.values()) * case.size
        if change.gone:
            replicas[partition.id] = _reordered(partition.replicas, change, cluster.ids)
            moved += len(change.gone)
            moved_bytes += len(change.gone) * case.size
    bound = moved_bytes if exact else needed
    return ReplicaResult(
        replicas=replicas,
        infeasible=tuple(infeasible),
        moved_bytes=moved_bytes,
        moved_replicas=moved,
        lower_bound=bound,
        optimal=moved_bytes == bound,
    )


class _Cluster(NamedTuple):
    """Brokers in the order of their ids."""

    ids: list[int]
    number: dict[int, int]
    rack: list[int | None]
    rack_of: dict[int, int | None]
    """Broker id -> rack."""
    racks: list[str]
    accepts: list[bool]
    taking: list[int]
    """Accepting brokers per rack."""


def _read(problem: ReplicaProblem) -> _Cluster:
    brokers = sorted(problem.brokers, key=lambda broker: broker.id)
    number = {broker.id: index for index, broker in enumerate(brokers)}
    if len(number) != len(brokers):
        twice = min(one.id for one, other in pairwise(brokers) if one.id == other.id)
        raise BadProblem(f"broker {twice} occurs twice; name every broker once")
    if len(set(map(attrgetter("id"), problem.partitions))) != len(problem.partitions):
        names = Counter(partition.id for partition in problem.partitions)
        raise BadProblem(f"partition {min(each for each in names if names[each] > 1)} occurs twice; name each once")
    racks = sorted({broker.rack for broker in brokers if broker.rack is not None})
    index = {name: position for position, name in enumerate(racks)}
    rack_of = {broker.id: None if broker.rack is None else index[broker.rack] for broker in brokers}
    taking = Counter(broker.rack for broker in brokers if broker.accepts)
    return _Cluster(
        ids=[broker.id for broker in brokers],
        number=number,
        rack=list(rack_of.values()),
        rack_of=rack_of,
        racks=racks,
        accepts=[broker.accepts for broker in brokers],
        taking=[taking[name] for name in racks],
    )


class _Seats(NamedTuple):
    """One entry per replica of each partition, partition after partition."""

    broker: Ints
    """-1 for a broker that the cluster does not have."""
    size: Ints
    """Replicas of each partition."""


def _seats(problem: ReplicaProblem, cluster: _Cluster) -> _Seats:
    lists = list(map(attrgetter("replicas"), problem.partitions))
    size = np.fromiter(map(len, lists), np.int64, len(lists))
    return _Seats(np.fromiter(map(cluster.number.get, chain.from_iterable(lists), repeat(-1)), np.int64), size)


def _suspects(problem: ReplicaProblem, cluster: _Cluster, seats: _Seats) -> list[ReplicaSet]:
    """All partitions that break the rack rule or may break it, and as few others as a quick choice allows."""
    unknown, brokers = len(cluster.racks), len(cluster.ids) + 1
    rack = np.array([*(unknown if each is None else each for each in cluster.rack), unknown], np.int64)[seats.broker]
    partition = np.repeat(np.arange(len(seats.size)), seats.size)
    most = -(-seats.size // max(1, unknown))
    crowded = _more_than(most[partition], partition * (unknown + 1) + rack) // (unknown + 1)
    twice = _more_than(np.ones_like(partition), partition * brokers + seats.broker + 1) // brokers
    suspects = np.unique(np.concatenate([partition[rack == unknown], crowded, twice]))
    return list(map(problem.partitions.__getitem__, suspects.tolist()))


def _more_than(most: Ints, keys: Ints) -> Ints:
    """Keys that occur more often than ``most`` times; both come partition by partition, and so do keys once sorted."""
    ordered = np.sort(keys)
    later = np.arange(len(keys)) + most
    inside = np.flatnonzero(later < len(keys))
    found: Ints = ordered[inside[ordered[later[inside]] == ordered[inside]]]
    return found


def _case(cluster: _Cluster, partition: ReplicaSet, *, balance: bool) -> PartitionChoice | InfeasiblePartition | None:
    """What may change about a partition; None when nothing has to and, for the sake of balance, nothing may."""
    if len(set(partition.replicas)) != len(partition.replicas):
        return InfeasiblePartition(
            id=partition.id, why="its replica list has a broker twice; nothing is planned for such a list"
        )
    if not cluster.racks or not partition.replicas:
        return None
    holders: list[list[int]] = [[] for _ in cluster.racks]
    unknown = []
    for replica in partition.replicas:
        rack = cluster.rack_of.get(replica)
        if rack is None:
            unknown.append(replica)
        else:
            holders[rack].append(cluster.number[replica])
    most = -(-len(partition.replicas) // len(cluster.racks))
    over = {rack: len(mine) - most for rack, mine in enumerate(holders) if len(mine) > most}
    if not over and (unknown or not balance):
        return None
    room = {rack: most - len(mine) - len(unknown) for rack, mine in enumerate(holders)}
    free = {rack: cluster.taking[rack] - sum(cluster.accepts[each] for each in holders[rack]) for rack in room}
    possible = {rack: min(room[rack], free[rack]) for rack in room if room[rack] > 0 and free[rack] > 0}
    if sum(possible.values()) < sum(over.values()):
        return InfeasiblePartition(id=partition.id, why=_why(cluster, over, sum(possible.values()), unknown))
    size = 1 if partition.size_bytes is None else partition.size_bytes
    first = cluster.number.get(partition.replicas[0])
    moves = sum(over.values())
    near, room = (
        ({}, possible) if balance else nearest(possible, _fetches(cluster, partition, holders, possible), moves)
    )
    return PartitionChoice(
        size=size,
        first=first,
        stays=first if partition.keeps_leader else None,
        holders=holders,
        over=over,
        near=near,
        room=room,
        settled=bool(unknown),
    )


def _fetches(
    cluster: _Cluster, partition: ReplicaSet, holders: list[list[int]], room: dict[int, int]
) -> dict[int, list[int]]:
    """Rack -> what each more replica there adds to the fetches across racks, ascending."""
    leader_rack = cluster.rack_of.get(partition.replicas[0])
    readers = dict(partition.readers)
    return {
        rack: [
            (rack != leader_rack) - (0 if place or holders[rack] else readers.get(cluster.racks[rack], 0))
            for place in range(count)
        ]
        for rack, count in room.items()
    }


def _why(cluster: _Cluster, over: dict[int, int], possible: int, unknown: list[int]) -> str:
    crowded = " and ".join(cluster.racks[rack] for rack in over)
    excess = sum(over.values())
    start = f"{excess} of its replicas in rack {crowded} should move to other racks"
    if unknown:
        names = ", ".join(map(str, unknown))
        return f"{start}, but the rack of broker {names} is unknown, so no move is certain to help; set its broker.rack"
    shut = [name for name, taking in zip(cluster.racks, cluster.taking, strict=True) if not taking]
    reason = (
        f"no broker of rack {' or '.join(shut)} accepts replicas" if shut else "the other racks have too few brokers"
    )
    return f"{start}, but only {possible} can: {reason}; bring brokers back or add brokers there"


def _choose(
    cluster: _Cluster, cases: list[PartitionChoice], counts: list[int], *, balance: bool
) -> tuple[list[ReplicaChange], bool]:
    taking = [count for count, accepts in zip(counts, cluster.accepts, strict=True) if accepts]
    even = not taking or max(taking) - min(taking) <= 1
    if not cases or (even and not any(case.over for case in cases)):
        return [ReplicaChange((), ())] * len(cases), True
    return choose(cases, cluster.rack, cluster.accepts, counts, balance=balance)


def _reordered(replicas: tuple[int, ...], change: ReplicaChange, ids: list[int]) -> tuple[int, ...]:
    """New replicas take the places of those that went; a preferred leader that went is followed by one that stays."""
    gone = {ids[number] for number in change.gone}
    coming = iter(ids[number] for number in change.new)
    order = [next(coming) if replica in gone else replica for replica in replicas]
    if replicas[0] in gone:
        stays = next((place for place, replica in enumerate(replicas) if replica not in gone), 0)
        order[0], order[stays] = order[stays], order[0]
    return tuple(order)

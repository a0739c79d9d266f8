"""Optimal replica moves as one flow over brokers: which replicas go and which brokers take new ones.

    broker --goes--> (partition, rack) <--> partition            (the net change of a rack keeps the rule)
                     (partition, rack) --new--> brokers of the rack --> sink (replica counts)

A rack with too many replicas of a partition sends the surplus to the partition's node. With ``balance`` replicas may
also change brokers inside a rack, and partitions that keep the rule may move; without it, new replicas with the same
choices are one node.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, cycle, islice
from typing import NamedTuple

import numpy as np

from assignors.optimal.network import FlowNetwork
from assignors.optimal.ranges import NodeHub
from assignors.optimal.tight_flow import Ints

_MANY = 1 << 40
"""A capacity that never binds."""


class PartitionChoice(NamedTuple):
    """A partition that may or must change; brokers and racks are numbers."""

    size: int
    first: int | None
    """The preferred leader."""
    stays: int | None
    """The holder whose replica does not move, where there is one."""
    holders: list[list[int]]
    """Per rack the brokers that hold a replica."""
    over: dict[int, int]
    """Rack -> replicas that must leave it."""
    near: dict[int, int]
    """Rack -> how many of its ``room`` go before any other."""
    room: dict[int, int]
    """Rack -> replicas that it can take, where it can take any."""
    settled: bool
    """Some racks are not known: only what must move does."""


class ReplicaChange(NamedTuple):
    """Brokers that lose and brokers that gain the partition, each ascending."""

    gone: tuple[int, ...]
    new: tuple[int, ...]


def nearest(room: dict[int, int], costs: dict[int, list[int]], moves: int) -> tuple[dict[int, int], dict[int, int]]:
    """Which places a case may take so that its ``moves`` cost least: (what goes first, room), each by rack.

    ``costs`` are those of each place of a rack, ascending. No place is shared with another case, so what is least for
    each case is least for all.
    """
    last = sorted(cost for row in costs.values() for cost in row)[moves - 1]
    first = {rack: sum(cost < last for cost in costs[rack]) for rack in room}
    upto = {rack: sum(cost <= last for cost in costs[rack]) for rack in room}
    return {rack: units for rack, units in first.items() if units}, {rack: n for rack, n in upto.items() if n}


def choose(
    cases: list[PartitionChoice], rack: list[int | None], accepts: list[bool], counts: list[int], *, balance: bool
) -> tuple[list[ReplicaChange], bool]:
    """Return the change of each case, and whether it is proven optimal in every priority.

    ``counts`` are the replicas that each broker holds now, of all partitions.
    """
    wires = _wire(cases, rack, accepts, balance=balance)
    units, exact = _solve(wires, cases, accepts, counts, balance=balance)
    gone: list[list[int]] = [[] for _ in cases]
    new: list[list[int]] = [[] for _ in cases]
    at: list[list[int]] = [[] for _ in range(wires.size)]
    for (broker, case), carried in zip(wires.goes, units[: len(wires.goes)], strict=True):
        if carried:
            gone[case].append(broker)
    in_turn = [cycle(group) for group in wires.groups]
    for (tail, head, group), carried in zip(wires.comes, units[wires.first_comes :], strict=False):
        # Partitions walk from arc to arc until they reach a broker.
        if group is not None:
            at[head] += islice(in_turn[group], carried)
        elif carried:
            at[head] += at[tail][-carried:]
            del at[tail][-carried:]
    for broker in range(len(rack)):
        for case in at[broker]:
            new[case].append(broker)
    return [ReplicaChange(tuple(sorted(g)), tuple(sorted(n))) for g, n in zip(gone, new, strict=True)], exact


class _Wires(NamedTuple):
    """Arcs as lists; brokers are the first nodes."""

    size: int
    goes: list[tuple[int, int]]
    """(broker, case): a replica may go. Its arc ends in ``goes_to``."""
    goes_to: list[int]
    net: list[tuple[int, int, int, int]]
    """(tail, head, capacity, cost) between a partition and its racks."""
    comes: list[tuple[int, int, int | None]]
    """(tail, head, group): towards brokers, parents before children; the group where the arc starts at one."""
    supplies: list[tuple[int, int]]
    groups: list[list[int]]
    """Cases that send as many replicas by the same ways."""

    @property
    def first_comes(self) -> int:
        """Index of the first arc of ``comes``."""
        return len(self.goes) + len(self.net)


_Gate = tuple[int, int, tuple[int, ...]]
"""(How many go there first, room, entries) of a rack."""


def _wire(cases: list[PartitionChoice], rack: list[int | None], accepts: list[bool], *, balance: bool) -> _Wires:
    new_node = count(len(rack)).__next__
    hubs = _hubs(rack, accepts)
    wires = _Wires(0, [], [], [], [], [], [])
    alike: dict[tuple[int, tuple[_Gate, ...]], list[int]] = {}
    for number, case in enumerate(cases):
        if balance and not case.settled:
            _wire_loose(wires, hubs, new_node, accepts, (number, case))
            continue
        for place, over in case.over.items():
            node = new_node()
            wires.supplies.append((node, -over))
            leaving = [broker for broker in case.holders[place] if broker != case.stays]
            wires.goes.extend((broker, number) for broker in leaving)
            wires.goes_to.extend([node] * len(leaving))
        gates = tuple(
            [
                (case.near.get(place, 0), room, tuple(_entries(hubs[place], new_node, case.holders[place], room)))
                for place, room in case.room.items()
            ]
        )
        alike.setdefault((sum(case.over.values()), gates), []).append(number)
    for (over, gates), group in alike.items():
        _wire_group(wires, new_node, group, over, gates)
    for hub in hubs:
        wires.comes.extend((tail, head, None) for tail, head in hub.branches())
    return wires._replace(size=new_node())


def _wire_loose(
    wires: _Wires,
    hubs: list[NodeHub],
    new_node: Callable[[], int],
    accepts: list[bool],
    numbered: tuple[int, PartitionChoice],
) -> None:
    """Wire a case of which replicas may also move that need not."""
    number, case = numbered
    partition = new_node()
    wires.supplies.append((partition, sum(case.over.values())))
    for place, holders in enumerate(case.holders):
        over, room = case.over.get(place, 0), case.room.get(place, 0)
        leaving = [each for each in holders if (over or accepts[each]) and each != case.stays]
        if not leaving and not room:
            continue
        node = new_node()
        wires.supplies.append((node, -over))
        wires.goes.extend((broker, number) for broker in leaving)
        wires.goes_to.extend([node] * len(leaving))
        if len(leaving) > over:
            wires.net.append((node, partition, len(leaving) - over, 0))
        if room:
            wires.net.append((partition, node, room, 0))
        entries = _entries(hubs[place], new_node, holders, room + len(leaving))
        wires.comes.extend((node, entry, len(wires.groups)) for entry in entries)
    wires.groups.append([number])


def _wire_group(
    wires: _Wires,
    new_node: Callable[[], int],
    group: list[int],
    over: int,
    gates: tuple[_Gate, ...],
) -> None:
    """Wire the new replicas of cases that differ in nothing but what goes: one node for all, ``over`` for each.

    A gate (a rack) takes at most so many of a case and each of its entries one. The units of all cases dealt in turn,
    gate by gate and entry by entry, keep that for every case, because they keep it for all together. What a gate takes
    before others is free, so that it is taken.
    """
    dear = int(any(first for first, _, _ in gates))
    start = new_node()
    wires.supplies.append((start, over * len(group)))
    for first, room, entries in gates:
        node = start
        if dear or len(entries) > 1:
            node = new_node()
            if first:
                wires.net.append((start, node, first * len(group), 0))
            if room > first:
                wires.net.append((start, node, (room - first) * len(group), dear))
        wires.comes.extend((node, entry, len(wires.groups)) for entry in entries)
    wires.groups.append(group)


def _hubs(rack: list[int | None], accepts: list[bool]) -> list[NodeHub]:
    hubs = [NodeHub() for _ in range(1 + max((each for each in rack if each is not None), default=-1))]
    for broker, place in enumerate(rack):
        if place is not None and accepts[broker]:
            hubs[place].members.append(broker)
    return hubs


def _entries(hub: NodeHub, new_node: Callable[[], int], holders: list[int], most: int) -> list[int]:
    """Ways to the brokers of a rack that do not hold the partition; through shared nodes only one replica may go."""
    if most == 1:
        return list(hub.entries(new_node, holders))
    return [broker for broker in hub.members if broker not in holders] if most else []


def _solve(
    wires: _Wires, cases: list[PartitionChoice], accepts: list[bool], counts: list[int], *, balance: bool
) -> tuple[list[int], bool]:
    broker = np.array([each for each, _ in wires.goes], np.int64)
    case = np.array([each for _, each in wires.goes], np.int64)
    size = np.array([each.size for each in cases], np.int64)[case]
    drains = -(~np.array(accepts))[broker].astype(np.int64)
    leads = (np.array([-1 if each.first is None else each.first for each in cases], np.int64)[case] == broker).astype(
        np.int64
    )
    removable = np.bincount(broker, minlength=len(accepts))
    total = int(removable.sum())
    squares = total * (2 * (max(counts) + len(cases)) + 1)
    even = 0 if balance else 1
    # Leaders and racks are each case's own choice, so what is least in that order for each is least for all at once.
    most = 1 + max((sum(case.over.values()) for case in cases), default=0)
    costs = [0, size, 1, drains, leads] if balance else [most * (most * drains + leads)]
    spans = [total * int(size.max(initial=0)), total, total, total] if balance else [squares]

    network = FlowNetwork(spans)
    network.nodes(wires.size)
    sink = network.nodes(1)
    network.arcs(broker, wires.goes_to, 1, *costs)
    _add(network, wires.net)
    sizes = list(map(len, wires.groups))
    _add(network, [(tail, head, _MANY if group is None else sizes[group], 0) for tail, head, group in wires.comes])
    nodes, units = (np.array(each, np.int64) for each in zip(*wires.supplies, strict=True))
    network.supply(nodes, units)
    network.supply(np.arange(len(accepts)), removable)
    network.supply(sink, -total)
    taking = np.flatnonzero(accepts)
    others = np.flatnonzero(~np.array(accepts))
    network.arcs(others, sink, removable[others])
    now = np.array(counts, np.int64)
    least = now[taking] - removable[taking]
    guess = np.maximum(least, _level(least, int(now[taking].sum())))
    flow = network.solve_even(even, sink, taking, least, removable[taking] + len(cases), guess)
    carried: list[int] = flow.units.tolist()
    return carried, flow.exact


def _level(least: Ints, total: int) -> int:
    """Up to where counts rise when ``total`` replicas fill the brokers from below, as water does."""
    if not len(least):
        return 0
    ground = np.sort(least)
    above = ground.sum() - np.cumsum(ground)
    level = (total - above) // np.arange(1, len(ground) + 1)
    return int(level[np.flatnonzero(level >= ground)[-1]])


def _add(network: FlowNetwork, arcs: list[tuple[int, int, int, int]]) -> None:
    tails, heads, capacities, costs = zip(*arcs, strict=True) if arcs else ((), (), (), ())
    network.arcs(tails, heads, capacities, costs)

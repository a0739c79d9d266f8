"""Choose which replicas go and which brokers take new ones, as one flow over brokers.

    broker --goes--> (partition, rack) <--> partition            (the net change of a rack keeps the rule)
                     (partition, rack) --new--> brokers of the rack --> sink (replica counts)

A rack with too many replicas of a partition must send the surplus to the partition's node; racks with room take it.
With ``balance`` replicas may also change brokers inside a rack, and partitions that keep the rule may move as well.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np

from assignors.optimal.network import Network
from assignors.optimal.ranges import Hub

_MANY = 1 << 40
"""A capacity that never binds."""


class Choice(NamedTuple):
    """A partition that may or must change; brokers and racks are numbers."""

    size: int
    first: int | None
    """The preferred leader."""
    holders: list[list[int]]
    """Per rack the brokers that hold a replica."""
    over: dict[int, int]
    """Rack -> replicas that must leave it."""
    room: dict[int, int]
    """Rack -> replicas that it can take."""
    settled: bool
    """Some racks are not known: only what must move does."""


class Change(NamedTuple):
    """Brokers that lose and brokers that gain the partition, each ascending."""

    gone: tuple[int, ...]
    new: tuple[int, ...]


def choose(
    cases: list[Choice], rack: list[int | None], accepts: list[bool], counts: list[int], *, balance: bool
) -> tuple[list[Change], bool]:
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
    for (tail, head, start), carried in zip(wires.comes, units[wires.first_comes :], strict=False):
        # Partitions walk from arc to arc until they stand at a broker.
        if start is not None:
            at[head] += [start] * carried
        elif carried:
            at[head] += at[tail][-carried:]
            del at[tail][-carried:]
    for broker in range(len(rack)):
        for case in at[broker]:
            new[case].append(broker)
    return [Change(tuple(sorted(g)), tuple(sorted(n))) for g, n in zip(gone, new, strict=True)], exact


class _Wires(NamedTuple):
    """Arcs as lists; brokers are the first nodes."""

    size: int
    goes: list[tuple[int, int]]
    """(broker, case): a replica may go. Its arc ends in ``goes_to``."""
    goes_to: list[int]
    net: list[tuple[int, int, int]]
    """(tail, head, capacity) between a partition and its racks."""
    comes: list[tuple[int, int, int | None]]
    """(tail, head, case): towards brokers, parents before children; the case where the arc starts at one."""
    supplies: list[tuple[int, int]]

    @property
    def first_comes(self) -> int:
        """Index of the first arc of ``comes``."""
        return len(self.goes) + len(self.net)


def _wire(cases: list[Choice], rack: list[int | None], accepts: list[bool], *, balance: bool) -> _Wires:
    new_node = count(len(rack)).__next__
    hubs = _hubs(rack, accepts)
    wires = _Wires(0, [], [], [], [], [])
    for number, case in enumerate(cases):
        partition = new_node()
        wires.supplies.append((partition, sum(case.over.values())))
        for place, holders in enumerate(case.holders):
            over, room = case.over.get(place, 0), case.room.get(place, 0)
            loose = balance and not case.settled
            leaving = [each for each in holders if over or (loose and accepts[each])]
            if not leaving and not room:
                continue
            node = new_node()
            wires.supplies.append((node, -over))
            wires.goes.extend((broker, number) for broker in leaving)
            wires.goes_to.extend([node] * len(leaving))
            if len(leaving) > over and loose:
                wires.net.append((node, partition, len(leaving) - over))
            if room:
                wires.net.append((partition, node, room))
            most = room + (len(leaving) if loose else 0)
            wires.comes.extend((node, entry, number) for entry in _entries(hubs[place], new_node, holders, most))
    for hub in hubs:
        wires.comes.extend((tail, head, None) for tail, head in hub.branches())
    return wires._replace(size=new_node())


def _hubs(rack: list[int | None], accepts: list[bool]) -> list[Hub]:
    hubs = [Hub() for _ in range(1 + max((each for each in rack if each is not None), default=-1))]
    for broker, place in enumerate(rack):
        if place is not None and accepts[broker]:
            hubs[place].members.append(broker)
    return hubs


def _entries(hub: Hub, new_node: Callable[[], int], holders: list[int], most: int) -> list[int]:
    """Ways to the brokers of a rack that do not hold the partition; through shared nodes only one replica may go."""
    if most == 1:
        return list(hub.entries(new_node, holders))
    return [broker for broker in hub.members if broker not in holders] if most else []


def _solve(
    wires: _Wires, cases: list[Choice], accepts: list[bool], counts: list[int], *, balance: bool
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
    costs = [0, size, 1, drains, leads] if balance else [drains, 0, leads]
    spans = [total * int(size.max(initial=0)), total, total, total] if balance else [squares, total]

    network = Network(spans)
    network.nodes(wires.size)
    sink = network.nodes(1)
    network.arcs(broker, wires.goes_to, 1, *costs)
    _add(network, wires.net)
    _add(network, [(tail, head, 1 if number is not None else _MANY) for tail, head, number in wires.comes])
    nodes, units = (np.array(each, np.int64) for each in zip(*wires.supplies, strict=True))
    network.supply(nodes, units)
    network.supply(np.arange(len(accepts)), removable)
    network.supply(sink, -total)
    taking = np.flatnonzero(accepts)
    others = np.flatnonzero(~np.array(accepts))
    network.arcs(others, sink, removable[others])
    now = np.array(counts, np.int64)
    guess = np.full(len(taking), int(now[taking].sum()) // max(1, len(taking))) if balance else now[taking]
    flow = network.solve_even(
        even, sink, taking, now[taking] - removable[taking], removable[taking] + len(cases), guess
    )
    carried: list[int] = flow.units.tolist()
    return carried, flow.exact


def _add(network: Network, arcs: list[tuple[int, int, int]]) -> None:
    tails, heads, capacities = zip(*arcs, strict=True) if arcs else ((), (), ())
    network.arcs(tails, heads, capacities)

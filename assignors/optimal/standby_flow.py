"""One round of standbys by one flow: each seat (a task that needs standbys) gets so many different processes.

    seats of one kind -> profile -> holder or hub (profile, rack) -> process -> sink

Levels of cost: imbalance as ``off_share``, then the price. Processes with a copy are barred by a tree of ranges.
Equal seats are one node, and at most as many of its units enter a profile as it has seats, so none gets one twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from assignors.optimal.network import FlowNetwork
from assignors.optimal.ranges import NodeHub


class StandbyDemand(NamedTuple):
    """A task that needs standbys."""

    profiles: tuple[int, ...]
    """Where they may go."""
    barred: tuple[int, ...]
    """Processes in those profiles that hold a copy already."""
    holders: tuple[int, ...]
    """Processes in those profiles that held the task before, not barred."""
    price: tuple[int, ...]
    """Price per rack on a holder; on others ``move`` is added."""


class StandbyRound(NamedTuple):
    """All seats, and per process its profile, rack and how many it should take: between ``low`` and ``high``."""

    seats: list[StandbyDemand]
    copies: int
    profile: list[int]
    rack: list[int]
    move: int
    low: list[int]
    high: list[int]


def place_round(case: StandbyRound) -> list[tuple[int, ...]]:
    """Give every seat its processes at the least cost, level by level.

    ``copies`` above 1 is allowed only where every seat may use that many profiles.
    """
    kinds: dict[StandbyDemand, list[int]] = {}
    for number, seat in enumerate(case.seats):
        kinds.setdefault(seat, []).append(number)
    wires = _wire(case, kinds)
    return _deal(case, list(kinds.values()), wires, wires.solve(case))


@dataclass(slots=True)
class _Wires:
    """Arcs as lists, parents before children, processes being the first nodes."""

    size: int
    tails: list[int] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    capacities: list[int] = field(default_factory=list)
    prices: list[int] = field(default_factory=list)
    supplies: dict[int, int] = field(default_factory=dict)
    first_kind: int = 0

    def node(self) -> int:
        """Add a node."""
        self.size += 1
        return self.size - 1

    def arc(self, tail: int, head: int, price: int = 0, capacity: int = 1 << 40) -> None:
        """Add an arc; without a capacity it never binds."""
        self.tails.append(tail)
        self.heads.append(head)
        self.capacities.append(capacity)
        self.prices.append(price)

    def solve(self, case: StandbyRound) -> list[int]:
        """Units per arc."""
        total = len(case.seats) * case.copies
        steps = total.bit_length() + 2
        highest = max(self.prices, default=0)
        network = FlowNetwork([total * highest])
        network.nodes(self.size)
        network.supply(list(self.supplies), list(self.supplies.values()))
        carried = network.arcs(self.tails, self.heads, self.capacities, 0, self.prices)
        sink = network.nodes(1)
        network.supply(sink, -total)
        for process, (low, high) in enumerate(zip(case.low, case.high, strict=True)):
            # The unit between floor and ceil costs 1 and units above cost 1 more than they are off, because together
            # with what is missing elsewhere that adds up to a constant and all that is off.
            rounded_down, over = max(0, low), max(0, -high)
            network.arcs(process, sink, rounded_down)
            network.arcs(process, sink, max(0, high) - rounded_down, 1)
            widths = [max(0, (2 << step) - 1 - max(over, (1 << step) - 1)) for step in range(steps + over.bit_length())]
            network.arcs(process, sink, widths, [2 + step for step in range(len(widths))])
        units: list[int] = network.solve().units[carried].tolist()
        return units


def _wire(case: StandbyRound, kinds: dict[StandbyDemand, list[int]]) -> _Wires:
    wires = _Wires(size=len(case.profile) + len(kinds), first_kind=len(case.profile))
    hubs = _hubs(case)
    for gate, seat, profile in _gates(case, kinds, wires):
        for holder in seat.holders:
            if case.profile[holder] == profile:
                wires.arc(gate, holder, seat.price[case.rack[holder]])
        for rack, hub in hubs[profile].items():
            for entry in hub.entries(wires.node, seat.barred):
                wires.arc(gate, entry, seat.price[rack] + case.move)
    for hub in (hub for mine in hubs.values() for hub in mine.values()):
        for tail, head in hub.branches():
            wires.arc(tail, head)
    return wires


def _gates(
    case: StandbyRound, kinds: dict[StandbyDemand, list[int]], wires: _Wires
) -> list[tuple[int, StandbyDemand, int]]:
    """Where the seats of a kind enter each of their profiles: at the kind itself when they need one copy only."""
    gates = []
    for node, (seat, seats) in enumerate(kinds.items(), wires.first_kind):
        wires.supplies[node] = len(seats) * case.copies
        for profile in seat.profiles:
            gate = node
            if case.copies > 1:
                gate = wires.node()
                wires.arc(node, gate, capacity=len(seats))
            gates.append((gate, seat, profile))
    return gates


def _hubs(case: StandbyRound) -> dict[int, dict[int, NodeHub]]:
    """Profile -> rack -> hub."""
    hubs: dict[int, dict[int, NodeHub]] = {}
    for process, (profile, rack) in enumerate(zip(case.profile, case.rack, strict=True)):
        hubs.setdefault(profile, {}).setdefault(rack, NodeHub()).members.append(process)
    return hubs


def _deal(case: StandbyRound, groups: list[list[int]], wires: _Wires, units: list[int]) -> list[tuple[int, ...]]:
    """Seats walk along the arcs that carry units, layer by layer, until they reach a process."""
    at: list[list[int]] = [[] for _ in range(wires.size)]
    for node, seats in enumerate(groups, wires.first_kind):
        at[node] = seats * case.copies
    for tail, head, count in zip(wires.tails, wires.heads, units, strict=True):
        if count:
            # A kind with several copies lists its seats that often; no run as long as the seats repeats one.
            waiting = at[tail]
            at[head] += waiting[-count:]
            del waiting[-count:]
    taken: list[list[int]] = [[] for _ in case.seats]
    for process in range(len(case.profile)):
        for seat in at[process]:
            taken[seat].append(process)
    return [tuple(each) for each in taken]

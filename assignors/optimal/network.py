"""Minimum-cost flow with proof: OR-Tools' cost-scaling solver, or ``tight_flow`` for few different costs.

Nodes are dense integers, arcs bulk arrays, costs integers in *levels*: a later level only decides between flows that
are equal in all earlier ones. Equal input gives equal output. Levels that do not fit 64 bits together are solved one
after the other on the face of optimal flows (arcs with a reduced cost are fixed), which is exact. Only where the first
level alone does not fit its costs are rounded down to a power of two; ``NetworkFlow.bound`` is then below
``NetworkFlow.cost`` and still proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from assignors.optimal.tight_flow import InfeasibleFlowError, Ints, tight_flow

__all__ = [
    "CostTooLarge",
    "FlowNetwork",
    "NetworkArcs",
    "NetworkFlow",
    "cheapest",
    "prices",
    "route",
    "total",
]

Status = SimpleMinCostFlow.Status

_SAFE = 1 << 61
"""Costs times nodes stay below this in calls of the solver; it keeps the rest for prices."""


_LARGE = 8_000
"""Arcs from which on it pays to try maximum flows first."""
_MIDDLE = 8
"""Counts nearer to the guess than this have arcs of their own."""


class CostTooLarge(Exception):  # noqa: N818 (the caller answers it by smaller numbers)
    """Costs times nodes do not fit into the solver's 64 bits."""


class NetworkFlow(NamedTuple):
    """An optimal flow: units per arc, in the order the arcs were added."""

    units: Ints
    cost: int
    """Cost in the first level."""
    bound: int
    """No flow costs less in the first level; equal to ``cost`` unless its costs had to be coarsened."""
    exact: bool
    """No level's costs had to be coarsened: the flow is optimal level by level."""


class NetworkArcs(NamedTuple):
    """Arcs of a network; ``costs`` has one row per arc in each level, or is one level alone."""

    tails: Ints
    heads: Ints
    capacities: Ints
    costs: Ints


class FlowNetwork:
    """A network under construction; ``spans[i]`` bounds by how much the total of level i + 1 can differ at all."""

    def __init__(self, spans: Sequence[int] = ()) -> None:
        self._spans = tuple(spans)
        self._size = 0
        self._tails: list[Ints] = []
        self._heads: list[Ints] = []
        self._capacities: list[Ints] = []
        self._costs: list[Ints] = []
        self._supplies: list[tuple[Any, Any]] = []
        self._arcs = 0

    def nodes(self, count: int) -> int:
        """Reserve ``count`` consecutive nodes and return the first."""
        first = self._size
        self._size += count
        return first

    def arcs(self, tails: Any, heads: Any, capacities: Any, *costs: Any) -> slice:
        """Add arcs in bulk (scalars are broadcast; missing levels cost nothing); the slice finds their units again."""
        count = np.broadcast(tails, heads, capacities, *costs).size
        levels = np.zeros((len(self._spans) + 1, count), np.int64)
        for level, cost in enumerate(costs):
            levels[level] = cost
        self._tails.append(_filled(tails, count))
        self._heads.append(_filled(heads, count))
        self._capacities.append(_filled(capacities, count))
        self._costs.append(levels)
        self._arcs += count
        return slice(self._arcs - count, self._arcs)

    def supply(self, nodes: Any, units: Any) -> None:
        """Let ``units`` enter at ``nodes`` (negative: leave); amounts at one node add up."""
        self._supplies.append((nodes, units))

    def solve(self) -> NetworkFlow:
        """Find a flow that is least in the first level, then in the second, and so on.

        Raises ``InfeasibleFlowError`` when the capacities do not allow any flow.
        """
        tails, heads, capacities = (_joined(part) for part in (self._tails, self._heads, self._capacities))
        levels = np.concatenate(self._costs, axis=1) if self._costs else np.zeros((len(self._spans) + 1, 0), np.int64)
        supplies = np.zeros(self._size, np.int64)
        for nodes, units in self._supplies:
            np.add.at(supplies, nodes, units)
        return _solve(NetworkArcs(tails, heads, capacities, levels), self._spans, supplies)

    def solve_even(self, level: int, sink: int, nodes: Ints, base: Ints, room: Ints, guess: Ints) -> NetworkFlow:  # noqa: PLR0917 (one row of facts per node)
        """Solve with arcs from ``nodes`` to ``sink`` on which base + units become as even as possible in one level.

        A node takes up to ``room`` units; ``guess`` is where the counts may end, and only costs time when it is wrong.

        The level prices the sum of squares. Only counts near a guess get arcs of their own, those farther off share
        arcs priced by chords, which never underrate; where a solution leaves the exact middle it becomes the next
        guess. The sum of squares cannot rise from guess to guess, and a solution inside the middle is optimal,
        because optimal counts differ from each other by at most one each.
        """
        parts, arcs = len(self._tails), self._arcs
        while True:
            low, high, who = _segments(guess, base, room)
            sunk = self.arcs(nodes[who], sink, high - low, *([0] * level), low + high)
            flow = self.solve()
            for joined in (self._tails, self._heads, self._capacities, self._costs):
                del joined[parts:]
            self._arcs = arcs
            found = base + np.bincount(who, flow.units[sunk], minlength=len(nodes)).astype(np.int64)
            if (np.abs(found - guess) < _MIDDLE).all():
                return flow
            guess = found


def _segments(guess: Ints, base: Ints, room: Ints) -> tuple[Ints, Ints, Ints]:
    """Counts from base to base + room, cut into single steps around the guess and doubling ones farther off."""
    steps = [*range(_MIDDLE), *(_MIDDLE << step for step in range(48))]
    edges = np.array([-step for step in reversed(steps[1:])] + steps, np.int64)
    cuts = np.clip(guess[:, None] + edges, base[:, None], (base + room)[:, None])
    low, high = cuts[:, :-1], cuts[:, 1:]
    who, where = np.nonzero(high > low)
    return low[who, where], high[who, where], who


def route(tails: Any, heads: Any, capacities: Any, costs: Any, supplies: Any) -> Ints:
    """Solve one level once, arrays or lists in, units per arc out.

    Raises ``InfeasibleFlowError`` when nothing fits and ``CostTooLarge`` when the solver refuses the costs.
    """
    solver = SimpleMinCostFlow()
    heads = np.asarray(heads, np.int32)
    supplies = np.asarray(supplies, np.int64)
    solver.add_arcs_with_capacity_and_unit_cost(
        np.asarray(tails, np.int32), heads, np.asarray(capacities, np.int64), np.asarray(costs, np.int64)
    )
    solver.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies)
    status = solver.solve()
    if status == Status.OPTIMAL:
        units: Ints = solver.flows(np.arange(len(heads), dtype=np.int32))
        return units
    if status == Status.BAD_COST_RANGE:
        raise CostTooLarge
    if status in (Status.INFEASIBLE, Status.UNBALANCED):
        raise InfeasibleFlowError
    raise ArithmeticError(f"the flow solver ended with {status.name} on {len(heads)} arcs")


def cheapest(arcs: NetworkArcs, costs: Ints, supplies: Ints) -> Ints:
    """Units per arc of a flow of least cost, by whichever way is quicker. Raises as ``route`` does."""
    quick = tight_flow(*arcs[:3], costs, supplies) if len(costs) >= _LARGE else None
    return route(*arcs[:3], costs, supplies) if quick is None else quick


def prices(arcs: NetworkArcs, units: Ints, size: int) -> Ints:
    """Node prices that prove a flow optimal: no arc with room left has a negative reduced cost.

    Bellman-Ford over the residual arcs, all arcs of a round at once. Raises ``ArithmeticError`` when there is a cycle
    of negative cost, that is when the flow is not optimal: this is the certificate that tests check.
    """
    room, used = units < arcs.capacities, units > 0
    start = np.concatenate([arcs.tails[room], arcs.heads[used]])
    end = np.concatenate([arcs.heads[room], arcs.tails[used]])
    cost = np.concatenate([arcs.costs[room], -arcs.costs[used]])
    price = np.zeros(size, np.int64)
    for _ in range(size + 1):
        lower = price.copy()
        np.minimum.at(lower, end, price[start] + cost)
        if np.array_equal(lower, price):
            return price
        price = lower
    raise ArithmeticError("the flow is not optimal: its residual network has a cycle of negative cost")


def total(costs: Ints, units: Ints) -> int:
    """Sum of cost times units, exact also where it leaves 64 bits."""
    if not units.size:
        return 0
    if int(np.abs(costs).max()) * int(units.sum()) < _SAFE:
        return int(np.dot(costs, units))
    return sum(cost * count for cost, count in zip(costs.tolist(), units.tolist(), strict=True) if count)


def _solve(arcs: NetworkArcs, spans: tuple[int, ...], supplies: Ints) -> NetworkFlow:
    """Level after level, each on the face of what is optimal so far, as many levels at once as fit into one cost."""
    tails, heads, capacities, levels = arcs
    units = np.zeros_like(capacities)
    free = np.arange(len(capacities))
    cost = bound = done = 0
    exact = True
    while done < len(levels):
        units[free] = 0
        left = supplies.copy()
        np.subtract.at(left, tails, units)
        np.add.at(left, heads, units)
        rest = NetworkArcs(tails[free], heads[free], capacities[free], levels[done:, free])
        found, used, shift, count = _route_levels(rest, spans[done:], left)
        units[free] = found
        exact &= not shift
        if not done:
            cost = total(levels[0], units)
            bound = total(used, found) << shift if shift else cost
        done += count
        if done < len(levels):
            price = prices(rest._replace(costs=used), found, len(supplies))
            free = free[used + price[rest.tails] == price[rest.heads]]
    return NetworkFlow(units, cost, bound, exact=exact)


def _route_levels(arcs: NetworkArcs, spans: tuple[int, ...], supplies: Ints) -> tuple[Ints, Ints, int, int]:
    """Units, the costs used, by how many bits they were rounded down (0: exact), and how many levels they decide."""
    levels = len(arcs.costs)
    while levels > 1:
        merged = _merge(arcs.costs[:levels], spans[: levels - 1], len(supplies))
        if merged is not None:
            try:
                return cheapest(arcs, merged, supplies), merged, 0, levels
            except CostTooLarge:
                pass
        levels -= 1
    shift = 0
    while True:
        used = arcs.costs[0] >> shift
        try:
            return cheapest(arcs, used, supplies), used, shift, 1
        except CostTooLarge:
            shift += 4


def _merge(levels: Ints, spans: tuple[int, ...], size: int) -> Ints | None:
    """All levels as one cost, each unit of a level above all that later ones can differ by; None when too large."""
    factors = [1]
    for span in reversed(spans):
        factors.insert(0, factors[0] * (span + 1))
    largest = (int(np.abs(level).max(initial=0)) for level in levels)
    if sum(most * factor for most, factor in zip(largest, factors, strict=True)) * (size + 1) > _SAFE:
        return None
    merged: Ints = levels[-1].copy()
    for level, factor in zip(levels[:-1], factors[:-1], strict=True):
        merged += level * factor
    return merged


def _filled(values: Any, count: int) -> Ints:
    array = np.asarray(values, np.int64)
    return array if array.shape == (count,) else np.broadcast_to(array, (count,))


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)

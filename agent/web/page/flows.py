"""Flows between racks by path, from the ledger of reads and copies; what is unknown is counted beside them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.money.costs import CrossRackCosts
from agent.money.traffic import CrossRackTraffic
from agent.values.limits import Limits
from agent.values.progress import ReplicaProgress
from agent.values.rates import priced
from agent.values.snapshot import RackState, Snapshot

REPLICATE, CONSUME, MOVE = "replicate", "consume", "move"
PATH_WORDS = {
    REPLICATE: "followers that copy from their leader",
    CONSUME: "consumers and tasks that read",
    MOVE: "replicas that a reassignment adds",
}


class RackFlow(NamedTuple):
    """Bytes per second on one path from one rack to another."""

    source: str
    target: str
    path: str
    bytes_per_s: float | None
    """None where it is there and its rate is unknown."""
    usd_per_day: float | None
    """None also where the pair has no price."""
    parts: int | None = None
    """Replicas on the path ``move``; None elsewhere."""


class UnknownFlows(NamedTuple):
    """What of a path is in no flow, because a rack, a route or a rate is unknown."""

    path: str
    parts: int
    """Reads or copies on the path."""
    unknown: int
    open_bytes_per_s: float
    """Bytes per second of those with a known rate."""
    unbounded: int
    """Those without a rate."""


class RackFlows(NamedTuple):
    """All flows between racks."""

    flows: tuple[RackFlow, ...]
    """The largest first."""
    unknown: tuple[UnknownFlows, ...]
    """Of the paths of which something is unknown."""
    is_measured: bool
    """Whether any rate is known: without one no pair of racks is known to be quiet."""

    @property
    def largest(self) -> float:
        """Bytes per second of the largest flow; 0.0 without one."""
        return max((flow.bytes_per_s or 0.0 for flow in self.flows), default=0.0)


def rack_flows(
    costs: CrossRackCosts, snapshot: Snapshot, limits: Limits, copies: Iterable[ReplicaProgress] = ()
) -> RackFlows:
    """Flows of copies, of reads, and of reassignments in progress; ``copies``: how fast these are."""
    flows = [
        RackFlow(source, target, path, rate, _price(source, target, rate, limits))
        for path, traffic in ((REPLICATE, costs.replicate), (CONSUME, costs.consume))
        for (source, target), rate in traffic.flows.items()
    ]
    for (source, target), rates in _moves(snapshot, copies).items():
        known = [rate for rate in rates if rate is not None]
        total = sum(known) if known else None
        price = None if total is None else _price(source, target, total, limits)
        flows.append(RackFlow(source, target, MOVE, total, price, len(rates)))
    flows.sort(key=lambda flow: (-(flow.bytes_per_s or 0.0), flow.source, flow.target, flow.path))
    paths = ((REPLICATE, costs.replicate), (CONSUME, costs.consume))
    unknown = tuple(_unknown(path, traffic) for path, traffic in paths if traffic.unknown)
    return RackFlows(tuple(flows), unknown, bool(snapshot.bytes_per_s))


def _price(source: str, target: str, rate: float, limits: Limits) -> float | None:
    price = limits.price.between.get((source, target), limits.price.usd_per_gb)
    return None if price is None else priced(rate, price)


def _unknown(path: str, traffic: CrossRackTraffic) -> UnknownFlows:
    return UnknownFlows(path, traffic.parts, traffic.unknown, traffic.open_bytes_per_s, traffic.unbounded)


def _moves(snapshot: Snapshot, copies: Iterable[ReplicaProgress]) -> Mapping[tuple[str, str], Sequence[float | None]]:
    """(rack of the leader, rack of the new replica) -> bytes per second of each replica that is being added."""
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    rates = {(copy.id, copy.broker): copy.bytes_per_s for copy in copies}
    found: dict[tuple[str, str], list[float | None]] = {}
    topics = {move.id.topic for move in snapshot.reassignments.values()} & snapshot.topics.keys()
    leaders = {state.id: state.leader for name in topics for state in snapshot.topics[name].partitions}
    for move in snapshot.reassignments.values():
        leader = leaders.get(move.id)
        source = racks.get(leader) if leader is not None else None
        for broker in move.adding:
            target = racks.get(broker)
            if source is not None and target is not None and source != target:
                found.setdefault((source, target), []).append(rates.get((move.id, broker)))
    return dict(sorted(found.items()))

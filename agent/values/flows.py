"""How many bytes per second go from which rack to which, and what that costs.

Two of the four paths of a record can be told from outside: leader to follower, and leader (or a near in-sync replica)
to reader. Where producers live is not visible, so what they send across racks is never part of a figure; copies made
by a reassignment are told apart, by their bytes.

Invariant: one unknown rate, rack or selector makes the whole figure unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.values.limits import Limits
from agent.values.snapshot import PartitionState
from assignors.problem import TopicPartition

Flows = Mapping[tuple[str, str], float]
"""(from rack, to rack) -> bytes per second, crossings only."""
Racks = Mapping[int, str]
"""Broker -> rack, brokers of known rack only."""

SECONDS_PER_DAY = 86_400
BYTES_PER_GB = 1_000_000_000


class Reader(NamedTuple):
    """Reads of one partition by readers of one rack."""

    partition: TopicPartition
    rack: str | None
    readers: int = 1


def add(*parts: Flows | None) -> Flows | None:
    """The sum of flows; None when one of them is unknown."""
    total: dict[tuple[str, str], float] = {}
    for part in parts:
        if part is None:
            return None
        for pair, rate in part.items():
            total[pair] = total.get(pair, 0.0) + rate
    return total


def read_flows(
    readers: Iterable[Reader],
    states: Mapping[TopicPartition, PartitionState],
    racks: Racks,
    rates: Mapping[TopicPartition, float],
    *,
    selector: bool | None,
) -> Flows | None:
    """What readers fetch from other racks."""
    flows: dict[tuple[str, str], float] = {}
    for partition, rack, number in readers:
        state, rate = states.get(partition), rates.get(partition)
        if state is None or rate is None or rack is None or state.leader is None:
            return None
        source = racks.get(state.leader)
        if source is None:
            return None
        if source == rack:
            continue
        near = any(racks.get(broker) == rack for broker in state.isr)
        if near and selector is None:
            return None
        if not (near and selector):
            flows[source, rack] = flows.get((source, rack), 0.0) + rate * number
    return flows


def replication_flows(
    states: Iterable[PartitionState], racks: Racks, rates: Mapping[TopicPartition, float]
) -> Flows | None:
    """What followers fetch from leaders in other racks."""
    flows: dict[tuple[str, str], float] = {}
    for state in states:
        rate = rates.get(state.id)
        source = racks.get(state.leader) if state.leader is not None else None
        if rate is None or source is None:
            return None
        for broker in state.replicas:
            target = racks.get(broker)
            if target is None:
                return None
            if target != source:
                flows[source, target] = flows.get((source, target), 0.0) + rate
    return flows


def bytes_per_s(flows: Flows | None) -> float | None:
    """All bytes per second that cross racks."""
    return None if flows is None else round(sum(flows[pair] for pair in sorted(flows)), 3)


def usd_per_day(flows: Flows | None, limits: Limits) -> float | None:
    """The price of the flows; None when they are unknown or one of them has no price."""
    if flows is None:
        return None
    total = 0.0
    for pair in sorted(flows):
        price = limits.price.between.get(pair, limits.price.usd_per_gb)
        if price is None:
            return None
        total += priced(flows[pair], price)
    return round(total, 8)


def priced(rate: float, usd_per_gb: float) -> float:
    """Dollars a day of that many bytes per second; rounded far below what a person reads, so that little is not 0."""
    return round(rate * SECONDS_PER_DAY / BYTES_PER_GB * usd_per_gb, 8)


def highest_price(limits: Limits) -> float | None:
    """The dearest price that a crossing byte can have; None where one may have none."""
    return None if limits.price.usd_per_gb is None else max((limits.price.usd_per_gb, *limits.price.between.values()))

"""Bytes per second between racks, their price in dollars a day, and the source of the rates.

A rate needs end offsets of two looks, and sizes on disk for the size of a record; weights of the pipeline need neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from agent.values.limits import Limits
from agent.values.number_format import counted, lasted, usd_per_gb
from agent.values.snapshot import PartitionState, Snapshot
from assignors.problem import TopicPartition

SHORTEST_BASE_MS = 5_000
"""Milliseconds between two looks from which end offsets give a rate."""


class RateSource(StrEnum):
    """The source of rates."""

    COMMAND = "command"
    """This command, from two looks."""
    AGENT = "agent"
    """The running agent, whose telemetry holds the base of this look."""
    FILE = "file"
    """The agent of the replayed file."""
    WEIGHTS = "weights"
    """The pipeline, for every partition with a rate."""
    UNKNOWN = "unknown"


class RateMeasurement(NamedTuple):
    """The source of rates, with its time."""

    measured: RateSource = RateSource.UNKNOWN
    seconds: float | None = None
    """Length of the measurement."""
    look: str | None = None
    """Id of the agent's look that is the base."""
    look_age_ms: int | None = None
    why_not: str | None = None
    """Why the agent's telemetry has no rates, as one clause."""
    remedy: str = "--for 10s measures them"
    """What measures missing rates; empty where nothing does."""


UNKNOWN_RATES = RateMeasurement()
_NO_TOPICS = "no topic was seen"
_NO_END_OFFSETS = "end offsets did not answer"
_NO_SIZES = "log dirs did not answer, so the size of a record is not known"
_NO_RECORD_SIZE = {
    RateSource.COMMAND: ("no log dir grew between the two looks, so the size of a record is not known", ""),
    RateSource.AGENT: ("the agent has not seen a log dir grow yet, so the size of a record is not known", None),
    RateSource.FILE: ("the look in the file is the first of its agent, or no log dir grew before it", ""),
}
"""Source -> why no record size is known although all parts answered, and the remedy; None for the usual one."""


def judged(rates: RateMeasurement, snapshot: Snapshot) -> RateMeasurement:
    """The source by the snapshot's rates: WEIGHTS where they cover all rates, none without rates."""
    if not snapshot.bytes_per_s:
        return rates if rates.measured is RateSource.UNKNOWN else _unmeasured(rates, snapshot)
    weighed = snapshot.weighed.bytes_per_s
    if weighed and (rates.measured is RateSource.UNKNOWN or snapshot.bytes_per_s.keys() <= weighed.keys()):
        return RateMeasurement(RateSource.WEIGHTS)
    return rates


def _unmeasured(rates: RateMeasurement, snapshot: Snapshot) -> RateMeasurement:
    """Why two looks gave no rates."""
    if not snapshot.topics:
        return RateMeasurement(why_not=_NO_TOPICS, remedy="")
    if not snapshot.end_offsets:
        return RateMeasurement(why_not=_NO_END_OFFSETS, remedy="")
    if not snapshot.size_bytes:
        return RateMeasurement(why_not=_NO_SIZES, remedy="")
    why, remedy = _NO_RECORD_SIZE.get(rates.measured, (rates.why_not, None))
    return RateMeasurement(why_not=why, remedy=rates.remedy if remedy is None else remedy)


def sentence(rates: RateMeasurement, snapshot: Snapshot) -> str:
    """The source of the rates in one sentence."""
    weighed = len(snapshot.weighed.bytes_per_s)
    of_all = counted(len(snapshot.bytes_per_s), "partition")
    also = f"; weights of the pipeline for {weighed:,} of {of_all}" if weighed else ""
    match rates.measured:
        case RateSource.COMMAND:
            return f"rates: measured over {rates.seconds:.0f} s by this command{also}"
        case RateSource.AGENT:
            age = f"look {rates.look}, {lasted(rates.look_age_ms or 0)} old"
            return f"rates: from the agent's telemetry ({age}), over {rates.seconds:.0f} s{also}"
        case RateSource.FILE:
            return f"rates: as the agent that wrote the file measured them{also}"
        case RateSource.WEIGHTS:
            return "rates: weights of the pipeline"
        case RateSource.UNKNOWN if not snapshot.topics:
            return "rates: nothing to measure, as no topic was seen"
        case RateSource.UNKNOWN:
            why = rates.why_not or "this is one look"
            return f"rates: unknown, as {why}{f'; {rates.remedy}' if rates.remedy else ''}"


def is_priced(limits: Limits) -> bool:
    """Whether a price is set; without one no money is known."""
    return limits.price.usd_per_gb is not None or bool(limits.price.between)


def price_sentence(limits: Limits) -> str:
    """The price in force, with its setting."""
    if limits.price.usd_per_gb is None and not limits.price.between:
        return "no price is set (price.usd_per_gb), so no money is shown"
    price = "no price (price.usd_per_gb)" if limits.price.usd_per_gb is None else usd_per_gb(limits.price.usd_per_gb)
    pairs = counted(len({frozenset(pair) for pair in limits.price.between}), "pair")
    between = f"; price.between sets another price for {pairs} of racks" if limits.price.between else ""
    named = " (price.usd_per_gb)" if limits.price.usd_per_gb is not None else ""
    return f"money: at {price}{named}, both directions together{between}"


# Flows have two of a record's four paths: leader to follower, and leader (or a near in-sync replica) to reader. Racks
# of producers are not visible, and copies by a reassignment are counted apart, by their bytes. One unknown rate, rack
# or selector makes the whole figure unknown.

Flows = Mapping[tuple[str, str], float]
"""(from rack, to rack) -> bytes per second, crossings only."""
Racks = Mapping[int, str]
"""Broker -> rack, brokers of known rack only."""

SECONDS_PER_DAY = 86_400
BYTES_PER_GB = 1_000_000_000


class RackReads(NamedTuple):
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
    readers: Iterable[RackReads],
    states: Mapping[TopicPartition, PartitionState],
    racks: Racks,
    rates: Mapping[TopicPartition, float],
    *,
    selector: bool | None,
) -> Flows | None:
    """Bytes per second that readers fetch from other racks (KIP-392 with a selector); None when unknown."""
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
    """Bytes per second that followers fetch from leaders in other racks; None when unknown."""
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
    """The price of the flows (bytes per second); None when they are unknown or one of them has no price."""
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
    """Dollars a day of that many bytes per second, to eight decimals."""
    return round(rate * SECONDS_PER_DAY / BYTES_PER_GB * usd_per_gb, 8)


def highest_price(limits: Limits) -> float | None:
    """The highest price per gigabyte between racks; None where some pair may have none."""
    return None if limits.price.usd_per_gb is None else max((limits.price.usd_per_gb, *limits.price.between.values()))

"""Documents of traffic across racks and its cost: totals, groups and topics; flows between racks by path. Pure.

Unknown stays None. Flows come from the ledger of reads and copies, and what is unknown of them is counted beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.money.costs import CrossRackCosts, GroupTopicTraffic, TopicCost, reads_of
from agent.money.traffic import NO_TRAFFIC, CrossRackTraffic, together, worst_first
from agent.values.cycle import known_part
from agent.values.limits import Limits
from agent.values.observation import ObservationPart
from agent.values.plan import ReplicaProgress
from agent.values.rates import priced
from agent.values.snapshot import RackState, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.documents.cluster import UnknownGroups, WorstGroup
    from agent.documents.groups import (
        CrossingDocument,
        MoneyDocument,
        PartitionDocument,
        PartitionReaderDocument,
        PricedDocument,
        TopicDetailsDocument,
        TopicDocument,
        TopicReaderDocument,
    )
    from agent.simulate.evaluation import StageEvaluation
    from assignors.problem import TopicPartition

WORST_GROUPS = 3
UNKNOWN = "(unknown)"


def money(costs: CrossRackCosts, look: StageEvaluation) -> MoneyDocument:
    """Everything that crosses racks, with where the rates are from and the price."""
    rates, limits = look.rates, look.limits
    return {
        "rates": {
            "source": rates.measured.value,
            "measured_over_s": rates.seconds,
            "agent_look": rates.look,
            "agent_look_age_ms": rates.look_age_ms,
            "why_not": rates.why_not,
        },
        "price": {
            "usd_per_gb": limits.price.usd_per_gb,
            "pairs_with_own_price": len({frozenset(pair) for pair in limits.price.between}),
        },
        "total": _crossing(costs.crossing, look),
        "replicate": _crossing(costs.replicate, look),
        "consume": _crossing(costs.consume, look),
        "groups_with_hidden_reads": list(costs.hidden_groups),
    }


def worst_groups(costs: CrossRackCosts, look: StageEvaluation) -> list[WorstGroup]:
    """The groups that cost most."""
    ranked = sorted(costs.groups, key=lambda name: (worst_first(costs.groups[name], look.limits), name))
    rows: list[WorstGroup] = []
    for name in ranked[:WORST_GROUPS]:
        traffic = costs.groups[name] or NO_TRAFFIC
        if traffic.bytes_per_s or traffic.at_most_bytes_per_s:
            rows.append({"group": name, **priced_document(traffic, look), "unknown_reads": traffic.unknown})
    return rows


def unknown_groups(costs: CrossRackCosts, look: StageEvaluation) -> UnknownGroups:
    """Groups of unknown cost, and the bound of those that have one."""
    groups = {name: traffic for name, traffic in costs.groups.items() if not look.limits.owns(name)}
    unknown = {name: traffic for name, traffic in groups.items() if traffic is None or traffic.unknown}
    bounded = [traffic for traffic in unknown.values() if traffic is not None and not traffic.unbounded]
    unbounded = sorted(name for name, of in unknown.items() if of is None or of.unbounded)
    total = together(bounded)
    return {
        "groups": known_part(sorted(unknown), look.snapshot, ObservationPart.GROUPS),
        "unbounded_groups": known_part(unbounded, look.snapshot, ObservationPart.GROUPS) if not unknown else unbounded,
        "at_most_cross_rack_bytes_per_s": total.at_most_bytes_per_s if bounded else None,
        "at_most_usd_per_day": total.at_most_usd_per_day(look.limits) if bounded else None,
    }


def priced_document(traffic: CrossRackTraffic | None, look: StageEvaluation) -> PricedDocument:
    """What crosses racks and what it costs a day: at least, and at most."""
    if traffic is None:
        return {
            "cross_rack_bytes_per_s": None,
            "usd_per_day": None,
            "at_most_cross_rack_bytes_per_s": None,
            "at_most_usd_per_day": None,
        }
    return {
        "cross_rack_bytes_per_s": traffic.bytes_per_s,
        "usd_per_day": traffic.usd_per_day(look.limits),
        "at_most_cross_rack_bytes_per_s": traffic.at_most_bytes_per_s,
        "at_most_usd_per_day": traffic.at_most_usd_per_day(look.limits),
    }


def ranked_topics(costs: CrossRackCosts, look: StageEvaluation) -> list[str]:
    """Names of the topics, the dearest first."""
    return sorted(costs.topics, key=lambda name: (worst_first(costs.topics[name].crossing, look.limits), name))


def topics(costs: CrossRackCosts, look: StageEvaluation) -> list[TopicDocument]:
    """One row per topic, the dearest first."""
    return [topic_row(name, costs.topics[name], look) for name in ranked_topics(costs, look)]


def topic_row(name: str, cost: TopicCost, look: StageEvaluation) -> TopicDocument:
    """One topic."""
    limits = look.limits
    return {
        "topic": name,
        "partitions": sum(cost.leaders.values()),
        "leaders": [{"rack": rack, "partitions": number} for rack, number in cost.leaders.items()],
        "in_bytes_per_s": cost.in_bytes_per_s,
        "in_unknown_partitions": cost.in_unknown,
        "replicate_bytes_per_s": cost.replicate.bytes_per_s,
        "replicate_usd_per_day": cost.replicate.usd_per_day(limits),
        "at_most_replicate_bytes_per_s": cost.replicate.at_most_bytes_per_s,
        "replicate_unknown": cost.replicate.unknown,
        "read_bytes_per_s": cost.consume.bytes_per_s,
        "read_usd_per_day": cost.consume.usd_per_day(limits),
        "at_most_read_bytes_per_s": cost.consume.at_most_bytes_per_s,
        "read_unknown": cost.consume.unknown,
        **priced_document(cost.crossing, look),
        "rates": look.rates.measured.value,
        "readers": known_part(
            [_reader(reading, look) for reading in dearest(cost.readings, look)], look.snapshot, ObservationPart.GROUPS
        ),
    }


def topic_details(name: str, costs: CrossRackCosts, look: StageEvaluation) -> TopicDetailsDocument:
    """One topic with its partitions."""
    snapshot = look.snapshot
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN}
    readers = _partition_readers(look, name)
    partitions: list[PartitionDocument] = [
        {
            "partition": state.id.partition,
            "leader": state.leader,
            "leader_rack": None if state.leader is None else racks.get(state.leader),
            "replicas": list(state.replicas),
            "replica_racks": [racks.get(broker) for broker in state.replicas],
            "in_bytes_per_s": snapshot.bytes_per_s.get(state.id),
            "readers": known_part(readers.get(state.id, []), snapshot, ObservationPart.GROUPS),
        }
        for state in snapshot.topics[name].partitions
    ]
    return {**topic_row(name, costs.topics[name], look), "partition_list": partitions}


def dearest(readings: Iterable[GroupTopicTraffic], look: StageEvaluation) -> list[GroupTopicTraffic]:
    """Readings, the dearest first."""
    return sorted(readings, key=lambda one: (worst_first(one.traffic, look.limits), one.group, one.rack or ""))


def by_group(readings: Iterable[GroupTopicTraffic]) -> dict[str, CrossRackTraffic]:
    """Group -> what it reads, in all racks."""
    found: dict[str, list[CrossRackTraffic]] = {}
    for reading in readings:
        found.setdefault(reading.group, []).append(reading.traffic)
    return {group: together(parts) for group, parts in found.items()}


def _crossing(traffic: CrossRackTraffic, look: StageEvaluation) -> CrossingDocument:
    return {
        "bytes_per_s": traffic.bytes_per_s,
        "usd_per_day": traffic.usd_per_day(look.limits),
        "at_most_bytes_per_s": traffic.at_most_bytes_per_s,
        "at_most_usd_per_day": traffic.at_most_usd_per_day(look.limits),
        "parts": traffic.parts,
        "unknown": traffic.unknown,
    }


def _reader(reading: GroupTopicTraffic, look: StageEvaluation) -> TopicReaderDocument:
    return {
        "group": reading.group,
        "rack": reading.rack,
        "partitions": reading.partitions,
        **priced_document(reading.traffic, look),
        "unknown_reads": reading.traffic.unknown,
    }


def _partition_readers(look: StageEvaluation, topic: str) -> dict[TopicPartition, list[PartitionReaderDocument]]:
    found: dict[TopicPartition, list[PartitionReaderDocument]] = {}
    for name, group in look.snapshot.groups.items():
        for rack, partition in reads_of(group):
            if partition is not None and partition.topic == topic:
                known = rack.name if rack.state is RackState.KNOWN else None
                found.setdefault(partition, []).append({"group": name, "rack": known})
    return found


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

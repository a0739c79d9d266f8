"""Costs of random clusters, bit for bit against a reference that asks for the route of every read and copy."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import MappingProxyType

import pytest

from agent.money.costs import _by_reader, costs_of, costs_of_members
from agent.money.traffic import CrossRackTraffic, RackRoute, copy_routes, read_route, together
from agent.values.assessment import rack_bits
from agent.values.cycle import gaps_of
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.snapshot import (
    Group,
    GroupKind,
    LocatorState,
    OtherGroup,
    PartitionState,
    Rack,
    RackState,
    Snapshot,
    TaskStatefulness,
    states_of,
)
from agent.values.weights import FreshWeights
from assignors.problem import TopicPartition
from tests.snapshots import Builder, a_cluster, member, process, task, tp

PARTITIONS = 6
SEEDS = range(150)


def a_random_cluster(seed: int) -> Snapshot:
    """Brokers in three racks and in none, topics and groups of every kind, and parts of it unknown."""
    draw = Random(seed)
    built = a_cluster(a=(1, 2), b=(3, 4), c=(5,), _=(6,))
    built.selector = draw.choice([True, False, None])
    for number in range(6):
        _topic(built, f"t{number}", draw)
    for number in range(6):
        _consumers(built, f"g{number}", draw)
    _streams(built, draw)
    built.groups["other"] = OtherGroup("other", GroupKind.OTHER, "Stable", "share", "share")
    parts = [ObservationPart.GROUPS, ObservationPart.TOPICS, ObservationPart.LOG_DIRS]
    built.gaps = tuple(Gap(draw.choice(parts), GapCause.TIMED_OUT, f"s{n}", "late") for n in range(draw.choice([0, 2])))
    made = built.snapshot(rack_locators=draw.choice([(), (LOCATOR,)]))
    if draw.random() < 0.5:
        return made
    read = {tp(f"t{draw.randrange(6)}-{draw.randrange(PARTITIONS)}"): draw.random() * 1e6 for _ in range(9)}
    weighed = FreshWeights(
        topics=MappingProxyType({}),
        groups=MappingProxyType({"g1": read, "app": read}),
        restores=MappingProxyType({}),
        bytes_per_s=MappingProxyType({}),
    )
    return replace(made, weighed=weighed)


LOCATOR = LocatorState("file", 3, 0)


def _rate(draw: Random) -> float | None:
    return draw.choice([None, 0.0, draw.random() * 1e6, draw.random(), draw.random() * 1e9])


def _topic(built: Builder, name: str, draw: Random) -> None:
    states = []
    for number in range(PARTITIONS):
        replicas = tuple(draw.sample(range(1, 8), draw.randrange(1, 4)))  # broker 7 is in no metadata
        isr = tuple(sorted(draw.sample(replicas, draw.randrange(1, len(replicas) + 1))))
        offline = tuple(one for one in replicas if one not in isr and draw.random() < 0.5)
        leader = draw.choice([*isr, *isr, None])
        states.append(PartitionState(TopicPartition(name, number), leader, replicas, isr, offline))
        rate = _rate(draw)
        if rate is not None:
            built.rates[TopicPartition(name, number)] = rate
    built.topic(name, partitions=tuple(states))


def _some(draw: Random) -> str:
    """Partitions in words; topic t6 is not shown."""
    chosen = {f"t{draw.randrange(7)}-{draw.randrange(PARTITIONS + 1)}" for _ in range(draw.randrange(8))}
    return " ".join(sorted(chosen))


def _rack(draw: Random) -> Rack:
    name = draw.choice(["a", "b", "c", "elsewhere", None])
    if name is None:
        return Rack(draw.choice([RackState.UNKNOWN, RackState.CONFLICTING]), None, ("a", "b"))
    located = draw.random() < 0.3
    return Rack(RackState.KNOWN, name, source="file" if located else None, sent=draw.choice([None, name, "b"]))


def _consumers(built: Builder, name: str, draw: Random) -> None:
    members = [
        member(f"{name}-{n}", "a", draw.choice([None, *[_some(draw)] * 5]), rack=_rack(draw))
        for n in range(draw.randrange(5))
    ]
    built.group(name, *members)


def _streams(built: Builder, draw: Random) -> None:
    kinds = [*TaskStatefulness]
    topology = [task(f"0_{n}", _some(draw), draw.choice(kinds), _some(draw)) for n in range(4)]
    processes = [
        process(
            f"p{n}", "a", f"0_{draw.randrange(5)}", standby=f"0_{draw.randrange(5)}", warmup=f"0_{draw.randrange(5)}"
        )._replace(rack=_rack(draw))
        for n in range(3)
    ]
    built.streams("app", *processes, topology=draw.choice([None, topology, topology]))
    built.streams("bare", topology=None, members=(member("bare-1", "a", None), member("bare-2", "b", None)))


class _PlainSum:
    """Reads and copies, added up in their order."""

    def __init__(self) -> None:
        self.flows: dict[tuple[str, str], float] = {}
        self.parts = self.unknown = self.unbounded = 0
        self.open = 0.0

    def add(self, route: RackRoute | None, rate: float | None) -> None:
        self.parts += 1
        if rate == 0.0 or (route is not None and route.source == route.target):
            return
        if route is not None and rate is not None:
            pair = route.source, route.target
            self.flows[pair] = self.flows.get(pair, 0.0) + rate
            return
        self.unknown += 1
        self.unbounded += rate is None
        self.open += rate or 0.0

    def traffic(self) -> CrossRackTraffic:
        return CrossRackTraffic(dict(sorted(self.flows.items())), self.parts, self.unknown, self.open, self.unbounded)


class _Reference:
    """Every read and copy on its own."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
        self.states = states_of(snapshot.topics.values())
        self.bits = rack_bits(snapshot.brokers, selector_is_rack_aware=snapshot.selector_is_rack_aware)
        self.unserved = _PlainSum()
        self.by_topic: dict[str, dict[tuple[str, str | None], _PlainSum]] = {}

    def reads(self, group: Group, members: set[str] | None = None) -> CrossRackTraffic | None:
        if isinstance(group, OtherGroup):
            return None
        total = _PlainSum()
        for rack, partition in ((rack, one) for rack, partitions in _by_reader(group, members) for one in partitions):
            if partition is None:
                total.add(None, None)
                continue
            serves = self.bits.selector_is_rack_aware
            if self.snapshot.rack_locators:
                serves = self.bits.serves((rack,))
            state, name = self.states.get(partition), rack.name if rack.state is RackState.KNOWN else None
            own = self.snapshot.weighed.groups.get(group.id, {})
            rate = own.get(partition, self.snapshot.bytes_per_s.get(partition))
            route = read_route(state, name, self.racks, serves=serves)
            total.add(route, rate)
            if route is not None and serves is False and read_route(state, name, self.racks, serves=True) != route:
                self.unserved.add(route, rate)
            of_topic = self.by_topic.setdefault(partition.topic, {})
            of_topic.setdefault((group.id, name), _PlainSum()).add(route, rate)
        return total.traffic()

    def missing(self, part: ObservationPart) -> CrossRackTraffic:
        found = _PlainSum()
        for _ in gaps_of(self.snapshot, (part,)):
            found.add(None, None)
        return found.traffic()

    def copies(self, topic: str) -> CrossRackTraffic:
        found = _PlainSum()
        for state in self.snapshot.topics[topic].partitions:
            for route in copy_routes(state, self.racks):
                found.add(route, self.snapshot.bytes_per_s.get(state.id))
        return found.traffic()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_figure_is_that_of_the_reference(seed: int) -> None:
    snapshot = a_random_cluster(seed)
    found, plain = costs_of(snapshot), _Reference(snapshot)
    groups = {name: plain.reads(group) for name, group in snapshot.groups.items()}
    assert found.groups == groups
    copies = {name: plain.copies(name) for name in snapshot.topics}
    no_groups = plain.missing(ObservationPart.GROUPS)
    for name, topic in found.topics.items():
        reads = {key: of.traffic() for key, of in plain.by_topic.get(name, {}).items()}
        partitions = snapshot.topics[name].partitions
        rates = [snapshot.bytes_per_s.get(state.id) for state in partitions]
        known = [rate for rate in rates if rate is not None]
        leaders = [plain.racks.get(state.leader) if state.leader is not None else None for state in partitions]
        assert topic.replicate == copies[name]
        assert topic.consume == together((*reads.values(), no_groups))
        assert {(one.group, one.rack): (one.partitions, one.traffic) for one in topic.readings} == {
            key: (of.parts, of) for key, of in reads.items()
        }
        assert len(topic.readings) == len(reads)
        assert [*topic.readings] == sorted(
            topic.readings, key=lambda row: (row.group, row.rack is None, row.rack or "")
        )
        assert topic.in_bytes_per_s == (round(sum(known), 3) if known else None)
        assert topic.in_unknown == len(rates) - len(known)
        assert topic.leaders == {rack: leaders.count(rack) for rack in leaders}
        assert [*topic.leaders] == sorted(topic.leaders, key=lambda rack: (rack is None, rack or ""))
    assert found.replicate == together((*copies.values(), plain.missing(ObservationPart.TOPICS)))
    assert found.consume == together((*filter(None, groups.values()), no_groups))
    assert found.unserved == plain.unserved.traffic()


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_the_reads_of_some_members_are_those_of_the_reference(seed: int) -> None:
    snapshot = a_random_cluster(seed)
    chosen = {"g0": {"g0-0", "g0-2"}, "g1": {"g1-1"}, "app": {"p1-m0"}, "bare": {"bare-2"}}
    plain = _Reference(snapshot)
    wanted = together(filter(None, [plain.reads(snapshot.groups[name], ids) for name, ids in chosen.items()]))
    assert costs_of_members(snapshot, chosen) == wanted


def test_the_random_clusters_have_every_kind_of_figure() -> None:
    every = [costs_of(a_random_cluster(seed)) for seed in SEEDS]
    assert sum(bool(one.unserved.flows) for one in every) > 10
    assert sum(bool(one.hidden_groups) for one in every) > 10
    for total in ([one.replicate for one in every], [one.consume for one in every]):
        assert sum(bool(one.flows) for one in total) > 100
        assert sum(one.open_bytes_per_s > 0 for one in total) > 50
        assert sum(one.unbounded > 0 for one in total) > 50

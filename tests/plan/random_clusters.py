"""Random small clusters with faults of every kind, for properties of plan and propose."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import strategies as st

from agent.values.finding import Finding
from agent.values.snapshot import GroupKind, LagSource, Range, Snapshot, TaskCopy, TaskRole
from assignors.problem import TaskId
from tests.snapshots import Builder, a_cluster, member, process, task

RACKS = ("a", "b", "c", "d")


@st.composite
def random_clusters(draw: st.DrawFn) -> Snapshot:
    """A cluster of 2 to 4 racks, topics placed at random, groups of every kind with work dealt at random."""
    return random_cluster(random.Random(draw(st.integers(0, 2**32))))


def random_cluster(rng: random.Random) -> Snapshot:
    built = _brokers(rng)
    ids = sorted(built.brokers)
    for number in range(rng.randint(1, 4)):
        name = rng.choice(["orders", "payments", "rackwise.journal", "private"]) + (f"-{number}" if number else "")
        factor = min(len(ids), rng.choice([1, 2, 3, 3, 4]))
        rows = [tuple(rng.sample(ids, factor)) for _ in range(rng.randint(1, 8))]
        isr = {n: tuple(rng.sample(row, rng.randint(1, len(row)))) for n, row in enumerate(rows) if rng.random() < 0.2}
        rate = rng.choice([None, 100.0, 1e6])
        built.topic(name, *rows, isr=isr, rate=rate, own=name.startswith("rackwise"), min_isr=rng.choice([None, 1, 2]))
        if rng.random() < 0.2:
            built.topics[name] = built.topics[name]._replace(leader_throttle="0:1")
    _consumers(built, rng)
    if rng.random() < 0.5:
        _streams(built, rng)
    for topic in list(built.topics.values()):
        for state in topic.partitions:
            if rng.random() < 0.05:
                built.moving(str(state.id), state.replicas, (), ())
    return built.snapshot()


def shuffled(snapshot: Snapshot, seed: int) -> Snapshot:
    """The same snapshot with every mapping in another order."""
    rng = random.Random(seed)

    def mixed(mapping):
        items = list(mapping.items())
        rng.shuffle(items)
        return dict(items)

    names = ("topics", "groups", "copies", "reassignments", "broker_configs", "size_bytes", "bytes_per_s")
    return replace(snapshot, **{name: mixed(getattr(snapshot, name)) for name in names})


def mixed_findings(findings: tuple[Finding, ...], seed: int) -> tuple[Finding, ...]:
    rng = random.Random(seed)
    mixed = list(findings)
    rng.shuffle(mixed)
    return tuple(mixed)


def _brokers(rng: random.Random) -> Builder:
    built = Builder()
    racks = RACKS[: rng.randint(2, 4)]
    for number in range(1, rng.randint(3, 9)):
        rack = None if rng.random() < 0.08 else rng.choice(racks)
        built.broker(number, rack, alive=rng.random() > 0.1, cordoned=rng.random() < 0.05, fenced=rng.random() < 0.05)
    built.selector = rng.choice([True, True, False, None])
    return built


def _consumers(built: Builder, rng: random.Random) -> None:
    for number in range(rng.randint(0, 3)):
        topics = tuple(sorted(rng.sample(sorted(built.topics), rng.randint(1, len(built.topics)))))
        partitions = [str(state.id) for name in topics for state in built.topics[name].partitions]
        if rng.random() < 0.1:  # the group still reads what metadata no longer shows
            partitions.append(rng.choice([f"{topics[0]}-99", "ghost-0"]))
        rng.shuffle(partitions)
        size = rng.randint(1, 4)
        kind = rng.choice([GroupKind.CLASSIC_CONSUMER, GroupKind.CLASSIC_CONSUMER, GroupKind.CONSUMER])
        members = [
            member(
                f"m{index}",
                None if rng.random() < 0.1 else rng.choice(RACKS),
                " ".join(partitions[index::size]),
                topics=topics,
                instance_id="static" if rng.random() < 0.05 else None,
                subscription_version=rng.choice([3, 3, 3, 1]) if kind is GroupKind.CLASSIC_CONSUMER else None,
            )
            for index in range(size)
        ]
        assignor = rng.choice(["cooperative-sticky", "cooperative-sticky", "range", "roundrobin"])
        state = rng.choice(["Stable", "Stable", "Stable", "PreparingRebalance"])
        built.group(f"group-{number}", *members, kind=kind, assignor=assignor, state=state)


def _streams(built: Builder, rng: random.Random) -> None:
    name = rng.choice(sorted(built.topics))
    states = built.topics[name].partitions
    topology = [task(f"0_{state.id.partition}", str(state.id)) for state in states]
    size = rng.randint(1, 3)
    processes = [
        process(
            f"p{index}",
            None if rng.random() < 0.1 else rng.choice(RACKS),
            " ".join(f"0_{state.id.partition}" for state in states[index::size]),
            tags=(("zone", rng.choice(RACKS)),) if rng.random() < 0.5 else (),
        )
        for index in range(size)
    ]
    copies = tuple(
        TaskCopy(
            group_id="app",
            process_id=rng.choice(processes).id,
            task=TaskId(0, state.id.partition),
            role=TaskRole.WARMUP,
            role_certain=True,
            end_offset_sum=9,
            lag=Range(0, 1, 2),
            lag_source=LagSource.MODEL,
            lag_age_ms=5,
            rate_per_s=None,
            eta_s=None,
            caught_up=rng.choice([True, False, None]),
        )
        for state in states[: rng.randint(0, 2)]
    )
    built.streams("app", *processes, topology=topology, copies=copies)


def a_quiet_cluster() -> Builder:
    """Three racks, everything where it belongs."""
    return a_cluster().topic("t", (1, 2, 3), (2, 3, 1), (3, 1, 2))

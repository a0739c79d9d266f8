"""Small random problems of every kind, with everything that may go wrong in real ones: owners gone or contested,
racks unknown, topics that no broker has, subscriptions that changed, brokers that accept nothing."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from assignors.problem import (
    ConsumerMember,
    ConsumerProblem,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaSet,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TopicPartition,
)

RACKS = ("a", "b", "c", "d")


def rack_sets(racks: int) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from((*RACKS[:racks], "elsewhere")), max_size=racks)


@st.composite
def consumer_problems(
    draw: st.DrawFn,
    *,
    alike: bool | None = None,
    members: int = 5,
    partitions: int = 8,
    copartitioned: bool = False,
    priced: bool | None = None,
) -> ConsumerProblem:
    racks = draw(st.integers(1, 4))
    sizes = draw(
        st.lists(st.integers(0 if partitions > 6 else 1, 4), min_size=1, max_size=3).filter(
            lambda s: sum(s) <= partitions
        )
    )
    topics = {f"t{n}": tuple(draw(rack_sets(racks)) for _ in range(size)) for n, size in enumerate(sizes)}
    existing = [TopicPartition(topic, p) for topic, sets in topics.items() for p in range(len(sets))]
    claims = [*existing, TopicPartition("gone", 0), TopicPartition("t0", 99)]
    count = draw(st.integers(1, members))
    equal = draw(st.booleans()) if alike is None else alike
    everything = (*topics, "unknown")
    owners = draw(st.lists(st.integers(-1, count - 1), min_size=len(claims), max_size=len(claims)))
    also = draw(st.lists(st.integers(-6, count - 1), min_size=len(claims), max_size=len(claims)))
    group = [
        ConsumerMember(
            id=f"m{number}",
            rack=draw(st.sampled_from((None, *RACKS[:racks], *RACKS[:racks]))),
            topics=everything if equal else tuple(draw(st.sets(st.sampled_from(everything)))),
            owned=tuple(tp for tp, one, two in zip(claims, owners, also, strict=True) if number in (one, two)),
        )
        for number in range(count)
    ]
    weights = None
    if draw(st.booleans()):
        weights = {tp: draw(st.sampled_from((0, 1, 2, 5, 1000, 10**9))) for tp in existing if draw(st.booleans())}
    prices = None
    if priced if priced is not None else draw(st.booleans()):
        ways = [(here, there) for here in (*RACKS[:racks], "elsewhere") for there in RACKS[:racks]]
        prices = {way: draw(st.sampled_from((0, 1, 2, 7, 1000))) for way in ways if draw(st.booleans())}
    return ConsumerProblem(
        members=tuple(group), racks=topics, weights=weights, prices=prices, copartitioned=copartitioned
    )


@st.composite
def task_problems(
    draw: st.DrawFn,
    *,
    fixed: bool | None = None,
    standbys: int = 0,
    processes: tuple[int, int] = (1, 5),
    subtopologies: int = 3,
    partitions: int = 5,
) -> TaskProblem:
    racks = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, partitions), min_size=1, max_size=subtopologies))
    tasks = [
        StreamsTask(
            id=TaskId(subtopology, partition),
            stateful=draw(st.booleans()) if standbys else True,
            sources=tuple(draw(rack_sets(racks)) for _ in range(draw(st.integers(0, 2)))),
            changelogs=tuple(draw(rack_sets(racks)) for _ in range(draw(st.integers(0, 1)))),
        )
        for subtopology, size in enumerate(sizes)
        for partition in range(size)
    ]
    keeps_counts = draw(st.booleans()) if fixed is None else fixed
    count = draw(st.integers(*processes))
    owners = [draw(st.integers(0 if keeps_counts else -1, count - 1)) for _ in tasks]
    copies = [draw(st.sets(st.integers(0, count - 1), max_size=2 if standbys else 0)) for _ in tasks]
    zones = draw(st.sampled_from(("none", "racks", "zone", "zone and cluster", "some without")))
    tags = {"zone": ("zone",), "zone and cluster": ("zone", "cluster"), "some without": ("zone",)}.get(zones, ())
    group = [
        TaskProcess(
            id=f"p{number}",
            rack=draw(st.sampled_from((None, *RACKS[:racks], *RACKS[:racks], *RACKS[:racks]))),
            capacity=draw(st.integers(1, 3)),
            tags=tuple(
                (tag, draw(st.sampled_from(("x", "y", "z"))))
                for tag in tags
                if zones != "some without" or draw(st.booleans())
            ),
            active=tuple(task.id for task, owner in zip(tasks, owners, strict=True) if owner == number),
            standby=tuple(
                task.id
                for task, holders, owner in zip(tasks, copies, owners, strict=True)
                if number in holders and owner != number
            ),
        )
        for number in range(count)
    ]
    return TaskProblem(
        tasks=tuple(tasks),
        processes=tuple(group),
        counts="fixed" if keeps_counts else "free",
        balance=draw(st.sampled_from(("none", "subtopology"))),
        traffic_cost=draw(st.sampled_from((0, 1, 10))),
        non_overlap_cost=draw(st.sampled_from((0, 1, 10))),
        num_standby_replicas=draw(st.integers(1, standbys)) if standbys else 0,
        rack_aware_tags=tags,
    )


@st.composite
def replica_problems(
    draw: st.DrawFn, *, balance: bool, brokers: tuple[int, int] = (2, 6), partitions: int = 3
) -> ReplicaProblem:
    count = draw(st.integers(*brokers))
    racks = draw(st.integers(1, min(count, 4)))
    nodes = tuple(
        ReplicaBroker(
            id=number,
            rack=draw(st.sampled_from((*RACKS[:racks], *RACKS[:racks], *RACKS[:racks], None))),
            accepts=draw(st.integers(0, 5)) > 0,
        )
        for number in range(count)
    )
    lists = tuple(
        ReplicaSet(
            id=TopicPartition("t", number),
            replicas=tuple(draw(st.lists(st.integers(0, count - 1), unique=True, min_size=1, max_size=4))),
            size_bytes=draw(st.sampled_from((None, 0, 1, 5, 7, 100, 10**12))),
            readers=tuple(draw(st.dictionaries(st.sampled_from(RACKS), st.integers(1, 3), max_size=2)).items()),
            keeps_leader=draw(st.integers(0, 3)) == 0,
        )
        for number in range(draw(st.integers(1, partitions)))
    )
    return ReplicaProblem(brokers=nodes, partitions=lists, balance=balance)


def examples(count: int) -> settings:
    """Seeded examples, the same in every run: a third of them in a quick one, RACKWISE_EXAMPLES times in another."""
    times = float(os.environ.get("RACKWISE_EXAMPLES", "0.35"))
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(
        max_examples=max(1, round(count * times)), derandomize=True, deadline=None, suppress_health_check=quiet
    )

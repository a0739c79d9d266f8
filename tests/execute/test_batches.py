"""Batches keep to their caps, move everything once and are the same each time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execute.reassign.messages import ClusterView, PartitionView
from agent.execute.reassign.plan_step import (
    CopyLoad,
    batch_sentence,
    broker_loads,
    next_batch,
    rack_loads,
    replication_graph,
)
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import ReassignmentPolicy, ReassignmentTarget
from assignors.problem import TopicPartition

UP = frozenset(range(1, 6))


@st.composite
def plans(draw: st.DrawFn) -> tuple[ReassignmentTarget, ...]:
    numbers = range(draw(st.integers(1, 12)))
    lists = st.lists(st.integers(1, 5), min_size=3, max_size=3, unique=True).map(tuple)
    sizes = st.none() | st.integers(0, 1000)
    return tuple(
        ReassignmentTarget(
            TopicPartition("t", number), "id", draw(lists), draw(lists), draw(sizes), gain=draw(st.floats(0, 9))
        )
        for number in numbers
    )


def seen(targets: tuple[ReassignmentTarget, ...], out_of_sync: frozenset[int] = frozenset()) -> ClusterView:
    return ClusterView(
        UP,
        tuple(
            PartitionView(
                it.id,
                it.topic_id,
                it.before[-1],
                it.before,
                frozenset(it.before[-1:]) if it.id.partition in out_of_sync else frozenset(it.before),
                1,
            )
            for it in targets
        ),
    )


def policy(**kwargs: int | None) -> ReassignmentPolicy:
    return ReassignmentPolicy(ExecuteLimits(**{"batch_partitions": 50, **kwargs}))  # type: ignore[arg-type]


@settings(deadline=None, max_examples=60)
@given(plans(), st.integers(1, 6), st.integers(1, 5), st.none() | st.integers(1, 3000))
def test_caps_are_kept_and_each_partition_moves_once(targets, per_broker, at_most, in_flight):
    keep = policy(max_moves_per_broker=per_broker, batch_partitions=at_most, max_bytes_in_flight=in_flight)
    left, moved = set(targets), []
    while left:
        batch = next_batch(sorted(left), seen(targets), keep)
        assert batch == next_batch(sorted(left, reverse=True), seen(targets), keep)
        assert 0 < len(batch) <= at_most
        copies = Counter()
        for target in batch:
            for broker in target.adding:
                copies[broker] += 1
                copies[target.before[-1]] += 1
        copying = [target for target in batch if target.adding]
        assert len(copying) <= 1 or max(copies.values()) <= per_broker
        costs = [0 if not it.adding else None if it.bytes is None else it.bytes * len(it.adding) for it in batch]
        if in_flight is not None and sum(cost != 0 for cost in costs) > 1:
            assert None not in costs
            assert sum(costs) <= in_flight
        moved += batch
        left -= set(batch)
    assert sorted(moved) == sorted(targets)


def test_the_bytes_of_all_partitions_of_a_batch_count_together():
    targets = tuple(ReassignmentTarget(TopicPartition("t", number), "id", (1, 2), (3, 2), 400) for number in range(3))
    keep = policy(max_bytes_in_flight=1000, max_moves_per_broker=9)
    assert len(next_batch(targets, seen(targets), keep)) == 2


def test_an_operators_own_number_is_kept_to():
    targets = tuple(ReassignmentTarget(TopicPartition("t", number), "id", (1, 2), (2, 1)) for number in range(9))
    assert len(next_batch(targets, seen(targets), policy(), 4)) == 4


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"after": (2, 1, 3)}, {"gain": 9.0}, id="what moves no data before the greatest gain"),
        pytest.param({}, {"partition": 7, "gain": 9.0}, id="whole in-sync sets before those that lack a replica"),
        pytest.param({"gain": 2.0}, {"gain": 1.0}, id="the greater gain for the same bytes"),
        pytest.param({"bytes": 10, "gain": 1.0}, {"bytes": 100, "gain": 2.0}, id="gain counts per byte"),
        pytest.param({"bytes": 10}, {"bytes": 20}, id="few bytes before many"),
        pytest.param({"partition": 1}, {"partition": 2}, id="else by name"),
    ],
)
def test_the_safest_and_most_useful_come_first(first, second):
    def target(partition: int, fields: dict[str, object]) -> ReassignmentTarget:
        given_ = {"bytes": 10, "before": (1, 2, 3), "after": (4, 2, 3), "gain": 0.0, **fields}
        number = given_.pop("partition", partition)
        return ReassignmentTarget(TopicPartition("t", number), "id", **given_)  # type: ignore[arg-type]

    by_name = "partition" in first
    for numbers in ((5, 6), (5, 6) if by_name else (6, 5)):
        one, other = (target(number, fields) for number, fields in zip(numbers, (first, second), strict=True))
        pair = tuple(sorted((one, other)))
        assert next_batch(pair, seen(pair, frozenset({7})), policy(batch_partitions=1)) == (one,)


def test_copies_come_from_the_leader_and_racks_count_what_crosses():
    target = ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (3, 4), 100)
    graph = replication_graph([target], seen((target,)))
    assert broker_loads(graph) == {2: CopyLoad(2, 0, 200, 0), 3: CopyLoad(0, 1, 0, 100), 4: CopyLoad(0, 1, 0, 100)}
    assert rack_loads(graph, {2: "a", 3: "a", 4: "b"}) == {"a": CopyLoad(1, 0, 100, 0), "b": CopyLoad(0, 1, 0, 100)}
    unled = replication_graph([target], ClusterView(UP, ()))
    assert broker_loads(unled) == {1: CopyLoad(2, 0, 200, 0), 3: CopyLoad(0, 1, 0, 100), 4: CopyLoad(0, 1, 0, 100)}


def test_a_batch_is_told_in_words():
    target = ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (3, 4), 100)
    look = seen((target,))._replace(racks=((2, "a"), (3, "a"), (4, "b")))
    assert batch_sentence([target], look, 10) == (
        "1 partition, 200 B to copy; most to broker 3: 100 B; 100 B across racks; 20 s at 10 B/s"
    )
    unknown = batch_sentence([target._replace(bytes=None)], look, None)
    assert unknown == "1 partition, 0 B or more to copy; most to broker 3: 0 B or more; 0 B across racks"
    order = target._replace(after=(2, 1))
    assert batch_sentence([order], look, None) == "1 partition with another order of replicas, no data moves"


def test_copies_of_several_partitions_between_the_same_brokers_are_told_apart_by_partition():
    targets = [ReassignmentTarget(TopicPartition("t", number), "id", (1, 2), (1, 3), 100) for number in (0, 1)]
    graph = replication_graph(targets, ClusterView(UP, ()))
    assert [(*edge, bytes_) for *edge, bytes_ in graph.edges(keys=True, data="bytes")] == [
        (1, 3, TopicPartition("t", 0), 100), (1, 3, TopicPartition("t", 1), 100),
    ]  # fmt: skip

"""What a batch is filled with and how loads are counted: every bound, and every place in the order."""

from __future__ import annotations

import pytest

from agent.execute.reassign.messages import ClusterView, PartitionView
from agent.execute.reassign.plan_step import (
    RECORD_BYTES,
    CopyLoad,
    batch_sentence,
    broker_loads,
    next_batch,
    rack_loads,
    replication_graph,
)
from agent.execute.reassign.throttles import batch_throttles
from agent.values.kafka import FOLLOWER_REPLICAS, LEADER_REPLICAS
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import Batch, ReassignmentPolicy, ReassignmentTarget
from assignors.problem import TopicPartition

MANY = {
    "batch_partitions": 5_000, "max_moves_per_cluster": 5_000, "max_moves_per_broker": 5_000,
    "max_bytes_in_flight": None,
}  # fmt: skip


def policy(**limits: int | None) -> ReassignmentPolicy:
    return ReassignmentPolicy(ExecuteLimits(**{**MANY, **limits}))  # type: ignore[arg-type] # a table's row


def target(number: int, **fields: object) -> ReassignmentTarget:
    """A partition of 10 bytes that moves from brokers 1, 2 and 3 to 4, 2 and 3."""
    row = {"before": (1, 2, 3), "after": (4, 2, 3), "bytes": 10, "gain": 0.0, **fields}
    return ReassignmentTarget(TopicPartition("t", number), "id", **row)  # type: ignore[arg-type] # a table's row


def seen(*targets: ReassignmentTarget, isr: dict[int, tuple[int, ...]] | None = None) -> ClusterView:
    rows = (
        PartitionView(
            it.id, it.topic_id, it.before[0], it.before, frozenset((isr or {}).get(it.id.partition, it.before)), 1
        )
        for it in targets
    )
    return ClusterView(frozenset(range(1, 10)), tuple(rows))


def chosen(*targets: ReassignmentTarget, max_moves: int | None = None, **limits: int | None) -> list[int]:
    """The numbers of the partitions of the next batch."""
    batch = next_batch(targets, seen(*targets), policy(**limits), max_moves)
    return [one.id.partition for one in batch]


# --- caps


@pytest.mark.parametrize(
    ("per_broker", "count"), [pytest.param(most, most, id=f"{most} of five") for most in range(1, 6)]
)
def test_a_broker_takes_part_in_so_many_copies_at_a_time(per_broker, count):
    assert len(chosen(*map(target, range(5)), max_moves_per_broker=per_broker)) == count


def test_a_broker_that_is_full_leaves_room_for_copies_between_others():
    others = [target(5, before=(5, 6), after=(7, 6)), target(6, before=(5, 6), after=(7, 6))]
    assert chosen(*map(target, range(4)), *others, max_moves_per_broker=2) == [0, 1, 5, 6]


def test_two_copies_of_one_partition_count_twice_at_their_leader():
    double = {"after": (4, 5, 3)}
    assert chosen(target(0, **double), target(1, **double), max_moves_per_broker=3) == [0]
    assert chosen(target(0, **double), target(1, **double), max_moves_per_broker=4) == [0, 1]


@pytest.mark.parametrize(
    ("cap", "count"),
    [
        pytest.param(29, 2, id="one byte too few for the third"),
        pytest.param(30, 3, id="just enough for three"),
        pytest.param(31, 3, id="not enough for the fourth"),
        pytest.param(9, 1, id="too few for any: one alone"),
        pytest.param(None, 5, id="no cap"),
    ],
)
def test_bytes_in_flight_are_of_all_copies_of_a_batch(cap, count):
    assert len(chosen(*map(target, range(5)), max_bytes_in_flight=cap)) == count


def test_a_partition_of_unknown_size_copies_alone_where_bytes_are_capped():
    unknown = target(0, bytes=None, gain=0.0)
    assert chosen(unknown, target(1), max_bytes_in_flight=1_000) == [0]
    assert chosen(unknown, target(1), max_bytes_in_flight=None) == [0, 1]


def test_what_copies_nothing_goes_with_a_partition_that_copies_alone():
    order = [target(number, after=(2, 1, 3)) for number in (7, 8)]
    assert chosen(target(0, bytes=5_000), target(1, bytes=5_000), *order, max_bytes_in_flight=100) == [0, 7, 8]


@pytest.mark.parametrize(
    ("limits", "own", "count"),
    [
        pytest.param({"batch_partitions": 3}, None, 3, id="of a batch"),
        pytest.param({"max_moves_per_cluster": 2}, None, 2, id="of the cluster"),
        pytest.param({"batch_partitions": 3}, 1, 1, id="of the operator"),
        pytest.param({"batch_partitions": 3}, 9, 3, id="of the operator, above that of a batch"),
        pytest.param({}, None, 5, id="of all"),
    ],
)
def test_the_least_number_counts(limits, own, count):
    assert len(chosen(*map(target, range(5)), max_moves=own, **limits)) == count


def test_lists_of_throttled_replicas_stay_within_a_record():
    """Many replicas per partition: the batch's own record names each list once, a topic's throttle all of them."""
    before = tuple(range(1_000_000_000, 1_000_000_100))
    after = (2_000_000_000, *before[1:])
    moves = tuple(target(number, before=before, after=after) for number in range(500))
    batch = next_batch(moves, ClusterView(frozenset((*before, *after)), ()), policy())
    throttles = batch_throttles(Batch("p", 1, batch, rate_bytes_per_s=1), ClusterView(frozenset(), ()))
    listed = {debt.key: len(debt.value) for debt in throttles.debts}
    assert set(listed) == {FOLLOWER_REPLICAS, LEADER_REPLICAS}
    assert 0.98 * RECORD_BYTES < sum(listed.values()) <= RECORD_BYTES


def test_what_copies_nothing_takes_no_room_in_lists_of_throttled_replicas():
    before = tuple(range(1_000_000_000, 1_000_000_100))
    copies = [target(number, before=before, after=(2_000_000_000, *before[1:])) for number in range(500)]
    orders = [target(number, before=before, after=before[::-1]) for number in range(1_000, 3_000)]
    look = ClusterView(frozenset((*before, 2_000_000_000)), ())
    batch = next_batch([*copies, *orders], look, policy())
    assert sum(not one.moves_data for one in batch) == len(orders)
    assert [one for one in batch if one.moves_data] == list(next_batch(copies, look, policy()))


# --- the order


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"bytes": 0}, {"bytes": 1}, id="no byte before one"),
        pytest.param({"bytes": 1}, {"bytes": 2}, id="one byte before two"),
        pytest.param({"bytes": 1, "gain": 1.0}, {"bytes": 2, "gain": 1.5}, id="gain per byte, of few bytes too"),
        pytest.param({"bytes": 0, "gain": 2.0}, {"bytes": 1, "gain": 1.0}, id="gain of what copies no byte"),
        pytest.param({"bytes": 0, "gain": 1.0}, {"bytes": 2, "gain": 1.9}, id="of no byte as of one"),
        pytest.param({"bytes": 90, "gain": 0.1}, {"bytes": None, "gain": 9.0}, id="gain of unknown bytes is none"),
        pytest.param(
            {"bytes": 15, "gain": 1.0}, {"after": (4, 5, 3), "bytes": 10, "gain": 1.0}, id="the bytes of all copies"
        ),
        pytest.param({"after": (2, 1, 3), "gain": -1.0}, {"gain": 9.0}, id="another order alone before any copy"),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_one_comes_before_the_other_whatever_their_names(first, second, swapped):
    one, other = (
        target(number, **fields) for number, fields in zip((2, 1) if swapped else (1, 2), (first, second), strict=True)
    )
    assert next_batch((one, other), seen(one, other), policy(batch_partitions=1)) == (one,)


@pytest.mark.parametrize(
    ("isr", "comes_first"),
    [
        pytest.param({1: (1, 2)}, 2, id="one replica is out of sync"),
        pytest.param({1: (1, 2, 3, 9)}, 1, id="one more than its replicas is in sync"),
        pytest.param({}, 1, id="all are in sync"),
    ],
)
def test_whole_in_sync_sets_come_first(isr, comes_first):
    pair = target(1), target(2)
    (batch,) = next_batch(pair, seen(*pair, isr=isr), policy(batch_partitions=1))
    assert batch.id.partition == comes_first


def test_what_was_not_seen_counts_as_out_of_sync():
    unseen, other = target(1), target(2)
    assert next_batch((unseen, other), seen(other), policy(batch_partitions=1)) == (other,)


# --- loads


def test_loads_of_several_copies_add_up():
    double = target(0, after=(4, 5, 3), bytes=100), target(1, before=(2, 1), after=(4, 1), bytes=7)
    graph = replication_graph(double, seen(*double))
    assert broker_loads(graph) == {
        1: CopyLoad(2, 0, 200, 0), 2: CopyLoad(1, 0, 7, 0), 4: CopyLoad(0, 2, 0, 107), 5: CopyLoad(0, 1, 0, 100),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("racks", "loads"),
    [
        pytest.param({1: "a", 4: "a"}, {}, id="within a rack"),
        pytest.param({1: "a", 4: "b"}, {"a": CopyLoad(1, 0, 10, 0), "b": CopyLoad(0, 1, 0, 10)}, id="between two"),
        pytest.param({4: "b"}, {None: CopyLoad(1, 0, 10, 0), "b": CopyLoad(0, 1, 0, 10)}, id="from an unknown one"),
        pytest.param({}, {None: CopyLoad(1, 1, 10, 10)}, id="between two that are unknown"),
    ],
)
def test_copies_between_racks_are_counted(racks, loads):
    assert rack_loads(replication_graph([target(0)], seen(target(0))), racks) == loads


@pytest.mark.parametrize(
    ("fields", "rate", "says"),
    [
        pytest.param({"bytes": 100}, 1, "100 B to copy; most to broker 4: 100 B; 100 s at 1 B/s", id="slow"),
        pytest.param({"bytes": 100}, None, "100 B to copy; most to broker 4: 100 B", id="unthrottled"),
        pytest.param({"bytes": 0}, None, "0 B to copy; most to broker 4: 0 B", id="empty"),
        pytest.param(
            {"bytes": None},
            10,
            "0 B or more to copy; most to broker 4: 0 B or more; 0 s or more at 10 B/s",
            id="unknown",
        ),
        pytest.param(
            {"after": (4, 5, 3), "bytes": 100},
            10,
            "200 B to copy; most to broker 4: 100 B; 20 s at 10 B/s",
            id="the leader sends twice what one takes in",
        ),
    ],
)
def test_a_batch_is_told_with_its_busiest_broker_and_its_time(fields, rate, says):
    assert batch_sentence([target(0, **fields)], seen(target(0)), rate) == f"1 partition, {says}"


def test_the_busiest_broker_has_most_bytes_then_most_copies_then_the_lower_id():
    one, two = target(0, after=(5, 2, 3), bytes=10), target(1, after=(4, 2, 3), bytes=10)
    assert "most to broker 4: 10 B" in batch_sentence([one, two], seen(one, two), None)
    empty = target(2, after=(6, 2, 3), bytes=0), target(3, after=(6, 2, 3), bytes=0), target(4, bytes=0)
    assert "most to broker 6: 0 B" in batch_sentence(empty, seen(*empty), None)

"""How far moves are: bytes that are there, at which rate they come, and what is not known stays unknown."""

from __future__ import annotations

import pytest

from agent.act.reassign.progress import Rates, plan_progress
from agent.execute.reassign.messages import Seen, SeenMove
from agent.values.reassignment import Batch, End, PartitionEnd, Plan, PlanState, Target
from assignors.problem import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
PLAN = Plan("p-1", tuple(Target(one, "id", (1, 2), (3, 2)) for one in (A, B)))


def seen(*sizes: tuple[TopicPartition, int, int], moving: tuple[TopicPartition, ...] = (A, B)) -> Seen:
    moves = tuple(SeenMove(one, (3, 2, 1), (3,), (1,)) for one in moving)
    return Seen(frozenset({1, 2, 3}), (), moves, bytes=tuple(sorted(sizes)))


def test_a_rate_is_what_came_between_looks_and_the_rest_takes_so_long() -> None:
    rates = Rates()
    for at_s, size in ((10.0, 100), (12.0, 300), (14.0, 500)):
        rates.looked(seen((A, 1, 1_000), (A, 3, size), moving=(A,)), at_s)
    (replica,) = rates.of([A, B])
    assert (replica.broker, replica.bytes, replica.of_bytes) == (3, 500, 1_000)
    assert (replica.bytes_per_s, replica.seconds_left) == (100.0, 5.0)


def test_after_a_while_only_the_latest_counts() -> None:
    rates = Rates()
    for second in range(0, 200, 2):
        rates.looked(seen((A, 1, 10_000), (A, 3, second * 10 if second < 100 else 1_000), moving=(A,)), float(second))
    (replica,) = rates.of([A])
    assert replica.bytes_per_s == pytest.approx(0.0, abs=0.5)
    assert replica.seconds_left is None or replica.seconds_left > 1_000


def test_what_is_not_known_stays_unknown() -> None:
    rates = Rates()
    rates.looked(seen((A, 1, 1_000)), 0.0)
    first, second = rates.of([A, B])
    assert (first.bytes, first.of_bytes, first.bytes_per_s, first.seconds_left) == (None, 1_000, None, None)
    assert (second.bytes, second.of_bytes) == (None, None)
    (broker,) = plan_progress(PLAN, (), rates).brokers
    assert (broker.replicas, broker.bytes_left, broker.bytes_per_s, broker.seconds_left) == (2, None, None, None)


def test_a_broker_takes_all_that_comes_to_it() -> None:
    rates = Rates()
    for at_s, size in ((0.0, 0), (10.0, 500)):
        rates.looked(seen((A, 1, 1_000), (A, 3, size), (B, 2, 2_000), (B, 3, size)), at_s)
    (broker,) = plan_progress(PLAN, (), rates).brokers
    assert (broker.broker, broker.replicas, broker.bytes_left) == (3, 2, 2_000)
    assert (broker.bytes_per_s, broker.seconds_left) == (100.0, 20.0)


def test_a_copy_that_has_all_bytes_is_not_waited_for() -> None:
    rates = Rates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 1_200), moving=(A,)), 0.0)
    assert [one.seconds_left for one in rates.of([A])] == [0.0]


def test_a_move_that_is_over_is_forgotten() -> None:
    rates = Rates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 500)), 0.0)
    rates.looked(seen(moving=()), 1.0)
    assert rates.of([A, B]) == ()
    rates.looked(seen((A, 1, 1_000), (A, 3, 900), moving=(A,)), 2.0)
    assert [one.bytes_per_s for one in rates.of([A])] == [None], "a new move begins anew"


def test_partitions_are_counted_by_their_ends() -> None:
    batch = Batch("p-1", 1, PLAN.targets, ends=(PartitionEnd(A, End.DONE), PartitionEnd(B, End.BACK)))
    back = batch._replace(number=2, back=True, ends=(PartitionEnd(A, End.DONE),))
    progress = plan_progress(PLAN, (batch, back), Rates())
    assert (progress.done, progress.ended) == (1, 2)


def test_an_ended_plan_has_no_copies_under_way() -> None:
    rates = Rates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 500)), 0.0)
    assert plan_progress(PLAN._replace(state=PlanState.CANCELLED), (), rates).replicas == ()


def test_the_rate_of_a_broker_is_unknown_while_that_of_one_of_its_copies_is() -> None:
    rates = Rates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 0), moving=(A,)), 0.0)
    rates.looked(seen((A, 1, 1_000), (A, 3, 500), (B, 2, 2_000), (B, 3, 0)), 10.0)
    (broker,) = plan_progress(PLAN, (), rates).brokers
    assert (broker.bytes_left, broker.bytes_per_s, broker.seconds_left) == (2_500, None, None)

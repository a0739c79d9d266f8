"""The optimum of consumer groups against networkx, against trying everything, and in named situations."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given

from assignors import (
    BadProblem,
    ConsumerMember,
    ConsumerProblem,
    ConsumerResult,
    TopicPartition,
    consumer_defects,
    optimal_consumer,
)
from assignors.optimal.consumer import solve_large
from assignors.optimal.consumer_small import solve_small
from tests.assignors.kafka_graph import consumer_cost, consumer_graph, least_cost
from tests.assignors.oracles import best_consumer, best_copartitioned
from tests.assignors.strategies import consumer_problems, examples

T = TypeVar("T")
many = examples(300)
some = examples(120)

A, B, C = (frozenset(rack) for rack in "abc")


def member(name: str, rack: str | None, owned: str = "", topics: str = "t") -> ConsumerMember:
    """``owned`` reads "t0 t1": topic t, partitions 0 and 1."""
    partitions = tuple(TopicPartition(each[0], int(each[1:])) for each in owned.split())
    return ConsumerMember(id=name, rack=rack, topics=tuple(topics.split()), owned=partitions)


def figures(result: ConsumerResult) -> tuple[list[int], int, int, int, bool]:
    loads = sorted(map(len, result.assignment.values()), reverse=True)
    return loads, result.crossing, result.moved, result.lower_bound, result.optimal


def shown(result: ConsumerResult) -> dict[str, str]:
    return {name: " ".join(f"{t}{p}" for t, p in given) for name, given in result.assignment.items()}


SITUATIONS = {
    "a balanced local group stays as it is": (
        ConsumerProblem(members=(member("x", "a", "t0"), member("y", "b", "t1")), racks={"t": (A, B)}),
        {"x": "t0", "y": "t1"},
        (0, 0),
    ),
    "two members that read each other's rack swap": (
        ConsumerProblem(members=(member("x", "a", "t1"), member("y", "b", "t0")), racks={"t": (A, B)}),
        {"x": "t0", "y": "t1"},
        (0, 2),
    ),
    "balance comes before locality": (
        ConsumerProblem(members=(member("x", "a"), member("y", "b")), racks={"t": (A, A, A, A)}),
        {"x": "t0 t1", "y": "t2 t3"},
        (2, 0),
    ),
    "locality comes before stickiness": (
        ConsumerProblem(members=(member("x", "a", "t2"), member("y", "b", "t0 t1")), racks={"t": (A, A, B)}),
        {"x": "t0 t1", "y": "t2"},
        (0, 3),
    ),
    "a member without rack is local nowhere but still gets its share": (
        ConsumerProblem(members=(member("x", "a"), member("y", None)), racks={"t": (A, A)}),
        {"x": "t0", "y": "t1"},
        (1, 0),
    ),
    "a partition that two members claim belongs to neither and is not counted as moved": (
        ConsumerProblem(members=(member("x", "b", "t0"), member("y", "a", "t0")), racks={"t": (A,)}),
        {"x": "", "y": "t0"},
        (0, 0),
    ),
    "a partition whose owner unsubscribed moves in any case": (
        ConsumerProblem(members=(member("x", "a", "t0", topics="u"), member("y", "b")), racks={"t": (A,), "u": (A,)}),
        {"x": "u0", "y": "t0"},
        (1, 1),
    ),
    "topics without a subscriber or that do not exist are left out": (
        ConsumerProblem(members=(member("x", "a", topics="t gone"),), racks={"t": (A,), "other": (A,)}),
        {"x": "t0"},
        (0, 0),
    ),
    "a member that subscribes to nothing gets nothing": (
        ConsumerProblem(members=(member("x", "a"), member("y", "a", topics="")), racks={"t": (A, A)}),
        {"x": "t0 t1", "y": ""},
        (0, 0),
    ),
    "more members than partitions leaves some without work, local ones first served": (
        ConsumerProblem(members=(member("x", "b"), member("y", "a"), member("z", "c")), racks={"t": (A,)}),
        {"x": "", "y": "t0", "z": ""},
        (0, 0),
    ),
    "the heavier partition gets the local place": (
        ConsumerProblem(
            members=(member("x", "a"), member("y", "b")),
            racks={"t": (A, A)},
            weights={TopicPartition("t", 0): 5, TopicPartition("t", 1): 900},
        ),
        {"x": "t1", "y": "t0"},
        (5, 0),
    ),
    "what must be read across racks takes the cheapest way": (
        ConsumerProblem(
            members=(member("x", "b", "t0"), member("y", "c", "t1")),
            racks={"t": (A, B | C)},
            weights={TopicPartition("t", 0): 100, TopicPartition("t", 1): 900},
            prices={("a", "b"): 9, ("a", "c"): 2},
        ),
        {"x": "t1", "y": "t0"},
        (200, 2),
    ),
    "of several replicas the cheapest is read": (
        ConsumerProblem(
            members=(member("x", "c"), member("y", "d")),
            racks={"t": (A | B, A)},
            prices={("a", "c"): 5, ("b", "c"): 3, ("a", "d"): 4, ("b", "d"): 9},
        ),
        {"x": "t0", "y": "t1"},
        (7, 0),
    ),
    "an unknown rack is as dear as the dearest way": (
        ConsumerProblem(
            members=(member("x", None, "t0"), member("y", "b", "t1")), racks={"t": (A, A)}, prices={("a", "b"): 8}
        ),
        {"x": "t0", "y": "t1"},
        (16, 0),
    ),
    "balance comes before prices, and counts partitions": (
        ConsumerProblem(
            members=(member("x", "a"), member("y", "b")),
            racks={"t": (A, A)},
            weights={TopicPartition("t", 0): 10, TopicPartition("t", 1): 10},
            prices={("a", "b"): 1000},
        ),
        {"x": "t0", "y": "t1"},
        (10_000, 0),
    ),
    "a group without partitions has nothing to do": (
        ConsumerProblem(members=(member("x", "a"),), racks={"t": ()}),
        {"x": ""},
        (0, 0),
    ),
    "a group without members has nothing to do": (ConsumerProblem(members=(), racks={"t": (A,)}), {}, (0, 0)),
    "co-partitioned topics keep equal numbers together": (
        ConsumerProblem(
            members=(member("x", "a", topics="t u"), member("y", "b", topics="t u")),
            racks={"t": (A, B), "u": (B, A)},
            copartitioned=True,
        ),
        {"x": "t0 u0", "y": "t1 u1"},
        (2, 0),
    ),
    "co-partitioned topics of different length are balanced each on its own": (
        ConsumerProblem(
            members=(member("x", "a", topics="t u"), member("y", "b", topics="t u")),
            racks={"t": (A, A), "u": (B,)},
            copartitioned=True,
        ),
        {"x": "t0", "y": "t1 u0"},
        (1, 0),
    ),
}


@pytest.mark.parametrize(("problem", "expected", "crossing_and_moved"), SITUATIONS.values(), ids=SITUATIONS.keys())
def test_situation(problem: ConsumerProblem, expected: dict[str, str], crossing_and_moved: tuple[int, int]) -> None:
    result = optimal_consumer(problem)
    assert consumer_defects(problem, result) == ()
    assert (result.crossing, result.moved) == crossing_and_moved
    assert result.optimal
    assert shown(result) == expected


@examples(900)
@given(consumer_problems())
def test_every_figure_equals_networkx_on_the_graph_of_all_pairs(problem: ConsumerProblem) -> None:
    result = optimal_consumer(problem)
    loads, crossing, moved, bound, optimal = figures(result)
    assert consumer_defects(problem, result) == ()
    assert consumer_cost(problem, loads, crossing, moved) == least_cost(consumer_graph(problem))
    assert (bound, optimal) == (crossing, True)


@some
@given(consumer_problems(members=3, partitions=6))
def test_every_figure_equals_trying_everything(problem: ConsumerProblem) -> None:
    loads, crossing, moved = best_consumer(problem)
    assert figures(optimal_consumer(problem)) == (list(loads), crossing, moved, crossing, True)


@many
@given(consumer_problems(alike=True, members=8, partitions=12, priced=False))
def test_the_small_way_equals_the_large_way(problem: ConsumerProblem) -> None:
    small = solve_small(problem)
    assert small is not None or not any(problem.racks.values())
    if small is not None:
        assert figures(small) == figures(solve_large(problem))
        assert consumer_defects(problem, small) == ()


@some
@given(consumer_problems(members=3, partitions=6, copartitioned=True))
def test_co_partitioned_groups_equal_trying_everything(problem: ConsumerProblem) -> None:
    result = optimal_consumer(problem)
    assert consumer_defects(problem, result) == ()
    crossing, moved, squares = best_copartitioned(problem)
    assert (result.crossing, result.moved, result.lower_bound, result.optimal) == (crossing, moved, crossing, True)
    assert squared_units(problem, result) == squares


def squared_units(problem: ConsumerProblem, result: ConsumerResult) -> int:
    readers = {topic: frozenset(each.id for each in problem.members if topic in each.topics) for topic in problem.racks}
    return sum(
        len({(readers[topic], len(problem.racks[topic]), number) for topic, number in given}) ** 2
        for given in result.assignment.values()
    )


@many
@given(consumer_problems())
def test_the_answer_to_the_answer_is_the_same_answer(problem: ConsumerProblem) -> None:
    first = optimal_consumer(problem)
    again = optimal_consumer(with_owned(problem, first))
    assert again.assignment == first.assignment
    assert (again.crossing, again.moved) == (first.crossing, 0)


def with_owned(problem: ConsumerProblem, result: ConsumerResult) -> ConsumerProblem:
    members = tuple(
        ConsumerMember(id=each.id, rack=each.rack, topics=each.topics, owned=result.assignment[each.id])
        for each in problem.members
    )
    return replace(problem, members=members)


@some
@given(consumer_problems())
def test_the_order_of_the_input_leaves_no_trace(problem: ConsumerProblem) -> None:
    rng = random.Random(7)
    members = [
        ConsumerMember(id=each.id, rack=each.rack, topics=shuffled(rng, each.topics), owned=shuffled(rng, each.owned))
        for each in shuffled(rng, problem.members)
    ]
    weights = None if problem.weights is None else dict(shuffled(rng, tuple(problem.weights.items())))
    prices = None if problem.prices is None else dict(shuffled(rng, tuple(problem.prices.items())))
    topics = dict(shuffled(rng, tuple(problem.racks.items())))
    mixed = ConsumerProblem(members=tuple(members), racks=topics, weights=weights, prices=prices)
    assert repr(solve_large(mixed)) == repr(solve_large(problem))
    assert repr(optimal_consumer(mixed)) == repr(optimal_consumer(problem))


def shuffled(rng: random.Random, values: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(rng.sample(values, len(values)))


BAD = {
    "a member that occurs twice": (
        ConsumerProblem(members=(member("x", "a"), member("x", "b")), racks={"t": (A,)}),
        "member x occurs twice; give every member its own id",
    ),
    "a negative weight": (
        ConsumerProblem(members=(member("x", "a"),), racks={"t": (A,)}, weights={TopicPartition("t", 0): -1}),
        "partition t-0 weighs -1; weights lie between 0 and 2\\*\\*50",
    ),
    "a weight beyond any rate": (
        ConsumerProblem(members=(member("x", "a"),), racks={"t": (A,)}, weights={TopicPartition("t", 0): 1 << 60}),
        "partition t-0 weighs 1152921504606846976",
    ),
}


BAD |= {
    "a negative price": (
        ConsumerProblem(members=(member("x", "a"),), racks={"t": (A,)}, prices={("a", "b"): -1}),
        r"reading from a in b costs -1; prices lie between 0 and 2\*\*20",
    ),
    "weights times prices beyond any amount": (
        ConsumerProblem(
            members=(member("x", "a"),),
            racks={"t": (A,)},
            weights={TopicPartition("t", 0): 1 << 45},
            prices={("a", "b"): 1 << 10},
        ),
        "the largest weight times the largest price",
    ),
}


@pytest.mark.parametrize("solve", [optimal_consumer, solve_large], ids=["small way", "large way"])
@pytest.mark.parametrize(("problem", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_problem(problem: ConsumerProblem, sentence: str, solve: Callable[[ConsumerProblem], object]) -> None:
    with pytest.raises(BadProblem, match=sentence):
        solve(problem)


def random_group(
    rng: random.Random, members: int, partitions: int, weights: int | None = None, racks: str = "abc"
) -> ConsumerProblem:
    sets = tuple(frozenset(rng.sample(racks, rng.randint(1, 2))) for _ in range(partitions))
    everything = [TopicPartition("t", number) for number in range(partitions)]
    owner = [rng.randrange(members) for _ in everything]
    return ConsumerProblem(
        members=tuple(
            ConsumerMember(
                id=f"m{number:03}",
                rack=rng.choice(racks),
                topics=("t",),
                owned=tuple(each for each, holder in zip(everything, owner, strict=True) if holder == number),
            )
            for number in range(members)
        ),
        racks={"t": sets},
        weights=None if weights is None else {each: rng.randrange(weights) for each in everything},
    )


@pytest.mark.parametrize("weights", [None, 1000], ids=["unweighted", "weighted"])
def test_more_racks_than_the_exact_bound_looks_at_are_still_exact(weights: int | None) -> None:
    rng = random.Random(9)
    for _ in range(30):
        problem = random_group(rng, members=9, partitions=20, weights=weights, racks="abcdefgh")
        small = solve_small(problem)
        assert small is not None
        assert figures(small) == figures(solve_large(problem))
        again = solve_small(with_owned(problem, small))
        assert again is not None
        assert again.assignment == small.assignment


@pytest.mark.parametrize("weights", [None, 100, 10**9, 2**50], ids=["unweighted", "small", "gigabytes", "the largest"])
def test_hundreds_of_members_with_weights_of_any_size_are_solved_exactly(weights: int | None) -> None:
    problem = random_group(random.Random(5), members=100, partitions=1000, weights=weights)
    result = optimal_consumer(problem)
    assert consumer_defects(problem, result) == ()
    assert result.optimal
    assert result.lower_bound == result.crossing
    again = optimal_consumer(with_owned(problem, result))
    assert (again.assignment, again.moved) == (result.assignment, 0)


def test_small_groups_with_the_largest_weights_take_the_large_way_and_stay_exact() -> None:
    problem = random_group(random.Random(6), members=4, partitions=12, weights=2**50)
    assert figures(optimal_consumer(problem)) == figures(solve_large(problem))
    assert optimal_consumer(problem).optimal
    loads, crossing, moved, _, _ = figures(optimal_consumer(problem))
    assert consumer_cost(problem, loads, crossing, moved) == least_cost(consumer_graph(problem))

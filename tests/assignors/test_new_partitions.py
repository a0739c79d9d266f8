"""The best places for new partitions: tables, and every possible placement tried on small clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.optimal.new_partitions import ExistingReplicas, NewPartitions, optimal_new_partitions
from assignors.problem import BadProblem, ReplicaBroker


def brokers(**racks: str) -> list[ReplicaBroker]:
    """``a="14"``: brokers 1 and 4 in rack a; rack ``_`` is none."""
    return [
        ReplicaBroker(id=int(i), rack=None if rack == "_" else rack, accepts=True)
        for rack, ids in racks.items()
        for i in ids
    ]


THREE = {"a": "1", "b": "2", "c": "3"}
SIX = {"a": "14", "b": "25", "c": "36"}

PLACED = [
    pytest.param(THREE, 3, 3, {}, [1, 1, 1], {1: 3, 2: 3, 3: 3}, id="one in each rack, and leaders in turn"),
    pytest.param(THREE, 6, 2, {}, [2, 2, 2], {1: 4, 2: 4, 3: 4}, id="fewer replicas than racks"),
    pytest.param(SIX, 6, 3, {}, [1] * 6, dict.fromkeys(range(1, 7), 3), id="two brokers in each rack"),
    pytest.param(SIX, 1, 3, {1: 9, 5: 9}, [1], {2: 1, 3: 1, 4: 1}, id="the emptier broker of a rack"),
    pytest.param(SIX, 2, 3, {1: 9, 5: 9}, [1, 1], dict.fromkeys(range(1, 7), 1), id="the topic is even first of all"),
    pytest.param({"a": "12", "b": "3"}, 4, 2, {}, [2, 1, 1], {1: 2, 2: 2, 3: 4}, id="one rack has a single broker"),
    pytest.param({"_": "123"}, 3, 2, {}, [1, 1, 1], {1: 2, 2: 2, 3: 2}, id="no rack is known"),
]


@pytest.mark.parametrize(("racks", "partitions", "factor", "held", "leads", "counts"), PLACED)
def test_counts_and_leaders(  # noqa: PLR0917 (the columns of the table)
    racks: Mapping[str, str], partitions: int, factor: int, held: Mapping[int, int], leads: Any, counts: Any
) -> None:
    placed = optimal_new_partitions(brokers(**racks), partitions, factor, ExistingReplicas(replicas=held))
    assert Counter(broker for of in placed.replicas for broker in of) == counts
    assert sorted(Counter(of[0] for of in placed.replicas).values(), reverse=True) == sorted(leads, reverse=True)
    assert placed.leaders_optimal


def test_with_more_replicas_than_racks_no_rack_is_left_out() -> None:
    placed = optimal_new_partitions(brokers(a="147", b="258", c="369"), 9, 4)
    racks = [Counter("abc"[(broker - 1) % 3] for broker in of) for of in placed.replicas]
    assert all(sorted(of.values()) == [1, 1, 2] for of in racks)
    assert placed.most_in_a_rack == 2
    assert set(Counter(broker for of in placed.replicas for broker in of).values()) == {4}


def test_brokers_that_take_nothing_or_have_no_rack_get_nothing() -> None:
    given_ones = [*brokers(**SIX), ReplicaBroker(id=7, rack=None), ReplicaBroker(id=8, rack="a", accepts=False)]
    placed = optimal_new_partitions(given_ones, 4, 3)
    assert not {7, 8} & {broker for of in placed.replicas for broker in of}


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "sentence"),
    [
        pytest.param(THREE, 0, 1, "partitions is 0 and replication_factor 1; both begin at 1", id="no partition"),
        pytest.param(THREE, 1, 0, "partitions is 1 and replication_factor 0; both begin at 1", id="no replica"),
        pytest.param(
            THREE, 1, 4, "replication_factor is 4, but only 3 brokers can take replicas", id="too few brokers"
        ),
        pytest.param({"a": "11"}, 1, 1, "brokers has an id twice; name every broker once", id="a broker twice"),
    ],
)
def test_bad_input(racks: Mapping[str, str], partitions: int, factor: int, sentence: str) -> None:
    with pytest.raises(BadProblem) as refused:
        optimal_new_partitions(brokers(**racks), partitions, factor)
    assert str(refused.value) == sentence


COUNTS = st.dictionaries(st.integers(1, 5), st.integers(0, 4))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[ReplicaBroker], int, int, ExistingReplicas]:
    size = draw(st.integers(1, 5))
    every = [ReplicaBroker(id=number, rack=draw(st.sampled_from("aabbc"))) for number in range(1, size + 1)]
    of_topic, leads = draw(COUNTS), draw(COUNTS)
    standing = ExistingReplicas(
        replicas={b: of_topic.get(b, 0) + n for b, n in draw(COUNTS).items()}, topic_replicas=of_topic,
        leaders={b: leads.get(b, 0) + n for b, n in draw(COUNTS).items()}, topic_leaders=leads,
    )  # fmt: skip
    return every, draw(st.integers(1, 3)), draw(st.integers(1, size)), standing


@given(problems())
def test_no_placement_of_all_that_are_possible_is_better(
    problem: tuple[list[ReplicaBroker], int, int, ExistingReplicas],
) -> None:
    every, partitions, factor, standing = problem
    placed = optimal_new_partitions(every, partitions, factor, standing)
    rack_of = {broker.id: broker.rack for broker in every}
    sets = list(combinations(sorted(rack_of), factor))
    best = min(_racks(of, rack_of) for of in sets)
    assert all(_racks(of, rack_of) == best for of in placed.replicas), "each partition is as even over racks as can be"
    assert placed.most_in_a_rack == best[0]
    fine = [of for of in sets if _racks(of, rack_of) == best]
    least = min(_uneven(rows, standing.topic_replicas, standing.replicas) for rows in product(fine, repeat=partitions))
    assert _uneven(placed.replicas, standing.topic_replicas, standing.replicas) == least
    choices = product(*(sorted(of) for of in placed.replicas))
    leads = min(_uneven([(b,) for b in row], standing.topic_leaders, standing.leaders) for row in choices)
    assert _uneven([of[:1] for of in placed.replicas], standing.topic_leaders, standing.leaders) == leads


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_brokers_plays_no_part(
    problem: tuple[list[ReplicaBroker], int, int, ExistingReplicas], rng: Any
) -> None:
    every, partitions, factor, standing = problem
    mixed = list(every)
    rng.shuffle(mixed)
    one, other = (optimal_new_partitions(of, partitions, factor, standing) for of in (every, mixed))
    assert one == other
    assert all(len(set(of)) == factor for of in one.replicas)


def test_a_large_topic_is_even_and_its_leaders_too() -> None:
    every = [ReplicaBroker(id=number, rack=f"r{number % 6}") for number in range(120)]
    placed: NewPartitions = optimal_new_partitions(every, 2_000, 3)
    held = Counter(broker for of in placed.replicas for broker in of)
    leads = Counter(of[0] for of in placed.replicas)
    assert set(held.values()) == {50}
    assert set(leads.values()) == {16, 17}
    assert all(len({broker % 6 for broker in of}) == 3 for of in placed.replicas)


def _racks(replicas: tuple[int, ...], rack_of: Mapping[int, str | None]) -> tuple[int, ...]:
    """Replicas per rack, the fullest first: what is smaller is more even."""
    return tuple(sorted(Counter(rack_of[broker] for broker in replicas).values(), reverse=True))


def _uneven(rows: Any, of_topic: Mapping[int, int], of_all: Mapping[int, int]) -> tuple[int, int]:
    new = Counter(broker for of in rows for broker in of)
    ids = range(1, 6)
    return sum((of_topic.get(b, 0) + new[b]) ** 2 for b in ids), sum((of_all.get(b, 0) + new[b]) ** 2 for b in ids)

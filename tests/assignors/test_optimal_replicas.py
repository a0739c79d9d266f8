"""Plans for replicas against trying everything, and in named situations."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given

from assignors import (
    BadProblem,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaResult,
    ReplicaSet,
    TopicPartition,
    measure_replicas,
    optimal_replicas,
    replica_defects,
)
from tests.assignors.oracles import best_replicas, replica_score
from tests.assignors.strategies import examples, replica_problems

many = examples(400)
some = examples(120)


def brokers(layout: str) -> tuple[ReplicaBroker, ...]:
    """``layout`` reads "a a b ? c!": racks of brokers 0, 1, ...; ? is unknown, ! accepts nothing."""
    return tuple(
        ReplicaBroker(id=number, rack=None if each[0] == "?" else each.rstrip("!"), accepts=not each.endswith("!"))
        for number, each in enumerate(layout.split())
    )


def partitions(*lists: str, size_bytes: int | None = 10) -> tuple[ReplicaSet, ...]:
    return tuple(
        ReplicaSet(id=TopicPartition("t", number), replicas=tuple(map(int, each.split())), size_bytes=size_bytes)
        for number, each in enumerate(lists)
    )


def shown(result: ReplicaResult) -> dict[int, str]:
    return {name.partition: " ".join(map(str, replicas)) for name, replicas in result.replicas.items()}


SITUATIONS = {
    "replicas in three racks stay": ("a b c", ("0 1 2", "1 2 0"), {}, 0),
    "two replicas in one rack: the follower moves to the free rack, in its place": (
        "a a b c", ("0 1 2",), {0: "0 3 2"}, 10,
    ),
    "the preferred leader stays first even when it is not the first of its rack": (
        "a a b c", ("2 0 1",), {0: "2 0 3"}, 10,
    ),
    "a leader on a broker that accepts nothing moves, and the next replica leads": (
        "a! a b c", ("0 1 2",), {0: "1 3 2"}, 10,
    ),
    "of two crowded partitions each moves to another of the free brokers, and both are led where they were": (
        "a a b c c", ("0 1 2", "0 1 2"), {0: "0 4 2", 1: "0 3 2"}, 20,
    ),
    "a rule with two per rack is kept as well": ("a a a b b", ("0 1 2 3",), {0: "0 4 2 3"}, 10),
    "five copies on three racks: the new one is where the leader is, so one follower less fetches across racks": (
        "a a a b b c c", ("5 0 1 2 3",), {0: "5 6 1 2 3"}, 10,
    ),
    "one rack only: nothing can be better": ("a a a", ("0 1 2",), {}, 0),
    "fewer replicas than racks may leave racks out": ("a b c", ("0 1",), {}, 0),
    "a broker that accepts nothing keeps what keeps the rule": ("a! b c d", ("0 1 2",), {}, 0),
    "no rack is known: nothing can be said": ("? ? ?", ("0 1 2",), {}, 0),
    "an unknown rack does not stop a move that helps in any case": (
        "a a a b b ?", ("0 1 2 5",), {0: "0 1 4 5"}, 10,
    ),
    "a topic without replicas is left alone": ("a b", ("",), {}, 0),
}  # fmt: skip


@pytest.mark.parametrize(("layout", "lists", "expected", "moved"), SITUATIONS.values(), ids=SITUATIONS.keys())
def test_situation(layout: str, lists: tuple[str, ...], expected: dict[int, str], moved: int) -> None:
    problem = ReplicaProblem(brokers=brokers(layout), partitions=partitions(*lists), balance=False)
    result = optimal_replicas(problem)
    assert replica_defects(problem, result) == ()
    assert shown(result) == expected
    assert (result.moved_bytes, result.lower_bound, result.optimal) == (moved, moved, True)


def crowded_pair(**changes: object) -> ReplicaSet:
    return replace(partitions("0 1")[0], **changes)


@pytest.mark.parametrize(
    ("readers", "after"),
    [((("c", 1),), "0 3"), ((("b", 1),), "0 2"), ((("b", 1), ("c", 2)), "0 3"), ((("z", 9),), "0 2")],
)
def test_of_two_free_racks_the_one_with_the_most_readers_takes_the_new_replica(
    readers: tuple[tuple[str, int], ...], after: str
) -> None:
    problem = ReplicaProblem(brokers=brokers("a a b c"), partitions=(crowded_pair(readers=readers),), balance=False)
    assert shown(optimal_replicas(problem)) == {0: after}


def test_a_leader_that_is_to_stay_stays_even_on_a_broker_that_accepts_nothing() -> None:
    problem = ReplicaProblem(brokers=brokers("a! a b"), partitions=(crowded_pair(keeps_leader=True),), balance=False)
    assert shown(optimal_replicas(problem)) == {0: "0 2"}
    free = replace(problem, partitions=(crowded_pair(),))
    assert shown(optimal_replicas(free)) == {0: "1 2"}


HOPELESS = {
    "the free rack accepts nothing": (
        "a a b c!", "0 1 2",
        ("1 of its replicas in rack a should move to other racks, but only 0 can: no broker of rack c accepts replicas"
         "; bring brokers back or add brokers there"),
    ),
    "the free rack has too few brokers": (
        "a a a a b", "0 1 2 3",
        ("2 of its replicas in rack a should move to other racks, but only 1 can: the other racks have too few brokers"
         "; bring brokers back or add brokers there"),
    ),
    "the rack of another replica is not known": (
        "a a b c ?", "0 1 4",
        ("1 of its replicas in rack a should move to other racks, but the rack of broker 4 is unknown, so no move is "
         "certain to help; set its broker.rack"),
    ),
    "another replica is on a broker that is gone": (
        "a a b c", "0 1 9",
        ("1 of its replicas in rack a should move to other racks, but the rack of broker 9 is unknown, so no move is "
         "certain to help; set its broker.rack"),
    ),
    "the list names a broker twice": (
        "a b c", "0 0 1",
        "its replica list has a broker twice; nothing is planned for such a list",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("layout", "replicas", "sentence"), HOPELESS.values(), ids=HOPELESS.keys())
def test_an_infeasible_partition_is_named_and_the_rest_is_planned(layout: str, replicas: str, sentence: str) -> None:
    more = partitions(replicas)
    racks = {broker.rack for broker in brokers(layout)}
    healthy = ReplicaSet(id=TopicPartition("u", 0), replicas=(0, 1), size_bytes=7)
    problem = ReplicaProblem(brokers=brokers(layout), partitions=(*more, healthy), balance=False)
    result = optimal_replicas(problem)
    assert [(each.id, each.why) for each in result.infeasible] == [(TopicPartition("t", 0), sentence)]
    crowded = brokers(layout)[0].rack == brokers(layout)[1].rack and len(racks) > 1
    assert list(result.replicas) == ([healthy.id] if crowded else [])
    assert result.moved_bytes == (7 if crowded else 0)


@many
@given(replica_problems(balance=False))
def test_mending_the_rule_equals_trying_everything(problem: ReplicaProblem) -> None:
    judge(problem)


@many
@given(replica_problems(balance=True))
def test_mending_and_evening_out_equals_trying_everything(problem: ReplicaProblem) -> None:
    judge(problem)


def judge(problem: ReplicaProblem) -> None:
    result = optimal_replicas(problem)
    assert replica_defects(problem, result) == ()
    best, infeasible = best_replicas(problem)
    after = tuple(result.replicas.get(each.id, each.replicas) for each in problem.partitions)
    assert replica_score(problem, after) == best
    broken = {each.id for each in result.infeasible}
    assert broken == {each for each in infeasible if crowded(problem, each)}
    assert result.optimal
    assert result.lower_bound == result.moved_bytes


def crowded(problem: ReplicaProblem, name: TopicPartition) -> bool:
    alone = tuple(each for each in problem.partitions if each.id == name)
    return measure_replicas(replace(problem, partitions=alone)).crowded > 0


@some
@given(replica_problems(balance=True))
def test_the_order_of_the_input_leaves_no_trace(problem: ReplicaProblem) -> None:
    rng = random.Random(3)
    mixed = replace(
        problem,
        brokers=tuple(rng.sample(problem.brokers, len(problem.brokers))),
        partitions=tuple(rng.sample(problem.partitions, len(problem.partitions))),
    )
    assert repr(optimal_replicas(mixed)) == repr(optimal_replicas(problem))


@some
@given(replica_problems(balance=True))
def test_a_plan_carried_out_leaves_nothing_to_plan(problem: ReplicaProblem) -> None:
    first = optimal_replicas(problem)
    done = tuple(replace(each, replicas=first.replicas.get(each.id, each.replicas)) for each in problem.partitions)
    again = optimal_replicas(replace(problem, partitions=done))
    assert again.replicas == {}


@pytest.mark.parametrize("balance", [False, True], ids=["mending only", "evening out too"])
def test_a_few_thousand_partitions(*, balance: bool) -> None:
    rng = random.Random(1)
    nodes = brokers(" ".join("abcdef"[number % 6] for number in range(24)))
    lists = tuple(
        ReplicaSet(
            id=TopicPartition("t", number),
            replicas=tuple(rng.sample(range(24), 3)) if number % 20 == 0 else spread(rng),
            size_bytes=rng.randrange(10**9),
        )
        for number in range(3000)
    )
    problem = ReplicaProblem(brokers=nodes, partitions=lists, balance=balance)
    result = optimal_replicas(problem)
    assert replica_defects(problem, result) == ()
    assert result.optimal
    after = measure_replicas(problem, result.replicas)
    assert after.crowded == 0 < measure_replicas(problem).crowded
    if balance:
        assert max(after.counts.values()) - min(after.counts.values()) <= 1


def spread(rng: random.Random) -> tuple[int, ...]:
    """Three brokers in three racks."""
    return tuple(rack + 6 * rng.randrange(4) for rack in rng.sample(range(6), 3))


BAD = {
    "a broker that occurs twice": (
        ReplicaProblem(brokers=(ReplicaBroker(id=1, rack="a"), ReplicaBroker(id=1, rack="b")), partitions=()),
        "broker 1 occurs twice",
    ),
    "a partition that occurs twice": (
        ReplicaProblem(brokers=brokers("a"), partitions=partitions("0") + partitions("0")),
        "partition t-0 occurs twice",
    ),
}


@pytest.mark.parametrize(("problem", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_problem(problem: ReplicaProblem, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        optimal_replicas(problem)


def test_without_brokers_nothing_is_planned() -> None:
    problem = ReplicaProblem(brokers=(), partitions=partitions("0 1"))
    assert optimal_replicas(problem) == ReplicaResult()


def test_sizes_of_petabytes_stay_exact() -> None:
    problem = ReplicaProblem(
        brokers=brokers("a a b c"), partitions=partitions("0 1 2", "0 1 3", size_bytes=10**15 + 1), balance=True
    )
    result = optimal_replicas(problem)
    assert (result.moved_bytes, result.optimal) == (2 * 10**15 + 2, True)

"""What holds of every answer of Kafka's client-side assignors, on random groups: valid, balanced, sticky, converging.

``RACKWISE_EXAMPLES`` multiplies the examples.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import (
    ClassicMember,
    ClassicProblem,
    GroupAssignment,
    TopicPartition,
    cooperative_sticky_assign,
    range_assign,
    roundrobin_assign,
    sticky_assign,
)
from assignors.kafka.consumer_problem import leader_order, subscribed_topics
from assignors.kafka.cooperative_sticky import MOST_FOLLOW_UPS, cooperative_sticky_settled
from tests.assignors.strategies import examples

Assign = Callable[[ClassicProblem], GroupAssignment]
EVERY_ASSIGNOR = [
    pytest.param(range_assign, id="range"),
    pytest.param(roundrobin_assign, id="round-robin"),
    pytest.param(sticky_assign, id="sticky"),
    pytest.param(cooperative_sticky_assign, id="cooperative-sticky"),
]
BOTH_STICKY = EVERY_ASSIGNOR[2:]
many, some = examples(150), examples(60)


@st.composite
def groups(draw: st.DrawFn, *, alike: bool | None = None, racks: int = 3, claims: bool = True) -> ClassicProblem:
    """Up to six members and four topics; claims as they come, racks as they come."""
    names = [f"t{number}" for number in range(draw(st.integers(1, 4)))]
    zones = "abcde"[: draw(st.integers(0, racks))]
    places = st.frozensets(st.sampled_from(zones), max_size=2) if zones else st.just(frozenset[str]())
    topics = {name: tuple(draw(st.lists(places, max_size=7))) for name in names}
    count = draw(st.integers(1, 6))
    same = draw(st.booleans()) if alike is None else alike
    everything = (*names, "gone")
    existing = [TopicPartition(topic, number) for topic, sets in topics.items() for number in range(len(sets))]
    owners = draw(st.lists(st.integers(-1, count - 1), min_size=len(existing), max_size=len(existing)))
    members = [
        ClassicMember(
            id=f"m{number}-{draw(st.integers(0, 999))}",
            topics=everything if same else tuple(draw(st.sets(st.sampled_from(everything), min_size=1))),
            rack=draw(st.sampled_from((None, *zones))),
            instance_id=draw(st.sampled_from((None, None, f"i{9 - number}"))),
            owned=tuple(tp for tp, owner in zip(existing, owners, strict=True) if owner == number) if claims else (),
            generation=4,
            subscription_generation=4,
        )
        for number in range(count)
    ]
    return ClassicProblem(members=leader_order(members), racks=topics)


def held_back(problem: ClassicProblem, result: GroupAssignment) -> set[TopicPartition]:
    """Partitions that no member gets in this rebalance because another one has them still."""
    given = {partition for mine in result.assignment.values() for partition in mine}
    return {
        TopicPartition(topic, number)
        for topic, sets in subscribed_topics(problem).items()
        for number in range(len(sets))
    } - given


def judge_valid(problem: ClassicProblem, result: GroupAssignment) -> None:
    """Every member is there; each partition that counts has one subscriber, or a member that must revoke it."""
    assert list(result.assignment) == [member.id for member in problem.members]
    given = Counter(partition for mine in result.assignment.values() for partition in mine)
    assert not {partition for partition, times in given.items() if times > 1}, "given twice"
    topics = subscribed_topics(problem)
    for member in problem.members:
        for topic, number in result.assignment[member.id]:
            assert topic in member.topics, f"{member.id} does not subscribe to {topic}"
            assert 0 <= number < len(topics[topic]), f"{topic}-{number} does not exist"
    claimed = {partition for member in problem.members for partition in member.owned}
    assert held_back(problem, result) <= claimed, "no member has it or gets it"


def spread(problem: ClassicProblem, result: GroupAssignment, topic: str | None = None) -> int:
    """The difference between the largest and the smallest load of the members that subscribe to the topic."""
    loads = [
        sum(topic in (None, each.topic) for each in result.assignment[member.id])
        for member in problem.members
        if topic is None or topic in member.topics
    ]
    return max(loads) - min(loads)


def after(problem: ClassicProblem, result: GroupAssignment) -> ClassicProblem:
    """The next rebalance of the same members."""
    generation = max(member.generation or 0 for member in problem.members) + 1
    members = tuple(
        replace(member, owned=result.assignment[member.id], generation=generation, subscription_generation=generation)
        for member in problem.members
    )
    return replace(problem, members=members, max_generation_before=result.max_generation)


def moved(problem: ClassicProblem, result: GroupAssignment) -> int:
    owned = {partition: member.id for member in problem.members for partition in member.owned}
    return sum(owned.get(partition, name) != name for name, mine in result.assignment.items() for partition in mine)


@pytest.mark.parametrize("assign", EVERY_ASSIGNOR)
@many
@given(problem=groups())
def test_every_answer_is_valid(assign: Assign, problem: ClassicProblem) -> None:
    judge_valid(problem, assign(problem))


@pytest.mark.parametrize("assign", EVERY_ASSIGNOR[:3])
@some
@given(problem=groups())
def test_an_eager_answer_leaves_nothing_out(assign: Assign, problem: ClassicProblem) -> None:
    assert not held_back(problem, assign(problem))


@many
@given(problem=groups())
def test_range_balances_each_topic(problem: ClassicProblem) -> None:
    result = range_assign(problem)
    assert all(spread(problem, result, topic) <= 1 for topic in subscribed_topics(problem))


@many
@given(problem=groups())
def test_range_keeps_copartitioned_topics_together(problem: ClassicProblem) -> None:
    topics = subscribed_topics(problem)
    owner = {partition: name for name, mine in range_assign(problem).assignment.items() for partition in mine}
    alike = defaultdict(list)
    for topic, sets in topics.items():
        alike[frozenset(m.id for m in problem.members if topic in m.topics), len(sets)].append(topic)
    for (_, count), names in alike.items():
        for one, other in pairwise(names):
            for number in range(count):
                assert owner[TopicPartition(one, number)] == owner[TopicPartition(other, number)]


@pytest.mark.parametrize("assign", EVERY_ASSIGNOR[1:3])
@many
@given(problem=groups(alike=True))
def test_loads_differ_by_one_at_most_when_all_subscribe_to_the_same(assign: Assign, problem: ClassicProblem) -> None:
    assert spread(problem, assign(problem)) <= 1


@many
@given(problem=groups(alike=False, claims=False))
def test_a_new_group_with_different_topics_cannot_be_evened_out_further(problem: ClassicProblem) -> None:
    result = sticky_assign(problem)
    loads = {name: len(mine) for name, mine in result.assignment.items()}
    for member in problem.members:
        for name, mine in result.assignment.items():
            takes = any(partition.topic in member.topics for partition in mine)
            assert not takes or loads[name] <= loads[member.id] + 1, f"{name} could give one to {member.id}"


@pytest.mark.parametrize("assign", BOTH_STICKY)
@many
@given(problem=groups(racks=0))
def test_nothing_moves_when_nothing_changed(assign: Assign, problem: ClassicProblem) -> None:
    settled = after(problem, sticky_assign(problem))
    assert moved(settled, assign(settled)) == 0
    assert not held_back(settled, assign(settled))


@pytest.mark.parametrize("assign", BOTH_STICKY)
@many
@given(problem=groups(alike=True))
def test_what_is_kept_is_as_much_as_balance_allows(assign: Assign, problem: ClassicProblem) -> None:
    """Without racks a member keeps what it has up to its quota: floor, or ceil for as many as there is a rest."""
    problem = replace(problem, racks={topic: (frozenset[str](),) * len(sets) for topic, sets in problem.racks.items()})
    total = sum(map(len, subscribed_topics(problem).values()))
    least, more = divmod(total, len(problem.members))
    owned = [len(member.owned) for member in problem.members]
    best = sum(min(each, least) for each in owned) + min(more, sum(each > least for each in owned))
    kept = sum(len({*member.owned} & {*assign(problem).assignment[member.id]}) for member in problem.members)
    assert kept == best


@many
@given(problem=groups(alike=False, racks=0))
def test_sticky_is_never_less_balanced_than_doing_nothing(problem: ClassicProblem) -> None:
    """Where doing nothing is valid: every partition is with a subscriber of its topic."""
    settled = after(problem, roundrobin_assign(problem))
    result = sticky_assign(settled)
    assert differences({m.id: m.owned for m in settled.members}) >= differences(result.assignment)


def differences(assignment: Mapping[str, tuple[TopicPartition, ...]]) -> int:
    loads = [len(mine) for mine in assignment.values()]
    return sum(abs(one - other) for one in loads for other in loads)


@many
@given(groups())
def test_a_group_is_settled_when_rebalance_after_rebalance_nobody_has_to_let_go(problem: ClassicProblem) -> None:
    settled = cooperative_sticky_settled(problem)
    result = first = cooperative_sticky_assign(problem)
    rebalances, let_go = 1, lets_go(problem, result)
    while let_go and rebalances <= MOST_FOLLOW_UPS:
        members = [replace(member, owned=result.assignment[member.id]) for member in problem.members]
        problem = ClassicProblem(members=tuple(members), racks=problem.racks)
        result = cooperative_sticky_assign(problem)
        rebalances, let_go = rebalances + 1, lets_go(problem, result)
    assert settled.first == first
    assert settled.last.assignment == result.assignment
    assert (settled.rebalances, settled.still_moving) == (rebalances, let_go)


def lets_go(problem: ClassicProblem, result: GroupAssignment) -> bool:
    """Whether a member has an existing partition that it is not given again."""
    return any(
        partition not in result.assignment[member.id]
        and partition.partition < len(problem.racks.get(partition.topic, ()))
        for member in problem.members
        for partition in member.owned
    )


@pytest.mark.parametrize(
    ("racks", "alike"),
    [
        pytest.param(0, True, id="one subscription"),
        pytest.param(0, False, id="different subscriptions"),
        pytest.param(3, True, id="one subscription, racks"),
        pytest.param(3, False, id="different subscriptions, racks"),
    ],
)
@pytest.mark.parametrize("seed", range(12))
def test_a_cooperative_group_settles_however_members_come_and_go(racks: int, alike: bool, seed: int) -> None:
    """Rebalance until no member has to revoke a partition any more, then let members join, leave and change."""
    rng = Random(f"{racks} {alike} {seed}")
    history: list[str] = []
    topics = {
        f"t{number}": tuple(frozenset(rng.sample("abc", 2 if racks else 0)) for _ in range(rng.randint(1, 12)))
        for number in range(4)
    }

    def newcomer(number: int) -> ClassicMember:
        names = tuple(topics) if alike else tuple(rng.sample(sorted(topics), rng.randint(1, 4)))
        return ClassicMember(id=f"m{number}", topics=names, rack=rng.choice("abc") if racks else None)

    members = [newcomer(number) for number in range(4)]
    for event in range(25):
        match rng.randrange(3):
            case 0 if len(members) > 1:
                left = members.pop(rng.randrange(len(members)))
                history.append(f"{left.id} left")
            case 1:
                members.append(newcomer(10 + event))
                history.append(f"m{10 + event} joined for {members[-1].topics} in {members[-1].rack}")
            case _:
                history.append("all joined again")
        for _ in range(10):
            problem = ClassicProblem(members=leader_order(members), racks=topics)
            result = cooperative_sticky_assign(problem)
            history.append(f"{ {name: ' '.join(map(str, mine)) for name, mine in result.assignment.items()} }")
            judge_valid(problem, result)
            # A member revokes what it is not given again, and that makes it join once more.
            let_go = any(set(member.owned) - set(result.assignment[member.id]) for member in problem.members)
            members = list(after(problem, result).members)
            if not let_go:
                break
        else:
            pytest.fail(f"seed {seed} does not settle:\n" + "\n".join(history))
        assert not held_back(problem, result), "\n".join(history)

"""The broker's assignors of consumer groups (KIP-848): Kafka's own answers, and what they promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from assignors.cases.registry import AssignorCase
from assignors.kafka.exceptions import PartitionAssignorException
from assignors.kafka.group_problem import GroupMember, GroupProblem, broker_order
from assignors.kafka.group_range import assign_group_range
from assignors.kafka.group_uniform import assign_group_uniform
from assignors.kafka.java import hash_order, string_hash
from assignors.problem import BadProblem
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases
from tests.assignors.strategies import examples

TOPICS = ("7v7dDWLrRyqKMbuoSyk4pQ", "ARGAgBUdTmKBfbSyOvyyqw", "K-sUTZ0JTxuo0IH1eX4VVw", "____________________-A")
A, B, C, D = TOPICS
"""The last one's halves are negative, so it is the first in Kafka's order."""


@pytest.mark.parametrize("case", golden_cases("group.range", "group.uniform"))
def test_the_answer_is_kafkas(case: AssignorCase) -> None:
    assert_as_kafka(case)


def member(name: str, topics: str | tuple[str, ...], instance: str | None = None, **assigned: Any) -> GroupMember:
    """A member; ``assigned`` by the names A to D."""
    ids = dict(zip("ABCD", TOPICS, strict=True))
    return GroupMember(
        id=name,
        instance_id=instance,
        topics=tuple(ids[topic] for topic in topics),
        assigned={ids[topic]: tuple(partitions) for topic, partitions in assigned.items()},
    )


def group(*members: GroupMember, homogeneous: bool | None = None, **partitions: int) -> GroupProblem:
    ids = dict(zip("ABCD", TOPICS, strict=True))
    alike = len({frozenset(each.topics) for each in members}) <= 1
    return GroupProblem(
        members=members,
        partitions={ids[topic]: count for topic, count in partitions.items()},
        homogeneous=alike if homogeneous is None else homogeneous,
    )


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        pytest.param(
            group(member("m1", "A"), member("m2", "A", "i1"), member("m0", "A"), A=4),
            {"m2": {A: (0, 1)}, "m0": {A: (2,)}, "m1": {A: (3,)}},
            id="static members come first, then the others by id; the first ones take the larger ranges",
        ),
        pytest.param(
            group(member("m1", "AB"), member("m2", "AB"), A=3, B=3),
            {"m1": {A: (0, 1), B: (0, 1)}, "m2": {A: (2,), B: (2,)}},
            id="topics of equal size come out co-partitioned",
        ),
        pytest.param(
            group(member("m1", "A"), member("m2", "AB"), A=2, B=1),
            {"m1": {A: (0,)}, "m2": {A: (1,), B: (0,)}},
            id="a topic is cut over its own subscribers only",
        ),
        pytest.param(
            group(member("m1", "A"), member("m2", "A"), A=1),
            {"m1": {A: (0,)}, "m2": {}},
            id="who gets nothing is there with nothing",
        ),
        pytest.param(group(A=1), {}, id="no members, no assignment"),
        pytest.param(
            group(member("m1", "A"), member("m2", "B"), A=2, B=2, homogeneous=True),
            {"m1": {A: (0,)}, "m2": {A: (1,)}},
            id="where the broker takes subscriptions for equal, the first member's holds",
        ),
    ],
)
def test_range(problem: GroupProblem, expected: Mapping[str, Any]) -> None:
    assert assign_group_range(problem) == expected


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        pytest.param(
            group(member("m1", "A", A=[0]), member("m2", "A", A=[1, 2]), A=3),
            {"m1": {A: (0,)}, "m2": {A: (1, 2)}},
            id="KIP-848: what is balanced stays, whichever member has the larger share",
        ),
        pytest.param(
            group(member("m1", "A", A=[0, 1, 2, 3]), member("m2", "A"), A=4),
            {"m1": {A: (0, 1)}, "m2": {A: (2, 3)}},
            id="KIP-848: a new member gets what is above the others' quotas",
        ),
        pytest.param(
            group(member("m1", "A", A=[3, 2, 1]), member("m2", "A"), A=4),
            {"m1": {A: (2, 3)}, "m2": {A: (0, 1)}},
            id="what is kept goes by the order of the broker's set",
        ),
        pytest.param(
            group(member("m1", "B", A=[0, 1], B=[0]), member("m2", "B", B=[1]), A=2, B=2),
            {"m1": {B: (0,)}, "m2": {B: (1,)}},
            id="what is no longer subscribed is gone",
        ),
        pytest.param(group(member("m1", ""), member("m2", "")), {}, id="no subscriber: no member is named"),
        pytest.param(
            group(member("m1", "A", A=[0, 1, 2]), member("m2", "AB", B=[0]), A=3, B=1),
            {"m1": {A: (0, 1)}, "m2": {A: (2,), B: (0,)}},
            id="unequal subscriptions: the fullest hands on its last partition",
        ),
        pytest.param(
            group(member("m1", "A"), member("m2", "AB"), member("m3", "B"), A=1, B=4),
            {"m1": {A: (0,)}, "m2": {B: (0, 2)}, "m3": {B: (1, 3)}},
            id="unequal subscriptions: topics with most partitions per subscriber are given out first",
        ),
    ],
)
def test_uniform(problem: GroupProblem, expected: Mapping[str, Any]) -> None:
    assert assign_group_uniform(problem) == expected


@pytest.mark.parametrize(
    ("assign", "sentence"),
    [
        pytest.param(assign_group_range, "Member is subscribed to a non-existent topic", id="range"),
        pytest.param(
            assign_group_uniform,
            f"Members are subscribed to topic {B} which doesn't exist in the topic metadata.",
            id="uniform",
        ),
    ],
)
@pytest.mark.parametrize("others", [pytest.param("B", id="all alike"), pytest.param("A", id="unequal")])
def test_an_unknown_topic_is_refused_as_kafka_does(assign: Any, sentence: str, others: str) -> None:
    with pytest.raises(PartitionAssignorException) as refusal:
        assign(group(member("m1", "B"), member("m2", others), A=1))
    assert (str(refusal.value), refusal.value.kafka_name) == (sentence, "PartitionAssignorException")


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(group(member("m", "A"), member("m", "A"), A=1), "member m occurs twice", id="a member twice"),
        pytest.param(group(member("m", "AA"), A=1), "name a topic twice", id="a topic subscribed to twice"),
        pytest.param(
            group(member("m", "A", A=[0]), member("n", "A", A=[0]), A=1),
            f"member n is assigned {A}-0, which member m has already",
            id="a partition claimed by two",
        ),
        pytest.param(
            group(member("m", "A", A=[0, 0]), A=1), "which member m has already", id="a partition claimed twice"
        ),
        pytest.param(group(member("m", "A", A=[1]), A=1), f"{A}-1, which does not exist", id="a partition too far"),
        pytest.param(group(member("m", "A"), A=0), "a topic has at least one", id="a topic without partitions"),
        pytest.param(
            GroupProblem(
                members=(GroupMember(id="m", topics=("orders",)),), partitions={"orders": 1}, homogeneous=True
            ),
            "'orders' is not a topic id",
            id="a topic's name for its id",
        ),
        pytest.param(
            GroupProblem(
                members=(GroupMember(id="m", topics=("orders",)),), partitions={"orders": 1}, homogeneous=False
            ),
            "'orders' is not a topic id",
            id="a topic's name for its id, unequal subscriptions",
        ),
    ],
)
def test_what_no_broker_asks_is_named(problem: GroupProblem, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        assign_group_uniform(problem)


def test_members_are_numbered_as_a_hash_map_gives_them() -> None:
    ids = [f"consumer-{number}" for number in range(40)]
    assert broker_order(ids) == hash_order(ids, string_hash) != ids


# --- properties -------------------------------------------------------------------------------------------------

Event = tuple[str, int, str]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("join", "join", "leave", "resubscribe")),
        st.integers(0, 9),
        st.sampled_from(("A", "AB", "ABC", "ABCD", "BC", "CD", "D", "")),
    ),
    min_size=1,
    max_size=12,
)
SIZES = st.tuples(*(st.integers(1, 9) for _ in TOPICS))


def after(event: Event, members: tuple[GroupMember, ...], number: int, *, alike: bool) -> tuple[GroupMember, ...]:
    kind, which, topics = event
    if kind == "join":
        like = GroupMember(id=f"m{number}", topics=members[0].topics) if alike and members else None
        return (*members, like or member(f"m{number}", topics))
    if not members:
        return members
    at = which % len(members)
    if kind == "leave":
        return members[:at] + members[at + 1 :]
    if alike:
        return tuple(member(each.id, topics, **named(each.assigned)) for each in members)
    return (*members[:at], member(members[at].id, topics, **named(members[at].assigned)), *members[at + 1 :])


def named(assigned: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    names = dict(zip(TOPICS, "ABCD", strict=True))
    return {names[topic]: partitions for topic, partitions in assigned.items()}


def holding(problem: GroupProblem, assignment: Mapping[str, Mapping[str, tuple[int, ...]]]) -> GroupProblem:
    """The same group after it has got an assignment."""
    return GroupProblem(
        members=tuple(
            GroupMember(id=each.id, topics=each.topics, assigned=assignment.get(each.id, {}))
            for each in problem.members
        ),
        partitions=problem.partitions,
        homogeneous=problem.homogeneous,
    )


def assert_valid(problem: GroupProblem, assignment: Mapping[str, Mapping[str, tuple[int, ...]]]) -> None:
    subscriptions = {each.id: set(each.topics) for each in problem.members}
    given_to = Counter(
        (topic, partition)
        for name, mine in assignment.items()
        for topic, partitions in mine.items()
        for partition in partitions
        if topic in subscriptions[name]
    )
    wanted = {
        (topic, partition)
        for topic in set().union(*subscriptions.values())
        for partition in range(problem.partitions[topic])
    }
    assert given_to == dict.fromkeys(wanted, 1)


def loads(assignment: Mapping[str, Mapping[str, tuple[int, ...]]]) -> dict[str, int]:
    return {name: sum(map(len, mine.values())) for name, mine in assignment.items()}


@given(history=EVENTS, sizes=SIZES, alike=st.booleans())
@examples(300)
def test_uniform_stays_valid_and_settles_whoever_joins_and_leaves(
    history: list[Event], sizes: tuple[int, ...], alike: bool
) -> None:
    members: tuple[GroupMember, ...] = ()
    for number, event in enumerate(history):
        members = after(event, members, number, alike=alike)
        problem = group(*members, homogeneous=alike, **dict(zip("ABCD", sizes, strict=True)))
        assignment = assign_group_uniform(problem)
        note(f"{event}: {assignment}")
        assert_valid(problem, assignment)
        assert_even(problem, assignment)
        for _ in range(5):
            again = assign_group_uniform(holding(problem, assignment))
            if again == assignment:
                break
            assignment = again
        assert again == assignment, "asked again, it asks for nothing more"
        members = holding(problem, assignment).members


def assert_even(problem: GroupProblem, assignment: Mapping[str, Mapping[str, tuple[int, ...]]]) -> None:
    """No member holds a partition that another subscriber of its topic, two or more below, could take."""
    load = loads(assignment)
    for topic in problem.partitions:
        readers = [load[each.id] for each in problem.members if topic in each.topics and each.id in load]
        holders = [load[name] for name, mine in assignment.items() if topic in mine]
        if problem.homogeneous or all(set(each.topics) == set(problem.members[0].topics) for each in problem.members):
            assert max(readers, default=0) - min(readers, default=0) <= 1
        elif readers:
            assert max(holders) - min(readers) <= 1


@given(history=EVENTS, sizes=SIZES, alike=st.booleans())
@examples(200)
def test_range_is_valid_contiguous_and_even_per_topic(
    history: list[Event], sizes: tuple[int, ...], alike: bool
) -> None:
    members: tuple[GroupMember, ...] = ()
    for number, event in enumerate(history):
        members = after(event, members, number, alike=alike)
    problem = group(*members, homogeneous=alike, **dict(zip("ABCD", sizes, strict=True)))
    assignment = assign_group_range(problem)
    assert_valid(problem, assignment)
    for topic in TOPICS:
        ranges = [assignment[each.id].get(topic, ()) for each in members if topic in each.topics]
        assert all(mine == tuple(range(mine[0], mine[-1] + 1)) for mine in ranges if mine)
        assert max(map(len, ranges), default=0) - min(map(len, ranges), default=0) <= 1
    assert assign_group_range(holding(problem, assignment)) == assignment


@given(history=EVENTS, sizes=SIZES)
@examples(200)
def test_uniform_moves_no_more_than_quotas_ask_for(history: list[Event], sizes: tuple[int, ...]) -> None:
    """With equal subscriptions a member gives up only what is above its quota, so nothing moves between two others."""
    members: tuple[GroupMember, ...] = ()
    for number, event in enumerate(history):
        members = after(event, members, number, alike=True)
        problem = group(*members, homogeneous=True, **dict(zip("ABCD", sizes, strict=True)))
        assignment = assign_group_uniform(problem)
        for each in problem.members if assignment else ():
            held = {(t, p) for t, ps in each.assigned.items() if t in each.topics for p in ps}
            now = {(t, p) for t, ps in assignment[each.id].items() for p in ps}
            assert held <= now or now <= held, f"{each.id} was given one thing for another"
        members = holding(problem, assignment).members


@given(history=EVENTS, sizes=SIZES, alike=st.booleans(), random=st.randoms(use_true_random=False))
@examples(200)
def test_uniform_leaves_alone_what_is_valid_and_even(
    history: list[Event], sizes: tuple[int, ...], alike: bool, random: Random
) -> None:
    """Never worse than doing nothing: any assignment with these loads stays, whichever partitions make them up."""
    members: tuple[GroupMember, ...] = ()
    for number, event in enumerate(history):
        members = after(event, members, number, alike=alike)
    problem = group(*members, homogeneous=alike, **dict(zip("ABCD", sizes, strict=True)))
    assignment = {name: dict(mine) for name, mine in assign_group_uniform(problem).items()}
    for topic in TOPICS:
        pool = [partition for mine in assignment.values() for partition in mine.get(topic, ())]
        random.shuffle(pool)
        for mine in assignment.values():
            count = len(mine.get(topic, ()))
            if count:
                mine[topic] = tuple(sorted(pool[:count]))
                del pool[:count]
    assert assign_group_uniform(holding(problem, assignment)) == assignment

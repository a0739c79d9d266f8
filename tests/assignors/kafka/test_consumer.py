"""Kafka's client-side assignors: its recorded answers, KIP-881's promises, odd and bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assignors import (
    BadProblem,
    ClassicMember,
    ClassicProblem,
    GroupAssignment,
    TopicPartition,
    cooperative_sticky_assign,
    range_assign,
    roundrobin_assign,
    sticky_assign,
)
from assignors.cases.consumer import classic_problem
from assignors.cases.registry import AssignorCase
from assignors.kafka.consumer_problem import AssignorFailedError, leader_order
from assignors.kafka.numbered_group import numbered
from assignors.kafka.sticky_balance import PartitionBlock, StickyBalance
from assignors.kafka.sticky_claims import StickyClaims
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases

Assign = Callable[[ClassicProblem], GroupAssignment]
A, B, C, NOWHERE = (frozenset(rack) for rack in ("a", "b", "c", ""))
EVERYWHERE = A | B | C
EVERY_ASSIGNOR = [
    pytest.param(range_assign, id="range"),
    pytest.param(roundrobin_assign, id="round-robin"),
    pytest.param(sticky_assign, id="sticky"),
    pytest.param(cooperative_sticky_assign, id="cooperative-sticky"),
]
BOTH_STICKY = EVERY_ASSIGNOR[2:]


@pytest.mark.parametrize(
    "case",
    golden_cases("consumer.range", "consumer.roundrobin", "consumer.sticky", "consumer.cooperative_sticky"),
)
def test_kafka_recorded_this_answer(case: AssignorCase) -> None:
    assert_as_kafka(case)


# --- named situations -----------------------------------------------------------------------------------------


def member(name: str, rack: str | None = None, owned: str = "", topics: str = "t", **more: Any) -> ClassicMember:
    """``owned`` reads "t0 t1": topic t, partitions 0 and 1."""
    return ClassicMember(id=name, rack=rack, topics=tuple(topics.split()), owned=partitions(owned), **more)


def partitions(text: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each[0], int(each[1:])) for each in text.split())


def shown(result: GroupAssignment) -> dict[str, str]:
    return {name: " ".join(f"{t}{p}" for t, p in given) for name, given in result.assignment.items()}


def problem(*members: ClassicMember, **racks: tuple[frozenset[str], ...]) -> ClassicProblem:
    return ClassicProblem(members=members, racks=racks)


KIP_881 = [
    pytest.param(
        range_assign,
        problem(member("x", "a"), member("y", "b"), t=(B, A, B, A)),
        {"x": "t1 t3", "y": "t0 t2"},
        id="KIP-881: range gives members what is in their rack",
    ),
    pytest.param(
        sticky_assign,
        problem(member("x", "a"), member("y", "b"), t=(B, A, B, A)),
        {"x": "t1 t3", "y": "t0 t2"},
        id="KIP-881: sticky gives members what is in their rack",
    ),
    pytest.param(
        cooperative_sticky_assign,
        problem(member("x", "a"), member("y", "b"), t=(B, A, B, A)),
        {"x": "t1 t3", "y": "t0 t2"},
        id="KIP-881: cooperative-sticky gives members what is in their rack",
    ),
    pytest.param(
        roundrobin_assign,
        problem(member("x", "a"), member("y", "b"), t=(B, A, B, A)),
        {"x": "t0 t2", "y": "t1 t3"},
        id="KIP-881: round-robin is left as it is",
    ),
    pytest.param(
        cooperative_sticky_assign,
        problem(member("x", "a"), t=(B,)),
        {"x": "t0"},
        id="KIP-881: a single consumer gets the partition that has no replica in its rack",
    ),
    pytest.param(
        range_assign,
        problem(member("x", "a"), member("y", "b"), t=(A, A, A, B)),
        {"x": "t0 t1", "y": "t2 t3"},
        id="KIP-881: range puts balance before locality",
    ),
    pytest.param(
        cooperative_sticky_assign,
        problem(member("x", "a"), member("y", "b"), t=(A, A, A, B)),
        {"x": "t0 t1", "y": "t2 t3"},
        id="KIP-881: cooperative-sticky puts balance before locality",
    ),
    pytest.param(
        range_assign,
        problem(member("x", "c"), member("y", "b"), t=(EVERYWHERE, EVERYWHERE, EVERYWHERE)),
        {"x": "t0 t1", "y": "t2"},
        id="KIP-881: with replicas in every rack range is as before",
    ),
    pytest.param(
        range_assign,
        problem(member("x"), member("y"), t=(B, A, B, A)),
        {"x": "t0 t1", "y": "t2 t3"},
        id="KIP-881: consumers without rack are assigned as before",
    ),
    pytest.param(
        range_assign,
        problem(member("x", "a"), member("y", "b"), t=(NOWHERE, NOWHERE)),
        {"x": "t0", "y": "t1"},
        id="KIP-881: partitions without racks are assigned as before",
    ),
    pytest.param(
        range_assign,
        problem(member("x", ""), member("y", "b"), t=(B, A)),
        {"x": "t0", "y": "t1"},
        id="KIP-881: an empty rack is none, and a member without rack takes its turn first",
    ),
    pytest.param(
        cooperative_sticky_assign,
        problem(member("x", "a", "t0 t1"), member("y", "b", "t2 t3"), t=(B, A, A, B)),
        {"x": "t1", "y": "t3"},
        id="KIP-881: after a reassignment both members give up the partitions that are now in the other's rack",
    ),
    pytest.param(
        range_assign,
        problem(member("x", "a", topics="t u"), member("y", "b", topics="t u"), t=(B, A), u=(B, A)),
        {"x": "t1 u1", "y": "t0 u0"},
        id="KIP-881: co-partitioned topics follow racks together where both can",
    ),
    pytest.param(
        range_assign,
        problem(member("x", "a", topics="t u"), member("y", "b", topics="t u"), t=(B, A), u=(A, B)),
        {"x": "t0 u0", "y": "t1 u1"},
        id="KIP-881: co-partitioning comes before racks",
    ),
]


@pytest.mark.parametrize(("assign", "situation", "expected"), KIP_881)
def test_racks_are_followed_as_the_kip_says(
    assign: Assign, situation: ClassicProblem, expected: dict[str, str]
) -> None:
    assert shown(assign(situation)) == expected


def test_what_both_members_let_go_comes_in_the_next_rebalance() -> None:
    first = cooperative_sticky_assign(problem(member("x", "a", "t0 t1"), member("y", "b", "t2 t3"), t=(B, A, A, B)))
    assert first.transferring == {TopicPartition("t", 2): "x", TopicPartition("t", 0): "y"}
    second = problem(member("x", "a", "t1"), member("y", "b", "t3"), t=(B, A, A, B))
    assert shown(cooperative_sticky_assign(second)) == {"x": "t1 t2", "y": "t0 t3"}


@pytest.mark.parametrize("assign", EVERY_ASSIGNOR)
@pytest.mark.parametrize(
    ("members", "racks", "expected"),
    [
        pytest.param((), {"t": (A, B)}, {}, id="an empty group gets nothing"),
        pytest.param((member("x", topics=""),), {"t": (A,)}, {"x": ""}, id="a member without topics gets nothing"),
        pytest.param((member("x"), member("y")), {}, {"x": "", "y": ""}, id="an unknown topic is skipped"),
        pytest.param((member("x"),), {"t": ()}, {"x": ""}, id="a topic without partitions is skipped"),
        pytest.param(
            (member("x", topics="t gone"),), {"t": (A,), "u": (A,)}, {"x": "t0"},
            id="only topics that are asked for and known count",
        ),
        pytest.param((member("x"), member("y")), {"t": (A,)}, {"x": "t0", "y": ""}, id="more members than partitions"),
        pytest.param(
            (member("x", owned="u0 t0"),), {"t": (A, A)}, {"x": "t0 t1"}, id="a claim of a topic that is gone is void"
        ),
    ],
)  # fmt: skip
def test_odd_groups_get_an_answer(
    assign: Assign, members: tuple[ClassicMember, ...], racks: Any, expected: dict[str, str]
) -> None:
    assert shown(assign(ClassicProblem(members=members, racks=racks))) == expected


@pytest.mark.parametrize("assign", EVERY_ASSIGNOR)
@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        pytest.param((member("x"), member("x")), "two members have the id 'x'", id="an id twice"),
        pytest.param(
            (member("x", instance_id="i"), member("y", instance_id="i")),
            "two members have the instance id 'i'",
            id="an instance id twice",
        ),
        pytest.param(
            (member("x", generation=1 << 31),), "member x has generation 2147483648", id="a generation beyond 32 bit"
        ),
    ],
)
def test_what_no_group_can_be_is_refused_by_name(
    assign: Assign, members: tuple[ClassicMember, ...], sentence: str
) -> None:
    with pytest.raises(BadProblem, match=sentence):
        assign(ClassicProblem(members=members, racks={"t": (A, B)}))


TOPIC = {"name": "t", "partitions": 2, "replica_racks": [["a"], [None]]}
MEMBER = {"id": "x", "topics": ["t"]}


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        pytest.param({"members": []}, "topics is missing", id="no topics"),
        pytest.param({"topics": []}, "members is missing", id="no members"),
        pytest.param(
            {"topics": [TOPIC, TOPIC], "members": []}, "topics has 't' twice", id="a topic that is there twice"
        ),
        pytest.param(
            {"topics": [{**TOPIC, "partitions": 3}], "members": []},
            r"topics\[0\].replica_racks has 2 entries; the topic has 3 partitions",
            id="racks of fewer partitions than there are",
        ),
        pytest.param(
            {"topics": [{**TOPIC, "partitions": -1}], "members": []},
            r"topics\[0\].partitions is -1; it must lie between 0 and",
            id="a negative number of partitions",
        ),
        pytest.param(
            {"topics": [{"name": "t", "partitions": 2**31 - 1}], "members": []},
            r"topics\[0\].partitions is 2147483647; it must lie between",
            id="more partitions than there is room for",
        ),
        pytest.param(
            {"topics": [{**TOPIC, "replica_racks": [["a"], [7]]}], "members": []},
            r"topics\[0\].replica_racks\[1\]\[0\] is 7; it must be text",
            id="a rack that is a number",
        ),
        pytest.param(
            {"topics": [TOPIC], "members": [{**MEMBER, "generation": "4"}]},
            r"members\[0\].generation is '4'; it must be a whole number",
            id="a generation that is text",
        ),
        pytest.param(
            {"topics": [TOPIC], "members": [{**MEMBER, "owned": {"t": [True]}}]},
            r"members\[0\].owned.t\[0\] is true; it must be a whole number",
            id="a partition that is true",
        ),
        pytest.param(
            {"topics": [TOPIC], "members": [MEMBER], "prefer_rack_aware_logic": 1},
            "prefer_rack_aware_logic is 1; it must be true or false",
            id="a switch that is a number",
        ),
    ],
)
def test_a_case_that_is_none_is_refused_by_its_field(case: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        classic_problem(case)


@pytest.mark.parametrize("assign", BOTH_STICKY)
@pytest.mark.parametrize("number", [2, -1, 2**31 - 1])
def test_a_claim_beyond_the_partitions_of_its_topic_is_refused_by_name(assign: Assign, number: int) -> None:
    claim = (TopicPartition("t", 0), TopicPartition("t", number))
    with pytest.raises(BadProblem, match=f"member x claims partition {number} of topic t, which has 2"):
        assign(problem(ClassicMember(id="x", topics=("t",), owned=claim), t=(A, B)))


CLAIMED_TWICE = [
    pytest.param(
        (member("x", None, "t0 t1", generation=3, subscription_generation=3),
         member("y", None, "t1 t2", generation=3, subscription_generation=3)),
        {"x": "t0 t1", "y": "t2 t3"},
        "y (generation 3) and x (generation 3) both claim t-1: neither keeps it",
        id="in one generation neither keeps it",
    ),
    pytest.param(
        (member("x", None, "t0 t1", generation=3, subscription_generation=3),
         member("y", None, "t1 t2", generation=4, subscription_generation=4)),
        {"x": "t0 t3", "y": "t1 t2"},
        "y (generation 4) and x (generation 3) both claim t-1: the higher generation keeps it",
        id="the later one with the newer generation keeps it",
    ),
    pytest.param(
        (member("x", None, "t0 t1", generation=3, subscription_generation=3),
         member("y", None, "t1 t2", generation=2, subscription_generation=2)),
        {"x": "t0 t1", "y": "t2 t3"},
        "y (generation 2) and x (generation 3) both claim t-1: the higher generation keeps it",
        id="the earlier one with the newer generation keeps it",
    ),
    pytest.param(
        (member("x", None, "t0 t1", generation=3),
         member("y", None, "t1 t2", generation=3)),
        {"x": "t0 t3", "y": "t1 t2"},
        "y (generation 3) and x (generation -1) both claim t-1: the higher generation keeps it",
        id="a subscription without generation counts as older than the same one in user data",
    ),
]  # fmt: skip


@pytest.mark.parametrize("assign", BOTH_STICKY)
@pytest.mark.parametrize(("members", "expected", "sentence"), CLAIMED_TWICE)
def test_a_partition_claimed_twice(
    assign: Assign, members: tuple[ClassicMember, ...], expected: dict[str, str], sentence: str
) -> None:
    result = assign(problem(*members, t=(NOWHERE,) * 4))
    transferring = {name: f"{t}{p}" for (t, p), name in (result.transferring or {}).items()}
    held_back = transferring if assign is cooperative_sticky_assign else {}
    assert shown(result) == {
        name: " ".join(each for each in given.split() if held_back.get(name) != each)
        for name, given in expected.items()
    }
    assert result.warnings == (sentence,)


def test_a_hundred_quarrels_are_told_in_a_few_sentences() -> None:
    members = [member(f"m{n:02}", None, "t0 t1 t2", generation=1, subscription_generation=1) for n in range(50)]
    warnings = sticky_assign(problem(*members, t=(NOWHERE,) * 3)).warnings
    assert len(warnings) == 21
    assert warnings[0] == "m01 (generation 1) and m00 (generation 1) both claim t-0 and 2 more: neither keeps it"
    assert warnings[-1] == "29 more pairs of members claim the same partitions"


def test_kafka_gives_partitions_to_one_that_subscribes_to_nothing_and_comes_first() -> None:
    result = sticky_assign(problem(member("x", topics=""), member("y"), t=(NOWHERE,) * 2))
    assert shown(result) == {"x": "t0", "y": "t1"}
    assert result.warnings == (
        "x subscribes to no topic, yet Kafka gives it partitions because the first members subscribe to none either",
    )
    assert shown(sticky_assign(problem(member("y"), member("x", topics=""), t=(NOWHERE,) * 2))) == {
        "y": "t0 t1",
        "x": "",
    }


def test_kafka_fails_on_an_old_claim_of_one_that_left_its_topics() -> None:
    members = (
        member("x", None, "t0 t1 t2 t3", generation=5, subscription_generation=5),
        member("y", None, "", generation=5, subscription_generation=5),
        member("z", None, "t0", topics="u", generation=1, subscription_generation=1),
    )
    with pytest.raises(AssignorFailedError, match=r"z claims t-0 with an old generation .* NullPointerException"):
        sticky_assign(problem(*members, t=(NOWHERE,) * 4, u=()))


def test_a_circle_of_moves_is_noticed() -> None:
    """No rebalance is known that leads there, so the state before the circle is set by hand.

    3 holds t0, which was 2's, and has far too much; 1 has two more than 2. t1 goes from 1 to 2; then t0 shall go from
    3 to 1, but t1 goes back there instead; and so on.
    """
    group = numbered(
        ClassicProblem(members=tuple(member(name, topics=topics) for name, topics in
                                     (("1", "t u"), ("2", "t"), ("3", "t v"))),
                       racks={"t": (NOWHERE,) * 2, "u": (NOWHERE,), "v": (NOWHERE,) * 4}),
        (None, None, None),
    )  # fmt: skip
    one, two, three = range(3)
    owner = [three, one, one, three, three, three, three]
    everything = [
        PartitionBlock(1, (one,), range(2, 3)),
        PartitionBlock(2, (three,), range(3, 7)),
        PartitionBlock(0, (one, two, three), (1, 0)),
    ]
    balance = StickyBalance(group, StickyClaims([[], [], []], frozenset(), -1, ()), everything, owner, [2, 0, 5])
    balance._moves.record(0, 0, two, three)
    with pytest.raises(AssignorFailedError, match="back and forth without end"):
        balance.even_out(everything)


def test_the_leader_visits_members_in_the_order_of_a_hash_map() -> None:
    names = ("consumer-1", "consumer-2", "consumer-3", "zebra", "ant")
    assert [each.id for each in leader_order(map(member, names))] == [
        "zebra", "ant", "consumer-3", "consumer-2", "consumer-1",
    ]  # fmt: skip

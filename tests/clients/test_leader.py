"""What a Python leader answers, from what its client hands over."""

from __future__ import annotations

from random import Random

import pytest

from assignors.clients.leader import JoinedMember, assign, rack_sets
from assignors.clients.user_data import RackwiseUserData, user_data
from assignors.problem import TopicPartition
from tests.decode.generate import mutated

A, B, C = (frozenset(rack) for rack in "abc")
T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))


def member(
    name: str,
    *,
    rack: str | None = None,
    owned: tuple[TopicPartition, ...] | None = (),
    generation: int | None = None,
    data: bytes = b"",
    instance_id: str | None = None,
    topics: tuple[str, ...] = ("t",),
) -> JoinedMember:
    return JoinedMember(
        id=name,
        topics=topics,
        rack=rack,
        owned=owned,
        generation=generation,
        user_data=data,
        instance_id=instance_id,
    )


def noted(name: str, protocol: str, told: RackwiseUserData) -> JoinedMember:
    """A member of which the leader's client sees the user data only."""
    return JoinedMember(id=name, topics=("t",), user_data=user_data(protocol, told))


def sticky(*owned: TopicPartition, generation: int | None = None, rack: str | None = None) -> bytes:
    return user_data("sticky", RackwiseUserData(owned=owned, generation=generation, rack=rack))


ANSWERS = [
    pytest.param(
        "range",
        [member("m1", rack="b"), member("m2", rack="a")],
        (A, B),
        {"m1": (T1,), "m2": (T0,)},
        id="range follows racks in the subscription",
    ),
    pytest.param(
        "range",
        [noted("m1", "range", RackwiseUserData(rack="b")), noted("m2", "range", RackwiseUserData(rack="a"))],
        (A, B),
        {"m1": (T1,), "m2": (T0,)},
        id="range follows racks in the user data where the leader's client drops the field",
    ),
    pytest.param(
        "range",
        [member("m1", data=b"\0\0\0\7garbage"), member("m2", rack="a")],
        (A, B),
        {"m1": (T0,), "m2": (T1,)},
        id="range: a member whose user data is another's has no rack, and fits everywhere as in Kafka",
    ),
    pytest.param(
        "range",
        [noted("m1", "range", RackwiseUserData()), noted("m2", "range", RackwiseUserData(instance_id="i"))],
        (A, A),
        {"m1": (T1,), "m2": (T0,)},
        id="range puts static members first, by a note as well",
    ),
    pytest.param(
        "range",
        [noted(name, "range", RackwiseUserData(instance_id="i")) for name in ("m1", "m2")],
        (A, A),
        {"m1": (T0,), "m2": (T1,)},
        id="range: an instance id that two notes claim counts once",
    ),
    pytest.param(
        "sticky",
        [member("m1", data=sticky(T1, generation=3)), member("m2", data=sticky(T0, generation=3))],
        (A, A),
        {"m1": (T1,), "m2": (T0,)},
        id="sticky keeps what the user data says",
    ),
    pytest.param(
        "sticky",
        [member("m1", data=sticky(T0, rack="b")), member("m2", data=sticky(T1, rack="a"))],
        (A, B),
        {"m1": (T1,), "m2": (T0,)},
        id="sticky puts locality before stickiness, as Kafka does",
    ),
    pytest.param(
        "sticky",
        [member("m1", data=b"\0\0\0\2\0\2in"), member("m2", data=sticky(T0))],
        (A, A),
        {"m1": (T1,), "m2": (T0,)},
        id="sticky: broken user data is no history",
    ),
    pytest.param(
        "sticky",
        [member("m1", data=sticky(TopicPartition("t", 9), TopicPartition("gone", 0), T1)), member("m2")],
        (A, A),
        {"m1": (T1,), "m2": (T0,)},
        id="sticky: partitions that are gone are no member's history",
    ),
    pytest.param(
        "cooperative-sticky",
        [member("m1", owned=(T0, T1), generation=3), member("m2", generation=3)],
        (A, A),
        {"m1": (T0,), "m2": ()},
        id="cooperative-sticky holds back what another member has to revoke first",
    ),
    pytest.param(
        "cooperative-sticky",
        [member("m1", owned=(T0,), generation=4), member("m2", generation=4)],
        (A, A),
        {"m1": (T0,), "m2": (T1,)},
        id="cooperative-sticky gives it in the rebalance that follows",
    ),
    pytest.param(
        "cooperative-sticky",
        [member("m1", rack="b", owned=(T0,), generation=3), member("m2", rack="a", owned=(T1,), generation=3)],
        (A, B),
        {"m1": (), "m2": ()},
        id="cooperative-sticky: a swap for locality begins with a revocation",
    ),
    pytest.param(
        "optimal",
        [member("m1", rack="b"), member("m2", rack="a")],
        (A, B),
        {"m1": (T1,), "m2": (T0,)},
        id="optimal by the fields of the subscription",
    ),
    pytest.param(
        "optimal",
        [noted("m1", "optimal", RackwiseUserData(rack="b")), noted("m2", "optimal", RackwiseUserData(rack="a"))],
        (A, B),
        {"m1": (T1,), "m2": (T0,)},
        id="optimal by the notes alone",
    ),
    pytest.param(
        "optimal",
        [
            noted("m1", "optimal", RackwiseUserData(owned=(T0, T1), generation=3, held=True)),
            noted("m2", "optimal", RackwiseUserData()),
        ],
        (A, A),
        {"m1": (T1,), "m2": ()},
        id="optimal holds back what a member still holds, by its note",
    ),
    pytest.param(
        "optimal",
        [
            noted("m1", "optimal", RackwiseUserData(owned=(T0, T1), generation=3)),
            noted("m2", "optimal", RackwiseUserData()),
        ],
        (A, A),
        {"m1": (T1,), "m2": (T0,)},
        id="optimal gives at once what an eager member has revoked",
    ),
    pytest.param(
        "optimal",
        [
            member("m1", data=user_data("optimal", RackwiseUserData(owned=(T0, T1), generation=3, held=True))),
            member("m2"),
        ],
        (A, A),
        {"m1": (T1,), "m2": (T0,)},
        id="optimal gives at once what a note still names and the subscription's field no more",
    ),
    pytest.param(
        "optimal",
        [member("m1", owned=(T0, T1), generation=3, data=b"other"), member("m2", generation=3)],
        (A, A),
        {"m1": (T1,), "m2": ()},
        id="optimal holds back by the subscription's field when there is no note",
    ),
    pytest.param(
        "optimal",
        [member("m1", owned=(T0, T1), generation=2), member("m2", owned=(T1,), generation=3)],
        (A, A),
        {"m1": (T0,), "m2": (T1,)},
        id="optimal: an older claim to hold something does not count beside a newer one",
    ),
    pytest.param(
        "optimal",
        [member("m1", owned=(T0, T1), generation=3), member("m2", owned=(T1,), generation=3)],
        (A, A),
        {"m1": (T0,), "m2": ()},
        id="optimal: what two members claim to hold has no owner until both have revoked it",
    ),
    pytest.param(
        "optimal", [member("m1"), member("m2", topics=())], (A, A), {"m1": (T0, T1), "m2": ()}, id="no topics"
    ),
]


@pytest.mark.parametrize(("protocol", "members", "racks", "expected"), ANSWERS)
def test_answer(
    protocol: str,
    members: list[JoinedMember],
    racks: tuple[frozenset[str], ...],
    expected: dict[str, tuple[TopicPartition, ...]],
) -> None:
    assert dict(assign(protocol, members, {"t": racks}).assignment) == expected


@pytest.mark.parametrize("protocol", ["range", "sticky", "cooperative-sticky", "optimal"])
def test_a_topic_that_the_leaders_metadata_lacks_waits_for_the_next_rebalance(protocol: str) -> None:
    members = [member("m1", topics=("new", "t")), member("m2", topics=("new",))]
    led = assign(protocol, members, {"t": (A, B)})
    assert dict(led.assignment) == {"m1": (T0, T1), "m2": ()}


@pytest.mark.parametrize("protocol", ["range", "sticky", "cooperative-sticky", "optimal"])
def test_without_any_metadata_everybody_gets_nothing(protocol: str) -> None:
    led = assign(protocol, [member("m1", rack="a", owned=(T0,), generation=5)], {})
    assert dict(led.assignment) == {"m1": ()}


def test_the_highest_generation_is_never_forgotten() -> None:
    seen = assign("sticky", [member("m1", data=sticky(T0, generation=9))], {"t": (A,)}).max_generation
    assert seen == 9
    assert assign("sticky", [member("m1", data=sticky(T0, generation=3))], {"t": (A,)}, seen).max_generation == 9


def test_where_kafkas_leader_throws_the_group_still_gets_its_partitions() -> None:
    """m1 missed a rebalance and has since left the topic that it claims to hold."""
    u0 = TopicPartition("u", 0)
    members = [
        member("m1", topics=("u",), owned=(T0,), generation=1),
        member("m2", topics=("t",), owned=(u0,), generation=2),
        member("m3", topics=("t",), owned=(T0, T1), generation=2),
    ]
    led = assign("cooperative-sticky", members, {"t": (A, A), "u": (A,)})
    assert [warning for warning in led.warnings if "the optimum is used" in warning and "Kafka throws" in warning]
    # Nothing that another member holds is given away; the rest comes when they have revoked it.
    assert dict(led.assignment) == {"m1": (), "m2": (), "m3": (T0,)}
    members = [member("m1", topics=("u",)), member("m2"), member("m3", owned=(T0,), generation=3)]
    led = assign("cooperative-sticky", members, {"t": (A, A), "u": (A,)}, led.max_generation)
    assert dict(led.assignment) == {"m1": (u0,), "m2": (T1,), "m3": (T0,)}


@pytest.mark.parametrize("protocol", ["range", "sticky", "cooperative-sticky", "optimal"])
def test_whatever_members_send_every_partition_has_at_most_one_reader(protocol: str) -> None:
    r = Random(protocol)
    racks = {"t": (A | B, B | C, C | A, A), "u": (C, A | B)}
    whole = [
        user_data(
            name,
            RackwiseUserData(
                rack="a", instance_id="i", owned=(T0, T3, TopicPartition("u", 1)), generation=2, held=True
            ),
        )
        for name in ("range", "sticky", "optimal")
    ]
    for _ in range(500):
        members = [
            member(
                f"m{number}",
                topics=r.choice((("t",), ("u",), ("t", "u"), ("gone",), ())),
                rack=r.choice(("a", "b", "z", None)),
                owned=tuple(TopicPartition(r.choice("tuv"), r.randrange(-1, 6)) for _ in range(r.randrange(4))),
                generation=r.choice((None, 0, 3, 2**31 - 1)),
                data=r.choice((b"", r.randbytes(r.randrange(30)), mutated(r, r.choice(whole)))),
                instance_id=r.choice((None, f"i{number}")),
            )
            for number in range(r.randrange(1, 6))
        ]
        given = assign(protocol, members, racks).assignment
        assert given.keys() == {each.id for each in members}
        read = [partition for its in given.values() for partition in its]
        assert len(read) == len(set(read))
        assert set(read) <= {
            TopicPartition(topic, number) for topic, sets in racks.items() for number in range(len(sets))
        }


def test_racks_of_replicas_as_far_as_they_are_known() -> None:
    placed = {T0: (1, 2), T1: (2, 9), T2: ()}
    racks = rack_sets(
        ["t", "new", "empty"], {"t": {0, 1, 2}, "empty": set()}.get, lambda each: placed[each], {1: "a", 2: "b", 3: "c"}
    )
    assert racks == {"t": (A | B, B, frozenset())}

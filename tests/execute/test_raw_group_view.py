"""A description of a group, as the trigger reads it."""

from __future__ import annotations

import pytest

from agent.decode.values import Subscription
from agent.execute.probe_bytes import encode_subscription
from agent.execute.trigger_judgement import raw_group_view
from agent.values.observation import RawClassicGroup, RawMember
from agent.values.snapshot import GroupKind


def described(protocol: str, *members: tuple[int | None, bytes | None], state: str = "Stable") -> RawClassicGroup:
    """A group of consumers, each with the generation of its subscription and its user data."""
    rows = tuple(
        RawMember(
            f"m{at}", None, f"c{at}", "/h",
            encode_subscription(Subscription(1 if told is None else 3, ("t",), data, (), told, None)), b"",
        )
        for at, (told, data) in enumerate(members)
    )  # fmt: skip
    return RawClassicGroup("g", state, "consumer", protocol, rows, None)


GENERATION_7 = b"\0\0\0\7"


@pytest.mark.parametrize(
    ("group", "generations", "unreadable"),
    [
        pytest.param(described("cooperative-sticky", (None, GENERATION_7)), {7}, 0, id="in the assignor's data alone"),
        pytest.param(described("cooperative-sticky", (9, GENERATION_7)), {9}, 0, id="in both: the client's counts"),
        pytest.param(described("cooperative-sticky", (None, None)), set(), 0, id="a newcomer"),
        pytest.param(described("cooperative-sticky", (9, b"\xff")), {9}, 1, id="data that is too short"),
        pytest.param(described("mine", (9, b"\xff")), {9}, 0, id="data of an assignor that is not Kafka's"),
        pytest.param(described("cooperative-sticky", (9, b""), state="Empty"), set(), 0, id="a group that is empty"),
    ],
)
def test_the_generation_of_a_member_is_the_clients_or_else_the_assignors(
    group: RawClassicGroup, generations: set[int], unreadable: int
) -> None:
    seen = raw_group_view(group)
    assert (set(seen.generations), len(seen.unreadable)) == (generations, unreadable)
    assert seen.kind is GroupKind.CLASSIC_CONSUMER


def test_a_group_of_another_kind_shows_nothing_of_its_members() -> None:
    other = raw_group_view(described("x", (9, None))._replace(protocol_type="connect"))
    assert other.kind is GroupKind.OTHER


def test_a_streams_member_whose_data_cannot_be_read_still_has_a_generation() -> None:
    seen = raw_group_view(described("stream", (9, b"x"), (9, None)))
    assert (seen.kind, seen.generations) == (GroupKind.CLASSIC_STREAMS, {9})
    assert [text.partition(":")[0] for text in seen.unreadable] == ["c0", "c1"]

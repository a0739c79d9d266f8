"""Probe bytes: Kafka's own parsers read every one of them, and find nothing in it that could do harm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from agent.decode.values import StickyUserData, StreamsSubscription, Subscription
from agent.execute.probe_bytes import (
    ProbeRefusal,
    encode_sticky,
    encode_subscription,
    encode_subscription_info,
    probe_bytes,
)
from agent.values.observation import RawClassicGroup, RawMember
from tests.decode import generate
from tests.decode.oracle import Oracle, kafka_oracle

QUICK, ALL = 500, 10_000
PROTOCOLS = ("stream", "stream", "cooperative-sticky", "cooperative-sticky", "sticky", "range", "roundrobin")


@dataclass(frozen=True)
class Made:
    """A member as it was made, and the probe that was cloned from it."""

    protocol: str
    subscription: Subscription
    data: object
    probe: bytes


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with kafka_oracle(tmp_path_factory.mktemp("oracle")) as started:
        yield started


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(QUICK, id="five hundred probes"),
        pytest.param(ALL, id="ten thousand probes", marks=pytest.mark.drill),
    ],
)
def test_kafka_reads_every_probe_and_finds_no_history_in_it(oracle: Oracle, count: int) -> None:
    made = list(probes(count, seed=count))
    answers = oracle.read(("subscription", one.probe) for one in made)
    for one, answer in zip(made, answers, strict=True):
        assert "error" not in answer, (one, answer)
        assert sorted(answer["topics"]) == sorted(one.subscription.topics), one
        assert answer["owned"] == [], one
        assert answer["generation"] in (None, -1), one
        assert answer["rack"] == one.subscription.rack, one
    inside = [(one, bytes.fromhex(answer["user_data"])) for one, answer in zip(made, answers, strict=True)
              if answer["user_data"] is not None]  # fmt: skip
    layouts = {"stream": "subscription-info", "cooperative-sticky": "cooperative-sticky", "sticky": "sticky"}
    told = oracle.read((layouts[one.protocol], data) for one, data in inside)
    assert {one.protocol for one, _ in inside} == set(layouts)
    for (one, _), answer in zip(inside, told, strict=True):
        assert "error" not in answer, (one, answer)
        if one.protocol == "stream":
            assert_no_history_of_tasks(one, answer)
        else:
            assert answer["owned"] == [], one
            assert answer["generation"] in (None, -1, 0), one  # librdkafka's layout: Kafka reads its count, 0


def assert_no_history_of_tasks(one: Made, answer: dict[str, object]) -> None:
    was = one.data
    assert isinstance(was, StreamsSubscription)
    assert answer["process_id"] == was.process_id
    assert answer["version"] == was.version
    assert (answer["prev_tasks"], answer["standby_tasks"], answer["offset_sums"]) == ([], [], {}), one
    assert answer["error_code"] == 0, "an error would shut the application down"
    assert answer["endpoint"] == was.endpoint
    if was.version >= 11:
        assert answer["client_tags"] == [list(tag) for tag in was.client_tags or ()]


def probes(count: int, seed: int) -> Iterator[Made]:
    """Of members as Kafka's clients send them, in every version."""
    r = Random(seed)
    made = 0
    while made < count:
        protocol = r.choice(PROTOCOLS)
        data, user_data = a_user_data(r, protocol)
        told = generate.subscription(r)
        if not told.topics:
            continue
        told = told._replace(user_data=user_data)
        group = a_group(protocol, encode_subscription(told))
        probe = probe_bytes(group)
        assert isinstance(probe, bytes), (told, probe)
        made += 1
        yield Made(protocol, told, data, probe)


def a_user_data(r: Random, protocol: str) -> tuple[object, bytes | None]:
    match protocol:
        case "stream":
            data = generate.streams_subscription(r)
            while not isinstance(data, StreamsSubscription):
                data = generate.streams_subscription(r)
            return data, encode_subscription_info(data)
        case "cooperative-sticky":
            sticky = r.choice((None, generate.cooperative_sticky(r)))
            return sticky, None if sticky is None else encode_sticky(sticky)
        case "sticky":
            sticky = r.choice((None, generate.sticky(r)))
            return sticky, None if sticky is None else encode_sticky(sticky)
    return None, r.choice((None, b"", b"left over"))


def a_group(protocol: str, *metadata: bytes, protocol_type: str = "consumer") -> RawClassicGroup:
    members = tuple(RawMember(f"m{at}", None, f"c{at}", "/h", data, b"") for at, data in enumerate(metadata))
    return RawClassicGroup("g", "Stable", protocol_type, protocol, members, None)


GOOD = encode_subscription(Subscription(3, ("orders",), encode_sticky(StickyUserData(None, 7)), (), 7, "a"))
NO_TOPICS = encode_subscription(Subscription(3, (), None, (), 7, "a"))
TOO_NEW = encode_subscription(Subscription(3, ("orders",), b"\0\0\0\x0c\0\0\0\x0c", (), 7, "a"))
GARBAGE = encode_subscription(Subscription(3, ("orders",), b"\xff" * 9, (), 7, "a"))


@pytest.mark.parametrize(
    ("group", "says"),
    [
        pytest.param(a_group("cooperative-sticky"), "no members", id="the group has no members"),
        pytest.param(a_group("cooperative-sticky", b"\xff"), "cannot be read", id="the only member is broken"),
        pytest.param(a_group("cooperative-sticky", NO_TOPICS), "no topic", id="the only member subscribes to nothing"),
        pytest.param(a_group("cooperative-sticky", GOOD, protocol_type="connect"), "connect", id="Connect workers"),
        pytest.param(a_group("stream", TOO_NEW), "too new", id="Streams metadata of a version that is not known"),
        pytest.param(a_group("stream", GARBAGE), "cannot be read", id="Streams metadata that is none"),
        pytest.param(a_group("stream", NO_TOPICS), "no topic", id="a Streams member without topics"),
        pytest.param(a_group("mine", GOOD), "is not one of Kafka's", id="an assignor that is not known"),
        pytest.param(a_group("", GOOD), "is not one of Kafka's", id="a group that shows no assignor"),
    ],
)  # fmt: skip
def test_what_cannot_be_cloned_faithfully_makes_no_probe(group: RawClassicGroup, says: str) -> None:
    answer = probe_bytes(group)
    assert isinstance(answer, ProbeRefusal)
    assert says in answer.sentence


def test_the_first_member_that_can_be_cloned_is() -> None:
    assert probe_bytes(a_group("cooperative-sticky", b"\xff", NO_TOPICS, GOOD)) == encode_subscription(
        Subscription(3, ("orders",), encode_sticky(StickyUserData(None, None)), (), None, "a")
    )

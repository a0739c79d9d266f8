"""User data of members for their leader: byte for byte, round trips, and foreign bytes."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.clients.user_data import NOTHING, RackwiseUserData, read_user_data, subscription, user_data
from assignors.problem import TopicPartition
from tests.decode.generate import mutated

IN_1 = TopicPartition("in", 1)
IN_2 = TopicPartition("in", 2)
OUT_0 = TopicPartition("out", 0)
FULL = RackwiseUserData(rack="r1", instance_id="i", owned=(IN_1, IN_2, OUT_0), generation=4, held=True)
PROTOCOLS = ("range", "sticky", "cooperative-sticky", "optimal")

OWNED = "00000002 0002696e 00000002 00000001 00000002 00036f7574 00000001 00000000"
NONE_OWNED = "00000000"
NOTE = "fa52434b 01"

USER_DATA = [
    pytest.param(
        "range",
        FULL,
        f"{NOTE} 00 ffffffff 00027231 000169 {NONE_OWNED}",
        RackwiseUserData(rack="r1", instance_id="i"),
        id="range repeats rack and instance id, and owns nothing because everything was revoked",
    ),
    pytest.param(
        "sticky",
        FULL,
        f"{OWNED} 00000004 {NOTE} 00 ffffffff 00027231 000169 {NONE_OWNED}",
        RackwiseUserData(rack="r1", instance_id="i", owned=FULL.owned, generation=4),
        id="sticky begins as Kafka's and ends with the note",
    ),
    pytest.param(
        "sticky",
        RackwiseUserData(),
        f"{NONE_OWNED} ffffffff {NOTE} 00 ffffffff ffff ffff {NONE_OWNED}",
        RackwiseUserData(),
        id="sticky before the first rebalance",
    ),
    pytest.param(
        "cooperative-sticky",
        FULL,
        "00000004",
        RackwiseUserData(generation=4),
        id="cooperative-sticky is the generation, as Kafka's",
    ),
    pytest.param(
        "optimal", FULL, f"{NOTE} 01 00000004 00027231 000169 {OWNED}", FULL, id="optimal says what is owned and held"
    ),
    pytest.param(
        "optimal",
        RackwiseUserData(rack="r1", owned=(IN_1,)),
        f"{NOTE} 00 ffffffff 00027231 ffff 00000001 0002696e 00000001 00000001",
        RackwiseUserData(rack="r1", owned=(IN_1,)),
        id="optimal of an eager member that does not know its generation",
    ),
]


@pytest.mark.parametrize(("protocol", "told", "hexadecimal", "read"), USER_DATA)
def test_user_data(protocol: str, told: RackwiseUserData, hexadecimal: str, read: RackwiseUserData) -> None:
    assert user_data(protocol, told) == bytes.fromhex(hexadecimal)
    assert read_user_data(protocol, bytes.fromhex(hexadecimal)) == read


FOREIGN = [
    pytest.param("range", "", NOTHING, id="range without user data, as other clients send it"),
    pytest.param("range", "00000004", NOTHING, id="user data that is no note"),
    pytest.param("optimal", "fa52434b", NOTHING, id="a note that ends after its magic number"),
    pytest.param("optimal", f"{NOTE} 01 00000004 00027231 ffff 7fffffff", NOTHING, id="more topics than bytes"),
    pytest.param(
        "optimal",
        f"{NOTE} 01 00000004 00027231 ffff 00000001 0002696e 7fffffff",
        NOTHING,
        id="more partitions than bytes",
    ),
    pytest.param("optimal", f"{NOTE} 01 00000004 7fff 61", NOTHING, id="a rack longer than the bytes"),
    pytest.param("optimal", f"{NOTE} 01 00000004 0001ff ffff {NONE_OWNED}", NOTHING, id="a rack that is no text"),
    pytest.param("optimal", f"fa52434b 00 01 00000004 00027231 ffff {OWNED}", NOTHING, id="a version that never was"),
    pytest.param(
        "optimal",
        f"fa52434b 05 03 00000004 00027231 000169 {OWNED} deadbeef",
        FULL,
        id="a newer note is read as far as it is known",
    ),
    pytest.param(
        "optimal",
        f"{NOTE} 00 00000004 0000 ffff {NONE_OWNED}",
        RackwiseUserData(generation=4),
        id="an empty rack is none",
    ),
    pytest.param(
        "sticky", OWNED, RackwiseUserData(owned=FULL.owned), id="sticky of Kafka's first version knows no generation"
    ),
    pytest.param(
        "sticky", f"{OWNED} 00000004", RackwiseUserData(owned=FULL.owned, generation=4), id="sticky as Java sends it"
    ),
    pytest.param(
        "sticky",
        f"{OWNED} ffffffff",
        RackwiseUserData(owned=FULL.owned),
        id="sticky as aiokafka's own assignor sends it",
    ),
    pytest.param(
        "sticky",
        f"{OWNED} 00000004 beef",
        RackwiseUserData(owned=FULL.owned, generation=4),
        id="sticky with something else behind it",
    ),
    pytest.param("sticky", "00000002 0002696e", NOTHING, id="sticky cut short"),
    pytest.param("sticky", "00000001 ffff 00000001 00000001", NOTHING, id="sticky with a topic that is null"),
    pytest.param(
        "cooperative-sticky", f"{OWNED} 00000004", RackwiseUserData(generation=4), id="cooperative-sticky of librdkafka"
    ),
    pytest.param("cooperative-sticky", "0000", NOTHING, id="half a generation"),
]


@pytest.mark.parametrize(("protocol", "hexadecimal", "read"), FOREIGN)
def test_foreign_user_data(protocol: str, hexadecimal: str, read: RackwiseUserData) -> None:
    assert read_user_data(protocol, bytes.fromhex(hexadecimal)) == read


SUBSCRIPTIONS = [
    pytest.param(
        ("in",),
        RackwiseUserData(rack="r1", owned=(IN_1,), generation=4, held=True),
        b"\7",
        "0003 00000001 0002696e 00000001 07 00000001 0002696e 00000001 00000001 00000004 00027231",
        id="what is held, with user data, generation and rack",
    ),
    pytest.param(
        ("out", "in", "in"),
        RackwiseUserData(rack=None, owned=(IN_1,), generation=None),
        b"",
        "0003 00000002 0002696e 00036f7574 00000000 00000000 ffffffff ffff",
        id="topics in order and once; what was revoked is not owned; no generation, no rack",
    ),
]


@pytest.mark.parametrize(("topics", "told", "data", "hexadecimal"), SUBSCRIPTIONS)
def test_subscription(topics: tuple[str, ...], told: RackwiseUserData, data: bytes, hexadecimal: str) -> None:
    assert subscription(topics, told, data) == bytes.fromhex(hexadecimal)


NAMES = st.text(min_size=1, max_size=8)
TOLD = st.builds(
    RackwiseUserData,
    rack=st.none() | NAMES,
    instance_id=st.none() | st.text(max_size=8),
    owned=st.sets(st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1)), max_size=8).map(
        lambda owned: tuple(sorted(owned))
    ),
    generation=st.none() | st.integers(0, 2**31 - 1),
    held=st.booleans(),
)


@given(TOLD)
def test_what_is_told_under_optimal_is_read(told: RackwiseUserData) -> None:
    assert read_user_data("optimal", user_data("optimal", told)) == told


@given(TOLD)
def test_what_is_told_under_sticky_is_read_but_nothing_is_held(told: RackwiseUserData) -> None:
    read = read_user_data("sticky", user_data("sticky", told))
    assert (read.rack, read.instance_id, read.owned, read.generation) == (
        told.rack,
        told.instance_id,
        told.owned,
        told.generation,
    )
    assert not read.held


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bytes_of_anybody_never_raise_nor_grow(protocol: str) -> None:
    r = Random(protocol)
    whole = [user_data(name, FULL) for name in PROTOCOLS]
    tried = [r.randbytes(r.randrange(60)) for _ in range(2_000)]
    tried += [mutated(r, r.choice(whole)) for _ in range(8_000)]
    tracemalloc.start()
    read = [read_user_data(protocol, data) for data in tried]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
    assert NOTHING in read
    assert any(told != NOTHING for told in read)

"""Whatever a value is, its bytes give it back; whatever the bytes are, they give a value or `Undecodable`."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decode.decode_context import DecodeContext
from agent.decode.members import decode_subscription
from agent.decode.streams_user_data import decode_assignment_info
from agent.decode.values import (
    Assignment,
    HostPartitions,
    StickyUserData,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
    Undecodable,
    UndecodableReason,
    from_modified_utf8,
    from_utf16,
)
from agent.execute.probe_bytes import encode_subscription
from assignors.problem import TaskId, TopicPartition
from tests.decode.assignments import decode_assignment, encode_assignment, encode_assignment_info, to_modified_utf8
from tests.decode.generate import LAYOUTS, Layout, mutated

VALUES = {
    "subscription": (Subscription,),
    "assignment": (Assignment,),
    "sticky": (StickyUserData,),
    "cooperative-sticky": (StickyUserData,),
    "subscription-info": (StreamsSubscription, StreamsSubscriptionHeader),
    "assignment-info": (StreamsAssignment,),
}

repeatable = settings(max_examples=200, derandomize=True, deadline=None)
int32s = st.integers(-(2**31), 2**31 - 1)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
partitions = st.lists(st.builds(TopicPartition, texts, int32s), max_size=8).map(tuple)
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


@every_layout
@repeatable
@given(r=st.randoms(use_true_random=False))
def test_a_value_comes_back_from_its_bytes(layout: Layout, r: Random) -> None:
    value = layout.make(r)
    assert layout.decode(layout.encode(value)) == value


@repeatable
@given(
    st.builds(
        Subscription,
        st.just(3),
        st.lists(texts, max_size=8).map(tuple),
        st.none() | st.binary(max_size=20),
        partitions,
        st.none() | st.integers(0, 2**31 - 1),
        st.none() | texts.filter(bool),
    )
)
def test_any_text_and_number_fits_into_a_subscription(value: Subscription) -> None:
    assert decode_subscription(encode_subscription(value)) == value


@repeatable
@given(st.builds(Assignment, st.integers(0, 32767), partitions, st.none() | st.binary(max_size=20)))
def test_any_text_and_number_fits_into_an_assignment(value: Assignment) -> None:
    assert decode_assignment(encode_assignment(value)) == value


@every_layout
@repeatable
@given(r=st.randoms(use_true_random=False))
def test_broken_bytes_give_a_value_or_undecodable(layout: Layout, r: Random) -> None:
    data = mutated(r, layout.encode(layout.make(r)))
    told(layout, data)


@every_layout
@repeatable
@given(data=st.binary(max_size=200))
def test_any_bytes_give_a_value_or_undecodable(layout: Layout, data: bytes) -> None:
    told(layout, data)


@every_layout
def test_every_truncation_gives_a_value_or_undecodable(layout: Layout) -> None:
    r = Random(3)
    for _ in range(50):
        data = layout.encode(layout.make(r))
        for end in range(len(data)):
            told(layout, data[:end])


def told(layout: Layout, data: bytes) -> None:
    """One of the layout's values, whose parts are text that can be written, or a reason with its place."""
    value = layout.decode(data)
    if isinstance(value, Undecodable):
        assert 0 <= value.offset <= len(data)
        assert value.sentence
        assert isinstance(value.reason, UndecodableReason)
    else:
        assert isinstance(value, VALUES[layout.name])
        assert_writable(value)


def assert_writable(value: Any) -> None:
    match value:
        case str():
            value.encode()
        case tuple():
            for part in value:
                assert_writable(part)
        case dict():
            assert_writable(tuple(value.items()))
        case _:
            assert value is None or isinstance(value, int | bytes)


@every_layout
@repeatable
@given(r=st.randoms(use_true_random=False))
def test_what_was_read_before_changes_nothing(layout: Layout, r: Random) -> None:
    """Members share names and arrays; each is still read as if it were alone."""
    shared = DecodeContext()
    values = [layout.make(r) for _ in range(3)]
    blobs = [layout.encode(value) for value in values]
    blobs = [r.choice((blob, blob, mutated(r, blob), blob + r.choice(blobs))) for blob in blobs + blobs]
    for blob in blobs:
        assert layout.decode(blob, shared) == layout.decode(blob)


def test_bytes_that_end_behind_a_topic_read_before_are_told_alike() -> None:
    shared = DecodeContext()
    whole = encode_assignment(Assignment(3, (TopicPartition("t", 0),), None))
    assert isinstance(decode_assignment(whole, shared), Assignment)
    cut = whole[: 2 + 4 + 2 + len("t")]
    assert decode_assignment(cut, shared) == decode_assignment(cut)


def test_names_partitions_and_tasks_are_one_object_each() -> None:
    shared = DecodeContext()
    owned = (TopicPartition("orders", 300),)
    first = decode_subscription(encode_subscription(Subscription(3, ("orders",), None, owned, 1, "r1")), shared)
    second = decode_subscription(
        encode_subscription(Subscription(2, ("orders", "x"), None, owned * 2, 1, None)), shared
    )
    assert isinstance(first, Subscription)
    assert isinstance(second, Subscription)
    assert first.owned
    assert second.owned
    assert first.topics[0] is second.topics[0] is first.owned[0].topic
    assert first.owned[0] is second.owned[1]


@repeatable
@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_text_comes_back_from_modified_utf8(text: str) -> None:
    assert from_modified_utf8(to_modified_utf8(text), 0, "a name") == text
    assert from_utf16(text.encode("utf-16-be"), 0, "a name") == text


def test_modified_utf8_writes_what_java_writes() -> None:
    assert to_modified_utf8("a\0\u00e9\u20ac\U0001f600") == bytes.fromhex("61 c080 c3a9 e282ac eda0bd edb880")


def test_a_task_of_a_named_topology_comes_back_among_plain_ones() -> None:
    tasks = (TaskId(0, 1), TaskId("top__0", 1), TaskId(1, 2))
    hosts = (HostPartitions("h", 1, (TopicPartition("t", 0),)),)
    value = StreamsAssignment(11, 11, tasks, tuple((task, ()) for task in tasks), hosts, hosts, 0, None)
    assert decode_assignment_info(encode_assignment_info(value)) == value

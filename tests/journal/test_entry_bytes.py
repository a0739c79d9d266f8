"""Entries of the journal as bytes, and what is made of foreign ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import BadInput, WrongCluster
from agent.journal.entries import (
    MAX_VALUE_BYTES,
    MOST_EPOCH,
    VERSION,
    Entry,
    JournalWrite,
    NewerEntryError,
    UnreadableEntryError,
    applied,
    entry_of,
    key_bytes,
    key_of,
    numbered,
    rewritten,
    to_bytes,
)
from agent.journal.record_trust import LeaderEntry, check_cluster, leader_in, leader_write, newest_epoch
from agent.values.typed_json import LATEST_MS, LEAST_INT, MOST_INT

ENTRY = Entry("plan/p-1", "plan", {"state": "open", "moves": [1, 2]}, 1_000, 3, 7)
INTEGERS, FLOATS = st.integers(LEAST_INT, MOST_INT), st.floats(-1e18, 1e18).filter(lambda one: not 0 < abs(one) < 1e-99)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(to_bytes(ENTRY)), **fields}).encode()


@given(
    st.builds(
        Entry,
        key=st.text(),
        kind=st.text(),
        value=st.dictionaries(st.text(), JSON),
        at_ms=st.integers(0, LATEST_MS),
        epoch=st.integers(0, MOST_EPOCH),
        seq=st.integers(0, MOST_EPOCH),
    )
)
def test_an_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert entry_of(key_of(key_bytes(entry.key)), to_bytes(entry)) == entry


@given(st.binary(max_size=300))
def test_foreign_bytes_are_unreadable_and_nothing_else(data: bytes) -> None:
    with pytest.raises(UnreadableEntryError):
        entry_of("plan/x", data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(b"[" * 100_000, id="depth without end"),
        pytest.param(b'{"v":1' + b"9" * 10_000 + b"}", id="a number too long to be one"),
        pytest.param(changed(v=0), id="a version that never was"),
        pytest.param(changed(v="1"), id="a version that is text"),
        pytest.param(changed(epoch=-1), id="an epoch below zero"),
        pytest.param(changed(epoch=2**60), id="an epoch that leaves no room for the next"),
        pytest.param(changed(at_ms=10**400), id="a time of 400 digits"),
        pytest.param(changed(at_ms=2**60), id="a time that has no date"),
        pytest.param(changed(at_ms=-1), id="a time before all"),
        pytest.param(changed(value={"a": 2**70}), id="a number of more bits than a sum of offsets has"),
        pytest.param(changed(value={"a": 1e300}), id="a fraction beyond any measure"),
        pytest.param(b'{"v":1,"value":{"a":1e400}}', id="a number that reads as infinity"),
        pytest.param(changed(seq=True), id="a count that is a truth value"),
        pytest.param(changed(value=[1]), id="a value that is no object"),
        pytest.param(changed(kind=None), id="no kind"),
    ],
)
def test_what_is_no_entry_is_told_apart(data: bytes) -> None:
    with pytest.raises(UnreadableEntryError) as told:
        entry_of("plan/x", data)
    assert not isinstance(told.value, NewerEntryError)
    assert "plan/x" in str(told.value)


def test_an_entry_of_a_newer_rackwise_is_told_apart_from_damage() -> None:
    with pytest.raises(NewerEntryError, match=f"layout {VERSION + 1}"):
        entry_of("plan/x", changed(v=VERSION + 1, kind={"other": "shape"}))


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(changed(v=VERSION + 1), id="a newer layout"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"[", id="no JSON"),
        pytest.param(changed(kind=7), id="no entry"),
        pytest.param(changed(seq=-1), id="out of its bounds"),
    ],
)
def test_a_key_is_named_by_its_first_characters(found: bytes) -> None:
    with pytest.raises((NewerEntryError, UnreadableEntryError)) as told:
        entry_of("k" * 200, found)
    assert str(told.value).startswith(f"'{'k' * 80}' ")


def test_what_a_newer_writer_adds_within_a_version_is_kept_or_left_aside() -> None:
    entry = entry_of("plan/p-1", changed(value={"state": "open", "later": [1]}, also="new", kind="kind-of-tomorrow"))
    assert entry.value == {"state": "open", "later": [1]}
    assert entry.kind == "kind-of-tomorrow"
    assert entry_of("plan/p-1", to_bytes(entry)) == entry


@pytest.mark.parametrize(
    ("write", "told"),
    [
        pytest.param(JournalWrite("", "k", {}), "under the key ''", id="no key"),
        pytest.param(JournalWrite("x" * 70_000, "k", {}), "under the key 'xxx", id="a key without end"),
        pytest.param(JournalWrite("x", "k", {"n": float("nan")}), "is not JSON", id="no number"),
        pytest.param(JournalWrite("x", "k", {"n": object()}), "is not JSON", id="no JSON at all"),
        pytest.param(JournalWrite("x", "k", {"n": (1, 2)}), "could not be read back", id="a tuple, back as a list"),
        pytest.param(JournalWrite("x", "k", {1: "one"}), "could not be read back", id="a number as key"),
        pytest.param(JournalWrite("x", "k", {"n": 1e-200}), "could not be read back", id="too small a number"),
        pytest.param(JournalWrite("x", "k", {"n": 2**70}), "could not be read back", id="too large a number"),
        pytest.param(JournalWrite("x", "k", {"n": "y" * MAX_VALUE_BYTES}), "too big", id="more than a broker takes"),
    ],
)
def test_what_no_journal_can_hold_is_refused_before_anything_is_done(write: JournalWrite, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        numbered([JournalWrite("fine", "k", {}), write], at_ms=1, epoch=1, first_seq=0)


def test_changes_are_applied_as_their_bytes_say() -> None:
    value = {"list": [1, 2]}
    view = applied(
        {}, numbered([JournalWrite("a", "k", value), JournalWrite("b", "k", {})], at_ms=5, epoch=2, first_seq=4)
    )
    assert view["a"] == Entry("a", "k", {"list": [1, 2]}, 5, 2, 4) == entry_of("a", to_bytes(view["a"]))
    after = applied(
        view, numbered([JournalWrite("a", "k", None), JournalWrite("c", "k", {})], at_ms=6, epoch=2, first_seq=6)
    )
    assert set(after) == {"b", "c"}
    assert set(view) == {"a", "b"}, "a view that was given out stays as it is"


def test_who_leads_is_read_back_and_another_clusters_journal_is_not_gone_on_with() -> None:
    leader = LeaderEntry(agent="one", host="h", pid=4, cluster="c-1", since_ms=9)
    view = applied({}, numbered([leader_write(leader)], at_ms=9, epoch=12, first_seq=0))
    assert leader_in(view) == leader
    assert newest_epoch(view) == 12
    assert (leader_in({}), newest_epoch({})) == (None, 0)
    check_cluster(view, "c-1", "here")
    check_cluster({}, "c-2", "here")
    with pytest.raises(WrongCluster, match="cluster c-1"):
        check_cluster(view, "c-2", "here")


def test_a_journal_is_rewritten_in_order_with_kinds_and_times_and_then_what_is_gone() -> None:
    view = {"a": ENTRY._replace(key="a", seq=9), "b": ENTRY._replace(key="b", kind="said", at_ms=5, epoch=2)}
    again = rewritten(view, ["z", "c", "b"], at_ms=77, epoch=4, first_seq=10)
    assert [(one.key, one.kind, one.at_ms, one.epoch, one.seq, data is None) for one, data in again] == [
        ("b", "said", 5, 4, 10, False), ("a", "plan", 1_000, 4, 11, False),
        ("c", "deleted", 77, 4, 12, True), ("z", "deleted", 77, 4, 13, True),
    ]  # fmt: skip

"""A memo saves work and can never change a result."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.values.memo import Memo

repeatable = settings(max_examples=200, derandomize=True, deadline=None)

KEYS = st.sampled_from(("a", "b", ("decode", "a")))
INPUTS = st.tuples(st.integers(0, 3), st.sampled_from((b"", b"x", (1, "y"))))


def answer(key: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Stands for any pure function: what it answers follows from key and inputs alone."""
    return ("answer", key, inputs)


@repeatable
@given(st.lists(st.one_of(st.just("turn"), st.tuples(KEYS, INPUTS)), max_size=60))
def test_with_and_without_a_memo_every_answer_is_the_same(steps: list[Any]) -> None:
    memo = Memo()
    for step in steps:
        if step == "turn":
            memo.turn()
        else:
            key, inputs = step
            assert memo.of(key, inputs, lambda key=key, inputs=inputs: answer(key, inputs)) == answer(key, inputs)


class Counted:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> object:
        self.calls += 1
        return object()


def test_equal_inputs_in_the_next_turn_give_the_same_object() -> None:
    memo, compute = Memo(), Counted()
    first = memo.of("k", (b"abc", 1), compute)
    memo.turn()
    assert memo.of("k", (bytes(bytearray(b"abc")), 1), compute) is first
    assert compute.calls == 1
    assert (memo.computed, memo.reused) == (0, 1)


def test_other_inputs_are_worked_out_anew() -> None:
    memo, compute = Memo(), Counted()
    first = memo.of("k", (1,), compute)
    memo.turn()
    assert memo.of("k", (2,), compute) is not first
    memo.turn()
    assert memo.of("k", (1,), compute) is not first  # only the last result is kept


def test_what_nobody_asked_for_during_a_whole_turn_is_forgotten() -> None:
    memo, compute = Memo(), Counted()
    memo.of("k", (1,), compute)
    memo.turn()
    memo.turn()
    memo.of("k", (1,), compute)
    assert compute.calls == 2


def test_a_result_that_is_none_is_a_result() -> None:
    memo = Memo()
    calls = []
    for _ in range(2):
        assert memo.of("k", (), lambda: calls.append(1)) is None
    assert len(calls) == 1


def test_a_failure_is_not_remembered() -> None:
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo.of("k", (0,), lambda: 1 // 0)
    assert memo.of("k", (0,), lambda: 5) == 5


def test_it_holds_no_more_than_two_turns() -> None:
    memo, r = Memo(), Random(1)
    for _ in range(50):
        for _ in range(100):
            memo.of(r.random(), (), object)
        memo.turn()
    assert len(memo._before) + len(memo._now) <= 100

"""Waiting for more warm-ups: never longer than its bound, and never at a loss against all other waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execute.probing_decision import worth_waiting_ms


@pytest.mark.parametrize(
    ("ready", "arrivals_ms", "waited_ms", "wait_ms"),
    [
        pytest.param(1, [], 0, None, id="no other arrives"),
        pytest.param(1, [3_000], 0, 3_000, id="one more within three seconds"),
        pytest.param(1, [6_000], 0, None, id="beyond the bound"),
        pytest.param(1, [3_000], 2_500, None, id="the bound is used up by what was waited already"),
        pytest.param(4, [5_000], 0, None, id="four wait for one: dearer than a rebalance of its own"),
        pytest.param(3, [5_000], 0, 5_000, id="three wait for one: as dear as a rebalance of its own"),
        pytest.param(1, [1_000, 2_000, 4_900], 0, 4_900, id="one after the other, all within the bound"),
        pytest.param(2, [1_000, 50_000], 0, 1_000, id="the near one, not the far one"),
    ],
)
def test_when_to_wait(ready: int, arrivals_ms: list[float], waited_ms: int, wait_ms: int | None) -> None:
    assert worth_waiting_ms(ready, arrivals_ms, floor_ms=10_000, longest_ms=5_000, waited_ms=waited_ms) == wait_ms


@given(
    ready=st.integers(1, 10),
    arrivals=st.lists(st.integers(0, 30_000), max_size=8).map(sorted),
    waited_ms=st.integers(0, 6_000),
    longest_ms=st.integers(0, 20_000),
)
def test_a_wait_ends_with_an_arrival_within_the_bound(
    ready: int, arrivals: list[int], waited_ms: int, longest_ms: int
) -> None:
    wait_ms = worth_waiting_ms(ready, arrivals, floor_ms=10_000, longest_ms=longest_ms, waited_ms=waited_ms)
    if wait_ms is not None:
        assert wait_ms in arrivals
        assert waited_ms + wait_ms <= longest_ms

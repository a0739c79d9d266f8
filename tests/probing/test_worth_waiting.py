"""When warm-ups that arrive together share a trigger: bounds to the millisecond, and ties."""

from __future__ import annotations

import pytest

from agent.execute.probing_decision import worth_waiting_ms


@pytest.mark.parametrize(
    ("ready", "arrivals_ms", "waited_ms", "wait_ms"),
    [
        pytest.param(1, [1], 0, 1, id="one more within a millisecond"),
        pytest.param(1, [0], 0, None, id="one more at once"),
        pytest.param(1, [-1_000], 0, None, id="one that is late by the estimate"),
        pytest.param(1, [0.2], 0, None, id="within less than half a millisecond"),
        pytest.param(1, [5_000], 0, 5_000, id="just within the bound"),
        pytest.param(1, [5_001], 0, None, id="just beyond the bound"),
        pytest.param(1, [3_000], 2_000, 3_000, id="the bound is just not used up"),
        pytest.param(1, [3_000], 2_001, None, id="the bound is just used up"),
        pytest.param(1, [10_000], 0, None, id="one that arrives as the next trigger may come"),
        pytest.param(3, [2_000, 4_000], 0, 4_000, id="for both of two"),
        pytest.param(9, [100, 4_900], 0, 100, id="for the near one of two"),
    ],
)
def test_a_trigger_waits_for_what_arrives_in_time(
    ready: int, arrivals_ms: list[float], waited_ms: int, wait_ms: int | None
) -> None:
    assert worth_waiting_ms(ready, arrivals_ms, floor_ms=10_000, longest_ms=5_000, waited_ms=waited_ms) == wait_ms

"""How soon to look again: near the arrival, seldom before, and never so often that looking is all there is."""

from __future__ import annotations

import pytest

from agent.detect.streams import WarmupArrival
from agent.execute.probing_values import (
    ProbingDecision,
    ProbingOff,
    ProbingOffReason,
    ProbingReason,
    ProbingTrigger,
    ProbingWait,
    ProbingWaitReason,
)
from agent.guard.execute_checks import next_look_ms
from agent.values.snapshot import Range
from assignors.problem import TaskId

NOW = 1_000_000
COPY = "p", TaskId(0, 0)


def restoring(low: float, likely: float, high: float) -> ProbingWait:
    arriving = (WarmupArrival(COPY, Range(low, likely, high)),)
    return ProbingWait("app", ProbingWaitReason.RESTORING, NOW + round(likely * 1000), "", arriving)


def held(in_ms: int | None, reason: ProbingWaitReason = ProbingWaitReason.FLOOR) -> ProbingWait:
    return ProbingWait("app", reason, None if in_ms is None else NOW + in_ms, "")


@pytest.mark.parametrize(
    ("decisions", "took_ms", "acted", "in_ms"),
    [
        pytest.param([], 0, False, None, id="nothing to follow"),
        pytest.param([ProbingOff("app", ProbingOffReason.NO_WARMUPS, "")], 0, False, None, id="nothing warms up"),
        pytest.param(
            [ProbingTrigger("app", ProbingReason.CAUGHT_UP, (COPY,), "")], 0, False, None, id="held by another copy"
        ),
        pytest.param(
            [ProbingTrigger("app", ProbingReason.CAUGHT_UP, (COPY,), "")], 0, True, 1_000, id="just triggered"
        ),
        pytest.param([restoring(90, 100, 120)], 0, False, None, id="far away: the ordinary poll"),
        pytest.param([restoring(6, 8, 12)], 0, False, 6_000, id="at the earliest time that the readings allow"),
        pytest.param([restoring(0, 20, 300)], 0, False, 5_000, id="a wide range: after a quarter of what is likely"),
        pytest.param([restoring(0, 1, 3)], 0, False, 1_000, id="nearly there: once a second"),
        pytest.param([restoring(0, 1, 3)], 300, False, 3_000, id="looks of 300 ms: not more than a tenth of the time"),
        pytest.param([restoring(0, 1, 3)], 2_000, False, None, id="looks that take long: not beyond the poll"),
        pytest.param([held(4_000)], 0, False, 4_000, id="when the floor is over"),
        pytest.param([held(-50)], 0, False, 1_000, id="what is over already"),
        pytest.param([held(None)], 0, False, None, id="the moment is unknown"),
        pytest.param([held(4_000), restoring(3, 5, 9)], 0, False, 3_000, id="the soonest of several applications"),
    ],
)
def test_the_next_look(decisions: list[ProbingDecision], took_ms: int, acted: bool, in_ms: int | None) -> None:
    assert next_look_ms(decisions, NOW, poll_ms=10_000, took_ms=took_ms, acted=acted) == in_ms


def test_a_restore_however_long_costs_a_handful_of_looks() -> None:
    left_s, looks = 3_600.0, 0
    while left_s > 0:
        delay_ms = next_look_ms([restoring(left_s * 0.5, left_s, left_s * 2)], NOW, poll_ms=10**9)
        assert delay_ms is not None
        left_s -= delay_ms / 1_000
        looks += 1
    assert looks <= 16

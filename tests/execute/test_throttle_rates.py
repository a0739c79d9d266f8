"""The rate of a batch: an operator's own, else the headroom of its busiest broker between floor and ceiling."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.reassign.messages import ClusterView
from agent.execute.reassign.throttles import rate_of
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import ReassignmentPolicy, ReassignmentTarget
from assignors.problem import TopicPartition

LIMITS = ExecuteLimits(
    throttle=None, throttle_floor=10, throttle_ceiling=1_000, broker_bandwidth=2_000, throttle_headroom_share=0.5
)
IDLE = {1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0}


def moves(*written: float | None, after: tuple[int, ...] = (3, 2)) -> list[ReassignmentTarget]:
    """Partitions on brokers 1 and 2, with what producers write to each."""
    return [
        ReassignmentTarget(TopicPartition("t", number), "id", (1, 2), after, 1_000, rate)
        for number, rate in enumerate(written)
    ]


def rate(
    targets: list[ReassignmentTarget], traffic: dict[int, float], fixed: int | None = None, **limits: object
) -> int:
    policy = ReassignmentPolicy(replace(LIMITS, **limits))  # type: ignore[arg-type] # a table's row
    return rate_of(targets, ClusterView(frozenset(IDLE), (), traffic=tuple(traffic.items())), policy, fixed)


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        pytest.param({**IDLE, 2: 1_600.0}, 200, id="half of what the busiest one has left"),
        pytest.param({**IDLE, 3: 1_600.0}, 200, id="also of one that gets a copy"),
        pytest.param({**IDLE, 4: 1_600.0}, 1_000, id="not of one that takes no part"),
        pytest.param({**IDLE, 1: 1_600.0, 2: 1_800.0}, 100, id="of two the busier one"),
        pytest.param(IDLE, 1_000, id="no more than the ceiling"),
        pytest.param({**IDLE, 1: 1_981.0}, 10, id="no less than the floor"),
        pytest.param({**IDLE, 1: 2_500.0}, 10, id="the floor beyond its bandwidth"),
        pytest.param({1: 0.0, 3: 0.0}, 10, id="the floor where the traffic of one is unknown"),
    ],
)
def test_the_rate_is_a_share_of_the_headroom(traffic, expected):
    assert rate(moves(0.0), traffic) == expected


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        pytest.param(moves(80.0), 100, id="a quarter more than they write"),
        pytest.param(moves(40.0, 40.0), 100, id="of all that one broker copies"),
        pytest.param([*moves(80.0), *moves(40.0, after=(4, 2))], 100, id="not of what two brokers copy"),
        pytest.param(moves(*[None] * 100), 10, id="what is unknown adds nothing"),
        pytest.param(moves(80.0, None), 100, id="what is known counts beside it"),
        pytest.param(moves(5_000.0), 1_000, id="no more than the ceiling"),
        pytest.param(moves(4.0), 10, id="no less than the floor"),
    ],
)
def test_a_copy_gains_on_its_producers(targets, expected):
    assert rate(targets, {1: 1_999.0, 2: 0.0, 3: 0.0}) == expected


@pytest.mark.parametrize(
    ("fixed", "limits", "expected"),
    [
        pytest.param(7, {}, 7, id="an operator's own"),
        pytest.param(7, {"throttle": 5}, 7, id="an operator's own before that of the settings"),
        pytest.param(None, {"throttle": 5}, 5, id="that of the settings"),
        pytest.param(9_999, {}, 9_999, id="above the ceiling as well"),
    ],
)
def test_a_rate_that_was_given_is_taken_as_it_is(fixed, limits, expected):
    assert rate(moves(80.0), IDLE, fixed, **limits) == expected

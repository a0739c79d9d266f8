"""Which rates a snapshot has: fresh weights first, then what the agent saw itself, then none; and why not weights."""

from __future__ import annotations

import re

import pytest

from agent.decode.members import decode_members
from agent.model.build_snapshot import build_snapshot
from agent.model.streams import MeasuredRestoreRate, restore_rate
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory, RateBase, RestoreRate
from agent.values.snapshot import Snapshot
from agent.values.weights import RestoreWeight, WeightsReading
from tests.builders import MONOTONIC_MS, Answers, an_observation
from tests.snapshots import tp
from tests.telemetry.weight_rates import TOPIC, group_rates, reading_of, topic_rates

OWN = Memory(
    rate_bases=(RateBase(MONOTONIC_MS - 10_000, {tp("orders-0"): 900, tp("orders-1"): 1_000, tp("orders-2"): 1_000}),),
    bytes_per_record={"orders": 50.0},
)
"""500 bytes/s for orders-0 and nothing for the other two."""


def orders() -> Answers:
    return an_observation().topic("orders", (1,), (2,), (3,))


def taken(weights: WeightsReading | None, memory: Memory = OWN, memo: Memo | None = None) -> Snapshot:
    answers = orders()
    answers.extra["weights"] = weights
    observation = answers.at(0)
    return build_snapshot(observation, decode_members(observation), memory, Limits(), memo)


@pytest.mark.parametrize(
    ("weights", "rates"),
    [
        pytest.param(None, (500.0, 0.0, 0.0), id="not asked for: own rates"),
        pytest.param(WeightsReading(TOPIC, missing="there is no topic"), (500.0, 0.0, 0.0), id="missing: own rates"),
        pytest.param(reading_of({"orders": (7.0, 8.0, 9.0)}), (7.0, 8.0, 9.0), id="fresh: weights alone"),
        pytest.param(
            reading_of({"orders": (7.0, None, 9.0)}), (7.0, 0.0, 9.0), id="a partition without one: its own rate"
        ),
        pytest.param(reading_of({"orders": (7.0, 8.0, 9.0)}, until_s=-7_200), (7.0, 8.0, 9.0), id="as old as allowed"),
        pytest.param(reading_of({"orders": (7.0, 8.0, 9.0)}, until_s=-7_201), (500.0, 0.0, 0.0), id="a second too old"),
        pytest.param(
            reading_of({"orders": (7.0, 8.0, 9.0)}, until_s=7_201), (500.0, 0.0, 0.0), id="from a time to come"
        ),
        pytest.param(
            reading_of({"orders": (7.0, 8.0, 9.0, 10.0), "gone": (1.0,)}),
            (7.0, 8.0, 9.0),
            id="of what is not shown: nothing",
        ),
        pytest.param(
            WeightsReading(TOPIC, (topic_rates("orders", (7.0, 8.0)), topic_rates("orders", (None, None, 9.0)))),
            (7.0, 8.0, 9.0),
            id="a topic in two records",
        ),
    ],
)
def test_rates_by_precedence(weights: WeightsReading | None, rates: tuple[float, ...]) -> None:
    assert taken(weights).bytes_per_s == {tp(f"orders-{number}"): rate for number, rate in enumerate(rates)}


def test_without_either_nothing_is_known() -> None:
    assert taken(WeightsReading(TOPIC, missing="there is no topic"), Memory()).bytes_per_s == {}


@pytest.mark.parametrize(
    ("weights", "why", "silent"),
    [
        pytest.param(reading_of({"orders": (1.0,)}), None, False, id="fresh"),
        pytest.param(WeightsReading(TOPIC, missing="there is no topic"), "there is no topic", True, id="missing"),
        pytest.param(WeightsReading(TOPIC), "rackwise.weights holds no weights", True, id="empty"),
        pytest.param(
            WeightsReading(TOPIC, others=3), "holds weights of other clusters only", True, id="of another cluster"
        ),
        pytest.param(
            reading_of({"orders": (1.0,)}, until_s=-9_000),
            "they are 2 h 30 min old, 30 min more than",
            False,
            id="stale",
        ),
        pytest.param(
            reading_of({"orders": (1.0,)}, until_s=9_000), "2 h 30 min after this look, so one of", False, id="ahead"
        ),
        pytest.param(
            WeightsReading(TOPIC, unreadable=2, example="'C/x' is no JSON"),
            "0 of 2 records .* 'C/x' is no JSON",
            False,
            id="unreadable",
        ),
        pytest.param(reading_of({}, group_rates("g", {"orders": (1.0,)})), "groups only", False, id="groups alone"),
    ],
)
def test_why_weights_are_not_used(weights: WeightsReading, why: str | None, *, silent: bool) -> None:
    state = taken(weights).weights
    assert state is not None
    assert state.silent is silent
    if why is None:
        assert state.why_not is None
        assert state.to_ms is not None
    else:
        assert state.why_not is not None
        assert re.search(why, state.why_not)
        assert state.to_ms is None


def test_what_a_group_reads_is_kept_only_where_it_differs() -> None:
    weights = reading_of({"orders": (7.0, 8.0, 9.0)}, group_rates("g", {"orders": (7.0, 4.0), "elsewhere": (1.0,)}))
    assert taken(weights).weighed.groups == {"g": {tp("orders-1"): 4.0}}


def test_the_same_fresh_weights_are_the_same_object() -> None:
    memo = Memo()
    first = taken(reading_of({"orders": (7.0,)}), memo=memo).weighed
    memo.turn()
    assert taken(reading_of({"orders": (7.0,)}), memo=memo).weighed is first
    memo.turn()
    assert taken(reading_of({"orders": (8.0,)}), memo=memo).weighed is not first


LEARNED = (RestoreWeight(0, 100.0, 200.0, 300.0, 9, 0.0), RestoreWeight(1, 80.0, 250.0, 400.0, 5, None))


@pytest.mark.parametrize(
    ("measured", "learned", "rate"),
    [
        pytest.param((), (), None, id="nothing is known"),
        pytest.param(
            (), LEARNED, MeasuredRestoreRate(40.0, 250.0, 800.0), id="none measured: what the pipeline learned, doubled"
        ),
        pytest.param(
            (RestoreRate(30.0, 50.0),),
            LEARNED,
            MeasuredRestoreRate(15.0, 200.0, 800.0),
            id="one measured: beside the learned",
        ),
        pytest.param(
            (RestoreRate(30.0, 50.0),) * 3,
            LEARNED,
            MeasuredRestoreRate(30.0, 40.0, 50.0),
            id="three measured: these alone",
        ),
        pytest.param(
            (RestoreRate(30.0, None),),
            LEARNED,
            MeasuredRestoreRate(40.0, 250.0, 800.0),
            id="bounded from below only: learned",
        ),
        pytest.param(
            (RestoreRate(30.0, None),),
            (RestoreWeight(0, 0.0, 0.0, 0.0, 0, None),),
            MeasuredRestoreRate(15.0, 30.0, None),
            id="learned from nothing: left aside",
        ),
    ],
)
def test_restore_rates_by_precedence(
    measured: tuple[RestoreRate, ...], learned: tuple[RestoreWeight, ...], rate: MeasuredRestoreRate | None
) -> None:
    assert restore_rate(measured, learned) == rate

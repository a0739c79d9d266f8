"""Metrics of money and of lag, worked out by hand: one MB/s across racks is $1.728 a day at $0.02 a gigabyte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.loop import CycleStages, run_cycle
from agent.values.cycle import Cycle
from agent.values.limits import Limits, PriceLimits
from agent.values.memory import Memory
from agent.values.snapshot import Snapshot
from agent.web.money_metrics import Sample, SampledLooks, money_samples
from tests.builders import an_observation
from tests.snapshots import Builder, a_cluster, member, tp

MB = 1_000_000.0
A_DAY = pytest.approx(1.728)
LOOK = an_observation().at()
EMPTY = run_cycle(CycleStages(Limits()), lambda: LOOK, LOOK, Memory(), number=1, name="l-1", planning=False)


def two_groups() -> Builder:
    """``shop`` reads 1 MB/s across racks, ``audit`` twice as much; the topic has a copy in the other rack."""
    built = a_cluster(a=(1,), b=(2,)).topic("orders", (1, 2), rate=MB).topic("audit", (1,), rate=2 * MB)
    built.selector = False
    return built.group("shop", member("m", "b", "orders-0")).group("audit", member("n", "b", "audit-0"))


def samples(snapshot: Snapshot, *, limits: Limits | None = None, most: int = 100) -> dict[str, dict[str, float]]:
    cycle = replace(EMPTY, snapshot=snapshot, limits=limits or Limits())
    found: dict[str, Sequence[Sample]] = dict(money_samples(cycle, most))
    return {name: {labels[0]: value for labels, value in rows} for name, rows in found.items()}


def test_paths_and_groups_have_their_bytes_and_dollars() -> None:
    found = samples(two_groups().snapshot())
    assert found["rackwise_cross_rack_bytes_per_second"] == {"replicate": MB, "consume": 3 * MB}
    assert found["rackwise_cross_rack_usd_per_day"] == {"replicate": A_DAY, "consume": pytest.approx(3 * 1.728)}
    assert found["rackwise_group_cross_rack_usd_per_day"] == {"shop": A_DAY, "audit": pytest.approx(2 * 1.728)}
    assert found["rackwise_cross_rack_unknown"] == {"replicate": 0, "consume": 0}


def test_what_is_unknown_has_no_sample_and_is_counted() -> None:
    built = two_groups()
    built.rates.clear()
    found = samples(built.snapshot())
    assert not found["rackwise_group_cross_rack_usd_per_day"]
    assert not found.get("rackwise_cross_rack_usd_per_day")
    assert found["rackwise_cross_rack_unknown"] == {"replicate": 1, "consume": 2}


def test_without_a_price_there_are_bytes_alone() -> None:
    found = samples(two_groups().snapshot(), limits=Limits(price=PriceLimits(usd_per_gb=None)))
    assert found["rackwise_cross_rack_bytes_per_second"]["consume"] == 3 * MB
    assert not found.get("rackwise_cross_rack_usd_per_day")
    assert not found["rackwise_group_cross_rack_usd_per_day"]


def test_groups_beyond_the_dearest_are_summed_up() -> None:
    found = samples(two_groups().snapshot(), most=1)
    assert found["rackwise_group_cross_rack_usd_per_day"] == {"audit": pytest.approx(2 * 1.728), "other": A_DAY}


def test_lag_is_what_groups_are_behind_and_unknown_lag_has_no_sample() -> None:
    snapshot = replace(
        two_groups().snapshot(),
        end_offsets={tp("orders-0"): 100, tp("audit-0"): 100},
        committed_offsets={"shop": {tp("orders-0"): 40}, "audit": {}},
    )
    assert samples(snapshot)["rackwise_group_lag_records"] == {"shop": 60}


def test_a_cycle_is_worked_out_once_however_often_it_is_scraped(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = SampledLooks(lambda cycle: money_samples(cycle, 100))
    cycle = replace(EMPTY, snapshot=two_groups().snapshot())
    first = looks.of(cycle)
    monkeypatch.setattr("agent.web.money_metrics.look_costs", _never)
    assert looks.of(cycle) is first
    with pytest.raises(AssertionError):
        looks.of(replace(cycle, number=2))


def _never(_: Snapshot) -> Cycle:
    raise AssertionError("worked out once more")

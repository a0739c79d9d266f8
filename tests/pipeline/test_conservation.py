"""Conservation: over random histories the ledger books what flowed, and the check beside it says so."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pipeline.transforms.conservation import COPIED_AGAIN, WENT_BACK, conservation
from tests.pipeline.ledger_world import LedgerWorld, Told
from tests.pipeline.random_histories import HISTORIES, RandomHistory, Step

MOST_SHARE = 0.005
WORLDS = 25


@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(told=st.lists(HISTORIES, min_size=WORLDS, max_size=WORLDS))
def test_over_random_histories_the_ledger_books_what_flowed(spark: SparkSession, told: list[list[Step]]) -> None:
    """All of them in one job, each a cluster of its own."""
    histories = {
        f"cluster {number:02}": RandomHistory(f"cluster {number:02}", steps) for number, steps in enumerate(told)
    }
    world = LedgerWorld(spark, *histories.values(), producers=())
    booked: dict[str, dict[tuple[str, str], float]] = {name: defaultdict(float) for name in histories}
    for row in world.ledger.collect():
        assert row["bytes"] is not None, row
        flows = booked[row["cluster"]]
        name = row["group"] or row["topic"]
        flows["replicate" if row["path"] == "catch-up" else row["path"], name] += row["bytes"]
    wrong = []
    for cluster, history in histories.items():
        flowed = dict(history.flowed)
        lost = flowed.pop(("lost", "orders"), 0)
        flowed["replicate", "orders"] = flowed.get(("replicate", "orders"), 0) + lost
        for key in {*flowed, *booked[cluster]}:
            found, wanted = booked[cluster].get(key, 0.0), flowed.get(key, 0)
            if found != pytest.approx(wanted, rel=MOST_SHARE, abs=1.0):
                wrong.append((cluster, key, found, wanted, [step.kind for step in history.steps]))
    assert wrong == []
    check_differences(world, histories)


def check_differences(world: LedgerWorld, histories: dict[str, RandomHistory]) -> None:
    """Each row of the check is near nothing; unknown only what was reset."""
    rows = world.conservation.collect()
    assert {row["cluster"] for row in rows} == set(histories)
    for row in rows:
        kinds = {step.kind for step in histories[row["cluster"]].steps}
        if row["why_unknown"] is not None:
            why = {(WENT_BACK, "consume"): "reset", (COPIED_AGAIN, "move"): "move"}
            assert why[row["why_unknown"], row["path"]] in kinds, (row, kinds)
        else:
            difference = abs(row["difference_bytes"])
            assert difference <= max(1.0, MOST_SHARE * row["counted_bytes"]), (row, kinds)


@pytest.mark.parametrize(("times", "share"), [(0, -1.0), (2, 1.0)], ids=["lacks", "has twice"])
def test_what_the_ledger_lacks_or_has_twice_is_a_difference(spark: SparkSession, times: int, share: float) -> None:
    told = Told().topic("t").reader("g", "t", "c", 0, 600)
    world = LedgerWorld(spark, told)
    twice = world.ledger.where("path <> 'consume'")
    for _ in range(times):
        twice = twice.unionByName(world.ledger.where("path = 'consume'"))
    rows = {row["path"]: row for row in conservation(twice, **world.sides).collect()}
    assert rows.pop("consume")["difference_share"] == share
    assert {row["difference_bytes"] for row in rows.values()} == {0.0}

"""Followers that fall behind, and replicas that lose their log and fetch it again, minute by minute."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ledger_world import LedgerWorld, Minutes, flow
from tests.pipeline.silver_rows import partition

OLD = 1_000_000
"""Bytes that each replica holds at the first look."""
MINUTE = 60_000.0
AWAY = (2, 3)
"""Looks at which the third replica is out of sync, and is in sync again at the next one but one."""


def history(topic: str, third: dict[int, int | None], **more: object) -> Minutes:
    """A topic whose third replica holds these bytes at some looks; at the others what its leader holds."""
    told = Minutes(*range(7), cluster=topic)
    for minute, of in told.at.items():
        size = OLD + round(MINUTE) * minute
        behind = minute in (*AWAY, 4)
        row = partition(of, topic, 600 * minute, size, isr=[1, 2] if behind else [1, 2, 3])
        told.partitions.append(row | {"replica_bytes": [size, size, third.get(minute, size)]} | more)
    return told


@pytest.fixture(scope="module")
def world(spark: SparkSession) -> LedgerWorld:
    left = OLD + round(MINUTE)
    return LedgerWorld(
        spark,
        history("behind", {2: left, 3: left, 4: left}),
        history("down", {2: None, 3: None, 4: left}),
        history("wiped at once", {2: 5_000, 3: 300_000, 4: 800_000}),
        history("wiped while down", {2: None, 3: None, 4: 5_000}),
        # A follower whose segments are deleted a little before its leader's has lost nothing.
        history("deleted", {2: left * 2 // 3, 3: left, 4: left}),
        # Sizes of an earlier look say nothing about this one.
        history("stale", {2: 5_000, 3: 5_000, 4: 5_000}, size_fresh=False, learned_bytes_per_record=100.0),
    )


@pytest.mark.parametrize(
    ("topic", "lost"),
    [
        ("behind", None),
        ("down", None),
        ("wiped at once", OLD + MINUTE),
        ("wiped while down", OLD + MINUTE),
        ("deleted", None),
        ("stale", None),
    ],
)
def test_what_a_follower_catches_up_is_a_path_of_its_own(world: LedgerWorld, topic: str, lost: float | None) -> None:
    """It leaves between the first minute and the second, and is back between the fourth and the fifth."""
    about = {"cluster": topic, "seconds": 360.0}
    appended = 3 * MINUTE
    catch_up = flow("catch-up", topic, "a", "c", appended + (lost or 0.0), unavoidable_bytes=None, **about)
    world.check("catch-up", "", catch_up if lost else catch_up | {"unavoidable_bytes": appended}, topics=[topic])
    world.check(
        "replicate",
        "",
        flow("replicate", topic, "a", "b", 6 * MINUTE, unavoidable_bytes=6 * MINUTE, **about),
        flow("replicate", topic, "a", "c", 3 * MINUTE, unavoidable_bytes=3 * MINUTE, **about),
        topics=[topic],
    )

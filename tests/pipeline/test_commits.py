"""What groups read by what they commit: in rebalances, without members, over gaps; by hand, over ten minutes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.transforms.routes import MEMBERS_HIDDEN, NO_MEMBER
from tests.pipeline.ledger_world import RECORD_BYTES, RECORDS, LedgerWorld, Minutes, flow
from tests.pipeline.silver_rows import Row

MINUTES = range(11)
TEN = 10.0 * RECORDS * RECORD_BYTES
MINUTE = TEN / 10


def fifth(minute: int) -> str:
    """Each fifth look finds the group in a rebalance."""
    return "hidden" if minute % 5 == 4 else "active"


@pytest.fixture(scope="module")
def world(spark: SparkSession) -> LedgerWorld:
    told = Minutes(*MINUTES).topic("t")
    told.commits("rebalancing", "t", role=fifth)
    told.commits("moved meanwhile", "t", role=fifth, rack=lambda minute: "c" if minute < 4 else "b")
    told.commits("hidden at first", "t", role=lambda minute: "hidden" if minute < 2 else "active")
    told.commits("always hidden", "t", role="hidden")
    told.commits("flink", "t", role="unassigned")
    told.commits("left behind", "t", role="unassigned", committed_offset=0)
    told.commits("an answer is missing", "t", committed_offset=lambda minute: None if minute == 6 else RECORDS * minute)
    told.commits("a row is missing", "t", role=lambda minute: None if minute == 6 else "active")
    restarted = Minutes(0, 1, 2, 5, 6, cluster="restarted", restarts=(5,)).topic("t").commits("g", "t")
    slow = Minutes(0, 20, 40, cluster="in full every twenty minutes").topic("t").commits("g", "t", rack="a")
    over_it = Minutes(0, 1, 5, 6, cluster="restarted in a rebalance", restarts=(5,)).topic("t")
    over_it.commits("g", "t", role=lambda minute: "hidden" if minute == 5 else "active")
    return LedgerWorld(spark, told, restarted, slow, over_it)


def check(world: LedgerWorld, group: str, *expected: Row) -> None:
    world.check("consume", "t", *expected, where=(F.col("cluster") == "c") & (F.col("group") == group))


def read_by(group: str, source: str, target: str, bytes_: float, **more: Any) -> Row:
    return flow("consume", "t", source, target, bytes_, group=group, **{"seconds": 600.0, **more})


def test_what_a_group_commits_while_it_rebalances_is_booked_where_it_was_seen_last(world: LedgerWorld) -> None:
    check(world, "rebalancing", read_by("rebalancing", "c", "c", TEN))
    # It was in c for three minutes and a half by what is known, then in b.
    check(
        world,
        "moved meanwhile",
        read_by("moved meanwhile", "c", "c", 4.5 * MINUTE),
        read_by("moved meanwhile", "b", "b", 5.5 * MINUTE),
    )


def test_members_that_were_never_seen_are_somewhere(world: LedgerWorld) -> None:
    check(
        world,
        "hidden at first",
        read_by("hidden at first", "a", "", 1.5 * MINUTE, why_unknown=MEMBERS_HIDDEN),
        read_by("hidden at first", "c", "c", 8.5 * MINUTE),
    )
    check(world, "always hidden", read_by("always hidden", "a", "", TEN, why_unknown=MEMBERS_HIDDEN))


def test_a_group_without_members_reads_what_it_commits_and_from_where_is_unknown(world: LedgerWorld) -> None:
    check(world, "flink", read_by("flink", "a", "", TEN, why_unknown=NO_MEMBER))
    # Commits of long ago are no reading.
    check(world, "left behind")


@pytest.mark.parametrize("group", ["an answer is missing", "a row is missing"])
def test_the_next_commit_makes_up_for_one_that_is_not_known(world: LedgerWorld, group: str) -> None:
    check(world, group, read_by(group, "c", "c", TEN))


def test_what_was_read_in_a_gap_is_booked_with_less_confidence(world: LedgerWorld) -> None:
    def counted(cluster: str, source: str, minutes: float, seconds: float, gap: float) -> Row:
        more = {"cluster": cluster, "seconds": seconds, "gap_bytes": gap * MINUTE, "confidence": "counted"}
        return read_by("g", source, source, minutes * MINUTE, **more)

    clusters = ["restarted", "in full every twenty minutes", "restarted in a rebalance"]
    world.check(
        "consume",
        "t",
        counted("restarted", "c", 6, 180.0, 3),
        counted("in full every twenty minutes", "a", 40, 0.0, 40),
        # After the restart the reader is where the agent before it had seen it.
        counted("restarted in a rebalance", "c", 6, 120.0, 4),
        where=F.col("cluster").isin(*clusters),
    )

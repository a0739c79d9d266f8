"""Rebalances by hand: who came and went, what moved, who asked for it."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas import silver
from pipeline.schemas.bronze import JOURNAL
from pipeline.schemas.gold import REBALANCES
from pipeline.transforms.rebalances import rebalances, triggers_of
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, at, frame, look, read

LOOKS = {second: look("i", second, second=second) for second in (0, 30, 60)}
TRIGGERS = "cluster string, group string, proposal string, at_ms long"


def group(second: int, name: str, rebalance: str | None, members: int, **more: Any) -> Row:
    of = LOOKS[second]
    return {
        "cluster": CLUSTER, "look": of["look"], "taken_ms": of["taken_ms"], "group": name, "kind": "classic consumer",
        "state": "Stable", "members": members, "hidden": False, "rebalance": rebalance, "day": DAY,
    } | more  # fmt: skip


def held(second: int, name: str, *members: str) -> list[Row]:
    """Member by partition."""
    return [read(LOOKS[second], name, "t", "a", member=one, partition=n) for n, one in enumerate(members)]


def turned(name: str, rebalance: str, *counts: int, cause: str, **more: Any) -> Row:
    before, after, moved = counts
    return {
        "cluster": CLUSTER, "group": name, "rebalance": rebalance, "after_ms": at(0), "seen_ms": at(60),
        "seconds_most": 60.0, "members_before": before, "members_after": after, "moved": moved, "cause": cause,
        "hour_ms": HOUR_MS, "day": DAY,
    } | more  # fmt: skip


def test_rebalances_and_their_causes(spark: SparkSession) -> None:
    streams = {"kind": "classic streams"}
    groups = [
        *(group(0, "joined", "1", 1), group(30, "joined", None, 2, state="PreparingRebalance", hidden=True)),
        group(60, "joined", "2", 2),
        *(group(0, "left", "1", 2), group(60, "left", "2", 1)),
        *(group(0, "changed", "1", 2), group(60, "changed", "2", 2)),
        *(group(0, "grown", "1", 1), group(60, "grown", "2", 1)),
        *(group(0, "probing", "1", 2, **streams), group(60, "probing", "2", 2, **streams)),
        *(group(0, "asked", "1", 2), group(60, "asked", "2", 2)),
        *(group(0, "why", "1", 1), group(60, "why", "2", 1)),
        *(group(0, "still", "1", 1), group(60, "still", "1", 1)),
    ]
    reads = [
        *(*held(0, "joined", "m", "m"), *held(60, "joined", "m", "n")),
        *(*held(0, "left", "m", "n"), *held(60, "left", "m", "m")),
        *(*held(0, "changed", "m", "n"), *held(60, "changed", "m", "o")),
        *(*held(0, "grown", "m"), *held(60, "grown", "m", "m")),
        *(*held(0, "probing", "m", "n", "m"), *held(60, "probing", "n", "m", "m")),
        *(*held(0, "asked", "m", "n"), *held(60, "asked", "n", "m")),
        *(*held(0, "why", "m"), *held(60, "why", "m")),
    ]
    triggers = [(CLUSTER, "asked", "p-1", at(20)), (CLUSTER, "why", "p-2", at(200)), ("other", "why", "p-3", at(20))]
    expected = [
        turned("joined", "2", 1, 2, 1, cause="members joined"),
        turned("left", "2", 2, 1, 1, cause="members left"),
        turned("changed", "2", 2, 2, 1, cause="members changed"),
        turned("grown", "2", 1, 1, 0, cause="new partitions"),
        turned("probing", "2", 2, 2, 2, cause="probing"),
        turned("asked", "2", 2, 2, 2, cause="triggered", trigger="p-1"),
        turned("why", "2", 1, 1, 0, cause="unknown"),
    ]
    found = rebalances(
        frame(spark, silver.GROUPS, *groups),
        frame(spark, silver.READS, *reads),
        spark.createDataFrame(triggers, TRIGGERS),
    )
    assertDataFrameEqual(found, frame(spark, REBALANCES, *expected))


def test_of_two_triggers_at_once_always_the_same_is_named(spark: SparkSession) -> None:
    groups = frame(spark, silver.GROUPS, group(0, "asked", "1", 1), group(60, "asked", "2", 1))
    triggers = [(CLUSTER, "asked", name, at(20)) for name in ("p-1", "p-2")]
    for turn in (1, -1):
        at_once = spark.createDataFrame(triggers[::turn], TRIGGERS).coalesce(1)
        (row,) = rebalances(groups, frame(spark, silver.READS), at_once).collect()
        assert row["trigger"] == "p-2"


def test_only_what_was_asked_of_groups_is_a_trigger(spark: SparkSession) -> None:
    def entry(proposal: str, **told: Any) -> Row:
        data = {"group_id": "g/1", "proposal_id": proposal, "acted_ms": None, "effect": None} | told
        return {"cluster": CLUSTER, "key": f"trigger/g/1/{proposal}", "kind": "outcome", "data": json.dumps(data)}

    rows = [
        entry("asked", acted_ms=7, effect="REBALANCING"),
        entry("intended"),
        entry("refused", acted_ms=8, effect="REFUSED"),
        {"cluster": CLUSTER, "key": "trigger/g/1/gone", "kind": None, "data": None},
        {"cluster": CLUSTER, "key": "plan/p", "kind": "open", "data": "{}"},
    ]
    journal = spark.createDataFrame(
        [(row["cluster"], row["key"], row["data"]) for row in rows], "cluster string, key string, data string"
    )
    assert {"cluster", "key", "data"} <= set(JOURNAL.schema.names)
    expected = spark.createDataFrame([(CLUSTER, "g/1", "asked", 7)], TRIGGERS)
    assertDataFrameEqual(triggers_of(journal), expected)

"""Warm-ups and what they teach, by hand: promoted, given up, running, lost from sight, stalled."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas import silver
from pipeline.schemas.gold import RESTORE_RATES, WARMUPS
from pipeline.transforms.warmups import restore_rates, warmups
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, at, frame


def copy(second: int, group: str, task: str, role: str, lag: float | None = None, **more: Any) -> Row:
    return {
        "cluster": CLUSTER, "look": f"i-{second}", "taken_ms": at(second), "group": group, "process": "p", "task": task,
        "role": role, "role_certain": True, "lag": lag, "caught_up": None if lag is None else lag == 0, "day": DAY,
        "changelogs": [f"{group}-log"], "end_offset_sum": 1_000,
    } | more  # fmt: skip


def group(second: int, name: str, state: str) -> Row:
    return {
        "cluster": CLUSTER, "look": f"i-{second}", "taken_ms": at(second), "group": name, "kind": "streams",
        "state": state, "day": DAY,
    }  # fmt: skip


def warmup(name: str, task: str, began: int, last: int, outcome: str, **more: Any) -> Row:
    ready = more.pop("ready", None)
    return {
        "cluster": CLUSTER, "group": name, "process": "p", "task": task, "began_ms": at(began), "last_ms": at(last),
        "ready_ms": None if ready is None else at(ready), "outcome": outcome, "changelogs": [f"{name}-log"],
        "hour_ms": HOUR_MS, "day": DAY, "stalled_s": 0.0, "stalled_rebalancing_s": 0.0, "stalled_sharing_s": 0.0,
    } | more  # fmt: skip


def lag(first: float, last: float, restored: float | None) -> Row:
    return {"lag_first": first, "lag_last": last, "records": restored}


def stalled(seconds: float, rebalancing: float, sharing: float) -> Row:
    return {"stalled_s": seconds, "stalled_rebalancing_s": rebalancing, "stalled_sharing_s": sharing}


def test_how_warm_ups_went(spark: SparkSession) -> None:
    copies = [
        # Promoted: 1,000 records in 20 s while 100 more were appended, then 10 s of waiting for a rebalance.
        copy(0, "good", "0_0", "warm-up", 1_000.0),
        copy(10, "good", "0_0", "warm-up", 400.0, end_offset_sum=1_100),
        copy(20, "good", "0_0", "warm-up", 0.0, end_offset_sum=1_100),
        copy(30, "good", "0_0", "active"),
        # It stalls twice: while the group rebalances, and while another copy of the process restores.
        copy(0, "slow", "0_0", "warm-up", 500.0),
        copy(10, "slow", "0_0", "warm-up", 500.0),
        copy(20, "slow", "0_0", "warm-up", 500.0),
        copy(20, "slow", "0_1", "warm-up", 90.0),
        copy(10, "slow", "0_1", "warm-up", 90.0),
        copy(0, "slow", "0_1", "standby", 100.0),
        copy(30, "slow", "0_0", "warm-up", 500.0),
        copy(30, "slow", "0_1", "warm-up", 20.0),
        copy(40, "slow", "0_0", "active"),
        # The group goes on, and the warm-up is gone.
        copy(0, "gone", "1_0", "warm-up", 50.0),
        copy(10, "gone", "1_0", "standby", 50.0),
        # Looks are missing for a whole hour.
        copy(0, "lost", "0_0", "warm-up", 50.0),
        copy(3_600, "lost", "0_0", "active"),
        # The application was stopped.
        copy(0, "ended", "0_0", "warm-up", 50.0),
    ]
    states = [group(second, name, "Stable") for name in ("good", "gone", "lost") for second in (0, 10, 20, 30)]
    states += [group(second, "slow", "Assigning" if second == 10 else "Stable") for second in (0, 10, 20, 30, 40)]
    states.append(group(10, "ended", "Empty") | {"members": 0, "hidden": False})
    expected = [
        warmup("ended", "0_0", 0, 0, "given up", **lag(50.0, 50.0, None), seconds=0.0),
        warmup("good", "0_0", 0, 20, "promoted", ready=20, **lag(1_000.0, 0.0, 1_100.0), seconds=20.0, waited_s=10.0),
        warmup("slow", "0_0", 0, 30, "promoted", **lag(500.0, 500.0, 0.0), seconds=30.0, **stalled(30.0, 10.0, 10.0)),
        warmup("slow", "0_1", 10, 30, "given up", **lag(90.0, 20.0, 70.0), seconds=20.0, **stalled(10.0, 0.0, 0.0)),
        warmup("gone", "1_0", 0, 0, "given up", **lag(50.0, 50.0, None), seconds=0.0),
        warmup("lost", "0_0", 0, 0, "unknown", **lag(50.0, 50.0, None), seconds=0.0),
    ]
    found = warmups(frame(spark, silver.COPIES, *copies), frame(spark, silver.GROUPS, *states))
    assertDataFrameEqual(found, frame(spark, WARMUPS, *expected))


def test_a_warm_up_of_the_last_look_is_running(spark: SparkSession) -> None:
    copies = [copy(0, "app", "0_0", "warm-up", 70.0), copy(60, "app", "0_0", "warm-up", 10.0)]
    expected = warmup("app", "0_0", 0, 60, "running", lag_first=70.0, lag_last=10.0, records=60.0, seconds=60.0)
    found = warmups(frame(spark, silver.COPIES, *copies), frame(spark, silver.GROUPS, group(0, "app", "Stable")))
    assertDataFrameEqual(found, frame(spark, WARMUPS, expected))


def test_two_agents_that_look_in_the_same_millisecond_see_one_warm_up(spark: SparkSession) -> None:
    copies = [
        copy(0, "app", "0_0", "warm-up", 1.0),
        copy(10, "app", "0_0", "warm-up", 0.9, look="a-1"),
        copy(10, "app", "0_0", "warm-up", 0.7, look="b-1"),
        copy(20, "app", "0_0", "warm-up", 0.4),
        copy(30, "app", "0_0", "active"),
    ]
    states = frame(spark, silver.GROUPS, group(0, "app", "Stable"))
    for turn in (1, -1):
        (found,) = warmups(frame(spark, silver.COPIES, *copies[::turn]), states).collect()
        assert (found["began_ms"], found["last_ms"], found["outcome"]) == (at(0), at(20), "promoted")
        assert (found["lag_first"], found["lag_last"], found["records"]) == (1.0, 0.4, 0.6)
    # The last look of all is one of two: the greater name is the later one.
    for turn in (1, -1):
        (found,) = warmups(frame(spark, silver.COPIES, *copies[:3][::turn]), states).collect()
        assert (found["lag_last"], found["outcome"]) == (0.7, "running")


def test_what_restores_teach(spark: SparkSession) -> None:
    told = [
        warmup("app", "0_0", 0, 10, "promoted", records=1_000.0, seconds=10.0),
        warmup("app", "0_1", 0, 20, "promoted", records=3_000.0, seconds=20.0, stalled_s=10.0, stalled_sharing_s=8.0),
        warmup("app", "0_2", 0, 30, "running", records=5_000.0, seconds=10.0),
        # Two thirds of this one are no restore, and the last one teaches nothing.
        warmup(
            "app", "1_0", 0, 30, "given up", records=100.0, seconds=30.0, stalled_s=20.0, stalled_rebalancing_s=20.0
        ),
        warmup("app", "1_1", 0, 40, "unknown", records=0.0, seconds=30.0),
        # It was more than two weeks ago.
        warmup("app", "0_0", 0, 39 - 14 * 86_400, "promoted", records=1.0, seconds=10.0),
        # No look saw its lag; it stalled all the time; it advanced for less than a second.
        warmup("app", "2_0", 0, 40, "given up", seconds=30.0),
        warmup("app", "2_1", 0, 40, "promoted", records=9.0, seconds=30.0, stalled_s=30.0),
        warmup("app", "2_2", 0, 40, "promoted", records=9.0, seconds=0.5),
        # Of its subtopology only a name is known, and of the other application nothing but the rate.
        warmup("app", "store_0", 0, 40, "promoted", records=9.0, seconds=3.0),
        warmup("bare", "0_0", 0, 10, "promoted", records=40.0, seconds=10.0, changelogs=None, stalled_sharing_s=None),
        # Half of it with this, half with that.
        warmup("torn", "0_0", 0, 10, "promoted", records=40.0, seconds=8.0)
        | {"stalled_s": 4.0, "stalled_rebalancing_s": 2.0, "stalled_sharing_s": 2.0},
    ]

    def rates(subtopology: int, samples: int, *figures: float, until: int, when: str | None = None) -> Row:
        return {
            "cluster": CLUSTER, "group": "app", "subtopology": subtopology, "changelogs": ["app-log"],
            "samples": samples, "stalls_when": when, "until_ms": at(until),
        } | dict(zip(("low", "median", "high", "stalled_share"), figures, strict=True))  # fmt: skip

    sharing = "sharing: another copy of the same process was restoring in 80 % of the time"
    mixed = "mixed: nothing went with more than half of it"
    rebalancing = "rebalancing: the group was not Stable in 100 % of the time"
    expected = [
        # 100, 300 and 500 records a second; a tenth of the way from the least to the next is 140.
        rates(0, 3, 140.0, 300.0, 460.0, 0.25, when=sharing, until=30),
        rates(1, 1, 10.0, 10.0, 10.0, 2 / 3, when=rebalancing, until=30),
        rates(0, 1, 4.0, 4.0, 4.0, 0.0, until=10) | {"group": "bare", "changelogs": []},
        rates(0, 1, 10.0, 10.0, 10.0, 0.5, when=mixed, until=10) | {"group": "torn", "changelogs": ["torn-log"]},
    ]
    assertDataFrameEqual(restore_rates(frame(spark, WARMUPS, *told)), frame(spark, RESTORE_RATES, *expected))

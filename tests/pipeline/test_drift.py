"""Rack drift by hand: brokers relabelled, topics moved, made anew or made blind, and when it was mended."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas import silver
from pipeline.schemas.gold import RACK_DRIFT
from pipeline.transforms.drift import changes_of_racks, drifting_topics, with_ends
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, at, frame, look, looks, partition, partitions

LOOKS = [look("i", second, second=second) for second in (0, 60, 120, 180)]


def broker(of: Row, number: int, rack: str | None) -> Row:
    return {
        "cluster": CLUSTER, "look": of["look"], "taken_ms": of["taken_ms"], "day": DAY, "broker": number, "rack": rack,
        "rack_state": "unknown" if rack is None else "known", "alive": True,
    }  # fmt: skip


def drift(subject: str, number: int | None, began: int, ended: int | None, *racks: str | None, **more: Any) -> Row:
    before, after = (None if one is None else [*one] for one in racks)
    return {
        "cluster": CLUSTER, "subject": subject, "partition": number, "began_ms": at(began),
        "ended_ms": None if ended is None else at(ended), "before": before, "after": after,
        "lasted_s": float((180 if ended is None else ended) - began), "shares_rack": False, "hour_ms": HOUR_MS,
        "day": DAY,
    } | more  # fmt: skip


def world(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    first, second, third, fourth = LOOKS
    shared = {"replicas": [1, 4, 2]}
    again = {"topic_id": "another", **shared}
    rows = [
        *(partition(of, "still", 0) for of in LOOKS),
        # Others moved it into one rack; two looks later it is back.
        partition(first, "theirs", 0),
        partition(second, "theirs", 0, adding=[4], removing=[3], reassigned_by_us=False, replicas=[1, 4, 2, 3]),
        partition(third, "theirs", 0, **shared),
        partition(fourth, "theirs", 0),
        # No look saw it move.
        *(partition(of, "quick", 0, replicas=[1, 2]) for of in (first, second)),
        *(partition(of, "quick", 0, replicas=[1, 3]) for of in (third, fourth)),
        *(partition(first, "again", 0), *(partition(of, "again", 0, **again) for of in (second, third, fourth))),
        *(partition(of, "blind", 0, **shared) for of in (second, third, fourth)),
        *(partition(of, "grown", 0) for of in LOOKS),
        *(partition(of, "grown", 0, partition=1, **shared) for of in (third, fourth)),
        # The broker was relabelled; its replicas are not told each by itself.
        *(partition(of, "held", 0, replicas=[1, 2]) for of in (first, second)),
        *(partition(of, "held", 0, replicas=[1, 2], broker_racks={1: "a", 2: "c"}) for of in (third, fourth)),
    ]
    brokers = [
        *(broker(of, 2, "b") for of in (first, second)),
        *(broker(of, 2, "c") for of in (third, fourth)),
        *(broker(of, 3, rack) for of, rack in zip(LOOKS, ("c", None, "c", "c"), strict=True)),
    ]
    return partitions(spark, *rows), frame(spark, silver.BROKERS, *brokers)


EXPECTED = [
    drift("topic/theirs", 0, 120, 180, "abc", "aab", shares_rack=True, cause="reassigned by others"),
    drift("topic/theirs", 0, 180, None, "aab", "abc", cause="unknown"),
    drift("topic/quick", 0, 120, None, "ab", "ac", cause="unknown"),
    drift("topic/again", 0, 60, None, "abc", "aab", shares_rack=True, cause="recreated"),
    drift("topic/blind", 0, 60, None, None, "aab", shares_rack=True, cause="created blind"),
    drift("topic/grown", 1, 120, None, None, "aab", shares_rack=True, cause="new partitions"),
    drift("broker/2", None, 120, None, "b", "c", shares_rack=None, cause="relabelled"),
]


def test_what_drifted_and_when_it_was_mended(spark: SparkSession) -> None:
    rows, brokers = world(spark)
    found = with_ends(changes_of_racks(rows, brokers, looks(spark, *LOOKS)), rows, brokers, rows)
    assertDataFrameEqual(found, frame(spark, RACK_DRIFT, *EXPECTED))


def test_only_drifting_topics_need_to_be_lined_up(spark: SparkSession) -> None:
    rows, brokers = world(spark)
    times = looks(spark, *LOOKS)
    topics = drifting_topics(rows, times).collect()
    named = sorted(row["topic"] for row in topics)
    # Racks of "held" changed as well, with its broker: then the topic did not drift.
    assert named == ["again", "blind", "grown", "held", "quick", "theirs"]
    assert not any(row["moved"] for row in topics), "no move ran at the first look"
    few = rows.where(rows["topic"].isin(named))
    assertDataFrameEqual(changes_of_racks(few, brokers, times), changes_of_racks(rows, brokers, times))


def test_what_lasted_before_ends_by_what_is_seen_later(spark: SparkSession) -> None:
    rows, brokers = world(spark)
    open_ = drift("topic/still", 0, -600, None, "aab", "aab", shares_rack=True, cause="unknown", lasted_s=600.0)
    found = with_ends(frame(spark, RACK_DRIFT, open_), rows, brokers, rows)
    ended = open_ | {"ended_ms": at(0), "lasted_s": 600.0}
    assertDataFrameEqual(found, frame(spark, RACK_DRIFT, ended))

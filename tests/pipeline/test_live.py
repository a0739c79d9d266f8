"""When the live runner looks at outcomes and at histories, and that nothing which it puts off is ever forgotten."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.refresh import LookKey, Refreshed, RefreshSettings
from pipeline.jobs.work import Hour
from pipeline.stream import live
from pipeline.stream.live import OUTCOMES_EVERY_MS, Live
from pipeline.tables import Tables

BEGIN_MS = 1_760_000_000_000


def test_outcomes_are_looked_at_at_first_after_acts_and_every_few_minutes(
    spark: SparkSession, delta_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def refresh(_tables: Tables, looks: Sequence[LookKey], *, settings: Any, acted: bool, **_more: Any) -> Refreshed:
        assert settings == RefreshSettings()
        assert len(looks) == 1
        asked.append(acted)
        if len(asked) == 3:
            raise OSError("the disk is full")
        return Refreshed(looks=len(looks))

    monkeypatch.setattr(live, "refresh", refresh)
    following = Live(delta_tables, RefreshSettings(), print, histories_every_ms=0).following()

    def batch(after_ms: int) -> None:
        rows = [("c", "i-1", BEGIN_MS + after_ms)]
        following.telemetry(spark.createDataFrame(rows, "cluster string, look string, taken_ms long"))

    batch(0)  # the first after a start
    batch(60_000)
    following.acted(spark.range(1))
    with pytest.raises(OSError, match="disk"):
        batch(120_000)
    batch(120_000)  # what failed comes again, and so does what it was about
    batch(120_000 + OUTCOMES_EVERY_MS - 1)
    batch(120_000 + OUTCOMES_EVERY_MS)
    assert asked == [True, False, True, True, False, True]


def test_histories_that_were_put_off_are_owed_until_they_stand(
    spark: SparkSession, delta_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a runner that died, and by one that failed in the middle."""
    asked: list[tuple[bool, list[int]]] = []
    caught_up: list[list[int]] = []

    def refresh(
        _tables: Tables, looks: Sequence[LookKey], *, histories: bool, owed: Collection[Hour], **_more: Any
    ) -> Refreshed:
        asked.append((histories, sorted(hour.hour_ms for hour in owed)))
        if len(asked) == 4:
            raise OSError("the disk is full")
        return Refreshed(looks=len(looks), hours=tuple(Hour(look.cluster, look.taken_ms) for look in looks))

    def catch_up(_tables: Tables, owed: Collection[Hour]) -> None:
        caught_up.append(sorted(hour.hour_ms for hour in owed))

    monkeypatch.setattr(live, "refresh", refresh)
    monkeypatch.setattr(live, "catch_up", catch_up)

    def runner(histories_every_ms: int) -> Live:
        return Live(delta_tables, RefreshSettings(), print, histories_every_ms=histories_every_ms)

    def batch(of: Live, hour: int) -> None:
        of.following().telemetry(
            spark.createDataFrame([("c", "i-1", hour)], "cluster string, look string, taken_ms long")
        )

    seldom = runner(3_600_000)
    batch(seldom, 1)
    batch(seldom, 2)
    batch(seldom, 2)
    often = runner(0)  # after a kill
    with pytest.raises(OSError, match="disk"):
        batch(often, 3)
    batch(often, 3)
    batch(often, 3)
    batch(runner(3_600_000), 4)
    runner(0).catch_up()
    runner(0).catch_up()
    assert asked == [
        (False, []), (False, [1]), (False, [1, 2]), (True, [1, 2]), (True, [1, 2]), (True, []), (False, []),
    ]  # fmt: skip
    assert caught_up == [[4], []]

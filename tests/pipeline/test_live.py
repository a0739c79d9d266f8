"""When the live runner looks at outcomes: after every act, and as time goes on, because the aftermath comes later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.refresh import LookKey, Refreshed, RefreshSettings
from pipeline.stream import live
from pipeline.stream.live import OUTCOMES_EVERY_MS, Live
from pipeline.tables import Tables

BEGIN_MS = 1_760_000_000_000


def test_outcomes_are_looked_at_at_first_after_acts_and_every_few_minutes(
    spark: SparkSession, delta_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def refresh(_tables: Tables, looks: Sequence[LookKey], *, settings: Any, acted: bool) -> Refreshed:
        assert settings == RefreshSettings()
        assert len(looks) == 1
        asked.append(acted)
        if len(asked) == 3:
            raise OSError("the disk is full")
        return Refreshed(looks=len(looks))

    monkeypatch.setattr(live, "refresh", refresh)
    following = Live(delta_tables, RefreshSettings(), print).following()

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

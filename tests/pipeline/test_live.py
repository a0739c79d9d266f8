"""When the live runner works out histories, and that nothing which it puts off is ever forgotten."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from pyspark.sql import SparkSession

from agent.errors import ClusterUnreachable
from pipeline.jobs.carried import Carried
from pipeline.jobs.refresh import LookKey, Refreshed, RefreshSettings
from pipeline.jobs.work import Hour
from pipeline.stream import live
from pipeline.stream.live import Live
from pipeline.tables import Tables


def test_histories_that_were_put_off_are_owed_until_they_stand(
    spark: SparkSession, delta_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a runner that died, and by one that failed in the middle."""
    asked: list[tuple[bool, bool, list[int]]] = []
    caught_up: list[list[int]] = []

    def refresh(
        _tables: Tables,
        looks: Sequence[LookKey],
        *,
        histories: bool,
        outcomes: bool,
        owed: Collection[Hour],
        settings: RefreshSettings,
        carried: Carried,
    ) -> Refreshed:
        assert carried is not None
        assert settings == RefreshSettings()
        asked.append((histories, outcomes, sorted(hour.hour_ms for hour in owed)))
        if len(asked) == 4:
            raise OSError("the disk is full")
        return Refreshed(looks=len(looks), hours=tuple(Hour(look.cluster, look.taken_ms) for look in looks))

    def catch_up(_tables: Tables, owed: Collection[Hour], _settings: RefreshSettings) -> None:
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
        (False, True, []), (False, False, [1]), (False, False, [1, 2]),
        (True, True, [1, 2]), (True, True, [1, 2]), (True, True, []),
        (False, True, []),
    ]  # fmt: skip
    assert caught_up == [[4], []]


def test_what_was_learned_is_given_away_after_the_first_batch_and_with_histories_and_tried_again(
    spark: SparkSession, delta_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    told: list[str] = []

    def publish() -> str:
        given.append("asked")
        if len(given) == 1:
            raise ClusterUnreachable("No broker answers", why="it is night", todo="Wait.")
        return "3 records written"

    monkeypatch.setattr(live, "refresh", lambda *_given, **_named: Refreshed(looks=1))
    monkeypatch.setattr(live, "catch_up", lambda *_given: None)
    of = Live(delta_tables, RefreshSettings(), told.append, histories_every_ms=3_600_000, publish=publish)

    def batch() -> None:
        of.following().telemetry(spark.createDataFrame([("c", "i-1", 1)], "cluster string, look string, taken_ms long"))

    batch()  # nobody answers
    batch()
    batch()
    of.catch_up()
    weights = [line for line in told if line.startswith("weights: ")]
    assert len(given) == len(weights) == 3
    assert weights[0].startswith("weights: No broker answers: it is night")
    assert weights[1:] == ["weights: 3 records written"] * 2

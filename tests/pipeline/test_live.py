"""When the live runner works out histories, and that nothing which it puts off is ever forgotten."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest
from pyspark.sql import SparkSession

from agent.errors import ClusterUnreachable
from pipeline.jobs.incremental import IncrementalSums, LookId
from pipeline.jobs.refresh import RefreshSettings, RefreshSummary
from pipeline.jobs.touched_looks import LookKey
from pipeline.jobs.work import ClusterHour
from pipeline.stream import live
from pipeline.stream.live import LiveRefresh
from pipeline.tables import TableStore

ROWS = "cluster string, look string, taken_ms long, data string, base string, kind string, n int"


def test_histories_that_were_put_off_are_owed_until_they_stand(
    spark: SparkSession, delta_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a runner that died, and by one that failed in the middle."""
    asked: list[tuple[bool, bool, list[int]]] = []
    caught_up: list[list[int]] = []

    def refresh(
        _tables: TableStore,
        looks: Sequence[LookKey],
        *,
        histories: bool,
        outcomes: bool,
        pending: Collection[ClusterHour],
        settings: RefreshSettings,
        incremental: IncrementalSums,
        look_bytes: Mapping[LookId, int],
    ) -> RefreshSummary:
        assert look_bytes == {LookId("c", "i-1"): 2}
        assert incremental is not None
        assert settings == RefreshSettings()
        asked.append((histories, outcomes, sorted(hour.hour_ms for hour in pending)))
        if len(asked) == 4:
            raise OSError("the disk is full")
        return RefreshSummary(looks=len(looks), hours=tuple(ClusterHour(look.cluster, look.taken_ms) for look in looks))

    def catch_up(_tables: TableStore, pending: Collection[ClusterHour], _settings: RefreshSettings) -> None:
        caught_up.append(sorted(hour.hour_ms for hour in pending))

    monkeypatch.setattr(live, "refresh", refresh)
    monkeypatch.setattr(live, "catch_up", catch_up)

    def runner(histories_every_ms: int) -> LiveRefresh:
        return LiveRefresh(delta_tables, RefreshSettings(), print, histories_every_ms=histories_every_ms)

    def batch(of: LiveRefresh, hour: int) -> None:
        of.on_telemetry(spark.createDataFrame([("c", "i-1", hour, "{}", None, "look", 0)], ROWS), more=lambda: False)

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
    spark: SparkSession, delta_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    told: list[str] = []

    def publish() -> str:
        given.append("asked")
        if len(given) == 1:
            raise ClusterUnreachable("No broker answers", why="it is night", todo="Wait.")
        return "3 records written"

    monkeypatch.setattr(live, "refresh", lambda *_given, **_named: RefreshSummary(looks=1))
    monkeypatch.setattr(live, "catch_up", lambda *_given: None)
    of = LiveRefresh(delta_tables, RefreshSettings(), told.append, histories_every_ms=3_600_000, publish=publish)

    def batch() -> None:
        of.on_telemetry(spark.createDataFrame([("c", "i-1", 1, "{}", None, "look", 0)], ROWS), more=lambda: False)

    batch()  # no broker answers
    batch()
    batch()
    of.catch_up()
    weights = [line for line in told if line.startswith("weights: ")]
    assert len(given) == len(weights) == 3
    assert weights[0].startswith("weights: No broker answers: it is night")
    assert weights[1:] == ["weights: 3 records written"] * 2


def test_a_look_of_which_the_end_still_comes_is_put_off_once(
    spark: SparkSession, delta_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also over a kill: the next runner computes it, whatever the time of the looks that it reads first."""
    asked: list[dict[str, int]] = []

    def refresh(
        _tables: TableStore, looks: Sequence[LookKey], *, look_bytes: Mapping[LookId, int] | None, **_named: object
    ) -> RefreshSummary:
        assert look_bytes is None or {look.look for look in look_bytes} == {look.look for look in looks}
        asked.append({look.look: look_bytes[LookId(*look[:2])] if look_bytes else 0 for look in looks})
        return RefreshSummary(looks=len(looks))

    monkeypatch.setattr(live, "refresh", refresh)
    monkeypatch.setattr(live, "catch_up", lambda *_given: None)

    def runner() -> LiveRefresh:
        return LiveRefresh(delta_tables, RefreshSettings(), print, histories_every_ms=3_600_000)

    def batch(of: LiveRefresh, *events: tuple[str, str, int], more: bool, taken_ms: int = 5) -> None:
        rows = [("c", look, taken_ms, "{}", None, kind, n) for look, kind, n in events]
        of.on_telemetry(spark.createDataFrame(rows, ROWS), more=lambda: more)

    of = runner()
    batch(of, ("i-1", "topic", 0), more=True)
    assert asked == []
    batch(of, ("i-1", "look", 1), ("i-1", "report", 2), ("i-2", "topic", 0), more=True)
    batch(of, ("i-3", "topic", 0), ("i-3", "look", 1), ("i-3", "report", 2), more=True)
    batch(of, ("i-4", "topic", 0), more=False)
    assert asked == [{"i-1": 6}, {"i-2": 2, "i-3": 6}, {"i-4": 2}]
    batch(of, ("i-5", "topic", 0), more=True)
    of.catch_up()
    batch(of, ("i-6", "topic", 0), more=True)
    batch(runner(), ("i-7", "topic", 0), more=True, taken_ms=10**12)  # after a kill
    runner().catch_up()
    runner().catch_up()
    assert asked[3:] == [{"i-5": 2}, {"i-6": 0}, {"i-7": 0}]

"""What bronze can no longer rebuild stays: a refresh and late events change no row of silver and gold that it lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from agent.telemetry.events import EventKind, TelemetryEvent
from agent.telemetry.looks import CycleInputs
from pipeline.jobs.refresh import RefreshSettings, _events, covered_hours, refresh
from pipeline.jobs.touched_looks import LookKey, kept_looks, looks_of_days, without_kept
from pipeline.jobs.work import ClusterHour, RefreshWork, between
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import GOLD, LEDGER, OUTCOMES, PARTITION_TRAFFIC
from pipeline.schemas.silver import LOOKS, SILVER
from pipeline.schemas.table import TableSpec, day_of
from pipeline.stream.live import LiveRefresh
from pipeline.tables import Format, TableStore, WriterBatch, named
from pipeline.transforms.prices import PriceRow
from pipeline.transforms.spans import HOUR_MS, LAST_MS
from tests.builders import TAKEN_MS
from tests.pipeline import silver_rows
from tests.pipeline.contents import rounded
from tests.pipeline.histories import events_of, recorded, shop, with_tasks
from tests.pipeline.look_events import telemetry

MakeTables = Callable[[str, Format], TableStore]
DAY_MS = 24 * HOUR_MS
DAYS = tuple(day_of(TAKEN_MS + number * DAY_MS) for number in range(4))
MINUTES = tuple(1440 * day + minute for day in range(4) for minute in (5, 6, 7, 8))
"""Four looks on each day, of which the second hour has one."""
CLUSTER = "test-cluster"
WAIT_S = 1_800
FAR_MS = 4_000_000_000_000
"""A vacuum is due."""
OLD, NEW = (RefreshSettings(prices=(PriceRow("a", "b", usd), PriceRow("b", "a", usd))) for usd in (0.01, 0.07))
MADE = (*SILVER, *GOLD)
Rows = dict[str, dict[str, list[str]]]
"""Table -> day -> rows."""


@cache
def every_look() -> tuple[CycleInputs, ...]:
    return tuple(recorded(lambda at: with_tasks(shop(swapped=at < 2_000, generation=4 + (at > 2_000))), MINUTES))


def day_events(day: int, cluster: str = CLUSTER) -> list[TelemetryEvent]:
    return [event._replace(cluster=cluster) for event in events_of(every_look()[4 * day : 4 * day + 4])]


def appended(tables: TableStore, events: Sequence[TelemetryEvent], number: int, day: str | None = None) -> None:
    """Append to bronze, at the time of the looks or on another day."""
    rows = telemetry(tables.spark, events)
    tables.append(TELEMETRY, rows.withColumn("day", F.lit(day)) if day else rows, WriterBatch("test", number))


def strange(taken_ms: int, look: str = "0000ffff-1", cluster: str = CLUSTER) -> TelemetryEvent:
    """An event of a stranger: its time is any."""
    (event, *_) = day_events(3, cluster)
    return event._replace(look=look, taken_ms=taken_ms)


def by_day(tables: TableStore, of: Sequence[TableSpec] = MADE) -> Rows:
    found: Rows = {}
    for table in of:
        days = found[table.name] = {}
        for row in tables.read(table).collect():
            fields = row.asDict(recursive=True)
            # An hour is an hour of its day, and the edge of what is kept may be within a day.
            at = fields["day"] + (f" {fields['hour_ms'] % DAY_MS // HOUR_MS:02}" if "hour_ms" in fields else "")
            days.setdefault(at if "day" in fields else "", []).append(json.dumps(rounded(fields), sort_keys=True))
    return {name: {day: sorted(rows) for day, rows in days.items()} for name, days in found.items()}


def part(rows: Rows, first: str = "", end: str = "9") -> Rows:
    return {name: {day: of for day, of in days.items() if first <= day < end} for name, days in rows.items()}


# --- which looks a refresh names ------------------------------------------------------------------------------------

Days = str
"""Days of October 2025 by cluster, such as ``c 9 10, d 11``."""


def cluster_days(told: Days) -> list[tuple[str, str]]:
    found = []
    for of in filter(None, told.split(", ")):
        cluster, *days = of.split()
        found += [(cluster, f"2025-10-{int(day):02}") for day in days]
    return found


def noon(day: str) -> int:
    return TAKEN_MS - TAKEN_MS % DAY_MS + (int(day[-2:]) - 9) * DAY_MS + 12 * HOUR_MS


def event(cluster: str, taken_ms: int, look: str | None = None) -> TelemetryEvent:
    name = look or f"0000abcd-{day_of(taken_ms)}"
    return TelemetryEvent(
        v=1, kind=EventKind.REPORT, subject="topic/t", cluster=cluster, look=name, n=0, taken_ms=taken_ms, data={}
    )


def told(tables: TableStore, bronze: Days, silver: Days, gold: Days, outcomes: Days = "") -> None:
    """A root with a look at noon of each of these days."""
    spark = tables.spark
    if bronze:
        appended(tables, [event(cluster, noon(day)) for cluster, day in cluster_days(bronze)], 0)
    seen = [
        silver_rows.look("0000abcd", 0, second=0, cluster=cluster, day=day) | {"taken_ms": noon(day)}
        for cluster, day in cluster_days(silver)
    ]
    if seen:
        tables.replace_where(LOOKS, silver_rows.looks(spark, *seen))
    hours = [hour(cluster, noon(day)) for cluster, day in cluster_days(gold)]
    if hours:
        tables.replace_where(PARTITION_TRAFFIC, silver_rows.frame(spark, PARTITION_TRAFFIC, *hours))
    done = [
        {"cluster": cluster, "proposal": day, "kind": "reassign", "state": "done", "day": day}
        for cluster, day in cluster_days(outcomes)
    ]
    if done:
        tables.replace_where(OUTCOMES, silver_rows.frame(spark, OUTCOMES, *done))


def hour(cluster: str, hour_ms: int, seconds: float = 60.0, **more: object) -> silver_rows.Row:
    fields = {"cluster": cluster, "hour_ms": hour_ms, "topic": "t", "partition": 0, "seconds": seconds}
    return fields | {"day": day_of(hour_ms)} | more


def days_named(looks: Iterable[LookKey] | None) -> list[tuple[str, str]] | None:
    return None if looks is None else sorted((one.cluster, day_of(one.taken_ms)) for one in looks)


@pytest.mark.parametrize(
    ("days", "cut", "wanted"),
    [
        pytest.param(("c 9 10 11", "c 9 10 11", "c 9 10 11"), "", None, id="nothing is lost"),
        pytest.param(("c 9 10 11", "", ""), "", None, id="nothing is computed yet"),
        pytest.param(("", "", ""), "", None, id="nothing at all"),
        pytest.param(("c 9 10 11", "c 10 11", "c 11"), "", None, id="bronze reaches back further"),
        pytest.param(("c 9 10 11", "c 9 10 11", "c 9 10 11"), "2025-10-01", None, id="nothing was as old as what went"),
        pytest.param(("c 10 11", "c 9 10 11", "c 9 10 11"), "2025-10-10", "c 11", id="bronze alone is cut"),
        pytest.param(("c 10 11", "c 10 11", "c 9 10 11"), "2025-10-10", "c 11", id="gold reaches back further"),
        pytest.param(("c 10 11", "c 10 11", "c 10 11"), "2025-10-10", "c 11", id="all are cut on one day"),
        pytest.param(("c 10 11 12", "c 11 12", "c 9 11 12"), "2025-10-10", "c 11 12", id="silver is cut further"),
        pytest.param(("c 10 11 12", "", "c 9 10"), "2025-10-10", "c 11 12", id="silver is gone"),
        pytest.param(("c 10 11 12", "c 9 10 11", "c 9 10 11"), "", "c 11 12", id="cut by other hands"),
        pytest.param(("c 10 11 12", "", "c 9"), "", "c 11 12", id="cut by other hands, gold alone is left"),
        pytest.param(("", "c 9 10", "c 9 10"), "", "", id="bronze is empty"),
        pytest.param(("", "", "c 9 10"), "2025-10-11", "", id="bronze and silver are empty"),
        pytest.param(("c 9 10, d 12", "c 9 10, d 11", "c 9 10, d 11"), "", "c 9 10", id="another cluster's is gone"),
        pytest.param(("c 9 10", "c 9 10", "c 9 10, e 10"), "", "c 9 10", id="gold of a cluster that bronze never had"),
    ],
)
def test_a_refresh_names_the_looks_that_bronze_has_whole_and_takes_all_where_nothing_is_lost(
    make_tables: MakeTables, days: tuple[Days, Days, Days], cut: str, wanted: Days | None
) -> None:
    """Days of bronze, silver and gold, and the first one that a vacuum kept."""
    tables = make_tables("tables", "parquet")
    told(tables, *days)
    if cut:
        tables._remember_cut("bronze", cut)
    assert days_named(kept_looks(tables)) == (None if wanted is None else cluster_days(wanted))


def test_times_of_strangers_change_nothing_and_days_that_are_asked_for_are_held_to_the_same(
    make_tables: MakeTables,
) -> None:
    tables = make_tables("tables", "parquet")
    told(tables, "c 10 11 12", "c 10 11 12", "c 9 10 11 12")
    tables._remember_cut("bronze", "2025-10-10")
    ends = [event("c", 1, "x-1"), event("c", LAST_MS, "x-2"), event("c", noon("2025-10-09"), "x-3")]
    appended(tables, ends, 1, "2025-10-12")
    own = [("c", "2025-10-11"), ("c", "2025-10-12")]
    assert days_named(kept_looks(tables)) == [*own, ("c", "9999-12-31")]
    days = ("1970-01-01", "2025-10-09", "2025-10-10", "2025-10-12", "9999-12-31", "0001-01-01")
    assert days_named(looks_of_days(tables, days)) == [own[1], ("c", "9999-12-31")]
    assert looks_of_days(tables, days[1:3]) == ()
    # What a stranger put into silver is no day that bronze lost.
    late = [
        silver_rows.look("x", 9, second=0, cluster="c", complete=False) | {"taken_ms": LAST_MS, "day": "9999-12-31"}
    ]
    late.append(late[0] | {"look": "x-8", "taken_ms": noon("2025-10-20"), "day": "2025-10-20"})
    rows = silver_rows.looks(tables.spark, *late)
    tables.replace_where(LOOKS, rows, {"day": ["2025-10-20", "9999-12-31"]})
    assert days_named(kept_looks(tables)) == [*own, ("c", "9999-12-31")]


def test_outcomes_alone_are_not_computed_anew_without_looks(make_tables: MakeTables) -> None:
    tables = make_tables("tables", "parquet")
    told(tables, "", "", "", "c 9")
    assert kept_looks(tables) == ()
    told(tables, "c 11", "", "")
    assert days_named(kept_looks(tables)) == [("c", "2025-10-11")], "and they take no looks away"


def test_looks_that_silver_has_whole_stay_and_hours_of_which_silver_lost_looks_do(make_tables: MakeTables) -> None:
    tables = make_tables("tables", "parquet")
    ten, eleven = "2025-10-10", "2025-10-11"
    told(tables, "", "c 10 11", "")
    keys = [LookKey("c", "0000abcd-0", noon(day)) for day in (ten, eleven)]
    late = LookKey("c", "0000abcd-7", noon(ten))
    assert without_kept(tables, [*keys, late]) == [*keys, late], "bronze is as it was"
    tables._remember_cut("bronze", ten)
    assert without_kept(tables, [*keys, late]) == [keys[1], late]

    begin = noon(ten)
    seen = [
        silver_rows.look("i", number, second=0, cluster="c", day=ten)
        | {"taken_ms": begin + second * 1_000, "monotonic_ms": 5_000_000 + second * 1_000}
        for number, second in enumerate((60, 120, 4_000))
    ]
    tables.replace_where(LOOKS, silver_rows.looks(tables.spark, *seen))
    hours = [ClusterHour("c", begin + number * HOUR_MS) for number in (-2, -1, 0, 1, 24)]
    gold = [
        hour("c", hours[1].hour_ms),  # silver has no look of it
        hour("c", hours[2].hour_ms, 60.0, gap_seconds=3_480.0),
        hour("c", hours[3].hour_ms, 300.0, gap_seconds=200.0),  # of which the pair to its look gives 400 s
    ]
    tables.replace_where(PARTITION_TRAFFIC, silver_rows.frame(tables.spark, PARTITION_TRAFFIC, *gold))
    work = RefreshWork(tables)
    assert covered_hours(work, reversed(hours)) == hours
    tables._remember_cut("silver", ten)
    assert covered_hours(work, hours) == [hours[2], hours[4]]


def test_rows_are_replaced_at_the_place_of_their_own_look_alone(
    make_tables: MakeTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same id is there in another cluster and on another day, and bronze need not have those any more."""
    tables = make_tables("tables", "parquet")
    ten, eleven = noon("2025-10-10"), noon("2025-10-11")
    events = [event(cluster, taken_ms, "x-1") for cluster in "cd" for taken_ms in (ten, eleven)]
    appended(tables, [*events, event("d", eleven, "x-2")], 0)
    touched = [LookKey("c", "x-1", ten), LookKey("d", "x-2", eleven)]
    spots = {(one.cluster, one.look, day_of(one.taken_ms)) for one in touched}
    every = [
        (cluster, look, day) for cluster in "cd" for look in ("x-1", "x-2") for day in ("2025-10-10", "2025-10-11")
    ]
    places = tables.spark.createDataFrame(every, "cluster string, look string, day string")

    def found() -> list[set[tuple[str, ...]]]:
        events = _events(RefreshWork(tables), touched, {}, 0)
        assert events.telemetry is not None
        read = events.telemetry.select("cluster", "look", F.date_format(F.timestamp_millis("taken_ms"), "yyyy-MM-dd"))
        return [{tuple(row) for row in rows.collect()} for rows in (read, places.where(str(named(events.where))))]

    assert found() == [spots, spots]
    monkeypatch.setattr("pipeline.jobs.refresh.MOST_LOOKS", 1)
    read, replaced = found()
    assert read == spots | {("d", "x-1", "2025-10-11")}, "whole days, cluster by cluster"
    assert replaced == {(c, look, day) for c, look, day in every if (c, day) in {(c, day) for c, _, day in read}}
    tables._remember_cut("bronze", "2025-10-10")
    assert found() == [spots, spots], "bronze may lack looks of that day"


def test_the_end_of_all_calendars_is_after_every_day(spark: SparkSession) -> None:
    rows = silver_rows.looks(spark, silver_rows.look("i", 1, second=0))
    assert between(rows, 0, LAST_MS + DAY_MS).count() == 1


# --- the whole way --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    tables = TableStore(spark, str(tmp_path_factory.mktemp("filled")))
    for day in range(4):
        appended(tables, day_events(day), day)
    refresh(tables, settings=OLD)
    return tables


@pytest.fixture(scope="module")
def before(filled: TableStore) -> Rows:
    rows = by_day(filled)
    days = {day[:10] for day in rows[LEDGER.name]}
    assert days == set(DAYS), "gaps between days are booked"
    assert min(len(rows[table.name]) for table in (LOOKS, PARTITION_TRAFFIC, LEDGER)) >= 4
    return rows


@pytest.fixture(scope="module")
def at_new_prices(filled: TableStore, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    tables = copied(filled, tmp_path_factory.mktemp("new"))
    assert kept_looks(tables) is None
    refresh(tables, settings=NEW)
    return by_day(tables)


def copied(tables: TableStore, to: Path) -> TableStore:
    shutil.copytree(tables.root, to, dirs_exist_ok=True)
    return TableStore(tables.spark, str(to))


@pytest.fixture
def root(filled: TableStore, tmp_path: Path) -> TableStore:
    return copied(filled, tmp_path / "root")


def cut(tables: TableStore, of: Sequence[TableSpec], day: str) -> None:
    for table in of:
        tables.vacuum(table, FAR_MS, day)


def edge(day: int, minute: int) -> str:
    """The hour of that minute of that day, as `by_day` has it."""
    at = TAKEN_MS + day * DAY_MS + minute * 60_000
    return f"{day_of(at)} {at % DAY_MS // HOUR_MS:02}"


@pytest.mark.drill
@pytest.mark.timeout(WAIT_S)
def test_gold_that_is_older_than_bronze_and_silver_stays_and_what_is_refreshed_is_exact(
    root: TableStore, before: Rows, at_new_prices: Rows
) -> None:
    """With a time of long ago and one of the end of all calendars in events of today."""
    appended(root, [strange(1), strange(LAST_MS, "0000ffff-2")], 9, DAYS[3])
    cut(root, [TELEMETRY, *SILVER], DAYS[2])
    looks = kept_looks(root)
    assert days_named(looks) == [(CLUSTER, DAYS[3])] * 4 + [(CLUSTER, "9999-12-31")]
    refresh(root, looks, settings=NEW)
    now, first = by_day(root), edge(2, 8)  # the hour before it saw looks that silver has no more
    for table in GOLD:
        assert part(now, "", first)[table.name] == part(before, "", first)[table.name], table.name
        assert part(now, first)[table.name] == part(at_new_prices, first)[table.name], table.name
    for table in SILVER:
        assert part(now, DAYS[2], "9999")[table.name] == part(before, DAYS[2])[table.name], table.name
    assert before[LEDGER.name] != at_new_prices[LEDGER.name]


@pytest.mark.drill
@pytest.mark.timeout(WAIT_S)
def test_late_events_of_deleted_days_change_no_row_that_is_there(root: TableStore, before: Rows) -> None:
    """Of a look of which silver has all, of one that silver has no more, and of one that was never there."""
    cut(root, [TELEMETRY], DAYS[3])
    cut(root, SILVER, DAYS[1])
    live = LiveRefresh(root, OLD, lambda _: None, histories_every_ms=0)
    for number, day in enumerate((2, 0, 1)):
        (first, *_), new = day_events(day), strange(TAKEN_MS + day * DAY_MS + 600_000, f"0000ffff-{number}")
        appended(root, [first, new], 20 + number, DAYS[3])
        live.on_telemetry(root.read(TELEMETRY).where(F.col("look").isin(first.look, new.look)), more=lambda: False)
    now = by_day(root)
    for table in GOLD:
        assert now[table.name] == before[table.name], table.name
    for table in SILVER:
        there = {row for rows in now[table.name].values() for row in rows}
        assert {row for rows in part(before, DAYS[1])[table.name].values() for row in rows} <= there, table.name

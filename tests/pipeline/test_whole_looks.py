"""Histories recorded by changes: row for row what the same history gives that was recorded in full, or unknown."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyspark.sql import functions as F

from agent.loop import CycleStages, run_cycle
from agent.record.files import read_events
from agent.record.recorder import CycleRecorder, RecordPlan
from agent.telemetry.changes import FullLook, LookHead
from agent.telemetry.events import MOST_LINE_BYTES, EventKind, TelemetryEvent, to_lines
from agent.telemetry.looks import CycleInputs, observation_rows
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation, RawPartition, RawTopic
from assignors.problem import TopicPartition
from pipeline.backtest.look import EventRow, looks_of
from pipeline.backtest.strategies import chosen
from pipeline.jobs.backtest import BacktestRequest, run_backtest
from pipeline.jobs.fleet import plan_looks
from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.jobs.touched_looks import LookKey, standing_on
from pipeline.schemas.backtest import UNITS
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.fleet import PLANS
from pipeline.schemas.gold import GOLD
from pipeline.schemas.silver import LOOKS, SILVER
from pipeline.stream.live import LiveRefresh
from pipeline.tables import Format, TableStore, WriterBatch
from pipeline.transforms.look_rows import BronzeEvent, SilverRow, rows_of_look
from pipeline.transforms.looks import look_rows, silver_table
from pipeline.transforms.prices import PriceRow
from pipeline.transforms.whole_looks import StandingEvent, _whole, whole_looks, whole_rows
from tests.pipeline.contents import contents
from tests.pipeline.histories import FREE, flowing, shop, with_tasks
from tests.pipeline.look_events import telemetry
from tests.record.observations import OBSERVATIONS
from tests.record.test_telemetry import SMALL
from tests.recorded_looks import observation_to_events

MakeTables = Callable[[str, Format], TableStore]
WAITS = "it stands on a full look of which events are missing; looks are known again from the next full look on"
REPLICAS = (1_000_000_001, 1_000_000_002, 1_000_000_003)
SETTINGS = RefreshSettings(prices=(PriceRow("a", "b", 0.01),))


# --- one look, without Spark -----------------------------------------------------------------------------------------


def rows_of(events: Iterable[TelemetryEvent]) -> list[StandingEvent]:
    """The events as bronze has them."""
    rows = []
    for line in (json.loads(line) for event in events for line in to_lines(event)):
        part = f"/{line['data']['part']}" if line["kind"] == EventKind.FRAGMENT else ""
        name = f"{line['cluster']}/{line['look']}/{line['n']}{part}"
        fields = {field: line[field] for field in StandingEvent._fields[1:] if field != "data"}
        rows.append(StandingEvent(event_id=name, data=json.dumps(line["data"]), **fields))
    return rows


def by_number(rows: Iterable[StandingEvent]) -> dict[int, list[StandingEvent]]:
    found: dict[int, list[StandingEvent]] = {}
    for row in rows:
        found.setdefault(row.n, []).append(row)
    return found


def silver_of(rows: Sequence[StandingEvent]) -> tuple[SilverRow, ...]:
    names = BronzeEvent._fields
    return rows_of_look(BronzeEvent(**{name: getattr(row, name) for name in names}) for row in rows)


def both(full: Observation, now: Observation) -> tuple[list[StandingEvent], list[StandingEvent], list[StandingEvent]]:
    """The full look, the next one by changes, and the same in full."""
    base = FullLook(LookHead(full.cluster_id, "l-1", full.taken_ms))
    first = rows_of(base.events(observation_rows(full, Memory(), Limits())))
    head = LookHead(now.cluster_id, "l-2", now.taken_ms)
    changed = rows_of(base.changed_events(head, observation_rows(now, Memory(), Limits())))
    return first, changed, rows_of(observation_to_events(now, Memory(), Limits(), look="l-2"))


def as_events(rows: Iterable[StandingEvent]) -> list[tuple[Any, ...]]:
    return sorted((row.event_id, *row[2:-1], json.loads(row.data)) for row in rows)


@settings(max_examples=30, deadline=None)
@given(OBSERVATIONS, OBSERVATIONS)
def test_the_rows_of_a_look_by_changes_are_those_of_the_look_in_full(full: Observation, now: Observation) -> None:
    now = replace(now, cluster_id=full.cluster_id, topics=(*full.topics, *now.topics), groups=full.groups)
    first, changed, whole = both(full, now)
    assert as_events(whole_rows(changed, by_number(first))) == as_events(whole)


def test_an_event_in_fragments_is_kept_moved_and_missed() -> None:
    ends = {TopicPartition("huge", number): number for number in range(30_000)}
    huge = replace(SMALL, topics=(RawTopic("huge", "id", False, (), None),), end_offsets=ends)
    first, changed, _ = both(huge, huge)
    assert sum(row.kind == EventKind.FRAGMENT for row in first) > 1
    assert as_events(whole_rows(changed, by_number(first))) == as_events(
        row._replace(event_id=row.event_id.replace("l-1", "l-2"), look="l-2") for row in first
    )
    moved = replace(huge, end_offsets={tp: end + 1 for tp, end in ends.items()})
    first, changed, whole = both(huge, moved)
    assert sum(row.kind == EventKind.FRAGMENT for row in changed) == 0
    assert silver_of(whole_rows(changed, by_number(first))) == silver_of(whole)
    lacking = [row for row in first if row is not next(row for row in first if row.kind == EventKind.FRAGMENT)]
    (row,) = silver_of(whole_rows(changed, by_number(lacking)))
    assert row.row == {"complete": False, "full": None, "problem": WAITS}


def test_an_event_that_is_longer_than_a_record_is_read_by_backtest_and_fleet_as_by_silver() -> None:
    """Joined and moved it is one row again, of a length that no record has."""
    ends = {TopicPartition("huge", number): 10**14 for number in range(30_000)}
    partitions = tuple(RawPartition(number, 1, REPLICAS, REPLICAS, ()) for number in range(30_000))
    huge = replace(SMALL, topics=(RawTopic("huge", "id", False, partitions, None),), end_offsets=ends)
    moved = replace(huge, end_offsets={tp: end + 1 for tp, end in ends.items()})
    first, changed, _ = both(huge, moved)
    rows = whole_rows(changed, by_number(first))
    assert max(len(row.data) for row in rows) > MOST_LINE_BYTES
    (look,) = looks_of(EventRow(**{name: getattr(row, name) for name in EventRow._fields}) for row in rows)
    assert isinstance(look, CycleInputs), look
    assert look.observation.end_offsets == moved.end_offsets


def test_kept_events_of_something_else_make_a_look_unknown_and_nothing_else() -> None:
    first, changed, _ = both(SMALL, SMALL)
    for data in ("7", "[]", "{}", '{"part":0,"parts":1,"runs":[{"n":3,"of":3,"events":9,"deltas":[1,2,3,4,5,6]}]}'):
        spoilt = [row._replace(data=data) if row.kind == EventKind.KEPT else row for row in changed]
        (row,) = silver_of(whole_rows(spoilt, by_number(first)))
        assert row.table == "looks"
        assert (row.row["complete"], row.row["full"]) == (False, None)
        assert row.row["problem"]


def batches_of(first: list[StandingEvent], changed: list[StandingEvent]) -> list[pa.RecordBatch]:
    """A full look and the one that stands on it, as a task of Spark gets them."""
    schema = [*StandingEvent._fields, "base", "turn"]
    rows = [row._asdict() | {"base": "l-1", "turn": turn} for turn, of in enumerate((first, changed)) for row in of]
    return [pa.RecordBatch.from_pylist([{name: row[name] for name in schema} for row in rows])]


DEEP = "[" * 980 + "]" * 980


def one_run(**changed: object) -> str:
    """The data of a kept event that keeps one event, but for what is changed."""
    return json.dumps({"part": 0, "parts": 1, "runs": [{"n": 0, "of": 0, "events": 1, **changed}]})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(DEEP, id="nested deeper than Python follows"),
        pytest.param('{"part":0,"parts":1,"runs":' + DEEP + "}", id="nested deep inside"),
        pytest.param(one_run(n=2**70), id="a number of 70 bits"),
        pytest.param(one_run(n=2**31), id="a number of 32 bits"),
        pytest.param(one_run(n=-1), id="a number below zero"),
        pytest.param(one_run(of=2**70, events=2**70), id="a far event"),
        pytest.param(one_run(events=math.inf), id="infinitely many"),
        pytest.param(one_run(events=math.nan), id="not a number of events"),
        pytest.param(one_run(deltas=[2**70]), id="a far delta"),
        pytest.param(one_run(deltas=["\ud800"]), id="a text"),
        pytest.param('{"\\ud800":"\\u0000"}', id="odd names"),
        pytest.param("9" * 5_000, id="5,000 digits"),
    ],
)
def test_no_kept_event_ends_the_task_that_reads_it(data: str) -> None:
    first, changed, _ = both(SMALL, SMALL)
    spoilt = [row._replace(data=data) if row.kind == EventKind.KEPT else row for row in changed]
    whole = [StandingEvent(**row) for batch in _whole(iter(batches_of(first, spoilt))) for row in batch.to_pylist()]
    assert whole == spoilt, "the look stays as it came"
    (row,) = silver_of(whole)
    assert (row.table, row.row["complete"]) == ("looks", False)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"data": DEEP}, id="nested deep"),
        pytest.param({"data": "[7]"}, id="a list"),
        pytest.param({"data": "7"}, id="a number"),
        pytest.param({"kind": EventKind.FRAGMENT, "data": "[7]"}, id="a fragment that is a list"),
        pytest.param({"kind": EventKind.FRAGMENT, "data": "{}"}, id="a fragment without its fields"),
        pytest.param(
            {"kind": EventKind.FRAGMENT, "data": '{"part":null,"parts":1,"text":"x"}'}, id="a part that is none"
        ),
        pytest.param({"kind": EventKind.FRAGMENT, "data": '{"part":0,"parts":1e999,"text":"x"}'}, id="infinite parts"),
        pytest.param(
            {"kind": EventKind.FRAGMENT, "data": json.dumps({"part": 0, "parts": 1, "text": DEEP})}, id="deep"
        ),
        pytest.param({"kind": "of a newer rackwise"}, id="another kind"),
    ],
)
def test_no_event_of_the_full_look_ends_the_task_that_moves_it(change: dict[str, str]) -> None:
    ends = {TopicPartition("t", 0): 5}
    now = replace(SMALL, topics=(RawTopic("t", "id", False, (), None),), end_offsets=ends)
    first, changed, _ = both(now, replace(now, end_offsets={TopicPartition("t", 0): 6}))
    spoilt = [row._replace(**change) if row.kind == EventKind.TOPIC else row for row in first]
    assert spoilt != first
    whole = [StandingEvent(**row) for batch in _whole(iter(batches_of(spoilt, changed))) for row in batch.to_pylist()]
    (row,) = silver_of(whole)
    assert (row.table, row.row["complete"]) == ("looks", False)


# --- a history, into silver and gold ---------------------------------------------------------------------------------

Told = dict[str, list[TelemetryEvent]]
"""Look -> its events."""


def recorded(folder: Path, full_every_ms: int, looks: int = 10) -> Told:
    """A history as an agent writes it that restarts before its seventh look: a look a minute."""
    events: list[TelemetryEvent] = []
    for number in range(looks):
        if number in (0, 6):
            instance, memory, stages = f"0000000{'ab'[number > 0]}", Memory(), CycleStages(FREE)
            file = folder / f"{instance}-{full_every_ms}.jsonl"
            recorder = CycleRecorder(RecordPlan(file=file, every_ms=0, full_every_ms=full_every_ms), {})
        swapped = number % 3 == 0
        answers = with_tasks(shop(swapped=swapped, generation=4 + number // 3))
        seen = flowing(answers, number).at(number * 60)
        cycle = run_cycle(
            stages, lambda seen=seen: seen, seen, memory, number=number, name=f"{instance}-{number}", planning=False
        )
        assert recorder.record(cycle).problems == ()
        memory = cycle.after
    for file in sorted(folder.glob(f"*-{full_every_ms}.jsonl")):
        events += read_events(file)
    return {look: list(of) for look, of in groupby(events, key=lambda event: event.look)}


class LiveTables:
    """Batch after batch into one root, each followed as ingest does."""

    def __init__(self, tables: TableStore, settings: RefreshSettings = SETTINGS) -> None:
        self.tables = tables
        self._live = LiveRefresh(tables, settings, lambda _: None, histories_every_ms=0)
        self._batches = 0

    def batch(self, *looks: Iterable[TelemetryEvent]) -> None:
        rows = telemetry(self.tables.spark, [event for look in looks for event in look])
        self.tables.append(TELEMETRY, rows, WriterBatch("test", self._batches))
        self._batches += 1
        self._live.on_telemetry(rows, more=lambda: False)


def at_once(
    tables: TableStore, told: Iterable[list[TelemetryEvent]], settings: RefreshSettings = SETTINGS
) -> TableStore:
    rows = telemetry(tables.spark, [event for look in told for event in look])
    tables.append(TELEMETRY, rows, WriterBatch("test", 0))
    refresh(tables, settings=settings)
    return tables


def test_a_look_that_waits_is_known_once_its_full_look_has_come(make_tables: MakeTables, tmp_path: Path) -> None:
    first, second = recorded(tmp_path, 600_000, looks=2).values()
    tables = make_tables("tables", "parquet")
    for number, (came, looks) in enumerate(((second, [(False, WAITS)]), (first, [(True, None)]))):
        tables.append(TELEMETRY, telemetry(tables.spark, came), WriterBatch("test", number))
        rows = tables.read(TELEMETRY)
        wide = look_rows(whole_looks(rows.where(F.col("look") == second[0].look), rows))
        found = silver_table(wide, LOOKS).select("complete", "problem").collect()
        assert [tuple(row) for row in found] == looks
    # What came last touches the look that stands on it.
    touched = LookKey(first[0].cluster, first[0].look, first[0].taken_ms)
    assert standing_on(tables, [touched]) == [
        LookKey(second[0].cluster, second[0].look, second[0].taken_ms, carries=False)
    ]
    assert standing_on(tables, [touched._replace(carries=False)]) == []


@pytest.mark.drill
@pytest.mark.parametrize("part_bytes", [None, 4_000], ids=["in one", "in parts"])
def test_a_history_by_changes_gives_the_rows_of_the_one_in_full(
    make_tables: MakeTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int | None
) -> None:
    """Late, twice, in another order, with a lost record, over a restart, and from the middle of a run on."""
    if part_bytes is not None:  # a look by changes is as large as what it keeps
        monkeypatch.setattr("pipeline.transforms.large_looks.PART_BYTES", part_bytes)
        monkeypatch.setattr("pipeline.jobs.refresh.PART_BYTES", part_bytes)
    changes, full = (recorded(tmp_path, every_ms) for every_ms in (150_000, 0))
    assert list(changes) == list(full)
    in_full = [look for look, events in changes.items() if all(event.base is None for event in events)]
    assert in_full == ["0000000a-0", "0000000a-3", "0000000b-6", "0000000b-9"]
    told = list(changes.values())
    shuffle = random.Random(5)
    shuffle.shuffle(told[4])
    lost = next(event for event in told[8] if event.kind is EventKind.MEMORY)
    told[8].remove(lost)

    live = LiveTables(make_tables("live", "parquet"))
    live.batch(told[1], told[2])  # it begins in between: the first full look is gone
    live.batch(told[4], told[3][: len(told[3]) // 2])
    waiting = {row.look: row.problem for row in live.tables.read(LOOKS).collect()}
    assert [waiting[f"0000000a-{number}"] for number in (1, 2, 4)] == [WAITS] * 3
    live.batch(told[3][len(told[3]) // 2 :])  # now what stands on it is known as well
    assert live.tables.read(LOOKS).where("complete").count() == 2
    live.batch(told[5], told[4], told[6])
    live.batch(*told[7:], told[7])

    wanted = list(full.values())
    for number in (1, 2, 8):
        del wanted[number][0]
    expected = at_once(make_tables("in full", "parquet"), wanted[1:])
    # What is missing is another event, so it has another reason.
    found, rows = (contents(one, (*SILVER, *GOLD), without=("problem",)) for one in (live.tables, expected))
    assert sum(map(len, rows.values())) > 150
    assert found == rows
    again = at_once(make_tables("at once", "parquet"), told[1:])
    assert contents(again, (*SILVER, *GOLD), without=("problem",)) == rows


@pytest.mark.drill
def test_backtest_and_fleet_read_looks_by_changes(make_tables: MakeTables, tmp_path: Path) -> None:
    """Stretches that begin between two full looks as well: the full look is of the stretch before."""
    changes, full = (recorded(tmp_path, every_ms, looks=6) for every_ms in (600_000, 0))
    assert sum(event.base is None for event in changes["0000000a-5"]) == 0
    answers = []
    for name, told in (("changes", changes), ("full", full)):
        tables = at_once(make_tables(name, "parquet"), told.values())
        done = run_backtest(tables, BacktestRequest(strategies=chosen("as-recorded,execute"), stretch_ms=120_000))
        assert done.messages == ()
        units = [row.asDict(recursive=True) for row in tables.read(UNITS).drop("unit", "input", "content").collect()]
        planned = plan_looks(tables, run="r")
        plans = [row.asDict(recursive=True) for row in tables.read(PLANS).collect()]
        answers.append((sorted(map(_lasting, units)), planned.sentence, sorted(map(_lasting, plans))))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) == 8


def _lasting(row: dict[str, Any]) -> str:
    """Without how long it took."""
    return json.dumps(
        {name: one for name, one in row.items() if not name.endswith(("seconds", "_ms", "_s"))}, default=str
    )


def test_the_newest_look_that_lacks_its_full_look_is_not_planned(make_tables: MakeTables, tmp_path: Path) -> None:
    changes = recorded(tmp_path, 150_000, looks=5)
    told = list(changes.values())
    tables = make_tables("tables", "parquet")
    rows = telemetry(tables.spark, [event for look in (*told[:3], told[4]) for event in look])
    tables.append(TELEMETRY, rows, WriterBatch("test", 0))
    done = plan_looks(tables, run="r")
    assert done.messages == (
        "look 0000000a-4 of cluster test-cluster is newer, but lacks look 0000000a-3, on which it stands",
    )
    assert {row.look for row in tables.read(PLANS).select("look").distinct().collect()} == {"0000000a-2"}

"""Which looks are computed where they come more often than ``spark.look_every``."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from agent.telemetry.events import EventKind, TelemetryEvent
from pipeline.jobs.touched_looks import LookKey, computed_looks, has_ended, left_out, look_keys
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import GOLD
from pipeline.schemas.silver import LOOKS, SILVER
from pipeline.tables import Format, TableStore, WriterBatch
from tests.pipeline.contents import contents
from tests.pipeline.look_events import telemetry
from tests.pipeline.test_whole_looks import SETTINGS, LiveTables, at_once, recorded

MakeTables = Callable[[str, Format], TableStore]
MINUTE_MS = 60_000


def test_of_each_stretch_and_instance_one_look_is_computed(spark: SparkSession) -> None:
    """Beside a model: the first, unless silver has another one; all that silver has stay."""
    draw = random.Random(3)
    names = [(draw.choice("cd"), f"{draw.choice(('a', 'b-b'))}-{number}") for number in range(400)]
    candidates = {name: (draw.randrange(40 * MINUTE_MS), draw.random() < 0.2) for name in names}
    stretches: dict[tuple[str, str, int], list[tuple[bool, int, str]]] = {}
    for (cluster, look), (taken_ms, computed) in candidates.items():
        stretch = (cluster, look.rpartition("-")[0], taken_ms // MINUTE_MS)
        stretches.setdefault(stretch, []).append((not computed, taken_ms, look))
    wanted = {
        (stretch[0], look)
        for stretch, of in stretches.items()
        for at, (is_new, _, look) in enumerate(sorted(of))
        if at and is_new
    }
    assert 100 < len(wanted) < 300
    rows = [(*look, *told) for look, told in candidates.items()]
    frame = spark.createDataFrame(rows, "cluster string, look string, taken_ms long, computed boolean")
    assert {tuple(row) for row in left_out(frame, MINUTE_MS).collect()} == wanted


@pytest.mark.drill
def test_looks_in_between_are_left_out_batch_by_batch_and_at_once(make_tables: MakeTables, tmp_path: Path) -> None:
    """A look a minute, one in three minutes is computed: the rows are those of a history that has no other looks."""
    every_ms = 3 * MINUTE_MS
    changes, full = (recorded(tmp_path, full_every_ms, looks=9) for full_every_ms in (150_000, 0))
    told = list(changes.values())
    first: dict[tuple[str, int], str] = {}
    for look, (event, *_) in changes.items():
        first.setdefault((look.rpartition("-")[0], event.taken_ms // every_ms), look)
    chosen = set(first.values())
    assert 3 <= len(chosen) <= 5
    settings = replace(SETTINGS, look_every_ms=every_ms)

    live = LiveTables(make_tables("live", "parquet"), settings)
    live.batch(told[0], told[1])
    live.batch(*told[3:6])
    live.batch(told[2], told[3])  # late, and twice
    live.batch(*told[6:])
    assert {row.look for row in live.tables.read(LOOKS).collect()} == chosen
    wanted = at_once(make_tables("no others", "parquet"), [full[look] for look in sorted(chosen)])
    rows = contents(wanted, (*SILVER, *GOLD))
    assert sum(map(len, rows.values())) > 50
    assert contents(live.tables, (*SILVER, *GOLD)) == rows
    again = at_once(make_tables("at once", "parquet"), told, settings)
    assert contents(again, (*SILVER, *GOLD)) == rows


def test_looks_of_what_the_agent_derived_are_never_left_out(make_tables: MakeTables, tmp_path: Path) -> None:
    (events,) = recorded(tmp_path, 0, looks=1).values()
    tables = make_tables("tables", "parquet")
    kinds = {"report", "task-copies", "finding"}
    derived = [
        [event._replace(look=f"0000000a-{number}", base=None) for event in events if event.kind in kinds]
        for number in (7, 8)
    ]
    rows = telemetry(tables.spark, [event for look in (events, *derived) for event in look])
    tables.append(TELEMETRY, rows, WriterBatch("test", 0))
    keys = sorted(LookKey(*row) for row in look_keys(rows).collect())
    assert [(key.look, key.carries, key.observed) for key in keys] == [
        ("0000000a-0", True, True), ("0000000a-7", False, False), ("0000000a-8", False, False),
    ]  # fmt: skip
    twin = keys[0]._replace(look="0000000a-9")
    assert computed_looks(tables, [twin, *keys], MINUTE_MS) == keys
    assert computed_looks(tables, [twin, *keys], 0) == [*keys, twin]


def test_a_look_has_ended_when_all_of_its_events_are_there(spark: SparkSession, tmp_path: Path) -> None:
    """In full, by changes, and of nothing but what the agent derived; what is written last may come first."""
    whole, changed = recorded(tmp_path, 600_000, looks=2).values()
    kinds = {"report", "finding"}
    derived = [event._replace(n=n) for n, event in enumerate(event for event in whole if event.kind in kinds)]
    (kept,) = (event for event in changed if event.kind == "kept")
    runs = kept.data["runs"]
    assert sum(run["events"] for run in runs) > len(runs) > 1
    parts = [kept._replace(n=kept.n + n, data={"part": n, "parts": 2, "runs": runs[n::2]}) for n in range(2)]
    others = [event for event in changed if event.kind != "kept"]
    text = json.dumps(whole[0].data)
    pieces = [
        whole[0]._replace(kind=EventKind.FRAGMENT, data={"part": n, "parts": 3, "text": text[n::3]}) for n in range(3)
    ]

    def ended(events: Iterable[TelemetryEvent]) -> bool:
        (row,) = look_keys(telemetry(spark, events), has_ended()).collect()
        return bool(row["ended"])

    for look in (whole, changed, derived, [*others, *parts], [*whole, *whole], [*pieces, *whole[1:]]):
        assert ended(look)
    assert ended([*changed, *changed, kept])
    for missing in ([*others, parts[0]], [*pieces[1:], *whole[1:]], [*pieces[:2], *whole[1:]], [*parts, *parts]):
        assert not ended(missing)
    for kind in ("look", "report"):
        assert not ended(event for event in whole if event.kind != kind)
    assert not ended(event for event in derived if event.kind != "report")
    assert not ended(others)
    for look in (whole, changed, derived):
        for out in {0, len(look) // 2, len(look) - 1}:
            assert not ended([*look[:out], *look[out + 1 :]])

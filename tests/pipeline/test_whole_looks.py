"""Histories recorded by changes: row for row what the same history gives that was recorded in full, or unknown."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from agent.loop import CycleStages, run_cycle
from agent.record.recorder import CycleRecorder, RecordPlan
from agent.telemetry.changes import FullLook, LookHead
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines
from agent.telemetry.looks import observation_rows, observation_to_events
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation, RawTopic
from assignors.problem import TopicPartition
from pipeline.backtest.look import EventRow
from pipeline.jobs.backtest import BacktestRequest, run_backtest
from pipeline.jobs.fleet import plan_looks
from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.schemas import gold, silver
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.fleet import PLANS
from pipeline.stream.live import LiveRefresh
from pipeline.tables import Format, TableStore, WriterBatch
from pipeline.transforms.look_rows import BronzeEvent, SilverRow, rows_of_look
from pipeline.transforms.whole_looks import StandingEvent, whole_rows
from tests.builders import Answers
from tests.pipeline.contents import Contents, contents
from tests.pipeline.histories import flowing, shop, strategy_limits, with_tasks
from tests.pipeline.look_events import telemetry_lines
from tests.pipeline.test_backtest_job import STRATEGIES
from tests.record.observations import MEMORIES, OBSERVATIONS
from tests.record.test_telemetry import SMALL

MakeTables = Callable[[str, Format], TableStore]
WAITS = "it stands on a full look of which events are missing; looks are known again from the next full look on"


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
@given(OBSERVATIONS, OBSERVATIONS, MEMORIES)
def test_the_rows_of_a_look_by_changes_are_those_of_the_look_in_full(
    full: Observation, now: Observation, _memory: Memory
) -> None:
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


def test_kept_events_of_something_else_make_a_look_unknown_and_nothing_else() -> None:
    first, changed, _ = both(SMALL, SMALL)
    for data in ("7", "[]", "{}", '{"part":0,"parts":1,"runs":[{"n":3,"of":3,"events":9,"deltas":[1,2,3,4,5,6]}]}'):
        spoilt = [row._replace(data=data) if row.kind == EventKind.KEPT else row for row in changed]
        (row,) = silver_of(whole_rows(spoilt, by_number(first)))
        assert row.table == "looks"
        assert (row.row["complete"], row.row["full"]) == (False, None)
        assert row.row["problem"]

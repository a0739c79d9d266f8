"""Silver by the agent's own stages: what one look's events give, and what looks give that are broken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import UnionType
from typing import Any, get_origin, get_type_hints

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from agent.telemetry.derived import AssessmentData, FindingData, ReportData, TaskCopiesData
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines
from agent.values.assessment import Locality, LocalityMeasure
from agent.values.memory import Memory
from agent.values.observation import GapCause, ObservationPart
from agent.values.snapshot import Range, TaskCopy, TaskRole
from agent.values.typed_json import to_json
from pipeline.schemas import silver
from pipeline.schemas.table import TableSpec
from pipeline.transforms.look_rows import BronzeEvent, rows_of_look
from pipeline.transforms.looks import look_rows, silver_table
from tests.builders import TAKEN_MS, Answers, an_observation, instance, process_id, reader
from tests.pipeline.look_events import events_of, telemetry
from tests.pipeline.silver_rows import Row, frame
from tests.snapshots import tasks, tp

LOOK = "12345678-7"
COMMON = {"cluster": "test-cluster", "look": LOOK, "taken_ms": TAKEN_MS, "day": "2025-10-09"}


def answers() -> Answers:
    told = an_observation()
    told.topic("orders", (1, 2, 3), (2, 3, 1), isr={1: (2, 1)}, ends=(1_000, 500), cleanup_policy="compact")
    told.moving("orders-1", (2, 3, 1), (1,), (3,))
    told.group("shop", reader("m1", "a", "orders-0"), reader("m2", None, "orders-1"))
    told.committed = {"shop": {tp("orders-0"): 900}, "flink": {tp("orders-1"): 400}, "busy": {tp("orders-0"): 5}}
    told.group("busy", reader("m1", "a", "orders-0"), state="PreparingRebalance")
    told.group("flink", state="Empty", protocol_type="")
    told.sizes = {(1, tp("orders-0")): 10, (2, tp("orders-0")): 12}
    # A rolling change: the first broker has the new value, the second the old one, the third gave no answer.
    told.broker_configs = {1: told.broker_configs[1], 2: {}}
    return told.gap(ObservationPart.BROKER_CONFIGS, GapCause.TIMED_OUT, "broker 3")


def derived() -> list[TelemetryEvent]:
    finding = FindingData("f-1", "RACK_SPREAD", "WARNING", "topic/orders", "It is so", (), 5, held=False)
    now, best = (Locality(LocalityMeasure.READ_LOCAL, "partitions", local, 2, 1) for local in (1, 2))
    assessment = AssessmentData("shop", None, (now,), (best,), 1, 0, 0, 1)
    data = [
        (EventKind.FINDING, "topic/orders", to_json(FindingData, finding)),
        (EventKind.ASSESSMENT, "group/shop", to_json(AssessmentData, assessment)),
    ]
    return [
        TelemetryEvent(kind, subject, "test-cluster", LOOK, 1_000 + n, TAKEN_MS, told)
        for n, (kind, subject, told) in enumerate(data)
    ]


def check(spark: SparkSession, events: list[TelemetryEvent], table: TableSpec, *expected: Row) -> None:
    wide = look_rows(telemetry(spark, events))
    rows = [COMMON | row for row in expected]
    assertDataFrameEqual(silver_table(wide, table), frame(spark, table, *rows))


def partition(number: int, leader: int, replicas: list[int], isr: list[int], **more: Any) -> Row:
    racks = {1: "a", 2: "b", 3: "c"}
    told = {"isr_racks": [racks[one] for one in isr], "isr_told_racks": [racks[one] for one in isr]}
    return {
        "topic": "orders", "partition": number, "topic_id": "id-orders", "own": False, "leader": leader,
        "leader_rack": racks[leader], "leader_selector": leader == 1, "replicas": replicas,
        "replica_racks": [racks[one] for one in replicas],
        "isr": isr, "size_fresh": True, "compacted": True, "learned_bytes_per_record": 42.0,
    } | told | more  # fmt: skip


def test_a_look_as_rows(spark: SparkSession) -> None:
    events = [*events_of(answers().at(), LOOK, memory=Memory(bytes_per_record={"orders": 42.0})), *derived()]
    wide = look_rows(telemetry(spark, [*reversed(events), *events[:3]])).localCheckpoint()

    def same(table: TableSpec, *expected: Row) -> None:
        rows = [COMMON | row for row in expected]
        assertDataFrameEqual(silver_table(wide, table), frame(spark, table, *rows))

    (row,) = silver_table(wide, silver.LOOKS).drop("limits_digest").collect()
    assert row.asDict() == COMMON | {
        "monotonic_ms": 50_000_000, "instance": "12345678", "complete": True, "full": True, "problem": None, "gaps": 1,
        "gap_parts": ["broker configs"], "brokers": 3, "racks": 3, "known_racks": 3, "topics": 1, "groups": 3,
        "selector_is_rack_aware": False,
    }  # fmt: skip
    same(
        silver.BROKERS,
        *(
            {"broker": number, "rack": rack, "rack_state": "known", "alive": True, "told_rack": rack}
            | {"selector_is_rack_aware": selects}
            for number, rack, selects in ((1, "a", True), (2, "b", False), (3, "c", None))
        ),
    )
    moving = {"adding": [1], "removing": [3], "reassigned_by_us": False}
    same(
        silver.PARTITIONS,
        partition(0, 1, [1, 2, 3], [1, 2, 3], end_offset=1_000, size_bytes=12, replica_bytes=[10, 12, None]),
        partition(1, 2, [2, 3, 1], [2, 1], end_offset=500, replica_bytes=[None, None, None], **moving),
    )
    near_a = {"rack": "a", "told_rack": "a", "committed_offset": 900}
    reads = {"group": "shop", "role": "active", "topic": "orders"}
    same(
        silver.READS,
        reads | {"member": "m1", "client_id": "client-m1", "partition": 0} | near_a,
        reads | {"member": "m2", "client_id": "client-m2", "partition": 1},
        # Only commits tell of the read: the group has no members, or hides them while it rebalances.
        reads | {"group": "flink", "member": "", "role": "unassigned", "partition": 1, "committed_offset": 400},
        reads | {"group": "busy", "member": "", "role": "hidden", "partition": 0, "committed_offset": 5},
    )
    found = {"id": "f-1", "reason": "RACK_SPREAD", "severity": "WARNING", "subject": "topic/orders"}
    same(silver.FINDINGS, found | {"sentence": "It is so", "since_ms": 5, "held": False})
    near = {"group": "shop", "measure": "read-local", "unit": "partitions"}
    same(silver.LOCALITY, near | {"local": 1.0, "total": 2.0, "unknown": 1.0, "optimal_local": 2.0})
    (group,) = silver_table(wide, silver.GROUPS).where("group = 'shop'").collect()
    assert (group["group"], group["kind"], group["state"], group["members"]) == (
        "shop",
        "classic consumer",
        "Stable",
        2,
    )
    assert group["rebalance"].startswith("generation 4:")
    assert len(group["assignment_digest"]) == 16


def raw(events: list[TelemetryEvent]) -> list[BronzeEvent]:
    lines = [json.loads(line) for event in events for line in to_lines(event)]
    return [
        BronzeEvent(*(line[name] if name != "data" else json.dumps(line["data"]) for name in BronzeEvent._fields))
        for line in lines
    ]


def test_readers_of_an_application_are_its_processes_and_their_copies() -> None:
    told = an_observation()
    told.topic("in", (1, 2, 3), ends=(5,)).topic("app-store-changelog", (1, 2, 3), ends=(5,))
    told.streams("app", instance(1, "a", {"0_0": "in-0"}), instance(2, "b", standby={"0_0": "in-0"}))
    rows = [given.row for given in rows_of_look(raw(events_of(told.at(), LOOK))) if given.table == "reads"]
    assert [(row["member"], row["role"], row["topic"], row["rack"]) for row in rows] == [
        (process_id(1), "active", "in", "a"),
        (process_id(2), "standby", "app-store-changelog", "b"),
    ]


COPY = TaskCopy(
    "app", "p", tasks("0_0")[0], TaskRole.WARMUP, True, 100, Range(1, 2, 3), None, 0, None, None, caught_up=False
)


def empty(kind: Any) -> Any:
    """The least value of that type."""
    least: dict[Any, Any] = {Mapping: {}, tuple: (), UnionType: None}
    return least[get_origin(kind)] if get_origin(kind) else kind()


def test_a_look_that_was_not_written_in_full_tells_its_copies(spark: SparkSession) -> None:
    copies = to_json(TaskCopiesData, TaskCopiesData("app", (COPY,)))
    report = to_json(ReportData, ReportData(**{name: empty(kind) for name, kind in get_type_hints(ReportData).items()}))
    events = [
        TelemetryEvent(EventKind.TASK_COPIES, "group/app", "test-cluster", LOOK, 0, TAKEN_MS, copies),
        TelemetryEvent(EventKind.REPORT, "cluster/test-cluster", "test-cluster", LOOK, 1, TAKEN_MS, report),
    ]
    check(spark, events, silver.LOOKS, {"instance": "12345678", "complete": False, "full": False})
    copy = {"group": "app", "process": "p", "task": "0_0", "role": "warm-up", "role_certain": True, "lag_low": 1.0}
    check(spark, events, silver.COPIES, copy | {"lag": 2.0, "lag_high": 3.0, "caught_up": False, "end_offset_sum": 100})


def without(events: list[BronzeEvent], kind: str) -> list[BronzeEvent]:
    return [event for event in events if event.kind != kind]


def _as_list(row: BronzeEvent) -> BronzeEvent:
    return row._replace(data="[]") if row.kind == "look" else row


def _without_fields(row: BronzeEvent) -> BronzeEvent:
    return row._replace(data='{"topics":1}') if row.kind == "topic" else row


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(lambda rows: without(rows, "topic"), "lacks 1 of its", id="a topic is missing"),
        pytest.param(lambda rows: without(rows, "look"), "has no last event", id="the last event is missing"),
        pytest.param(lambda rows: [_as_list(row) for row in rows], "no look data", id="the last event is no object"),
        pytest.param(lambda rows: [row._replace(data="{") for row in rows], "cannot be read", id="no JSON at all"),
        pytest.param(lambda rows: [_without_fields(row) for row in rows], "name", id="a topic without its fields"),
    ],
)
def test_a_look_that_cannot_be_relied_upon_is_one_row_that_says_why(change: Any, problem: str) -> None:
    (row,) = rows_of_look(change(raw(events_of(answers().at(), LOOK))))
    assert row.table == "looks"
    assert row.row["complete"] is False
    assert problem in row.row["problem"]


def test_an_event_in_fragments_is_put_together() -> None:
    told = answers()
    told.group("g" * 200, *(reader(f"m{n}-{'x' * 900}", "a", "orders-0") for n in range(1_200)))
    rows = raw(events_of(told.at(), LOOK))
    assert "fragment" in {row.kind for row in rows}
    found = rows_of_look([*rows[::-1], *rows])
    assert sum(given.table == "reads" for given in found) == 1_204
    (broken,) = rows_of_look([row for row in rows if not (row.kind == "fragment" and '"part": 1,' in row.data)])
    assert "lacks 1 of its" in broken.row["problem"]

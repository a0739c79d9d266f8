"""Gold tables of a small world, written out: what a report is made of in tests, one row per line that matters."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from agent.values.finding import FindingReason, FindingSeverity
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore, WriterBatch

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
BEGIN_MS = 1_763_683_200_000
"""2025-11-21 00:00 UTC."""
DAYS = ("2025-11-21", "2025-11-22")
C = "W2nPzD9yTbqkkq0uB0s7Jg"
GB = 1e9


def ledger_row(**row: Any) -> dict[str, Any]:
    """A row that crosses from a to b at 0.02 $/GB."""
    found = {
        "cluster": C,
        "hour_ms": BEGIN_MS,
        "path": "consume",
        "group": "",
        "topic": "orders",
        "source_rack": "a",
        "target_rack": "b",
        "zone": "CROSS_ZONE",
        "bytes": GB,
        "unavoidable_bytes": 0.0,
        "price_date": "2025-10-01",
        "why_unknown": None,
        **row,
    }
    size = found["bytes"]
    found.setdefault("usd", None if size is None or found["zone"] == "UNKNOWN" else 0.02 * size / GB)
    if found["zone"] == "SAME_ZONE":
        found |= {"usd": 0.0, "unavoidable_bytes": 0.0, "target_rack": found["source_rack"], "price_date": None}
    if found["zone"] == "UNKNOWN":
        found |= {"usd": None, "price_date": None, "unavoidable_bytes": None}
    return found


def _ledger() -> list[dict[str, Any]]:
    rows = []
    for day in range(2):
        for hour in range(24):
            at = {"hour_ms": BEGIN_MS + day * DAY_MS + hour * HOUR_MS}
            rows += [
                ledger_row(**at, group="billing", bytes=(1.5 + day) * GB),
                ledger_row(**at, group="billing", source_rack="c", target_rack="a", bytes=0.4 * GB),
                ledger_row(**at, group="billing", zone="SAME_ZONE", bytes=0.6 * GB),
                ledger_row(**at, group="orders-app", bytes=0.2 * GB, topic="clicks"),
                ledger_row(**at, group="orders-app", zone="SAME_ZONE", source_rack="b", bytes=3.0 * GB, topic="clicks"),
                ledger_row(
                    **at,
                    group="mailer",
                    zone="UNKNOWN",
                    target_rack="",
                    bytes=0.3 * GB,
                    why_unknown="member without rack",
                ),
                ledger_row(**at, path="replicate", bytes=1.1 * GB, unavoidable_bytes=1.1 * GB),
                ledger_row(**at, path="replicate", target_rack="c", bytes=1.3 * GB, unavoidable_bytes=1.1 * GB),
            ]
    rows += [
        ledger_row(path="move", topic="payments", bytes=4.2 * GB, target_rack="c"),
        ledger_row(path="produce", zone="UNKNOWN", source_rack="", why_unknown="producers are not seen"),
        ledger_row(group="archive", source_rack="a", target_rack="x", bytes=0.05 * GB, usd=None, price_date=None),
        ledger_row(group="archive", topic="empty", bytes=None, usd=None),
    ]
    return rows


def _traffic() -> list[dict[str, Any]]:
    seconds = {0: 3600.0, 5: 1800.0, 47: 2400.0}
    return [
        {
            "cluster": C,
            "hour_ms": BEGIN_MS + hour * HOUR_MS,
            "topic": "orders",
            "partition": partition,
            "seconds": seconds.get(hour, 3600.0) - partition,
            "records": 1000,
        }
        for hour in range(48)
        if hour != 30
        for partition in range(2)
    ]


def _locality() -> list[dict[str, Any]]:
    cells = {
        ("billing", "a"): (40.0, 60.0, 0.0, 4e9, 12e9),
        ("billing", "b"): (58.0, 60.0, 0.0, 9.6e9, 10e9),
        ("orders-app", "a"): (60.0, 60.0, 0.0, None, None),
        ("orders-app", "c"): (30.0, 60.0, 10.0, None, None),
        ("mailer", ""): (0.0, 60.0, 60.0, None, None),
        ("we <b>ird</b> $x^2$ | name", "b"): (1.0, 60.0, 0.0, 1e9, 9e9),
    }
    names = ("local", "total", "unknown", "local_bytes", "total_bytes")
    return [
        {"cluster": C, "hour_ms": BEGIN_MS + hour * HOUR_MS, "group": group, "rack": rack}
        | dict(zip(names, figures, strict=True))
        for hour in range(2)
        for (group, rack), figures in cells.items()
    ]


def _warmups() -> list[dict[str, Any]]:
    row = {"cluster": C, "group": "orders-app", "process": "p-1", "began_ms": BEGIN_MS, "last_ms": BEGIN_MS + 90_000}
    return [
        {**row, "task": "0_1", "outcome": "promoted", "seconds": 41.0, "waited_s": 12.0, "stalled_s": 0.0},
        {**row, "task": "0_2", "outcome": "promoted", "seconds": 77.0, "waited_s": 480.0, "stalled_s": 7.7},
        {**row, "task": "0_3", "outcome": "promoted", "seconds": 55.0, "waited_s": 31.0, "stalled_s": 0.0},
        {**row, "task": "1_0", "outcome": "given up", "seconds": 90.0, "waited_s": None, "stalled_s": 90.0},
        {**row, "task": "1_1", "outcome": "unknown", "seconds": None, "waited_s": None, "stalled_s": None},
    ]


def _restores() -> list[dict[str, Any]]:
    row = {"cluster": C, "group": "orders-app", "until_ms": BEGIN_MS + DAY_MS}
    return [
        {
            **row,
            "subtopology": 0,
            "samples": 12,
            "low": 800.0,
            "median": 1_150.0,
            "high": 1_900.0,
            "stalled_share": 0.04,
        },
        {
            **row,
            "subtopology": 1,
            "samples": 3,
            "low": 90.0,
            "median": 210.0,
            "high": 400.0,
            "stalled_share": 0.55,
            "stalls_when": "rebalance: it stalls while the group rebalances",
        },
        {**row, "subtopology": 2, "samples": 0},
    ]


def _rebalances() -> list[dict[str, Any]]:
    rebalances = [
        ("orders-app", "1", "probing", 2.0, 3),
        ("orders-app", "2", "probing", 4.0, 1),
        ("orders-app", "3", "triggered", 3.0, 2),
        ("billing", "7", "members joined", 8.0, None),
        ("billing", "8", None, None, None),
    ]
    return [
        {
            "cluster": C,
            "group": group,
            "rebalance": name,
            "seen_ms": BEGIN_MS + 60_000,
            "seconds_most": seconds,
            "moved": moved,
            "cause": cause,
        }
        for group, name, cause, seconds, moved in rebalances
    ]


def _drifts() -> list[dict[str, Any]]:
    return [
        {
            "cluster": C,
            "subject": "broker/4",
            "began_ms": BEGIN_MS + HOUR_MS,
            "ended_ms": BEGIN_MS + 2 * HOUR_MS,
            "lasted_s": 3600.0,
            "before": ["c"],
            "after": ["a"],
            "cause": "relabelled",
        },
        {
            "cluster": C,
            "subject": "topic/payments",
            "partition": 3,
            "began_ms": BEGIN_MS + HOUR_MS,
            "lasted_s": 160_000.0,
            "before": ["a", "b", "c"],
            "after": ["a", "a", "b"],
            "shares_rack": True,
            "cause": "reassigned by others",
        },
    ]


def outcome_row(proposal: str, state: str = "standing", **row: Any) -> dict[str, Any]:
    return {
        "cluster": C,
        "proposal": proposal,
        "kind": "advise",
        "reason": "set_client_rack",
        "state": state,
        "created_ms": BEGIN_MS + HOUR_MS,
        **row,
    }


def _outcomes() -> list[dict[str, Any]]:
    done = {"state": "done", "kind": "reassign", "reason": "mend_rack_spread", "applied_ms": BEGIN_MS + 2 * HOUR_MS}
    return [
        outcome_row("p-111111111111", subject="group/billing"),
        outcome_row("p-222222222222", subject="group/mailer"),
        outcome_row(
            "p-333333333333",
            kind="reassign",
            reason="leaders_to_readers",
            subject="topic/clicks",
            predicted_moves=4,
            predicted_move_bytes=0.0,
            predicted_seconds=1.0,
            before_bytes_per_s=60_000.0,
            predicted_bytes_per_s=12_000.0,
            predicted_usd_per_day=0.083,
        ),
        outcome_row("p-444444444444", state="void", subject="group/billing"),
        outcome_row(
            "p-555555555555",
            **done,
            subject="topic/payments",
            predicted_moves=6,
            measured_moves=6,
            predicted_move_bytes=4.0 * GB,
            measured_move_bytes=4.2 * GB,
            predicted_seconds=80.0,
            measured_seconds=96.0,
            predicted_bytes_per_s=100_000.0,
            measured_bytes_per_s=104_000.0,
            predicted_usd_per_day=0.5,
            measured_usd_per_day=0.45,
            error_share=0.04,
        ),
        outcome_row(
            "p-666666666666",
            **done,
            subject="topic/views",
            predicted_moves=2,
            measured_moves=3,
            predicted_bytes_per_s=50_000.0,
            measured_bytes_per_s=41_000.0,
            error_share=-0.18,
        ),
    ]


def _conservation() -> list[dict[str, Any]]:
    about = {"cluster": C, "hour_ms": BEGIN_MS, "topic": "orders"}
    return [
        about | {"path": "produce", "booked_bytes": 5 * GB, "counted_bytes": 5 * GB, "difference_bytes": 0.0},
        about
        | {"path": "consume", "booked_bytes": 9.9 * GB, "counted_bytes": 10 * GB, "difference_bytes": -0.1 * GB}
        | {"difference_share": -0.01},
        about | {"topic": "clicks", "path": "consume", "booked_bytes": GB, "why_unknown": "a counter went back"},
    ]


def world() -> dict[TableSpec, list[dict[str, Any]]]:
    """Table -> rows; columns that a row does not name are null."""
    return {
        gold.LEDGER: _ledger(),
        gold.CONSERVATION: _conservation(),
        gold.PARTITION_TRAFFIC: _traffic(),
        gold.LOCALITY: _locality(),
        gold.WARMUPS: _warmups(),
        gold.RESTORE_RATES: _restores(),
        gold.REBALANCES: _rebalances(),
        gold.RACK_DRIFT: _drifts(),
        gold.OUTCOMES: _outcomes(),
        silver.LOOKS: [
            {"cluster": C, "look": f"l-{n}", "taken_ms": BEGIN_MS + n * HOUR_MS, "complete": n < 3, "problem": problem}
            | {"full": n != 4 if n != 3 else None}
            for n, problem in enumerate((None, None, None, "2 of 9 events are missing", None))
        ],
        silver.FINDINGS: [
            {
                "cluster": C,
                "look": "l-2",
                "taken_ms": BEGIN_MS + 2 * HOUR_MS,
                "severity": FindingSeverity.WARNING.name,
                **finding,
            }
            for finding in (
                {
                    "id": "f-1111",
                    "reason": FindingReason.MEMBER_WITHOUT_RACK.name,
                    "subject": "group/billing",
                    "sentence": "2 members of billing send no client.rack",
                    "since_ms": BEGIN_MS,
                },
                {
                    "id": "f-2222",
                    "reason": FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM.name,
                    "subject": "group/archive",
                    "sentence": "archive reads 1 of 4 partitions within its rack, and could read 4",
                    "since_ms": BEGIN_MS,
                },
                {
                    "id": "f-3333",
                    "reason": FindingReason.BROKER_ABSENT.name,
                    "subject": "broker/7",
                    "sentence": "broker 7 is absent",
                },
            )
        ],
        bronze.PROPOSALS: [
            {
                "topic": "rackwise.proposals",
                "partition": 0,
                "offset": offset,
                "cluster": C,
                "type": "rackwise.proposal.created.v1",
                "time_ms": BEGIN_MS + offset,
                "data": json.dumps({"id": proposal, **said}),
            }
            for offset, (proposal, said) in enumerate(
                (
                    ("p-111111111111", {"line": "client.rack=b", "findings": []}),
                    ("p-111111111111", {"line": "client.rack=a", "findings": ["f-1111", "f-gone"]}),
                    ("p-444444444444", {"line": "client.rack=void", "findings": ["f-1111"]}),
                )
            )
        ],
        bronze.QUARANTINE: [
            {
                "topic": "rackwise.telemetry",
                "partition": 0,
                "offset": offset,
                "reason": "version: it is of version 9, and 1 is read here",
            }
            for offset in range(2)
        ],
    }


def write(tables: TableStore, rows: dict[TableSpec, list[dict[str, Any]]]) -> None:
    """The rows into their tables; days and Kafka's times follow from the moments."""
    for number, (table, table_rows) in enumerate(rows.items()):
        frame = tables.spark.createDataFrame([whole(table, row) for row in table_rows], table.schema)
        tables.append(table, frame, WriterBatch("test", number))


def whole(table: TableSpec, row: dict[str, Any]) -> tuple[Any, ...]:
    """The row with every column of the table."""
    moment = next(
        (row[name] for name in ("hour_ms", "began_ms", "seen_ms", "created_ms", "taken_ms") if name in row), BEGIN_MS
    )
    at = datetime.fromtimestamp(moment / 1000, UTC)
    derived = {"day": at.strftime("%Y-%m-%d"), "kafka_time": at, "hour_ms": moment - moment % HOUR_MS}
    return tuple({**derived, **row}.get(name) for name in table.schema.names)

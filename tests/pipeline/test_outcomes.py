"""Proposals by hand: their lives out of two topics, and what was predicted beside what was measured."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from agent.journal.plan_entries import change_writes
from agent.journal.triggers import TriggerEffect, TriggerVerdict
from agent.values.proposal import PlanAttempt
from agent.values.reassignment import (
    ENDED,
    Batch,
    BatchState,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    rollback_name,
)
from assignors.problem import TopicPartition
from pipeline.schemas.bronze import JOURNAL, PROPOSALS
from pipeline.schemas.gold import LEDGER, OUTCOMES, PARTITION_TRAFFIC
from pipeline.schemas.table import TableSpec
from pipeline.transforms.outcomes import SETTLE_MS, WINDOW_MS, acted, crossing, moved, outcomes, published, windows
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, at, frame, look, partition, partitions

TARGETS = "array<struct<topic:string,partition:int,before:array<int>,after:array<int>>>"
LIVES = (
    f"cluster string, proposal string, acted_state string, applied_ms long, done_ms long, targets {TARGETS}, came int"
)
PREDICTED = {
    "cross_rack_bytes_per_s_before": 900.0, "cross_rack_bytes_per_s_after": 400.0, "usd_per_day_before": 2.0,
    "usd_per_day_after": 0.5, "moves": 2, "bytes_to_move": 5_000, "seconds": 10.0,
}  # fmt: skip


def open_frame(spark: SparkSession, table: TableSpec, *rows: Row) -> DataFrame:
    """As `frame`; the place of a record in its topic is left open."""
    place = {"topic": "t", "partition": 0, "offset": 0, "day": DAY}
    schema = table.schema.fieldNames()
    kinds = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in table.schema)
    return spark.createDataFrame([tuple((place | row).get(name) for name in schema) for row in rows], kinds)


def created(proposal: str, second: int, *, expires: int = 900, kind: str = "reassign", **more: Any) -> Row:
    document = {
        "id": proposal, "kind": kind, "reason": "mend_rack_spread", "subject": {"kind": "topic", "name": "orders"},
        "predicted": PREDICTED, "created_ms": at(second), "expires_ms": at(second + expires),
    } | more  # fmt: skip
    return {
        "type": "rackwise.proposal.created.v1", "cluster": CLUSTER, "time_ms": at(second), "data": json.dumps(document),
    }  # fmt: skip


def void(proposal: str, second: int) -> Row:
    life = {"id": proposal, "state": "void", "at_ms": at(second)}
    return {"type": "rackwise.proposal.void.v1", "cluster": CLUSTER, "time_ms": at(second), "data": json.dumps(life)}


def test_what_became_of_proposals_that_nobody_carried_out(spark: SparkSession) -> None:
    rows = [
        *(created("stands", 0), created("stands", 600)),
        *(created("gone", 0), void("gone", 60)),
        *(created("again", 0), void("again", 60), created("again", 120)),
        created("old", -2_000),
        {"type": None, "cluster": CLUSTER, "time_ms": at(0), "data": None},
    ]
    lives = spark.createDataFrame([], LIVES)
    told = published(open_frame(spark, PROPOSALS, *rows))
    found = outcomes(told, lives, now_ms=at(700))
    kinds = {field.name: field.dataType for field in OUTCOMES.schema}
    assert {field.name: field.dataType for field in found.schema} == kinds
    expected = [("stands", "standing"), ("gone", "void"), ("again", "standing"), ("old", "expired")]
    assertDataFrameEqual(
        found.select("proposal", "state"), spark.createDataFrame(expected, "proposal string, state string")
    )
    (row,) = found.where("proposal = 'gone'").collect()
    assert (row["created_ms"], row["done_ms"], row["subject"]) == (at(0), at(60), "topic/orders")
    assert (row["predicted_moves"], row["predicted_usd_per_day"], row["measured_moves"]) == (2, 1.5, None)


def entry(second: int, seq: int, key: str, kind: str, value: Any) -> Row:
    return {
        "cluster": CLUSTER, "key": key, "kind": kind, "at_ms": at(second), "epoch": 1, "seq": seq,
        "data": None if value is None else json.dumps(value),
    }  # fmt: skip


TARGET = ReassignmentTarget(TopicPartition("orders", 3), "id", (1, 4), (1, 2))


def plan(proposal: str, second: int, seq: int, state: PlanState, lines: int = 2, *, attempt: int = 1) -> list[Row]:
    """A plan's header as the agent writes it, and with two lines its partitions too."""
    name = str(PlanAttempt(proposal, attempt))
    every = change_writes(ReassignmentPlan(name, (TARGET,), state, attempt=attempt))[:lines]
    return [entry(second, seq, line.key, line.kind, line.value) for line in every]


def sent(name: str, second: int, seq: int) -> Row:
    """The first batch of the plan of that name, as the agent writes it before the request."""
    (batch,) = change_writes(Batch(name, 1, (TARGET,), BatchState.SENT))
    return entry(second, seq, batch.key, batch.kind, batch.value)


def test_what_the_journal_says_was_carried_out(spark: SparkSession) -> None:
    verdict = {"verdict": "AS_PREDICTED", "at_ms": at(90), "sentence": "", "came": 3, "beyond_count": 1}
    trigger = {"group_id": "g", "proposal_id": "p-asked", "acted_ms": at(50), "effect": "REBALANCING"}
    rows = [
        *plan("p-done", 0, 1, PlanState.OPEN),
        *plan("p-done", 40, 5, PlanState.DONE, lines=1),
        sent("p-done", 10, 2),
        *plan("p-runs", 0, 3, PlanState.OPEN),
        *plan("p-back", 60, 6, PlanState.ROLLED_BACK),
        entry(50, 7, "trigger/g/p-asked", "outcome", {**trigger, "judgement": None}),
        entry(90, 8, "trigger/g/p-asked", "judged", {**trigger, "judgement": verdict}),
        entry(50, 9, "trigger/g/p-not", "outcome", {**trigger, "proposal_id": "p-not", "effect": "REFUSED"}),
        entry(70, 10, "trigger/g/p-not", "forgotten", None),
    ]
    moved_ = [("orders", 3, [1, 4], [1, 2])]
    expected = [
        (CLUSTER, "p-done", "done", at(10), at(40), moved_, None),
        (CLUSTER, "p-runs", "running", at(0), None, moved_, None),
        (CLUSTER, "p-back", "cancelled", at(60), at(60), moved_, None),
        (CLUSTER, "p-asked", "done", at(50), at(90), None, 4),
        (CLUSTER, "p-not", "failed", at(50), None, None, None),
    ]
    assertDataFrameEqual(acted(open_frame(spark, JOURNAL, *rows)), spark.createDataFrame(expected, LIVES))


def test_the_newest_attempt_at_a_proposal_counts(spark: SparkSession) -> None:
    rows = [
        *plan("p-0123456789ab", 0, 1, PlanState.OPEN),
        sent("p-0123456789ab", 10, 2),
        *plan("p-0123456789ab", 20, 3, PlanState.FAILED, lines=1),
        *plan("p-0123456789ab", 100, 4, PlanState.OPEN, attempt=2),
        sent("p-0123456789ab.2", 110, 5),
        *plan("p-0123456789ab", 140, 6, PlanState.DONE, lines=1, attempt=2),
        # What takes it back is a plan of its own.
        *plan(rollback_name("p-0123456789ab.2"), 200, 7, PlanState.FAILED),
        *plan(rollback_name("p-0123456789ab.2"), 300, 8, PlanState.OPEN, attempt=2),
        *(line for n in (10, 9) for line in plan("p-ba9876543210", n, 10 + n, PlanState.CANCELLED, attempt=n)),
    ]
    moved_ = [("orders", 3, [1, 4], [1, 2])]
    expected = [
        (CLUSTER, "p-0123456789ab", "done", at(110), at(140), moved_, None),
        (CLUSTER, "p-0123456789ab.2-back", "running", at(300), None, moved_, None),
        (CLUSTER, "p-ba9876543210", "cancelled", at(10), at(10), moved_, None),
    ]
    assertDataFrameEqual(acted(open_frame(spark, JOURNAL, *rows)), spark.createDataFrame(expected, LIVES))


def test_a_word_of_a_newer_agent_is_unknown(spark: SparkSession) -> None:
    def newer(row: Row) -> Row:
        return row | {"kind": "verifying"}

    def trigger(seq: int, effect: str | None, verdict: str | None) -> Row:
        judgement = None if verdict is None else {"verdict": verdict, "at_ms": at(9), "came": 1, "beyond_count": 0}
        name = f"{effect}/{verdict}"
        told = {"group_id": "g", "proposal_id": name, "acted_ms": at(1), "effect": effect, "judgement": judgement}
        return entry(9, seq, f"trigger/g/{name}", "judged" if verdict else "outcome", told)

    known = {state.name: plan(state.name, 0, 1, state, lines=1)[0] for state in PlanState}
    pairs = [(None, None), ("NEWER", None), ("NEWER", "AS_PREDICTED"), ("REBALANCING", "NEWER"), ("REFUSED", "NEWER")]
    pairs += [(effect.name, None) for effect in TriggerEffect]
    pairs += [(TriggerEffect.REBALANCING.name, verdict.name) for verdict in TriggerVerdict]
    rows = [*known.values(), newer(plan("newer", 0, 1, PlanState.OPEN, lines=1)[0])]
    rows += [trigger(2, *pair) for pair in pairs]
    found = {row["proposal"]: row for row in acted(open_frame(spark, JOURNAL, *rows)).collect()}
    states = {name: row["acted_state"] for name, row in found.items()}
    assert {name: state for name, state in states.items() if state == "unknown"} == dict.fromkeys(
        ("newer", "NEWER/None", "REBALANCING/NEWER"), "unknown"
    )
    assert found["newer"]["done_ms"] is None
    assert states["NEWER/AS_PREDICTED"] == "done"
    # Those of this version are all known, and only what has ended is no longer running.
    assert {name for name in known if states[name] == "running"} == {one.name for one in set(PlanState) - ENDED}
    running = {name for name, state in states.items() if state == "running" and name not in known}
    asked = [effect for effect in TriggerEffect if effect not in (TriggerEffect.NOT_SENT, TriggerEffect.REFUSED)]
    assert running == {"None/None", *(f"{effect.name}/None" for effect in asked)}


def test_entries_and_proposals_of_something_else_are_unknown_and_end_nothing(spark: SparkSession) -> None:
    never, most = 2**63 - 1, 2**31 - 1
    targets = {"topics": [[]], "replicas": [[1, 2]], "topic": [0, 7, -1], "partition": [0] * 3, "before": [0, 9, -9]}
    verdict = {"verdict": "AS_PREDICTED", "at_ms": -never, "came": most, "beyond_count": most}
    rows = [
        entry(0, 1, "plan/p-odd", "done", {"proposal_id": "p-odd", "state": 7}),
        entry(0, 2, "targets/p-odd/0", "open", {**targets, "after": [0, -1, most]}),
        entry(0, 3, "targets/p-odd/1", "open", {"topics": None, "replicas": 7}),
        entry(9, 4, "trigger/g/p-asked", "judged", {"proposal_id": "p-asked", "acted_ms": never, "judgement": verdict}),
    ]
    acts = acted(open_frame(spark, JOURNAL, *rows))
    told = {row["proposal"]: row for row in acts.collect()}
    assert [tuple(one) for one in told["p-odd"]["targets"]] == [
        (None, 0, [1, 2], [1, 2]),
        (None, 0, None, None),
        (None, 0, None, None),
    ]
    asked = told["p-asked"]
    assert (asked["acted_state"], asked["applied_ms"], asked["done_ms"], asked["came"]) == ("done", None, None, None)
    assert windows(acts).where("proposal = 'p-asked'").isEmpty()
    odd = {"id": "odd", "state": "void", "at_ms": never}
    life = {"type": "rackwise.proposal.void.v1", "cluster": CLUSTER, "time_ms": at(60), "data": json.dumps(odd)}
    (row,) = published(
        open_frame(spark, PROPOSALS, created("odd", 0, created_ms=-never, expires_ms=never), life)
    ).collect()
    assert (row["created_ms"], row["expires_ms"], row["void_ms"]) == (None, None, None)


def test_what_looks_show_of_plans(spark: SparkSession) -> None:
    plans = {
        "came": ("t", [1, 4, 2], [1, 3, 2]),
        # The replicas that were wanted, and another one in the place of the second.
        "half": ("u", [1, 2], [3, 4]),
        "led": ("v", [1, 2], [2, 1]),
        "not led": ("w", [1, 2], [2, 1]),
        "never seen": ("x", [1, 2], [1, 3]),
        "unsized": ("y", [1, 2], [1, 3]),
    }
    lives = [(CLUSTER, name, "done", at(10), at(20), [(topic, 0, *way)], None) for name, (topic, *way) in plans.items()]
    shown = {"t": [1, 3, 2], "u": [3, 9], "v": [2, 1], "w": [1, 2], "y": [1, 3]}
    ends = [look("i", 1, second=5), look("i", 2, second=25), look("i", 3, second=900)]
    rows = [
        partition(of, topic, 0, replicas=replicas if of is ends[1] else [7, 8])
        for topic, replicas in shown.items()
        for of in ends
    ]
    copied = [("t", 3, 15, 4_000), ("t", 3, 25, 2_000), ("t", 3, 5, 7_000), ("t", 9, 15, 7_000), ("u", 3, 15, 100)]
    copied += [("y", 3, 15, None), ("y", 3, 25, 50)]
    copies = spark.createDataFrame(
        [(CLUSTER, topic, 0, broker, at(second), size) for topic, broker, second, size in copied],
        "cluster string, topic string, partition int, broker int, taken_ms long, copied long",
    )
    expected = [
        (CLUSTER, "came", 1, 6_000.0),
        (CLUSTER, "half", 1, 100.0),
        (CLUSTER, "led", 1, 0.0),
        (CLUSTER, "not led", 0, 0.0),
        (CLUSTER, "unsized", 1, None),
    ]
    found = moved(spark.createDataFrame(lives, LIVES), copies, partitions(spark, *rows))
    wanted = "cluster string, proposal string, measured_moves int, measured_move_bytes double"
    assertDataFrameEqual(found, spark.createDataFrame(expected, wanted))


def crossed_before(spark: SparkSession, *flows: tuple[str, float, float]) -> Any:
    """The row of `crossing` for a proposal about a topic: source rack, bytes and dollars of a second before it."""
    named = windows(spark.createDataFrame([(CLUSTER, "p", "done", at(10), at(20), None, None)], LIVES))
    before = next(row["hour_ms"] for row in named.collect() if row["phase"] == "before")
    traffic = {"cluster": CLUSTER, "hour_ms": before, "topic": "orders", "partition": 0, "seconds": 1.0, "day": DAY}
    ledger = [
        {
            "cluster": CLUSTER, "hour_ms": before, "path": "replicate", "group": "", "topic": "orders",
            "source_rack": rack, "target_rack": "b", "zone": "CROSS_ZONE", "bytes": bytes_, "usd": usd, "day": DAY,
        }
        for rack, bytes_, usd in flows
    ]  # fmt: skip
    subjects = spark.createDataFrame(
        [(CLUSTER, "p", "topic", "orders")], "cluster string, proposal string, kind string, name string"
    )
    rows = frame(spark, LEDGER, *ledger).coalesce(1)
    (row,) = crossing(rows, frame(spark, PARTITION_TRAFFIC, traffic), named, subjects).collect()
    return row


def test_the_same_rows_in_another_order_give_the_same(spark: SparkSession) -> None:
    lives = spark.createDataFrame(
        [(CLUSTER, "p", "done", at(10), at(20), [("orders", 0, [1, 4], [1, 2])], None)], LIVES
    )
    flows = [(rack, n / 10, n / 10) for n, rack in enumerate("abc", 1)]
    # Two agents looked in the same millisecond, and one of them saw the new replica.
    at_once = [look(agent, 1, second=30) for agent in "ab"]
    shown = [
        partition(of, "orders", 0, replicas=replicas) for of, replicas in zip(at_once, ([1, 4], [1, 2]), strict=True)
    ]
    none = spark.createDataFrame(
        [], "cluster string, topic string, partition int, broker int, taken_ms long, copied long"
    )
    said = [created("p", 0, reason=reason) | {"offset": n} for n, reason in enumerate(("first", "last"))]
    for turn in (1, -1):
        row = crossed_before(spark, *flows[::turn])
        assert (row["before_bytes_per_s"], row["before_usd_per_day"]) == (0.6, 0.6 * 86_400)
        (row,) = moved(lives, none, partitions(spark, *shown[::turn]).coalesce(1)).collect()
        assert row["measured_moves"] == 0
        (row,) = published(open_frame(spark, PROPOSALS, *said[::turn]).coalesce(1)).collect()
        assert row["said"]["reason"] == "last"


def test_dollars_of_few_bytes_are_dollars_of_a_day(spark: SparkSession) -> None:
    """Fifteen bytes a second at two cents a gigabyte, for a second."""
    row = crossed_before(spark, *((rack, 5.0, 1e-10) for rack in "acd"))
    assert row["before_usd_per_day"] == pytest.approx(row["before_bytes_per_s"] * 86_400 * 0.02 / 1e9)


def test_what_was_measured_beside_what_was_predicted(spark: SparkSession) -> None:
    lives = spark.createDataFrame(
        [(CLUSTER, "p", "done", at(1_000), at(1_020), [("orders", 0, [1, 4, 2], [1, 3, 2])], None)], LIVES
    )
    named = windows(lives)
    bounds = {row["phase"]: (row["window_from_ms"], row["window_to_ms"]) for row in named.collect()}
    assert bounds == {
        "before": (at(1_000) - WINDOW_MS, at(1_000)),
        "after": (at(1_020) + SETTLE_MS, at(1_020) + SETTLE_MS + WINDOW_MS),
    }
    number = {row["phase"]: row["hour_ms"] for row in named.collect()}
    assert len(set(number.values())) == 2
    traffic = [
        {"cluster": CLUSTER, "hour_ms": number[phase], "topic": "orders", "partition": 0, "seconds": 100.0, "day": DAY}
        for phase in number
    ]

    def flow(phase: str, path: str, topic: str, zone: str, *amounts: float) -> Row:
        bytes_, usd = amounts
        return {
            "cluster": CLUSTER, "hour_ms": number[phase], "path": path, "group": "", "topic": topic, "source_rack": "a",
            "target_rack": "b", "zone": zone, "bytes": bytes_, "usd": usd, "day": DAY,
        }  # fmt: skip

    flows = [
        flow("before", "replicate", "orders", "CROSS_ZONE", 90_000.0, 0.0009),
        flow("before", "consume", "orders", "SAME_ZONE", 10_000.0, 0.0),
        flow("before", "produce", "orders", "CROSS_ZONE", 10_000.0, 1.0),
        flow("before", "replicate", "other", "CROSS_ZONE", 5_000.0, 1.0),
        flow("after", "replicate", "orders", "CROSS_ZONE", 44_000.0, 0.0004),
    ]
    subjects = spark.createDataFrame(
        [(CLUSTER, "p", "topic", "orders")], "cluster string, proposal string, kind string, name string"
    )
    rates = crossing(frame(spark, LEDGER, *flows), frame(spark, PARTITION_TRAFFIC, *traffic), named, subjects)
    ends = [look("i", 1, second=1_000), look("i", 2, second=1_030)]
    rows = partitions(
        spark, partition(ends[0], "orders", 0, replicas=[1, 4, 2]), partition(ends[1], "orders", 0, replicas=[1, 3, 2])
    )
    copies = spark.createDataFrame(
        [(CLUSTER, "orders", 0, 3, at(1_010), 4_000), (CLUSTER, "orders", 0, 3, at(1_030), 2_000),
         (CLUSTER, "orders", 0, 9, at(1_010), 7_000), (CLUSTER, "orders", 0, 3, at(10), 7_000)],
        "cluster string, topic string, partition int, broker int, taken_ms long, copied long",
    )  # fmt: skip
    moves = moved(lives, copies, rows)
    told = published(open_frame(spark, PROPOSALS, created("p", 900), void("p", 1_030)))
    expected = {
        "cluster": CLUSTER, "proposal": "p", "kind": "reassign", "reason": "mend_rack_spread",
        "subject": "topic/orders", "created_ms": at(900), "state": "done", "applied_ms": at(1_000),
        "done_ms": at(1_020), "predicted_moves": 2, "measured_moves": 1, "predicted_move_bytes": 5_000.0,
        "measured_move_bytes": 6_000.0, "predicted_seconds": 10.0, "measured_seconds": 20.0,
        "predicted_bytes_per_s": 400.0, "measured_bytes_per_s": 440.0, "before_bytes_per_s": 900.0,
        "predicted_usd_per_day": 1.5, "measured_usd_per_day": (0.0009 - 0.0004) / 100 * 86_400, "error_share": 0.1,
        "day": DAY,
    }  # fmt: skip
    assertDataFrameEqual(outcomes(told, lives, rates, moves, now_ms=at(2_000)), frame(spark, OUTCOMES, expected))
    assert at(0) == HOUR_MS

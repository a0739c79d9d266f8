"""What records become: bronze rows, or quarantine with the reason; nothing is lost, whatever the bytes are."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from agent.journal.entries import Entry, to_bytes
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines
from agent.telemetry.topic_records import CREATED, VOID, headers, source
from pipeline.schemas.bronze import JOURNAL, PROPOSALS, QUARANTINE, TELEMETRY
from pipeline.schemas.table import TableSpec
from pipeline.transforms import parse

TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MS = 1_767_323_045_000
DAY = "2026-01-02"
RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
EVENT = {
    "v": 1, "kind": "broker", "subject": "broker/1", "cluster": "c", "look": "12345678-1", "n": 3, "taken_ms": MS,
    "data": {"id": 1, "rack": "a"},
}  # fmt: skip


def records(spark: SparkSession, *values: bytes | None, key: bytes | None = b"k", heads: Any = None) -> DataFrame:
    """Records one after the other in one partition."""
    rows = [
        (None if key is None else bytearray(key), None if value is None else bytearray(value), "t", 0, n, TIME, heads)
        for n, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, RECORDS)


def event(**changed: Any) -> bytes:
    return json.dumps({**EVENT, **changed}).encode()


def without(name: str) -> bytes:
    return json.dumps({field: value for field, value in EVENT.items() if field != name}).encode()


def test_an_event_becomes_a_row_with_its_data_as_it_was(spark: SparkSession) -> None:
    told = (event(), event(kind="of a newer rackwise"), event(base="12345678-0", base_taken_ms=MS - 1))
    parsed = parse.with_late(parse.telemetry(records(spark, *told)), None)
    common = ("t", 0)
    rest = ("broker/1", "c", "12345678-1", 3, MS, '{"id":1,"rack":"a"}', None, False)
    expected = [
        (*common, 0, TIME, "c/12345678-1/3", 1, "broker", *rest, None, None, DAY),
        (*common, 1, TIME, "c/12345678-1/3", 1, "of a newer rackwise", *rest, None, None, DAY),
        (*common, 2, TIME, "c/12345678-1/3", 1, "broker", *rest, "12345678-0", MS - 1, DAY),
    ]
    assertDataFrameEqual(parse.accepted(parsed, TELEMETRY), spark.createDataFrame(expected, TELEMETRY.schema))
    assert parse.quarantined(parsed).isEmpty()


def test_what_the_agent_writes_comes_back_as_equal_json(spark: SparkSession) -> None:
    data = {
        "text": 'ü \ud83d\ude00 \u2028 " \\ \ud800', "small": 1e-7, "large": 10**30, "float": 0.1, "none": None,
        "list": [[], {}, True, -0.0, 1e300, 12345678901234567], "": {"nested": [1, 2.5]},
    }  # fmt: skip
    lines = list(to_lines(TelemetryEvent(EventKind.TOPIC, "topic/t", "c", "1-1", 0, MS, data)))
    parsed = parse.telemetry(records(spark, *(line.encode() for line in lines)))
    row = parse.accepted(parsed, TELEMETRY).first()
    assert row is not None
    assert json.loads(row["data"]) == json.loads(lines[0])["data"], "two halves of a pair are one character by now"


def test_the_fragments_of_an_event_are_rows_of_their_own_that_join_to_it(spark: SparkSession) -> None:
    whole = TelemetryEvent(EventKind.GROUP, "group/g", "c", "1-1", 7, MS, {"text": 'é"\\' * 400_000})
    lines = list(to_lines(whole))
    assert len(lines) > 2
    rows = parse.accepted(parse.telemetry(records(spark, *(line.encode() for line in lines))), TELEMETRY).collect()
    assert [row["event_id"] for row in rows] == [f"c/1-1/7/{part}" for part in range(len(lines))]
    pieces = sorted((json.loads(row["data"]) for row in rows), key=lambda piece: piece["part"])
    assert json.loads("".join(piece["text"] for piece in pieces))["data"] == whole.data


def test_fields_that_are_not_known_are_kept_beside_data(spark: SparkSession) -> None:
    row = parse.accepted(parse.telemetry(records(spark, event(new={"a": 1}, other="x"))), TELEMETRY).first()
    assert row is not None
    assert json.loads(row["more"]) == {"new": '{"a":1}', "other": "x"}


BAD_EVENTS = [
    pytest.param(None, "malformed: a record of telemetry without a value", id="no value"),
    pytest.param(b"", "malformed: the value is no JSON object", id="an empty value"),
    pytest.param(b"nonsense", "malformed: the value is no JSON object", id="no JSON"),
    pytest.param(event()[:-5], "malformed: the value is no JSON object", id="JSON that was cut"),
    pytest.param(b"[1,2]", "malformed: the value is no JSON object", id="a list"),
    pytest.param(b"null", "malformed: the value is no JSON object", id="null"),
    pytest.param(event() + event(), "malformed: the value is no JSON object", id="two events in one record"),
    pytest.param(event() + b"," + event(), "malformed: the value is no JSON object", id="two events with a comma"),
    pytest.param(event() + b" x", "malformed: the value is no JSON object", id="something after the event"),
    pytest.param(event().replace(b'"', b"'"), "malformed: the value is no JSON object", id="single quotes"),
    pytest.param(event(subject="x").replace(b"x", b"\xff"), "malformed: the value is not UTF-8", id="no UTF-8"),
    pytest.param(
        b'{"data":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "malformed: the value is no JSON object", id="a deep nest"
    ),
    pytest.param(event(v=2), "version: it is of version 2, known up to 1", id="a newer version"),
    pytest.param(
        event(v=2, n="seven"), "version: it is of version 2, known up to 1", id="a newer version of any shape"
    ),
    pytest.param(event(v=0), "malformed: there is no version below 1", id="version 0"),
    pytest.param(event(v=1.5), "malformed: missing or of another kind: v", id="a version that is no number"),
    pytest.param(without("v"), "malformed: missing or of another kind: v", id="no version"),
    pytest.param(without("look"), "malformed: missing or of another kind: look", id="no look"),
    pytest.param(event(n=None, taken_ms="x"), "malformed: missing or of another kind: n, taken_ms", id="odd fields"),
    pytest.param(event(n=10**12), "malformed: missing or of another kind: n", id="a number beyond its kind"),
    pytest.param(
        event(taken_ms=2**63 - 1), "malformed: missing or of another kind: taken_ms", id="a time beyond every calendar"
    ),
    pytest.param(event(taken_ms=-1), "malformed: missing or of another kind: taken_ms", id="a time before the epoch"),
    pytest.param(event(data=[1]), "malformed: data is no JSON object", id="data that is a list"),
    pytest.param(event(kind="fragment", data={}), "fragment: part, parts", id="a fragment of nothing"),
    pytest.param(
        event(kind="fragment", data={"part": 2, "parts": 2, "text": "x"}), "fragment: part, parts", id="a part too many"
    ),
    pytest.param(
        event(kind="fragment", data={"part": 0, "parts": 2, "text": ""}), "fragment: part, parts", id="an empty part"
    ),
    pytest.param(
        event(kind="fragment", data={"part": 0, "parts": 10**9, "text": "x"}),
        "fragment: part, parts",
        id="a billion parts",
    ),
    pytest.param(
        event(data={"x": "y" * parse.MAX_VALUE_BYTES}), "oversize: ", id="a value larger than anything rackwise writes"
    ),
]


def test_what_is_no_event_goes_to_quarantine_whole_and_with_the_reason(spark: SparkSession) -> None:
    values = [case.values[0] for case in BAD_EVENTS]
    heads = [("h", bytearray(b"\x00\xff"))]
    parsed = parse.with_late(parse.telemetry(records(spark, *values, heads=heads)), MS)
    rows = sorted(parse.quarantined(parsed).collect(), key=lambda row: row["offset"])
    assert parse.accepted(parsed, TELEMETRY).isEmpty()
    for row, case in zip(rows, BAD_EVENTS, strict=True):
        value, reason = case.values
        assert row["reason"].startswith(reason), case.id
        assert (row["key"], row["value"]) == (b"k", value), case.id
        told = json.loads(row["headers"])
        assert [(one["key"], base64.b64decode(one["value"])) for one in told] == [("h", b"\x00\xff")]


def test_quarantine_has_the_written_out_columns(spark: SparkSession) -> None:
    found = parse.quarantined(parse.telemetry(records(spark, b"x", heads=None)))
    expected = [
        ("t", 0, 0, TIME, bytearray(b"k"), bytearray(b"x"), None, "malformed: the value is no JSON object", DAY)
    ]
    assertDataFrameEqual(found, spark.createDataFrame(expected, QUARANTINE.schema))


@pytest.mark.parametrize(
    ("watermark_ms", "late"),
    [
        pytest.param(None, False, id="nothing is late before anything was seen"),
        pytest.param(1_767_326_399_999, False, id="its hour is still open"),
        pytest.param(1_767_326_400_000, True, id="its hour has just been closed"),
    ],
)
def test_an_event_is_late_when_its_hour_was_closed(spark: SparkSession, watermark_ms: int | None, late: bool) -> None:
    row = parse.with_late(parse.telemetry(records(spark, event(taken_ms=MS))), watermark_ms).first()
    assert row is not None
    assert row["late"] is late


def proposal_headers(**changed: str) -> list[tuple[str, bytearray]]:
    told = headers(
        event_id="p-1", source=source("c/ü", "agent 1"), kind=CREATED, subject="topic/t", time_ms=MS, schema="urn:x"
    )
    named = dict(told) | {name: value.encode() for name, value in changed.items()}
    return [(name, bytearray(value)) for name, value in named.items() if value != b"-"]


def test_a_proposal_and_its_tombstone_become_rows(spark: SparkSession) -> None:
    value = b'{"id":"p-1","moves":[ ]}'
    made = parse.proposals(records(spark, value, key=b"topic/t#reassign/x", heads=proposal_headers()))
    gone = parse.proposals(records(spark, None, key=b"topic/t#reassign/x"))
    row = ("t", 0, 0, TIME, "p-1", CREATED, "c/ü", "agent 1", "topic/t", "topic/t#reassign/x", MS, value.decode(), DAY)
    tombstone = ("t", 0, 0, TIME, *[None] * 5, "topic/t#reassign/x", None, None, DAY)
    found = parse.accepted(made, PROPOSALS).unionAll(parse.accepted(gone, PROPOSALS))
    assertDataFrameEqual(found, spark.createDataFrame([row, tombstone], PROPOSALS.schema))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"value": b"x"}, "malformed: the value is no JSON object", id="no JSON"),
        pytest.param({"ce_type": "rackwise.proposal.created.v2"}, "version: it is of version 2", id="a newer version"),
        pytest.param({"ce_type": "com.example.order"}, "malformed: rackwise writes no com.example.order", id="foreign"),
        pytest.param({"ce_id": "-"}, "malformed: it lacks the CloudEvents headers", id="no id"),
        pytest.param({"ce_source": "/x"}, "malformed: it lacks the CloudEvents headers", id="a source without cluster"),
        pytest.param({"key": None}, "malformed: the key is no text", id="no key"),
        pytest.param({"key": b"\xff"}, "malformed: the key is no text", id="a key that is no text"),
    ],
)
def test_what_is_no_proposal_goes_to_quarantine(spark: SparkSession, change: dict[str, Any], reason: str) -> None:
    heads = proposal_headers(**{name: text for name, text in change.items() if name.startswith("ce_")})
    given = records(spark, change.get("value", b"{}"), key=change.get("key", b"k"), heads=heads)
    row = parse.quarantined(parse.proposals(given)).first()
    assert row is not None
    assert row["reason"].startswith(reason)


def test_the_steps_of_a_proposals_life_are_kept_too(spark: SparkSession) -> None:
    row = parse.accepted(
        parse.proposals(records(spark, b"{}", heads=proposal_headers(ce_type=VOID))), PROPOSALS
    ).first()
    assert row is not None
    assert (row["type"], row["event_id"]) == (VOID, "p-1")


def test_an_entry_of_the_journal_and_its_deletion_become_rows(spark: SparkSession) -> None:
    entry = Entry(key="approval/p-1", kind="approved", at_ms=MS, epoch=3, seq=4, value={"a": [1]})
    parsed = parse.journal(records(spark, to_bytes(entry), None, key=b"approval/p-1"), "c")
    expected = [
        ("t", 0, 0, TIME, "c", "approval/p-1", "approved", MS, 3, 4, '{"a":[1]}', None, DAY),
        ("t", 0, 1, TIME, "c", "approval/p-1", None, None, None, None, None, None, DAY),
    ]
    assertDataFrameEqual(parse.accepted(parsed, JOURNAL), spark.createDataFrame(expected, JOURNAL.schema))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param({"v": 9}, "version: it is of version 9, known up to 1", id="a newer version"),
        pytest.param(
            {"v": 1, "kind": "x"}, "malformed: missing or of another kind: at_ms, epoch, seq, value", id="half"
        ),
        pytest.param(
            {"v": 1, "kind": "x", "at_ms": 2**63 - 1, "epoch": 1, "seq": 1, "value": {}},
            "malformed: missing or of another kind: at_ms",
            id="a time beyond every calendar",
        ),
    ],
)
def test_what_is_no_entry_goes_to_quarantine(spark: SparkSession, value: dict[str, Any], reason: str) -> None:
    row = parse.quarantined(parse.journal(records(spark, json.dumps(value).encode()), "c")).first()
    assert row is not None
    assert row["reason"] == reason


ODD = (
    *(b"[" * deep + b"]" * deep for deep in (900, 990, 998, 1_001)),
    *(b"9" * digits for digits in (20, 400, 1_000, 5_000)),
    *(b"1e400", b"-1e-400", b"1e99999999999999999999", b"NaN", b"-Infinity", b"+1", b"01"),
    *(b'"\\ud800"', b'"x\\udc00x"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\x00"', b'"\xed\xa0\x80"'),
    *(b'1,"a":2', b'{"b":1,"b":2}', b'{"' + b"n" * 60_000 + b'":1}'),
)
"""Values that one reader or another of JSON cannot hold."""


@pytest.mark.parametrize(
    ("read", "table"),
    [
        pytest.param(parse.telemetry, TELEMETRY, id="telemetry"),
        pytest.param(parse.proposals, PROPOSALS, id="proposals"),
        pytest.param(lambda records: parse.journal(records, "c"), JOURNAL, id="journal"),
    ],
)
def test_every_record_is_in_exactly_one_of_both_whatever_its_bytes(
    spark: SparkSession, read: Callable[[DataFrame], DataFrame], table: TableSpec
) -> None:
    values = [bytes([n]) * (n % 7) for n in range(256)] + [event()[:cut] for cut in range(0, len(event()) + 1, 9)]
    values += [event(data="@").replace(b'"@"', b'{"a":' + odd + b"}") for odd in ODD]
    values += [event(subject="@", new={"@": "@"}).replace(b"@", odd) for odd in ODD]
    heads = [("ce_id", None), ("ce_id", bytearray(b"\xff")), ("", bytearray(b""))]
    parsed = read(records(spark, *values, None, event(), heads=heads)).persist()
    good, bad = (
        frame.select("offset").collect() for frame in (parse.accepted(parsed, table), parse.quarantined(parsed))
    )
    parsed.unpersist()
    assert sorted(row["offset"] for row in [*good, *bad]) == list(range(len(values) + 2))

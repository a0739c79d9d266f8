"""Weights out of gold: rates over the seconds that looks cover, and which records are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual
from typer.testing import CliRunner

from agent.errors import BadInput
from agent.telemetry.topic_records import to_records, weights_of
from agent.values.weights import GroupWeights, ReadWeight, TopicWeights
from config.load import LoadedSettings
from pipeline import options
from pipeline.cli import spark_app
from pipeline.jobs import weights as weights_job
from pipeline.jobs.weights import WeightRecords, changes_between, make_weights
from pipeline.kafka import TopicIdentity
from pipeline.schemas import gold, silver
from pipeline.schemas.table import TableSpec, day_of
from pipeline.tables import TableStore, WriterBatch
from pipeline.topic_writer import KeyedRecord
from pipeline.transforms.weights import group_weights, topic_weights

HOUR = 3_600_000
NOON = 1_760_000_400_000 // HOUR * HOUR
"""An hour's begin; the last look came half an hour later."""
LAST = NOON + HOUR // 2
DAY = 24 * HOUR


def rows(spark: SparkSession, table: TableSpec, *given: dict[str, Any]) -> DataFrame:
    """Rows of a table; what is not given is null."""
    fixed = {"cluster": "C1", "seconds": 3_600.0}
    dated = [{**fixed, "day": day_of(one.get("hour_ms") or one.get("taken_ms") or NOON), **one} for one in given]
    return spark.createDataFrame([tuple(map(one.get, table.schema.names)) for one in dated], table.schema)


def looks(spark: SparkSession) -> DataFrame:
    return rows(
        spark,
        silver.LOOKS,
        {"look": "i-1", "taken_ms": LAST - HOUR, "complete": True},
        {"look": "i-2", "taken_ms": LAST, "complete": True},
        {"look": "i-3", "taken_ms": LAST + HOUR, "complete": False},
        {"cluster": "C2", "look": "j-1", "taken_ms": LAST - 48 * HOUR, "complete": True},
    )


def traffic(hour_ms: int, partition: int, records: int, size: float | None, **more: Any) -> dict[str, Any]:
    told = {"topic": "orders", "partition": partition, "hour_ms": hour_ms, "records": records, "bytes": size}
    return {**told, "confidence": "measured", **more}


def read(hour_ms: int, partition: int, size: float | None, **more: Any) -> dict[str, Any]:
    told = {"group": "g", "topic": "orders", "partition": partition, "hour_ms": hour_ms, "bytes": size}
    return {**told, "basis": "committed", "catching_up": False, **more}


TOPIC_ROW = (
    "topic string, from_ms long, to_ms long, partitions array<struct<partition:int,bytes_per_s:double,"
    "records_per_s:double,bytes_per_record:double,confidence:string>>"
)


def test_records_beyond_64_bits_have_no_rate_and_end_nothing(spark: SparkSession) -> None:
    given = rows(spark, gold.PARTITION_TRAFFIC, *(traffic(NOON - at * HOUR, 0, 2**62, 1.0) for at in range(3)))
    (row,) = topic_weights(given, LAST, DAY).collect()
    (told,) = row["partitions"]
    assert (told["records_per_s"], told["bytes_per_record"]) == (None, None)
    assert told["bytes_per_s"] == pytest.approx(3 / (3 * 3_600))


def test_rates_are_averages_over_the_seconds_that_looks_cover(spark: SparkSession) -> None:
    given = rows(
        spark,
        gold.PARTITION_TRAFFIC,
        # 900 s of the hour before are a gap, not zero.
        traffic(NOON - HOUR, 0, 5_400, 540_000.0, seconds=2_700.0),
        traffic(NOON, 0, 900, 90_000.0, seconds=1_800.0, confidence="topic"),
        # The size of its records became known in the second hour.
        traffic(NOON - HOUR, 1, 3_600, None, confidence="none"),
        traffic(NOON, 1, 1_800, 36_000.0, seconds=1_800.0),
        # Never known.
        traffic(NOON, 2, 1_800, None, seconds=1_800.0, confidence="none"),
        # Before the window, of no time at all, and gone since hours.
        traffic(NOON - 25 * HOUR, 0, 10**9, 1e12),
        traffic(NOON, 3, 0, 0.0, seconds=0.0),
        traffic(NOON - 3 * HOUR, 4, 100, 100.0),
    )
    partitions = [
        (0, 140.0, 1.4, 100.0, "topic"),
        (1, 20.0, 1.0, 20.0, "none"),
        (2, None, 1.0, None, "none"),
    ]
    wanted = spark.createDataFrame([("orders", NOON - HOUR, LAST, partitions)], TOPIC_ROW)
    assertDataFrameEqual(topic_weights(given, LAST, DAY), wanted)


def test_a_shorter_window_forgets_sooner(spark: SparkSession) -> None:
    given = rows(spark, gold.PARTITION_TRAFFIC, traffic(NOON - HOUR, 0, 1, 7_200.0), traffic(NOON, 0, 1, 3_600.0))
    (row,) = topic_weights(given, LAST, HOUR // 2 - 1).collect()
    assert (row["from_ms"], row["partitions"][0]["bytes_per_s"]) == (NOON, 1.0)


def test_rates_do_not_depend_on_the_order_of_rows(spark: SparkSession) -> None:
    covered = (3_540.1, 3_599.7, 3_480.3, 1_234.9, 3_599.9)
    hours = [traffic(NOON - at * HOUR, 0, 1, 0.1 * at + size, seconds=size) for at, size in enumerate(covered)]
    rates = [
        topic_weights(rows(spark, gold.PARTITION_TRAFFIC, *some), LAST, DAY).collect()[0]["partitions"][0]
        for some in (hours, hours[::-1], hours[2:] + hours[:2])
    ]
    assert rates[0] == rates[1] == rates[2]


GROUP_ROW = (
    "group string, from_ms long, to_ms long, reads array<struct<topic:string,partition:int,"
    "bytes_per_s:double>>, restores array<struct<subtopology:int,low:double,median:double,high:double,samples:int,"
    "stalled_share:double>>"
)


def test_what_groups_read_and_restore(spark: SparkSession) -> None:
    reads = rows(
        spark,
        gold.READ_TRAFFIC,
        read(NOON - HOUR, 1, 360_000.0),
        read(NOON, 1, 90_000.0, seconds=1_800.0),
        read(NOON, 0, 3_600.0),
        # It caught up: nothing that it will read again.
        read(NOON, 0, 1e12, topic="old", catching_up=True),
        read(NOON, 2, None),
    )
    restores = rows(
        spark,
        gold.RESTORE_RATES,
        {"group": "app", "subtopology": 1, "samples": 4, "low": 1.0, "median": 2.0, "high": 3.0, "until_ms": 77},
        {
            "group": "app", "subtopology": 0, "samples": 9, "low": 4.0, "median": 5.0, "high": 6.0,
            "stalled_share": 0.5, "until_ms": 99,
        },
        {"group": "g", "subtopology": 0, "samples": 0, "until_ms": 99},
    )  # fmt: skip
    wanted = spark.createDataFrame(
        [
            ("app", 99, LAST, [], [(0, 4.0, 5.0, 6.0, 9, 0.5), (1, 1.0, 2.0, 3.0, 4, None)]),
            ("g", NOON - HOUR, LAST, [("orders", 0, 1.0), ("orders", 1, 450_000 / 5_400)], None),
        ],
        GROUP_ROW,
    )
    assertDataFrameEqual(group_weights(reads, restores, LAST, DAY), wanted)


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    """Tables that tests read."""
    tables = TableStore(spark, str(tmp_path_factory.mktemp("filled")), "parquet")
    tables.append(silver.LOOKS, looks(spark), WriterBatch("t", 0))
    # The agent's clock ran ahead for one look.
    ahead = rows(spark, silver.LOOKS, {"look": "i-9", "taken_ms": LAST + 3 * DAY, "complete": True})
    tables.append(silver.LOOKS, ahead, WriterBatch("t", 1))
    hours = rows(
        spark, gold.PARTITION_TRAFFIC, traffic(NOON, 0, 7_200, 123_456_789.0), traffic(NOON, 1, 1, None),
        {**traffic(NOON, 0, 1, 1.0), "cluster": "C2"}, {**traffic(NOON - 48 * HOUR, 0, 1, 3_600.0), "cluster": "C2"},
    )  # fmt: skip
    tables.append(gold.PARTITION_TRAFFIC, hours, WriterBatch("t", 0))
    reads = rows(spark, gold.READ_TRAFFIC, read(NOON, 0, 3_600_000.0), read(NOON, 0, 1.0, cluster="C2"))
    tables.append(gold.READ_TRAFFIC, reads, WriterBatch("t", 0))
    return tables


def test_records_are_those_of_the_cluster_that_is_connected(filled: TableStore) -> None:
    made = make_weights(filled, "C1", window_ms=DAY, now_ms=LAST + 1)
    assert (made.topics, made.groups, made.partitions, made.others) == (1, 1, 2, ("C2",))
    topic, group = (weights_of(key, made.records[key]) for key in ("C1/topic/orders", "C1/group/g"))
    assert isinstance(topic, TopicWeights)
    assert isinstance(group, GroupWeights)
    # Four significant digits, and null where no size is known.
    assert [row.bytes_per_s for row in topic.partitions] == [34_290.0, None]
    assert [row.bytes_per_s for row in group.reads] == [1_000.0]
    assert (topic.computed_ms, topic.to_ms) == (LAST + 1, LAST)
    assert set(made.records) == {"C1/topic/orders", "C1/group/g"}


def test_the_window_ends_with_the_last_complete_look_of_the_cluster(filled: TableStore) -> None:
    made = make_weights(filled, "C2", window_ms=DAY, now_ms=LAST + 1)
    (topic,) = (weights_of(*record) for record in made.records.items())
    assert isinstance(topic, TopicWeights)
    assert (topic.to_ms, [row.bytes_per_s for row in topic.partitions]) == (LAST - 48 * HOUR, [1.0])
    assert made.others == ("C1",)


def test_tables_that_know_nothing_of_the_cluster_delete_nothing(filled: TableStore) -> None:
    with pytest.raises(BadInput, match="no complete look of cluster C9"):
        make_weights(filled, "C9", window_ms=DAY, now_ms=LAST)


def _record(key: str, **changes: Any) -> dict[str, bytes]:
    return {key: json.dumps({"v": 1, "computed_ms": 1, "rate": 5} | changes).encode()}


@pytest.mark.parametrize(
    ("stands", "wanted", "changes"),
    [
        pytest.param({}, _record("C1/topic/a"), ("C1/topic/a",), id="new"),
        pytest.param(
            _record("C1/topic/a"), _record("C1/topic/a", computed_ms=9), (), id="computed again, and the same"
        ),
        pytest.param(_record("C1/topic/a"), _record("C1/topic/a", rate=6), ("C1/topic/a",), id="another rate"),
        pytest.param(_record("C1/topic/a"), {}, ("-C1/topic/a",), id="gone"),
        pytest.param(_record("C2/topic/a"), {}, (), id="another cluster's"),
        pytest.param({"C1/topic/a": b"\xff"}, _record("C1/topic/a"), ("C1/topic/a",), id="what stood there is no JSON"),
        pytest.param({"C1/junk": b"[1]"}, {}, ("-C1/junk",), id="what stood there is no record"),
    ],
)
def test_only_what_changed_is_written_and_what_is_gone_is_deleted(
    stands: dict[str, bytes], wanted: dict[str, bytes], changes: tuple[str, ...]
) -> None:
    found = changes_between(stands, wanted, "C1")
    assert tuple(f"-{one.key}" if one.value is None else one.key for one in found) == changes


def test_everything_is_written_on_demand() -> None:
    same = _record("C1/topic/a")
    assert changes_between(same, same, "C1", everything=True) == (KeyedRecord("C1/topic/a", same["C1/topic/a"]),)


def test_a_second_run_over_the_same_tables_writes_nothing(filled: TableStore) -> None:
    first = make_weights(filled, "C1", window_ms=DAY, now_ms=LAST).records
    later = make_weights(filled, "C1", window_ms=DAY, now_ms=LAST + HOUR).records
    assert first != later
    assert changes_between(first, later, "C1") == ()
    assert [key for one in map(weights_of, later, later.values()) for key, _ in to_records(one)] == list(later)


ODD = "g\x1b[2J\u202e\nC1/group/forged {}"
"""Group id that steers a terminal and forges a line."""


def test_a_dry_run_prints_foreign_names_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    told = dict(to_records(GroupWeights("C1", ODD, LAST, NOON, LAST, (ReadWeight("orders", 0, 1.0),), ())))
    made = WeightRecords(topics=0, groups=1, partitions=0, records=told, others=())

    class Brokers:
        def __init__(self, _kafka: object) -> None:
            pass

        def topic(self, name: str, _cluster: str | None) -> TopicIdentity:
            return TopicIdentity(name, "C1", "id", (0,))

    @contextmanager
    def job(_name: str, loaded: LoadedSettings, _conf: object) -> Iterator[Any]:
        yield SimpleNamespace(settings=loaded.settings, tables=None)

    monkeypatch.setattr(options, "job", job)
    monkeypatch.setattr(weights_job, "TopicClient", Brokers)
    monkeypatch.setattr(weights_job, "make_weights", lambda *_, **__: made)
    # As they are read: bytes that are no text.
    present = {b"C1/group/\xff\x9b2J".decode("utf-8", "surrogateescape"): b"{}"}
    monkeypatch.setattr(weights_job, "standing", lambda *_, **__: present)
    done = CliRunner().invoke(spark_app, ["weights", "--dry-run"])
    assert done.exception is None
    lines = done.stdout.splitlines()
    assert lines[0].startswith(r"C1/group/g\x1b[2J\u202e\nC1/group/forged {} {")
    assert lines[1:] == [r"C1/group/\udcff\udc9b2J deleted"]
    assert json.loads(lines[0].partition("{} ")[2]) == json.loads(*told.values())
    assert done.stderr.endswith("to be written: 1 record, 1 to be deleted\n")

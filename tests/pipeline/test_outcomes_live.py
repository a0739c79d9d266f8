"""What was predicted of a reassignment beside what came of it, on real brokers with real traffic.

An agent that may act mends a topic whose replicas share racks, after a person approved it. What it published, its
journal and its telemetry go through the pipeline; the table says how far the prediction was off.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.schemas.bronze import JOURNAL, PROPOSALS, TELEMETRY
from pipeline.schemas.gold import OUTCOMES
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore, WriterBatch
from pipeline.transforms import parse
from pipeline.transforms.outcomes import SETTLE_MS
from pipeline.transforms.prices import PriceRow
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.agent_process import Running, wait_for
from tests.command import rackwise
from tests.pipeline.live import PATIENT, Paced, Reading, bytes_per_s
from tests.pipeline.look_events import telemetry_of_file

pytestmark = [pytest.mark.drill, pytest.mark.timeout(1_800)]

TOPIC = "orders"
CROWDED = [[1, 4, 2], [1, 4, 2], [4, 1, 2], [4, 1, 2]]
"""Brokers 1 and 4 stand in rack a, 2 in b and 3 in c."""
SETTINGS = """
mode: execute
poll.interval: 1s
plan.interval: 5s
http.port: 0
log.format: json
racks.stable_for: 1s
racks.stable_polls: 1
execute.cooldown: 0s
proposals.ttl: 1m
observe.refresh_sizes: 0s
record.every: 0s
"""
BYTES_PER_S = 300_000
AFTER_S = 60
MOST_ERROR = 0.1
USD_PER_GB = 0.02
"""As the agent has it by default."""
RECORDS = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)


def records(servers: str, topic: str) -> list[tuple[Any, ...]]:
    """Every committed record of a topic, as Spark's Kafka source gives them."""
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False, "log_level": 0,
        "enable.partition.eof": True, "isolation.level": "read_committed", "auto.offset.reset": "earliest",
    })  # fmt: skip
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([Position(topic, number, 0) for number in partitions])
        found, ended = [], 0
        until = time.monotonic() + 120
        while ended < len(partitions):
            assert time.monotonic() < until, f"{topic} could not be read to its end"
            for message in consumer.consume(500, 1.0):
                if message.error() is not None:
                    ended += 1
                    continue
                when = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
                place = (message.topic(), message.partition(), message.offset(), when)
                found.append((message.key(), message.value(), *place, message.headers() or []))
        return found
    finally:
        consumer.close()


def foretold(servers: str) -> str | None:
    """Id of the reassignment that stands, once it says how many bytes will cross racks, and the copy takes a while."""
    newest: dict[bytes, bytes | None] = {row[0]: row[1] for row in records(servers, "rackwise.proposals")}
    for value in newest.values():
        document = json.loads(value) if value else {}
        predicted = document.get("predicted", {})
        known = predicted.get("cross_rack_bytes_per_s_after") is not None
        if known and predicted["seconds"] and document["kind"] == "reassign" and document["subject"]["name"] == TOPIC:
            return str(document["id"])
    return None


class Story:
    """The file and the topics that the pipeline is given, and which proposal was carried out."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path) -> None:
        self.file = folder / "telemetry.jsonl"
        config = folder / "rackwise.yaml"
        config.write_text(f"{SETTINGS}record.file: {self.file}\n")
        servers = cluster.bootstrap_servers
        agent = Running(cluster, config, folder / "agent.log")
        try:
            partitions = [(TOPIC, number) for number in range(len(CROWDED))]
            with (
                Reading(servers, "readers", TOPIC, "c") as reader,
                Reading(servers, "others", TOPIC, "c") as other,
                Paced(servers, partitions, BYTES_PER_S) as paced,
            ):
                assert reader.assigned.wait(120)
                assert other.assigned.wait(120)
                wait_for(lambda: agent.events("leading"), 120)
                wait_for(lambda: any(topic == "rackwise.proposals" for topic in topics(servers)), 120)
                self.proposal: str = wait_for(lambda: foretold(servers), 400)
                where = ("-b", servers, "--config", str(config), "-o", "json")
                approved = rackwise("proposals", "approve", self.proposal, "--yes", *where, within_s=240)
                assert approved.exit_code == 0, approved.stderr
                wait_for(lambda: [one for one in agent.events("plan_ended") if one], 400)
                time.sleep(AFTER_S)
        finally:
            agent.process.kill()
            agent.process.wait(60)
        self.acked = paced.acked
        self.proposals = records(servers, "rackwise.proposals")
        self.journal = records(servers, "rackwise.journal")
        self.cluster_id = cluster.cluster_id


def topics(servers: str) -> list[str]:
    return list(AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30).topics)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with EmbeddedCluster.start(
        ClusterSpec(racks=("a", "b", "c", "a"), broker_properties=PATIENT), on_progress=print
    ) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for made in admin.create_topics([NewTopic(TOPIC, len(CROWDED), replica_assignment=CROWDED)]).values():
            made.result(60)
        yield Story(cluster, tmp_path_factory.mktemp("outcomes"))


def test_what_was_predicted_came(story: Story, spark: SparkSession, tmp_path: Path) -> None:
    tables = TableStore(spark, str(tmp_path / "tables"))

    def given(rows: list[tuple[Any, ...]]) -> DataFrame:
        return spark.createDataFrame(rows, RECORDS)

    tables.append(TELEMETRY, telemetry_of_file(spark, story.file), WriterBatch("test", 0))
    proposals = parse.accepted(parse.proposals(given(story.proposals)), PROPOSALS)
    tables.append(PROPOSALS, proposals, WriterBatch("test", 0))
    journal = parse.accepted(parse.journal(given(story.journal), story.cluster_id), JOURNAL)
    tables.append(JOURNAL, journal, WriterBatch("test", 0))
    refresh(tables, settings=RefreshSettings(prices=(PriceRow(None, None, USD_PER_GB),)))
    (row,) = tables.read(OUTCOMES).where(f"proposal = '{story.proposal}'").collect()
    print(f"\n{'':<26}{'predicted':>14}{'measured':>14}{'error':>9}")
    for name, predicted, measured in (
        ("moves", row["predicted_moves"], row["measured_moves"]),
        ("bytes copied", row["predicted_move_bytes"], row["measured_move_bytes"]),
        ("seconds", row["predicted_seconds"], row["measured_seconds"]),
        ("bytes/s across racks", row["predicted_bytes_per_s"], row["measured_bytes_per_s"]),
        ("gained dollars a day", row["predicted_usd_per_day"], row["measured_usd_per_day"]),
    ):
        assert predicted, f"no {name} were predicted"
        assert measured is not None, f"{name} were not measured"
        error = (measured - predicted) / predicted
        print(f"{name:<26}{predicted:>14,.4f}{measured:>14,.4f}{error:>9.2%}")
    print(f"bytes/s across racks before: {row['before_bytes_per_s']:,.1f}")
    assert row["state"] == "done"
    assert row["measured_moves"] == row["predicted_moves"] == len(CROWDED)
    # What was measured is what producers count: before, one copy crossed and two reads; then two copies and no read.
    (end,) = tables.read(LOOKS).agg(F.max("taken_ms")).first() or (0,)
    began = next(at_ms for at_ms, records in story.acked if records)
    before = bytes_per_s(story.acked, began, row["applied_ms"])
    after = bytes_per_s(story.acked, row["done_ms"] + SETTLE_MS, end)
    print(f"producers wrote {before:,.0f} bytes a second before, and {after:,.0f} afterwards")
    assert row["measured_bytes_per_s"] == pytest.approx(2 * after, rel=MOST_ERROR)
    assert row["before_bytes_per_s"] == pytest.approx(3 * before, rel=MOST_ERROR)
    saved = row["before_bytes_per_s"] - row["measured_bytes_per_s"]
    assert row["measured_usd_per_day"] == pytest.approx(saved * 86_400 / 1e9 * USD_PER_GB)
    # A machine that has no time for producers makes them write unevenly, which no prediction covers.
    uneven = abs(after / BYTES_PER_S - 1) + abs(before / BYTES_PER_S - 1)
    assert abs(row["error_share"]) <= MOST_ERROR + 2 * uneven
    # The topic grew from when it was foretold until it had been copied.
    assert row["predicted_move_bytes"] <= row["measured_move_bytes"] <= 2 * row["predicted_move_bytes"]

"""How long from a telemetry event to a gold row that can be queried, while ingest runs.

``python -m tests.bench.spark_latency``: an embedded broker, looks as an agent would write them every five seconds,
ingest with silver and gold in this process, and a query of gold.partition_traffic beside it: the records that it counts
tell which look it has. A look's time is from the broker's acknowledgement of its last event to the end of the first
query that counts it. What came with the first batch, or while it ran, stands apart: it waits for Spark to warm up.
Wall clock; another load on the machine is in the figures.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from agent.telemetry.events import to_lines
from agent.values.observation import Observation
from config.load import load_settings
from pipeline.jobs.refresh import refresh_settings
from pipeline.kafka import TopicClient, source_options
from pipeline.schemas.gold import PARTITION_TRAFFIC
from pipeline.session import small_batches, spark_session
from pipeline.stream.ingest import IngestTopics, StreamRunner, plans, streams
from pipeline.stream.live import LiveRefresh
from pipeline.stream.topic import SourceSettings
from pipeline.tables import TableStore
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.builders import an_observation, reader
from tests.pipeline.look_events import events_of
from tests.snapshots import tp

GOAL_S = 30.0
EVERY_S = 5.0
RECORDS_PER_S = 10
LOOKS = 36
GROUPS = 20
PATIENCE_S = 600.0
ASK_S = 1.0
"""Pause between two queries: without one they would take a core from what they measure."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, EmbeddedCluster.start(ClusterSpec(racks=("a",))) as cluster:
        settings = load_settings(flags={"kafka.bootstrap.servers": cluster.bootstrap_servers}, environ={}).settings
        spark = spark_session("latency", master="local[2]", conf=small_batches("local[2]"))
        tables = TableStore(spark, folder)
        with running(tables, settings) as failed:
            writer = threading.Thread(target=tell, args=(cluster.bootstrap_servers, settings.telemetry_topic))
            writer.start()
            seen = watch(tables, failed)
            writer.join()
        spark.stop()
    first = min(SEEN_WITH_FIRST, default=0.0)
    took = {number: seen[number] - SENT[number] for number in seen}
    waited = [took[number] for number in seen if SENT[number] <= first < seen[number]]
    later = sorted(took[number] for number in seen if SENT[number] > first)
    if failed or not later:
        print(f"ingest failed: {failed}" if failed else "no look came after the first batch", file=sys.stderr)
        return 1
    lines = [
        {"case": "first look, with Spark's first batch", "value": round(took[0], 1), "unit": "s"},
        {
            "case": "a look that came while the first batch ran, slowest",
            "value": round(max(waited, default=0.0), 1),
            "unit": "s",
            "note": f"{len(waited)} looks",
        },
        {"case": "a later look, median", "value": round(statistics.median(later), 1), "unit": "s"},
        {
            "case": "a later look, slowest",
            "value": round(later[-1], 1),
            "unit": "s",
            "goal": GOAL_S,
            "ok": later[-1] <= GOAL_S,
            "note": f"{len(later)} looks of {GROUPS} groups, one every {EVERY_S:.0f} s",
        },
    ]
    for line in lines:
        print(json.dumps({"bench": "latency", **line}), flush=True)
    return 0


SENT: dict[int, float] = {}
SEEN_WITH_FIRST: list[float] = []


def look(number: int) -> Observation:
    """One topic that grows by the second, and groups that read it."""
    second = number * EVERY_S
    answers = an_observation(a=(1,), b=(2,), c=(3,))
    answers.topic("orders", (1, 2, 3), (2, 3, 1), ends=(round(RECORDS_PER_S * second), 500))
    for group in range(GROUPS):
        answers.group(f"shop-{group}", reader("m1", "a", "orders-0"), reader("m2", "c", "orders-1"))
    answers.committed = {f"shop-{group}": {tp("orders-0"): round(RECORDS_PER_S * second)} for group in range(GROUPS)}
    answers.sizes = {(broker, tp("orders-0")): 100 * round(RECORDS_PER_S * second) for broker in (1, 2, 3)}
    return answers.at(second)


def tell(bootstrap_servers: str, topic: str) -> None:
    """Write a look every few seconds."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5})
    begun = time.monotonic()
    for number in range(LOOKS):
        time.sleep(max(0.0, begun + number * EVERY_S - time.monotonic()))
        for event in events_of(look(number), f"12345678-{number}"):
            for line in to_lines(event):
                producer.produce(topic, line.encode(), event.subject.encode())
        producer.flush()
        SENT[number] = time.monotonic()


@contextmanager
def running(tables: TableStore, settings) -> Iterator[list[str]]:
    """Ingest with silver and gold, in a thread; what went wrong with it."""
    stop, failed = threading.Event(), []
    make_topic(settings)
    names = IngestTopics(
        telemetry=settings.telemetry_topic, proposals=settings.proposals_topic, journal=settings.journal_topic
    )
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731 talk goes to one place
    reading = SourceSettings(
        options=source_options(settings.kafka), max_records=200_000, interval_ms=1_000, late_after_ms=600_000
    )
    live = LiveRefresh(tables, refresh_settings(settings), say, histories_every_ms=settings.spark.histories_every_ms)
    made = streams(
        plans(names, live.on_telemetry),
        reading,
        tables=tables,
        brokers=TopicClient(settings.kafka),
        checkpoints=f"{tables.root}/_checkpoints",
        say=say,
        on_batch=lambda _report: None,
    )
    ingest = StreamRunner(made, expected_cluster=None, patience_ms=60_000, say=say)

    def run() -> None:
        try:
            ingest.run(stop)
        except Exception as error:  # noqa: BLE001 told by the bench's own exit code
            failed.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield failed
    finally:
        stop.set()
        thread.join()


def make_topic(settings) -> None:
    admin = AdminClient(settings.kafka.confluent())
    for future in admin.create_topics([NewTopic(settings.telemetry_topic, 1, 1)]).values():
        future.result()


def watch(tables: TableStore, failed: list[str]) -> dict[int, float]:
    """Query until the last look is counted: look -> when a query first counted it."""
    seen: dict[int, float] = {}
    until = time.monotonic() + LOOKS * EVERY_S + PATIENCE_S
    while len(seen) < LOOKS and not failed and time.monotonic() < until:
        rows = tables.read(PARTITION_TRAFFIC).where("topic = 'orders' and partition = 0")
        counted = rows.agg({"records": "sum"}).collect()[0][0]
        now = time.monotonic()
        if counted is None:
            time.sleep(ASK_S)
            continue
        newest = round(counted / RECORDS_PER_S / EVERY_S)
        fresh = [number for number in range(newest + 1) if number not in seen]
        if fresh and not seen:
            SEEN_WITH_FIRST.append(now)
        seen |= dict.fromkeys(fresh, now)
        time.sleep(ASK_S)
    return seen


if __name__ == "__main__":
    sys.exit(main())

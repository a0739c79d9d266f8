"""rackwise's topics on real brokers, filled as an agent and as strangers would fill them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import functions as F

from agent.journal.entries import Entry, to_bytes
from agent.telemetry.topic_records import CREATED, headers, source
from config.kafka_client import KafkaClientConfig
from pipeline.kafka import TopicClient, source_options
from pipeline.schemas.table import TableSpec
from pipeline.stream.ingest import IngestTopics, StreamRunner, plans, streams
from pipeline.stream.progress import BatchReport
from pipeline.stream.topic import BatchFollower, SourceSettings
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster

MS = 1_767_323_045_000
_prefixes = (f"rackwise-test-{number}" for number in itertools.count())


class Topics:
    """One set of topics with a name of its own."""

    def __init__(self, cluster: EmbeddedCluster, *, partitions: int = 2) -> None:
        self.cluster = cluster
        self.kafka = KafkaClientConfig.of({"bootstrap.servers": cluster.bootstrap_servers})
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 20})
        prefix = next(_prefixes)
        self.names = IngestTopics(
            telemetry=f"{prefix}.telemetry", proposals=f"{prefix}.proposals", journal=f"{prefix}.journal"
        )
        self.partitions = partitions
        self.produced = 0
        """Telemetry records so far."""
        self.bad = 0
        """How many of them are no events."""

    def make(self, *names: str, partitions: int | None = None) -> None:
        """Create the topics."""
        new = [NewTopic(name, partitions or self.partitions, 1) for name in names]
        for answer in self.admin.create_topics(new).values():
            answer.result(30)

    def delete(self, name: str) -> None:
        for answer in self.admin.delete_topics([name]).values():
            answer.result(30)

    def events(
        self, count: int, *, every_bad: int = 0, look: str = "12345678-1", filler: str = "", time_ms: int = 0
    ) -> None:
        """Telemetry events, each ``every_bad``-th of them no event at all; ``time_ms`` is of records, 0: now."""
        for _ in range(count):
            n = self.produced
            self.produced += 1
            is_bad = every_bad > 0 and n % every_bad == 0
            self.bad += is_bad
            value = b"\x00no event" if is_bad else event(n, look, filler)
            key = f"topic/{n % 50}"
            self.put(self.names.telemetry, value, key=key, partition=n % self.partitions, time_ms=time_ms)
        self.flush()

    def lines(self, lines: Iterable[str]) -> None:
        """Telemetry as the agent writes it, in partition 0."""
        for line in lines:
            self.produced += 1
            self.put(self.names.telemetry, line.encode(), key="x", partition=0)
        self.flush()

    def proposal(self, value: bytes | None, slot: str, cluster: str = "c") -> None:
        record_headers = headers(
            event_id=f"p-{slot}",
            source=source(cluster, "agent"),
            kind=CREATED,
            subject="topic/t",
            time_ms=MS,
            schema="u",
        )
        self.put(self.names.proposals, value, key=slot, heads=list(record_headers) if value is not None else [])

    def journal(self, *batches: tuple[int, bool]) -> None:
        """Transactions of so many entries each, committed or not."""
        producer = Producer({
            "bootstrap.servers": self.cluster.bootstrap_servers, "transactional.id": f"{self.names.journal}-writer",
        })  # fmt: skip
        producer.init_transactions(30)
        sequence = itertools.count()
        for count, committed in batches:
            producer.begin_transaction()
            for _ in range(count):
                n = next(sequence)
                value = to_bytes(Entry(key=f"plan/{n}", kind="intent", at_ms=MS, epoch=1, seq=n, value={"n": n}))
                producer.produce(self.names.journal, value, key=f"plan/{n}".encode(), partition=0)
            if committed:
                producer.commit_transaction(30)
            else:
                producer.flush(30)
                producer.abort_transaction(30)

    def put(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: str,
        partition: int = 0,
        heads: list[tuple[str, bytes]] | None = None,
        time_ms: int = 0,
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key=key.encode(), partition=partition, headers=heads or [], timestamp=time_ms
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def flush(self) -> None:
        assert self._producer.flush(60) == 0

    def options(self) -> tuple[str, ...]:
        """Options of a command that reads these."""
        named = (f"topics.{kind}.name={name}" for kind, name in asdict(self.names).items())
        return (
            "--bootstrap-servers",
            self.cluster.bootstrap_servers,
            *(word for one in named for word in ("--set", one)),
        )

    def ingest(self, tables: TableStore, root: Path, **named: Any) -> StreamRunner:
        """A runner of all three topics into the tables; ``named`` are fields of `SourceSettings`."""
        return runner(self.kafka, self.names, tables, root, **named)


def runner(
    kafka: KafkaClientConfig,
    names: IngestTopics,
    tables: TableStore,
    root: Path,
    *,
    say: Callable[[str], None] = print,
    on_telemetry: BatchFollower | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    cluster: str | None = None,
    **named: Any,
) -> StreamRunner:
    reading = {"max_records": 100_000, "interval_ms": 200, "late_after_ms": 600_000, **named}
    made = streams(
        plans(names, on_telemetry),
        SourceSettings(options=source_options(kafka), **reading),
        tables=tables,
        brokers=TopicClient(kafka, 10),
        checkpoints=str(root / "checkpoints"),
        say=say,
        on_batch=on_batch or (lambda one: say(one.sentence)),
    )
    return StreamRunner(made, expected_cluster=cluster, patience_ms=1_000, say=say)


def event(n: int, look: str = "12345678-1", filler: str = "") -> bytes:
    envelope = {
        "v": 1, "kind": "report", "subject": f"topic/{n % 50}", "cluster": "c", "look": look, "n": n, "taken_ms": MS,
        "data": {"number": n, "filler": filler},
    }  # fmt: skip
    return json.dumps(envelope, separators=(",", ":")).encode()


class Counted(NamedTuple):
    """Rows of a table, and how many of them differ in their key."""

    rows: int
    distinct: int


def counted(tables: TableStore, table: TableSpec) -> Counted:
    read = tables.read(table)
    row = read.agg(F.count(F.lit(1)).alias("rows"), F.count_distinct(F.struct(*table.key)).alias("distinct")).first()
    assert row is not None
    return Counted(row["rows"], row["distinct"])

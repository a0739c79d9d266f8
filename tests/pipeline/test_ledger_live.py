"""The ledger against real brokers: what it works out of telemetry alone, path by path beside what brokers counted.

Three brokers in three racks, so that a broker's counters are its rack's. Each topic is read in one way only, so that
its counters are those of one route. Own counters of brokers are the witness; the ledger reads none of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from assignors.problem import TopicPartition
from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import LEDGER
from pipeline.schemas.silver import PARTITIONS
from pipeline.tables import TableStore, WriterBatch
from pipeline.transforms.prices import ProducerRow
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.act.reassignments import REASSIGN, kafka_tool, reassignment_file
from tests.agent_process import Running, wait_for
from tests.pipeline.live import PATIENT, Counted, Paced, Reading, counted, since
from tests.pipeline.look_events import telemetry_of_file

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_800)]

SPREAD = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
TOPICS = {"by-leader": SPREAD, "by-rack": SPREAD, "late": SPREAD, "moving": [[1, 2]]}
SETTINGS = """
mode: observe
poll.interval: 1s
plan.interval: 1h
observe.refresh_sizes: 0s
record.every: 0s
http.enabled: false
log.format: json
"""
TAIL_S = 10
BYTES_PER_S = 1_200_000
MOST_ERROR = 0.05
CATCH_UP_ERROR = 0.15
"""Reading what lies there in large batches, brokers send what does not fit into an answer again."""

Amounts = Mapping[tuple[str, ...], float]


class Scene:
    """The counters before and after each part, and the telemetry of the whole."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path) -> None:
        self.cluster = cluster
        self.file = folder / "telemetry.jsonl"
        config = folder / "rackwise.yaml"
        config.write_text(f"{SETTINGS}record.file: {self.file}\n")
        self.agent = Running(cluster, config, folder / "agent.log")
        self.marks: list[Counted] = []

    def looks(self) -> int:
        """Looks that were written in full so far."""
        return self.file.read_text().count('"kind":"look"') if self.file.exists() else 0

    def quiet(self, looks: int = 3) -> None:
        """Wait until what happened is in a look, and mark the counters."""
        wanted = self.looks() + looks
        wait_for(lambda: self.looks() >= wanted, 240)
        self.marks.append(counted(self.cluster))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("ledger")
    with EmbeddedCluster.start(ClusterSpec(jmx=True, broker_properties=PATIENT), on_progress=print) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = [NewTopic(name, len(rows), replica_assignment=rows) for name, rows in TOPICS.items()]
        for made in admin.create_topics(topics).values():
            made.result(60)
        told = Scene(cluster, folder)
        try:
            play(told, folder)
        finally:
            told.agent.process.kill()
            told.agent.process.wait(60)
        yield told


def play(scene: Scene, folder: Path) -> None:
    """Tail reads first; then a reader that catches up; then a replica that moves."""
    servers = scene.cluster.bootstrap_servers
    with ExitStack() as stack:
        readers = [
            stack.enter_context(Reading(servers, "without-rack", "by-leader", None)),
            stack.enter_context(Reading(servers, "with-rack", "by-rack", "b")),
        ]
        late = stack.enter_context(Reading(servers, "catching-up", "late", None, paused=True))
        for reader in (*readers, late):
            assert reader.assigned.wait(120)
        scene.quiet()
        partitions = [(name, number) for name, rows in TOPICS.items() for number in range(len(rows))]
        with Paced(servers, partitions, BYTES_PER_S) as paced:
            time.sleep(TAIL_S)
        share = paced.records // len(partitions) * 3
        wait_for(lambda: min(reader.records for reader in readers) >= share, 240)
        time.sleep(2)  # the last commit
        scene.quiet()
        late.go()
        wait_for(lambda: late.records >= share, 240)
        time.sleep(2)
        scene.quiet()
        file = reassignment_file({TopicPartition("moving", 0): (1, 3)}, folder / "move.json")
        kafka_tool(scene.cluster, REASSIGN, "--reassignment-json-file", file, "--execute", "--throttle", "1200000")
        time.sleep(5)
        wait_for(lambda: "is completed" in verified(scene, file), 240)
        scene.quiet()


def verified(scene: Scene, file: str) -> str:
    return kafka_tool(scene.cluster, REASSIGN, "--reassignment-json-file", file, "--verify")


@pytest.fixture(scope="module")
def ledger(scene: Scene, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    tables = TableStore(spark, str(tmp_path_factory.mktemp("tables")))
    tables.append(TELEMETRY, telemetry_of_file(spark, scene.file), WriterBatch("test", 0))
    done = refresh(tables, settings=RefreshSettings(producers=(ProducerRow("*", "a", 1.0),)))
    print(done)
    led = tables.read(PARTITIONS).where(F.col("topic").isin(*TOPICS)).select("topic", "partition", "leader").distinct()
    assert led.count() == sum(map(len, TOPICS.values())), "a leader moved: its broker forgets what it has counted"
    return [row.asDict() for row in tables.read(LEDGER).collect()]


def amounts(ledger: list[dict[str, Any]], path: str, key: Callable[[dict[str, Any]], tuple[str, ...]]) -> Amounts:
    found: dict[tuple[str, ...], float] = {}
    for row in ledger:
        if row["path"] == path and row["bytes"]:
            found[key(row)] = found.get(key(row), 0.0) + row["bytes"]
    return found


def compare(name: str, told: Amounts, witness: Mapping[Any, float], most: float) -> None:
    """Print both beside each other; every amount and their sum agree within the error."""
    witness = {key if isinstance(key, tuple) else (key,): float(value) for key, value in witness.items()}
    rows = [(" ".join(key), told.get(key, 0.0), witness.get(key, 0.0)) for key in sorted({*told, *witness})]
    rows.append(("all", sum(told.values()), sum(witness.values())))
    errors = []
    print(f"\n{name:<28}{'ledger MB':>12}{'witness MB':>12}{'error':>9}")
    for label, ours, theirs in rows:
        error = (ours - theirs) / theirs if theirs else float("inf") if ours else 0.0
        print(f"{label:<28}{ours / 1e6:>12.3f}{theirs / 1e6:>12.3f}{error:>9.2%}")
        if max(ours, theirs) > 100_000:  # what brokers keep for themselves (offsets) is next to nothing
            errors.append(abs(error))
    assert rows[-1][2] > 1_000_000, "nothing flowed"
    assert max(errors) <= most


def of_topics(counts: Mapping[tuple[str, str], int], *topics: str) -> dict[tuple[str, str], int]:
    return {key: value for key, value in counts.items() if key[0] in topics}


def test_what_producers_wrote_to_which_rack(scene: Scene, ledger: list[dict[str, Any]]) -> None:
    told = amounts(ledger, "produce", lambda row: (row["topic"], row["target_rack"]))
    witness = since(scene.marks[0].taken, scene.marks[1].taken)
    told = {key: value for key, value in told.items() if key[0] in TOPICS}
    compare("produce", told, of_topics(witness, *TOPICS), MOST_ERROR)


def test_what_went_from_leaders_to_followers(scene: Scene, ledger: list[dict[str, Any]]) -> None:
    for end, before, after in (
        ("source_rack", scene.marks[0].sent, scene.marks[1].sent),
        ("target_rack", scene.marks[0].fetched, scene.marks[1].fetched),
    ):
        told = amounts(ledger, "replicate", lambda row, end=end: (row[end],))
        compare(f"replicate by {end}", told, since(before, after), MOST_ERROR)


def test_what_readers_at_the_end_got_from_which_rack(scene: Scene, ledger: list[dict[str, Any]]) -> None:
    told = amounts(ledger, "consume", lambda row: (row["topic"], row["source_rack"]))
    witness = since(scene.marks[0].given, scene.marks[1].given)
    for topic in ("by-leader", "by-rack"):
        mine = {key: value for key, value in told.items() if key[0] == topic}
        compare(f"consume {topic}", mine, of_topics(witness, topic), MOST_ERROR)
    assert {key[1] for key in told if key[0] == "by-rack"} == {"b"}, "follower fetching was not told"


def test_what_a_reader_got_that_caught_up(scene: Scene, ledger: list[dict[str, Any]]) -> None:
    told = amounts(ledger, "consume", lambda row: (row["topic"], row["source_rack"]))
    mine = {key: value for key, value in told.items() if key[0] == "late"}
    witness = of_topics(since(scene.marks[1].given, scene.marks[2].given), "late")
    compare("consume, catching up", mine, witness, CATCH_UP_ERROR)


def test_what_a_reassignment_copied(scene: Scene, ledger: list[dict[str, Any]]) -> None:
    told = amounts(ledger, "move", lambda row: (row["source_rack"], row["target_rack"]))
    sent = since(scene.marks[2].sent, scene.marks[3].sent)
    fetched = since(scene.marks[2].fetched, scene.marks[3].fetched)
    assert set(told) == {("a", "c")}
    compare("move, sent", {("a",): told["a", "c"]}, {"a": sent["a"]}, MOST_ERROR)
    compare("move, fetched", {("c",): told["a", "c"]}, {"c": fetched["c"]}, MOST_ERROR)


def test_no_other_topic_but_the_brokers_own_has_traffic(ledger: list[dict[str, Any]]) -> None:
    assert {row["topic"] for row in ledger if row["bytes"]} <= {*TOPICS, "__consumer_offsets"}
    assert json.dumps(sorted({row["path"] for row in ledger if row["bytes"]})) == json.dumps(
        ["consume", "move", "produce", "replicate"]
    )

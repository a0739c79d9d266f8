"""How far streams are: from the running process as metrics, and from tables and checkpoints alone as a status."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

import httpx
import pytest
from confluent_kafka import TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import functions as F

from agent.errors import BadInput, ConfigError
from agent.telemetry.events import EventKind, TelemetryEvent
from pipeline.commands import status as command
from pipeline.files import StoredFiles
from pipeline.schemas.bronze import QUARANTINE, TELEMETRY
from pipeline.stream.checkpoint import StreamCheckpoint, StreamIdentity, TopicSources
from pipeline.stream.metrics import INGEST_METRICS, serve_metrics
from pipeline.stream.progress import BatchReport, IngestProgress, TopicLag, behind, lag_of
from pipeline.stream.status import StreamState, sentence, statuses
from pipeline.stream.topic import sources_of
from pipeline.tables import Format, TableStore, WriterBatch
from testbed.cluster import EmbeddedCluster
from tests.pipeline.look_events import telemetry
from tests.pipeline.topics import Topics

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
PATIENT_MS = 60_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("position", "end", "newest_ms", "lag"),
    [
        pytest.param({0: 5, 1: 7}, {0: 5, 1: 7}, {}, TopicLag(0, 0.0), id="everything is read"),
        pytest.param({0: 5, 1: 7}, {0: 9, 1: 7}, {0: 4_000, 1: 1_000}, TopicLag(4, 6.0), id="one partition has more"),
        pytest.param({0: 5, 1: 7}, {0: 9, 1: 8}, {0: 4_000, 1: 1_000}, TopicLag(5, 9.0), id="the oldest counts"),
        pytest.param({0: 5}, {0: 9, 1: 8}, {0: 4_000}, TopicLag(12, None), id="a partition of which nothing was read"),
        pytest.param({0: 9}, {0: 5}, {}, TopicLag(0, 0.0), id="a topic that ends before the position"),
    ],
)
def test_a_lag_counts_what_can_be_read_and_is_as_old_as_what_was_read_last(
    position: Mapping[int, int], end: Mapping[int, int], newest_ms: Mapping[int, int], lag: TopicLag
) -> None:
    assert lag_of(position, end, newest_ms, 10_000) == lag


def test_a_lag_in_words_is_unknown_where_it_is_unknown() -> None:
    assert behind(None) == "lag unknown"
    assert behind(TopicLag(0, 0.0)) == "nothing left to read"
    assert behind(TopicLag(3, None)) == "3 records behind"
    assert behind(TopicLag(1, 90.0)) == "1 record behind, written within the last 90 s"


def test_the_table_in_the_docs_is_the_one_of_the_code() -> None:
    rows = re.findall(r"^\| `(rackwise_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == [
        (one.name, one.kind, ", ".join(f"`{label}`" for label in one.labels), one.sentence) for one in INGEST_METRICS
    ]


def test_what_is_unknown_has_no_sample_and_an_address_that_is_taken_is_refused() -> None:
    progress = IngestProgress()
    progress.set_lag("journal", None)
    with serve_metrics(progress, "127.0.0.1", 0) as server:
        found = scraped(server.address)
        assert ("rackwise_ingest_batches_total", "journal") in found
        assert not [name for name, *_ in found if "lag" in name or "last" in name or name.endswith("batch_seconds")]
        port = int(server.address.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}") as refused:
            serve_metrics(progress, "127.0.0.1", port)
        assert "spark.metrics_port" in refused.value.todo
        rebound = httpx.get(f"http://{server.address}/metrics", headers={"Host": "evil.example"})
        assert rebound.status_code == 421


def test_the_newest_record_of_a_stream_is_that_of_its_own_topic_and_cluster(
    make_tables: Callable[[str, Format], TableStore], tmp_path: Path
) -> None:
    """A root of two clusters: one whose agent was stopped days ago, and one with a topic of the same name."""
    tables, now_ms = make_tables("tables", "parquet"), time.time_ns() // 1_000_000
    ages = {("t", "quiet"): 3 * DAY_MS, ("t", "busy"): 60_000, ("other", "quiet"): 30_000, ("t", "ahead"): -9 * DAY_MS}
    events = [
        TelemetryEvent(
            kind=EventKind.REPORT, subject="x/y", cluster=of, look="l-1", n=n, taken_ms=now_ms - age, data={}
        )
        for n, ((_, of), age) in enumerate(ages.items())
    ]
    for number, (one, (topic, _)) in enumerate(zip(events, ages, strict=True)):
        rows = telemetry(tables.spark, [one]).withColumn("topic", F.lit(topic))
        tables.append(TELEMETRY, rows, WriterBatch("w", number))
    files = StoredFiles(tables.spark)

    def newest(cluster: str, topic: str = "t") -> float | None:
        checkpoint = StreamCheckpoint(files, f"{tmp_path}/{cluster}-{topic}/ingest-telemetry")
        if checkpoint.identity() is None:
            checkpoint.claim(StreamIdentity("telemetry", topic, "id", cluster, tables.root, "parquet"), lambda: False)
            head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": now_ms})
            files.write(f"{checkpoint.path}/offsets/0", "\n".join(("v1", head, json.dumps({topic: {"0": 1}}))))
            files.write(f"{checkpoint.path}/commits/0", "v1\n{}")
        (found, *_) = statuses(tables, checkpoint.path.rpartition("/")[0], stalled_after_ms=PATIENT_MS, now_ms=now_ms)
        return found.behind_s

    assert newest("quiet", "other") == 30
    assert newest("nobody", "third") is None
    assert newest("quiet") == 60, "one cluster alone has filled it: its events may name others"
    sources = TopicSources(files, sources_of(tables))
    for cluster in ("quiet", "busy"):
        sources.add("t", cluster)
    assert newest("quiet") == 3 * DAY_MS / 1_000
    assert newest("busy") == 60


def test_rows_of_gold_are_not_counted_as_its_first_write_alone_is():
    progress = IngestProgress()
    rows = {"silver.looks": 1, "gold.ledger": 9, "gold.lags": None}
    progress.add(BatchReport("telemetry", "t", 0, 3, 0, 0, rows, 0.1, 1, None, 3))
    assert progress.rows() == {"silver.looks": 1}


@pytest.mark.integration
def test_batches_are_reported_counted_and_exported_and_the_lag_grows_with_the_topic(
    broker: EmbeddedCluster, delta_tables: TableStore, tmp_path: Path
) -> None:
    topics, progress, reports = Topics(broker), IngestProgress(), list[BatchReport]()

    def on_batch(one: BatchReport) -> None:
        reports.append(one)
        progress.add(one)

    topics.make(topics.names.telemetry)
    topics.events(60, every_bad=6)
    runner = topics.ingest(delta_tables, tmp_path, max_records=40, on_batch=on_batch)
    runner.run_once(Event())
    assert [(one.number, one.records, one.since_start) for one in reports] == [(0, 40, 40), (1, 20, 60)]
    first, second = reports
    assert first.lag is not None
    assert first.lag.records == 20
    assert first.lag.seconds is not None
    assert 0 < first.lag.seconds < PATIENT_MS
    assert second.lag == TopicLag(0, 0.0)
    assert first.rows == {TELEMETRY.name: first.records - first.quarantined, QUARANTINE.name: first.quarantined}
    assert first.quarantined + second.quarantined == topics.bad == 10
    assert "nothing left to read" in second.sentence

    topics.events(7)
    stream = next(one for one in runner._streams if one.plan.name == "telemetry")
    waiting = stream.lag()
    assert waiting is not None
    assert waiting.records == 7
    progress.set_lag("telemetry", waiting)
    with serve_metrics(progress, "127.0.0.1", 0) as server:
        found = scraped(server.address)
    assert found["rackwise_ingest_batches_total", "telemetry"] == 2
    assert found["rackwise_ingest_records_total", "quarantined", "telemetry"] == 10
    assert found["rackwise_ingest_records_total", "accepted", "telemetry"] == 50
    assert found["rackwise_ingest_rows_total", QUARANTINE.name] == 10
    assert found["rackwise_ingest_lag_records", "telemetry"] == 7
    assert found["rackwise_ingest_last_batch_timestamp_seconds", "telemetry"] == second.written_ms / 1_000
    assert {name for name, *_ in found} >= {one.name for one in INGEST_METRICS}

    topics.admin.delete_records([TopicPartition(topics.names.telemetry, 1, 32)])[
        TopicPartition(topics.names.telemetry, 1)
    ].result(30)
    topics.ingest(delta_tables, tmp_path, accept_data_loss=True, on_batch=on_batch).run_once(Event())
    lost = reports[-1]
    assert (lost.gap_offsets, lost.rows[QUARANTINE.name]) == (2, 1)
    assert "; 2 offsets deleted unread" in lost.sentence
    assert progress.streams()["telemetry"].gap_offsets == 2

    _check_status(topics, delta_tables, tmp_path, lost)


def _check_status(topics: Topics, tables: TableStore, root: Path, last: BatchReport) -> None:
    """What the checkpoint and the tables say once nothing runs any more."""
    checkpoints, soon = str(root / "checkpoints"), last.written_ms + 1_000

    def at(now_ms: int) -> dict[str, tuple[StreamState, str]]:
        found = statuses(tables, checkpoints, stalled_after_ms=PATIENT_MS, now_ms=now_ms)
        return {one.stream: (one.state, sentence(one, now_ms)) for one in found}

    found = statuses(tables, checkpoints, stalled_after_ms=PATIENT_MS, now_ms=soon)
    telemetry, proposals, journal = found
    assert (telemetry.topic, telemetry.cluster) == (topics.names.telemetry, topics.cluster.cluster_id)
    assert (telemetry.state, telemetry.batch, telemetry.records) == (StreamState.BETWEEN_BATCHES, last.number, 7)
    assert telemetry.written_ms is not None
    assert abs(telemetry.written_ms - last.written_ms) < PATIENT_MS
    assert telemetry.behind_s is not None
    assert 0 < telemetry.behind_s < PATIENT_MS
    assert (proposals.state, proposals.newest_ms, proposals.behind_s) == (StreamState.NOT_STARTED, None, None)
    assert "there is no checkpoint at" in journal.why
    assert command.exit_code(found) == 0
    assert json.loads(command.document(found))[0]["records"] == 7

    state, words = at(soon + 10 * PATIENT_MS)["telemetry"]
    assert state is StreamState.STALLED
    assert words.startswith("telemetry: stalled (no batch for 10 min: ingest does not run, or no agent writes); batch ")
    assert f"batch {last.number} covers 7 records, written 10 min ago; the newest record is 10 min old" in words
    assert command.exit_code(statuses(tables, checkpoints, stalled_after_ms=1, now_ms=soon + PATIENT_MS)) == 1

    commits = root / "checkpoints" / "ingest-telemetry" / "commits"
    (commits / str(last.number)).unlink()  # as a batch leaves it that is not written
    state, words = at(soon)["telemetry"]
    assert (state, f"batch {last.number} began" in words) == (StreamState.IN_BATCH, True)
    state, words = at(soon + 10 * PATIENT_MS)["telemetry"]
    assert state is StreamState.STALLED
    assert f"batch {last.number} began 10 min ago and is not written" in words
    mark = root / "checkpoints" / "ingest-telemetry" / "rackwise.json"
    mark.write_text("{")
    with pytest.raises(BadInput, match=r"rackwise\.json cannot be read"):
        at(soon)


def scraped(address: str) -> dict[tuple[str, ...], float]:
    """Name and label values (in the order of label names) -> value, as a Prometheus server reads them."""
    answer = httpx.get(f"http://{address}/metrics").raise_for_status()
    families = text_string_to_metric_families(answer.text)
    samples = [one for family in families for one in family.samples]
    found = {(one.name, *(value for _, value in sorted(one.labels.items()))): one.value for one in samples}
    assert len(found) == len(samples)
    return {key: value for key, value in found.items() if key[0].startswith("rackwise_")}

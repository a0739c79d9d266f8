"""Topics of real brokers into bronze: every record once, what cannot be read in quarantine, holes never hidden."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Timer

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import DataFrame

from agent.errors import BadInput, ConfigError, RackwiseError, WrongCluster
from pipeline.errors import DataLost
from pipeline.files import StoredFiles
from pipeline.kafka import TopicClient
from pipeline.schemas.bronze import JOURNAL, PROPOSALS, QUARANTINE, TELEMETRY
from pipeline.stream.checkpoint import TopicSources
from pipeline.stream.ingest import StreamRunner
from pipeline.stream.topic import sources_of
from pipeline.tables import Format, TableStore
from testbed.cluster import EmbeddedCluster
from tests.pipeline.topics import MS, Counted, Topics, counted, event

HOUR_MS = 3_600_000

pytestmark = pytest.mark.integration


@pytest.fixture
def topics(broker: EmbeddedCluster) -> Topics:
    return Topics(broker)


@pytest.mark.parametrize("layout", ["delta", pytest.param("parquet", marks=pytest.mark.drill)])
def test_every_record_of_every_topic_is_in_one_table_once_over_restarts(
    topics: Topics, make_tables: Callable[[str, Format], TableStore], tmp_path: Path, layout: Format
) -> None:
    tables = make_tables("tables", layout)
    topics.make(topics.names.telemetry)
    topics.events(500, every_bad=7)
    told: list[str] = []
    topics.ingest(tables, tmp_path, max_records=300, say=told.append).run_once(Event())
    assert counted(tables, TELEMETRY) == Counted(428, 428)
    assert counted(tables, QUARANTINE) == Counted(72, 72)
    assert f"journal: topic {topics.names.journal} does not exist yet" in told

    topics.make(topics.names.proposals, topics.names.journal, partitions=1)
    topics.events(100, every_bad=7)
    late = json.loads(event(topics.produced))
    topics.put(topics.names.telemetry, json.dumps({**late, "taken_ms": MS - 5 * HOUR_MS}).encode(), key="x")
    topics.proposal(b'{"id":"p"}', "s")
    topics.proposal(None, "s")
    topics.flush()
    topics.journal((3, True), (4, False), (2, True))
    for _ in range(2):  # the second finds nothing new
        topics.ingest(tables, tmp_path, max_records=300, say=told.append).run_once(Event())
        assert counted(tables, TELEMETRY) == Counted(515, 515)
        assert counted(tables, QUARANTINE) == Counted(86, 86)
        assert counted(tables, PROPOSALS) == Counted(2, 2)
        assert counted(tables, JOURNAL) == Counted(5, 5)
    assert f"telemetry: nothing new in {topics.names.telemetry}" in told
    marked = {row["n"]: row["late"] for row in tables.read(TELEMETRY).where("late").collect()}
    assert marked == {topics.produced: True}
    assert {row["seq"] for row in tables.read(JOURNAL).collect()} == {0, 1, 2, 7, 8}
    assert {row["cluster"] for row in tables.read(JOURNAL).collect()} == {topics.cluster.cluster_id}


def test_records_that_were_deleted_unread_stop_ingest_until_the_hole_is_accepted_and_then_are_written_down(
    topics: Topics, delta_tables: TableStore, tmp_path: Path
) -> None:
    topics.make(topics.names.telemetry)
    topics.events(40)
    topics.ingest(delta_tables, tmp_path).run_once(Event())
    topics.events(40)
    topics.admin.delete_records([TopicPartition(topics.names.telemetry, 1, 33)])[
        TopicPartition(topics.names.telemetry, 1)
    ].result(30)
    with pytest.raises(DataLost) as refused:
        topics.ingest(delta_tables, tmp_path).run_once(Event())
    assert "partition 1: offsets 20 to 32 are missing" in str(refused.value)
    assert "--accept-data-loss" in refused.value.todo
    assert counted(delta_tables, TELEMETRY) == Counted(40, 40)

    topics.ingest(delta_tables, tmp_path, accept_data_loss=True).run_once(Event())
    assert counted(delta_tables, TELEMETRY) == Counted(80 - 13, 80 - 13)
    (hole,) = delta_tables.read(QUARANTINE).collect()
    assert (hole["partition"], hole["offset"], hole["value"]) == (1, 20, None)
    assert hole["reason"] == "lost: partition 1: offsets 20 to 32 are missing"
    topics.ingest(delta_tables, tmp_path).run_once(Event())  # what was accepted is behind us

    _check_refusals(topics, delta_tables, tmp_path)


def _check_refusals(topics: Topics, tables: TableStore, root: Path) -> None:
    """What does not fit the checkpoint or the tables is refused before anything is read."""
    mark = root / "checkpoints" / "ingest-telemetry" / "rackwise.json"
    whole = mark.read_text()

    def refused(kind: type[RackwiseError], sentence: str, fresh: TableStore = tables, where: Path = root) -> None:
        with pytest.raises(kind) as told:
            topics.ingest(fresh, where).run_once(Event())
        assert sentence in str(told.value)
        assert told.value.exit_code == 2

    def with_mark(**changed: str) -> None:
        mark.write_text(json.dumps({**json.loads(whole), **changed}))

    with_mark(query="proposals")
    refused(BadInput, "is the checkpoint of another query: it is of query proposals, not telemetry")
    with_mark(cluster="another")
    refused(WrongCluster, "belongs to")
    with_mark(topic_id="AAAAAAAAAAAAAAAAAAAAAA")
    refused(BadInput, "is not the one that was read before: it was deleted and created again")
    mark.unlink()
    refused(BadInput, "is the checkpoint of another query: it has no rackwise.json")
    with_mark()
    refused(BadInput, "but there is no checkpoint at", where=root / "elsewhere")

    version = Path(tables.path(TELEMETRY)) / "_rackwise.json"
    version.write_text(version.read_text().replace('"version": 1', '"version": 2'))
    newer = TableStore(tables.spark, tables.root)
    refused(BadInput, "is of version 2, and this rackwise reads up to 1", newer)


def test_topics_of_one_name_of_two_clusters_fill_one_root_each_once(
    topics: Topics, delta_tables: TableStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second cluster is the same brokers under another id; quarantined records name no cluster."""
    topics.make(topics.names.telemetry)
    topics.events(20, every_bad=7)
    topics.ingest(delta_tables, tmp_path / "first").run_once(Event())
    ids = [topics.cluster.cluster_id]
    with monkeypatch.context() as as_another:
        as_another.setattr(TopicClient, "_cluster_id", lambda _: "another")
        ids.append("another")
        for _ in range(2):
            topics.ingest(delta_tables, tmp_path / "second").run_once(Event())
            assert (counted(delta_tables, TELEMETRY).rows, counted(delta_tables, QUARANTINE).rows) == (34, 6)
        with pytest.raises(WrongCluster, match="belongs to") as refused:
            topics.ingest(delta_tables, tmp_path / "first").run_once(Event())
        assert "spark.checkpoints" in refused.value.todo
        with pytest.raises(BadInput, match="of this cluster, but there is no checkpoint at"):
            topics.ingest(delta_tables, tmp_path / "third").run_once(Event())
    with pytest.raises(BadInput, match="of this cluster, but there is no checkpoint at"):
        topics.ingest(delta_tables, tmp_path / "third").run_once(Event())
    sources = TopicSources(StoredFiles(delta_tables.spark), sources_of(delta_tables))
    assert sources.clusters(topics.names.telemetry) == set(ids)
    assert sources.clusters(topics.names.proposals) == set()

    (Path(sources_of(delta_tables)) / "x.json").write_text("[]")
    with pytest.raises(BadInput, match=r"x\.json cannot be read"):
        sources.clusters(topics.names.telemetry)
    shutil.rmtree(sources_of(delta_tables))
    with monkeypatch.context() as as_another:
        as_another.setattr(TopicClient, "_cluster_id", lambda _: "another")
        with pytest.raises(BadInput, match="but there is no checkpoint at"):  # whose rows they are is not known
            topics.ingest(delta_tables, tmp_path / "third").run_once(Event())


def test_a_topic_that_is_missing_or_a_cluster_that_is_another_one_is_told_before_anything_is_written(
    topics: Topics, delta_tables: TableStore, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"There is no topic {topics.names.telemetry}") as missing:
        topics.ingest(delta_tables, tmp_path).run_once(Event())
    assert missing.value.exit_code == 2
    topics.make(topics.names.telemetry)
    with pytest.raises(WrongCluster, match="cluster another is expected"):
        topics.ingest(delta_tables, tmp_path, cluster="another").run_once(Event())
    assert not Path(delta_tables.root).exists()
    told: list[str] = []
    assert topics.ingest(delta_tables, tmp_path, say=told.append).run_once(Event()) == 0
    assert f"telemetry: nothing new in {topics.names.telemetry}" in told


def test_records_that_come_right_after_a_batch_has_begun_are_waited_for(
    topics: Topics, delta_tables: TableStore, tmp_path: Path
) -> None:
    """Not where it is read once, nor longer than an agent takes to write a look."""
    now_ms = time.time_ns() // 1_000_000
    asked: list[bool] = []
    topics.make(topics.names.telemetry)

    def reads(run: Callable[[StreamRunner, Event], int], *, late: bool = False) -> bool:
        stop = Event()

        def follow(_rows: DataFrame, /, *, more: Callable[[], bool]) -> dict[str, int | None]:
            if late and not asked:
                Timer(0.5, topics.events, (5,)).start()
            asked.append(more())
            stop.set()
            return {}

        asked.clear()
        run(topics.ingest(delta_tables, tmp_path, on_telemetry=follow), stop)
        return asked[0]

    topics.events(20, time_ms=now_ms + 600_000)  # so that they are new however long a stream takes to start
    assert reads(StreamRunner.run, late=True)
    topics.events(20)
    assert not reads(StreamRunner.run)
    topics.events(20)
    assert not reads(StreamRunner.run_once)
    topics.events(20, time_ms=now_ms - 600_000)
    assert not reads(StreamRunner.run)


def test_a_batch_that_fails_ends_with_its_reason_however_long_it_is(
    topics: Topics, delta_tables: TableStore, tmp_path: Path
) -> None:
    """Spark gives on no more than a text, with the traceback of its own callback around it."""

    def follow(_rows: DataFrame, /, *, more: Callable[[], bool]) -> dict[str, int | None]:
        raise RuntimeError(f"no disk, {more()}: {'x' * 100_000}")

    topics.make(topics.names.telemetry)
    topics.events(20)
    with pytest.raises(RackwiseError, match="failed") as failed:
        topics.ingest(delta_tables, tmp_path, on_telemetry=follow).run_once(Event())
    assert failed.value.what == f"Reading {topics.names.telemetry} failed"
    assert failed.value.why is not None
    assert failed.value.why.startswith("RuntimeError: no disk, False: xxx")
    assert isinstance(failed.value.__cause__, RuntimeError)


def test_a_batch_of_bad_records_alone_is_followed_as_well(
    topics: Topics, delta_tables: TableStore, tmp_path: Path
) -> None:
    """What was put off would wait on, where an agent has ended and a stranger writes."""
    followed: list[int] = []

    def follow(rows: DataFrame, /, *, more: Callable[[], bool]) -> dict[str, int | None]:
        followed.append(rows.count())
        assert not more()
        return {}

    topics.make(topics.names.telemetry)
    topics.events(6, every_bad=1)
    assert topics.ingest(delta_tables, tmp_path, on_telemetry=follow).run_once(Event()) == 6
    assert followed == [0]

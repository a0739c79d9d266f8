"""Ingest as an operator runs it: it goes on by itself, ends when told, and is patient with brokers, to a point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.schemas.bronze import TELEMETRY
from pipeline.tables import TableStore
from testbed.cluster import ClusterSpec
from tests.conftest import ClusterFactory
from tests.pipeline.topics import Counted, Topics, counted

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
START_S = 180
"""Until the first batch, Spark's start included."""
SILENCE_S = 180
"""Until ingest says that no broker answers: Spark asks a few times, 10 s each."""
END_S = 60


class Running:
    """A process whose lines on stderr are kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, words: str, within_s: float = START_S) -> None:
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if any(words in line for line in self.lines):
                return
            assert self.process.poll() is None, self.lines
            time.sleep(0.2)
        raise AssertionError(f"{words!r} was not said: {self.lines}")

    def ended(self, within_s: float) -> int:
        """Its exit status, once it has ended and all of its lines are read."""
        status = self.process.wait(within_s)
        self._reader.join(END_S)
        return status

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.lines.append(line.rstrip())


@contextmanager
def ingesting(topics: Topics, root: str, *more: str) -> Iterator[Running]:
    command = [
        sys.executable, "-m", "agent", "spark", "ingest", "--bronze-only", "--master", "local[2]", "--tables", root,
        *topics.options(), "--set", "spark.interval=500ms", "--set", "kafka.request.timeout.ms=5000", *more,
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield Running(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.timeout(5 * (START_S + SILENCE_S))
def test_ingest_outlasts_an_outage_ends_when_told_gives_up_when_patience_ends_and_takes_no_other_cluster(
    cluster_factory: ClusterFactory, spark: SparkSession, tmp_path: Path
) -> None:
    cluster = cluster_factory(ClusterSpec(racks=("a",)))
    topics, tables = Topics(cluster), TableStore(spark, str(tmp_path / "tables"))
    topics.make(topics.names.telemetry)
    topics.events(100)
    with ingesting(topics, tables.root) as running:
        running.wait_for("telemetry: batch 0, 100 records")
        topics.events(50)
        running.wait_for(", 150 since the start")
        cluster.broker(1).kill()
        running.wait_for("no longer answer, so", SILENCE_S)
        cluster.broker(1).start()
        topics.events(30)
        running.wait_for(", 180 since the start")
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.ended(END_S) == 0
        assert "SIGTERM: ending after the current batch, or in 20 s" in running.lines
        assert any("180 records in all" in line for line in running.lines)
    assert counted(tables, TELEMETRY) == Counted(180, 180)

    with ingesting(topics, tables.root, "--set", "spark.patience=1s") as running:
        topics.events(20)
        running.wait_for(", 20 since the start")
        cluster.broker(1).kill()
        assert running.ended(SILENCE_S) == 5
        assert any("no longer answer, so" in line for line in running.lines)
    with ingesting(topics, tables.root) as running:
        assert running.ended(START_S) == 5
        told = f"rackwise: No broker answered about topic {topics.names.proposals}"
        assert told in running.lines, "its connection is refused at once"
        assert not any("Traceback" in line for line in running.lines)
    assert counted(tables, TELEMETRY) == Counted(200, 200)

    # Brokers of another cluster at which the same topic is: their offsets mean other records.
    other = Topics(cluster_factory(ClusterSpec(racks=("a",))))
    other.names = topics.names
    other.make(topics.names.telemetry)
    other.events(300)
    with ingesting(other, tables.root) as running:
        assert running.ended(START_S) == 2
        assert any(line.startswith("rackwise: The brokers belong to cluster") for line in running.lines)
        assert not any("Traceback" in line for line in running.lines)
    assert counted(tables, TELEMETRY) == Counted(200, 200)

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

from agent.cluster import ClusterSpec
from pipeline.schemas.bronze import TELEMETRY
from pipeline.tables import Tables
from tests.conftest import ClusterFactory
from tests.pipeline.topics import Counted, Topics, counted

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]


class Running:
    """A process whose lines on stderr are kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, words: str, seconds: float = 900, *, times: int = 1) -> str:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = [line for line in self.lines if words in line]
            if len(found) >= times:
                return found[-1]
            assert self.process.poll() is None, self.lines
            time.sleep(0.2)
        raise AssertionError(f"{words!r} was not said: {self.lines}")

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.lines.append(line.rstrip())


@contextmanager
def ingesting(topics: Topics, root: str, *more: str) -> Iterator[Running]:
    command = [
        sys.executable, "-m", "agent", "spark", "ingest", "--bronze-only", "--master", "local[2]", "--tables", root,
        "--bootstrap-servers", topics.cluster.bootstrap_servers,
        "--set", f"topics.telemetry.name={topics.names.telemetry}",
        "--set", f"topics.proposals.name={topics.names.proposals}",
        "--set", f"topics.journal.name={topics.names.journal}",
        "--set", "spark.interval=500ms", "--set", "kafka.request.timeout.ms=5000", *more,
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield Running(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.timeout(7_200)
def test_ingest_goes_on_over_an_outage_ends_when_told_and_gives_up_when_patience_ends(
    cluster_factory: ClusterFactory, spark: SparkSession, tmp_path: Path
) -> None:
    cluster = cluster_factory(ClusterSpec(racks=("a",)))
    topics, tables = Topics(cluster), Tables(spark, str(tmp_path / "tables"))
    topics.make(topics.names.telemetry)
    topics.events(100)
    with ingesting(topics, tables.root) as running:
        running.wait_for("telemetry: batch 0, 100 records")
        topics.events(50)
        running.wait_for("50 records, 150 since the start")
        cluster.broker(1).kill()
        running.wait_for("do not answer any more, so")
        cluster.broker(1).start()
        topics.events(30)
        running.wait_for("30 records, 180 since the start")
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.process.wait(300) == 0
        assert "SIGTERM: ending after the batch at hand" in running.lines
        assert "180 records in all" in running.lines
    assert counted(tables, TELEMETRY) == Counted(180, 180)

    with ingesting(topics, tables.root, "--set", "spark.patience=1s") as running:
        topics.events(20)
        running.wait_for("20 records, 20 since the start")
        cluster.broker(1).kill()
        assert running.process.wait(900) == 5
        assert any("do not answer any more, so" in line for line in running.lines)
    with ingesting(topics, tables.root) as running:
        assert running.process.wait(600) == 5
        assert any(line.startswith("rackwise: No broker answered within") for line in running.lines)
        assert not any("Traceback" in line for line in running.lines)
    assert counted(tables, TELEMETRY) == Counted(200, 200)

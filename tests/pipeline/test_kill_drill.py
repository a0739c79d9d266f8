"""Ingest is killed at six points and started again: every table has each record once, and gold what bronze says.

Seed 0 is Delta Lake and kills Python alone, so that Java runs on for a moment; seed 1 is Parquet and kills both.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from agent.cluster import ClusterSpec, EmbeddedCluster
from agent.telemetry.events import to_lines
from agent.telemetry.looks import observation_to_events
from pipeline.schemas.bronze import JOURNAL, PROPOSALS, QUARANTINE, TELEMETRY
from pipeline.schemas.gold import GOLD
from pipeline.schemas.silver import LOOKS, SILVER
from pipeline.tables import Tables
from tests.pipeline.histories import recorded, shop
from tests.pipeline.killed import POINTS, WITH_JAVA
from tests.pipeline.topics import Counted, Topics, counted

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
EVENTS, BAD_EVERY, LOOKS_TOLD = 600, 11, 6


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedCluster]:
    """One broker: what is drilled here is the reader."""
    with EmbeddedCluster.start(ClusterSpec(racks=("a",)), on_progress=print, timeout_s=300) as started:
        yield started


@pytest.fixture(scope="module")
def topics(broker: EmbeddedCluster) -> Topics:
    """Telemetry with looks, other events and rubbish in it, proposals, and a journal with an aborted transaction."""
    made = Topics(broker)
    made.make(made.names.telemetry)
    made.make(made.names.proposals, made.names.journal, partitions=1)
    made.events(EVENTS // 2, every_bad=BAD_EVERY)
    for look in recorded(lambda _minute: shop(), LOOKS_TOLD):
        events = observation_to_events(look.observation, look.memory, look.limits, look=look.look)
        made.lines(line for event in events for line in to_lines(event))
    made.events(EVENTS // 2, every_bad=BAD_EVERY)
    for slot in range(20):
        made.proposal(b"{}" if slot % 3 else None, f"topic/t#{slot}")
    made.flush()
    made.journal((10, True), (5, False), (7, True))
    return made


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("point", POINTS)
def test_whatever_moment_ingest_is_killed_in_every_record_is_there_once_afterwards(
    topics: Topics, spark: SparkSession, tmp_path: Path, point: str, seed: int
) -> None:
    tables = Tables(spark, str(tmp_path / "tables"), "delta" if seed == 0 else "parquet")
    draw = random.Random(f"{point} {seed}")
    more = [] if "gold" in point else ["--bronze-only"]
    killed = 0
    for nth in (draw.randint(1, 2), draw.randint(2, 3)):
        at = [point, str(nth), str(draw.choice((0, 20, 200, 800)))]
        status = run(topics, tables, more, at=at, java=seed == 1)
        assert status in (0, -signal.SIGKILL)
        killed += status != 0
    assert killed, "the point was never reached"
    assert run(topics, tables, more) == 0

    read = counted(tables, TELEMETRY)
    bad = counted(tables, QUARANTINE)
    assert (read.rows + bad.rows, bad.rows) == (topics.produced, topics.bad)
    assert (read.distinct, bad.distinct) == (read.rows, bad.rows)
    assert counted(tables, PROPOSALS) == Counted(20, 20)
    assert counted(tables, JOURNAL) == Counted(17, 17)
    if not more:
        for table in (*SILVER, *GOLD):
            found = counted(tables, table)
            assert found.distinct == found.rows, table.name
        assert tables.read(LOOKS).where("complete").count() == LOOKS_TOLD


def run(topics: Topics, tables: Tables, more: Sequence[str], *, at: Sequence[str] = (), java: bool = False) -> int:
    """Ingest what is there; the exit status. Returns when nothing of it is left."""
    arguments = [
        "spark", "ingest", "--once", "--bootstrap-servers", topics.cluster.bootstrap_servers, "--master", "local[2]",
        "--tables", tables.root, "--format", tables.format, "--set", "spark.max_records=250",
        "--set", f"topics.telemetry.name={topics.names.telemetry}",
        "--set", f"topics.proposals.name={topics.names.proposals}",
        "--set", f"topics.journal.name={topics.names.journal}",
        "--conf", "spark.driver.memory=700m", *more,
    ]  # fmt: skip
    module = ["tests.pipeline.killed", *at] if at else ["agent"]
    environment = {**os.environ, **({WITH_JAVA: "1"} if java else {})}
    command = [sys.executable, "-m", *module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True) as process:
        status = process.wait()
    _wait_gone(process.pid)
    return status


def _wait_gone(group: int) -> None:
    """Java ends by itself when nobody listens any more."""
    left = [one for one in psutil.process_iter() if _group(one.pid) == group]
    _, alive = psutil.wait_procs(left, timeout=600)
    assert not alive


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None

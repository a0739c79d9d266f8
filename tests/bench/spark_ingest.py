"""How fast, and in how much memory, Spark takes telemetry in: python -m tests.bench.spark_ingest

Real brokers on the same cores hold the events before the clock runs. The same is done for a tenth of the events, so
that a cost that grows with what is there already would show. The first batch, in which Java compiles, stands apart.
Lines of JSON: what was done, its figure, and the bound where there is one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from threading import Event
from typing import NamedTuple

import psutil

from pipeline.schemas.bronze import TELEMETRY
from pipeline.session import spark_session
from pipeline.tables import TableStore
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.bench.process_family import ProcessFamily
from tests.pipeline.topics import Counted, Topics, counted

MANY = int(os.environ.get("RACKWISE_BENCH_EVENTS", "6000000"))
PARTITIONS = 6
BATCH = (MANY // (30 * PARTITIONS) + 2) * PARTITIONS
"""As large as ingest has them by default. A tenth of the events is three batches, the first a figure of its own;
Spark rounds down for each partition, and a few records that are left over would make a batch of their own."""
FILLER = "x" * 60


class Run(NamedTuple):
    """One run over so many events."""

    events: int
    seconds: float
    """Wall clock, the first batch apart."""
    cpu_s: float
    """Of driver, executors and Python, the first batch apart."""
    first_s: float
    peak_bytes: int
    """Resident, of the same."""


def main() -> None:
    """Print the lines."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedCluster.start(ClusterSpec(racks=("a",))) as cluster:
        spark = spark_session("bench", master="local[2]", on_progress=_say)
        try:
            few = _run(cluster, TableStore(spark, f"{folder}/few"), Path(folder) / "few", MANY // 10)
            many = _run(cluster, TableStore(spark, f"{folder}/many"), Path(folder) / "many", MANY)
        finally:
            spark.stop()
    for run in (few, many):
        rest = run.events - BATCH
        case = f"{run.events:,} events, the first batch apart"
        rate = rest / run.seconds
        _tell(f"rate, {case}", round(rate), "events/s", 20_000, ok=rate >= 20_000)
        _tell(f"CPU per event, {case}", round(run.cpu_s / rest * 1e6, 1), "us")
        _tell(f"first batch, {run.events:,} events", round(run.first_s, 1), "s")
        mib = round(run.peak_bytes / 2**20)
        _tell(f"peak memory of driver, executors and Python, {run.events:,} events", mib, "MiB", 2_560, ok=mib <= 2_560)
    ratio = (many.cpu_s / (many.events - BATCH)) / (few.cpu_s / (few.events - BATCH))
    _tell("CPU per event at ten times the events, against one time", round(ratio, 2), "x", 1.2, ok=ratio <= 1.2)


def _tell(case: str, value: float, unit: str, goal: float | None = None, *, ok: bool | None = None) -> None:
    line = {"bench": "ingest", "case": case, "value": value, "unit": unit, "goal": goal, "ok": ok}
    print(json.dumps({name: found for name, found in line.items() if found is not None}), flush=True)


def _run(cluster: EmbeddedCluster, tables: TableStore, root: Path, events: int) -> Run:
    topics = Topics(cluster, partitions=PARTITIONS)
    topics.make(topics.names.telemetry)
    topics.events(events, filler=FILLER)
    _say(f"{events:,} events are there")
    marks: list[tuple[float, float]] = []

    def on_line(line: str) -> None:
        if line.startswith("telemetry: batch"):
            marks.append((time.monotonic(), cpu_s()))
        _say(line)

    with ProcessFamily(leave_out=_is_broker) as memory:
        began = time.monotonic()
        topics.ingest(tables, root, max_records=BATCH, say=on_line).run_once(Event())
    found = counted(tables, TELEMETRY)
    if found != Counted(events, events):
        raise SystemExit(f"{found} rows, {events} were produced")
    (first_at, first_cpu), (last_at, last_cpu) = marks[0], marks[-1]
    return Run(events, last_at - first_at, last_cpu - first_cpu, first_at - began, memory.peak_bytes)


def _is_broker(process: psutil.Process) -> bool:
    """Brokers are children of others."""
    try:
        return "kafka.Kafka" in " ".join(process.cmdline())
    except psutil.Error:
        return False


FAMILY = ProcessFamily(leave_out=_is_broker)


def cpu_s() -> float:
    """CPU seconds so far of this process and its children that run."""
    return FAMILY.total(lambda one: sum(one.cpu_times()[:2]))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""How long `rackwise spark fleet` takes to plan a million tasks of ten thousand applications, everything counted.

``python -m tests.bench.spark_fleet``: a look at each of twenty clusters is made up into bronze first, as their agents
record them, in full. Applications run under the classic protocol and are as large as they are in life, most of them
small and a few huge: sizes are lognormal, and one has a hundred thousand tasks. Each runs on three racks, twenty tasks
to a process, twenty subtopologies at most, each with a source topic; a tenth of its processes is new and has nothing,
the others have their tasks in turn, so that most of them read across racks. Rates are not known from one look, so
partitions count. The figure is the wall clock of a fresh process from its start to its end: Python, Spark, reading,
rebuilding the looks, planning by the agent's stages, writing. ``--tasks`` and ``--groups`` make it less.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from agent.telemetry.events import to_lines
from agent.values.limits import GroupLimits, Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from pipeline.backtest.units import chunks
from pipeline.jobs.fleet import plan_looks
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.fleet import PLANS
from pipeline.session import spark_session
from pipeline.tables import TableStore, WriterBatch
from tests.bench import told
from tests.bench.spark_backtest import cpu_s
from tests.builders import Answers, an_observation, instance
from tests.pipeline.look_events import row_of_line
from tests.recorded_looks import observation_to_events

GOAL_S = 180.0
CLUSTERS = 20
PAIRS = ((1, 2), (2, 3), (3, 1))
"""Replicas of a partition; broker 1 is in rack a, 2 in b, 3 in c."""
HUGE = 0.1
"""Part of all tasks that one application has."""
ROWS_EACH = 50
LIMITS = Limits(default_group=GroupLimits(known=True, rack_aware_assignment_strategy="min_traffic"))

tell = partial(told.tell, "fleet")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--plan", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.plan:
        print(json.dumps(plan(given.folder, given.cores)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        took_s = make(Path(folder), given.groups, given.tasks)
        tell("looks made up", took_s, "s", note=f"{given.tasks:,} tasks over {given.groups:,} applications")
        began = time.perf_counter()
        command = [sys.executable, "-m", "tests.bench.spark_fleet", "--plan", "--folder", folder]
        done = subprocess.run([*command, "--cores", str(given.cores)], stdout=subprocess.PIPE, text=True, check=True)
        wall_s = time.perf_counter() - began
    found = json.loads(done.stdout.splitlines()[-1])
    note = f"{found['size']:,} tasks over {found['subjects']:,} applications of {found['clusters']} clusters"
    goal_s = GOAL_S if given.tasks >= 1_000_000 else None
    case = f"planned from looks on {given.cores} cores, start-up included"
    tell(case, wall_s, "s", goal_s, note=note, cpu_s=found["cpu_s"])
    tell("CPU of planning groups alone", found["planning_s"], "s", note="decoding and modelling of looks apart")
    tell("plans that are not proven to be the best", found["unproven"] + found["unplanned"], "", 0)
    note = f"{found['proposals']:,} proposals"
    tell("applications that can be improved", found["improvable"], "", note=note)
    return 0


def sizes(groups: int, tasks: int) -> list[int]:
    """Tasks of each application, the huge one in the middle."""
    huge = round(tasks * HUGE)
    raw = np.random.default_rng(7).lognormal(0.0, 1.0, size=groups - 1)
    small = np.maximum(3, np.floor(raw / raw.sum() * (tasks - huge))).astype(int)
    over = int(small.sum()) - (tasks - huge)
    order = np.argsort(-small)
    small[order[: abs(over)]] -= np.sign(over)  # rounding, spread over the largest
    found = [int(size) for size in small]
    assert sum(found) + huge == tasks
    return [*found[: groups // 2], huge, *found[groups // 2 :]]


def make(folder: Path, groups: int, tasks: int) -> float:
    """Write the looks of all clusters to bronze; how long that took."""
    began = time.perf_counter()
    spark = spark_session("bench", master="local[2]", format="parquet")
    making = Making(sizes(groups, tasks), to_arrow_schema(TELEMETRY.schema, timezone="UTC"))
    made = spark.range(0, CLUSTERS, 1, CLUSTERS).mapInArrow(making, TELEMETRY.schema)
    TableStore(spark, str(folder), "parquet").append(TELEMETRY, made, WriterBatch("made up", 0))
    spark.stop()
    return time.perf_counter() - began


class Making:
    """Numbers of clusters in, the events of a look at each out."""

    def __init__(self, tasks: list[int], schema: pa.Schema) -> None:
        self._tasks, self._schema = tasks, schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for cluster in batch.column("id").to_pylist():
                for some in chunks(self._rows(cluster), ROWS_EACH):
                    rows = [dict(zip(self._schema.names, row, strict=True)) for row in some]
                    yield pa.RecordBatch.from_pylist(rows, schema=self._schema)

    def _rows(self, cluster: int) -> Iterator[tuple[object, ...]]:
        look = a_look(cluster, dict(enumerate(self._tasks)))
        events = observation_to_events(look, Memory(), LIMITS, look="12345678-0")
        lines = (line for event in events for line in to_lines(event))
        return (row_of_line(json.loads(line), offset) for offset, line in enumerate(lines))


def a_look(cluster: int, tasks: dict[int, int]) -> Observation:
    """The cluster's applications: every twentieth of those given, number -> tasks."""
    answers = an_observation()
    for number in range(cluster, len(tasks), CLUSTERS):
        with_application(answers, number, tasks[number])
    return replace(answers.at(), cluster_id=f"cluster-{cluster:02d}", end_offsets={})


def with_application(answers: Answers, number: int, tasks: int) -> None:
    """An application that has grown by a tenth of its processes."""
    random = Random(number)
    name = f"app-{number:05d}"
    subtopologies = min(20, max(1, tasks // 10))
    processes = max(3, tasks // 20)
    owners = max(2, processes - max(1, processes // 10))
    topics = tuple(f"{name}-in-{each}" for each in range(subtopologies))
    for each, topic in enumerate(topics):
        answers.topic(topic, *[random.choice(PAIRS) for _ in range(each, tasks, subtopologies)])
    active: list[dict[str, str]] = [{} for _ in range(processes)]
    for place in range(tasks):
        each, partition = place % subtopologies, place // subtopologies
        active[place % owners][f"{each}_{partition}"] = f"{topics[each]}-{partition}"
    threads = [instance(place, "abc"[place % 3], mine, topics=topics) for place, mine in enumerate(active)]
    answers.streams(name, *threads)


def plan(folder: Path, cores: int) -> dict[str, object]:
    """Plan them all."""
    spark = spark_session("bench", master=f"local[{cores}]", format="parquet")
    tables = TableStore(spark, str(folder), "parquet")
    done = plan_looks(tables, run="bench")
    (one,) = tables.read(PLANS).agg(F.sum("cpu_s").alias("planning")).collect()
    figures = {name: getattr(done, name) for name in done.__slots__ if name not in ("messages", "run")}
    figures |= {"planning_s": one["planning"], "cpu_s": cpu_s()}
    spark.stop()
    return figures


if __name__ == "__main__":
    sys.exit(main())

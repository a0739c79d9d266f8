"""How long a backtest over a million group snapshots takes, by cores and by size.

``python -m tests.bench.spark_backtest``: history is made up by `group_histories` and cut by the backtest's own cutter
(made and cut in parts of 500 groups, told apart); then every size, and two cores and one, in a fresh process over the
same slices. A figure is the whole command but for the start of Python: Spark's start, reading, every strategy,
writing. ``--groups`` and ``--looks`` make it smaller, ``--folder`` keeps the history.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.backtest.slices import LookSlicer
from pipeline.backtest.strategies import chosen
from pipeline.jobs import backtest
from pipeline.jobs.backtest import DAY_MS, BacktestRequest, HistoryStretch, run_backtest
from pipeline.schemas.backtest import SLICES
from pipeline.session import spark_session
from pipeline.tables import TableStore
from tests.bench.group_histories import BEGIN_MS, CLUSTER, EVERY_MS, History
from tests.bench.process_family import ProcessFamily

STRATEGIES = "no-action,execute,eager-triggers,patient"
GOAL_S, GOAL_RATIO, GOAL_EXPONENT = 300.0, 1.7, 1.1
EACH = 500
COLUMNS = SLICES.schema.names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--looks", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        print(json.dumps(make(given.folder, given.groups, given.looks)))
        return 0
    if given.cores:
        print(json.dumps(measured(given.folder, given.groups, given.cores)))
        return 0
    with tempfile.TemporaryDirectory() as own:
        run(given.folder or Path(own), given.groups, given.looks)
    return 0


def run(folder: Path, groups: int, looks: int) -> None:
    made = folder / f"made-{groups}-{looks}.json"
    if not made.exists():
        figures = fresh("--make", folder, groups, looks)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(json.dumps(figures))
    figures = json.loads(made.read_text())
    note = f"{groups:,} groups in {looks} looks, {len(STRATEGIES.split(','))} strategies"
    tell("history made up and cut", figures["wall_s"], "s", note=note, cpu_s=figures["cpu_s"])
    sizes = sorted({max(EACH, groups // 10), max(EACH, groups * 3 // 10), groups})
    by_size = {size: fresh("--cores", folder, size, looks, 2) for size in sizes}
    one = fresh("--cores", folder, groups, looks, 1)
    whole = by_size[groups]
    full = groups * looks >= 1_000_000
    for size, figures in by_size.items():
        share = f"{figures['shared']:.1%} of the snapshots as in the look before"
        bound = {"goal": GOAL_S, "ok": figures["wall_s"] <= GOAL_S} if full and size == groups else {}
        case = f"{size * looks:,} group snapshots on 2 cores"
        tell(case, figures["wall_s"], "s", note=share, cpu_s=figures["cpu_s"], start_s=figures["start_s"], **bound)
    tell(f"{groups * looks:,} group snapshots on 1 core", one["wall_s"], "s", cpu_s=one["cpu_s"])
    ratio = worked_s(one) / worked_s(whole)
    note = f"Spark's start apart; with it {one['wall_s'] / whole['wall_s']:.2f}"
    bound = {"goal": GOAL_RATIO, "ok": ratio >= GOAL_RATIO} if full else {}  # less than this is mostly Spark's own
    tell("2 cores against 1", ratio, "times", note=note, **bound)
    if len(sizes) > 1:
        for what in ("wall_s", "cpu_s"):
            grown = math.log(whole[what] / by_size[sizes[0]][what]) / math.log(groups / sizes[0])
            tell(f"exponent of {what} over snapshots", grown, "", goal=GOAL_EXPONENT, ok=grown <= GOAL_EXPONENT)
    tell(
        "us of CPU for a snapshot and strategy",
        1e6 * whole["cpu_s"] / groups / looks / len(STRATEGIES.split(",")),
        "us",
    )
    tell("ranking", whole["ranking"], "", note=f"best first, over {groups * looks:,} snapshots")


def worked_s(figures: dict) -> float:
    """Wall clock from when Spark is there."""
    return figures["wall_s"] - figures["start_s"]


def fresh(what: str, folder: Path, groups: int, looks: int, cores: int | None = None) -> dict:
    command = [sys.executable, "-m", "tests.bench.spark_backtest", "--folder", str(folder), "--groups", str(groups)]
    command += ["--looks", str(looks), what, *([str(cores)] if cores else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict = json.loads(done.stdout.splitlines()[-1])
    return figures


def tell(case: str, value: object, unit: str, **more: object) -> None:
    print(json.dumps({"bench": "backtest", "case": case, "value": value, "unit": unit, **more}), flush=True)


# --- in processes of their own ----------------------------------------------------------------------------------


def make(folder: Path, groups: int, looks: int) -> dict[str, float]:
    """Make the history up, in parts of 500 groups, and cut it."""
    began = time.perf_counter()
    spark = spark_session("bench", master="local[2]", format="parquet")
    parts = -(-groups // EACH)
    frame = spark.range(0, parts, 1, parts).mapInArrow(Making(looks, to_arrow_schema(SLICES.schema)), SLICES.schema)
    TableStore(spark, str(folder), "parquet").replace_where(SLICES, frame)
    took = {"wall_s": time.perf_counter() - began, "cpu_s": cpu_s()}
    spark.stop()
    return took


class Making:
    """Numbers of parts in, their slices out."""

    def __init__(self, looks: int, schema: pa.Schema) -> None:
        self._looks, self._schema = looks, schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column("id").to_pylist():
                cutters: dict[int, LookSlicer] = {}
                for look in History(part * EACH, EACH).looks(self._looks):
                    stretch = look.snapshot.taken_ms // DAY_MS * DAY_MS
                    rows = [
                        (CLUSTER, stretch, part, *one[1:], "made up")
                        for one in cutters.setdefault(stretch, LookSlicer(1)).rows(look)
                    ]
                    yield pa.RecordBatch.from_pylist(
                        [dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=self._schema
                    )


def measured(folder: Path, groups: int, cores: int) -> dict[str, object]:
    """One backtest over the first groups of the history."""
    began = time.perf_counter()
    spark = spark_session("bench", master=f"local[{cores}]", format="parquet")
    start_s = time.perf_counter() - began
    buckets = -(-groups // EACH)
    slices = TableStore(spark, str(folder), "parquet")
    backtest.cut = already_cut
    with tempfile.TemporaryDirectory() as results:
        tables = Narrowed(spark, results, slices, buckets)
        done = run_backtest(
            tables,
            BacktestRequest(strategies=chosen(STRATEGIES), by="groups"),
            lambda line: print(line, file=sys.stderr),
        )
        took = {"wall_s": time.perf_counter() - began, "start_s": start_s, "cpu_s": cpu_s(), "shared": done.shared}
    from pipeline.backtest.ranking import ranked  # noqa: PLC0415 after the clock has stopped

    snapshots = sum(row["snapshots"] for row in done.rows) / len(STRATEGIES.split(","))
    assert snapshots % groups == 0, f"{snapshots} snapshots of {groups} groups"
    spark.stop()
    rows = ranked(done.rows)
    ranking = "; ".join(
        f"{row.strategy} {row.crossing:,.0f} crossing, {row.usd_per_day or 0:,.0f} USD/day, {row.scores.triggers:,} "
        f"triggers, {row.scores.false_triggers:,} for nothing"
        for row in rows
    )
    return {**took, "ranking": ranking}


def already_cut(tables: TableStore, *_given: object) -> list[HistoryStretch]:
    """In place of the cutter, which goes by events: this history has slices alone."""
    fields = HistoryStretch._fields
    return [HistoryStretch(*row) for row in tables.read(SLICES).select(*fields).distinct().collect()]


class Narrowed(TableStore):
    """Results of their own, over some buckets of a history that is there."""

    def __init__(self, spark, root: str, history: TableStore, buckets: int) -> None:
        super().__init__(spark, root, "parquet")
        self._history, self._buckets = history, buckets

    def read(self, table):
        if table.name == SLICES.name:
            rows = self._history.read(table)
            return rows.where(rows["bucket"] < self._buckets)
        return super().read(table)


def cpu_s() -> float:
    """CPU of this process and everything that it started."""
    return ProcessFamily().total(lambda one: sum(one.cpu_times()[:2]))


assert EVERY_MS * 100 < DAY_MS, "a history of a hundred looks lies within one day"
assert BEGIN_MS % DAY_MS == 0

if __name__ == "__main__":
    sys.exit(main())

"""Executors that are processes of their own are killed at random during a refresh: in the end every row is exact."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from config.load import load_settings
from pipeline.jobs.refresh import refresh, refresh_settings
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore
from tests.pipeline.contents import contents
from tests.pipeline.histories import bronze_rows, events_of, recorded, shop, with_tasks
from tests.pipeline.test_backtest_job import ingest

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
LOOKS_TOLD, KILLS, RUN_S = 12, 3, 900
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@pytest.mark.timeout(2 * RUN_S)
def test_executors_killed_at_random_lose_no_row_and_end_no_refresh(spark: SparkSession, tmp_path: Path) -> None:
    here, there = (TableStore(spark, str(tmp_path / name)) for name in ("here", "there"))
    rows = bronze_rows(events_of(recorded(lambda minute: with_tasks(shop(swapped=minute < 6)), LOOKS_TOLD)))
    for tables in (here, there):
        ingest(tables, rows)
    refresh(here, settings=refresh_settings(load_settings(environ={}).settings))

    command = [
        sys.executable, "-m", "agent", "spark", "refresh", "--tables", there.root, "--master", "local-cluster[2,1,700]",
        "--conf", "spark.executor.memory=700m", "--conf", "spark.driver.memory=700m", "--conf",
        "spark.task.maxFailures=20",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        killer = Killer(process.pid)
        try:
            lines = [line for line in process.stderr or () if killer.hear(line)]
            assert process.wait(RUN_S) == 0, "".join(lines)[-4_000:]
        finally:
            process.kill()
            killer.stop()
    assert killer.killed == KILLS, "".join(lines)[-4_000:]
    assert there.read(LOOKS).where("complete").count() == LOOKS_TOLD
    assert contents(there) == contents(here)


class Killer:
    """Kills executors below a process at random moments, from the time that its first rows are written."""

    def __init__(self, pid: int, seed: int = 1) -> None:
        self._pid = pid
        self._draw = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._kill, daemon=True)
        self.killed = 0

    def hear(self, line: str) -> bool:
        """A line of the process; the killing begins with the first that tells of looks."""
        if "looks read" in line and not self._thread.ident:
            self._thread.start()
        return True

    def stop(self) -> None:
        self._over.set()
        if self._thread.ident:
            self._thread.join(60)

    def _kill(self) -> None:
        while self.killed < KILLS and not self._over.is_set():
            found = [one for one in psutil.Process(self._pid).children(recursive=True) if EXECUTOR in _command(one)]
            if found:
                self._draw.choice(found).kill()
                self.killed += 1
            self._over.wait(self._draw.uniform(1, 4))


def _command(one: psutil.Process) -> list[str]:
    try:
        return one.cmdline()
    except psutil.Error:
        return []

"""The same jobs below spark-submit, with executors that are processes of their own and get rackwise as a wheel.

What they come to is compared with what the same jobs come to in this process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from agent.telemetry.events import to_lines
from config.load import load_settings
from pipeline.backtest.ranking import ranked
from pipeline.backtest.strategies import chosen
from pipeline.jobs.backtest import BacktestRequest, run_backtest
from pipeline.jobs.fleet import plan_looks
from pipeline.jobs.refresh import refresh, refresh_settings
from pipeline.jobs.report import write_report
from pipeline.jobs.weights import make_weights
from pipeline.maven import spark_jars
from pipeline.report.period import ReportPeriod
from pipeline.schemas.backtest import UNITS
from pipeline.schemas.bronze import QUARANTINE
from pipeline.schemas.fleet import PLANS
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster
from tests.pipeline.contents import contents
from tests.pipeline.histories import recorded, shop, with_tasks
from tests.pipeline.test_jobs_drill import prefix_of, read
from tests.pipeline.topics import Topics
from tests.recorded_looks import observation_to_events

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
LOOKS_TOLD = 4
RUN_S = 240
NAMES = "as-recorded,execute"
WINDOW_MS = 86_400_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rackwise's wheel, under the name by which Spark puts it on the executors' path."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(command, cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built.rename(built.with_suffix(".zip"))


@pytest.fixture(scope="module")
def topics(broker: EmbeddedCluster) -> Topics:
    """Telemetry of this cluster, with rubbish in it."""
    made = Topics(broker)
    made.make(made.names.telemetry)
    made.events(100, every_bad=10)
    for look in recorded(lambda _minute: with_tasks(shop()), LOOKS_TOLD):
        ours = replace(look.observation, cluster_id=broker.cluster_id)
        events = observation_to_events(ours, look.memory, look.limits, look=look.look)
        made.lines(line for event in events for line in to_lines(event))
    return made


@pytest.mark.timeout(6 * RUN_S)
def test_every_job_run_by_spark_submit_on_executors_that_have_nothing_but_the_wheel_comes_to_the_same(
    topics: Topics, spark: SparkSession, wheel: Path, tmp_path: Path
) -> None:
    here, there = (TableStore(spark, str(tmp_path / name)) for name in ("here", "there"))
    topics.ingest(here, tmp_path).run_once(Event())
    refresh(here, settings=refresh_settings(load_settings(environ={}).settings))  # prices as the commands have them
    submit = Submit(wheel, tmp_path, there.root)
    prefix = prefix_of(topics)
    brokers = ("--bootstrap-servers", topics.cluster.bootstrap_servers, "--set", f"topics.prefix={prefix}")

    submit("ingest", "--once", *brokers)
    assert there.read(LOOKS).where("complete").count() == LOOKS_TOLD
    assert there.read(QUARANTINE).count() == topics.bad
    expected = contents(here)
    assert contents(there) == expected
    submit("refresh")
    assert contents(there) == expected

    submit("report", "--out", str(tmp_path / "report"))
    for file in write_report(here, ReportPeriod(), tmp_path / "report-here").files:
        assert (tmp_path / "report" / file.name).read_bytes() == file.read_bytes(), file.name

    told = submit("backtest", "--strategies", NAMES, "--output", "json")
    done = run_backtest(here, BacktestRequest(strategies=chosen(NAMES)))
    assert contents(there, (UNITS,)) == contents(here, (UNITS,))
    assert [row["strategy"] for row in _json(told)] == [row.strategy for row in ranked(done.rows)]

    submit("fleet")
    plan_looks(here, run="here")
    its_own = ("run", "cpu_s")
    assert contents(there, (PLANS,), without=its_own) == contents(here, (PLANS,), without=its_own)

    submit("weights", *brokers)
    published = {key: value for key, value, _ in read(topics.cluster, f"{prefix}.weights")}
    made = make_weights(here, topics.cluster.cluster_id, window_ms=WINDOW_MS, now_ms=time.time_ns() // 1_000_000)
    assert _undated(published) == _undated(made.records) != {}


class Submit:
    """spark-submit in a folder without rackwise's code: the script comes alone, the packages in the wheel."""

    def __init__(self, wheel: Path, folder: Path, root: str) -> None:
        self._folder = folder
        self._script = folder / "submit.py"
        self._script.write_bytes((ROOT / "pipeline" / "submit.py").read_bytes())
        self._tables = ("--tables", root)
        # The editable install puts a checkout on every Python's path: taken off again, only the wheel has the code.
        site = folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(
            "import os, sys\nsys.path = [at for at in sys.path if not os.path.isdir(os.path.join(at, 'agent'))]\n"
        )
        self._environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(site)}
        has_code = subprocess.run(
            [sys.executable, "-c", "import agent"], cwd=folder, env=self._environment, capture_output=True, check=False
        )
        assert b"No module named 'agent'" in has_code.stderr
        self._command = [
            str(Path(_find_spark_home()) / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]",
            "--jars", ",".join(map(str, spark_jars())), "--py-files", str(wheel), "--driver-memory", "700m",
            "--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false",
            "--conf", "spark.databricks.delta.snapshotPartitions=1", "--conf", "spark.driver.host=127.0.0.1",
            "--conf", "spark.driver.bindAddress=127.0.0.1",
        ]  # fmt: skip

    def __call__(self, command: str, *arguments: str) -> str:
        """Run one command; its answer."""
        asked: Sequence[str] = [*self._command, str(self._script), command, *self._tables, *arguments]
        done = subprocess.run(
            asked, cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=RUN_S, check=False
        )
        assert done.returncode == 0, done.stderr[-4_000:]
        return done.stdout


def _json(answer: str) -> Any:
    """The document in an answer; Spark's own words may stand around it."""
    found = re.search(r"^\[.*^\]", answer, re.DOTALL | re.MULTILINE)
    assert found, answer
    return json.loads(found.group())


def _undated(records: Mapping[str, bytes]) -> dict[str, Any]:
    return {key: {**json.loads(value), "computed_ms": 0} for key, value in records.items()}

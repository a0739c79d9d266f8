"""The same jobs below spark-submit, with executors that are processes of their own and get rackwise as a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from agent.cluster import ClusterSpec, EmbeddedCluster
from agent.telemetry.events import to_lines
from agent.telemetry.looks import observation_to_events
from pipeline.jars import spark_jars
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import PARTITION_TRAFFIC
from pipeline.schemas.silver import LOOKS
from pipeline.tables import Tables
from tests.pipeline.histories import recorded, shop
from tests.pipeline.topics import Counted, Topics, counted

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
LOOKS_TOLD = 4


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedCluster]:
    """One broker: what is drilled here is the reader."""
    with EmbeddedCluster.start(ClusterSpec(racks=("a",)), on_progress=print, timeout_s=300) as started:
        yield started


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rackwise's wheel, under the name by which Spark puts it on the executors' path."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(command, cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built.rename(built.with_suffix(".zip"))


@pytest.mark.timeout(7_200)
def test_the_jobs_run_by_spark_submit_on_executors_that_have_nothing_but_the_wheel(
    broker: EmbeddedCluster, spark: SparkSession, wheel: Path, tmp_path: Path
) -> None:
    topics = Topics(broker)
    topics.make(topics.names.telemetry)
    topics.events(100, every_bad=10)
    for look in recorded(lambda _minute: shop(), LOOKS_TOLD):
        events = observation_to_events(look.observation, look.memory, look.limits, look=look.look)
        topics.lines(line for event in events for line in to_lines(event))
    tables = Tables(spark, str(tmp_path / "tables"))
    common = ["--tables", tables.root, "--set", f"topics.telemetry.name={topics.names.telemetry}"]
    brokers = ["--bootstrap-servers", broker.bootstrap_servers]

    submit(wheel, tmp_path, ["ingest", "--once", *common, *brokers])
    assert counted(tables, TELEMETRY) == Counted(topics.produced - topics.bad, topics.produced - topics.bad)
    assert tables.read(LOOKS).where("complete").count() == LOOKS_TOLD
    before = counted(tables, PARTITION_TRAFFIC)
    assert before.rows > 0

    submit(wheel, tmp_path, ["refresh", *common])
    assert counted(tables, PARTITION_TRAFFIC) == before
    submit(wheel, tmp_path, ["report", *common, "--out", str(tmp_path / "report")])
    assert list((tmp_path / "report").iterdir())


def submit(wheel: Path, folder: Path, command: Sequence[str]) -> None:
    """spark-submit in a folder without rackwise's code: the script comes alone, the packages in the wheel."""
    script = folder / "submit.py"
    script.write_bytes((ROOT / "pipeline" / "submit.py").read_bytes())
    jars = ",".join(map(str, spark_jars()))
    arguments = [
        str(Path(_find_spark_home()) / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]",
        "--jars", jars, "--py-files", str(wheel), "--driver-memory", "700m",
        "--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false",
        "--conf", "spark.databricks.delta.snapshotPartitions=1", "--conf", "spark.driver.host=127.0.0.1",
        str(script), *command,
    ]  # fmt: skip
    # The editable install puts the checkout on every Python's path: taken off again, only the wheel has the code.
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(f"import sys\nsys.path = [at for at in sys.path if at != {str(ROOT)!r}]\n")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(site)}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=3_000, check=False
    )
    assert done.returncode == 0, done.stderr[-4_000:]

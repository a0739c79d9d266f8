"""One Spark session for all tests of the pipeline, two cores, one shuffle partition, and roots for tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.session import short_job, small_batches, spark_session
from pipeline.tables import Format, TableStore
from testbed.cluster import ClusterSpec, EmbeddedCluster

SMALL = {
    **small_batches("local[2]"),
    "spark.default.parallelism": "1",
    # No file is skipped here.
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.stats.skipping": "false",
}
"""What makes a session cheap over small tables. Commands run with the settings of `pipeline.session`."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session of the whole run."""
    session = spark_session("tests", master="local[2]", conf={**SMALL, **short_job("local[2]")}, on_progress=print)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedCluster]:
    """One broker: no test stops it, and topics have one replica."""
    with EmbeddedCluster.start(ClusterSpec(racks=("a",)), on_progress=print) as started:
        yield started


@pytest.fixture(params=["delta", "parquet"])
def tables(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableStore:
    """Empty tables, once as Delta Lake and once as Parquet."""
    return TableStore(spark, str(tmp_path / "tables"), request.param)


@pytest.fixture
def delta_tables(spark: SparkSession, tmp_path: Path) -> TableStore:
    """Empty tables as Delta Lake."""
    return TableStore(spark, str(tmp_path / "tables"))


@pytest.fixture
def make_tables(spark: SparkSession, tmp_path: Path) -> Callable[[str, Format], TableStore]:
    """Tables of a root of that name."""
    return lambda name, layout: TableStore(spark, str(tmp_path / name), layout)

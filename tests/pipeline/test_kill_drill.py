"""Ingest is killed at six points of its line, again and again: in the end every table is as without kills.

Seed 0 is Delta Lake and kills Python alone, so that Java runs on for a moment; seed 1 is Parquet and kills both.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from agent.propose.codec import proposal_to_bytes
from agent.simulate.evaluation import replay_look
from agent.telemetry.events import to_lines
from agent.telemetry.topic_records import slot
from pipeline.schemas.bronze import JOURNAL, QUARANTINE, TELEMETRY
from pipeline.schemas.silver import LOOKS
from pipeline.session import short_job
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster
from tests.agent_process import wait_until_gone
from tests.pipeline.contents import BRONZE, EVERY, Contents, contents
from tests.pipeline.histories import recorded, shop, with_tasks
from tests.pipeline.killed_ingest import POINTS, WITH_JAVA
from tests.pipeline.topics import Counted, Topics, counted
from tests.recorded_looks import observation_to_events

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
EVENTS, BAD_EVERY, LOOKS_TOLD = 120, 11, 12
OF_A_BATCH = 90
"""Four batches: one may be done before the kill in the middle of gold, and one that Spark commits is done after it."""
FILLED = {
    *(table.name for table in BRONZE),
    *(f"silver.{name}" for name in ("looks", "brokers", "partitions", "groups", "reads")),
    *(f"gold.{name}" for name in ("partition_traffic", "read_traffic", "ledger", "lags", "locality", "rebalances")),
}
"""Tables that the records fill at least."""
IN_PLACE = "after gold was decided, before it is in place"
"""Where Parquet is killed in the middle of gold: Delta Lake decides and puts in place at once."""
SMALL = (
    *(f"{name}={value}" for name, value in short_job(None).items()), "spark.driver.memory=700m",
    "spark.sql.shuffle.partitions=2", "spark.databricks.delta.snapshotPartitions=1", "spark.ui.enabled=false",
)  # fmt: skip
"""Tables are small here, and each run is over before the second compiler pays."""
RUN_S, GONE_S = 420, 60


@pytest.fixture(scope="module")
def topics(broker: EmbeddedCluster) -> Topics:
    """Telemetry with looks, other events and rubbish in it, proposals, and a journal with an aborted transaction."""
    made = Topics(broker)
    made.make(made.names.telemetry)
    made.make(made.names.proposals, made.names.journal, partitions=1)
    looks = recorded(lambda minute: with_tasks(shop(swapped=minute < 6, generation=4 + (minute > 5))), LOOKS_TOLD)
    for look in looks:
        events = observation_to_events(look.observation, look.memory, look.limits, look=look.look)
        made.lines(line for event in events for line in to_lines(event))
        for one in replay_look(look).proposals:
            made.proposal(proposal_to_bytes(one), slot(one), look.observation.cluster_id)
    made.events(EVENTS, every_bad=BAD_EVERY)
    made.proposal(None, "topic/t#1")
    made.flush()
    made.journal((10, True), (5, False), (7, True))
    return made


@pytest.fixture(scope="module")
def undisturbed(topics: Topics, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """The tables of a run without kills, from the same records."""
    tables = TableStore(spark, str(tmp_path_factory.mktemp("undisturbed")))
    assert run(topics, tables) == 0
    found = contents(tables)
    print({name: rows.total() for name, rows in found.items()})
    assert {name for name, rows in found.items() if rows} >= FILLED
    assert tables.read(LOOKS).where("complete").count() == LOOKS_TOLD
    assert found[TELEMETRY.name].total() + found[QUARANTINE.name].total() == topics.produced
    assert found[QUARANTINE.name].total() == topics.bad
    assert found[JOURNAL.name].total() == 17
    return found


@pytest.mark.timeout(8 * RUN_S)
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_at_every_point_one_after_the_other_every_table_is_as_if_nobody_had(
    topics: Topics, spark: SparkSession, undisturbed: Contents, tmp_path: Path, seed: int
) -> None:
    tables = TableStore(spark, str(tmp_path / "tables"), "delta" if seed == 0 else "parquet")
    draw = random.Random(seed)
    points = [name for name in POINTS if name != IN_PLACE]
    for point in draw.sample(points, len(points)):
        at = IN_PLACE if seed == 1 and "middle" in point else point
        nth = draw.randint(2, 6) if "middle" in point else 1
        delay_ms = draw.choice((0, 50, 200, 600)) if POINTS[at].lasts else 0
        print(f"\n{tables.format}: killed {at}, time {nth}, {delay_ms} ms later")
        assert run(topics, tables, at=(at, str(nth), str(delay_ms)), java=seed == 1) == -signal.SIGKILL, at
        for table in BRONZE:
            there = counted(tables, table)
            assert there.distinct == there.rows <= undisturbed[table.name].total(), (at, table.name)
    assert run(topics, tables) == 0

    found = contents(tables)
    for table in EVERY:
        rows = counted(tables, table)
        assert rows == Counted(undisturbed[table.name].total(), rows.rows), table.name
        assert found[table.name] == undisturbed[table.name], table.name


def run(
    topics: Topics, tables: TableStore, *, at: Sequence[str] = (), java: bool = False, of_a_batch: int = OF_A_BATCH
) -> int:
    """Ingest what is there; the exit status. Returns when nothing of it is left."""
    arguments = [
        "spark", "ingest", "--once", *topics.options(), "--master", "local[2]",
        "--tables", tables.root, "--format", tables.format, "--set", f"spark.max_records={of_a_batch}",
        *(word for setting in SMALL for word in ("--conf", setting)),
    ]  # fmt: skip
    module = ["tests.pipeline.killed_ingest", *at] if at else ["agent"]
    environment = {**os.environ, **({WITH_JAVA: "1"} if java else {})}
    command = [sys.executable, "-m", *module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True) as process:
        try:
            status = process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    wait_until_gone(process.pid, GONE_S)
    return status

"""Spark standalone as docs/pipeline.md has it: a master and two workers, and what jobs there come to."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pytest

from agent.telemetry.events import to_lines
from config.load import load_settings
from pipeline.jobs.refresh import refresh, refresh_settings
from pipeline.schemas.silver import LOOKS
from pipeline.session import short_job, small_batches
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster
from tests.pipeline.contents import Contents, contents
from tests.pipeline.histories import recorded, shop, with_tasks
from tests.pipeline.standalone import ExecutorKiller, StandaloneCluster, prepared
from tests.pipeline.test_jobs_drill import prefix_of
from tests.pipeline.test_kill_drill import run
from tests.pipeline.topics import Topics
from tests.recorded_looks import observation_to_events

RUN_S = 600
IN_ONE_BATCH = 100_000
"""Which events are late depends on where batches end; the undisturbed ingest has one batch as well."""
(_JAVA,) = short_job(None).values()
_SET = {
    **small_batches(None), "spark.databricks.delta.snapshotPartitions": "1", "spark.ui.enabled": "false",
    "spark.driver.memory": "700m", "spark.executor.memory": "700m", "spark.executor.extraJavaOptions": _JAVA,
    "spark.task.maxFailures": "20",
}  # fmt: skip
FEW = f"--driver-java-options '{_JAVA}' " + " ".join(f"--conf '{name}={value}'" for name, value in _SET.items())
"""Tables are small here, and so is the machine; executors that are killed take more tasks with them than most do."""


class Kills(NamedTuple):
    """Looks in the topic, and how many executors of each job are killed."""

    looks: int
    of_each: int
    jobs: tuple[str, ...]


def filled(broker: EmbeddedCluster, looks: int) -> Topics:
    """Telemetry of this cluster, with rubbish in it."""
    made = Topics(broker)
    made.make(made.names.telemetry)
    made.events(100, every_bad=10)
    for look in recorded(lambda minute: with_tasks(shop(swapped=minute < looks // 2)), looks):
        ours = replace(look.observation, cluster_id=broker.cluster_id)
        events = observation_to_events(ours, look.memory, look.limits, look=look.look)
        made.lines(line for event in events for line in to_lines(event))
    return made


@pytest.mark.integration
@pytest.mark.timeout(2 * RUN_S)
def test_an_ingest_that_was_killed_ends_on_a_cluster_of_which_an_executor_is_killed(
    broker: EmbeddedCluster, make_tables: Callable[..., TableStore], tmp_path: Path
) -> None:
    """The short form of the drills of kills and of ``spark-submit``."""
    topics, tables = filled(broker, 2), make_tables("tables", "delta")
    expected = undisturbed(topics, make_tables("here", "delta"), tmp_path)
    killed = run(topics, tables, at=("in the middle of gold", "2", "0"), java=True, of_a_batch=IN_ONE_BATCH)
    assert killed == -signal.SIGKILL
    prepared(tmp_path, topics.cluster.bootstrap_servers, prefix_of(topics))
    with StandaloneCluster(tmp_path) as cluster:
        finished(cluster, Kills(2, 1, ("INGEST",)), make_tables, expected)


@pytest.mark.drill
@pytest.mark.timeout(4 * RUN_S)
def test_executors_of_two_workers_are_killed_at_random_and_every_row_is_exact(
    broker: EmbeddedCluster, make_tables: Callable[..., TableStore], tmp_path: Path
) -> None:
    kills = Kills(8, 3, ("INGEST", "REFRESH"))
    topics = filled(broker, kills.looks)
    expected = undisturbed(topics, make_tables("here", "delta"), tmp_path)
    prepared(tmp_path, topics.cluster.bootstrap_servers, prefix_of(topics))
    with StandaloneCluster(tmp_path) as cluster:
        finished(cluster, kills, make_tables, expected)


def undisturbed(topics: Topics, here: TableStore, folder: Path) -> Contents:
    """What the tables hold when this process ingests all of it."""
    topics.ingest(here, folder / "here-checkpoints").run_once(Event())
    refresh(here, settings=refresh_settings(load_settings(environ={}).settings))  # prices as the commands have them
    return contents(here)


def finished(
    cluster: StandaloneCluster, kills: Kills, make_tables: Callable[..., TableStore], expected: Contents
) -> None:
    """Master, workers and jobs were started by the commands of the manual, and come to the same rows."""
    for seed, job in enumerate(kills.jobs, start=1):
        with ExecutorKiller(cluster, kills.of_each, seed=seed) as killer:
            cluster.run(job, FEW, *(["--once"] if job == "INGEST" else []), within_s=RUN_S)
        assert killer.killed == kills.of_each, job
        there = make_tables("tables", "delta")
        assert there.read(LOOKS).where("complete").count() == kills.looks
        assert contents(there) == expected, job
    assert len(set(cluster.seen.values())) == 2, "both workers ran executors"

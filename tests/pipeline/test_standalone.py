"""Spark standalone as docs/pipeline.md has it: a master and two workers, and what jobs there come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pytest

from agent.telemetry.events import to_lines
from agent.telemetry.looks import observation_to_events
from config.load import load_settings
from pipeline.jobs.refresh import refresh, refresh_settings
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster
from tests.pipeline.contents import contents
from tests.pipeline.histories import recorded, shop, with_tasks
from tests.pipeline.standalone import ExecutorKiller, StandaloneCluster, prepared
from tests.pipeline.test_jobs_drill import prefix_of
from tests.pipeline.topics import Topics

RUN_S = 600
FEW = (
    "--conf spark.sql.shuffle.partitions=2 --conf spark.databricks.delta.snapshotPartitions=1 "
    "--conf spark.ui.enabled=false --conf spark.driver.memory=700m --conf spark.executor.memory=700m "
    "--conf spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 --driver-java-options -XX:TieredStopAtLevel=1 "
    "--conf spark.task.maxFailures=20"
)
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


@pytest.mark.timeout(180)
def test_master_workers_and_the_script_start_by_the_commands_of_the_manual(tmp_path: Path) -> None:
    prepared(tmp_path, "127.0.0.1:9", "none")
    with StandaloneCluster(tmp_path) as cluster:  # both workers have registered
        assert "--accept-data-loss" in cluster.run("INGEST", "", "--help", within_s=90)


@pytest.mark.drill
@pytest.mark.timeout(4 * RUN_S)
@pytest.mark.parametrize(
    "told",
    [
        pytest.param(Kills(3, 1, ("INGEST",)), id="one"),
        pytest.param(Kills(8, 3, ("INGEST", "REFRESH")), id="three of each job"),
    ],
)
def test_executors_of_two_workers_are_killed_at_random_and_every_row_is_exact(
    broker: EmbeddedCluster, make_tables: Callable[..., TableStore], tmp_path: Path, told: Kills
) -> None:
    """Master, workers and jobs start by the commands of the manual."""
    topics, here = filled(broker, told.looks), make_tables("here", "delta")
    topics.ingest(here, tmp_path / "here-checkpoints").run_once(Event())
    refresh(here, settings=refresh_settings(load_settings(environ={}).settings))  # prices as the commands have them
    expected = contents(here)
    prepared(tmp_path, topics.cluster.bootstrap_servers, prefix_of(topics))
    with StandaloneCluster(tmp_path) as cluster:
        for seed, job in enumerate(told.jobs, start=1):
            with ExecutorKiller(cluster, told.of_each, seed=seed) as killer:
                cluster.run(job, FEW, *(["--once"] if job == "INGEST" else []), within_s=RUN_S)
            assert killer.killed == told.of_each, job
            there = make_tables("tables", "delta")
            assert there.read(LOOKS).where("complete").count() == told.looks
            assert contents(there) == expected, job
        assert len(set(cluster.seen.values())) == 2, "both workers ran executors"

"""Backtest, fleet and weights as an operator runs them beside real brokers: killed, run twice, read back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from pyspark.sql import SparkSession

from agent.propose.codec import proposal_from_json, proposal_to_bytes
from agent.record.weights import WeightsReader
from agent.simulate.evaluation import replay_look
from agent.telemetry.looks import CycleInputs
from agent.telemetry.topic_records import CREATED, slot
from pipeline.backtest.ranking import ranked
from pipeline.backtest.strategies import chosen
from pipeline.jobs.backtest import BacktestRequest, run_backtest
from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.schemas.backtest import UNITS
from pipeline.tables import Format, TableStore
from testbed.cluster import EmbeddedCluster
from tests.command import RACKWISE, ROOT, Done, environment, rackwise
from tests.pipeline.contents import contents
from tests.pipeline.histories import bronze_rows, events_of, recorded, shop, with_tasks
from tests.pipeline.test_backtest_job import ingest
from tests.pipeline.topics import Topics

pytestmark = pytest.mark.drill
RUN_S = 600
MINUTES, STRETCH_MINUTES = 180, 6
"""More stretches than one core takes at a time: they are written in two waves."""
NAMES = "as-recorded,execute"
LOOKS = 4


def spark_command(tables: TableStore, name: str, *more: str) -> list[str]:
    return ["spark", name, "--master", "local[1]", "--tables", tables.root, "--format", tables.format,
            "--conf", "spark.driver.memory=700m", *more]  # fmt: skip


def run(tables: TableStore, name: str, *more: str) -> Done:
    done = rackwise(*spark_command(tables, name, *more), within_s=RUN_S)
    assert done.exit_code == 0, done.stderr[-4_000:]
    return done


# --- backtest -----------------------------------------------------------------------------------------------------


@pytest.mark.timeout(3 * RUN_S)
@pytest.mark.parametrize("layout", ["delta", "parquet"])
def test_a_backtest_that_was_killed_goes_on_and_comes_to_the_same(
    spark: SparkSession, tmp_path: Path, layout: Format
) -> None:
    events = list(events_of(recorded(lambda minute: shop(swapped=minute % 40 < 20), MINUTES)))
    tables, whole = (TableStore(spark, str(tmp_path / name), layout) for name in ("killed", "whole"))
    for one in (tables, whole):
        ingest(one, bronze_rows(events))
    arguments = ("--strategies", NAMES, "--stretch-hours", str(STRETCH_MINUTES / 60), "--output", "json")
    there = _killed_between_waves(spark_command(tables, "backtest", *arguments))
    after_kill = [row.unit for row in tables.read(UNITS).select("unit").collect()]
    assert len(after_kill) == len(set(after_kill)) == there

    done = run(tables, "backtest", *arguments)
    units = 2 * len({event.taken_ms // (STRETCH_MINUTES * 60_000) for event in events})
    (last,) = [line for line in done.stderr.splitlines() if "units are computed" in line]
    assert last == f"{units - there} of {units - there} units are computed; {there} were already there"

    undisturbed = run_backtest(
        whole, BacktestRequest(strategies=chosen(NAMES), stretch_ms=STRETCH_MINUTES * 60_000), print
    )
    assert len(undisturbed.rows) == units
    assert contents(tables, (UNITS,)) == contents(whole, (UNITS,))
    assert [row["strategy"] for row in done.json] == [row.strategy for row in ranked(undisturbed.rows)]
    for row, expected in zip(done.json, ranked(undisturbed.rows), strict=True):
        scores = json.loads(json.dumps(expected.scores._asdict()))
        assert row["scores"].keys() == scores.keys()
        assert {name: value for name, value in row["scores"].items() if value != pytest.approx(scores[name])} == {}


def _killed_between_waves(command: list[str]) -> int:
    """Kill everything of it as soon as the first units are finished; how many these are."""
    process = subprocess.Popen(
        [*RACKWISE, *command], cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    said: list[str] = []
    with process:
        for line in process.stderr or ():
            said.append(line)
            if "units are computed" in line:
                os.killpg(process.pid, signal.SIGKILL)
                finished, of = line.split()[0], line.split()[2]
                assert 0 < int(finished) < int(of)
                return int(finished)
    raise AssertionError("".join(said[-40:]))


# --- fleet and weights --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def looks(broker: EmbeddedCluster) -> list[CycleInputs]:
    """Looks that tell of the cluster whose broker is there."""
    return [
        replace(look, observation=replace(look.observation, cluster_id=broker.cluster_id))
        for look in recorded(lambda _minute: with_tasks(shop()), LOOKS)
    ]


@pytest.fixture(scope="module")
def filled(looks: list[CycleInputs], spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    """Bronze, silver and gold of these looks."""
    tables = TableStore(spark, str(tmp_path_factory.mktemp("filled")))
    ingest(tables, bronze_rows(events_of(looks)))
    refresh(tables, settings=RefreshSettings())
    return tables


@pytest.mark.timeout(3 * RUN_S)
def test_what_a_fleet_job_publishes_can_be_read_by_anybody_and_is_the_same_again(
    broker: EmbeddedCluster, filled: TableStore, looks: list[CycleInputs], tmp_path: Path
) -> None:
    topics = Topics(broker)
    topics.make(topics.names.proposals, partitions=1)
    settings = {"topics.proposals.name": topics.names.proposals, "topics.prefix": prefix_of(topics)}
    told = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    first = run(filled, "fleet", "--publish", "-b", broker.bootstrap_servers, *told)
    published = read(broker, topics.names.proposals)
    assert f"{len(published)} proposals published to {topics.names.proposals}" in first.stderr
    assert f"{len(published)} proposals; 0 could not be planned" in first.stdout

    proposals = {key: proposal_from_json(value) for key, value, _ in published}
    assert {key: slot(one) for key, one in proposals.items()} == {key: key for key in proposals}
    assert "readers" in {one.subject.name for one in proposals.values()}
    for key, _, headers in published:
        assert headers["ce_id"] == proposals[key].id
        assert headers["ce_type"] == CREATED
        assert headers["ce_source"] == f"/clusters/{broker.cluster_id}/jobs/fleet"
    live = {one.id for one in replay_look(looks[-1]).proposals if one.kind.value in {"reassign", "trigger"}}
    assert live
    assert {one.id for one in proposals.values()} >= live

    file = tmp_path / "cluster.yaml"
    file.write_text(f"kafka.bootstrap.servers: {broker.bootstrap_servers}\n" + _yaml(settings))
    run(filled, "fleet", "--publish-to", f"{broker.cluster_id}={file}")
    again = read(broker, topics.names.proposals)
    assert again == [*published, *published]


@pytest.mark.timeout(3 * RUN_S)
def test_weights_of_real_tables_are_what_the_agent_plans_by(
    broker: EmbeddedCluster, filled: TableStore, looks: list[CycleInputs]
) -> None:
    topics = Topics(broker)
    name = f"{prefix_of(topics)}.weights"
    arguments = ("-b", broker.bootstrap_servers, "--set", f"topics.prefix={prefix_of(topics)}")
    assert not _planned_by_bytes(broker, name, looks[-1])

    first = run(filled, "weights", *arguments)
    assert f"created {name}" in first.stderr
    stands = {key: json.loads(value) for key, value, _ in read(broker, name)}
    assert set(stands) >= {f"{broker.cluster_id}/{about}" for about in ("topic/orders", "topic/clicks", "group/app")}
    rates = {one["partition"]: one["bytes_per_s"] for one in stands[f"{broker.cluster_id}/topic/orders"]["partitions"]}
    assert rates == dict.fromkeys(range(4), 1_000_000.0)  # a megabyte each second, as the looks tell

    by_bytes = _planned_by_bytes(broker, name, looks[-1])
    assert by_bytes
    ages = [row["value"] for one in by_bytes for row in json.loads(one)["evidence"] if row["name"] == "weights_age_s"]
    assert len(ages) == len(by_bytes)
    assert all(0 <= age_s < 60 for age_s in ages)
    again = run(filled, "weights", *arguments)
    assert f"0 records written to {name}, 0 deleted, {len(stands)} unchanged" in again.stderr
    assert len(read(broker, name)) == len(stands)


def _planned_by_bytes(broker: EmbeddedCluster, topic: str, look: CycleInputs) -> list[str]:
    """What proposals of the look say of weights, when the agent has read the topic beside it."""
    with closing(WeightsReader({"bootstrap.servers": broker.bootstrap_servers}, topic, prefix="none")) as reader:
        observation = reader.beside(lambda: look.observation)
    proposals = replay_look(replace(look, observation=observation)).proposals
    assert proposals
    return [told for one in proposals if '"weights of the pipeline"' in (told := proposal_to_bytes(one).decode())]


def prefix_of(topics: Topics) -> str:
    """What the names of these topics begin with."""
    return topics.names.proposals.rpartition(".")[0]


def _yaml(settings: Mapping[str, Any]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in settings.items())


def read(broker: EmbeddedCluster, topic: str) -> list[tuple[str, bytes, dict[str, str]]]:
    """Key, value and headers of all records of a topic with one partition, by a plain consumer."""
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": "anybody", "enable.auto.commit": False,
        "enable.partition.eof": True, "auto.offset.reset": "earliest", "log_level": 0,
    })  # fmt: skip
    found = []
    try:
        consumer.assign([Position(topic, 0, 0)])
        while True:
            (message,) = consumer.consume(1, 60)
            if message.error() is not None:
                return found
            heads = {name: value.decode() for name, value in message.headers() or []}
            found.append((message.key().decode(), message.value(), heads))
    finally:
        consumer.close()

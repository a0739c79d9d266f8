"""A live agent on real brokers, and the backtest of what it recorded: the same proposals, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import functions as F

from agent.propose.codec import proposal_to_bytes
from agent.telemetry.topic_records import CREATED
from pipeline.backtest.strategies import chosen
from pipeline.jobs.backtest import BacktestRequest, run_backtest
from pipeline.schemas.backtest import UNITS
from pipeline.schemas.bronze import PROPOSALS, TELEMETRY
from pipeline.tables import TableStore, WriterBatch
from pipeline.transforms import parse
from testbed.cluster import EmbeddedCluster
from tests.observe.live import consumer, delete_groups, produce, topics
from tests.record.live import agent

pytestmark = [pytest.mark.drill, pytest.mark.integration]
SHOP = "backtest-orders"
GROUPS = ("backtest-blind", "backtest-near", "backtest-eager")


@pytest.fixture
def where(embedded_cluster: EmbeddedCluster) -> Iterator[str]:
    servers = embedded_cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    with topics(admin, **{SHOP.replace("-", "_"): 6}):
        yield servers
    delete_groups(admin, *GROUPS)


def test_a_backtest_of_a_recorded_stretch_proposes_what_the_live_agent_published(
    where: str, delta_tables: TableStore
) -> None:
    prefix, cycles = f"rackwise-{uuid4().hex[:8]}", []
    blind, near, eager = GROUPS
    # Something else in each look: no group, groups with and without racks, one gone and another there.
    with agent(where, prefix) as one:
        cycles.append(one.once())
        with consumer(where, near, SHOP, partition_assignment_strategy="cooperative-sticky", client_rack="a"):
            with consumer(where, blind, SHOP, partition_assignment_strategy="range"):
                cycles += [one.once(), _later(one, where)]
            with consumer(where, eager, SHOP, partition_assignment_strategy="roundrobin"):
                cycles += [_later(one, where), _later(one, where)]
    live = sorted((cycle.look, proposal_to_bytes(proposal)) for cycle in cycles for proposal in cycle.proposals)
    assert len({look for look, _ in live}) >= 3
    assert len({document for _, document in live}) >= 3

    _ingest(delta_tables, where, prefix)
    done = run_backtest(delta_tables, BacktestRequest(strategies=chosen("as-recorded,execute")), print)
    assert done.messages == ()
    units = delta_tables.read(UNITS).select(F.explode("said").alias("one")).select("one.*")
    said = {(row.slot, row.at_ms, row.document.encode()) for row in units.collect()}
    assert sorted((row.look, row.document.encode()) for row in units.collect()) == live

    bronze = delta_tables.read(PROPOSALS).where(F.col("type") == CREATED)
    published = {(row.slot, row.time_ms, row.data.encode()) for row in bronze.collect()}
    assert published
    assert published <= said, "every record of the topic, with its key, its time and every byte"
    print(f"{len(published)} published proposals of {len(cycles)} looks came out of the backtest byte for byte")


def _later(one, where: str):
    """A look after some traffic."""
    produce(where, SHOP, 500)
    return one.once()


def _ingest(tables: TableStore, servers: str, prefix: str) -> None:
    """Both topics into bronze, by the functions that ingest runs."""
    for name, read, table in (("telemetry", parse.telemetry, TELEMETRY), ("proposals", parse.proposals, PROPOSALS)):
        source = tables.spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
        records = source.option("subscribe", f"{prefix}.{name}").option("includeHeaders", "true").load()
        parsed = read(records)
        assert parse.quarantined(parsed).count() == 0
        tables.append(table, parse.accepted(parsed, table), WriterBatch(name, 0))

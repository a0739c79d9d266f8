"""Kafka's own tools take placements of new partitions: kafka-topics creates and alters, the other reassigns."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from testbed.cluster import EmbeddedCluster
from tests.command import rackwise
from tests.observe.live import wait_for
from tests.workload.brokers import kafka_tool

MADE = "placed-new"
OTHER = "placed-by-kafka"


@pytest.fixture
def servers(demo_cluster: EmbeddedCluster) -> Iterator[str]:
    """Brokers 1 and 4 in rack a, 2 in b, 3 in c."""
    admin = AdminClient({"bootstrap.servers": demo_cluster.bootstrap_servers})
    try:
        yield demo_cluster.bootstrap_servers
    finally:
        there = admin.list_topics(timeout=30).topics
        for future in admin.delete_topics([name for name in (MADE, OTHER) if name in there]).values():
            future.result(60)


@pytest.mark.drill
def test_kafkas_tools_place_new_partitions_as_planned(
    demo_cluster: EmbeddedCluster, servers: str, tmp_path: Path
) -> None:
    new = planned(servers, "--new-topic", MADE, "--partitions", "6", "--replication-factor", "3")
    run(demo_cluster, new["command"])
    wait_for(lambda: placed(servers, MADE) == lists(new), "kafka-topics created what was planned", 60)

    more = planned(servers, "--add-partitions", f"{MADE}=10")
    run(demo_cluster, more["command"])
    wait_for(lambda: placed(servers, MADE) == lists(new) | lists(more), "kafka-topics added what was planned", 60)
    assert sorted(lists(more)) == [6, 7, 8, 9]

    # A topic that came to be otherwise: the file moves its partitions to the planned brokers.
    file = tmp_path / "moves.json"
    options = ("--new-topic", OTHER, "--partitions", "4", "--replication-factor", "2")
    wanted = planned(servers, *options, "--reassignment-json", str(file))
    assert json.loads(file.read_text()) == wanted["reassignment"]
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(OTHER, 4, replica_assignment=[[1, 4]] * 4)]).values():
        future.result(60)
    done = kafka_tool(
        demo_cluster, "reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(file), "--execute"
    )
    assert "Successfully started partition reassignments" in done
    wait_for(lambda: placed(servers, OTHER) == lists(wanted), "the brokers have what was planned", 120)


def planned(servers: str, *options: str) -> Any:
    """The optimum's row; Kafka's stands beside it."""
    done = rackwise("plan", "-b", servers, *options, "-o", "json")
    assert done.exit_code == 0, done.stderr
    ours, best = done.json
    assert ours["command"]
    assert best["spread"]["against_the_rule"] == 0
    return best


def run(cluster: EmbeddedCluster, command: str) -> None:
    tool, *arguments = shlex.split(command)
    assert [tool, *arguments[:2]] == ["kafka-topics.sh", "--bootstrap-server", cluster.bootstrap_servers]
    kafka_tool(cluster, "TopicCommand", *arguments[2:])


def lists(row: Any) -> dict[int, list[int]]:
    return {one["partition"]: one["replicas"] for one in row["reassignment"]["partitions"]}


def placed(servers: str, topic: str) -> dict[int, list[int]]:
    found = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30).topics.get(topic)
    return {} if found is None else {number: list(row.replicas) for number, row in found.partitions.items()}

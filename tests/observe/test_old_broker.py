"""Kafka 3.6.2: everything that it offers is seen, and what it does not offer is named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from agent.clock import system_clock
from agent.cluster import ClusterSpec, EmbeddedCluster
from agent.observation import GapCause, Part
from agent.observe import Recall, Scope, observe
from assignors.problem import TopicPartition
from tests.hostile import GOOD, HELD
from tests.observe.live import clients_of, commit, consumer, delete_groups, gaps, kinds, produce, topics
from tests.raw_member import RawMember

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def old() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster.start(ClusterSpec(version="3.6.2"), on_progress=print) as started:
        yield started


def test_an_old_broker_shows_all_that_it_has_and_the_rest_is_named(old: EmbeddedCluster) -> None:
    where = old.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": where})
    recall = Recall()
    with topics(admin, old_orders=3):
        produce(where, "old-orders", 60)
        commit({"bootstrap.servers": where}, "old-committed", "old-orders", 0)
        with (
            consumer(where, "old-group", "old-orders", partition_assignment_strategy="range"),
            RawMember(where, "old-raw", metadata=GOOD, assignment=HELD),
            clients_of(where) as clients,
        ):
            seen = observe(clients, system_clock, Scope(), recall)
            delete_groups(admin, "old-committed")
            later = observe(clients, system_clock, Scope(), recall)
    assert [(broker.id, broker.rack, broker.fenced) for broker in seen.brokers] == [
        (1, "a", None),
        (2, "b", None),
        (3, "c", None),
    ]
    assert sum(seen.end_offsets[TopicPartition("old-orders", number)] for number in range(3)) == 60
    assert seen.topic_configs["old-orders"]["cleanup.policy"] == "delete"
    assert "remote.storage.enable" in seen.topic_configs["old-orders"]
    assert {values["default.replication.factor"] for values in seen.broker_configs.values()} == {"3"}
    assert any(size > 0 for (_, tp), size in seen.replica_bytes.items() if tp.topic == "old-orders")
    assert {row.group_id: (row.group_type, row.state) for row in seen.listed_groups} == {
        "old-committed": (None, "Empty"),
        "old-group": (None, "Stable"),
        "old-raw": (None, "Stable"),
    }
    raw = next(group for group in seen.groups if group.group_id == "old-raw")
    assert (raw.members[0].metadata, raw.members[0].assignment) == (GOOD, HELD)
    assert seen.committed_offsets["old-committed"] == {TopicPartition("old-orders", 0): 0}
    assert seen.rights.cluster_describe is True
    unsupported = {
        (Part.GROUPS, GapCause.UNSUPPORTED, "group types"),
        (Part.BROKERS, GapCause.UNSUPPORTED, "fencing"),
    }
    assert kinds(gaps(seen)) == unsupported
    assert {gap.detail for gap in gaps(seen)} == {
        "ListGroups v4 reports no group types, so the types of groups that are not classic are unknown",
        "DescribeCluster below v2 (Kafka 4.0) does not list fenced brokers",
    }
    assert later.vanished_groups == ("old-committed",), "an old coordinator says Dead, and that is the witness"
    assert kinds(gaps(later)) == unsupported

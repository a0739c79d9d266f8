"""Kafka 3.6.2: everything that it offers is seen, and what it cannot have is not called missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from agent.explain.doctor import CheckState, diagnose
from agent.observe.context import ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.simulate.evaluation import evaluate
from agent.values.clock import system_clock
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import RawClassicGroup
from agent.values.plan import Plan
from assignors.problem import TopicPartition
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.broken_bytes import GOOD, HELD
from tests.observe.live import clients_of, commit, consumer, delete_groups, gaps, produce, topics
from tests.raw_member import RawMember

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def old() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster.start(ClusterSpec(version="3.6.2"), on_progress=print) as started:
        yield started


def test_an_old_broker_shows_all_that_it_has_and_misses_nothing(old: EmbeddedCluster) -> None:
    where = old.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": where})
    recall = ObserverState()
    with topics(admin, old_orders=3):
        produce(where, "old-orders", 60)
        commit({"bootstrap.servers": where}, "old-committed", "old-orders", 0)
        with (
            consumer(where, "old-group", "old-orders", partition_assignment_strategy="range"),
            RawMember(where, "old-raw", metadata=GOOD, assignment=HELD),
            clients_of(where) as clients,
        ):
            seen = observe(clients, system_clock, ObserveScope(), recall)
            delete_groups(admin, "old-committed")
            later = observe(clients, system_clock, ObserveScope(), recall)
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
        "old-committed": ("classic", "Empty"),
        "old-group": ("classic", "Stable"),
        "old-raw": ("classic", "Stable"),
    }
    raw = next(group for group in seen.described(RawClassicGroup) if group.group_id == "old-raw")
    assert (raw.members[0].metadata, raw.members[0].assignment) == (GOOD, HELD)
    assert seen.committed_offsets["old-committed"] == {TopicPartition("old-orders", 0): 0}
    assert seen.rights.cluster_describe is True
    assert gaps(seen) == [], "what such a broker cannot have is not missing"
    looked = evaluate(seen, Memory(), Limits())
    checks = diagnose(looked.snapshot, looked.detection, looked.plan or Plan(), looked.limits)
    unknown = {check.key: check.sentence for check in checks if check.state is CheckState.UNKNOWN}
    expected = {"racks are known", "assignors cost no local reads"}
    assert set(unknown) == expected, "the raw member sends no rack; all else an old broker tells"
    assert later.vanished_groups == ("old-committed",), "an old coordinator says Dead, and that is the witness"
    assert gaps(later) == []

"""Looks at a real cluster of three racks without faults."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from agent.errors import ClusterUnreachable, NoBrokersYet, WrongCluster
from agent.observe.context import ObserverClients, ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.observation import GapCause, ObservationPart, RawClassicGroup, RawConsumerGroup
from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from testbed.cluster.spec import ConnectionFault, ConnectionFaultKind
from tests.broken_bytes import GOOD, HELD
from tests.observe.live import (
    CLIENT_ID,
    clients_of,
    commit,
    consumer,
    delete_groups,
    gaps,
    kinds,
    produce,
    topics,
    wait_for,
)
from tests.raw_member import RawMember


@pytest.fixture
def admin(embedded_cluster: EmbeddedCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": embedded_cluster.bootstrap_servers})


@pytest.fixture
def clients(embedded_cluster: EmbeddedCluster) -> Iterator[ObserverClients]:
    with clients_of(embedded_cluster.bootstrap_servers) as both:
        yield both


def test_a_look_sees_brokers_topics_groups_of_both_kinds_offsets_and_configs(
    embedded_cluster: EmbeddedCluster, admin: AdminClient, clients: ObserverClients
) -> None:
    where = embedded_cluster.bootstrap_servers
    with topics(admin, look_orders=3, look_clicks=2):
        produce(where, "look-orders", 300)
        with (
            consumer(
                where,
                "look-classic",
                "look-orders",
                partition_assignment_strategy="cooperative-sticky",
                client_rack="a",
            ),
            consumer(where, "look-848", "look-clicks", group_protocol="consumer", client_rack="b"),
        ):
            seen = observe(clients, system_clock)
    assert seen.cluster_id == embedded_cluster.cluster_id
    assert [(broker.id, broker.rack, broker.fenced) for broker in seen.brokers] == [
        (1, "a", False),
        (2, "b", False),
        (3, "c", False),
    ]
    assert seen.controller in (1, 2, 3)
    orders = next(topic for topic in seen.topics if topic.name == "look-orders")
    assert orders.topic_id is not None
    assert len(orders.topic_id) == 22
    assert (orders.internal, orders.error, len(orders.partitions)) == (False, None, 3)
    assert all(len(row.replicas) == 2 and row.leader in row.isr and row.offline == () for row in orders.partitions)
    assert next(topic for topic in seen.topics if topic.name == "__consumer_offsets").internal
    assert seen.topic_configs["look-orders"]["min.insync.replicas"].isdigit()
    assert seen.topic_configs["look-orders"]["leader.replication.throttled.replicas"] == ""
    assert {values["replica.selector.class"] for values in seen.broker_configs.values()} == {
        "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    }
    assert "consumer.session.timeout.ms" in seen.group_configs["look-848"]
    assert sum(seen.end_offsets[TopicPartition("look-orders", number)] for number in range(3)) == 300
    assert sum(size for (_, tp), size in seen.replica_bytes.items() if tp.topic == "look-orders") > 0
    listed = {group.group_id: (group.group_type, group.state) for group in seen.listed_groups}
    assert listed["look-classic"] == ("classic", "Stable")
    assert listed["look-848"][0] == "consumer"
    (classic,) = (group for group in seen.described(RawClassicGroup) if group.group_id == "look-classic")
    assert (classic.protocol_type, classic.protocol, classic.state) == ("consumer", "cooperative-sticky", "Stable")
    assert b"look-orders" in classic.members[0].metadata
    assert b"look-orders" in classic.members[0].assignment
    (newer_group,) = (group for group in seen.described(RawConsumerGroup) if group.group_id == "look-848")
    (member,) = newer_group.members
    assert (member.rack_id, member.topics, member.member_type) == ("b", ("look-clicks",), 1)
    assert member.assignment == member.target == (TopicPartition("look-clicks", 0), TopicPartition("look-clicks", 1))
    assert newer_group.coordinator in (1, 2, 3)
    assert (seen.rights.cluster_describe, seen.rights.topics_hidden, seen.rights.groups_hidden) == (True, 0, 0)
    assert gaps(seen) == []
    assert seen.ages_ms == {}


def test_the_next_look_is_made_of_the_same_objects_and_carries_what_changes_seldom(
    admin: AdminClient, clients: ObserverClients
) -> None:
    recall = ObserverState()
    with topics(admin, again_one=2):
        first = observe(clients, system_clock, ObserveScope(), recall)
        second = observe(clients, system_clock, ObserveScope(), recall)
        assert second.topics is first.topics
        assert second.brokers is first.brokers
        assert second.topic_configs is first.topic_configs
        assert second.replica_bytes is first.replica_bytes
        assert set(second.ages_ms) >= {
            ObservationPart.LOG_DIRS,
            ObservationPart.TOPIC_CONFIGS,
            ObservationPart.BROKER_CONFIGS,
        }
        assert all(0 < age < 60_000 for age in second.ages_ms.values())
        with topics(admin, again_two=1):
            third = observe(clients, system_clock, ObserveScope(), recall)
    assert {"again-one", "again-two"} <= set(third.topic_configs), "a new topic's configs are not waited for"
    assert third.topic_configs["again-one"] is first.topic_configs["again-one"]
    assert third.ages_ms[ObservationPart.TOPIC_CONFIGS] > 0


def test_lag_is_never_negative_while_records_and_commits_race(
    embedded_cluster: EmbeddedCluster, admin: AdminClient, clients: ObserverClients
) -> None:
    where = embedded_cluster.bootstrap_servers
    ended = threading.Event()
    with topics(admin, race=3):

        def work() -> None:
            with consumer(where, "racer", "race") as one:
                while not ended.is_set():
                    produce(where, "race", 50)
                    for message in one.consume(50, 0.2):
                        one.commit(message, asynchronous=True)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            wait_for(lambda: observe(clients, system_clock).committed_offsets.get("racer"), "the racer commits")
            for _ in range(15):
                seen = observe(clients, system_clock)
                committed = seen.committed_offsets["racer"]
                assert committed
                assert all(seen.end_offsets[tp] >= offset for tp, offset in committed.items())
        finally:
            ended.set()
            thread.join()
    delete_groups(admin, "racer")


def test_what_is_really_deleted_is_believed_with_a_witness(
    embedded_cluster: EmbeddedCluster, admin: AdminClient, clients: ObserverClients
) -> None:
    recall = ObserverState()
    plain = {"bootstrap.servers": embedded_cluster.bootstrap_servers}
    with topics(admin, doomed_one=1, doomed_two=1):
        for group in ("doomed-a", "doomed-b"):
            commit(plain, group, "doomed-one", 0)
        wait_for(lambda: "doomed-b" in observe(clients, system_clock).committed_offsets, "the groups are there")
        before = observe(clients, system_clock, ObserveScope(shrink_share=0.0), recall)
        assert {"doomed-a", "doomed-b"} <= {group.group_id for group in before.groups}
        delete_groups(admin, "doomed-a", "doomed-b")
    after = observe(clients, system_clock, ObserveScope(shrink_share=0.0), recall)
    assert after.vanished_topics == ("doomed-one", "doomed-two")
    assert after.vanished_groups == ("doomed-a", "doomed-b")
    assert [gap for gap in gaps(after) if gap.cause is GapCause.DOUBTED] == []
    assert (after.rights.topics_hidden, after.rights.groups_hidden) == (0, 0)
    assert observe(clients, system_clock, ObserveScope(), recall).vanished_topics == ()


def test_a_group_that_vanishes_between_two_calls_is_a_gap_of_its_own(
    embedded_cluster: EmbeddedCluster, admin: AdminClient, clients: ObserverClients
) -> None:
    plain = {"bootstrap.servers": embedded_cluster.bootstrap_servers}
    with topics(admin, brief=1):
        for group in ("brief-stays", "brief-goes"):
            commit(plain, group, "brief", 0)
        clients.wire.describe_brokers(5_000)
        listed = wait_for(
            lambda: (
                {"brief-stays", "brief-goes"} <= set((all_ := clients.wire.list_groups(5_000)).coordinators) and all_
            ),
            "both groups are listed",
        )
        delete_groups(admin, "brief-goes")
        names = ["brief-stays", "brief-goes"]
        described = clients.wire.describe_groups(names, 5_000, coordinators=listed.coordinators)
        delete_groups(admin, "brief-stays")
    assert [group.group_id for group in described.groups] == ["brief-stays"]
    assert [(gap.subject, gap.cause) for gap in described.gaps] == [("brief-goes", GapCause.VANISHED)]


def test_only_what_the_scope_takes_is_seen_and_parts_left_out_are_named(
    embedded_cluster: EmbeddedCluster, admin: AdminClient, clients: ObserverClients
) -> None:
    scope = ObserveScope(
        include_topics=("scope-*",),
        exclude_topics=("*-out",),
        include_groups=("scope-*",),
        parts=frozenset(ObservationPart) - {ObservationPart.LOG_DIRS, ObservationPart.END_OFFSETS},
    )
    with (
        topics(admin, scope_in=1, scope_out=1, other=1),
        RawMember(embedded_cluster.bootstrap_servers, "scope-g", metadata=GOOD, assignment=HELD),
        RawMember(embedded_cluster.bootstrap_servers, "other-g", metadata=GOOD, assignment=HELD),
    ):
        seen = observe(clients, system_clock, scope)
    assert [topic.name for topic in seen.topics] == ["scope-in"]
    assert [group.group_id for group in seen.groups] == ["scope-g"]
    assert (seen.end_offsets, seen.replica_bytes) == ({}, {})
    left_out = {
        (ObservationPart.LOG_DIRS, GapCause.NOT_ASKED, ""),
        (ObservationPart.END_OFFSETS, GapCause.NOT_ASKED, ""),
    }
    assert kinds(gaps(seen)) == left_out


def test_a_cluster_that_is_not_the_expected_one_is_refused(
    embedded_cluster: EmbeddedCluster, clients: ObserverClients
) -> None:
    with pytest.raises(WrongCluster) as caught:
        observe(clients, system_clock, ObserveScope(expected_cluster_id="another"))
    assert str(caught.value) == (
        f"The brokers belong to cluster {embedded_cluster.cluster_id}: cluster another is expected."
        " Check bootstrap.servers, or cluster.id."
    )
    assert observe(clients, system_clock, ObserveScope(expected_cluster_id=embedded_cluster.cluster_id)).brokers


def test_no_request_of_a_look_changes_anything(embedded_cluster: EmbeddedCluster, admin: AdminClient) -> None:
    proxy = embedded_cluster.proxy
    with (
        topics(admin, watched=2),
        RawMember(embedded_cluster.bootstrap_servers, "watched-g", metadata=GOOD, assignment=HELD),
        consumer(embedded_cluster.bootstrap_servers, "watched-848", "watched", group_protocol="consumer"),
        clients_of(embedded_cluster.proxied_bootstrap_servers) as proxied,
    ):
        mark = proxy.count
        recall = ObserverState()
        for _ in range(2):
            seen = observe(proxied, system_clock, ObserveScope(refresh_ms={}), recall)
        records = proxy.records(since=mark, client_id=CLIENT_ID)
    assert gaps(seen) == []
    assert [record for record in records if record.mutating] == []
    assert {record.api for record in records} >= {
        "DescribeCluster",
        "Metadata",
        "ListGroups",
        "DescribeGroups",
        "ConsumerGroupDescribe",
        "OffsetFetch",
        "ListOffsets",
        "DescribeConfigs",
        "DescribeLogDirs",
        "ListPartitionReassignments",
    }
    assert proxy.lost == 0


def test_a_cluster_that_names_no_brokers_yet_says_try_again(embedded_cluster: EmbeddedCluster) -> None:
    with clients_of(embedded_cluster.proxied_bootstrap_servers) as proxied:
        embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.NO_BROKERS))
        try:
            with pytest.raises(NoBrokersYet) as caught:
                observe(proxied, system_clock)
        finally:
            embedded_cluster.proxy.heal()
        assert (caught.value.exit_code, caught.value.todo) == (5, "Try again in a few seconds.")
        healed = observe(proxied, system_clock)
    assert len(healed.brokers) == 3
    assert gaps(healed) == [], "a moment without brokers leaves nothing behind"


def test_an_address_where_nobody_listens_is_unreachable() -> None:
    with clients_of("127.0.0.1:1") as nowhere, pytest.raises(ClusterUnreachable) as caught:
        observe(nowhere, system_clock, ObserveScope(call_timeout_ms=1_000))
    assert str(caught.value) == (
        "No broker answered: 127.0.0.1:1: connection refused. Check bootstrap.servers and that the brokers run."
    )
    assert caught.value.exit_code == 5

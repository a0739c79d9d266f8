"""On real brokers: the groups are what the plan promises, as the brokers themselves see them."""

from __future__ import annotations

import uuid

import pytest

from agent.values.kafka import CONSUMER_GROUP, STREAMS_GROUP
from agent.wire.client import WireClient
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from testbed.demo.workload.placement import spread
from testbed.demo.workload.plan import GroupProtocol, WorkloadFaultKind
from tests.workload import brokers

pytestmark = pytest.mark.integration

CLASSIC = [
    pytest.param("billing", "range", {"a", "b", "c"}, id="librdkafka range with racks"),
    pytest.param("audit", "cooperative-sticky", {"a", "b", "c"}, id="librdkafka cooperative-sticky with racks"),
    pytest.param("mailer", "cooperative-sticky", {None}, id="librdkafka whose members send no rack"),
    pytest.param("ledger", "cooperative-sticky", {"a", "b", "c"}, id="Java cooperative-sticky with client.rack"),
    pytest.param("exports", "cooperative-sticky", {None}, id="Java cooperative-sticky without client.rack"),
    pytest.param("shop", "stream", {"a", "b"}, id="Kafka Streams under the classic protocol"),
]


@pytest.mark.parametrize(("group", "protocol", "racks"), CLASSIC)
def test_classic_group_is_stable_with_its_protocol_and_racks(
    work: ClusterWorkload, demo_cluster: EmbeddedCluster, group: str, protocol: str, racks: set[str | None]
) -> None:
    found = brokers.classic_group(demo_cluster, group)
    assert found.protocol == protocol
    assert {brokers.rack_sent(member.metadata) for member in found.members} == racks


def test_process_ids_told_over_http_are_those_in_the_subscriptions(
    work: ClusterWorkload, demo_cluster: EmbeddedCluster
) -> None:
    told = {uuid.UUID(one["process_id"]) for one in work.lags("shop")["instances"]}
    sent = [member.metadata for member in brokers.classic_group(demo_cluster, "shop").members]
    assert len(told) == len(sent) == 2
    assert all(any(process.bytes in metadata for metadata in sent) for process in told)


def test_client_ids_told_over_http_are_those_of_the_members(
    work: ClusterWorkload, demo_cluster: EmbeddedCluster
) -> None:
    told = {one["client_id"] for one in work.lags("shop")["instances"]}
    members = brokers.classic_group(demo_cluster, "shop").members
    assert {member.client_id.removesuffix("-StreamThread-1-consumer") for member in members} == told


def test_kafkas_own_tool_lists_each_group_with_its_type(work: ClusterWorkload, demo_cluster: EmbeddedCluster) -> None:
    rows = brokers.table(brokers.kafka_tool(demo_cluster, "GroupsCommand", "--list"))
    types = {row["GROUP"]: row["TYPE"] for row in rows}
    assert types["shop-next"] == "Streams"
    assert types["search"] == "Consumer"
    assert {types[name] for name in ("billing", "audit", "mailer", "ledger", "exports", "shop")} == {"Classic"}


def test_streams_group_has_the_processes_and_standbys_that_the_application_tells(
    work: ClusterWorkload, demo_cluster: EmbeddedCluster
) -> None:
    text = brokers.kafka_tool(
        demo_cluster, "streams.StreamsGroupCommand", "--describe", "--group", "shop-next", "--members", "--verbose"
    )
    instances = work.lags("shop-next")["instances"]
    assert all(one["process_id"] in text for one in instances)
    standbys = {task["task"] for one in instances for task in one["tasks"] if task["role"] == "standby"}
    assert len(standbys) == 9, "the group's own config asks for one standby of each of the 6 + 3 tasks"


def test_members_of_newer_protocols_send_racks_and_tags(work: ClusterWorkload, demo_cluster: EmbeddedCluster) -> None:
    with WireClient({"bootstrap_servers": demo_cluster.bootstrap_servers.split(",")}) as wire:
        wire.describe_brokers(10_000)
        (search,) = wire.describe_groups(["search"], 10_000, group_type=CONSUMER_GROUP).groups
        (shop_next,) = wire.describe_groups(["shop-next"], 10_000, group_type=STREAMS_GROUP).groups
    assert {member.rack_id for member in search.members} == {"a", "b", "c"}
    assert {(member.rack_id, member.client_tags) for member in shop_next.members} == {
        ("a", (("zone", "a"),)),
        ("b", (("zone", "b"),)),
    }


def test_brokers_hold_the_replicas_where_the_plan_put_them(
    work: ClusterWorkload, demo_cluster: EmbeddedCluster
) -> None:
    topics = brokers.admin(demo_cluster).list_topics(timeout=10).topics
    for plan in work.plan.topics:
        placed = tuple(tuple(topics[plan.name].partitions[at].replicas) for at in range(len(plan.replicas)))
        assert placed == plan.replicas


def test_seeded_faults_are_really_there(work: ClusterWorkload) -> None:
    racks = work.facts.racks
    placed = {topic.name: topic.replicas for topic in work.plan.topics}
    assert {fault.kind for fault in work.plan.faults} == set(WorkloadFaultKind)
    assert all(len({racks[broker] for broker in replicas}) == 1 for replicas in placed["payments"])
    assert {racks[replicas[0]] for replicas in placed["views"]} == {"a"}
    assert placed["orders"] == spread(racks, 6, 3)
    assert work.left_out == ()


def test_member_that_leaves_gives_its_partitions_to_the_others(work: ClusterWorkload) -> None:
    group = work.groups["audit"]
    assert group.plan.protocol is GroupProtocol.COOPERATIVE_STICKY
    newcomer = group.add("c")
    brokers.eventually(lambda: newcomer.partitions, "the newcomer got no partition")
    group.remove(newcomer.name)
    brokers.eventually(lambda: group.partitions_held == 6, "partitions have no owner")
    assert {event.kind for event in newcomer.events} >= {"assigned", "revoked"}


def test_java_consumers_log_their_rebalances_with_the_generation(work: ClusterWorkload) -> None:
    before = work.java.rebalances()[-1]["seq"]
    name = work.add_java_member("ledger", "c")
    brokers.eventually(
        lambda: [one for one in work.java.rebalances(before) if one["who"] == name and one["kind"] == "assigned"],
        "the newcomer got nothing",
    )
    work.remove_java_member("ledger", name)
    brokers.eventually(lambda: not work.unready(), "the group did not settle")
    events = [one for one in work.java.rebalances(before) if one["group"] == "ledger"]
    generations = [one["generation"] for one in events if one["who"] != name and one["generation"] is not None]
    assert generations
    assert max(generations) > min(generations)


def test_load_reaches_every_group_and_nothing_is_lost(work: ClusterWorkload) -> None:
    before = {member.name: member.records for group in work.groups.values() for member in group.members}
    brokers.eventually(
        lambda: all(
            sum(member.records - before.get(member.name, 0) for member in group.members) > 100
            for group in work.groups.values()
        ),
        "a group reads nothing",
    )
    assert work.load.failures == 0
    assert [member.failure for group in work.groups.values() for member in group.members if member.failure] == []

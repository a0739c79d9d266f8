"""What passes between real clients and real brokers is recorded, and can be harmed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from testbed.cluster import ClusterError, ConnectionFault, ConnectionFaultKind, EmbeddedCluster
from testbed.cluster.ports import hold_ports
from testbed.cluster.proxy import RecordingProxy
from tests.cluster.live import QUIET, admin, consume, create_topic, described, eventually, known_broker_count, produce

TOPIC = "proxied"
READ_GROUP = f"{TOPIC}-readers"


@pytest.fixture(autouse=True)
def healed(embedded_cluster: EmbeddedCluster) -> Iterator[None]:
    yield
    embedded_cluster.proxy.heal()


@pytest.fixture(scope="module")
def topic(embedded_cluster: EmbeddedCluster) -> str:
    create_topic(admin(embedded_cluster.bootstrap_servers), TOPIC, partitions=3, copies=1)
    return TOPIC


def test_writes_and_reads_go_through_whole_and_are_recorded_by_client(
    embedded_cluster: EmbeddedCluster, topic: str
) -> None:
    mark = embedded_cluster.proxy.count
    produce(embedded_cluster.proxied_bootstrap_servers, topic, 500, **{"client.id": "writer"})
    assert consume(embedded_cluster.proxied_bootstrap_servers, topic, 500, **{"client.id": "reader"}) == 500
    written = [one for one in embedded_cluster.proxy.records(since=mark, client_id="writer") if one.mutating]
    assert {one.topics for one in written} == {(topic,)}
    assert "Produce" in {one.api for one in written}
    joined = [one for one in embedded_cluster.proxy.records(since=mark, client_id="reader") if one.api == "JoinGroup"]
    assert {subject.name for one in joined for subject in one.subjects or ()} == {READ_GROUP}
    assert embedded_cluster.proxy.lost == 0


def test_a_client_that_only_looks_leaves_no_mutating_request(embedded_cluster: EmbeddedCluster) -> None:
    mark = embedded_cluster.proxy.count
    assert len(described(embedded_cluster.proxied_bootstrap_servers)) == 3
    looked = embedded_cluster.proxy.records(since=mark, client_id="looker")
    assert "DescribeCluster" in {one.api for one in looked}
    assert [one for one in looked if one.mutating] == []


def test_a_client_behind_the_proxy_is_never_told_another_address(embedded_cluster: EmbeddedCluster) -> None:
    told = admin(embedded_cluster.proxied_bootstrap_servers).list_topics(timeout=10).brokers.values()
    assert {f"{broker.host}:{broker.port}" for broker in told} == set(
        embedded_cluster.proxied_bootstrap_servers.split(",")
    )


def test_what_bypasses_the_proxy_is_not_recorded(embedded_cluster: EmbeddedCluster, topic: str) -> None:
    mark = embedded_cluster.proxy.count
    admin(embedded_cluster.bootstrap_servers, **{"client.id": "bypass"}).list_topics(topic, timeout=10)
    assert embedded_cluster.proxy.records(since=mark, client_id="bypass") == ()


@pytest.mark.parametrize(
    "kind",
    [ConnectionFaultKind.BLACKHOLE, ConnectionFaultKind.MUTE, ConnectionFaultKind.RESET, ConnectionFaultKind.REFUSE],
)
def test_a_fault_on_all_brokers_leaves_a_client_without_an_answer_until_it_is_lifted(
    embedded_cluster: EmbeddedCluster, kind: ConnectionFaultKind
) -> None:
    client = admin(embedded_cluster.proxied_bootstrap_servers)
    assert len(client.list_topics(timeout=10).brokers) == 3
    embedded_cluster.inject(ConnectionFault(kind))
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1.5)
    embedded_cluster.proxy.heal()
    assert eventually(lambda: known_broker_count(client) == 3)


def test_a_muted_request_is_done_although_its_answer_never_came(embedded_cluster: EmbeddedCluster) -> None:
    create_topic(admin(embedded_cluster.bootstrap_servers), "muted", partitions=1)
    producer = Producer({"bootstrap.servers": embedded_cluster.proxied_bootstrap_servers, **QUIET})
    # The first value makes the connection, so that only the answer to the second can be missing.
    producer.produce("muted", b"before")
    assert producer.flush(10) == 0
    embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.MUTE))
    producer.produce("muted", b"during")
    assert producer.flush(1) == 1
    assert consume(embedded_cluster.bootstrap_servers, "muted", 2) == 2


def test_a_fault_on_one_broker_spares_the_others(embedded_cluster: EmbeddedCluster, topic: str) -> None:
    embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.REFUSE), 1)
    others = ",".join(embedded_cluster.proxied_bootstrap_servers.split(",")[1:])
    began = time.monotonic()
    assert topic in admin(others).list_topics(timeout=10).topics
    assert time.monotonic() - began < 5


def test_a_delay_holds_up_each_request(embedded_cluster: EmbeddedCluster) -> None:
    client = admin(embedded_cluster.proxied_bootstrap_servers)
    client.list_topics(timeout=10)
    embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.DELAY, 700))
    began = time.monotonic()
    client.list_topics(timeout=10)
    assert time.monotonic() - began >= 0.7


def test_a_cluster_can_be_made_to_answer_without_brokers(embedded_cluster: EmbeddedCluster) -> None:
    client = admin(embedded_cluster.proxied_bootstrap_servers)
    client.list_topics(timeout=10)
    embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.NO_BROKERS))
    answer = client.list_topics(timeout=10)
    assert len(answer.brokers) == 0
    assert TOPIC in answer.topics


def test_a_fault_on_a_broker_that_is_not_there_is_refused(embedded_cluster: EmbeddedCluster) -> None:
    with pytest.raises(ClusterError, match="The proxy has no broker 9"):
        embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.RESET), 9)


def test_an_overflowing_record_says_how_much_it_lost(embedded_cluster: EmbeddedCluster) -> None:
    routes = embedded_cluster._members.manifest.proxy_routes
    with hold_ports(1) as held:
        port = held.ports[0]
    with RecordingProxy({1: routes[1]._replace(listen_port=port)}, kept=3) as small:
        for _ in range(2):
            admin(f"127.0.0.1:{port}").list_topics(timeout=10)
        assert len(small.records()) == 3
        assert small.lost == small.count - 3 > 0


def test_a_port_that_is_taken_is_a_sentence(embedded_cluster: EmbeddedCluster) -> None:
    routes = embedded_cluster._members.manifest.proxy_routes
    with pytest.raises(ClusterError, match=r"The recording proxy cannot listen: .*in use"):
        RecordingProxy({1: routes[1]}).start()

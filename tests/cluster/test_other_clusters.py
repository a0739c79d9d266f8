"""Clusters that are not the default one: an older Kafka, one behind TLS and passwords, one that counts its bytes."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from testbed.cluster import ClusterError, ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.cluster.live import admin, consume, create_topic, described, eventually, kafka_admin, produce
from tests.conftest import ClusterFactory


@pytest.mark.drill
def test_an_older_kafka_runs_in_three_racks_and_counts_its_bytes(cluster_factory: ClusterFactory) -> None:
    old = cluster_factory(ClusterSpec(version="3.6.2", jmx=True))
    assert described(old.bootstrap_servers) == {1: "a", 2: "b", 3: "c"}
    create_topic(admin(old.bootstrap_servers), "old", partitions=3, copies=3)
    produce(old.bootstrap_servers, "old", 200)
    assert consume(old.bootstrap_servers, "old", 200) == 200

    counters = [broker.jmx_counters() for broker in old.brokers]
    taken = [one.by_topic["old"].bytes_in for one in counters if "old" in one.by_topic]
    assert sum(taken) > 0
    # Each broker holds a copy of all three partitions: what two did not take from the producer, they copied.
    assert eventually(
        lambda: sum(broker.jmx_counters().replication_bytes_in for broker in old.brokers) >= 2 * sum(taken)
    )

    old.broker(2).restart("z")
    assert described(old.bootstrap_servers) == {1: "a", 2: "z", 3: "c"}
    print(f"resident: {[psutil.Process(broker.pid).memory_info().rss >> 20 for broker in old.brokers]} MiB")


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster.start(
        ClusterSpec(racks=("a",), security=ClusterSecurity(), proxied=True), on_progress=print
    ) as one:
        yield one


def sasl(cluster: EmbeddedCluster, user: str, password: str, authority: str | None = None) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": authority or str(cluster.authority_file),
    }


@pytest.mark.integration
def test_a_user_without_rights_sees_an_empty_world_and_what_he_is_granted(secured: EmbeddedCluster) -> None:
    ruler = admin(secured.bootstrap_servers, **sasl(secured, "admin", "admin-secret"))
    user = admin(secured.bootstrap_servers, **sasl(secured, "rackwise", "rackwise-secret"))
    create_topic(ruler, "hidden", partitions=1)
    assert "hidden" not in user.list_topics(timeout=10).topics
    right = AclBinding(
        ResourceType.TOPIC, "hidden", ResourcePatternType.LITERAL, "User:rackwise", "*",
        AclOperation.DESCRIBE, AclPermissionType.ALLOW,
    )  # fmt: skip
    for done in ruler.create_acls([right]).values():
        done.result(10)
    assert eventually(lambda: "hidden" in user.list_topics(timeout=10).topics)


@pytest.mark.integration
def test_both_clients_get_in_with_the_same_user_password_and_authority(secured: EmbeddedCluster) -> None:
    with kafka_admin(
        secured.bootstrap_servers,
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="admin",
        sasl_plain_password="admin-secret",
        ssl_cafile=str(secured.authority_file),
    ) as client:
        assert client.describe_cluster()["cluster_id"] == secured.cluster_id


@pytest.mark.integration
@pytest.mark.parametrize(
    ("user", "password"),
    [
        pytest.param("rackwise", "wrong", id="a wrong password"),
        pytest.param("nobody", "rackwise-secret", id="an unknown user"),
    ],
)
def test_wrong_credentials_do_not_get_in(secured: EmbeddedCluster, user: str, password: str) -> None:
    stranger = admin(secured.bootstrap_servers, **sasl(secured, user, password))
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=3)


@pytest.mark.integration
def test_the_proxy_reads_what_secured_clients_ask(secured: EmbeddedCluster) -> None:
    settings = sasl(secured, "admin", "admin-secret") | {"security.protocol": "SASL_PLAINTEXT", "client.id": "secure"}
    del settings["ssl.ca.location"]
    admin(secured.proxied_bootstrap_servers, **settings).list_topics(timeout=10)
    assert "Metadata" in {one.api for one in secured.proxy.records(client_id="secure")}


@pytest.mark.integration
def test_a_properties_file_can_be_made_for_a_java_client(secured: EmbeddedCluster) -> None:
    properties = secured.client_properties("rackwise")
    assert properties["security.protocol"] == "SASL_SSL"
    assert 'username="rackwise" password="rackwise-secret";' in properties["sasl.jaas.config"]
    assert properties["ssl.truststore.location"] == str(secured.authority_file)


@pytest.mark.integration
def test_an_unknown_user_of_the_cluster_is_named(secured: EmbeddedCluster) -> None:
    with pytest.raises(ClusterError, match="no user 'eve': its users are admin, rackwise"):
        secured.client_properties("eve")

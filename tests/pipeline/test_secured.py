"""Ingest from brokers that want TLS and a password, with rackwise's own settings and no more rights than it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from agent.errors import AuthenticationFailed, NotAllowed, RackwiseError, TlsFailed
from config.kafka_client import KafkaClientConfig
from pipeline.schemas.bronze import JOURNAL, PROPOSALS, QUARANTINE, TELEMETRY
from pipeline.stream.ingest import IngestTopics
from pipeline.tables import TableStore
from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.pipeline.topics import Counted, counted, event, runner

pytestmark = [pytest.mark.integration, pytest.mark.drill]

PASSWORD = "reader-secret"
NAMES = IngestTopics(telemetry="rackwise.telemetry", proposals="rackwise.proposals", journal="rackwise.journal")
RECORDS, BAD = 300, 10


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    """One broker behind TLS and SCRAM, with telemetry that a user ``reader`` has no rights to yet."""
    users = {"admin": "admin-secret", "reader": PASSWORD}
    with EmbeddedCluster.start(
        ClusterSpec(racks=("a",), security=ClusterSecurity(users=users)), on_progress=print
    ) as started:
        config = config_of(started, "admin").confluent()
        admin = AdminClient(config)
        for made in admin.create_topics([NewTopic(NAMES.telemetry, 2, 1)]).values():
            made.result(60)
        producer = Producer(config)
        for number in range(RECORDS):
            value = b"no event" if number < BAD else event(number)
            producer.produce(NAMES.telemetry, value, partition=number % 2)
        assert producer.flush(60) == 0
        yield started


def config_of(cluster: EmbeddedCluster, user: str) -> KafkaClientConfig:
    return KafkaClientConfig.of({"bootstrap.servers": cluster.bootstrap_servers, **cluster.client_properties(user)})


def test_it_reads_over_tls_as_a_user_who_may_read_and_nothing_else_and_its_password_lies_nowhere(
    secured: EmbeddedCluster, delta_tables: TableStore, tmp_path: Path
) -> None:
    kafka = config_of(secured, "reader")
    assert kafka.root["security.protocol"] == "SASL_SSL"
    with pytest.raises(NotAllowed, match=r"This user may not use topic rackwise\.\w+: .* Grant it Describe and Read"):
        runner(kafka, NAMES, delta_tables, tmp_path).run_once(Event())
    admin = AdminClient(config_of(secured, "admin").confluent())
    may = AclBinding(
        ResourceType.TOPIC, "rackwise.", ResourcePatternType.PREFIXED, "User:reader", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    for made in admin.create_acls([may]).values():
        made.result(60)
    told: list[str] = []
    assert runner(kafka, NAMES, delta_tables, tmp_path, say=told.append).run_once(Event()) == RECORDS
    assert counted(delta_tables, TELEMETRY) == Counted(RECORDS - BAD, RECORDS - BAD)
    assert counted(delta_tables, QUARANTINE) == Counted(BAD, BAD)
    assert (counted(delta_tables, PROPOSALS).rows, counted(delta_tables, JOURNAL).rows) == (0, 0)
    session = [value for _, value in delta_tables.spark.sparkContext.getConf().getAll()]
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert written
    assert not any(PASSWORD in text for text in (*session, *told))
    assert not any(PASSWORD.encode() in data for data in written)


@pytest.mark.parametrize(
    ("changed", "kind", "sentence"),
    [
        pytest.param(
            {"sasl_jaas_config": "", "sasl_username": "reader", "sasl_password": "wrong"},
            AuthenticationFailed,
            "The brokers refused the login",
            id="a wrong password",
        ),
        pytest.param(
            {"ssl_truststore_type": "", "ssl_truststore_location": ""},
            TlsFailed,
            "The TLS handshake failed",
            id="an authority that is not trusted",
        ),
    ],
)
def test_who_keeps_it_out_is_told_before_anything_is_written(
    secured: EmbeddedCluster,
    delta_tables: TableStore,
    changed: dict[str, str],
    kind: type[RackwiseError],
    sentence: str,
) -> None:
    given = {"bootstrap.servers": secured.bootstrap_servers, **secured.client_properties("reader")}
    given |= {name.replace("_", "."): value for name, value in changed.items()}
    kafka = KafkaClientConfig.of({name: value for name, value in given.items() if value})
    root = Path(delta_tables.root)
    with pytest.raises(kind) as refused:
        runner(kafka, NAMES, delta_tables, root.parent).run_once(Event())
    assert sentence in str(refused.value)
    assert refused.value.exit_code == 2
    assert not root.exists()

"""Connection settings as Java's client wants them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import ConfigError
from config.kafka_client import KafkaClientConfig
from pipeline.kafka import java_properties, source_options

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIC\n-----END PRIVATE KEY-----"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def properties(**written: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in written.items()}
    return java_properties(KafkaClientConfig.of({"bootstrap.servers": "a:1,b:2", **named}))


def test_a_plain_connection_is_the_servers_and_the_name_of_who_asks() -> None:
    assert properties() == {"bootstrap.servers": "a:1,b:2", "client.id": "rackwise"}


@pytest.mark.parametrize(
    ("mechanism", "password", "jaas"),
    [
        pytest.param("PLAIN", "p", f'{PLAIN} required username="u" password="p";', id="PLAIN"),
        pytest.param("SCRAM-SHA-512", "p", f'{SCRAM} required username="u" password="p";', id="SCRAM"),
        pytest.param(
            "SCRAM-SHA-256", 'a"b\\c;', f'{SCRAM} required username="u" password="a\\"b\\\\c;";', id="quotes in it"
        ),
    ],
)
def test_a_login_becomes_a_jaas_line(mechanism: str, password: str, jaas: str) -> None:
    found = properties(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_username="u", sasl_password=password
    )
    assert found == {
        "bootstrap.servers": "a:1,b:2", "client.id": "rackwise", "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism, "sasl.jaas.config": jaas,
    }  # fmt: skip


def test_certificates_travel_as_text(tmp_path: Path) -> None:
    authority, both = tmp_path / "ca.pem", tmp_path / "both.pem"
    authority.write_text(f"a comment\n{CERTIFICATE}\n{CERTIFICATE}\n")
    both.write_text(f"{CERTIFICATE}\n{KEY}\n")
    found = properties(
        security_protocol="SSL",
        ssl_ca_location=str(authority),
        ssl_certificate_location=str(both),
        ssl_key_location=str(both),
        ssl_endpoint_identification_algorithm="none",
    )
    assert found == {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "rackwise",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": f"{CERTIFICATE}\n{CERTIFICATE}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CERTIFICATE,
        "ssl.keystore.key": KEY,
        "ssl.endpoint.identification.algorithm": "",
    }


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    kafka = KafkaClientConfig.model_construct(
        root={"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "none.pem")}
    )
    with pytest.raises(ConfigError, match=r"ssl\.ca\.location cannot be read"):
        java_properties(kafka)


def test_options_of_a_source_bring_deadlines_and_short_fetches() -> None:
    options = source_options(KafkaClientConfig.of({"bootstrap.servers": "a:1", "request.timeout.ms": "7000"}))
    assert options == {
        "kafka.bootstrap.servers": "a:1", "kafka.client.id": "rackwise",
        "kafka.request.timeout.ms": "7000", "kafka.default.api.timeout.ms": "14000",
        "kafka.fetch.max.wait.ms": "50",
    }  # fmt: skip

"""One configuration in Kafka's dotted names, two clients: what is translated, left out and refused."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pydantic import BaseModel, ConfigDict, ValidationError

from config.kafka_checks import checked_value
from config.kafka_client import KafkaClientConfig, notes_on
from config.kafka_keys import KEYS
from config.properties import load_properties
from config.setting_mistake import SettingMistake

SCRAM = {
    "bootstrap.servers": "one:9092, two:9093",
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "alice",
    "sasl.password": "s3cret",
    "ssl.ca.location": "/etc/ca.pem",
}
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3cret";'


def test_scram_over_tls_reaches_both_clients() -> None:
    config = KafkaClientConfig.of(SCRAM)
    assert config.confluent() == {
        "client.id": "rackwise",
        "log_level": 0,
        "bootstrap.servers": "one:9092,two:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "s3cret",
        "ssl.ca.location": "/etc/ca.pem",
    }
    assert config.kafka_python() == {
        "client_id": "rackwise",
        "bootstrap_servers": ["one:9092", "two:9093"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "s3cret",
        "ssl_cafile": "/etc/ca.pem",
    }


@pytest.mark.parametrize(
    "written",
    [
        pytest.param({"sasl.jaas.config": JAAS}, id="a JAAS line instead of user and password"),
        pytest.param({"sasl.jaas.config": JAAS.replace('"', '"').replace(" required", "  REQUIRED")}, id="JAAS, loud"),
        pytest.param({"sasl.mechanisms": "scram-sha-512", "sasl.mechanism": "scram-sha-512"}, id="librdkafka's plural"),
        pytest.param({"ssl.truststore.location": "/etc/ca.pem", "ssl.truststore.type": "PEM"}, id="Java's PEM store"),
        pytest.param({"ssl.truststore.location": "/etc/ca.pem"}, id="a PEM store told by its name"),
        pytest.param({"group.id": "x", "acks": "all", "value.deserializer": "Y"}, id="consumer settings left out"),
        pytest.param({"config.providers": "env", "config.providers.env.class": "a.b.EnvVarConfigProvider"}, id="env"),
        pytest.param({"sasl.password": "${env:PW}"}, id="a password from the environment"),
        pytest.param({"enable.ssl.certificate.verification": "true"}, id="verification said aloud"),
    ],
)
def test_other_ways_of_writing_give_the_same_settings(written: dict[str, str]) -> None:
    rest = {k: v for k, v in SCRAM.items() if not ("sasl.jaas.config" in written and k.startswith("sasl.u"))}
    if "ssl.truststore.location" in written:
        del rest["ssl.ca.location"]
    same = KafkaClientConfig.of({**rest, **written}, {"PW": "s3cret"})
    assert same.confluent() == KafkaClientConfig.of(SCRAM).confluent()


REFUSALS = [
    pytest.param(
        {"bootstrap.server": "a:1"}, "bootstrap.server: no such setting; did you mean bootstrap.servers?", id="near"
    ),
    pytest.param({"qwertz": "1"}, "qwertz: no such setting", id="nothing near"),
    pytest.param({"bootstrap.servers": "one"}, "bootstrap.servers: 'one' is not host:port", id="no port"),
    pytest.param(
        {"bootstrap.servers": "one:99999"}, "bootstrap.servers: 'one:99999' is not host:port", id="no such port"
    ),
    pytest.param(
        {"request.timeout.ms": "soon"}, "request.timeout.ms: a whole number is expected, not 'soon'", id="word"
    ),
    pytest.param(
        {"security.protocol": "TLS"},
        "security.protocol: 'TLS' is not offered; use one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        id="an unknown protocol",
    ),
    pytest.param(
        {"sasl.mechanism": "GSSAPI", "security.protocol": "SASL_SSL"},
        "sasl.mechanism: 'GSSAPI' is not offered; use one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        id="Kerberos",
    ),
    pytest.param(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
        "security.protocol: SASL_SSL also needs sasl.username and sasl.password",
        id="SASL without a user",
    ),
    pytest.param(
        {"sasl.username": "a"},
        "sasl.username: it has no effect with security.protocol PLAINTEXT; use SASL_SSL",
        id="a user without SASL",
    ),
    pytest.param(
        {"ssl.ca.location": "/ca.pem"},
        "ssl.ca.location: it has no effect with security.protocol PLAINTEXT; use SSL",
        id="a CA without TLS",
    ),
    pytest.param(
        {"security.protocol": "SSL", "ssl.key.location": "/k.pem"},
        "ssl.key.location: a client certificate needs both its key and its certificate",
        id="a key without its certificate",
    ),
    pytest.param(
        {"security.protocol": "SSL", "ssl.truststore.location": "/t.jks"},
        "ssl.truststore.location: a JKS store can only be read by Java; convert it to PEM: keytool -importkeystore",
        id="a JKS store",
    ),
    pytest.param(
        {"security.protocol": "SSL", "ssl.keystore.location": "/k.p12"},
        "ssl.keystore.location: a PKCS12 store can only be read by Java; convert it to PEM: openssl pkcs12",
        id="a PKCS12 store",
    ),
    pytest.param(
        {"ssl.engine.location": "/x.so"}, "ssl.engine.location: it loads code into the process", id="an engine"
    ),
    pytest.param({"plugin.library.paths": "x"}, "plugin.library.paths: it loads code into the process", id="a plugin"),
    pytest.param({"interceptor.classes": "x.Y"}, "interceptor.classes: it names code to load", id="interceptors"),
    pytest.param(
        {"sasl.login.callback.handler.class": "x"}, "sasl.login.callback.handler.class: it names code", id="handler"
    ),
    pytest.param(
        {"sasl.oauthbearer.token.endpoint.url": "u"}, "sasl.oauthbearer.token.endpoint.url: it names a URL", id="url"
    ),
    pytest.param(
        {"sasl.kerberos.kinit.cmd": "sh"}, "sasl.kerberos.kinit.cmd: Kerberos is not supported", id="a command"
    ),
    pytest.param({"debug": "security"}, "debug: librdkafka's debug output prints secrets", id="debug output"),
    pytest.param(
        {"enable.ssl.certificate.verification": "false"},
        "enable.ssl.certificate.verification: certificates are always verified",
        id="verification off",
    ),
    pytest.param(
        {"sasl.mechanism": "PLAIN", "sasl.mechanisms": "x"}, "sasl.mechanisms: it contradicts", id="two names"
    ),
    pytest.param(
        {"config.providers.v.class": "x.Vault"}, "config.providers.v.class: only Kafka's env", id="a provider"
    ),
    pytest.param(
        {"sasl.jaas.config": "x.Evil required a=b;"}, "sasl.jaas.config: Evil is not supported", id="a login module"
    ),
    pytest.param({"sasl.jaas.config": JAAS[:-1]}, "sasl.jaas.config: it must end with a semicolon", id="no semicolon"),
    pytest.param({"sasl.jaas.config": JAAS.replace("required", "")}, "sasl.jaas.config: write it as", id="no flag"),
    pytest.param(
        {"sasl.jaas.config": JAAS.replace('t";', "t;")}, "sasl.jaas.config: a quote is not closed", id="a quote"
    ),
    pytest.param(
        {"sasl.jaas.config": JAAS.replace("username", "user")},
        "sasl.jaas.config: username missing",
        id="JAAS without user",
    ),
    pytest.param(
        {"sasl.jaas.config": JAAS, "sasl.mechanism": "PLAIN"},
        "sasl.jaas.config: its login module does not fit sasl.mechanism PLAIN",
        id="a module that does not fit",
    ),
    pytest.param(
        {"sasl.jaas.config": JAAS, "sasl.password": "other"}, "sasl.jaas.config: it contradicts", id="two passwords"
    ),
    pytest.param({"security.protocol": "SSL", "ssl.ca.pem": "abc"}, "ssl.ca.pem: a text with -----BEGIN", id="no PEM"),
]


@pytest.mark.parametrize(("written", "sentence"), REFUSALS)
def test_a_mistake_is_answered_with_its_sentence(written: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingMistake) as caught:
        KafkaClientConfig.of(written, {})
    assert str(caught.value).startswith(sentence)
    assert "s3cret" not in str(caught.value)


def test_secrets_are_masked_wherever_the_settings_are_shown() -> None:
    config = KafkaClientConfig.of(SCRAM)
    shown = f"{config!r} {config} {config.masked()} {config.model_dump()} {config.model_dump_json()}"
    assert "s3cret" not in shown
    assert config.secrets() == ("s3cret",)
    assert config.masked()["sasl.password"] == "******"


class Outer(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)
    kafka: KafkaClientConfig = KafkaClientConfig()


def test_it_is_a_field_of_other_settings() -> None:
    outer = Outer.model_validate({"kafka": {"bootstrap.servers": ["a:1", "b:2"], "request.timeout.ms": 500}})
    assert outer.kafka.confluent() == {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "rackwise",
        "log_level": 0,
        "socket.timeout.ms": 500,
    }
    assert Outer.model_validate(outer.model_dump()) == outer
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"kafka": {"sasl.pasword": "s3cret"}})
    assert "did you mean sasl.password?" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_properties_file_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.servers=one:9092,\\\n  two:9093\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={JAAS}\nssl.truststore.location=/etc/ca.pem\ngroup.id=mine\n",
        encoding="ascii",
    )
    assert KafkaClientConfig.of(load_properties(path)) == KafkaClientConfig.of(SCRAM)


def test_what_was_left_out_is_said() -> None:
    assert notes_on({"group.id": "x", "acks": "1", "client.id": "c"}) == (
        "ignored, as they are settings of producers or consumers: acks, group.id",
    )
    assert notes_on({"client.id": "c"}) == ()


@pytest.mark.parametrize(
    ("written", "warning"),
    [
        pytest.param(
            {**SCRAM, "ssl.endpoint.identification.algorithm": ""},
            "host names of brokers are not checked",
            id="Java's empty",
        ),
        pytest.param(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "a",
                "sasl.password": "b",
            },
            "the password crosses the network in clear text",
            id="a clear password",
        ),
    ],
)
def test_weak_settings_are_warned_of(written: dict[str, str], warning: str) -> None:
    config = KafkaClientConfig.of(written)
    assert [sentence for sentence in config.warnings() if sentence.startswith(warning)]
    assert KafkaClientConfig.of(SCRAM).warnings() == ()


def test_inline_pem_on_one_line_gets_its_line_breaks_back() -> None:
    body = "QUJD" * 20
    config = KafkaClientConfig.of(
        {
            "security.protocol": "SSL",
            "ssl.truststore.certificates": f"-----BEGIN CERTIFICATE----- {body} -----END CERTIFICATE-----",
        }
    )
    lines = str(config.kafka_python()["ssl_cadata"]).splitlines()
    assert lines == ["-----BEGIN CERTIFICATE-----", body[:64], body[64:], "-----END CERTIFICATE-----"]


def test_librdkafka_knows_every_name_the_table_gives_it(tmp_path: Path) -> None:
    samples = {"list": "localhost:1", "number": "1000", "text": "x"}
    special = {"security.protocol": "SSL", "client.dns.lookup": "use_all_dns_ips", "client.rack": "a"}
    for key in KEYS.values():
        if key.confluent is None or (
            key.name.startswith("ssl.") and key.name != "ssl.endpoint.identification.algorithm"
        ):
            continue
        value = special.get(key.name) or (key.choices[0] if key.choices else samples[key.kind])
        typed = int(value) if key.kind == "number" else checked_value(key, value)
        AdminClient({"bootstrap.servers": "localhost:1", key.confluent: typed}, logger=_quiet())
    assert {
        key.confluent for key in KEYS.values() if key.name.startswith("ssl.") and key.confluent
    } <= _librdkafka_tls()


def _quiet() -> object:
    log = logging.getLogger("quiet")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    return log


def _librdkafka_tls() -> set[str]:
    """TLS settings that librdkafka does not call unknown (their files need not exist for that)."""
    known: set[str] = set()
    for key in KEYS.values():
        if key.name.startswith("ssl.") and key.confluent:
            try:
                AdminClient({"bootstrap.servers": "localhost:1", key.confluent: "/no/such"}, logger=_quiet())
                known.add(key.confluent)
            except KafkaException as error:
                if "No such configuration property" not in str(error):
                    known.add(key.confluent)
    return known

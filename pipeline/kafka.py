"""rackwise's connection settings for Spark's Kafka source, and a topic as the brokers describe it.

Spark's connector is Java's client: the dotted names become its properties, logins become JAAS, PEM files are read here
and passed on as text, so that executors elsewhere need no files. Invariant: secrets are options of a source, never
settings of the session, which show in process lists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from agent.errors import ConfigError, RackwiseError, WrongCluster, reason
from agent.record.librdkafka import MISSING, ClientErrors, client_settings, refusal
from agent.values.kafka import BOOTSTRAP_SERVERS, CLIENT_ID, CLIENT_RACK, RETRY_BACKOFF_MS
from config.jaas import PLAIN_LOGIN, SCRAM_LOGIN
from config.kafka_client import KafkaClientConfig
from config.kafka_keys import (
    CA_LOCATION,
    CERTIFICATE_LOCATION,
    CRL_LOCATION,
    HOST_CHECK,
    JAAS,
    KEY_LOCATION,
    KEYS,
    SASL_MECHANISM,
    SASL_PASSWORD,
    SASL_USERNAME,
    SECURITY_PROTOCOL,
)
from config.plain_file import read_plain

TIMEOUT_S = 15.0
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call] # a constant of the library
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call] # as above
_LAG_TIMEOUT_S = 3.0
"""A batch does not wait longer to say how far it is behind."""
_SAME = (
    BOOTSTRAP_SERVERS,
    CLIENT_ID,
    CLIENT_RACK,
    SECURITY_PROTOCOL,
    SASL_MECHANISM,
    "ssl.key.password",
    "client.dns.lookup",
    "request.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    RETRY_BACKOFF_MS,
    "send.buffer.bytes",
    "receive.buffer.bytes",
)
"""Names that are the same in Java's client; confluent-kafka has others for some (`KEYS`)."""
_MOST_PEM_BYTES = 1_048_576
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)


class TopicIdentity(NamedTuple):
    """A topic as the brokers describe it."""

    name: str
    cluster: str
    """Id of the cluster."""
    id: str
    """Another one is another topic of the same name."""
    partitions: tuple[int, ...]


def java_properties(kafka: KafkaClientConfig) -> dict[str, str]:
    """The connection in the names of Java's client. Holds secrets in clear text. Raises ConfigError."""
    properties = {name: str(value) for name, value in kafka.confluent().items()}
    named = {name: properties[there] for name in _SAME if (there := KEYS[name].confluent) in properties}
    if CRL_LOCATION in properties:
        raise ConfigError(
            f"kafka.{CRL_LOCATION} cannot be used here",
            why="Spark's connector is Java's client, which has no setting for a revocation list",
            todo=f"Leave it out for this command: --set kafka.{CRL_LOCATION}=",
        )
    return {**named, **_login(properties), **_trust(properties), **_identity(properties), **_host_check(properties)}


def _login(properties: Mapping[str, str]) -> dict[str, str]:
    if SASL_USERNAME not in properties:
        return {}
    scram = properties.get(str(KEYS[SASL_MECHANISM].confluent), "").startswith("SCRAM")
    module = SCRAM_LOGIN if scram else PLAIN_LOGIN
    user, password = _quoted(properties[SASL_USERNAME]), _quoted(properties.get(SASL_PASSWORD, ""))
    return {JAAS: f"{module} required username={user} password={password};"}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _trust(properties: Mapping[str, str]) -> dict[str, str]:
    text = properties.get("ssl.ca.pem") or _text_of(properties, CA_LOCATION)
    if not text:
        return {}
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "\n".join(_CERTIFICATE.findall(text)) or text}


def _identity(properties: Mapping[str, str]) -> dict[str, str]:
    chain = properties.get("ssl.certificate.pem") or _text_of(properties, CERTIFICATE_LOCATION)
    key = properties.get("ssl.key.pem") or _text_of(properties, KEY_LOCATION)
    if not chain or not key:
        return {}
    keys = _KEY.findall(key)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "\n".join(_CERTIFICATE.findall(chain)) or chain,
        "ssl.keystore.key": keys[0] if keys else key,
    }


def _host_check(properties: Mapping[str, str]) -> dict[str, str]:
    checked = properties.get(HOST_CHECK)
    return {} if checked is None else {HOST_CHECK: "" if checked == "none" else checked}


def _text_of(properties: Mapping[str, str], setting: str) -> str:
    location = properties.get(setting)
    if not location:
        return ""
    try:
        return read_plain(location, _MOST_PEM_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"kafka.{setting} cannot be read", why=reason(error), todo="Name a readable PEM file."
        ) from error


def source_options(kafka: KafkaClientConfig) -> dict[str, str]:
    """Options of a Kafka source of Spark."""
    named = java_properties(kafka)
    # A broker that does not answer is reported after seconds, not minutes: the runner tries again by itself.
    named.setdefault("request.timeout.ms", "15000")
    # A consumer that is kept waits for its last fetch, in which nothing came, before it begins the next batch.
    named["fetch.max.wait.ms"] = "50"
    named["default.api.timeout.ms"] = str(2 * int(named["request.timeout.ms"]))
    return {f"kafka.{name}": value for name, value in named.items()}


class TopicClient:
    """Asks the brokers about topics, from any number of threads at once: its parts are safe for that."""

    def __init__(self, kafka: KafkaClientConfig, timeout_s: float = TIMEOUT_S) -> None:
        if BOOTSTRAP_SERVERS not in kafka.root:
            raise ConfigError(
                "No brokers are named", why="kafka.bootstrap.servers is not set", todo="Set --bootstrap-servers."
            )
        self._timeout_s = timeout_s
        self._servers = str(kafka.root[BOOTSTRAP_SERVERS])
        self._client_errors = ClientErrors()
        self._admin = AdminClient(client_settings(kafka.confluent(), self._client_errors.settings))

    def topic(self, name: str, expected_cluster: str | None = None) -> TopicIdentity | None:
        """The topic; None when there is none. Raises ClusterUnreachable, WrongCluster and what `refusal` returns."""
        try:
            # Not by asking for the topic: with auto.create.topics.enable a request for its metadata creates it.
            cluster = self._cluster_id()
            if expected_cluster is not None and cluster != expected_cluster:
                raise WrongCluster(
                    f"The brokers belong to cluster {cluster}",
                    why=f"cluster {expected_cluster} is expected",
                    todo="Check bootstrap.servers, or cluster.id.",
                )
            futures = self._admin.describe_topics(TopicCollection([name]), request_timeout=self._timeout_s)
            topic = futures[name].result(self._timeout_s + 1)
        except KafkaException as failed:
            if failed.args[0].code() in MISSING:
                return None
            raise self._refusal(failed, f"topic {name}") from None
        return TopicIdentity(name, cluster, str(topic.topic_id), tuple(sorted(one.id for one in topic.partitions)))

    def first_offsets(self, topic: TopicIdentity) -> dict[int, int]:
        """Partition -> offset of the oldest record that is still there. Raises as `topic` does."""
        return self._offsets(topic, _EARLIEST, self._timeout_s)

    def end_offsets(self, topic: TopicIdentity) -> dict[int, int]:
        """Partition -> offset behind the last record that can be read, committed ones only. Raises as `topic` does."""
        return self._offsets(topic, _LATEST, min(self._timeout_s, _LAG_TIMEOUT_S))

    def _offsets(self, topic: TopicIdentity, spec: OffsetSpec, timeout_s: float) -> dict[int, int]:
        wanted = {TopicPartition(topic.name, partition): spec for partition in topic.partitions}
        committed = IsolationLevel.READ_COMMITTED
        try:
            futures = self._admin.list_offsets(wanted, isolation_level=committed, request_timeout=timeout_s)
            return {place.partition: answer.result(timeout_s + 1).offset for place, answer in futures.items()}
        except KafkaException as failed:
            raise self._refusal(failed, f"topic {topic.name}") from None

    def cluster(self) -> str:
        """The id of the cluster. Raises ClusterUnreachable and what `refusal` returns."""
        try:
            return self._cluster_id()
        except KafkaException as failed:
            raise self._refusal(failed, "the cluster's id") from None

    def _cluster_id(self) -> str:
        return self._admin.list_topics(timeout=self._timeout_s).cluster_id or ""

    def _refusal(self, failed: KafkaException, what: str) -> RackwiseError:
        self._admin.poll(0)  # only then the library reports why its brokers cannot be reached
        return refusal(failed, what, self._client_errors.errors(), servers=self._servers)


def missing_topic(name: str) -> ConfigError:
    """The error for a topic that is not there."""
    return ConfigError(
        f"There is no topic {name}",
        why="the agent creates it in modes propose and execute, and has not done so yet",
        todo="Start the agent first, or check topics.prefix and the names of the topics.",
    )

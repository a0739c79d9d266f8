"""Dotted names of the Kafka connection: translated, ignored (of producers and consumers), or refused.

Refused, with a sentence, is a key that would load code, read a URL, print secrets or weaken TLS.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

KafkaKeyKind = Literal["text", "number", "list", "choice"]


class KafkaKey(NamedTuple):
    """A dotted name with its names in the two clients; None where that client has no such setting."""

    name: str
    confluent: str | None
    python: str | None
    kind: KafkaKeyKind = "text"
    secret: bool = False
    choices: tuple[str, ...] = ()


BOOTSTRAP_SERVERS = "bootstrap.servers"
CLIENT_ID = "client.id"
SECURITY_PROTOCOL = "security.protocol"
SASL_MECHANISM = "sasl.mechanism"
SASL_USERNAME = "sasl.username"
SASL_PASSWORD = "sasl.password"  # noqa: S105 a name
CA_LOCATION = "ssl.ca.location"
CRL_LOCATION = "ssl.crl.location"
CERTIFICATE_LOCATION = "ssl.certificate.location"
KEY_LOCATION = "ssl.key.location"
HOST_CHECK = "ssl.endpoint.identification.algorithm"
DEFAULT_CLIENT_ID = "rackwise"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

KEYS: dict[str, KafkaKey] = {
    key.name: key
    for key in (
        KafkaKey(BOOTSTRAP_SERVERS, BOOTSTRAP_SERVERS, "bootstrap_servers", "list"),
        KafkaKey(CLIENT_ID, CLIENT_ID, "client_id"),
        KafkaKey("client.rack", "client.rack", None),
        KafkaKey(SECURITY_PROTOCOL, SECURITY_PROTOCOL, "security_protocol", "choice", choices=PROTOCOLS),
        KafkaKey(SASL_MECHANISM, "sasl.mechanisms", "sasl_mechanism", "choice", choices=MECHANISMS),
        KafkaKey(SASL_USERNAME, SASL_USERNAME, "sasl_plain_username"),
        KafkaKey(SASL_PASSWORD, SASL_PASSWORD, "sasl_plain_password", secret=True),
        KafkaKey(CA_LOCATION, CA_LOCATION, "ssl_cafile"),
        KafkaKey("ssl.ca.pem", "ssl.ca.pem", "ssl_cadata"),
        KafkaKey(CRL_LOCATION, CRL_LOCATION, "ssl_crlfile"),
        KafkaKey(CERTIFICATE_LOCATION, CERTIFICATE_LOCATION, "ssl_certfile"),
        KafkaKey("ssl.certificate.pem", "ssl.certificate.pem", "ssl_certdata"),
        KafkaKey(KEY_LOCATION, KEY_LOCATION, "ssl_keyfile"),
        KafkaKey("ssl.key.pem", "ssl.key.pem", "ssl_keydata", secret=True),
        KafkaKey("ssl.key.password", "ssl.key.password", "ssl_password", secret=True),
        KafkaKey(HOST_CHECK, HOST_CHECK, "ssl_check_hostname", "choice", choices=("https", "none")),
        KafkaKey("client.dns.lookup", "client.dns.lookup", None),
        KafkaKey("request.timeout.ms", "socket.timeout.ms", "request_timeout_ms", "number"),
        KafkaKey(
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.ms",
            "socket_connection_setup_timeout_ms",
            "number",
        ),
        KafkaKey("connections.max.idle.ms", "connections.max.idle.ms", "connections_max_idle_ms", "number"),
        KafkaKey("metadata.max.age.ms", "metadata.max.age.ms", "metadata_max_age_ms", "number"),
        KafkaKey("reconnect.backoff.ms", "reconnect.backoff.ms", "reconnect_backoff_ms", "number"),
        KafkaKey("reconnect.backoff.max.ms", "reconnect.backoff.max.ms", "reconnect_backoff_max_ms", "number"),
        KafkaKey("retry.backoff.ms", "retry.backoff.ms", "retry_backoff_ms", "number"),
        KafkaKey("send.buffer.bytes", "socket.send.buffer.bytes", "send_buffer_bytes", "number"),
        KafkaKey("receive.buffer.bytes", "socket.receive.buffer.bytes", "receive_buffer_bytes", "number"),
        KafkaKey("receive.message.max.bytes", "receive.message.max.bytes", "receive_message_max_bytes", "number"),
    )
}

ALIASES: dict[str, str] = {
    "metadata.broker.list": BOOTSTRAP_SERVERS,
    "sasl.mechanisms": SASL_MECHANISM,
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
}
"""Other names of the same setting: librdkafka's, or Java's for inline PEM."""

STORES = ("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password")
KEYSTORES = ("ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password")
JAAS = "sasl.jaas.config"
FOLDED = (*STORES, *KEYSTORES, JAAS)
"""Java's names that become others of the table."""

IGNORED: frozenset[str] = frozenset(
    """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.num.messages batch.size buffer.memory
    check.crcs compression.codec compression.type default.api.timeout.ms delivery.timeout.ms enable.auto.commit
    enable.idempotence exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms isolation.level key.deserializer
    key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records max.request.size message.max.bytes metrics.num.samples
    metrics.recording.level metrics.sample.window.ms partition.assignment.strategy retries retry.backoff.max.ms
    reconnect.backoff.jitter.ms session.timeout.ms socket.connection.setup.timeout.max.ms socket.keepalive.enable
    ssl.enabled.protocols ssl.protocol transaction.timeout.ms transactional.id value.deserializer value.serializer
    enable.metrics.push auto.include.jmx.reporter
    """.split()  # noqa: SIM905 a column of names is easier to read and to extend than fifty quoted strings
)
"""Keys of producers and consumers that a shared properties file brings along; rackwise sets its own."""

REFUSED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (r"debug|log_level", "librdkafka's debug output prints secrets; use rackwise's own log level"),
        (r"plugin\.library\.paths|ssl\.engine\..*|ssl\.engines?", "it loads code into the process"),
        (r".*(callback[._]handler|\.class|\.classes|_cb|_class)", "it names code to load, and rackwise loads none"),
        (r"metric\.reporters|security\.providers|ssl\.providers?", "it names code to load, and rackwise loads none"),
        (r"ssl\.(key|trust)manager\.algorithm|ssl\.secure\..*", "it belongs to Java's TLS only"),
        (r"ssl\.(cipher\.suites|curves\.list|sigalgs\.list)", "the two clients name ciphers differently; leave it out"),
        (r"sasl\.kerberos\..*", "Kerberos is not supported; use SCRAM or a TLS client certificate"),
        (r"(enable\.)?sasl\.oauthbearer\..*|https\..*", "it names a URL or a file to read a token from; use SCRAM"),
        (r"sasl\.login\..*", "it belongs to Java's login modules; give sasl.username and sasl.password"),
    )
)

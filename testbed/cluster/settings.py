"""Settings of a broker of the embedded cluster.

Invariant: `common_settings` is the whole difference from Kafka's defaults that does not name an address, a directory
or a rack; the compose file's brokers have the same, and a test compares them one by one.
Priorities: quick recovery first (a killed broker serves again in about 3 s), then little memory, then Kafka's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from testbed.cluster.spec import ClusterSpec, KafkaVersion

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# From here on every kind of group is served unasked, and the setting is deprecated.
ALL_PROTOCOLS_SINCE = KafkaVersion(4, 2, 0)
STREAMS_PROTOCOL_SINCE = KafkaVersion(4, 1, 0)
SHARE_GROUPS_SINCE = KafkaVersion(4, 0, 0)


class ProxyRoute(NamedTuple):
    """Ports of 127.0.0.1: where clients come in, and the broker's listener behind the proxy."""

    listen_port: int
    broker_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """Where one broker is: its ports on 127.0.0.1, its directory, its rack."""

    id: int
    rack: str | None
    internal_port: int
    controller_port: int
    client_port: int
    proxied_port: int | None = None
    """Port the broker listens on for what comes through the proxy."""
    proxy_port: int | None = None
    """Port of the recording proxy, which brokers advertise to clients."""
    jmx_port: int | None = None
    data_directory: str

    @property
    def route(self) -> ProxyRoute | None:
        """Its way through the recording proxy; None when the cluster has none."""
        if self.proxy_port is None or self.proxied_port is None:
            return None
        return ProxyRoute(self.proxy_port, self.proxied_port)


def common_settings(brokers: int, version: KafkaVersion, *, rack_aware_selector: bool = True) -> dict[str, str]:
    """Settings that are the same on every broker of a cluster of this size; values as Kafka reads them."""
    replication = str(min(3, brokers))
    min_isr = str(min(2, brokers))
    settings = {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        # A killed broker's old session must run out before it may register again.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "group.initial.rebalance.delay.ms": "0",
        "default.replication.factor": replication,
        "min.insync.replicas": min_isr,
        "offsets.topic.num.partitions": "6",
        "offsets.topic.replication.factor": replication,
        "transaction.state.log.num.partitions": "6",
        "transaction.state.log.replication.factor": replication,
        "transaction.state.log.min.isr": min_isr,
        # A typing error must not become a topic.
        "auto.create.topics.enable": "false",
        # The default of 128 MiB is a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": "8388608",
    }
    if SHARE_GROUPS_SINCE <= version < ALL_PROTOCOLS_SINCE:
        streams = ",streams" if version >= STREAMS_PROTOCOL_SINCE else ""
        settings["group.coordinator.rebalance.protocols"] = f"classic,consumer{streams}"
    if version >= SHARE_GROUPS_SINCE:
        settings |= {
            "share.coordinator.state.topic.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": replication,
            "share.coordinator.state.topic.min.isr": min_isr,
        }
    if rack_aware_selector:
        settings["replica.selector.class"] = RACK_AWARE_SELECTOR
    return settings


def broker_settings(spec: ClusterSpec, node: BrokerNode, voters: str, security: Mapping[str, str]) -> dict[str, str]:
    """All settings of one broker: the common ones, its addresses and rack, and the spec's own, which win.

    `voters` is Kafka's `controller.quorum.voters`; `security` what `testbed.cluster.security` adds, or empty.
    """
    settings = common_settings(len(spec.racks), spec.kafka, rack_aware_selector=spec.rack_aware_selector)
    settings |= {
        "node.id": str(node.id),
        "controller.quorum.voters": voters,
        "log.dirs": node.data_directory,
    }
    settings |= _listeners(node, secured=spec.security is not None)
    if node.rack is not None:
        settings["broker.rack"] = node.rack
    return settings | dict(security) | dict(spec.broker_properties)


def _listeners(node: BrokerNode, *, secured: bool) -> dict[str, str]:
    bound = {"INTERNAL": node.internal_port, "CLIENT": node.client_port, "CONTROLLER": node.controller_port}
    advertised = {"INTERNAL": node.internal_port, "CLIENT": node.client_port}
    protocols = {
        "INTERNAL": "PLAINTEXT",
        "CONTROLLER": "PLAINTEXT",
        "CLIENT": "SASL_SSL" if secured else "PLAINTEXT",
    }
    if node.route is not None:
        bound["PROXIED"] = node.route.broker_port
        advertised["PROXIED"] = node.route.listen_port
        # The proxy reads what it passes on, so this listener never has TLS.
        protocols["PROXIED"] = "SASL_PLAINTEXT" if secured else "PLAINTEXT"
    return {
        "listeners": _joined(bound),
        "advertised.listeners": _joined(advertised),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
    }


def _joined(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())


def as_properties(settings: Mapping[str, str]) -> str:
    """The text of a `.properties` file, sorted by name; backslashes and line ends are escaped."""
    return "".join(f"{name}={_escaped(settings[name])}\n" for name in sorted(settings))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")

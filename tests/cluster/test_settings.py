"""Which settings a broker gets."""

from __future__ import annotations

import pytest

from testbed.cluster.settings import (
    RACK_AWARE_SELECTOR,
    BrokerNode,
    as_properties,
    broker_settings,
    common_settings,
)
from testbed.cluster.spec import ClusterSecurity, ClusterSpec, KafkaVersion

PLAIN = BrokerNode(id=2, rack="b", internal_port=1, controller_port=2, client_port=3, data_directory="data")
PROXIED = BrokerNode(
    id=2,
    rack="b",
    internal_port=1,
    controller_port=2,
    client_port=3,
    proxied_port=4,
    proxy_port=5,
    data_directory="data",
)
NO_RACK = BrokerNode(id=2, rack=None, internal_port=1, controller_port=2, client_port=3, data_directory="data")
NEW = KafkaVersion(4, 3, 1)


@pytest.mark.parametrize(
    ("brokers", "replication", "min_isr"),
    [
        pytest.param(1, "1", "1", id="one broker holds its only copy"),
        pytest.param(2, "2", "2", id="two brokers hold both copies"),
        pytest.param(3, "3", "2", id="three brokers may lose one"),
        pytest.param(5, "3", "2", id="more brokers do not mean more copies"),
    ],
)
def test_copies_fit_the_number_of_brokers(brokers: int, replication: str, min_isr: str) -> None:
    settings = common_settings(brokers, NEW)
    copies = {name: value for name, value in settings.items() if name.endswith("replication.factor")}
    assert set(copies.values()) == {replication}
    assert len(copies) == 4
    assert settings["min.insync.replicas"] == settings["transaction.state.log.min.isr"] == min_isr


@pytest.mark.parametrize(
    ("version", "protocols"),
    [
        pytest.param(NEW, None, id="4.3.1 serves every kind of group unasked"),
        pytest.param(KafkaVersion(4, 1, 0), "classic,consumer,streams", id="4.1.0 must be asked for streams groups"),
        pytest.param(KafkaVersion(4, 0, 0), "classic,consumer", id="4.0.0 has no streams groups"),
        pytest.param(KafkaVersion(3, 6, 2), None, id="3.6.2 does not know the setting"),
    ],
)
def test_group_protocols_follow_the_version(version: KafkaVersion, protocols: str | None) -> None:
    assert common_settings(3, version).get("group.coordinator.rebalance.protocols") == protocols


def test_follower_fetching_can_be_left_out() -> None:
    assert common_settings(3, NEW)["replica.selector.class"] == RACK_AWARE_SELECTOR
    assert "replica.selector.class" not in common_settings(3, NEW, rack_aware_selector=False)


def test_a_broker_without_a_rack_has_no_rack_line() -> None:
    assert broker_settings(ClusterSpec(), PLAIN, "1@x:1", {})["broker.rack"] == "b"
    assert "broker.rack" not in broker_settings(ClusterSpec(), NO_RACK, "1@x:1", {})


def test_every_listener_is_bound_to_this_machine_only() -> None:
    listeners = broker_settings(ClusterSpec(proxied=True), PROXIED, "1@x:1", {})["listeners"].split(",")
    assert listeners == [
        "INTERNAL://127.0.0.1:1",
        "CLIENT://127.0.0.1:3",
        "CONTROLLER://127.0.0.1:2",
        "PROXIED://127.0.0.1:4",
    ]


def test_the_proxied_listener_tells_clients_the_address_of_the_proxy() -> None:
    told = broker_settings(ClusterSpec(proxied=True), PROXIED, "1@x:1", {})["advertised.listeners"]
    assert told == "INTERNAL://127.0.0.1:1,CLIENT://127.0.0.1:3,PROXIED://127.0.0.1:5"


def test_security_covers_clients_and_the_proxy_can_still_read() -> None:
    spec = ClusterSpec(proxied=True, security=ClusterSecurity())
    protocols = broker_settings(spec, PROXIED, "1@x:1", {})["listener.security.protocol.map"].split(",")
    assert set(protocols) == {
        "INTERNAL:PLAINTEXT",
        "CONTROLLER:PLAINTEXT",
        "CLIENT:SASL_SSL",
        "PROXIED:SASL_PLAINTEXT",
    }


def test_properties_of_the_spec_win() -> None:
    spec = ClusterSpec(broker_properties={"min.insync.replicas": "1", "log.retention.ms": "5"})
    settings = broker_settings(spec, PLAIN, "1@x:1", {"min.insync.replicas": "9"})
    assert settings["min.insync.replicas"] == "1"
    assert settings["log.retention.ms"] == "5"


def test_properties_are_written_sorted_and_escaped() -> None:
    assert as_properties({"b": "back\\slash", "a": "two\nlines"}) == "a=two\\nlines\nb=back\\\\slash\n"

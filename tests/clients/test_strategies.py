"""What a consumer may list, and what the plugs rely on in each library."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.group_coordinator import GroupCoordinator
from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator

from assignors.clients import aiokafka, kafka_python
from assignors.clients.strategy import BadStrategy
from assignors.clients.user_data import RackwiseUserData, read_user_data
from assignors.problem import TopicPartition
from tests.clients.client_classes import aiokafka_cluster, give, kafka_python_cluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PLACED = {"t": [(1, 2), (3, 9), (4,)], "u": [(2,)]}
RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "c", 4: None}

LETS_GO = [
    pytest.param(("range",), RebalanceProtocol.EAGER, id="range revokes everything"),
    pytest.param(("sticky",), RebalanceProtocol.EAGER, id="sticky revokes everything"),
    pytest.param(("cooperative-sticky",), RebalanceProtocol.COOPERATIVE, id="cooperative-sticky keeps what stays"),
    pytest.param(("optimal",), RebalanceProtocol.COOPERATIVE, id="optimal keeps what stays"),
    pytest.param(("optimal", "cooperative-sticky"), RebalanceProtocol.COOPERATIVE, id="both keep what stays"),
    pytest.param(("optimal", "range"), RebalanceProtocol.EAGER, id="optimal beside range revokes everything"),
    pytest.param(
        ("cooperative-sticky", "range"), RebalanceProtocol.EAGER, id="as for Java's first roll away from range"
    ),
]


@pytest.mark.parametrize(("protocols", "expected"), LETS_GO)
def test_kafka_python_takes_the_strategy_and_lets_go(protocols: tuple[str, ...], expected: RebalanceProtocol) -> None:
    strategy = kafka_python.Strategy(*protocols, client_rack="a")
    consumer = KafkaConsumer(
        bootstrap_servers="127.0.0.1:9",
        group_id="g",
        partition_assignment_strategy=strategy,
        bootstrap_timeout_ms=None,
        api_version=(2, 8),
    )
    try:
        coordinator: ConsumerCoordinator = consumer._coordinator
        assert coordinator._rebalance_protocol is expected
        assert tuple(coordinator._assignors.items()) == tuple((each.name, each) for each in strategy)
        strategy.follow(consumer)
        consumer.subscribe(["t"])
        assert [name for name, _ in coordinator.group_protocols()] == list(protocols)
    finally:
        consumer.close(autocommit=False)


def test_a_join_under_way_is_not_forgotten_when_a_poll_ends() -> None:
    """kafka-python waits for a join only as long as one is needed, and the leader's own assignment ends that need.

    That is so where it joins again because metadata came, which without `follow` is written down nowhere.
    """
    strategy = kafka_python.Strategy("range", client_rack="a")
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers="127.0.0.1:9",
        group_id="g",
        partition_assignment_strategy=strategy,
        bootstrap_timeout_ms=None,
        api_version=(2, 8),
    )
    try:
        coordinator: ConsumerCoordinator = consumer._coordinator
        coordinator.rejoin_needed = False
        coordinator.group_protocols()
        assert not coordinator.need_rejoin()
        strategy.follow(consumer)
        coordinator.group_protocols()
        assert coordinator.need_rejoin()
    finally:
        consumer.close(autocommit=False)
    assert "self.rejoin_needed = False" in inspect.getsource(ConsumerCoordinator.join_group_async)


RACK_CHANGED = {**RACKS, 1: "b", 2: "a"}


def test_neither_library_asks_for_a_rebalance_when_a_broker_changes_its_rack() -> None:
    """Java's leader does (KIP-881): racks are in its snapshot of the metadata. docs/clients.md says so."""
    before, after = kafka_python_cluster(RACKS, PLACED), kafka_python_cluster(RACK_CHANGED, PLACED)
    subscription = type("Subscribed", (), {"group_subscription": lambda _: {"t"}})()
    snapshot = ConsumerCoordinator._build_metadata_snapshot
    assert snapshot(None, subscription, before) == snapshot(None, subscription, after)
    assert "replicas" not in inspect.getsource(GroupCoordinator._get_metadata_snapshot)


BAD = [
    pytest.param((), {}, "no protocol is listed", id="no name"),
    pytest.param(("rnage",), {}, "'rnage' is not offered", id="a name misspelt"),
    pytest.param(("range", "range"), {}, "listed twice", id="a name twice"),
    pytest.param(("range",), {"client_rack": 7}, "client_rack is 7", id="a rack that is no text"),
    pytest.param(("range",), {"client_rack": "x" * 40_000}, "give the name", id="a rack that no field holds"),
]


@pytest.mark.parametrize("client", [kafka_python, aiokafka], ids=["kafka-python", "aiokafka"])
@pytest.mark.parametrize(("protocols", "settings", "sentence"), BAD)
def test_bad_strategy(client: Any, protocols: tuple[str, ...], settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadStrategy, match=sentence):
        client.Strategy(*protocols, **{"client_rack": "a", **settings})


def test_aiokafka_has_no_cooperative_sticky() -> None:
    with pytest.raises(BadStrategy, match="optimal, range, sticky"):
        aiokafka.Strategy("cooperative-sticky", client_rack="a")


def test_an_empty_rack_is_none() -> None:
    assert kafka_python.Strategy("range", client_rack="")[0].metadata({"t"}).rack_id is None


def test_a_lost_membership_is_noticed_by_those_who_follow_their_consumer() -> None:
    """Without `follow` it claims to hold what others read by now: kafka-python tells assignors nothing of the loss."""

    class Lost:
        def assignment(self) -> set[TopicPartition]:
            return set()

    strategy = kafka_python.Strategy("cooperative-sticky", client_rack="a")
    give(strategy[0], (T0, T1), generation=3)
    assert strategy[0].metadata({"t"}).owned_partitions
    strategy.follow(Lost())
    assert strategy[0].metadata({"t"}).owned_partitions == []


def test_the_assignors_of_a_strategy_know_what_the_others_were_given() -> None:
    """The broker may switch between the names that a consumer lists; only the one in use hears of the assignment."""
    for client in (kafka_python, aiokafka):
        first, second = client.Strategy("optimal", "sticky", client_rack="a")
        give(second, (T0, T1), generation=3)
        sent = first.metadata({"t"})
        data = sent[2 + 4 + 3 + 4 :] if isinstance(sent, bytes) else sent.user_data
        assert read_user_data("optimal", data).owned == (T0, T1)


def test_two_consumers_in_one_process_are_two() -> None:
    mine, other = (aiokafka.Strategy("sticky", client_rack="a")[0] for _ in range(2))
    give(mine, (T0,), generation=1)
    sent = {each: each.metadata({"t"})[13:] for each in (mine, other)}
    assert read_user_data("sticky", sent[mine]) == RackwiseUserData(rack="a", owned=(T0,))
    assert read_user_data("sticky", sent[other]) == RackwiseUserData(rack="a")


def test_what_a_topic_no_longer_wanted_had_is_not_claimed() -> None:
    strategy = kafka_python.Strategy("cooperative-sticky", client_rack="a")
    give(strategy[0], (T0, TopicPartition("u", 0)), generation=3)
    assert [(each.topic, each.partitions) for each in strategy[0].metadata({"t"}).owned_partitions] == [("t", [0])]


@pytest.mark.parametrize(
    ("client", "metadata"),
    [
        pytest.param(kafka_python, kafka_python_cluster(RACKS, PLACED), id="kafka-python"),
        pytest.param(aiokafka, aiokafka_cluster(RACKS, PLACED), id="aiokafka"),
    ],
)
def test_racks_come_from_the_librarys_own_metadata(client: Any, metadata: Any) -> None:
    assert client._racks(metadata, ["t", "u", "unknown"]) == {
        "t": (frozenset("ab"), frozenset("c"), frozenset()),
        "u": (frozenset("b"),),
    }


def test_an_aiokafka_that_keeps_replicas_elsewhere_balances_without_racks(caplog: pytest.LogCaptureFixture) -> None:
    class Elsewhere:
        def brokers(self) -> set[Any]:
            return aiokafka_cluster(RACKS, PLACED).brokers()

        def partitions_for_topic(self, topic: str) -> set[int]:
            return {0, 1}

    assert aiokafka._racks(Elsewhere(), ["t"]) == {"t": (frozenset(), frozenset())}
    assert "partitions are assigned without racks" in caplog.text


def test_aiokafka_still_works_as_the_plug_takes_it_to() -> None:
    """Facts of aiokafka 0.14 that docs/clients.md states; when one of these fails the plug may be able to do more."""
    leader = inspect.getsource(GroupCoordinator._perform_assignment)
    assert "ConsumerProtocol.METADATA.decode" in leader  # topics and user data alone
    assert "_group_instance_id" in leader  # read, and not handed on
    assert "on_generation_assignment" not in inspect.getsource(GroupCoordinator)
    assert "client_rack" in inspect.signature(AIOKafkaConsumer).parameters


@pytest.mark.parametrize("module", ["assignors", "assignors.clients", "assignors.clients.leader"])
def test_no_client_is_imported_unasked(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'kafka', 'aiokafka', 'confluent_kafka'}} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("module", "client", "other"),
    [("kafka_python", "kafka", "aiokafka"), ("aiokafka", "aiokafka", "kafka")],
)
def test_a_plug_imports_its_own_client_alone(module: str, client: str, other: str) -> None:
    code = f"import sys, assignors.clients.{module}; print({client!r} in sys.modules, {other!r} in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
        == "True False\n"
    )

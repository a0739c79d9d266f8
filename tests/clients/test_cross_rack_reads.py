"""How many partitions of the demo's topics are read across racks, for every order of the members' names.

Assignors that know no racks go by names, so their figure is chance: the mean over all orders is what to expect. The
libraries' own code is run on the libraries' own metadata. docs/clients.md has the table.
"""

from __future__ import annotations

import re
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignors import ConsumerMember, ConsumerProblem, optimal_consumer
from testbed.demo.workload import demo_plan
from testbed.demo.workload.facts import ClusterFacts
from tests.clients.client_classes import aiokafka_cluster, kafka_python_cluster
from tests.clients.live import BUILT_IN, DROP_IN
from tests.clients.simulated import Consumer, Group, InJoin, make

CLUSTERS: dict[str, dict[int, str | None]] = {
    "three brokers": {1: "a", 2: "b", 3: "c"},
    "the demo's four": {1: "a", 2: "b", 3: "c", 4: "a"},
}
STEPS = ((1, 1, 1), (1, 2), (2, 1), (3,))
"""How many members join before each rebalance."""
FIGURES = [
    pytest.param("three brokers", "own range", (0, 6, 4.0), id="three brokers, the libraries' range"),
    pytest.param("three brokers", "own roundrobin", (0, 12, 4.0), id="three brokers, the libraries' roundrobin"),
    pytest.param("three brokers", "own sticky", (0, 12, 4.0), id="three brokers, the libraries' sticky"),
    pytest.param("three brokers", "range", (0, 2, 1.0), id="three brokers, drop-in range"),
    pytest.param("three brokers", "sticky", (0, 0, 0.0), id="three brokers, drop-in sticky"),
    pytest.param("three brokers", "cooperative-sticky", (0, 0, 0.0), id="three brokers, drop-in cooperative-sticky"),
    pytest.param("three brokers", "optimal", (0, 0, 0.0), id="three brokers, drop-in optimal"),
    pytest.param("the demo's four", "own range", (4, 7, 6.0), id="four brokers, the libraries' range"),
    pytest.param("the demo's four", "own roundrobin", (4, 10, 6.0), id="four brokers, the libraries' roundrobin"),
    pytest.param("the demo's four", "own sticky", (4, 10, 6.0), id="four brokers, the libraries' sticky"),
    pytest.param("the demo's four", "range", (4, 6, 5.0), id="four brokers, drop-in range"),
    pytest.param("the demo's four", "sticky", (0, 0, 0.0), id="four brokers, drop-in sticky"),
    pytest.param("the demo's four", "cooperative-sticky", (0, 0, 0.0), id="four brokers, drop-in cooperative-sticky"),
    pytest.param("the demo's four", "optimal", (0, 0, 0.0), id="four brokers, drop-in optimal"),
]


def placed_on(racks: dict[int, str | None]) -> dict[str, tuple[tuple[int, ...], ...]]:
    facts = ClusterFacts(cluster_id="", racks=racks, features={}, client_version="")
    return {plan.name: plan.replicas for plan in demo_plan(facts).topics}


def crossing(client: str, strategy: str, racks: dict[int, str | None], order: tuple[str, ...]) -> int:
    """What one member per rack, named in that order, reads across racks in its group's first generation."""
    placed = placed_on(racks)
    if strategy.startswith("own "):
        own = {each.name: each for each in BUILT_IN[client]}[strategy.removeprefix("own ")]
        members = {f"m{number}": own() for number in range(len(order))}
    else:
        members = {f"m{number}": make(client, [strategy], rack)[0] for number, rack in enumerate(order)}
    sent = {name: each.metadata(set(placed)) for name, each in members.items()}
    joined = {name: data if isinstance(data, bytes) else data.encode() for name, data in sent.items()}
    given: dict[str, Any]
    if client == "kafka-python":
        decoded = [InJoin(name, None, ConsumerProtocolSubscription.decode(data)) for name, data in joined.items()]
        given = members["m0"].assign(kafka_python_cluster(racks, placed), decoded)
    else:
        told = {name: ConsumerProtocol.METADATA.decode(data) for name, data in joined.items()}
        given = members["m0"].assign(aiokafka_cluster(racks, placed), told)
    return sum(
        rack not in {racks[node] for node in placed[topic][number]}
        for name, rack in zip(members, order, strict=True)
        for topic, number in given[name].partitions()
    )


@pytest.mark.parametrize(("brokers", "strategy", "figures"), FIGURES)
def test_least_most_and_mean_over_all_orders(brokers: str, strategy: str, figures: tuple[int, int, float]) -> None:
    for client in BUILT_IN:
        offered = DROP_IN[client] + [f"own {each.name}" for each in BUILT_IN[client]]
        if strategy not in offered:
            assert (client, strategy) == ("aiokafka", "cooperative-sticky")
            continue
        costs = [crossing(client, strategy, CLUSTERS[brokers], order) for order in permutations("abc")]
        print(brokers, client, strategy, costs)
        assert (min(costs), max(costs), sum(costs) / len(costs)) == figures


JOINED = [
    pytest.param("three brokers", "range", {0, 2}, id="three brokers, range"),
    pytest.param("three brokers", "sticky", {0, 1, 2}, id="three brokers, sticky"),
    pytest.param("three brokers", "cooperative-sticky", {0, 1, 2}, id="three brokers, cooperative-sticky"),
    pytest.param("three brokers", "optimal", {0}, id="three brokers, optimal"),
    pytest.param("the demo's four", "range", {4, 6}, id="four brokers, range"),
    pytest.param("the demo's four", "sticky", {0, 2, 3, 4, 5}, id="four brokers, sticky"),
    pytest.param("the demo's four", "cooperative-sticky", {0, 2, 3, 4, 5}, id="four brokers, cooperative-sticky"),
    pytest.param("the demo's four", "optimal", {0}, id="four brokers, optimal"),
]


@pytest.mark.parametrize(("brokers", "strategy", "figures"), JOINED)
def test_whatever_the_order_in_which_members_joined(brokers: str, strategy: str, figures: set[int]) -> None:
    """Kafka's sticky assignors look for local readers only for partitions that no member keeps, so the past decides."""
    racks = CLUSTERS[brokers]
    placed = placed_on(racks)
    clusters = (kafka_python_cluster(racks, placed), aiokafka_cluster(racks, placed))
    found = set()
    for order, names, steps in product(permutations("abc"), permutations(("m0", "m1", "m2")), STEPS):
        group = Group(clusters)
        waiting = list(zip(names, order, strict=True))
        for joining in steps:
            for name, rack in [waiting.pop(0) for _ in range(joining)]:
                group.members[name] = Consumer(name, make("kafka-python", [strategy], rack), rack, tuple(placed))
            group.rebalance(names[0])
        found.add(
            sum(
                member.rack not in {racks[node] for node in placed[each.topic][each.partition]}
                for member in group.members.values()
                for each in member.reads
            )
        )
    assert found == figures


def test_the_document_has_these_figures() -> None:
    document = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
    (table,) = re.findall(r"\| depends on \|\n(.*?)\n\n", document, re.DOTALL)
    told = {
        (case.values[0], case.values[1]): f"{least} to {most}, mean {mean:.0f}"
        for case in FIGURES
        for least, most, mean in [case.values[2]]
    }
    for strategy, row in (("own range", 1), ("own roundrobin", 2), ("own sticky", 2), ("range", 3)):
        cells = [cell.strip() for cell in table.splitlines()[row].split("|")]
        assert cells[2:4] == [told["three brokers", strategy], told["the demo's four", strategy]]
    joined = {(case.values[0], case.values[1]): case.values[2] for case in JOINED}
    for strategy, row in (("sticky", 4), ("cooperative-sticky", 4), ("optimal", 5)):
        cells = [cell.strip().partition(",")[0] for cell in table.splitlines()[row].split("|")]
        ends = [(min(found), max(found)) for found in (joined[cluster, strategy] for cluster in CLUSTERS)]
        assert cells[2:4] == [f"{low} to {high}" if high else "0" for low, high in ends]


@pytest.mark.parametrize("brokers", ["three brokers", "the demo's four"])
def test_the_optimum_reads_nothing_across_racks(brokers: str) -> None:
    racks = CLUSTERS[brokers]
    placed = placed_on(racks)
    problem = ConsumerProblem(
        members=tuple(ConsumerMember(id=rack, rack=rack, topics=tuple(placed)) for rack in "abc"),
        racks={
            topic: tuple(frozenset(rack for node in its if (rack := racks[node])) for its in replicas)
            for topic, replicas in placed.items()
        },
    )
    assert optimal_consumer(problem).crossing == 0

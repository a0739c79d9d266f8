"""Random histories of groups whose members are of both clients: valid, balanced, settled, and never two on one part."""

from __future__ import annotations

import os
from random import Random

import pytest

from assignors import ConsumerMember, ConsumerProblem, optimal_consumer
from assignors.measure import measure_consumer
from assignors.problem import TopicPartition
from tests.clients.client_classes import aiokafka_cluster, kafka_python_cluster
from tests.clients.simulated import Consumer, Group, make

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
TOPICS = {
    "t": [(number % 3 + 1, (number + 1) % 3 + 1) for number in range(9)],
    "u": [(number % 2 + 3, number % 2 + 1) for number in range(5)],
}
SETS = {topic: tuple(frozenset(RACKS[node] for node in placed) for placed in its) for topic, its in TOPICS.items()}
CLUSTERS = (kafka_python_cluster(RACKS, TOPICS), aiokafka_cluster(RACKS, TOPICS))
HISTORIES = 1_000 if os.environ.get("RACKWISE_TEST_HYPOTHESIS") == "night" else 25

# What members of a group list, by client.
MIXES = [
    pytest.param({"kafka-python": [("range",)], "aiokafka": [("range",)]}, id="range, both clients"),
    pytest.param({"kafka-python": [("sticky",)], "aiokafka": [("sticky",)]}, id="sticky, both clients"),
    pytest.param({"kafka-python": [("cooperative-sticky",)]}, id="cooperative-sticky"),
    pytest.param({"kafka-python": [("optimal",)]}, id="optimal, cooperative"),
    pytest.param(
        {"kafka-python": [("optimal",), ("optimal", "range")], "aiokafka": [("optimal",)]}, id="optimal, mixed"
    ),
    pytest.param(
        {"kafka-python": [("optimal", "cooperative-sticky"), ("cooperative-sticky",)]},
        id="optimal agrees on cooperative-sticky while a member knows no other",
    ),
    pytest.param(
        {"kafka-python": [("optimal", "range"), ("range",)], "aiokafka": [("optimal", "range"), ("range",)]},
        id="optimal agrees on range while a member knows no other",
    ),
    pytest.param(
        {"kafka-python": [("cooperative-sticky", "range"), ("cooperative-sticky",)]},
        id="cooperative-sticky beside members that revoke everything",
    ),
]


@pytest.mark.parametrize("alike", [True, False], ids=["same topics", "different topics"])
@pytest.mark.parametrize("mix", MIXES)
def test_history(mix: dict[str, list[tuple[str, ...]]], alike: bool) -> None:
    for seed in range(HISTORIES):
        history: list[str] = []
        try:
            live(Random(f"{mix}{alike}{seed}"), mix, alike, history)
        except AssertionError as failed:
            raise AssertionError(f"seed {seed}, {failed}\n" + "\n".join(history)) from failed


def live(r: Random, mix: dict[str, list[tuple[str, ...]]], alike: bool, history: list[str]) -> None:
    group = Group(CLUSTERS)
    for number in range(12):
        event = r.choice(("join", "join", "leave", "lose", "again"))
        if event == "join" or not group.members:
            client = r.choice(sorted(mix))
            protocols, rack = r.choice(mix[client]), r.choice(("a", "b", "c", None))
            topics = ("t", "u") if alike else r.choice((("t", "u"), ("t",), ("u",)))
            name = f"{r.choice('xyz')}{number}"
            group.members[name] = Consumer(name, make(client, protocols, rack), rack, topics)
            history.append(f"{name} joins: {client}, {protocols}, rack {rack}, topics {topics}")
        elif event in ("leave", "lose"):
            name = r.choice(sorted(group.members))
            if event == "leave":
                del group.members[name]
            else:
                group.members[name].reads = frozenset()
            history.append(f"{name} {event}s")
        if group.members:
            leader = r.choice(sorted(group.members))
            if event == "lose" and len(group.members) > 1:
                away = {name: group.members.pop(name)}
                leader = r.choice(sorted(group.members))
                group.rebalance(leader)
                group.members |= away
            history.append(f"{leader} leads")
            rounds = group.rebalance(leader)
            judge(group)
            assert rounds <= (2 if group.protocol == "optimal" or settles_at_once(group) else 5), f"{rounds} rebalances"


def settles_at_once(group: Group) -> bool:
    """Whether Kafka's cooperative-sticky keeps to its plan in the rebalance that follows.

    It may not when members want different topics, or when an eager one among them forgets what it had.
    """
    members = group.members.values()
    return len({member.topics for member in members}) == 1 and len({member.cooperative for member in members}) == 1


def judge(group: Group) -> None:
    members = list(group.members.values())
    wanted = {TopicPartition(t, n) for member in members for t in member.topics for n in range(len(TOPICS[t]))}
    read = [each for member in members for each in member.reads]
    assert len(read) == len(set(read)), "a partition has two readers"
    assert set(read) == wanted, f"no member reads {sorted(wanted - set(read))}"
    assert all(each.topic in member.topics for member in members for each in member.reads), "foreign topics"
    # Range balances each topic by itself, the others the whole.
    per = [[len(m.reads) for m in members]] if len({m.topics for m in members}) == 1 else []
    if group.protocol == "range":
        per = [[sum(each.topic == topic for each in m.reads) for m in members if topic in m.topics] for topic in TOPICS]
    assert all(max(loads) - min(loads) <= 1 for loads in per if loads), f"loads {per}"
    if group.protocol == "optimal":
        problem = ConsumerProblem(
            members=tuple(ConsumerMember(id=m.name, rack=m.rack, topics=tuple(sorted(m.topics))) for m in members),
            racks=SETS,
        )
        now = measure_consumer(problem, {m.name: tuple(sorted(m.reads)) for m in members})
        assert now.crossing == optimal_consumer(problem).crossing

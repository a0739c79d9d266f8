"""The documented rights of an executor suffice, and each that is missing is a reported loss."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.act.rights import ASKED, GROUP, TOPIC, Grants, Right, abilities, config_of, documented
from tests.observe.live import wait_for

pytestmark = pytest.mark.integration

USER = "rackwise-executor"
NAMED = tuple(
    right._replace(name=GROUP) if right[:2] == ("--group", "*") else right for right in documented("executor")
)
"""With the one group by name instead of all, so that each right stands for itself."""
ALTER = Right("--cluster", "kafka-cluster", prefixed=False, operation="Alter")
LOST = {
    "cluster kafka-cluster: Alter": {"see moves", "see sizes", "reassign", "elect"},
    "cluster kafka-cluster: AlterConfigs": {"read throttles", "throttle a broker"},
    "topic *: Describe": {"see topics"},
    "topic *: AlterConfigs": {"read throttles", "throttle a topic"},
    f"group {GROUP}: Read": {"see the group", "ask the group"},
    "transactional-id *: Describe": {"see transactions"},
    "topic rackwise.journal: Create": {"lead", "obey", "remember"},
    "topic rackwise.journal: Read": {"lead", "obey", "remember"},
    "topic rackwise.journal: Write": {"lead", "obey", "remember"},
    "topic rackwise.leader: Create": {"lead", "obey", "remember"},
    "topic rackwise.leader: Read": {"remember"},
    "topic rackwise.commands: Create": {"lead", "obey", "remember"},
    "topic rackwise.commands: Read": {"obey"},
    "group rackwise-leader: Read": {"lead", "obey", "remember"},
    "group rackwise-reader: Describe": {"lead", "obey", "remember"},
    "transactional-id rackwise-exec- (prefixed): Write": {"lead", "obey", "remember"},
}
SILENT = {"see transactions"}
"""What brokers hide without a word; nothing seen is never taken for none."""


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    """One broker with TLS, SCRAM and ACLs, a topic, and a transactional id of another principal."""
    users = {"admin": "admin-secret", USER: "executor-secret"}
    with EmbeddedCluster.start(
        ClusterSpec(racks=("a",), security=ClusterSecurity(users=users)), on_progress=print
    ) as started:
        config = config_of(started, "admin").confluent()
        admin = AdminClient(config)
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        producer = Producer({**config, "transactional.id": "their-app-1"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(TOPIC, b"one")
        producer.commit_transaction(30)
        # The first group makes the brokers' own topic of groups, which takes a while.
        member = Consumer({**config, "group.id": "first"})
        wait_for(lambda: has_coordinator(member), "groups have a coordinator", 60)
        member.close()
        del producer
        yield started


def has_coordinator(member: Consumer) -> bool:
    try:
        return bool(member.committed([TopicPartition(TOPIC, 0)], timeout=5))
    except KafkaException:
        return False


@pytest.fixture
def prefix() -> str:
    """Of the names of rackwise's own topics and groups: each test makes its own."""
    return f"rackwise-{uuid4().hex[:8]}"


@pytest.fixture
def grants(secured: EmbeddedCluster, prefix: str) -> Iterator[Grants]:
    """All documented rights; whatever is left of them is taken away afterwards."""
    given = Grants(secured, USER)
    every = [right.under(prefix) for right in NAMED]
    given.give(*every)
    yield given
    for right in every:
        given.give(right)
        given.take(right)


def eventually(
    secured: EmbeddedCluster, prefix: str, wanted: set[str], *, lead_within_s: float
) -> dict[str, str | None]:
    """Abilities once what is lost is as wanted, or as they stay: a right reaches brokers a moment after it is given."""
    until = time.monotonic() + 20
    while True:
        eyes = config_of(secured, "admin")
        found = abilities(config_of(secured, USER), eyes, prefix=prefix, lead_within_s=lead_within_s)
        if lost(found) == wanted or time.monotonic() > until:
            return found


def lost(found: dict[str, str | None]) -> set[str]:
    return {name for name, told in found.items() if told is not None}


@pytest.mark.drill
def test_the_documented_rights_suffice(secured: EmbeddedCluster, grants: Grants, prefix: str) -> None:
    found = eventually(secured, prefix, set(), lead_within_s=30)
    assert found == dict.fromkeys((*ASKED, "lead", "obey", "remember"))


def test_every_documented_right_is_in_the_matrix() -> None:
    assert {str(right) for right in NAMED} == set(LOST)


@pytest.mark.drill
@pytest.mark.parametrize("right", NAMED, ids=str)
def test_a_right_that_is_missing_is_a_loss_that_is_told(
    secured: EmbeddedCluster, grants: Grants, prefix: str, right: Right
) -> None:
    grants.take(right.under(prefix))
    found = eventually(secured, prefix, LOST[str(right)], lead_within_s=12 if "lead" in LOST[str(right)] else 30)
    assert lost(found) == LOST[str(right)], found
    for name in lost(found) - SILENT:
        told = (found[name] or "").lower()
        assert "authoriz" in told or "not allowed" in told or "unknown_topic" in told, f"{name}: {found[name]}"

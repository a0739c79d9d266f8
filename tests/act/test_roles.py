"""Who may command: with the documented rights, each role does its part, and is refused each thing that is not its own.

On a broker with KRaft's StandardAuthorizer, where an agent with the executor's rights leads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from agent.act.commands_topic import send_command
from agent.act.journal.journal import SharedTopics, writable
from agent.act.journal.journal_topic import read_journal_topic
from agent.act.leadership import JournalLeadership
from agent.act.lease import LeadershipPlan, LeasePlan, committed_watermark
from agent.daemon.start import agent_of
from agent.errors import NotAllowed
from agent.journal.entries import JournalKey
from agent.journal.record_trust import leader_in
from agent.observe.context import ObserverClients, ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.record.reader import open_reader
from agent.values.clock import system_clock
from agent.wire.admin_client import WireAdminClient
from assignors.problem import TopicPartition as Partition
from config.kafka_client import KafkaClientConfig
from config.load import load_settings
from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.act.rights import Grants, Right, config_of, documented
from tests.observe.live import wait_for

pytestmark = pytest.mark.integration

ROLES = {"reader": "reader", "observer": "rackwise", "operator": "operator", "executor": "rackwise-executor"}
"""Role -> its user in the documented commands."""
JOURNAL, LEADER, COMMANDS = "rackwise.journal", "rackwise.leader", "rackwise.commands"
TELEMETRY, PROPOSALS, WEIGHTS = "rackwise.telemetry", "rackwise.proposals", "rackwise.weights"
GROUP = "rackwise-leader"
KEY = JournalKey(b"only the executors have it")
CALL_S = 20.0


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    users = {"admin": "admin-secret"} | {user: f"{user}-secret" for user in ROLES.values()}
    with EmbeddedCluster.start(
        ClusterSpec(racks=("a",), security=ClusterSecurity(users=users)), on_progress=print
    ) as started:
        admin = AdminClient(config_of(started, "admin").confluent())
        admin.create_topics([NewTopic(WEIGHTS, 1, 1)])[WEIGHTS].result(30)
        for role, user in ROLES.items():
            Grants(started, user).give(*documented(role))
        yield started


@pytest.fixture(scope="module")
def leading(secured: EmbeddedCluster) -> Iterator[JournalLeadership]:
    """An agent with the executor's rights: it makes its topics, is chosen, and opens the journal."""
    config = config_of(secured, ROLES["executor"])
    leadership = JournalLeadership(LeadershipPlan(config=config.confluent(), agent="one", keys=(KEY,)))
    leadership.start()
    try:
        with ObserverClients.open(config) as clients:
            recall = ObserverState()

            def leads() -> bool:
                leadership.observed(observe(clients, system_clock, ObserveScope(), recall))
                return leadership.may_act()

            wait_for(leads, f"it leads; {leadership.problem()}", 90)
        yield leadership
    finally:
        leadership.close()


@pytest.fixture(scope="module")
def recorded(secured: EmbeddedCluster, leading: JournalLeadership) -> None:
    """An agent with the observer's rights has written what it saw."""
    given = {**secured.client_properties(ROLES["observer"]), "bootstrap.servers": secured.bootstrap_servers}
    flags = {f"kafka.{name}": value for name, value in given.items()}

    def whole() -> bool:
        with agent_of(load_settings(flags=flags, environ={}).settings) as agent:
            agent.once()
            agent.once()
            agent.close()
            recording = agent.watch.state.recording
            return recording is not None and recording.problems == () and recording.counts.failed == 0

    wait_for(whole, "what it saw is recorded", 60)


# --- what each may --------------------------------------------------------------------------------------------------


def test_the_executors_rights_are_enough_to_lead(leading: JournalLeadership) -> None:
    assert (leading.may_act(), leading.problem(), leading.ignored()) == (True, None, 0)
    assert not [one for one in leading.notices() if "signed" in one]


@pytest.mark.parametrize("role", ["reader", "operator"])
def test_journal_and_proposals_are_read_with_the_rights_of(secured: EmbeddedCluster, recorded: None, role: str) -> None:
    config = config_of(secured, ROLES[role]).confluent()
    view = read_journal_topic(config, JOURNAL, prefix="rackwise", timeout_ms=20_000)
    leader = leader_in(view)
    assert leader is not None
    assert leader.agent == "one"
    with open_reader(config, PROPOSALS, prefix="rackwise", timeout_ms=20_000) as reader:
        list(reader.read(reader.spans()))
        assert reader.in_time


@pytest.mark.parametrize("role", ["reader", "observer"])
def test_telemetry_is_read_with_the_rights_of(secured: EmbeddedCluster, recorded: None, role: str) -> None:
    config = config_of(secured, ROLES[role]).confluent()
    with open_reader(config, TELEMETRY, prefix="rackwise", timeout_ms=20_000) as reader:
        assert list(reader.read(reader.spans()))


def test_an_operators_command_reaches_the_agent_that_leads(
    secured: EmbeddedCluster, leading: JournalLeadership
) -> None:
    config = config_of(secured, ROLES["operator"]).confluent()
    journal, inbox = leading.journal(), leading.inbox()
    assert journal is not None
    assert inbox is not None
    command = {"id": "pause-1", "verb": "PAUSE", "who": "ann@desk", "at_ms": 1}
    inbox.read(journal.view())
    send_command(config, COMMANDS, command, cluster="c", sender="ann@desk", at_ms=1, timeout_ms=20_000)
    (one,) = wait_for(lambda: inbox.read(journal.view()), f"it arrives; {inbox.problem()}", 30)
    assert (one.id, one.came.live, one.came.owner) == ("pause-1", True, None)
    assert one.came.at_ms is not None, "the topic that the agent made has the broker's time"
    journal.append(one.after)


# --- what each may not ------------------------------------------------------------------------------------------------

Try = Callable[[KafkaClientConfig], None]


def refused(code: int | None, wanted: int, what: str) -> None:
    assert code == wanted, f"{what}: {code}"


def writes(topic: str) -> Try:
    """A plain record of a made-up plan, as any producer writes it."""

    def attempt(config: KafkaClientConfig) -> None:
        found: list[KafkaError | None] = []
        producer = Producer({**config.confluent(), "message.timeout.ms": 15_000, "enable.idempotence": False})
        producer.produce(topic, key=b"plan/p-evil", value=b"{}", partition=0, on_delivery=lambda e, _: found.append(e))
        producer.flush(CALL_S)
        (error,) = found
        refused(None if error is None else error.code(), KafkaError.TOPIC_AUTHORIZATION_FAILED, f"a write to {topic}")

    return attempt


def joins_the_election(config: KafkaClientConfig) -> None:
    found: list[KafkaError] = []
    consumer = Consumer({**config.confluent(), "group.id": GROUP, "error_cb": found.append})
    given: list[TopicPartition] = []
    consumer.subscribe([LEADER], on_assign=lambda _, partitions: given.extend(partitions))
    until = time.monotonic() + CALL_S
    try:
        while not found and not given and time.monotonic() < until:
            message = consumer.poll(0.2)
            if message is not None and (error := message.error()) is not None:
                found.append(error)
    finally:
        consumer.close()
    assert not given, "it was chosen"
    codes = {error.code() for error in found}
    assert codes & {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}, found


def _commit(admin: AdminClient) -> Mapping[Any, Any]:
    told = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(LEADER, 0, 0, "999 999")])
    return admin.alter_consumer_group_offsets([told])


def opens_the_writers_transaction(config: KafkaClientConfig) -> None:
    transactional = f"rackwise-exec-{AdminClient(config.confluent()).list_topics(timeout=10).cluster_id}"
    producer = Producer({**config.confluent(), "transactional.id": transactional})
    with pytest.raises(KafkaException) as failed:
        producer.init_transactions(CALL_S)
    refused(
        failed.value.args[0].code(), KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "fencing the agent that leads"
    )


def administers(what: str, call: Callable[[AdminClient], Mapping[Any, Any]]) -> Try:
    def attempt(config: KafkaClientConfig) -> None:
        admin = AdminClient(config.confluent())
        (future,) = call(admin).values()
        try:
            answer = future.result(CALL_S)
            errors = [one.error for one in getattr(answer, "topic_partitions", ())]
        except KafkaException as failed:
            errors = [failed.args[0]]
        assert errors, f"{what} was done"
        for error in errors:
            assert error is not None, f"{what} was done"
            assert error.code() in _DENIED, f"{what}: {error}"

    return attempt


_DENIED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)


def reassigns(config: KafkaClientConfig) -> None:
    with WireAdminClient(config.kafka_python()) as hand:
        hand.describe_brokers(10_000)
        answer = hand.alter_placements({Partition(TELEMETRY, 0): (1,)}, 10_000)[Partition(TELEMETRY, 0)]
    assert not answer.done
    assert "AUTHORIZATION_FAILED" in str(answer.error).upper()


def _alter_journal(admin: AdminClient) -> Mapping[Any, Any]:
    change = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    return admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, JOURNAL, incremental_configs=[change])])


FORBIDDEN: Mapping[str, Try] = {
    "write the journal": writes(JOURNAL),
    "write the lock topic": writes(LEADER),
    "write commands": writes(COMMANDS),
    "write telemetry": writes(TELEMETRY),
    "write proposals": writes(PROPOSALS),
    "write weights": writes(WEIGHTS),
    "join the election": joins_the_election,
    "commit in the election's group": administers("a commit there", _commit),
    "delete the election's group": administers("deleting it", lambda admin: admin.delete_consumer_groups([GROUP])),
    "open the writer's transaction": opens_the_writers_transaction,
    "delete the journal": administers("deleting it", lambda admin: admin.delete_topics([JOURNAL])),
    "cut the journal": administers("cutting it", lambda admin: admin.delete_records([TopicPartition(JOURNAL, 0, 1)])),
    "delete commands": administers("deleting it", lambda admin: admin.delete_topics([COMMANDS])),
    "change the journal's settings": administers("altering it", _alter_journal),
    "move replicas": reassigns,
}
OWN = {
    "reader": set[str](),
    "observer": {"write telemetry", "write proposals"},
    "operator": {"write commands"},
    "executor": {
        "write the journal", "join the election", "commit in the election's group", "open the writer's transaction",
        "change the journal's settings", "move replicas",
    },
}  # fmt: skip
"""What is not forbidden to a role."""


@pytest.mark.parametrize(
    ("role", "what"), [(role, what) for role, own in OWN.items() for what in FORBIDDEN if what not in own]
)
def test_a_role_is_refused_what_is_not_its_own(
    secured: EmbeddedCluster, recorded: None, leading: JournalLeadership, role: str, what: str
) -> None:
    FORBIDDEN[what](config_of(secured, ROLES[role]))
    assert leading.may_act(), "and the agent leads on"


def test_an_observer_with_the_prefixed_rights_of_former_versions_is_named(
    secured: EmbeddedCluster, recorded: None
) -> None:
    grants, names = Grants(secured, ROLES["observer"]), SharedTopics(JOURNAL, LEADER, COMMANDS)
    former = Right("--topic", "rackwise", prefixed=True, operation="Write")
    config = config_of(secured, ROLES["observer"]).confluent()
    assert writable(config, names, CALL_S) == ()
    grants.give(former)
    try:
        (sentence,) = wait_for(lambda: writable(config, names, CALL_S), "it is named", 30)
    finally:
        grants.take(former)
    assert "the observer's user may write rackwise.commands and rackwise.journal" in sentence
    wait_for(lambda: writable(config, names, CALL_S) == (), "the right is gone", 30)


def test_an_observer_sees_nothing_of_the_journal(secured: EmbeddedCluster, leading: JournalLeadership) -> None:
    with pytest.raises(NotAllowed):
        read_journal_topic(config_of(secured, "rackwise").confluent(), JOURNAL, prefix="rackwise", timeout_ms=10_000)


def test_the_group_remembers_how_far_the_journal_has_come(secured: EmbeddedCluster, leading: JournalLeadership) -> None:
    journal = leading.journal()
    assert journal is not None
    plan = LeasePlan(config=config_of(secured, ROLES["executor"]).confluent(), trust=leading._journal_plan().trust)
    reached = journal.reached  # type: ignore[attr-defined] # of the journal in Kafka
    wait_for(lambda: committed_watermark(plan, 10_000) == reached, f"{reached} is remembered", 30)

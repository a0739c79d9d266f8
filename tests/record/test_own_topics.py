"""What the agent says at its start of the topics that it creates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.record.own_topics import OwnTopic, OwnTopics, announce
from agent.values.observation import ObservationPart
from tests.builders import Answers, an_observation

TELEMETRY = OwnTopic(
    name="rackwise.telemetry", partitions=6, replication_factor=3, min_insync_replicas=2, cleanup_policy="delete",
    retention_ms=7 * 86_400_000,
)  # fmt: skip
PROPOSALS = replace(
    TELEMETRY, name="rackwise.proposals", partitions=1, cleanup_policy="compact,delete", retention_ms=3_600_000
)
JOURNAL = replace(TELEMETRY, name="rackwise.journal", partitions=1, cleanup_policy="compact", retention_ms=-1)


def brokers(**racks: tuple[int, ...]) -> Answers:
    return an_observation(**racks)


def test_a_topic_that_is_missing_is_told_as_it_is_going_to_be() -> None:
    told = announce((TELEMETRY,), brokers(a=(1,), b=(2,), c=(3,)).at(), "propose")
    assert told.sentence == (
        "creates rackwise.telemetry (6 partitions, replication factor 3, min.insync.replicas 2, "
        "cleanup.policy delete, retention 7 days)"
    )
    assert (told.creates, told.exist) == (("rackwise.telemetry",), ())


def test_where_there_are_fewer_brokers_than_replicas_the_topic_is_told_with_what_it_gets() -> None:
    told = announce((PROPOSALS, JOURNAL), brokers(a=(1,), b=(2,)).broker(3, "c", fenced=True).at(), "execute")
    assert told.sentence == (
        "creates rackwise.proposals (1 partition, replication factor 2, min.insync.replicas 1, "
        "cleanup.policy compact,delete, retention 1 hour) and rackwise.journal (1 partition, replication factor 2, "
        "min.insync.replicas 1, cleanup.policy compact, retention unlimited); broker 3 is absent, so "
        "rackwise.proposals and rackwise.journal get fewer replicas than topics.replication_factor, and rackwise adds "
        "none later: reassign the partitions and raise min.insync.replicas after the outage"
    )


def test_a_broker_that_only_a_replica_list_names_is_absent_too() -> None:
    answers = brokers(a=(1,), b=(2,)).topic("orders", (1, 2, 3))
    assert "broker 3 is absent, so rackwise.proposals gets fewer replicas" in (
        announce((PROPOSALS,), answers.at(), "propose").sentence
    )


def test_a_small_cluster_and_an_outage_that_leaves_enough_brokers_are_no_matter() -> None:
    assert "absent" not in announce((PROPOSALS,), brokers(a=(1,), b=(2,)).at(), "propose").sentence
    four = brokers(a=(1,), b=(2,), c=(3,)).broker(4, "c", fenced=True)
    assert "absent" not in announce((PROPOSALS,), four.at(), "propose").sentence


def test_a_topic_that_exists_stays_as_it_is() -> None:
    answers = brokers(a=(1,)).topic("rackwise.proposals", (1,))
    told = announce((TELEMETRY, PROPOSALS), answers.at(), "propose")
    assert told.sentence.startswith("creates rackwise.telemetry (6 partitions, replication factor 1,")
    assert told.sentence.endswith("; rackwise.proposals exists and stays as it is")
    assert (told.creates, told.exist) == (("rackwise.telemetry",), ("rackwise.proposals",))
    both = announce((TELEMETRY, PROPOSALS), answers.topic("rackwise.telemetry", (1,)).at(), "propose")
    assert both.sentence == "rackwise.telemetry and rackwise.proposals exist and stay as they are"


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        pytest.param("observe", "creates no topic: mode is observe", id="observe"),
        pytest.param("propose", "creates no topic: the settings publish none", id="nothing is published"),
    ],
)
def test_an_agent_that_creates_nothing_says_so(mode: str, sentence: str) -> None:
    told = announce((), brokers(a=(1,)).at(), mode)
    assert (told.sentence, told.creates, told.exist) == (sentence, (), ())


def test_where_the_brokers_list_no_topics_nothing_is_said_to_exist_or_to_be_created() -> None:
    told = announce((TELEMETRY, PROPOSALS), brokers(a=(1,)).gap(ObservationPart.TOPICS).at(), "propose")
    assert told.sentence == (
        "creates no topic before the brokers list topics; needs rackwise.telemetry and rackwise.proposals"
    )
    assert (told.creates, told.exist, told.settled) == ((), (), False)


def test_where_no_broker_can_hold_a_topic_none_is_said_to_be_created() -> None:
    answers = Answers().broker(1, "a", fenced=True).topic("rackwise.telemetry", (1,))
    told = announce((TELEMETRY, PROPOSALS), answers.at(), "propose")
    assert told.sentence == "creates no topic before a broker can hold it; needs rackwise.proposals"
    assert (told.creates, told.exist, told.settled) == ((), ("rackwise.telemetry",), False)
    assert announce((TELEMETRY,), answers.at(), "propose").settled, "what exists needs no broker"


def test_where_every_broker_is_fenced_no_topic_is_asked_for_until_one_serves() -> None:
    answers = Answers().broker(1, "a", fenced=True)
    topics = OwnTopics({"bootstrap.servers": "127.0.0.1:1"}, (TELEMETRY,), 100)
    topics.ensure(answers.at())
    assert topics.problems() == ("rackwise.telemetry: it is not listed, and no broker that could hold it is known",)
    assert not topics.is_ready("rackwise.telemetry")


def test_a_topic_that_may_be_hidden_is_not_said_to_be_missing() -> None:
    topics = OwnTopics({"bootstrap.servers": "127.0.0.1:1"}, (TELEMETRY,), 100)
    topics.ensure(brokers(a=(1,)).gap(ObservationPart.TOPICS).at())
    (problem,) = topics.problems()
    assert problem.startswith("rackwise.telemetry: whether it exists is unknown, because topics could not be listed: ")

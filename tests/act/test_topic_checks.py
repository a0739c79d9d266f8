"""Topics that were made otherwise than they have to be: each fault is named, with the line that mends it."""

from __future__ import annotations

import pytest

from agent.act.journal.journal import ExistingTopic, SharedTopics, topic_faults, topic_problems
from agent.act.lease import LeadershipPlan

NAMES = SharedTopics("rw.journal", "rw.leader", "rw.commands")
GOOD = {
    "rw.journal": {
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "2",
        "max.message.bytes": "1048588",
    },
    "rw.leader": {},
    "rw.commands": {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete", "retention.ms": "86400000"},
}


def made(name: str, partitions: int = 1, replicas: int = 3, **configs: str) -> ExistingTopic:
    values = GOOD[name] | {key.replace("_", "."): value for key, value in configs.items()}
    return ExistingTopic(name, partitions, replicas, values)


@pytest.mark.parametrize(
    ("topic", "says"),
    [
        pytest.param(
            made("rw.leader", 3), "rw.leader has 3 partitions, and only partition 0 counts", id="three leaders"
        ),
        pytest.param(made("rw.commands", 2), "only partition 0 counts", id="commands that no agent reads"),
        pytest.param(
            made("rw.journal", unclean_leader_election_enable="true"),
            "kafka-configs --alter --topic rw.journal --add-config unclean.leader.election.enable=false",
            id="unclean elections",
        ),
        pytest.param(
            made("rw.journal", min_insync_replicas="1"), "--add-config min.insync.replicas=2", id="one replica"
        ),
        pytest.param(
            made("rw.journal", max_message_bytes="900000"), "large plans cannot be written", id="small records"
        ),
        pytest.param(
            made("rw.commands", message_timestamp_type="CreateTime"),
            "--add-config message.timestamp.type=LogAppendTime",
            id="clocks of senders",
        ),
        pytest.param(
            made("rw.commands", cleanup_policy="compact,delete"), "--add-config cleanup.policy=delete", id="kept"
        ),
        pytest.param(made("rw.commands", retention_ms="60000"), "commands are gone before", id="gone too soon"),
    ],
)
def test_what_is_wrong_is_named(topic: ExistingTopic, says: str) -> None:
    (sentence,) = topic_faults([topic], NAMES)
    assert says in sentence


def test_what_is_right_or_may_not_be_seen_is_not_named() -> None:
    assert topic_faults([made(name) for name in NAMES], NAMES) == ()
    assert topic_faults([ExistingTopic(name, 1, 3, {}) for name in NAMES], NAMES) == ()
    assert topic_faults([made("rw.journal", replicas=2, min_insync_replicas="1")], NAMES) == (), (
        "two replicas, of which one may fail"
    )
    assert topic_faults([made("rw.commands", retention_ms="-1")], NAMES) == ()


def test_topics_as_the_agent_makes_them_are_right() -> None:
    plan = LeadershipPlan(config={}, agent="one")
    names = SharedTopics(plan.journal_topic, plan.leader_topic, plan.commands_topic)
    as_made = [
        ExistingTopic(
            topic.name, topic.partitions, topic.replication_factor,
            {
                "min.insync.replicas": str(topic.min_insync_replicas),
                "cleanup.policy": topic.cleanup_policy,
                **dict(topic.configs),
            },
        )
        for topic in plan.topics()
    ]  # fmt: skip
    assert topic_faults(as_made, names) == ()
    configs = {topic.name: dict(topic.configs) for topic in plan.topics()}
    assert configs["rackwise.commands"]["message.timestamp.type"] == "LogAppendTime"


def test_a_journal_that_is_not_signed_is_named_also_where_no_broker_answers() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    (sentence,) = topic_problems(nowhere, NAMES, 0.2, signed=False)
    assert sentence == (
        "records of rw.journal are not signed, so every principal with Write on it can command the agent; "
        "execute.journal_key_file signs them"
    )
    assert topic_problems(nowhere, NAMES, 0.2, signed=True) == ()

"""Journals on a real cluster, each under a prefix of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from agent.act.journal.journal import TopicRead
from agent.act.journal.journal_topic import JournalTopic, KafkaJournalPlan
from agent.act.journal.kafka_journal import KafkaJournal
from agent.act.lease import LeadershipPlan
from agent.journal.entries import JournalWrite
from agent.journal.record_trust import LeaderEntry
from agent.record.reader import ConsumerRecord, open_reader
from tests.observe.live import wait_for

CLUSTER = "cluster-under-test"


def new_prefix() -> str:
    """Clusters are shared."""
    return f"rackwise-{uuid4().hex[:8]}"


def leader(agent: str, cluster: str = CLUSTER) -> LeaderEntry:
    return LeaderEntry(agent=agent, host="here", pid=1, cluster=cluster, since_ms=0)


def plan(servers: str, prefix: str, agent: str = "one", **more: Any) -> KafkaJournalPlan:
    return KafkaJournalPlan(
        config={"bootstrap.servers": servers},
        leader=leader(agent),
        prefix=prefix,
        topic=f"{prefix}.journal",
        **more,
    )


def leadership_plan(servers: str, prefix: str, agent: str = "one", **more: Any) -> LeadershipPlan:
    return LeadershipPlan(
        config={"bootstrap.servers": servers},
        agent=agent,
        prefix=prefix,
        journal_topic=f"{prefix}.journal",
        leader_topic=f"{prefix}.leader",
        commands_topic=f"{prefix}.commands",
        **more,
    )


def make_topics(servers: str, prefix: str, **configs: str) -> None:
    """The three topics, with as many replicas as there are brokers."""
    admin = AdminClient({"bootstrap.servers": servers})
    replicas = min(3, len(admin.list_topics(timeout=10).brokers))
    policies = {"journal": {"cleanup.policy": "compact", **configs}, "leader": {}, "commands": {}}
    made = admin.create_topics(
        [NewTopic(f"{prefix}.{name}", 1, replicas, config=config) for name, config in policies.items()]
    )
    for future in made.values():
        future.result(30)
    ends = {TopicPartition(f"{prefix}.{name}", 0): OffsetSpec.latest() for name in policies}

    def answered() -> bool:
        fresh = AdminClient(
            {"bootstrap.servers": servers}
        )  # one that asked too early may keep the leaders it was shown
        return all(one.exception(10) is None for one in fresh.list_offsets(ends).values())

    wait_for(answered, "the leaders of the topics answer")


def delete_topics(servers: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_topics(list(names)).values():
        future.result(30)
    wait_for(lambda: not set(names) & set(admin.list_topics(timeout=10).topics), "topics are forgotten")


@contextmanager
def opened(one: KafkaJournalPlan, **more: Any) -> Iterator[KafkaJournal]:
    journal = KafkaJournal.open(one, **more)
    try:
        yield journal
    finally:
        journal.close()


def a_write(key: str, **value: Any) -> JournalWrite:
    return JournalWrite(key, "said", value)


def committed_journal(servers: str, prefix: str) -> TopicRead:
    """The topic's records for a reader without a lock, once every transaction is decided."""
    topic = JournalTopic({"bootstrap.servers": servers}, f"{prefix}.journal", prefix)
    until = time.monotonic() + 20
    try:
        return topic.read(topic.bounds(until).end, until)
    finally:
        topic.close()


def records(servers: str, prefix: str) -> list[ConsumerRecord]:
    """Each committed record of the journal, in the order of the log, deletions included."""
    committed_journal(servers, prefix)
    with open_reader({"bootstrap.servers": servers}, f"{prefix}.journal", prefix=prefix, timeout_ms=20_000) as reader:
        return list(reader.read(reader.spans()))


def order(servers: str, prefix: str) -> list[tuple[int, int]]:
    """(epoch, seq) of each of them."""
    return [place(record) for record in records(servers, prefix)]


def place(record: ConsumerRecord) -> tuple[int, int]:
    epoch, seq = record.headers["ce_id"].split("-")
    return int(epoch), int(seq)

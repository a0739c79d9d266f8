"""An agent on a real cluster, put together out of settings as the command does it, with topics of its own prefix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from agent.daemon.daemon import AgentDaemon
from agent.daemon.start import agent_of
from config.load import LoadedSettings, load_settings


def loaded(bootstrap_servers: str, prefix: str, *assignments: str, files: tuple[Path, ...] = ()) -> LoadedSettings:
    """Settings for one test: its own topics, and racks that are believed at once."""
    own = [
        f"kafka.bootstrap.servers={bootstrap_servers}",
        f"topics.prefix={prefix}",
        "racks.stable_for=0s",
        "racks.stable_polls=1",
    ]
    return load_settings(files=files, assignments=[*own, *assignments], environ={})


@contextmanager
def agent(bootstrap_servers: str, prefix: str, *assignments: str) -> Iterator[AgentDaemon]:
    """One agent, closed at the end as a command closes it."""
    with agent_of(loaded(bootstrap_servers, prefix, *assignments).settings) as one:
        yield one
        one.close()


class Plain(NamedTuple):
    """A record as any consumer sees it."""

    partition: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


def read_all(bootstrap_servers: str, topic: str) -> list[Plain]:
    """Every record of the topic, read with a consumer that knows nothing of rackwise."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "plain-reader", "enable.auto.commit": False}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] for p in partitions}
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        read: list[Plain] = []
        while len(read) < sum(ends.values()):
            message = consumer.poll(10)
            assert message is not None, f"{len(read)} of {sum(ends.values())} records came"
            assert message.error() is None, message.error()
            read.append(Plain(message.partition(), message.key(), message.value(), message.headers() or []))
        return read
    finally:
        consumer.close()


def described(bootstrap_servers: str, topic: str) -> tuple[list[list[int]], dict[str, str]]:
    """Replica lists and the configs of a topic, asked with an admin client of its own."""
    from confluent_kafka import TopicCollection  # noqa: PLC0415 named beside its only use
    from confluent_kafka.admin import ConfigResource, ResourceType  # noqa: PLC0415 as above

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    partitions = admin.describe_topics(TopicCollection([topic]))[topic].result(10).partitions
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(10)
    return [[node.id for node in one.replicas] for one in partitions], {n: e.value for n, e in configs.items()}


def bodies(records: list[Plain]) -> list[dict[str, Any]]:
    return [json.loads(record.value) for record in records]

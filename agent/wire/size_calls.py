"""How many bytes do these replicas have by now? Asked of their own brokers, and of these partitions only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby

from agent.wire.connection import Connection
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed
from agent.wire.pool import Pool
from agent.wire.protocol import DESCRIBE_LOG_DIRS
from assignors.problem import TopicPartition

Sizes = dict[tuple[TopicPartition, int], int]
"""(partition, broker) -> bytes."""


def replica_sizes(pool: Pool, replicas: Mapping[int, Iterable[TopicPartition]], deadline: Deadline) -> Sizes:
    """Bytes of each replica; those of a broker that did not answer, and those that it does not have, are absent."""
    asks = {broker: partial(_ask, broker, sorted(partitions)) for broker, partitions in replicas.items()}
    sizes: Sizes = {}
    for answer in pool.ask_each(asks, deadline, name="sizes").values():
        if not isinstance(answer, CallFailed):
            sizes |= answer
    return sizes


def _ask(broker: int, partitions: list[TopicPartition], connection: Connection, until: Deadline) -> Sizes:
    api = DESCRIBE_LOG_DIRS
    row = api.request.DescribableLogDirTopic
    topics = [
        row(topic=topic, partitions=[one.partition for one in rows])
        for topic, rows in groupby(partitions, key=lambda one: one.topic)
    ]
    answer = connection.call(api, api.request(topics=topics), until, version=connection.version(api))
    return {
        (TopicPartition(topic.name, one.partition_index), broker): one.partition_size
        for log_dir in answer.results
        if log_dir.error_code == 0
        for topic in log_dir.topics
        for one in topic.partitions
        if not one.is_future_key
    }

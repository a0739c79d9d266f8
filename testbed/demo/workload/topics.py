"""Creation of the workload's topics, with every replica on its planned broker.

Invariant: a topic that is already there is left as it is; the workload never moves or deletes anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from testbed.demo.workload.errors import WorkloadError
from testbed.demo.workload.plan import TopicPlan

_WITHIN_S = 30.0


def create_topics(bootstrap_servers: str, topics: Iterable[TopicPlan]) -> tuple[str, ...]:
    """Create the topics and wait for all; the names of those made now. Raises WorkloadError for the first refused."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "client.id": "workload-topics", "log_level": 0})
    new = [
        NewTopic(
            topic.name,
            num_partitions=len(topic.replicas),
            replica_assignment=[list(brokers) for brokers in topic.replicas],
            config=dict(topic.configs),
        )
        for topic in topics
    ]
    if not new:
        return ()
    made = []
    for name, future in admin.create_topics(new, operation_timeout=_WITHIN_S, request_timeout=_WITHIN_S).items():
        try:
            future.result(timeout=_WITHIN_S + 5)
        except KafkaException as refused:
            error = refused.args[0]
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            raise WorkloadError(f"Topic {name} could not be created", why=error.str()) from refused
        made.append(name)
    return tuple(made)

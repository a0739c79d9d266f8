"""Plain clients for looking at a cluster from outside, apart from the code under test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as AnyKafkaError
from kafka.protocol.admin import DescribeClusterRequest

QUIET = {"log_level": 0, "socket.connection.setup.timeout.ms": 2000, "reconnect.backoff.max.ms": 200}


def eventually(true: Callable[[], bool], within_s: float = 30.0) -> bool:
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


@contextmanager
def kafka_admin(bootstrap_servers: str, **settings: Any) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(
        bootstrap_servers=bootstrap_servers,
        client_id="looker",
        bootstrap_timeout_ms=10_000,
        request_timeout_ms=5_000,
        **settings,
    )
    try:
        yield client
    finally:
        client.close()


def described(bootstrap_servers: str) -> Mapping[int, str | None]:
    """Broker that is not fenced -> rack, as DescribeCluster tells.

    Asked again for a while, because the broker that is asked may be the one that goes.
    """
    until = time.monotonic() + 30
    while True:
        try:
            with kafka_admin(bootstrap_servers) as client:
                # Not describe_cluster(): it cannot read the answer of a broker before 3.7.
                request = DescribeClusterRequest(include_fenced_brokers=False)
                answer = client._manager.run(client._manager.send, request)
                return {broker.broker_id: broker.rack for broker in answer.brokers}
        except AnyKafkaError:
            if time.monotonic() > until:
                raise


def admin(bootstrap_servers: str, **settings: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers, "client.id": "tester", **QUIET, **settings})


def known_broker_count(client: AdminClient) -> int | None:
    """Number of brokers in a client's metadata; None while it gets no answer, as right after an empty one."""
    try:
        return len(client.list_topics(timeout=5).brokers)
    except KafkaException:
        return None


def create_topic(client: AdminClient, name: str, partitions: int = 3, copies: int = 1) -> None:
    for done in client.create_topics([NewTopic(name, partitions, copies)], operation_timeout=20.0).values():
        done.result(20)


def produce(bootstrap_servers: str, topic: str, values: int, **settings: Any) -> None:
    failed: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "client.id": "tester", **QUIET, **settings})
    for number in range(values):
        producer.produce(
            topic, str(number).encode(), on_delivery=lambda error, _: failed.append(error) if error else None
        )
    left = producer.flush(20)
    if left or failed:
        raise KafkaException(failed[0] if failed else KafkaError(KafkaError._TIMED_OUT))


def consume(bootstrap_servers: str, topic: str, values: int, **settings: Any) -> int:
    """How many of so many values arrive within 20 s."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "tester",
            "group.id": f"{topic}-readers",
            "auto.offset.reset": "earliest",
            **QUIET,
            **settings,
        }
    )
    consumer.subscribe([topic])
    got = 0
    until = time.monotonic() + 20
    try:
        while got < values and time.monotonic() < until:
            got += len([one for one in consumer.consume(values, 0.5) if one.error() is None])
    finally:
        consumer.close()
    return got

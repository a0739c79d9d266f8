"""What the tests of observe put on a real cluster, and take off again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from agent.observe.context import ObserverClients
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.wire.client import WireClient
from config.kafka_client import KafkaClientConfig

CLIENT_ID = "rackwise-under-test"

_NOT_YET = {
    KafkaError.NON_EMPTY_GROUP,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,
}


def clients_of(bootstrap_servers: str, properties: Mapping[str, str] | None = None) -> ObserverClients:
    """Both clients, as an operator would configure them."""
    written = {"bootstrap.servers": bootstrap_servers, "client.id": CLIENT_ID, **(properties or {})}
    return ObserverClients.open(KafkaClientConfig.of(written))


@contextlib.contextmanager
def topics(admin: AdminClient, arguments: Mapping[str, Any] | None = None, /, **partitions: int) -> Iterator[None]:
    """Topics of two replicas; underscores of the names become dashes. ``arguments`` as a `WireClient` takes them."""
    names = {name.replace("_", "-"): count for name, count in partitions.items()}
    for future in admin.create_topics([NewTopic(name, count, 2) for name, count in names.items()]).values():
        future.result(30)
    wait_for(
        lambda: all(set(names) <= known for known in _known(admin, arguments or {})),
        "every broker knows the new topics",
    )
    try:
        yield
    finally:
        for future in admin.delete_topics(list(names)).values():
            future.result(30)
        wait_for(
            lambda: not any(set(names) & known for known in _known(admin, arguments or {})),
            "every broker forgot the topics",
        )


def _known(admin: AdminClient, arguments: Mapping[str, Any]) -> Iterator[set[str]]:
    """Topics that each broker knows: they learn of changes one after the other."""
    for broker in admin.list_topics(timeout=10).brokers.values():
        with WireClient({**arguments, "bootstrap_servers": [f"{broker.host}:{broker.port}"]}) as wire:
            yield {topic.name for topic in wire.describe_topics(5_000).topics}


def produce(bootstrap_servers: str, topic: str, count: int) -> None:
    """That many records, acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    assert producer.flush(30) == 0


@contextlib.contextmanager
def consumer(bootstrap_servers: str, group: str, topic: str, **settings: object) -> Iterator[Consumer]:
    """A librdkafka consumer that has got its partitions.

    One that is closed while it joins leaves a member behind, which goes with its session: that is short, but where the
    broker has the say (KIP-848).
    """
    names = {name.replace("_", "."): value for name, value in settings.items()}
    one = Consumer({
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **({} if settings.get("group_protocol") == "consumer" else {"session.timeout.ms": 10_000}),
        **names,
    })  # fmt: skip
    one.subscribe([topic])
    try:
        wait_for(lambda: (one.poll(0.1), one.assignment())[1], f"{group} gets partitions")
        yield one
    finally:
        one.close()


def commit(client: Mapping[str, str | int], group: str, topic: str, offset: int) -> None:
    """A group without members that has an offset; tried again while the coordinator is being made.

    By a consumer: the admin client's call for it was seen to abort the process while a coordinator is being made.
    """
    one = Consumer({**client, "group.id": group})

    def committed() -> bool:
        try:
            done = one.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        except KafkaException:
            return False
        return all(row.error is None for row in done)

    wait_for(committed, f"{group} commits")
    one.close()


def delete_groups(admin: AdminClient, *groups: str) -> None:
    """Delete what is there of them, as soon as the last member has left or its session is over."""
    wait_for(lambda: not _not_yet_deleted(admin, groups), f"{', '.join(groups)} can be deleted", within_s=60)


def _not_yet_deleted(admin: AdminClient, groups: tuple[str, ...]) -> list[str]:
    left = []
    for group, future in admin.delete_consumer_groups(list(groups)).items():
        try:
            future.result(30)
        except KafkaException as error:
            code = error.args[0].code()
            if code in _NOT_YET:
                left.append(group)
            elif code != KafkaError.GROUP_ID_NOT_FOUND:
                raise
    return left


def wait_for(look: Callable[[], Any], what: str, within_s: float = 30) -> Any:
    """What ``look`` returns once it is true."""
    until = time.monotonic() + within_s
    while not (seen := look()):
        assert time.monotonic() < until, f"waited {within_s} s in vain: {what}"
        time.sleep(0.1)
    return seen


def gaps(observation: Observation, part: ObservationPart | None = None) -> list[Gap]:
    """Gaps of that part, or all."""
    return [gap for gap in observation.gaps if part in (None, gap.part)]


def kinds(found: list[Gap]) -> set[tuple[ObservationPart, GapCause, str]]:
    """What gaps say without their sentences."""
    return {gap[:3] for gap in found}

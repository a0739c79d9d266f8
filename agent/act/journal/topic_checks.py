"""Checks of the settings of journal, lock and commands topics, with the remedy line; and of topic ids (KIP-516).

Settings that risk the journal's content are refused in `journal_topic`. Settings that cannot be described are not
reported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from agent.journal.entries import MAX_VALUE_BYTES
from agent.record.librdkafka import client_settings
from agent.values.kafka import (
    CLEANUP_POLICY,
    COMPACT,
    CREATE_TIME,
    DELETE,
    LOG_APPEND_TIME,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGE_BYTES_DEFAULT,
    MIN_INSYNC_REPLICAS,
    RETENTION_MS,
    TIMESTAMP_TYPE,
    UNCLEAN_ELECTION,
)

HOUR_MS = 3_600_000
_MARGIN = 65_536
"""Bytes that key, headers and batch take beside a value, at most."""


class ExistingTopic(NamedTuple):
    """A topic as it is."""

    name: str
    partitions: int
    replicas: int
    """Replicas of partition 0."""
    configs: Mapping[str, str]
    """Empty where they may not be seen."""


class SharedTopics(NamedTuple):
    """The names of the three topics."""

    journal: str
    leader: str
    commands: str


def topic_problems(
    config: Mapping[str, str | int], names: SharedTopics, timeout_s: float, *, signed: bool
) -> tuple[str, ...]:
    """What is wrong with the topics, as far as brokers show it, and with a journal that is not signed."""
    try:
        found = topic_faults(existing_topics(config, names, timeout_s), names)
    except KafkaException:
        found = ()
    unsigned = (
        f"records of {names.journal} are not signed, so every principal with Write on it can command the agent; "
        "execute.journal_key_file signs them"
    )
    return found if signed else (unsigned, *found)


def writable(observer: Mapping[str, str | int], names: SharedTopics, timeout_s: float) -> tuple[str, ...]:
    """A sentence where the observer's user may write what only others should; nothing where brokers do not show it."""
    admin = AdminClient(client_settings(observer))
    asked = admin.describe_topics(
        TopicCollection([names.journal, names.commands]), request_timeout=timeout_s, include_authorized_operations=True
    )
    found: list[str] = []
    for name, topic in asked.items():
        with suppress(KafkaException, TimeoutError):
            if AclOperation.WRITE in (topic.result(timeout_s).authorized_operations or ()):
                found.append(name)
    if not found:
        return ()
    topics = " and ".join(sorted(found))
    return (f"the observer's user may write {topics}, so it may command: take that right away (docs/operations.md)",)


def topic_faults(topics: Sequence[ExistingTopic], names: SharedTopics) -> tuple[str, ...]:
    """A sentence for each topic that is not as it has to be. Pure."""
    return tuple(sentence for topic in topics for sentence in _wrong(topic, names))


def existing_topics(
    config: Mapping[str, str | int], names: SharedTopics, timeout_s: float
) -> tuple[ExistingTopic, ...]:
    """The topics as brokers show them; none that they do not."""
    admin = AdminClient(client_settings(config))
    until = time.monotonic() + timeout_s
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = admin.describe_topics(TopicCollection(list(names)), request_timeout=timeout_s)
    configs = admin.describe_configs(resources, request_timeout=timeout_s)
    found: list[ExistingTopic] = []
    for resource, name in zip(resources, names, strict=True):
        try:
            topic = described[name].result(max(0.1, until - time.monotonic()))
        except (KafkaException, TimeoutError):
            continue
        try:
            values = configs[resource].result(max(0.1, until - time.monotonic()))
        except (KafkaException, TimeoutError):
            values = {}
        shown = {key: str(one.value) for key, one in values.items()}
        found.append(ExistingTopic(name, len(topic.partitions), len(topic.partitions[0].replicas), shown))
    return tuple(found)


def _wrong(topic: ExistingTopic, names: SharedTopics) -> Iterator[str]:
    if topic.partitions != 1:
        yield f"{topic.name} has {topic.partitions} partitions, and only partition 0 counts"
    if topic.name == names.journal:
        yield from _wrong_journal(topic)
    if topic.name == names.commands:
        yield from _wrong_commands(topic)


def _wrong_journal(topic: ExistingTopic) -> Iterator[str]:
    configs = topic.configs
    if configs.get(UNCLEAN_ELECTION) == "true":
        yield _set(topic, UNCLEAN_ELECTION, "false", "is true, so a late replica may cut the journal")
    least = _whole(configs.get(MIN_INSYNC_REPLICAS))
    if least is not None and least < 2 <= topic.replicas - 1:
        yield _set(topic, MIN_INSYNC_REPLICAS, "2", f"is {least}, so the loss of one broker may cut the journal")
    most = _whole(configs.get(MAX_MESSAGE_BYTES))
    if most is not None and most < MAX_VALUE_BYTES + _MARGIN:
        default = str(MAX_MESSAGE_BYTES_DEFAULT)
        yield _set(topic, MAX_MESSAGE_BYTES, default, f"is {most}, so large plans cannot be written")


def _wrong_commands(topic: ExistingTopic) -> Iterator[str]:
    configs = topic.configs
    if configs.get(TIMESTAMP_TYPE) == CREATE_TIME:
        yield _set(
            topic,
            TIMESTAMP_TYPE,
            LOG_APPEND_TIME,
            "is CreateTime, so the age of a command that waited for an agent is taken from its sender's clock",
        )
    if COMPACT in configs.get(CLEANUP_POLICY, ""):
        yield _set(topic, CLEANUP_POLICY, DELETE, f"is {configs[CLEANUP_POLICY]}, so old commands are never deleted")
    kept_ms = _whole(configs.get(RETENTION_MS))
    if kept_ms is not None and 0 <= kept_ms < HOUR_MS:
        yield _set(topic, RETENTION_MS, "86400000", f"is {kept_ms}, so commands are gone before an agent reads them")


def _set(topic: ExistingTopic, name: str, value: str, why: str) -> str:
    return f"{name} of {topic.name} {why}: kafka-configs --alter --topic {topic.name} --add-config {name}={value}"


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.removeprefix("-").isdigit() else None


# Brokers without topic ids (KIP-516) report zero for every topic: such an id is none, and equals no other.

UNKNOWN = ""
"""The id of a topic of which none is reported."""
_ZERO = "A" * 22
"""Zero as clients write it: 16 bytes in base64 for URLs, without padding."""


def id_of(reported: object) -> str:
    """A topic id as a client, or the journal, has it; `UNKNOWN` for zero and for none."""
    text = "" if reported is None else str(reported)
    return UNKNOWN if text == _ZERO else text


def is_other(one: str, another: str) -> bool:
    """Whether these are two topics beyond doubt: both ids are known and differ."""
    return UNKNOWN not in (one, another) and one != another

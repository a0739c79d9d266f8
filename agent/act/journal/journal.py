"""The journal's topic beside those of lock and commands: its entries, read from records, and checks of all three.

Settings that risk the journal's content are refused in `journal_topic`; others are reported with the remedy line, and
topics are told apart by their ids (KIP-516). Settings that cannot be described are not reported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from agent.errors import BadInput
from agent.journal.entries import (
    CODE_HEADER,
    MAX_VALUE_BYTES,
    Entry,
    JournalState,
    JournalTrust,
    NewerEntryError,
    UnreadableEntryError,
    entry_of,
    key_of,
)
from agent.journal.record_trust import RecordVerifier, RejectedRecord, RejectionReason, VerifiedRecord, codes_by_key
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


# The newest record of a key that counts (`agent.journal.record_trust`) is its entry. A record that does not count
# changes nothing, is reported, and is overwritten by the next leader.

MAX_LIVE_BYTES = 384 * 1024 * 1024
MOST_DOUBTED = 1_000
"""Records that do not count which are kept by name; further ones are counted."""
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 librdkafka's own public codes begin with an underscore
_EVENT_ID = "ce_id"


class TopicRead(NamedTuple):
    """Entries of the topic, and the offset up to which they were read."""

    view: JournalState
    newest_epoch: int
    """The greatest that any record showed, overwritten and deleted ones included."""
    end: int
    """The offset after the last that was read."""
    unreadable: tuple[str, ...] = ()
    """Sentences about records that are no entries for this rackwise; a writer must not go on over them."""
    newer: tuple[str, ...] = ()
    """Sentences of `unreadable` about records of a newer rackwise."""
    doubted: tuple[RejectedRecord, ...] = ()
    """Records that do not count, the first of them."""
    doubted_count: int = 0
    signed: bool = False
    """Whether any record carries a code."""
    believed: bool = False
    """Whether any record carries a code of a key that is known here, or was accepted without one by a person."""
    overwrite: frozenset[str] = frozenset()
    """Keys whose last record does not count, or was not written with the key in force."""


class JournalCompactor:
    """Takes messages in the order of the log; the newest record of a key counts, whatever it is."""

    def __init__(self, topic: str, trust: JournalTrust) -> None:
        self.position = 0
        self._topic = topic
        self._weigher = RecordVerifier(trust)
        self._standing: dict[bytes, tuple[Entry | UnreadableEntryError, int]] = {}
        self._overwrite: set[bytes] = set()
        self._doubted: list[RejectedRecord] = []
        self._doubted_count = self._early = 0
        """All of them, and those of them from before there was a key: no fault once there is one."""
        self._first_believed = 0
        self._accepted = False
        """Whether a record counts without a code, because an operator accepted it."""
        self._others: dict[bytes, list[RejectedRecord]] = {}
        """Records with codes of other keys that nothing overwrote yet; overwritten ones were a former key's."""
        self._signed = False
        self._newest_epoch = 0
        self._bytes = 0

    def take(self, message: Message) -> None:
        """Take one message, or the end of the partition. Raises KafkaException, BadInput."""
        offset, error = message.offset(), message.error()
        if error is not None:
            if error.code() == _EOF:
                # Markers of transactions and holes of compaction have offsets and no records.
                self.position = max(self.position, -1 if offset is None else offset)
                return
            if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 as above
                raise journal_lost_error(self._topic, "its first records are gone")
            raise KafkaException(error)
        self.position = max(self.position, -1 if offset is None else offset + 1)
        value = message.value()
        self._weigh(
            -1 if offset is None else offset, raw(message.key()), None if value is None else raw(value), message
        )

    def result(self) -> TopicRead:
        """The journal's state by the records that were read so far."""
        found = [one for one, _ in self._standing.values()]
        unreadable = [str(one) for one in found if isinstance(one, UnreadableEntryError)]
        newer = [str(one) for one in found if isinstance(one, NewerEntryError)]
        believed = self._weigher.believed > 0
        doubted = [
            one
            for one in self._doubted
            if not (believed and one.doubt is RejectionReason.UNSIGNED and one.offset < self._first_believed)
        ]
        others = [one for rows in self._others.values() for one in rows]
        return TopicRead(
            view=MappingProxyType({one.key: one for one in found if isinstance(one, Entry)}),
            newest_epoch=self._newest_epoch,
            end=self.position,
            unreadable=tuple(unreadable),
            newer=tuple(newer),
            doubted=(*doubted, *others),
            doubted_count=self._doubted_count + len(others) - (self._early if believed else 0),
            signed=self._signed,
            believed=believed or self._accepted,
            overwrite=frozenset(name for key in self._overwrite if (name := _written_key(key)) is not None),
        )

    def _weigh(self, offset: int, raw_key: bytes, data: bytes | None, message: Message) -> None:
        headers = dict(message.headers() or ())
        event_id, codes = _text(headers.get(_EVENT_ID)), _text(headers.get(CODE_HEADER))
        self._signed = self._signed or bool(codes)
        weighed = self._weigher.weigh(offset, raw_key, data, event_id, codes)
        if self._weigher.believed == 0:
            self._first_believed = offset + 1
        if weighed.doubt is not None:
            self._doubt(raw_key, RejectedRecord(offset, _name(raw_key), weighed.doubt, tuple(codes_by_key(codes))))
            self._overwrite.add(raw_key)
            return
        self._overwrite.discard(raw_key)
        self._others.pop(raw_key, None)
        self._accepted = self._accepted or not (codes or weighed.current)
        if not weighed.current:
            self._overwrite.add(raw_key)
        self._keep(raw_key, data, weighed)

    def _doubt(self, raw_key: bytes, one: RejectedRecord) -> None:
        if one.doubt is RejectionReason.OTHER_KEY and sum(map(len, self._others.values())) < MOST_DOUBTED:
            self._others.setdefault(raw_key, []).append(one)
            return
        if self._weigher.believed == 0 and one.doubt is RejectionReason.UNSIGNED:
            self._early += 1
        self._doubted_count += 1
        if len(self._doubted) < MOST_DOUBTED:
            self._doubted.append(one)

    def _keep(self, raw_key: bytes, data: bytes | None, weighed: VerifiedRecord) -> None:
        self._bytes -= self._standing.pop(raw_key, (None, 0))[1]
        if data is None:
            if weighed.place is not None and self._weigher.believed:  # without a key any client may have written it
                self._newest_epoch = max(self._newest_epoch, weighed.place[0])
            return
        self._standing[raw_key] = (_entry(raw_key, data), len(raw_key) + len(data))
        entry = self._standing[raw_key][0]
        if isinstance(entry, Entry):
            self._newest_epoch = max(self._newest_epoch, entry.epoch)
        self._bytes += len(raw_key) + len(data)
        if self._bytes > MAX_LIVE_BYTES:
            raise BadInput(
                f"The journal {self._topic} is too big",
                why=f"its entries have more than {MAX_LIVE_BYTES} bytes, which rackwise never writes",
                todo="Check the ACLs of the topic: only rackwise may write or delete it.",
            )


def journal_lost_error(topic: str, what: str) -> BadInput:
    """The error for a journal that has lost entries."""
    return BadInput(
        f"The journal {topic} has lost records: {what}",
        why="its records were deleted, or the topic was deleted and created again",
        todo=(
            "Make sure that no reassignment runs and no throttle is left, then delete this topic and the topic by which"
            " agents choose their leader: the agent creates both again."
        ),
    )


def raw(value: str | bytes | None) -> bytes:
    """Key or value as bytes."""
    return value.encode() if isinstance(value, str) else value or b""


def _entry(raw_key: bytes, data: bytes) -> Entry | UnreadableEntryError:
    try:
        return entry_of(key_of(raw_key), data)
    except UnreadableEntryError as error:
        return error


def _name(raw_key: bytes) -> str:
    """A key for people."""
    return raw_key[:200].decode("utf-8", "backslashreplace")


def _written_key(raw_key: bytes) -> str | None:
    """A key for writing; None for one that rackwise cannot have written."""
    try:
        return key_of(raw_key) or None
    except UnreadableEntryError:
        return None


def _text(header: object) -> str:
    return header.decode("ascii", "replace") if isinstance(header, bytes) else header if isinstance(header, str) else ""

"""Reads the journal topic up to its high watermark, with read_committed, and checks its settings and topic id.

Invariants: a partial read is `JournalUnavailable`, never a view; a topic with retention by time or size, a truncated
one and a recreated one are reported, because missing entries look like actions that never happened.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from agent.act.journal.journal import JournalCompactor, TopicRead, id_of, journal_lost_error
from agent.errors import BadInput, ConfigError, FencedOut, JournalUnavailable
from agent.journal.entries import JournalKey, JournalState, JournalTrust
from agent.journal.record_trust import LeaderEntry, RejectionReason, check_cluster, distinct_ids
from agent.record.librdkafka import NOT_ALLOWED, client_settings, error_text, reader_config, refusal
from agent.values.kafka import (
    CLEANUP_POLICY,
    COMPACT,
    COMPRESSION_TYPE,
    FETCH_WAIT_MS,
    LINGER_MS,
    MESSAGE_TIMEOUT_MS,
    OFFSET_RESET,
    RETRY_BACKOFF_MS,
)
from agent.values.number_format import counted

_PARTITION = 0
_POLL_S = 0.25
_BATCH = 500
_MISSING = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 librdkafka's own public codes begin with an underscore
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 as above
)
_LEADERLESS = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_RETRY_S = 0.1
_NEW_S = 2.0
"""A broker may not know yet of a topic that was just made."""

Config = Mapping[str, str | int]


class NoJournalError(ConfigError):
    """There is no such topic: no agent in mode execute has ever run here."""


NO_EXECUTOR = "no agent in mode execute has run here; a dry run carries nothing out"


def no_journal(what: str, setting: str) -> NoJournalError:
    """The error for a journal that does not exist; ``setting``: the one that may name another than the agents' does."""
    return NoJournalError(f"There is no {what}", why=NO_EXECUTOR, todo=start_executor(setting))


def start_executor(setting: str) -> str:
    """The remedy: a dry run that runs is no remedy."""
    return f"Start an agent that acts: rackwise run --mode execute; or check that {setting} is that of the agents."


class TopicOffsets(NamedTuple):
    """The topic as it is, and which offsets it holds."""

    topic_id: str
    """Empty where brokers report none."""
    first: int
    decided: int
    """Below this offset every transaction is committed or aborted."""
    end: int
    """The high watermark: below it are records, decided or not."""


class JournalTopic:
    """Reads one journal topic, in one thread; `close` ends its clients. ``until``: seconds of `time.monotonic`."""

    def __init__(self, config: Config, topic: str, prefix: str, trust: JournalTrust = JournalTrust()) -> None:  # noqa: B008 frozen
        self._config = config
        self._topic = topic
        self._prefix = prefix
        self._trust = trust
        self._admin: AdminClient | None = None

    def bounds(self, until: float) -> TopicOffsets:
        """Raises JournalUnavailable, ConfigError when there is no such topic or it is none for a journal."""
        patient_until = min(until, time.monotonic() + _NEW_S)
        while True:
            try:
                return self._bounds(until)
            except KafkaException as failed:
                code, now = failed.args[0].code(), time.monotonic()
                if now < until and (code in _LEADERLESS or (code in _MISSING and now < patient_until)):
                    time.sleep(_RETRY_S)
                    continue
                raise unavailable(failed, self._topic) from failed

    def check_kept(self, until: float) -> None:
        """Raises ConfigError when brokers would delete what is old; a refused answer counts as none."""
        admin = self._admin or AdminClient(client_settings(self._config))
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        try:
            asked = admin.describe_configs([resource], request_timeout=max(0.1, until - time.monotonic()))
            policy = asked[resource].result()[CLEANUP_POLICY].value
        except KafkaException:
            return  # without the right to see configs nothing is checked; what was cut shows in the offsets
        if policy != COMPACT:
            raise _unfit(self._topic, f"its cleanup.policy is {policy}, so brokers delete old records")

    def read(self, end: int, until: float) -> TopicRead:
        """Everything below ``end``. Raises JournalUnavailable when that takes longer, BadInput for what is no journal.

        A record that is no entry, or a newer one, is left aside and listed.
        """
        reading = JournalCompactor(self._topic, self._trust)
        settings = reader_config(f"{self._prefix}-reader")
        strict = {OFFSET_RESET: "error", FETCH_WAIT_MS: 100}
        consumer = Consumer(client_settings(self._config, settings, strict))
        try:
            consumer.assign([TopicPartition(self._topic, _PARTITION, 0)])
            while reading.position < end:
                left = until - time.monotonic()
                if left <= 0:
                    raise _cut_short(self._topic, reading.position, end)
                for message in consumer.consume(_BATCH, timeout=min(_POLL_S, left)):
                    reading.take(message)
        except KafkaException as failed:
            raise unavailable(failed, self._topic) from failed
        finally:
            consumer.close()
        return reading.result()

    def close(self) -> None:
        """Drop the admin client; the next call makes a new one."""
        self._admin = None

    def _bounds(self, until: float) -> TopicOffsets:
        admin = self._admin = self._admin or AdminClient(client_settings(self._config))
        left = {"request_timeout": max(0.1, until - time.monotonic())}
        described = admin.describe_topics(TopicCollection([self._topic]), **left)[self._topic].result()
        if len(described.partitions) != 1:
            raise _unfit(
                self._topic, f"it has {len(described.partitions)} partitions, and the journal needs exactly one"
            )
        every, committed = IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED
        earliest, latest = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call] # not annotated
        partition = TopicPartition(self._topic, _PARTITION)
        asked = [  # side by side: each takes two answers, one after the other
            admin.list_offsets({partition: spec}, isolation_level=level, **left)[partition]
            for spec, level in ((earliest, every), (latest, committed), (latest, every))
        ]
        first, decided, end = (int(one.result().offset) for one in asked)
        return TopicOffsets(id_of(described.topic_id), first, decided, end)


def read_journal_topic(
    config: Config,
    topic: str,
    *,
    prefix: str,
    timeout_ms: int,
    trust: JournalTrust = JournalTrust(),  # noqa: B008 frozen
) -> JournalState:
    """The topic's present state, without a right to write; for people. What cannot be read is left aside.

    Raises JournalUnavailable, NotAllowed, ConfigError when there is no such topic.
    """
    until = time.monotonic() + timeout_ms / 1_000
    reader = JournalTopic(config, topic, prefix, trust)
    try:
        return reader.read(reader.bounds(until).decided, until).view
    except JournalUnavailable as failed:
        cause = failed.__cause__
        if isinstance(cause, KafkaException) and cause.args[0].code() in NOT_ALLOWED:
            raise refusal(cause, f"topic {topic}") from failed
        raise
    finally:
        reader.close()


def unavailable(failed: KafkaException, topic: str) -> JournalUnavailable | ConfigError:
    """The error for one of the client's."""
    error: KafkaError = failed.args[0]
    if error.code() in _MISSING:
        return no_journal(f"topic {topic}", "topics.prefix")
    return JournalUnavailable(f"The journal {topic} could not be read or written", why=error_text(error))


def _cut_short(topic: str, position: int, end: int) -> JournalUnavailable:
    return JournalUnavailable(
        f"The journal {topic} was not read to its end in time",
        why=f"offset {position} of {end} was reached; a transaction may not be finished yet",
    )


def _unfit(topic: str, why: str) -> ConfigError:
    return ConfigError(
        f"The topic {topic} cannot be the journal",
        why=why,
        todo="Delete it: the agent creates it again with the right settings.",
    )


_TRANSACTION_TIMEOUT_MS = 60_000
_SILENT = logging.getLogger("rackwise.kafka-journal")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaJournalPlan:
    """The journal's topic, and its writer."""

    config: Mapping[str, str | int] = field(repr=False)
    """confluent-kafka's configuration of the executor; it may hold secrets."""
    leader: LeaderEntry
    """The agent that writes, and the cluster of the journal."""
    prefix: str = "rackwise"
    topic: str = "rackwise.journal"
    deadline_ms: int = 10_000
    """Longest that one append may take; a part of the opening may take three times as long."""
    keys: tuple[JournalKey, ...] = ()
    """By which records are signed and checked; the first is in force, the others are former ones."""
    unsigned_below: int = 0
    """Offset below which records from before there was a key count."""

    @property
    def transactional_id(self) -> str:
        """The one id of every writer of this cluster's journal."""
        return f"{self.prefix}-exec-{self.leader.cluster}"

    @property
    def trust(self) -> JournalTrust:
        """What makes a record of the topic count."""
        return JournalTrust(self.keys, self.leader.cluster, self.unsigned_below)


class JournalWatermark(NamedTuple):
    """Epoch and end offset that the journal has surely reached, kept outside of the journal."""

    epoch: int = 0
    end: int = 0
    """An offset that its high watermark has reached."""


def check(plan: KafkaJournalPlan, bounds: TopicOffsets, read: TopicRead, watermark: JournalWatermark) -> None:
    """Raises BadInput, WrongCluster for a journal that must not be gone on with."""
    if bounds.first > 0:
        raise journal_lost_error(plan.topic, f"its offsets below {bounds.first} are gone")
    if bounds.end < watermark.end:
        raise journal_lost_error(
            plan.topic, f"it ends at offset {bounds.end}, and offset {watermark.end} was reached before"
        )
    _check_signed(plan, bounds, read)
    if read.newer:
        raise BadInput(
            f"The journal {plan.topic} is only read, not written, and nothing is done",
            why=f"a newer rackwise wrote it ({read.newer[0]})",
            todo="Upgrade this agent to the same version.",
        )
    if read.unreadable:
        raise BadInput(
            f"The journal {plan.topic} cannot be continued",
            why=f"{len(read.unreadable)} of its keys hold no valid entries: {read.unreadable[0]}",
            todo="Check the ACLs of the topic, and delete these keys: only rackwise may write it.",
        )
    check_cluster(read.view, plan.leader.cluster, plan.topic)
    if read.newest_epoch < watermark.epoch:
        raise journal_lost_error(
            plan.topic, f"it ends with epoch {read.newest_epoch}, but epoch {watermark.epoch} has begun before"
        )


def _check_signed(plan: KafkaJournalPlan, bounds: TopicOffsets, read: TopicRead) -> None:
    """Raises BadInput where no record, or not every one, differs from a forged one."""
    if not plan.keys:
        if read.signed:
            raise BadInput(
                f"The journal {plan.topic} is signed, and this agent has no key",
                why="execute.journal_key_file is not set",
                todo="Set it to a file with the key of the other agents.",
            )
        return
    if read.believed or not read.doubted:
        return
    if ids := distinct_ids(one for one in read.doubted if one.doubt is RejectionReason.OTHER_KEY):
        raise BadInput(
            f"The journal {plan.topic} is signed with another key",
            why=f"its records name key {', '.join(ids[:3])}, and this agent has {', '.join(k.id for k in plan.keys)}",
            todo="Set execute.journal_key_file to the key of the other agents; a former key goes into its second line.",
        )
    raise BadInput(
        f"No record of the journal {plan.topic} is signed with this agent's key",
        why=f"{counted(read.doubted_count, 'record')}, first {read.doubted[0].key!r}: {read.doubted[0].doubt.value}",
        todo=(
            "If they are from before the key was set (see: rackwise proposals history), accept them once with"
            f" --set execute.journal_unsigned_below={bounds.end}"
        ),
    )


def writer_settings(plan: KafkaJournalPlan) -> dict[str, str | int | logging.Logger]:
    """What the writer's client has beside the settings of its connection."""
    return {
        "logger": _SILENT,  # our own error names a fenced writer, not a line between ours
        "transactional.id": plan.transactional_id,
        "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
        MESSAGE_TIMEOUT_MS: _TRANSACTION_TIMEOUT_MS,  # an append that takes too long is aborted, which ends it sooner
        LINGER_MS: 0,
        RETRY_BACKOFF_MS: 20,  # the transaction before may still be writing its markers
        COMPRESSION_TYPE: "lz4",
    }


FENCED = (
    KafkaError._FENCED,  # noqa: SLF001 librdkafka's own public codes begin with an underscore
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)


@contextmanager
def untangled() -> Iterator[None]:
    """The client raises a fatal error in the middle of its own callbacks, and Python then makes another one of it."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


def fenced_out(topic: str, why: str) -> FencedOut:
    """The error for a writer that is no longer the newest."""
    return FencedOut(
        "Another agent took over", why=f"the journal {topic} has a newer writer ({why})", todo="Start this one again."
    )


def writer_error(failed: KafkaException, topic: str) -> JournalUnavailable:
    """The error for one of the client's that ends no writer."""
    found = unavailable(failed, topic)
    return found if isinstance(found, JournalUnavailable) else topic_gone_error(topic)


def topic_gone_error(topic: str) -> JournalUnavailable:
    """For a topic that was there when this writer began; should it come back, it has forgotten."""
    return JournalUnavailable(f"The journal {topic} is gone", why="the topic was deleted")

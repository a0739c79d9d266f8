"""The commands topic: operators produce commands, the leading agent consumes them and answers in the journal.

The position is kept in the journal (``command-position``), whose only writer is the leader; a journal without one
begins at the end offset. Only partition 0 counts. Foreign bytes are skipped and reported.

The sender is the command line or the page: a command goes into the topic or the directory of commands, signed by the
person or by the agent at whose page that person signed in, and its answer is awaited.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from agent.act.inbox import (
    MOST_AT_ONCE,
    POSITION,
    InboxCommand,
    command_bytes,
    command_of,
    is_answered,
    spool_command,
)
from agent.act.journal.journal import UNKNOWN, id_of, is_other
from agent.act.journal.journal_topic import NO_EXECUTOR, start_executor
from agent.act.lease import LeadershipPlan
from agent.errors import ClusterUnreachable, ConfigError, GaveUp, JournalUnavailable
from agent.execute.commands.command_context import CommandOrigin, signed, witnessed
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, answer_to, command_to_json
from agent.journal.entries import Entry, JournalState, JournalWrite
from agent.journal.record_trust import LeaderEntry, confirmed_ms, leader_in
from agent.record.librdkafka import client_settings, error_text, reader_config
from agent.telemetry.topic_records import headers, source
from agent.values.kafka import ACKS, MESSAGE_TIMEOUT_MS
from agent.values.number_format import counted, lasted

COMMAND = "rackwise.command.v1"
SCHEMA_ID = "urn:rackwise:command:v1"
KIND = "offset"
_POLL_S = 0.05
_READ_S = 0.5
"""So long one reading goes on while there is more."""
_ASK_S = 10.0
_NEWS_S = 2.0
_PARTITION = 0

Config = Mapping[str, str | int]


class TopicEndOffset(NamedTuple):
    """End offset of a topic of one partition at some moment."""

    topic_id: str
    """Empty where brokers report none."""
    offset: int
    """Offset of the next record that is produced."""


def send_command(
    config: Config, topic: str, command: Mapping[str, Any], *, cluster: str, sender: str, at_ms: int, timeout_ms: int
) -> str:
    """Write one command and wait until brokers have it; its id.

    Raises BadInput for what is no command, ConfigError when there is no such topic, ClusterUnreachable when it is not
    known whether it was written: sending it again with the same id does no harm.
    """
    name, data = command_bytes(command)
    try:
        # Writing could make a broker create it blindly.
        _wait_for_topic(AdminClient(client_settings(config)), topic, timeout_ms / 1_000)
    except KafkaException as failed:
        raise _unsent(topic, failed.args[0]) from failed
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer(client_settings(config, {ACKS: "all", MESSAGE_TIMEOUT_MS: timeout_ms}))
    attributes = headers(
        event_id=name, source=source(cluster, sender), kind=COMMAND, subject=name, time_ms=at_ms, schema=SCHEMA_ID
    )
    producer.produce(
        topic, value=data, key=name.encode(), headers=list(attributes), partition=_PARTITION, on_delivery=delivered
    )
    if producer.flush(timeout_ms / 1_000) or refused:
        raise _unsent(topic, refused[0] if refused else KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 librdkafka's own public codes begin with an underscore
    return name


class TopicInbox:
    """An `CommandInbox` over the commands topic."""

    def __init__(self, config: Config, topic: str, prefix: str, began_at: TopicEndOffset | None = None) -> None:
        """``led_from`` is the topic's end when this agent began to lead; None: as it is when it is first read."""
        self._config = config
        self._topic = topic
        self._prefix = prefix
        self._began_at = began_at
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._topic_id = UNKNOWN
        self._kept: Entry | None = None
        """The position of the journal from which the topic is read."""
        self._next = 0
        self._waiting: list[tuple[int, InboxCommand]] = []
        self._unread: str | None = None
        self._passed_over = 0
        """Records that are no command, in the last reading."""
        self._end = 0
        """How far the topic went when it was opened."""
        self._caught_up = False
        self._try_again = 0.0

    def read(self, view: JournalState) -> tuple[InboxCommand, ...]:
        """See `CommandInbox`."""
        with self._lock:
            self._passed_over = 0
            kept = view.get(POSITION)
            done = 0 if kept == self._kept else _position(kept, TopicEndOffset(self._topic_id, self._next)) or 0
            self._waiting = [
                (offset, one) for offset, one in self._waiting if offset >= done and not is_answered(one.id, view)
            ]
            try:
                if self._consumer is None and time.monotonic() >= self._try_again:
                    self._consumer = self._open(view)
                if self._consumer is not None:
                    self._read_on(self._consumer, view)
                    self._unread = None
            except KafkaException as failed:
                self._unread = f"commands could not be read from {self._topic}: {error_text(failed.args[0])}"
                self._forget()
            return tuple(one for _, one in self._waiting)

    def problem(self) -> str | None:
        """See `CommandInbox`."""
        skipped = f"skipped {counted(self._passed_over, 'record')} of {self._topic}: no command"
        return self._unread or (skipped if self._passed_over else None)

    def unread(self) -> str | None:
        """See `CommandInbox`."""
        return self._unread

    def caught_up(self) -> bool:
        """See `CommandInbox`: the end of the partition, as of now or as of the opening, was reached once."""
        return self._caught_up

    def close(self) -> None:
        """See `CommandInbox`."""
        with self._lock:
            self._forget()

    def _open(self, view: JournalState) -> Consumer:
        """A consumer from the journal's position on, or from the beginning of a recreated topic."""
        end = end_of(self._config, self._topic)
        self._topic_id, self._began_at, self._end = end.topic_id, self._began_at or end, end.offset
        self._kept = view.get(POSITION)
        position = _position(self._kept, end)
        self._next = end.offset if position is None else position
        consumer = Consumer(client_settings(self._config, reader_config(f"{self._prefix}-reader")))
        consumer.assign([TopicPartition(self._topic, _PARTITION, self._next)])
        return consumer

    def _read_on(self, consumer: Consumer, view: JournalState) -> None:
        """Until enough commands wait, all was read, or the time for it is over: junk takes no command's turn."""
        until = time.monotonic() + _READ_S
        while len(self._waiting) < MOST_AT_ONCE and self._fetch(consumer, view) and time.monotonic() < until:
            pass

    def _fetch(self, consumer: Consumer, view: JournalState) -> bool:
        """Whether there may be more now."""
        found = consumer.consume(MOST_AT_ONCE - len(self._waiting), timeout=_POLL_S)
        more = bool(found)
        for message in found:
            error, offset = message.error(), message.offset()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 as above
                self._caught_up, more = True, False
                continue
            if error is not None:
                raise KafkaException(error)
            if offset is None or offset < self._next:  # the topic was made anew under the same name
                raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_ID))
            self._next = offset + 1
            value = message.value()
            command = command_of(value.encode() if isinstance(value, str) else value)
            if command is None:
                self._passed_over += 1
                continue
            if is_answered(command[0], view):
                continue
            after = JournalWrite(POSITION, KIND, {"topic_id": self._topic_id, "next": self._next})
            self._waiting.append((offset, InboxCommand(*command, after, self._came(offset, message))))
        self._caught_up = self._caught_up or self._next >= self._end
        return more

    def _came(self, offset: int, message: Message) -> CommandOrigin:
        kind, at_ms = message.timestamp()
        began_at = self._began_at
        live = began_at is not None and (offset >= began_at.offset or is_other(self._topic_id, began_at.topic_id))
        return CommandOrigin(live=live, at_ms=at_ms if kind == TIMESTAMP_LOG_APPEND_TIME else None)

    def _forget(self) -> None:
        consumer, self._consumer = self._consumer, None
        self._waiting = []
        self._try_again = time.monotonic() + 1
        if consumer is not None:
            consumer.close()


def end_of(config: Config, topic: str) -> TopicEndOffset:
    """End offset of the topic now. Raises KafkaException."""
    admin = AdminClient(client_settings(config))
    topic_id = _topic_id(admin, topic, _ASK_S)
    partition = TopicPartition(topic, _PARTITION)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call] # not annotated
    asked = admin.list_offsets({partition: latest}, request_timeout=_ASK_S)
    return TopicEndOffset(topic_id, int(asked[partition].result().offset))


def first_position(view: JournalState, end: TopicEndOffset) -> tuple[JournalWrite, ...]:
    """For a journal that has none: what stood in the topic before it was asked of another one."""
    if POSITION in view:
        return ()
    return (JournalWrite(POSITION, KIND, {"topic_id": end.topic_id, "next": end.offset}),)


def _position(kept: Entry | None, end: TopicEndOffset) -> int | None:
    """From which offset on nothing is answered yet, in a topic that goes so far; None where the journal has none.

    0 for another topic than the one that it was kept for: that one was made after it. Where no id tells them apart, a
    topic that is shorter is another one; the same topic was cut.
    """
    if kept is None or kept.kind != KIND:
        return None
    following = kept.value.get("next")
    if not isinstance(following, int) or following < 0:
        return 0
    known = id_of(kept.value.get("topic_id"))
    if is_other(known, end.topic_id) or (UNKNOWN in (known, end.topic_id) and following > end.offset):
        return 0
    return min(following, end.offset)


def _wait_for_topic(admin: AdminClient, topic: str, timeout_s: float) -> None:
    """Brokers learn of a topic one after the other: only what stays unknown for a moment is not there.

    Raises KafkaException.
    """
    until = time.monotonic() + min(_NEWS_S, timeout_s)
    while True:
        try:
            _topic_id(admin, topic, timeout_s)
        except KafkaException as failed:
            if failed.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART or time.monotonic() > until:
                raise
            time.sleep(_POLL_S)
        else:
            return


def _topic_id(admin: AdminClient, topic: str, timeout_s: float) -> str:
    """Raises KafkaException."""
    asked = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)
    return id_of(asked[topic].result().topic_id)


def _unsent(topic: str, error: KafkaError) -> ClusterUnreachable | ConfigError:
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):  # noqa: SLF001 as above
        return ConfigError(f"There is no topic {topic}", why=NO_EXECUTOR, todo=start_executor("topics.prefix"))
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return ConfigError(
            f"This user may not write {topic}",
            why="the right to write to it is the right to command the agent",
            todo="Grant this user Write on the topic.",
        )
    return ClusterUnreachable(f"The command could not be written to {topic} in time", why=error_text(error))


SEND_MS = 10_000
"""Deadline of writing one command."""
POLL_S = 0.5
OLD_MS = 900_000
"""A leader confirms its lead every five minutes; one without a confirmation for three times as long may be gone."""


def new_command(
    verb: CommandVerb, who: str, proposal_id: str | None = None, *, plan_hash: str | None = None, reason: str = ""
) -> OperatorCommand:
    """A new command of that person, with a fresh id and the time of now."""
    name = f"{verb.value}-{os.urandom(8).hex()}"
    return OperatorCommand(name, verb, who, time.time_ns() // 1_000_000, proposal_id, plan_hash, reason)


def ask_leader(
    plan: LeadershipPlan,
    command: OperatorCommand,
    wait_s: float,
    *,
    journal: Callable[[], JournalState],
    note: Callable[[str], None] = lambda _: None,
    poll_s: float = POLL_S,
) -> LeaderAnswer:
    """The leading agent's answer, which may be a refusal. Raises GaveUp when no agent leads, or none answers in time.

    ``journal`` returns what the journal has by now, ``note`` gets a sentence about a leader that may be gone.
    """
    leader = _leader(journal(), note)
    _send(plan, command, leader)
    until = time.monotonic() + wait_s
    silence = f"{leader.agent} on {leader.host}, the last leading agent, did not answer"
    while time.monotonic() < until:
        try:
            found = answer_to(journal(), command.id)
        except JournalUnavailable as error:  # the command was sent, so it may be obeyed all the same
            found, silence = None, f"the journal, where the answer is written, cannot be read: {error.why}"
        if found is not None:
            return found.answer
        time.sleep(poll_s)
    raise GaveUp(
        f"No agent answered within {wait_s:.0f} s",
        why=f"{silence}; the command was sent, and the leading agent may still carry it out",
        todo="Check that an agent runs in mode execute; a late answer is listed by: rackwise proposals history",
    )


def _leader(view: JournalState, note: Callable[[str], None]) -> LeaderEntry:
    found = leader_in(view)
    if found is None:
        raise GaveUp(
            "No agent leads, and none has led yet",
            why="an agent in mode execute carries out commands, and the journal names none",
            todo="Start one with: rackwise run --mode execute",
        )
    idle_ms = time.time_ns() // 1_000_000 - confirmed_ms(view, found)
    if idle_ms > OLD_MS:
        note(f"note: {found.agent} on {found.host}, the last leading agent, confirmed it {lasted(idle_ms)} ago")
    return found


def _send(plan: LeadershipPlan, command: OperatorCommand, leader: LeaderEntry) -> None:
    record = _proven(plan, command_to_json(command), plan.cluster or leader.cluster)
    if plan.file is not None:
        spool_command(plan.spool_directory, record, at_ms=command.at_ms)
        return
    send_command(
        plan.config,
        plan.commands_topic,
        record,
        cluster=leader.cluster,
        sender=command.who,
        at_ms=command.at_ms,
        timeout_ms=SEND_MS,
    )


def _proven(plan: LeadershipPlan, record: dict[str, Any], cluster: str) -> dict[str, Any]:
    """The record with the code of the person, or of the agent that vouches for one."""
    if plan.signer is not None:
        return signed(record, plan.signer, cluster)
    return record if plan.witness is None else witnessed(record, plan.witness, cluster)

"""The lease: the agent that owns partition 0 of the lock topic in a consumer group may lead; settings of leadership.

Invariants: `may_act` is True only while the last poll is recent enough that the coordinator cannot have reassigned the
partition; an assignment once in doubt is never trusted again. The journal's fence, not the lease, decides the writer.
Members use the cooperative protocol, so a standby that joins or leaves takes nothing from the leader, and leave the
group when they end, so that no election waits for the session timeout.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from agent.act.journal.journal_topic import JournalWatermark
from agent.errors import LEASE, BadInput, thread, unexpected
from agent.execute.commands.command_context import CommandSigner, CommandWitness
from agent.journal.entries import JournalKey, JournalTrust
from agent.journal.record_trust import checked_watermark, signed_watermark
from agent.record.librdkafka import NOT_ALLOWED, client_settings, error_text
from agent.record.own_topics import OwnTopic
from agent.values.kafka import (
    ALLOW_CREATE_TOPICS,
    AUTO_COMMIT,
    AUTO_OFFSET_STORE,
    COMPACT,
    COOPERATIVE_STICKY,
    DELETE,
    FETCH_WAIT_MS,
    GROUP_ID,
    LOG_APPEND_TIME,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGE_BYTES_DEFAULT,
    OFFSET_RESET,
    PARTITION_ASSIGNMENT_STRATEGY,
    TIMESTAMP_TYPE,
    UNCLEAN_ELECTION,
)

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipPlan:
    """Settings of leadership; the time limits are in milliseconds."""

    config: Mapping[str, str | int] = field(repr=False)
    """confluent-kafka's configuration of the executor; it may hold secrets."""
    observer: Mapping[str, str | int] | None = field(default=None, repr=False)
    """The observer's, where it is another user's; that one is to write neither journal nor commands."""
    agent: str
    """Name of this agent among those of the cluster."""
    file: Path | None = None
    """The journal of a single host; None keeps it in Kafka."""
    spool: Path | None = None
    """Commands of a single host; ``<file>.commands`` when not given."""
    prefix: str = "rackwise"
    journal_topic: str = "rackwise.journal"
    leader_topic: str = "rackwise.leader"
    commands_topic: str = "rackwise.commands"
    replication_factor: int = 3
    min_insync_replicas: int = 2
    session_ms: int = 10_000
    deadline_ms: int = 10_000
    """Longest that one append may take."""
    keys: tuple[JournalKey, ...] = field(default=(), repr=False)
    """By which the journal in Kafka is signed: the key in force, then former ones. None: every record counts."""
    unsigned_below: int = 0
    """Offset of the journal below which records from before there was a key count."""
    cluster: str = ""
    """Id of the cluster, where it is known before anything is read."""
    signer: CommandSigner | None = field(default=None, repr=False)
    """Signer of the commands that this process sends; None: unsigned."""
    witness: CommandWitness | None = field(default=None, repr=False)
    """The agent that vouches for people who sign in at its page, where commands are sent from there."""

    @property
    def spool_directory(self) -> Path:
        """Directory of commands when the journal is a file."""
        file = self.file or Path("rackwise.journal")
        return self.spool or file.with_name(f"{file.name}.commands")

    def topics(self) -> tuple[OwnTopic, ...]:
        """The topics by which agents agree; none when the journal is a file."""
        if self.file is not None:
            return ()
        lock = OwnTopic(
            name=self.leader_topic,
            partitions=1,
            replication_factor=self.replication_factor,
            min_insync_replicas=self.min_insync_replicas,
            cleanup_policy=DELETE,
            retention_ms=_DAY_MS,
        )
        configs = (
            (UNCLEAN_ELECTION, "false"),  # a replica that is behind would cut the journal
            ("segment.bytes", "16777216"),  # only closed segments are compacted
            (MAX_MESSAGE_BYTES, str(MAX_MESSAGE_BYTES_DEFAULT)),
        )
        journal = replace(lock, name=self.journal_topic, cleanup_policy=COMPACT, retention_ms=-1, configs=configs)
        # The age of a command is then by one clock, the broker's, not its sender's.
        arrival = ((TIMESTAMP_TYPE, LOG_APPEND_TIME),)
        return journal, lock, replace(lock, name=self.commands_topic, configs=arrival)


_PARTITION = 0
_WATERMARK = re.compile(r"(?P<epoch>0|[1-9][0-9]{0,17})(?: (?P<end>0|[1-9][0-9]{0,17}))?")
"""Up to version 0.1 an epoch alone."""
HEARTBEAT_MS = 1_000
_POLL_S = 0.25
_RETRY_S = 1.0
_JOIN_S = 5.0
_LEAVE_S = 1.5
"""So long a rebalance that has begun is waited for before leaving: others learn of it with their next heartbeat."""
_NEWS_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlan:
    """Lock topic, group and session timeout of the lease."""

    config: Mapping[str, str | int] = field(repr=False)
    """confluent-kafka's configuration; it may hold secrets."""
    topic: str = "rackwise.leader"
    """The lock topic: one partition, no records."""
    prefix: str = "rackwise"
    session_ms: int = 10_000
    """Session timeout: without a heartbeat for so long, the group elects another leader."""
    trust: JournalTrust = field(default_factory=JournalTrust, repr=False)
    """By which the group's memory of the journal is signed and checked."""

    @property
    def group(self) -> str:
        """The group of all agents of the cluster."""
        return f"{self.prefix}-leader"

    @property
    def valid_ms(self) -> int:
        """How long after a poll the lease is sure: the session without the heartbeats that may have been missed."""
        return self.session_ms - 2 * HEARTBEAT_MS


def awake_ms() -> int:
    """Milliseconds on a clock that also counts while the machine sleeps, where there is one."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class KafkaLease:
    """Takes part in the election from `start` to `close`, in a thread of its own."""

    def __init__(self, plan: LeasePlan, *, clock_ms: Callable[[], int] = awake_ms) -> None:
        self._plan = plan
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._polled_ms = clock_ms()
        self._held = self._leaving = False
        self._term = 0
        self._problem: str | None = None
        self._problem_ms = 0
        self._unremembered: str | None = None
        self._reached = self._committed = JournalWatermark()
        self._thread = thread(LEASE, self._run)

    def start(self) -> None:
        """Begin to take part."""
        self._thread.start()

    @property
    def term(self) -> int | None:
        """Counts the times that this agent was chosen; None while it is not, or while that is not sure."""
        with self._lock:
            return self._term if self._held and self._clock_ms() - self._polled_ms <= self._plan.valid_ms else None

    def may_act(self) -> bool:
        """Whether this agent leads, beyond doubt, at this moment. Callable from any thread."""
        return self.term is not None

    def valid_for_s(self) -> float:
        """For how many seconds it surely leads without another answer of its group; 0 when it does not."""
        with self._lock:
            left_ms = self._plan.valid_ms - (self._clock_ms() - self._polled_ms)
            return max(0, left_ms) / 1_000 if self._held else 0.0

    def set_reached(self, reached: JournalWatermark) -> None:
        """Have the group remember how far its journal has come."""
        self._reached = reached

    def problem(self) -> str | None:
        """The client's last error that keeps the election from going on, while it is recent."""
        return self._problem if self._clock_ms() - self._problem_ms <= _NEWS_MS else None

    def notice(self) -> str | None:
        """Why the group does not remember how far the journal has come; None while it does, or need not."""
        return self._unremembered

    def close(self, timeout_s: float = _JOIN_S) -> None:
        """Leave the group, so that another is chosen at once; waits that long at most."""
        with self._lock:
            self._held = False
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._take_part()
                # An agent that another one has followed learns of it in this time, and does not join to leave at once.
                self._stop.wait(_RETRY_S)
            except KafkaException as failed:
                self._on_error(failed.args[0])
                self._stop.wait(_RETRY_S)
            except Exception as failed:  # noqa: BLE001 this thread is the only one that takes part in the election
                self._set_problem(unexpected(failed))
                self._stop.wait(_RETRY_S)

    def _take_part(self) -> None:
        """One membership, until it is closed or in doubt."""
        consumer = Consumer(client_settings(self._plan.config, self._membership()))
        self._leaving, self._polled_ms = False, self._clock_ms()
        self._reached = self._committed = JournalWatermark()  # what a former membership knew may be overtaken
        self._unremembered = None
        try:
            consumer.subscribe(
                [self._plan.topic], on_assign=self._on_assign, on_revoke=self._on_taken, on_lost=self._on_taken
            )
            while not self._stop.is_set():
                message = consumer.poll(_POLL_S)
                if self._was_away():
                    return
                error = message.error() if message is not None else None
                if error is not None:
                    self._on_error(error)
                if self._reached != self._committed and self._held:
                    self._remember(consumer)
        finally:
            self._leave(consumer)

    def _remember(self, consumer: Consumer) -> None:
        """Commit how far the journal has come, as metadata: the lock topic itself has no records."""
        reached = self._committed = self._reached
        watermark = signed_watermark(self._plan.trust, f"{reached.epoch} {reached.end}")
        consumer.commit(offsets=[TopicPartition(self._plan.topic, _PARTITION, 0, watermark)], asynchronous=True)

    def _leave(self, consumer: Consumer) -> None:
        """Give up what is held, and have the group know that this member is gone.

        librdkafka's `close` alone does not send it when a cooperative member has no partition, as a standby.
        """
        with self._lock:
            self._held, self._leaving = False, True
        try:
            with suppress(KafkaException):
                consumer.unsubscribe()  # a rebalance that has begun comes first
                until = time.monotonic() + _LEAVE_S
                while consumer.memberid() and time.monotonic() < until:
                    consumer.poll(_POLL_S / 2)
        finally:
            consumer.close()

    def _on_commit(self, error: KafkaError | None, _partitions: list[TopicPartition]) -> None:
        if error is None:
            self._unremembered = None
            return
        if error.code() in NOT_ALLOWED:  # others pass with the next rebalance
            self._unremembered = f"the group does not remember how far the journal has come: {error_text(error)}"
        self._committed = JournalWatermark()  # again with the next poll

    def _on_error(self, error: KafkaError) -> None:
        self._set_problem(error_text(error))

    def _set_problem(self, problem: str) -> None:
        self._problem, self._problem_ms = problem, self._clock_ms()

    def _was_away(self) -> bool:
        """Whether the lease ran out while this process did not run; then this assignment counts no more."""
        with self._lock:
            now_ms = self._clock_ms()
            away = now_ms - self._polled_ms > self._plan.valid_ms
            self._polled_ms = now_ms
            if away:
                self._held = False
            return away

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._lock:
            if _counts(partitions) and not self._leaving:
                if not self._held:
                    self._term += 1
                self._held = True

    def _on_taken(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if _counts(partitions):
            with self._lock:
                self._held = False

    def _membership(self) -> dict[str, Any]:
        return {
            "on_commit": self._on_commit,
            "error_cb": self._on_error,
            GROUP_ID: self._plan.group,
            PARTITION_ASSIGNMENT_STRATEGY: COOPERATIVE_STICKY,
            "session.timeout.ms": self._plan.session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            # A process whose Python hangs while the client's own threads beat on must not keep the lease.
            "max.poll.interval.ms": self._plan.session_ms,
            AUTO_COMMIT: False,
            AUTO_OFFSET_STORE: False,
            OFFSET_RESET: "latest",
            FETCH_WAIT_MS: 5_000,
            ALLOW_CREATE_TOPICS: False,
            "topic.metadata.refresh.interval.ms": 10_000,
        }


def _counts(partitions: list[TopicPartition]) -> bool:
    """A lock topic that was made with more partitions has one leader all the same."""
    return any(one.partition == _PARTITION for one in partitions)


def committed_watermark(plan: LeasePlan, timeout_ms: int) -> JournalWatermark:
    """What the group remembers of its journal; nothing reached when it remembers nothing.

    Raises KafkaException when the coordinator does not answer, BadInput for what no agent with this key committed.
    """
    consumer = Consumer(client_settings(plan.config, {GROUP_ID: plan.group, AUTO_COMMIT: False}))
    try:
        (committed,) = consumer.committed([TopicPartition(plan.topic, _PARTITION)], timeout=timeout_ms / 1_000)
    finally:
        consumer.close()
    if committed.error is not None:
        raise KafkaException(committed.error)
    return watermark_of(plan, committed.metadata or "")


def watermark_of(plan: LeasePlan, metadata: str) -> JournalWatermark:
    """Content of committed metadata. Raises BadInput, see `committed_watermark`."""
    if not metadata:
        return JournalWatermark()
    text, doubt = checked_watermark(plan.trust, metadata)
    unsigned = "|" not in metadata
    if doubt is not None and not (unsigned and plan.trust.unsigned_below):
        raise BadInput(
            f"What group {plan.group} remembers of the journal is not signed with this agent's key",
            why=f"{doubt.value}; only the executor needs Read on this group",
            todo=(
                "Give all agents the same execute.journal_key_file. If they have it: stop all agents of mode execute,"
                f" run kafka-consumer-groups --delete --group {plan.group}, and start them again."
            ),
        )
    match = _WATERMARK.fullmatch(text)
    return JournalWatermark() if match is None else JournalWatermark(int(match["epoch"]), int(match["end"] or 0))

"""Kafka journal: one compacted topic, one partition, one writer at a time by its transactional id.

Invariants: opening fences the former writer, then reads; one agent writes an epoch. A fenced writer has written nothing
and never uses the transactional id again. After a commit without an answer, the topic is read before the next write.
KIP-98, KIP-360.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from agent.act.journal.journal import TopicRead, is_other, journal_lost_error
from agent.act.journal.journal_topic import (
    FENCED,
    JournalTopic,
    JournalWatermark,
    KafkaJournalPlan,
    check,
    fenced_out,
    topic_gone_error,
    untangled,
    writer_error,
    writer_settings,
)
from agent.errors import BadInput, ConfigError, JournalUnavailable, RackwiseError
from agent.journal import entries, record_trust
from agent.journal.entries import EncodedWrite, JournalState, JournalWrite, applied, numbered, rewritten
from agent.journal.record_trust import LEADER, leader_in, leader_write
from agent.record.librdkafka import client_settings, error_text
from agent.telemetry.topic_records import headers, source
from agent.values.clock import Clock, system_clock
from agent.values.kafka import MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES_DEFAULT

ENTRY = "rackwise.journal.entry.v1"
GONE = "rackwise.journal.gone.v1"
_PARTITION = 0
_PAUSE_S = 0.1
_PATIENCE = 3
"""So many appends long may be waited for what takes many answers, one after the other, or new topics of brokers."""
_CLOSE_S = 1.0
_LEAST_BYTES_PER_S = 2_000_000
"""An append may take longer by its bytes at this rate."""
_MOST_LONGER_S = 25.0
"""Beside three appends' time this stays below the time-out of a transaction."""
_LOOK_AGAIN_S = 60.0
"""Records of others make the journal be read again at most so often."""
_NOTHING_REACHED = JournalWatermark()


class KafkaJournal:
    """A `JournalPort`; make it with `open`."""

    def __init__(self, plan: KafkaJournalPlan, producer: Producer, clock: Clock) -> None:
        self._plan = plan
        self._producer = producer
        self._clock = clock
        self._lock = threading.RLock()
        self._reader = JournalTopic(plan.config, plan.topic, plan.prefix, plan.trust)
        self._topic_id = ""
        self._view: JournalState = {}
        self._epoch = 0
        self._seq = 0
        self._end = 0
        """No record of ours can get a lower offset."""
        self._ended: RackwiseError | None = None
        self._finish: Callable[[float], None] | None = None
        """What ends the transaction that is still open, commit or abort."""
        self._doubtful = False
        """Whether the view may lack what was committed."""
        self._next: int | None = None
        """Offset of our next record if no other client writes; None when that is not known."""
        self._look_again = 0.0
        self._notice: str | None = None
        self._doubted = 0

    @classmethod
    def open(
        cls, plan: KafkaJournalPlan, *, clock: Clock = system_clock, watermark: JournalWatermark = _NOTHING_REACHED
    ) -> Self:
        """Look, fence the former writer, read everything, and write the new epoch as the first transaction.

        ``watermark`` is how far this journal is known to have come. Raises BadInput and ConfigError, before
        a writer is fenced, when the journal cannot be believed or is a newer rackwise's; FencedOut when another agent
        opens it at the same time; JournalUnavailable.
        """
        check_watermark(plan, watermark)
        journal = cls(plan, Producer(client_settings(plan.config, writer_settings(plan))), clock)
        try:
            journal._begin(watermark)
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def epoch(self) -> int:
        """The leadership under which this writer writes."""
        return self._epoch

    @property
    def ended(self) -> RackwiseError | None:
        """Why this writer can never write again; None while it can."""
        return self._ended

    @property
    def reached(self) -> JournalWatermark:
        """Epoch and end offset that the journal has surely reached."""
        return JournalWatermark(self._epoch, self._end)

    @property
    def doubted(self) -> int:
        """Records of others that were seen in the topic."""
        return self._doubted

    def notice(self) -> str | None:
        """A sentence about records of others; None while none was seen."""
        return self._notice

    def view(self) -> JournalState:
        """The journal's present state; reads the topic first when that is in doubt, and raises as `append` does."""
        with self._lock:
            self._settle()
            return self._view

    def append(self, *writes: JournalWrite) -> None:
        """One transaction; see `JournalPort`. BadInput, before anything is done, for what no journal can hold."""
        with self._lock:
            self._settle()
            changes = numbered(writes, at_ms=self._clock().wall_ms, epoch=self._epoch, first_seq=self._seq)
            if changes:
                self._write(changes, _until(self._plan) + _long(changes))

    def close(self) -> None:
        """Write no more. What another opens afterwards ends a transaction that is still open."""
        self._ended = self._ended or JournalUnavailable("The journal is closed", why="this agent no longer leads")
        if self._lock.acquire(timeout=_CLOSE_S):  # an append that waits for brokers ends by its own deadline
            try:
                self._reader.close()
                if self._finish is not None:  # left open, it would hide from readers what comes after it
                    with suppress(RackwiseError):
                        self._calls(lambda: self._abort(time.monotonic() + _CLOSE_S))
                self._producer.purge()
            finally:
                self._lock.release()

    def _begin(self, watermark: JournalWatermark) -> None:
        plan = self._plan
        # The first writer ever waits until brokers have made the topic of their transactions.
        fenced_until = _patient_until(plan)
        self._calls(lambda: self._retrying(self._producer.init_transactions, fenced_until))
        bounds = self._reader.bounds(_patient_until(plan))
        read = self._reader.read(bounds.end, _patient_until(plan))
        check(plan, bounds, read, watermark)
        self._topic_id, self._view, self._end = bounds.topic_id, read.view, read.end
        self._epoch = max(read.newest_epoch, watermark.epoch) + 1
        now_ms = self._clock().wall_ms
        leader = plan.leader._replace(since_ms=now_ms)
        first = numbered((leader_write(leader),), at_ms=now_ms, epoch=self._epoch, first_seq=0)
        first = (*first, *self._again(read, first_seq=1))
        # The writer has still to find the topic's leader.
        self._write(first, _patient_until(plan) + _long(first))
        # Up to the own record everything is seen now, whichever replica answered before.
        self._reread()
        if leader_in(self._view) != leader or self._view[LEADER].epoch != self._epoch:
            raise JournalUnavailable(
                f"The journal {plan.topic} changed while it was opened", why="another writer used the same epoch"
            )

    def _again(self, read: TopicRead, *, first_seq: int) -> tuple[EncodedWrite, ...]:
        """Every entry again, signed with the key in force, where the last record of a key is something else.

        Compaction keeps the last record of a key, from any writer.
        """
        self._doubted = read.doubted_count
        sentence = record_trust.rejection_sentence(read.doubted, read.doubted_count, self._plan.topic)
        self._notice = sentence or self._notice
        if not read.overwrite:
            return ()
        view = {key: entry for key, entry in read.view.items() if key != LEADER}
        gone = read.overwrite - {LEADER}
        return rewritten(view, gone, at_ms=self._clock().wall_ms, epoch=self._epoch, first_seq=first_seq)

    def _write(self, changes: Sequence[EncodedWrite], until: float) -> None:
        """Write them all or nothing; the view has them afterwards."""
        sent: list[int | KafkaError] = []
        self._seq = changes[-1].entry.seq + 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            sent.append(error if error is not None else -1 if offset is None else offset)

        self._calls(self._producer.begin_transaction)
        self._finish = self._abort
        try:
            with untangled():
                for change in changes:
                    self._produce(change, delivered)
                self._producer.flush(max(0.0, until - time.monotonic()))
        except (KafkaException, BufferError) as error:
            self._take_back(error)
        failed = next((one for one in sent if isinstance(one, KafkaError)), None)
        if failed is not None:
            self._take_back(KafkaException(failed))
        if len(sent) < len(changes):
            self._take_back(KafkaException(KafkaError(KafkaError._TIMED_OUT)))  # noqa: SLF001 as above
        offsets = [one for one in sent if isinstance(one, int)]
        if min(offsets) < self._end:
            self._take_back(
                journal_lost_error(self._plan.topic, f"its end went back from {self._end} to {min(offsets)}")
            )
        self._finish, self._doubtful = self._commit, True
        self._calls(lambda: self._commit(until))
        self._finish, self._doubtful = None, False
        self._notice_others(min(offsets))
        self._end = max(offsets) + 1
        self._next = self._end + 1  # one offset is the marker of this transaction
        self._view = applied(self._view, changes)

    def _notice_others(self, first: int) -> None:
        """Offsets between two transactions of ours are records that another client wrote."""
        if self._next is None or first <= self._next:
            return
        self._notice = f"another client wrote {self._plan.topic} at offsets {self._next} to {first - 1}"
        # Without a key another client's records cannot be distinguished from own ones.
        if self._plan.keys and time.monotonic() >= self._look_again:
            self._look_again = time.monotonic() + _LOOK_AGAIN_S
            self._doubtful = True

    def _produce(self, change: EncodedWrite, delivered: Callable[[KafkaError | None, Message], None]) -> None:
        plan, (entry, data) = self._plan, change
        key = entries.key_bytes(entry.key)
        attributes = headers(
            event_id=f"{entry.epoch}-{entry.seq}",
            source=source(plan.leader.cluster, plan.leader.agent),
            kind=GONE if data is None else ENTRY,
            subject=entry.key,
            time_ms=entry.at_ms,
            schema=entries.SCHEMA_ID,
        )
        codes = plan.trust.signed(key, (entry.epoch, entry.seq), data)
        signed = [] if codes is None else [(entries.CODE_HEADER, codes.encode())]
        self._producer.produce(
            plan.topic,
            value=data,
            key=key,
            partition=_PARTITION,
            on_delivery=delivered,
            headers=[*attributes, *signed],
        )

    def _take_back(self, cause: Exception) -> None:
        """Abort, then raise: nothing of it is written, whenever the abort comes to its end."""
        self._next = None
        cause = self._cause(cause)
        try:
            self._calls(lambda: self._abort(_until(self._plan)))
        except JournalUnavailable as ended:  # a refused write leaves no way to abort: the refusal is the reason
            if ended is self._ended and isinstance(cause, KafkaException):
                ended.why = f"{error_text(cause.args[0])}; {ended.why}"
            raise
        self._finish = None
        if isinstance(cause, KafkaException):
            self._check_fatal(cause)
            if cause.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise BadInput(
                    f"The record for the journal {self._plan.topic} is too big",
                    why=error_text(cause.args[0]),
                    todo=f"Raise the topic's {MAX_MESSAGE_BYTES} to Kafka's default, {MAX_MESSAGE_BYTES_DEFAULT}.",
                ) from cause
            raise writer_error(cause, self._plan.topic) from cause
        if isinstance(cause, BadInput):
            self._ended = cause
            raise cause
        raise JournalUnavailable(f"The journal {self._plan.topic} could not be written", why=str(cause)) from cause

    def _cause(self, cause: Exception) -> Exception:
        """A refused write shows at its records as purged only; the client has the reason when it is asked to commit."""
        if isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError._PURGE_QUEUE:  # noqa: SLF001 as above
            try:
                self._producer.commit_transaction(_PAUSE_S)  # of a transaction that has failed: it cannot
            except KafkaException as failed:
                return failed
        return cause

    def _settle(self) -> None:
        """After this the view is certain, and a transaction may begin."""
        if self._ended is not None:
            raise self._ended
        if (finish := self._finish) is not None:
            self._calls(lambda: self._end_open(finish))
            self._finish = None
        if self._doubtful:
            again = self._again(self._reread(), first_seq=self._seq)
            self._doubtful = False
            if again:
                self._write(again, _patient_until(self._plan) + _long(again))

    def _reread(self) -> TopicRead:
        try:
            bounds = self._reader.bounds(_patient_until(self._plan))
        except ConfigError as error:
            raise topic_gone_error(self._plan.topic) from error
        if is_other(bounds.topic_id, self._topic_id) or bounds.end < self._end:
            raise self._forgot()
        read = self._reader.read(bounds.end, _patient_until(self._plan))
        if read.newest_epoch < self._epoch:  # its own first record is gone, and no id shows another topic
            raise self._forgot()
        if read.newest_epoch > self._epoch:
            self._ended = fenced_out(self._plan.topic, f"epoch {read.newest_epoch} has begun")
            raise self._ended
        self._view, self._end, self._next = read.view, read.end, None
        self._reader.close()
        return read

    def _forgot(self) -> BadInput:
        """Ends this writer."""
        why = "the topic was deleted and created again after this agent began to lead"
        self._ended = ended = journal_lost_error(self._plan.topic, why)
        return ended

    def _end_open(self, finish: Callable[[float], None]) -> None:
        try:
            finish(_until(self._plan))
        except KafkaException as failed:
            if failed.args[0].code() != KafkaError._STATE:  # noqa: SLF001 as above
                raise
            # The client has ended it already; its outcome is in the topic.

    def _commit(self, until: float) -> None:
        """Raises KafkaException when it is not known to be over."""
        try:
            self._retrying(self._producer.commit_transaction, until)
        except KafkaException as failed:
            if failed.args[0].txn_requires_abort():
                self._finish = self._abort
            raise

    def _abort(self, until: float) -> None:
        self._retrying(self._producer.abort_transaction, until)

    def _retrying(self, call: Callable[[float], None], until: float) -> None:
        while True:
            try:
                call(max(_PAUSE_S, until - time.monotonic()))
            except KafkaException as failed:
                error: KafkaError = failed.args[0]
                if not error.retriable() or time.monotonic() >= until:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return

    def _calls(self, call: Callable[[], None]) -> None:
        """The call, with the client's errors as ours."""
        try:
            with untangled():
                call()
        except KafkaException as failed:
            self._check_fatal(failed)
            raise writer_error(failed, self._plan.topic) from failed

    def _check_fatal(self, failed: KafkaException) -> None:
        """Raises FencedOut, or JournalUnavailable for good, when this writer can never write again.

        A client that ends by itself, as after a coordinator that died in the middle of a transaction, fences no writer:
        the agent that still has the lease opens another writer under the next epoch.
        """
        error: KafkaError = failed.args[0]
        if error.code() in FENCED:
            self._ended = fenced_out(self._plan.topic, error_text(error))
        elif error.fatal():
            self._ended = JournalUnavailable(
                f"The writer of the journal {self._plan.topic} cannot continue",
                why=error_text(error),
                todo="A new writer is opened while this agent leads.",
            )
        if self._ended is not None:
            raise self._ended from failed


def check_watermark(plan: KafkaJournalPlan, watermark: JournalWatermark) -> None:
    """Look whether this journal may be gone on with; nothing is written, and no writer is fenced.

    Raises as `KafkaJournal.open` does.
    """
    reader = JournalTopic(plan.config, plan.topic, plan.prefix, plan.trust)
    until = _patient_until(plan)
    try:
        bounds = reader.bounds(until)
        reader.check_kept(until)
        # Who is to be fenced may have left a transaction open: only what is decided can be read before.
        check(plan, bounds, reader.read(bounds.decided, _patient_until(plan)), watermark)
    finally:
        reader.close()


def _patient_until(plan: KafkaJournalPlan) -> float:
    return time.monotonic() + _PATIENCE * plan.deadline_ms / 1_000


def _long(changes: Sequence[EncodedWrite]) -> float:
    """Seconds more for what is large, such as the partitions of a plan; the transaction itself must not time out."""
    size = sum(len(change.data or b"") for change in changes)
    return min(size / _LEAST_BYTES_PER_S, _MOST_LONGER_S)


def _until(plan: KafkaJournalPlan) -> float:
    return time.monotonic() + plan.deadline_ms / 1_000

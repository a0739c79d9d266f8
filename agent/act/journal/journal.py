"""Entries of the journal, read from the records of its topic."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from agent.errors import BadInput
from agent.journal.entries import (
    CODE_HEADER,
    Entry,
    JournalState,
    JournalTrust,
    NewerEntryError,
    UnreadableEntryError,
    entry_of,
    key_of,
)
from agent.journal.record_trust import RecordVerifier, RejectedRecord, RejectionReason, VerifiedRecord, codes_by_key

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

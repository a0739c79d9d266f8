"""Codec of journal entries and of the partition columns of plans.

Invariants: `entry_of(key, to_bytes(entry)) == entry` for entries of this version; unknown fields of a value are kept.
Changes within a version are additive; a newer version is `NewerEntryError`, so an older agent reads but does not write.
Foreign bytes raise `UnreadableEntryError` only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from agent.errors import BadInput
from agent.values.journal import Entry, JournalState, JournalWrite
from agent.values.reassignment import ReassignmentTarget
from agent.values.typed_json import ForeignJsonError, UnreadableError, from_json, is_time, read_json
from assignors.problem import TopicPartition

T = TypeVar("T")
VERSION = 1
SCHEMA_ID = f"urn:rackwise:journal:v{VERSION}"
MAX_VALUE_BYTES = 900_000
"""Below what a broker takes as one record by default, with room for key and headers."""
MAX_KEY_BYTES = 65_536
"""Kafka takes names of groups of half this length, and keys are made of names."""
MOST_EPOCH = 2**53
"""No journal comes to so many leaderships or entries; what counts on from here stays within 64 bits."""


class UnreadableEntryError(ValueError):
    """The bytes are no entry of the journal, for the reason in the sentence."""


class NewerEntryError(UnreadableEntryError):
    """The entry was written by a newer rackwise, whose layout this one does not know."""


class JournalRecord(NamedTuple):
    """An entry as it is written; its key stands beside it."""

    v: int
    """Version of this layout."""
    kind: str
    """What sort of entry it is."""
    at_ms: int
    """Epoch milliseconds of the writer's clock."""
    epoch: int
    """Which leadership wrote it."""
    seq: int
    """Counts the entries of an epoch."""
    value: Mapping[str, object]
    """The content; its shape is that of the key's first part and the kind."""


class EncodedWrite(NamedTuple):
    """A write with its place in the journal and its bytes."""

    key: str
    kind: str
    at_ms: int
    epoch: int
    seq: int
    data: bytes | None
    """None deletes the key."""


def numbered(writes: Iterable[JournalWrite], *, at_ms: int, epoch: int, first_seq: int) -> tuple[EncodedWrite, ...]:
    """The writes as they are written. Raises BadInput, before anything is done, for what no journal can hold."""
    return tuple(_numbered(write, at_ms, epoch, seq) for seq, write in enumerate(writes, first_seq))


def rewritten(
    view: JournalState, gone: Iterable[str], *, at_ms: int, epoch: int, first_seq: int
) -> tuple[EncodedWrite, ...]:
    """The same journal again, in the same order and with the times of its entries; ``gone`` are deleted again."""
    entries = sorted(view.values(), key=lambda entry: (entry.epoch, entry.seq))
    again = [
        EncodedWrite(one.key, one.kind, one.at_ms, epoch, seq, to_bytes(one._replace(epoch=epoch, seq=seq)))
        for seq, one in enumerate(entries, first_seq)
    ]
    deletions = (JournalWrite(key, "deleted", None) for key in sorted(set(gone) - set(view)))
    return (*again, *numbered(deletions, at_ms=at_ms, epoch=epoch, first_seq=first_seq + len(again)))


def applied(view: JournalState, changes: Iterable[EncodedWrite]) -> JournalState:
    """The journal with these writes, decoded from the written bytes."""
    after = dict(view)
    for change in changes:
        if change.data is None:
            after.pop(change.key, None)
        else:
            after[change.key] = entry_of(change.key, change.data)
    return MappingProxyType(after)


def to_bytes(entry: Entry) -> bytes:
    """One line of JSON with sorted keys. Raises ValueError or TypeError for a value that is not JSON-ready."""
    record = {"v": VERSION, **entry._asdict(), "value": dict(entry.value)}
    del record["key"]
    return json.dumps(record, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def key_bytes(key: str) -> bytes:
    """A key as bytes; names of groups may be anything, also no text."""
    return key.encode(errors="surrogatepass")


def key_of(data: bytes) -> str:
    """The key of these bytes. Raises UnreadableEntryError."""
    try:
        return data.decode(errors="surrogatepass")
    except UnicodeDecodeError as error:
        raise UnreadableEntryError(f"{data[:80]!r} is not a key: {error}") from error


def read_value(kind: type[T], entry: Entry | None) -> T | None:
    """The entry's value as that type; None without an entry, and for a value that is not readable as that type."""
    try:
        return None if entry is None else from_json(kind, entry.value)
    except UnreadableError:
        return None


def read_values(kind: type[T], entries: Iterable[Entry]) -> tuple[T, ...]:
    """The values of the entries that are readable as that type, in their order."""
    return tuple(one for entry in entries if (one := read_value(kind, entry)) is not None)


def entry_of(key: str, data: bytes) -> Entry:
    """The entry. Raises UnreadableEntryError, NewerEntryError."""
    try:
        found = read_json(data, as_seen=True)
    except ForeignJsonError as error:
        raise UnreadableEntryError(f"{key[:80]!r} cannot be read: {error}") from error
    return entry_of_json(key, found)


def entry_of_json(key: str, found: Any) -> Entry:
    """The entry of JSON that was read already. Raises UnreadableEntryError, NewerEntryError."""
    if not isinstance(found, dict):
        raise UnreadableEntryError(f"{key[:80]!r} is not an object")
    version = found.get("v")
    if isinstance(version, int) and version > VERSION:
        raise NewerEntryError(f"{key[:80]!r} was written in layout {version}, and this rackwise knows up to {VERSION}")
    try:
        record = from_json(JournalRecord, found)
    except UnreadableError as error:
        raise UnreadableEntryError(f"{key[:80]!r} is not an entry: {error}") from error
    counts = record.epoch, record.seq
    if record.v != VERSION or min(counts) < 0 or max(counts) > MOST_EPOCH or not is_time(record.at_ms):
        found = f"version {record.v}, epoch {record.epoch}, seq {record.seq}, at {record.at_ms}"
        raise UnreadableEntryError(f"{key[:80]!r} is not an entry: {found}")
    return Entry(key, record.kind, record.value, record.at_ms, record.epoch, record.seq)


def _numbered(write: JournalWrite, at_ms: int, epoch: int, seq: int) -> EncodedWrite:
    if not write.key or len(key_bytes(write.key)) > MAX_KEY_BYTES:
        raise BadInput(
            f"Nothing can be written in the journal under the key {write.key[:80]!r}",
            why=f"a key has 1 to {MAX_KEY_BYTES} bytes",
        )
    data = None
    if write.value is not None:
        data = _checked(write, Entry(write.key, write.kind, write.value, at_ms, epoch, seq))
    return EncodedWrite(write.key, write.kind, at_ms, epoch, seq, data)


def _checked(write: JournalWrite, entry: Entry) -> bytes:
    try:
        data = to_bytes(entry)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"The journal record under {write.key} is not JSON", why=str(error)) from error
    if len(data) + 2 * len(key_bytes(write.key)) > MAX_VALUE_BYTES:  # the key is in a header too
        raise BadInput(
            f"The journal record under {write.key} is too big",
            why=f"{len(data)} bytes, and a record may have {MAX_VALUE_BYTES}",
            todo="Ask for fewer moves at a time (--max-moves).",
        )
    return data


# Columns write each topic and replica list once, about 60 bytes per target. Invariants:
# `targets_of(columns(targets)) == targets`; foreign columns give valid targets or `UnreadableError` in linear time.

MOST_NAMED = 4_000_000
"""Replicas that the targets of one value name together; lists are shared, so few bytes could name very many."""
_MOST_ID = 2**31 - 1
"""Of a partition or a broker, as Kafka has them."""

ColumnsJson = Mapping[str, Any]


class TargetColumns(NamedTuple):
    """Partitions that are to move, as columns of the same length, and the two tables that they point into."""

    topic: tuple[int, ...]
    """Number of its row in ``topics``, from 0."""
    partition: tuple[int, ...]
    before: tuple[int, ...]
    """Number of its row in ``replicas``, from 0."""
    after: tuple[int, ...]
    bytes: tuple[int | None, ...]
    """Size of one replica; null when unknown."""
    bytes_per_s: tuple[float | None, ...]
    """What producers write; null when unknown."""
    gain: tuple[float, ...]
    topics: tuple[tuple[str, str], ...]
    """Name and topic id."""
    replicas: tuple[tuple[int, ...], ...]
    """Brokers in order; the first is the preferred leader."""


def columns(targets: Sequence[ReassignmentTarget]) -> ColumnsJson:
    """The targets as JSON-ready columns, beside tables of topics and replica lists; the order stays."""
    topics: dict[tuple[str, str], int] = {}
    lists: dict[tuple[int, ...], int] = {}
    return {
        "topic": [topics.setdefault((one.id.topic, one.topic_id), len(topics)) for one in targets],
        "partition": [one.id.partition for one in targets],
        "before": [lists.setdefault(one.before, len(lists)) for one in targets],
        "after": [lists.setdefault(one.after, len(lists)) for one in targets],
        "bytes": [one.bytes for one in targets],
        "bytes_per_s": [one.bytes_per_s for one in targets],
        "gain": [one.gain for one in targets],
        "topics": [list(topic) for topic in topics],
        "replicas": [list(replicas) for replicas in lists],
    }


def targets_of(value: ColumnsJson) -> tuple[ReassignmentTarget, ...]:
    """The targets. Raises UnreadableError."""
    try:
        return _targets(from_json(TargetColumns, value))
    except ValueError as error:
        raise UnreadableError(f"no columns of partitions: {error}") from error


class EncodedSize:
    """Bytes of JSON that targets take as columns, one after the other; never fewer than they take."""

    def __init__(self, each: int = 0) -> None:
        """``each`` are bytes that every one of them takes beside its columns."""
        self.bytes = 0
        self._each = each
        self._seen: set[object] = set()

    def more(self, one: ReassignmentTarget) -> int:
        """Bytes that the target adds: numbers of tables below a million, and what the tables do not have yet."""
        cost = self._each + 3 * 7 + len(str(one.id.partition)) + 4
        cost += sum(
            len(repr(number)) for number in (one.bytes, one.bytes_per_s, one.gain)
        )  # `None` is as long as `null`
        if (topic := (one.id.topic, one.topic_id)) not in self._seen:
            cost += len(json.dumps(topic)) + 2
        for replicas in {one.before, one.after} - self._seen:
            cost += sum(len(str(broker)) + 2 for broker in replicas) + 3
        return cost

    def add(self, one: ReassignmentTarget) -> None:
        """Take it in."""
        self.bytes += self.more(one)
        self._seen.update(((one.id.topic, one.topic_id), one.before, one.after))


def runs(targets: Iterable[ReassignmentTarget], most_bytes: int, each: int = 0) -> Iterator[list[ReassignmentTarget]]:
    """The targets in order, cut into runs of at most so many bytes of JSON; none is empty.

    A single target that has more is a run of its own.
    """
    run: list[ReassignmentTarget] = []
    size = EncodedSize(each)
    for one in targets:
        if run and size.bytes + size.more(one) > most_bytes:
            yield run
            run, size = [], EncodedSize(each)
        run.append(one)
        size.add(one)
    if run:
        yield run


def _targets(table: TargetColumns) -> tuple[ReassignmentTarget, ...]:
    """The targets of columns that point into their tables. Raises ValueError for all others."""
    cells, (topics, lists) = table[:-2], table[-2:]
    if len(set(map(len, cells))) != 1:
        raise ValueError("they are of different lengths")
    for indexes, rows in ((table.topic, topics), (table.before, lists), (table.after, lists)):
        if indexes and not 0 <= min(indexes) <= max(indexes) < len(rows):
            raise ValueError("a row of a table is missing")
    for ids in (table.partition, *lists):
        if ids and not 0 <= min(ids) <= max(ids) <= _MOST_ID:
            raise ValueError("a partition or broker has no such id")
    if any(len(set(replicas)) != len(replicas) or not replicas for replicas in lists):
        raise ValueError("a partition has no replicas, or two on one broker")
    if sum(len(lists[index]) for column in (table.before, table.after) for index in column) > MOST_NAMED:
        raise ValueError("they name too many replicas")
    return tuple(
        ReassignmentTarget(
            TopicPartition(topics[at][0], partition), topics[at][1], lists[was], lists[will], size, rate, gain
        )
        for at, partition, was, will, size, rate, gain in zip(*cells, strict=True)
    )

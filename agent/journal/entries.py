"""Journal entries: their types, the bytes of their records, and the codes that sign them (HMAC-SHA256, RFC 2104).

The journal's state is the newest entry of each key and nothing else, as after compaction; a fact that must outlast
later ones therefore has a key of its own. Keys are paths whose first part names the owning module (``plan/…``,
``throttle/…``, ``trigger/…``, ``approval/…``, ``pause``, ``command/…``, ``learned/…``, ``leader``).
Invariants: `entry_of(key, to_bytes(entry)) == entry` for entries of this version; unknown fields of a value are kept.
Changes within a version are additive; a newer version is `NewerEntryError`, so an older agent reads but does not write.
Foreign bytes raise `UnreadableEntryError` only. A code covers cluster, key, place and value, so that a record cannot be
copied to another cluster, key or place.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from agent.errors import BadInput
from agent.values.typed_json import ForeignJsonError, UnreadableError, from_json, is_time, read_json

T = TypeVar("T")
VERSION = 1
SCHEMA_ID = f"urn:rackwise:journal:v{VERSION}"
MAX_VALUE_BYTES = 900_000
"""Below what a broker takes as one record by default, with room for key and headers."""
MAX_KEY_BYTES = 65_536
"""Kafka takes names of groups of half this length, and keys are made of names."""
MOST_EPOCH = 2**53
"""No journal comes to so many leaderships or entries; what counts on from here stays within 64 bits."""
CODE_HEADER = "rackwise_code"
"""Name of the header with the codes, one for each key of the writer: ``<key id>:<64 hex digits>``, by spaces."""
_DOMAIN = b"rackwise.journal.v1"

JournalPosition = tuple[int, int]
"""(epoch, seq) of a record; grows in the order of the log."""


class JournalWrite(NamedTuple):
    """A write of one key."""

    key: str
    kind: str
    """Kind of entry, such as ``intent``; readers ignore kinds that they do not know."""
    value: Mapping[str, Any] | None
    """As it would be read back: a dict with text as keys, lists, no tuple. None deletes the key. Not changed later."""


class Entry(NamedTuple):
    """An entry of a key, with its writer's epoch and time."""

    key: str
    kind: str
    value: Mapping[str, Any]
    at_ms: int
    """Epoch milliseconds of the writer's clock; for display, never for an order or a duration."""
    epoch: int
    """Epoch of the writer's leadership: grows by one each time an agent takes over."""
    seq: int
    """Counts the entries of an epoch. ``(epoch, seq)`` is the order of the journal."""


JournalState = Mapping[str, Entry]
"""Key -> its newest entry; a deleted key is absent."""


def under(view: JournalState, prefix: str) -> Iterable[Entry]:
    """The entries whose keys begin with ``prefix/``, in the order in which they were written."""
    begin = f"{prefix}/"
    entries = (entry for key, entry in view.items() if key.startswith(begin))
    return sorted(entries, key=lambda entry: (entry.epoch, entry.seq))


class JournalPort(Protocol):
    """The leader writes here, and no other agent. Every method may be called from any thread.

    Invariants: an append is one transaction; when it returns, it is durable and its writer was the newest. An append by
    a fenced writer raises and has written nothing.
    """

    @property
    def epoch(self) -> int:
        """The leadership under which this writer writes."""

    def view(self) -> JournalState:
        """The journal's present state, own appends included. Immutable: a later append gives a new one."""

    def append(self, *writes: JournalWrite) -> None:
        """Write all of it or nothing, durably.

        Raises FencedOut when another agent took over (fatal), JournalUnavailable when it was unknown in time
        whether it was written; the view then has what was written once that is known again.
        """


class UnreadableEntryError(ValueError):
    """The bytes are no entry of the journal, for the reason in the sentence."""


class NewerEntryError(UnreadableEntryError):
    """The entry was written by a newer rackwise, whose layout this one does not know."""


class JournalRecord(NamedTuple):
    """An entry as it is written; its key stands beside it."""

    v: int
    """Version of this layout."""
    kind: str
    """Kind of the entry, such as ``open`` of a plan; with the key's first part it decides the value's shape."""
    at_ms: int
    """Epoch milliseconds of the writer's clock."""
    epoch: int
    """Epoch of the leadership that wrote the entry."""
    seq: int
    """Counts the entries of an epoch."""
    value: Mapping[str, object]
    """The content; its shape is that of the key's first part and the kind."""


class EncodedWrite(NamedTuple):
    """A write with its place in the journal and its bytes."""

    entry: Entry
    """The written entry; a deletion has no value."""
    data: bytes | None
    """Bytes of the record; None deletes the key."""


def numbered(writes: Iterable[JournalWrite], *, at_ms: int, epoch: int, first_seq: int) -> tuple[EncodedWrite, ...]:
    """The writes as they are written. Raises BadInput, before anything is done, for what no journal can hold."""
    return tuple(_numbered(write, at_ms, epoch, seq) for seq, write in enumerate(writes, first_seq))


def rewritten(
    view: JournalState, gone: Iterable[str], *, at_ms: int, epoch: int, first_seq: int
) -> tuple[EncodedWrite, ...]:
    """The same journal again, in the same order and with the times of its entries; ``gone`` are deleted again."""
    entries = sorted(view.values(), key=lambda entry: (entry.epoch, entry.seq))
    again = [
        EncodedWrite(one, to_bytes(one))
        for one in (entry._replace(epoch=epoch, seq=seq) for seq, entry in enumerate(entries, first_seq))
    ]
    deletions = (JournalWrite(key, "deleted", None) for key in sorted(set(gone) - set(view)))
    return (*again, *numbered(deletions, at_ms=at_ms, epoch=epoch, first_seq=first_seq + len(again)))


def applied(view: JournalState, changes: Iterable[EncodedWrite]) -> JournalState:
    """The journal with these writes."""
    after = dict(view)
    for entry, data in changes:
        if data is None:
            after.pop(entry.key, None)
        else:
            after[entry.key] = entry
    return MappingProxyType(after)


def to_bytes(entry: Entry) -> bytes:
    """One line of JSON with sorted keys. Raises ValueError or TypeError for a value that is not JSON-ready."""
    return json_bytes(record_of(entry))


def record_of(entry: Entry) -> Mapping[str, Any]:
    """The record as JSON-ready data (`JournalRecord`)."""
    record = {"v": VERSION, **entry._asdict(), "value": dict(entry.value)}
    del record["key"]
    return record


def json_bytes(value: object) -> bytes:
    """Compact JSON with sorted keys. Raises ValueError or TypeError for a value that is not JSON-ready."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


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
    entry = Entry(write.key, write.kind, write.value or {}, at_ms, epoch, seq)
    return EncodedWrite(entry, None if write.value is None else _checked(write, entry))


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
    with suppress(UnreadableEntryError):
        if entry_of(write.key, data) == entry:
            return data
    raise BadInput(
        f"The journal record under {write.key} could not be read back",
        why="a value in it comes back from JSON as another",
    )


class JournalKey(NamedTuple):
    """A key that executors share. Never shown: its id is."""

    secret: bytes

    @property
    def id(self) -> str:
        """8 hex digits by which a key is named; nothing of it follows from them."""
        return hmac.new(self.secret, b"rackwise key id", hashlib.sha256).hexdigest()[:8]

    def code(self, text: bytes) -> str:
        """The code of some bytes, as 64 hex digits."""
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()

    def __repr__(self) -> str:
        return f"JournalKey({self.id})"


class JournalTrust(NamedTuple):
    """Keys by which records of the journal are signed and verified."""

    keys: tuple[JournalKey, ...] = ()
    """The one that is in force, then former ones; none: every record counts."""
    cluster: str = ""
    """Id of the cluster whose journal it is."""
    unsigned_below: int = 0
    """Offset below which records without a code count too: those from before there was a key."""

    def signed(self, key: bytes, place: JournalPosition, value: bytes | None) -> str | None:
        """Value of the code header; None without a key. Codes of former keys let agents that have only those go on."""
        text = signed_text(self.cluster, key, place, value)
        return " ".join(f"{one.id}:{one.code(text)}" for one in self.keys) or None


def signed_text(cluster: str, key: bytes, place: JournalPosition, value: bytes | None) -> bytes:
    """What a code is of; lengths precede what has any length, so that no two records have the same text."""
    parts = (_DOMAIN, cluster.encode(), key, f"{place[0]}-{place[1]}".encode(), b"gone" if value is None else b"entry")
    return b"".join(len(part).to_bytes(4, "big") + part for part in (*parts, value or b""))

"""Which bytes stand for an entry of the journal, and which entry stands for bytes.

Invariants: `entry_of(key, to_bytes(entry)) == entry` for entries that came from here; what this version does not know
inside a value is kept. Additive changes only within a version; a newer version is `NewerEntryError`, so that an older
agent reads on but does not write. Foreign bytes raise `UnreadableEntryError` and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from agent.errors import BadInput
from agent.values.foreign_json import ForeignJsonError, is_time, read_json
from agent.values.journal import Entry, View, Write
from agent.values.typed_json import UnreadableError, from_json

VERSION = 1
SCHEMA_ID = f"urn:rackwise:journal:v{VERSION}"
MAX_VALUE_BYTES = 900_000
"""Below what a broker takes as one record by default, with room for key and headers."""
MAX_KEY_BYTES = 65_536
"""Kafka takes names of groups of half this length, and keys are made of names."""
MOST_EPOCH = 2**53
"""No journal comes to so many leaderships or entries; what counts on from here stays within 64 bits."""


class UnreadableEntryError(ValueError):
    """The bytes are no entry of the journal; the sentence says why."""


class NewerEntryError(UnreadableEntryError):
    """The entry was written by a newer rackwise, whose layout this one does not know."""


class Record(NamedTuple):
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
    """What is said; its shape is that of the key's first part and the kind."""


class Numbered(NamedTuple):
    """A write with its place in the journal and its bytes."""

    key: str
    kind: str
    at_ms: int
    epoch: int
    seq: int
    data: bytes | None
    """None deletes the key."""


def numbered(writes: Iterable[Write], *, at_ms: int, epoch: int, first_seq: int) -> tuple[Numbered, ...]:
    """The writes as they are written. Raises BadInput, before anything is done, for what no journal can hold."""
    return tuple(_numbered(write, at_ms, epoch, seq) for seq, write in enumerate(writes, first_seq))


def rewritten(view: View, gone: Iterable[str], *, at_ms: int, epoch: int, first_seq: int) -> tuple[Numbered, ...]:
    """The same journal once more, in the same order and with the times of its entries; ``gone`` are deleted again."""
    entries = sorted(view.values(), key=lambda entry: (entry.epoch, entry.seq))
    again = [
        Numbered(one.key, one.kind, one.at_ms, epoch, seq, to_bytes(one._replace(epoch=epoch, seq=seq)))
        for seq, one in enumerate(entries, first_seq)
    ]
    deletions = (Write(key, "deleted", None) for key in sorted(set(gone) - set(view)))
    return (*again, *numbered(deletions, at_ms=at_ms, epoch=epoch, first_seq=first_seq + len(again)))


def applied(view: View, changes: Iterable[Numbered]) -> View:
    """What the journal says once these are written, read off the very bytes that were."""
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
    return key.encode("utf-8", "surrogatepass")


def key_of(data: bytes) -> str:
    """The key that stands for these bytes. Raises UnreadableEntryError."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UnreadableEntryError(f"{data[:80]!r} is not a key: {error}") from error


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
        record = from_json(Record, found)
    except UnreadableError as error:
        raise UnreadableEntryError(f"{key[:80]!r} is not an entry: {error}") from error
    counts = record.epoch, record.seq
    if record.v != VERSION or min(counts) < 0 or max(counts) > MOST_EPOCH or not is_time(record.at_ms):
        found = f"version {record.v}, epoch {record.epoch}, seq {record.seq}, at {record.at_ms}"
        raise UnreadableEntryError(f"{key[:80]!r} is not an entry: {found}")
    return Entry(key, record.kind, record.value, record.at_ms, record.epoch, record.seq)


def _numbered(write: Write, at_ms: int, epoch: int, seq: int) -> Numbered:
    if not write.key or len(key_bytes(write.key)) > MAX_KEY_BYTES:
        raise BadInput(
            f"Nothing can be written in the journal under the key {write.key[:80]!r}",
            why=f"a key has 1 to {MAX_KEY_BYTES} bytes",
        )
    data = None
    if write.value is not None:
        data = _checked(write, Entry(write.key, write.kind, write.value, at_ms, epoch, seq))
    return Numbered(write.key, write.kind, at_ms, epoch, seq, data)


def _checked(write: Write, entry: Entry) -> bytes:
    try:
        data = to_bytes(entry)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"The journal record under {write.key} is not JSON", why=str(error)) from error
    if len(data) + 2 * len(key_bytes(write.key)) > MAX_VALUE_BYTES:  # the key stands in a header too
        raise BadInput(
            f"The journal record under {write.key} is too big",
            why=f"{len(data)} bytes, and a record may have {MAX_VALUE_BYTES}",
            todo="Ask for fewer moves at a time (--max-moves).",
        )
    return data

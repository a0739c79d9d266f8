"""How one field is read from bytes that may hold anything.

Each function takes the bytes and an offset, and gives the value, or the value and the offset behind it. A field that
does not fit raises `Broken`, which never leaves this package. Three rules keep hostile bytes harmless:

- ``struct`` checks every bound in C, so no read goes past the end;
- a count is compared with the bytes that are left before anything is allocated for it (`Reading.count`);
- nothing recurses, and every loop moves the offset forward by at least the item's smallest size.

The functions are plain and few because every member passes here: an object with methods would cost twice the time.
"""

from __future__ import annotations

import struct
from typing import NoReturn

from agent.decode.values import Undecodable, UndecodableReason

_INT8 = struct.Struct(">b").unpack_from
_INT16 = struct.Struct(">h").unpack_from
INT32 = struct.Struct(">i").unpack_from
_INT64 = struct.Struct(">q").unpack_from


class Broken(Exception):  # noqa: N818 - it is a state of the bytes and never leaves the package as an error
    """The bytes cannot be read any further; carries the value that stands for them."""

    def __init__(self, reason: UndecodableReason, sentence: str, offset: int) -> None:
        super().__init__(sentence)
        self.value = Undecodable(reason, sentence, offset)


def int8(data: bytes, at: int, what: str) -> int:
    """One signed byte."""
    try:
        value: int = _INT8(data, at)[0]
    except struct.error:
        truncated(data, at, 1, what)
    return value


def int16(data: bytes, at: int, what: str) -> int:
    """A signed 16-bit number."""
    try:
        value: int = _INT16(data, at)[0]
    except struct.error:
        truncated(data, at, 2, what)
    return value


def int32(data: bytes, at: int, what: str) -> int:
    """A signed 32-bit number."""
    try:
        value: int = INT32(data, at)[0]
    except struct.error:
        truncated(data, at, 4, what)
    return value


def int64(data: bytes, at: int, what: str) -> int:
    """A signed 64-bit number."""
    try:
        value: int = _INT64(data, at)[0]
    except struct.error:
        truncated(data, at, 8, what)
    return value


def nullable_bytes(data: bytes, at: int, what: str) -> tuple[bytes | None, int]:
    """Bytes behind a 32-bit length; any negative length is null, as in Kafka's reader."""
    try:
        length: int = INT32(data, at)[0]
    except struct.error:
        truncated(data, at, 4, what)
    at += 4
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        truncated(data, at, length, what)
    return data[at:end], end


def plain_bytes(data: bytes, at: int, what: str) -> tuple[bytes, int]:
    """Bytes behind a 32-bit length where null is not allowed."""
    value, end = nullable_bytes(data, at, what)
    if value is None:
        raise Broken(UndecodableReason.NEGATIVE, f"{what}: the length is negative; null is not allowed here", at)
    return value, end


def name_bytes(data: bytes, at: int, what: str) -> tuple[bytes | None, int]:
    """The bytes of a name behind a signed 16-bit length; any negative length is null."""
    length = int16(data, at, what)
    at += 2
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        truncated(data, at, length, what)
    return data[at:end], end


def utf8(raw: bytes, at: int, what: str) -> str:
    """Text in UTF-8. Kafka would put U+FFFD for what is invalid; a name that is not what was sent is of no use here."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        sentence = f"{what}: not valid UTF-8, {error.reason} at byte {error.start} of {len(raw)}"
        raise Broken(UndecodableReason.NOT_TEXT, sentence, at + error.start) from None


def truncated(data: bytes, at: int, needed_bytes: int, what: str) -> NoReturn:
    """Raise for a field that does not fit into what is left."""
    left = max(0, len(data) - at)
    sentence = f"{what}: {needed_bytes} bytes are needed, but {left} are left"
    raise Broken(UndecodableReason.TRUNCATED, sentence, min(at, len(data)))

"""How does Java write text outside of UTF-8? ``DataOutputStream.writeUTF`` and raw UTF-16 code units.

``writeUTF`` encodes each UTF-16 code unit on its own: a character beyond U+FFFF becomes two surrogates of three bytes
each, and NUL becomes two bytes. Java's reader also takes overlong forms, so this one does. A surrogate without its
partner is refused: Java can hold such a string, but no text that is written later could.
"""

from __future__ import annotations

import re

from agent.decode.cursor import Broken
from agent.decode.values import UndecodableReason

_WHOLE = re.compile(rb"(?:[\x00-\x7f]|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2})*+")
_NO_BEGINNING = re.compile(rb"[\xf0-\xff]")
_TWO_FOR_ONE = re.compile(rb"[\xc0\xc1][\x80-\xbf]")
_THREE_FOR_TWO = re.compile(rb"\xe0[\x80-\x9f]")
_TWO_BYTES = {bytes((0xE0, middle)): bytes((middle ^ 0x40,)) for middle in range(0x80, 0xA0)}
_ONE_BYTE = {
    bytes((first, last)): bytes(((first & 1) << 6 | last & 0x3F,))
    for first in (0xC0, 0xC1)
    for last in range(0x80, 0xC0)
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def from_modified_utf8(raw: bytes, at: int, what: str) -> str:
    """Text from the bytes of ``writeUTF``; nothing runs once per character."""
    if raw.isascii():
        return raw.decode("ascii")
    wrong = _NO_BEGINNING.search(raw)
    if wrong is not None:
        sentence = f"{what}: not valid modified UTF-8, no character begins with byte 0x{raw[wrong.start()]:02x}"
        raise Broken(UndecodableReason.NOT_TEXT, sentence, at + wrong.start())
    try:
        units = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        units = _shortest(raw, at, what).decode("utf-8", "surrogatepass")
    if _SURROGATE.search(units) is None:
        return units
    return from_utf16(units.encode("utf-16-be", "surrogatepass"), at, what)


def to_modified_utf8(text: str) -> bytes:
    """The bytes that ``writeUTF`` puts behind its length."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be")
    return b"".join(_encoded((units[i] << 8) | units[i + 1]) for i in range(0, len(units), 2))


def from_utf16(units: bytes, at: int, what: str) -> str:
    """Text from big-endian UTF-16 code units."""
    try:
        return units.decode("utf-16-be")
    except UnicodeDecodeError as error:
        raise Broken(UndecodableReason.NOT_TEXT, f"{what}: not valid UTF-16, {error.reason}", at) from None


def slow_characters(raw: bytes) -> int:
    """At most how many characters take half a microsecond: in a longer form than UTF-8 has, or half a pair."""
    return raw.count(b"\xc0") + raw.count(b"\xc1") + raw.count(b"\xe0") + raw.count(b"\xed")


def _shortest(raw: bytes, at: int, what: str) -> bytes:
    """The same characters, each in its shortest form, which is the only one that UTF-8 knows.

    Java writes NUL in two bytes; other longer forms it only reads.
    """
    whole = _WHOLE.match(raw)
    end = whole.end() if whole is not None else 0
    if end < len(raw):
        sentence = f"{what}: not valid modified UTF-8, a character is cut short at byte {end} of {len(raw)}"
        raise Broken(UndecodableReason.NOT_TEXT, sentence, at + end)
    # The first of three bytes says nothing here, and the second begins as the first of two would.
    raw = _THREE_FOR_TWO.sub(lambda found: _TWO_BYTES[found[0]], raw)
    return _TWO_FOR_ONE.sub(lambda found: _ONE_BYTE[found[0]], raw)


def _encoded(unit: int) -> bytes:
    if 0 < unit < 0x80:
        return bytes((unit,))
    if unit < 0x800:
        return bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
    return bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))

"""How does Java write text outside of UTF-8? ``DataOutputStream.writeUTF`` and raw UTF-16 code units.

``writeUTF`` encodes each UTF-16 code unit on its own: a character beyond U+FFFF becomes two surrogates of three bytes
each, and NUL becomes two bytes. Java's reader also takes overlong forms, so this one does. A surrogate without its
partner is refused: Java can hold such a string, but no text that is written later could.
"""

from __future__ import annotations

from array import array

from agent.decode.cursor import Broken
from agent.decode.values import UndecodableReason


def from_modified_utf8(raw: bytes, at: int, what: str) -> str:
    """Text from the bytes of ``writeUTF``."""
    if raw.isascii():
        return raw.decode("ascii")
    return from_utf16(_code_units(raw, at, what), at, what)


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


def _code_units(raw: bytes, at: int, what: str) -> bytes:
    units = array("H")
    i = 0
    while i < len(raw):
        first = raw[i]
        if first < 0x80:
            units.append(first)
            i += 1
        elif 0xC0 <= first < 0xE0:
            units.append((first & 0x1F) << 6 | _continued(raw, i + 1, at, what))
            i += 2
        elif 0xE0 <= first < 0xF0:
            middle = _continued(raw, i + 1, at, what)
            units.append((first & 0x0F) << 12 | middle << 6 | _continued(raw, i + 2, at, what))
            i += 3
        else:
            sentence = f"{what}: not valid modified UTF-8, no character begins with byte 0x{first:02x}"
            raise Broken(UndecodableReason.NOT_TEXT, sentence, at + i)
    return _big_endian(units)


def _continued(raw: bytes, i: int, at: int, what: str) -> int:
    if i >= len(raw) or raw[i] & 0xC0 != 0x80:
        sentence = f"{what}: not valid modified UTF-8, a character is cut short at byte {i} of {len(raw)}"
        raise Broken(UndecodableReason.NOT_TEXT, sentence, at + i)
    return raw[i] & 0x3F


def _big_endian(units: array[int]) -> bytes:
    if array("H", [1]).tobytes()[0]:  # a little-endian machine
        units.byteswap()
    return units.tobytes()


def _encoded(unit: int) -> bytes:
    if 0 < unit < 0x80:
        return bytes((unit,))
    if unit < 0x800:
        return bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
    return bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))

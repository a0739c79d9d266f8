"""Bounded JSON reader for foreign input: records of own topics, lines of files, documents of operators.

Invariant: any bytes give a value or `ForeignJsonError`, in time and memory linear in their length. A value is bounded
so that later arithmetic, sorting or writing cannot fail on it: UTF-8 within a size and a number of values that the
caller names, nested at most `MOST_DEPTH` deep; integers of 64 bits; fractions of that size and not below 1e-100; no
NaN, no infinity; no half surrogate pair and no name twice in an object, unless ``as_seen``.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any

MOST_BYTES = 1_048_588
"""A broker's default limit for one record (``message.max.bytes``)."""
MOST_VALUES = 1 << 22
"""Bounded because a value takes 60 bytes of memory and more where its text takes two."""
MOST_DEPTH = 64
LEAST_INT, MOST_INT = -(2**63), 2**63 - 1
LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999 since the epoch: a later time has no date."""
_MOST_FLOAT = float(2**63)
_LEAST_FLOAT = 1e-100
_INT_CHARS = 21
_FLOAT_CHARS = 64

Json = Any

_DIGITS = bytes(ord("0") if ord("0") <= char <= ord("9") else ord(" ") for char in range(256))
_LONG = b"0" * 19
"""A row of digits that may be beyond 64 bits."""
_NESTING = frozenset({dict, list})
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class ForeignJsonError(ValueError):
    """The bytes are no such JSON; the sentence has the reason and quotes none of them."""


def read_json(
    data: bytes | str, *, most_bytes: int = MOST_BYTES, most_values: int = MOST_VALUES, as_seen: bool = False
) -> Json:
    """The value in the bytes. Raises ForeignJsonError.

    ``as_seen`` is for documents that rackwise wrote itself: names may hold half a surrogate pair, as clients may send
    them, sums of offsets may have 66 bits, and objects are not checked for double names.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > most_bytes:
        raise ForeignJsonError(f"it has {len(raw):,} bytes, and at most {most_bytes:,} are read")
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > most_values:
        raise ForeignJsonError(f"it has more than {most_values:,} values")
    # A function per number costs more than all else: only where there is a long row of digits.
    decoder = _DECODERS[as_seen, _LONG in raw.translate(_DIGITS)]
    try:
        value = decoder.decode(data if isinstance(data, str) else data.decode("utf-8-sig"))
    except ForeignJsonError:
        raise
    except UnicodeDecodeError as error:
        raise ForeignJsonError(f"it is not UTF-8 text at byte {error.start}") from None
    except RecursionError:
        raise ForeignJsonError(f"it is nested more than {MOST_DEPTH} deep") from None
    except ValueError as error:
        raise ForeignJsonError(f"it is not JSON: {error}") from None
    if type(value) in _NESTING and raw.count(b"[") + raw.count(b"{") > MOST_DEPTH:
        _check_depth(value)
    if not as_seen and (isinstance(data, str) or _SURROGATE.search(raw) is not None):
        _check_text(value)
    return value


def is_time(millis: int) -> bool:
    """Whether it is a time in epoch milliseconds that has a date."""
    return 0 <= millis <= LATEST_MS


def _int(text: str) -> int:
    value = int(text) if len(text) <= _INT_CHARS else MOST_INT + 1
    if not LEAST_INT <= value <= MOST_INT:
        raise ForeignJsonError("a number in it has more than 64 bits")
    return value


def _sum(text: str) -> int:
    """A sum or a difference of numbers of 64 bits."""
    value = int(text) if len(text) <= _INT_CHARS else 2**66
    if abs(value) >= 2**66:
        raise ForeignJsonError("a number in it has more than 66 bits")
    return value


def _float(text: str) -> float:
    value = float(text) if len(text) <= _FLOAT_CHARS else _MOST_FLOAT * 2
    if value and not _LEAST_FLOAT <= abs(value) <= _MOST_FLOAT:
        raise ForeignJsonError("a number in it is too large or too small")
    return value


def _constant(text: str) -> float:
    raise ForeignJsonError(f"{text} is not a number")


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ForeignJsonError("a name comes twice in one of its objects")
    return found


def _check_depth(value: Json) -> None:
    """Level by level, so that nothing recurses."""
    level = [value]
    for _ in range(MOST_DEPTH):
        items = chain.from_iterable([one.values() if type(one) is dict else one for one in level])
        level = [item for item in items if type(item) in _NESTING]
        if not level:
            return
    raise ForeignJsonError(f"it is nested more than {MOST_DEPTH} deep")


def _check_text(value: Json) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ForeignJsonError("a text in it holds half a surrogate pair") from None


_DECODERS = {
    (as_seen, wary): json.JSONDecoder(
        parse_float=_float,
        parse_constant=_constant,
        parse_int=int if not wary else _sum if as_seen else _int,
        object_pairs_hook=None if as_seen else _once,
    )
    for as_seen in (False, True)
    for wary in (False, True)
}

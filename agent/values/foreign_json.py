"""Reads JSON that something else wrote: records of rackwise's own topics, lines of its files, documents of operators.

Invariant: foreign bytes give a value or `ForeignJsonError`, and nothing else, in time and memory linear in their
length. A value is bounded in every direction, so that no later arithmetic, sorting, copying or writing can fail on it:

- UTF-8 within a size and a number of values that the caller names, nested at most `MOST_DEPTH` deep;
- whole numbers of 64 bits, as Kafka and Java have them; fractions of that size, none of them so small that a division
  by it leaves the range of a double; no NaN, no infinity;
- text without half a surrogate pair, and no name twice in an object, unless the caller keeps names as they were seen.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any

MOST_BYTES = 1_048_588
"""What a broker takes as one record by default."""
MOST_VALUES = 1 << 22
"""A value takes 60 bytes of memory and more where its text takes two."""
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
    """The bytes are not JSON that is read here; the sentence says why and shows none of them."""


def read_json(
    data: bytes | str, *, most_bytes: int = MOST_BYTES, most_values: int = MOST_VALUES, as_seen: bool = False
) -> Json:
    """The value that the bytes stand for. Raises ForeignJsonError.

    ``as_seen`` is for what rackwise saw and wrote down itself: names may hold half a surrogate pair, as some client may
    have sent them; a sum of offsets may have two bits more than an offset; and an object is not searched for names that
    come twice, which takes as long as reading it.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > most_bytes:
        raise ForeignJsonError(f"it has {len(raw):,} bytes, and at most {most_bytes:,} are read")
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > most_values:
        raise ForeignJsonError(f"it has more than {most_values:,} values")
    # A function per number costs more than all the rest: only where a long row of digits is there.
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
    """A sum or a difference of numbers that members and brokers told, which have 64 bits each."""
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

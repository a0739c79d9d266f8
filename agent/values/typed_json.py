"""JSON of values by their types alone (`to_json`, `from_json`), and the bounded reader of foreign JSON (`read_json`).

Records are objects with the names of their fields, enums their member's name, bytes base64, dates ISO 8601, partitions
runs of one topic. Invariant: `from_json(T, to_json(T, value)) == value`, and equal values give equal text. Unknown
fields are ignored, missing fields take their default; everything else raises `UnreadableError`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache
from itertools import chain, groupby, repeat
from typing import Any, NamedTuple, TypeVar, cast

from agent.values.kafka import MAX_MESSAGE_BYTES_DEFAULT
from assignors.problem import TopicPartition

T = TypeVar("T")
Json = Any
_PLAIN = (str, int, float, bool, type(None), object)
_KEY = re.compile(r"-?[0-9]{1,19}")
_MOST_WHY = 300
"""Characters of a sentence: foreign text in it may be as long as a record."""


class UnreadableError(ValueError):
    """The JSON is no value of that type; the sentence names the first difference."""


class JsonCodec(NamedTuple):
    """Writer and reader of one type."""

    write: Callable[[Any], Json]
    read: Callable[[Json], Any]
    plain: frozenset[type] = frozenset()
    """Types of the JSON values that are read as they are."""


def to_json(kind: type[T], value: T) -> Json:
    """The value as JSON-ready data."""
    return codec(cast("Hashable", kind)).write(value)


def from_json(kind: type[T], data: Json) -> T:
    """The value of that type. Raises UnreadableError."""
    try:
        value: T = codec(cast("Hashable", kind)).read(data)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise UnreadableError(f"no {_in_words(kind)}: {str(error)[:_MOST_WHY]}") from error
    return value


def _in_words(kind: type) -> str:
    """`JournalRecord` is a journal record; a union has no name."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", getattr(kind, "__name__", str(kind))).replace(" | ", " or ").lower()


@cache
def codec(kind: Any) -> JsonCodec:
    """The codec of a type annotation, built once."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _tuple(arguments)
    if origin is frozenset:
        return _frozenset(arguments[0])
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*arguments)
    return _class(kind)


def _class(kind: type) -> JsonCodec:
    if kind in _PLAIN:
        return _plain(kind)
    if kind is bytes:
        return JsonCodec(lambda value: base64.b64encode(value).decode("ascii"), _bytes)
    if kind is date:
        return JsonCodec(date.isoformat, date.fromisoformat)
    if issubclass(kind, Enum):
        return JsonCodec(lambda value: value.name, lambda name: kind[name])
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record(kind)
    raise TypeError(f"values of {kind} are not written down")


def _plain(kind: type) -> JsonCodec:
    """Plain JSON values; an int is read as a float, no other type as another."""
    wanted: tuple[type, ...] = (float, int) if kind is float else (kind,)

    def read(data: Json) -> Any:
        if not isinstance(data, wanted) or (isinstance(data, bool) and kind not in (bool, object)):
            raise TypeError(f"{kind.__name__} expected, {type(data).__name__} found")
        return float(cast("float", data)) if kind is float else data

    return JsonCodec(_same, read, frozenset({kind} - {object}))


def _bytes(data: Json) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from error


def _union(arguments: tuple[Any, ...]) -> JsonCodec:
    """An optional value, or a choice of plain values that JSON itself distinguishes."""
    rest = tuple(argument for argument in arguments if argument is not type(None))
    plain = frozenset(argument for argument in arguments if argument in _PLAIN)
    if len(rest) == 1:
        inner = codec(rest[0])
        return JsonCodec(
            lambda value: None if value is None else inner.write(value),
            lambda data: None if data is None else inner.read(data),
            inner.plain | {type(None)},
        )
    lists = [codec(argument) for argument in rest if typing.get_origin(argument) is tuple]

    def read(data: Json) -> Any:
        if isinstance(data, list) and lists:
            return lists[0].read(data)
        if type(data) not in plain:
            raise TypeError(f"{type(data).__name__} found")
        return data

    return JsonCodec(lambda value: list(value) if isinstance(value, tuple) else value, read, plain)


def _tuple(arguments: tuple[Any, ...]) -> JsonCodec:
    if arguments == (TopicPartition, ...):
        return JsonCodec(_runs, _from_runs)
    if len(arguments) == 2 and arguments[1] is ...:
        return _row(codec(arguments[0]))
    inners = tuple(codec(argument) for argument in arguments)
    return JsonCodec(
        lambda value: [inner.write(item) for inner, item in zip(inners, value, strict=True)],
        lambda data: tuple(inner.read(item) for inner, item in zip(inners, _list(data), strict=True)),
    )


def _row(inner: JsonCodec) -> JsonCodec:
    """Any number of values of one type; where all of them are plain, as they mostly are, the row is taken as it is."""
    write, read, plain = inner

    def read_row(data: Json) -> tuple[Any, ...]:
        if plain and plain.issuperset(map(type, _list(data))):
            return tuple(data)
        return tuple([read(item) for item in _list(data)])

    return JsonCodec(list if write is _same else lambda value: [write(item) for item in value], read_row)


def _frozenset(argument: Any) -> JsonCodec:
    inner = codec(argument)
    return JsonCodec(
        lambda value: [inner.write(item) for item in sorted(value)],
        lambda data: frozenset(inner.read(item) for item in _list(data)),
    )


def _mapping(key: Any, value: Any) -> JsonCodec:
    """Text, numbers and enums are keys of an object; any other key makes a list of pairs."""
    keys, values = codec(key), codec(value)
    if key is str:
        return JsonCodec(
            lambda mapping: {name: values.write(item) for name, item in mapping.items()},
            lambda data: {name: values.read(item) for name, item in data.items()},
        )
    if isinstance(key, type) and issubclass(key, int | Enum):
        write, read = (keys.write, keys.read) if issubclass(key, Enum) else (str, _int_key)
        return JsonCodec(
            lambda mapping: {write(name): values.write(item) for name, item in mapping.items()},
            lambda data: {read(name): values.read(item) for name, item in data.items()},
        )
    return JsonCodec(
        lambda mapping: [[keys.write(name), values.write(item)] for name, item in mapping.items()],
        lambda data: {keys.read(name): values.read(item) for name, item in _list(data)},
    )


def _record(kind: type) -> JsonCodec:
    hints = typing.get_type_hints(kind)
    defaults = _defaults(kind)
    parts = {name: codec(hint) for name, hint in hints.items() if name in defaults}
    plain = tuple(name for name, part in parts.items() if part.write is _same)
    written = tuple((name, part.write) for name, part in parts.items())
    readers = tuple((name, part.read) for name, part in parts.items())
    needed = frozenset(name for name, default in defaults.items() if default is MISSING)

    def write(value: Any) -> Json:
        if len(plain) == len(written):
            return {name: getattr(value, name) for name in plain}
        return {name: write_part(getattr(value, name)) for name, write_part in written}

    def read(data: Json) -> Any:
        if not isinstance(data, dict):
            raise TypeError(f"an object expected, {type(data).__name__} found")
        if not data.keys() >= needed:
            missing = [name for name in defaults if name in needed and name not in data]
            raise KeyError(f"{kind.__name__} without {missing[0]}")
        return kind(**{name: read_part(data[name]) for name, read_part in readers if name in data})

    return JsonCodec(write, read)


def _defaults(kind: type) -> dict[str, Any]:
    """Field -> default (MISSING where there is none), without fields that are left out of comparison."""
    if is_dataclass(kind):
        return {
            field.name: MISSING if field.default is MISSING and field.default_factory is MISSING else None
            for field in fields(kind)
            if field.init and field.compare
        }
    given: Mapping[str, Any] = getattr(kind, "_field_defaults", {})
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    return {name: given.get(name, MISSING) for name in names}


def _runs(partitions: tuple[TopicPartition, ...]) -> Json:
    """Neighbours of one topic in one row; the order stays."""
    return [
        {"topic": topic, "partitions": [partition.partition for partition in run]}
        for topic, run in groupby(partitions, key=lambda partition: partition.topic)
    ]


def _from_runs(data: Json) -> tuple[TopicPartition, ...]:
    return tuple([TopicPartition(*pair) for run in _list(data) for pair in _run(run)])


def _run(run: Json) -> Iterator[tuple[str, int]]:
    topic, numbers = run["topic"], _list(run["partitions"])
    if type(topic) is not str or set(map(type, numbers)) - {int}:
        raise TypeError("a topic with the numbers of its partitions expected")
    return zip(repeat(topic), numbers)


def _int_key(name: str) -> int:
    if _KEY.fullmatch(name) is None:
        raise ValueError(f"{name[:40]!r} is not a number")
    return int(name)


def _list(data: Json) -> list[Json]:
    if not isinstance(data, list):
        raise TypeError(f"a list expected, {type(data).__name__} found")
    return data


def _same(value: Any) -> Any:
    return value


# Bounded JSON reader for foreign input: records of own topics, lines of files, documents of operators.
#
# Invariant: any bytes give a value or `ForeignJsonError`, in time and memory linear in their length. A value is bounded
# so that later arithmetic, sorting or writing cannot fail on it: UTF-8 within a size and a number of values that the
# caller names, nested at most `MOST_DEPTH` deep; integers of 64 bits; fractions of that size and not below 1e-100; no
# NaN, no infinity; no half surrogate pair and no name twice in an object, unless ``as_seen``.

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


_DIGITS = bytes(ord("0") if ord("0") <= char <= ord("9") else ord(" ") for char in range(256))
_LONG = b"0" * 19
"""A row of digits that may be beyond 64 bits."""
_NESTING = frozenset({dict, list})
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class ForeignJsonError(ValueError):
    """The bytes are no such JSON; the sentence has the reason and quotes none of them."""


def read_json(
    data: bytes | str,
    *,
    most_bytes: int = MAX_MESSAGE_BYTES_DEFAULT,
    most_values: int = MOST_VALUES,
    as_seen: bool = False,
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

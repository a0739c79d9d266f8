"""Types of setting values: durations, sizes, comma lists, shell-style patterns, topic names.

Each is read from text (``10s``, ``50MB``, ``a,b``) and written back in the same form. A duration needs its unit.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_MAX_CHARS = 40
"""Of a number with its unit; cut beyond, so that what is longer is none or too large."""
_MOST_MS = 36_500 * _MS["d"]
"""A century: with any time of now it is still a time that has a date."""
_MOST_BYTES = 10**18
MAX_TOPIC_CHARS = 249
"""Characters of Kafka's longest topic name."""
_TOPIC = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_TOPIC_CHARS}}}")


def parse_duration(value: object) -> int:
    """Milliseconds of ``500ms``, ``10s``, ``1.5m``, ``2h`` or ``7d``. Raises ValueError with a sentence."""
    found = _DURATION.fullmatch(str(value).strip()[:_MAX_CHARS])
    if found is None or isinstance(value, bool):
        raise ValueError("a duration with its unit is expected, such as 500ms, 10s, 5m, 2h or 7d")
    millis = float(found[1]) * _MS[found[2]]
    if millis > _MOST_MS:
        raise ValueError(f"it must be at most {_MOST_MS // _MS['d']}d")
    return round(millis)


def format_duration(millis: int) -> str:
    """The shortest exact form: 90000 is ``90s``, 120000 is ``2m``."""
    unit = next(name for name in ("d", "h", "m", "s", "ms") if millis % _MS[name] == 0)
    return "0s" if millis == 0 else f"{millis // _MS[unit]}{unit}"


def parse_size(value: object) -> int:
    """Bytes of ``1048576``, ``50MB`` or ``1GiB``. Raises ValueError with a sentence."""
    found = _SIZE.fullmatch(str(value).strip()[:_MAX_CHARS].removesuffix("/s"))
    if found is None or isinstance(value, bool) or found[2] not in _BYTES:
        raise ValueError("a number of bytes is expected, such as 1048576, 50MB or 1GiB")
    size = float(found[1]) * _BYTES[found[2]]
    if size > _MOST_BYTES:
        raise ValueError(f"it must be at most {_MOST_BYTES // _BYTES['GB']}GB")
    return round(size)


def format_size(size: int) -> str:
    """The shortest exact form: 50000000 is ``50MB``, 1048576 is ``1MiB``."""
    units = ("GB", "GiB", "MB", "MiB", "kB", "KiB")
    unit = next((name for name in units if size and size % _BYTES[name] == 0), "")
    return f"{size // _BYTES[unit]}{unit}"


def at_least(low: str) -> AfterValidator:
    """Refuses a duration below ``low``."""

    def check(millis: int) -> int:
        if millis < parse_duration(low):
            raise ValueError(f"it must be at least {low}")
        return millis

    return AfterValidator(check)


def at_most(high: str) -> AfterValidator:
    """Refuses a duration above ``high``."""

    def check(millis: int) -> int:
        if millis > parse_duration(high):
            raise ValueError(f"it must be at most {high}")
        return millis

    return AfterValidator(check)


def _split(value: Any) -> Any:
    """A comma list, as environment variables and flags write it, becomes a list; YAML gives one already."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _text(value: Any) -> Any:
    """YAML reads an unquoted 42 as a number; where a name is expected it is the text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a text is expected, and it is empty")
    return text


def _topic_name(name: str) -> str:
    if not _TOPIC.fullmatch(name) or name in {".", ".."}:
        raise ValueError(
            f"it is not a valid topic name: use letters, digits, '.', '_' or '-', at most {MAX_TOPIC_CHARS} characters"
        )
    return name


def _null_word(value: Any) -> Any:
    """Flags and environment variables cannot hold YAML's null, so they write it as a word."""
    return None if isinstance(value, str) and value.strip().lower() in {"none", "null", ""} else value


def _written_none(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError("it is empty; write none where that is meant")
    return _null_word(value)


NoneWord = BeforeValidator(_null_word)
"""Reads ``none`` as null."""
WrittenNone = BeforeValidator(_written_none)
"""As `NoneWord` where null is not the default: an empty environment variable lifts no bound."""


Millis = Annotated[
    int,
    BeforeValidator(parse_duration, json_schema_input_type=str),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ms|s|m|h|d)$", "examples": ["10s", "5m"]}),
]
"""A duration, held in milliseconds."""

Bytes = Annotated[
    int,
    BeforeValidator(parse_size, json_schema_input_type=str),
    PlainSerializer(format_size, return_type=str, when_used="json"),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["50MB", "1GiB", 1048576]}),
]
"""A size, held in bytes."""

Text = Annotated[str, BeforeValidator(_text)]
FilledText = Annotated[Text, AfterValidator(_not_blank)]
"""A text with more than white space, where an empty one would name nothing, or everything."""
Names = Annotated[
    tuple[Text, ...],
    BeforeValidator(_split),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
]
"""Several names: a list, or one text with commas."""

TopicName = Annotated[str, BeforeValidator(_text), AfterValidator(_topic_name)]

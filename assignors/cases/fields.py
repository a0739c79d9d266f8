"""Fields of a case, checked: ``BadProblem`` names the field that has the wrong kind or value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from assignors.problem import BadProblem

T = TypeVar("T")

MOST = (1 << 31) - 1
"""Kafka's counts and ids are 32-bit integers."""
MOST_PARTITIONS = 10_000_000
"""Of one topic: a hundred times what a Kafka cluster has in all, and still a bound on what a case can cost."""


def whole(value: Any, field: str, least: int = -MOST - 1, most: int = MOST) -> int:
    """Read a whole number between bounds. Raises BadProblem for anything else, also for true and false."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadProblem(f"{field} is {shown(value)}; it must be a whole number")
    if not least <= value <= most:
        raise BadProblem(f"{field} is {shown(value)}; it must lie between {least} and {most}")
    return value


def text(value: Any, field: str) -> str:
    """Read a text. Raises BadProblem for any other JSON."""
    if not isinstance(value, str):
        raise BadProblem(f"{field} is {shown(value)}; it must be text")
    return value


def text_or_none(value: Any, field: str) -> str | None:
    """Read a text or null; a missing field is null."""
    return None if value is None else text(value, field)


def truth(value: Any, field: str) -> bool:
    """Read true or false. Raises BadProblem for any other JSON."""
    if not isinstance(value, bool):
        raise BadProblem(f"{field} is {shown(value)}; it must be true or false")
    return value


def an_object(value: Any, field: str) -> Mapping[str, Any]:
    """Read a JSON object. Raises BadProblem for any other JSON."""
    if not isinstance(value, Mapping):
        raise BadProblem(f"{field} is {shown(value)}; it must be an object")
    return value


def an_array(value: Any, field: str) -> list[Any]:
    """Read a JSON array. Raises BadProblem for any other JSON."""
    if not isinstance(value, list):
        raise BadProblem(f"{field} is {shown(value)}; it must be an array")
    return value


def each(value: Any, field: str, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    """Read every element of an array; an element is named by its place."""
    return tuple(read(element, f"{field}[{place}]") for place, element in enumerate(an_array(value, field)))


def one_of(value: Any, field: str, allowed: tuple[str, ...]) -> str:
    """Read one of a few words. Raises BadProblem for any other value."""
    if value not in allowed:
        raise BadProblem(f"{field} is {shown(value)}; it is one of {', '.join(allowed)}")
    return str(value)


def shown(value: Any) -> str:
    """A value as a sentence may show it: always short."""
    match value:
        case None:
            return "missing"
        case Mapping():
            return "an object"
        case list():
            return "an array"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 200:
            return "a huge number"
        case _:
            shape = repr(value)
            return shape if len(shape) <= 60 else f"{shape[:57]}..."


def release(version: str) -> tuple[int, ...]:
    """Numbers of a version such as 4.1.1, to be compared. Raises BadProblem for any other text."""
    parts = version.split(".")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise BadProblem(f"kafka_version is {shown(version)}; it is written like 4.1.1")
    return tuple(map(int, parts))

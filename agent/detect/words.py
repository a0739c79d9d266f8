"""The small words that all findings share: counts, lists that end early, replicas with their racks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

SHOWN = 5
"""Names shown in evidence; the rest is counted."""
NAMED = 3
"""Names shown in a sentence."""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 partition``, ``5 partitions``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def of_all(number: int, total: int, noun: str) -> str:
    """``1 of 3 members``."""
    return f"{number} of {count(total, noun)}"


def listed(names: Iterable[object]) -> str:
    """``a``, ``a and b``, ``a, b, c and 4 more``."""
    words = [str(name) for name in names]
    if len(words) > NAMED:
        return f"{', '.join(words[:NAMED])} and {len(words) - NAMED} more"
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def first(names: Sequence[str] | Sequence[int]) -> tuple[str | int, ...]:
    """The names that evidence shows."""
    return tuple(names[:SHOWN])


def placed(replicas: Iterable[int], rack_of: Mapping[int, str | None] | Mapping[int, str]) -> str:
    """``1 (a), 4 (a)``; a broker of unknown rack has a question mark."""
    return ", ".join(f"{replica} ({rack_of.get(replica) or '?'})" for replica in replicas)

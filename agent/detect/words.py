"""The small words that all findings share: counts, lists that end early, replicas with their racks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.values.words import counted as count
from agent.values.words import few, in_full

__all__ = ["NAMED", "RUNS", "SHOWN", "count", "first", "listed", "numbered", "of_all", "placed"]

SHOWN = 5
"""Names shown in evidence; the rest is counted."""
NAMED = 3
"""Names shown in a sentence."""
RUNS = 20
"""Numbers, or runs of numbers, shown in a sentence that names brokers."""


def of_all(number: int, total: int, noun: str) -> str:
    """``1 of 3 members``."""
    return f"{number:,} of {count(total, noun)}"


def listed(names: Iterable[object]) -> str:
    """``a``, ``a and b``, ``a, b, c and 4 more``."""
    words = [*names]
    return few(words, NAMED) if len(words) > NAMED else in_full(words)


def either(names: Iterable[object]) -> str:
    """``a``, ``a or b``, ``a, b, c or one of 4 more``."""
    words = [str(name) for name in names]
    if len(words) > NAMED:
        return f"{', '.join(words[:NAMED])} or one of {len(words) - NAMED:,} more"
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def numbered(numbers: Iterable[int]) -> str:
    """``1``, ``1 and 3``, ``1 to 9``, ``1, 2, 4 to 6 and 9``: all of them, as long as there are not too many gaps."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [word for run in runs for word in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    if len(words) > RUNS:
        kept = words[:RUNS]
        return f"{', '.join(kept)} and {len(set(numbers)) - _counted(kept)} more"
    return in_full(words)


def _counted(words: Iterable[str]) -> int:
    """How many numbers these words are."""
    ends = [word.split(" to ") for word in words]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def named(noun: str, numbers: Sequence[int]) -> str:
    """``broker 1``, ``brokers 1, 2 and 4 more``."""
    return f"{noun if len(numbers) == 1 else noun + 's'} {listed(numbers)}"


def first(names: Sequence[str] | Sequence[int]) -> tuple[str | int, ...]:
    """The names that evidence shows."""
    return tuple(names[:SHOWN])


def placed(replicas: Iterable[int], rack_of: Mapping[int, str | None] | Mapping[int, str]) -> str:
    """``1 (a), 4 (a)``; a broker of unknown rack has a question mark."""
    return ", ".join(f"{replica} ({rack_of.get(replica) or '?'})" for replica in replicas)

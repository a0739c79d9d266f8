"""Keeps the list of gaps readable: a thousand of one kind become one that counts them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from agent.values.observation import Gap, GapCause, Part

MOST_OF_A_KIND = 100
_NAMED = 3


def folded(gaps: Iterable[Gap], *, most: int = MOST_OF_A_KIND) -> tuple[Gap, ...]:
    """Sorted and without duplicates; more than ``most`` of one part and cause become one that counts them."""
    by_kind: dict[tuple[Part, GapCause], list[Gap]] = defaultdict(list)
    for gap in sorted(set(gaps)):
        by_kind[gap.part, gap.cause].append(gap)
    result: list[Gap] = []
    for (part, cause), same in by_kind.items():
        whole = [gap for gap in same if not gap.subject]
        single = [gap for gap in same if gap.subject]
        result += whole + (single if len(single) <= most else [_counted(part, cause, single)])
    return tuple(sorted(result))


def _counted(part: Part, cause: GapCause, same: list[Gap]) -> Gap:
    names = ", ".join(gap.subject for gap in same[:_NAMED])
    # Not the empty subject: that would say that the whole part is missing.
    return Gap(part, cause, f"{len(same)} of them", f"among them {names}: {same[0].detail}")

"""Which rack of the brokers a member probably means by a name that no broker has: by spelling, else by one slip.

Nothing is guessed where more than one rack would do, or where the names say different things by their last character
or by a number (neither ``us-east-1c`` nor ``us-east-2a`` is a slip for ``us-east-1a``), or are of different kinds (a
zone id against a zone name).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_LONGEST = 64
"""Names beyond this are not compared with the racks of brokers; a member may send anything."""
_NUMBER = re.compile(r"\d+")
_SLIP = 4
"""One slip is forgiven per so many characters, two at most."""


def meant_rack(told: str, racks: Iterable[str]) -> str | None:
    """The one rack that is probably meant, or None where none or several may be."""
    known = list(racks)
    folded = fold(told)
    alike = [rack for rack in known if fold(rack) == folded]
    if alike or not folded or len(folded) > _LONGEST:
        return alike[0] if len(alike) == 1 and folded else None
    near = [(slips, rack) for rack in known if (slips := _slips(folded, fold(rack))) is not None]
    best = [rack for slips, rack in near if slips == min(near)[0]]
    return best[0] if len(best) == 1 else None


def fold(rack: str) -> str:
    """A rack's name without case, spaces and separators; but for those between numbers: 1-11 is not 11-1.

    A name of nothing else is only like itself.
    """
    kept = ""
    apart = False
    for character in rack.casefold():
        if unicodedata.category(character)[0] not in "LMN":
            apart = True
            continue
        kept += f"-{character}" if apart and kept[-1:].isnumeric() and character.isnumeric() else character
        apart = False
    return kept or rack


def _slips(one: str, other: str) -> int | None:
    """How many slips of the pen lie between two folded names; None where they are not one name."""
    allowed = min(2, max(len(one), len(other)) // _SLIP)
    if not allowed or len(other) > _LONGEST or abs(len(one) - len(other)) > allowed or one[-1:] != other[-1:]:
        return None
    if _NUMBER.findall(one) != _NUMBER.findall(other):
        return None
    slips = _distance(one, other)
    return slips if slips <= allowed else None


def _distance(one: str, other: str) -> int:
    """Letters inserted, left out, replaced or swapped with their neighbour (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, row_before = row, before
        row = [at]
        for to, wanted in enumerate(other, 1):
            cost = min(last[to] + 1, row[to - 1] + 1, last[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, row_before[to - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]

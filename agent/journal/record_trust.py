"""Verification of the codes of journal records: which records of the topic count. Pure.

Invariants: with a key, a record without a valid code neither sets nor deletes an entry, nor does a replayed one; a
journal in which no record has a known code is unavailable. Without a key every record counts.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from agent.journal.entries import JournalPosition, JournalTrust, signed_text

LEAST_KEY = 16
"""Characters that a key has at least."""
_PLACE = re.compile(r"(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})")
_MOST_CODES = 1_024
_WATERMARK_KEY = b"witness"
"""Part of the bytes under a watermark's codes, so it never changes."""


class RejectionReason(StrEnum):
    """Why a record does not count."""

    UNSIGNED = "it carries no code"
    OTHER_KEY = "its code is of another key"
    FORGED = "its code is wrong"
    REPLAYED = "it is an old record, written once more"


class VerifiedRecord(NamedTuple):
    """A record as far as it counts."""

    place: JournalPosition | None
    """Position in the journal by its header; None without one."""
    doubt: RejectionReason | None
    """None: it counts."""
    current: bool
    """Whether it carries the code of the key in force."""


class RejectedRecord(NamedTuple):
    """A record that does not count, as it is named to people."""

    offset: int
    key: str
    doubt: RejectionReason
    key_ids: tuple[str, ...] = ()
    """Ids of the keys that it claims."""


class RecordVerifier:
    """Weighs the records of one topic in the order of its log."""

    def __init__(self, trust: JournalTrust) -> None:
        self._trust = trust
        self._last: JournalPosition = (-1, -1)
        self.believed = 0
        """Records with a valid code."""

    def weigh(self, offset: int, key: bytes, value: bytes | None, event_id: str, codes: str) -> VerifiedRecord:
        """``event_id`` and ``codes`` are from its headers, empty where there is none."""
        place = place_of(event_id)
        if not self._trust.keys:
            return VerifiedRecord(place, None, current=not codes)
        if not codes and offset < self._trust.unsigned_below:
            return VerifiedRecord(place, None, current=False)
        doubt, current = self._checked(key, value, place, codes)
        if doubt is None and place is not None:
            self.believed += 1
            if place <= self._last:
                return VerifiedRecord(place, RejectionReason.REPLAYED, current=False)
            self._last = place
        return VerifiedRecord(place, doubt, current)

    def _checked(
        self, key: bytes, value: bytes | None, place: JournalPosition | None, codes: str
    ) -> tuple[RejectionReason | None, bool]:
        found = codes_by_key(codes)
        if not found:
            return RejectionReason.UNSIGNED, False
        known = [(number, one) for number, one in enumerate(self._trust.keys) if one.id in found]
        if not known or place is None:
            return (RejectionReason.FORGED if known else RejectionReason.OTHER_KEY), False
        text = signed_text(self._trust.cluster, key, place, value)
        # The first key that both have decides: a wrong code of it is not made good by another one.
        number, one = known[0]
        held = hmac.compare_digest(one.code(text), found[one.id])
        return (None, number == 0) if held else (RejectionReason.FORGED, False)


def codes_by_key(codes: str) -> dict[str, str]:
    """Key id -> code, in a header's value."""
    parts = (one.partition(":") for one in codes[:_MOST_CODES].split())
    return {name: code for name, colon, code in parts if colon and code.isascii()}


def place_of(event_id: str) -> JournalPosition | None:
    """The place that an event's id names; None for anything else."""
    found = _PLACE.fullmatch(event_id)
    return (int(found[1]), int(found[2])) if found else None


def rejection_sentence(doubted: Sequence[RejectedRecord], count: int, topic: str) -> str | None:
    """One sentence about the records that do not count, the first of which are given; None when there are none."""
    if not doubted:
        return None
    first = doubted[0]
    return (
        f"{count:,} {'record' if count == 1 else 'records'} of {topic} ignored, not written by an agent of this cluster"
        f" (offset {first.offset}, key {first.key[:80]!r}: {first.doubt.value});"
        f" only the executor needs Write on {topic}: docs/operations.md, Rights"
    )


def signed_watermark(trust: JournalTrust, text: str) -> str:
    """A watermark with its codes behind it: the lease keeps it, outside of the journal."""
    codes = trust.signed(_WATERMARK_KEY, (0, 0), text.encode())
    return text if codes is None else f"{text}|{codes}"


def checked_watermark(trust: JournalTrust, data: str) -> tuple[str, RejectionReason | None]:
    """The watermark in the data of `signed_watermark`, and why it does not count; None when it does."""
    text, _, codes = data.partition("|")
    if not trust.keys:
        return text, None
    checked = RecordVerifier(trust).weigh(0, _WATERMARK_KEY, text.encode(), "0-0", codes)
    return text, checked.doubt


def distinct_ids(doubted: Iterable[RejectedRecord]) -> tuple[str, ...]:
    """Ids of the keys that such records claim, sorted."""
    return tuple(sorted({name for one in doubted for name in one.key_ids}))

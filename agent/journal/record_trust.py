"""Which records of the journal count, by their codes; its leader entry (key ``leader``, first of each term). Pure.

Invariants: with a key, a record without a valid code neither sets nor deletes an entry, nor does a replayed one; a
journal in which no record has a known code is unavailable. Without a key every record counts. An epoch is greater than
every earlier epoch of the journal.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from agent.errors import WrongCluster
from agent.journal.entries import (
    Entry,
    JournalPosition,
    JournalState,
    JournalTrust,
    JournalWrite,
    read_value,
    signed_text,
)
from agent.values.reassignment import ENDED, BatchState
from agent.values.typed_json import to_json

LEADER = "leader"
KIND = "leader"


class LeaderEntry(NamedTuple):
    """An agent that leads. Its epoch is that of the entry."""

    agent: str
    """Its name among the agents of the cluster."""
    host: str
    pid: int
    cluster: str
    """Id of the cluster whose journal this is."""
    since_ms: int
    """Epoch milliseconds of its clock at which it began to lead."""


def leader_write(leader: LeaderEntry) -> JournalWrite:
    """The journal write of a leader."""
    return JournalWrite(LEADER, KIND, to_json(LeaderEntry, leader))


def leader_in(view: JournalState) -> LeaderEntry | None:
    """The newest leader; None when no agent ever led, or when a newer rackwise wrote another layout."""
    return read_value(LeaderEntry, view.get(LEADER))


def confirmed_ms(view: JournalState, leader: LeaderEntry) -> int:
    """When the newest leader wrote last that it leads, which it does every five minutes, in epoch milliseconds."""
    return max(view[LEADER].at_ms, leader.since_ms)


def check_cluster(view: JournalState, cluster: str, where: str) -> None:
    """Raises WrongCluster for a journal that another cluster's agents wrote, such as a mirrored topic."""
    leader = leader_in(view)
    if leader is not None and leader.cluster != cluster:
        raise WrongCluster(
            f"The journal {where} is that of cluster {leader.cluster}",
            why=f"this is cluster {cluster}",
            todo="Give this cluster a journal of its own.",
        )


def newest_epoch(view: JournalState) -> int:
    """The greatest epoch of any entry; 0 when no agent ever led."""
    return max((entry.epoch for entry in view.values()), default=0)


# A time in the future (a wrong clock) counts as now and is rewritten once, so that it ages as any other. Times of open
# plans and batches are the executor's.

LATER_MS = 60_000
"""Clocks of agents differ; what is ahead by less is left as it is."""
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "approval": ("at_ms",),
    "trigger": ("intended_ms", "acted_ms"),
    "pause": ("since_ms",),
    "learned": ("came_ms", "went_ms", "at_ms"),
    "plan": (),
    "batch": (),
}
"""Times of a value, by the first part of its key; an entry's own time counts for all of these."""
_OVER = {"plan": frozenset(state.value for state in ENDED), "batch": frozenset({BatchState.CLOSED.value})}
"""Kinds of entries that the executor never writes again."""


def in_past(view: JournalState, now_ms: int) -> JournalState:
    """The journal with every time of the future as now; the same view where there is none."""
    changed = {key: one for key, entry in view.items() if (one := _corrected(entry, now_ms)) is not None}
    return MappingProxyType({**view, **changed}) if changed else view


def corrections(view: JournalState, now_ms: int) -> tuple[JournalWrite, ...]:
    """What is written anew, in the order of the journal; its entry's time is then that of the writing."""
    changed = (_corrected(entry, now_ms) for entry in view.values() if _is_over(entry))
    rows = sorted((one for one in changed if one is not None), key=lambda one: (one.epoch, one.seq))
    return tuple(JournalWrite(one.key, one.kind, one.value) for one in rows)


def _is_over(entry: Entry) -> bool:
    kinds = _OVER.get(_part(entry))
    return kinds is None or entry.kind in kinds


def _corrected(entry: Entry, now_ms: int) -> Entry | None:
    """None where no time of it lies in the future."""
    names = _FIELDS.get(_part(entry))
    if names is None:
        return None
    value = {**entry.value}
    for name in names:
        if _is_later(value.get(name), now_ms):
            value[name] = now_ms
    if "expires_ms" in value and value.get("at_ms") != entry.value.get("at_ms"):
        value["expires_ms"] = now_ms + _lasts_ms(entry.value)
    earlier = value.get("earlier_ms")
    if isinstance(earlier, list) and any(_is_later(at, now_ms) for at in earlier):
        value["earlier_ms"] = [now_ms if _is_later(at, now_ms) else at for at in earlier]
    judgement = value.get("judgement")
    if isinstance(judgement, dict) and _is_later(judgement.get("at_ms"), now_ms):
        value["judgement"] = {**judgement, "at_ms": now_ms}
    if value == dict(entry.value) and not _is_later(entry.at_ms, now_ms):
        return None
    return entry._replace(value=value, at_ms=min(entry.at_ms, now_ms))


def _lasts_ms(value: Mapping[str, Any]) -> int:
    """For how long an approval was given."""
    at_ms, expires_ms = value.get("at_ms"), value.get("expires_ms")
    return max(0, expires_ms - at_ms) if isinstance(at_ms, int) and isinstance(expires_ms, int) else 0


def _is_later(value: object, now_ms: int) -> bool:
    return isinstance(value, int) and value > now_ms + LATER_MS


def _part(entry: Entry) -> str:
    return entry.key.partition("/")[0]


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

"""Tells names that really vanished from those that we are only no longer shown.

Brokers answer without rights as if there were nothing, and a broker that lags behind answers as of yesterday. So names
that were known and are not shown are asked about *by name*: then a broker must say "no such topic" or "not allowed".
That answer is the second witness. Pure: who is asked and how is `agent.observe.doubt`.

Invariant: a name stays known until a broker said that it is gone, or it vanished alone and in a complete answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from agent.values.kafka import CLASSIC_GROUP, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from agent.values.observation import Gap, GapCause, Part, RawListedGroup
from agent.values.words import few
from agent.wire.client import WireClient
from agent.wire.failure import CallFailed
from agent.wire.group_calls import DESCRIBE_CALLS

_NAMED = 3


class Word(Enum):
    """What a witness said about a name."""

    GONE = auto()
    """There is no such thing."""
    HIDDEN = auto()
    """Not allowed to see it: it may well be there."""
    THERE = auto()
    """It is there: the first answer was not the whole truth."""


class Judgement(NamedTuple):
    """What to believe about the names that are no longer shown."""

    gone: frozenset[str]
    """A broker said so."""
    hidden: frozenset[str]
    """Still known, not shown: remembered for the next look and counted in the rights."""
    gaps: tuple[Gap, ...]


def to_ask(known: frozenset[str], shown: frozenset[str], most: int) -> tuple[str, ...]:
    """Names to ask a witness about, sorted; no more than ``most``, so that a lost right does not make a storm."""
    return tuple(sorted(known - shown)[:most])


def judge(
    part: Part,
    known: frozenset[str],
    shown: frozenset[str],
    words: Mapping[str, Word],
    *,
    complete: bool,
    shrink_share: float,
) -> Judgement:
    """Who is gone and who is hidden, of the names that are known and not shown.

    ``words`` holds what witnesses said; a name without a word is believed gone only when the answer was complete and
    no more than ``shrink_share`` of all known names vanished unexplained.
    """
    missing = known - shown
    said = {word: frozenset(name for name in missing if words.get(name) is word) for word in Word}
    silent = missing - said[Word.GONE] - said[Word.HIDDEN] - said[Word.THERE]
    shrunk = len(silent) > shrink_share * len(known)
    kept_silent = silent if shrunk or not complete else frozenset()
    gaps: list[Gap] = []
    if said[Word.HIDDEN]:
        detail = f"{_are(part, said[Word.HIDDEN])} no longer visible: DESCRIBE is denied; grant DESCRIBE on {part}"
        gaps.append(Gap(part, GapCause.NOT_ALLOWED, _subject(part, said[Word.HIDDEN]), detail))
    if said[Word.THERE]:
        detail = f"{_are(part, said[Word.THERE])} still there, but missing from the list of all {part}"
        gaps.append(Gap(part, GapCause.DOUBTED, _subject(part, said[Word.THERE]), detail))
    if shrunk:
        detail = f"{_are(part, silent)} no longer listed, and it is unknown whether they were deleted"
        gaps.append(Gap(part, GapCause.DOUBTED, _subject(part, silent), detail))
    return Judgement(said[Word.GONE], said[Word.HIDDEN] | said[Word.THERE] | kept_silent, tuple(gaps))


def _subject(part: Part, names: frozenset[str]) -> str:
    """Never empty: that would say that the whole part is missing."""
    return next(iter(names)) if len(names) == 1 else f"{len(names)} {part}"


def _are(part: Part, names: frozenset[str]) -> str:
    first = sorted(names)
    if len(first) == 1:
        return f"{first[0]} is"
    return f"{len(first)} {part} ({few(first, _NAMED)}) are"


_NOT_CLASSIC = "not a classic"
"""How a coordinator words that a group is there, but of another type."""


def ask_about_topics(
    wire: WireClient, names: Sequence[str], timeout_ms: int, *, answered_by: int | None
) -> Mapping[str, Word]:
    """What another broker than the one that answered before says of each topic; absent where no other answered.

    A broker that is behind leaves a topic out, and does not know it by name either.
    """
    alone = len(wire.broker_ids) <= 1
    if not names or (answered_by is None and not alone):
        return {}
    try:
        answer = wire.describe_topics(timeout_ms, names=names, avoid=None if alone else answered_by)
    except CallFailed:
        return {}
    if answer.answered_by == answered_by and not alone:
        return {}
    words = {
        None: Word.THERE,
        UNKNOWN_TOPIC_OR_PARTITION: Word.GONE,
        TOPIC_AUTHORIZATION_FAILED: Word.HIDDEN,
    }
    return {topic.name: words[topic.error] for topic in answer.topics if topic.error in words}


def ask_about_groups(
    wire: WireClient, names: Sequence[str], timeout_ms: int, *, listed: Iterable[RawListedGroup]
) -> Mapping[str, Word]:
    """What each group's coordinator says; ``listed`` tells of which type a group was when it was last seen."""
    types = {row.group_id: row.group_type or CLASSIC_GROUP for row in listed}
    by_type: dict[str, list[str]] = {}
    for name in names:
        by_type.setdefault(types.get(name, CLASSIC_GROUP), []).append(name)
    words: dict[str, Word] = {}
    for group_type, some in by_type.items():
        words |= _ask_about_type(wire, group_type, some, timeout_ms)
    return words


def _ask_about_type(wire: WireClient, group_type: str, names: list[str], timeout_ms: int) -> dict[str, Word]:
    described_as = group_type if group_type in DESCRIBE_CALLS else CLASSIC_GROUP
    described = wire.describe_groups(names, timeout_ms, group_type=described_as)
    words = {group.group_id: Word.THERE for group in described.groups}
    for gap in described.gaps:
        if gap.cause is GapCause.VANISHED:
            words[gap.subject] = Word.THERE if _NOT_CLASSIC in gap.detail else Word.GONE
        elif gap.cause is GapCause.NOT_ALLOWED:
            words[gap.subject] = Word.HIDDEN
    return words

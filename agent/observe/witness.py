"""Asks by name about what is no longer shown: then a broker must say whether it is gone or only hidden from us."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.observe.doubt import Word
from agent.values.kafka import CONSUMER_GROUP, STREAMS_GROUP, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from agent.values.observation import Gap, GapCause, RawListedGroup
from agent.wire.client import WireClient
from agent.wire.failure import CallFailed

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
    types = {row.group_id: row.group_type for row in listed}
    by_type: dict[str | None, list[str]] = {}
    for name in names:
        by_type.setdefault(types.get(name), []).append(name)
    words: dict[str, Word] = {}
    for group_type, some in by_type.items():
        words |= _ask_about_type(wire, group_type, some, timeout_ms)
    return words


def _ask_about_type(wire: WireClient, group_type: str | None, names: list[str], timeout_ms: int) -> dict[str, Word]:
    found: Iterable[str]
    gaps: tuple[Gap, ...]
    if group_type == CONSUMER_GROUP:
        consumers = wire.consumer_group_describe(names, timeout_ms)
        found, gaps = (group.group_id for group in consumers.groups), consumers.gaps
    elif group_type == STREAMS_GROUP:
        streams = wire.streams_group_describe(names, timeout_ms)
        found, gaps = (group.group_id for group in streams.groups), streams.gaps
    else:
        classic = wire.describe_groups(names, timeout_ms)
        found, gaps = (group.group_id for group in classic.groups), classic.gaps
    words = dict.fromkeys(found, Word.THERE)
    for gap in gaps:
        if gap.cause is GapCause.VANISHED:
            words[gap.subject] = Word.THERE if _NOT_CLASSIC in gap.detail else Word.GONE
        elif gap.cause is GapCause.NOT_ALLOWED:
            words[gap.subject] = Word.HIDDEN
    return words

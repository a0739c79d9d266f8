"""What does the running agent know? The newest events of some kinds that its telemetry topic holds.

Commands ask this beside their own look: its memory is the base for rates, its limits are what it would act by. Only the
topic's tail is read, in steps that grow, until an event of every kind is found or the time is over. Events of one kind
whose subject is the cluster lie in one partition, so the last of them there is the newest.

Invariant: nothing raises because of a broker or of what the topic holds; where nothing is known, a clause says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaException

from agent.record.heard import Heard, heard_of
from agent.record.librdkafka import in_words
from agent.record.reader import Span, TopicReader, open_reader
from agent.record.restart import MEMORY_PARTITION
from agent.telemetry.events import Event, Kind, from_lines

ONE_PER_LOOK = frozenset({Kind.LOOK, Kind.GAPS, Kind.LIMITS, Kind.MEMORY, Kind.REPORT})
"""Kinds whose subject is the cluster: one event in every look that is written in full."""
_FIRST_STEP = 32
_GROWTH = 8
T = TypeVar("T")


class NewestLook(NamedTuple):
    """The newest event of each kind that was asked for, of one cluster."""

    events: Mapping[Kind, Event]
    why_not: str | None = None
    """Why an event is missing, as one clause; None when all are there."""


def newest_look(
    config: Mapping[str, str | int],
    topic: str,
    cluster: str | None,
    kinds: AbstractSet[Kind],
    *,
    prefix: str,
    timeout_ms: int,
) -> NewestLook:
    """The newest events of those kinds, which must be of `ONE_PER_LOOK`; ``cluster`` None takes any cluster's.

    ``config`` is confluent-kafka's. Joins no group, commits nothing, creates nothing.
    """
    if not kinds <= ONE_PER_LOOK:
        raise ValueError(f"a look has more than one event of these kinds: {sorted(kinds - ONE_PER_LOOK)}")
    found = _asked(lambda reader: newest_of(reader, topic, kinds, cluster), config, topic, prefix, timeout_ms)
    return NewestLook({}, found) if isinstance(found, str) else found


def leading_look(
    config: Mapping[str, str | int],
    topic: str,
    cluster: str | None,
    kinds: AbstractSet[Kind],
    *,
    prefix: str,
    timeout_ms: int,
) -> tuple[NewestLook, tuple[Heard, ...]]:
    """The newest events of the agent that leads, or of the newest one where none does; and all agents, it first.

    Where its own events cannot be read in time, those of no other agent take their place.
    """
    found = _asked(
        lambda reader: leading_of(
            lambda *whose: newest_of(reader, topic, kinds, *whose), lambda: heard_of(reader, cluster), cluster
        ),
        config, topic, prefix, timeout_ms,
    )  # fmt: skip
    return (NewestLook({}, found), ()) if isinstance(found, str) else found


def leading_of(
    newest_of_agent: Callable[[str | None, str | None], NewestLook],
    agents: Callable[[], tuple[Heard, ...]],
    cluster: str | None,
) -> tuple[NewestLook, tuple[Heard, ...]]:
    """`leading_look` of any telemetry: by its newest events of (cluster, instance), None for any, and its agents."""
    newest = newest_of_agent(cluster, None)
    if newest.why_not is not None:
        return newest, ()
    heard = agents()
    if not heard:
        return NewestLook({}, "it did not show in time which agents write it"), ()
    first = heard[0]
    if all(event.instance == first.instance for event in newest.events.values()):
        return newest, heard
    own = newest_of_agent(first.cluster, first.instance)
    if own.why_not is None:
        return own, heard
    return NewestLook({}, f"{first.name} {'leads' if first.report.leads else 'writes it'}, but {own.why_not}"), heard


def agents_heard(config: Mapping[str, str | int], topic: str, *, prefix: str, timeout_ms: int) -> tuple[Heard, ...]:
    """The agents of any cluster that write to a topic, the leader first; none where it cannot be read."""
    found = _asked(lambda reader: heard_of(reader, None), config, topic, prefix, timeout_ms)
    return () if isinstance(found, str) else found


def _asked(
    ask: Callable[[TopicReader], T], config: Mapping[str, str | int], topic: str, prefix: str, timeout_ms: int
) -> T | str:
    """What the open reader answers; or why the topic could not be read, as one clause."""
    try:
        with open_reader({**config, "log_level": 0}, topic, prefix=prefix, timeout_ms=timeout_ms) as reader:
            return ask(reader)
    except KafkaException as error:
        return f"{topic} could not be read ({in_words(error.args[0])})"


def newest_of(
    reader: TopicReader, topic: str, kinds: AbstractSet[Kind], cluster: str | None, instance: str | None = None
) -> NewestLook:
    """The same of an open reader; with an instance, of that agent alone. Raises KafkaException."""
    spans = reader.spans(only=frozenset({MEMORY_PARTITION}) if kinds == {Kind.MEMORY} else None)
    if not spans:
        return NewestLook({}, f"there is no topic {topic}")
    found: dict[Kind, Event] = {}
    left_out: list[str] = []
    step, whole = _FIRST_STEP, False
    while not whole and kinds - found.keys():
        tail = tuple(span._replace(first=max(span.first, span.end - step)) for span in spans)
        values: dict[int, list[bytes]] = {span.partition: [] for span in tail}
        for read in reader.read(tail):
            if read.value is not None:
                values[read.partition].append(read.value)
        if not reader.in_time:  # what came so far need not be the newest
            break
        left_out = []
        found = _last_of_each(values.values(), cluster, kinds, left_out.append, instance)
        whole = _covers(tail, spans)
        step *= _GROWTH
    missing = kinds - found.keys()
    if not missing:
        return NewestLook(found)
    named = ", ".join(sorted(missing))
    why_not = f"{topic} holds no {named}" if whole else f"{topic} did not show its {named} in time"
    if left_out:
        why_not = f"{why_not}; {len(left_out)} of its records could not be read: {left_out[0]}"
    return NewestLook(found, why_not)


def _last_of_each(
    partitions: Iterable[list[bytes]],
    cluster: str | None,
    kinds: AbstractSet[Kind],
    left_out: Callable[[str], None],
    instance: str | None = None,
) -> dict[Kind, Event]:
    """The newest event of each kind; what is older is not even decoded, and what is no event hides none."""
    newest: dict[Kind, Event] = {}
    for values in partitions:
        open_kinds = set(kinds)
        for event in from_lines(reversed(values), left_out):
            if event.kind in open_kinds and cluster in (None, event.cluster) and instance in (None, event.instance):
                open_kinds.discard(event.kind)
                known = newest.get(event.kind)
                if known is None or known.taken_ms < event.taken_ms:
                    newest[event.kind] = event
            if not open_kinds:
                break
    return newest


def _covers(tail: tuple[Span, ...], spans: tuple[Span, ...]) -> bool:
    return all(cut.first <= span.first for cut, span in zip(tail, spans, strict=True))

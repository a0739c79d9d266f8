"""Which brokers are absent, and since when: a restart takes a broker away for a while, and most of them come back.

A broker is absent while a replica list names it, or an earlier look saw it, and it is not among the live brokers: it is
not registered, or it is fenced (KIP-631). One look cannot tell a restart from a broker that is gone for good, so
nothing is moved because of an absence until it has lasted ``racks.broker_absent_for``.

Invariant: while the brokers did not answer, none is absent, and what was known of absences stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from agent.values.memory import Memory
from agent.values.observation import Part
from agent.values.snapshot import Snapshot
from agent.values.words import lasted


class Absence(NamedTuple):
    """What is known of a broker that is absent."""

    for_ms: int | None
    """How long, as far as looks tell; None where only one look was taken."""
    seen_before: bool
    """True where an earlier look saw it: then the absence began with the first look that did not."""
    fenced: bool
    """True where it is registered and fenced."""
    has_replicas: bool
    """True where a replica list names it."""
    removed: bool = False
    """True where a simulation takes it away: it is absent in no look."""
    live_ago_ms: int | None = None
    """How long ago an agent saw it live, where a command's one look knows no more."""

    def awaited(self, absent_for_ms: int) -> bool:
        """Whether it may well be a restart: nothing is moved because of it yet. One look cannot tell: then False."""
        return self.has_replicas and self.for_ms is not None and self.for_ms < absent_for_ms


def absences(memory: Memory, snapshot: Snapshot) -> dict[int, Absence]:
    """Every absent broker, sorted by id; ``memory`` is that of the looks before this one."""
    if _unanswered(snapshot):
        return {}
    states = {broker.id: broker for broker in snapshot.brokers}
    found: dict[int, Absence] = {}
    named = _named(snapshot, [broker for broker, state in states.items() if not state.alive])
    for broker in _absent(memory, snapshot):
        state = states.get(broker)
        since_ms = memory.absent.get(broker, snapshot.monotonic_ms if memory.cycle else None)
        found[broker] = Absence(
            None if since_ms is None else max(0, snapshot.monotonic_ms - since_ms),
            seen_before=broker in memory.brokers,
            live_ago_ms=None if broker not in memory.last_live else snapshot.monotonic_ms - memory.last_live[broker],
            fenced=state is not None and state.fenced is True,
            has_replicas=broker in named,
            removed=broker in memory.removed,
        )
    return found


def awaited(found: Mapping[int, Absence], absent_for_ms: int) -> frozenset[int]:
    """Brokers that are waited for: nothing is moved because of their absence yet."""
    return frozenset(broker for broker, absence in found.items() if absence.awaited(absent_for_ms))


def absent_since(memory: Memory, snapshot: Snapshot) -> Mapping[int, int]:
    """Broker -> monotonic ms of the first look that missed it, for the next memory."""
    if _unanswered(snapshot):
        return memory.absent
    return {broker: memory.absent.get(broker, snapshot.monotonic_ms) for broker in _absent(memory, snapshot)}


def gone_for_good(memory: Memory, snapshot: Snapshot, absent_for_ms: int, gone: Iterable[int]) -> Memory:
    """The memory in which those brokers have been absent for long enough: a simulation is about what is so then."""
    since_ms = snapshot.monotonic_ms - absent_for_ms
    brokers = frozenset(gone)
    return replace(memory, absent={**memory.absent, **dict.fromkeys(brokers, since_ms)}, removed=brokers)


def _absent(memory: Memory, snapshot: Snapshot) -> list[int]:
    listed = {broker.id for broker in snapshot.brokers}
    away = {broker.id for broker in snapshot.brokers if not broker.alive}
    return sorted(away | ((memory.brokers.keys() | memory.last_live.keys()) - listed))


def _named(snapshot: Snapshot, away: list[int]) -> frozenset[int]:
    """Those that a replica list names; of one that is not registered nothing else tells."""
    if not away:
        return frozenset()
    registered = {broker.id for broker in snapshot.brokers if broker.host is not None}
    lists = {state.replicas for topic in snapshot.topics.values() for state in topic.partitions}
    named = frozenset(chain.from_iterable(lists))
    return frozenset(broker for broker in away if broker in named or broker not in registered)


def _unanswered(snapshot: Snapshot) -> bool:
    return any(gap.part is Part.BROKERS for gap in snapshot.gaps)


# --- words ------------------------------------------------------------------------------------------------------


def absence_words(broker: int, absence: Absence) -> str:
    """``broker 3 has been absent for 12 s``, ``broker 3 is absent now, since when is unknown``; or fenced."""
    if absence.removed:
        return f"broker {broker} is removed in this simulation"
    what = "fenced" if absence.fenced else "absent"
    if absence.for_ms is None:
        since = "since when is unknown"
        if absence.live_ago_ms is not None:
            since = f"and was live {lasted(absence.live_ago_ms)} ago, as the running agent saw it"
        return f"broker {broker} is {what} now, {since}"
    if absence.for_ms < 1_000:
        return f"broker {broker} has been {what} since this look"
    least = "" if absence.seen_before else "at least "
    return f"broker {broker} has been {what} for {least}{lasted(absence.for_ms)}"

"""What every detector stands on: the racks that may be planned from, and the brokers whose racks do not hold still.

Equal grounds are the same object from cycle to cycle, so that findings about a topic or a group are reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.memory.sightings import sightings, unsteady
from agent.values.absences import Absence, absences, awaited
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory, RackSighting
from agent.values.observation import Part
from agent.values.replicas import RackRoom, rack_room
from agent.values.snapshot import BrokerState, RackState, Snapshot


class Ground(NamedTuple):
    """The racks of the brokers, in the forms that detectors ask for."""

    brokers: tuple[BrokerState, ...]
    room: RackRoom
    """All racks, also of brokers that do not hold still."""
    steady_room: RackRoom
    """Room for replicas on brokers that hold still only."""
    unsteady: frozenset[int]
    shown: Mapping[int, str]
    """Rack of each broker as clients see it: what it tells itself. An absent broker has none for them, whatever is
    remembered of it, and neither has one that only a locator knows."""
    racks: tuple[str, ...]
    """Every known rack, sorted."""
    selector: bool | None
    """Whether reads go to the nearest replica; None when that is unknown."""
    complete: bool
    """False when brokers did not answer: then no broker is absent for certain."""
    away: frozenset[int] = frozenset()
    """Absent brokers that are waited for: nothing is moved because of their absence yet."""
    gone: frozenset[int] = frozenset()
    """Absent brokers that are not waited for: no share of the preferred leaders is theirs."""
    topics_whole: bool = False
    """True when every topic is shown, as far as rights and answers tell: what is not among them does not exist."""

    @property
    def rack_lost(self) -> bool:
        """True where a broker is absent and its rack not known: a rack may be there that none of the others has."""
        return any(not broker.alive and broker.rack.name is None for broker in self.brokers)

    @property
    def racks_matter(self) -> bool:
        """True where the brokers stand in more than one rack."""
        return len(self.racks) > 1


class View(NamedTuple):
    """All that is looked at in one cycle."""

    snapshot: Snapshot
    memory: Memory
    limits: Limits
    ground: Ground
    sightings: Mapping[int, RackSighting]
    missing: frozenset[Part]
    """Parts that did not answer as a whole."""
    absences: Mapping[int, Absence]
    """Absent brokers."""


def view_of(snapshot: Snapshot, memory: Memory, limits: Limits, memo: Memo) -> View:
    """The snapshot with what earlier looks say about its racks."""
    seen = sightings(memory, snapshot)
    wavering = unsteady(seen, snapshot.monotonic_ms, limits)
    missing = frozenset(gap.part for gap in snapshot.gaps if not gap.subject)
    absent = absences(memory, snapshot)
    away = awaited(absent, limits.racks.broker_absent_for_ms)
    gone = frozenset(absent) - away
    complete = not any(gap.part is Part.BROKERS for gap in snapshot.gaps)
    ground = memo.of(
        ("ground",),
        (
            snapshot.brokers,
            wavering,
            away,
            gone,
            snapshot.selector_is_rack_aware,
            complete,
            whole := _topics_whole(snapshot),
        ),
        lambda: _ground(snapshot, wavering, away, gone, complete=complete, topics_whole=whole),
    )
    return View(snapshot, memory, limits, ground, seen, missing, absent)


def _topics_whole(snapshot: Snapshot) -> bool:
    """A topic that may not be described is left out without a word."""
    rights = snapshot.rights
    hidden = rights.cluster_describe is not True or bool(rights.topics_hidden)
    return not hidden and not any(gap.part in (Part.TOPICS, Part.RIGHTS) for gap in snapshot.gaps)


def _ground(
    snapshot: Snapshot,
    wavering: frozenset[int],
    away: frozenset[int],
    gone: frozenset[int],
    *,
    complete: bool,
    topics_whole: bool,
) -> Ground:
    room = rack_room(snapshot.brokers)
    known = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    alive = {broker.id for broker in snapshot.brokers if broker.alive or not complete}
    return Ground(
        snapshot.brokers,
        room,
        rack_room(snapshot.brokers, leave_out=wavering),
        wavering,
        {b.id: b.rack.told for b in snapshot.brokers if b.id in alive and b.rack.told is not None},
        tuple(sorted(set(known.values()))),
        snapshot.selector_is_rack_aware,
        complete,
        away,
        gone,
        topics_whole,
    )

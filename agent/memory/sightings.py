"""Counts how long each broker has been telling the rack that it tells now.

A rack is planned from only after it has held still: in time, in looks, and without changing too often (hysteresis).
Before the first look nothing was different, so racks seen then count as having always been there.

Invariant: a broker that is absent changes nothing; its last claim stays. A missing rack is a claim of its own, and
neither equal to nor different from any rack: it never makes a "changed" rack, only an unsteady one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from agent.values.limits import Limits
from agent.values.memory import Memory, RackSighting
from agent.values.snapshot import RackState, Snapshot

CHANGES_KEPT = 16
"""The settings let no more of them be needed for a rack that flaps."""


class Steadiness(StrEnum):
    """How far a broker's rack may be planned from."""

    STEADY = "steady"
    NEW = "changed a moment ago"
    FLAPPING = "changes too often"


def sightings(memory: Memory, snapshot: Snapshot) -> dict[int, RackSighting]:
    """The sightings of every broker ever seen, with this look counted in."""
    seen = dict(memory.brokers)
    for broker in snapshot.brokers:
        if broker.rack.remembered or broker.host is None or broker.rack.state is RackState.CONFLICTING:
            continue
        seen[broker.id] = _look(seen.get(broker.id), broker.rack.name, snapshot.monotonic_ms)
    return dict(sorted(seen.items()))


def steadiness(sighting: RackSighting, now_ms: int, limits: Limits) -> Steadiness:
    """Whether the rack has held still: flapping is graver than new."""
    recent = sum(now_ms - at <= limits.racks.flap_window_ms for at in sighting.changes)
    if recent >= limits.racks.flap_changes:
        return Steadiness.FLAPPING
    if sighting.changes and not _held_still(sighting, now_ms, limits):
        return Steadiness.NEW
    return Steadiness.STEADY


def unsteady(brokers: Mapping[int, RackSighting], now_ms: int, limits: Limits) -> frozenset[int]:
    """Brokers from whose racks nothing may be planned now."""
    return frozenset(
        broker for broker, seen in brokers.items() if steadiness(seen, now_ms, limits) is not Steadiness.STEADY
    )


def _held_still(sighting: RackSighting, now_ms: int, limits: Limits) -> bool:
    long_enough = now_ms - sighting.since_ms >= limits.racks.stable_for_ms
    return long_enough and sighting.polls >= limits.racks.stable_polls


def _look(before: RackSighting | None, rack: str | None, now_ms: int) -> RackSighting:
    if before is None:
        return RackSighting(rack, rack, None, now_ms, 1)
    if rack == before.rack:
        return before._replace(polls=before.polls + 1)
    changes = (*before.changes, now_ms)[-CHANGES_KEPT:]
    if rack is None or before.known is None or rack == before.known:
        return before._replace(
            rack=rack, known=before.known if rack is None else rack, since_ms=now_ms, polls=1, changes=changes
        )
    return RackSighting(rack, rack, before.known, now_ms, 1, changes)

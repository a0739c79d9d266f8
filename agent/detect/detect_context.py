"""Context of the detectors: racks to plan from, unsteady brokers, and findings about rack locators.

An equal context is the same object from cycle to cycle, so that findings about a topic or a group are reused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.memory.rack_history import sightings, unsteady
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.limits import Limits, LocatorKind
from agent.values.memo import Memo
from agent.values.memory import BrokerAbsence, Memory, RackSighting, absences, awaited
from agent.values.number_format import NAMED, counted, in_full, listed
from agent.values.observation import ObservationPart
from agent.values.snapshot import BrokerState, Rack, RackState, ReaderGroup, Snapshot
from agent.values.throttles import RackRoom, rack_room


class BrokerRacks(NamedTuple):
    """The racks of the brokers, in the forms that detectors ask for."""

    brokers: tuple[BrokerState, ...]
    room: RackRoom
    """All racks, also of brokers that do not hold still."""
    steady_room: RackRoom
    """Room for replicas on brokers that hold still only."""
    unsteady: frozenset[int]
    metadata_racks: Mapping[int, str]
    """Broker -> ``broker.rack``, as clients see it in Metadata; without absent brokers and racks of locators alone."""
    racks: tuple[str, ...]
    """Every known rack, sorted."""
    selector: bool | None
    """True when reads go to the nearest replica; None when unknown."""
    complete: bool
    """False when brokers did not answer: then no broker is absent for certain."""
    away: frozenset[int] = frozenset()
    """Absent brokers that may be restarting: nothing is moved because of their absence yet."""
    gone: frozenset[int] = frozenset()
    """Absent brokers beyond that time: they count for no share of the preferred leaders."""
    topics_whole: bool = False
    """True when every topic is visible by rights and answers: a topic not among them does not exist."""

    @property
    def rack_lost(self) -> bool:
        """True where a broker is absent and its rack not known: a rack may be there that none of the others has."""
        return any(not broker.alive and broker.rack.name is None for broker in self.brokers)

    @property
    def racks_matter(self) -> bool:
        """True where the brokers are in more than one rack."""
        return len(self.racks) > 1


class DetectContext(NamedTuple):
    """All that is looked at in one cycle."""

    snapshot: Snapshot
    memory: Memory
    limits: Limits
    broker_racks: BrokerRacks
    sightings: Mapping[int, RackSighting]
    missing: frozenset[ObservationPart]
    """Parts that did not answer as a whole."""
    absences: Mapping[int, BrokerAbsence]
    """Absent brokers."""


def detect_context(snapshot: Snapshot, memory: Memory, limits: Limits, memo: Memo) -> DetectContext:
    """The context of the snapshot with the steadiness of its racks by the memory."""
    seen = sightings(memory, snapshot)
    unsteady_brokers = unsteady(seen, snapshot.monotonic_ms, limits)
    missing = frozenset(gap.part for gap in snapshot.gaps if not gap.subject)
    absent = absences(memory, snapshot)
    away = awaited(absent, limits.racks.broker_absent_for_ms)
    gone = frozenset(absent) - away
    complete = not any(gap.part is ObservationPart.BROKERS for gap in snapshot.gaps)
    racks = memo.of(
        ("ground",),
        (
            snapshot.brokers,
            unsteady_brokers,
            away,
            gone,
            snapshot.selector_is_rack_aware,
            complete,
            whole := _topics_whole(snapshot),
        ),
        lambda: _broker_racks(snapshot, unsteady_brokers, away, gone, complete=complete, topics_whole=whole),
    )
    return DetectContext(snapshot, memory, limits, racks, seen, missing, absent)


def _topics_whole(snapshot: Snapshot) -> bool:
    """A topic without the right to describe it is missing from the answer without a gap."""
    rights = snapshot.rights
    hidden = rights.cluster_describe is not True or bool(rights.topics_hidden)
    return not hidden and not any(gap.part in (ObservationPart.TOPICS, ObservationPart.RIGHTS) for gap in snapshot.gaps)


def _broker_racks(
    snapshot: Snapshot,
    unsteady_brokers: frozenset[int],
    away: frozenset[int],
    gone: frozenset[int],
    *,
    complete: bool,
    topics_whole: bool,
) -> BrokerRacks:
    room = rack_room(snapshot.brokers)
    known = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    alive = {broker.id for broker in snapshot.brokers if broker.alive or not complete}
    return BrokerRacks(
        snapshot.brokers,
        room,
        rack_room(snapshot.brokers, leave_out=unsteady_brokers),
        unsteady_brokers,
        {b.id: b.rack.rack_id for b in snapshot.brokers if b.id in alive and b.rack.rack_id is not None},
        tuple(sorted(set(known.values()))),
        snapshot.selector_is_rack_aware,
        complete,
        away,
        gone,
        topics_whole,
    )


__all__ = ["NAMED", "RUNS", "SHOWN", "first", "listed", "numbered", "of_all", "placed"]

SHOWN = 5
"""Names shown in evidence; the rest is counted."""
RUNS = 20
"""Numbers, or runs of numbers, shown in a sentence that names brokers."""


def of_all(number: int, total: int, noun: str) -> str:
    """``1 of 3 members``."""
    return f"{number:,} of {counted(total, noun)}"


def either(names: Iterable[object]) -> str:
    """``a``, ``a or b``, ``a, b, c or one of 4 more``."""
    words = [str(name) for name in names]
    if len(words) > NAMED:
        return f"{', '.join(words[:NAMED])} or one of {len(words) - NAMED:,} more"
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def numbered(numbers: Iterable[int]) -> str:
    """``1``, ``1 and 3``, ``1 to 9``, ``1, 2, 4 to 6 and 9``: all of them, as long as there are not too many gaps."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [part for run in runs for part in ([run] if len(run) > 2 else [[number] for number in run])]
    words = [str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts[:RUNS]]
    if len(parts) > RUNS:
        return f"{', '.join(words)} and {sum(map(len, parts[RUNS:]))} more"
    return in_full(words)


def named(noun: str, numbers: Sequence[int]) -> str:
    """``broker 1``, ``brokers 1, 2 and 4 more``."""
    return f"{noun if len(numbers) == 1 else noun + 's'} {listed(numbers)}"


def first(names: Sequence[str] | Sequence[int]) -> tuple[str | int, ...]:
    """The names that evidence shows."""
    return tuple(names[:SHOWN])


def placed(replicas: Iterable[int], rack_of: Mapping[int, str | None] | Mapping[int, str]) -> str:
    """``1 (a), 4 (a)``; a broker of unknown rack has a question mark."""
    return ", ".join(f"{replica} ({rack_of.get(replica) or '?'})" for replica in replicas)


# Rack locators that contradict each other or themselves (KIP-36): one finding per broker and one per group. The first
# locator that knows wins, so a contradiction holds nothing.


def broker_disagreement(broker: BrokerState, view: DetectContext) -> Iterable[Finding]:
    """A finding where locators disagree on a broker's rack."""
    if not _disputed(broker.rack):
        return
    yield Finding(
        reason=FindingReason.RACK_LOCATORS_DISAGREE,
        subject=SubjectId("broker", str(broker.id)),
        broker=broker.id,
        sentence=f"broker {broker.id} has {_racks(broker.rack)} by its locators: {_claims(broker.rack, BROKER_RACK)}",
        evidence=(
            ("rack", broker.rack.name),
            ("locator", broker.rack.source or LocatorKind.WIRE.value),
            ("others", tuple(f"{name}: {rack}" for name, rack in broker.rack.others)),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def member_disagreements(group: ReaderGroup, racks: Iterable[Rack], view: DetectContext) -> Iterable[Finding]:
    """A finding where locators disagree on racks of a group's members."""
    if not any(map(_disputed, racks)):
        return
    disputed = [member for member in group.members if _disputed(member.rack)]
    one = disputed[0]
    who = of_all(len(disputed), len(group.members), "member")
    yield Finding(
        reason=FindingReason.RACK_LOCATORS_DISAGREE,
        subject=SubjectId("group", group.id),
        sentence=f"group {group.id} has {who} to whom locators give more than one rack: for client {one.client_id} "
        f"{_claims(one.rack, CLIENT_RACK)}",
        evidence=(
            ("members", len(disputed)),
            ("of", len(group.members)),
            ("first", first([member.id for member in disputed])),
            ("clients", first(sorted({member.client_id for member in disputed}))),
            ("others", first(sorted({f"{name}: {rack}" for member in disputed for name, rack in member.rack.others}))),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def known_by(rack: Rack, setting: str = BROKER_RACK) -> str:
    """Source and rack as a clause: ``file knows rack a``, ``broker.rack says a``."""
    if rack.source is None:
        return f"{setting} says {rack.name}"
    alias = rack.source == LocatorKind.WIRE.value
    return f"{setting} says {rack.sent}, which is {rack.name}" if alias else f"{rack.source} knows rack {rack.name}"


def _disputed(rack: Rack) -> bool:
    return bool(rack.others) or (rack.state is RackState.CONFLICTING and bool(rack.source))


def _racks(rack: Rack) -> str:
    ways = len({rack.name, *(other for _, other in rack.others), *rack.claims} - {None})
    return counted(ways, "rack")


def _claims(rack: Rack, setting: str) -> str:
    others = listed([f"{setting if name == LocatorKind.WIRE else name} says {other}" for name, other in rack.others])
    if rack.state is RackState.KNOWN:
        return f"{known_by(rack, setting)} and is used, {others}"
    contradiction = f"{rack.source} says {listed(rack.claims)}" if rack.source else "the rack is unknown"
    return f"{contradiction}{', ' if others else ''}{others}, so none of them is used"

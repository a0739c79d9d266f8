"""Findings about rack locators that contradict each other, or themselves (KIP-36's RackLocator).

The first locator that knows wins, so a contradiction stops nothing; but one of the two is wrong, and its owner
should know. One finding per broker and one per group, with what each locator says.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.detect.ground import View
from agent.detect.words import count, first, listed, of_all
from agent.values.finding import Finding, FindingReason, Severity, Subject
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.limits import LocatorKind
from agent.values.snapshot import BrokerState, Rack, RackState, ReaderGroup


def broker_disagreement(broker: BrokerState, view: View) -> Iterable[Finding]:
    """What locators say of a broker, where they do not say one thing."""
    if not _disputed(broker.rack):
        return
    yield Finding(
        reason=FindingReason.RACK_LOCATORS_DISAGREE,
        subject=Subject("broker", str(broker.id)),
        sentence=f"broker {broker.id} has {_ways(broker.rack)} by its locators: {_told(broker.rack, BROKER_RACK)}",
        evidence=(
            ("rack", broker.rack.name),
            ("locator", broker.rack.source or LocatorKind.WIRE.value),
            ("others", tuple(f"{name}: {rack}" for name, rack in broker.rack.others)),
        ),
        severity=Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def member_disagreements(group: ReaderGroup, racks: Iterable[Rack], view: View) -> Iterable[Finding]:
    """The members of a group, who are in these racks, of whom locators do not say one thing."""
    if not any(map(_disputed, racks)):
        return
    disputed = [member for member in group.members if _disputed(member.rack)]
    one = disputed[0]
    who = of_all(len(disputed), len(group.members), "member")
    yield Finding(
        reason=FindingReason.RACK_LOCATORS_DISAGREE,
        subject=Subject("group", group.id),
        sentence=f"group {group.id} has {who} to whom locators give more than one rack: for client {one.client_id} "
        f"{_told(one.rack, CLIENT_RACK)}",
        evidence=(
            ("members", len(disputed)),
            ("of", len(group.members)),
            ("first", first([member.id for member in disputed])),
            ("clients", first(sorted({member.client_id for member in disputed}))),
            ("others", first(sorted({f"{name}: {rack}" for member in disputed for name, rack in member.rack.others}))),
        ),
        severity=Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def whence(rack: Rack, setting: str) -> str | None:
    """From where a rack is known, in a word or two; None where it is not known."""
    if rack.remembered:
        return "an earlier look"
    if rack.state is RackState.UNKNOWN:
        return None
    return setting if rack.source in (None, LocatorKind.WIRE.value) else rack.source


def known_by(rack: Rack, setting: str = BROKER_RACK) -> str:
    """Who knows a rack: ``file knows rack a``, ``broker.rack says a``."""
    if rack.source is None:
        return f"{setting} says {rack.name}"
    alias = rack.source == LocatorKind.WIRE.value
    return f"{setting} says {rack.sent}, which is {rack.name}" if alias else f"{rack.source} knows rack {rack.name}"


def _disputed(rack: Rack) -> bool:
    return bool(rack.others) or (rack.state is RackState.CONFLICTING and bool(rack.source))


def _ways(rack: Rack) -> str:
    ways = len({rack.name, *(other for _, other in rack.others), *rack.claims} - {None})
    return count(ways, "rack")


def _told(rack: Rack, setting: str) -> str:
    others = listed([f"{setting if name == LocatorKind.WIRE else name} says {other}" for name, other in rack.others])
    if rack.state is RackState.KNOWN:
        return f"{known_by(rack, setting)} and is used, {others}"
    contradiction = f"{rack.source} says {listed(rack.claims)}" if rack.source else "the rack is unknown"
    return f"{contradiction}{', ' if others else ''}{others}, so none of them is used"

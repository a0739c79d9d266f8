"""Findings about what a group's members tell: their racks, the age of their subscriptions, bytes that cannot be read.

One finding per group and reason, with how many members it concerns and the first few clients. Where the brokers stand
in one rack only, a member's rack changes nothing, and nothing is said of it. A member whose bytes cannot be read is
said to be unreadable, not to be without a rack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agent.detect.ground import View
from agent.detect.meant import meant_rack
from agent.detect.software import libraries_of, python_library
from agent.detect.words import SHOWN, first, listed, of_all
from agent.values.finding import Finding, FindingReason, Severity, Subject
from agent.values.kafka import FIRST_WITH_RACK as FIRST_RELEASES
from agent.values.snapshot import COORDINATOR_KINDS, Member, Rack, RackState, ReaderGroup, StreamsGroup

FIRST_WITH_RACK = 3
"""Subscription version that can carry a rack (KIP-881)."""


def member_findings(group: ReaderGroup, racks: Iterable[Rack], view: View) -> list[Finding]:
    """Findings about one group's members, who are in these racks; of racks nothing while the group hides them."""
    findings: list[Finding] = []
    broken = [member for member in group.members if member.defects]
    if broken:
        findings.append(_undecodable(group, broken, view))
    if not group.hidden and any(rack.name is not None and rack.name not in view.ground.racks for rack in racks):
        findings += _in_no_brokers_rack(group, view)
    if view.ground.racks_matter and not group.hidden:
        versions = {member.subscription_version for member in group.members} - {None}
        if any(rack.silent for rack in racks):
            findings += _without_rack(group, [member for member in group.members if member.rack.silent], view)
        if any(version < FIRST_WITH_RACK for version in versions if version is not None):
            findings += _too_old(group, view)
        if len(versions) > 1 or isinstance(group, StreamsGroup):
            findings += _mixed_versions(group, view)
    return findings


def is_too_old(member: Member) -> bool:
    """True for a subscription that has no room for a rack."""
    return member.subscription_version is not None and member.subscription_version < FIRST_WITH_RACK


def _without_rack(group: ReaderGroup, unknown: Iterable[Member], view: View) -> Iterable[Finding]:
    by_broker = group.kind in COORDINATOR_KINDS
    silent = [
        member
        for member in unknown
        if (by_broker or member.subscription_version is not None) and not is_too_old(member)
    ]
    if silent:
        who = of_all(len(silent), len(group.members), "member")
        known = sum(member.rack.state is RackState.KNOWN for member in silent)
        located = f", and locators know the racks of {known} of them, but Kafka does not" if known else ""
        sentence = f"group {group.id} has {who} that send no rack ({_clients(silent)}){located}: set client.rack"
        yield _finding(FindingReason.MEMBER_WITHOUT_RACK, group, silent, sentence, view)


def _too_old(group: ReaderGroup, view: View) -> Iterable[Finding]:
    old = [member for member in group.members if is_too_old(member)]
    if old:
        who = of_all(len(old), len(group.members), "member")
        newest = max(member.subscription_version or 0 for member in old)
        sentence = f"group {group.id} has {who} whose subscriptions (version {newest} at most) cannot carry a rack "
        sentence += f"({_clients(old)}): {_remedy(old, view.limits.group(group.id).client_software_name)}"
        yield _finding(FindingReason.SUBSCRIPTION_TOO_OLD, group, old, sentence, view)


def _remedy(old: Sequence[Member], software: str | None) -> str:
    """An upgrade, but for kafka-python and aiokafka: no version of them sends a rack."""
    libraries = libraries_of(old, software)
    drop_ins = f"no version of {listed(libraries)} sends a rack: use the assignors of assignors.clients"
    drop_ins += " (docs/clients.md)"
    if libraries and all(python_library(member, software) for member in old):
        return drop_ins
    upgrade = f"use {FIRST_RELEASES}, or newer"
    if libraries:
        return f"{drop_ins}, and for all others {upgrade}"
    if any(member.subscription_version == 0 for member in old):
        return f"{upgrade}, or for kafka-python and aiokafka the assignors of assignors.clients (docs/clients.md)"
    return upgrade


def _in_no_brokers_rack(group: ReaderGroup, view: View) -> Iterable[Finding]:
    """A rack that no broker has: a zone id where brokers tell zone names, another spelling, a slip, or a lost zone."""
    ground = view.ground
    away = [member for member in group.members if is_away(member, ground.racks)]
    if not away or not ground.racks or not ground.complete or ground.rack_lost:
        return
    told = sorted({str(member.rack.told or member.rack.name) for member in away})
    meant = {rack: meant_rack(rack, ground.racks) for rack in told[:SHOWN]}
    who = of_all(len(away), len(group.members), "member")
    named = [rack if (guess := meant.get(rack)) is None else f"{rack} (probably meant: {guess})" for rack in told]
    sentence = f"group {group.id} has {who} in a rack that no broker has ({_clients(away)}): {listed(named)}; "
    sentence += f"brokers are in {listed(ground.racks)}, so all that these members read crosses racks: set client.rack"
    yield Finding(
        reason=FindingReason.MEMBER_IN_NO_BROKERS_RACK,
        subject=Subject("group", group.id),
        sentence=sentence,
        evidence=(
            ("members", len(away)),
            ("of", len(group.members)),
            ("racks", first(told)),
            ("meant", tuple(f"{rack}: {guess}" for rack, guess in meant.items() if guess)),
            ("racks of brokers", first(ground.racks)),
            ("clients", first(sorted({member.client_id for member in away}))),
            ("hosts", first(sorted({member.client_host for member in away}))),
        ),
        severity=Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def is_away(member: Member, racks: Collection[str | None]) -> bool:
    """True for a member whose rack is known and is none of the brokers' racks."""
    return member.rack.state is RackState.KNOWN and member.rack.name not in racks


def _undecodable(group: ReaderGroup, broken: Sequence[Member], view: View) -> Finding:
    member, defect = broken[0], broken[0].defects[0]
    who = of_all(len(broken), len(group.members), "member")
    sentence = f"group {group.id} has {who} with bytes that cannot be read: the {defect.what} of {member.id} "
    sentence += f"from {member.client_host}: {defect.reason}; {defect.sentence}"
    return _finding(FindingReason.GROUP_UNDECODABLE, group, broken, sentence, view)


def _mixed_versions(group: ReaderGroup, view: View) -> Iterable[Finding]:
    """A roll in progress: the group speaks the oldest version until all members are up."""
    told = [member.subscription_version for member in group.members if member.subscription_version is not None]
    subscriptions = sorted(set(told))
    versions = group.metadata_versions if isinstance(group, StreamsGroup) else ()
    if len(versions) > 1:
        sentence = (
            f"application {group.id} runs mixed versions (its members' metadata has versions {listed(versions)}), "
        )
        sentence += "so rack-aware assignment may be off until the roll ends"
    elif len(subscriptions) > 1 and subscriptions[0] < FIRST_WITH_RACK:
        sentence = f"group {group.id} runs mixed versions (its members' subscriptions have versions "
        sentence += f"{listed(subscriptions)}), so part of it cannot send a rack"
        libraries = libraries_of(
            [member for member in group.members if is_too_old(member)], view.limits.group(group.id).client_software_name
        )
        sentence += f", and no version of {listed(libraries)} can" if libraries else " until the roll ends"
    else:
        return
    yield Finding(
        reason=FindingReason.MIXED_VERSIONS,
        subject=Subject("group", group.id),
        sentence=sentence,
        evidence=(("subscription versions", tuple(subscriptions)), ("metadata versions", tuple(versions))),
        severity=Severity.INFO,
        since_ms=view.snapshot.taken_ms,
    )


def _finding(
    reason: FindingReason, group: ReaderGroup, members: Sequence[Member], sentence: str, view: View
) -> Finding:
    return Finding(
        reason=reason,
        subject=Subject("group", group.id),
        sentence=sentence,
        evidence=(
            ("members", len(members)),
            ("of", len(group.members)),
            ("first", first([member.id for member in members])),
            ("clients", first(sorted({member.client_id for member in members}))),
            ("hosts", first(sorted({member.client_host for member in members}))),
        ),
        severity=Severity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _clients(members: Iterable[Member]) -> str:
    return listed(sorted({member.client_id for member in members}))

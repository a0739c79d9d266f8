"""Findings about members: their racks, old subscriptions, unreadable bytes; one per group and reason.

Where all brokers are in one rack a member's rack makes no finding. An unreadable member does not count as one without
a rack.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from agent.detect.detect_context import SHOWN, DetectContext, first, of_all
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.kafka import COOPERATIVE_STICKY, RANGE, STICKY
from agent.values.kafka import FIRST_WITH_RACK as FIRST_RELEASES
from agent.values.number_format import listed
from agent.values.snapshot import COORDINATOR_KINDS, Member, Rack, RackState, ReaderGroup, StreamsGroup

# kafka-python and aiokafka send no rack in any version. They are known by their default client ids or by the settings:
# version 0 subscriptions come from old clients of all kinds. Their remedy is an assignor of `assignors.clients`.

KAFKA_PYTHON = "kafka-python"
AIOKAFKA = "aiokafka"

_NAMED = tuple((name, re.compile(rf"(?i)\b{name}\b")) for name in (AIOKAFKA, KAFKA_PYTHON))
_BY_CLIENT_ID = tuple((name, re.compile(rf"{name}-.+")) for name in (AIOKAFKA, KAFKA_PYTHON))
_DROP_INS = {KAFKA_PYTHON: (RANGE, STICKY, COOPERATIVE_STICKY), AIOKAFKA: (RANGE, STICKY)}
"""Kafka's names under which `assignors.clients` has an assignor for a library; see docs/clients.md."""


def python_library(member: Member, software: str | None) -> str | None:
    """``kafka-python`` or ``aiokafka``, or None for another client, or one that is unknown.

    ``software``: the client of the group's members by the settings.
    """
    if software is not None:
        return next((name for name, pattern in _NAMED if pattern.search(software)), None)
    return next((name for name, pattern in _BY_CLIENT_ID if pattern.fullmatch(member.client_id)), None)


def libraries_of(members: Iterable[Member], software: str | None) -> tuple[str, ...]:
    """The Python libraries that these members run, sorted; empty where none is known to run one."""
    return tuple(sorted({name for one in members if (name := python_library(one, software)) is not None}))


def rack_aware_arguments(library: str, assignor: str | None, rack: str) -> str:
    """The arguments of a consumer of that library that make its group look at racks, with their import as a comment."""
    name = assignor if assignor in _DROP_INS[library] else _DROP_INS[library][0]
    module = library.replace("-", "_")
    return (
        f'client_rack="{rack}", partition_assignment_strategy=Strategy("{name}", client_rack="{rack}")'
        f"  # from assignors.clients.{module} import Strategy, see docs/clients.md"
    )


# The rack of the brokers that a member probably means, by spelling or one slip. None where several fit, or where names
# differ in the last character, a number or their kind (zone id and zone name).

_LONGEST = 64
"""Names beyond this are not compared with the racks of brokers; a member may send anything."""
_NUMBER = re.compile(r"\d+")
_SLIP = 4
"""One slip is forgiven per so many characters, two at most."""


def likely_rack(rack_id: str, racks: Iterable[str]) -> str | None:
    """The one rack that is probably meant, or None where none or several may be."""
    known = list(racks)
    folded = folded_rack(rack_id)
    alike = [rack for rack in known if folded_rack(rack) == folded]
    if alike or not folded or len(folded) > _LONGEST:
        return alike[0] if len(alike) == 1 and folded else None
    near = [(typos, rack) for rack in known if (typos := _typos(folded, folded_rack(rack))) is not None]
    best = [rack for typos, rack in near if typos == min(near)[0]]
    return best[0] if len(best) == 1 else None


def folded_rack(rack: str) -> str:
    """A rack's name without case, spaces and separators; but for those between numbers: 1-11 is not 11-1.

    A name of nothing else is only like itself.
    """
    kept = ""
    apart = False
    for character in rack.casefold():
        if unicodedata.category(character)[0] not in "LMN":
            apart = True
            continue
        kept += f"-{character}" if apart and kept[-1:].isnumeric() and character.isnumeric() else character
        apart = False
    return kept or rack


def _typos(one: str, other: str) -> int | None:
    """How many slips of the pen lie between two folded names; None where they are not one name."""
    allowed = min(2, max(len(one), len(other)) // _SLIP)
    if not allowed or len(other) > _LONGEST or abs(len(one) - len(other)) > allowed or one[-1:] != other[-1:]:
        return None
    if _NUMBER.findall(one) != _NUMBER.findall(other):
        return None
    typos = _distance(one, other)
    return typos if typos <= allowed else None


def _distance(one: str, other: str) -> int:
    """Letters inserted, left out, replaced or swapped with their neighbour (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, row_before = row, before
        row = [at]
        for to, wanted in enumerate(other, 1):
            cost = min(last[to] + 1, row[to - 1] + 1, last[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, row_before[to - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]


FIRST_WITH_RACK = 3
"""Subscription version that can carry a rack (KIP-881)."""


def member_findings(group: ReaderGroup, racks: Iterable[Rack], view: DetectContext) -> list[Finding]:
    """Findings about one group's members in these racks; none about racks while the group is hidden."""
    findings: list[Finding] = []
    broken = [member for member in group.members if member.defects]
    if broken:
        findings.append(_undecodable(group, broken, view))
    if not group.hidden and any(rack.name is not None and rack.name not in view.broker_racks.racks for rack in racks):
        findings += _in_no_brokers_rack(group, view)
    if view.broker_racks.racks_matter and not group.hidden:
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


def _without_rack(group: ReaderGroup, unknown: Iterable[Member], view: DetectContext) -> Iterable[Finding]:
    by_broker = group.kind in COORDINATOR_KINDS
    silent = [
        member
        for member in unknown
        if (by_broker or member.subscription_version is not None) and not is_too_old(member)
    ]
    if silent:
        who = of_all(len(silent), len(group.members), "member")
        send = "sends" if len(silent) == 1 else "send"
        sentence = f"group {group.id} has {who} that {send} no rack ({_clients(silent)}){_located(silent)}: "
        sentence += "set client.rack"
        yield _finding(FindingReason.MEMBER_WITHOUT_RACK, group, silent, sentence, view)


def _located(silent: Sequence[Member]) -> str:
    known = sum(member.rack.state is RackState.KNOWN for member in silent)
    if not known:
        return ""
    whose = "its rack" if len(silent) == 1 else f"the {'rack' if known == 1 else 'racks'} of {known} of them"
    return f", and locators know {whose}, but Kafka does not"


def _too_old(group: ReaderGroup, view: DetectContext) -> Iterable[Finding]:
    old = [member for member in group.members if is_too_old(member)]
    if old:
        who = of_all(len(old), len(group.members), "member")
        newest = max(member.subscription_version or 0 for member in old)
        what = f"subscription (version {newest})" if len(old) == 1 else f"subscriptions (version {newest} at most)"
        sentence = f"group {group.id} has {who} whose {what} cannot carry a rack "
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


def _in_no_brokers_rack(group: ReaderGroup, view: DetectContext) -> Iterable[Finding]:
    """A rack that no broker has: a zone id where brokers have zone names, another spelling, a slip, or a lost zone."""
    brokers = view.broker_racks
    away = [member for member in group.members if is_away(member, brokers.racks)]
    if not away or not brokers.racks or not brokers.complete or brokers.rack_lost:
        return
    racks = sorted({str(member.rack.rack_id or member.rack.name) for member in away})
    meant = {rack: likely_rack(rack, brokers.racks) for rack in racks[:SHOWN]}
    who = of_all(len(away), len(group.members), "member")
    named = [rack if (guess := meant.get(rack)) is None else f"{rack} (probably meant: {guess})" for rack in racks]
    sentence = f"group {group.id} has {who} in a rack that no broker has ({_clients(away)}): {listed(named)}; "
    readers = "this member reads" if len(away) == 1 else "these members read"
    sentence += f"brokers are in {listed(brokers.racks)}, so all that {readers} crosses racks: set client.rack"
    yield Finding(
        reason=FindingReason.MEMBER_IN_NO_BROKERS_RACK,
        subject=SubjectId("group", group.id),
        sentence=sentence,
        evidence=(
            ("members", len(away)),
            ("of", len(group.members)),
            ("racks", first(racks)),
            ("meant", tuple(f"{rack}: {guess}" for rack, guess in meant.items() if guess)),
            ("racks of brokers", first(brokers.racks)),
            ("clients", first(sorted({member.client_id for member in away}))),
            ("hosts", first(sorted({member.client_host for member in away}))),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def is_away(member: Member, racks: Collection[str | None]) -> bool:
    """True for a member whose rack is known and is none of the brokers' racks."""
    return member.rack.state is RackState.KNOWN and member.rack.name not in racks


def _undecodable(group: ReaderGroup, broken: Sequence[Member], view: DetectContext) -> Finding:
    member, defect = broken[0], broken[0].defects[0]
    who = of_all(len(broken), len(group.members), "member")
    sentence = f"group {group.id} has {who} with bytes that cannot be read: the {defect.what} of {member.id} "
    sentence += f"from {member.client_host}: {defect.reason}; {defect.sentence}"
    return _finding(FindingReason.GROUP_UNDECODABLE, group, broken, sentence, view)


def _mixed_versions(group: ReaderGroup, view: DetectContext) -> Iterable[Finding]:
    """A roll in progress: the group uses the oldest version until all members are up."""
    known = [member.subscription_version for member in group.members if member.subscription_version is not None]
    subscriptions = sorted(set(known))
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
        subject=SubjectId("group", group.id),
        sentence=sentence,
        evidence=(("subscription versions", tuple(subscriptions)), ("metadata versions", tuple(versions))),
        severity=FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms,
    )


def _finding(
    reason: FindingReason, group: ReaderGroup, members: Sequence[Member], sentence: str, view: DetectContext
) -> Finding:
    return Finding(
        reason=reason,
        subject=SubjectId("group", group.id),
        sentence=sentence,
        evidence=(
            ("members", len(members)),
            ("of", len(group.members)),
            ("first", first([member.id for member in members])),
            ("clients", first(sorted({member.client_id for member in members}))),
            ("hosts", first(sorted({member.client_host for member in members}))),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _clients(members: Iterable[Member]) -> str:
    return listed(sorted({member.client_id for member in members}))

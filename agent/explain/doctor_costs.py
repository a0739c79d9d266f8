"""What does a fault cost a day? For the checks of doctor whose fault sends bytes across racks.

- No rack-aware selector: reads that cross although an in-sync replica is in the reader's rack.
- An assignor that does not look at racks: what its groups read across racks more than under the best assignment.
- Members in a rack that no broker has, by another spelling or otherwise: all that they read.
- Members that send no rack to Kafka: where they are is not known, so only a bound can be told, all that they read.

Invariant: what is not known has no figure; a bound is named as one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from agent.detect.members import is_away, is_too_old
from agent.detect.tally import Reads
from agent.detect.traffic import current_reads, optimal_reads, states_of
from agent.explain.doctor_fixes import spelled_otherwise
from agent.money.costs import Costs, costs_of_members
from agent.money.traffic import Sum, Traffic, read_route, together
from agent.values.finding import Finding, FindingReason
from agent.values.locality import Ground
from agent.values.snapshot import Member, OtherGroup, RackState, Snapshot

if TYPE_CHECKING:  # what is seen says where its rates are from, which is in this package
    from agent.simulate.evaluation import Seen

SELECTOR = "reads go to the nearest replica"
ASSIGNORS = "assignors cost no local reads"
SPELLING = "racks have one spelling"
CLIENT_RACK = "clients send client.rack"
OLD_CLIENTS = "clients are new enough to send a rack"
"""Names of checks of doctor."""


class FaultCost(NamedTuple):
    """What crosses racks because of a fault."""

    bytes_per_s: float | None = None
    """At least; None where it is not known."""
    usd_per_day: float | None = None
    at_most_usd_per_day: float | None = None
    """A bound, where more may cross than is known."""


NO_COST = FaultCost()


def fault_cost(check: str, who: Iterable[str], costs: Costs, look: Seen) -> FaultCost:
    """The cost of a check's fault; ``who``: the groups that it names."""
    limits = look.limits
    if check == SELECTOR:
        return FaultCost(costs.unserved.bytes_per_s, costs.unserved.usd_per_day(limits))
    if check == SPELLING:
        return _of_members(_spelled_otherwise(look), {}, look)
    if check == CLIENT_RACK:
        racks = [broker.rack.name for broker in look.snapshot.brokers if broker.rack.name is not None]
        away = _found(FindingReason.MEMBER_IN_NO_BROKERS_RACK, lambda member: is_away(member, racks), look)
        return _of_members(away, _found(FindingReason.MEMBER_WITHOUT_RACK, _sends_none, look), look)
    if check == OLD_CLIENTS:
        return _of_members({}, _found(FindingReason.SUBSCRIPTION_TOO_OLD, is_too_old, look), look)
    if check != ASSIGNORS:
        return NO_COST
    found = [_saved(group, look) for group in dict.fromkeys(who)]
    rates = [one.bytes_per_s for one in found if one.bytes_per_s is not None]
    money = [one.usd_per_day for one in found if one.usd_per_day is not None]
    return FaultCost(round(sum(rates), 3) if rates else None, round(sum(money), 8) if money else None)


def _spelled_otherwise(look: Seen) -> dict[str, frozenset[str]]:
    ids: dict[str, frozenset[str]] = {}
    for finding in _of_reason(FindingReason.RACK_SPELLING, look):
        for group, members in spelled_otherwise(finding, look.snapshot).items():
            ids[group] = ids.get(group, frozenset()) | {member.id for member in members}
    return ids


def _of_reason(reason: FindingReason, look: Seen) -> list[Finding]:
    return [finding for finding in look.detection.findings if finding.reason is reason]


def _found(reason: FindingReason, concerned: Callable[[Member], bool], look: Seen) -> dict[str, frozenset[str]]:
    """Group -> ids of the members that its finding is about."""
    groups = {finding.subject.name for finding in _of_reason(reason, look)}
    return {
        group.id: frozenset([member.id for member in group.members if concerned(member)])
        for group in look.snapshot.groups.values()
        if group.id in groups and not isinstance(group, OtherGroup)
    }


def _sends_none(member: Member) -> bool:
    return member.rack.silent and not is_too_old(member)


def _of_members(away: Mapping[str, Collection[str]], silent: Mapping[str, Collection[str]], look: Seen) -> FaultCost:
    """What the members in no broker's rack read, which crosses for certain, and what the silent ones may read so."""
    certain, perhaps = costs_of_members(look.snapshot, away), costs_of_members(look.snapshot, silent)
    known = certain.usd_per_day(look.limits) if certain.parts else None
    bound = together((certain, perhaps)).at_most_usd_per_day(look.limits)
    return FaultCost(certain.bytes_per_s if certain.parts else None, known, bound if bound and bound != known else None)


def _saved(name: str, look: Seen) -> FaultCost:
    """What the group reads across racks now, less what it would under the best assignment."""
    snapshot, detection, limits = look.snapshot, look.detection, look.limits
    group, assessment = snapshot.groups.get(name), detection.assessments.get(name)
    if group is None or isinstance(group, OtherGroup) or assessment is None:
        return NO_COST
    if assessment.ground is None or assessment.result is None:
        return NO_COST
    ground = assessment.ground
    now = _traffic(current_reads(group, ground), ground, snapshot)
    best = _traffic(optimal_reads(group, ground, assessment.result), ground, snapshot)
    if now.unknown or best.unknown:
        return NO_COST
    before, after = now.usd_per_day(limits), best.usd_per_day(limits)
    return FaultCost(
        max(0.0, (now.bytes_per_s or 0.0) - (best.bytes_per_s or 0.0)),
        None if before is None or after is None else max(0.0, before - after),
    )


def _traffic(reads: Reads, ground: Ground, snapshot: Snapshot) -> Traffic:
    states = states_of(snapshot.topics[name] for name in ground.masks)
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
    names = {bit: name for name, bit in ground.bits.bit_of.items()}
    total = Sum()
    for bit, partitions in reads:
        # A rack without brokers has no name here, but it is known, and known to be none of theirs.
        rack = names.get(bit, "(no broker's)") if bit else None
        for partition in partitions:
            route = read_route(states.get(partition), rack, racks, serves=ground.bits.selector_is_rack_aware)
            total.add(route, snapshot.bytes_per_s.get(partition))
    return total.traffic()

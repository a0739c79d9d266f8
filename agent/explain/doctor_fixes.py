"""Config lines and daily cost of doctor's findings: one fix a cause, with all that share it. Pure.

Planned advice has its own lines. An assignor without racks is advised only where a change pays; its finding has a line
for each cause all the same. Replicas and preferred leaders are mended by proposals (``rackwise plan``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.detect.assess_consumers import Reads
from agent.detect.awareness import RackBlindCause
from agent.detect.detect_context import numbered
from agent.detect.members import is_away, is_too_old
from agent.detect.traffic import current_reads, optimal_reads
from agent.explain.doctor_coverage import DoctorContext
from agent.money.costs import CrossRackCosts, costs_of_members
from agent.money.traffic import CrossRackTraffic, TrafficSum, read_route, together
from agent.plan.advice_assignors import assignor_lines, racks_to_choose
from agent.values.assessment import GroupLocality
from agent.values.finding import Finding, FindingReason, SubjectId
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.limits import Limits
from agent.values.number_format import listed
from agent.values.plan import AdvicePlan
from agent.values.proposal import Proposal, ProposalReason
from agent.values.snapshot import Member, OtherGroup, RackState, ReaderGroup, Snapshot, states_of, topics_of

if TYPE_CHECKING:
    from agent.simulate.evaluation import StageEvaluation

ASSIGNOR_REASONS = frozenset(
    {FindingReason.GROUP_KIND_IGNORES_RACKS, FindingReason.ASSIGNOR_WOULD_NOT_FIX, FindingReason.RACK_AWARENESS_OFF}
)
PLACED = frozenset({FindingReason.REPLICAS_SHARE_RACK, FindingReason.LEADER_SKEW})
"""Reasons that a proposal fixes, no setting."""
_FOR_MEMBERS = (ProposalReason.SET_CLIENT_RACK, ProposalReason.UPGRADE_CLIENT, ProposalReason.USE_DROP_IN_ASSIGNOR)
_FOR_BROKERS = {
    RackBlindCause.BROKER_RACK: ProposalReason.SET_BROKER_RACK,
    RackBlindCause.SELECTOR: ProposalReason.SET_SELECTOR,
}


class DoctorFix(NamedTuple):
    """The config lines that fix one cause."""

    who: tuple[str, ...]
    """All that share the cause, each with its kind: ``group orders``, ``broker 1``, ``topic clicks``."""
    lines: tuple[str, ...]
    """Settings or commands, one each."""


def fixes_of(
    findings: Sequence[Finding], wanted: Iterable[ProposalReason], advice: Sequence[AdvicePlan], context: DoctorContext
) -> tuple[DoctorFix, ...]:
    """The fixes of a check's findings: settings, then the command that shows proposals; empty where nothing does."""
    placed: dict[str, list[str]] = {}
    for finding in findings:
        if finding.reason in PLACED:
            placed.setdefault(_plan_line(finding, context.proposals), []).append(_subject(finding))
    by_proposals = (DoctorFix(tuple(dict.fromkeys(who)), (line,)) for line, who in placed.items())
    return (*setting_fixes(findings, wanted, advice, context), *by_proposals)


def setting_fixes(
    findings: Sequence[Finding], wanted: Iterable[ProposalReason], advice: Sequence[AdvicePlan], context: DoctorContext
) -> tuple[DoctorFix, ...]:
    """The settings that fix the findings, in the order of these; empty where none does."""
    by_lines: dict[tuple[str, ...], list[str]] = {}
    ids, reasons = {finding.id for finding in findings}, frozenset(wanted)
    for plan in advice:
        if plan.reason in reasons and (not plan.findings or ids & {*plan.findings}):
            by_lines.setdefault(plan.lines, []).extend(_concerned(plan))
    for finding in findings:
        if finding.reason in ASSIGNOR_REASONS:
            lines = _awareness_lines(finding, advice, context.snapshot, context.limits)
            by_lines.setdefault(lines, []).append(f"group {finding.subject.name}")
    for finding in findings:
        if finding.reason is FindingReason.RACK_SPELLING:
            for line, concerned in _spelling_lines(finding, context.snapshot):
                by_lines.setdefault((line,), []).extend(concerned)
    return tuple(DoctorFix(tuple(dict.fromkeys(who)), lines) for lines, who in by_lines.items() if lines)


def spelled_otherwise(finding: Finding, snapshot: Snapshot) -> dict[str, list[Member]]:
    """Group -> its members with a spelling of the finding's rack that no broker has."""
    spellings, of_brokers = _spellings(finding, snapshot)
    others = spellings - of_brokers
    by_group = {
        group.id: [member for member in group.members if member.rack.rack_id in others]
        for group in snapshot.groups.values()
        if isinstance(group, ReaderGroup)
    }
    return {group: members for group, members in by_group.items() if members}


def _spellings(finding: Finding, snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """All spellings of the rack, and those of brokers."""
    evidence = dict(finding.evidence).get("spellings")
    spellings = {str(one) for one in evidence} if isinstance(evidence, tuple) else set()
    return spellings, spellings & {
        broker.rack.rack_id for broker in snapshot.brokers if broker.rack.rack_id is not None
    }


def _spelling_lines(finding: Finding, snapshot: Snapshot) -> Iterator[tuple[str, list[str]]]:
    """One spelling for brokers, and the brokers' spelling for clients; where there is more than one, a choice."""
    spellings, of_brokers = _spellings(finding, snapshot)
    choice = sorted(of_brokers or spellings)
    wanted = choice[0] if len(choice) == 1 else f"<{'|'.join(choice)}>"
    if len(of_brokers) > 1:
        yield f"{BROKER_RACK}={wanted}", [f"broker {b.id}" for b in snapshot.brokers if b.rack.rack_id in of_brokers]
    groups = spelled_otherwise(finding, snapshot)
    if groups:
        yield f"{CLIENT_RACK}={wanted}", [f"group {group}" for group in groups]


def _plan_line(finding: Finding, proposals: Iterable[Proposal]) -> str:
    """The command that shows the change, with the proposals that answer the finding."""
    ids = [one.id for one in proposals if finding.id in one.findings]
    return f"rackwise plan  # {', '.join(ids)}" if ids else "rackwise plan"


def _subject(finding: Finding) -> str:
    return "the cluster" if finding.subject.kind == "cluster" else f"{finding.subject.kind} {finding.subject.name}"


def _concerned(plan: AdvicePlan) -> tuple[str, ...]:
    return plan.who if plan.subject_kind == "cluster" else (f"{plan.subject_kind} {plan.subject}",)


def _awareness_lines(
    finding: Finding, advice: Iterable[AdvicePlan], snapshot: Snapshot, limits: Limits
) -> tuple[str, ...]:
    """One or more lines for each cause that a line fixes."""
    group = snapshot.groups.get(finding.subject.name)
    if not isinstance(group, ReaderGroup):
        return ()
    causes = dict(finding.evidence).get("causes")
    of = frozenset(causes) if isinstance(causes, tuple) else frozenset()
    is_nowhere = _is_nowhere(group, snapshot)
    needs_rack = RackBlindCause.CLIENT_RACK.value in of or is_nowhere or _all_silent(group)
    lines: list[str] = []
    if RackBlindCause.ASSIGNOR.value in of and not is_nowhere:
        lines += assignor_lines(group, limits, racks_to_choose(snapshot))
    for plan in advice:
        of_group = plan.subject_kind == "group" and plan.subject == group.id and plan.reason in _FOR_MEMBERS
        if of_group and needs_rack:
            lines += plan.lines
        if any(cause.value in of and plan.reason is reason for cause, reason in _FOR_BROKERS.items()):
            lines += plan.lines
    return tuple(dict.fromkeys(lines))


def _is_nowhere(group: ReaderGroup, snapshot: Snapshot) -> bool:
    """Whether no assignor can make a read local: no rack that is known of a member holds a replica of what it reads."""
    racks = {member.rack.name for member in group.members if member.rack.state is RackState.KNOWN}
    if not racks or group.hidden:
        return False
    brokers = {broker.id for broker in snapshot.brokers if broker.rack.name in racks}
    if not brokers:
        return True
    topics = [snapshot.topics.get(name) for name in topics_of(group)]
    shown = [topic for topic in topics if topic is not None]
    if not shown or len(shown) < len(topics):
        return False
    return all(brokers.isdisjoint(state.replicas) for topic in shown for state in topic.partitions)


def _all_silent(group: ReaderGroup) -> bool:
    """Whether another assignor alone would bring nothing: no member sends its rack."""
    return bool(group.members) and not group.hidden and all(member.rack.silent for member in group.members)


SENTENCES = 10
"""Findings of one check that are named one by one; the rest is counted, and ``rackwise status`` shows all."""


def info_sentences(findings: Iterable[Finding]) -> list[str]:
    """Findings of severity info, as ``status`` shows them."""
    return [f"info: {sentence}" for sentence in few(merged_sentences(each_subject(findings)), "infos")]


def each_subject(findings: Iterable[Finding]) -> list[Finding]:
    """The first finding of each subject."""
    first: dict[SubjectId, Finding] = {}
    for finding in findings:
        first.setdefault(finding.subject, finding)
    return list(first.values())


def merged_sentences(findings: Iterable[Finding]) -> list[str]:
    """The sentences of these findings; where they differ in the subject's name alone, one with all the names."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kind, name = finding.subject.kind, finding.subject.name
        # Where the name is a number it may be one of the sentence's figures too.
        text = finding.sentence.replace(f"{kind} {name}" if name.isdecimal() else name, "\0")
        alike.setdefault((kind, text), []).append(finding)
    sentences = []
    for (kind, _), same in alike.items():
        others = [finding.subject.name for finding in same[1:]]
        sentences.append(same[0].sentence + (f" (the same for {_more(kind, others)})" if others else ""))
    return sentences


def _more(kind: str, names: Sequence[str]) -> str:
    of = f"{kind}{'' if len(names) == 1 else 's'}"
    if all(name.isdecimal() for name in names):
        return f"{of} {numbered(map(int, names))}"
    return f"{len(names):,} more {of}: {listed(names)}"


def few(sentences: list[str], what: str) -> list[str]:
    """The first sentences, and how many more there are."""
    if len(sentences) <= SENTENCES:
        return sentences
    return [*sentences[:SENTENCES], f"and {len(sentences) - SENTENCES:,} more {what}: see rackwise status"]


# Cost of a fault, for reads that cross racks: without a rack-aware selector, those with an in-sync replica in the
# reader's rack; by an assignor without racks, those above the best assignment; of members in a rack without brokers,
# all; of members without a rack, all as an upper bound. An unknown cost has no figure.

SELECTOR = "reads go to the nearest replica"
ASSIGNORS_CHECK = "assignors cost no local reads"
SPELLING = "racks have one spelling"
CLIENT_RACK_CHECK = "clients send client.rack"
OLD_CLIENTS = "clients are new enough to send a rack"
"""Names of checks of doctor."""


class FaultCost(NamedTuple):
    """Cross-rack traffic because of a fault, and its cost."""

    bytes_per_s: float | None = None
    """At least; None where it is not known."""
    usd_per_day: float | None = None
    at_most_usd_per_day: float | None = None
    """An upper bound, where more may cross than is known."""


NO_COST = FaultCost()


def fault_cost(check: str, who: Iterable[str], costs: CrossRackCosts, look: StageEvaluation) -> FaultCost:
    """The cost of a check's fault; ``who``: the groups that it names."""
    if check == SELECTOR:
        return FaultCost(costs.unserved.bytes_per_s, costs.unserved.usd_per_day(look.limits))
    concerned = _concerned_members(check, look)
    if concerned is not None:
        return _of_members(concerned.away, concerned.silent, look)
    if check != ASSIGNORS_CHECK:
        return NO_COST
    saved = [_saved(group, look) for group in dict.fromkeys(who)]
    return FaultCost(_total([one.bytes_per_s for one in saved], 3), _total([one.usd_per_day for one in saved], 8))


class GroupFaultCosts:
    """What single groups have of the cost of a fault that several share; the members of a fault are found once."""

    def __init__(self, look: StageEvaluation) -> None:
        self._look = look
        self._concerned: dict[str, _ConcernedMembers | None] = {}

    def of(self, check: str, group: str) -> FaultCost:
        """None is known where the fault is not one of groups."""
        if check not in self._concerned:
            self._concerned[check] = _concerned_members(check, self._look)
        concerned = self._concerned[check]
        if concerned is not None:
            away, silent = ({group: of[group]} if group in of else {} for of in concerned)
            return _of_members(away, silent, self._look)
        return _saved(group, self._look) if check == ASSIGNORS_CHECK else NO_COST


class _ConcernedMembers(NamedTuple):
    """Group -> ids of the members that a fault is about."""

    away: Mapping[str, frozenset[str]]
    """Whose rack is no broker's: their reads certainly cross."""
    silent: Mapping[str, frozenset[str]]
    """Whose rack is unknown: their reads may."""


def _concerned_members(check: str, look: StageEvaluation) -> _ConcernedMembers | None:
    """None where the check is not about members."""
    if check == SPELLING:
        return _ConcernedMembers(_spelled_otherwise(look), {})
    if check == CLIENT_RACK_CHECK:
        racks = [broker.rack.name for broker in look.snapshot.brokers if broker.rack.name is not None]
        away = _found(FindingReason.MEMBER_IN_NO_BROKERS_RACK, lambda member: is_away(member, racks), look)
        return _ConcernedMembers(away, _found(FindingReason.MEMBER_WITHOUT_RACK, _sends_none, look))
    if check == OLD_CLIENTS:
        return _ConcernedMembers({}, _found(FindingReason.SUBSCRIPTION_TOO_OLD, is_too_old, look))
    return None


def _total(values: Iterable[float | None], digits: int) -> float | None:
    """The rounded sum of the known values; None without any."""
    known = [value for value in values if value is not None]
    return round(sum(known), digits) if known else None


def _spelled_otherwise(look: StageEvaluation) -> dict[str, frozenset[str]]:
    ids: dict[str, frozenset[str]] = {}
    for finding in _of_reason(FindingReason.RACK_SPELLING, look):
        for group, members in spelled_otherwise(finding, look.snapshot).items():
            ids[group] = ids.get(group, frozenset()) | {member.id for member in members}
    return ids


def _of_reason(reason: FindingReason, look: StageEvaluation) -> list[Finding]:
    return [finding for finding in look.detection.findings if finding.reason is reason]


def _found(
    reason: FindingReason, concerned: Callable[[Member], bool], look: StageEvaluation
) -> dict[str, frozenset[str]]:
    """Group -> ids of the members that its finding is about."""
    groups = {finding.subject.name for finding in _of_reason(reason, look)}
    return {
        group.id: frozenset([member.id for member in group.members if concerned(member)])
        for group in look.snapshot.groups.values()
        if group.id in groups and not isinstance(group, OtherGroup)
    }


def _sends_none(member: Member) -> bool:
    return member.rack.silent and not is_too_old(member)


def _of_members(
    away: Mapping[str, Collection[str]], silent: Mapping[str, Collection[str]], look: StageEvaluation
) -> FaultCost:
    """Reads of members in no broker's rack, which certainly cross, and of those without a rack, which may."""
    certain, perhaps = costs_of_members(look.snapshot, away), costs_of_members(look.snapshot, silent)
    known = certain.usd_per_day(look.limits) if certain.parts else None
    bound = together((certain, perhaps)).at_most_usd_per_day(look.limits)
    return FaultCost(certain.bytes_per_s if certain.parts else None, known, bound if bound and bound != known else None)


def _saved(name: str, look: StageEvaluation) -> FaultCost:
    """The group's reads across racks now, less those under the best assignment."""
    snapshot, detection, limits = look.snapshot, look.detection, look.limits
    group, assessment = snapshot.groups.get(name), detection.assessments.get(name)
    if group is None or isinstance(group, OtherGroup) or assessment is None:
        return NO_COST
    if assessment.locality is None or assessment.result is None:
        return NO_COST
    locality = assessment.locality
    now = _traffic(current_reads(group, locality), locality, snapshot)
    best = _traffic(optimal_reads(group, locality, assessment.result), locality, snapshot)
    if now.unknown or best.unknown:
        return NO_COST
    before, after = now.usd_per_day(limits), best.usd_per_day(limits)
    return FaultCost(
        max(0.0, (now.bytes_per_s or 0.0) - (best.bytes_per_s or 0.0)),
        None if before is None or after is None else max(0.0, before - after),
    )


def _traffic(reads: Reads, locality: GroupLocality, snapshot: Snapshot) -> CrossRackTraffic:
    states = states_of(snapshot.topics[name] for name in locality.masks)
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
    names = {bit: name for name, bit in locality.bits.bit_of.items()}
    total = TrafficSum()
    for bit, partitions in reads:
        # A rack without brokers has no name here, but it is known, and known to be none of theirs.
        rack = names.get(bit, "(no broker's)") if bit else None
        for partition in partitions:
            route = read_route(states.get(partition), rack, racks, serves=locality.bits.selector_is_rack_aware)
            total.add(route, snapshot.bytes_per_s.get(partition))
    return total.traffic()

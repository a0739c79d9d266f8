"""The lines to change for the findings of one check: each cause has its own, and names all that share it. Pure.

Advice that is planned brings its lines. An assignor that does not look at racks is advised only where a change pays;
its finding says nevertheless by which causes racks play no part, and each of these has its line. Replicas and preferred
leaders are mended by proposals, which ``rackwise plan`` shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent.detect.awareness import OffCause
from agent.detect.words import listed, numbered
from agent.explain.doctor_sight import World
from agent.plan.advice_assignors import assignor_lines
from agent.plan.owners import racks_to_choose
from agent.values.finding import Finding, FindingReason, Subject
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.limits import Limits
from agent.values.plan import AdvicePlan
from agent.values.proposal import Proposal, ProposalReason
from agent.values.snapshot import Member, ReaderGroup, Snapshot

ASSIGNORS = frozenset(
    {FindingReason.GROUP_KIND_IGNORES_RACKS, FindingReason.ASSIGNOR_WOULD_NOT_FIX, FindingReason.RACK_AWARENESS_OFF}
)
PLACED = frozenset({FindingReason.REPLICAS_SHARE_RACK, FindingReason.LEADER_SKEW})
"""What a proposal mends, and no setting."""
_FOR_MEMBERS = (ProposalReason.SET_CLIENT_RACK, ProposalReason.UPGRADE_CLIENT, ProposalReason.USE_DROP_IN_ASSIGNOR)
_FOR_BROKERS = {
    OffCause.BROKER_RACK: ProposalReason.SET_BROKER_RACK,
    OffCause.SELECTOR: ProposalReason.SET_SELECTOR,
}


class Fix(NamedTuple):
    """What mends one cause."""

    who: tuple[str, ...]
    """All that share the cause, each with its kind: ``group orders``, ``broker 1``, ``topic clicks``."""
    lines: tuple[str, ...]
    """Settings or commands, one each."""


def fixes_of(
    found: Sequence[Finding],
    wanted: Iterable[ProposalReason],
    advice: Sequence[AdvicePlan],
    world: World,
) -> tuple[Fix, ...]:
    """The fixes of a check's findings, in the order of these; empty where no line mends them."""
    by_lines: dict[tuple[str, ...], list[str]] = {}
    ids, reasons = {finding.id for finding in found}, frozenset(wanted)
    for plan in advice:
        if plan.reason in reasons and (not plan.findings or ids & {*plan.findings}):
            by_lines.setdefault(lines_of(plan), []).extend(_concerned(plan))
    for finding in found:
        if finding.reason in ASSIGNORS:
            lines = _awareness_lines(finding, advice, world.snapshot, world.limits)
            by_lines.setdefault(lines, []).append(f"group {finding.subject.name}")
    for finding in found:
        if finding.reason in PLACED:
            by_lines.setdefault((_plan_line(finding, world.proposals),), []).append(_subject(finding))
    for finding in found:
        if finding.reason is FindingReason.RACK_SPELLING:
            for line, concerned in _spelling_lines(finding, world.snapshot):
                by_lines.setdefault((line,), []).extend(concerned)
    fixes = (Fix(tuple(dict.fromkeys(who)), lines) for lines, who in by_lines.items() if lines)
    return tuple(fixes)


def spelled_otherwise(finding: Finding, snapshot: Snapshot) -> dict[str, list[Member]]:
    """Group -> its members that write the finding's rack as no broker does."""
    spellings, of_brokers = _spellings(finding, snapshot)
    others = spellings - of_brokers
    found = {
        group.id: [member for member in group.members if member.rack.told in others]
        for group in snapshot.groups.values()
        if isinstance(group, ReaderGroup)
    }
    return {group: members for group, members in found.items() if members}


def _spellings(finding: Finding, snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """All ways in which the rack is written, and those of brokers."""
    told = dict(finding.evidence).get("spellings")
    spellings = {str(one) for one in told} if isinstance(told, tuple) else set()
    return spellings, spellings & {broker.rack.told for broker in snapshot.brokers if broker.rack.told is not None}


def _spelling_lines(finding: Finding, snapshot: Snapshot) -> Iterator[tuple[str, list[str]]]:
    """One spelling for brokers, and the brokers' spelling for clients; where there is more than one, a choice."""
    spellings, of_brokers = _spellings(finding, snapshot)
    choice = sorted(of_brokers or spellings)
    wanted = choice[0] if len(choice) == 1 else f"<{'|'.join(choice)}>"
    if len(of_brokers) > 1:
        yield f"{BROKER_RACK}={wanted}", [f"broker {b.id}" for b in snapshot.brokers if b.rack.told in of_brokers]
    groups = spelled_otherwise(finding, snapshot)
    if groups:
        yield f"{CLIENT_RACK}={wanted}", [f"group {group}" for group in groups]


def _plan_line(finding: Finding, proposals: Iterable[Proposal]) -> str:
    """The command that shows the change, with the proposals that answer the finding."""
    ids = [one.id for one in proposals if finding.id in one.findings]
    return f"rackwise plan  # {', '.join(ids)}" if ids else "rackwise plan"


def _subject(finding: Finding) -> str:
    return "the cluster" if finding.subject.kind == "cluster" else f"{finding.subject.kind} {finding.subject.name}"


def lines_of(plan: AdvicePlan) -> tuple[str, ...]:
    """Each line of an advice by itself."""
    return tuple(plan.line.split("\n"))


def _concerned(plan: AdvicePlan) -> tuple[str, ...]:
    return plan.who if plan.subject_kind == "cluster" else (f"{plan.subject_kind} {plan.subject}",)


def _awareness_lines(
    finding: Finding, advice: Iterable[AdvicePlan], snapshot: Snapshot, limits: Limits
) -> tuple[str, ...]:
    """One or more lines for each cause that a line mends."""
    group = snapshot.groups.get(finding.subject.name)
    if not isinstance(group, ReaderGroup):
        return ()
    causes = dict(finding.evidence).get("causes")
    of = frozenset(causes) if isinstance(causes, tuple) else frozenset()
    lines: list[str] = []
    if OffCause.ASSIGNOR.value in of:
        lines += assignor_lines(group, limits, racks_to_choose(snapshot))
    for plan in advice:
        mine = plan.subject_kind == "group" and plan.subject == group.id and plan.reason in _FOR_MEMBERS
        if mine and OffCause.CLIENT_RACK.value in of:
            lines += lines_of(plan)
        if any(cause.value in of and plan.reason is reason for cause, reason in _FOR_BROKERS.items()):
            lines += lines_of(plan)
    return tuple(dict.fromkeys(lines))


SENTENCES = 10
"""Findings of one check that are named one by one; the rest is counted, and ``rackwise status`` shows all."""


def told_infos(found: Iterable[Finding]) -> list[str]:
    """Findings of which nothing is wrong, as ``status`` calls them."""
    return [f"info: {sentence}" for sentence in few(told_once(each_subject(found)), "infos")]


def each_subject(found: Iterable[Finding]) -> list[Finding]:
    """The first finding of each subject."""
    first: dict[Subject, Finding] = {}
    for finding in found:
        first.setdefault(finding.subject, finding)
    return list(first.values())


def told_once(findings: Iterable[Finding]) -> list[str]:
    """The sentences of these findings; where they differ in the subject's name alone, one with all the names."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kind, name = finding.subject.kind, finding.subject.name
        # Where the name is a number it may be one of the sentence's figures too.
        text = finding.sentence.replace(f"{kind} {name}" if name.isdecimal() else name, "\0")
        key = (kind, text)
        alike.setdefault(key, []).append(finding)
    told = []
    for (kind, _), same in alike.items():
        others = [finding.subject.name for finding in same[1:]]
        told.append(same[0].sentence + (f" (the same for {_more(kind, others)})" if others else ""))
    return told


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

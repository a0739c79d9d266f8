"""doctor: the checks for a rack-local cluster, one screen, each fault with the config line to change. Pure.

Checks come in the order in which they pay: without broker racks nothing else helps, without a selector no follower is
read. ``ok`` needs full coverage (`doctor_coverage`, `doctor_groups`), ``fault`` a finding of at least a warning; the
cost of losing a rack is a ``risk``. Invariant: the less is seen, the worse the answer (`BEST_FIRST`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from agent.explain import doctor_coverage, doctor_groups
from agent.explain.doctor_coverage import CheckCoverage, CoverageOf, DoctorContext
from agent.explain.doctor_fixes import (
    ASSIGNORS_CHECK,
    DoctorFix,
    each_subject,
    few,
    fixes_of,
    info_sentences,
    merged_sentences,
)
from agent.plan.plugin_gain import merged_gains
from agent.simulate.rack_loss import RackLoss, loss_details, loss_label, rack_losses, unseen_parts
from agent.values.assessment import DetectionResult
from agent.values.cycle import gaps_of
from agent.values.finding import Finding, FindingReason, FindingSeverity
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.number_format import lasted
from agent.values.observation import ObservationPart
from agent.values.plan import AdvicePlan, Plan
from agent.values.proposal import Proposal, ProposalReason
from agent.values.snapshot import Snapshot, rack_source


class CheckState(StrEnum):
    """The result of a check."""

    OK = "ok"
    """Its whole subject was seen, without a fault."""
    NOTHING = "nothing to check"
    """It has no subject: no group, one rack."""
    SEEN_ONCE = "seen once"
    """A state that is a fault if it lasts, seen in one look."""
    UNKNOWN = "unknown"
    """Part of its subject was not seen."""
    RISK = "risk"
    """No fault now; the failure of a rack or broker would make one."""
    FAULT = "fault"

    @property
    def rank(self) -> int:
        """Its place in `BEST_FIRST`."""
        return BEST_FIRST.index(self)


BEST_FIRST = (
    CheckState.OK,
    CheckState.NOTHING,
    CheckState.SEEN_ONCE,
    CheckState.UNKNOWN,
    CheckState.RISK,
    CheckState.FAULT,
)
"""Best first. A lost answer or right never moves a check towards the front; but a fault or risk that is no longer seen
becomes ``UNKNOWN``, and ``NOTHING`` where the brokers report no subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One question with its answer."""

    key: str
    """Id of the check, independent of its result: a question, or ``losing rack a``."""
    name: str
    state: CheckState
    sentences: tuple[str, ...]
    who: tuple[str, ...] = ()
    """Its subjects: brokers, topics or groups."""
    fixes: tuple[DoctorFix, ...] = ()
    """Config lines, cause by cause."""
    always_shown: bool = False
    """True where the sentences are shown also for ``ok``."""

    @property
    def sentence(self) -> str:
        """All sentences in one."""
        return "; ".join(self.sentences)

    @property
    def line(self) -> str | None:
        """The line to change, where a single line fixes all."""
        lines = [line for fix in self.fixes for line in fix.lines]
        return lines[0] if len(lines) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    name: str
    coverage: CoverageOf
    reasons: tuple[FindingReason, ...]
    parts: tuple[ObservationPart, ...]
    advice: tuple[ProposalReason, ...] = ()
    faults: frozenset[FindingSeverity] = frozenset({FindingSeverity.WARNING, FindingSeverity.CRITICAL})
    """Severities of findings that are faults."""
    risks: frozenset[FindingReason] = frozenset()
    """Reasons that are a risk where they are no fault: harmless until a broker or rack fails."""


_QUESTIONS = (
    _Question(
        name="brokers have a rack",
        coverage=doctor_coverage.broker_racks,
        reasons=(FindingReason.BROKER_RACK_MISSING, FindingReason.RACK_FLAPPING),
        parts=(ObservationPart.BROKERS,),
        advice=(ProposalReason.SET_BROKER_RACK,),
    ),
    _Question(
        name="reads go to the nearest replica",
        coverage=doctor_coverage.selector,
        reasons=(FindingReason.SELECTOR_NOT_RACK_AWARE,),
        parts=(ObservationPart.BROKERS, ObservationPart.BROKER_CONFIGS),
        advice=(ProposalReason.SET_SELECTOR,),
    ),
    _Question(
        name="clients send client.rack",
        coverage=doctor_groups.client_racks,
        reasons=(FindingReason.MEMBER_WITHOUT_RACK, FindingReason.MEMBER_IN_NO_BROKERS_RACK),
        parts=(ObservationPart.BROKERS, ObservationPart.GROUPS),
        advice=(ProposalReason.SET_CLIENT_RACK,),
    ),
    _Question(
        name="clients are new enough to send a rack",
        coverage=doctor_groups.subscriptions,
        reasons=(FindingReason.SUBSCRIPTION_TOO_OLD,),
        parts=(ObservationPart.BROKERS, ObservationPart.GROUPS),
        advice=(ProposalReason.UPGRADE_CLIENT, ProposalReason.USE_DROP_IN_ASSIGNOR),
    ),
    _Question(
        name=ASSIGNORS_CHECK,
        coverage=doctor_groups.group_protocols,
        reasons=(
            FindingReason.GROUP_KIND_IGNORES_RACKS,
            FindingReason.ASSIGNOR_WOULD_NOT_FIX,
            FindingReason.RACK_AWARENESS_OFF,
        ),
        parts=(ObservationPart.BROKERS, ObservationPart.GROUPS, ObservationPart.TOPICS),
    ),
    _Question(
        name="assignments are consistent",
        coverage=doctor_groups.assignments,
        reasons=(FindingReason.PARTITION_CLAIMED_TWICE, FindingReason.ASSIGNED_WHAT_IS_NOT_THERE),
        parts=(ObservationPart.GROUPS, ObservationPart.TOPICS),
    ),
    _Question(
        name="replicas are spread over racks",
        coverage=doctor_coverage.replica_spread,
        reasons=(FindingReason.REPLICAS_SHARE_RACK,),
        parts=(ObservationPart.TOPICS, ObservationPart.BROKERS, ObservationPart.REASSIGNMENTS),
    ),
    _Question(
        name="preferred leaders are spread over racks",
        coverage=doctor_coverage.leader_spread,
        reasons=(FindingReason.LEADER_SKEW,),
        parts=(ObservationPart.TOPICS, ObservationPart.BROKERS, ObservationPart.REASSIGNMENTS),
        risks=frozenset({FindingReason.LEADER_SKEW}),
    ),
    _Question(
        name="copies of tasks are spread over racks",
        coverage=doctor_groups.task_copies,
        reasons=(FindingReason.COPIES_SHARE_RACK,),
        parts=(ObservationPart.GROUPS, ObservationPart.TOPICS),
        advice=(ProposalReason.SET_STANDBYS,),
    ),
    _Question(
        name="no throttles are left over",
        coverage=doctor_coverage.throttles,
        reasons=(FindingReason.THROTTLE_LEFT_BEHIND,),
        parts=(
            ObservationPart.BROKERS,
            ObservationPart.TOPICS,
            ObservationPart.TOPIC_CONFIGS,
            ObservationPart.BROKER_CONFIGS,
            ObservationPart.REASSIGNMENTS,
        ),
        advice=(ProposalReason.REMOVE_THROTTLE,),
        risks=frozenset({FindingReason.THROTTLE_LEFT_BEHIND}),
    ),
    _Question(
        name="metadata of group members can be read",
        coverage=doctor_groups.readable,
        reasons=(FindingReason.GROUP_UNDECODABLE,),
        parts=(ObservationPart.GROUPS,),
    ),
    _Question(
        name="rights suffice",
        coverage=doctor_coverage.rights,
        reasons=(FindingReason.RIGHTS_MISSING,),
        parts=(ObservationPart.RIGHTS,),
    ),
)
_THERE = _Question(
    name="brokers with replicas are live",
    coverage=doctor_coverage.brokers_there,
    reasons=(),
    parts=(ObservationPart.BROKERS, ObservationPart.TOPICS),
)
_IN_SYNC = _Question(
    name="partitions have enough in-sync replicas",
    coverage=doctor_coverage.in_sync,
    reasons=(FindingReason.UNDER_MIN_ISR, FindingReason.AT_MIN_ISR),
    parts=(ObservationPart.TOPICS, ObservationPart.TOPIC_CONFIGS),
    faults=frozenset({FindingSeverity.CRITICAL}),  # at min ISR all writes are still taken
    risks=frozenset({FindingReason.AT_MIN_ISR}),
)
_SPELLING = _Question(
    name="racks have one spelling",
    coverage=doctor_groups.spellings,
    reasons=(FindingReason.RACK_SPELLING,),
    parts=(ObservationPart.BROKERS, ObservationPart.GROUPS),
)
_RACKS = _Question(
    name="racks are known",
    coverage=doctor_groups.known_racks,
    reasons=(FindingReason.RACK_LOCATORS_DISAGREE,),
    parts=(ObservationPart.BROKERS, ObservationPart.GROUPS, ObservationPart.RACK_LOCATORS),
)


def diagnose(
    snapshot: Snapshot,
    detection: DetectionResult,
    plan: Plan,
    limits: Limits | None = None,
    memory: Memory | None = None,
    *,
    proposals: Sequence[Proposal] = (),
    gains: Mapping[str, str] = MappingProxyType({}),
) -> tuple[DoctorCheck, ...]:
    """All checks; faults have their subjects and the config line.

    ``memory``: of earlier looks; ``proposals``: named beside the faults that they mend; ``gains``: group -> what the
    plug-in for brokers would bring it.
    """
    view = DoctorContext(snapshot, detection, limits or Limits(), memory or Memory(), tuple(proposals))
    first, *others = (_answer(question, view, plan.advice) for question in _QUESTIONS)
    others = [_with_gains(one, view, gains) if one.name == ASSIGNORS_CHECK else one for one in others]
    return (_there(view), _answer(_IN_SYNC, view, ()), first, _racks(view), _answer(_SPELLING, view, ()), *others)


def _with_gains(check: DoctorCheck, context: DoctorContext, gains: Mapping[str, str]) -> DoctorCheck:
    """The check of assignors with what the plug-in for brokers would bring to groups with members."""
    if check.state is CheckState.NOTHING:
        return check
    shown = merged_gains((group.id, gains[group.id]) for group in context.groups if group.id in gains)
    return replace(
        check,
        sentences=(*check.sentences, *few(shown, "answers")),
        always_shown=check.always_shown or bool(shown),
    )


def _there(context: DoctorContext) -> DoctorCheck:
    """An absence is a fault once it has lasted; until then it may be a restart."""
    absent = doctor_coverage.absent_brokers(context.detection.findings)
    lasting = [one for one in absent if not one.held and dict(one.evidence)["absent_s"] is not None]
    return _fault(_THERE, absent, (), context) if lasting else _answer(_THERE, context, ())


def _racks(context: DoctorContext) -> DoctorCheck:
    """The sources of racks, and whether the locators answered and agree."""
    snapshot = context.snapshot
    check = _answer(_RACKS, context, ())
    members = [member for group in context.groups for member in group.members]
    sentences = [
        _sources("brokers", [rack_source(broker.rack, BROKER_RACK) for broker in snapshot.brokers]),
        _sources("members", [rack_source(member.rack, CLIENT_RACK) for member in members]),
        *(f"{one.name} never answered" for one in snapshot.rack_locators if one.age_ms is None),
        *(f"{one.name} answered {lasted(one.age_ms)} ago" for one in snapshot.rack_locators if one.age_ms),
    ]
    sentences = [part for part in (*check.sentences, *sentences) if part]
    return replace(check, sentences=tuple(sentences), always_shown=True)


def _sources(who: str, sources: list[str | None]) -> str:
    counted = Counter(sources)
    unknown = counted.pop(None, 0)
    counts = [f"{number} by {source}" for source, number in sorted(counted.items(), key=str)]
    counts += [f"{unknown} unknown"] if unknown else []
    return f"{who}: {', '.join(counts)}" if counts else ""


def risks(snapshot: Snapshot) -> tuple[DoctorCheck, ...]:
    """The cost of losing each rack, one check per rack."""
    losses = rack_losses(snapshot)
    if losses:
        return tuple(_risk(loss) for loss in losses)
    unseen = unseen_parts(snapshot)
    why = f"not all was seen ({', '.join(unseen)})" if unseen else "no rack of a live broker is known"
    name = "what losing a rack stops is not known"
    return (DoctorCheck(key="losing a rack", name=name, state=CheckState.UNKNOWN, sentences=(why,)),)


def _risk(loss: RackLoss) -> DoctorCheck:
    affected = {p.topic for p in (*loss.leaderless, *loss.under_min_isr)} | {t.group for t in loss.tasks}
    possibly = (
        {p.topic for p in loss.unknown_partitions} | {t.group for t in loss.unknown_tasks} | {*loss.unknown_groups}
    )
    if affected:
        state = CheckState.RISK
    elif loss.uncertain:
        state = CheckState.UNKNOWN
    else:
        state = CheckState.NOTHING if loss.holds_nothing else CheckState.OK
    return DoctorCheck(
        key=f"losing rack {loss.rack}",
        name=loss_label(loss),
        state=state,
        sentences=loss_details(loss),
        who=tuple(sorted(affected or possibly)),
    )


def _answer(question: _Question, context: DoctorContext, advice: tuple[AdvicePlan, ...]) -> DoctorCheck:
    findings = context.detection.findings
    relevant = [finding for reason in question.reasons for finding in findings if finding.reason is reason]
    if any(finding.severity in question.faults or finding.reason in question.risks for finding in relevant):
        return _fault(question, relevant, advice, context)
    gaps = gaps_of(context.snapshot, question.parts)
    coverage = question.coverage(context)
    missing = [f"{gap.part}{f' of {gap.subject}' if gap.subject else ''}: {gap.cause} ({gap.detail})" for gap in gaps]
    unseen = [*few(list(dict.fromkeys(missing)), "answers"), *coverage.unseen]
    who = tuple(dict.fromkeys([*[gap.subject for gap in gaps if gap.subject], *coverage.who]))
    state, sentences = _judged(coverage, unseen)
    if relevant:  # infos, which the sentence of OK would contradict
        sentences = (*(() if state is CheckState.OK else sentences), *info_sentences(relevant))
    return DoctorCheck(
        name=question.name,
        key=question.name,
        state=state,
        sentences=sentences,
        who=who,
        fixes=_fixes(question, (), relevant, advice, context),
        always_shown=bool(relevant),
    )


def _fixes(
    question: _Question,
    faults: Iterable[Finding],
    infos: Iterable[Finding],
    advice: tuple[AdvicePlan, ...],
    context: DoctorContext,
) -> tuple[DoctorFix, ...]:
    """Those of faults and risks, and of the infos on groups of which it is unknown what they could gain."""
    unsure = doctor_groups.of_unknown_gain(context)
    open_infos = [finding for finding in infos if finding.subject.kind == "group" and finding.subject.name in unsure]
    return fixes_of([*faults, *open_infos], question.advice, advice, context) if faults or open_infos else ()


def _judged(coverage: CheckCoverage, unseen: Sequence[str]) -> tuple[CheckState, tuple[str, ...]]:
    if unseen:
        return CheckState.UNKNOWN, (*unseen, *filter(None, [coverage.once]))
    if coverage.once:
        return CheckState.SEEN_ONCE, (coverage.once,)
    if coverage.nothing:
        return CheckState.NOTHING, (coverage.nothing,)
    return CheckState.OK, (coverage.fine,) if coverage.fine else ()


def _fault(
    question: _Question, findings: Sequence[Finding], advice: tuple[AdvicePlan, ...], context: DoctorContext
) -> DoctorCheck:
    """Faults and risks, then infos."""
    grave = each_subject([finding for finding in findings if finding.severity in question.faults])
    risks = [one for one in findings if one.reason in question.risks and one.severity not in question.faults]
    faults = [*grave, *each_subject(risks)]
    known = {finding.subject for finding in faults}
    infos = [finding for finding in findings if finding.subject not in known]
    fixes = _fixes(question, faults, infos, advice, context)
    who: list[str] = []
    if all(finding.subject.kind == "cluster" for finding in faults):
        who = [name for fix in fixes for name in fix.who]
    return DoctorCheck(
        name=question.name,
        key=question.name,
        state=CheckState.FAULT if grave else CheckState.RISK,
        sentences=(*few(merged_sentences(faults), "findings"), *info_sentences(infos)),
        who=tuple(dict.fromkeys(who or [finding.subject.name for finding in faults])),
        fixes=fixes,
    )

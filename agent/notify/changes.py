"""Events since the last cycle: ``(state before, facts of a cycle) -> (state after, notifications)``. Pure.

Invariant: of one subject no event is reported twice without its end between them, whatever the gaps of looks: a
finding that a gap hides has not ended, and one that is seen again was not new. What was there before this agent's first
look is marked as early, or is not reported where an earlier run of the agent knew it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agent.notify.notification import EventNotification, NotificationEvent, urgency_of, worst
from agent.values.cycle import Cycle
from agent.values.finding import Finding, FindingSeverity, SubjectId
from agent.values.last_known import FAILED, is_failed, is_listed
from agent.values.limits import AgentMode
from agent.values.number_format import counted, few, lasted
from agent.values.observation import GapCause, ObservationPart
from agent.values.plan import ExecuteFault
from agent.values.proposal import Hold, HoldReason, Proposal
from agent.values.reassignment import PlanState

HANDOVER_MS = 120_000
"""A new leader reports what began up to so long before it could report: the former one may not have come to it."""
MOST_HELD = 1_000
"""Of a standby agent, for a takeover."""
_WHOLE = "the cluster"
_BROKERS_NAMED = 5
_OWN = frozenset((NotificationEvent.SIGHT, NotificationEvent.LEADERSHIP))
"""Events of this agent itself, which a standby agent reports too."""


class PlanEntry(NamedTuple):
    """A plan of the journal as far as its end goes."""

    end: PlanState | None
    """None while it has not ended."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleFacts:
    """What a cycle says about each kind of event; None is unknown, and changes nothing."""

    at_ms: int
    monotonic_ms: int
    findings: Mapping[str, Finding] = field(default_factory=dict)
    """All that exist, also those that a gap hides, by id."""
    remembered: Collection[str] = ()
    """Findings of the last cycle before this one, also of an earlier run of the agent."""
    whole: bool = True
    """The look has no gap: a finding that is not there has ended."""
    brokers: Mapping[int, tuple[str, bool]] | None = None
    """Broker -> its rack, and whether it is alive."""
    absent_before: Collection[int] = ()
    """Brokers that the memory of an earlier run knows as absent."""
    waiting: Mapping[str, Proposal] | None = None
    """Proposals that need an approval; None without a planning."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Part of the look that failed -> why."""
    plans: Mapping[str, PlanEntry] | None = None
    """None where this agent does not lead."""
    leads: bool | None = None
    """None outside of mode execute."""
    reports: bool = True
    """False for a standby agent, whose leader reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationState:
    """What was reported, and what the next cycle is compared with."""

    looked: bool = False
    findings: Mapping[str, Finding] = field(default_factory=dict)
    """Each as it was when it was most severe."""
    carried: frozenset[str] = frozenset()
    """Findings of an earlier run that no look of this one has confirmed or ended."""
    planned: bool = False
    waiting: frozenset[str] = frozenset()
    racks: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Rack -> its brokers when some of them were last alive."""
    lost: frozenset[str] = frozenset()
    """Racks of which no broker is alive."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Part -> monotonic milliseconds since when it has failed in every look."""
    blind: frozenset[str] = frozenset()
    """Parts that were reported as not seen."""
    plans: Mapping[str, PlanEntry] | None = None
    leads: bool | None = None
    held: tuple[EventNotification, ...] = ()
    """Events of a standby agent, reported if it takes over soon."""


Step = tuple[NotificationState, list[EventNotification]]


def facts_of(cycle: Cycle, *, plans: Mapping[str, PlanEntry] | None, planning: Cycle | None) -> CycleFacts:
    """The facts of a cycle. ``plans``: those of the journal, None where it is not read.

    ``planning``: the newest planning, where it is newer than the cycle before; else None.
    """
    snapshot, known, acting = cycle.snapshot, cycle.known, cycle.acting
    leads = None if cycle.limits.mode is not AgentMode.EXECUTE else acting is not None and acting.leads
    failed = [gap for gap in snapshot.gaps if not gap.subject and gap.cause in FAILED]
    return CycleFacts(
        at_ms=snapshot.taken_ms,
        monotonic_ms=snapshot.monotonic_ms,
        findings={one.id: one for one in cycle.detection.findings}
        if known is None
        else {name: one.finding for name, one in known.findings.items()},
        remembered=cycle.before.first_seen.keys(),
        whole=all(gap.cause is GapCause.VANISHED for gap in snapshot.gaps),
        brokers=known.brokers if known is not None and is_listed(snapshot, ObservationPart.BROKERS) else None,
        absent_before=cycle.before.absent.keys(),
        waiting=None if planning is None or not planning.planned else waiting_of(planning),
        missing={gap.part.value: gap.cause.value for gap in failed},
        plans=plans if leads else None,
        leads=leads,
        # An agent that could not lead if it were chosen reports: there may be no leader to do it.
        reports=leads is not False or (acting is not None and ExecuteFault.LEAD in acting.troubles),
    )


def waiting_of(cycle: Cycle) -> Mapping[str, Proposal] | None:
    """Proposals that need an approval, by what they are about: a later planning may give the same one another id."""
    if is_failed(cycle.snapshot):
        return None
    waiting = {
        verdict.proposal_id
        for verdict in cycle.verdicts
        if isinstance(verdict, Hold) and verdict.reason is HoldReason.NEEDS_APPROVAL
    }
    return {f"{one.kind.value} {one.reason.name} {one.subject}": one for one in cycle.proposals if one.id in waiting}


def after_cycle(
    state: NotificationState, facts: CycleFacts, blind_after_ms: int
) -> tuple[NotificationState, tuple[EventNotification, ...]]:
    """The state after a cycle, and the events to report. A part is lost from sight after ``blind_after_ms``."""
    events: list[EventNotification] = []
    for step in (_leadership, _racks, _findings, _proposals, _plans):
        state, found = step(state, facts)
        events += found
    state, found = _sight(state, facts, blind_after_ms)
    state = replace(state, looked=True)
    return _reported(state, facts, [one._replace(at_ms=facts.at_ms) for one in (*events, *found)])


def after_silence(
    state: NotificationState, *, silent_ms: int, blind_after_ms: int, why: str, at_ms: int
) -> tuple[NotificationState, tuple[EventNotification, ...]]:
    """The state while no cycle succeeds; ``silent_ms`` since the last one, ``why`` the latest failure."""
    if silent_ms < blind_after_ms or _WHOLE in state.blind:
        return state, ()
    sentence = f"the agent has not observed the cluster for {lasted(silent_ms)}{f': {why}' if why else ''}"
    lost = EventNotification(NotificationEvent.SIGHT, _WHOLE, sentence, FindingSeverity.CRITICAL, at_ms=at_ms)
    return replace(state, blind=state.blind | {_WHOLE}), (lost,)


def _reported(
    state: NotificationState, facts: CycleFacts, events: list[EventNotification]
) -> tuple[NotificationState, tuple[EventNotification, ...]]:
    """Events of a standby agent are held for a while: the leader reports them, unless this agent takes over."""
    if facts.reports:
        fresh = [one for one in state.held if one.at_ms > facts.at_ms - HANDOVER_MS]
        return replace(state, held=()), (*fresh, *events)
    own = tuple(one for one in events if one.event in _OWN)
    others = (*state.held, *(one for one in events if one.event not in _OWN))
    held = worst((one for one in others if one.at_ms > facts.at_ms - HANDOVER_MS), MOST_HELD)
    return replace(state, held=held), own


def _findings(state: NotificationState, facts: CycleFacts) -> Step:
    before, now = state.findings, facts.findings
    first = not state.looked
    carried = frozenset(facts.remembered) if first else state.carried
    begun = [
        _finding(one, early=first)
        for name, one in now.items()
        if name not in carried and (name not in before or _is_worse(one, before[name]))
    ]
    ended = [_finding(one, over=True) for name, one in before.items() if name not in now]
    past = sorted(carried - now.keys()) if facts.whole else []
    early = [
        EventNotification(NotificationEvent.FINDING, name, _words(name), None, over=True, early=True) for name in past
    ]
    worst_of = {
        name: before[name] if name in before and not _is_worse(one, before[name]) else one for name, one in now.items()
    }
    left = frozenset() if facts.whole else carried - now.keys()
    return replace(state, findings=worst_of, carried=left), [*begun, *ended, *early]


def _is_worse(one: Finding, other: Finding) -> bool:
    return urgency_of(one.severity) > urgency_of(other.severity)


def _finding(one: Finding, *, over: bool = False, early: bool = False) -> EventNotification:
    sentence = f"{one.subject}: {one.reason.value if over else one.sentence}"
    about = one.subject if one.group is None else SubjectId("group", one.group)
    return EventNotification(
        NotificationEvent.FINDING, one.id, sentence, one.severity, over=over, early=early, about=about
    )


def _words(name: str) -> str:
    """A finding of which only the id is known."""
    reason, _, subject = name.partition(":")
    return f"{subject}: {reason.replace('_', ' ')}"


def _racks(state: NotificationState, facts: CycleFacts) -> Step:
    if facts.brokers is None:
        return state, []
    alive = frozenset(broker for broker, (_, lives) in facts.brokers.items() if lives)
    now: dict[str, set[int]] = {}
    absent: dict[str, set[int]] = {}
    for broker, (rack, lives) in facts.brokers.items():
        if rack:
            (now if lives else absent).setdefault(rack, set()).add(broker)
    known = {rack: frozenset(brokers) for rack, brokers in absent.items() if rack not in now}
    known |= state.racks
    # A rack whose brokers all live elsewhere was renamed, which is a finding of its own.
    gone = {rack: brokers for rack, brokers in known.items() if rack not in now and not brokers <= alive}
    events = [_rack_lost(rack, gone[rack], early=not state.looked) for rack in sorted(gone.keys() - state.lost)]
    if not state.looked:
        events = [one for one in events if not gone[one.key] <= frozenset(facts.absent_before)]
    events += [_rack_back(rack, now.get(rack, ())) for rack in sorted(state.lost - gone.keys())]
    racks = gone | {rack: frozenset(brokers) for rack, brokers in now.items()}
    return replace(state, racks=racks, lost=frozenset(gone)), events


def _rack_lost(rack: str, brokers: frozenset[int], *, early: bool) -> EventNotification:
    named = few(sorted(brokers), _BROKERS_NAMED)
    sentence = f"rack {rack} is lost: all its brokers are absent ({named})"
    return EventNotification(NotificationEvent.RACK, rack, sentence, FindingSeverity.CRITICAL, early=early)


def _rack_back(rack: str, brokers: Collection[int]) -> EventNotification:
    sentence = f"rack {rack} is back with {counted(len(brokers), 'broker')}"
    if not brokers:
        sentence = f"the brokers of rack {rack}, which was lost, are back in other racks"
    return EventNotification(NotificationEvent.RACK, rack, sentence, FindingSeverity.CRITICAL, over=True)


def _proposals(state: NotificationState, facts: CycleFacts) -> Step:
    if facts.waiting is None:
        return state, []
    new = [
        EventNotification(
            NotificationEvent.PROPOSAL,
            name,
            f"proposal {one.id} waits for approval: {one.sentence}",
            FindingSeverity.WARNING,
            early=not state.planned,
            about=one.subject,
        )
        for name, one in facts.waiting.items()
        if name not in state.waiting
    ]
    return replace(state, planned=True, waiting=frozenset(facts.waiting)), new


def _plans(state: NotificationState, facts: CycleFacts) -> Step:
    """Ends that this agent saw as leader; those before its first reading were the former leader's to report."""
    before, now = state.plans, facts.plans
    if now is None:
        return (state if facts.leads else replace(state, plans=None)), []
    if before is None:
        return replace(state, plans=now), []
    ended = [_plan(name, one) for name, one in now.items() if one.end and not _has_ended(before.get(name))]
    return replace(state, plans=now), ended


def _has_ended(plan: PlanEntry | None) -> bool:
    return plan is not None and plan.end is not None


def _plan(name: str, plan: PlanEntry) -> EventNotification:
    done = plan.end is PlanState.DONE
    sentence = f"plan {name}: {plan.end.value if plan.end else ''}{f', {plan.sentence}' if plan.sentence else ''}"
    if done:
        return EventNotification(NotificationEvent.PLAN_DONE, name, sentence, FindingSeverity.INFO)
    severity = FindingSeverity.CRITICAL if plan.end is PlanState.FAILED else FindingSeverity.WARNING
    return EventNotification(NotificationEvent.PLAN_FAILED, name, sentence, severity)


def _leadership(state: NotificationState, facts: CycleFacts) -> Step:
    before, now = state.leads, facts.leads
    if now is None or now == bool(before):
        return replace(state, leads=now), []
    sentence = "this agent leads now" if now else "this agent leads no longer"
    severity = FindingSeverity.INFO if now else FindingSeverity.WARNING
    return replace(state, leads=now), [EventNotification(NotificationEvent.LEADERSHIP, "", sentence, severity)]


def _sight(state: NotificationState, facts: CycleFacts, blind_after_ms: int) -> Step:
    """A part that failed in every look for that long is lost from sight; any success brings it back."""
    since = {part: state.missing.get(part, facts.monotonic_ms) for part in facts.missing}
    lasting = {part for part, from_ms in since.items() if facts.monotonic_ms - from_ms >= blind_after_ms}
    lost = [
        EventNotification(
            NotificationEvent.SIGHT,
            part,
            f"the agent has not seen {part} for {lasted(facts.monotonic_ms - since[part])}: {facts.missing[part]}",
            FindingSeverity.CRITICAL,
        )
        for part in sorted(lasting - state.blind)
    ]
    back = sorted(state.blind - since.keys())
    kept = (state.blind - set(back)) | lasting
    return replace(state, missing=since, blind=frozenset(kept)), [*lost, *_backs(back)]


def _backs(parts: Iterable[str]) -> list[EventNotification]:
    sentence = "the agent observes {} again"
    return [
        EventNotification(NotificationEvent.SIGHT, part, sentence.format(part), FindingSeverity.CRITICAL, over=True)
        for part in parts
    ]

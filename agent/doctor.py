"""doctor: what keeps this cluster from being rack-local, in one screen, with the line to change.

A fixed list of checks in the order in which they pay: without broker racks nothing else helps, without a selector no
follower is read, and so on. A check is ``ok``, a ``fault`` with the names it concerns (each with the first of its
reasons only), or ``unknown`` when the part of the cluster that would tell did not answer; unknown is never shown as ok.
What losing a rack would cost is a ``risk``: nothing is wrong now, and it may be meant so.
Pure: it reads what was found and planned.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.detect.assessment import Detection
from agent.detect.finding import Finding, FindingReason
from agent.detect.located import whence
from agent.model.snapshot import Snapshot
from agent.observation import Gap, GapCause, Part
from agent.plan.loss import RackLoss, rack_losses
from agent.plan.loss_words import loss_sentence
from agent.plan.plan import AdvicePlan, Plan
from agent.propose.proposal import ProposalReason


class CheckState(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAULT = "fault"
    RISK = "risk"
    """Nothing is wrong as long as nothing happens."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question with its answer."""

    name: str
    state: CheckState
    sentence: str
    who: tuple[str, ...] = ()
    """What it concerns: brokers, topics, groups or ``group/member``."""
    line: str | None = None
    """The line to change, where one line mends it."""
    tells: bool = False
    """True where the sentence is worth reading also when nothing is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    name: str
    fine: str
    reasons: tuple[FindingReason, ...]
    parts: tuple[Part, ...]
    advice: tuple[ProposalReason, ...] = ()


_QUESTIONS = (
    _Question(
        name="brokers tell their rack",
        fine="every broker has a rack, written one way",
        reasons=(FindingReason.BROKER_RACK_MISSING, FindingReason.RACK_SPELLING, FindingReason.RACK_FLAPPING),
        parts=(Part.BROKERS,),
        advice=(ProposalReason.SET_BROKER_RACK,),
    ),
    _Question(
        name="reads go to the nearest replica",
        fine="every broker has a rack-aware replica.selector.class",
        reasons=(FindingReason.SELECTOR_NOT_RACK_AWARE,),
        parts=(Part.BROKER_CONFIGS,),
        advice=(ProposalReason.SET_SELECTOR,),
    ),
    _Question(
        name="clients send client.rack",
        fine="every member that could send its rack does",
        reasons=(FindingReason.MEMBER_WITHOUT_RACK,),
        parts=(Part.GROUPS,),
        advice=(ProposalReason.SET_CLIENT_RACK,),
    ),
    _Question(
        name="subscriptions can carry a rack",
        fine="every member's subscription is new enough to carry a rack",
        reasons=(FindingReason.SUBSCRIPTION_TOO_OLD,),
        parts=(Part.GROUPS,),
        advice=(ProposalReason.UPGRADE_CLIENT,),
    ),
    _Question(
        name="group protocols look at racks",
        fine="every group's assignor looks at racks",
        reasons=(
            FindingReason.GROUP_KIND_IGNORES_RACKS,
            FindingReason.ASSIGNOR_WOULD_NOT_FIX,
            FindingReason.RACK_AWARENESS_OFF,
        ),
        parts=(Part.GROUPS,),
        advice=(ProposalReason.CHANGE_ASSIGNOR, ProposalReason.SET_STRATEGY),
    ),
    _Question(
        name="replicas are spread over racks",
        fine="no topic has replicas that share a rack while another is free",
        reasons=(FindingReason.REPLICAS_SHARE_RACK,),
        parts=(Part.TOPICS, Part.BROKERS),
    ),
    _Question(
        name="preferred leaders are spread over racks",
        fine="no rack is preferred to lead much more than its share",
        reasons=(FindingReason.LEADER_SKEW,),
        parts=(Part.TOPICS, Part.BROKERS),
    ),
    _Question(
        name="copies of tasks are spread over racks",
        fine="no two copies of a task share a rack or tag while another is free",
        reasons=(FindingReason.COPIES_SHARE_RACK,),
        parts=(Part.GROUPS,),
        advice=(ProposalReason.SET_STANDBYS,),
    ),
    _Question(
        name="nothing was left behind",
        fine="no throttle is set without a reassignment that needs it",
        reasons=(FindingReason.THROTTLE_LEFT_BEHIND,),
        parts=(Part.TOPIC_CONFIGS, Part.BROKER_CONFIGS),
        advice=(ProposalReason.REMOVE_THROTTLE,),
    ),
    _Question(
        name="everything can be read",
        fine="every group's bytes can be read",
        reasons=(FindingReason.GROUP_UNDECODABLE,),
        parts=(Part.GROUPS,),
    ),
    _Question(
        name="rights suffice",
        fine="rackwise may see everything it asks for",
        reasons=(FindingReason.RIGHTS_MISSING,),
        parts=(Part.RIGHTS,),
    ),
)


_RACKS = _Question(
    name="racks are known",
    fine="",
    reasons=(FindingReason.RACK_LOCATORS_DISAGREE,),
    parts=(Part.RACK_LOCATORS,),
)


def diagnose(snapshot: Snapshot, detection: Detection, plan: Plan) -> tuple[Check, ...]:
    """Answer every question, faults with the names and the line to change."""
    first, *others = (_answer(question, snapshot.gaps, detection.findings, plan.advice) for question in _QUESTIONS)
    return (first, _racks(snapshot, detection), *others)


def _racks(snapshot: Snapshot, detection: Detection) -> Check:
    """From where racks are known, and whether the locators answered and agree."""
    check = _answer(_RACKS, snapshot.gaps, detection.findings, ())
    members = [member for group in snapshot.groups.values() for member in getattr(group, "members", ())]
    told = [
        _sources("brokers", [whence(broker.rack, "broker.rack") for broker in snapshot.brokers]),
        _sources("members", [whence(member.rack, "client.rack") for member in members]),
        *(f"{one.name} never answered" for one in snapshot.rack_locators if one.age_ms is None),
        *(f"{one.name} answered {one.age_ms / 1000:.0f} s ago" for one in snapshot.rack_locators if one.age_ms),
    ]
    sentence = "; ".join(part for part in (check.sentence, *told) if part)
    return replace(check, sentence=sentence, tells=True)


def _sources(who: str, sources: list[str | None]) -> str:
    counted = sorted(
        Counter(source or "nobody" for source in sources).items(), key=lambda row: (row[0] == "nobody", row)
    )
    return f"{who}: " + ", ".join(f"{count} by {source}" for source, count in counted) if counted else ""


def risks(snapshot: Snapshot) -> tuple[Check, ...]:
    """What losing each rack would cost, one check per rack."""
    return tuple(_risk(loss) for loss in rack_losses(snapshot))


def _risk(loss: RackLoss) -> Check:
    hurt = {partition.topic for partition in (*loss.leaderless, *loss.under_min_isr)} | {t.group for t in loss.tasks}
    state = CheckState.RISK if hurt else CheckState.UNKNOWN if loss.uncertain else CheckState.OK
    perhaps = {p.topic for p in loss.untold} | {t.group for t in loss.untold_tasks} | {*loss.untold_groups}
    return Check(
        name=f"rack {loss.rack} can be lost",
        state=state,
        sentence=loss_sentence(loss),
        who=tuple(sorted(hurt or perhaps)),
    )


def _answer(
    question: _Question, gaps: tuple[Gap, ...], findings: tuple[Finding, ...], advice: tuple[AdvicePlan, ...]
) -> Check:
    found = [finding for reason in question.reasons for finding in findings if finding.reason is reason]
    if found:
        ids = {finding.id for finding in found}
        faults = list({finding.subject: finding for finding in reversed(found)}.values())[::-1]
        lines = {
            plan.line
            for plan in advice
            if plan.reason in question.advice and (not plan.findings or ids & {*plan.findings})
        }
        return Check(
            name=question.name,
            state=CheckState.FAULT,
            sentence="; ".join(finding.sentence for finding in faults),
            who=tuple(dict.fromkeys(finding.subject.name for finding in faults)),
            line="; ".join(sorted(lines)) or None,
        )
    blind = [gap for gap in gaps if gap.part in question.parts and gap.cause is not GapCause.VANISHED]
    if blind:
        return Check(
            name=question.name,
            state=CheckState.UNKNOWN,
            sentence=f"{blind[0].part}: {blind[0].cause} ({blind[0].detail})",
            who=tuple(dict.fromkeys(gap.subject for gap in blind if gap.subject)),
        )
    return Check(name=question.name, state=CheckState.OK, sentence=question.fine)

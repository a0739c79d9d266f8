"""Why this, and why not that? Every rule that was asked about a subject, with yes, no or wait, and the numbers.

A subject is ``topic/NAME``, ``topic/NAME/PARTITION``, ``group/NAME``, ``broker/ID`` or the id of a proposal. The
answer is about the very plan it is given, never about a new one: the rules are shown as they stood for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.detect.words import named
from agent.explain.facts import facts_of
from agent.explain.group import about_group
from agent.explain.rack import about_broker, about_readers
from agent.explain.topic import about_topic
from agent.plan.found import scene
from agent.plan.owners import group_of
from agent.predict.predict import predict
from agent.values.assessment import Detection
from agent.values.explained import Answer, Explained
from agent.values.finding import Finding, FindingReason
from agent.values.limits import Limits
from agent.values.plan import Plan, Unplanned
from agent.values.prediction import Prediction
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot

WAITING = frozenset({Unplanned.HELD, Unplanned.RUNNING, Unplanned.CAPPED, Unplanned.UNSTABLE})
"""Reasons that pass by themselves."""
_ABOUT_RACKS = frozenset({FindingReason.BROKER_RACK_CHANGED, FindingReason.RACK_FLAPPING})
_STABLE = "the rack has been stable"


def explain(  # noqa: PLR0917 (the parts of one cycle, in the order in which the cycle makes them)
    subject: str,
    snapshot: Snapshot,
    detection: Detection,
    plan: Plan | None,
    proposals: Sequence[Proposal],
    limits: Limits,
) -> tuple[Explained, ...]:
    """The rules about a subject, gravest part first; empty when nothing is known of it."""
    plan = plan or Plan()
    named = next((proposal for proposal in proposals if proposal.id == subject), None)
    if named is not None:
        return (
            *_about_proposal(named, snapshot.taken_ms),
            *explain(str(named.subject), snapshot, detection, plan, (), limits),
        )
    kind, _, name = subject.partition("/")
    looked_at = scene(snapshot, detection, limits, None, _predicted(kind, name, snapshot, plan, limits))
    rows: list[Explained] = []
    mine = (p for p in proposals if (p.subject.kind, p.subject.name) == (kind, name))
    if kind == "topic":
        name, partition = _split(name, snapshot)
        rows += about_topic(name, partition, looked_at, plan)
    elif kind == "group":
        rows += about_group(name, looked_at, plan)
        rows += about_readers(name, snapshot)
    elif kind == "broker":
        rows += about_broker(name, snapshot)
    return (
        *_findings(kind, name, detection.findings, snapshot),
        *rows,
        *_left_out(kind, name, detection.findings, plan, snapshot),
        *(row for p in mine for row in _about_proposal(p, snapshot.taken_ms)),
    )


def _predicted(kind: str, name: str, snapshot: Snapshot, plan: Plan, limits: Limits) -> Mapping[str, Prediction]:
    """What the plan rests on; a group of which it knows nothing is asked about now."""
    if kind != "group" or name in plan.predictions or name not in snapshot.groups:
        return plan.predictions
    return {**plan.predictions, name: predict(snapshot.groups[name], snapshot, limits)}


def _split(name: str, snapshot: Snapshot) -> tuple[str, int | None]:
    """``orders/3`` is partition 3 of orders; topic names hold no slash."""
    topic, _, number = name.partition("/")
    return (topic, int(number)) if topic in snapshot.topics and number.isdecimal() else (name, None)


def _findings(kind: str, name: str, findings: Sequence[Finding], snapshot: Snapshot) -> list[Explained]:
    rest = _until(findings)
    return [
        Explained(
            str(finding.subject),
            finding.reason.value,
            Answer.WAIT if finding.held else Answer.FOUND,
            f"{finding.sentence}; held until {_own_end(finding) or rest}"
            if _ends_unsaid(finding)
            else finding.sentence,
        )
        for finding in findings
        if _concerns(finding, kind, name, snapshot)
    ]


def _ends_unsaid(finding: Finding) -> bool:
    """Of a held finding, whether its own sentence leaves open until when: that of an absent broker has it."""
    return finding.held and finding.reason is not FindingReason.BROKER_ABSENT


def _own_end(finding: Finding) -> str | None:
    return _STABLE if finding.reason in _ABOUT_RACKS else None


def _until(findings: Iterable[Finding]) -> str:
    """What ends a hold: of absent brokers, of racks, or of both."""
    held = [finding for finding in findings if finding.held]
    away = sorted(int(finding.subject.name) for finding in held if finding.reason is FindingReason.BROKER_ABSENT)
    if not away:
        return _STABLE
    are, have = ("is", "has") if len(away) == 1 else ("are", "have")
    back = f"{named('broker', away)} {are} back, or {have} been absent for long enough"
    racks = any(finding.reason in _ABOUT_RACKS for finding in held)
    return f"{back}, and racks have been stable" if racks else back


def _left_out(kind: str, name: str, findings: Sequence[Finding], plan: Plan, snapshot: Snapshot) -> list[Explained]:
    """What was found or wanted here and is not planned, with its reason."""
    ids = {finding.id for finding in findings if _concerns(finding, kind, name, snapshot)}
    prefixes = (f"{kind}/{name}", f"{kind}/{name}-")
    rows: list[Explained] = []
    words = {Unplanned.HELD: f"held until {_until(findings)}"}
    for key, why in plan.unplanned:
        mine = key in ids or key == prefixes[0] or (key.startswith(prefixes[1]) and key[len(prefixes[1]) :].isdecimal())
        if mine:
            rows.append(
                Explained(key, "planned", Answer.WAIT if why in WAITING else Answer.NO, words.get(why, why.value))
            )
    return rows


def _concerns(finding: Finding, kind: str, name: str, snapshot: Snapshot) -> bool:
    if kind == "group":
        return group_of(finding.subject, snapshot) == name
    return (finding.subject.kind, finding.subject.name) == (kind, name)


def _about_proposal(proposal: Proposal, now_ms: int) -> list[Explained]:
    return [Explained(proposal.id, proposal.reason.value, Answer.YES, proposal.sentence), *facts_of(proposal, now_ms)]

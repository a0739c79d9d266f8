"""Why this, and why not that? Every rule that was asked about a subject, with yes, no or wait, and the numbers.

A subject is ``topic/NAME``, ``topic/NAME/PARTITION``, ``group/NAME``, ``broker/ID`` or the id of a proposal. The
answer is about the very plan it is given, never about a new one: the rules are shown as they stood for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.detect.located import whence
from agent.detect.words import named
from agent.explain.facts import facts_of
from agent.explain.group import about_group
from agent.explain.topic import about_topic
from agent.plan.found import scene
from agent.plan.owners import group_of
from agent.predict.predict import predict
from agent.probing.decide import Ground, decide
from agent.probing.values import Off, Past, TriggerNow
from agent.values.assessment import Detection
from agent.values.explained import Answer, Explained, yes_or_no
from agent.values.finding import Finding, FindingReason
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.limits import Limits, LocatorKind
from agent.values.plan import Plan, Unplanned
from agent.values.prediction import Prediction
from agent.values.proposal import Proposal
from agent.values.snapshot import (
    BrokerState,
    GroupKind,
    LocatorState,
    Rack,
    RackState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
)
from agent.values.words import lasted

WAITING = frozenset({Unplanned.HELD, Unplanned.RUNNING, Unplanned.CAPPED, Unplanned.UNSTABLE})
"""Reasons that pass by themselves."""
_ABOUT_RACKS = frozenset({FindingReason.BROKER_RACK_CHANGED, FindingReason.RACK_FLAPPING})
_RACKS_NOW = "replica_racks_before"
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
    """Its sentence and its figures; of a topic the rows of its partitions have the racks of now."""
    facts = [row for row in facts_of(proposal, now_ms) if row.rule != _RACKS_NOW or proposal.subject.kind != "topic"]
    return [Explained(proposal.id, proposal.reason.value, Answer.YES, proposal.sentence), *facts]


def about_broker(name: str, snapshot: Snapshot) -> list[Explained]:
    """What every rack locator says of a broker, and the rack that Kafka itself has."""
    broker = next((broker for broker in snapshot.brokers if str(broker.id) == name), None)
    if broker is None:
        return []
    about = f"broker/{name}"
    known = _known(about, broker.rack, BROKER_RACK, snapshot)
    if broker.host is None and broker.rack.state is RackState.UNKNOWN:
        known = known._replace(sentence="the broker is absent, and its rack was never seen")
    return [known, *_others(about, broker.rack), _to_kafka(about, broker)]


def about_readers(name: str, snapshot: Snapshot) -> list[Explained]:
    """The racks of a group's members, where they are not simply what the members tell."""
    group = snapshot.groups.get(name)
    if not isinstance(group, ReaderGroup) or not snapshot.rack_locators:
        return []
    rows: list[Explained] = []
    for member in group.members:
        if member.rack.source is not None or member.rack.others:
            rows.append(_known(member.id, member.rack, CLIENT_RACK, snapshot))
            rows += _others(member.id, member.rack)
    return rows


def _known(about: str, rack: Rack, setting: str, snapshot: Snapshot) -> Explained:
    if rack.state is RackState.KNOWN:
        said = f", where {setting} says {rack.sent}" if rack.source == LocatorKind.WIRE.value else ""
        age = _age(rack.source, snapshot.rack_locators)
        return Explained(about, "rack known", Answer.YES, f"rack {rack.name}, from {whence(rack, setting)}{said}{age}")
    if rack.state is RackState.CONFLICTING:
        who = f"{rack.source} says" if rack.source else "its sources give"
        return Explained(about, "rack known", Answer.NO, f"{who} {' and '.join(rack.claims)}, so no rack is used")
    told = (
        f"{setting} says {rack.sent}, which is not used, as rack.locator.class leaves out wire"
        if rack.sent
        else f"{setting} is not set"
    )
    asked = ", ".join(locator.name for locator in snapshot.rack_locators if locator.name != LocatorKind.WIRE.value)
    return Explained(about, "rack known", Answer.UNKNOWN, told + (f", and none of {asked} knows it" if asked else ""))


def _age(source: str | None, locators: tuple[LocatorState, ...]) -> str:
    age_ms = next((one.age_ms for one in locators if one.name == source), None)
    return f", answered {lasted(age_ms)} ago" if age_ms else ""


def _others(about: str, rack: Rack) -> list[Explained]:
    return [
        Explained(about, f"locator {locator} agrees", Answer.NO, f"it gives {other}, but another locator comes first")
        for locator, other in rack.others
    ]


def _to_kafka(about: str, broker: BrokerState) -> Explained:
    """Placement of new topics and consumers' choice of the nearest replica know nothing else."""
    told = broker.rack.told if broker.alive else None
    if not broker.alive:
        sentence = "it is absent, and clients do not know its rack"
    elif told is None:
        sentence = "it has no broker.rack, so Kafka places and assigns as for a broker without a rack"
    else:
        sentence = f"broker.rack is {told}"
    return Explained(about, "Kafka knows its rack", yes_or_no(told is not None), sentence)


RULE = "probing"


def about_probing(group_id: str, ground: Ground, past: Sequence[Past] = ()) -> tuple[Explained, ...]:
    """Whether its warm-ups are worth a rebalance now; nothing for groups that have none by their kind."""
    group = ground.snapshot.groups.get(group_id)
    if not isinstance(group, StreamsGroup) or group.kind is not GroupKind.CLASSIC_STREAMS:
        return ()
    decision = decide(group_id, ground, past)
    match decision:
        case TriggerNow():
            answer = Answer.YES
        case Off():
            answer = Answer.NO
        case _:
            answer = Answer.WAIT
    return (Explained(f"group/{group_id}", RULE, answer, decision.sentence),)

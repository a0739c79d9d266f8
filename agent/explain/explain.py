"""Explains a subject or proposal: every rule that was asked, with yes, no or wait, and its figures.

A subject is ``topic/NAME``, ``topic/NAME/PARTITION``, ``group/NAME``, ``broker/ID`` or a proposal id. The rules are
those of the given plan, never of a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from agent.detect.detect_context import named
from agent.execute.probing_decision import ProbingContext, decide
from agent.execute.probing_values import PastTrigger, ProbingOff, ProbingTrigger
from agent.explain.group import about_group
from agent.explain.topic import about_topic
from agent.plan.plan_context import plan_context
from agent.predict.predict import predict
from agent.values.assessment import DetectionResult
from agent.values.finding import Finding, FindingReason
from agent.values.kafka import ACCEPTABLE_LAG, BROKER_RACK, CLIENT_RACK
from agent.values.limits import Limits, LocatorKind
from agent.values.number_format import counted, lasted, sized
from agent.values.plan import (
    ExplainedRule,
    Plan,
    Prediction,
    RuleAnswer,
    Unplanned,
    Value,
    unplanned_subject,
    unplanned_text,
    yes_or_no,
)
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.snapshot import (
    BrokerState,
    GroupKind,
    LocatorState,
    Rack,
    RackState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    rack_source,
)
from agent.values.weights import FigureBasis

# Figures of a proposal as sentences with units; one without a sentence is shown by its name.

_BASES = {
    FigureBasis.WEIGHTS.value: "figures rest on weights of the pipeline, in bytes per second",
    FigureBasis.OWN_RATES.value: (
        "figures rest on the agent's own rates, in bytes per second; the optimum counts partitions"
    ),
    FigureBasis.COUNTS.value: "figures rest on counts of partitions",
}
_BOUND = "lower_bound"
_BEFORE, _AFTER, _LEADERS = "_before", "_after", "preferred_leaders_by"
LABELS: Mapping[str, str] = {
    "basis": "figures rest on",
    "lags": "lags of warm-ups",
    "tasks": "warm-ups",
    "who": "concerns",
    "count": "concerned",
    "acceptable_recovery_lag": ACCEPTABLE_LAG,
    "acceptable_recovery_lag_is": f"source of {ACCEPTABLE_LAG}",
    "next_probing_rebalance_ms": "next probing rebalance",
    "weights_from_ms": "weights begin",
    "weights_until_ms": "weights end",
    "weights_age_s": "age of the weights",
    "why_not_weights": "no weights",
    "crossing_bytes_per_s_now": "bytes across racks now",
    "crossing_bytes_per_s_own": "bytes across racks by its own assignor",
    "crossing_bytes_per_s_at_best": "bytes across racks at best",
    "lower_bound_cross_rack_bytes_per_s": "lower bound of bytes across racks",
    "lower_bound_copied_bytes": "lower bound of copied bytes",
}
"""In a table: names of figures that carry units or are unclear without their sentence; the others are words."""


def label(rule: str) -> str:
    """The name of a rule or a figure as a table has it."""
    return LABELS.get(rule, rule.replace("_", " "))


def facts_of(proposal: Proposal, now_ms: int) -> list[ExplainedRule]:
    """One row for each figure of the evidence, then the lower bound; ``now_ms`` is when the look was taken."""
    evidence = dict(proposal.evidence)
    rows = [
        ExplainedRule(proposal.id, name, RuleAnswer.FACT, _sentence(name, value, now_ms), value)
        for name, value in proposal.evidence
        if value is not None and name != _BOUND and not _unchanged(name, evidence)
    ]
    return [*rows, *_lower_bound(proposal)]


def _unchanged(name: str, evidence: Mapping[str, Value]) -> bool:
    """Whether it is a preferred-leader figure that the proposal does not change."""
    stem = name.removesuffix(_BEFORE).removesuffix(_AFTER)
    before, after = evidence.get(stem + _BEFORE), evidence.get(stem + _AFTER)
    return stem != name and stem.startswith(_LEADERS) and before is not None and before == after


def _sentence(name: str, value: Value, now_ms: int) -> str:
    if name == "next_probing_rebalance_ms" and isinstance(value, int | float):
        return _due(value, now_ms)
    written = _SENTENCES.get(name)
    return f"{name.replace('_', ' ')}: {_listed(value)}" if written is None else written(value)


def _lower_bound(proposal: Proposal) -> list[ExplainedRule]:
    bound = proposal.lower_bound
    if bound is None:
        return []
    unit, amount = _bound_in(proposal, bound)
    reached = "this proposal reaches it" if proposal.optimal else "whether less is possible is not proven"
    answer = RuleAnswer.YES if proposal.optimal else RuleAnswer.UNKNOWN
    if not proposal.optimal and not bound:
        return [ExplainedRule(proposal.id, f"{_BOUND}_{unit}", answer, f"no lower bound is proven; {reached}", bound)]
    return [ExplainedRule(proposal.id, f"{_BOUND}_{unit}", answer, f"{amount}; {reached}", bound)]


def _bound_in(proposal: Proposal, bound: float) -> tuple[str, str]:
    """The unit of the lower bound, and its sentence."""
    number = round(bound)
    if proposal.kind is ProposalKind.REASSIGN:
        return "copied_bytes", f"any reassignment with this result copies at least {sized(bound)}"
    if proposal.reason is ProposalReason.LEADERS_EVEN:
        changes = counted(number, "preferred leader")
        return "preferred_leaders_changed", f"any change with this result changes at least {changes}"
    if dict(proposal.evidence).get("basis") == FigureBasis.WEIGHTS.value and proposal.kind is ProposalKind.TRIGGER:
        return "cross_rack_bytes_per_s", f"under any assignment at least {sized(bound)}/s cross racks"
    return "cross_rack_reads", f"under any assignment at least {counted(number, 'read crosses', 'reads cross')} racks"


def _listed(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _number_in_all(value: Value) -> str:
    return f"{_listed(value)} in all"


def _count(text: str, one: str, many: str | None = None) -> Callable[[Value], str]:
    """``text`` with ``{}`` replaced by a number and its noun."""

    def written(value: Value) -> str:
        return text.format(counted(int(value), one, many) if isinstance(value, int | float) else value)

    return written


def _names(text: str) -> Callable[[Value], str]:
    return lambda value: text.format(_listed(value))


def _rate(text: str) -> Callable[[Value], str]:
    return lambda value: text.format(f"{sized(value)}/s" if isinstance(value, int | float) else value)


def _due(at_ms: float, now_ms: int) -> str:
    left_ms = at_ms - now_ms
    apart = lasted(abs(left_ms))
    due = f"is due in {apart}" if left_ms >= 0 else f"was due {apart} ago"
    return f"the application's next probing rebalance {due} (probing.rebalance.interval.ms)"


def _age_of_weights(value: Value) -> str:
    return f"the weights are {lasted(1_000 * value) if isinstance(value, int | float) else _listed(value)} old"


def _instant(text: str) -> Callable[[Value], str]:
    """``text`` with ``{}`` replaced by the time of epoch milliseconds."""

    def written(value: Value) -> str:
        if not isinstance(value, int | float):
            return text.format(_listed(value))
        return text.format(f"{datetime.fromtimestamp(value / 1_000, UTC):%Y-%m-%d %H:%M:%SZ}")

    return written


_SENTENCES: Mapping[str, Callable[[Value], str]] = {
    "assignor": _names("the group's assignor is {}"),
    "members": _count("the group has {}", "member"),
    "measure": lambda _: "local is meant by Kafka's rule: a replica in the member's rack",
    "prediction": _names("predicted is {}"),
    "crossing_now": _count("{} racks now, by Kafka's rule", "read crosses", "reads cross"),
    "crossing_own": _count("{} racks with its own assignor, as predicted", "read crosses", "reads cross"),
    "crossing_at_best": _count("{} racks under the best assignment", "read crosses", "reads cross"),
    "crossing_bytes_per_s_now": _rate("{} cross racks now, as read"),
    "crossing_bytes_per_s_own": _rate("{} cross racks, as read, with its own assignor"),
    "crossing_bytes_per_s_at_best": _rate("{} cross racks, as read, under the best assignment"),
    "moved_own": _count("its own assignor moves {}", "partition or task", "partitions or tasks"),
    "moved_at_best": _count("the best assignment moves {}", "partition or task", "partitions or tasks"),
    "partitions": _count("the topic has {}", "partition"),
    "partitions_changed": _count("the replica lists of {} change", "partition"),
    "replica_racks_before": _names("racks of the replicas now: {}"),
    "replica_racks_after": _names("racks of the replicas afterwards: {}"),
    "readers": _count("{} by consumer groups: a read is one partition, read by one member", "read"),
    "bytes_counted": lambda _: (
        "traffic counts copies from leader to follower, and reads from the leader or from an in-sync replica in the "
        "reader's rack"
    ),
    "preferred_leaders_changed": _count("{}", "preferred leader changes", "preferred leaders change"),
    "preferred_leaders_by_broker_before": _names("preferred leaders of the topic now: {}"),
    "preferred_leaders_by_broker_after": _names("preferred leaders of the topic afterwards: {}"),
    "preferred_leaders_by_rack_before": _names("preferred leaders of the topic by rack now: {}"),
    "preferred_leaders_by_rack_after": _names("preferred leaders of the topic by rack afterwards: {}"),
    "fetches_across_racks_before": _count(
        "{} racks now", "fetch of followers and readers crosses", "fetches of followers and readers cross"
    ),
    "fetches_across_racks_after": _count(
        "{} racks afterwards", "fetch of followers and readers crosses", "fetches of followers and readers cross"
    ),
    "basis": lambda value: _BASES.get(str(value), f"figures rest on {value}"),
    "weights_from_ms": _instant("the weights begin at {}"),
    "weights_until_ms": _instant("the weights end at {}"),
    "weights_age_s": _age_of_weights,
    "why_not_weights": _names("no weights of the pipeline are used: {}"),
    "why": _names("{}"),
    "who": _names("it concerns {}"),
    "count": _number_in_all,
    "tasks": _names("warm-ups that may take over: {}"),
    "lags": _names("their lags: {}"),
    "acceptable_recovery_lag": _count("a warm-up has caught up at a lag of at most {}", "record"),
    "acceptable_recovery_lag_is": _names("the value of acceptable.recovery.lag is {}"),
}


WAITING = frozenset({
    Unplanned.HELD, Unplanned.RUNNING, Unplanned.CAPPED, Unplanned.UNSTABLE, Unplanned.ROLLING, Unplanned.WARMING_UP,
})  # fmt: skip
"""Reasons that end by themselves."""
_ABOUT_RACKS = frozenset({FindingReason.BROKER_RACK_CHANGED, FindingReason.RACK_FLAPPING})
_RACKS_NOW = "replica_racks_before"
_STABLE = "the rack has been stable"


def explain(  # noqa: PLR0917 (the parts of one cycle, in the order in which the cycle makes them)
    subject: str,
    snapshot: Snapshot,
    detection: DetectionResult,
    plan: Plan | None,
    proposals: Sequence[Proposal],
    limits: Limits,
) -> tuple[ExplainedRule, ...]:
    """The rules about a subject, gravest part first; empty for an unknown subject."""
    plan = plan or Plan()
    named = next((proposal for proposal in proposals if proposal.id == subject), None)
    if named is not None:
        return (
            *_about_proposal(named, snapshot.taken_ms),
            *explain(str(named.subject), snapshot, detection, plan, (), limits),
        )
    kind, _, name = subject.partition("/")
    context = plan_context(snapshot, detection, limits, None, _predicted(kind, name, snapshot, plan, limits))
    rows: list[ExplainedRule] = []
    matching = (p for p in proposals if (p.subject.kind, p.subject.name) == (kind, name))
    if kind == "topic":
        name, partition = _split(name, snapshot)
        rows += about_topic(name, partition, context, plan)
    elif kind == "group":
        rows += about_group(name, context, plan)
        rows += about_readers(name, snapshot)
    elif kind == "broker":
        rows += about_broker(name, snapshot)
    return (
        *_findings(kind, name, detection.findings),
        *rows,
        *_left_out(kind, name, detection.findings, plan),
        *(row for p in matching for row in _about_proposal(p, snapshot.taken_ms)),
    )


def _predicted(kind: str, name: str, snapshot: Snapshot, plan: Plan, limits: Limits) -> Mapping[str, Prediction]:
    """The plan's predictions, with one for the group where the plan has none."""
    if kind != "group" or name in plan.predictions or name not in snapshot.groups:
        return plan.predictions
    return {**plan.predictions, name: predict(snapshot.groups[name], snapshot, limits)}


def _split(name: str, snapshot: Snapshot) -> tuple[str, int | None]:
    """``orders/3`` is partition 3 of orders; topic names hold no slash."""
    topic, _, number = name.partition("/")
    return (topic, int(number)) if topic in snapshot.topics and number.isdecimal() else (name, None)


def _findings(kind: str, name: str, findings: Sequence[Finding]) -> list[ExplainedRule]:
    rest = _until(findings)
    return [
        ExplainedRule(
            str(finding.subject),
            finding.reason.value,
            RuleAnswer.WAIT if finding.held else RuleAnswer.FOUND,
            f"{finding.sentence}; held until {_STABLE if finding.reason in _ABOUT_RACKS else rest}"
            if finding.held and finding.reason is not FindingReason.BROKER_ABSENT  # whose own sentence has the end
            else finding.sentence,
        )
        for finding in findings
        if _concerns(finding, kind, name)
    ]


def _until(findings: Iterable[Finding]) -> str:
    """The end of a hold: of absent brokers, of racks, or of both."""
    held = [finding for finding in findings if finding.held]
    away = sorted(one.broker for one in held if one.broker is not None and one.reason is FindingReason.BROKER_ABSENT)
    if not away:
        return _STABLE
    are, have = ("is", "has") if len(away) == 1 else ("are", "have")
    back = f"{named('broker', away)} {are} back, or {have} been absent for long enough"
    racks = any(finding.reason in _ABOUT_RACKS for finding in held)
    return f"{back}, and racks have been stable" if racks else back


def _left_out(kind: str, name: str, findings: Sequence[Finding], plan: Plan) -> list[ExplainedRule]:
    """Findings and changes of the subject that are not planned, with the reason."""
    ids = {finding.id for finding in findings if _concerns(finding, kind, name)}
    rows: list[ExplainedRule] = []
    words = {Unplanned.HELD: f"held until {_until(findings)}"}
    for key, why in plan.unplanned:
        about = unplanned_subject(key)
        if about in ids or about == (kind, name):
            answer = RuleAnswer.WAIT if why in WAITING else RuleAnswer.NO
            rows.append(ExplainedRule(unplanned_text(key), "planned", answer, words.get(why, why.value)))
    return rows


def _concerns(finding: Finding, kind: str, name: str) -> bool:
    if kind == "group":
        return finding.group == name
    return (finding.subject.kind, finding.subject.name) == (kind, name)


def _about_proposal(proposal: Proposal, now_ms: int) -> list[ExplainedRule]:
    """Its sentence and its figures; for a topic the rows of partitions have the present racks."""
    facts = [row for row in facts_of(proposal, now_ms) if row.rule != _RACKS_NOW or proposal.subject.kind != "topic"]
    return [ExplainedRule(proposal.id, proposal.reason.value, RuleAnswer.YES, proposal.sentence), *facts]


def about_broker(name: str, snapshot: Snapshot) -> list[ExplainedRule]:
    """A broker's rack by every locator, and the rack that Kafka itself has."""
    broker = next((broker for broker in snapshot.brokers if str(broker.id) == name), None)
    if broker is None:
        return []
    about = f"broker/{name}"
    known = _known(about, broker.rack, BROKER_RACK, snapshot)
    if broker.host is None and broker.rack.state is RackState.UNKNOWN:
        known = known._replace(sentence="the broker is absent, and its rack was never seen")
    return [known, *_others(about, broker.rack), _to_kafka(about, broker)]


def about_readers(name: str, snapshot: Snapshot) -> list[ExplainedRule]:
    """The racks of a group's members that a locator gave or disputes."""
    group = snapshot.groups.get(name)
    if not isinstance(group, ReaderGroup) or not snapshot.rack_locators:
        return []
    rows: list[ExplainedRule] = []
    for member in group.members:
        if member.rack.source is not None or member.rack.others:
            rows.append(_known(member.id, member.rack, CLIENT_RACK, snapshot))
            rows += _others(member.id, member.rack)
    return rows


def _known(about: str, rack: Rack, setting: str, snapshot: Snapshot) -> ExplainedRule:
    if rack.state is RackState.KNOWN:
        wire = f", where {setting} says {rack.sent}" if rack.source == LocatorKind.WIRE.value else ""
        sentence = (
            f"rack {rack.name}, from {rack_source(rack, setting)}{wire}{_age(rack.source, snapshot.rack_locators)}"
        )
        return ExplainedRule(about, "rack known", RuleAnswer.YES, sentence)
    if rack.state is RackState.CONFLICTING:
        who = f"{rack.source} says" if rack.source else "its sources give"
        return ExplainedRule(
            about, "rack known", RuleAnswer.NO, f"{who} {' and '.join(rack.claims)}, so no rack is used"
        )
    reason = (
        f"{setting} says {rack.sent}, which is not used, as rack.locator.class leaves out wire"
        if rack.sent
        else f"{setting} is not set"
    )
    asked = ", ".join(locator.name for locator in snapshot.rack_locators if locator.name != LocatorKind.WIRE.value)
    return ExplainedRule(
        about, "rack known", RuleAnswer.UNKNOWN, reason + (f", and none of {asked} knows it" if asked else "")
    )


def _age(source: str | None, locators: tuple[LocatorState, ...]) -> str:
    age_ms = next((one.age_ms for one in locators if one.name == source), None)
    return f", answered {lasted(age_ms)} ago" if age_ms else ""


def _others(about: str, rack: Rack) -> list[ExplainedRule]:
    return [
        ExplainedRule(
            about, f"locator {locator} agrees", RuleAnswer.NO, f"it gives {other}, but another locator comes first"
        )
        for locator, other in rack.others
    ]


def _to_kafka(about: str, broker: BrokerState) -> ExplainedRule:
    """Kafka places topics and chooses the nearest replica by broker.rack alone."""
    broker_rack = broker.rack.rack_id if broker.alive else None
    if not broker.alive:
        sentence = "it is absent, and clients do not know its rack"
    elif broker_rack is None:
        sentence = "it has no broker.rack, so Kafka places and assigns as for a broker without a rack"
    else:
        sentence = f"broker.rack is {broker_rack}"
    return ExplainedRule(about, "Kafka knows its rack", yes_or_no(broker_rack is not None), sentence)


RULE = "probing"


def about_probing(group_id: str, view: ProbingContext, past: Sequence[PastTrigger] = ()) -> tuple[ExplainedRule, ...]:
    """Whether its warm-ups are worth a rebalance now; nothing for groups that have none by their kind."""
    group = view.snapshot.groups.get(group_id)
    if not isinstance(group, StreamsGroup) or group.kind is not GroupKind.CLASSIC_STREAMS:
        return ()
    decision = decide(group_id, view, past)
    match decision:
        case ProbingTrigger():
            answer = RuleAnswer.YES
        case ProbingOff():
            answer = RuleAnswer.NO
        case _:
            answer = RuleAnswer.WAIT
    return (ExplainedRule(f"group/{group_id}", RULE, answer, decision.sentence),)

"""The figures that a proposal rests on, each as a sentence with its unit; the name of a figure is for machines.

A name that has no sentence here is written as it is called, so that no figure is ever left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from agent.values.explained import Answer, Explained, Value
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.weighed import Basis
from agent.values.words import counted, lasted, sized

_BASES = {
    Basis.WEIGHTS.value: "figures rest on weights of the pipeline, in bytes per second",
    Basis.OWN_RATES.value: "figures rest on the agent's own rates, in bytes per second; the optimum counts partitions",
    Basis.COUNTS.value: "figures rest on counts of partitions",
}
_BOUND = "lower_bound"
_BEFORE, _AFTER, _LEADERS = "_before", "_after", "preferred_leaders_by"


LABELS: Mapping[str, str] = {
    "basis": "figures rest on",
    "lags": "lags of warm-ups",
    "tasks": "warm-ups",
    "who": "subjects",
    "acceptable_recovery_lag": "acceptable.recovery.lag",
    "acceptable_recovery_lag_is": "source of acceptable.recovery.lag",
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


def facts_of(proposal: Proposal, now_ms: int) -> list[Explained]:
    """One row for each figure of the evidence, then the lower bound; ``now_ms`` is when the look was taken."""
    evidence = dict(proposal.evidence)
    rows = [
        Explained(proposal.id, name, Answer.FACT, _sentence(name, value, now_ms), value)
        for name, value in proposal.evidence
        if value is not None and name != _BOUND and not _unchanged(name, evidence)
    ]
    return [*rows, *_lower_bound(proposal)]


def _unchanged(name: str, evidence: Mapping[str, Value]) -> bool:
    """Whether it is one of the two sides of what the proposal leaves as it is."""
    stem = name.removesuffix(_BEFORE).removesuffix(_AFTER)
    before, after = evidence.get(stem + _BEFORE), evidence.get(stem + _AFTER)
    return stem != name and stem.startswith(_LEADERS) and before is not None and before == after


def _sentence(name: str, value: Value, now_ms: int) -> str:
    if name == "next_probing_rebalance_ms" and isinstance(value, int | float):
        return _due(value, now_ms)
    written = _SENTENCES.get(name)
    return f"{name.replace('_', ' ')}: {_listed(value)}" if written is None else written(value)


def _lower_bound(proposal: Proposal) -> list[Explained]:
    bound = proposal.lower_bound
    if bound is None:
        return []
    unit, amount = _bound_in(proposal, bound)
    reached = "this proposal reaches it" if proposal.optimal else "whether less is possible is not proven"
    answer = Answer.YES if proposal.optimal else Answer.UNKNOWN
    if not proposal.optimal and not bound:
        return [Explained(proposal.id, f"{_BOUND}_{unit}", answer, f"no lower bound is proven; {reached}", bound)]
    return [Explained(proposal.id, f"{_BOUND}_{unit}", answer, f"{amount}; {reached}", bound)]


def _bound_in(proposal: Proposal, bound: float) -> tuple[str, str]:
    """The unit of the lower bound, and what no other change can undercut."""
    number = round(bound)
    if proposal.kind is ProposalKind.REASSIGN:
        return "copied_bytes", f"any reassignment with this result copies at least {sized(bound)}"
    if proposal.reason is ProposalReason.LEADERS_EVEN:
        changes = counted(number, "preferred leader")
        return "preferred_leaders_changed", f"any change with this result changes at least {changes}"
    if dict(proposal.evidence).get("basis") == Basis.WEIGHTS.value and proposal.kind is ProposalKind.TRIGGER:
        return "cross_rack_bytes_per_s", f"under any assignment at least {sized(bound)}/s cross racks"
    return "cross_rack_reads", f"under any assignment at least {counted(number, 'read crosses', 'reads cross')} racks"


def _listed(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


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
    """When an instant of epoch milliseconds is, by the look."""
    left_ms = at_ms - now_ms
    apart = lasted(abs(left_ms))
    due = f"is due in {apart}" if left_ms >= 0 else f"was due {apart} ago"
    return f"the application's next probing rebalance {due} (probing.rebalance.interval.ms)"


def _age(value: Value) -> str:
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
    "weights_age_s": _age,
    "why_not_weights": _names("no weights of the pipeline are used: {}"),
    "why": _names("{}"),
    "who": _names("it concerns {}"),
    "count": _count("{} in all", "subject"),
    "tasks": _names("warm-ups that may take over: {}"),
    "lags": _names("their lags: {}"),
    "acceptable_recovery_lag": _count("a warm-up has caught up at a lag of at most {}", "record"),
    "acceptable_recovery_lag_is": _names("the value of acceptable.recovery.lag is {}"),
}

"""The documents of ``status`` and ``top`` from one look. Pure; unknown stays None."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.documents.views import UNKNOWN, brokers_by_rack, findings, groups
from agent.documents.views_money import money, topics, unknown_groups, worst_groups
from agent.money.costs import CrossRackCosts, costs_of
from agent.values.cycle import hidden_groups, known_part
from agent.values.memory import absences
from agent.values.observation import ObservationPart
from agent.values.rates import is_priced, price_sentence, sentence
from agent.values.snapshot import is_partial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.documents.cluster import GapDocument, LookDocument, StatusDocument
    from agent.documents.groups import TopDocument
    from agent.simulate.evaluation import StageEvaluation


def status_document(
    look: StageEvaluation, numbers: Mapping[str, Any] | None = None, *, costs: CrossRackCosts | None = None
) -> StatusDocument:
    """The whole status as one document; ``numbers`` and ``costs``: those of the look, where they are there already."""
    numbers, costs = numbers or status_numbers(look), costs or costs_of(look.snapshot)
    by_rack = numbers["brokers"]
    return {
        "cluster": numbers["cluster"],
        "brokers": None
        if by_rack is None
        else [{"rack": None if name == UNKNOWN else name, "brokers": of} for name, of in by_rack.items()],
        "absent_brokers": numbers["absent_brokers"],
        "topics": numbers["topics"],
        "partitions": numbers["partitions"],
        "groups": numbers["groups"],
        "rebalancing_groups": numbers["rebalancing_groups"],
        "proposals": numbers["proposals"],
        "not_seen": numbers["not_seen"],
        "agent": look.agent,
        "took_ms": numbers["took_ms"],
        "money": money(costs, look),
        "worst_groups": worst_groups(costs, look),
        "unknown_groups": unknown_groups(costs, look),
        "findings": findings(look),
        "gaps": _gaps(look),
    }


def _gaps(look: StageEvaluation) -> list[GapDocument]:
    return [
        {"part": gap.part.value, "cause": gap.cause.value, "subject": gap.subject, "detail": gap.detail}
        for gap in look.snapshot.gaps
    ]


def look_document(look: StageEvaluation) -> LookDocument:
    """What is true of every document of this look."""
    snapshot, limits = look.snapshot, look.limits
    return {
        "cluster": snapshot.cluster_id,
        "mode": limits.mode.value,
        "taken_ms": snapshot.taken_ms,
        "partial": is_partial(snapshot),
        "gaps": _gaps(look),
        "rebalancing_groups": list(hidden_groups(snapshot, limits)),
        "rates_sentence": sentence(look.rates, snapshot),
        "price_sentence": price_sentence(limits),
        "priced": is_priced(limits),
        "measured_partitions": len(snapshot.bytes_per_s),
        "topics": len(snapshot.topics),
    }


def status_numbers(look: StageEvaluation) -> dict[str, Any]:
    """The cluster in ten lines; None where a part was not seen."""
    snapshot = look.snapshot
    kinds = Counter(group.kind.value for group in snapshot.groups.values())
    severities = Counter(finding.severity.value for finding in look.detection.findings)
    return {
        "cluster": snapshot.cluster_id,
        "brokers": known_part(dict(sorted(brokers_by_rack(snapshot).items())), snapshot, ObservationPart.BROKERS),
        "absent_brokers": known_part(sorted(absences(look.before, snapshot)), snapshot, ObservationPart.BROKERS),
        "topics": known_part(len(snapshot.topics), snapshot, ObservationPart.TOPICS),
        "partitions": known_part(
            sum(len(one.partitions) for one in snapshot.topics.values()), snapshot, ObservationPart.TOPICS
        ),
        "groups": known_part(dict(sorted(kinds.items())), snapshot, ObservationPart.GROUPS),
        "rebalancing_groups": known_part(list(hidden_groups(snapshot, look.limits)), snapshot, ObservationPart.GROUPS),
        "findings": {name: severities[name] for name in ("critical", "warning", "info") if severities[name]},
        "proposals": len(look.proposals),
        "not_seen": len(snapshot.gaps),
        "took_ms": look.took_ms,
    }


def top_document(look: StageEvaluation, costs: CrossRackCosts | None = None) -> TopDocument:
    """One look of ``top``: what crosses racks in all, by group and by topic, the dearest first."""
    costs = costs or costs_of(look.snapshot)
    return {
        "taken_ms": look.snapshot.taken_ms,
        "cluster": look.snapshot.cluster_id,
        "not_seen": len(look.snapshot.gaps),
        "money": money(costs, look),
        "groups": groups(costs, look, every=False),
        "topics": topics(costs, look),
    }

"""The documents of ``status`` and ``top`` from one look. Pure; unknown stays None."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from agent.documents.cluster import FindingDocument, GapDocument, RackBrokers, UnknownGroups, WorstGroup
from agent.documents.groups import MoneyDocument
from agent.documents.views import UNKNOWN, brokers_by_rack, findings, groups
from agent.documents.views_money import money, topics, unknown_groups, worst_groups
from agent.money.costs import CrossRackCosts, costs_of
from agent.values.cycle import hidden_groups, known_part
from agent.values.memory import absences
from agent.values.observation import ObservationPart
from agent.values.plan import AgentDocument
from agent.values.rates import is_priced, price_sentence, sentence
from agent.values.snapshot import is_partial

if TYPE_CHECKING:
    from agent.documents.cluster import LookDocument
    from agent.documents.groups import TopDocument
    from agent.simulate.evaluation import StageEvaluation
    from agent.values.snapshot import Snapshot


class StatusNumbers(TypedDict):
    """The numbers of the cluster, in the order in which the table shows them.

    Null where none is seen and the look may hide some; beside a gap another number is a lower bound.
    """

    topics: int | None
    partitions: int | None
    groups: dict[str, int] | None
    """Kind -> number of groups."""


class StatusDocument(StatusNumbers):
    """One look at the cluster: what is there, what crosses racks, and every finding."""

    cluster: str
    """The cluster's id."""
    brokers: list[RackBrokers] | None
    """By rack; null where none was seen and some may be hidden, as in all that follow."""
    absent_brokers: list[int] | None
    """Ids of brokers that are not live: a replica list names them, or an earlier look saw them."""
    rebalancing_groups: list[str] | None
    """Groups that show no racks or assignments of their members in this look."""
    proposals: int
    """Changes that rackwise would propose now."""
    not_seen: int
    """Parts that did not answer; they are listed in ``gaps``."""
    agent: AgentDocument | None
    """Null where no telemetry of an agent of this cluster was read, and for a file."""
    took_ms: int
    """How long the look and everything after it took; 0 for a file."""
    money: MoneyDocument
    worst_groups: list[WorstGroup]
    """The three groups that may cost most, the worst first; only those that read across racks or may do so."""
    unknown_groups: UnknownGroups
    findings: list[FindingDocument]
    """The gravest first."""
    gaps: list[GapDocument]


def status_document(look: StageEvaluation, *, costs: CrossRackCosts | None = None) -> StatusDocument:
    """The whole status as one document; ``costs``: those of the look, where they are there already."""
    snapshot, costs = look.snapshot, costs or costs_of(look.snapshot)
    by_rack = known_part(dict(sorted(brokers_by_rack(snapshot).items())), snapshot, ObservationPart.BROKERS)
    hidden = list(hidden_groups(snapshot, look.limits))
    return {
        "cluster": snapshot.cluster_id,
        "brokers": None
        if by_rack is None
        else [{"rack": None if name == UNKNOWN else name, "brokers": of} for name, of in by_rack.items()],
        "absent_brokers": known_part(sorted(absences(look.before, snapshot)), snapshot, ObservationPart.BROKERS),
        **_numbers(snapshot),
        "rebalancing_groups": known_part(hidden, snapshot, ObservationPart.GROUPS),
        "proposals": len(look.proposals),
        "not_seen": len(snapshot.gaps),
        "agent": look.agent,
        "took_ms": look.took_ms,
        "money": money(costs, look),
        "worst_groups": worst_groups(costs, look),
        "unknown_groups": unknown_groups(costs, look),
        "findings": findings(look),
        "gaps": _gaps(look),
    }


def _numbers(snapshot: Snapshot) -> StatusNumbers:
    """Each with the parts of the look that it is computed from."""
    partitions = sum(len(one.partitions) for one in snapshot.topics.values())
    kinds = Counter(group.kind.value for group in snapshot.groups.values())
    return {
        "topics": known_part(len(snapshot.topics), snapshot, ObservationPart.TOPICS),
        "partitions": known_part(partitions, snapshot, ObservationPart.TOPICS),
        "groups": known_part(dict(sorted(kinds.items())), snapshot, ObservationPart.GROUPS),
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

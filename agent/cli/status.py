"""``status``: the size of the cluster, traffic across racks, its cost, all findings, and the running agent."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypedDict

from agent.cli import options, session
from agent.cli.output import NAMES_SHOWN, OutputFormat, chosen, emit, emit_gap, emit_line, emit_one, emit_text
from config.foreign_text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.cli.documents.cluster import FindingDocument, GapDocument, RackBrokers, UnknownGroups, WorstGroup
    from agent.cli.documents.groups import MoneyDocument
    from agent.simulate.evaluation import StageEvaluation
    from agent.values.progress import AgentDocument

FINDINGS_SHOWN = 20


class StatusDocument(TypedDict):
    """One look at the cluster: what is there, what crosses racks, and every finding."""

    cluster: str
    """The cluster's id."""
    brokers: list[RackBrokers] | None
    """By rack; null where none was seen and some may be hidden, as in all that follow."""
    absent_brokers: list[int] | None
    """Ids of brokers that are not live: a replica list names them, or an earlier look saw them."""
    topics: int | None
    partitions: int | None
    groups: dict[str, int] | None
    """Kind -> number of groups."""
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


@options.expanded
def status(source: options.SettingsOptions, given: options.LookOptions) -> None:
    """Summary of the cluster: size, traffic across racks, its cost a day, every finding, and what stops the agent."""
    look = session.look_or_replay(source, given.replay, duration=given.duration, reported=True)
    from agent.cli import tables

    numbers = _numbers(look)
    document = status_document(look, numbers)
    if chosen(given.output) is not OutputFormat.TABLE:
        emit_one(document, given.output)
        session.leave(look)
    cells = _cells(look, numbers, every=given.every)
    emit_one(cells, given.output, tuple(cells), every=given.every)
    tables.basis(look)
    for sentence in look.agent["acting"] if look.agent is not None else ():
        emit_text(f"The agent reports: {sentence}.")
    if document["worst_groups"]:
        emit_line()
        worst = document["worst_groups"]
        counts = document["groups"]
        of = "" if counts is None else f" ({len(worst):,} of {sum(counts.values()):,})"
        columns = tables.with_money(tables.WORST, look.limits)
        emit(tables.worst(worst), columns, given.output, title=f"costliest groups{of}")
    unknown = tables.unknown_cost(document["unknown_groups"])
    if unknown is not None and look.snapshot.bytes_per_s:  # without rates none has a known cost: that is said above
        emit_text(unknown)
    emit_gap(document["findings"])
    columns = ("severity", "finding", "subject", "sentence")
    from agent.values.observation import ObservationPart

    rows = session.once_each(document["findings"])
    empty = session.none_of("no findings in one look", look, *ObservationPart)
    emit(rows, columns, given.output, empty=empty, every=given.every, most=FINDINGS_SHOWN)
    shown = document["findings"] if given.every or len(rows) <= FINDINGS_SHOWN else []
    session.leave(look, gaps=session.unnamed(look.snapshot.gaps, shown))


def _cells(look: StageEvaluation, numbers: Mapping[str, Any], *, every: bool) -> dict[str, Any]:
    """The numbers as cells of a table."""
    from agent.cli import tables
    from agent.cli.running_agents import agent_line

    cells = {**numbers, "across_racks": tables.across_racks(look)}
    if cells["brokers"] is not None:
        absent = cells["absent_brokers"]
        cells["brokers"] = {rack: tables.marked(of, absent) for rack, of in cells["brokers"].items()}
    if not cells["absent_brokers"]:
        del cells["absent_brokers"]
    if look.agent is not None:
        cells["agent"] = agent_line(look)
    moving = cells.pop("rebalancing_groups")
    if moving:
        named = listed(moving, None if every else NAMES_SHOWN)
        cells["rebalancing"] = f"{named}: no racks or assignments of members shown"
    cells["parts not seen"] = cells.pop("not_seen")
    cells["took"] = f"{cells.pop('took_ms'):,} ms"
    return cells


def _numbers(look: StageEvaluation) -> dict[str, Any]:
    """The cluster in ten lines; None where a part was not seen."""
    from agent.cli.views import brokers_by_rack
    from agent.values.cycle import hidden_groups, known_part
    from agent.values.memory import absences
    from agent.values.observation import ObservationPart

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


def status_document(look: StageEvaluation, numbers: Mapping[str, Any]) -> StatusDocument:
    """The whole status as one document."""
    from agent.cli.views import UNKNOWN, findings
    from agent.cli.views_money import money, unknown_groups, worst_groups
    from agent.money.costs import costs_of

    costs = costs_of(look.snapshot)
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
        "gaps": [
            {"part": gap.part.value, "cause": gap.cause.value, "subject": gap.subject, "detail": gap.detail}
            for gap in look.snapshot.gaps
        ],
    }

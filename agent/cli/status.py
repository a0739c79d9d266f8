"""``status``: the size of the cluster, traffic across racks, its cost, all findings, and the running agent."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.cli import options, session
from agent.cli.output import NAMES_SHOWN, OutputFormat, chosen, emit, emit_gap, emit_line, emit_one, emit_text
from config.foreign_text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.documents.cluster import LookDocument
    from agent.documents.status import StatusDocument
    from agent.simulate.evaluation import StageEvaluation

FINDINGS_SHOWN = 20
_SEVERITIES = ("critical", "warning", "info")
_UNKNOWN = "(unknown)"


def status(source: options.SettingsOptions, given: options.LookOptions) -> None:
    """Summary of the cluster: size, traffic across racks, its cost a day, every finding, and what stops the agent."""
    shown = session.shown(source, given, "/cluster", _document, reported=True)
    document: StatusDocument = shown.document
    look = shown.look
    from agent.cli import tables

    if chosen(given.output) is not OutputFormat.TABLE:
        emit_one(document, given.output)
        session.leave_look(look)
    cells = _cells(document, look, every=given.every)
    emit_one(cells, given.output, tuple(cells), every=given.every)
    tables.basis(look)
    for sentence in document["agent"]["acting"] if document["agent"] is not None else ():
        emit_text(f"The agent reports: {sentence}.")
    if document["worst_groups"]:
        emit_line()
        worst = document["worst_groups"]
        counts = document["groups"]
        of = "" if counts is None else f" ({len(worst):,} of {sum(counts.values()):,})"
        columns = tables.with_money(tables.WORST, priced=look["priced"])
        emit(tables.worst(worst), columns, given.output, title=f"costliest groups{of}")
    unknown = tables.unknown_cost(document["unknown_groups"])
    if unknown is not None and look["measured_partitions"]:  # without rates none has a known cost: that is said above
        emit_text(unknown)
    emit_gap(document["findings"])
    columns = ("severity", "finding", "subject", "sentence")
    from agent.values.observation import ObservationPart

    rows = session.once_each(document["findings"])
    empty = session.none_of("no findings in one look", look, *ObservationPart)
    emit(rows, columns, given.output, empty=empty, every=given.every, most=FINDINGS_SHOWN)
    named = document["findings"] if given.every or len(rows) <= FINDINGS_SHOWN else []
    session.leave_look(look, gaps=session.unnamed(session.gaps_in(look), named))


def _document(look: StageEvaluation) -> object:
    from agent.documents.status import status_document

    return status_document(look)


def _cells(document: StatusDocument, look: LookDocument, *, every: bool) -> dict[str, Any]:
    """The numbers as cells of a table."""
    from agent.cli import tables
    from agent.cli.running_agents import agent_line
    from agent.documents.status import StatusNumbers

    absent, severities = document["absent_brokers"], Counter(str(one["severity"]) for one in document["findings"])
    cells: dict[str, Any] = {"cluster": document["cluster"], "brokers": _brokers(document)}
    if absent:
        cells["absent_brokers"] = absent
    fields: Mapping[str, object] = document
    cells |= {name: fields[name] for name in StatusNumbers.__annotations__ if name in fields}  # not an older agent's
    cells["findings"] = {name: severities[name] for name in _SEVERITIES if severities[name]}
    cells["proposals"] = document["proposals"]
    cells["across_racks"] = tables.across_racks(document["money"]["total"], look)
    if document["agent"] is not None:
        cells["agent"] = agent_line(document["agent"])
    if document["rebalancing_groups"]:
        names = listed(document["rebalancing_groups"], None if every else NAMES_SHOWN)
        cells["rebalancing"] = f"{names}: no racks or assignments of members shown"
    cells["parts not seen"] = document["not_seen"]
    cells["took"] = f"{document['took_ms']:,} ms"
    return cells


def _brokers(document: StatusDocument) -> dict[str, list[str]] | None:
    """Rack -> its brokers, absent ones marked."""
    from agent.cli import tables

    if document["brokers"] is None:
        return None
    return {
        row["rack"] or _UNKNOWN: tables.marked(row["brokers"], document["absent_brokers"])
        for row in document["brokers"]
    }

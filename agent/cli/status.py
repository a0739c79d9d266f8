"""``status``: the size of the cluster, traffic across racks, its cost, all findings, and the running agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.cli import options, session
from agent.cli.output import NAMES_SHOWN, OutputFormat, chosen, emit, emit_gap, emit_line, emit_one, emit_text
from config.foreign_text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.simulate.evaluation import StageEvaluation

FINDINGS_SHOWN = 20


@options.expanded
def status(source: options.SettingsOptions, given: options.LookOptions) -> None:
    """Summary of the cluster: size, traffic across racks, its cost a day, every finding, and what stops the agent."""
    look = session.look_or_replay(source, given.replay, duration=given.duration, reported=True)
    from agent.cli import tables
    from agent.documents.status import status_document, status_numbers

    numbers = status_numbers(look)
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

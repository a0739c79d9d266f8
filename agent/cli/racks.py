"""``racks``: brokers, replicas and members of each rack, traffic across its border, and the effect of its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cli import options, session
from agent.cli.output import CellMark, OutputFormat, chosen, emit, emit_line

if TYPE_CHECKING:
    from agent.simulate.evaluation import StageEvaluation


def racks(source: options.SettingsOptions, given: options.LookOptions) -> None:
    """Racks: brokers, replicas, members, traffic across racks, its cost a day, and the effect of losing each rack."""
    rows, look = session.shown(source, given, "/racks", _document)
    from agent.cli import tables

    if chosen(given.output) is OutputFormat.TABLE:
        emit(tables.racks(rows), tables.RACKS, given.output, empty="no broker answered", every=given.every)
        emit_line()
        if look["topics"]:  # else nothing crosses, and no zero was measured
            emit(
                tables.borders(rows if given.every else rows[: tables.MOST_LOSSES]),
                tables.with_money(tables.BORDERS, priced=look["priced"]),
                given.output,
                empty="no rack is known",
                every=given.every,
            )
        tables.basis(look)
        emit_line()
        tables.losses(rows, every=given.every)
        session.leave_look(look)
    columns = (
        "rack", "known_from", "brokers", "replicas", "leaders", "members", "active_tasks", "standby_tasks",
        "cross_rack_in_bytes_per_s", "cross_rack_out_bytes_per_s", "usd_per_day", "losing_it",
    )  # fmt: skip
    emit(rows, columns, given.output, absent={"losing_it": CellMark.NOT_APPLICABLE})
    session.leave_look(look)


def _document(look: StageEvaluation) -> object:
    from agent.documents.views import racks

    return racks(look)

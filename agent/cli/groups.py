"""``groups``: consumer groups with locality, traffic across racks and lag, or one group with its members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from agent.cli import options, session
from agent.cli.output import OutputFormat, chosen, emit, emit_one, emit_text
from agent.values.number_format import counted
from config.foreign_text import segment_of

if TYPE_CHECKING:
    from agent.simulate.evaluation import StageEvaluation


def groups(
    source: options.SettingsOptions,
    given: options.LookOptions,
    group: Annotated[
        str | None, typer.Argument(metavar="GROUP", help="Group to show with its members; default: all groups.")
    ] = None,
) -> None:
    """Consumer groups, costliest first: share of local reads, traffic across racks, its cost a day, and lag.

    With GROUP: its members, its tasks, and its reads by topic.
    """
    if group is not None:
        _show_group(source, given, group)
    rows, look = session.shown(source, given, "/groups", _rows)
    from agent.cli import tables
    from agent.values.kafka import MEMBERLESS_STATES
    from agent.values.observation import ObservationPart

    if chosen(given.output) is not OutputFormat.TABLE:
        emit(rows, tuple(name for name in rows[0] if name != "racks") if rows else (), given.output)
        session.leave_look(look)
    shown = rows if given.every else [row for row in rows if row["members"] or row["state"] not in MEMBERLESS_STATES]
    empty = session.none_of("no groups", look, ObservationPart.GROUPS) if not rows else "no group has members"
    columns = tables.with_money(tables.GROUPS, priced=look["priced"])
    emit(tables.groups(shown), columns, given.output, empty=empty, every=given.every)
    tables.basis(look)
    tables.emit_gains(shown, every=given.every)
    if len(shown) < len(rows):
        left_out = len(rows) - len(shown)
        emit_text(f"{counted(left_out, 'group')} without members not shown: --all")
    session.leave_look(look)


def _show_group(source: options.SettingsOptions, given: options.LookOptions, group: str) -> NoReturn:
    """One group with its members, its tasks, and its reads by topic. Raises what an unknown group raises."""

    def made(look: StageEvaluation) -> object:
        from agent.documents.views import group as details
        from agent.money.costs import costs_of
        from agent.plan.new_partitions import unknown_group

        if group not in look.snapshot.groups:
            raise unknown_group(group, look.snapshot)
        return details(group, costs_of(look.snapshot), look)

    document, look = session.shown(source, given, f"/groups/{segment_of(group)}", made)
    if chosen(given.output) is OutputFormat.TABLE:
        from agent.cli import tables

        tables.show_group(document, look, every=given.every)
    else:
        emit_one(document, given.output)
    session.leave_look(look)


def _rows(look: StageEvaluation) -> object:
    from agent.documents.views import groups
    from agent.money.costs import costs_of

    return groups(costs_of(look.snapshot), look)

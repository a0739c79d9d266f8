"""``groups``: consumer groups with locality, traffic across racks and lag, or one group with its members."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import options, session
from agent.cli.output import OutputFormat, chosen, emit, emit_one, emit_text
from agent.values.number_format import counted


@options.expanded
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
    look = session.look_or_replay(source, given.replay, duration=given.duration)
    from agent.cli import tables
    from agent.documents import views
    from agent.money.costs import costs_of
    from agent.plan.new_partitions import unknown_group
    from agent.values.observation import ObservationPart

    costs = costs_of(look.snapshot)
    if group is not None and group not in look.snapshot.groups:
        raise unknown_group(group, look.snapshot)
    if group is not None:
        document = views.group(group, costs, look)
        if chosen(given.output) is OutputFormat.TABLE:
            tables.show_group(document, look, every=given.every)
        else:
            emit_one(document, given.output)
        session.leave(look)
    rows = views.groups(costs, look)
    if chosen(given.output) is not OutputFormat.TABLE:
        emit(rows, tuple(name for name in rows[0] if name != "racks") if rows else (), given.output)
        session.leave(look)
    shown = rows if given.every else [row for row in rows if not views.is_empty(look, row["group"])]
    empty = session.none_of("no groups", look, ObservationPart.GROUPS) if not rows else "no group has members"
    columns = tables.with_money(tables.GROUPS, look.limits)
    emit(tables.groups(shown), columns, given.output, empty=empty, every=given.every)
    tables.basis(look)
    if len(shown) < len(rows):
        left_out = len(rows) - len(shown)
        emit_text(f"{counted(left_out, 'group')} without members not shown: --all")
    session.leave(look)

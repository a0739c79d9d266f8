"""``status``, ``racks``, ``groups``, ``topics``, ``doctor``: what is there, what it costs, what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.cli import options, session
from agent.cli.output import (
    CellMark,
    OutputFormat,
    chosen,
    emit,
    emit_command,
    emit_gap,
    emit_line,
    emit_one,
    emit_text,
)
from agent.cli.session import leave
from agent.values.number_format import counted
from config.foreign_text import listed

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent.cli.documents.cluster import CheckDocument, FixDocument

V = TypeVar("V")
FINDINGS_SHOWN = 20
_INDENT = 10
PARTS_SHOWN = 20
WHO_SHOWN = 10


def status(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    duration: options.For = None,
    every: options.All = False,
) -> None:
    """Summary of the cluster: size, traffic across racks, its cost a day, every finding, and what stops the agent."""
    look = session.look_or_replay(config, properties, assign, bootstrap, replay, duration=duration, reported=True)
    from agent.cli import tables, views
    from agent.cli.running_agents import agent_line

    document = views.status(look)
    if chosen(output) is not OutputFormat.TABLE:
        emit_one(document, output)
        leave(look)
    summary = {**views.summary(look), "across_racks": tables.across_racks(look)}
    if summary["brokers"] is not None:
        absent = summary["absent_brokers"]
        summary["brokers"] = {rack: tables.marked(of, absent) for rack, of in summary["brokers"].items()}
    if not summary["absent_brokers"]:
        del summary["absent_brokers"]
    if look.agent is not None:
        summary["agent"] = agent_line(look)
    moving = summary.pop("rebalancing_groups")
    if moving:
        named = listed(moving, None if every else WHO_SHOWN)
        summary["rebalancing"] = f"{named}: no racks or assignments of members shown"
    summary["parts not seen"] = summary.pop("not_seen")
    summary["took"] = f"{summary.pop('took_ms'):,} ms"
    emit_one(summary, output, tuple(summary), every=every)
    tables.basis(look)
    for sentence in look.agent["acting"] if look.agent is not None else ():
        emit_text(f"The agent reports: {sentence}.")
    if document["worst_groups"]:
        emit_line()
        worst = document["worst_groups"]
        counts = document["groups"]
        of = "" if counts is None else f" ({len(worst):,} of {sum(counts.values()):,})"
        columns = tables.with_money(tables.WORST, look.limits)
        emit(tables.worst(worst), columns, output, title=f"costliest groups{of}")
    unknown = tables.unknown_cost(document["unknown_groups"])
    if unknown is not None and look.snapshot.bytes_per_s:  # without rates none has a known cost: that is said above
        emit_text(unknown)
    emit_gap(document["findings"])
    columns = ("severity", "finding", "subject", "sentence")
    from agent.cli.session import once_each, untold
    from agent.values.observation import ObservationPart

    rows = once_each(document["findings"])
    empty = session.none_of("no findings in one look", look, *ObservationPart)
    emit(rows, columns, output, empty=empty, every=every, most=FINDINGS_SHOWN)
    shown = document["findings"] if every or len(rows) <= FINDINGS_SHOWN else []
    leave(look, gaps=untold(look.snapshot.gaps, shown))


def racks(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    duration: options.For = None,
    every: options.All = False,
) -> None:
    """Racks: brokers, replicas, members, traffic across racks, its cost a day, and the effect of losing each rack."""
    look = session.look_or_replay(config, properties, assign, bootstrap, replay, duration=duration)
    from agent.cli import tables, views

    rows = views.racks(look)
    if chosen(output) is OutputFormat.TABLE:
        emit(tables.racks(rows), tables.RACKS, output, empty="no broker answered", every=every)
        emit_line()
        if look.snapshot.topics:  # else nothing crosses, and no zero was measured
            emit(
                tables.borders(rows if every else rows[: tables.MOST_LOSSES]),
                tables.with_money(tables.BORDERS, look.limits),
                output,
                empty="no rack is known",
                every=every,
            )
        tables.basis(look)
        emit_line()
        tables.losses(rows, every=every)
        leave(look)
    columns = (
        "rack", "known_from", "brokers", "replicas", "leaders", "members", "active_tasks", "standby_tasks",
        "cross_rack_in_bytes_per_s", "cross_rack_out_bytes_per_s", "usd_per_day", "losing_it",
    )  # fmt: skip
    emit(rows, columns, output, absent={"losing_it": CellMark.NOT_APPLICABLE})
    leave(look)


def groups(
    group: Annotated[
        str | None, typer.Argument(metavar="GROUP", help="Group to show with its members; default: all groups.")
    ] = None,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    duration: options.For = None,
    every: options.All = False,
) -> None:
    """Consumer groups, costliest first: share of local reads, traffic across racks, its cost a day, and lag.

    With GROUP: its members, its tasks, and its reads by topic.
    """
    look = session.look_or_replay(config, properties, assign, bootstrap, replay, duration=duration)
    from agent.cli import tables, views
    from agent.money.costs import costs_of
    from agent.plan.new_partitions import unknown_group
    from agent.values.observation import ObservationPart

    costs = costs_of(look.snapshot)
    if group is not None and group not in look.snapshot.groups:
        raise unknown_group(group, look.snapshot)
    if group is not None:
        document = views.group(group, costs, look)
        if chosen(output) is OutputFormat.TABLE:
            tables.show_group(document, look, every=every)
        else:
            emit_one(document, output)
        leave(look)
    rows = views.groups(costs, look)
    if chosen(output) is not OutputFormat.TABLE:
        emit(rows, tuple(name for name in rows[0] if name != "racks") if rows else (), output)
        leave(look)
    shown = rows if every else [row for row in rows if not views.is_empty(look, row["group"])]
    empty = session.none_of("no groups", look, ObservationPart.GROUPS) if not rows else "no group has members"
    emit(tables.groups(shown), tables.with_money(tables.GROUPS, look.limits), output, empty=empty, every=every)
    tables.basis(look)
    if len(shown) < len(rows):
        left_out = len(rows) - len(shown)
        emit_text(f"{counted(left_out, 'group')} without members not shown: --all")
    leave(look)


def topics(
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="Topic to show with its partitions; default: all topics.")
    ] = None,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    duration: options.For = None,
    every: options.All = False,
) -> None:
    """Topics, costliest first: bytes written, traffic across racks, its cost a day, and the groups that read them.

    With TOPIC: its leaders, its readers by rack, and its partitions. Racks of producers
    are not visible, so produce traffic across racks is in no figure.
    """
    look = session.look_or_replay(config, properties, assign, bootstrap, replay, duration=duration)
    from agent.cli import tables, views_money
    from agent.money.costs import costs_of
    from agent.plan.new_partitions import unknown_topic
    from agent.values.observation import ObservationPart

    costs = costs_of(look.snapshot)
    if topic is not None and topic not in look.snapshot.topics:
        raise unknown_topic(topic, look.snapshot)
    if topic is not None:
        document = views_money.topic_details(topic, costs, look)
        if chosen(output) is OutputFormat.TABLE:
            tables.show_topic(document, look, every=every)
        else:
            emit_one(document, output)
        leave(look)
    rows = views_money.topics(costs, look)
    if chosen(output) is OutputFormat.TABLE:
        empty = session.none_of("no topics", look, ObservationPart.TOPICS)
        emit(tables.topics(rows), tables.with_money(tables.TOPICS, look.limits), output, empty=empty, every=every)
        tables.basis(look)
        if costs.untold:
            named = listed(costs.untold, None if every else WHO_SHOWN)
            rest = "" if every or len(costs.untold) <= WHO_SHOWN else "; all: --all or status -o json"
            of = "group" if len(costs.untold) == 1 else "groups"
            emit_text(f"not in the table: reads of {of} {named} that are not visible now{rest}")
    else:
        emit(rows, tuple(name for name in rows[0] if name != "readers") if rows else (), output)
    leave(look)


def doctor(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    duration: options.For = None,
    every: options.All = False,
) -> None:
    """Faults that cause traffic across racks, each with its cost a day and the line to change; and risks."""
    look = session.look_or_replay(config, properties, assign, bootstrap, replay, duration=duration)
    from agent.cli import tables
    from agent.explain.doctor import diagnose, risks
    from agent.values.plan import Plan

    checks = (
        *diagnose(
            look.snapshot, look.detection, look.plan or Plan(), look.limits, look.before, proposals=look.proposals
        ),
        *risks(look.snapshot),
    )
    rows = tables.checks(checks, look)
    if chosen(output) is not OutputFormat.TABLE:
        columns = ("state", "check", "who", "sentence", "line", "cross_rack_bytes_per_s", "usd_per_day")
        emit(rows, columns, output, absent={"line": CellMark.NONE})
        leave(look)
    _show_checks(rows, {check.name for check in checks if check.tells}, every=every)
    tables.basis(look)
    leave(look)


def _show_checks(rows: list[CheckDocument], telling: Collection[str], *, every: bool) -> None:
    """Each check in lines that fit the terminal; ``telling``: those worth reading also when nothing is wrong."""
    from agent.cli.tables import fault_words

    for row in rows:
        emit_text(row["check"], indent=_INDENT, mark=f"{row['state']:>8}")
        told = row["state"] != "ok" or row["check"] in telling
        _emit_parts(row["sentences"] if told else [], lambda part: emit_text(part, indent=_INDENT), every=every)
        costs = fault_words(row)
        if costs:
            emit_text(costs, indent=_INDENT)
        _emit_parts(row["fixes"], partial(_show_fix, every=every), every=every)


def _show_fix(fix: FixDocument, *, every: bool) -> None:
    """Whose the lines are, then each as one line, to be copied."""
    emit_text(f"fix for {_named(fix['who'], len(fix['who']) if every else WHO_SHOWN)}:", indent=_INDENT)
    for line in fix["lines"]:
        emit_command(line)


def _named(who: list[str], most: int) -> str:
    """``groups exports and mailer``, ``brokers 1, 2 and 7 more``."""
    from agent.values.number_format import in_full

    kinds: dict[str, list[str]] = {}
    for kind, _, name in (one.partition(" ") for one in who):
        kinds.setdefault(kind, []).append(name)
    named: list[str] = []
    for kind, names in kinds.items():
        shown = names[:most] + ([f"{len(names) - most:,} more"] if len(names) > most else [])
        named.append(f"{kind}{'' if len(names) == 1 else 's'} {in_full(shown)}")
    return ", ".join(named)


def _emit_parts(parts: Sequence[V], write: Callable[[V], None], *, every: bool) -> None:
    """Each part of an answer by itself; of very many the first ones."""
    for part in parts if every else parts[:PARTS_SHOWN]:
        write(part)
    if len(parts) > PARTS_SHOWN and not every:
        emit_text(f"and {len(parts) - PARTS_SHOWN:,} more: --all or -o json", indent=_INDENT)

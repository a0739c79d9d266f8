"""``status``, ``racks``, ``groups``, ``doctor``: what is there, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import options, session
from agent.cli.output import Format, Mark, chosen, emit, emit_line, emit_one, emit_text
from agent.cli.session import leave

if TYPE_CHECKING:
    from agent.seen import Seen

FINDINGS_SHOWN = 20
PARTS_SHOWN = 20


def status(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    every: options.All = False,
) -> None:
    """One look at the cluster: what is there, and every finding."""
    look = session.look_or_replay(config, properties, assign, bootstrap, replay)
    from agent.cli import views

    if chosen(output) is not Format.TABLE:
        emit_one(views.status(look), output)
        leave(look)
    summary = views.summary(look)
    emit_one(summary, output, tuple(summary), every=every)
    findings = views.findings(look)
    emit_line()
    columns = ("severity", "finding", "subject", "sentence")
    emit(findings, columns, output, empty="no findings in one look", every=every, most=FINDINGS_SHOWN)
    leave(look)


def racks(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    every: options.All = False,
) -> None:
    """Racks with their brokers, replicas, leaders, members, tasks, and what losing each of them costs."""
    look = session.look_or_replay(config, properties, assign, bootstrap, replay)
    from agent.cli import views

    columns = (
        "rack", "known_from", "brokers", "replicas", "leaders", "members", "active_tasks", "standby_tasks", "losing_it",
    )  # fmt: skip
    emit(
        views.racks(look.snapshot),
        columns,
        output,
        empty="no broker answered",
        absent={"losing_it": Mark.NOT_APPLICABLE},
        every=every,
    )
    leave(look)


def groups(
    group: Annotated[
        str | None, typer.Argument(metavar="GROUP", help="One group to show with its members; all groups without.")
    ] = None,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    every: options.All = False,
) -> None:
    """Groups with their kind, racks, and locality now and at best; or one group with its members and tasks."""
    from agent.errors import BadInput

    look = session.look_or_replay(config, properties, assign, bootstrap, replay)
    from agent.cli import views

    if group is None:
        columns = ("group", "kind", "state", "assignor", "members", "racks", "local_kafka", "local_read", "best", "gap")
        emit(views.groups(look), columns, output, empty="no groups", every=every)
    elif group not in look.snapshot.groups:
        raise BadInput(
            f"there is no group {group!r}", why="no broker lists it", todo="See all of them with: rackwise groups"
        )
    elif chosen(output) is Format.TABLE:
        _show_group(look, group, output, every=every)
    else:
        emit_one(views.group(look, group), output)
    leave(look)


def doctor(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    every: options.All = False,
) -> None:
    """What keeps this cluster from being rack-local, with the line to change, and what losing a rack costs."""
    look = session.look_or_replay(config, properties, assign, bootstrap, replay)
    from agent.doctor import CheckState, diagnose, risks
    from agent.plan import Plan

    marks = {
        CheckState.OK: "ok",
        CheckState.NOTHING: "nothing",
        CheckState.SEEN_ONCE: "once",
        CheckState.FAULT: "FAULT",
        CheckState.RISK: "risk",
        CheckState.UNKNOWN: "unknown",
    }
    rows: list[dict[str, Any]] = [
        {
            "state": marks[check.state],
            "check": check.name,
            "sentence": check.sentence,
            "who": list(check.who),
            "line": check.line,
            "tells": check.tells,
        }
        for check in (
            *diagnose(look.snapshot, look.detection, look.plan or Plan(), look.limits, look.before),
            *risks(look.snapshot),
        )
    ]
    if chosen(output) is not Format.TABLE:
        kept = [{name: value for name, value in row.items() if name != "tells"} for row in rows]
        emit(kept, ("state", "check", "who", "sentence", "line"), output, absent={"line": Mark.NONE})
        leave(look)
    for row in rows:
        emit_text(f"{row['state']:>8}  {row['check']}")
        told = row["state"] != "ok" or row["tells"]
        _emit_parts(str(row["sentence"]) if told else "", lambda part: emit_text(part, indent=10), every=every)
        _emit_parts(str(row["line"] or ""), lambda line: emit_line(f"          > {line}"), every=every)
    leave(look)


def _emit_parts(text: str, write: Callable[[str], None], *, every: bool) -> None:
    """Each part of a sentence on a line of its own."""
    parts = [part for part in text.split("; ") if part]
    for part in parts if every else parts[:PARTS_SHOWN]:
        write(part)
    if len(parts) > PARTS_SHOWN and not every:
        emit_text(f"and {len(parts) - PARTS_SHOWN:,} more: --all or -o json", indent=10)


def _show_group(look: Seen, group: str, output: Format | None, *, every: bool) -> None:
    from agent.cli import views

    document = views.group(look, group)
    members, tasks = document.pop("members", []), document.pop("tasks", [])
    emit_one(document, output, tuple(document), every=every)
    if members:
        emit_line()
        of_member = ("member", "client_id", "host", "rack", "known_from", "assigned", "defects")
        emit(members, of_member, output, every=every)
    if tasks:
        emit_line()
        of_task = ("task", "role", "process", "rack", "lag", "rate_per_s", "eta_s", "caught_up", "source")
        emit(tasks, of_task, output, every=every)

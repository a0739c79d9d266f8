"""``plan`` and ``explain``: what rackwise would do now, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import options, placing, session
from agent.cli.files import write_text
from agent.cli.output import Format, chosen, emit, say

if TYPE_CHECKING:
    from agent.journal.entry import View
    from agent.plan.explained import Explained
    from agent.propose.proposal import Proposal
    from agent.seen import Seen
    from config.load import Loaded

CHANGES_PROPOSED = 3
_COLUMNS = ("id", "kind", "subject", "saves $/day", "sentence")


def plan(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: options.Replay = None,
    duration: options.For = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 3 when something is proposed.")
    ] = False,
    reassignment_json: Annotated[
        Path | None, typer.Option(help="Write all moves there, as kafka-reassign-partitions reads them.")
    ] = None,
    rollback_json: Annotated[
        Path | None, typer.Option(help="Write there what brings the present placement back.")
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Every group instead: now, by its own assignor, and at the optimum.")
    ] = False,
    new_topic: Annotated[
        str | None, typer.Option("--new-topic", help="Place a new topic instead: by Kafka's own placer and at best.")
    ] = None,
    partitions: Annotated[int | None, typer.Option("--partitions", help="Partitions of the new topic.")] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", help="Replicas of each of them.")
    ] = None,
    add_partitions: Annotated[
        str | None,
        typer.Option("--add-partitions", help="TOPIC=N: place what the topic lacks to have N partitions."),
    ] = None,
    placement: Annotated[
        placing.Placement, typer.Option("--placement", help="Which of the two --reassignment-json writes.")
    ] = placing.Placement.OPTIMUM,
    placer: Annotated[
        placing.PlacerName, typer.Option("--placer", help="striped: KRaft; kip-36: ZooKeeper, up to Kafka 3.9.")
    ] = placing.PlacerName.STRIPED,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws that stand in for the controller's own.")] = 0,
) -> None:
    """What rackwise would propose now, or where new partitions would go. Nothing is published."""
    from agent.propose import reassignment_json as written

    wanted = placing.wanted(new_topic, partitions, replication_factor, add_partitions)
    if wanted is not None:
        look = placing.Source(config, properties, assign, bootstrap, replay)
        placing.place(wanted, look, placing.Choice(placement, placer, seed, reassignment_json, rollback_json), output)
    seen = session.look_or_replay(config, properties, assign, bootstrap, replay, duration=duration)
    found = seen.proposals
    if reassignment_json is not None:
        write_text(reassignment_json, written.reassignment_json(found) + "\n")
    if rollback_json is not None:
        write_text(rollback_json, written.rollback_json(found) + "\n")
    if not groups:
        emit_proposals(found, output)
    if groups or chosen(output) is Format.TABLE:
        _emit_groups(seen, output)
    if chosen(output) is Format.TABLE:
        from agent.cli import tables

        tables.basis(seen)
    exit_code = CHANGES_PROPOSED if detailed_exitcode and found else 0
    if replay is None:
        session.leave(seen, exit_code)
    raise typer.Exit(exit_code)


def explain(
    subject: Annotated[str, typer.Argument(help="topic/NAME[/PARTITION], group/NAME, broker/ID, or a proposal's id.")],
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """Why this is proposed, and why that is not: every rule with its numbers."""
    from agent.plan.explain import explain as explained

    loaded = options.settings(config, properties, assign, bootstrap)
    seen = session.look(loaded)
    rows: list[dict[str, Any]] = [
        row._asdict()
        for row in (
            *explained(subject, seen.snapshot, seen.detection, seen.plan, seen.proposals, seen.limits),
            *_guarded(subject, seen, loaded),
        )
    ]
    emit(rows, ("about", "rule", "answer", "sentence"), output, empty=f"nothing is known of {subject}")
    session.leave(seen)


def _guarded(subject: str, seen: Seen, loaded: Loaded) -> list[Explained]:
    """What every check of the guard says of the proposals about a subject, as if this agent led; and probing's say."""
    from agent.guard import explained
    from agent.limits import Mode
    from agent.memory import Memory
    from agent.probing import NO_ANCHORS, Ground, about_probing, past_triggers

    kind, _, name = subject.partition("/")
    name = name.partition("/")[0] if kind == "topic" else name
    meant = [p for p in seen.proposals if subject == p.id or (p.subject.kind, p.subject.name) == (kind, name)]
    asked = kind == "group" or bool(meant)
    view = _journal(loaded) if asked and seen.limits.mode is Mode.EXECUTE else None
    rows = [row for one in meant for row in explained(one, seen.snapshot, Memory(), seen.limits, view)]
    if kind == "group":
        taken_ms, monotonic_ms = seen.snapshot.taken_ms, seen.snapshot.monotonic_ms
        past, _ = past_triggers(view or {}, NO_ANCHORS, taken_ms=taken_ms, monotonic_ms=monotonic_ms)
        rows += about_probing(name, Ground(seen.snapshot, Memory(), seen.limits), past.get(name, ()))
    return rows


def _journal(loaded: Loaded) -> View | None:
    from agent.cli import asking
    from agent.errors import RackwiseError

    try:
        return asking.journal(asking.plan_of(loaded))
    except RackwiseError as error:
        say(f"note: the journal cannot be read, so what it says is left out: {error}")
        return None


def _emit_groups(seen: Seen, output: Format | None) -> None:
    from agent.cli.columns import SHOWN, group_rows, table_row

    rows = group_rows(seen.snapshot, seen.detection, seen.plan, seen.limits)
    form = chosen(output)
    if form in {Format.TABLE, Format.CSV}:
        rows = [table_row(row) for row in rows]
    title = "groups: reads across racks now, by their own assignors, at the optimum"
    emit(rows, SHOWN, form, title=title, empty="no group assigns partitions")


def emit_proposals(found: tuple[Proposal, ...], output: Format | None) -> None:
    """One row per proposal."""
    from agent.propose.codec import proposal_to_json

    rows: list[dict[str, Any]] = [proposal_to_json(proposal) for proposal in found]
    form = chosen(output)
    if form in {Format.TABLE, Format.CSV}:
        rows = [
            {**row, "subject": str(proposal.subject), "saves $/day": _saves(proposal)}
            for row, proposal in zip(rows, found, strict=True)
        ]
    emit(json.loads(json.dumps(rows)), _COLUMNS, form, empty="nothing worth doing")


def _saves(proposal: Proposal) -> str | None:
    """What it takes off the bill a day, by its own forecast; empty where nothing is foretold of reads."""
    before, after = proposal.predicted.usd_per_day_before, proposal.predicted.usd_per_day_after
    if before is None or after is None:
        return None if proposal.predicted.before else ""
    return f"{before - after:,.2f}"

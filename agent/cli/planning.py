"""``plan``, ``explain``, ``proposals``: what rackwise would do, why, and what it has published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import options, placing, session
from agent.cli.files import write_text
from agent.cli.output import Format, chosen, emit
from agent.cli.session import replayed

if TYPE_CHECKING:
    from agent.cycle import Cycle
    from agent.limits import Limits
    from agent.propose.proposal import Proposal
    from agent.replay import Replayed

CHANGES_PROPOSED = 3
_COLUMNS = ("id", "kind", "subject", "sentence")


def plan(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="Plan from a telemetry file instead of a cluster; its last look.")
    ] = None,
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
    cycle: Cycle | None = None
    seen: Cycle | Replayed
    if replay is not None:
        seen = again = replayed(replay)
        limits = again.recorded.limits
    else:
        seen = cycle = session.look(options.settings(config, properties, assign, bootstrap))
        limits = cycle.limits
    found = seen.proposals
    if reassignment_json is not None:
        write_text(reassignment_json, written.reassignment_json(found) + "\n")
    if rollback_json is not None:
        write_text(rollback_json, written.rollback_json(found) + "\n")
    if not groups:
        _emit_proposals(found, output)
    if groups or chosen(output) is Format.TABLE:
        _emit_groups(seen, limits, output)
    exit_code = CHANGES_PROPOSED if detailed_exitcode and found else 0
    if cycle is not None:
        session.leave(cycle, exit_code)
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

    cycle = session.look(options.settings(config, properties, assign, bootstrap))
    rows: list[dict[str, Any]] = [
        row._asdict()
        for row in explained(subject, cycle.snapshot, cycle.detection, cycle.plan, cycle.proposals, cycle.limits)
    ]
    emit(rows, ("about", "rule", "answer", "sentence"), output, empty=f"nothing is known of {subject}")
    session.leave(cycle)


def proposals(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """What has been published to the proposals topic and still stands."""
    from agent.propose.proposal import Proposal as Standing
    from agent.start import read_proposals

    found = read_proposals(options.settings(config, properties, assign, bootstrap))
    _emit_proposals(tuple(one for one in found if isinstance(one, Standing)), output)


def _emit_groups(seen: Cycle | Replayed, limits: Limits, output: Format | None) -> None:
    from agent.cli.columns import SHOWN, group_rows, table_row

    rows = group_rows(seen.snapshot, seen.detection, seen.plan, limits)
    form = chosen(output)
    if form in {Format.TABLE, Format.CSV}:
        rows = [table_row(row) for row in rows]
    title = "groups: reads across racks now, by their own assignors, at the optimum"
    emit(rows, SHOWN, form, title=title, empty="no group assigns partitions")


def _emit_proposals(found: tuple[Proposal, ...], output: Format | None) -> None:
    from agent.propose.codec import proposal_to_json

    rows: list[dict[str, Any]] = [proposal_to_json(proposal) for proposal in found]
    form = chosen(output)
    if form in {Format.TABLE, Format.CSV}:
        rows = [{**row, "subject": str(proposal.subject)} for row, proposal in zip(rows, found, strict=True)]
    emit(json.loads(json.dumps(rows)), _COLUMNS, form, empty="nothing worth doing")

"""``plan``, ``explain``, ``proposals``: what rackwise would do, why, and what it has published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import options, session
from agent.cli.output import Format, chosen, emit

if TYPE_CHECKING:
    from agent.cycle import Cycle
    from agent.propose.proposal import Proposal

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
) -> None:
    """What rackwise would propose now. Nothing is published."""
    from agent.propose import reassignment_json as placement

    cycle: Cycle | None = None
    if replay is not None:
        found = _replayed(replay)
    else:
        cycle = session.look(options.settings(config, properties, assign, bootstrap))
        found = cycle.proposals
    if reassignment_json is not None:
        reassignment_json.write_text(placement.reassignment_json(found) + "\n")
    if rollback_json is not None:
        rollback_json.write_text(placement.rollback_json(found) + "\n")
    _emit_proposals(found, output)
    exit_code = CHANGES_PROPOSED if detailed_exitcode and found else 0
    if cycle is not None:
        session.leave(cycle, exit_code)
    raise typer.Exit(exit_code)


def explain(
    subject: Annotated[str, typer.Argument(help="topic/NAME, topic/NAME/PARTITION, group/NAME, or a proposal's id.")],
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


def _replayed(path: Path) -> tuple[Proposal, ...]:
    from agent.errors import BadInput
    from agent.record.files import read_events
    from agent.replay import recorded_looks, replay_look

    try:
        looks = list(recorded_looks(read_events(path)))
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read", why=str(error), todo="Name a file that `record.file` wrote."
        ) from error
    if not looks:
        raise BadInput(
            f"{path} holds no whole look",
            why="no look's events are complete",
            todo="Name a file that `record.file` wrote.",
        )
    return replay_look(looks[-1]).proposals


def _emit_proposals(found: tuple[Proposal, ...], output: Format | None) -> None:
    from agent.propose.codec import proposal_to_json

    rows: list[dict[str, Any]] = [proposal_to_json(proposal) for proposal in found]
    form = chosen(output)
    if form in {Format.TABLE, Format.CSV}:
        rows = [{**row, "subject": str(proposal.subject)} for row, proposal in zip(rows, found, strict=True)]
    emit(json.loads(json.dumps(rows)), _COLUMNS, form, empty="nothing worth doing")

"""``reassign``: how far plans are, whether they have arrived, and how they are stopped or taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import acting, asking, options
from agent.cli.output import Format, Mark, chosen, emit, emit_line, emit_one, say

if TYPE_CHECKING:
    from agent.execute.values import Plan
    from agent.journal.entry import View
    from agent.observation import Observation
    from assignors.problem import TopicPartition
    from config.load import Loaded

    Placements = dict[TopicPartition, tuple[int, ...]]

reassign_app = typer.Typer(help="Plans that are carried out: how far they are, and back.", no_args_is_help=True)
PLANS = ("plan", "state", "partitions", "done", "moving", "rate_bytes_per_s", "approved_by", "sentence")
COPIES = ("partition", "to_broker", "bytes", "of_bytes", "percent", "bytes_per_s", "seconds_left")
PARTITIONS = ("partition", "state", "replicas", "planned", "sentence")
Plan_ = Annotated[str | None, typer.Argument(help="One plan; all of them without it.")]
Id = Annotated[str, typer.Argument(help="The plan: the id of its proposal.")]
OutFile = Annotated[
    Path | None,
    typer.Option("--reassignment-json", help="Write the planned replicas there, as Kafka's own tool reads them."),
]
BackFile = Annotated[
    Path | None,
    typer.Option("--rollback-json", help="Write the former replicas there, as Kafka's own tool reads them."),
]


@reassign_app.command()
def status(
    plan: Plan_ = None,
    reassignment_json: OutFile = None,
    rollback_json: BackFile = None,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Plans by the journal, and every copy that the brokers are making, whoever began it."""
    from agent.cli.following import Watcher
    from agent.cli.records import copy_row, head_row, plan_rows

    loaded = options.settings(config, properties, assign, bootstrap)
    view = asking.journal(asking.plan_of(loaded))
    named = _plan(view, plan) if plan is not None else None
    _write_files(named, reassignment_json, rollback_json)
    rows = [row for row in plan_rows(view) if plan is None or row["plan"] == plan]
    with Watcher(loaded).open() as watcher:
        observation = watcher.look()
        copies = [{**copy_row(one), "ours": _ours(view, one.id)} for one in watcher.copies(observation, named)]
    if chosen(output) is not Format.TABLE:
        emit_one({**head_row(view), "plans": rows, "copies": copies}, output)
        return
    emit_one(head_row(view), output, absent={"leader": Mark.NONE, "paused": Mark.NONE}, every=every)
    emit_line()
    none = {"rate_bytes_per_s": Mark.NONE}
    emit(rows, PLANS, output, empty="no plan was begun, as far as the journal still has them", absent=none, every=every)
    if copies:
        emit_line()
        emit(copies, (*COPIES, "ours"), output, every=every)


@reassign_app.command()
def verify(
    what: Annotated[str, typer.Argument(help="A plan, or a JSON file of kafka-reassign-partitions.")],
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Whether every partition has its planned replicas and no throttle of ours is left; exit code 1 when not."""
    from agent.cli.following import Watcher

    loaded = options.settings(config, properties, assign, bootstrap)
    planned, left = _planned(loaded, what)
    with Watcher(loaded).open() as watcher:
        observation = watcher.look(tuple(sorted({one.topic for one in planned})))
    rows = _partition_rows(planned, observation)
    emit(rows, PARTITIONS, output, empty="nothing is planned there", every=every)
    for key in left:
        say(f"a throttle of ours is still set: {key}")
    raise typer.Exit(0 if not left and all(row["state"] == "done" for row in rows) else 1)


@reassign_app.command()
def cancel(
    plan: Id,
    reason: asking.Reason = "",
    yes: asking.Yes = False,
    wait: asking.Wait = 30,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """Begin nothing more of it, and take back what moves; what has arrived stays."""
    asking.confirm(f"Cancel {plan}?", yes=yes)
    acting.tell("cancel", options.settings(config, properties, assign, bootstrap), plan, reason, wait, output)


@reassign_app.command()
def rollback(
    plan: Id,
    reason: asking.Reason = "",
    yes: asking.Yes = False,
    wait: asking.Wait = 30,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """Bring back what was there before it, also what has arrived; moves data where it did."""
    asking.confirm(f"Bring back what was there before {plan}?", yes=yes)
    acting.tell("rollback", options.settings(config, properties, assign, bootstrap), plan, reason, wait, output)


def _plan(view: View, name: str) -> Plan:
    from agent.errors import BadInput
    from agent.journal import moves

    found = next((plan for plan in moves.plans(view) if plan.proposal_id == name), None)
    if found is None:
        raise BadInput(
            f"The journal knows no plan {name}", why="it was never begun, or long ago", todo="rackwise reassign status"
        )
    return found


def _write_files(plan: Plan | None, forth: Path | None, back: Path | None) -> None:
    from agent.cli.files import write_text
    from agent.errors import BadInput
    from agent.propose.reassignment_json import placements_json

    if (forth is not None or back is not None) and plan is None:
        raise BadInput("A file is written of one plan", why="none is named", todo="rackwise reassign status PLAN ...")
    for path, side in ((forth, "after"), (back, "before")):
        if path is not None and plan is not None:
            placements = {target.id: getattr(target, side) for target in plan.targets}
            write_text(path, placements_json(placements) + "\n")


def _planned(loaded: Loaded, what: str) -> tuple[Placements, list[str]]:
    """What each partition shall have, and the throttles of ours that are still set."""
    from agent.errors import BadInput
    from agent.journal import moves
    from agent.propose.reassignment_json import BadReassignmentFile, read_reassignment_json

    if Path(what).suffix == ".json" or Path(what).exists():
        try:
            return read_reassignment_json(Path(what).read_text()), []
        except (OSError, UnicodeDecodeError, BadReassignmentFile) as error:
            raise BadInput(f"{what} is no file of kafka-reassign-partitions", why=str(error)) from error
    view = asking.journal(asking.plan_of(loaded))
    plan = _plan(view, what)
    debts = [f"{debt.key} of {debt.resource.kind} {debt.resource.name}" for debt in moves.debts(view)]
    return {target.id: target.after for target in plan.targets}, debts


def _partition_rows(planned: Placements, observation: Observation) -> list[dict[str, Any]]:
    from assignors.problem import TopicPartition

    now = {
        TopicPartition(topic.name, partition.partition): partition
        for topic in observation.topics
        for partition in topic.partitions
    }
    moving = {one.id: one for one in observation.reassignments}
    unseen = {gap.part.value for gap in observation.gaps}
    rows: list[dict[str, Any]] = []
    for one, wanted in sorted(planned.items()):
        found, move = now.get(one), moving.get(one)
        replicas = None if found is None else list(found.replicas)
        if "reassignments" in unseen or (found is None and unseen):
            state, sentence = "unknown", "the brokers did not tell"
        elif found is None:
            state, sentence = "gone", "there is no such partition"
        elif move is not None:
            state, sentence = "moving", f"adds {list(move.adding)}, gives up {list(move.removing)}"
        elif replicas == list(wanted):
            state, sentence = "done", "it has the planned replicas"
        else:
            state, sentence = "other", "it does not move and has other replicas"
        rows.append(
            {"partition": str(one), "state": state, "replicas": replicas, "planned": list(wanted), "sentence": sentence}
        )
    return rows


def _ours(view: View, partition: TopicPartition) -> bool:
    """Whether a batch of ours that has not closed is about it."""
    from agent.execute.values import BatchState
    from agent.journal import moves

    return any(
        target.id == partition
        for batch in moves.batches(view)
        if batch.state is not BatchState.CLOSED
        for target in batch.targets
    )

"""``simulate``: the effect of added or removed members, racks, brokers or replicas, and of changed settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import agent_api, options, session
from agent.cli.output import OutputFormat, chosen, emit, emit_line, emit_one, emit_text, say

if TYPE_CHECKING:
    from agent.documents.plan import SimulatedCopies, SimulatedRack, SimulationAnswer, SimulationDocument
    from agent.simulate.what_if import SimulatedChange

Names = list[str] | None
FINDINGS_SHOWN = 20
_COLUMNS = ("now", "own_assignor", "plugin", "optimum")
_COPIES = (
    "topic", "replicas added", "bytes to copy", "copied across racks now", "then", "$/day now", "$/day then",
)  # fmt: skip
_WAITING = "waiting"
_NO_RACK = "the rack does not exist"


def simulate(
    source: options.SettingsOptions,
    output: options.Output = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="FILE", help="Start from the last look of a telemetry file, not a live cluster."
        ),
    ] = None,
    add_member: Annotated[
        Names,
        typer.Option(
            "--add-member", metavar="GROUP=RACK", help="Add a consumer or an instance; GROUP alone: without a rack."
        ),
    ] = None,
    remove_member: Annotated[
        Names,
        typer.Option(
            "--remove-member",
            metavar="GROUP=MEMBER",
            help="Remove a member, by member, client, instance or process id.",
        ),
    ] = None,
    add_rack: Annotated[
        Names, typer.Option("--add-rack", metavar="RACK=ID,ID", help="Add a rack with new brokers.")
    ] = None,
    remove_rack: Annotated[
        Names, typer.Option("--remove-rack", metavar="RACK", help="Remove a rack with all its brokers and readers.")
    ] = None,
    add_broker: Annotated[
        Names, typer.Option("--add-broker", metavar="ID=RACK", help="Add a broker, in that rack.")
    ] = None,
    remove_broker: Annotated[
        list[int] | None,
        typer.Option("--remove-broker", metavar="ID", help="Take a broker offline, with its replicas."),
    ] = None,
    add_replica: Annotated[
        Names, typer.Option("--add-replica", metavar="TOPIC-PARTITION=ID", help="Add a replica on that broker.")
    ] = None,
    remove_replica: Annotated[
        Names, typer.Option("--remove-replica", metavar="TOPIC-PARTITION=ID", help="Remove the replica on that broker.")
    ] = None,
    replication_factor: Annotated[
        Names, typer.Option("--replication-factor", metavar="TOPIC=N", help="Give each partition N replicas.")
    ] = None,
    strategy: Annotated[
        Names,
        typer.Option(
            "--strategy",
            metavar="GROUP=NAME",
            help="Change the assignor, or rack.aware.assignment.strategy of Streams.",
        ),
    ] = None,
    standbys: Annotated[
        Names, typer.Option("--standbys", metavar="GROUP=N", help="Change num.standby.replicas of Streams.")
    ] = None,
    every: options.All = False,
) -> None:
    """Simulate changes: every affected group now and after them, findings, proposals, and what losing a rack does.

    Options of changes may be repeated and combined. Nothing is changed in the cluster or published.
    """
    from agent.simulate.change_texts import changes_of
    from agent.values.observation import ObservationPart

    asked: dict[str, Sequence[str]] = {
        "add-member": add_member or (),
        "remove-member": remove_member or (),
        "strategy": strategy or (),
        "standbys": standbys or (),
        "remove-rack": remove_rack or (),
        "remove-broker": [str(broker) for broker in remove_broker or ()],
        "add-rack": add_rack or (),
        "add-broker": add_broker or (),
        "add-replica": add_replica or (),
        "remove-replica": remove_replica or (),
        "replication-factor": replication_factor or (),
    }
    changes = changes_of(asked)
    answer = _answered(source, replay, asked, changes)
    look = answer["look"]
    nothing = session.none_of("no group is affected", look, ObservationPart.GROUPS, ObservationPart.TOPICS)
    _show(answer["simulation"], output, nothing, every=every, priced=look["priced"])
    if answer["figures"] is not None and chosen(output) is OutputFormat.TABLE:
        say(answer["figures"])
    session.leave_look(look)


def _answered(
    source: options.SettingsOptions,
    replay: Path | None,
    asked: Mapping[str, Sequence[str]],
    changes: tuple[SimulatedChange, ...],
) -> SimulationAnswer:
    """The outcome of the changes, by the agent that ``--agent`` names or by one look."""
    from agent.documents.comparison import simulation_answer
    from agent.simulate.simulate import simulate as simulated

    if agent_api.named_agent() is not None:
        session.refuse_beside_agent(replay, None)
        agent_api.note_options(*source)
        found: SimulationAnswer = agent_api.document("/simulation", {name: of for name, of in asked.items() if of})
        return found
    evaluation = (
        session.replayed(replay) if replay is not None else session.look(options.settings(source), planning=False)
    )
    outcome = simulated(evaluation.snapshot, evaluation.before, evaluation.limits, changes)
    return simulation_answer(outcome, evaluation)


def _show(
    document: SimulationDocument, output: OutputFormat | None, nothing: str, *, every: bool, priced: bool
) -> None:
    """Tables of all of it; as CSV the groups, the other forms as one document."""
    from agent.cli.plan import BY, WITH_PLUGIN, with_plugin
    from agent.cli.tables import emit_gains, with_money
    from agent.values.number_format import counted

    form = chosen(output)
    if form is OutputFormat.CSV:
        _show_csv(document)
        return
    if form is not OutputFormat.TABLE:
        emit_one(document, output)
        return
    found = document["findings"]
    groups: list[dict[str, Any]] = [dict(row) for row in document["groups"]]
    shown = [WITH_PLUGIN if name == "plugin" else name for name in _COLUMNS]
    rows = [{**row, **_cells(row), _WAITING: row["waiting"]} for row in groups]
    waiting = any(row["waiting"] != 0 for row in groups)
    emit(
        rows,
        ("group", "kind", *with_plugin(shown, groups), *((_WAITING,) if waiting else ()), "note"),
        output,
        empty=nothing,
        every=every,
    )
    if rows:
        emit_text(BY)
    emit_gains(groups, every=every)
    if waiting:
        emit_text("waiting: partitions without a reader until the group has rebalanced")
    changed = [row for row in document["proposals"] if row["change"] != "unchanged"]
    tables: tuple[tuple[str, Sequence[Mapping[str, Any]], tuple[str, ...]], ...] = (
        ("findings", found, ("change", "severity", "finding", "subject", "sentence")),
        (
            "cost of the added replicas",
            [_copies_cells(row) for row in document["copies"]],
            with_money(_COPIES, priced=priced),
        ),
        ("proposals after the changes", changed, ("change", "kind", "subject", "sentence")),
        ("losing a rack", [_loss_cells(row) for row in document["racks"]], ("rack", "now", "then")),
    )
    for title, more, names in tables:
        if more:
            emit_line()
            emit(more, names, output, title=title, every=every, most=FINDINGS_SHOWN)
    unchanged = len(document["proposals"]) - len(changed)
    if unchanged:
        emit_line()
        emit_text(f"{counted(unchanged, 'proposal')} unchanged by this: rackwise plan")


def _loss_cells(row: SimulatedRack) -> dict[str, str]:
    """A rack that is not there now, or no more then, can cost nothing; that is known."""
    return {"rack": row["rack"], "now": row["now"] or _NO_RACK, "then": row["then"] or _NO_RACK}


def _copies_cells(row: SimulatedCopies) -> dict[str, object]:
    """What added replicas cost, with units."""
    from agent.money.traffic import bytes_words, usd_words
    from agent.values.number_format import sized

    size = row["bytes_to_copy"]
    return {
        "topic": row["topic"],
        "replicas added": row["replicas_added"],
        "bytes to copy": "unknown" if size is None else sized(size),
        "copied across racks now": bytes_words(row["cross_rack_bytes_per_s_now"]),
        "then": bytes_words(row["cross_rack_bytes_per_s_then"]),
        "$/day now": usd_words(row["usd_per_day_now"]),
        "$/day then": usd_words(row["usd_per_day_then"]),
    }


def _show_csv(document: SimulationDocument) -> None:
    """The groups, every number in a field of its own."""
    from agent.cli.plan import COSTS, flat

    costs = (*COSTS, "standbys", "standbys_sharing_a_rack")
    fields = tuple(f"{column}_{cost}" for column in _COLUMNS for cost in costs)
    rows = [flat(row, _COLUMNS, costs) for row in document["groups"]]
    emit(rows, ("group", "kind", *fields, "waiting", "note"), OutputFormat.CSV)


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one group."""
    from agent.cli.plan import WITH_PLUGIN, plugin_words

    cells = {name: _cell(row[name]) for name in _COLUMNS}
    return {**cells, WITH_PLUGIN: plugin_words(row, cells["plugin"])}


def _cell(outcome: Mapping[str, Any] | None) -> str:
    """A column in a few words, as `plan --groups` has it, and its standbys."""
    from agent.cli.plan import assignment_words
    from agent.values.number_format import counted

    words = assignment_words(outcome)
    if outcome is None or not outcome["standbys"]:
        return words
    sharing = outcome["standbys_sharing_a_rack"]
    shares = "shares" if sharing == 1 else "share"
    return f"{words}, {sharing:,} of {counted(outcome['standbys'], 'standby', 'standbys')} {shares} a rack"

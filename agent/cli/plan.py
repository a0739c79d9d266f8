"""``plan``: the proposals that one look gives, and every group now, under each assignor and at the optimum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from agent.cli import agent_api, new_partitions, options, session
from agent.cli.options import write_text
from agent.cli.output import CellMark, OutputFormat, chosen, emit, emit_text, say
from agent.errors import BadInput
from agent.money.traffic import bytes_words, usd_words
from agent.values.number_format import counted

if TYPE_CHECKING:
    from agent.documents.cluster import FindingDocument, LookDocument
    from agent.documents.plan import PlanGroup
    from agent.simulate.evaluation import StageEvaluation
    from agent.values.proposal import PredictedEffect, Proposal

CHANGES_PROPOSED = 3
_HELD_SHOWN = 5
_COLUMNS = ("id", "kind", "subject", "saves $/day", "sentence")
_AGE = "figures from"
_PUBLISHED = ("id", "kind", "subject", "saves $/day", _AGE, "sentence")
_IN_CSV = ("id", "kind", "subject", "usd_per_day_saved", "sentence")


def plan(
    source: options.SettingsOptions,
    output: options.Output = None,
    replay: options.Replay = None,
    duration: options.For = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 3 when something is proposed.")
    ] = False,
    reassignment_json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all moves to FILE, as kafka-reassign-partitions reads them."),
    ] = None,
    rollback_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the present placement of the moved partitions to FILE.")
    ] = None,
    keep_leaders: Annotated[
        bool, typer.Option("--keep-leaders", help="Change no preferred leader, as plan.keep_leaders: true does.")
    ] = False,
    groups: Annotated[
        bool, typer.Option("--groups", help="Show every group instead: now, by its own assignor, and at the optimum.")
    ] = False,
    new_topic: Annotated[
        str | None,
        typer.Option(
            "--new-topic", metavar="TOPIC", help="Place a new topic instead: by Kafka's own placer and at the optimum."
        ),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", help="Number of partitions of the new topic.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", metavar="N", help="Number of replicas of each of its partitions."),
    ] = None,
    add_partitions: Annotated[
        str | None,
        typer.Option("--add-partitions", metavar="TOPIC=N", help="Place the partitions that bring the topic to N."),
    ] = None,
    placement: Annotated[
        new_partitions.PlacementVariant, typer.Option("--placement", help="Placement that --reassignment-json writes.")
    ] = new_partitions.PlacementVariant.OPTIMUM,
    placer: Annotated[
        new_partitions.PlacerName, typer.Option("--placer", help="striped: KRaft; kip-36: ZooKeeper, up to Kafka 3.9.")
    ] = new_partitions.PlacerName.STRIPED,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random draws of Kafka's placer.")] = 0,
    every: options.All = False,
) -> None:
    """Proposals that rackwise would make now, or the placement of new partitions. Nothing is published."""
    from agent.propose import codec as written
    from agent.values.observation import ObservationPart

    wanted = new_partitions.wanted(new_topic, partitions, replication_factor, add_partitions)
    if wanted is not None:
        choice = new_partitions.PlacementOptions(placement, placer, seed, reassignment_json, rollback_json)
        new_partitions.place(wanted, source, replay, choice, output, every=every)
    in_table = chosen(output) is OutputFormat.TABLE
    compared = groups or in_table
    if agent_api.named_agent() is not None:
        _refuse_beside_agent(replay, duration, keep_leaders=keep_leaders)
        agent_api.note_options(*source)
        answer = _of_an_agent(compared=compared)
    else:
        answer = _of_look(_evaluated(source, replay, duration, keep_leaders=keep_leaders), compared=compared)
    found, look = answer.proposals, answer.look
    if reassignment_json is not None:
        write_text(reassignment_json, written.reassignment_json(found) + "\n")
    if rollback_json is not None:
        write_text(rollback_json, written.rollback_json(found) + "\n")
    if not groups:
        empty = session.none_of("no proposals", look, *ObservationPart)
        priced = look["priced"]
        emit_proposals(found, output, every=every, priced=priced, empty=empty)
    _say_held(answer.findings)
    if compared:
        _emit_groups(answer.groups, look, output, every=every)
    if in_table:
        from agent.cli import tables

        tables.basis(look)
    session.leave_look(look, CHANGES_PROPOSED if detailed_exitcode and found else 0)


class _Planned(NamedTuple):
    """What is shown of one look."""

    proposals: tuple[Proposal, ...]
    findings: list[FindingDocument]
    groups: list[PlanGroup]
    """Empty where they are not shown."""
    look: LookDocument


def _evaluated(
    source: options.SettingsOptions, replay: Path | None, duration: str | None, *, keep_leaders: bool
) -> StageEvaluation:
    from agent.simulate.evaluation import keeping_leaders

    if keep_leaders and replay is None:
        source = source._replace(assign=[*(source.assign or ()), "plan.keep_leaders=true"])
    evaluation = session.look_or_replay(source, replay, duration=duration)
    if keep_leaders and replay is not None:  # a recorded look brings its own settings
        return keeping_leaders(evaluation)
    return evaluation


def _of_look(of: StageEvaluation, *, compared: bool) -> _Planned:
    from agent.documents.comparison import group_rows
    from agent.documents.status import look_document
    from agent.documents.views import findings

    groups = group_rows(of.snapshot, of.detection, of.plan, of.limits) if compared else []
    return _Planned(of.proposals, findings(of), groups, look_document(of))


def _of_an_agent(*, compared: bool) -> _Planned:
    """What the agent that ``--agent`` names has planned last, and its comparison of every group."""
    from agent.propose.codec import proposal_from_json

    routes = ("/proposals", "/findings", *(("/comparisons",) if compared else ()))
    (proposals, findings, *groups), look = agent_api.answers(*((route, {}) for route in routes))
    return _Planned(tuple(proposal_from_json(row) for row in proposals), findings, groups[0] if compared else [], look)


def _refuse_beside_agent(replay: Path | None, duration: str | None, *, keep_leaders: bool) -> None:
    """Raises BadInput for options that an agent has no use for."""
    session.refuse_beside_agent(replay, duration)
    if keep_leaders:
        raise BadInput(
            "--keep-leaders and --agent contradict each other",
            why="an agent plans by its own settings",
            todo="Leave one of them out.",
        )


def _say_held(findings: list[FindingDocument]) -> None:
    """Absent brokers that are waited for: what rests on them is not among the proposals."""
    from agent.values.finding import FindingReason
    from agent.values.number_format import counted

    held = [one for one in findings if one["held"] and one["finding"] == FindingReason.BROKER_ABSENT.value]
    for finding in held[:_HELD_SHOWN]:
        say(finding["sentence"])
    if len(held) > _HELD_SHOWN:
        say(f"{counted(len(held) - _HELD_SHOWN, 'more absent broker')}: rackwise status")


def _emit_groups(rows: list[PlanGroup], look: LookDocument, output: OutputFormat | None, *, every: bool) -> None:
    from agent.values.observation import ObservationPart

    form = chosen(output)
    from agent.cli.tables import emit_gains

    title = "groups: reads across racks now, by their own assignors, at the optimum"
    if any(row["plugin_gain"] is not None for row in rows):
        title = "groups: reads across racks now, by their own assignors, with the plug-in for brokers, at the optimum"
    match form:
        case OutputFormat.TABLE:
            shown = [table_row(row) for row in rows]
            empty = session.none_of("no group assigns partitions", look, ObservationPart.GROUPS)
            emit(shown, with_plugin(SHOWN, rows), form, title=title, empty=empty, every=every)
            if shown:
                emit_text(BY)
            emit_gains(rows, every=every)
        case OutputFormat.CSV:
            emit([flat(row, COLUMNS) for row in rows], IN_CSV, form)
        case _:
            emit(rows, SHOWN, form)


def emit_proposals(
    found: tuple[Proposal, ...],
    output: OutputFormat | None,
    *,
    every: bool,
    priced: bool = True,
    now_ms: int | None = None,
    empty: str = "no proposals",
) -> None:
    """One row per proposal; ``priced``: whether a price is set, without which no money is shown.

    ``now_ms``, epoch milliseconds: they are published ones, and the age of each is shown.
    """
    from agent.cli.running_agents import ago
    from agent.propose.codec import proposal_to_json
    from agent.values.cycle import figures_rest_on

    rows: list[dict[str, Any]] = [proposal_to_json(proposal) for proposal in found]
    form = chosen(output)
    columns: tuple[str, ...] = _COLUMNS
    if form in {OutputFormat.TABLE, OutputFormat.CSV}:
        rows = [
            {**row, "subject": str(proposal.subject), **_saves(proposal.predicted)}
            for row, proposal in zip(rows, found, strict=True)
        ]
        columns = _IN_CSV if form is OutputFormat.CSV else _COLUMNS
    if now_ms is not None and form is OutputFormat.TABLE:
        columns = _PUBLISHED
        for row, proposal in zip(rows, found, strict=True):
            row[_AGE] = ago(proposal.created_ms, now_ms)
    if not priced and form is OutputFormat.TABLE:
        columns = tuple(name for name in columns if "$/day" not in name)
    emit(rows, columns, form, empty=empty, every=every)
    figures = figures_rest_on(found)
    if figures is not None and form is OutputFormat.TABLE:  # the other forms have it in each proposal's evidence
        say(figures)


def _saves(predicted: PredictedEffect) -> dict[str, Any]:
    """What it takes off the bill a day, by its own forecast; empty where nothing is foretold of reads."""
    from agent.money.traffic import saving_words, usd_between
    from agent.values.proposal import saved_usd_per_day

    saved = saved_usd_per_day(predicted)
    if saved is None:
        unknown = None if predicted.before else ""
        # What crosses now is all that can be saved.
        most = usd_between(None, predicted.usd_per_day_before) if predicted.usd_per_day_before else unknown
        return {"saves $/day": most, "usd_per_day_saved": unknown}
    return {"saves $/day": saving_words(saved), "usd_per_day_saved": saved}


WITH_PLUGIN = "plug-in"
"""In a table; the field is ``plugin``."""
SHOWN = ("group", "assignor", "now", "own", WITH_PLUGIN, "optimum", "worth")
COLUMNS = ("now", "own", "plugin", "optimum")
COSTS = ("reads", "crossing", "unknown", "crossing_bytes_per_s", "usd_per_day", "moved")
BY = (
    "reads cross by Kafka's rule (no replica in the reader's rack); bytes and money are as read (from the leader, or "
    "by a follower fetch)"
)
"""Below each table of `assignment_words`."""
IN_CSV = ("group", "kind", "assignor", *(f"{column}_{cost}" for column in COLUMNS for cost in COSTS), "worth")
UNKNOWN = "unknown"
"""In a cell: there is an answer, and it is not known."""


def with_plugin(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns of a table; without that of the plug-in where it concerns none of the groups."""
    concerned = any(row["plugin_gain"] is not None for row in rows)
    return tuple(name for name in columns if concerned or name != WITH_PLUGIN)


def table_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a table: each column in one cell."""
    cells = {name: assignment_words(row[name]) for name in COLUMNS}
    return {**row, "assignor": row["assignor"] or UNKNOWN, **cells, WITH_PLUGIN: plugin_words(row, cells["plugin"])}


def plugin_words(row: Mapping[str, Any], words: str) -> str | CellMark:
    """The cell of the plug-in: ``words`` of its assignment; where there is none, "cannot help" or "unknown"."""
    if row["plugin_gain"] is None:
        return CellMark.NOT_APPLICABLE
    if row["plugin"] is not None:
        return words
    why: str = row["plugin_gain"].rpartition("; ")[2]
    return why.partition(":")[0]


def flat(row: Mapping[str, Any], columns: tuple[str, ...], costs: tuple[str, ...] = COSTS) -> dict[str, Any]:
    """The same for CSV: every number in a field of its own, such as ``now_crossing``."""
    cells = {f"{column}_{cost}": (row[column] or {}).get(cost) for column in columns for cost in costs}
    return {**row, **cells}


def assignment_words(column: Mapping[str, Any] | None) -> str:
    """One assignment in a few words; a read of which it is not known whether it crosses is never one that does not."""
    if column is None:
        return UNKNOWN
    parts = [*_reads_words(column["reads"], column["crossing"], column["unknown"])]
    if column["crossing_bytes_per_s"] is not None and (column["crossing"] or column["crossing_bytes_per_s"]):
        parts.append(str(bytes_words(column["crossing_bytes_per_s"])))
    if column["usd_per_day"]:
        parts.append(f"{usd_words(column['usd_per_day'])}/day")
    if column["moved"]:
        parts.append(f"{column['moved']:,} moved")
    return ", ".join(parts)


def _reads_words(reads: int, crossing: int, unknown: int) -> Iterator[str]:
    if unknown and unknown == reads and not crossing:
        yield f"{counted(unknown, 'read')} {UNKNOWN}"
        return
    if crossing or unknown < reads or not reads:
        yield f"{crossing:,} of {reads - unknown:,} {'crosses' if crossing == 1 else 'cross'}"
    if unknown:
        yield f"{unknown:,} {UNKNOWN}"

"""``reassign``: the progress of plans, a check of their planned replicas, cancellation and rollback."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from agent.cli import agent_api, options, proposals, running_agents, session
from agent.cli.output import CellMark, OutputFormat, chosen, emit, emit_gap, emit_line, emit_one, say

if TYPE_CHECKING:
    from agent.documents.journal import JournalRecords as Records
    from agent.documents.journal import PlannedReplicas
    from agent.documents.proposals import PlanRow, ReassignStatus, VerifyRow
    from agent.errors import BadInput
    from agent.journal.entries import JournalState
    from agent.values.observation import Gap
    from agent.values.reassignment import ReassignmentPlan
    from config.load import LoadedSettings

reassign_app = typer.Typer(help="Reassignments: status, verify, cancel, rollback.", no_args_is_help=True)
PLANS = ("plan", "state", "partitions", "done", "moving", "throttle", "approved_by", "sentence")
COPIES = ("partition", "to_broker", "copied", "of", "share", "rate", "time left")
MOVES = ("partition", "adding", "removing", "replicas", "by")
GAPS_SHOWN = 20
PARTITIONS = ("partition", "state", "replicas", "planned", "sentence")
Plan_ = Annotated[str | None, typer.Argument(metavar="PLAN", help="Id of one plan; default: all plans.")]
Id = Annotated[str, typer.Argument(metavar="PLAN", help="Id of the plan: that of its proposal.")]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "--reassignment-json", metavar="FILE", help="Write the planned replicas to FILE, for Kafka's own tool."
    ),
]
BackFile = Annotated[
    Path | None,
    typer.Option(
        "--rollback-json", metavar="FILE", help="Write the replicas from before the plan to FILE, for Kafka's own tool."
    ),
]


@reassign_app.command()
@options.expanded
def status(
    *,
    plan: Plan_ = None,
    reassignment_json: OutFile = None,
    rollback_json: BackFile = None,
    source: options.SettingsOptions,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Plans of the journal, and every reassignment that the brokers report, also of other tools."""
    from agent.cli.follow import ReassignmentWatcher
    from agent.documents.journal import ReportedMoves, reassign_status

    if agent_api.named_agent() is not None:
        _status_of_an_agent(source, output, every=every, only=(plan, reassignment_json, rollback_json))
    loaded = options.settings(source)
    records = _journal_records(loaded, needed=plan is not None, table=chosen(output) is OutputFormat.TABLE)
    named = _plan(records.view, plan) if plan is not None else None
    _write_files(named, reassignment_json, rollback_json)
    with ReassignmentWatcher(loaded).open() as watcher:
        observation = watcher.look()
        copies = watcher.copies(observation, named)
    look = ReportedMoves(observation.taken_ms, observation.reassignments, tuple(copies))
    document = reassign_status(records, look, named=named, plan=plan)
    if chosen(output) is not OutputFormat.TABLE:
        emit_one(document, output)
    else:
        _show_status(document, records, unseen="reassignments" in _unseen(observation.gaps), output=output, every=every)
    raise typer.Exit(_exit_code(observation.gaps, known=records.known))


def _status_of_an_agent(
    source: options.SettingsOptions, output: options.Output, *, every: bool, only: tuple[object, ...]
) -> NoReturn:
    """What the agent that ``--agent`` names shows. Raises BadInput for options of one plan."""
    from agent.documents.journal import JournalRecords
    from agent.errors import BadInput

    if any(one is not None for one in only):
        raise BadInput(
            "--agent shows all plans",
            why="the agent answers with its whole status, and writes no file",
            todo="Leave PLAN and the files out, or leave --agent out.",
        )
    agent_api.note_options(*source)
    document, look = agent_api.answer("/reassignments")
    gaps, journal = session.gaps_in(look), look["journal"]
    if chosen(output) is not OutputFormat.TABLE:
        emit_one(document, output)
    else:
        records = JournalRecords({}, journal["name"], journal["known"], journal["why"] or "")
        _show_status(document, records, unseen="reassignments" in _unseen(gaps), output=output, every=every)
    raise typer.Exit(_exit_code(gaps, known=journal["known"]))


def _show_status(
    document: ReassignStatus, records: Records, *, unseen: bool, output: options.Output, every: bool
) -> None:
    """Tables of plans, reassignments and copies."""
    from agent.cli.tables import copy_cells, plan_cells

    _show_journal(document, records.why, output, every=every)
    none = {"throttle": CellMark.NONE}
    shown = [plan_cells(row) for row in document["plans"]]
    emit_gap(shown)
    if shown or (records.known and not records.why):
        emit(shown, PLANS, output, empty="the journal has no plan", absent=none, every=every)
    emit_gap(document["reassignments"])
    emit(document["reassignments"], MOVES, output, empty=_none_moves(unseen=unseen), every=every)
    if document["copies"]:
        emit_line()
        emit([copy_cells(row) for row in document["copies"]], (*COPIES, "ours"), output, every=every)


def _show_journal(document: ReassignStatus, why: str, output: options.Output, *, every: bool) -> None:
    """The leading agent, whether it is paused, the journal, and the throttles in force."""
    from agent.cli.tables import head_row, throttle_line

    lines = [throttle_line(row) for row in document["throttles"]]
    absent = {"leader": CellMark.NONE, "paused": CellMark.NONE}
    journal = f"{document['journal']}: {why}" if why else document["journal"]
    emit_one({**head_row(document), "journal": journal}, output, absent=absent, every=every)
    if lines:
        emit_line()
        emit([{"throttles": line} for line in lines], ("throttles",), output, every=every)


@reassign_app.command()
@options.expanded
def verify(
    what: Annotated[
        str, typer.Argument(metavar="PLAN|FILE", help="A plan, or a JSON file of kafka-reassign-partitions.")
    ],
    source: options.SettingsOptions,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Check that all planned replicas are in place and no throttle of rackwise is left; exit code 1 when not."""
    if agent_api.named_agent() is not None:
        agent_api.note_options(*source)
        checked = _by_an_agent(what)
    else:
        checked = _by_brokers(options.settings(source), what)
    emit(checked.rows, PARTITIONS, output, empty="the plan or file names no partition", every=every)
    for key in checked.throttles:
        say(f"still throttled by rackwise: {key}")
    raise typer.Exit(0 if not checked.throttles and all(row["state"] == "done" for row in checked.rows) else 1)


@reassign_app.command()
@options.expanded
def cancel(
    plan: Id,
    given: running_agents.ConfirmedOptions,
    source: options.SettingsOptions,
    output: options.Output = None,
) -> None:
    """Start no further batch of the plan, and revert its moving partitions; partitions that have moved stay."""
    running_agents.confirm(f"Cancel {plan}?", yes=given.yes)
    proposals.tell("cancel", options.settings(source), plan, given, output)


@reassign_app.command()
@options.expanded
def rollback(
    plan: Id,
    given: running_agents.ConfirmedOptions,
    source: options.SettingsOptions,
    output: options.Output = None,
) -> None:
    """Restore the replicas from before the plan, also of partitions that have moved; copies data again."""
    loaded = options.settings(source)
    _say_way_back(loaded, plan)
    running_agents.confirm(f"Restore the replicas from before {plan}?", yes=given.yes)
    proposals.tell("rollback", loaded, plan, given, output)


def _say_way_back(loaded: LoadedSettings, name: str) -> None:
    """How many partitions may move back, and at which limits; of a plan that is not known the agent's answer tells."""
    from agent.journal import plan_entries
    from agent.values.number_format import counted
    from agent.values.reassignment import latest, limits_words, rollback_words, taken_back_by

    plans = plan_entries.plans(running_agents.journal(running_agents.plan_of(loaded)))
    plan = next((one for one in plans if one.proposal_id == name), None) or latest(plans, name)
    if plan is not None and (back := taken_back_by(plans, plan.proposal_id)) is not None:
        say(f"{plan.proposal_id}: {counted(plan.partitions, 'partition')}, {plan.state.value}; {rollback_words(back)}")
    elif plan is not None and not plan.dropped:
        limits = limits_words(plan.throttle_bytes_per_s, plan.max_moves) or " with the limits of the settings"
        partitions = counted(plan.partitions, "partition")
        say(f"{plan.proposal_id}: {partitions}, {plan.state.value}; those that have moved move back{limits}")


def _journal_records(loaded: LoadedSettings, *, needed: bool, table: bool) -> Records:
    """The journal, empty where there is none; raises what `running_agents.journal` raises where a plan of it is needed.

    ``table``: the answer itself says why there is none.
    """
    from agent.act.journal.journal_topic import NoJournalError
    from agent.documents.journal import JournalRecords
    from agent.errors import BadInput, RackwiseError

    plan = running_agents.plan_of(loaded)  # what keeps this user out of the cluster ends the command
    try:
        view = running_agents.journal(plan)
    except NoJournalError as error:
        if needed:
            raise
        why = f"{error.what}; no agent in mode execute has run here"
        if not table:
            say(f"no journal: {why}")
        return JournalRecords({}, "none", why=why)
    except RackwiseError as error:
        if needed or isinstance(error, BadInput):  # a file that is no journal is a mistake in the settings
            raise
        say(
            f"the journal cannot be read, so it is unknown which reassignments are of rackwise: "
            f"{error.what}: {error.why}"
        )
        return JournalRecords({}, "not readable", known=False)
    return JournalRecords(view, str(plan.file or plan.journal_topic))


def _unseen(gaps: Iterable[Gap]) -> set[str]:
    return {gap.part.value for gap in gaps if gap.is_missed}


def _none_moves(*, unseen: bool) -> str:
    if unseen:
        return "reassignments are unknown: the brokers did not report them"
    return "the brokers report no reassignment"


def _exit_code(gaps: Sequence[Gap], *, known: bool) -> int:
    """0, or that of a partial answer, whose missing parts are named."""
    from agent.cli.session import gap_lines
    from agent.errors import PartialAnswer

    unseen = _unseen(gaps)
    for line in gap_lines(gap for gap in gaps if gap.part.value in unseen)[:GAPS_SHOWN]:
        say(line)
    return PartialAnswer.exit_code if unseen or not known else 0


def _plan(view: JournalState, name: str) -> ReassignmentPlan:
    """The plan of that name, or the newest attempt at that proposal. Raises BadInput."""
    from agent.journal import plan_entries
    from agent.values.reassignment import latest

    plans = plan_entries.plans(view)
    found = latest(plans, name) or next((plan for plan in plans if plan.proposal_id == name), None)
    if found is None:
        raise _no_plan(name)
    return found


def _write_files(plan: ReassignmentPlan | None, forth: Path | None, back: Path | None) -> None:
    from agent.cli.options import write_text
    from agent.errors import BadInput
    from agent.propose.codec import placements_json

    if (forth is not None or back is not None) and plan is None:
        raise BadInput(
            "A reassignment file holds one plan",
            why="no plan is named",
            todo="Name one of those that are listed by: rackwise reassign status",
        )
    for path, side in ((forth, "after"), (back, "before")):
        if path is not None and plan is not None:
            placements = {target.id: getattr(target, side) for target in plan.targets}
            write_text(path, placements_json(placements) + "\n")


class _CheckedReplicas(NamedTuple):
    """What is to be shown."""

    rows: list[VerifyRow]
    throttles: list[str]
    """Throttles of rackwise that are still set, one line each."""


def _by_brokers(loaded: LoadedSettings, what: str) -> _CheckedReplicas:
    """By what the brokers report now. Raises BadInput, and what observing and reading the journal raise."""
    from agent.cli.follow import ReassignmentWatcher
    from agent.documents.journal import PresentReplicas, plan_rows, throttle_rows, verify_rows
    from assignors.problem import TopicPartition

    if _is_file(what):
        planned, left = _of_file(what), []
    else:
        view = running_agents.journal(running_agents.plan_of(loaded))
        planned, left = _of_plan(plan_rows(view), what), _throttles(throttle_rows(view))
    with ReassignmentWatcher(loaded).open() as watcher:
        observation = watcher.look(tuple(sorted({one.topic for one in planned.wanted})))
    replicas = {
        TopicPartition(topic.name, partition.partition): tuple(partition.replicas)
        for topic in observation.topics
        for partition in topic.partitions
    }
    moves = {one.id: _move_words(one.adding, one.removing) for one in observation.reassignments}
    unseen = {gap.part.value for gap in observation.gaps}
    return _CheckedReplicas(verify_rows(planned, PresentReplicas(replicas, moves, unseen)), left)


def _by_an_agent(what: str) -> _CheckedReplicas:
    """By the last look of the agent that ``--agent`` names. Raises BadInput, JournalUnavailable, and as asking does."""
    from agent.documents.journal import PresentReplicas, verify_rows
    from agent.errors import JournalUnavailable
    from assignors.problem import TopicPartition

    planned, left = (_of_file(what), []) if _is_file(what) else (None, [])
    topics = {one.topic for one in planned.wanted} if planned is not None else set()
    search = {"q": topics.pop()} if len(topics) == 1 else {}
    (partitions, status), look = agent_api.answers(("/partitions", search), ("/reassignments", {}))
    if planned is None:
        if not look["journal"]["known"]:
            raise JournalUnavailable(
                "The agent cannot read the journal", why=look["journal"]["why"] or "", todo="Ask again."
            )
        planned, left = _of_plan(status["plans"], what), _throttles(status["throttles"])
    replicas = {TopicPartition(row["topic"], row["partition"]): tuple(row["replicas"]) for row in partitions}
    moves = {
        TopicPartition(*_parted(row["partition"])): _move_words(row["adding"], row["removing"])
        for row in status["reassignments"]
    }
    unseen = {gap.part.value for gap in session.gaps_in(look)} & {"topics", "reassignments"}
    hidden = {one.topic for one in planned.wanted} - {one.topic for one in replicas}
    return _CheckedReplicas(verify_rows(planned, PresentReplicas(replicas, moves, unseen, hidden)), left)


def _no_plan(name: str) -> BadInput:
    """The error for a plan that the journal does not have."""
    from agent.errors import BadInput

    return BadInput(
        f"The journal has no plan {name}",
        why="it has not begun, or it has expired from the journal",
        todo="List the plans: rackwise reassign status",
    )


def _is_file(what: str) -> bool:
    return Path(what).suffix == ".json" or Path(what).exists()


def _of_file(path: str) -> PlannedReplicas:
    from agent.documents.journal import PlannedReplicas
    from agent.errors import BadInput, reason
    from agent.propose.codec import MOST_BYTES, BadReassignmentFile, read_reassignment_json
    from config.plain_file import read_plain

    try:
        return PlannedReplicas(read_reassignment_json(read_plain(path, MOST_BYTES)), {})
    except (OSError, BadReassignmentFile) as error:
        raise BadInput(
            f"{path} is not a file of kafka-reassign-partitions",
            why=reason(error),
            todo="Name a plan, or a JSON file of that tool.",
        ) from error


def _of_plan(rows: list[PlanRow], name: str) -> PlannedReplicas:
    """The plan of that name, or the newest attempt at that proposal. Raises BadInput."""
    from agent.documents.journal import planned_by
    from agent.values.reassignment import attempt

    tried = [row for row in rows if attempt(row["plan"]).of == name] or [row for row in rows if row["plan"] == name]
    if not tried:
        raise _no_plan(name)
    return planned_by(max(tried, key=lambda one: one["attempt"]))


def _throttles(rows: list[Any]) -> list[str]:
    from agent.cli.tables import throttle_line

    return [throttle_line(row) for row in rows]


def _parted(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition("-")
    return topic, int(number)


def _move_words(adding: Collection[int], removing: Collection[int]) -> str:
    return f"adds {list(adding)}, removes {list(removing)}"

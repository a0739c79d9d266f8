"""``explain``: every rule that proposes or rejects a change, by the settings of the running agent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from agent.cli import agent_api, options, running_agents, session
from agent.cli.output import OutputFormat, chosen, emit, remember_replay, say
from agent.cli.running_agents import ago, expired, of_this_look

if TYPE_CHECKING:
    from agent.journal.entries import JournalState
    from agent.record.running_agent import RunningAgent
    from agent.simulate.evaluation import StageEvaluation
    from agent.values.memory import Memory
    from agent.values.observation import Observation
    from agent.values.proposal import LifecycleStep, Proposal
    from config.load import LoadedSettings

_WAIT_S = 6.0
"""How long after its start the answer waits for the agent's telemetry: the time of a read, and some to spare."""
PROPOSALS_SHOWN = 8
"""Open proposals that an error names, where an id is unknown."""
COLUMNS = ("about", "rule", "answer", "sentence")


class _Judged(NamedTuple):
    """What is judged, and by whose settings."""

    evaluation: StageEvaluation
    loaded: LoadedSettings | None
    """None for a telemetry file, beside which there is no journal."""
    agent: RunningAgent | None = None


def explain(
    subject: Annotated[
        str,
        typer.Argument(metavar="SUBJECT", help="topic/NAME[/PARTITION], group/NAME, broker/ID, or a proposal's id."),
    ],
    source: options.SettingsOptions,
    output: options.Output = None,
    replay: options.Replay = None,
    as_configured_here: Annotated[
        bool,
        typer.Option("--as-configured-here", help="Judge with the settings given here, not the running agent's."),
    ] = False,
    every: options.All = False,
) -> None:
    """Why something is proposed or not: every rule with its numbers, by the settings of the running agent."""
    from agent.documents.explanation import NO_JOURNAL_IN_FILE, explained_rows, needs_journal

    if agent_api.named_agent() is not None:
        _of_an_agent(subject, source, output, replay, every=every)
    if replay is not None:
        judged = _replayed(replay, as_configured_here=as_configured_here)
    else:
        judged = _live(options.settings(source), as_configured_here=as_configured_here)
    published = _published(subject, judged)
    if published is not None:
        say(_of_the_agent(published, judged))
        published = published._replace(sentence=f"as published: {published.sentence}")
        judged = judged._replace(
            evaluation=judged.evaluation._replace(proposals=(*judged.evaluation.proposals, published))
        )
    evaluation, ended = judged.evaluation, _check(subject, judged)
    view = _journal(judged.loaded) if needs_journal(subject, evaluation) else None
    if view is not None:
        _note_other_leader(view, judged)
    unread = NO_JOURNAL_IN_FILE if judged.loaded is None else "the journal could not be read"
    rows: list[dict[str, Any]] = [dict(row) for row in explained_rows(subject, evaluation, view, unread)]
    _emit_rules(rows, ended or f"{subject}: no rule applies to it", output, every=every)
    session.leave(evaluation)


def _emit_rules(rows: list[dict[str, Any]], nothing: str, output: options.Output, *, every: bool) -> None:
    from agent.explain.explain import label

    if not rows and chosen(output) is not OutputFormat.TABLE:
        say(nothing)
    if chosen(output) is OutputFormat.TABLE:
        rows = [{**row, "rule": label(row["rule"])} for row in rows]
    emit(rows, COLUMNS, output, empty=nothing, every=every)


def _of_an_agent(
    subject: str, source: options.SettingsOptions, output: options.Output, replay: Path | None, *, every: bool
) -> NoReturn:
    """The rules of the agent that ``--agent`` names."""
    session.refuse_beside_agent(replay, None)
    agent_api.note_options(*source)
    rows, look = agent_api.answer("/explain", {"subject": subject})
    _emit_rules(rows, f"{subject}: no rule applies to it", output, every=every)
    session.leave_look(look)


# --- by whose settings ------------------------------------------------------------------------------------------


def _replayed(path: Path, *, as_configured_here: bool) -> _Judged:
    from agent.errors import BadInput

    if as_configured_here:
        raise BadInput(
            "--replay and --as-configured-here contradict each other",
            why="a telemetry file is judged with the settings that are recorded in it",
            todo="Leave one of them out.",
        )
    remember_replay(path)
    evaluation = session.replayed(path)
    at = datetime.fromtimestamp(evaluation.snapshot.taken_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    say(f"judged with the settings recorded in {path}, mode {evaluation.limits.mode.value}; the look is of {at}")
    return _Judged(evaluation, None)


def _live(loaded: LoadedSettings, *, as_configured_here: bool) -> _Judged:
    """One look, judged as the running agent judges it; the telemetry is read while the brokers are asked."""
    from agent.daemon.limits_from_settings import to_limits
    from agent.values.memory import Memory

    asked = None if as_configured_here else running_agents.asked(loaded)
    with session.looking(loaded) as take:
        observation = take()
    say(of_this_look(observation.taken_ms))
    found = "" if asked is None else asked.answer(_WAIT_S)
    agent = _of_this_cluster(found, observation, loaded)
    if isinstance(agent, str):
        limits, memory = to_limits(loaded.settings), Memory()
        reason = "" if as_configured_here else f"no running agent's telemetry ({agent}): "
        say(f"{reason}judged with the settings given here, mode {limits.mode.value}")
        return _Judged(_seen(observation, memory, limits), loaded)
    say(_whose(agent, observation.taken_ms))
    return _Judged(_seen(observation, _memory(agent, observation), agent.limits), loaded, agent)


def _of_this_cluster(found: RunningAgent | str, observation: Observation, loaded: LoadedSettings) -> RunningAgent | str:
    """The agent of this cluster, if it runs: a topic may be mirrored, and hold what agents of other clusters wrote."""
    if isinstance(found, str):
        return found
    if found.cluster != observation.cluster_id:
        found = running_agents.read(loaded, observation.cluster_id)
        if isinstance(found, str):
            return found
    return running_agents.why_not_running(found, observation, loaded) or found


def _memory(agent: RunningAgent, observation: Observation) -> Memory:
    from agent.values.memory import after_restart

    return after_restart(agent.memory, observation.taken_ms, observation.monotonic_ms)


def _seen(observation: Observation, memory: Memory, limits: Any) -> StageEvaluation:
    from agent.simulate.evaluation import evaluate

    began = time.monotonic_ns()
    evaluation = evaluate(observation, memory, limits)
    return evaluation._replace(took_ms=observation.took_ms + (time.monotonic_ns() - began) // 1_000_000)


def _whose(agent: RunningAgent, now_ms: int) -> str:
    more = "; agents with different settings write to the same telemetry" if agent.settings_changed else ""
    whose, leads = running_agents.named(agent), ", leads" if agent.leads else ""
    age, mode = ago(agent.taken_ms, now_ms), agent.limits.mode.value
    own = f"judged with the settings of {whose}, last report {age}, mode {mode}{leads}"
    return own + more + "".join(f"; also {other}" for other in running_agents.others(agent, now_ms))


# --- a proposal of the agent that this look does not make ------------------------------------------------------


def _published(subject: str, judged: _Judged) -> Proposal | None:
    """The newest state of a proposal in the proposals topic, where this look makes none; None without a cluster."""
    from agent.plan.new_partitions import PROPOSAL
    from agent.values.proposal import Proposal as Open

    known = any(one.id == subject for one in judged.evaluation.proposals)
    if known or judged.loaded is None or not PROPOSAL.fullmatch(subject):
        return None
    found = _read_proposals(judged.loaded)
    opened = [one for one in found if isinstance(one, Open)]
    replaced = next((one for one in found if not isinstance(one, Open) and one.id == subject), None)
    if replaced is not None:
        say(_replaced(replaced, (*judged.evaluation.proposals, *opened)))
    return next((one for one in opened if one.id == subject), None)


def _read_proposals(loaded: LoadedSettings) -> tuple[Proposal | LifecycleStep, ...]:
    """Those of the proposals topic; none, and a note, when they cannot be read."""
    from agent.daemon.start import read_proposals
    from agent.errors import RackwiseError

    try:
        return read_proposals(loaded, say)
    except RackwiseError as error:
        say(f"note: the agent's open proposals cannot be read: {error}")
        return ()


def _replaced(life: LifecycleStep, proposals: Iterable[Proposal]) -> str:
    """What became of a proposal that the agent no longer makes, and what is open for the same subject."""
    same = {one.id: one for one in proposals if str(one.subject) == life.subject}
    named = ", ".join(f"{one.id} ({one.kind.value}: {one.sentence})" for one in same.values())
    rest = f"open for {life.subject}: {named}" if named else f"no proposal is open for {life.subject}"
    return f"{life.id} was a proposal for {life.subject}: {life.sentence}; {rest}"


def _of_the_agent(published: Proposal, judged: _Judged) -> str:
    """Since when the agent proposes it, and what this look proposes of the same subject instead."""
    evaluation = judged.evaluation
    same = [
        f"{one.id} ({one.sentence})"
        for one in evaluation.proposals
        if (one.kind, one.subject) == (published.kind, published.subject)
    ]
    instead = f"this look proposes {', '.join(same)} instead" if same else "this look proposes none of its kind"
    now_ms = evaluation.snapshot.taken_ms
    made, over = ago(published.created_ms, now_ms), expired(published.expires_ms, now_ms)
    was = f"for {published.subject}, with sentence and figures as published then"
    if over is not None:
        return f"{published.id} was proposed {made} {was}, and {over}: no agent proposes it now; {instead}"
    return f"{published.id} is open: the agent proposed it {made} {was}; {instead}"


# --- what there is ----------------------------------------------------------------------------------------------


def _check(subject: str, judged: _Judged) -> str | None:
    """A sentence about a plan that ended and is not proposed now. Raises BadInput for a subject that does not exist.

    Raises PartialAnswer where it may exist, as a part of the cluster could not be read.
    """
    from agent.errors import BadInput
    from agent.plan.new_partitions import (
        BEGINNING,
        FORMS,
        PROPOSAL,
        PROPOSALS,
        gap_for,
        nearest_subject,
        perhaps_unread,
        subjects,
        why_unknown,
    )

    known = subjects(judged.evaluation.snapshot, (proposal.id for proposal in judged.evaluation.proposals))
    why = why_unknown(subject, judged.evaluation.snapshot, known)
    if why is None:
        return None
    if (ended := _ended(subject, judged)) is not None:
        return ended
    near = nearest_subject(subject, known)
    todo = (f"Did you mean {near}? " if near else "") + f"A subject is {FORMS}."
    kind = subject.partition("/")[0]
    if PROPOSAL.fullmatch(subject) or BEGINNING.fullmatch(subject):
        kind, todo = PROPOSALS, _open(judged.evaluation.proposals, subject)
    if (gap := gap_for(kind, judged.evaluation.snapshot)) is not None:
        raise perhaps_unread(subject, gap, todo)
    raise BadInput(f"{subject} is unknown", why=why, todo=todo)


def _open(proposals: Sequence[Proposal], subject: str) -> str:
    """What can be asked instead: the open proposals that begin like it, else all, each with its subject."""
    from agent.plan.new_partitions import proposals_by_prefix

    begun = proposals_by_prefix(subject, (one.id for one in proposals))
    if begun:
        proposals = [one for one in proposals if one.id in begun]
    named = [f"{one.id} ({one.kind.value} {one.subject})" for one in proposals[:PROPOSALS_SHOWN]]
    if not named:
        return "There is no open proposal."
    more = f" and {len(proposals) - len(named):,} more (rackwise plan)" if len(named) < len(proposals) else ""
    title = f"Open proposals that begin with {subject}" if begun else "Open proposals"
    return f"{title}: {', '.join(named)}{more}."


def _ended(subject: str, judged: _Judged) -> str | None:
    """What the journal says of a proposal that is not proposed now; None when it says nothing."""
    from agent.journal import plan_entries
    from agent.journal.approvals import attempt_text
    from agent.plan.new_partitions import PROPOSAL
    from agent.values.reassignment import attempt, latest

    view = _journal(judged.loaded, ended=True) if judged.loaded is not None and PROPOSAL.fullmatch(subject) else None
    plans = plan_entries.plans(view) if view else ()
    newest = latest(plans, attempt(subject).of)
    return None if newest is None else f"{subject} is not proposed now; {attempt_text(newest, plans)}"


# --- the journal ------------------------------------------------------------------------------------------------


def _journal(loaded: LoadedSettings | None, *, ended: bool = False) -> JournalState | None:
    """``ended``: only plans of the past are asked for, and where there is no journal there are none."""
    from agent.act.journal.journal_topic import NoJournalError
    from agent.errors import RackwiseError

    if loaded is None:
        return None
    try:
        return running_agents.journal(running_agents.plan_of(loaded))
    except RackwiseError as error:
        if ended and isinstance(error, NoJournalError):
            return None
        say(f"note: the journal cannot be read: {error}")
        return None


def _note_other_leader(view: JournalState, judged: _Judged) -> None:
    from agent.journal.record_trust import leader_in

    leader, agent = leader_in(view), judged.agent
    if leader is None or agent is None or agent.agent is None:
        return
    if (leader.agent, leader.host) != (agent.agent, agent.host):
        say(f"note: agent {leader.agent} on host {leader.host} leads, and its settings may differ")

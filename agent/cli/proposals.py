"""``proposals`` with its verbs, ``pause`` and ``resume``: open proposals, and commands to the leading agent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from agent.cli import agent_api, options, running_agents
from agent.cli.output import OutputFormat, chosen, emit, emit_one, say
from agent.cli.running_agents import as_of
from agent.errors import BadInput
from agent.money.traffic import usd_words
from agent.values.number_format import counted, few, sized
from agent.values.proposal import Proposal, ProposalKind

if TYPE_CHECKING:
    from agent.journal.entries import JournalState
    from config.load import LoadedSettings

proposals_app = typer.Typer(
    help="Proposals of the agent: list, approve, apply, cancel, history.", invoke_without_command=True
)
_NAMED = 5
"""Expired proposals that a list names; the rest is counted."""
HISTORY = ("at", "what", "about", "who", "state", "reason", "sentence")
Id = Annotated[
    str, typer.Argument(metavar="PROPOSAL", help="Id such as p-0123456789ab, as rackwise proposals lists it.")
]
Throttle = Annotated[
    str | None,
    typer.Option(
        "--throttle",
        metavar="BYTES/s",
        help="Replication rate per broker, such as 50MB/s, from execute.throttle_floor to execute.throttle_ceiling; "
        "default: the setting.",
    ),
]
MaxMoves = Annotated[
    int | None,
    typer.Option(
        "--max-moves",
        min=1,
        metavar="N",
        help="Move at most N partitions at a time, up to execute.max_moves_per_cluster; default: the setting.",
    ),
]

OnePlan = Annotated[
    str | None, typer.Argument(metavar="PROPOSAL", help="Only this plan; without it, all plans and rebalances.")
]


class ApprovalOptions(NamedTuple):
    """Options of approve and apply."""

    reason: running_agents.Reason = ""
    throttle: Throttle = None
    max_moves: MaxMoves = None
    yes: running_agents.Yes = False
    wait: running_agents.Wait = 30


@proposals_app.callback()
@options.expanded
def proposals(
    context: typer.Context,
    source: options.SettingsOptions,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Open proposals of the proposals topic; its commands approve, follow and cancel them."""
    if context.invoked_subcommand is None:
        _list(source, output, every=every)
    elif any((*source, output, every)):
        verb = context.invoked_subcommand
        raise BadInput(
            f"Options of {verb} are given before {verb}",
            why="they would have no effect there",
            todo=f"Put them after {verb}.",
        )


@proposals_app.command(name="list")
@options.expanded
def list_proposals(
    source: options.SettingsOptions,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Published proposals that are still open; the same as proposals alone."""
    _list(source, output, every=every)


@proposals_app.command()
@options.expanded
def approve(
    proposal: Id,
    given: ApprovalOptions,
    source: options.SettingsOptions,
    output: options.Output = None,
) -> None:
    """Approve exactly this plan: the agent begins it as soon as schedule, budgets and the cluster allow it."""
    _agree("approve", options.settings(source), proposal, given, output)


@proposals_app.command()
@options.expanded
def apply(
    proposal: Id,
    given: ApprovalOptions,
    source: options.SettingsOptions,
    output: options.Output = None,
) -> None:
    """Approve the proposal and follow it until it ends. Ctrl-C ends only the following; cancel stops the plan."""
    from agent.cli import follow

    loaded = options.settings(source)
    plan = _agree("apply", loaded, proposal, given, output)
    raise typer.Exit(follow.follow(loaded, proposal, plan))


@proposals_app.command()
@options.expanded
def cancel(
    proposal: Id,
    given: running_agents.ConfirmedOptions,
    source: options.SettingsOptions,
    output: options.Output = None,
) -> None:
    """Start no further batch, and revert moving partitions; before it has begun: no rule approves it any more."""
    running_agents.confirm(f"Cancel {proposal}?", yes=given.yes)
    tell("cancel", options.settings(source), proposal, given, output)


@proposals_app.command()
@options.expanded
def history(
    source: options.SettingsOptions,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Approvals, commands with their answers, plans and triggered rebalances in the journal; the latest last."""
    from agent.cli.tables import history_cells
    from agent.documents.journal import history_rows

    if agent_api.named_agent() is not None:
        agent_api.note_options(*source)
        rows = agent_api.rows("/journal/history")
    else:
        rows = history_rows(running_agents.journal(running_agents.plan_of(options.settings(source))))
    form = chosen(output)
    columns = HISTORY if form is OutputFormat.TABLE else (*HISTORY, "plan_hash")
    shown = [history_cells(row) for row in rows] if form in {OutputFormat.TABLE, OutputFormat.CSV} else rows
    emit(
        shown, columns, form, empty="the journal has no approval, command, plan or triggered rebalance yet", every=every
    )


def pause(
    given: running_agents.AskOptions,
    source: options.SettingsOptions,
    proposal: OnePlan = None,
    output: options.Output = None,
) -> None:
    """Start no new batch and no rebalance until resumed, also after a restart; open batches and observing go on."""
    tell("pause", options.settings(source), proposal, given, output)


def resume(
    given: running_agents.AskOptions,
    source: options.SettingsOptions,
    proposal: OnePlan = None,
    output: options.Output = None,
) -> None:
    """End a pause: new batches and rebalances may start again."""
    tell("resume", options.settings(source), proposal, given, output)


def tell(
    verb: str,
    loaded: LoadedSettings,
    proposal: str | None,
    given: running_agents.AskOptions | running_agents.ConfirmedOptions,
    output: options.Output,
) -> None:
    """Send a command about something that needs no plan to be shown, and print the leading agent's answer."""
    from agent.journal.commands import CommandVerb

    command = running_agents.command(CommandVerb(verb), proposal, reason=given.reason)
    answer = running_agents.ask(running_agents.plan_of(loaded), command, given.wait)
    emit_one({"command": command.id, "done": answer.done, "sentence": answer.sentence}, output)


def _rate(text: str | None) -> int | None:
    from config.value_kinds import parse_size

    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as error:
        raise BadInput(f"--throttle {text} is not a rate", why=str(error), todo="Write it as 50MB/s.") from error


def _agree(
    verb: str, loaded: LoadedSettings, proposal_id: str, given: ApprovalOptions, output: options.Output
) -> str | None:
    """Approve the attempt that was shown; the name of its plan from the leading agent's answer."""
    from agent.journal.approvals import plan_hash
    from agent.journal.commands import CommandVerb

    throttle = _rate(given.throttle)
    proposal = _standing(loaded, proposal_id)
    for line in what_is_approved(proposal):
        say(line)
    say(figures_as_published(proposal, time.time_ns() // 1_000_000))
    where = running_agents.plan_of(loaded)
    view = running_agents.journal(where)
    attempt = _attempt(view, proposal_id)
    if (done := _done_already(view, proposal)) is not None:
        say(done)
    running_agents.confirm(f"{verb.capitalize()} {proposal_id}?", yes=given.yes)
    command = running_agents.command(CommandVerb(verb), proposal_id, plan_hash=plan_hash(proposal), reason=given.reason)
    command = command._replace(throttle_bytes_per_s=throttle, max_moves=given.max_moves, attempt=attempt)
    answer = running_agents.ask(where, command, given.wait)
    if verb == "apply" and output is None:
        say(answer.sentence)
    else:
        emit_one({"command": command.id, "done": answer.done, "sentence": answer.sentence}, output)
    return answer.plan


def _attempt(view: JournalState, proposal_id: str) -> int:
    """Which attempt an approval is for; what became of the one before is said."""
    from agent.journal import plan_entries
    from agent.journal.approvals import attempt_text, next_attempt
    from agent.values.reassignment import latest

    plans = plan_entries.plans(view)
    newest = latest(plans, proposal_id)
    attempt = next_attempt(plans, view, proposal_id).number
    if attempt > 1:
        before = f"; {attempt_text(newest, plans)}" if newest is not None and newest.ended else ""
        say(f"this is attempt {attempt}{before}")
    return attempt


def _done_already(view: JournalState, proposal: Proposal) -> str | None:
    """Where the proposal is older than the end of its latest attempt, which is done and was not taken back since.

    The agent replaces or ends such a proposal at its next planning; until then it describes what was done.
    """
    from agent.journal import plan_entries
    from agent.values.reassignment import in_force, latest

    plans = plan_entries.plans(view)
    newest = latest(plans, proposal.id)
    if newest is None or not in_force(plans, newest):
        return None
    ended_ms = view[f"plan/{newest.proposal_id}"].at_ms
    if proposal.created_ms > ended_ms:
        return None
    return (
        f"{newest.proposal_id} was done after these figures: the planned replicas are in place by the journal, "
        f"and the change above is not ahead; check it with: rackwise reassign verify {newest.proposal_id}"
    )


def _standing(loaded: LoadedSettings, proposal_id: str) -> Proposal:
    """The open proposal as it was published. Raises BadInput where there is none."""
    from agent.cli.running_agents import expired
    from agent.plan.new_partitions import proposals_by_prefix

    now_ms = time.time_ns() // 1_000_000
    found = _published(loaded)
    over = {one.id: expired(one.expires_ms, now_ms) for one in found}
    for one in found:
        if one.id == proposal_id and over[one.id] is None:
            return one
    begun = proposals_by_prefix(proposal_id, (one.id for one in found if over[one.id] is None))
    ended = over.get(proposal_id)
    raise BadInput(
        f"There is no proposal {proposal_id}" if ended is None else f"{proposal_id} is not open any more",
        why=f"it {ended}, and no agent has published it again"
        if ended is not None
        else "it was not published, or it is void since the cluster changed",
        todo=(f"Open proposals that begin with {proposal_id}: {', '.join(begun)}. " if begun else "")
        + "List the open proposals: rackwise proposals",
    )


def _list(source: options.SettingsOptions, output: options.Output, *, every: bool) -> None:
    from agent.cli.plan import emit_proposals
    from agent.cli.running_agents import expired
    from agent.values.number_format import counted, few

    found, now_ms = _listed_proposals(source), time.time_ns() // 1_000_000
    opened = tuple(one for one in found if expired(one.expires_ms, now_ms) is None)
    emit_proposals(opened, output, every=every, now_ms=now_ms)
    if left_out := [f"{one.id} {over}" for one in found if (over := expired(one.expires_ms, now_ms)) is not None]:
        say(f"{counted(len(left_out), 'proposal')} left out, not published again in time: {few(left_out, _NAMED)}")


def _listed_proposals(source: options.SettingsOptions) -> list[Proposal]:
    """Those of the agent that ``--agent`` names, as it planned last; else those of the topic."""
    if agent_api.named_agent() is None:
        return _published(options.settings(source))
    from agent.propose.codec import proposal_from_json

    agent_api.note_options(*source)
    return [proposal_from_json(row) for row in agent_api.rows("/proposals")]


def _published(loaded: LoadedSettings) -> list[Proposal]:
    """The proposals of the topic that no agent has ended, open or expired."""
    from agent.daemon.start import read_proposals

    return [one for one in read_proposals(loaded, say) if isinstance(one, Proposal)]


# What a person approves, in words made of nothing but what the approval's hash covers; figures stand apart.
#
# The sentence of a published record is text that its writer chose, and the hash does not cover it: it is not shown
# here.

MOST_ROWS = 10
"""Partitions, tasks or members that are shown one by one; the rest is counted."""
_NAMED_BROKERS = 6
Brokers = tuple[str | int, ...]


def what_is_approved(proposal: Proposal) -> tuple[str, ...]:
    """Lines: what is done to what and why, what changes in all, and each change, as far as there is room."""
    head = f"{proposal.id}: {proposal.kind.value} {proposal.subject}, because {proposal.reason.value}"
    if proposal.kind in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return head, *_placements(proposal)
    moves = [
        f"{one.what} {one.subject}: {one.source or '(none)'} -> {one.target or '(none)'}" for one in proposal.moves
    ]
    return head, f"changes: {counted(len(moves), 'move')}", *_first(moves)


def figures_as_published(proposal: Proposal, now_ms: int) -> str:
    """The figures of the record: no part of what is approved, as they change all the time."""
    predicted, parts = proposal.predicted, []
    if proposal.kind is not ProposalKind.LEADERS:
        parts.append(
            "bytes to copy unknown" if predicted.bytes_to_move is None else f"{sized(predicted.bytes_to_move)} to copy"
        )
    before, after = usd_words(predicted.usd_per_day_before), usd_words(predicted.usd_per_day_after)
    parts.append(f"{before}/day across racks before, {after}/day after" if before and after else "$/day unknown")
    return f"as published: {', '.join(parts)}; {as_of(proposal.created_ms, now_ms)}"


def _placements(proposal: Proposal) -> tuple[str, ...]:
    """Replica lists: the first broker of each is the preferred leader."""
    before = {row.key: row.value for row in proposal.before}
    changes = [(row, before.get(row.key, ())) for row in proposal.after]
    gains = _not_in_other((row.value, old) for row, old in changes)
    losses = _not_in_other((old, row.value) for row, old in changes)
    leaders = sum(row.value[:1] != old[:1] for row, old in changes)
    total = "; ".join(
        (
            f"changes: {counted(len(changes), 'replica list')}",
            f"{counted(gains.total(), 'replica')} added{_by_broker(gains)}",
            f"{counted(losses.total(), 'replica')} removed{_by_broker(losses)}",
            f"{counted(leaders, 'preferred leader')} changed",
        )
    )
    return total, *_first(f"{row.key}: {_listed(old)} -> {_listed(row.value)}" for row, old in changes)


def _not_in_other(pairs: Iterable[tuple[Brokers, Brokers]]) -> Counter[str | int]:
    """How often each broker is in the first list of a pair and not in the second."""
    return Counter(broker for some, others in pairs for broker in some if broker not in others)


def _by_broker(brokers: Counter[str | int]) -> str:
    """`` (broker 2: 1, broker 5: 3)``."""
    if not brokers:
        return ""
    return (
        f" ({few([f'broker {one}: {number:,}' for one, number in sorted(brokers.items(), key=str)], _NAMED_BROKERS)})"
    )


def _listed(brokers: Iterable[str | int]) -> str:
    return ", ".join(map(str, brokers)) or "(none)"


def _first(lines: Iterable[str]) -> tuple[str, ...]:
    every = [*lines]
    more = (f"and {counted(len(every) - MOST_ROWS, 'more change')}: rackwise proposals -o json",)
    return (*every[:MOST_ROWS], *(more if len(every) > MOST_ROWS else ()))

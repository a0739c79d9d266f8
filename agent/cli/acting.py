"""``proposals`` with its verbs, ``pause`` and ``resume``: what people say to the agent that acts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import asking, options
from agent.cli.output import Format, chosen, emit, emit_one, say
from agent.errors import BadInput

if TYPE_CHECKING:
    from agent.values.journal import View
    from agent.values.proposal import Proposal
    from config.load import Loaded

proposals_app = typer.Typer(
    help="Proposals of the agent: list, approve, apply, cancel, history.", invoke_without_command=True
)
_NAMED = 5
"""Expired proposals that a list names; the rest is counted."""
HISTORY = ("at", "what", "about", "who", "state", "sentence")
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


@proposals_app.callback()
def proposals(
    context: typer.Context,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Open proposals of the proposals topic; its commands approve, follow and cancel them."""
    if context.invoked_subcommand is None:
        _list(options.settings(config, properties, assign, bootstrap), output, every=every)
    elif any((config, properties, assign, bootstrap, output, every)):
        verb = context.invoked_subcommand
        raise BadInput(
            f"Options of {verb} are given before {verb}",
            why="they would have no effect there",
            todo=f"Put them after {verb}.",
        )


@proposals_app.command(name="list")
def list_proposals(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Published proposals that are still open; the same as proposals alone."""
    _list(options.settings(config, properties, assign, bootstrap), output, every=every)


@proposals_app.command()
def approve(
    proposal: Id,
    reason: asking.Reason = "",
    throttle: Throttle = None,
    max_moves: MaxMoves = None,
    yes: asking.Yes = False,
    wait: asking.Wait = 30,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """Approve exactly this plan: the agent begins it as soon as schedule, budgets and the cluster allow it."""
    loaded = options.settings(config, properties, assign, bootstrap)
    _agree(loaded, proposal, _Given("approve", reason, throttle, max_moves, yes, wait), output)


@proposals_app.command()
def apply(
    proposal: Id,
    reason: asking.Reason = "",
    throttle: Throttle = None,
    max_moves: MaxMoves = None,
    yes: asking.Yes = False,
    wait: asking.Wait = 30,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """Approve the proposal and follow it until it ends. Ctrl-C ends only the following; cancel stops the plan."""
    from agent.cli import following

    loaded = options.settings(config, properties, assign, bootstrap)
    plan = _agree(loaded, proposal, _Given("apply", reason, throttle, max_moves, yes, wait), output)
    raise typer.Exit(following.follow(loaded, proposal, plan))


@proposals_app.command()
def cancel(
    proposal: Id,
    reason: asking.Reason = "",
    yes: asking.Yes = False,
    wait: asking.Wait = 30,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """Start no further batch, and revert moving partitions; before it has begun: no rule approves it any more."""
    asking.confirm(f"Cancel {proposal}?", yes=yes)
    tell("cancel", options.settings(config, properties, assign, bootstrap), proposal, reason, wait, output)


@proposals_app.command()
def history(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    every: options.All = False,
) -> None:
    """Approvals, commands with their answers, plans and triggered rebalances in the journal; the latest last."""
    from agent.cli.records import history_cells, history_rows

    loaded = options.settings(config, properties, assign, bootstrap)
    rows = history_rows(asking.journal(asking.plan_of(loaded)))
    form = chosen(output)
    shown = [history_cells(row) for row in rows] if form in {Format.TABLE, Format.CSV} else rows
    emit(
        shown, HISTORY, form, empty="the journal has no approval, command, plan or triggered rebalance yet", every=every
    )


def pause(
    proposal: Annotated[
        str | None, typer.Argument(metavar="PROPOSAL", help="Only this plan; without it, all plans and rebalances.")
    ] = None,
    reason: asking.Reason = "",
    wait: asking.Wait = 30,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """Start no new batch and no rebalance until resumed, also after a restart; open batches and observing go on."""
    tell("pause", options.settings(config, properties, assign, bootstrap), proposal, reason, wait, output)


def resume(
    proposal: Annotated[
        str | None, typer.Argument(metavar="PROPOSAL", help="Only this plan; without it, all plans and rebalances.")
    ] = None,
    reason: asking.Reason = "",
    wait: asking.Wait = 30,
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
) -> None:
    """End a pause: new batches and rebalances may start again."""
    tell("resume", options.settings(config, properties, assign, bootstrap), proposal, reason, wait, output)


def tell(verb: str, loaded: Loaded, proposal: str | None, reason: str, wait: float, output: options.Output) -> None:
    """Ask for something that needs no plan to be looked at, and print the answer."""
    from agent.journal.commands import Verb

    wish = asking.command(Verb(verb), proposal, reason=reason)
    answer = asking.ask(asking.plan_of(loaded), wish, wait)
    emit_one({"command": wish.id, "done": answer.done, "sentence": answer.sentence}, output)


class _Given:
    """What approving is given."""

    def __init__(
        self, verb: str, reason: str, throttle: str | None, max_moves: int | None, yes: bool, wait: float
    ) -> None:
        self.verb, self.reason, self.max_moves, self.yes, self.wait = verb, reason, max_moves, yes, wait
        self.throttle = _rate(throttle)


def _rate(text: str | None) -> int | None:
    from config.kinds import parse_size

    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as error:
        raise BadInput(f"--throttle {text} is not a rate", why=str(error), todo="Write it as 50MB/s.") from error


def _agree(loaded: Loaded, proposal_id: str, given: _Given, output: options.Output) -> str | None:
    """Approve the very attempt that the person was shown; the name of its plan, as the agent tells it."""
    from agent.cli.approving_words import figures_as_published, what_is_approved
    from agent.journal.approvals import plan_hash
    from agent.journal.commands import Verb

    proposal = _standing(loaded, proposal_id)
    for line in what_is_approved(proposal):
        say(line)
    say(figures_as_published(proposal, time.time_ns() // 1_000_000))
    where = asking.plan_of(loaded)
    view = asking.journal(where)
    attempt = _attempt(view, proposal_id)
    if (done := _done_already(view, proposal)) is not None:
        say(done)
    asking.confirm(f"{given.verb.capitalize()} {proposal_id}?", yes=given.yes)
    wish = asking.command(Verb(given.verb), proposal_id, plan_hash=plan_hash(proposal), reason=given.reason)
    wish = wish._replace(throttle_bytes_per_s=given.throttle, max_moves=given.max_moves, attempt=attempt)
    answer = asking.ask(where, wish, given.wait)
    if given.verb == "apply" and output is None:
        say(answer.sentence)
    else:
        emit_one({"command": wish.id, "done": answer.done, "sentence": answer.sentence}, output)
    return answer.plan


def _attempt(view: View, proposal_id: str) -> int:
    """Which attempt an approval is for; what became of the one before is said."""
    from agent.cli.records import plans_in
    from agent.journal.attempts import next_attempt, said_of
    from agent.values.attempts import latest

    plans = plans_in(view)
    newest = latest(plans, proposal_id)
    attempt = next_attempt(plans, view, proposal_id).number
    if attempt > 1:
        before = f"; {said_of(newest)}" if newest is not None and newest.ended else ""
        say(f"this is attempt {attempt}{before}")
    return attempt


def _done_already(view: View, proposal: Proposal) -> str | None:
    """Where the proposal is older than the end of its latest attempt, which is done and was not taken back since.

    The agent replaces or ends such a proposal at its next planning; until then it describes what was done.
    """
    from agent.cli.records import plans_in
    from agent.values.attempts import in_force, latest

    plans = plans_in(view)
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


def _standing(loaded: Loaded, proposal_id: str) -> Proposal:
    """The open proposal as it was published. Raises BadInput where there is none."""
    from agent.cli.figures import expired
    from agent.plan.subjects import begun_by

    now_ms = time.time_ns() // 1_000_000
    found = _published(loaded)
    over = {one.id: expired(one.expires_ms, now_ms) for one in found}
    for one in found:
        if one.id == proposal_id and over[one.id] is None:
            return one
    begun = begun_by(proposal_id, (one.id for one in found if over[one.id] is None))
    ended = over.get(proposal_id)
    raise BadInput(
        f"There is no proposal {proposal_id}" if ended is None else f"{proposal_id} is not open any more",
        why=f"it {ended}, and no agent has published it again"
        if ended is not None
        else "it was not published, or it is void since the cluster changed",
        todo=(f"Open proposals that begin with {proposal_id}: {', '.join(begun)}. " if begun else "")
        + "List the open proposals: rackwise proposals",
    )


def _list(loaded: Loaded, output: options.Output, *, every: bool) -> None:
    from agent.cli.figures import expired
    from agent.cli.planning import emit_proposals
    from agent.values.words import counted, few

    found, now_ms = _published(loaded), time.time_ns() // 1_000_000
    opened = tuple(one for one in found if expired(one.expires_ms, now_ms) is None)
    emit_proposals(opened, output, every=every, now_ms=now_ms)
    if left_out := [f"{one.id} {over}" for one in found if (over := expired(one.expires_ms, now_ms)) is not None]:
        say(f"{counted(len(left_out), 'proposal')} left out, not published again in time: {few(left_out, _NAMED)}")


def _published(loaded: Loaded) -> list[Proposal]:
    """The proposals of the topic that no agent has ended, open or expired."""
    from agent.daemon.start import read_proposals
    from agent.values.proposal import Proposal as Standing

    return [one for one in read_proposals(loaded, say) if isinstance(one, Standing)]

"""What was answered long ago is not said again, obeyed again, or taken for a no to something else."""

from __future__ import annotations

import pytest

from agent.execute.commands.apply import CommandEffects, apply_commands, replay_undelivered, stops_something
from agent.execute.commands.command_context import SIGNED_FOR_MS, CommandSigner, signed
from agent.execute.reassign.machine import transition
from agent.execute.reassign.messages import CommandReceived, PlanAccepted
from agent.guard.judge import guard
from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, ProposalApproval, written
from agent.journal.commands import KEPT, CommandVerb, history, pause_in, signed_until
from agent.journal.entries import JournalState, JournalWrite, applied, numbered
from agent.values.limits import AgentMode, ApprovalRule, ApproveLimits, Limits
from agent.values.memory import Memory
from agent.values.proposal import Hold
from agent.values.reassignment import PlanState
from tests.execute.commands import LIMITS, MINUTE, MOVE, STANDING, InboxEntry, ask, done, plan
from tests.execute.test_identity import ANN, CLUSTER, LIVE, PEOPLE, VIEW, wish
from tests.guard.test_judge import shared
from tests.journals import journal, keys
from tests.snapshots import NOW_MS

BY_ANN = CommandSigner("ann", ANN)


def grown(view: JournalState, *writes: JournalWrite, now_ms: int) -> JournalState:
    """As the journal has it: what is written last is last."""
    first = 1 + max((entry.seq for entry in view.values()), default=0)
    return applied(view, numbered(writes, at_ms=now_ms, epoch=1, first_seq=first))


def heard(view: JournalState, *wishes: InboxEntry, now_ms: int = NOW_MS) -> JournalState:
    """The journal once these are answered, and the executor has written the commands down."""
    result = apply_commands(wishes, view, STANDING, LIMITS, now_ms, people=PEOPLE)
    view = grown(view, *result.writes, now_ms=now_ms)
    for command in result.commands:
        assert isinstance(command, CommandReceived)
        (before,) = (one for one in plan_entries.plans(view) if one.proposal_id == command.proposal_id)
        view = grown(view, *plan_entries.change_writes(transition(before, command).plan), now_ms=now_ms)
    return view


def about_plan(verb: CommandVerb, name: str, *, by: CommandSigner | None = None) -> InboxEntry:
    """About the one plan, also where the verb could be about all."""
    one = ask(verb, MOVE, id_=name)
    return one._replace(value=one.value if by is None else signed(one.value, by, CLUSTER), came=LIVE)


def flood(view: JournalState, now_ms: int = NOW_MS) -> JournalState:
    """Many others came in between."""
    for first in range(0, KEPT + 100, 100):
        junk = [ask(CommandVerb.PAUSE, "p-nothing", id_=f"junk-{first + n}")._replace(came=LIVE) for n in range(100)]
        view = heard(view, *junk, now_ms=now_ms)
    return view


@pytest.mark.parametrize(
    ("proven", "then", "state", "paused"),
    [
        pytest.param(
            CommandVerb.RESUME, CommandVerb.PAUSE, PlanState.OPEN, True, id="a pause is not ended by a resume before it"
        ),
        pytest.param(
            CommandVerb.ROLLBACK,
            CommandVerb.CANCEL,
            PlanState.CANCELLING,
            False,
            id="nor a cancel by a rollback before it",
        ),
    ],
)
def test_what_a_proven_person_asked_for_is_not_said_again_after_what_stopped_it(
    proven: CommandVerb, then: CommandVerb, state: PlanState, paused: bool
) -> None:
    """A proven person's answers are kept for longer than others, but for the one that the plan has heard last."""
    view = heard({**VIEW, **journal(plan(), at_ms=NOW_MS)}, about_plan(proven, "c-proven", by=BY_ANN))
    view = flood(heard(view, about_plan(then, "c-then")))
    kept = {one.command.id for one in history(view)}
    assert {"c-proven", "c-then"} <= kept, "what the plan has heard last is not forgotten"
    (now,) = plan_entries.plans(view)
    assert (now.state, now.paused) == (state, paused)
    assert replay_undelivered(view) == ()


@pytest.mark.parametrize(
    ("verb", "state"),
    [(CommandVerb.CANCEL, PlanState.CANCELLING), (CommandVerb.ROLLBACK, PlanState.ROLLING_BACK)],
)
def test_a_pause_from_before_what_a_plan_has_heard_is_not_said_again(verb: CommandVerb, state: PlanState) -> None:
    view = heard({**VIEW, **journal(plan(), at_ms=NOW_MS)}, about_plan(CommandVerb.PAUSE, "c-pause"))
    view = heard(view, about_plan(verb, "c-then", by=BY_ANN))
    (now,) = plan_entries.plans(view)
    assert (now.state, now.paused, now.heard) == (state, False, "c-then")
    assert replay_undelivered(view) == ()


@pytest.mark.parametrize("verb", [CommandVerb.CANCEL, CommandVerb.ROLLBACK, CommandVerb.PAUSE])
def test_what_a_plan_does_not_show_yet_is_kept_however_many_commands_come_in_between(verb: CommandVerb) -> None:
    """Answered, then many others before the executor wrote it down, then another leader."""
    view = journal(plan(), at_ms=NOW_MS)
    asked = apply_commands([about_plan(verb, "c-first")], view, STANDING, LIMITS, NOW_MS)
    view = flood(grown(view, *asked.writes, now_ms=NOW_MS))
    assert replay_undelivered(view) == asked.commands
    (command,) = asked.commands
    assert isinstance(command, CommandReceived)
    (before,) = plan_entries.plans(view)
    view = flood(flood(grown(view, *plan_entries.change_writes(transition(before, command).plan), now_ms=NOW_MS)))
    assert replay_undelivered(view) == ()
    assert len(history(view)) <= KEPT + 1


def test_a_way_back_that_was_promised_is_kept_however_many_commands_come_in_between() -> None:
    view = journal(plan(PlanState.DONE), at_ms=NOW_MS)
    asked = apply_commands([ask(CommandVerb.ROLLBACK, MOVE, id_="c-back")], view, STANDING, LIMITS, NOW_MS)
    view = flood(grown(view, *asked.writes, now_ms=NOW_MS))
    (command,) = replay_undelivered(view)
    assert isinstance(command, PlanAccepted)
    view = flood(grown(view, *plan_entries.change_writes(command.plan), now_ms=NOW_MS))
    assert replay_undelivered(view) == ()


DAY = 86_400_000


@pytest.mark.parametrize("ahead_ms", [0, SIGNED_FOR_MS - MINUTE])
def test_a_signed_command_is_obeyed_once_whatever_the_clock_of_the_agent_does(ahead_ms: int) -> None:
    """The leader's clock jumps three days and back, and so many commands come meanwhile that answers are forgotten."""
    resume = wish(CommandVerb.RESUME, by=BY_ANN, id_="c-resume", at_ms=NOW_MS + ahead_ms)
    view = heard({**VIEW}, ask(CommandVerb.PAUSE, id_="c-1")._replace(came=LIVE), resume)
    view = heard(view, ask(CommandVerb.PAUSE, id_="c-2")._replace(came=LIVE), now_ms=NOW_MS + MINUTE)
    view = flood(view, NOW_MS + 3 * DAY)
    assert "command/c-resume" not in view
    again = apply_commands([resume], view, STANDING, LIMITS, NOW_MS + 2 * MINUTE, people=PEOPLE)
    told = done(again, view, "c-resume")
    assert (told.done, "may have been answered before; send it again" in told.sentence) == (False, True)
    assert pause_in(grown(view, *again.writes, now_ms=NOW_MS)) is not None
    anew = wish(CommandVerb.RESUME, by=BY_ANN, id_="c-anew", at_ms=NOW_MS + ahead_ms + 1)
    assert done(apply_commands([anew], view, STANDING, LIMITS, NOW_MS + 3 * MINUTE, people=PEOPLE), view, "c-anew").done
    stop = wish(CommandVerb.PAUSE, by=BY_ANN, id_="c-stop", at_ms=NOW_MS)
    assert done(apply_commands([stop], view, STANDING, LIMITS, NOW_MS, people=PEOPLE), view, "c-stop").done, (
        "stops at any time"
    )


def test_what_was_forgotten_is_remembered_as_the_latest_time_of_all() -> None:
    view = {**VIEW}
    for name, at_ms in (("c-late", NOW_MS + MINUTE), ("c-early", NOW_MS)):
        view = heard(view, wish(CommandVerb.RESUME, by=BY_ANN, id_=name, at_ms=at_ms))
        view = flood(view, NOW_MS + 3 * DAY)
        assert signed_until(view) == NOW_MS + MINUTE
    odd = {**view, "command-forgotten": view["command-forgotten"]._replace(value={"until_ms": "soon"})}
    assert signed_until(odd) == 0


def test_a_signed_command_of_a_clock_that_is_ahead_is_never_obeyed_twice() -> None:
    """It counts until a day after its own time, which is nearly two days after it was answered."""
    pause = ask(CommandVerb.PAUSE, id_="c-pause")._replace(came=LIVE)
    resume = wish(CommandVerb.RESUME, by=BY_ANN, id_="c-resume", at_ms=NOW_MS + SIGNED_FOR_MS - MINUTE)
    view = heard({**VIEW}, resume)
    later = NOW_MS + 2 * SIGNED_FOR_MS - 2 * MINUTE
    view = flood(heard(view, pause, now_ms=later), now_ms=later)
    assert apply_commands([resume], view, STANDING, LIMITS, later, people=PEOPLE).writes == ()


def test_a_cancel_is_a_no_to_what_is_proposed_now_also_where_another_plan_was_approved() -> None:
    """One planning that could not see everything leaves the approval of the former plan as it is."""
    rule = ApprovalRule(name="all", kinds=("reassign",))
    limits = Limits(mode=AgentMode.EXECUTE, approve=ApproveLimits(rules=(rule,)))
    former = ProposalApproval(MOVE.id, "0" * 32, ApprovalState.APPROVED, "ann@desk", NOW_MS, NOW_MS + MINUTE)
    view = journal(written(former), at_ms=NOW_MS)
    result = apply_commands([ask(CommandVerb.CANCEL, MOVE.id)], view, STANDING, limits, NOW_MS)
    assert "no rule approves it" in done(result, view).sentence
    after = journal(*result.writes, at_ms=NOW_MS, view=view)
    (verdict,) = guard([MOVE], shared().snapshot(), Memory(), limits, after, NOW_MS)
    assert isinstance(verdict, Hold)
    assert "no rule overrules that" in verdict.sentence


def unplanned(queue: list[InboxEntry], view: JournalState, *, full: bool = False) -> tuple[list[str], CommandEffects]:
    """What is answered before the first planning, in its order."""
    result = apply_commands(queue, view, None, LIMITS, NOW_MS, full=full)
    return [write.key.removeprefix("command/") for write in result.writes if write.key.startswith("command/")], result


def test_before_anything_is_proposed_what_stops_something_is_answered_wherever_it_is() -> None:
    view = journal(plan(), at_ms=NOW_MS)
    queue = [
        ask(CommandVerb.PAUSE, id_="c1"),
        ask(CommandVerb.RESUME, id_="c2"),
        ask(CommandVerb.APPROVE, MOVE, id_="c3"),
        ask(CommandVerb.APPROVE, "p-strange", id_="c4"),
        ask(CommandVerb.PAUSE, id_="c5"),
        ask(CommandVerb.RESUME, id_="c6"),
        ask(CommandVerb.CANCEL, "p-strange", id_="c7"),
        ask(CommandVerb.PAUSE, "p-strange", id_="c8"),
        ask(CommandVerb.CANCEL, MOVE, id_="c9"),
        ask(CommandVerb.ROLLBACK, MOVE, id_="c10"),
    ]
    answered, result = unplanned(queue, view)
    assert answered == ["c1", "c2", "c3", "c5", "c9"], "and a resume behind what waits comes in its turn"
    assert sum(write.key == "command-position" for write in result.writes) == 3, "what waits is read again"
    assert (result.unanswered, result.holds_plans) == (True, True), "the rollback that waits is about an open plan"
    assert not unplanned(queue[:-1], view)[1].holds_plans, "a cancel of what has not begun is about none"
    assert [command.command.value for command in result.commands if isinstance(command, CommandReceived)] == ["cancel"]
    after = grown(view, *result.writes, now_ms=NOW_MS)
    assert pause_in(after) is not None
    later = apply_commands(queue, after, STANDING, LIMITS, NOW_MS)
    assert [key for key, _ in keys(later.writes) if key.startswith("command/")] == [
        "command/c4", "command/c6", "command/c7", "command/c8", "command/c10",
    ]  # fmt: skip
    assert not later.unanswered


@pytest.mark.parametrize("verb", [CommandVerb.APPROVE, CommandVerb.APPLY, CommandVerb.CANCEL])
@pytest.mark.parametrize("state", [None, PlanState.DONE, PlanState.CANCELLED])
def test_what_rests_on_what_is_proposed_waits_for_it_or_is_refused_where_it_cannot_wait(
    verb: CommandVerb, state: PlanState | None
) -> None:
    view = journal(plan(state), at_ms=NOW_MS) if state is not None else VIEW
    assert unplanned([ask(verb, MOVE)], view) == ([], CommandEffects(unanswered=verb is CommandVerb.CANCEL))
    answered, result = unplanned([ask(verb, MOVE)], view, full=True)
    assert answered == ["c1"]
    assert f"the leading agent has not planned yet, so it is not known whether {MOVE.id} is open" in (
        done(result, view).sentence
    )


def test_what_is_no_command_is_answered_before_the_first_planning_and_stops_nothing() -> None:
    odd = ask(CommandVerb.PAUSE)._replace(value={"id": "c1", "verb": ["pause"]})
    assert not stops_something([odd])
    assert unplanned([odd, ask(CommandVerb.APPROVE, MOVE, id_="c2")], VIEW)[0] == ["c1"]
    assert [
        stops_something([ask(verb, MOVE)]) for verb in (CommandVerb.PAUSE, CommandVerb.CANCEL, CommandVerb.ROLLBACK)
    ] == [True] * 3
    assert not stops_something([ask(CommandVerb.APPROVE, MOVE), ask(CommandVerb.RESUME)])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"throttle_bytes_per_s": 1}, "is not between execute.throttle_floor"),
        ({"throttle_bytes_per_s": 1 << 40}, "is not between execute.throttle_floor"),
        ({"max_moves": 251}, "more than execute.max_moves_per_cluster (250)"),
    ],
)
@pytest.mark.parametrize("state", [PlanState.DONE, PlanState.FAILED])
def test_a_rollback_has_the_bounds_of_an_approval(options: dict[str, int], says: str, state: PlanState) -> None:
    view = journal(plan(state, moved=None), at_ms=NOW_MS)
    result = apply_commands([ask(CommandVerb.ROLLBACK, MOVE.id, **options)], view, STANDING, LIMITS, NOW_MS)
    found = done(result, view)
    assert (found.done, result.commands) == (False, ())
    assert says in found.sentence or state is PlanState.FAILED
    fine = apply_commands(
        [ask(CommandVerb.ROLLBACK, MOVE.id, throttle_bytes_per_s=5_000_000)], view, STANDING, LIMITS, NOW_MS
    )
    accepted = [command.plan for command in fine.commands if isinstance(command, PlanAccepted)]
    assert [one.throttle_bytes_per_s for one in accepted] == ([5_000_000] if state is PlanState.DONE else [])

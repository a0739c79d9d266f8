"""What a command is judged by: the plan that is meant, what the journal alone answers, and limits that fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.commands.command_context import CommandContext, limits_refusal, not_begun
from agent.execute.reassign.messages import BatchPermission
from agent.journal.commands import CommandVerb, OperatorCommand
from agent.journal.entries import JournalState
from agent.journal.triggers import TriggerEffect, TriggerEntry, TriggerExpectation, intent
from agent.values.limits import Limits
from agent.values.reassignment import PlanState, ReassignmentPlan, attempt
from tests.guard.acting import approval, only
from tests.guard.test_judge import shared
from tests.journals import journal
from tests.snapshots import NOW_MS

_, MOVE = only(shared())
LIMITS = Limits()
FLOOR, CEILING = LIMITS.execute.throttle_floor, LIMITS.execute.throttle_ceiling
MOST = LIMITS.execute.max_moves_per_cluster
OPEN, DONE, FAILED = PlanState.OPEN, PlanState.DONE, PlanState.FAILED
TRIGGER = intent(
    TriggerEntry(
        group_id="g",
        proposal_id="p-t",
        reason="REBALANCE_IMPROVES",
        intended_ms=1,
        expected=TriggerExpectation(generation=None, readers=(), holds={}, moves=(), items=0),
        effect=TriggerEffect.REBALANCING,
    )
)


def command(verb: CommandVerb, name: str | None, **options: int) -> OperatorCommand:
    return OperatorCommand("c1", verb, "ann@desk", NOW_MS, name)._replace(**options)  # type: ignore[arg-type]


def context(
    *plans: tuple[str, PlanState], view: JournalState | None = None, planned: bool = True, standing: bool = False
) -> CommandContext:
    return CommandContext(
        view or {},
        {MOVE.id: MOVE} if standing else {},
        tuple(ReassignmentPlan(name, (), state, attempt=attempt(name).number) for name, state in plans),
        LIMITS,
        NOW_MS,
        lambda _proposal, _view: None,
        planned=planned,
    )


def named(plan: ReassignmentPlan | None) -> str | None:
    return None if plan is None else plan.proposal_id


TWICE = (("p", FAILED), ("p.2", DONE), ("px", OPEN))
BACK = (("p", DONE), ("p-back", OPEN))


@pytest.mark.parametrize(
    ("plans", "name", "plan", "meant"),
    [
        pytest.param(TWICE, "p", "p.2", "p.2", id="the newest attempt"),
        pytest.param(TWICE, "p.2", "p.2", "p.2", id="an attempt in full"),
        pytest.param(TWICE, "p.3", None, None, id="an attempt that there is not"),
        pytest.param(TWICE, "q", None, None, id="no plan of that name"),
        pytest.param(TWICE, None, None, None, id="no name"),
        pytest.param(BACK, "p", "p", "p-back", id="one that is being taken back"),
        pytest.param((("p", DONE), ("p-back", DONE)), "p", "p", "p", id="one that was taken back"),
        pytest.param((("p", OPEN), ("p-back", OPEN)), "p", "p", "p", id="one that has not ended"),
    ],
)
def test_a_name_means_the_newest_attempt_or_the_plan_that_takes_it_back(
    plans: tuple[tuple[str, PlanState], ...], name: str | None, plan: str | None, meant: str | None
) -> None:
    room = context(*plans)
    assert (named(room.plan(name)), named(room.meant(name))) == (plan, meant)


A, P, C, R, S, G = (
    CommandVerb.APPROVE, CommandVerb.APPLY, CommandVerb.CANCEL, CommandVerb.ROLLBACK, CommandVerb.PAUSE,
    CommandVerb.RESUME,
)  # fmt: skip


@pytest.mark.parametrize(
    ("plans", "answered"),
    [
        pytest.param((), set(), id="no plan"),
        pytest.param((("p", OPEN),), {A, P, C, R, S, G}, id="in progress"),
        pytest.param((("p", DONE),), {R, S, G}, id="ended"),
        pytest.param(BACK, {C, R, S, G}, id="ended, and being taken back"),
        pytest.param((("p", DONE), ("p-back", DONE)), {R, S, G}, id="taken back"),
        pytest.param((("q", OPEN),), set(), id="another one in progress"),
    ],
)
def test_before_the_first_planning_an_answer_rests_on_the_journal_alone(
    plans: tuple[tuple[str, PlanState], ...], answered: set[CommandVerb]
) -> None:
    room = context(*plans, planned=False)
    assert {verb for verb in CommandVerb if room.can_answer(command(verb, "p"))} == answered
    assert all(room.can_answer(command(verb, None)) for verb in CommandVerb)
    assert all(room._replace(planned=True).can_answer(command(verb, "p")) for verb in CommandVerb)


@pytest.mark.parametrize(
    ("room", "name", "known"),
    [
        pytest.param(context(), "p-1", False, id="nothing of it"),
        pytest.param(context(standing=True), MOVE.id, True, id="an open proposal"),
        pytest.param(context(standing=True), f"{MOVE.id}.2", True, id="an attempt at an open proposal"),
        pytest.param(context(("p-1", DONE)), "p-1", True, id="a plan"),
        pytest.param(context(("p-1", DONE)), "p-1.7", True, id="another attempt"),
        pytest.param(context(("p-1", DONE)), "p-2", False, id="another's plan"),
        pytest.param(context(view=journal(approval(shared()), at_ms=1)), MOVE.id, True, id="an approval"),
        pytest.param(context(view=journal(approval(shared()), at_ms=1)), "p-2", False, id="another's approval"),
        pytest.param(context(view=journal(TRIGGER, at_ms=1)), "p-t", True, id="a trigger"),
        pytest.param(context(view=journal(TRIGGER, at_ms=1)), "p-u", False, id="another's trigger"),
    ],
)
def test_of_what_has_not_begun_the_answer_says_whether_it_is_known(
    room: CommandContext, name: str, known: bool
) -> None:
    answer = not_begun(name, ", so there is nothing to do", room)
    assert (answer.done, answer.unknown) == (False, not known)
    assert answer.sentence == (
        f"{name} has not begun, so there is nothing to do"
        if known
        else f"no proposal {name} is known: it is not open, and the journal has no plan or approval of it"
    )
    assert not room.knows_nothing_of(None)


def test_an_answer_says_what_keeps_new_batches_from_beginning() -> None:
    plan = ReassignmentPlan("p", ())
    assert context().held(plan) == ""
    held = context()._replace(begins=lambda _plan, _view: BatchPermission(begin=False, sentence="its window is shut"))
    assert held.held(plan) == "; no new batch begins for now: its window is shut"


LOW, HIGH = "1MB/s or more, or lower execute.throttle_floor", "100MB/s or less, or raise execute.throttle_ceiling"
BOUNDED = Limits(execute=replace(LIMITS.execute, throttle_floor=1_000_000, throttle_ceiling=100_000_000))


@pytest.mark.parametrize(
    ("rate", "fits", "asked", "floor", "ceiling"),
    [
        pytest.param(999_999, LOW, "999,999 B", "1,000,000 B", "100 MB", id="just below the floor"),
        pytest.param(900_000, LOW, "900 kB", "1.0 MB", "100 MB", id="below the floor"),
        pytest.param(1_000_000, None, "", "", "", id="the floor"),
        pytest.param(100_000_000, None, "", "", "", id="the ceiling"),
        pytest.param(100_000_001, HIGH, "100,000,001 B", "1.0 MB", "100,000,000 B", id="just above the ceiling"),
        pytest.param(None, None, "", "", "", id="none"),
    ],
)
def test_an_operators_rate_lies_between_floor_and_ceiling(
    rate: int | None, fits: str | None, asked: str, floor: str, ceiling: str
) -> None:
    answer = limits_refusal(command(A, "p")._replace(throttle_bytes_per_s=rate), BOUNDED)
    assert (answer and answer.todo) == (fits and f"Give --throttle {fits}.")
    bounds = f"execute.throttle_floor ({floor}/s) and execute.throttle_ceiling ({ceiling}/s)"
    assert answer is None or answer.sentence == f"a rate of {asked}/s is not between {bounds}"


@pytest.mark.parametrize(
    ("floor", "told"),
    [
        pytest.param(2_000_000_000, "2GB/s", id="gigabytes"),
        pytest.param(1_500_000_000, "1500MB/s", id="megabytes"),
        pytest.param(1_234_000, "1234kB/s", id="kilobytes"),
        pytest.param(1_234_567, "1234567/s", id="bytes"),
    ],
)
def test_a_bound_is_told_as_the_option_reads_it(floor: int, told: str) -> None:
    limits = Limits(execute=replace(LIMITS.execute, throttle_floor=floor, throttle_ceiling=9 * floor))
    answer = limits_refusal(command(A, "p", throttle_bytes_per_s=1), limits)
    assert answer is not None
    assert answer.todo == f"Give --throttle {told} or more, or lower execute.throttle_floor."


@pytest.mark.parametrize(
    ("moves", "fits"),
    [
        pytest.param(MOST, True, id="as many"),
        pytest.param(MOST + 1, False, id="one more"),
        pytest.param(1, True, id="one"),
    ],
)
def test_an_operators_moves_at_a_time_are_no_more_than_those_of_the_cluster(moves: int, fits: bool) -> None:
    answer = limits_refusal(command(A, "p", max_moves=moves), LIMITS)
    assert (answer is None) is fits
    if answer is not None:
        assert answer.sentence == (f"{moves} moves at once are more than execute.max_moves_per_cluster ({MOST})")
        assert answer.todo == f"Give --max-moves {MOST} or fewer, or raise execute.max_moves_per_cluster."

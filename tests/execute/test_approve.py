"""An approval that would let nothing begin is refused, and says until when; one that is held for now says so."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from agent.execute.commands.approve import approve
from agent.execute.commands.command_context import CommandContext, CommandDecision, ExpectedVerdict
from agent.journal.approvals import ApprovalState, approval_of, plan_hash
from agent.journal.commands import CommandVerb, OperatorCommand
from agent.journal.entries import JournalState
from agent.values.limits import Limits
from agent.values.proposal import Proposal
from agent.values.reassignment import PlanState, ReassignmentPlan
from tests.guard.acting import HOUR, MINUTE, approval, only
from tests.guard.test_judge import shared
from tests.journals import journal
from tests.snapshots import NOW_MS

_, MOVE = only(shared())
LIMITS = Limits()
"""An approval lasts an hour."""
EXPIRES_MS = NOW_MS + LIMITS.approve.valid_ms
HELD = ExpectedVerdict(allowed=False, sentence="its window is shut")


def asked(**changes: object) -> OperatorCommand:
    command = OperatorCommand("c1", CommandVerb.APPROVE, "ann@desk", NOW_MS, MOVE.id, plan_hash(MOVE))
    return command._replace(**changes)  # type: ignore[arg-type] # a table's row


def decided(
    foreseen: ExpectedVerdict | None = None,
    *plans: ReassignmentPlan,
    view: JournalState | None = None,
    command: OperatorCommand | None = None,
) -> CommandDecision:
    room = CommandContext(view or {}, {MOVE.id: MOVE}, plans, LIMITS, NOW_MS, lambda _proposal, _view: foreseen)
    return approve(command or asked(), room)


@pytest.fixture(params=["UTC", "Asia/Tokyo"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The time zone of the agent's machine."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def test_until_when_it_is_held_is_told_in_universal_time_whatever_the_zone_of_the_machine(zone: str) -> None:
    answer = decided(HELD._replace(until_ms=1_760_007_600_000))
    assert (answer.done, answer.writes) == (False, ())
    assert answer.sentence == ("an approval lasts 60 min, and until 2025-10-09 11:00Z: its window is shut"), zone


@pytest.mark.parametrize(
    ("foreseen", "done", "sentence"),
    [
        pytest.param(None, True, "", id="not foreseen yet"),
        pytest.param(ExpectedVerdict(allowed=True, sentence=""), True, "", id="allowed"),
        pytest.param(HELD, True, "; held for now: its window is shut", id="held, until when is unknown"),
        pytest.param(
            HELD._replace(until_ms=EXPIRES_MS - 1), True, "; held for now: its window is shut", id="held a little less"
        ),
        pytest.param(HELD._replace(until_ms=EXPIRES_MS), False, "its window is shut", id="held as long as it lasts"),
        pytest.param(
            HELD._replace(comes=False), False,
            f"an approval does not let {MOVE.id} begin: its window is shut", id="held for good",
        ),
    ],
)  # fmt: skip
def test_an_approval_is_recorded_only_where_it_lets_something_begin(
    foreseen: ExpectedVerdict | None, done: bool, sentence: str
) -> None:
    answer = decided(foreseen)
    assert (answer.done, bool(answer.writes), answer.look_now) == (done, done, done)
    assert answer.sentence.endswith(sentence)
    if done:
        assert answer.sentence == f"approved by ann@desk; void if it has not begun within 60 min{sentence}"
        assert answer.plan == MOVE.id


def test_the_guard_is_asked_with_the_approval_as_the_newest_entry_of_the_journal() -> None:
    asked_with: list[JournalState] = []

    def foresee(proposal: Proposal, view: JournalState) -> None:
        assert proposal == MOVE
        asked_with.append(view)

    before = journal(approval(shared(), by="bob@desk", age_ms=2 * HOUR), at_ms=NOW_MS - 2 * HOUR)
    answer = approve(asked(), CommandContext(before, {MOVE.id: MOVE}, (), LIMITS, NOW_MS, foresee))
    (view,) = asked_with
    given = approval_of(view, MOVE.id)
    assert given is not None
    assert (given.by, given.state, given.at_ms, given.expires_ms) == (
        "ann@desk", ApprovalState.APPROVED, NOW_MS, EXPIRES_MS,
    )  # fmt: skip
    (write,) = answer.writes
    entry = view[write.key]
    assert (entry.key, entry.kind, entry.value, entry.at_ms) == (write.key, write.kind, write.value, NOW_MS)
    assert all(entry.epoch > one.epoch for one in before.values())


@pytest.mark.parametrize(
    ("age_ms", "sentence"),
    [
        pytest.param(HOUR - 1, f"{MOVE.id} was approved by bob@desk already", id="while it lasts"),
        pytest.param(HOUR, "approved by ann@desk; void if it has not begun within 60 min", id="once it has expired"),
    ],
)
def test_an_approval_in_force_is_not_given_again(age_ms: int, sentence: str) -> None:
    view = journal(approval(shared(), by="bob@desk", age_ms=age_ms), at_ms=NOW_MS - age_ms)
    assert decided(view=view).sentence == sentence


def test_an_approval_that_is_held_says_so_when_it_is_asked_for_again() -> None:
    view = journal(approval(shared(), by="bob@desk", age_ms=MINUTE), at_ms=NOW_MS)
    again = decided(HELD, view=view)
    assert again.sentence == f"{MOVE.id} was approved by bob@desk already; held for now: its window is shut"
    assert (again.done, again.look_now, again.plan, again.writes) == (True, True, MOVE.id, ())
    allowed = decided(ExpectedVerdict(allowed=True, sentence=""), view=view)
    assert allowed.sentence == f"{MOVE.id} was approved by bob@desk already"


OPEN = ReassignmentPlan(MOVE.id, (), approved_by="bob@desk")


@pytest.mark.parametrize(
    ("plan", "options", "done", "sentence"),
    [
        pytest.param(OPEN, {}, True, "is in progress already, approved by bob@desk", id="in progress"),
        pytest.param(OPEN._replace(paused=True), {}, True, "is paused already, approved by bob@desk", id="paused"),
        pytest.param(OPEN._replace(state=PlanState.ELECTING), {}, True, "is in progress already", id="electing"),
        pytest.param(
            OPEN._replace(state=PlanState.CANCELLING), {}, False,
            "is cancelling; it can be approved again once that has ended", id="being cancelled",
        ),
        pytest.param(
            OPEN._replace(state=PlanState.ROLLING_BACK), {}, False, "is rolling back; it can be approved again",
            id="being taken back",
        ),
        pytest.param(
            OPEN._replace(max_moves=2), {"max_moves": 2}, True, "is in progress already", id="with its own limits"
        ),
        pytest.param(
            OPEN._replace(max_moves=2), {"max_moves": 3}, False,
            "is in progress at 2 partitions at a time; that cannot be changed", id="with other moves at a time",
        ),
        pytest.param(
            OPEN, {"throttle_bytes_per_s": 5_000_000}, False,
            "is in progress with the limits of the settings; that cannot be changed", id="with a rate of its own",
        ),
    ],
)  # fmt: skip
def test_what_is_in_progress_is_not_changed_by_another_approval(
    plan: ReassignmentPlan, options: dict[str, int], done: bool, sentence: str
) -> None:
    answer = decided(None, plan, command=asked(**options))
    assert answer.done is done
    assert f"{MOVE.id} {sentence}" in answer.sentence
    assert (answer.writes, answer.commands) == ((), ())
    assert answer.plan == (MOVE.id if done else None)


@pytest.mark.parametrize(
    ("attempt", "fits"),
    [
        pytest.param(1, False, id="the one that has ended"),
        pytest.param(2, True, id="the next one"),
        pytest.param(3, False, id="the one after it"),
    ],
)
def test_an_approval_is_of_the_attempt_that_the_operator_saw(attempt: int, fits: bool) -> None:
    ended = OPEN._replace(state=PlanState.ROLLED_BACK, sentence="rollback requested by ann@desk")
    answer = decided(None, ended, command=asked(attempt=attempt))
    assert answer.done is fits
    assert answer.sentence == (
        "attempt 2 approved by ann@desk; void if it has not begun within 60 min"
        if fits
        else f"attempt {attempt} was approved, and the next one is attempt 2; attempt 1 rolled back "
        "(rollback requested by ann@desk)"
    )
    if not fits:
        assert answer.todo == f"Approve attempt 2: rackwise proposals approve {MOVE.id}"


def test_of_a_plan_that_is_done_no_other_attempt_is_asked_for() -> None:
    answer = decided(None, OPEN._replace(state=PlanState.DONE), command=asked())
    assert (answer.done, "attempt 1 done" in answer.sentence) == (False, True)
    assert answer.todo == "Nothing, where it moved everything; what is left to move, the next planning proposes."


@pytest.mark.parametrize(("state", "how"), [(PlanState.OPEN, "is taking"), (PlanState.DONE, "has taken")])
def test_of_a_plan_that_is_taken_back_the_next_attempt_is_asked_for(state: PlanState, how: str) -> None:
    back = OPEN._replace(proposal_id=f"{MOVE.id}-back", state=state)
    answer = decided(None, OPEN._replace(state=PlanState.DONE), back, command=asked())
    assert not answer.done
    assert answer.sentence.endswith(f"attempt 1 done; {MOVE.id}-back {how} {MOVE.id} back")
    assert answer.todo == f"Approve attempt 2: rackwise proposals approve {MOVE.id}"


def test_an_approval_of_no_proposal_names_none() -> None:
    answer = decided(command=asked(proposal_id=None))
    assert (answer.done, answer.todo) == (False, "List the open proposals: rackwise proposals")
    assert answer.sentence == " is not an open proposal of the leading agent"

"""The answer to every command in every state of a plan, and that the machine does what the answer says."""

from __future__ import annotations

import itertools

import pytest

from agent.execute.commands.apply import apply_commands, replay_undelivered
from agent.execute.reassign.machine import resume, step
from agent.execute.reassign.messages import AppendJournal, CommandReceived, PlanCommand
from agent.execute.reassign.messages import MachineCommand as Command_
from agent.journal import plan_entries
from agent.journal.commands import CommandVerb, history
from agent.values.reassignment import ENDED, PlanState, ReassignmentPlan, ReassignmentPolicy
from tests.execute.commands import LIMITS, MINUTE, MOVE, STANDING, ask, done, plan
from tests.execute.plan_attempts import (
    AGAIN,
    APPROVED,
    BACK,
    CANCELLED,
    CANCELLING,
    DONE,
    ELECTING,
    FAILED,
    FIRST,
    NEVER,
    OPEN,
    ROLLED,
    ROLLING,
    SECOND,
    UNKNOWN,
    VOID,
    A,
    C,
    G,
    P,
    R,
    after_command,
    journal_with_plan,
)
from tests.journals import journal
from tests.snapshots import NOW_MS

IN_PROGRESS = f"{FIRST} is in progress already, approved by ann@desk"
SECOND_OK = f"attempt 2 approved by ann@desk; {VOID}"
LATER = "it can be approved again once that has ended"
NOT_KNOWN = "no proposal p-nothing is known: it is not open, and the journal has no plan or approval of it"
STAY = "partitions that were moved back stay so"
TABLE: dict[tuple[PlanState | str, CommandVerb], tuple[bool, str]] = {
    (UNKNOWN, A): (False, "p-nothing is not an open proposal of the leading agent"),
    (UNKNOWN, C): (False, NOT_KNOWN),
    (UNKNOWN, R): (False, NOT_KNOWN),
    (UNKNOWN, P): (False, NOT_KNOWN),
    (UNKNOWN, G): (False, NOT_KNOWN),
    (NEVER, A): (True, f"approved by ann@desk; {VOID}"),
    (NEVER, C): (
        True, f"{FIRST} is cancelled: no rule approves it; approve it with: rackwise proposals approve {FIRST}",
    ),
    (NEVER, R): (False, f"{FIRST} has not begun, so there is nothing to take back"),
    (NEVER, P): (False, f"{FIRST} has not begun, so there is nothing to pause"),
    (NEVER, G): (False, f"{FIRST} has not begun, so there is nothing to resume"),
    (APPROVED, A): (True, f"{FIRST} was approved by ann@desk already"),
    (APPROVED, C): (True, f"{FIRST} had not begun; its approval is void, and no rule approves it"),
    (APPROVED, R): (False, f"{FIRST} has not begun, so there is nothing to take back"),
    (APPROVED, P): (False, f"{FIRST} has not begun, so there is nothing to pause"),
    (APPROVED, G): (False, f"{FIRST} has not begun, so there is nothing to resume"),
    (OPEN, A): (True, IN_PROGRESS),
    (OPEN, C): (True, f"{FIRST} is cancelling: no new batch begins, and moves in progress are taken back"),
    (OPEN, R): (True, f"{FIRST} is rolling back: its moves, finished and in progress, are taken back"),
    (OPEN, P): (True, f"{FIRST}: no new batch of it begins; moves in progress continue"),
    (OPEN, G): (True, f"{FIRST} is not paused"),
    (ELECTING, A): (True, IN_PROGRESS),
    (ELECTING, C): (True, f"{FIRST} is cancelling: all its moves have ended, and no more leaders are elected"),
    (ELECTING, R): (True, f"{FIRST} is rolling back: its moves, finished and in progress, are taken back"),
    (ELECTING, P): (True, f"{FIRST}: no new batch of it begins; moves in progress continue"),
    (ELECTING, G): (True, f"{FIRST} is not paused"),
    (CANCELLING, A): (False, f"{FIRST} is cancelling; {LATER}"),
    (CANCELLING, C): (True, f"{FIRST} is cancelling already"),
    (CANCELLING, R): (True, f"{FIRST} is rolling back: its moves, finished and in progress, are taken back"),
    (CANCELLING, P): (False, f"{FIRST} is cancelling, which is not paused"),
    (CANCELLING, G): (False, f"{FIRST} is cancelling, which is not paused"),
    (ROLLING, A): (False, f"{FIRST} is rolling back; {LATER}"),
    (ROLLING, C): (
        True,
        f"{FIRST} is cancelling: its rollback stops, no new batch begins, and moves in progress are taken back; {STAY}",
    ),
    (ROLLING, R): (True, f"{FIRST} is rolling back already"),
    (ROLLING, P): (True, f"{FIRST}: no new batch of it begins; moves in progress continue"),
    (ROLLING, G): (True, f"{FIRST} is not paused"),
    (DONE, A): (True, SECOND_OK),
    (DONE, C): (False, f"{FIRST} is done, so there is nothing to cancel"),
    (DONE, R): (True, f"{FIRST} is done; {BACK} moves 1 partition back"),
    (DONE, P): (False, f"{FIRST} is done, so there is nothing to pause"),
    (DONE, G): (False, f"{FIRST} is done, so there is nothing to resume"),
    (CANCELLED, A): (True, SECOND_OK),
    (CANCELLED, C): (True, f"{FIRST} is cancelled already"),
    (CANCELLED, R): (True, f"{FIRST} is cancelled; {BACK} moves 1 partition back"),
    (CANCELLED, P): (False, f"{FIRST} is cancelled, so there is nothing to pause"),
    (CANCELLED, G): (False, f"{FIRST} is cancelled, so there is nothing to resume"),
    (FAILED, A): (True, SECOND_OK),
    (FAILED, C): (False, f"{FIRST} has failed, so there is nothing to cancel"),
    (FAILED, R): (True, f"{FIRST} has failed; {BACK} moves 1 partition back"),
    (FAILED, P): (False, f"{FIRST} has failed, so there is nothing to pause"),
    (FAILED, G): (False, f"{FIRST} has failed, so there is nothing to resume"),
    (ROLLED, A): (True, SECOND_OK),
    (ROLLED, C): (False, f"{FIRST} is rolled back, so there is nothing to cancel"),
    (ROLLED, R): (True, f"{FIRST} is rolled back already"),
    (ROLLED, P): (False, f"{FIRST} is rolled back, so there is nothing to pause"),
    (ROLLED, G): (False, f"{FIRST} is rolled back, so there is nothing to resume"),
    (AGAIN, A): (True, f"{SECOND} was approved by ann@desk already"),
    (AGAIN, C): (True, f"{SECOND} had not begun; its approval is void, and no rule approves it"),
    (AGAIN, R): (True, f"{FIRST} is rolled back already"),
    (AGAIN, P): (False, f"{FIRST} is rolled back, so there is nothing to pause"),
    (AGAIN, G): (False, f"{FIRST} is rolled back, so there is nothing to resume"),
}  # fmt: skip
STATES: tuple[PlanState | str, ...] = (UNKNOWN, NEVER, APPROVED, *PlanState, AGAIN)


def test_the_table_has_every_state_and_every_verb() -> None:
    assert set(TABLE) == set(itertools.product(STATES, (A, C, R, P, G)))


@pytest.mark.parametrize(("state", "verb"), TABLE, ids=[f"{verb.value}, {state}" for state, verb in TABLE])
def test_the_answer_to_every_command_in_every_state(state: PlanState | str, verb: CommandVerb) -> None:
    _, answer = after_command(journal_with_plan(state), verb, "c1", "p-nothing" if state == UNKNOWN else FIRST)
    assert (answer.done, answer.sentence) == TABLE[state, verb]


@pytest.mark.parametrize("state", [one for one in PlanState if one not in ENDED])
@pytest.mark.parametrize("verb", [C, R, P, G])
@pytest.mark.parametrize("paused", [False, True])
def test_the_machine_does_what_the_answer_says(state: PlanState, verb: CommandVerb, *, paused: bool) -> None:
    """Heard by the machine that runs, from the same journal."""
    view = journal(plan(state, paused=paused), at_ms=NOW_MS - MINUTE)
    result = apply_commands([ask(verb, MOVE)], view, STANDING, LIMITS, NOW_MS)
    machine, _ = resume(plan_entries.open_records(view), ReassignmentPolicy())
    (before,) = machine.records.plans
    told: list[Command_] = []
    for command in result.commands:
        machine, commands = step(machine._replace(waiting=None), command, ReassignmentPolicy())
        told += commands
    changed = [
        change
        for it in told
        if isinstance(it, AppendJournal)
        for change in it.changes
        if isinstance(change, ReassignmentPlan)
    ]
    answer = done(result, view)
    after = changed[0] if changed else before
    shown = {C: after.state is CANCELLING, R: after.state is ROLLING, P: after.paused, G: not after.paused}
    assert shown[verb] if answer.done else not changed
    assert bool(changed) is bool(result.commands)
    assert not changed or after.heard == "c1"


def test_commands_of_one_moment_are_answered_one_after_the_other_as_the_machine_hears_them() -> None:
    wishes = [ask(verb, MOVE, id_=f"c{at}") for at, verb in enumerate((C, P, R, C, R, P))]
    result = apply_commands(wishes, journal_with_plan(OPEN), STANDING, LIMITS, NOW_MS)
    view = journal(*result.writes, at_ms=NOW_MS, view=journal_with_plan(OPEN))
    assert [answer.sentence.partition(":")[0] for _, answer in history(view)] == [
        f"{FIRST} is cancelling", f"{FIRST} is cancelling, which is not paused", f"{FIRST} is rolling back",
        f"{FIRST} is cancelling", f"{FIRST} is rolling back", FIRST,
    ]  # fmt: skip
    assert replay_undelivered(view) == (
        CommandReceived(PlanCommand.ROLLBACK, FIRST, "ann@desk", "c4"),
        CommandReceived(PlanCommand.PAUSE, FIRST, "ann@desk", "c5"),
    )

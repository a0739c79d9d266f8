"""Commands of operators for tests: their proposals, commands as an inbox hands them out, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agent.execute.commands.apply import CommandEffects
from agent.execute.commands.command_context import CommandOrigin
from agent.journal import plan_entries
from agent.journal.approvals import plan_hash
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, answer_to, command_to_json
from agent.journal.entries import JournalState, JournalWrite
from agent.values.limits import ApproveLimits, Limits
from agent.values.proposal import Proposal
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentTarget
from tests.guard.test_judge import proposals_of, shared, swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

MINUTE = 60_000
(MOVE,) = proposals_of(shared().snapshot())
(TRIGGER,) = proposals_of(swapped().snapshot())
STANDING = (MOVE, TRIGGER)
LIMITS = Limits()
TWO = Limits(approve=ApproveLimits(second_person=True))
TARGET = ReassignmentTarget(tp("t-0"), "id", (1, 4), (1, 2), 1_000, gain=3.0)
EMPTY: JournalState = {}


class InboxEntry(NamedTuple):
    """A command as an inbox hands it out."""

    id: str
    value: Mapping[str, Any]
    after: JournalWrite
    came: CommandOrigin = CommandOrigin()


def ask(
    verb: CommandVerb, proposal: Proposal | str | None = None, *, who: str = "ann@desk", id_: str = "c1", **more: Any
) -> InboxEntry:
    name = proposal.id if isinstance(proposal, Proposal) else proposal
    digest = plan_hash(proposal) if isinstance(proposal, Proposal) else None
    command = OperatorCommand(id_, verb, who, NOW_MS, name, digest)._replace(**more)
    return InboxEntry(
        id_, command_to_json(command), JournalWrite("command-position", "offset", {"next": 1}), CommandOrigin(owner=who)
    )


def done(result: CommandEffects, view: JournalState = EMPTY, name: str = "c1") -> LeaderAnswer:
    """The answer as the journal is going to have it."""
    found = answer_to(journal(*result.writes, at_ms=NOW_MS, view=view), name)
    assert found is not None
    return found.answer


def plan(state: PlanState = PlanState.OPEN, **changes: Any) -> tuple[JournalWrite, ...]:
    return plan_entries.change_writes(
        ReassignmentPlan(MOVE.id, (TARGET,), state, approved_by="ann@desk", order=7)._replace(**changes)
    )


def in_journal(*writes: JournalWrite | tuple[JournalWrite, ...]) -> JournalState:
    return journal(*writes, at_ms=NOW_MS - MINUTE)

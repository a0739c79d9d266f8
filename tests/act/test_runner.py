"""The runner asks once more, right before a request that begins something."""

from __future__ import annotations

from typing import Any

import pytest

from agent.act.reassign.runner import Runner
from agent.act.reassign.telling import Telling
from agent.errors import BadInput, NoBrokersYet
from agent.execute.reassign.machine import resume
from agent.execute.reassign.messages import Accepted, Alter, Answered, Elect, Kind, May, Move, Result
from agent.journal import moves, room
from agent.journal.attempts import next_attempt
from agent.journal.room import need_of
from agent.values.reassignment import Plan, PlanState, Policy, Target
from tests.act.triggers import MemoryJournal
from tests.snapshots import tp

P0 = tp("t-0")
PLAN = Plan("p-1", (Target(P0, "id", (1, 2), (3, 2)),), PlanState.ELECTING, order=1)
WHY = "ann@desk paused acting"


class NoHand:
    """Fails on every request."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


@pytest.mark.parametrize("act", [Elect((P0,)), Alter((Move(P0, "id", (1, 2), (3, 2)),))])
@pytest.mark.parametrize("may", [May(begin=False, sentence=WHY), May(begin=True, held=(("p-1", WHY),))])
def test_what_would_begin_is_not_sent_after_a_pause_was_answered(act: Elect | Alter, may: May) -> None:
    journal = MemoryJournal()
    journal.append(*moves.write(PLAN))
    runner = Runner(journal, NoHand(), Policy(), Telling(), may=lambda: may)  # type: ignore[arg-type]
    runner._state, _ = resume(moves.read(journal.view()), Policy())
    assert runner._act(act) == Answered((Result(P0, Kind.NOT_SENT, WHY),))


class SilentHand:
    """No broker answers."""

    def describe_brokers(self, _: int) -> None:
        raise NoBrokersYet("no broker answers")


def test_a_plan_that_the_journal_has_dropped_is_accepted_as_a_new_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt has its name again; the agent that carried it out months ago must not refuse it in silence."""
    monkeypatch.setattr(moves, "KEEP_PLANS", 1)
    journal = MemoryJournal()
    done = PLAN._replace(state=PlanState.DONE, moved="1")
    journal.append(*moves.write(done), *moves.write(done._replace(proposal_id="p-2", order=2)))
    runner = Runner(journal, SilentHand(), Policy(), Telling(), may=lambda: May(begin=True))  # type: ignore[arg-type]
    runner.resume()
    runner.hear(Accepted(PLAN))
    assert [plan.state for plan in moves.plans(journal.view())] == [PlanState.DONE] * 2, "it was accepted before"
    journal.append(*moves.tidy(journal.view()))
    assert str(next_attempt(moves.plans(journal.view()), journal.view(), "p-1")) == "p-1"
    runner.hear(Accepted(PLAN._replace(state=PlanState.OPEN)))
    assert moves.plan_of(journal.view(), "p-1") == PLAN._replace(state=PlanState.OPEN)


def test_a_plan_begins_only_where_there_is_still_room_beside_those_that_were_accepted_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard lets several plans of one planning begin by the same journal, in which none of them is yet."""
    monkeypatch.setattr(room, "MOST_OPEN_BYTES", need_of(PLAN).bytes + 1)
    journal = MemoryJournal()
    runner = Runner(journal, SilentHand(), Policy(), Telling(), may=lambda: May(begin=True))  # type: ignore[arg-type]
    runner.resume()
    plan = PLAN._replace(state=PlanState.OPEN)
    runner.hear(Accepted(plan))
    with pytest.raises(BadInput, match="it can begin when one of them has ended"):
        runner.hear(Accepted(plan._replace(proposal_id="p-2")))
    assert moves.plans(journal.view()) == (plan,)
    runner.resume()
    journal.append(*moves.changed(journal.view(), [plan._replace(state=PlanState.DONE)]))
    runner.resume()
    runner.hear(Accepted(plan._replace(proposal_id="p-2")))
    assert [one.proposal_id for one in moves.read(journal.view()).plans] == ["p-2"]

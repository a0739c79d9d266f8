"""The runner asks once more, right before a request that begins something."""

from __future__ import annotations

from typing import Any

import pytest

from agent.act.runner import Runner
from agent.act.telling import Telling
from agent.execute.machine import resume
from agent.execute.messages import Alter, Answered, Elect, Kind, May, Move, Result
from agent.journal import moves
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

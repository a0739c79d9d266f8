"""The driver asks once more, right before a request that begins something."""

from __future__ import annotations

from typing import Any

import pytest

from agent.act.reassign.machine_driver import MachineDriver
from agent.act.reassign.reassignment_executor import ExecutorReporter
from agent.errors import BadInput, NoBrokersYet
from agent.execute.reassign.machine import resume
from agent.execute.reassign.messages import (
    AlterReassignments,
    BatchPermission,
    ElectLeaders,
    NewPartitionReassignment,
    PlanAccepted,
    RequestDone,
    RequestFate,
    RequestResult,
)
from agent.journal import plan_entries, targets
from agent.journal.approvals import next_attempt
from agent.journal.targets import plan_size
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentPolicy, ReassignmentTarget
from tests.act.triggers import MemoryJournal
from tests.snapshots import tp

P0 = tp("t-0")
PLAN = ReassignmentPlan("p-1", (ReassignmentTarget(P0, "id", (1, 2), (3, 2)),), PlanState.ELECTING, order=1)
WHY = "ann@desk paused acting"


class NoAdminClient:
    """Fails on every request."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


@pytest.mark.parametrize(
    "act", [ElectLeaders((P0,)), AlterReassignments((NewPartitionReassignment(P0, "id", (1, 2), (3, 2)),))]
)
@pytest.mark.parametrize(
    "may", [BatchPermission(begin=False, sentence=WHY), BatchPermission(begin=True, held=(("p-1", WHY),))]
)
def test_what_would_begin_is_not_sent_after_a_pause_was_answered(
    act: ElectLeaders | AlterReassignments, may: BatchPermission
) -> None:
    journal = MemoryJournal()
    journal.append(*plan_entries.change_writes(PLAN))
    driver = MachineDriver(journal, NoAdminClient(), ReassignmentPolicy(), ExecutorReporter(), may=lambda: may)  # type: ignore[arg-type]
    driver._state, _ = resume(plan_entries.open_records(journal.view()), ReassignmentPolicy())
    assert driver._act(act) == RequestDone((RequestResult(P0, RequestFate.NOT_SENT, WHY),))


class SilentAdminClient:
    """No broker answers."""

    def describe_brokers(self, _: int) -> None:
        raise NoBrokersYet("no broker answers")


def test_a_plan_that_the_journal_has_dropped_is_accepted_as_a_new_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt has its name again; the agent that carried it out months ago must not refuse it in silence."""
    monkeypatch.setattr(plan_entries, "KEEP_PLANS", 1)
    journal = MemoryJournal()
    done = PLAN._replace(state=PlanState.DONE, moved="1")
    journal.append(
        *plan_entries.change_writes(done), *plan_entries.change_writes(done._replace(proposal_id="p-2", order=2))
    )
    driver = MachineDriver(
        journal, SilentAdminClient(), ReassignmentPolicy(), ExecutorReporter(), may=lambda: BatchPermission(begin=True)
    )  # type: ignore[arg-type]
    driver.resume()
    driver.handle(PlanAccepted(PLAN))
    assert [plan.state for plan in plan_entries.plans(journal.view())] == [PlanState.DONE] * 2, "it was accepted before"
    journal.append(*plan_entries.compaction_writes(journal.view()))
    assert str(next_attempt(plan_entries.plans(journal.view()), journal.view(), "p-1")) == "p-1"
    driver.handle(PlanAccepted(PLAN._replace(state=PlanState.OPEN)))
    assert plan_entries.plan_of(journal.view(), "p-1") == PLAN._replace(state=PlanState.OPEN)


def test_a_plan_begins_only_where_there_is_still_room_beside_those_that_were_accepted_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard lets several plans of one planning begin by the same journal, in which none of them is yet."""
    monkeypatch.setattr(targets, "MOST_OPEN_BYTES", plan_size(PLAN).bytes + 1)
    journal = MemoryJournal()
    driver = MachineDriver(
        journal, SilentAdminClient(), ReassignmentPolicy(), ExecutorReporter(), may=lambda: BatchPermission(begin=True)
    )  # type: ignore[arg-type]
    driver.resume()
    plan = PLAN._replace(state=PlanState.OPEN)
    driver.handle(PlanAccepted(plan))
    with pytest.raises(BadInput, match="it can begin when one of them has ended"):
        driver.handle(PlanAccepted(plan._replace(proposal_id="p-2")))
    assert plan_entries.plans(journal.view()) == (plan,)
    driver.resume()
    journal.append(*plan_entries.changed(journal.view(), [plan._replace(state=PlanState.DONE)]))
    driver.resume()
    driver.handle(PlanAccepted(plan._replace(proposal_id="p-2")))
    assert [one.proposal_id for one in plan_entries.open_records(journal.view()).plans] == ["p-2"]

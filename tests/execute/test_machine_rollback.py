"""What operators say of a plan that rolls back, and what a plan that ended says of itself."""

from __future__ import annotations

import pytest

from agent.execute.reassign.messages import (
    AlterThrottles,
    BatchPermission,
    CancelReassignments,
    CommandReceived,
    FinishPlan,
    PlanCommand,
    RequestDone,
    RequestFate,
    RequestResult,
)
from agent.values.reassignment import PlanState, ReassignmentPlan, moved_of
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import a_part, carried_out
from tests.execute.live_machine import MOVE, Live


def rolled_back_twice() -> Live:
    """Two partitions were moved; the first is back, the second is about to be moved back."""
    first, second = MOVE, MOVE._replace(id=TopicPartition("t", 1))
    live = Live(ReassignmentPlan("p", (first, second), max_moves=1), parts=(a_part(1, 2), a_part(1, 2)))
    for _ in range(2):
        live.wait(5)
        live.catch_up()
    live.tell(BatchPermission(begin=False, sentence="blackout until 06:00"))
    live.wait(5)
    live.tell(CommandReceived(PlanCommand.ROLLBACK, "p", "ann", "c1"))
    live.wait(5)
    assert [part.replicas for part in live.cluster.parts] == [(3, 2), (3, 2)]
    assert "no new batch: blackout until 06:00" in live.sentences()
    live.tell(BatchPermission(begin=True))
    live.wait(5)
    live.catch_up()
    live.wait(5)
    assert [part.moving for part in live.cluster.parts] == [False, True]
    return live


def test_a_rollback_is_cancelled_and_its_moves_are_taken_back_and_what_is_back_stays():
    live = rolled_back_twice()
    live.tell(CommandReceived(PlanCommand.CANCEL, "p", "bob", "c2"))
    live.wait(10)
    assert [part.replicas for part in live.cluster.parts] == [(1, 2), (3, 2)]
    assert live.finished == [
        FinishPlan(
            "p", PlanState.CANCELLED, "cancel requested by bob; 1 partition moved as planned; 1 partition moved back"
        )
    ]


def test_a_plan_that_ended_says_what_it_has_left_moved():
    live = rolled_back_twice()
    live.tell(CommandReceived(PlanCommand.CANCEL, "p", "bob", "c2"))
    live.wait(10)
    assert [moved_of(plan) for plan in live.ended] == [{TopicPartition("t", 1)}]


def test_a_rollback_that_was_cancelled_and_asked_for_again_takes_the_rest_back():
    def busy(cluster, asked):
        if isinstance(asked, CancelReassignments):
            return cluster, RequestDone(tuple(RequestResult(one, RequestFate.RETRY) for one in asked.partitions))
        return carried_out(cluster, asked)

    live = rolled_back_twice()
    live.answer_as = busy
    live.tell(CommandReceived(PlanCommand.CANCEL, "p", "bob", "c2"))
    live.tell(CommandReceived(PlanCommand.ROLLBACK, "p", "ann", "c3"))
    live.answer_as = carried_out
    for _ in range(3):
        live.wait(5)
        live.catch_up()
    assert [part.replicas for part in live.cluster.parts] == [(1, 2), (1, 2)]
    assert live.finished == [
        FinishPlan("p", PlanState.ROLLED_BACK, "rollback requested by ann; 2 partitions moved back")
    ]


@pytest.mark.parametrize(
    "held", [CommandReceived(PlanCommand.PAUSE, "p"), BatchPermission(begin=False, sentence="ann paused acting")]
)
def test_a_pause_holds_the_batches_that_take_back_and_what_moves_goes_on(held):
    live = rolled_back_twice()
    live.tell(held)
    live.catch_up()
    live.wait(10)
    assert [part.replicas for part in live.cluster.parts] == [(1, 2), (1, 2)]
    assert not live.finished
    live.tell(
        CommandReceived(PlanCommand.RESUME, "p") if isinstance(held, CommandReceived) else BatchPermission(begin=True)
    )
    live.wait(5)
    assert live.finished[0].state is PlanState.ROLLED_BACK


def test_a_back_batch_that_was_announced_is_withdrawn_when_a_pause_comes_before_it_is_sent():
    live = Live()
    live.wait(5)
    live.catch_up()
    live.tell(BatchPermission(begin=False, sentence="x"))
    live.wait(5)
    live.tell(CommandReceived(PlanCommand.ROLLBACK, "p"))

    def paused_while_set(cluster, asked):
        if isinstance(asked, AlterThrottles):
            live.state = live.state._replace(may=BatchPermission(begin=False, sentence="ann paused acting"))
        return carried_out(cluster, asked)

    live.answer_as = paused_while_set
    live.acts.clear()
    live.tell(BatchPermission(begin=True))
    live.wait(15)  # brokers may show late what was set, so it is not looked for at once
    assert "AlterReassignments" not in live.kinds()
    assert live.cluster.settings == ()


def test_a_command_that_is_repeated_counts_once():
    live = Live()
    live.tell(CommandReceived(PlanCommand.PAUSE, "p", "ann", "c1"))
    live.tell(CommandReceived(PlanCommand.RESUME, "p", "ann", "c2"))
    live.tell(CommandReceived(PlanCommand.RESUME, "p", "ann", "c2"))
    assert (live.journal.plans[0].paused, live.journal.plans[0].heard) == (False, "c2")
    assert live.sentences().count("resume p: nothing to do") == 1

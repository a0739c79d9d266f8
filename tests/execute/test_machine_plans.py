"""Several plans: one that waits is not in the way of another, and one that never began ends."""

from __future__ import annotations

import pytest

from agent.execute.reassign.messages import (
    BatchPermission,
    CommandReceived,
    FinishPlan,
    PlanAccepted,
    PlanCommand,
    RequestDone,
    RequestFate,
    RequestResult,
)
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan, ReassignmentTarget
from tests.execute.abstract_cluster import a_part, carried_out, view_of
from tests.execute.live_machine import MOVE, OTHER, P0, Live


def two(*events: object, first: ReassignmentTarget = MOVE, second: ReassignmentTarget = OTHER) -> Live:
    """Two plans, and what happened before anything of them may begin."""
    live = Live(ReassignmentPlan("p", (first,)), parts=(a_part(1, 2), a_part(1, 2)), min_isr=3)
    live.tell(PlanAccepted(ReassignmentPlan("q", (second,))))
    for event in events:
        live.tell(event)
    live.cluster = live.cluster._replace(min_isr=1)
    return live


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(BatchPermission(begin=True, held=(("p", "t is excluded"),)), id="the guard holds the first"),
        pytest.param(CommandReceived(PlanCommand.PAUSE, "p"), id="the first is paused"),
    ],
)
def test_a_plan_that_waits_is_not_in_the_way_of_the_next_one(held):
    live = two(held)
    live.wait(10)
    assert [part.moving for part in live.cluster.parts] == [False, True]
    live.tell(BatchPermission(begin=True))
    live.tell(CommandReceived(PlanCommand.RESUME, "p"))
    live.catch_up()
    live.wait(10)
    live.catch_up()
    live.wait(10)
    assert {it.proposal_id: it.state for it in live.finished} == {"p": PlanState.DONE, "q": PlanState.DONE}


def test_a_plan_that_cannot_be_seen_or_whose_broker_is_down_is_not_in_the_way_of_the_next_one():
    blinded = two()
    blinded.look_as = lambda cluster: view_of(cluster)._replace(
        partitions=tuple(it for it in view_of(cluster).partitions if it.id != P0)
    )
    blinded.wait(20)
    assert [part.moving for part in blinded.cluster.parts] == [False, True]
    down = two(first=MOVE._replace(after=(4, 2)))
    down.wait(20)
    assert [part.moving for part in down.cluster.parts] == [False, True]


def test_each_plan_says_once_what_it_waits_for():
    live = two(BatchPermission(begin=True, held=(("p", "t is excluded"), ("q", "outside the windows"))))
    live.wait(60)
    told = [(say.proposal_id, say.sentence) for say in live.notices]
    assert told.count(("p", "no new batch: t is excluded")) == 1
    assert told.count(("q", "no new batch: outside the windows")) == 1


def test_a_plan_about_the_same_partitions_waits_for_the_earlier_one():
    live = two(BatchPermission(begin=True, held=(("p", "t is excluded"),)), second=MOVE.back())
    live.wait(30)
    assert not live.finished, "its partition has the planned replicas already, but not for long"
    live.tell(BatchPermission(begin=True))
    live.wait(10)
    live.catch_up()
    live.wait(10)
    live.catch_up()
    live.wait(10)
    assert [it.proposal_id for it in live.finished] == ["p", "q"]
    assert live.cluster.parts[0].replicas == (1, 2)


def test_a_plan_of_which_no_batch_was_sent_ends_with_its_approval_and_one_that_has_begun_goes_on():
    why = "its approval ended 1 min ago, and no batch of it was sent"
    live = two(BatchPermission(begin=True, held=(("q", "outside the windows"),)))
    live.wait(10)
    assert [part.moving for part in live.cluster.parts] == [True, False]
    live.tell(BatchPermission(begin=True, lapsed=(("p", why), ("q", why))))
    live.wait(10)
    assert live.finished == [FinishPlan("q", PlanState.CANCELLED, why)]
    live.catch_up()
    live.wait(10)
    assert live.finished[1] == FinishPlan("p", PlanState.DONE, "1 partition moved as planned")


def test_an_announced_batch_is_withdrawn_when_its_approval_ends_before_it_is_sent():
    def unset(cluster, asked):
        return cluster, RequestDone(tuple(RequestResult(it.resource, RequestFate.NOT_SENT) for it in asked.settings))

    live = Live(answer_as=unset)
    assert live.journal.batches[0].state is BatchState.INTENT
    live.answer_as = carried_out
    live.tell(BatchPermission(begin=True, lapsed=(("p", "its approval ended"),)))
    live.wait(10)
    assert live.finished == [FinishPlan("p", PlanState.CANCELLED, "its approval ended")]
    assert [(batch.sendings, batch.sentence) for batch in live.closed] == [(0, "its approval ended")]
    assert live.cluster.settings == ()
    assert not live.cluster.parts[0].moving

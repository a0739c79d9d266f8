"""An open batch, one step after the other: its rate, its end, and what its plan is like when it is given up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    CancelReassignments,
    CommandReceived,
    FinishPlan,
    PlanAccepted,
    PlanCommand,
    ReassignmentView,
    RequestDone,
    RequestFate,
    RequestResult,
)
from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan, ReassignmentRecords, ThrottleDebt
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import a_part, carried_out, lost, view_of
from tests.execute.live_machine import MOVE, OTHER, POLICY, Live

FOREIGN = ReassignmentView(TopicPartition("u", 7), (1, 2, 3), (3,), (1,))
RATES = tuple(
    (ThrottleResource(broker=broker), key, "7")
    for broker, key in ((1, LEADER_RATE), (2, LEADER_RATE), (3, FOLLOWER_RATE))
)


def not_sent(cluster, asked):
    """Each throttle was too late to be sent."""
    if not isinstance(asked, AlterThrottles):
        return carried_out(cluster, asked)
    return cluster, RequestDone(tuple(RequestResult(one.resource, RequestFate.NOT_SENT) for one in asked.settings))


def refused(cluster, asked):
    if not isinstance(asked, AlterThrottles):
        return carried_out(cluster, asked)
    return cluster, RequestDone(tuple(RequestResult(one.resource, RequestFate.REFUSED) for one in asked.settings))


def busy(cluster, asked):
    """The controller takes no move now."""
    if not isinstance(asked, AlterReassignments):
        return carried_out(cluster, asked)
    return cluster, RequestDone(tuple(RequestResult(one.id, RequestFate.RETRY, "busy") for one in asked.moves))


def unanswered(kind: type) -> Callable:
    """Requests of that kind are lost."""
    return lambda cluster, asked: (cluster, RequestDone(())) if isinstance(asked, kind) else carried_out(cluster, asked)


# --- what is stuck


def test_a_batch_whose_rates_are_all_another_tools_keeps_its_own_when_it_is_stuck():
    live = Live(settings=RATES)
    live.wait(310)
    assert live.alarms() == ["no progress for 300 s: t-0"]
    assert (live.journal.batches[0].rate_bytes_per_s, live.journal.batches[0].repaced) == (10, True)
    assert live.cluster.settings[: len(RATES)] == RATES


@pytest.mark.parametrize(
    ("own", "raised"),
    [
        pytest.param(3, 6, id="twice the rate"),
        pytest.param(7, 14, id="twice the rate, below the ceiling"),
        pytest.param(14, 15, id="no more than the ceiling"),
        pytest.param(15, None, id="at the ceiling already"),
        pytest.param(40, None, id="an operator's own above the ceiling"),
    ],
)
def test_the_rate_of_a_stuck_batch_is_doubled_up_to_the_ceiling_and_never_lowered(own, raised):
    live = Live(ReassignmentPlan("p", (MOVE,), throttle_bytes_per_s=own))
    live.wait(310)
    assert live.journal.batches[0].rate_bytes_per_s == (raised or own)
    set_ = {value for _, key, value in live.cluster.settings if key in (LEADER_RATE, FOLLOWER_RATE)}
    assert set_ == {str(raised or own)}
    assert live.kinds().count("AlterThrottles") == (1 if raised is None else 2)


def test_the_rate_of_a_stuck_batch_is_doubled_right_when_its_patience_is_over():
    live = Live()
    waited_ms = 0
    while not live.alarms():
        live.wait(0.5)
        waited_ms += 500
    assert waited_ms == POLICY.limits.stuck_after_ms


def test_the_first_five_of_the_stuck_partitions_are_named():
    moves = tuple(MOVE._replace(id=TopicPartition("t", number)) for number in range(7))
    live = Live(ReassignmentPlan("p", moves))
    live.wait(310)
    moving = len(live.journal.batches[0].targets)
    named = ", ".join(f"t-{number}" for number in range(min(5, moving)))
    assert live.alarms() == [f"no progress for 300 s: {named}; the rate is now 15 B/s"]


def test_moves_that_are_being_taken_back_are_not_called_stuck():
    live = Live(answer_as=unanswered(CancelReassignments))
    live.tell(CommandReceived(PlanCommand.CANCEL, "p"))
    live.wait(400)
    assert not any("no progress" in sentence for sentence in live.alarms())
    assert live.journal.batches[0].repaced is False


# --- what is given up


def test_a_paused_plan_that_is_given_up_is_not_paused_any_more_and_comes_to_its_end():
    """A paused plan has no turn: it would never end behind another one."""
    live = Live()
    live.tell(CommandReceived(PlanCommand.PAUSE, "p"))
    live.tell(PlanAccepted(ReassignmentPlan("q", (MOVE._replace(id=TopicPartition("t", 1)),))))
    live.cluster = live.cluster._replace(min_isr=2, parts=(live.cluster.parts[0]._replace(isr=frozenset({1})),))
    assert live.journal.plans[0].paused
    live.wait(100)
    (ended,) = live.ended
    assert (ended.proposal_id, ended.state, ended.paused) == ("p", PlanState.CANCELLED, False)
    assert ended.sentence.startswith("t-0 is under its min ISR")


@pytest.mark.parametrize(
    ("seconds", "given_up"), [pytest.param(58, False, id="within the grace"), pytest.param(66, True, id="after it")]
)
def test_moves_of_a_partition_under_its_min_isr_are_taken_back_after_the_grace(seconds, given_up):
    live = Live()
    live.cluster = live.cluster._replace(min_isr=2, parts=(live.cluster.parts[0]._replace(isr=frozenset({1})),))
    live.wait(seconds)
    assert ("CancelReassignments" in live.kinds()) is given_up


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        pytest.param(
            {"up": frozenset({1, 2})},
            "a broker that gets a copy of t-0 is down",
            id="a broker is down",
        ),
        pytest.param(
            {"min_isr": 2, "parts": (a_part(1, 2)._replace(isr=frozenset({1})),)},
            "t-0 is under its min ISR",
            id="a partition is under its min ISR",
        ),
        pytest.param(
            {"min_isr": 2, "parts": (a_part(1, 2)._replace(isr=frozenset(), leader=None),)},
            "t-0 has no leader",
            id="a partition has no leader",
        ),
    ],
)
def test_an_announced_batch_is_withdrawn_unsent_and_says_why(state, sentence):
    live = Live(answer_as=not_sent)
    assert live.journal.batches[0].state is BatchState.INTENT
    live.cluster = live.cluster._replace(**state)
    live.wait(3)
    (batch,) = live.closed
    assert (batch.sendings, batch.ends, batch.sentence) == (0, (), sentence)
    assert "AlterReassignments" not in live.kinds()
    assert live.journal.plans[0].state is PlanState.OPEN


def test_what_the_controller_does_not_take_waits_for_a_broker_that_is_down():
    live = Live(answer_as=unanswered(AlterReassignments))
    live.cluster = lost(live.cluster, 3)
    live.wait(30)
    said = [say.sentence for say in live.notices]
    assert "a broker that gets a copy of t-0 is down" in "\n".join([*said, *(one.sentence for one in live.closed)])
    assert live.kinds().count("AlterReassignments") == 1


def test_a_sent_batch_of_which_nothing_began_is_given_up_uncounted_while_another_tool_moves():
    live = Live(answer_as=busy)
    live.look_as = lambda cluster: view_of(cluster)._replace(moves=(FOREIGN,))
    live.wait(20)
    assert [(one.sendings, one.sentence) for one in live.closed] == [
        (0, "1 partition moved by another tool, u-7 first")
    ]


def test_a_sent_batch_whose_answer_was_lost_is_given_up_and_counts():
    live = Live(answer_as=unanswered(AlterReassignments))
    live.look_as = lambda cluster: view_of(cluster)._replace(moves=(FOREIGN,))
    live.wait(40)
    assert [(one.sendings, one.sentence) for one in live.closed] == [
        (1, "1 partition moved by another tool, u-7 first")
    ]


# --- cancels


def test_a_cancel_of_a_former_leader_is_not_sent_again_while_it_may_still_take_effect():
    live = Live(answer_as=unanswered(CancelReassignments))
    live.tell(CommandReceived(PlanCommand.CANCEL, "p"))
    live.wait(1)
    assert live.kinds().count("CancelReassignments") == 1
    live.lead()
    live.wait(8)
    assert live.kinds().count("CancelReassignments") == 1
    live.answer_as = carried_out
    live.wait(15)
    assert live.kinds().count("CancelReassignments") == 2
    assert live.finished[0].state is PlanState.CANCELLED


def test_each_cancelled_move_is_told_once():
    live = Live(ReassignmentPlan("p", (MOVE, OTHER)))
    live.tell(CommandReceived(PlanCommand.CANCEL, "p", "ann"))
    live.wait(20)
    assert [sentence for sentence in live.alarms() if "its move is cancelled" in sentence] == [
        "t-0: cancel requested by ann; its move is cancelled",
        "t-1: cancel requested by ann; its move is cancelled",
    ]
    assert live.finished == [
        FinishPlan("p", PlanState.CANCELLED, "cancel requested by ann; 2 partitions back on the former replicas")
    ]


def test_a_plan_whose_throttle_cannot_be_set_is_cancelled_after_a_few_tries():
    live = Live(answer_as=refused)
    live.wait(90)
    assert live.kinds() == ["AlterThrottles"] * POLICY.max_configurings
    assert live.cluster.parts == (a_part(1, 2),)
    assert live.finished[0].state is PlanState.CANCELLED


# --- what was sent, and what was refused


def test_a_sent_batch_is_acknowledged_once_all_of_it_is_seen_to_move():
    live = Live(answer_as=unanswered(AlterReassignments))
    live.wait(3)
    assert live.journal.batches[0].state is BatchState.SENT
    live.answer_as = carried_out
    live.wait(20)
    assert live.journal.batches[0].state is BatchState.ACKED


def test_an_alarm_on_what_the_controller_refuses_names_the_plan_or_none_where_only_a_throttle_is_left():
    live = Live(answer_as=refused)
    live.wait(3)
    assert {say.proposal_id for say in live.notices if "the controller refuses" in say.sentence} == {"p"}
    live.notices.clear()
    live.journal = ReassignmentRecords(debts=(ThrottleDebt(*RATES[0][:2], 7, None, "p", 1),))
    live.cluster = live.cluster._replace(settings=RATES[:1])
    live.lead()
    live.wait(60)
    assert [(say.proposal_id, say.sentence) for say in live.notices if say.alarm] == [
        ("", "broker 1: the controller refuses")
    ]

"""What an executor says and does in single situations; that it is safe in all of them is the model checker's part."""

from __future__ import annotations

import pytest

from agent.execute.reassign.machine import resume, step
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    BatchPermission,
    ClusterRead,
    CommandReceived,
    FinishPlan,
    JournalAppended,
    LeaderFenced,
    PlanAccepted,
    PlanCommand,
    ReadCluster,
    RequestDone,
    RequestFate,
    RequestResult,
    TimePassed,
)
from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan, ReassignmentRecords
from agent.values.throttles import SeenThrottle, ThrottleResource
from tests.execute.abstract_cluster import Cluster, a_part, carried_out, lost, view_of
from tests.execute.live_machine import MOVE, ORDER, POLICY, Live


def test_a_move_is_throttled_sent_cleared_and_told():
    live = Live()
    live.wait(3)
    assert live.kinds() == ["AlterThrottles", "AlterReassignments"]
    live.catch_up()
    live.wait(3)
    assert live.kinds() == ["AlterThrottles", "AlterReassignments", "AlterThrottles"]
    assert live.cluster.settings == ()
    assert live.finished == [FinishPlan("p", PlanState.DONE, "1 partition moved as planned")]
    assert live.state.idle
    assert "batch 1: 1 partition, 1.0 kB to copy; most to broker 3: 1.0 kB; 100 s at 10 B/s" in [
        say.sentence for say in live.notices
    ]


def test_leaders_alone_move_no_data_and_are_elected_at_the_end():
    live = Live(ORDER)
    live.wait(10)
    assert live.kinds() == ["AlterReassignments", "ElectLeaders"]
    assert live.cluster.parts[0].leader == 2
    assert live.finished[0].state is PlanState.DONE


def test_a_leaders_plan_is_taken_back():
    live = Live(ORDER)
    live.tell(CommandReceived(PlanCommand.ROLLBACK, "p", "ann"))
    live.wait(10)
    assert live.cluster.parts[0].replicas == (1, 2)
    assert live.cluster.parts[0].leader == 1
    assert live.finished[0].state is PlanState.ROLLED_BACK
    assert "by ann" in live.finished[0].sentence


def test_what_is_stuck_is_named_re_paced_once_and_then_cancelled():
    live = Live()
    live.wait(305)
    assert "no progress for 300 s: t-0; the rate is now 15 B/s" in live.alarms()
    assert {value for _, key, value in live.cluster.settings if key in (LEADER_RATE, FOLLOWER_RATE)} == {"15"}
    assert "CancelReassignments" not in live.kinds()
    live.wait(310)
    assert "t-0: no progress; its move is cancelled" in live.alarms()
    assert live.kinds().count("CancelReassignments") == 1
    assert live.cluster.parts[0].replicas == (1, 2)
    assert live.cluster.settings == ()
    assert live.finished == [FinishPlan("p", PlanState.FAILED, "1 partition back on the former replicas")]


def test_a_move_whose_progress_is_unknown_is_not_taken_for_one_that_stands_still():
    live = Live()
    live.look_as = lambda cluster: view_of(cluster)._replace(bytes=())
    live.wait(3_000)
    assert live.kinds() == ["AlterThrottles", "AlterReassignments"]
    assert not live.alarms()
    assert "1 partition moving; the progress of t-0 is unknown: log dirs did not answer" in live.sentences()
    live.look_as = view_of
    live.wait(295)
    assert not live.alarms(), "its time begins when it is known"
    live.wait(10)
    assert any("no progress for 300 s: t-0" in sentence for sentence in live.alarms())


def test_a_copy_that_is_whole_or_on_a_broker_that_is_down_needs_no_size():
    live = Live(ReassignmentPlan("p", (MOVE._replace(before=(1, 2), after=(3, 4)),)), up=frozenset({1, 2, 3, 4}))
    part = live.cluster.parts[0]
    live.cluster = lost(live.cluster._replace(parts=(part._replace(isr=frozenset({1, 2, 3})),)), 4)
    live.look_as = lambda cluster: view_of(cluster)._replace(bytes=())
    live.wait(10)
    assert "progress of t-0 is unknown" not in live.sentences()


def test_a_dead_target_is_waited_for_and_then_its_move_is_cancelled():
    live = Live()
    live.cluster = lost(live.cluster, 3)
    live.wait(50)
    assert "CancelReassignments" not in live.kinds()
    live.wait(20)
    assert "t-0: a broker that gets a copy is down; its move is cancelled" in live.alarms()
    assert live.cluster.parts[0].replicas == (1, 2)
    # Its own throttle is taken away when it is back, and not before.
    assert [(it[0].name, it[1]) for it in live.cluster.settings] == [("3", FOLLOWER_RATE)]
    assert [debt.resource.broker for debt in live.journal.debts] == [3]
    live.wait(60)
    assert "1 throttle of rackwise stays set until it can be removed" in live.sentences()
    assert f"{FOLLOWER_RATE} of broker 3 cannot be reached now" in live.sentences()
    live.cluster = live.cluster._replace(up=frozenset({1, 2, 3}))
    live.wait(40)
    assert live.cluster.settings == ()
    assert live.state.idle


def test_a_cancel_that_would_be_unclean_is_kept_told_once_and_tried_again():
    live = Live()
    part = live.cluster.parts[0]
    live.cluster = live.cluster._replace(parts=(part._replace(isr=frozenset({3}), leader=3),))
    live.tell(CommandReceived(PlanCommand.CANCEL, "p"))
    live.wait(30)
    unclean = [sentence for sentence in live.alarms() if "unclean" in sentence]
    assert len(unclean) == 1
    assert live.kinds().count("CancelReassignments") > 1
    assert not live.finished
    live.cluster = live.cluster._replace(parts=(part,))
    live.wait(10)
    assert live.finished[0].state is PlanState.CANCELLED


def test_under_min_isr_nothing_begins_and_what_runs_goes_back_after_the_grace():
    idle = Live(min_isr=2, parts=(a_part(1, 2)._replace(isr=frozenset({1})),))
    idle.wait(10)
    assert idle.acts == []
    assert "no new batch: t-0 is under its min ISR" in idle.sentences()

    leaderless = Live()
    part = leaderless.cluster.parts[0]
    leaderless = Live(parts=(part._replace(leader=None),))
    leaderless.wait(10)
    assert "no new batch: t-0 has no leader" in leaderless.sentences()

    live = Live()
    live.cluster = live.cluster._replace(min_isr=3)
    live.wait(50)
    assert "CancelReassignments" not in live.kinds()
    live.wait(20)
    assert live.kinds().count("CancelReassignments") == 1
    assert live.finished[0].state is PlanState.CANCELLED
    assert live.cluster.parts[0].replicas == (1, 2)


def test_nothing_begins_in_a_blackout_or_pause_and_it_goes_on_afterwards():
    live = Live(min_isr=3)
    live.tell(BatchPermission(begin=False, sentence="blackout until 06:00"))
    live.cluster = live.cluster._replace(min_isr=1)
    live.wait(10)
    assert live.acts == []
    assert "no new batch: blackout until 06:00" in live.sentences()
    live.tell(CommandReceived(PlanCommand.PAUSE, "p"))
    live.tell(BatchPermission(begin=True))
    live.wait(10)
    assert live.acts == []
    assert live.journal.plans[0].paused
    live.tell(CommandReceived(PlanCommand.RESUME, "p"))
    live.wait(10)
    assert live.kinds() == ["AlterThrottles", "AlterReassignments"]


def test_a_throttle_that_cannot_be_set_ends_the_plan_before_anything_moves():
    def refused(cluster: Cluster, act: AlterThrottles) -> tuple[Cluster, RequestDone]:
        resources = sorted({setting.resource for setting in act.settings})
        return cluster, RequestDone(
            tuple(RequestResult(resource, RequestFate.REFUSED, "no right") for resource in resources)
        )

    live = Live(answer_as=refused)
    live.wait(60)
    assert set(live.kinds()) == {"AlterThrottles"}
    assert len(live.acts) == POLICY.max_configurings
    assert live.finished[0].state is PlanState.CANCELLED
    assert "cannot be set" in live.finished[0].sentence


def test_a_rate_for_the_whole_cluster_stays_and_is_told():
    default = SeenThrottle(ThrottleResource(broker=1), LEADER_RATE, None, "500")
    live = Live(look_as=lambda cluster: view_of(cluster)._replace(throttles=(default,)))
    assert f"{LEADER_RATE} of broker 1 stays 500, which rackwise did not set" in live.sentences()


def test_a_plan_is_accepted_once():
    live = Live()
    live.tell(PlanAccepted(ReassignmentPlan("p", (MOVE,))))
    assert "p is not accepted: it was accepted before" in live.sentences()
    assert len(live.journal.plans) == 1


def test_a_fenced_agent_asks_for_nothing_more():
    live = Live()
    live.tell(LeaderFenced())
    for event in (
        TimePassed(60_000),
        BatchPermission(begin=True),
        CommandReceived(PlanCommand.CANCEL, "p"),
        PlanAccepted(ReassignmentPlan("q", (MOVE,))),
    ):
        state, commands = step(live.state, event, POLICY)
        assert commands == ()
        assert state.fenced


def test_an_answer_that_nobody_waits_for_changes_nothing():
    state, _ = resume(ReassignmentRecords(), POLICY)
    for event in (JournalAppended(), RequestDone(()), ClusterRead(None)):
        assert step(state, event, POLICY) == (state, ())


def test_a_new_leader_adopts_what_moves_and_closes_nothing_before_late_requests_are_over():
    live = Live()
    unanswered = live.journal.batches[0]._replace(state=BatchState.SENT)
    live.journal = live.journal._replace(batches=(unanswered,))
    live.acts.clear()
    live.lead()
    live.catch_up()
    live.wait(8)
    assert live.acts == []
    assert live.journal.batches[0].state is not BatchState.CLOSED
    live.wait(15)
    assert live.finished[0].state is PlanState.DONE
    assert live.kinds() == ["AlterThrottles"]


@pytest.mark.parametrize(
    ("failed", "ends"),
    [
        pytest.param(
            ClusterRead(None, silent=True), False, id="no broker answered, so the time without a controller is none"
        ),
        pytest.param(ClusterRead(None), True, id="brokers that contradict each other for a moment prove nothing"),
    ],
)
def test_the_wait_for_late_requests_begins_anew_when_there_was_no_controller(failed, ends):
    live = Live()
    sent = live.journal.batches[0]._replace(state=BatchState.SENT)
    live.journal = live.journal._replace(batches=(sent,))
    live.lead()
    live.catch_up()
    live.wait(8)
    live.state, commands = step(live.state._replace(waiting=ReadCluster((), ())), failed, POLICY)
    live.carry_out(commands)
    live.wait(7)
    assert bool(live.finished) is ends
    live.wait(15)
    assert live.finished[0].state is PlanState.DONE


def test_a_batch_whose_partitions_have_all_ended_before_it_was_sent_asks_for_nothing():
    live = Live()
    unsent = live.journal.batches[0]._replace(state=BatchState.INTENT, sendings=0)
    live.journal = live.journal._replace(batches=(unsent,))
    rates = tuple(it for it in live.cluster.settings if it[0].kind == "broker")
    live.cluster = live.cluster._replace(parts=(a_part(1, 2)._replace(topic_id="other"),), settings=rates)
    live.acts.clear()
    live.lead()
    live.wait(8)
    assert live.acts == []
    assert live.journal.batches[0].state is BatchState.INTENT
    assert live.journal.batches[0].sendings == 0
    live.wait(15)
    assert live.kinds() == ["AlterThrottles"]
    assert live.cluster.settings == ()
    assert live.finished == [
        FinishPlan("p", PlanState.FAILED, "1 partition not moved: the topic was deleted and created again")
    ]


def test_two_plans_are_carried_out_one_after_the_other():
    live = Live()
    live.tell(PlanAccepted(ReassignmentPlan("q", (MOVE.back(),))))
    live.wait(3)
    live.catch_up()
    live.wait(5)
    live.catch_up()
    live.wait(5)
    assert [it.proposal_id for it in live.finished] == ["p", "q"]
    assert live.cluster.parts[0].replicas == (1, 2)


@pytest.mark.parametrize("act", [AlterThrottles, AlterReassignments], ids=["a throttle", "a reassignment"])
def test_what_it_was_too_late_to_send_was_not_asked_for_and_is_tried_until_it_is_sent(act):
    def answer(cluster, asked):
        if isinstance(asked, act) and late:
            late.pop()
            subjects = (
                {it.resource for it in asked.settings} if act is AlterThrottles else {it.id for it in asked.moves}
            )
            return cluster, RequestDone(tuple(RequestResult(it, RequestFate.NOT_SENT) for it in subjects))
        return carried_out(cluster, asked)

    late = [True] * 8
    live = Live(answer_as=answer)
    live.wait(60)
    assert not live.finished
    assert live.cluster.parts[0].moving
    assert live.journal.batches[0].sendings == 1
    assert {debt.tries for debt in live.journal.debts} == {1}
    assert not live.alarms()

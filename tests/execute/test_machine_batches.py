"""What an executor says and does while a batch is open: what it sends once, what it waits for, and how it ends."""

from __future__ import annotations

from agent.execute.reassign.machine import begins
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    CancelReassignments,
    CommandReceived,
    ElectLeaders,
    FinishPlan,
    PlanAccepted,
    PlanCommand,
    ReassignmentView,
    RequestDone,
    RequestFate,
    RequestResult,
    TimePassed,
)
from agent.execute.reassign.state import MachineState, PlanBackoff, answered
from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan, ReassignmentRecords
from agent.values.throttles import SeenThrottle, ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import a_part, begun, carried_out, lost, view_of
from tests.execute.live_machine import MOVE, ORDER, OTHER, P0, POLICY, TOPIC_T, Live


def test_what_the_controller_has_acknowledged_is_not_sent_again_while_brokers_lag_behind():
    """Two partitions; the second is not taken, and brokers still show the first at its former replicas."""
    second = TopicPartition("t", 1)

    def half(cluster, asked):
        if not isinstance(asked, AlterReassignments):
            return carried_out(cluster, asked)
        after, answer = carried_out(cluster, AlterReassignments(tuple(it for it in asked.moves if it.id != second)))
        return after, RequestDone((*answer.results, RequestResult(second, RequestFate.RETRY, "NOT_CONTROLLER")))

    def behind(cluster):
        return view_of(cluster._replace(parts=(a_part(1, 2), a_part(1, 2))))

    live = Live(ReassignmentPlan("p", (MOVE, MOVE._replace(id=second))), answer_as=half, look_as=behind)
    live.answer_as = carried_out
    live.wait(5)
    sent = [[move.id for move in act.moves] for act in live.acts if isinstance(act, AlterReassignments)]
    assert sent == [[P0, second], [second]]


def test_a_batch_of_which_a_part_was_acknowledged_is_not_given_up_while_another_tool_moves():
    """One of two was taken, and brokers still show both at their former replicas; what was taken moves."""
    foreign = ReassignmentView(TopicPartition("u", 7), (1, 2, 3), (3,), (1,))

    def half(cluster, asked):
        if not isinstance(asked, AlterReassignments):
            return carried_out(cluster, asked)
        after, answer = carried_out(cluster, AlterReassignments(asked.moves[:1]))
        return after, RequestDone((*answer.results, RequestResult(OTHER.id, RequestFate.RETRY, "NOT_CONTROLLER")))

    def behind(cluster):
        seen = view_of(cluster._replace(parts=(a_part(1, 2), a_part(1, 2))))
        return seen._replace(moves=(foreign,)) if live_acts else seen

    live_acts: list[object] = []
    live = Live(ReassignmentPlan("p", (MOVE, OTHER)), answer_as=half, look_as=behind)
    live_acts += live.acts
    live.wait(8)
    assert live.kinds() == ["AlterThrottles", "AlterReassignments"]
    assert (live.journal.batches[0].state, live.closed) == (BatchState.SENT, [])


def test_a_cancel_without_an_answer_is_not_sent_again_while_it_may_still_take_effect():
    def lost_on_the_way(cluster, asked):
        return (cluster, RequestDone(())) if isinstance(asked, CancelReassignments) else carried_out(cluster, asked)

    live = Live(answer_as=lost_on_the_way)
    live.tell(CommandReceived(PlanCommand.CANCEL, "p"))
    live.wait(8)
    assert live.kinds().count("CancelReassignments") == 1
    live.answer_as = carried_out
    live.wait(15)
    assert live.kinds().count("CancelReassignments") == 2
    assert live.finished[0].state is PlanState.CANCELLED


def test_a_rate_that_is_the_highest_already_is_not_set_again_for_what_is_stuck():
    live = Live(ReassignmentPlan("p", (MOVE,), throttle_bytes_per_s=POLICY.limits.throttle_ceiling))
    live.wait(310)
    assert live.alarms() == ["no progress for 300 s: t-0"]
    assert live.kinds() == ["AlterThrottles", "AlterReassignments"]


def test_a_rate_that_another_tool_has_changed_is_not_raised_for_what_is_stuck():
    """Only the rates that are still ours become higher."""
    live = Live()
    theirs = tuple(
        (resource, key, "7" if resource.broker == 1 and key == LEADER_RATE else value)
        for resource, key, value in live.cluster.settings
    )
    live.cluster = live.cluster._replace(settings=theirs)
    live.wait(310)
    raised = {(one.resource.name, one.key) for act in live.acts[2:] for one in act.settings}
    assert raised == {("2", LEADER_RATE), ("3", FOLLOWER_RATE)}
    assert (ThrottleResource(broker=1), LEADER_RATE, "7") in live.cluster.settings


def test_bytes_of_another_partition_on_the_same_broker_are_no_progress_of_a_stuck_one():
    copied = [0]

    def growing(cluster):
        copied[0] += 1
        seen = view_of(cluster)
        sizes = tuple((id_, broker, copied[0] if id_ == OTHER.id else size) for id_, broker, size in seen.bytes)
        return seen._replace(bytes=sizes)

    live = Live(ReassignmentPlan("p", (MOVE, OTHER)), look_as=growing)
    live.wait(310)
    assert live.alarms() == ["no progress for 300 s: t-0; the rate is now 15 B/s"]


def test_what_another_tool_has_moved_elsewhere_by_now_is_not_waited_for():
    live = Live()
    live.cluster = live.cluster._replace(parts=(a_part(2, 4),))
    live.wait(10)
    assert live.finished == [FinishPlan("p", PlanState.FAILED, "1 partition changed by another tool")]


def test_a_move_that_another_tool_cancelled_is_back_once_brokers_cannot_lag_behind_any_more():
    live = Live()
    live.cluster = live.cluster._replace(parts=(a_part(1, 2),))
    live.wait(9)
    assert not live.finished
    live.wait(4)
    assert live.finished == [FinishPlan("p", PlanState.FAILED, "1 partition back on the former replicas")]


def test_leaders_that_do_not_change_are_elected_a_few_times_and_told_of():
    def unmoved(cluster, asked):
        if isinstance(asked, ElectLeaders):
            return cluster, RequestDone(tuple(RequestResult(one, RequestFate.RETRY) for one in asked.partitions))
        return carried_out(cluster, asked)

    live = Live(ORDER, answer_as=unmoved)
    live.wait(60)
    assert live.kinds().count("ElectLeaders") == POLICY.max_elections
    assert live.finished == [
        FinishPlan("p", PlanState.DONE, "1 partition moved as planned; 1 partition not led by the preferred leader")
    ]


def test_an_announced_batch_that_is_cancelled_is_closed_unsent_and_says_why():
    def unset(cluster, asked):
        return cluster, RequestDone(tuple(RequestResult(it.resource, RequestFate.NOT_SENT) for it in asked.settings))

    live = Live(answer_as=unset)
    live.answer_as = carried_out
    live.tell(CommandReceived(PlanCommand.CANCEL, "p", "ann"))
    live.wait(10)
    (batch,) = live.closed
    assert (batch.sendings, batch.ends, batch.sentence) == (0, (), "cancel requested by ann")
    assert live.finished == [FinishPlan("p", PlanState.CANCELLED, "cancel requested by ann; 1 partition not begun")]


def test_a_plan_that_moves_again_is_not_left_alone_for_what_was_refused_before():
    live = Live()
    rested = live.state._replace(
        backoffs=(PlanBackoff("p", 0, 5, "NOT_CONTROLLER"), PlanBackoff("q", 7, 1, "NOT_CONTROLLER"))
    )
    alter = live.acts[1]
    assert isinstance(alter, AlterReassignments)
    took = answered(rested, alter, RequestDone((RequestResult(P0, RequestFate.OK),)), POLICY)
    assert took.backoffs == (PlanBackoff("q", 7, 1, "NOT_CONTROLLER"),)
    assert (
        answered(rested, alter, RequestDone((RequestResult(P0, RequestFate.NOT_SENT),)), POLICY).backoffs
        == rested.backoffs
    )


def test_an_order_that_a_cancel_left_is_put_back_without_asking_whether_moves_may_begin():
    live = Live()
    alter = live.acts[1]
    assert isinstance(alter, AlterReassignments)
    assert begins(live.state, alter)
    cancelling = live.journal.batches[0]._replace(cancelling=(P0,))
    assert not begins(live.state._replace(records=live.journal._replace(batches=(cancelling,))), alter)
    assert begins(MachineState(ReassignmentRecords()), alter)


def test_a_throttle_that_cannot_be_reached_is_looked_for_more_rarely_than_what_moves():
    live = Live()
    live.cluster = lost(live.cluster, 3)
    live.wait(120)
    assert (live.journal.plans, len(live.journal.debts)) == ((), 1)
    waits = set()
    for _ in range(100):
        live.tell(TimePassed(500))
        waits.add(live.state.next_look_ms)
    assert max(waits) == POLICY.idle_look_ms


def test_one_attempt_at_a_plan_is_in_progress_at_a_time():
    live = Live()
    live.tell(PlanAccepted(ReassignmentPlan("p.2", (MOVE,), attempt=2)))
    assert "p.2 is not accepted: attempt p has not ended" in live.sentences()
    live.tell(PlanAccepted(ReassignmentPlan("p-back", (MOVE.back(),))))
    assert [plan.proposal_id for plan in live.journal.plans] == ["p", "p-back"]


def test_the_first_throttle_that_cannot_be_set_is_named():
    forbidden = {ThrottleResource(broker=3), TOPIC_T}

    def refused(cluster, asked):
        if not isinstance(asked, AlterThrottles):
            return carried_out(cluster, asked)
        kept = AlterThrottles(tuple(it for it in asked.settings if it.resource not in forbidden))
        after, answer = carried_out(cluster, kept)
        denied = tuple(RequestResult(one, RequestFate.REFUSED, "no right") for one in sorted(forbidden))
        return after, RequestDone((*answer.results, *denied))

    live = Live(answer_as=refused)
    live.wait(60)
    why = f"{FOLLOWER_RATE} of broker 3 cannot be set"
    assert f"{why}: nothing is moved without a throttle" in live.alarms()
    assert live.finished[0].sentence.startswith(f"{why}; ")


def test_what_is_stuck_gets_twice_its_rate_and_the_former_one_is_remembered():
    live = Live(ReassignmentPlan("p", (MOVE,), throttle_bytes_per_s=5))
    live.wait(310)
    assert live.alarms() == ["no progress for 300 s: t-0; the rate is now 10 B/s"]
    assert live.journal.batches[0].rate_bytes_per_s == 10
    rates = {(debt.ours, debt.formerly) for debt in live.journal.debts if debt.key in (LEADER_RATE, FOLLOWER_RATE)}
    assert rates == {(10, 5)}
    assert "batch 1: 1 partition moving" in [say.sentence for say in live.notices]


def test_a_replica_that_comes_into_sync_is_progress():
    """Of two copies one is whole after a while; no byte is read meanwhile."""
    live = Live(ReassignmentPlan("p", (MOVE._replace(after=(3, 4)),)), up=frozenset({1, 2, 3, 4}))
    live.look_as = lambda cluster: view_of(cluster)._replace(
        bytes=tuple((id_, broker, 7) for id_, broker, _ in view_of(cluster).bytes)
    )
    live.wait(200)
    (part,) = live.cluster.parts
    live.cluster = live.cluster._replace(parts=(part._replace(isr=part.isr | {3}),))
    live.wait(200)
    assert live.alarms() == []
    live.wait(110)
    assert len(live.alarms()) == 1


def test_what_another_tool_moves_right_before_the_request_is_waited_for():
    def unset(cluster, asked):
        return cluster, RequestDone(tuple(RequestResult(it.resource, RequestFate.NOT_SENT) for it in asked.settings))

    live = Live(answer_as=unset)
    live.answer_as = carried_out
    (part,) = live.cluster.parts
    live.cluster = live.cluster._replace(parts=(begun(part, (2, 4), foreign=True, up=live.cluster.up),))
    live.wait(20)
    assert not live.finished
    assert "AlterReassignments" not in live.kinds()
    live.cluster = live.cluster._replace(parts=(a_part(1, 2),))
    live.wait(10)
    assert live.cluster.parts[0].moving


def test_replicas_between_before_and_after_are_waited_for_where_nothing_was_asked_yet():
    live = Live(min_isr=3)
    live.cluster = live.cluster._replace(min_isr=1, parts=(a_part(1, 2, 3),))
    live.wait(30)
    assert (live.acts, live.finished) == ([], [])
    live.cluster = live.cluster._replace(parts=(a_part(1, 2),))
    live.wait(5)
    assert live.cluster.parts[0].moving


def test_a_request_that_never_takes_effect_is_repeated_a_few_times_and_then_given_up():
    def lost_on_the_way(cluster, asked):
        return (cluster, RequestDone(())) if isinstance(asked, AlterReassignments) else carried_out(cluster, asked)

    live = Live(answer_as=lost_on_the_way)
    live.wait(200)
    assert live.kinds().count("AlterReassignments") == POLICY.max_sendings
    assert live.finished[0].state is PlanState.FAILED
    assert live.cluster.settings == ()


def test_a_topic_made_anew_hides_nothing_that_is_unknown_of_the_next_partition():
    def half_seen(cluster):
        seen = view_of(cluster)
        first, second = seen.partitions
        return seen._replace(partitions=(first._replace(topic_id="other"), second._replace(min_isr=None)))

    live = Live(ReassignmentPlan("p", (MOVE, OTHER)), min_isr=3)
    live.cluster = live.cluster._replace(min_isr=1)
    live.look_as = half_seen
    live.wait(10)
    assert live.acts == []


def test_nothing_is_sent_while_a_throttle_that_an_earlier_look_still_showed_is_not_set():
    """A broker that is late shows the entries of an earlier batch, which are gone by now."""
    looks = [0]

    def late(cluster):
        looks[0] += 1
        seen = view_of(cluster)
        former = (
            SeenThrottle(TOPIC_T, FOLLOWER_REPLICAS, "0:3"),
            SeenThrottle(TOPIC_T, LEADER_REPLICAS, "0:1,0:2"),
        )
        return seen._replace(throttles=(*seen.throttles, *former)) if looks[0] == 1 else seen

    live = Live(look_as=late)
    live.wait(1)
    assert live.kinds() == ["AlterThrottles", "AlterThrottles", "AlterReassignments"]
    assert {(one.resource, one.key, one.value) for one in live.acts[1].settings} == {
        (TOPIC_T, FOLLOWER_REPLICAS, "0:3"),
        (TOPIC_T, LEADER_REPLICAS, "0:1,0:2"),
    }
    live.catch_up()
    live.wait(5)
    assert live.finished[0].state is PlanState.DONE
    assert live.cluster.settings == ()

"""What is not known, or may not be, holds moves: before a batch begins, is sent, or is sent again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.reassign.machine import step
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    BatchPermission,
    ClusterView,
    CommandReceived,
    FinishPlan,
    PlanCommand,
    ReassignmentView,
    RequestDone,
    RequestFate,
    RequestResult,
)
from agent.values.kafka import FOLLOWER_REPLICAS, LEADER_REPLICAS
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan, ReassignmentTarget
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import a_part, carried_out, lost, view_of
from tests.execute.live_machine import MOVE, ORDER, P0, POLICY, TOPIC_T, Live


def test_what_others_move_is_named_and_waited_for():
    foreign = ReassignmentView(TopicPartition("u", 7), (1, 2, 3), (3,), (1,))
    live = Live(look_as=lambda cluster: view_of(cluster)._replace(moves=(foreign,)))
    live.wait(10)
    assert live.acts == []
    assert "no new batch: 1 partition moved by another tool, u-7 first" in live.sentences()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            {"unread": frozenset({ThrottleResource(broker=1)})},
            "no new batch: the settings of broker 1 did not answer",
            id="settings that did not answer",
        ),
        pytest.param(
            {"partitions": ()},
            "no new batch: t-0 is not visible",
            id="a topic that cannot be seen",
        ),
        pytest.param(
            {"brokers": frozenset({1, 2})},
            "no new batch: of what is left, t-0 has replicas of before and after without a reassignment, "
            "or needs a broker that is down",
            id="a target that is down",
        ),
    ],
)
def test_what_is_not_known_holds_a_batch(change, sentence):
    live = Live(look_as=lambda cluster: view_of(cluster)._replace(**change))
    live.wait(10)
    assert live.acts == []
    assert sentence in live.sentences()


LEADERLESS = {"leader": None, "leader_known": False}


def blind(seen: ClusterView, *, unread: frozenset[ThrottleResource] = frozenset(), **changes: object) -> ClusterView:
    """The same look with less in it: settings that did not answer are not shown."""
    shown = tuple(it for it in seen.throttles if it.resource not in unread)
    partitions = tuple(it._replace(**changes) for it in seen.partitions)
    return seen._replace(unread=unread, throttles=shown, partitions=partitions)


@pytest.mark.parametrize(
    ("hidden", "why"),
    [
        pytest.param({"unread": frozenset({TOPIC_T})}, "the settings of topic t did not answer", id="throttle lists"),
        pytest.param(
            {"unread": frozenset({ThrottleResource(broker=3)})},
            "the settings of broker 3 did not answer",
            id="a rate",
        ),
        pytest.param({"min_isr": None}, "the min ISR of t-0 is unknown", id="the min ISR"),
        pytest.param(LEADERLESS, "brokers do not agree about the leader of t-0", id="the leader"),
    ],
)
def test_what_is_not_read_between_the_announcement_and_the_request_is_not_taken_for_well(hidden, why):
    """The answer to the throttle lists is lost as well: they are not set, and no sentence may say that they are."""
    lost = [TOPIC_T]

    def loses(cluster, asked):
        if not isinstance(asked, AlterThrottles):
            return carried_out(cluster, asked)
        kept = AlterThrottles(tuple(it for it in asked.settings if it.resource not in lost))
        after, answer = carried_out(cluster, kept)
        return after, RequestDone(tuple(it for it in answer.results if it.subject not in lost))

    live = Live(min_isr=3, answer_as=loses)  # nothing begins yet
    live.cluster = live.cluster._replace(min_isr=1)
    live.look_as = lambda cluster: view_of(cluster) if not live.acts else blind(view_of(cluster), **hidden)
    live.wait(40)
    assert set(live.kinds()) == {"AlterThrottles"}
    assert not live.cluster.parts[0].moving
    assert why in live.sentences() or why in [batch.sentence for batch in live.journal.batches]
    assert not live.finished
    live.look_as = view_of
    lost.clear()
    live.wait(40)
    assert {key for _, key, _ in live.cluster.settings} >= {FOLLOWER_REPLICAS, LEADER_REPLICAS}
    assert live.cluster.parts[0].moving


def test_a_leader_that_brokers_do_not_agree_about_cancels_nothing():
    live = Live()
    live.look_as = lambda cluster: blind(view_of(cluster), **LEADERLESS)
    live.wait(120)
    assert "CancelReassignments" not in live.kinds()
    assert live.cluster.parts[0].moving


def test_a_broker_that_is_down_and_gets_no_copy_is_known_and_holds_nothing():
    """Its throttle is not set, as it cannot be; what is down is not unread."""
    down = ReassignmentPlan("p", (ReassignmentTarget(P0, "id", (1, 2), (1, 3), bytes=1000),))
    live = Live(down, min_isr=3)
    live.cluster = lost(live.cluster._replace(min_isr=1), 2)
    live.wait(5)
    assert live.kinds() == ["AlterThrottles", "AlterReassignments"]
    assert {it[0].name for it in live.cluster.settings} == {"1", "3", "t"}


@pytest.mark.parametrize(
    ("holds", "why"),
    [
        pytest.param({"min_isr": 3}, "t-0 is under its min ISR", id="under its min ISR"),
        pytest.param({"min_isr": None}, "the min ISR of t-1 is unknown", id="the min ISR did not answer"),
    ],
)
def test_a_request_is_not_repeated_while_it_would_not_be_begun(holds, why):
    """One of two partitions moves; the controller did not take the other one."""
    second = TopicPartition("t", 1)

    def half(cluster, asked):
        if not isinstance(asked, AlterReassignments):
            return carried_out(cluster, asked)
        after, answer = carried_out(cluster, AlterReassignments(tuple(it for it in asked.moves if it.id != second)))
        return after, RequestDone((*answer.results, RequestResult(second, RequestFate.RETRY, "NOT_CONTROLLER")))

    live = Live(ReassignmentPlan("p", (MOVE, MOVE._replace(id=second))), answer_as=half)
    assert [part.moving for part in live.cluster.parts] == [True, False]
    live.answer_as, live.look_as = carried_out, lambda cluster: blind(view_of(cluster), **holds)
    live.wait(50)
    assert live.kinds().count("AlterReassignments") == 1
    assert f"batch 1: 1 partition not moving yet: {why}" in live.sentences()
    live.look_as = view_of
    live.wait(5)
    assert [part.moving for part in live.cluster.parts] == [True, True]


def test_what_was_sent_and_did_not_begin_is_given_up_while_nothing_may_begin():
    """Its answer was lost, no such request can be under way any more, and another tool moves by then."""

    def lost_on_the_way(cluster, asked):
        return (cluster, RequestDone(())) if isinstance(asked, AlterReassignments) else carried_out(cluster, asked)

    foreign = ReassignmentView(TopicPartition("u", 7), (1, 2, 3), (3,), (1,))
    live = Live(answer_as=lost_on_the_way)
    live.answer_as, live.look_as = carried_out, lambda cluster: view_of(cluster)._replace(moves=(foreign,))
    live.wait(8)
    assert live.journal.batches[0].state is BatchState.SENT, "it may still take effect"
    live.wait(10)
    (batch,) = live.journal.batches
    assert (batch.state, batch.sendings, batch.ends) == (BatchState.CLOSED, 1, ())
    assert live.cluster.settings == ()
    live.look_as = view_of
    live.wait(5)
    assert live.cluster.parts[0].moving
    assert [batch.number for batch in live.journal.batches] == [1, 2]


def test_a_plan_does_not_end_well_on_a_leader_that_is_not_known():
    live = Live()
    live.catch_up()
    live.look_as = lambda cluster: blind(view_of(cluster), **LEADERLESS)
    live.wait(20)
    assert not live.finished
    assert "the leader of t-0 is unknown" in live.sentences()


def test_a_partition_that_a_topic_made_anew_does_not_have_is_replaced_and_not_waited_for():
    live = Live(ReassignmentPlan("p", (MOVE, MOVE._replace(id=TopicPartition("t", 1)))), min_isr=3)
    live.cluster = live.cluster._replace(parts=(a_part(1, 2)._replace(topic_id="other"),), min_isr=1)
    live.wait(10)
    assert live.finished[0].sentence == "2 partitions not moved: the topic was deleted and created again"


def test_what_the_controller_takes_no_notice_of_is_tried_again_ever_more_rarely():
    def busy(cluster, asked):
        if isinstance(asked, AlterReassignments):
            return cluster, RequestDone((RequestResult(P0, RequestFate.RETRY, "NOT_CONTROLLER"),))
        return carried_out(cluster, asked)

    live = Live(answer_as=busy)
    live.wait(300)
    assert 9 <= live.kinds().count("AlterReassignments") <= 15
    assert not live.finished
    assert not live.alarms()
    assert "no new batch: requested again later: NOT_CONTROLLER" in live.sentences()
    while live.journal.batches[0].state is BatchState.SENT:
        live.wait(1)
    (batch,) = live.journal.batches
    assert (batch.number, batch.sendings) == (1, 0), "nothing was asked, so nothing counts"
    assert live.cluster.settings == (), "nothing is throttled meanwhile"
    live.answer_as = carried_out
    live.wait(35)
    live.catch_up()
    live.wait(5)
    assert live.finished == [FinishPlan("p", PlanState.DONE, "1 partition moved as planned")]


def test_a_right_that_is_missing_for_a_while_is_waited_for():
    def forbidden(cluster, asked):
        if not isinstance(asked, AlterThrottles):
            return carried_out(cluster, asked)
        kept = AlterThrottles(tuple(it for it in asked.settings if it.resource.kind == "broker"))
        after, answer = carried_out(cluster, kept)
        return after, RequestDone(
            (*answer.results, RequestResult(TOPIC_T, RequestFate.RETRY, "TOPIC_AUTHORIZATION_FAILED"))
        )

    live = Live(answer_as=forbidden)
    live.wait(600)
    assert not live.finished
    assert set(live.kinds()) == {"AlterThrottles"}
    live.answer_as = carried_out
    live.wait(40)
    assert live.cluster.parts[0].moving


def test_what_is_held_by_refusals_can_be_cancelled():
    def busy(cluster, asked):
        if isinstance(asked, AlterReassignments):
            return cluster, RequestDone((RequestResult(P0, RequestFate.RETRY, "NOT_CONTROLLER"),))
        return carried_out(cluster, asked)

    live = Live(answer_as=busy)
    live.wait(30)
    live.tell(CommandReceived(PlanCommand.CANCEL, "p"))
    live.wait(5)
    assert live.finished[0].state is PlanState.CANCELLED


@pytest.mark.parametrize("late_s", [0.5, 5, 9])
@pytest.mark.parametrize(
    "ends",
    [BatchPermission(begin=False, sentence="paused"), CommandReceived(PlanCommand.CANCEL, "p")],
    ids=["held", "cancel"],
)
def test_a_throttle_that_brokers_show_late_is_removed_when_its_batch_is_withdrawn(ends, late_s):
    """Two looks in a row, right after the answer and right after the withdrawal, do not show it yet."""
    live = Live(look_as=lambda cluster: view_of(cluster)._replace(partitions=()))

    def held_while_set(cluster, asked):
        live.state = step(live.state, ends, POLICY)[0]
        return carried_out(cluster, asked)

    live.look_as = lambda cluster: view_of(cluster)._replace(throttles=())
    live.answer_as = held_while_set
    while not live.closed:
        live.wait(0.5)
    assert [batch.sendings for batch in live.closed] == [0]
    assert live.cluster.settings, "it is set"
    live.wait(late_s)
    live.look_as = view_of
    live.answer_as = carried_out
    live.wait(30)
    assert (live.cluster.settings, live.journal.debts) == ((), ())
    assert "AlterReassignments" not in live.kinds()


MEANWHILE = (
    "no new batch: while it moves, t-0 needs 3 in-sync replicas for writes with acks=all, and it has 2: lower"
    " min.insync.replicas of t to 2 first"
)


def test_a_min_isr_that_was_raised_since_the_approval_holds_what_would_take_no_writes_while_it_moves():
    """Two replicas and a min ISR of 3: at rest two are enough, with the copy that a move adds they are not."""
    live = Live(min_isr=3)
    live.wait(200)
    assert (live.acts, live.finished, live.alarms()) == ([], [], [])
    assert MEANWHILE in live.sentences()
    live.cluster = live.cluster._replace(min_isr=2)
    live.wait(5)
    assert live.kinds() == ["AlterThrottles", "AlterReassignments"]
    assert not live.cluster.parts[0].isr - {1, 2}


def test_the_way_back_is_held_by_a_min_isr_as_the_way_forth():
    live = Live()
    live.catch_up()
    live.cluster = live.cluster._replace(min_isr=3)
    live.tell(CommandReceived(PlanCommand.ROLLBACK, "p"))
    live.wait(200)
    assert live.cluster.parts[0].replicas == (3, 2)
    assert live.kinds().count("AlterReassignments") == 1
    assert MEANWHILE in live.sentences()
    live.cluster = live.cluster._replace(min_isr=2)
    live.wait(5)
    live.catch_up()
    live.wait(10)
    assert live.cluster.parts[0].replicas == (1, 2)
    assert live.finished[0].state is PlanState.ROLLED_BACK


def test_a_min_isr_above_the_replicas_holds_nothing_that_adds_no_copy_or_that_nobody_guards(monkeypatch):
    reordered = Live(ORDER, min_isr=3)
    reordered.wait(5)
    assert reordered.kinds()[0] == "AlterReassignments"
    monkeypatch.setattr(
        "tests.execute.live_machine.POLICY", POLICY._replace(limits=replace(POLICY.limits, min_isr_guard=False))
    )
    unguarded = Live(min_isr=3)
    unguarded.wait(5)
    assert unguarded.kinds() == ["AlterThrottles", "AlterReassignments"]

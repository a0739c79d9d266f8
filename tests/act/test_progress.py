"""How far moves are: bytes that are there, at which rate they come, and what is not known stays unknown."""

from __future__ import annotations

import pytest

from agent.act.reassign.reassignment_executor import ExecutorReporter
from agent.execute.reassign.messages import (
    BatchPermission,
    ClusterView,
    CommandReceived,
    PlanAccepted,
    PlanCommand,
    ReassignmentView,
    TimePassed,
)
from agent.execute.reassign.throttles import CopyRates, acting_now, plan_progress
from agent.journal import plan_entries
from agent.values.plan import ExecuteState
from agent.values.reassignment import (
    Batch,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
)
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import view_of
from tests.execute.live_machine import MOVE, OTHER, Live
from tests.journals import journal

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
PLAN = ReassignmentPlan("p-1", tuple(ReassignmentTarget(one, "id", (1, 2), (3, 2)) for one in (A, B)))


def seen(*sizes: tuple[TopicPartition, int, int], moving: tuple[TopicPartition, ...] = (A, B)) -> ClusterView:
    moves = tuple(ReassignmentView(one, (3, 2, 1), (3,), (1,)) for one in moving)
    return ClusterView(frozenset({1, 2, 3}), (), moves, bytes=tuple(sorted(sizes)))


def test_a_rate_is_what_came_between_looks_and_the_rest_takes_so_long() -> None:
    rates = CopyRates()
    for at_s, size in ((10.0, 100), (12.0, 300), (14.0, 500)):
        rates.looked(seen((A, 1, 1_000), (A, 3, size), moving=(A,)), at_s)
    (replica,) = rates.of([A, B])
    assert (replica.broker, replica.bytes, replica.of_bytes) == (3, 500, 1_000)
    assert (replica.bytes_per_s, replica.seconds_left) == (100.0, 5.0)


def test_after_a_while_only_the_latest_counts() -> None:
    rates = CopyRates()
    for second in range(0, 200, 2):
        rates.looked(seen((A, 1, 10_000), (A, 3, second * 10 if second < 100 else 1_000), moving=(A,)), float(second))
    (replica,) = rates.of([A])
    assert replica.bytes_per_s == pytest.approx(0.0, abs=0.5)
    assert replica.seconds_left is None or replica.seconds_left > 1_000


def test_what_is_not_known_stays_unknown() -> None:
    rates = CopyRates()
    rates.looked(seen((A, 1, 1_000)), 0.0)
    first, second = rates.of([A, B])
    assert (first.bytes, first.of_bytes, first.bytes_per_s, first.seconds_left) == (None, 1_000, None, None)
    assert (second.bytes, second.of_bytes) == (None, None)
    (broker,) = plan_progress(PLAN, (), rates).brokers
    assert (broker.replicas, broker.bytes_left, broker.bytes_per_s, broker.seconds_left) == (2, None, None, None)


def test_a_broker_takes_all_that_comes_to_it() -> None:
    rates = CopyRates()
    for at_s, size in ((0.0, 0), (10.0, 500)):
        rates.looked(seen((A, 1, 1_000), (A, 3, size), (B, 2, 2_000), (B, 3, size)), at_s)
    (broker,) = plan_progress(PLAN, (), rates).brokers
    assert (broker.broker, broker.replicas, broker.bytes_left) == (3, 2, 2_000)
    assert (broker.bytes_per_s, broker.seconds_left) == (100.0, 20.0)


def test_a_copy_that_has_all_bytes_is_not_waited_for() -> None:
    rates = CopyRates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 1_200), moving=(A,)), 0.0)
    assert [one.seconds_left for one in rates.of([A])] == [0.0]


def test_a_move_that_is_over_is_forgotten() -> None:
    rates = CopyRates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 500)), 0.0)
    rates.looked(seen(moving=()), 1.0)
    assert rates.of([A, B]) == ()
    rates.looked(seen((A, 1, 1_000), (A, 3, 900), moving=(A,)), 2.0)
    assert [one.bytes_per_s for one in rates.of([A])] == [None], "a new move begins anew"


def test_partitions_are_counted_by_their_ends() -> None:
    batch = Batch(
        "p-1",
        1,
        PLAN.targets,
        ends=(PartitionEnd(A, PartitionEndReason.DONE), PartitionEnd(B, PartitionEndReason.BACK)),
    )
    back = batch._replace(number=2, back=True, ends=(PartitionEnd(A, PartitionEndReason.DONE),))
    progress = plan_progress(PLAN, (batch, back), CopyRates())
    assert (progress.done, progress.ended) == (1, 2)


def test_an_ended_plan_has_no_copies_under_way() -> None:
    rates = CopyRates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 500)), 0.0)
    assert plan_progress(PLAN._replace(state=PlanState.CANCELLED), (), rates).replicas == ()


def test_the_rate_of_a_broker_is_unknown_while_that_of_one_of_its_copies_is() -> None:
    rates = CopyRates()
    rates.looked(seen((A, 1, 1_000), (A, 3, 0), moving=(A,)), 0.0)
    rates.looked(seen((A, 1, 1_000), (A, 3, 500), (B, 2, 2_000), (B, 3, 0)), 10.0)
    (broker,) = plan_progress(PLAN, (), rates).brokers
    assert (broker.bytes_left, broker.bytes_per_s, broker.seconds_left) == (2_500, None, None)


# --- what open plans wait for --------------------------------------------------------------------------------------

FREE = BatchPermission(begin=True)
FOREIGN = ReassignmentView(TopicPartition("u", 7), (1, 2, 3), (3,), (1,))


def now(live: Live, may: BatchPermission = FREE) -> ExecuteState:
    """The status of an executor with that machine and journal."""
    view = journal(*map(plan_entries.change_writes, (*live.journal.plans, *live.journal.batches)), at_ms=1)
    return acting_now(ExecutorReporter().status(view, may, None, live.state.held), None)


def test_a_plan_that_moves_waits_for_nothing_at_any_moment() -> None:
    live = Live()
    for _ in range(40):
        live.tell(TimePassed(500))
        assert (now(live).plans, now(live).waiting, now(live).waits) == (1, 0, "")
    assert "batch 1: 1 partition moving" in live.sentences()
    live.catch_up()
    live.wait(10)
    assert (now(live).plans, now(live).waiting) == (0, 0)


def test_what_another_tool_moves_holds_a_plan_until_it_has_moved() -> None:
    live = Live(look_as=lambda cluster: view_of(cluster)._replace(moves=(FOREIGN,)))
    live.wait(10)
    held = "p: no new batch: 1 partition moved by another tool, u-7 first"
    assert (now(live).waiting, now(live).waits) == (1, held)
    live.look_as = view_of
    live.wait(10)
    assert (now(live).waiting, now(live).waits) == (0, "")
    live.look_as = lambda cluster: view_of(cluster)._replace(moves=(*view_of(cluster).moves, FOREIGN))
    live.wait(10)
    assert now(live).waiting == 0, "what moves goes on"


def test_a_batch_that_has_not_begun_to_move_is_held() -> None:
    live = Live(ReassignmentPlan("p", (MOVE, OTHER)))
    live.wait(0.5)
    assert live.state.batch is not None
    live.look_as = lambda cluster: view_of(cluster)._replace(
        partitions=tuple(one for one in view_of(cluster).partitions if one.id != OTHER.id)
    )
    live.wait(20)
    assert now(live).waiting == 1
    assert now(live).waits.endswith("t-1 is not visible")


@pytest.mark.parametrize(
    ("may", "waiting", "waits"),
    [
        pytest.param(FREE, 0, "", id="one moves, and the other one's turn comes later"),
        pytest.param(
            BatchPermission(begin=True, held=(("q", "outside the windows"),)),
            1,
            "q: no new batch: outside the windows",
            id="a window holds one of them",
        ),
        pytest.param(
            BatchPermission(begin=False, sentence="ann@desk paused acting"),
            2,
            "p: no new batch: ann@desk paused acting",
            id="a pause holds both",
        ),
    ],
)
def test_plans_that_are_held_are_counted_one_by_one(may: BatchPermission, waiting: int, waits: str) -> None:
    live = Live(ReassignmentPlan("p", (MOVE, OTHER)))
    live.tell(PlanAccepted(ReassignmentPlan("q", (OTHER.back(),), order=2)))
    live.wait(10)
    live.tell(may)
    live.wait(10)
    assert (now(live, may).plans, now(live, may).waiting, now(live, may).waits) == (2, waiting, waits)


def test_a_plan_that_is_paused_is_held_and_one_that_is_cancelled_is_not() -> None:
    live = Live()
    live.wait(10)
    live.tell(CommandReceived(PlanCommand.PAUSE, "p"))
    live.wait(2)
    assert (now(live).waiting, now(live).waits) == (1, "p: no new batch: the plan is paused")
    cancelled = plan_entries.change_writes(ReassignmentPlan("p", (MOVE,), PlanState.CANCELLING))
    paused = BatchPermission(begin=False, sentence="ann@desk paused acting")
    told = acting_now(ExecutorReporter().status(journal(cancelled, at_ms=1), paused, None, {}), None)
    assert (told.plans, told.waiting) == (1, 0), "it needs no new batch"

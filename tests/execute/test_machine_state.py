"""What the executor keeps between two events: the order of plans, how long each is left alone, and how each ended."""

from __future__ import annotations

import pytest

from agent.execute.reassign.executor_view import view_of
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    BatchPermission,
    ClusterView,
    NewPartitionReassignment,
    PlanAccepted,
    RequestDone,
    RequestFate,
    RequestResult,
)
from agent.execute.reassign.state import MachineState, PlanBackoff, answered, batches_of, latest_batch, ticked
from agent.values.reassignment import (
    Batch,
    BatchState,
    PlanState,
    ReassignmentPlan,
    ReassignmentPolicy,
    ReassignmentRecords,
)
from agent.values.throttles import OpType, ThrottleChange
from tests.execute.abstract_cluster import a_part
from tests.execute.live_machine import MOVE, OTHER, P0, POLICY, TOPIC_T, Live

OK, RETRY, NOT_SENT, UNKNOWN = RequestFate.OK, RequestFate.RETRY, RequestFate.NOT_SENT, RequestFate.UNKNOWN
MOVES = AlterReassignments(
    tuple(NewPartitionReassignment(one.id, one.topic_id, one.before, one.after) for one in (MOVE, OTHER))
)
THROTTLE = AlterThrottles((ThrottleChange(TOPIC_T, "k", OpType.APPEND, "0:1"),))


def sent(*rests: PlanBackoff) -> MachineState:
    """A machine whose batch of two partitions was sent."""
    batch = Batch("p", 1, (MOVE, OTHER), BatchState.SENT, sendings=1)
    plan = ReassignmentPlan("p", (MOVE, OTHER))
    return MachineState(ReassignmentRecords((plan,), (batch,), known=frozenset({"p"})), backoffs=rests)


def rested(times: int, plan: str = "p") -> tuple[PlanBackoff, ...]:
    """A plan that may be asked for again, after it was answered so often "not now"."""
    return (PlanBackoff(plan, 0, times, "w"),)


def told(first: RequestFate, second: RequestFate) -> RequestDone:
    return RequestDone((RequestResult(P0, first, "first"), RequestResult(OTHER.id, second, "second")))


# --- plans in their order


def waiting(*names: str) -> list[PlanAccepted]:
    """Plans of the same partition, of which one at a time can begin."""
    return [PlanAccepted(ReassignmentPlan(name, (MOVE,))) for name in names]


def test_plans_are_numbered_in_the_order_in_which_they_were_accepted():
    live = Live(ReassignmentPlan("z", (MOVE,)))
    for event in waiting("y", "x"):
        live.tell(event)
    live.tell(BatchPermission(begin=True))
    assert [(plan.proposal_id, plan.order) for plan in live.journal.plans] == [("z", 1), ("y", 2), ("x", 3)]


def test_plans_that_come_while_an_answer_is_awaited_are_numbered_one_after_the_other():
    live = Live(ReassignmentPlan("z", (MOVE,)))
    live.state = live.state._replace(waiting=None)
    live.state = live.state._replace(incoming=tuple(event.plan for event in waiting("y", "x")))
    live.tell(BatchPermission(begin=True))
    assert [(plan.proposal_id, plan.order) for plan in live.journal.plans] == [("z", 1), ("y", 2), ("x", 3)]


def test_a_plan_whose_time_to_begin_is_over_ends_with_nothing_moved():
    live = Live(min_isr=2, parts=(a_part(1, 2)._replace(isr=frozenset({1})),))
    live.tell(BatchPermission(begin=True, lapsed=(("p", "its approval ended 5 s ago"),)))
    (ended,) = live.ended
    assert (ended.state, ended.sentence, ended.moved) == (
        PlanState.CANCELLED, "its approval ended 5 s ago", "0",
    )  # fmt: skip
    assert live.state.idle


@pytest.mark.parametrize(
    ("state", "sendings", "over"),
    [
        pytest.param(PlanState.OPEN, None, True, id="none of its batches was sent"),
        pytest.param(PlanState.OPEN, 0, True, id="its batch was withdrawn unsent"),
        pytest.param(PlanState.OPEN, 1, False, id="a batch of it was sent"),
        pytest.param(PlanState.ROLLING_BACK, None, False, id="it is being taken back"),
        pytest.param(PlanState.ELECTING, None, False, id="it elects leaders"),
    ],
)
def test_an_approval_that_ended_ends_only_a_plan_that_has_not_begun(state, sendings, over):
    batches = () if sendings is None else (Batch("p", 1, (MOVE,), BatchState.CLOSED, sendings=sendings),)
    plan = ReassignmentPlan("p", (MOVE,), state)
    machine = MachineState(
        ReassignmentRecords((plan,), (*batches, Batch("q", 1, (), sendings=3))),
        may=BatchPermission(begin=True, lapsed=(("p", "its approval ended"), ("q", "another's"))),
    )
    assert machine.over(plan) == ("its approval ended" if over else None)
    assert machine.over(plan._replace(proposal_id="r")) is None


def test_plans_that_all_have_to_wait_have_their_turns_again_and_again():
    weak = (a_part(1, 2)._replace(isr=frozenset({1})),) * 2
    live = Live(ReassignmentPlan("p", (MOVE,)), min_isr=2, parts=weak)
    live.tell(PlanAccepted(ReassignmentPlan("q", (OTHER,))))
    live.wait(60)
    assert not live.acts
    live.cluster = live.cluster._replace(parts=(weak[0], weak[1]._replace(isr=frozenset({1, 2}))))
    live.wait(10)
    assert [batch.proposal_id for batch in live.journal.batches] == ["q"], "the first one still waits"


# --- what is left alone for a while


@pytest.mark.parametrize(
    ("act", "answer", "before", "after"),
    [
        pytest.param(MOVES, told(RETRY, RETRY), (), ("first", 1, 2_000), id="not now, for the first time"),
        pytest.param(MOVES, told(OK, RETRY), (), ("second", 1, 2_000), id="one of two not now"),
        pytest.param(MOVES, told(RETRY, RETRY), rested(1), ("first", 2, 4_000), id="twice as long"),
        pytest.param(MOVES, told(RETRY, RETRY), rested(3), ("first", 4, 16_000), id="a fourth time"),
        pytest.param(MOVES, told(RETRY, RETRY), rested(4), ("first", 5, 30_000), id="no longer than that"),
        pytest.param(MOVES, told(RETRY, RETRY), rested(10), ("first", 10, 30_000), id="counted no further"),
        pytest.param(MOVES, told(RETRY, RETRY), rested(3, "q"), ("first", 1, 2_000), id="another plan's is its"),
        pytest.param(MOVES, told(OK, RETRY), rested(3), ("second", 1, 2_000), id="anew once moves begin"),
        pytest.param(MOVES, told(OK, OK), rested(3), None, id="forgotten once all begin"),
        pytest.param(
            MOVES, told(NOT_SENT, NOT_SENT), rested(3), ("w", 3, 0), id="kept where nothing was asked"
        ),
        pytest.param(
            THROTTLE, RequestDone((RequestResult(TOPIC_T, OK),)), rested(3), ("w", 3, 0),
            id="kept where only a throttle was set",
        ),
        pytest.param(
            THROTTLE, RequestDone((RequestResult(TOPIC_T, RETRY, "t"),)), (), ("t", 1, 2_000), id="a throttle not now"
        ),
    ],
)  # fmt: skip
def test_a_plan_that_is_told_not_now_is_left_alone_twice_as_long_each_time(act, answer, before, after):
    rests = answered(sent(*before), act, answer, POLICY).backoffs
    own = [(rest.why, rest.times, rest.left_ms) for rest in rests if rest.proposal_id == "p"]
    assert own == ([] if after is None else [after])
    assert [rest for rest in rests if rest.proposal_id != "p"] == [rest for rest in before if rest.proposal_id != "p"]


@pytest.mark.parametrize(
    ("answer", "unsure", "acked", "settle_ms", "next_look_ms"),
    [
        pytest.param(told(OK, OK), set(), {P0, OTHER.id}, 0, 0, id="both were taken"),
        pytest.param(told(OK, UNKNOWN), {OTHER.id}, {P0}, POLICY.settle_ms, 2_000, id="of one nothing is known"),
        pytest.param(RequestDone(()), {P0, OTHER.id}, set(), POLICY.settle_ms, 2_000, id="no answer"),
        pytest.param(told(OK, RequestFate.REFUSED), set(), {P0}, 0, 2_000, id="one was refused"),
        pytest.param(told(OK, NOT_SENT), set(), {P0}, 0, 2_000, id="one was not sent"),
    ],
)
def test_an_answer_says_what_may_still_begin_and_when_to_look(answer, unsure, acked, settle_ms, next_look_ms):
    state = answered(sent(), MOVES, answer, POLICY)
    assert (set(state.unsure), set(state.acked)) == (unsure, acked)
    assert (state.settle_ms, state.next_look_ms) == (settle_ms, next_look_ms)
    assert OTHER.id not in state.refused or answer == told(OK, RequestFate.REFUSED)


def test_clocks_stop_where_waiting_longer_makes_no_difference():
    state = MachineState(
        ReassignmentRecords(), settle_ms=700, next_look_ms=300, backoffs=(PlanBackoff("p", 400, 1, "w"),),
        down=((3, 59_900),), weak_ms=59_900,
    )  # fmt: skip
    after = ticked(state, 500, ReassignmentPolicy(POLICY.limits))
    assert (after.settle_ms, after.next_look_ms, after.backoffs[0].left_ms) == (200, 0, 0)
    assert (after.down, after.weak_ms) == (((3, 60_000),), 60_000)
    assert ticked(state._replace(weak_ms=None), 500, POLICY).weak_ms is None


@pytest.mark.parametrize(
    ("former", "up", "opened", "down"),
    [
        pytest.param((), {1, 2}, True, ((3, 0),), id="it went down just now"),
        pytest.param(((3, 5_000),), {1, 2}, True, ((3, 5_000),), id="it is still down"),
        pytest.param(((3, 5_000),), {1, 2, 3}, True, (), id="it is up again"),
        pytest.param((), {1, 2}, False, ((3, 0),), id="it went down between two batches"),
        pytest.param(((3, 5_000),), {1, 2, 3}, False, (), id="it is up again between two batches"),
        pytest.param(((9, 5_000),), {1, 2, 3}, True, (), id="it is none of the plan's"),
    ],
)
def test_a_broker_of_the_plan_is_down_from_the_look_that_misses_it_to_the_one_that_sees_it(former, up, opened, down):
    state = sent()._replace(down=former)
    if not opened:
        state = state._replace(records=state.records._replace(batches=()))
    assert view_of(state, ClusterView(frozenset(up), ()), POLICY).state.down == down


# --- batches by plan


BATCHES = tuple(Batch(name, number, ()) for name, number in (("a", 1), ("b", 1), ("b", 2), ("b", 3), ("d", 7)))


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        pytest.param("a", [1], id="the first"),
        pytest.param("b", [1, 2, 3], id="in the middle"),
        pytest.param("d", [7], id="the last"),
        pytest.param("c", [], id="none between others"),
        pytest.param("0", [], id="none before others"),
        pytest.param("e", [], id="none after others"),
    ],
)
def test_batches_of_a_plan_are_found_by_its_name(name, numbers):
    state = MachineState(ReassignmentRecords(batches=BATCHES))
    assert [batch.number for batch in batches_of(state, name)] == numbers
    assert latest_batch(state, name) == max(numbers, default=0)

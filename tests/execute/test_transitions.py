"""What a command and an answer leave behind: the whole plan, and all that is known of a request."""

from __future__ import annotations

import pytest

from agent.execute.reassign.machine import transition
from agent.execute.reassign.messages import (
    AlterReassignments,
    AppendJournal,
    CancelReassignments,
    CommandReceived,
    NewPartitionReassignment,
    OwnReassignment,
    PlanCommand,
    RequestDone,
    RequestFate,
    RequestResult,
    TimePassed,
)
from agent.execute.reassign.state import MachineState, PartitionWatch, answered, appended, looking
from agent.values.kafka import LEADER_REPLICAS
from agent.values.reassignment import Batch, BatchState, PlanState, ReassignmentPlan, ReassignmentRecords, ThrottleDebt
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.live_machine import MOVE, OTHER, P0, POLICY, Live

PAUSED = ReassignmentPlan("p", (MOVE,), PlanState.ELECTING, paused=True, elections=2, heard="c1")


@pytest.mark.parametrize(
    ("command", "state", "batches"),
    [
        pytest.param(PlanCommand.CANCEL, PlanState.CANCELLING, 0, id="cancel"),
        pytest.param(PlanCommand.ROLLBACK, PlanState.ROLLING_BACK, 3, id="rollback"),
    ],
)
def test_a_plan_that_is_ended_is_not_paused_any_more_and_elects_anew(
    command: PlanCommand, state: PlanState, batches: int
) -> None:
    result = transition(PAUSED, CommandReceived(command, "p", "ann", "c2"), batches)
    assert result.plan == PAUSED._replace(
        state=state, paused=False, elections=0, sentence=f"{command.value} requested by ann", heard="c2", turned=batches
    )
    nameless = transition(PAUSED, CommandReceived(command, "p", "", "c2"), batches)
    assert nameless.plan.sentence == f"{command.value} requested"
    assert transition(PAUSED, CommandReceived(command, "p", "ann", "c1"), batches).plan == PAUSED, (
        "it had this command already"
    )


SENT = MachineState(
    ReassignmentRecords(
        plans=(ReassignmentPlan("p", (MOVE, OTHER)),), batches=(Batch("p", 1, (MOVE, OTHER), BatchState.SENT),)
    )
)
NONE: frozenset[TopicPartition] = frozenset()
FORMER = frozenset({TopicPartition("t", 9)})


@pytest.mark.parametrize(
    ("kind", "unsure", "acked", "refused", "unsent", "settles"),
    [
        (RequestFate.OK, NONE, {P0}, NONE, NONE, False),
        (RequestFate.REFUSED, NONE, NONE, {P0}, NONE, False),
        (RequestFate.UNKNOWN, {P0}, NONE, NONE, NONE, True),
        (RequestFate.NOT_SENT, NONE, NONE, NONE, {P0}, False),
        (RequestFate.RETRY, NONE, NONE, NONE, {P0}, False),
        (None, {P0}, NONE, NONE, NONE, True),
    ],
    ids=["taken", "refused", "unknown", "not sent", "not now", "no answer"],
)
def test_what_an_answer_to_a_reassignment_leaves_in_doubt(  # noqa: PLR0917 (a column each)
    kind: RequestFate | None,
    unsure: set[TopicPartition],
    acked: set[TopicPartition],
    refused: set[TopicPartition],
    unsent: set[TopicPartition],
    settles: bool,
) -> None:
    """What is known of other partitions stays."""
    before = SENT._replace(unsure=FORMER, acked=FORMER, refused=FORMER, unsent=FORMER, uncancelled=FORMER)
    told = () if kind is None else (RequestResult(P0, kind),)
    after = answered(
        before, AlterReassignments((NewPartitionReassignment(P0, "id", (1, 2), (3, 2)),)), RequestDone(told), POLICY
    )
    assert (after.unsure, after.acked, after.refused, after.unsent) == (
        FORMER | unsure, FORMER | acked, FORMER | refused, FORMER | unsent,
    )  # fmt: skip
    assert (after.settle_ms, after.uncancelled) == (POLICY.settle_ms if settles else 0, FORMER)
    assert after.next_look_ms == (0 if kind is RequestFate.OK else POLICY.look_ms)


def test_a_cancel_without_an_answer_may_still_be_under_way() -> None:
    cancel = CancelReassignments((OwnReassignment(P0, "id", (3, 2)),))
    after = answered(SENT._replace(uncancelled=FORMER), cancel, RequestDone(()), POLICY)
    assert (after.uncancelled, after.unsure, after.settle_ms) == (FORMER | {P0}, NONE, POLICY.settle_ms)
    known = answered(SENT, cancel, RequestDone((RequestResult(P0, RequestFate.OK),)), POLICY)
    assert (known.uncancelled, known.acked) == (NONE, NONE)


def test_a_look_asks_for_all_that_the_plan_and_the_throttles_of_ours_need() -> None:
    debt = ThrottleDebt(ThrottleResource(topic="gone"), LEADER_REPLICAS, ("0:1",), None, "q", 1)
    state, look = looking(SENT._replace(records=SENT.records._replace(debts=(debt,)), unsure=FORMER))
    assert look.topics == ("gone", "t")
    assert {(one.kind, one.name) for one in look.resources} == {
        ("broker", "1"), ("broker", "2"), ("broker", "3"), ("topic", "gone"), ("topic", "t"),
    }  # fmt: skip
    assert (state.waiting, state.settled, state.unsure) == (look, True, NONE)
    busy, _ = looking(SENT._replace(settle_ms=1, unsure=FORMER, uncancelled=FORMER))
    assert (busy.settled, busy.unsure, busy.uncancelled) == (False, FORMER, FORMER)


def test_what_is_known_of_a_batch_ends_with_it() -> None:
    (batch,) = SENT.records.batches
    known = SENT._replace(unsent=FORMER, acked=FORMER, refused=FORMER, watches=(PartitionWatch(P0, ()),), weak_ms=7)
    closed = appended(known, AppendJournal((batch._replace(state=BatchState.CLOSED),)))
    assert (closed.unsent, closed.acked, closed.refused) == (NONE, NONE, NONE)
    assert (closed.watches, closed.weak_ms) == ((), None)
    open_ = appended(known, AppendJournal((batch._replace(sendings=2),)))
    assert (open_.acked, open_.watches) == (FORMER, known.watches)


def test_what_is_not_accepted_and_what_changes_nothing_is_not_in_the_way_of_the_rest() -> None:
    live = Live()
    live.state = live.state._replace(
        incoming=(ReassignmentPlan("p", (MOVE,)), ReassignmentPlan("q", (OTHER,))),
        commands=(
            CommandReceived(PlanCommand.RESUME, "gone"),
            CommandReceived(PlanCommand.RESUME, "p"),
            CommandReceived(PlanCommand.PAUSE, "q"),
        ),
    )
    live.tell(TimePassed(60_000))
    assert [(plan.proposal_id, plan.paused) for plan in live.journal.plans] == [("p", False), ("q", True)]
    told = {say.sentence: say.alarm for say in live.notices}
    assert told["p is not accepted: it was accepted before"] is False
    assert told[f"{PlanCommand.RESUME} gone: nothing to do"] is False

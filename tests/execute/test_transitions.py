"""What a command and an answer leave behind: the whole plan, and all that is known of a request."""

from __future__ import annotations

import pytest

from agent.execute.messages import Alter, Answered, Cancel, Kind, Move, Result, Run, Said, Word
from agent.execute.state import State, answered
from agent.execute.transitions import turned
from agent.execute.values import Batch, BatchState, Plan, PlanState, Records
from assignors.problem import TopicPartition
from tests.execute.live import MOVE, OTHER, P0, POLICY

PAUSED = Plan("p", (MOVE,), PlanState.ELECTING, paused=True, elections=2, heard="c1")


@pytest.mark.parametrize(
    ("word", "state", "batches"),
    [
        pytest.param(Word.CANCEL, PlanState.CANCELLING, 0, id="cancel"),
        pytest.param(Word.ROLLBACK, PlanState.ROLLING_BACK, 3, id="rollback"),
    ],
)
def test_a_plan_that_is_ended_is_not_paused_any_more_and_elects_anew(
    word: Word, state: PlanState, batches: int
) -> None:
    turn = turned(PAUSED, Said(word, "p", "ann", "c2"), batches)
    assert turn.plan == PAUSED._replace(
        state=state, paused=False, elections=0, sentence=f"{word.value} requested by ann", heard="c2", turned=batches
    )
    nameless = turned(PAUSED, Said(word, "p", "", "c2"), batches)
    assert nameless.plan.sentence == f"{word.value} requested"
    assert turned(PAUSED, Said(word, "p", "ann", "c1"), batches).plan == PAUSED, "it had this command already"


SENT = State(Records(plans=(Plan("p", (MOVE, OTHER)),), batches=(Batch("p", 1, (MOVE, OTHER), BatchState.SENT),)))
NONE: frozenset[TopicPartition] = frozenset()
FORMER = frozenset({TopicPartition("t", 9)})


@pytest.mark.parametrize(
    ("kind", "unsure", "acked", "refused", "unsent", "settles"),
    [
        (Kind.OK, NONE, {P0}, NONE, NONE, False),
        (Kind.REFUSED, NONE, NONE, {P0}, NONE, False),
        (Kind.UNKNOWN, {P0}, NONE, NONE, NONE, True),
        (Kind.NOT_SENT, NONE, NONE, NONE, {P0}, False),
        (Kind.RETRY, NONE, NONE, NONE, {P0}, False),
        (None, {P0}, NONE, NONE, NONE, True),
    ],
    ids=["taken", "refused", "unknown", "not sent", "not now", "no answer"],
)
def test_what_an_answer_to_a_reassignment_leaves_in_doubt(  # noqa: PLR0917 (a column each)
    kind: Kind | None,
    unsure: set[TopicPartition],
    acked: set[TopicPartition],
    refused: set[TopicPartition],
    unsent: set[TopicPartition],
    settles: bool,
) -> None:
    """What is known of other partitions stays."""
    before = SENT._replace(unsure=FORMER, acked=FORMER, refused=FORMER, unsent=FORMER, uncancelled=FORMER)
    told = () if kind is None else (Result(P0, kind),)
    after = answered(before, Alter((Move(P0, "id", (1, 2), (3, 2)),)), Answered(told), POLICY)
    assert (after.unsure, after.acked, after.refused, after.unsent) == (
        FORMER | unsure, FORMER | acked, FORMER | refused, FORMER | unsent,
    )  # fmt: skip
    assert (after.settle_ms, after.uncancelled) == (POLICY.settle_ms if settles else 0, FORMER)
    assert after.next_look_ms == (0 if kind is Kind.OK else POLICY.look_ms)


def test_a_cancel_without_an_answer_may_still_be_under_way() -> None:
    cancel = Cancel((Run(P0, "id", (3, 2)),))
    after = answered(SENT._replace(uncancelled=FORMER), cancel, Answered(()), POLICY)
    assert (after.uncancelled, after.unsure, after.settle_ms) == (FORMER | {P0}, NONE, POLICY.settle_ms)
    known = answered(SENT, cancel, Answered((Result(P0, Kind.OK),)), POLICY)
    assert (known.uncancelled, known.acked) == (NONE, NONE)

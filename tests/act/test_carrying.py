"""A command is sent only for what is, right before, as it was decided for; each line of it has its answer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agent.act.carrying import carry_out
from agent.execute.messages import Act, Alter, Cancel, Configure, Elect, Kind, Move, Op, Result, Setting
from agent.execute.values import FOLLOWER_RATE, LEADER_RATE, LEADER_REPLICAS, Resource
from agent.wire.change import DONE, Answered, Fate
from agent.wire.deadline import Deadline
from agent.wire.hand import WireHand
from assignors.problem import TopicPartition
from tests.act.stub_hand import StubHand, topic, unknown

T0 = TopicPartition("t", 0)
MOVE = Move(T0, "id", (1, 2), (3, 2))
AS_EXPECTED = {1: (topic("t", (1, 2)),)}


def carried(hand: StubHand, act: Act, *, within_ms: int = 1_000) -> tuple[Result, ...]:
    taken = cast("WireHand", cast("Any", hand))
    return carry_out(taken, act, begin_by=Deadline.after_ms(within_ms), timeout_ms=1_000)


def sent(hand: StubHand) -> list[Any]:
    return [call for call in hand.calls if call[0] in ("alter", "elect", "throttle")]


def test_a_move_whose_partition_is_as_expected_is_sent() -> None:
    hand = StubHand(AS_EXPECTED)
    assert carried(hand, Alter((MOVE,))) == (Result(T0, Kind.OK, ""),)
    assert sent(hand) == [("alter", {T0: (3, 2)})]


@pytest.mark.parametrize(
    ("now", "kind", "sentence"),
    [
        (topic("t", (2, 1)), Kind.REFUSED, "t-0 has replicas 2,1, not 1,2 as when the move was decided"),
        (topic("t", (1, 3)), Kind.REFUSED, "t-0 has replicas 1,3, not 1,2 as when the move was decided"),
        (topic("t", (1, 2), topic_id="new"), Kind.REFUSED, "topic t was deleted and created again"),
        (unknown("t"), Kind.GONE, "topic t no longer exists"),
        (topic("t", (1, 2))._replace(error="TOPIC_AUTHORIZATION_FAILED"), Kind.RETRY, "topic t could not be seen"),
        (topic("t", (1, 2))._replace(partitions=()), Kind.RETRY, "t-0 could not be seen"),
    ],
    ids=["another order", "other replicas", "another topic", "no topic", "no right to see it", "no such partition"],
)
def test_a_move_whose_partition_is_another_is_not_sent(now: Any, kind: Kind, sentence: str) -> None:
    hand = StubHand({1: (now,)})
    (result,) = carried(hand, Alter((MOVE,)))
    assert (result.kind, sent(hand)) == (kind, [])
    assert sentence in result.sentence


def test_what_is_as_expected_is_sent_without_what_is_not() -> None:
    hand = StubHand({1: (topic("t", (1, 2)), topic("u", (2, 1)))})
    other = MOVE._replace(id=TopicPartition("u", 0))
    assert [row.kind for row in carried(hand, Alter((MOVE, other)))] == [Kind.OK, Kind.REFUSED]
    assert sent(hand) == [("alter", {T0: (3, 2)})]


@pytest.mark.parametrize(
    ("told", "cancelling", "kind"),
    [
        (DONE, False, Kind.OK),
        (Answered(Fate.UNKNOWN), False, Kind.UNKNOWN),
        (Answered(Fate.NOT_SENT), False, Kind.RETRY),
        (Answered(Fate.REFUSED, "NO_REASSIGNMENT_IN_PROGRESS"), True, Kind.NOT_NEEDED),
        (Answered(Fate.REFUSED, "INVALID_REPLICATION_ASSIGNMENT"), True, Kind.UNCLEAN),
        (Answered(Fate.REFUSED, "INVALID_REPLICATION_ASSIGNMENT"), False, Kind.REFUSED),
        (Answered(Fate.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"), False, Kind.GONE),
        (Answered(Fate.REFUSED, "CLUSTER_AUTHORIZATION_FAILED"), False, Kind.REFUSED),
        (Answered(Fate.REFUSED, "THROTTLING_QUOTA_EXCEEDED"), False, Kind.RETRY),
    ],
)  # fmt: skip
def test_an_answer_of_the_wire_is_one_of_the_machine(told: Answered, cancelling: bool, kind: Kind) -> None:
    hand = StubHand(AS_EXPECTED, answer=told)
    act = Cancel((T0,)) if cancelling else Alter((MOVE,))
    assert [row.kind for row in carried(hand, act)] == [kind]


def test_what_was_not_sent_in_time_is_told_so() -> None:
    hand = StubHand(AS_EXPECTED, answer=Answered(Fate.NOT_SENT))
    assert [row.kind for row in carried(hand, Cancel((T0,)), within_ms=0)] == [Kind.NOT_SENT]
    assert [row.kind for row in carried(hand, Elect((T0,)), within_ms=0)] == [Kind.NOT_SENT]


def test_where_it_is_too_late_for_a_move_nobody_is_asked_for_its_partition_either() -> None:
    hand = StubHand(AS_EXPECTED)
    assert [row.kind for row in carried(hand, Alter((MOVE,)), within_ms=0)] == [Kind.NOT_SENT]
    assert hand.calls == []


def test_settings_are_answered_once_for_each_topic_or_broker() -> None:
    hand = StubHand()
    broker, moved = Resource("broker", "3"), Resource("topic", "t")
    settings = (
        Setting(broker, LEADER_RATE, Op.SET, "1"),
        Setting(broker, FOLLOWER_RATE, Op.DELETE),
        Setting(moved, LEADER_REPLICAS, Op.APPEND, "0:1"),
    )
    assert carried(hand, Configure(settings)) == (Result(broker, Kind.OK, ""), Result(moved, Kind.OK, ""))
    ((_, changes),) = sent(hand)
    assert [(change.setting.key, change.operation.name, change.value) for change in changes] == [
        (LEADER_RATE, "SET", "1"),
        (FOLLOWER_RATE, "DELETE", None),
        (LEADER_REPLICAS, "APPEND", "0:1"),
    ]

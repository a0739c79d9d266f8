"""A command is sent only for what is, right before, as it was decided for; each line of it has its answer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agent.act.reassign.machine_driver import carry_out
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    CancelReassignments,
    ClusterChange,
    ElectLeaders,
    NewPartitionReassignment,
    OwnReassignment,
    RequestFate,
    RequestResult,
)
from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE, LEADER_REPLICAS
from agent.values.observation import RawReassignment
from agent.values.throttles import OpType, SeenThrottle, ThrottleChange, ThrottleResource
from agent.wire.admin_client import WireAdminClient
from agent.wire.changes import DONE, ChangeResult, Fate
from agent.wire.failure import Deadline
from assignors.problem import TopicPartition
from tests.act.stub_admin_client import StubAdminClient, topic, unknown

T0 = TopicPartition("t", 0)
MOVE = NewPartitionReassignment(T0, "id", (1, 2), (3, 2))
OURS = RawReassignment(T0, (3, 2, 1), (3,), (1,))
THEIRS = RawReassignment(T0, (4, 2, 1), (4,), (1,))
CANCEL = CancelReassignments((OwnReassignment(T0, "id", (3, 2)),))
ONE = ThrottleResource(broker=1)
AS_EXPECTED = {1: (topic("t", (1, 2)),)}


def carried(hand: StubAdminClient, act: ClusterChange, *, within_ms: int = 1_000) -> tuple[RequestResult, ...]:
    taken = cast("WireAdminClient", cast("Any", hand))
    return carry_out(taken, act, begin_by=Deadline.after_ms(within_ms), timeout_ms=1_000)


def sent(hand: StubAdminClient) -> list[Any]:
    return [call for call in hand.calls if call[0] in ("alter", "elect", "throttle")]


def test_a_move_whose_partition_is_as_expected_is_sent() -> None:
    hand = StubAdminClient(AS_EXPECTED)
    assert carried(hand, AlterReassignments((MOVE,))) == (RequestResult(T0, RequestFate.OK, ""),)
    assert sent(hand) == [("alter", {T0: (3, 2)})]


@pytest.mark.parametrize(
    ("now", "kind", "sentence"),
    [
        (topic("t", (2, 1)), RequestFate.RETRY, "t-0 has replicas 2,1, not 1,2 as when the move was decided"),
        (topic("t", (1, 3)), RequestFate.RETRY, "t-0 has replicas 1,3, not 1,2 as when the move was decided"),
        (topic("t", (1, 2), topic_id="new"), RequestFate.RETRY, "topic t was deleted and created again"),
        (unknown("t"), RequestFate.GONE, "topic t no longer exists"),
        (
            topic("t", (1, 2))._replace(error="TOPIC_AUTHORIZATION_FAILED"),
            RequestFate.RETRY,
            "topic t could not be seen",
        ),
        (topic("t", (1, 2))._replace(partitions=()), RequestFate.RETRY, "t-0 could not be seen"),
    ],
    ids=["another order", "other replicas", "another topic", "no topic", "no right to see it", "no such partition"],
)
def test_a_move_whose_partition_is_another_is_not_sent(now: Any, kind: RequestFate, sentence: str) -> None:
    hand = StubAdminClient({1: (now,)})
    (result,) = carried(hand, AlterReassignments((MOVE,)))
    assert (result.kind, sent(hand)) == (kind, [])
    assert sentence in result.sentence


@pytest.mark.parametrize(
    ("running", "now", "kind", "sentence"),
    [
        ((OURS,), topic("t", (3, 2, 1)), RequestFate.OK, ""),
        (
            (THEIRS,),
            topic("t", (4, 2, 1)),
            RequestFate.RETRY,
            "t-0 is being moved to 4,2, which is not a move of this plan",
        ),
        ((), topic("t", (3, 2)), RequestFate.NOT_NEEDED, "t-0 is no longer being moved"),
        ((OURS,), topic("t", (3, 2, 1), topic_id="new"), RequestFate.RETRY, "topic t was deleted and created again"),
        ((), unknown("t"), RequestFate.GONE, "topic t no longer exists"),
    ],
    ids=["ours", "another tool's since the look", "ended since the look", "of another topic", "of no topic"],
)
def test_only_a_move_that_still_is_ours_is_cancelled(running: Any, now: Any, kind: RequestFate, sentence: str) -> None:
    hand = StubAdminClient({1: (now,)}, moves=running)
    assert carried(hand, CANCEL) == (RequestResult(T0, kind, sentence),)
    assert bool(sent(hand)) is (kind is RequestFate.OK)


def test_a_partition_that_another_tool_began_to_move_since_the_look_is_not_moved() -> None:
    hand = StubAdminClient(AS_EXPECTED, moves=(THEIRS,))
    assert carried(hand, AlterReassignments((MOVE,))) == (
        RequestResult(T0, RequestFate.RETRY, "t-0 is being moved to 4,2"),
    )
    assert sent(hand) == []


SET = ThrottleChange(ONE, LEADER_RATE, OpType.SET, "5", expected=(None, "5"), alone=True)
DELETE = ThrottleChange(ONE, LEADER_RATE, OpType.DELETE, expected=("5",))


@pytest.mark.parametrize(
    ("setting", "own_and_default", "sentence"),
    [
        (SET, (None, None), None),
        (SET, ("5", None), None),
        (SET, ("7", None), "is 7, which is not as when the change was decided"),
        (SET, (None, "9"), "is 9 by default, which rackwise did not set"),
        (DELETE, ("5", "9"), None),
        (DELETE, ("7", None), "is 7, which is not as when the change was decided"),
        (DELETE, (None, None), "is not set, which is not as when the change was decided"),
        (DELETE, None, "could not be read"),
    ],
    ids=[
        "a rate where none is", "a rate of ours again", "another tool's rate is not overwritten",
        "a default for all brokers is not overridden", "a rate of ours is deleted",
        "another tool's rate is not deleted", "what is deleted already", "what cannot be read",
    ],
)  # fmt: skip
def test_a_rate_is_changed_only_while_it_is_what_it_was_decided_for(
    setting: ThrottleChange, own_and_default: tuple[str | None, str | None] | None, sentence: str | None
) -> None:
    throttles = (SeenThrottle(ONE, LEADER_RATE, *own_and_default),) if own_and_default is not None else ()
    hand = StubAdminClient(throttles=throttles, mute=frozenset() if throttles else frozenset({1}))
    (result,) = carried(hand, AlterThrottles((setting,)))
    assert bool(sent(hand)) is (sentence is None)
    assert (result.kind, sentence or "") == (RequestFate.OK if sentence is None else RequestFate.RETRY, sentence or "")
    assert (sentence or "") in result.sentence


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        (topic("t", (1, 2)), RequestFate.OK),
        (topic("t", (1, 2), topic_id="new"), RequestFate.RETRY),
        (unknown("t"), RequestFate.RETRY),
    ],
    ids=["the very topic", "another topic of that name", "no topic"],
)
def test_a_list_is_changed_only_of_the_very_topic(now: Any, kind: RequestFate) -> None:
    entry = ThrottleChange(ThrottleResource(topic="t"), LEADER_REPLICAS, OpType.APPEND, "0:1", topic_id="id")
    hand = StubAdminClient({1: (now,)})
    assert [row.kind for row in carried(hand, AlterThrottles((entry,)))] == [kind]
    assert bool(sent(hand)) is (kind is RequestFate.OK)


def test_a_resource_is_changed_whole_or_not_at_all_and_the_others_all_the_same() -> None:
    two = ThrottleResource(broker=2)
    hand = StubAdminClient(throttles=(SeenThrottle(ONE, LEADER_RATE, "7"),))
    settings = (SET, SET._replace(key=FOLLOWER_RATE), SET._replace(resource=two))
    assert [(row.subject, row.kind) for row in carried(hand, AlterThrottles(settings))] == [
        (ONE, RequestFate.RETRY), (two, RequestFate.OK),
    ]  # fmt: skip
    ((_, changes),) = sent(hand)
    assert [change.resource.broker for change in changes] == [2]


def test_what_is_as_expected_is_sent_without_what_is_not() -> None:
    hand = StubAdminClient({1: (topic("t", (1, 2)), topic("u", (2, 1)))})
    other = MOVE._replace(id=TopicPartition("u", 0))
    assert [row.kind for row in carried(hand, AlterReassignments((MOVE, other)))] == [RequestFate.OK, RequestFate.RETRY]
    assert sent(hand) == [("alter", {T0: (3, 2)})]


@pytest.mark.parametrize(
    ("told", "cancelling", "kind"),
    [
        (DONE, False, RequestFate.OK),
        (ChangeResult(Fate.UNKNOWN), False, RequestFate.UNKNOWN),
        (ChangeResult(Fate.NOT_SENT), False, RequestFate.RETRY),
        (ChangeResult(Fate.REFUSED, "NO_REASSIGNMENT_IN_PROGRESS"), True, RequestFate.NOT_NEEDED),
        (ChangeResult(Fate.REFUSED, "INVALID_REPLICATION_ASSIGNMENT"), True, RequestFate.UNCLEAN),
        (ChangeResult(Fate.REFUSED, "INVALID_REPLICATION_ASSIGNMENT"), False, RequestFate.RETRY),
        (ChangeResult(Fate.REFUSED, "INVALID_REPLICATION_FACTOR"), False, RequestFate.REFUSED),
        (ChangeResult(Fate.REFUSED, "UNSUPPORTED"), False, RequestFate.REFUSED),
        (ChangeResult(Fate.REFUSED, "NOT_ALLOWED"), False, RequestFate.RETRY),
        (ChangeResult(Fate.REFUSED, "TOPIC_AUTHORIZATION_FAILED"), False, RequestFate.RETRY),
        (ChangeResult(Fate.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"), False, RequestFate.GONE),
        (ChangeResult(Fate.REFUSED, "CLUSTER_AUTHORIZATION_FAILED"), False, RequestFate.RETRY),
        (ChangeResult(Fate.REFUSED, "THROTTLING_QUOTA_EXCEEDED"), False, RequestFate.RETRY),
    ],
)  # fmt: skip
def test_an_answer_of_the_wire_is_one_of_the_machine(told: ChangeResult, cancelling: bool, kind: RequestFate) -> None:
    hand = StubAdminClient(AS_EXPECTED, answer=told, moves=(OURS,) if cancelling else ())
    act = CANCEL if cancelling else AlterReassignments((MOVE,))
    assert [row.kind for row in carried(hand, act)] == [kind]


def test_what_was_not_sent_in_time_is_told_so() -> None:
    hand = StubAdminClient(AS_EXPECTED, answer=ChangeResult(Fate.NOT_SENT))
    assert [row.kind for row in carried(hand, CANCEL, within_ms=0)] == [RequestFate.NOT_SENT]
    assert [row.kind for row in carried(hand, ElectLeaders((T0,)), within_ms=0)] == [RequestFate.NOT_SENT]


def test_where_it_is_too_late_for_a_move_nobody_is_asked_for_its_partition_either() -> None:
    hand = StubAdminClient(AS_EXPECTED)
    assert [row.kind for row in carried(hand, AlterReassignments((MOVE,)), within_ms=0)] == [RequestFate.NOT_SENT]
    assert hand.calls == []


def test_settings_are_answered_once_for_each_topic_or_broker() -> None:
    hand = StubAdminClient()
    broker, moved = ThrottleResource(broker=3), ThrottleResource(topic="t")
    settings = (
        ThrottleChange(broker, LEADER_RATE, OpType.SET, "1"),
        ThrottleChange(broker, FOLLOWER_RATE, OpType.DELETE),
        ThrottleChange(moved, LEADER_REPLICAS, OpType.APPEND, "0:1"),
    )
    assert carried(hand, AlterThrottles(settings)) == (
        RequestResult(broker, RequestFate.OK, ""),
        RequestResult(moved, RequestFate.OK, ""),
    )
    ((_, changes),) = sent(hand)
    assert [(change.key, change.op.name, change.value) for change in changes] == [
        (LEADER_RATE, "SET", "1"),
        (FOLLOWER_RATE, "DELETE", None),
        (LEADER_REPLICAS, "APPEND", "0:1"),
    ]

"""What counts as seen before anything is done: two brokers that agree, in the right order, and no silence as empty."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from agent.act.reassign.cluster_view import LookFailedError, read_cluster
from agent.execute.reassign.messages import ClusterView, ReadCluster
from agent.values.kafka import LEADER_RATE
from agent.values.observation import GapCause, RawReassignment
from agent.values.throttles import SeenThrottle, ThrottleResource
from agent.wire.admin_client import WireAdminClient
from agent.wire.failure import CallFailed
from assignors.problem import TopicPartition
from tests.act.stub_admin_client import StubAdminClient, topic, unknown

T0 = TopicPartition("t", 0)


def seen(hand: StubAdminClient, *topics: str, resources: tuple[ThrottleResource, ...] = ()) -> ClusterView:
    return read_cluster(cast("WireAdminClient", cast("Any", hand)), ReadCluster(topics or ("t",), resources), 1_000)


def test_moves_are_read_before_topics_and_topics_from_two_brokers() -> None:
    hand = StubAdminClient({1: (topic("t", (1, 2)),), 2: (topic("t", (1, 2)),)}, min_isr={"t": "2"})
    (partition,) = seen(hand).partitions
    assert (partition.id, partition.replicas, partition.leader, partition.min_isr) == (T0, (1, 2), 1, 2)
    assert hand.calls[:4] == [("brokers",), ("reassignments",), ("topics", 1), ("topics", 2)]


@pytest.mark.parametrize(
    "second",
    [topic("t", (1, 3)), topic("t", (2, 1)), topic("t", (1, 2), topic_id="another"), unknown("t")],
    ids=["other replicas", "another order", "another topic of that name", "a topic that it does not know"],
)
def test_where_two_brokers_tell_different_things_nothing_is_seen(second: Any) -> None:
    with pytest.raises(LookFailedError, match="brokers 1 and 2 do not agree about topic t yet"):
        seen(StubAdminClient({1: (topic("t", (1, 2)),), 2: (second,)}))


def test_where_brokers_have_other_throttles_of_a_topic_nothing_is_seen() -> None:
    hand = StubAdminClient({1: (topic("t", (1, 2)),), 2: (topic("t", (1, 2)),)}, behind=("t",))
    with pytest.raises(LookFailedError, match="brokers do not agree about the throttles of topic t yet"):
        seen(hand)


def test_the_weaker_of_two_isrs_counts_and_a_disputed_leader_is_unknown() -> None:
    one, two = topic("t", (1, 2, 3), isr=(1, 2)), topic("t", (1, 2, 3), isr=(2, 3), leader=2)
    (partition,) = seen(StubAdminClient({1: (one,), 2: (two,)})).partitions
    assert (partition.isr, partition.leader, partition.min_isr) == (frozenset({2}), None, None)
    assert not partition.leader_known


def test_a_partition_of_which_both_say_that_it_has_no_leader_has_none() -> None:
    one = topic("t", (1, 2))
    leaderless = one._replace(partitions=(one.partitions[0]._replace(leader=None),))
    (partition,) = seen(StubAdminClient({1: (leaderless,), 2: (leaderless,)})).partitions
    assert (partition.leader, partition.leader_known) == (None, True)


def test_a_topic_is_gone_when_both_say_so() -> None:
    found = seen(StubAdminClient({1: (unknown("t"),), 2: (unknown("t"),)}))
    assert (found.gone, found.partitions) == (frozenset({"t"}), ())


@pytest.mark.parametrize(
    ("up", "fenced", "gone"),
    [
        pytest.param((1,), (2,), False, id="one of two is up"),
        pytest.param((1,), (2, 3), False, id="one of three is up"),
        pytest.param((1,), (), True, id="the cluster has one broker"),
    ],
)
def test_the_word_of_one_broker_makes_a_topic_gone_only_where_there_is_no_other(
    up: tuple[int, ...], fenced: tuple[int, ...], *, gone: bool
) -> None:
    found = seen(StubAdminClient({1: (unknown("t"),)}, up=up, fenced=fenced))
    assert (found.gone, found.partitions) == (frozenset({"t"} if gone else ()), ())


def test_one_broker_that_cannot_tell_of_fenced_ones_may_be_one_of_many() -> None:
    class Older(StubAdminClient):
        def describe_brokers(self, deadline_ms: int) -> Any:
            told = super().describe_brokers(deadline_ms)
            return told._replace(brokers=tuple(row._replace(fenced=None) for row in told.brokers))

    assert seen(Older({1: (unknown("t"),)}, up=(1,))).gone == frozenset()


@pytest.mark.parametrize(("replicas", "minimum", "counts"), [(2, 3, 2), (3, 2, 2), (1, 2, 1), (4, 3, 3)])
def test_a_min_isr_above_the_replicas_counts_as_the_broker_counts_it(replicas: int, minimum: int, counts: int) -> None:
    rows = (topic("t", tuple(range(1, replicas + 1))),)
    (partition,) = seen(StubAdminClient({1: rows, 2: rows}, min_isr={"t": str(minimum)})).partitions
    assert partition.min_isr == minimum
    in_sync = [partition._replace(isr=frozenset(range(count))) for count in range(replicas + 1)]
    assert [one.under_min_isr for one in in_sync] == [count < counts for count in range(replicas + 1)]


def test_the_only_broker_that_is_up_is_believed() -> None:
    hand = StubAdminClient({1: (topic("t", (1, 2)),)}, up=(1,), fenced=(2,))
    assert [row.id for row in seen(hand).partitions] == [T0]
    assert seen(hand).brokers == {1}


def test_of_two_brokers_up_one_witness_is_too_few() -> None:
    class Twice(StubAdminClient):
        def describe_topics(self, deadline_ms: int, *, names: Any, avoid: int | None = None) -> Any:
            return super().describe_topics(deadline_ms, names=names)

    with pytest.raises(LookFailedError, match="only one broker described the topics"):
        seen(Twice({1: (topic("t", (1, 2)),)}))


def test_a_cluster_that_does_not_answer_is_not_seen() -> None:
    with pytest.raises(LookFailedError, match="the broker does not answer") as told:
        seen(StubAdminClient(failure=CallFailed(GapCause.UNREACHABLE, "the broker does not answer")))
    assert told.value.silent


def test_calls_that_follow_on_one_another_have_their_whole_time_each() -> None:
    class Slow(StubAdminClient):
        def slow(self, deadline_ms: int) -> None:
            assert deadline_ms == 300
            time.sleep(0.2)

        def describe_brokers(self, deadline_ms: int) -> Any:
            self.slow(deadline_ms)
            return super().describe_brokers(deadline_ms)

        def list_reassignments(self, deadline_ms: int) -> Any:
            self.slow(deadline_ms)
            return super().list_reassignments(deadline_ms)

        def describe_topics(self, deadline_ms: int, *, names: Any, avoid: int | None = None) -> Any:
            self.slow(deadline_ms)
            return super().describe_topics(deadline_ms, names=names, avoid=avoid)

    hand = Slow({1: (topic("t", (1, 2)),), 2: (topic("t", (1, 2)),)})
    found = read_cluster(cast("WireAdminClient", cast("Any", hand)), ReadCluster(("t",), ()), 300)
    assert [row.id for row in found.partitions] == [T0]


def test_a_broker_that_is_down_is_not_asked_for_its_settings_and_one_that_does_not_answer_is_unread() -> None:
    resources = tuple(ThrottleResource(broker=broker) for broker in (1, 2, 3))
    witnesses = {1: (topic("t", (1, 2)),), 2: (topic("t", (1, 2)),)}
    hand = StubAdminClient(witnesses, up=(1, 2), fenced=(3,), mute=frozenset({2}))
    assert seen(hand, resources=resources).unread == {ThrottleResource(broker=2)}
    assert ("throttles", (1, 2)) in hand.calls


def test_layers_are_told_apart_and_keys_without_a_value_left_out() -> None:
    witnesses = {1: (topic("t", (1, 2)),), 2: (topic("t", (1, 2)),)}
    hand = StubAdminClient(witnesses, throttles=(SeenThrottle(ThrottleResource(broker=1), LEADER_RATE, "7", "9"),))
    (throttle,) = seen(hand, resources=(ThrottleResource(broker=1), ThrottleResource(topic="t"))).throttles
    assert (throttle.resource, throttle.own, throttle.default) == (ThrottleResource(broker=1), "7", "9")


def test_sizes_are_asked_for_what_moves_and_matters_only() -> None:
    moves = (
        RawReassignment(TopicPartition("other", 0), (1, 2, 3), (3,), (1,)),
        RawReassignment(T0, (3, 2, 1), (3,), (1,)),
    )
    hand = StubAdminClient({1: (topic("t", (3, 2, 1)),), 2: (topic("t", (3, 2, 1)),)}, moves=tuple(sorted(moves)))
    found = seen(hand)
    assert found.bytes == ((T0, 1, 1_000), (T0, 2, 2_000), (T0, 3, 3_000))
    assert [move.target for move in found.moves if move.id == T0] == [(3, 2)]

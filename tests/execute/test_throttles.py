"""Throttles: ours beside others', others' untouched, and nothing left in the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execute.reassign.messages import AlterThrottles, ClusterView, PartitionView
from agent.execute.reassign.throttles import (
    ThrottleStatus,
    batch_throttles,
    complete,
    missing_throttles,
    rate_of,
    throttle_removal,
    throttle_status,
    throttle_update,
)
from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import Batch, ReassignmentPolicy, ReassignmentTarget, ThrottleDebt
from agent.values.throttles import OpType, SeenThrottle, ThrottleChange, ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import applied

TOPIC = ThrottleResource(topic="t")
TARGETS = (
    ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (3, 2)),
    ReassignmentTarget(TopicPartition("t", 1), "id", (2, 3), (1, 3)),
)
Settings = dict[tuple[ThrottleResource, str], str]


def brokers(*ids: int) -> list[ThrottleResource]:
    return [ThrottleResource(broker=id_) for id_ in ids]


def seen(own: Settings, *, up: tuple[int, ...] = (1, 2, 3), topic_id: str = "id", **defaults: str) -> ClusterView:
    keys = dict.fromkeys([*own, *((it, key.replace("_", ".")) for key in defaults for it in brokers(1, 2, 3))])
    throttles = [SeenThrottle(*it, own.get(it), defaults.get(it[1].replace(".", "_"))) for it in keys]
    partitions = tuple(
        PartitionView(it.id, topic_id, it.before[0], it.before, frozenset(it.before), 1) for it in TARGETS
    )
    return ClusterView(frozenset(up), partitions, throttles=tuple(sorted(throttles, key=lambda it: it[:2])))


def after(own: Settings, request: AlterThrottles) -> Settings:
    """What brokers make of it."""
    own = dict(own)
    for change in request.settings:
        value = applied(own.pop((change.resource, change.key), None), change)
        if value is not None:
            own[change.resource, change.key] = value
    return own


def set_by(debts: tuple[ThrottleDebt, ...]) -> AlterThrottles:
    return AlterThrottles(tuple(throttle_update(debt) for debt in debts))


def cleared(debts: tuple[ThrottleDebt, ...], own: Settings) -> Settings:
    now = seen(own)
    return after(
        own,
        AlterThrottles(
            tuple(throttle_removal(it, now) for it in debts if throttle_status(it, now) is ThrottleStatus.STANDS)
        ),
    )


BATCH = Batch("p", 1, TARGETS, rate_bytes_per_s=10)
ENTRIES = st.lists(st.sampled_from(["0:1", "0:2", "0:3", "1:1", "9:9", "*"]), min_size=1, unique=True).map(",".join)
OTHERS = st.fixed_dictionaries(
    {},
    optional={
        **{(broker, key): st.just("7") for broker in brokers(1, 2, 3) for key in (LEADER_RATE, FOLLOWER_RATE)},
        (TOPIC, LEADER_REPLICAS): ENTRIES,
        (TOPIC, FOLLOWER_REPLICAS): ENTRIES,
    },
)


@settings(deadline=None, max_examples=50)
@given(OTHERS)
def test_others_keep_theirs_during_and_after(others):
    debts = batch_throttles(BATCH, seen(others)).debts
    during = after(others, set_by(debts))
    assert all(complete(debt, seen(during)) for debt in debts)
    for where, value in others.items():
        if where[0] == TOPIC:
            assert set(value.split(",")) <= set(during[where].split(","))
            assert "*" not in value or during[where] == value
        else:
            assert during[where] == value
    assert cleared(debts, during) == others


@settings(deadline=None, max_examples=50)
@given(OTHERS, OTHERS)
def test_what_others_set_meanwhile_stays(before, meanwhile):
    debts = batch_throttles(BATCH, seen(before)).debts
    during = after(before, set_by(debts))
    for where, value in meanwhile.items():
        both = [*during.get(where, "").split(","), *value.split(",")]
        during[where] = ",".join(dict.fromkeys(it for it in both if it)) if where[0] == TOPIC else value
    left = cleared(debts, during)
    for where, value in meanwhile.items():
        ours = {entry for debt in debts if (debt.resource, debt.key) == where for entry in debt.value.split(",")}
        assert set(value.split(",")) - ours <= set(left.get(where, "").split(","))


@settings(deadline=None, max_examples=50)
@given(OTHERS)
def test_setting_twice_and_clearing_twice_changes_nothing_more(others):
    debts = batch_throttles(BATCH, seen(others)).debts
    once = after(others, set_by(debts))
    assert after(once, set_by(debts)) == once
    assert cleared(debts, cleared(debts, once)) == others


def test_sources_send_and_copies_receive_at_the_rate():
    debts = batch_throttles(BATCH, seen({})).debts
    rates = {(debt.resource.name, debt.key) for debt in debts if debt.ours == 10}
    assert rates == {(name, LEADER_RATE) for name in "123"} | {("1", FOLLOWER_RATE), ("3", FOLLOWER_RATE)}
    lists = {debt.key: debt.value for debt in debts if debt.resource == TOPIC}
    assert lists == {LEADER_REPLICAS: "0:1,0:2,1:2,1:3", FOLLOWER_REPLICAS: "0:3,1:1"}


def test_a_default_of_the_cluster_stays_and_is_told():
    found = batch_throttles(BATCH, seen({}, leader_replication_throttled_rate="500"))
    assert not any(debt.key == LEADER_RATE for debt in found.debts)
    assert found.left == tuple(f"{LEADER_RATE} of broker {n} stays 500, which rackwise did not set" for n in (1, 2, 3))


def test_a_broker_that_is_down_is_told_nothing_and_owes_until_it_is_back():
    assert not [it for it in batch_throttles(BATCH, seen({}, up=(1, 2))).debts if it.resource.broker == 3]
    debt = ThrottleDebt(ThrottleResource(broker=3), LEADER_RATE, 10, None, "p", 1)
    assert throttle_status(debt, seen({(debt.resource, debt.key): "10"}, up=(1, 2))) is ThrottleStatus.UNREACHABLE
    assert throttle_status(debt, seen({(debt.resource, debt.key): "10"})) is ThrottleStatus.STANDS


def test_what_was_not_read_is_not_set_and_what_is_down_cannot_be():
    debt = ThrottleDebt(ThrottleResource(broker=3), LEADER_RATE, 10, None, "p", 1)
    there = seen({(debt.resource, debt.key): "10"})
    assert complete(debt, there)
    assert not complete(debt, there._replace(unread=frozenset({debt.resource})))
    assert not complete(debt, seen({}))
    assert complete(debt, seen({}, up=(1, 2)))


def test_a_rate_that_stood_before_a_new_pace_is_still_ours():
    debt = ThrottleDebt(ThrottleResource(broker=3), LEADER_RATE, 20, None, "p", 1, formerly=10)
    assert throttle_status(debt, seen({(debt.resource, debt.key): "10"})) is ThrottleStatus.STANDS
    assert throttle_status(debt, seen({(debt.resource, debt.key): "30"})) is ThrottleStatus.GONE


def test_a_topic_made_anew_has_nothing_of_ours():
    debt = batch_throttles(BATCH, seen({})).debts[-1]
    assert debt.resource == TOPIC
    own = {(TOPIC, debt.key): debt.value}
    assert throttle_status(debt, seen(own, topic_id="another")) is ThrottleStatus.GONE
    assert complete(debt, seen({}, topic_id="another"))


@pytest.mark.parametrize(
    ("traffic", "written", "fixed", "rate"),
    [
        pytest.param({}, None, None, 100, id="unknown traffic: the floor"),
        pytest.param({1: 0.0, 2: 0.0, 3: 200.0}, None, None, 400, id="half of what the busiest broker has free"),
        pytest.param({1: 0.0, 2: 0.0, 3: 0.0}, None, None, 450, id="never above the ceiling"),
        pytest.param({1: 990.0, 2: 0.0, 3: 0.0}, None, None, 100, id="never below the floor"),
        pytest.param({}, 200.0, None, 250, id="always faster than producers write"),
        pytest.param({1: 0.0, 2: 0.0, 3: 0.0}, None, 33, 33, id="as the operator says"),
    ],
)
def test_the_rate_comes_from_headroom(traffic, written, fixed, rate):
    policy = ReassignmentPolicy(
        ExecuteLimits(throttle_floor=100, throttle_ceiling=450, throttle_headroom_share=0.5, broker_bandwidth=1000)
    )
    targets = [target._replace(bytes_per_s=written) for target in TARGETS]
    assert rate_of(targets, seen({})._replace(traffic=tuple(traffic.items())), policy, fixed) == rate


def test_a_rate_is_set_where_there_is_none_or_one_of_ours_and_entries_beside_any() -> None:
    rate = ThrottleDebt(ThrottleResource(broker=1), LEADER_RATE, 15, None, "p", 1)
    assert throttle_update(rate) == ThrottleChange(
        rate.resource, LEADER_RATE, OpType.SET, "15", expected=(None, "15"), alone=True
    )
    raised = rate._replace(formerly=10)
    assert throttle_update(raised).expected == (None, "15", "10")
    entries = ThrottleDebt(TOPIC, LEADER_REPLICAS, ("0:1",), None, "p", 1, topic_id="id")
    assert throttle_update(entries) == ThrottleChange(TOPIC, LEADER_REPLICAS, OpType.APPEND, "0:1", topic_id="id")


def test_a_throttle_that_is_taken_away_is_still_the_one_that_was_set() -> None:
    rate = ThrottleDebt(ThrottleResource(broker=1), LEADER_RATE, 15, None, "p", 1)
    own = seen({(rate.resource, LEADER_RATE): "15"})
    assert throttle_removal(rate, own) == ThrottleChange(rate.resource, LEADER_RATE, OpType.DELETE, expected=("15",))
    assert throttle_removal(rate._replace(formerly=10), own).expected == ("15", "10")
    before = rate._replace(before="7")
    assert throttle_removal(before, own) == ThrottleChange(
        rate.resource, LEADER_RATE, OpType.SET, "7", expected=("15",)
    )
    entries = ThrottleDebt(TOPIC, LEADER_REPLICAS, ("0:1", "0:2"), None, "p", 1, topic_id="id")
    alone = seen({(TOPIC, LEADER_REPLICAS): "0:2,0:1"})
    assert throttle_removal(entries, alone) == ThrottleChange(
        TOPIC, LEADER_REPLICAS, OpType.DELETE, expected=("0:2,0:1",), topic_id="id"
    )
    beside = seen({(TOPIC, LEADER_REPLICAS): "0:1,5:5"})
    assert throttle_removal(entries, beside) == ThrottleChange(
        TOPIC, LEADER_REPLICAS, OpType.SUBTRACT, "0:1,0:2", topic_id="id"
    )


@pytest.mark.parametrize(
    ("change", "is_complete"),
    [
        pytest.param({}, False, id="nothing is set"),
        pytest.param({"brokers": frozenset({2, 3})}, True, id="its broker is down"),
        pytest.param({"unread": frozenset({ThrottleResource(broker=1)})}, False, id="its broker did not answer"),
    ],
)
def test_what_did_not_answer_is_not_complete_and_what_is_down_is(
    change: dict[str, frozenset[int]], *, is_complete: bool
) -> None:
    rate = ThrottleDebt(ThrottleResource(broker=1), LEADER_RATE, 15, None, "p", 1)
    assert complete(rate, seen({})._replace(**change)) is is_complete


@pytest.mark.parametrize(
    ("own", "found"),
    [
        pytest.param("0:1,5:5", ThrottleStatus.STANDS, id="one of ours among others"),
        pytest.param("5:5", ThrottleStatus.GONE, id="only others'"),
        pytest.param(None, ThrottleStatus.GONE, id="no list at all"),
    ],
)
def test_a_list_is_ours_as_long_as_an_entry_of_ours_is_in_it(own: str | None, found: ThrottleStatus) -> None:
    entries = ThrottleDebt(TOPIC, LEADER_REPLICAS, ("0:1", "0:2"), None, "p", 1, topic_id="id")
    assert throttle_status(entries, seen({} if own is None else {(TOPIC, LEADER_REPLICAS): own})) is found


@pytest.mark.parametrize("before", [None, "1:9"])
def test_a_list_in_which_nothing_is_left_is_deleted_whatever_was_in_it_before(before: str | None) -> None:
    """Before can be told by a broker that is late: entries of ours of a batch that is over by then."""
    debt = ThrottleDebt(TOPIC, FOLLOWER_REPLICAS, ("0:3",), before, "p", 2, topic_id="id")
    own = {(TOPIC, FOLLOWER_REPLICAS): "0:3"}
    assert cleared((debt,), own) == {}
    assert throttle_removal(debt, seen(own)).expected == ("0:3",), "only while it is what was seen"


def test_an_empty_list_that_others_made_stays_empty() -> None:
    debt = ThrottleDebt(TOPIC, FOLLOWER_REPLICAS, ("0:3",), "", "p", 1, topic_id="id")
    own = {(TOPIC, FOLLOWER_REPLICAS): "0:3"}
    assert cleared((debt,), own) == {(TOPIC, FOLLOWER_REPLICAS): ""}


def test_what_debts_lack_is_what_was_taken_for_others_and_is_not_there_any_more() -> None:
    late = seen({(TOPIC, LEADER_REPLICAS): "0:1,0:2", (TOPIC, FOLLOWER_REPLICAS): "0:3,1:1"})
    debts = batch_throttles(BATCH, late).debts
    assert FOLLOWER_REPLICAS not in {debt.key for debt in debts}
    during = after({}, set_by(debts))
    more = missing_throttles(BATCH, debts, seen(during))
    assert {(debt.key, debt.value) for debt in more} == {
        (LEADER_REPLICAS, "1:2,1:3,0:1,0:2"),
        (FOLLOWER_REPLICAS, "0:3,1:1"),
    }
    whole = after(during, set_by(more))
    assert missing_throttles(BATCH, more, seen(whole)) == ()
    every = {(debt.resource, debt.key): debt for debt in (*debts, *more)}
    assert cleared(tuple(every.values()), whole) == {}


def test_what_debts_lack_is_added_once_beside_what_they_have() -> None:
    (whole,) = [debt for debt in batch_throttles(BATCH, seen({})).debts if debt.key == LEADER_REPLICAS]
    assert isinstance(whole.ours, tuple)
    first, *others = whole.ours
    (more,) = [
        debt
        for debt in missing_throttles(BATCH, [whole._replace(ours=(first,))], seen({}))
        if debt.key == LEADER_REPLICAS
    ]
    assert others
    assert more.ours == (first, *others)

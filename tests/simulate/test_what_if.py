"""A snapshot as it would be: every change as a table, what stays as it is, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.errors import BadInput
from agent.simulate.rack_loss import rack_losses
from agent.simulate.what_if import (
    AddBroker,
    AddMember,
    AddRack,
    AddReplica,
    RemoveBroker,
    RemoveMember,
    RemoveRack,
    RemoveReplica,
    SetReplicationFactor,
    SetStandbys,
    SetStrategy,
    SimulatedChange,
    SimulatedCluster,
    what_if,
)
from agent.values.limits import Limits
from agent.values.snapshot import ConsumerGroup, GroupKind, PartitionState, Snapshot, StreamsGroup
from tests.plan.random_clusters import random_clusters
from tests.snapshots import Builder, a_cluster, member, process, task, tp

SLOW = settings(suppress_health_check=[HealthCheck.too_slow])


def a_world() -> Builder:
    built = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 2, 3), (2, 3, 1)).topic("other", (2, 3))
    built.group("readers", member("m1", "a", "t-0"), member("m2", "b", "t-1", topics=("t",)))
    built.group("near", member("n1", "c", "other-0"), kind=GroupKind.CONSUMER, assignor="uniform")
    built.streams("broker-app", process("q1", "a", "0_0"), topology=[task("0_0", "t-0")], kind=GroupKind.STREAMS)
    return built.streams(
        "app", process("p1", "a", "0_0", standby="0_1", tags=(("zone", "a"), ("kind", "big"))),
        process("p2", "b", "0_1", standby="0_0", capacity=2),
        topology=[task("0_0", "t-0"), task("0_1", "t-1")],
    )  # fmt: skip


def changed(*changes: SimulatedChange, built: Builder | None = None) -> Snapshot:
    return what_if(SimulatedCluster((built or a_world()).snapshot(), Limits()), changes).snapshot


def state(snapshot: Snapshot, name: str) -> PartitionState:
    partition = tp(name)
    return snapshot.topics[partition.topic].partitions[partition.partition]


def test_a_broker_that_goes_leaves_every_isr_and_the_next_in_sync_replica_leads() -> None:
    after = changed(RemoveBroker(2))
    assert state(after, "t-1") == state(a_world().snapshot(), "t-1")._replace(leader=3, isr=(3, 1), offline=(2,))
    assert state(after, "t-0").leader == 1
    gone = after.broker(2)
    assert gone is not None
    assert (gone.alive, gone.fenced, gone.rack.name) == (False, True, "b")


def test_a_rack_that_goes_takes_its_brokers_and_its_readers() -> None:
    after = changed(RemoveRack("a"))
    assert [broker.id for broker in after.brokers if broker.alive] == [2, 3]
    readers, app = after.groups["readers"], after.groups["app"]
    assert isinstance(readers, ConsumerGroup)
    assert isinstance(app, StreamsGroup)
    assert [one.id for one in readers.members] == ["m2"]
    assert [one.id for one in app.processes] == ["p2"]
    assert {one.id for one in app.members} == {"p2-m0", "p2-m1"}


def test_a_broker_that_comes_is_empty_and_set_up_like_the_others() -> None:
    built = a_world()
    built.broker_configs = {1: {"replica.selector.class": "x"}}
    after = changed(AddBroker(7, "b"), AddRack("d", (8, 9)), built=built)
    assert {broker.id: broker.rack.name for broker in after.brokers if broker.id > 4} == {7: "b", 8: "d", 9: "d"}
    assert {*after.broker_configs} == {1, 7, 8, 9}
    assert after.topics == built.snapshot().topics


def test_a_broker_that_was_away_comes_back_with_its_replicas() -> None:
    built = a_world().topic("lost", (5,), leaders={0: None}, isr={0: ()}).broker(5, None, alive=False, host=None)
    after = changed(AddBroker(5, "c"), built=built)
    assert (state(after, "lost-0").leader, state(after, "lost-0").isr) == (5, (5,))


REPLICAS = [
    pytest.param(AddReplica(tp("other-0"), 4), "other-0", (2, 3, 4), (2, 3, 4), 2, id="one more, in sync"),
    pytest.param(RemoveReplica(tp("t-0"), 3), "t-0", (1, 2), (1, 2), 1, id="one less"),
    pytest.param(RemoveReplica(tp("t-0"), 1), "t-0", (2, 3), (2, 3), 2, id="the leader goes, the next one leads"),
    pytest.param(SetReplicationFactor("t", 1), "t-1", (2,), (2,), 2, id="RF 1 keeps the preferred leader"),
    pytest.param(SetReplicationFactor("other", 3), "other-0", (2, 3, 4), (2, 3, 4), 2, id="RF 3 fills the free rack"),
    pytest.param(SetReplicationFactor("t", 4), "t-0", (1, 2, 3, 4), (1, 2, 3, 4), 1, id="RF 4 is every broker"),
]


@pytest.mark.parametrize(("change", "name", "replicas", "isr", "leader"), REPLICAS)
def test_replicas(change: SimulatedChange, name: str, replicas: Any, isr: Any, leader: int) -> None:
    after = state(changed(change), name)
    assert (after.replicas, after.isr, after.leader) == (replicas, isr, leader)


def test_a_new_consumer_is_like_the_others_and_has_nothing_yet() -> None:
    after = changed(AddMember("readers", "c"), AddMember("readers", None))
    group = after.groups["readers"]
    assert isinstance(group, ConsumerGroup)
    new = [one for one in group.members if one.id.startswith("simulated")]
    assert [(one.rack.name, one.topics, one.assigned) for one in new] == [("c", ("t",), ()), (None, ("t",), ())]
    assert list(group.members) == sorted(group.members, key=lambda one: one.id)


def test_a_new_instance_has_as_many_threads_and_tags_of_its_rack() -> None:
    group = changed(AddMember("app", "c")).groups["app"]
    assert isinstance(group, StreamsGroup)
    (new,) = [one for one in group.processes if one.rack.name == "c"]
    assert (new.capacity, new.active, new.standby) == (1, (), ())
    assert new.tags == (("zone", "c"), ("kind", "big"))
    assert {*new.member_ids} < {one.id for one in group.members}
    like = changed(AddMember("app", "b")).groups["app"]
    assert isinstance(like, StreamsGroup)
    assert sorted(one.capacity for one in like.processes) == [1, 2, 2], "like the one in its rack"


@pytest.mark.parametrize(
    ("group", "name", "left"),
    [
        pytest.param("readers", "m1", ["m2"], id="a consumer by its id"),
        pytest.param("readers", "client-m2", ["m1"], id="a consumer by its client id"),
        pytest.param("app", "p1", ["p2-m0", "p2-m1"], id="an instance by its process id"),
        pytest.param("app", "p2-m1", ["p1-m0"], id="an instance by one of its threads"),
    ],
)
def test_who_leaves(group: str, name: str, left: list[str]) -> None:
    after = changed(RemoveMember(group, name)).groups[group]
    assert isinstance(after, ConsumerGroup | StreamsGroup)
    assert [one.id for one in after.members] == left


def test_strategies_and_standbys_are_settings_of_one_group() -> None:
    changes = (SetStrategy("app", "min_traffic"), SetStandbys("app", 2), SetStrategy("readers", "range"))
    more = (SetStrategy("near", "range"), SetStandbys("broker-app", 1))
    after = what_if(SimulatedCluster(a_world().snapshot(), Limits()), (*changes, *more))
    of_app = after.limits.group("app")
    assert (of_app.rack_aware_assignment_strategy, of_app.num_standby_replicas, of_app.known) == (
        "min_traffic",
        2,
        True,
    )
    assert after.limits.group("readers") == Limits().default_group
    assert [getattr(after.snapshot.groups[name], "assignor", None) for name in ("readers", "near")] == ["range"] * 2
    assert after.snapshot.group_configs == {"broker-app": {"streams.num.standby.replicas": "1"}}


def test_what_nothing_was_asked_about_stays_the_same_object() -> None:
    before = a_world().snapshot()
    after = what_if(
        SimulatedCluster(before, Limits()), (RemoveMember("readers", "m1"), AddReplica(tp("other-0"), 1))
    ).snapshot
    assert after.topics["t"] is before.topics["t"]
    assert after.topics["other"] is not before.topics["other"]
    assert [name for name in before.groups if after.groups[name] is before.groups[name]] == [
        "app",
        "broker-app",
        "near",
    ]


BAD: list[Any] = [
    pytest.param([], "there is nothing to simulate", id="nothing"),
    pytest.param([AddMember("nobody", "a")], "there is no group 'nobody'", id="an unknown group"),
    pytest.param([AddMember("readers", "z")], "there is no rack 'z'", id="a member in an unknown rack"),
    pytest.param([RemoveMember("readers", "x")], "there is no 'x' in group readers", id="an unknown member"),
    pytest.param([RemoveMember("app", "x")], "there is no 'x' in group app", id="an unknown instance"),
    pytest.param([RemoveRack("z")], "there is no rack 'z'", id="an unknown rack"),
    pytest.param([AddRack("a", (9,))], "rack a is there already", id="a rack that is there"),
    pytest.param([AddRack("d", (1,))], "broker 1 is there already", id="a rack with a broker that is there"),
    pytest.param([AddBroker(1, "a")], "broker 1 is there already", id="a broker that is there"),
    pytest.param([AddBroker(-1, "a")], "-1 is no id of a broker", id="a negative id"),
    pytest.param([AddBroker(9, "z")], "there is no rack 'z'", id="a broker in an unknown rack"),
    pytest.param([RemoveBroker(9)], "there is no broker 9", id="an unknown broker"),
    pytest.param([AddReplica(tp("t-9"), 1)], "there is no partition t-9", id="an unknown partition"),
    pytest.param([AddReplica(tp("t-0"), 9)], "there is no broker 9", id="a replica on an unknown broker"),
    pytest.param([AddReplica(tp("t-0"), 1)], "broker 1 has a replica of t-0 already", id="a replica twice"),
    pytest.param([RemoveReplica(tp("t-0"), 4)], "broker 4 has no replica of t-0", id="no such replica"),
    pytest.param(
        [RemoveReplica(tp("other-0"), 2), RemoveReplica(tp("other-0"), 3)], "other-0 would have no replica left",
        id="the last replica",
    ),
    pytest.param([SetReplicationFactor("x", 1)], "there is no topic 'x'", id="an unknown topic"),
    pytest.param([SetReplicationFactor("t", 0)], "topic t cannot have 0 replicas", id="no replicas"),
    pytest.param([SetReplicationFactor("t", -2)], "topic t cannot have -2 replicas", id="less than none"),
    pytest.param([SetReplicationFactor("t", 5)], "topic t cannot have 5 replicas", id="RF above brokers"),
    pytest.param([SetStrategy("app", "min_cost")], "'min_cost' is no strategy of group app", id="a name of KIP-925"),
    pytest.param([SetStrategy("readers", "uniform")], "'uniform' is no strategy of group readers", id="a broker's"),
    pytest.param([SetStrategy("near", "sticky")], "'sticky' is no strategy of group near", id="a client's"),
    pytest.param([SetStrategy("broker-app", "none")], "group broker-app has no strategy to change", id="KIP-1071"),
    pytest.param([SetStandbys("app", -1)], "group app cannot have -1 standbys of a task", id="less than none standby"),
    pytest.param([SetStandbys("readers", 1)], "group readers has no standbys", id="standbys of consumers"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "what"), BAD)
def test_what_cannot_be_is_refused_with_three_sentences(changes: list[SimulatedChange], what: str) -> None:
    with pytest.raises(BadInput) as refused:
        changed(*changes)
    assert refused.value.what == what
    assert refused.value.why
    assert refused.value.todo


CONTRADICTIONS = [
    pytest.param(SetStandbys("app", 1), SetStandbys("app", 2), id="two numbers of standbys"),
    pytest.param(SetStrategy("app", "none"), SetStrategy("app", "min_traffic"), id="two strategies"),
    pytest.param(SetReplicationFactor("t", 1), SetReplicationFactor("t", 2), id="two replication factors"),
    pytest.param(SetReplicationFactor("t", 1), AddReplica(tp("t-0"), 4), id="a factor and a replica"),
    pytest.param(AddReplica(tp("t-0"), 4), RemoveReplica(tp("t-0"), 4), id="a replica comes and goes"),
    pytest.param(AddReplica(tp("t-0"), 4), RemoveBroker(4), id="a replica on a broker that goes"),
    pytest.param(RemoveBroker(4), AddBroker(4, "b"), id="a broker goes and comes"),
    pytest.param(RemoveBroker(4), RemoveBroker(4), id="a broker goes twice"),
    pytest.param(AddBroker(9, "a"), RemoveRack("a"), id="a broker in a rack that goes"),
    pytest.param(AddBroker(9, "a"), AddRack("d", (9,)), id="a broker in two racks"),
    pytest.param(AddMember("app", "a"), RemoveRack("a"), id="a member in a rack that goes"),
    pytest.param(AddRack("d", (9,)), RemoveRack("d"), id="a rack comes and goes"),
    pytest.param(RemoveMember("app", "p1"), RemoveMember("app", "p1"), id="a member leaves twice"),
]


@pytest.mark.parametrize("turned", [False, True], ids=["", "the other way round"])
@pytest.mark.parametrize(("one", "other"), CONTRADICTIONS)
def test_changes_that_contradict_each_other_are_refused(
    one: SimulatedChange, other: SimulatedChange, turned: bool
) -> None:
    with pytest.raises(BadInput, match="these changes contradict each other"):
        changed(*((other, one) if turned else (one, other)))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((AddMember("readers", "a"), AddMember("readers", "a")), id="two members in one rack"),
        pytest.param((AddRack("d", (9,)), AddMember("readers", "d")), id="a member in a new rack"),
        pytest.param((AddRack("d", (9,)), AddBroker(10, "d"), AddReplica(tp("t-0"), 10)), id="all at once"),
        pytest.param((SetStrategy("app", "none"), SetStandbys("app", 1)), id="two settings of one group"),
        pytest.param((SetStrategy("near", "range"), SetStrategy("readers", "range")), id="of two groups"),
        pytest.param((RemoveMember("readers", "m1"), RemoveMember("near", "n1")), id="the last member of a group"),
    ],
)
def test_changes_that_go_together_do_so_in_any_order(changes: tuple[SimulatedChange, ...]) -> None:
    assert changed(*changes) == changed(*reversed(changes))


def test_a_group_that_rebalances_or_is_none_of_ours_cannot_be_simulated() -> None:
    with pytest.raises(BadInput, match="group dark cannot be simulated now: a rebalance hides its members"):
        changed(AddMember("dark", "a"), built=a_world().group("dark", hidden=True))


@SLOW
@given(random_clusters(), st.data())
def test_losing_a_rack_costs_what_removing_it_does(snapshot: Snapshot, data: st.DataObject) -> None:
    """Two ways to the same: the loss that is foretold, and the world without the rack."""
    losses = [loss for loss in rack_losses(snapshot) if loss.brokers and not loss.uncertain]
    if not losses:
        return
    loss = data.draw(st.sampled_from(losses))
    after = what_if(SimulatedCluster(snapshot, Limits()), (RemoveRack(loss.rack),)).snapshot
    before = {one.id: one for topic in snapshot.topics.values() for one in topic.partitions}
    alive = {broker.id for broker in snapshot.brokers if broker.alive}
    leaderless = {
        one.id
        for topic in after.topics.values()
        for one in topic.partitions
        if before[one.id].leader is not None and not alive.isdisjoint(before[one.id].isr)
        if not alive & {*one.isr}
    }
    assert {*loss.leaderless} == leaderless
    led = dict.fromkeys(alive, 0)
    for topic in after.topics.values():
        for one in topic.partitions:
            if one.leader in led and before[one.id].leader is not None:
                led[one.leader] += 1
    if all(one.leader is None or one.leader in alive & {*one.isr} for one in before.values()):
        assert {survivor.broker: survivor.leaders_after for survivor in loss.survivors}.items() <= led.items()

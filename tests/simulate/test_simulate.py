"""Simulations of random changes on random clusters: an answer or a sentence, and what every answer promises."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from agent.detect.find import detect
from agent.documents.comparison import simulation_to_json
from agent.errors import BadInput
from agent.plan.make import make_plan
from agent.simulate.simulate import SimulationResult, simulate
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
from agent.values.finding import FindingReason, SubjectId
from agent.values.limits import Limits
from agent.values.memory import Memory, RackSighting
from agent.values.plan import Unplanned
from agent.values.proposal import ProposalKind
from agent.values.snapshot import ConsumerGroup, Snapshot, StreamsGroup
from tests.plan.random_clusters import RACKS, random_clusters, shuffled
from tests.snapshots import Builder, a_cluster, member, tp

SLOW = settings(suppress_health_check=[HealthCheck.too_slow])
STRATEGIES = ("range", "roundrobin", "cooperative-sticky", "sticky", "uniform", "min_traffic", "balance_subtopology")


def a_change(rng: random.Random, snapshot: Snapshot) -> SimulatedChange:
    """Most of these can be."""
    groups = [group for group in snapshot.groups.values() if isinstance(group, ConsumerGroup | StreamsGroup)]
    partitions = [state.id for topic in snapshot.topics.values() for state in topic.partitions]
    brokers = [broker.id for broker in snapshot.brokers]
    changes: list[SimulatedChange] = [
        RemoveRack(rng.choice(RACKS)),
        AddRack("new", (90, 91)),
        RemoveBroker(rng.choice(brokers)),
        AddBroker(rng.randint(80, 85), rng.choice(RACKS)),
        AddReplica(rng.choice(partitions), rng.choice(brokers)),
        RemoveReplica(rng.choice(partitions), rng.choice(brokers)),
        SetReplicationFactor(rng.choice(partitions).topic, rng.randint(0, 5)),
    ]
    if groups:
        group = rng.choice(groups)
        changes += [
            AddMember(group.id, rng.choice([*RACKS, None])),
            RemoveMember(group.id, rng.choice(group.members).id if group.members else "nobody"),
            SetStrategy(group.id, rng.choice(STRATEGIES)),
            SetStandbys(group.id, rng.randint(-1, 3)),
        ]
    return rng.choice(changes)


@SLOW
@given(random_clusters(), st.integers(0, 2**32), st.integers(1, 3))
def test_every_simulation_is_an_answer_or_a_sentence(snapshot: Snapshot, seed: int, count: int) -> None:
    rng = random.Random(seed)
    changes = tuple(a_change(rng, snapshot) for _ in range(count))
    simulation = asked(snapshot, changes)
    if isinstance(simulation, BadInput):
        event("refused")
        assert simulation.what
        assert simulation.why
        assert simulation.todo
        return
    event("answered")
    document = simulation_to_json(simulation, Limits())
    assert json.loads(json.dumps(document)) == document, "plain values only"
    assert len(simulation.changes) == count
    for group in simulation.groups:
        event(f"columns: {group.own is not None}, {group.optimum is not None}")
        assert group.why_not or (group.own is not None and group.optimum is not None)
        for outcome in (group.now, group.own, group.optimum):
            if outcome is not None:
                assert 0 <= outcome.cost.crossing + outcome.cost.unknown <= outcome.reads
        if group.own is not None and group.optimum is not None:
            assert group.own.reads == group.optimum.reads, "both give every partition to a member"
    assert simulation_to_json(simulate(shuffled(snapshot, seed), Memory(), Limits(), changes), Limits()) == document


def asked(snapshot: Snapshot, changes: tuple[SimulatedChange, ...]) -> SimulationResult | BadInput:
    try:
        return simulate(snapshot, Memory(), Limits(), changes)
    except BadInput as refused:
        return refused


def test_a_change_that_changes_nothing_foretells_what_is() -> None:
    built = a_cluster().topic("t", (1, 2), (2, 3), (3, 1)).group(
        "g", member("m1", "a", "t-0"), member("m2", "b", "t-1"), member("m3", "c", "t-2")
    )  # fmt: skip
    simulation = simulate(built.snapshot(), Memory(), Limits(), (SetStrategy("g", "cooperative-sticky"),))
    assert (simulation.found, simulation.gone, simulation.losses) == ((), (), ())
    (group,) = simulation.groups
    assert group.now == group.own == group.optimum
    assert group.waiting == 0


@pytest.mark.parametrize(
    ("rate", "crossing"),
    [
        pytest.param(10.0, [0.0, 10.0], id="known rates give bytes"),
        pytest.param(None, [None, None], id="an unknown rate gives none"),
    ],
)
def test_bytes_are_told_where_every_rate_is_known(rate: float | None, crossing: list[float | None]) -> None:
    built = a_cluster().topic("t", (1,), (1,), rate=rate).group("g", member("m1", "a", "t-0 t-1"))
    simulation = simulate(replace(built.snapshot()), Memory(), Limits(), (AddMember("g", "b"),))
    (group,) = simulation.groups
    assert group.now is not None
    assert group.own is not None
    assert [group.now.cost.crossing_bytes_per_s, group.own.cost.crossing_bytes_per_s] == crossing


def test_a_broker_that_is_lost_in_a_simulation_is_lost_for_good() -> None:
    """Nothing is held for its return: the question is what follows once it stays away."""
    built = a_cluster(a=(1, 4), b=(2, 5), c=(3, 6)).topic("t", (3, 6, 1), (1, 2, 3))
    memory = Memory(cycle=9, brokers={broker: RackSighting("c", "c", None, 0, 9) for broker in (3, 6)})
    then = simulate(built.snapshot(), memory, Limits(), (RemoveBroker(3),))
    (proposal,) = [one for one in then.proposals if one.kind is ProposalKind.REASSIGN]
    assert proposal.sentence.endswith("; broker 3 is removed in this simulation")
    (absent,) = [found for found in then.found if found.reason is FindingReason.BROKER_ABSENT]
    assert not absent.held


def test_proposals_then_are_by_the_assignment_that_holds_then() -> None:
    """The group rebalances because of the change: what only its present assignment calls for is proposed no more."""
    built = a_cluster().topic("t", *[(1,), (2,), (3,)] * 4).group(
        "g",
        member("m1", "a", "t-1 t-4 t-7 t-10"),
        member("m2", "b", "t-2 t-5 t-8 t-11"),
        member("m3", "c", "t-0 t-3 t-6 t-9"),
    )  # fmt: skip
    then = simulate(built.snapshot(), Memory(), Limits(), (AddMember("g", "a"),))
    (group,) = then.groups
    assert group.own is not None
    assert group.own.cost.crossing < 12
    assert [(one.kind, one.subject.name) for one in then.proposals_now] == [(ProposalKind.TRIGGER, "g")]
    assert then.proposals == ()
    assert FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM in {one.reason for one in then.gone}
    assert not then.found


def without_a(built: Builder) -> SimulationResult:
    return simulate(built.snapshot(), Memory(), Limits(), (RemoveRack("a"),))


def test_what_has_no_replica_left_is_not_proposed_to_move() -> None:
    """All of payments is in the rack that goes: nothing can be copied."""
    built = a_cluster(a=(1, 4), b=(2, 5), c=(3, 6)).topic("payments", *[(1, 4), (4, 1)] * 3)
    then = without_a(built)
    assert not [one for one in then.proposals if one.subject.name == "payments"]
    under = [one for one in then.found if one.reason is FindingReason.UNDER_MIN_ISR]
    assert [one.subject.name for one in under] == ["payments"]
    snapshot = what_if(SimulatedCluster(built.snapshot(), Limits()), (RemoveRack("a"),)).snapshot
    detection = detect(snapshot, Memory(), Limits(), None)
    (shared,) = [one for one in detection.findings if one.reason is FindingReason.REPLICAS_SHARE_RACK]
    assert shared.sentence.endswith("; 6 of the 6 have no leader to copy from, so nothing is planned for them")
    plan = make_plan(snapshot, detection, Limits(), None)
    assert not plan.placements
    assert (tp("payments-0"), Unplanned.NO_LEADER) in plan.unplanned


def test_a_partition_that_still_has_a_replica_moves_and_is_led_from_there() -> None:
    built = a_cluster(a=(1, 4), b=(2, 5), c=(3, 6)).topic("t", (1, 2, 5), (4, 3, 6))
    then = without_a(built)
    proposals = [one for one in then.proposals if one.kind is ProposalKind.REASSIGN]
    assert [row.value[0] in (1, 4) for one in proposals for row in one.after] == [False, False]


def test_no_plan_of_leaders_leaves_one_on_a_removed_broker() -> None:
    lists = [(1, 2, 3)] * 3 + [(4, 5, 6)] * 3 + [(2, 3, 1)] * 6
    then = without_a(a_cluster(a=(1, 4), b=(2, 5), c=(3, 6)).topic("views", *lists))
    (proposal,) = [one for one in then.proposals if one.kind is ProposalKind.LEADERS]
    first = {row.key: row.value[0] for row in proposal.after}
    led = [first.get(f"views-{number}", of[0]) for number, of in enumerate(lists)]
    assert {1, 4}.isdisjoint(led), led
    in_b = sum(broker in (2, 5) for broker in led)
    assert (in_b, len(led) - in_b) == (6, 6)


@pytest.mark.parametrize(
    "more", [(), (SetReplicationFactor("clicks", 3),)], ids=["a rack", "a rack, and replicas of another topic"]
)
def test_an_empty_rack_mends_no_skew_of_leaders(more: tuple[SimulatedChange, ...]) -> None:
    built = a_cluster(a=(1, 4), b=(2, 5), c=(3, 6)).topic("views", *[(1, 2, 3)] * 6).topic("clicks", (1, 2), (2, 3))
    simulation = simulate(built.snapshot(), Memory(), Limits(), (AddRack("d", (7, 8)), *more))
    assert not [one for one in simulation.gone if one.subject == SubjectId("topic", "views")]


def test_a_rack_that_has_been_absent_for_long_takes_no_share_of_the_leaders() -> None:
    """What a restart takes away for a while is compared as before."""
    built = a_cluster(a=(1, 4), b=(2, 5), c=(3, 6)).topic("views", *[(2, 1, 3)] * 6)
    away = built.broker(1, "a", alive=False, fenced=True).broker(4, "a", alive=False, fenced=True).snapshot()
    detection = detect(away, Memory(), Limits(), None)
    (skew,) = [one for one in detection.findings if one.id == "leader_skew:topic/views"]
    assert dict(skew.evidence)["share of replicas"] == 0.5
    (plan,) = [one for one in make_plan(away, detection, Limits(), None).placements if one.topic == "views"]
    led = {change.id: change.after[0] for change in plan.changes}
    assert list(led.values()) == [3, 3, 3]

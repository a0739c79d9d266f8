"""Of equal moves the plan takes those that leave leaders and traffic as they are: against trying every other set."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.detect.find import detect
from agent.plan.make import make_plan
from agent.values.assessment import DetectionResult
from agent.values.finding import FindingReason, SubjectId
from agent.values.limits import DetectLimits, Limits, PlanLimits
from agent.values.memory import Memory
from agent.values.plan import Plan, Unplanned
from agent.values.snapshot import Snapshot
from assignors.problem import ReplicaBroker, ReplicaProblem, ReplicaSet, TopicPartition
from tests.assignors.oracles import replica_ways
from tests.assignors.strategies import examples
from tests.plan.random_clusters import random_clusters
from tests.plan.test_leaders import NO_SELECTOR, UNEVEN, finding
from tests.plan.test_placements import share_finding
from tests.snapshots import Builder, a_cluster, member, tp

many = examples(300)
LIMITS, KEEP = Limits(), Limits(plan=PlanLimits(keep_leaders=True))
Lists = dict[TopicPartition, tuple[int, ...]]


def planned(snapshot: Snapshot, limits: Limits = LIMITS) -> Plan:
    found = detect(snapshot, Memory(), limits, None)
    return make_plan(snapshot, found, limits, None)


def after(snapshot: Snapshot, plan: Plan, *, leaders_only: bool | None = None) -> Lists:
    lists = {state.id: state.replicas for topic in snapshot.topics.values() for state in topic.partitions}
    for placement in plan.placements:
        if leaders_only in (None, placement.leaders_only):
            lists.update((change.id, change.after) for change in placement.changes)
    return lists


@st.composite
def small(draw: st.DrawFn) -> Snapshot:
    """Up to six brokers, at most one of them away and one cordoned, a crowded topic, one that only leads, readers."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    racks, built = "abc"[: rng.randint(2, 3)], Builder()
    ids = list(range(1, rng.randint(3, 6) + 1))
    gone, shut = (rng.choice([0, 0, *ids]) for _ in range(2))
    for broker in ids:
        away = broker == gone
        built.broker(broker, rng.choice(racks), alive=not away, fenced=away, cordoned=broker == shut)
    built.selector = rng.choice([True, False])
    factor = rng.randint(2, 3)
    rows = [tuple(rng.sample(ids, factor)) for _ in range(rng.randint(1, 3))]
    isr = {number: tuple(broker for broker in row if broker != gone) for number, row in enumerate(rows)}
    built.topic("t", *rows, isr=isr)
    built.topic("led", *[(rng.choice(ids),) for _ in range(rng.randint(0, 6))])
    members = [member(f"m{number}", rng.choice("abc"), f"t-{number}") for number in range(len(rows))]
    built.group("g", *members)
    return built.snapshot()


def problem_of(snapshot: Snapshot) -> ReplicaProblem:
    brokers = tuple(
        ReplicaBroker(id=b.id, rack=b.rack.name, accepts=b.alive and not b.cordoned) for b in snapshot.brokers
    )
    sets = tuple(ReplicaSet(id=state.id, replicas=state.replicas) for state in snapshot.topics["t"].partitions)
    return ReplicaProblem(brokers=brokers, partitions=sets, balance=False)


def every_set(snapshot: Snapshot) -> Iterator[Lists]:
    """Every set of as few moves as mend the spread, in every order in which an in-sync or a new replica leads.

    A leader whose broker is there does not move; where it is away, its copy moves if it can.
    """
    problem, options = problem_of(snapshot), []
    there = {broker.id for broker in snapshot.brokers if broker.alive}
    shut = {broker.id for broker in problem.brokers if not broker.accepts}
    for state, one in zip(snapshot.topics["t"].partitions, problem.partitions, strict=True):
        ways = list(replica_ways(problem, one)) or [state.replicas]
        if state.replicas[0] in there:
            ways = [way for way in ways if state.replicas[0] in way] or [state.replicas]
        most = max(len(set(state.replicas) & shut - set(way)) for way in ways)
        ways = [way for way in ways if len(set(state.replicas) & shut - set(way)) == most]
        kept = [way for way in ways if state.replicas[0] in way]
        orders = []
        for way in kept or ways:
            able = [b for b in way if b in there and (b in state.isr or b not in state.replicas)]
            leaders = [state.replicas[0]] if kept else able
            orders += [(leader, *(b for b in way if b != leader)) for leader in leaders]
        options.append(orders or [state.replicas])
    for lists in product(*options):
        yield {one.id: replicas for one, replicas in zip(problem.partitions, lists, strict=True)}


def led(snapshot: Snapshot, lists: Lists) -> Counter[int]:
    states = (state for topic in snapshot.topics.values() for state in topic.partitions)
    return Counter(lists.get(state.id, state.replicas)[0] for state in states)


def beyond(snapshot: Snapshot, lists: Lists) -> tuple[int, int]:
    """Leaders beyond now and beyond an even share: of brokers, the farther the dearer, and of racks."""
    rack = {broker.id: broker.rack.name for broker in snapshot.brokers}
    there = Counter(rack[broker.id] for broker in snapshot.brokers if broker.alive)
    now, then = led(snapshot, {}), led(snapshot, lists)
    total, brokers = now.total(), there.total()
    excess = [max(0, count - max(now[broker], -(-total // brokers))) for broker, count in then.items()]
    in_rack, in_rack_then = Counter[str | None](), Counter[str | None]()
    for broker, count in now.items():
        in_rack[rack[broker]] += count
    for broker, count in then.items():
        in_rack_then[rack[broker]] += count
    over = [max(0, n - max(in_rack[name], -(-total * there[name] // brokers))) for name, n in in_rack_then.items()]
    return sum(each * (each + 1) // 2 for each in excess), sum(over)


def fetched(snapshot: Snapshot, lists: Lists) -> int:
    """Fetches of topic t across racks, by followers and readers."""
    rack = {broker.id: broker.rack.name for broker in snapshot.brokers}
    reader = {tp: one.rack.name for group in snapshot.groups.values() for one in group.members for tp in one.assigned}
    far = 0
    for state in snapshot.topics["t"].partitions:
        replicas = lists.get(state.id, state.replicas)
        leader, racks = rack[replicas[0]], {rack[broker] for broker in replicas}
        far += sum(rack[broker] != leader for broker in replicas)
        far += reader[state.id] != leader and not (snapshot.selector_is_rack_aware and reader[state.id] in racks)
    return far


def copies(snapshot: Snapshot, lists: Lists) -> int:
    return sum(len(set(lists[s.id]) - set(s.replicas)) for s in snapshot.topics["t"].partitions)


@many
@given(small())
def test_no_other_set_of_as_many_moves_is_better_for_leaders_and_traffic(snapshot: Snapshot) -> None:
    lists = after(snapshot, planned(snapshot), leaders_only=False)
    others = list(every_set(snapshot))
    assert copies(snapshot, lists) == min(copies(snapshot, other) for other in others)
    changed = {s.id for s in snapshot.topics["t"].partitions if lists[s.id][0] != s.replicas[0]}
    assert changed <= {s.id for s in snapshot.topics["t"].partitions if not snapshot.broker(s.replicas[0]).alive}
    assert beyond(snapshot, lists) == min(beyond(snapshot, other) for other in others)
    if not changed:
        kept = [other for other in others if all(other[name][0] == lists[name][0] for name in other)]
        assert fetched(snapshot, lists) == min(fetched(snapshot, other) for other in kept)


@many
@given(random_clusters())
def test_with_keep_leaders_no_first_replica_ever_changes(snapshot: Snapshot) -> None:
    plan = planned(snapshot, KEEP)
    for placement in plan.placements:
        assert not placement.leaders_only
        for change in placement.changes:
            assert change.before[0] == change.after[0]
    free = {change.id for p in planned(snapshot).placements if not p.leaders_only for change in p.changes}
    kept = {change.id for p in plan.placements for change in p.changes}
    left = {name for name, why in plan.unplanned if why is Unplanned.KEEPS_LEADERS}
    assert kept <= free
    assert free - kept <= left


@many
@given(random_clusters())
def test_moves_and_their_bytes_are_as_few_with_leaders_kept_in_place_as_the_rule_needs(snapshot: Snapshot) -> None:
    for placement in planned(snapshot).placements:
        for change in placement.changes:
            assert len(change.before) == len(change.after) == len(set(change.after))
        if not placement.leaders_only and placement.optimal:
            moved = sum(
                len(set(change.after) - set(change.before)) * snapshot.size_bytes.get(change.id, 1)
                for change in placement.changes
            )
            assert moved == placement.lower_bound


@st.composite
def uneven(draw: st.DrawFn) -> Snapshot:
    rng = random.Random(draw(st.integers(0, 2**32)))
    built = Builder()
    ids = list(range(1, rng.randint(3, 5) + 1))
    for broker in ids:
        built.broker(broker, "abc"[(broker - 1) % 3] if rng.random() < 0.8 else "a")
    built.selector = rng.choice([True, False])
    rows = [tuple(rng.sample(ids, rng.randint(2, 3))) for _ in range(rng.randint(2, 5))]
    built.topic("t", *rows).topic("led", *[(rng.choice(ids),) for _ in range(rng.randint(0, 4))])
    built.group("g", *[member(f"m{n}", rng.choice("abc"), f"t-{n}") for n in range(len(rows))])
    return built.snapshot()


@many
@given(uneven())
def test_of_equal_changes_of_leaders_those_are_made_that_overload_no_broker(snapshot: Snapshot) -> None:
    rack = {broker.id: broker.rack.name for broker in snapshot.brokers}
    states = snapshot.topics["t"].partitions
    lists = after(snapshot, make_plan(snapshot, DetectionResult(findings=(UNEVEN,)), Limits(), None))
    chosen = {state.id: lists[state.id] for state in states}

    def by_rack(of: Lists) -> Counter[str | None]:
        return Counter(rack[replicas[0]] for replicas in of.values())

    def changes(of: Lists) -> int:
        return sum(of[state.id][0] != state.replicas[0] for state in states)

    others: list[Lists] = [
        {s.id: (leader, *(b for b in s.replicas if b != leader)) for s, leader in zip(states, leaders, strict=True)}
        for leaders in product(*(state.replicas for state in states))
    ]
    equal = [other for other in others if by_rack(other) == by_rack(chosen)]
    assert changes(chosen) == min(changes(other) for other in equal)
    equal = [other for other in equal if changes(other) == changes(chosen)]
    assert beyond(snapshot, chosen)[0] == min(beyond(snapshot, other)[0] for other in equal)
    best = [other for other in equal if beyond(snapshot, other)[0] == beyond(snapshot, chosen)[0]]
    assert fetched(snapshot, chosen) == min(fetched(snapshot, other) for other in best)


# --- named situations -----------------------------------------------------------------------------------------


def crowded_and_led_by_a_broker_that_is_away() -> Builder:
    built = a_cluster(a=(1, 2), b=(3,), c=(4,)).broker(1, "a", alive=False, fenced=True)
    return built.topic("t", (1, 2), (2, 1), isr={0: (2,), 1: (2,)})


def test_a_partition_whose_leader_would_have_to_change_is_left_out_with_its_reason():
    snapshot = crowded_and_led_by_a_broker_that_is_away().snapshot()
    free = {str(c.id): c.after for p in planned(snapshot).placements for c in p.changes}
    assert set(free) == {"t-0", "t-1"}
    assert 1 not in {*free["t-0"], *free["t-1"]}, "the copy that is away moves"
    plan = planned(snapshot, KEEP)
    assert [str(change.id) for placement in plan.placements for change in placement.changes] == ["t-1"]
    assert dict(plan.unplanned)[tp("t-0")] is Unplanned.KEEPS_LEADERS


@pytest.mark.parametrize("why", [UNEVEN, NO_SELECTOR], ids=["uneven over racks", "far from readers"])
def test_with_keep_leaders_no_change_of_leaders_is_planned_and_that_is_said(why):
    built = a_cluster().topic("t", *[(1, 2, 3)] * 6).group("g", *[member(f"m{n}", "b", f"t-{n}") for n in range(6)])
    built.selector = False
    found = DetectionResult(findings=(why,))
    assert make_plan(built.snapshot(), found, Limits(detect=DetectLimits(leader_skew_share=1.0)), None).placements
    plan = make_plan(
        built.snapshot(),
        found,
        Limits(detect=DetectLimits(leader_skew_share=1.0), plan=PlanLimits(keep_leaders=True)),
        None,
    )
    assert plan.placements == ()
    assert (SubjectId("topic", "t"), Unplanned.KEEPS_LEADERS) in plan.unplanned


def test_a_move_that_runs_counts_with_its_target_and_not_with_old_and_new_copies_together():
    # Broker 6 takes five replicas of a running move, so the new copy goes to 3; the five that leave 3 count no more.
    built = a_cluster(a=(1, 4), b=(2, 5), c=(3, 6)).topic("u", *[(3, 6)] * 5).topic("t", (1, 4, 2))
    for number in range(5):
        built.moving(f"u-{number}", (3, 6), (6,), (3,))
    plan = make_plan(built.snapshot(), DetectionResult(findings=(share_finding("t"),)), Limits(), None)
    assert [change.after for placement in plan.placements for change in placement.changes] == [(1, 3, 2)]


def test_leaders_of_a_move_that_runs_are_counted_where_they_are_going():
    # u is led by 2 from now on: of the two partitions that may be led in b, none goes to 2.
    built = a_cluster(a=(1,), b=(2, 5), c=(3,)).topic("t", (1, 2, 5), (1, 2, 5), (1, 3, 2), (1, 3, 5))
    built.topic("u", *[(1, 2)] * 4)
    for number in range(4):
        built.moving(f"u-{number}", (2, 1), (2,), (1,))
    uneven_t = finding(FindingReason.LEADER_SKEW, SubjectId("topic", "t"))
    plan = make_plan(built.snapshot(), DetectionResult(findings=(uneven_t,)), Limits(), None)
    assert 2 not in {change.after[0] for placement in plan.placements for change in placement.changes}

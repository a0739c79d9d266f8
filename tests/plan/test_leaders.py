"""Preferred leaders: to where a partition is read, and even over racks; never a replica moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.plan.leader_balance import LeaderOption, balance_leaders, fewest_changes
from agent.plan.make import make_plan
from agent.values.assessment import DetectionResult
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.limits import DetectLimits, Limits
from agent.values.plan import Plan, Unplanned
from agent.values.proposal import ProposalReason
from assignors.problem import TopicPartition
from tests.snapshots import NOW_MS, Builder, a_cluster, member

LIMITS = Limits()
LOOSE = Limits(detect=DetectLimits(leader_skew_share=1.0))
ALL = (1, 2, 3)


def finding(reason: FindingReason, subject: SubjectId, *, held: bool = False) -> Finding:
    return Finding(
        reason=reason, subject=subject, sentence=reason.value, evidence=(), severity=FindingSeverity.WARNING,
        since_ms=NOW_MS, held=held,
    )  # fmt: skip


NO_SELECTOR = finding(FindingReason.SELECTOR_NOT_RACK_AWARE, SubjectId("cluster", "test-cluster"))
UNEVEN = finding(FindingReason.LEADER_SKEW, SubjectId("topic", "t"))


def planned(built: Builder, *findings: Finding, limits: Limits = LIMITS) -> Plan:
    return make_plan(built.snapshot(), DetectionResult(findings=findings), limits, None)


def with_leader(plan: Plan) -> dict[str, int]:
    for placement in plan.placements:
        for change in placement.changes:
            assert placement.leaders_only
            assert sorted(change.before) == sorted(change.after), "only the order may change"
    return {str(change.id): change.after[0] for placement in plan.placements for change in placement.changes}


def without_selector() -> Builder:
    built = a_cluster()
    built.selector = False
    return built


# --- to the readers -------------------------------------------------------------------------------------------


def test_each_partition_is_led_where_it_is_read():
    built = without_selector().topic("t", ALL, ALL, (2, 1, 3))
    built.group("g", member("m1", "b", "t-0"), member("m2", "c", "t-1"), member("m3", "b", "t-2"))
    plan = planned(built, NO_SELECTOR)
    assert with_leader(plan) == {"t-0": 2, "t-1": 3}
    placement = plan.placements[0]
    assert placement.reason is ProposalReason.LEADERS_TO_READERS
    assert (placement.lower_bound, placement.optimal) == (0, True)
    assert placement.findings == (NO_SELECTOR.id,)


@pytest.mark.parametrize(
    ("members", "leader"),
    [
        pytest.param([("g", "b"), ("h", "b"), ("i", "a")], {"t-0": 2}, id="two of three groups read in b"),
        pytest.param([("g", "b"), ("h", "a")], {}, id="as many readers in a, where it is led: nothing to gain"),
        pytest.param([("g", "b"), ("h", None)], {}, id="the reader of unknown rack may be near the leader"),
        pytest.param([("g", "b"), ("h", "b"), ("i", None)], {"t-0": 2}, id="two known readers outweigh one unknown"),
        pytest.param([("g", "d")], {}, id="a reader in a rack without brokers"),
    ],
)
def test_the_majority_of_readers_decides_only_when_it_is_certain(members, leader):
    built = without_selector().topic("t", ALL)
    for group, rack in members:
        built.group(group, member(f"{group}-m", rack, "t-0"))
    assert with_leader(planned(built, NO_SELECTOR, limits=LOOSE)) == leader


@pytest.mark.parametrize("selector", [True, None])
def test_with_a_rack_aware_or_unknown_selector_leaders_stay(selector):
    built = without_selector().topic("t", ALL).group("g", member("m", "b", "t-0"))
    built.selector = selector
    assert with_leader(planned(built, NO_SELECTOR)) == {}


def test_only_an_in_sync_replica_on_a_live_broker_leads():
    built = without_selector().topic("t", ALL, ALL, isr={0: (1, 3)})
    built.group("g", member("m", "b", "t-0 t-1"))
    assert with_leader(planned(built, NO_SELECTOR, limits=LOOSE)) == {"t-1": 2}
    built.broker(2, "b", fenced=True)
    assert with_leader(planned(built, NO_SELECTOR, limits=LOOSE)) == {}


def test_following_readers_never_makes_leaders_uneven_beyond_the_limit():
    # All reads are in b. It holds a third of the replicas, so it may lead (1/3 + 0.34) * 9 = 6 of 9.
    built = without_selector().topic("t", *[(1, 2, 3), (2, 1, 3), (3, 1, 2)] * 3)
    built.group("g", *[member(f"m{n}", "b", f"t-{n}") for n in range(9)])
    plan = planned(built, NO_SELECTOR)
    counts = dict.fromkeys(ALL, 3)
    for change in plan.placements[0].changes:
        counts[change.before[0]] -= 1
        counts[change.after[0]] += 1
    assert counts[2] == 5, "per broker: 9 / 3 * 1.34, rounded up"
    assert not plan.placements[0].optimal
    assert (SubjectId("topic", "t"), Unplanned.UNEVEN) in plan.unplanned


def test_a_gain_below_the_threshold_is_nothing_worth_doing():
    built = without_selector().topic("t", *[ALL] * 30)
    built.group("g", *[member(f"m{n}", "b" if n == 0 else "a", f"t-{n}") for n in range(30)])
    plan = planned(built, NO_SELECTOR)
    assert plan.placements == ()
    assert (SubjectId("topic", "t"), Unplanned.BELOW_THRESHOLD) in plan.unplanned


def test_partitions_that_move_anyway_and_running_ones_are_left_alone():
    built = without_selector().broker(4, "a").topic("t", (1, 4, 3), ALL)
    built.group("g", member("m", "c", "t-0 t-1")).moving("t-1", ALL, (), ())
    share = finding(FindingReason.REPLICAS_SHARE_RACK, SubjectId("topic", "t"))
    plan = planned(built, NO_SELECTOR, share)
    assert [p.reason for p in plan.placements] == [ProposalReason.MEND_RACK_SPREAD]


# --- even -----------------------------------------------------------------------------------------------------


def test_leaders_become_even_by_the_fewest_changes():
    built = a_cluster().topic("t", *[ALL] * 9)
    plan = planned(built, UNEVEN)
    leaders = with_leader(plan)
    assert len(leaders) == 6
    assert sorted(leaders.values()) == [2, 2, 2, 3, 3, 3]
    placement = plan.placements[0]
    assert (placement.reason, placement.lower_bound, placement.optimal) == (ProposalReason.LEADERS_EVEN, 6, True)


def test_a_chain_helps_where_no_partition_goes_directly():
    # Nothing led in a has a replica in c: a hands one on to b, and b one to c.
    built = a_cluster().topic("t", *[(1, 2)] * 6, *[(2, 3)] * 3)
    leaders = with_leader(planned(built, UNEVEN))
    counts = {1: 6, 2: 3, 3: 0}
    for key, leader in leaders.items():
        counts[1 if int(key.split("-")[1]) < 6 else 2] -= 1
        counts[leader] += 1
    assert counts[1] <= 4
    assert counts[3] >= 1


def test_a_held_skew_is_not_planned_from():
    built = a_cluster().topic("t", *[ALL] * 9)
    held = finding(FindingReason.LEADER_SKEW, SubjectId("topic", "t"), held=True)
    plan = planned(built, held)
    assert plan.placements == ()
    assert plan.unplanned == ((held.id, Unplanned.HELD),)


def test_a_cluster_wide_skew_is_mended_over_topics_in_one_plan_each():
    built = a_cluster().topic("t", *[ALL] * 3).topic("u", *[ALL] * 3)
    plan = planned(built, finding(FindingReason.LEADER_SKEW, SubjectId("cluster", "test-cluster")), UNEVEN)
    assert [p.topic for p in plan.placements] == sorted({p.topic for p in plan.placements}), "one plan per topic"
    counts = {1: 6, 2: 0, 3: 0}
    for leader in with_leader(plan).values():
        counts[1] -= 1
        counts[leader] += 1
    assert counts == {1: 2, 2: 2, 3: 2}


RACKS = ("a", "b", "c", "d")


@given(st.lists(st.lists(st.sampled_from(RACKS), min_size=1, max_size=3, unique=True), min_size=1, max_size=20))
def test_evening_never_makes_it_worse_and_respects_its_bound(replicas):
    options = {
        TopicPartition("t", n): LeaderOption(racks[0], tuple(sorted(racks)), tuple(racks))
        for n, racks in enumerate(replicas)
    }
    changed = balance_leaders(options)
    assert balance_leaders(dict(reversed(options.items()))) == changed, "the order of partitions plays no part"
    assert all(rack in options[partition].could for partition, rack in changed.items())
    before = imbalance({p: o.rack for p, o in options.items()}, options)
    after = imbalance({p: changed.get(p, o.rack) for p, o in options.items()}, options)
    assert after <= before
    assert (after < before) == bool(changed)
    again = {p: o._replace(rack=changed.get(p, o.rack)) for p, o in options.items()}
    assert balance_leaders(again) == {}, "once even, nothing more is wanted"
    if fewest_changes(again) == 0:
        assert len(changed) >= fewest_changes(options)


def imbalance(leaders: dict[TopicPartition, str | None], options: dict[TopicPartition, LeaderOption]) -> float:
    held = [rack for option in options.values() for rack in option.replicas]
    share = {rack: held.count(rack) / len(held) * len(leaders) for rack in RACKS}
    return round(sum((list(leaders.values()).count(rack) - share[rack]) ** 2 for rack in RACKS), 6)

"""Replicas that share racks: what moves, what stays, and what is left out with its reason."""

from __future__ import annotations

import pytest

from agent.detect.find import detect
from agent.plan.make import limit_plan, make_plan
from agent.propose.codec import proposal_to_bytes
from agent.propose.make import propose
from agent.values.assessment import DetectionResult
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.limits import Limits, ProposalLimits, ScopeLimits
from agent.values.memory import Memory
from agent.values.plan import PlacementPlan, Plan, Unplanned
from agent.values.proposal import PlacementChange, ProposalReason
from agent.values.snapshot import Snapshot
from tests.snapshots import NOW_MS, Builder, a_cluster, tp

LIMITS = Limits()


def found(snapshot: Snapshot, limits: Limits = LIMITS) -> DetectionResult:
    return detect(snapshot, Memory(), limits, None)


def planned(built: Builder, limits: Limits = LIMITS, **changes: object) -> Plan:
    snapshot = built.snapshot(**changes)
    return make_plan(snapshot, found(snapshot, limits), limits, None)


def changed(plan: Plan) -> dict[str, tuple[int, ...]]:
    return {str(change.id): change.after for placement in plan.placements for change in placement.changes}


def why_not(plan: Plan) -> dict[str, Unplanned]:
    return dict(plan.unplanned)


def six_brokers() -> Builder:
    return a_cluster(a=(1, 4), b=(2, 5), c=(3, 6))


# --- what moves -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "after"),
    [
        pytest.param(
            six_brokers().topic("t", (1, 4, 2), (2, 3, 4)), {"t-0": (1, 6, 2)},
            id="two copies in rack a: the one of the busier broker moves to the idle one of c, the rest stays",
        ),
        pytest.param(
            a_cluster(a=(1, 4), b=(2,)).topic("t", (1, 4)), {"t-0": (1, 2)},
            id="two racks, two copies in one: the follower moves",
        ),
        pytest.param(
            six_brokers().topic("t", (1, 4, 2, 5)), {"t-0": (1, 4, 2, 3)},
            id="four copies on three racks, two and two: one moves to the empty rack, not from the leader's",
        ),
        pytest.param(
            six_brokers().topic("t", (1, 2, 3, 4)), {},
            id="four copies on three racks, two and one and one: as even as it gets",
        ),
        pytest.param(
            a_cluster(a=(1, 2, 3)).topic("t", (1, 2, 3)), {},
            id="one rack only: nothing to spread over",
        ),
    ],
)  # fmt: skip
def test_the_fewest_replicas_move(built, after):
    plan = planned(built)
    assert changed(plan) == after
    for placement in plan.placements:
        assert placement.reason is ProposalReason.MEND_RACK_SPREAD
        assert placement.optimal
        assert placement.lower_bound == 1000 * len(after)
        assert placement.findings == ("replicas_share_rack:topic/t",)


def test_new_replicas_go_to_the_idler_brokers_of_the_whole_cluster():
    # Broker 3 holds five replicas of other topics and broker 6 none, so all of them go to 6.
    built = six_brokers().topic("busy", *[(3,)] * 5).topic("t", (1, 4), (1, 4))
    changes = changed(planned(built))
    assert sorted(changes) == ["t-0", "t-1"]
    assert all(3 not in replicas for replicas in changes.values())


def test_sizes_never_decide_where_replicas_go_but_count_in_the_bound():
    small = six_brokers().topic("t", (1, 4), (4, 1), size=10)
    large = six_brokers().topic("t", (1, 4), (4, 1), size=10_000)
    unknown = six_brokers().topic("t", (1, 4), (4, 1), size=None)
    plans = [planned(built) for built in (small, large, unknown)]
    assert changed(plans[0]) == changed(plans[1]) == changed(plans[2])
    assert [plan.placements[0].lower_bound for plan in plans] == [20, 20_000, 2]


# --- what is left out -----------------------------------------------------------------------------------------


def test_a_topic_that_cannot_be_mended_does_not_keep_others_from_being_planned():
    built = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("ok", (1, 4)).topic("stuck", (1, 4, 2))
    built.broker(3, "c", cordoned=True)
    finding = share_finding("stuck")
    snapshot = built.snapshot()
    plan = make_plan(snapshot, DetectionResult(findings=(*found(snapshot).findings, finding)), LIMITS, None)
    assert changed(plan) == {"ok-0": (1, 2)}
    assert why_not(plan)[tp("stuck-0")] is Unplanned.INFEASIBLE


def share_finding(topic: str, *, held: bool = False, detail: str = "") -> Finding:
    return Finding(
        reason=FindingReason.REPLICAS_SHARE_RACK, subject=SubjectId("topic", topic), sentence="they share",
        evidence=(), severity=FindingSeverity.WARNING, since_ms=NOW_MS, held=held, detail=detail,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("built", "limits", "key", "why"),
    [
        pytest.param(
            six_brokers().topic("t", (1, 4)), Limits(scope=ScopeLimits(exclude_topics=("t*",))),
            "replicas_share_rack:topic/t", Unplanned.EXCLUDED, id="excluded by the settings",
        ),
        pytest.param(
            six_brokers().topic("rackwise.journal", (1, 4), own=True), LIMITS,
            "replicas_share_rack:topic/rackwise.journal", Unplanned.EXCLUDED, id="rackwise's own topic",
        ),
        pytest.param(
            six_brokers().topic("t", (1, 4)).moving("t-0", (1, 4), (), ()), LIMITS,
            tp("t-0"), Unplanned.RUNNING, id="a reassignment of it runs",
        ),
        pytest.param(
            six_brokers().broker(9, "_").topic("t", (1, 4, 9)), LIMITS,
            tp("t-0"), Unplanned.UNKNOWN_RACK, id="a replica's rack is unknown",
        ),
    ],
)  # fmt: skip
def test_a_partition_is_left_alone_with_its_reason(built, limits, key, why):
    topic = next(iter(built.topics))
    plan = make_plan(built.snapshot(), DetectionResult(findings=(share_finding(topic),)), limits, None)
    assert changed(plan) == {}
    assert why_not(plan) == {key: why}


def test_own_topics_are_planned_when_they_were_asked_for():
    built = six_brokers().topic("rackwise.journal", (1, 4), own=True)
    assert "rackwise.journal-0" in changed(planned(built, Limits(scope=ScopeLimits(include_own_topics=True))))


def test_nothing_is_planned_from_a_held_finding():
    built = six_brokers().topic("t", (1, 4))
    plan = make_plan(built.snapshot(), DetectionResult(findings=(share_finding("t", held=True),)), LIMITS, None)
    assert changed(plan) == {}
    assert why_not(plan) == {"replicas_share_rack:topic/t": Unplanned.HELD}


def test_a_broker_whose_rack_flaps_neither_gives_nor_takes():
    built = six_brokers().topic("t", (1, 4, 2), (2, 5, 1), (4, 1))
    flaps = Finding(
        reason=FindingReason.RACK_FLAPPING, subject=SubjectId("broker", "3"), broker=3, sentence="it flaps",
        evidence=(), severity=FindingSeverity.WARNING, since_ms=NOW_MS, held=True,
    )  # fmt: skip
    changes = changed(make_plan(built.snapshot(), DetectionResult(findings=(share_finding("t"), flaps)), LIMITS, None))
    assert changes["t-0"] == (1, 6, 2), "6 is the other broker of rack c"
    assert all(3 not in replicas for replicas in changes.values())
    flaps_giver = DetectionResult(findings=(share_finding("t"), replace_subject(flaps, 4)))
    plan = make_plan(built.snapshot(), flaps_giver, LIMITS, None)
    assert set(changed(plan)) == {"t-1"}
    assert why_not(plan)[tp("t-0")] is Unplanned.HELD


def replace_subject(finding: Finding, broker: int) -> Finding:
    return Finding(
        reason=finding.reason, subject=SubjectId("broker", str(broker)), broker=broker, sentence=finding.sentence,
        evidence=(),
        severity=finding.severity, since_ms=finding.since_ms, held=finding.held,
    )  # fmt: skip


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"alive": False}, id="absent"),
        pytest.param({"fenced": True}, id="fenced"),
        pytest.param({"cordoned": True}, id="cordoned"),
    ],
)
def test_a_broker_that_is_not_open_takes_nothing(broken):
    built = six_brokers().broker(3, "c", **broken).topic("t", (1, 4, 2))
    assert changed(planned(built)) == {"t-0": (1, 6, 2)}


def test_no_finding_no_plan():
    built = six_brokers().topic("t", (1, 4))
    assert make_plan(built.snapshot(), DetectionResult(), LIMITS, None) == Plan()


def test_a_large_topic_is_cut_to_the_cap_and_the_rest_is_named():
    built = six_brokers().topic("t", *[(1, 4)] * 5)
    plan = planned(built, Limits(proposals=ProposalLimits(max_moves=2)))
    assert list(changed(plan)) == ["t-0", "t-1"]
    assert plan.unplanned == ((SubjectId("topic", "t"), Unplanned.CAPPED),)
    assert not plan.placements[0].optimal


@pytest.mark.parametrize(("name", "replicas"), [("t", (1, 4)), ("t" * 249, (1, 4)), ("t" * 60, (1, 2, 3, 4, 5))])
def test_no_proposal_is_larger_than_its_record_and_the_rest_is_named(name, replicas):
    """A proposal that cannot be published can be neither seen nor approved."""
    built = six_brokers().topic(name, *[replicas] * 6_000)
    after = tuple(6 if broker == 4 else broker for broker in replicas)
    changes = tuple(PlacementChange(tp(f"{name}-{at}"), replicas, after) for at in range(6_000))
    whole = PlacementPlan(
        topic=name, reason=ProposalReason.MEND_RACK_SPREAD, changes=changes, leaders_only=False, lower_bound=0,
        optimal=True, findings=(f"topic/{name}",),
    )  # fmt: skip
    limits = Limits(proposals=ProposalLimits(max_moves=100_000))
    plan = limit_plan(Plan(placements=(whole,)), limits)
    assert plan.unplanned == ((SubjectId("topic", name), Unplanned.CAPPED),)
    (proposal,) = propose(built.snapshot(), plan, DetectionResult(), limits, None)
    assert 400_000 < len(proposal_to_bytes(proposal)) < 1_000_000, "below what a broker takes by default"
    assert len(proposal.after) == len(plan.placements[0].changes) < 6_000


def test_the_cap_on_proposals_keeps_the_most_important():
    built = six_brokers().topic("a", (1, 4)).topic("b", (1, 4), (2, 5)).topic("c", (3, 6))
    built.broker(9, "_")
    plan = planned(built, Limits(proposals=ProposalLimits(max_per_cycle=2)))
    assert [p.topic for p in plan.placements] == ["a", "b"]
    assert plan.advice == ()
    capped = {key for key, why in plan.unplanned if why is Unplanned.CAPPED}
    assert capped == {SubjectId("topic", "c"), SubjectId("cluster", "test-cluster")}
    assert tp("b-0") in [change.id for p in plan.placements for change in p.changes]

"""From a proposal to the plan that an executor is given: the same partitions, lists and topic ids."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.reassign.messages import ClusterView
from agent.execute.reassign.throttles import rate_of
from agent.values.finding import SubjectId
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.proposal import (
    PlacementChange,
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalReason,
    placement_rows,
)
from agent.values.reassignment import InvalidProposalError, ReassignmentPolicy, ReassignmentTarget, plan_of, traffic_of
from agent.values.snapshot import Snapshot, TopicState
from assignors.problem import TopicPartition
from tests.snapshots import a_cluster

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
CHANGES = (PlacementChange(A, (1, 4), (1, 2)), PlacementChange(B, (4, 1), (2, 1)))


def proposal(kind: ProposalKind = ProposalKind.REASSIGN, predicted: PredictedEffect | None = None) -> Proposal:
    before, after = placement_rows(CHANGES)
    return Proposal(
        id="p-1",
        kind=kind,
        reason=ProposalReason.MEND_RACK_SPREAD,
        subject=SubjectId("topic", "t"),
        sentence="two replicas share a rack",
        before=before,
        after=after,
        placements=() if kind is ProposalKind.TRIGGER else CHANGES,
        moves=(),
        predicted=predicted or PredictedEffect(),
        lower_bound=None,
        optimal=None,
        evidence=(),
        findings=(),
        snapshot_hash="h",
        created_ms=0,
        expires_ms=1,
    )


def snapshot(topic_id: str | None = "id") -> Snapshot:
    topic = TopicState(
        name="t", topic_id=topic_id, internal=False, own=False, partitions=(), min_isr=1, cleanup_policy=None,
        leader_throttle=None, follower_throttle=None,
    )  # fmt: skip
    return Snapshot(
        cluster_id="c", controller=1, brokers=(), topics={"t": topic}, groups={}, size_bytes={A: 5},
        bytes_per_s={A: 30.0, B: 10.0}, taken_ms=0, monotonic_ms=0,
    )  # fmt: skip


def test_a_plan_has_what_the_proposal_says_and_what_the_snapshot_knows() -> None:
    plan = plan_of(
        proposal(), snapshot(), approved_by="rule small", throttle_bytes_per_s=7, max_moves=3, reason="for a test"
    )
    assert (plan.proposal_id, plan.approved_by, plan.reason) == ("p-1", "rule small", "for a test")
    assert (plan.throttle_bytes_per_s, plan.max_moves) == (7, 3)
    assert [(one.id, one.topic_id, one.before, one.after, one.bytes, one.bytes_per_s) for one in plan.targets] == [
        (A, "id", (1, 4), (1, 2), 5, 30.0),
        (B, "id", (4, 1), (2, 1), None, 10.0),
    ]


def test_a_plan_without_a_reason_has_the_proposals_sentence() -> None:
    assert plan_of(proposal(), snapshot(), approved_by="me").reason == "two replicas share a rack"


def test_what_is_saved_is_shared_out_by_what_is_written() -> None:
    saving = PredictedEffect(cross_rack_bytes_per_s_before=100.0, cross_rack_bytes_per_s_after=20.0)
    plan = plan_of(proposal(predicted=saving), snapshot(), approved_by="me")
    assert [one.gain for one in plan.targets] == [60.0, 20.0]


def test_a_partition_of_unknown_rate_has_no_part_of_what_is_saved_and_without_any_rate_all_have_the_same() -> None:
    saving = PredictedEffect(cross_rack_bytes_per_s_before=100.0, cross_rack_bytes_per_s_after=20.0)
    known = replace(snapshot(), bytes_per_s={A: 0.5})
    assert [one.gain for one in plan_of(proposal(predicted=saving), known, approved_by="me").targets] == [80.0, 0.0]
    blind = replace(snapshot(), bytes_per_s={})
    assert [one.gain for one in plan_of(proposal(predicted=saving), blind, approved_by="me").targets] == [40.0, 40.0]


@pytest.mark.parametrize(
    ("made", "seen", "sentence"),
    [
        (proposal(ProposalKind.TRIGGER), snapshot(), "p-1 changes no replica list"),
        (proposal(), snapshot(None), "p-1 is about t-0, whose topic id is not known"),
    ],
    ids=["a trigger moves no replica", "a topic without an id cannot be told from another of its name"],
)
def test_what_cannot_be_a_plan_is_told(made: Proposal, seen: Snapshot, sentence: str) -> None:
    with pytest.raises(InvalidProposalError, match=sentence):
        plan_of(made, seen, approved_by="me")


@pytest.mark.parametrize(
    ("rates", "gaps", "traffic"),
    [
        pytest.param({0: 30.0, 1: 10.0}, (), {1: 30.0, 2: 40.0, 3: 10.0, 4: 0.0}, id="all rates are known"),
        pytest.param({0: 30.0}, (), {1: 30.0, 4: 0.0}, id="one is not: its brokers' traffic is not"),
        pytest.param({}, (), {4: 0.0}, id="none is known: only a broker without replicas takes in nothing"),
        pytest.param(
            {0: 30.0, 1: 10.0}, (Gap(ObservationPart.TOPICS, GapCause.TIMED_OUT, "u", ""),), {}, id="a topic is unseen"
        ),
    ],
)
def test_the_traffic_of_a_broker_is_known_when_that_of_all_its_replicas_is(
    rates: dict[int, float], gaps: tuple[Gap, ...], traffic: dict[int, float]
) -> None:
    built = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 2), (2, 3)).snapshot()
    known = {TopicPartition("t", number): rate for number, rate in rates.items()}
    assert traffic_of(replace(built, bytes_per_s=known, gaps=gaps)) == traffic


def test_one_known_partition_of_a_thousand_does_not_open_the_throttle() -> None:
    targets = (ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (1, 3)),)
    many = a_cluster().topic("t", *[(1, 2, 3)] * 1_000).snapshot()
    seen_ = ClusterView(frozenset({1, 2, 3}), ())
    policy = ReassignmentPolicy()
    for known, rate in ((1, policy.limits.throttle_floor), (1_000, 62_450_000)):
        rates = {TopicPartition("t", number): 100.0 for number in range(known)}
        traffic = traffic_of(replace(many, bytes_per_s=rates))
        assert rate_of(targets, seen_._replace(traffic=tuple(traffic.items())), policy) == rate

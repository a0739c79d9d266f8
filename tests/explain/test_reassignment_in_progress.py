"""While a reassignment runs, findings and explanations count the replicas that will be, not old and new together."""

from __future__ import annotations

import pytest

from agent.detect.find import detect
from agent.explain.explain import explain
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.finding import Finding
from agent.values.finding import FindingReason as Reason
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.plan import ExplainedRule, RuleAnswer
from agent.values.throttles import original_replicas, target_replicas
from tests.snapshots import Builder, a_cluster, tp

LIMITS = Limits()


def seen(built: Builder) -> tuple[tuple[Finding, ...], tuple[ExplainedRule, ...]]:
    """What is found, and what is explained of t-0."""
    snapshot = built.snapshot()
    detection = detect(snapshot, Memory(), LIMITS, None)
    plan = make_plan(snapshot, detection, LIMITS, None)
    proposals = propose(snapshot, plan, detection, LIMITS, None)
    return detection.findings, explain("topic/t/0", snapshot, detection, plan, proposals, LIMITS)


@pytest.mark.parametrize(
    ("union", "adding", "removing", "target", "before"),
    [
        pytest.param((3, 1, 4), (3,), (4,), (3, 1), (1, 4), id="one replica for another"),
        pytest.param((3, 1, 4), (3,), (), (3, 1, 4), (1, 4), id="one replica more"),
        pytest.param((1, 4), (), (4,), (1,), (1, 4), id="one replica less"),
        pytest.param((2, 3, 1, 4), (2, 3), (1, 4), (2, 3), (1, 4), id="all new"),
    ],
)
def test_what_a_move_leads_to_and_what_it_came_from(
    union: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    target: tuple[int, ...],
    before: tuple[int, ...],
) -> None:
    snapshot = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", union).moving("t-0", union, adding, removing).snapshot()
    (state,) = snapshot.topics["t"].partitions
    moving = snapshot.reassignments[tp("t-0")]
    assert target_replicas(state, moving) == target
    assert original_replicas(state, moving) == before
    assert target_replicas(state, None) == original_replicas(state, None) == union


def test_metadata_from_before_the_move_does_not_hide_where_it_leads() -> None:
    built = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4)).moving("t-0", (3, 1, 4), (3,), (4,))
    (state,) = built.snapshot().topics["t"].partitions
    assert target_replicas(state, built.reassignments[tp("t-0")]) == (3, 1)


@pytest.mark.parametrize(
    ("union", "adding", "removing", "spread"),
    [
        pytest.param((3, 1, 4), (3,), (4,), RuleAnswer.YES, id="a move that mends the spread is counted as done"),
        pytest.param((1, 4, 2), (4,), (2,), RuleAnswer.NO, id="a move that breaks the spread is counted as done"),
    ],
)
def test_findings_and_explanations_count_the_same_replicas(
    union: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...], spread: RuleAnswer
) -> None:
    built = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", union, isr={0: union[1:]})
    built.moving("t-0", union, adding, removing)
    findings, rows = seen(built)
    target = [replica for replica in union if replica not in removing]
    found = [finding for finding in findings if finding.reason is Reason.REPLICAS_SHARE_RACK]
    assert bool(found) == (spread is RuleAnswer.NO)
    (row,) = [one for one in rows if one.rule == "spread over racks"]
    assert row.answer is spread
    rack_of = {1: "a", 4: "a", 2: "b", 3: "c"}
    at = ", ".join(f"{broker} (rack {rack_of[broker]})" for broker in target)
    assert row.sentence.startswith(f"its replicas will be, after the reassignment in progress, on brokers {at}")
    if found:
        assert dict(found[0].evidence)["example"] == "t-0: 1 (a), 4 (a)"
    held = {one.about: one.sentence for one in rows if one.rule == "holds it"}
    (added,), (removed,) = adding, removing
    assert held[f"t-0 on broker {added}"] == "the reassignment that runs adds a replica"
    assert held[f"t-0 on broker {removed}"] == "it has a replica now, and the reassignment that runs removes it"


def test_a_replica_that_is_being_added_did_not_fall_out_of_the_isr() -> None:
    built = a_cluster().topic("t", (3, 1, 2), isr={0: (1, 2)}, min_isr=2).moving("t-0", (3, 1, 2), (3,), (2,))
    findings, _ = seen(built)
    assert [finding.reason for finding in findings if "min ISR" in finding.sentence] == []
    lost = a_cluster().topic("t", (3, 1, 2), isr={0: (1, 3)}, min_isr=2).moving("t-0", (3, 1, 2), (3,), ())
    findings, _ = seen(lost)
    assert Reason.AT_MIN_ISR in {finding.reason for finding in findings}

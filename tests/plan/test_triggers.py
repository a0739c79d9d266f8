"""Rebalances: proposed only where one is sure to help and harms no member."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.detect.find import detect
from agent.plan.make import make_plan
from agent.values.assessment import DetectionResult
from agent.values.finding import FindingReason
from agent.values.limits import GainLimits, GroupLimits, Limits, ProbingLimits, TriggerLimits
from agent.values.memory import CopyMemory, Memory, StreamsMemory
from agent.values.plan import Plan, Unplanned
from agent.values.proposal import ProposalReason
from agent.values.snapshot import GroupKind, LagSource, Range, TaskCopy, TaskRole
from assignors.problem import TaskId
from tests.snapshots import Builder, a_cluster, member, process, task, tp

LIMITS = Limits()
WORSE = "assignment_worse_than_optimum:group/g"
STRATEGY = Limits(groups={"g": GroupLimits(rack_aware_assignment_strategy="min_traffic", known=True)})


def planned(built: Builder, limits: Limits = LIMITS) -> Plan:
    snapshot = built.snapshot()
    return make_plan(snapshot, detect(snapshot, Memory(), limits, None), limits, None)


def swapped(*, rack_1: str | None = "b", rack_2: str | None = "a", **changes: object) -> tuple:
    """Two members that read each other's partition."""
    return (member("m1", rack_1, "t-0", **changes), member("m2", rack_2, "t-1", **changes))


def two_partitions() -> Builder:
    return a_cluster().topic("t", (1,), (2,))


def test_a_cooperative_group_with_a_gap_is_triggered():
    plan = planned(two_partitions().group("g", *swapped()))
    (trigger,) = plan.triggers
    assert trigger.reason is ProposalReason.REBALANCE_IMPROVES
    assert trigger.moves == ((tp("t-0"), "m1", "m2"), (tp("t-1"), "m2", "m1"))
    assert trigger.findings == (WORSE,)
    assert plan.unplanned == ()


@pytest.mark.parametrize(
    ("built", "limits", "why"),
    [
        pytest.param(
            two_partitions().group("g", *swapped(), assignor="range"), LIMITS, Unplanned.EAGER,
            id="eager: a rebalance stops everybody",
        ),
        pytest.param(
            two_partitions().group("g", *swapped(instance_id="i")), LIMITS, Unplanned.STATIC,
            id="static members asked for the opposite",
        ),
        pytest.param(
            two_partitions().group("g", *swapped(), state="PreparingRebalance"), LIMITS, Unplanned.UNSTABLE,
            id="it rebalances already",
        ),
        pytest.param(
            two_partitions().group("g", *swapped(), assignor="my-own"), LIMITS, Unplanned.NO_LEVER,
            id="of an assignor of the user's own nothing is known",
        ),
        pytest.param(
            two_partitions().group("g", *swapped()), Limits(gain=GainLimits(min_partitions=3)),
            Unplanned.BELOW_THRESHOLD, id="too few partitions would come home",
        ),
        pytest.param(
            two_partitions().group("g", *swapped(), member("m3", None, "")), LIMITS, Unplanned.UNKNOWN_RACK,
            id="one member tells no rack",
        ),
    ],
)  # fmt: skip
def test_no_rebalance_where_it_harms_or_may_not_help(built, limits, why):
    plan = planned(built, limits)
    assert plan.triggers == ()
    assert dict(plan.unplanned)[WORSE] is why


@pytest.mark.parametrize(
    ("built", "allowed"),
    [
        pytest.param(
            two_partitions().group("g", *swapped(), assignor="range"), TriggerLimits(allow_eager=True), id="eager"
        ),
        pytest.param(
            two_partitions().group("g", *swapped(instance_id="i")), TriggerLimits(allow_static=True), id="static"
        ),
    ],
)
def test_what_is_refused_by_default_may_be_allowed_for_a_group(built, allowed):
    limits = Limits(group_triggers={"g": allowed})
    (trigger,) = planned(built, limits).triggers
    assert trigger.moves == ((tp("t-0"), "m1", "m2"), (tp("t-1"), "m2", "m1"))


@pytest.mark.parametrize("kind", [GroupKind.CONSUMER, GroupKind.STREAMS])
def test_groups_that_brokers_assign_are_advised_and_never_triggered(kind):
    if kind is GroupKind.CONSUMER:
        built = two_partitions().group("g", *swapped(), kind=kind, assignor="uniform")
    else:
        topology = [task("0_0", "t-0"), task("0_1", "t-1")]
        built = two_partitions().streams(
            "g", process("p1", "b", "0_0"), process("p2", "a", "0_1"), topology=topology, kind=kind
        )
    plan = planned(built, STRATEGY)
    assert plan.triggers == ()
    (advice,) = [a for a in plan.advice if a.reason is ProposalReason.CHANGE_ASSIGNOR]
    streams = "" if kind is GroupKind.CONSUMER else "\nrack.aware.assignment.strategy=min_traffic"
    assert advice.line == f"group.protocol=classic{streams}"
    assert advice.subject == "g"


def test_without_a_selector_a_near_follower_saves_nothing():
    # Replicas are near by Kafka's measure, but leaders serve, and they stay as far as they were.
    built = a_cluster().topic("t", (3, 1), (3, 2)).group("g", *swapped())
    assert len(planned(built).triggers) == 1
    built.selector = False
    plan = planned(built)
    assert plan.triggers == ()
    assert dict(plan.unplanned)[WORSE] is Unplanned.BELOW_THRESHOLD
    built.selector = None
    assert dict(planned(built).unplanned)[WORSE] is Unplanned.UNKNOWN_SELECTOR


def test_a_gain_in_bytes_below_the_threshold_is_nothing_worth_doing():
    built = a_cluster().topic("t", (1,), (2,), rate=10.0).group("g", *swapped())
    assert len(planned(built, Limits(gain=GainLimits(min_bytes_per_s=20.0))).triggers) == 1
    plan = planned(built, Limits(gain=GainLimits(min_bytes_per_s=20.5)))
    assert plan.triggers == ()
    assert dict(plan.unplanned)[WORSE] is Unplanned.BELOW_THRESHOLD


def test_a_group_on_a_held_rack_waits():
    built = two_partitions().group("g", *swapped())
    snapshot = built.snapshot()
    detection = detect(snapshot, Memory(), LIMITS, None)
    held = [
        finding if finding.reason is not FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM else hold(finding)
        for finding in detection.findings
    ]
    plan = make_plan(snapshot, DetectionResult(findings=tuple(held), assessments=detection.assessments), LIMITS, None)
    assert plan.triggers == ()
    assert plan.unplanned == ((WORSE, Unplanned.HELD),)


def hold(finding):
    return type(finding)(
        **{name: getattr(finding, name) for name in finding.__dataclass_fields__ if name != "held"}, held=True
    )


# --- Streams --------------------------------------------------------------------------------------------------

TOPOLOGY = [task("0_0", "t-0"), task("0_1", "t-1")]


def copy(
    process_id: str, text: str, *, caught_up: bool | None, role: TaskRole = TaskRole.WARMUP, lag: float = 0.0
) -> TaskCopy:
    subtopology, partition = text.split("_")
    return TaskCopy(
        group_id="g", process_id=process_id, task=TaskId(int(subtopology), int(partition)), role=role,
        role_certain=True, end_offset_sum=100, lag=Range(lag, lag, lag), lag_source=LagSource.APPLICATION,
        lag_age_ms=0, rate_per_s=None, eta_s=None, caught_up=caught_up,
    )  # fmt: skip


def warming(*copies: TaskCopy, **changes: object) -> Builder:
    processes = (process("p1", "a", "0_0 0_1"), process("p2", "b", "", standby="0_1"))
    return two_partitions().streams("g", *processes, topology=TOPOLOGY, copies=copies, **changes)


def test_caught_up_warm_ups_are_promoted():
    (trigger,) = planned(warming(copy("p2", "0_1", caught_up=True), copy("p2", "0_0", caught_up=False))).triggers
    assert trigger.reason is ProposalReason.WARMUP_PROMOTABLE
    assert trigger.promotable == (("p2", TaskId(0, 1)),)
    assert trigger.moves == ((tp("t-1"), "p1", "p2"),)
    assert trigger.findings == ("warmup_promotable:task/g/0_1/p2",)


@pytest.mark.parametrize(
    "built",
    [
        pytest.param(warming(copy("p2", "0_1", caught_up=False)), id="not caught up"),
        pytest.param(warming(copy("p2", "0_1", caught_up=None)), id="unknown"),
        pytest.param(warming(copy("p2", "0_1", caught_up=True, role=TaskRole.STANDBY)), id="a standby, not a warm-up"),
        pytest.param(warming(copy("p2", "0_1", caught_up=True), state="PreparingRebalance"), id="rebalancing now"),
        pytest.param(
            warming(copy("p2", "0_1", caught_up=True), metadata_versions=(10, 11)), id="a roll is in progress"
        ),
        pytest.param(
            warming(copy("p2", "0_1", caught_up=True), kind=GroupKind.STREAMS), id="KIP-1071: the broker promotes"
        ),
    ],
)
def test_warm_ups_that_wait_for_something_else_trigger_nothing(built):
    assert planned(built).triggers == ()


def test_warm_ups_of_which_only_a_rebalance_can_tell_are_asked_about():
    probably = copy("p2", "0_1", caught_up=None)._replace(lag=Range(0, 500, 90_000), lag_source=LagSource.MODEL)
    (trigger,) = planned(warming(probably, next_rebalance_ms=1_760_000_500_000)).triggers
    assert trigger.reason is ProposalReason.WARMUP_PROMOTABLE
    assert trigger.promotable == (("p2", TaskId(0, 1)),)
    assert trigger.findings == ("warmup_unsure:group/g",)
    assert planned(warming(probably)).triggers == (), "its leader wants no other assignment"


@pytest.mark.parametrize("allowed", [True, False])
def test_standbys_that_fall_behind_are_answered_where_that_is_allowed(allowed: bool):
    standby = copy("p2", "0_1", caught_up=False, role=TaskRole.STANDBY, lag=90_000.0)
    standby = standby._replace(rate_per_s=Range(-9.0, -8.0, -7.0), samples=8)
    known = StreamsMemory(None, {}, {("p2", TaskId(0, 1)): CopyMemory(0, (), False, (0, 10_000))}, ())
    snapshot = warming(standby).snapshot()
    memory = Memory(cycle=9, streams={"g": known})
    limits = replace(LIMITS, probing=ProbingLimits(standbys=allowed))
    found = detect(snapshot, memory, limits, None)
    triggers = make_plan(snapshot, found, limits, None).triggers
    assert [trigger.findings for trigger in triggers] == ([("standby_lag_grows:group/g",)] if allowed else [])


def test_tasks_go_nearer_only_with_a_strategy_and_after_warm_ups():
    processes = (process("p1", "b", "0_0"), process("p2", "a", "0_1"))
    built = two_partitions().streams("g", *processes, topology=TOPOLOGY)
    plan = planned(built)
    assert plan.triggers == ()
    assert [(a.reason, a.line) for a in plan.advice] == [
        (ProposalReason.SET_STRATEGY, "rack.aware.assignment.strategy=min_traffic")
    ]
    (trigger,) = planned(built, STRATEGY).triggers
    assert trigger.moves == ((tp("t-0"), "p1", "p2"), (tp("t-1"), "p2", "p1"))
    built.copies["g"] = (copy("p1", "0_1", caught_up=False),)
    plan = planned(built, STRATEGY)
    assert plan.triggers == ()
    assert dict(plan.unplanned)[WORSE] is Unplanned.WARMING_UP


def test_one_rebalance_does_both_and_the_warm_ups_name_it():
    processes = (process("p1", "b", "0_0"), process("p2", "a", "0_1", standby="0_0"))
    built = two_partitions().streams("g", *processes, topology=TOPOLOGY, copies=(copy("p2", "0_0", caught_up=True),))
    (trigger,) = planned(built, STRATEGY).triggers
    assert trigger.reason is ProposalReason.WARMUP_PROMOTABLE

"""Every reason once: each can be found, has a stable id and a sentence, and a quiet cluster has none of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.values.finding import FindingReason as Reason
from agent.values.limits import Limits
from agent.values.observation import GapCause, ObservationPart, RawMember
from tests.builders import (
    TABLE,
    WIRE,
    Answers,
    Run,
    an_observation,
    consumer,
    instance,
    located,
    process_id,
    reader,
    with_group,
)
from tests.telemetry.weight_rates import reading_of

Looks = tuple[Callable[[Answers], object], ...]
LIMITS = with_group("app", num_standby_replicas=0, rack_aware_assignment_strategy="min_traffic")


def nothing(answers: Answers) -> None:
    """The cluster as it was."""


def quiet() -> Answers:
    """Replicas spread, everything near, one application with a changelog."""
    answers = an_observation(a=(1, 4), b=(2, 5), c=(3, 6)).topic("orders", (1, 2), (2, 3), (3, 1))
    answers.topic("app-store-changelog", (1, 2), (2, 3), (3, 1), ends=[900_000] * 3)
    answers.group("readers", *(reader(f"m{n}", rack, f"orders-{n}") for n, rack in enumerate("abc")))
    return application(answers)


def application(answers: Answers, rack: str = "b", **second: object) -> Answers:
    return answers.streams(
        "app",
        instance(1, "a", {"0_0": "orders-0"}, sums={"0_0": -2}, owned="orders-0"),
        instance(2, rack, {"0_1": "orders-1"}, sums={"0_1": -2}, owned="orders-1", **second),  # type: ignore[arg-type]
        instance(3, "c", {"0_2": "orders-2"}, sums={"0_2": -2}, owned="orders-2"),
    )


def lags(*readings: int) -> Looks:
    def tells(second: int, lag: int) -> Callable[[Answers], object]:
        return lambda a: a.says("app", process_id(2), "0_0", "standby", lag, at_s=10 * second)

    return tuple(tells(number + 1, lag) for number, lag in enumerate(readings))


def warming(answers: Answers) -> None:
    application(answers, standby={"0_0": "orders-0"})


def astray(generation: int) -> Callable[[Answers], object]:
    """The application with every task in a rack without its partition, after that many rebalances."""

    def runs(number: int, rack: str, partition: int) -> tuple[RawMember, ...]:
        task, source = f"0_{partition}", f"orders-{partition}"
        return instance(number, rack, {task: source}, sums={task: -2}, owned=source, generation=generation)

    return lambda a: a.streams("app", runs(1, "a", 1), runs(2, "b", 2), runs(3, "c", 0))


FOUND_BY: dict[Reason, Looks] = {
    Reason.BROKER_ABSENT: (nothing, lambda a: a.without_broker(3)),
    Reason.BROKER_RACK_CHANGED: (nothing, lambda a: a.broker(4, "b")),
    Reason.BROKER_RACK_MISSING: (lambda a: a.broker(4, None),),
    Reason.RACK_FLAPPING: (nothing, *[lambda a, rack=rack: a.broker(4, rack) for rack in "bab"]),  # type: ignore[misc]
    Reason.RACK_SPELLING: (lambda a: a.broker(4, "A"),),
    Reason.RACK_LOCATORS_DISAGREE: (lambda a: a.extra.update(rack_tables=(located("file", "broker.4=b"),)),),
    Reason.SELECTOR_NOT_RACK_AWARE: (lambda a: a.selector(None),),
    Reason.REPLICA_RACKS_CHANGED: (nothing, lambda a: a.topic("orders", (1, 2), (2, 3), (3, 2))),
    Reason.REPLICAS_SHARE_RACK: (lambda a: a.topic("orders", (1, 4), (2, 3), (3, 1)),),
    Reason.UNDER_MIN_ISR: (
        lambda a: a.topic("orders", (1, 2), (2, 3), (3, 1), isr={0: (1,)}, min_insync_replicas="2"),
    ),
    Reason.AT_MIN_ISR: (lambda a: a.topic("orders", (1, 2), (2, 3), (3, 1), isr={0: (1,)}),),
    Reason.FOREIGN_REASSIGNMENT: (lambda a: a.moving("orders-0", (3, 1, 2), (3,), (2,)),),
    Reason.THROTTLE_LEFT_BEHIND: (
        *[lambda a: a.topic("more", (1, 2), leader_replication_throttled_replicas="0:1")] * 14,
    ),
    Reason.LEADER_SKEW: (lambda a: a.topic("skewed", *[(1, 2)] * 3, *[(1, 3)] * 3),),
    Reason.MEMBER_WITHOUT_RACK: (lambda a: a.group("g", reader("m", None, "orders-0")),),
    Reason.MEMBER_IN_NO_BROKERS_RACK: (lambda a: a.group("g", reader("m", "use1-az1", "orders-0")),),
    Reason.PARTITION_CLAIMED_TWICE: (
        lambda a: a.group("g", reader("m1", "a", "orders-0"), reader("m2", "b", "orders-0")),
    ),
    Reason.ASSIGNED_WHAT_IS_NOT_THERE: (lambda a: a.group("g", reader("m", "a", "orders-0 orders-7")),),
    Reason.SUBSCRIPTION_TOO_OLD: (lambda a: a.group("g", reader("m", None, "orders-0", version=1)),),
    Reason.ASSIGNMENT_WORSE_THAN_OPTIMUM: (
        lambda a: a.group("g", *(reader(f"m{n}", rack, f"orders-{n}") for n, rack in enumerate("cab"))),
    ),
    Reason.ASSIGNOR_WOULD_NOT_FIX: (
        lambda a: a.kip848("g", *(consumer(f"m{n}", rack, f"orders-{n}") for n, rack in enumerate("cab"))),
    ),
    Reason.GROUP_KIND_IGNORES_RACKS: (lambda a: a.kip848("g", consumer("m", "a", "orders-0")),),
    Reason.PREDICTION_MISSED: (astray(4), astray(5)),
    Reason.RACK_AWARENESS_OFF: (lambda a: a.group("g", reader("m", "a", "orders-0"), assignor="roundrobin"),),
    Reason.MIXED_VERSIONS: (lambda a: application(a, version=10),),
    Reason.GROUP_STUCK_IN_REBALANCE: (*[lambda a: a.group("g", state="PreparingRebalance")] * 32,),
    Reason.GROUP_UNDECODABLE: (lambda a: a.group("g", reader("m", "a", "orders-0", metadata=b"\x00")),),
    Reason.STATE_UNKNOWN: (
        lambda a: a.without_topic("app-store-changelog").gap(ObservationPart.TOPICS, subject="app-store-changelog"),
    ),
    Reason.WARMUP_PROMOTABLE: (warming, *lags(0)),
    Reason.WARMUP_UNSURE: (
        lambda a: application(a, standby={"0_0": "orders-0"}, next_rebalance_ms=1_760_000_600_000),
        *[nothing] * 4,
    ),
    Reason.WARMUP_NEVER: (warming, *lags(500_000, 510_000, 520_000, 530_000, 540_000)),
    Reason.STANDBY_LAG_GROWS: (warming, *lags(500_000, 510_000, 520_000, 530_000, 540_000)),
    Reason.COPIES_SHARE_RACK: (lambda a: application(a, rack="a", standby={"0_0": "orders-0"}),),
    Reason.RIGHTS_MISSING: (lambda a: a.gap(ObservationPart.GROUPS, GapCause.NOT_ALLOWED, "secret"),),
    Reason.PART_MISSING: (lambda a: a.gap(ObservationPart.LOG_DIRS),),
    Reason.WEIGHTS_UNUSED: (lambda a: a.extra.update(weights=reading_of({"orders": (1.0,)}, until_s=-9_000)),),
}
WITH_STANDBYS = {Reason.STANDBY_LAG_GROWS, Reason.COPIES_SHARE_RACK}


def test_a_quiet_cluster_has_no_findings() -> None:
    answers = quiet()
    run = Run(LIMITS).look(answers.at(0)).look(answers.at(10))
    assert run.detection.findings == ()
    assert set(run.detection.assessments) == {"app", "readers"}


def test_every_reason_is_covered() -> None:
    assert set(FOUND_BY) == set(Reason)


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.value)
def test_found_with_id_sentence_and_age(reason: Reason) -> None:
    answers = quiet()
    limits = LIMITS
    if reason in WITH_STANDBYS:
        limits = with_group("app", num_standby_replicas=1, rack_aware_assignment_strategy="min_traffic")
    if reason is Reason.RACK_LOCATORS_DISAGREE:
        limits = Limits(rack_locators=(WIRE, TABLE))
    run = Run(limits)
    looks = FOUND_BY[reason]
    for number, change in enumerate(looks):
        change(answers)
        run.look(answers.at(10 * number))
    found = run.of(reason)
    assert found
    for finding in found:
        assert finding.id.startswith(f"{reason.name.lower()}:{finding.subject.kind}/")
        assert finding.subject.kind in ("cluster", "broker", "rack", "topic", "group", "task")
        assert not finding.sentence[0].isupper()
        assert not finding.sentence.endswith(".")
        assert all(isinstance(name, str) for name, _ in finding.evidence)

    (first, *_) = found
    run.look(answers.at(10 * len(looks)))
    (again,) = [finding for finding in run.of(reason) if finding.id == first.id]
    assert again.since_ms == first.since_ms

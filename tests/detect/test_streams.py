"""Kafka Streams applications: state that cannot be told, warm-ups, standbys that fall behind or share a rack."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.values.finding import FindingReason as Reason
from agent.values.finding import FindingSeverity
from agent.values.limits import Limits
from tests.builders import TAKEN_MS, Answers, Run, an_observation, instance, process_id, with_group

Prepare = Callable[[Answers], object]
PROBING = TAKEN_MS + 600_000
LAG = 10_000
"""Kafka's default of acceptable.recovery.lag."""


def a_cluster(end: int = 1_000_000) -> Answers:
    answers = an_observation().topic("orders", (1, 2), (2, 3))
    return answers.topic("app-store-changelog", (1, 2), (2, 3), ends=[end, end])


def scaled_out(answers: Answers, *, generation: int = 5, told: int = 0, state: str = "Stable") -> Answers:
    """Instance 1 runs both tasks, instance 2 has just joined and warms 0_1 up."""
    return answers.streams(
        "app",
        instance(1, "a", {"0_0": "orders-0", "0_1": "orders-1"}, sums={"0_0": -2, "0_1": -2}, generation=generation,
                 owned="orders-0 orders-1", next_rebalance_ms=PROBING),
        instance(2, "b", {}, {"0_1": "orders-1"}, sums={"0_1": told} if told else {}, topics=("orders",),
                 generation=generation),
        state=state,
    )  # fmt: skip


NO_STANDBYS = with_group("app", num_standby_replicas=0)


def test_a_warm_up_is_seen_with_lag_range_and_source_then_promotable_when_its_application_says_so() -> None:
    answers = scaled_out(a_cluster())
    run = Run(NO_STANDBYS).look(answers.at(0))
    copy = run.copy("app", "0_1", 2)
    assert (copy.role.value, copy.role_certain, copy.caught_up) == ("warm-up", True, None)
    assert copy.lag == (0, 1_000_000, 1_000_000)

    for second, lag in ((10, 500_000), (20, 250_000), (30, 10_001)):
        run.look(answers.says("app", process_id(2), "0_1", "standby", lag, at_s=second).at(second))
        assert not run.of(Reason.WARMUP_PROMOTABLE), f"lag {lag}"
    run.look(answers.says("app", process_id(2), "0_1", "standby", LAG, at_s=40).at(40))
    (found,) = run.of(Reason.WARMUP_PROMOTABLE)
    assert str(found.subject) == f"task/app/0_1/{process_id(2)}"
    assert found.sentence == (
        "the warm-up of task 0_1 of app on process app-2 has caught up (lag 10,000, acceptable 10,000) "
        "and can be promoted now; otherwise it waits 9 min for the next probing rebalance"
    )
    assert dict(found.evidence)["source"] == "application endpoint"


@pytest.mark.parametrize(
    ("prepare", "limits", "found"),
    [
        pytest.param(
            lambda a: a.says("app", process_id(2), "0_1", "standby", 0, at_s=10), NO_STANDBYS, True, id="caught up"
        ),
        pytest.param(
            lambda a: a.says("app", "app-2", "0_1", "standby", 0, at_s=10), NO_STANDBYS, True, id="told by client id"
        ),
        pytest.param(
            lambda a: a.says("app", "app", "0_1", "standby", 0, at_s=10), NO_STANDBYS, False, id="told of all"
        ),
        pytest.param(lambda a: a, NO_STANDBYS, False, id="unknown"),
        pytest.param(
            lambda a: a.says("app", process_id(2), "0_1", "standby", 0, at_s=-25), NO_STANDBYS, False, id="too long ago"
        ),
        pytest.param(
            lambda a: a.says("app", process_id(2), "0_1", "active", 0, at_s=10),
            NO_STANDBYS,
            False,
            id="told of the active copy that it was before",
        ),
        pytest.param(
            lambda a: scaled_out(a, state="PreparingRebalance").says(
                "app", process_id(2), "0_1", "standby", 0, at_s=10
            ),
            NO_STANDBYS,
            False,
            id="a rebalance is running anyway",
        ),
        pytest.param(
            lambda a: a.says("other", process_id(2), "0_1", "standby", 0, at_s=10),
            NO_STANDBYS,
            False,
            id="told of another application",
        ),
        pytest.param(
            lambda a: a.says("app", process_id(2), "0_1", "standby", 60, at_s=10),
            with_group("app", num_standby_replicas=0, acceptable_recovery_lag=50),
            False,
            id="acceptable lag is smaller",
        ),
    ],
)
def test_promotable(prepare: Prepare, limits: Limits, found: bool) -> None:
    answers = scaled_out(a_cluster())
    run = Run(limits).look(answers.at(0))
    prepare(answers)
    assert bool(run.look(answers.at(10)).of(Reason.WARMUP_PROMOTABLE)) is found


def test_a_standby_that_has_caught_up_is_not_promotable() -> None:
    answers = a_cluster().streams(
        "app",
        instance(1, "a", {"0_0": "orders-0"}, {"0_1": "orders-1"}, sums={"0_0": -2, "0_1": 999_999}),
        instance(2, "b", {"0_1": "orders-1"}, {"0_0": "orders-0"}, sums={"0_1": -2, "0_0": 999_999}),
    )
    answers.says("app", process_id(1), "0_1", "standby", 0, at_s=0)
    run = Run(with_group("app", num_standby_replicas=1)).look(answers.at(0))
    assert run.copy("app", "0_1", 1).caught_up is True
    assert not run.of(Reason.WARMUP_PROMOTABLE)


@pytest.mark.parametrize(
    ("lags", "found"),
    [
        pytest.param([500_000, 501_000, 502_000, 503_000, 504_000], True, id="falls behind"),
        pytest.param([500_000] * 5, True, id="stands still"),
        pytest.param([500_000, 510_000, 470_000, 460_000, 450_000], False, id="closes in after a bad start"),
        pytest.param([500_000, 501_000, 502_000], False, id="three readings are too few"),
        pytest.param([5_000, 6_000, 7_000, 8_000, 9_000], False, id="within the acceptable lag"),
    ],
)
def test_a_warm_up_that_will_never_catch_up(lags: list[int], found: bool) -> None:
    answers = scaled_out(a_cluster())
    run = Run(NO_STANDBYS).look(answers.at(0))
    for number, lag in enumerate(lags):
        second = 10 + 10 * number
        run.look(answers.says("app", process_id(2), "0_1", "standby", lag, at_s=second).at(second))
    assert bool(run.of(Reason.WARMUP_NEVER)) is found
    if found:
        assert "will not catch up at this rate" in run.of(Reason.WARMUP_NEVER)[0].sentence


def test_a_warm_up_that_waits_while_its_process_restores_another_task_is_not_given_up() -> None:
    answers = scaled_out(a_cluster())
    run = Run(NO_STANDBYS).look(answers.at(0))
    first, second = (instance(1, "a", {"0_0": "orders-0", "0_1": "orders-1"}, sums={"0_0": -2, "0_1": -2}),
                     instance(2, "b", {}, {"0_0": "orders-0", "0_1": "orders-1"}, topics=("orders",)))  # fmt: skip
    answers.streams("app", first, second)
    for at in range(10, 100, 10):
        answers.says("app", process_id(2), "0_0", "standby", 900_000 - 5_000 * at, at_s=at)
        run.look(answers.says("app", process_id(2), "0_1", "standby", 900_000 + at, at_s=at).at(at))
        assert not run.of(Reason.WARMUP_NEVER)
    seen = []
    for at in range(100, 200, 10):
        answers.says("app", process_id(2), "0_0", "standby", 0, at_s=at)
        run.look(answers.says("app", process_id(2), "0_1", "standby", 900_000 + at, at_s=at).at(at))
        seen.append([str(finding.subject) for finding in run.of(Reason.WARMUP_NEVER)])
    assert seen[0] == [], "its turn has only just come"
    assert seen[-1] == [f"task/app/0_1/{process_id(2)}"]


def test_an_estimate_never_says_never() -> None:
    answers = scaled_out(a_cluster())
    run = Run(NO_STANDBYS)
    for second in range(0, 100, 10):
        run.look(answers.at(second))
    assert not run.of(Reason.WARMUP_NEVER)


@pytest.mark.parametrize(
    ("lags", "found"),
    [
        pytest.param([20_000, 30_000, 40_000, 50_000, 60_000], True, id="grows in every look"),
        pytest.param([60_000, 50_000, 40_000, 30_000, 20_000], False, id="shrinks"),
        pytest.param([1_000, 2_000, 3_000, 4_000, 5_000], False, id="grows, but is acceptable"),
    ],
)
def test_standby_lag_grows(lags: list[int], found: bool) -> None:
    answers = a_cluster().streams(
        "app",
        instance(1, "a", {"0_0": "orders-0", "0_1": "orders-1"}, sums={"0_0": -2, "0_1": -2}),
        instance(2, "b", {}, {"0_1": "orders-1"}, topics=("orders",), sums={"0_1": 990_000}),
    )
    run = Run(with_group("app", num_standby_replicas=1)).look(answers.at(0))
    for number, lag in enumerate(lags):
        second = 10 + 10 * number
        run.look(answers.says("app", process_id(2), "0_1", "standby", lag, at_s=second).at(second))
    growing = run.of(Reason.STANDBY_LAG_GROWS)
    assert bool(growing) is found
    if found:
        assert growing[0].sentence == (
            "app has 1 standby falling further behind, the worst of task 0_1 on process app-2: "
            "lag 60,000, +1000 records/s"
        )


def copies(*racks: str | None, tags: tuple[str | None, ...] = ()) -> Answers:
    """Instance 1 runs 0_0, instance 2 holds its standby, further instances run 0_1 and nothing."""
    given = [(("zone", tag),) if tag else () for tag in (tags or (None,) * len(racks))]
    instances = [
        instance(1, racks[0], {"0_0": "orders-0"}, sums={"0_0": -2}, tags=given[0]),
        instance(2, racks[1], {}, {"0_0": "orders-0"}, topics=("orders",), sums={"0_0": 999_999}, tags=given[1]),
    ]
    if len(racks) > 2:
        instances.append(instance(3, racks[2], {"0_1": "orders-1"}, sums={"0_1": -2}, tags=given[2]))
    return a_cluster().streams("app", *instances)


@pytest.mark.parametrize(
    ("answers", "limits", "found"),
    [
        pytest.param(
            copies("a", "a", "b"), Limits(), {"rack": FindingSeverity.WARNING}, id="share a rack, another is free"
        ),
        pytest.param(copies("a", "b", "c"), Limits(), {}, id="two racks"),
        pytest.param(copies("a", "a", "a"), Limits(), {}, id="share the only rack"),
        pytest.param(copies("a", "a", None), Limits(), {}, id="no other rack is known"),
        pytest.param(copies("a", None, "b"), Limits(), {}, id="the rack of one copy is unknown"),
        pytest.param(
            copies("a", "b", "c", tags=("z1", "z1", "z2")),
            Limits(),
            {"zone": FindingSeverity.INFO},
            id="share a tag, none asked",
        ),
        pytest.param(
            copies("a", "b", "c", tags=("z1", "z1", "z2")),
            with_group("app", num_standby_replicas=1, rack_aware_assignment_tags=("zone",)),
            {"zone": FindingSeverity.WARNING},
            id="share a tag that standbys shall be spread by",
        ),
        pytest.param(
            copies("a", "b", "c", tags=("z1", "z1", "z2")),
            with_group("app", num_standby_replicas=1, rack_aware_assignment_tags=("cluster",)),
            {},
            id="share a tag, but another one counts",
        ),
        pytest.param(copies("a", "a", "b"), NO_STANDBYS, {}, id="the second copy is a warm-up and will go"),
    ],
)
def test_copies_share_a_rack_or_tag(answers: Answers, limits: Limits, found: dict[str, FindingSeverity]) -> None:
    run = Run(limits).look(answers.at(0))
    assert {f.detail: f.severity for f in run.of(Reason.COPIES_SHARE_RACK)} == found


def test_copies_that_share_a_rack_say_which_task_and_which_rack_is_free() -> None:
    (found,) = Run().look(copies("a", "a", "b").at(0)).of(Reason.COPIES_SHARE_RACK)
    assert found.sentence == (
        "app has 1 task with copies that share a rack while another is free: "
        "0_0 is on app-1 and app-2, both a; b is free"
    )


@pytest.mark.parametrize(
    ("prepare", "severity"),
    [
        pytest.param(
            lambda a: a.streams("app", instance(1, "a", {"0_0": "orders-0"}, sums={"0_0": -2})),
            None,
            id="one subtopology with the only changelog",
        ),
        pytest.param(
            lambda a: a.without_topic("app-store-changelog").streams("app", instance(1, "a", {"0_0": "orders-0"})),
            FindingSeverity.INFO,
            id="no changelog: stateless, or not logged",
        ),
        pytest.param(
            lambda a: a.topic("more", (1,), (2,)).streams(
                "app", instance(1, "a", {"0_0": "orders-0", "1_0": "more-0"}, sums={"0_0": -2, "1_0": -2})
            ),
            FindingSeverity.WARNING,
            id="two subtopologies could own the changelog",
        ),
    ],
)
def test_state_unknown(prepare: Prepare, severity: FindingSeverity | None) -> None:
    answers = a_cluster()
    prepare(answers)
    found = Run().look(answers.at(0)).of(Reason.STATE_UNKNOWN)
    assert [finding.severity for finding in found] == ([severity] if severity else [])

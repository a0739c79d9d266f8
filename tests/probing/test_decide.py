"""One look at a time: what is decided, for which reason, until when, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from agent.detect.streams import ENOUGH_MS, ENOUGH_SAMPLES, LEARN_AFTER_MS
from agent.execute.probing_decision import ProbingContext, backoff_ms, decisions
from agent.execute.probing_decision import decide as decide_by
from agent.execute.probing_values import (
    PastTrigger,
    ProbingOff,
    ProbingOffReason,
    ProbingReason,
    ProbingTrigger,
    ProbingWait,
    ProbingWaitReason,
)
from agent.memory.codec import memory_from_json, memory_to_json
from agent.values.limits import GroupLimits, Limits, ProbingLimits, ScopeLimits
from agent.values.memory import CopyMemory, Join, Memory, StreamsMemory
from agent.values.snapshot import GroupKind, Range, Snapshot, TaskRole
from tests.probing.warmups import JOINED, NOW, READY, TASKS, decide, estimated, snapshot_of, unknown, warmup
from tests.snapshots import NOW_MS, a_cluster


@pytest.mark.parametrize(
    ("snapshot", "reason", "tasks"),
    [
        pytest.param(READY, ProbingReason.CAUGHT_UP, [0], id="one has caught up"),
        pytest.param(snapshot_of(unknown(0)), ProbingReason.LEARN, [0], id="nothing tells of the only one"),
        pytest.param(snapshot_of(warmup(0), warmup(1, eta=90)), ProbingReason.CAUGHT_UP, [0], id="another is far away"),
        pytest.param(snapshot_of(estimated(0, 500, 0)), ProbingReason.LIKELY, [0], id="one probably has, by the model"),
        pytest.param(
            snapshot_of(warmup(0), estimated(1, 500, 0)),
            ProbingReason.CAUGHT_UP,
            [0, 1],
            id="one has and another probably has",
        ),
        pytest.param(
            snapshot_of(unknown(0), unknown(1)), ProbingReason.LEARN, [0, 1], id="nothing tells and time has passed"
        ),
        pytest.param(
            snapshot_of(estimated(0, 90_000, 300)),
            ProbingReason.LEARN,
            [0],
            id="a long estimate, and a quarter of it is over",
        ),
    ],
)
def test_what_justifies_a_trigger(snapshot: Snapshot, reason: ProbingReason, tasks: list[int]) -> None:
    decision = decide(snapshot)
    assert isinstance(decision, ProbingTrigger), decision
    assert (decision.reason, [key[1].partition for key in decision.copies]) == (reason, tasks)
    assert decision.sentence.startswith("rebalance app now: ")


@pytest.mark.parametrize(
    ("count", "copies"), [pytest.param(1, "1 warm-up", id="one"), pytest.param(2, "2 warm-ups", id="two")]
)
def test_a_trigger_for_fresh_offset_sums_counts_the_warm_ups(count: int, copies: str) -> None:
    decision = decide(snapshot_of(*(unknown(number) for number in range(count))))
    assert decision.sentence == (
        f"rebalance app now: the progress of {copies} is unknown until a rebalance brings fresh offset sums"
    )


@pytest.mark.parametrize(
    ("snapshot", "reason", "words"),
    [
        pytest.param(
            snapshot_of(), ProbingOffReason.NO_WARMUPS, "no process of it has a warm-up", id="nothing warms up"
        ),
        pytest.param(
            snapshot_of(warmup(0)._replace(role=TaskRole.STANDBY)),
            ProbingOffReason.NO_WARMUPS,
            "",
            id="a standby that has caught up",
        ),
        pytest.param(
            snapshot_of(warmup(0), next_rebalance_ms=None),
            ProbingOffReason.NOTHING_WANTED,
            "scheduled no probing rebalance",
            id="the leader wants no other assignment",
        ),
        pytest.param(
            snapshot_of(warmup(0), kind=GroupKind.STREAMS), ProbingOffReason.NOT_CLASSIC, "classic", id="KIP-1071"
        ),
        pytest.param(snapshot_of(warmup(0), state="Empty"), ProbingOffReason.EMPTY, "is Empty", id="no members"),
        pytest.param(a_cluster().snapshot(), ProbingOffReason.NOT_CLASSIC, "", id="no such group"),
    ],
)
def test_where_there_is_nothing_to_do(snapshot: Snapshot, reason: ProbingOffReason, words: str) -> None:
    decision = decide(snapshot)
    assert isinstance(decision, ProbingOff), decision
    assert decision.reason is reason
    assert words in decision.sentence


def test_probing_can_be_switched_off_and_groups_left_out() -> None:
    assert decide(READY, probing__enabled=False) == ProbingOff(
        "app", ProbingOffReason.SWITCHED_OFF, "not probed: probing.enabled is false"
    )
    assert decisions(ProbingContext(READY, Memory(), Limits(scope=ScopeLimits(exclude_groups=("a*",)))), {}) == {}
    assert list(decisions(ProbingContext(READY, Memory(), Limits()), {})) == ["app"]


@pytest.mark.parametrize(
    ("group", "held"), [pytest.param("app", True, id="its own"), pytest.param("other", False, id="another's")]
)
def test_each_group_is_held_by_its_own_triggers(group: str, held: bool) -> None:
    memory = Memory(cycle=5, monotonic_ms=NOW - 1_000, streams={"app": StreamsMemory(JOINED, {}, {}, ())})
    context = ProbingContext(READY, memory, Limits(groups={"app": GroupLimits(known=True)}))
    decision = decisions(context, {group: (PastTrigger(NOW - 4_000, True),)})["app"]
    assert (isinstance(decision, ProbingWait) and decision.reason is ProbingWaitReason.FLOOR) is held


@pytest.mark.parametrize(
    ("snapshot", "past", "changes", "reason", "in_ms", "words"),
    [
        pytest.param(
            snapshot_of(warmup(0, eta=30)),
            [],
            {},
            ProbingWaitReason.RESTORING,
            30_000,
            "24 to 45 s, likely 30 s",
            id="still restoring",
        ),
        pytest.param(
            snapshot_of(warmup(0, lag=9_999, eta=9)._replace(eta_s=None)),
            [],
            {},
            ProbingWaitReason.RESTORING,
            50_000,
            "the remaining time is unknown",
            id="standing still: the longer, the later the next look",
        ),
        pytest.param(
            snapshot_of(warmup(0), warmup(1, eta=3)),
            [],
            {},
            ProbingWaitReason.SHARING,
            3_000,
            "1 more warm-up will",
            id="the next one comes in three seconds",
        ),
        pytest.param(
            READY,
            [],
            {"join": Join("k", NOW - 1_500, NOW - 500, {})},
            ProbingWaitReason.SETTLING,
            1_500,
            "rebalanced 0 s ago",
            id="just rebalanced: a second round may follow",
        ),
        pytest.param(
            READY,
            [PastTrigger(NOW - 4_000, True)],
            {},
            ProbingWaitReason.FLOOR,
            6_000,
            "4 s ago; probing.floor is 10 s",
            id="within the floor",
        ),
        pytest.param(
            READY,
            [PastTrigger(NOW - 12_000, False)],
            {},
            ProbingWaitReason.BACK_OFF,
            8_000,
            "the last 1 trigger promoted no warm-up, so the next one waits 20 s",
            id="one in vain",
        ),
        pytest.param(
            READY,
            [PastTrigger(NOW - 95_000, False), PastTrigger(NOW - 12_000, False)],
            {},
            ProbingWaitReason.BACK_OFF,
            28_000,
            "the last 2 triggers promoted no warm-up",
            id="two in vain",
        ),
        pytest.param(
            READY,
            [PastTrigger(NOW - 65_000, None), PastTrigger(NOW - 62_000, None)],
            {"probing__backoff_factor": 6.0},
            ProbingWaitReason.BACK_OFF,
            238_000,
            "the last 2 triggers promoted no warm-up",
            id="two without a judgement within a minute",
        ),
        pytest.param(
            READY,
            [PastTrigger(NOW - 30_000, None)],
            {},
            ProbingWaitReason.JUDGING,
            30_000,
            "has not been observed yet",
            id="the rebalance of the last one was not seen",
        ),
        pytest.param(
            READY,
            [PastTrigger(NOW - 500_000 - n, True) for n in range(5)],
            {"probing__budget_per_group_per_hour": 5},
            ProbingWaitReason.BUDGET,
            3_600_000 - 500_004,
            "5 triggers within the last hour; the budget is 5",
            id="the budget of the hour",
        ),
        pytest.param(
            READY,
            [],
            {"probing__budget_per_group_per_hour": 0},
            ProbingWaitReason.BUDGET,
            None,
            "the budget is 0",
            id="a budget of none",
        ),
        pytest.param(
            snapshot_of(warmup(0), next_rebalance_ms=NOW_MS + 9_000),
            [],
            {"limits": Limits()},
            ProbingWaitReason.DEADLINE,
            24_000,
            "by itself in 9 s",
            id="the application's deadline is near",
        ),
        pytest.param(
            snapshot_of(warmup(0), next_rebalance_ms=NOW_MS - 9_000),
            [],
            {"limits": Limits()},
            ProbingWaitReason.DEADLINE,
            6_000,
            "any moment, 9 s overdue",
            id="the deadline is just over",
        ),
        pytest.param(
            snapshot_of(warmup(0), state="PreparingRebalance", hidden=True),
            [],
            {},
            ProbingWaitReason.REBALANCING,
            1_000,
            "PreparingRebalance, not Stable",
            id="rebalancing",
        ),
        pytest.param(
            snapshot_of(unknown(0)),
            [],
            {"join": Join("k", NOW - 11_000, NOW - 10_000, {})},
            ProbingWaitReason.RESTORING,
            LEARN_AFTER_MS - 10_000,
            "a rebalance for fresh offset sums is due in 20 s",
            id="nothing tells, and it has only begun",
        ),
    ],
)
def test_what_holds_a_trigger(  # noqa: PLR0917 a column each
    snapshot: Snapshot,
    past: list[PastTrigger],
    changes: dict[str, Any],
    reason: ProbingWaitReason,
    in_ms: int | None,
    words: str,
) -> None:
    decision = decide(snapshot, past, **changes)
    assert isinstance(decision, ProbingWait), decision
    assert decision.reason is reason
    assert decision.until_ms == (None if in_ms is None else NOW + in_ms)
    assert words in decision.sentence


@pytest.mark.parametrize(
    ("due_ms", "join", "known", "held"),
    [
        pytest.param(NOW_MS - 60_000, JOINED, False, False, id="long overdue: it is not kept"),
        pytest.param(NOW_MS + 5_000, JOINED, True, False, id="told by a clock that is 395 s ahead: not believed"),
        pytest.param(NOW_MS + 5_000, JOINED, False, True, id="the same, where the interval is only assumed"),
        pytest.param(
            NOW_MS + 500_000_000, Join("k", NOW - 596_000, NOW - 595_000, {}), True, True,
            id="told days ahead, and the join was an interval ago",
        ),
    ],
)  # fmt: skip
def test_a_deadline_is_believed_within_the_bounds_of_the_last_join(
    due_ms: int, join: Join, known: bool, held: bool
) -> None:
    limits = Limits(groups={"app": GroupLimits(known=known)})
    decision = decide(snapshot_of(warmup(0), next_rebalance_ms=due_ms), join=join, limits=limits)
    assert (isinstance(decision, ProbingWait) and decision.reason is ProbingWaitReason.DEADLINE) is held


@pytest.mark.parametrize(
    ("ago_ms", "left_ms"), [(600_000, 3_000_000), (3_599_000, 1_000), (3_600_000, None), (4_000_000, None)]
)
def test_standbys_that_fall_behind_are_answered_once_an_hour(ago_ms: int, left_ms: int | None) -> None:
    falling = warmup(
        0,
        lag=90_000,
        role=TaskRole.STANDBY,
        rate_per_s=Range(-5.0, -4.0, -3.0),
        caught_up=False,
        samples=ENOUGH_SAMPLES,
    )
    before = CopyMemory(NOW - 100_000, (), warmup=False, nearest=(NOW - ENOUGH_MS, 1_000))
    memory = Memory(cycle=5, streams={"app": StreamsMemory(JOINED, {}, {("new", TASKS[0]): before}, ())})
    limits = Limits(groups={"app": GroupLimits(known=True)}, probing=ProbingLimits(standbys=True))
    decision = decide_by("app", ProbingContext(snapshot_of(falling), memory, limits), [PastTrigger(NOW - ago_ms, True)])
    if left_ms is None:
        assert isinstance(decision, ProbingTrigger)
        assert decision.reason is ProbingReason.STANDBY
        assert decision.sentence == "rebalance app now: 1 standby falling behind without bound"
    else:
        assert isinstance(decision, ProbingWait)
        assert (decision.reason, decision.until_ms) == (ProbingWaitReason.FLOOR, NOW + left_ms)
        assert decision.sentence.startswith("held: one trigger an hour is the limit for standbys; the last was ")


def test_of_several_bounds_the_one_that_ends_last_is_told() -> None:
    near = snapshot_of(warmup(0), next_rebalance_ms=NOW_MS + 9_000)
    decision = decide(near, [PastTrigger(NOW - 1_000, True)], limits=Limits())
    assert isinstance(decision, ProbingWait)
    assert decision.reason is ProbingWaitReason.DEADLINE


def test_a_wait_for_others_is_over_after_its_bound_however_the_estimates_slip() -> None:
    slipping = snapshot_of(warmup(0), warmup(1, eta=3))
    assert isinstance(decide(slipping, ready_ms=NOW - 1_000), ProbingWait)
    assert isinstance(decide(slipping, ready_ms=NOW - 5_000), ProbingTrigger)


def test_a_trigger_of_the_future_counts_as_one_of_now() -> None:
    decision = decide(READY, [PastTrigger(NOW + 10_000_000, True)])
    assert isinstance(decision, ProbingWait)
    assert (decision.reason, decision.until_ms) == (ProbingWaitReason.FLOOR, NOW + 10_000)


def test_triggers_for_other_reasons_keep_the_floor_and_say_nothing_of_promotions() -> None:
    other = PastTrigger(NOW - 4_000, False, probing=False)
    decision = decide(READY, [other])
    assert isinstance(decision, ProbingWait)
    assert decision.reason is ProbingWaitReason.FLOOR
    assert isinstance(decide(READY, [other._replace(at_ms=NOW - 11_000)]), ProbingTrigger)


@pytest.mark.parametrize(
    ("failed", "pause_s"), [(1, 20), (2, 40), (3, 80), (4, 160), (5, 300), (6, 300), (10_000, 300)]
)
def test_pauses_double_up_to_a_bound(failed: int, pause_s: int) -> None:
    assert backoff_ms(failed, ProbingLimits()) == pause_s * 1_000


def test_no_factor_makes_pauses_shorter_than_the_floor() -> None:
    assert backoff_ms(3, ProbingLimits(backoff_factor=0.1)) == 10_000
    assert backoff_ms(3, ProbingLimits(backoff_max_ms=1)) == 10_000


# --- for the guard ----------------------------------------------------------------------------------------------


def test_since_when_a_warm_up_waits_outlives_the_process() -> None:
    memory = Memory(streams={"app": StreamsMemory(JOINED, {}, {}, (), NOW - 3_000)})
    assert memory_from_json(memory_to_json(memory)).streams["app"].ready_ms == NOW - 3_000

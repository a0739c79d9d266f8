"""Applications led by Kafka's own assignor come to rest by few triggers, soon after their state is there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest

from agent.execute.probing_values import PastTrigger, ProbingOffReason, ProbingReason, ProbingTrigger
from agent.values.limits import ProbingLimits
from agent.values.memory import Memory, RestoreRate, StreamsMemory
from assignors.problem import TaskId
from tests.probing.application import Application, Host
from tests.probing.prober import Prober

FAST = 1e9
"""Records per second of a process that is not waited for."""
END = 100_000


def grown(app: Application, newcomer: Host, **beside: object) -> Prober:
    """rackwise looks at the settled application, which grows by one process."""
    prober = Prober(app, **beside)  # type: ignore[arg-type]
    prober.look()
    app.advance(5)
    app.come(newcomer)
    app.advance(7)
    return prober


def fewest(app: Application, *, late_s: float, until_s: float) -> int:
    """Triggers that it takes at least when no copy waits longer than ``late_s`` for one, by trying all."""
    for most in range(20):
        if _rests(app.clone(), most, late_s, until_s):
            return most
    raise AssertionError("no number of triggers does it")


def _rests(app: Application, triggers: int, late_s: float, until_s: float) -> bool:
    """Whether that many triggers suffice; tried at each time at which one more copy has caught up."""
    since_s: float | None = None
    while True:
        while not app.stable:
            app.advance(app.now_s + 0.25)
        if app.balanced:
            return True
        if app.would_promote():
            since_s = app.now_s if since_s is None else since_s
            if triggers:
                tried = app.clone()
                tried.rebalance()
                if _rests(tried, triggers - 1, late_s, until_s):
                    return True
        left = len(app.warming())
        while left and len(app.warming()) == left:
            app.advance(app.now_s + 0.25)
            if app.now_s > until_s or (since_s is not None and app.now_s - since_s > late_s):
                return False
        if not left:
            return False


# --- scale-out --------------------------------------------------------------------------------------------------


def test_twelve_warm_ups_that_arrive_one_after_the_other_make_no_storm() -> None:
    slow = {TaskId(0, partition): 100.0 + 23 * partition for partition in range(24)}
    app = Application(24, [Host(1, FAST), Host(2, FAST)], ends=[20_000] * 24, warmups=12)
    prober = grown(app, Host(3, 1.0, slow=slow)).run(600)
    assert app.balanced
    assert app.own_rebalances == 0
    assert len(prober.triggers) <= 12, prober.triggers
    assert all(past.promoted for past in prober.past)
    print(f"\n12 staggered warm-ups: {len(prober.triggers)} triggers at {prober.triggers}")


def test_twelve_warm_ups_that_arrive_together_share_one_trigger() -> None:
    slow = {TaskId(0, partition): 500.0 + partition for partition in range(24)}
    app = Application(24, [Host(1, FAST), Host(2, FAST)], ends=[20_000] * 24, warmups=24)
    prober = grown(app, Host(3, 1.0, slow=slow)).run(600)
    assert app.balanced
    # One for the state that old processes exchange, which is there at once, and one for the newcomer's.
    assert len(prober.triggers) <= 2, prober.triggers


@pytest.mark.parametrize("endpoint", [True, False], ids=["with the application's endpoint", "by estimate alone"])
def test_a_scale_out_ends_soon_after_the_state_is_restored(endpoint: bool) -> None:
    app = Application(12, [Host(1, FAST), Host(2, FAST)], ends=[END] * 12)
    prober = grown(app, Host(3, 2_000.0), endpoint=endpoint).run(600)
    restore_s = 4 * END / 2_000  # the newcomer gets a third of the tasks
    rounds = len(prober.triggers)
    late_s = app.now_s - 5 - restore_s
    print(f"\nscale-out: {rounds} rounds, {app.now_s - 5:.0f} s, restore {restore_s:.0f} s, {prober.looks} looks")
    assert app.balanced
    assert app.own_rebalances == 0, "the application did not have to wait for its own probing rebalance"
    assert late_s <= 10 * rounds + (0 if endpoint else 60), "an estimate pays for its first lesson"


# --- scale-in ---------------------------------------------------------------------------------------------------


def test_a_scale_in_with_standbys_that_have_caught_up_needs_no_trigger() -> None:
    app = Application(12, [Host(1, FAST), Host(2, FAST), Host(3, FAST)], standbys=2)
    prober = Prober(app)
    prober.look()
    app.advance(5)
    app.leave(3)
    app.advance(7)
    prober.run(300, stop=lambda _: False)
    assert app.balanced
    assert prober.triggers == []


def lagging(behind: Iterable[int], *, rate: float, tasks: int = 6, warmups: int = 2) -> Application:
    """Three processes with copies of everything, of which those on process 2 lag as told; process 3 leaves."""
    app = Application(tasks, [Host(1, FAST), Host(2, rate), Host(3, FAST)], standbys=2, warmups=warmups)
    for task, lag in zip(app.tasks, behind, strict=True):
        if task in app.hosts[2].standby:
            app.hosts[2].disk[task] = app.ends[task] - lag
    return app


@pytest.mark.parametrize(
    ("behind", "rate", "warmups"),
    [
        pytest.param([20_000] * 6, 5_000.0, 2, id="one behind the other, four seconds apart"),
        pytest.param([20_000] * 6, 2_500.0, 2, id="one behind the other, eight seconds apart"),
        pytest.param([20_000] * 6, 20_000.0, 2, id="all within a second or two"),
        pytest.param([60_000, 0, 60_000, 0, 0, 60_000], 2_000.0, 2, id="some have caught up"),
        pytest.param([5_000, 10_000, 20_000, 40_000, 80_000, 90_000], 2_000.0, 4, id="farther and farther behind"),
        pytest.param([30_000] * 6, 1_000.0, 1, id="one warm-up at a time"),
    ],
)
def test_a_scale_in_with_lagging_standbys_takes_as_few_triggers_as_needed(
    behind: list[int], rate: float, warmups: int
) -> None:
    app = lagging(behind, rate=rate, warmups=warmups)
    prober = Prober(app)
    prober.look()
    app.advance(0.5)
    app.leave(3)
    app.advance(2.5)
    least = fewest(app, late_s=prober.probing.share_ms / 1000, until_s=590)
    prober.run(590)
    print(f"\nscale-in: {len(prober.triggers)} triggers, {least} at least")
    assert app.balanced
    assert len(prober.triggers) <= least


# --- what goes wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.1, 10.0], ids=["ten times too slow", "ten times too fast"])
def test_a_restore_rate_that_is_wrong_costs_a_few_triggers_and_is_learned(factor: float) -> None:
    wrong = RestoreRate(2_000.0 * factor, 2_000.0 * factor)
    memory = Memory(streams={"app": StreamsMemory(None, {}, {}, (wrong,) * 8)})
    app = Application(12, [Host(1, FAST), Host(2, FAST)], ends=[END] * 12)
    prober = grown(app, Host(3, 2_000.0), endpoint=False, memory=memory).run(3_600)
    failed = [past for past in prober.past if past.promoted is False]
    print(f"\nrate x {factor}: {len(prober.triggers)} triggers, {len(failed)} in vain, {app.now_s:.0f} s")
    assert app.balanced
    assert len(failed) <= 6
    assert app.now_s < 900, "that is one and a half of the application's own intervals"


def test_after_a_trigger_that_promoted_nothing_the_pauses_grow() -> None:
    app = Application(12, [Host(1, FAST), Host(2, FAST)], ends=[END] * 12)
    wrong = RestoreRate(1e6, 1e6)
    memory = Memory(streams={"app": StreamsMemory(None, {}, {}, (wrong,) * 16)})
    prober = grown(app, Host(3, 1.0), endpoint=False, memory=memory).run(590, stop=lambda _: False)
    vain = [at_s for at_s, past in zip(prober.triggers, prober.past, strict=True) if not past.promoted]
    pauses = [later - earlier for earlier, later in pairwise(vain)]
    assert len(vain) >= 3
    floor_s = prober.probing.floor_ms / 1000
    assert all(pause >= floor_s * 2**count for count, pause in enumerate(pauses, start=1))


@pytest.mark.parametrize("jump_s", [86_400.0, -86_400.0, 300.0, -300.0])
def test_a_wall_clock_that_jumps_costs_a_trigger_at_most(jump_s: float) -> None:
    """Only what the application itself stamps looks old or new by it; all durations are on the other clock."""

    def run(offset_s: float) -> Prober:
        app = Application(12, [Host(1, FAST), Host(2, FAST)], ends=[END] * 12)
        return grown(app, Host(3, 2_000.0), wall_offset_s=lambda at_s: offset_s if at_s > 60 else 0.0).run(590)

    still, jumped = run(0.0), run(jump_s)
    assert jumped.app.balanced
    assert jumped.app.own_rebalances == 0
    assert len(jumped.triggers) <= len(still.triggers) + 1
    assert jumped.app.now_s <= still.app.now_s * 1.25


def test_the_applications_own_deadline_is_waited_for() -> None:
    app = Application(12, [Host(1, FAST), Host(2, FAST)], ends=[END] * 12, interval_s=70.0)
    prober = grown(app, Host(3, 1_560.0)).run(1_000)
    assert app.balanced
    assert app.own_rebalances > 0
    near_s = prober.probing.near_deadline_ms / 1000
    assert "the application will rebalance by itself" in {told.decision.sentence[6:46] for told in prober.steps}
    assert near_s == 15


def test_state_that_is_told_and_not_hosted_justifies_nothing() -> None:
    app = Application(4, [Host(1, FAST), Host(2, FAST)])
    for task in app.hosts[1].active:
        app.hosts[2].disk[task] = app.ends[task]
    app.rebalance()
    app.advance(5)
    assert set(app.hosts[2].reported_offsets) == set(app.tasks), "process 2 tells of state that it does not host"
    prober = Prober(app).run(120, stop=lambda _: False)
    assert prober.triggers == []
    assert {getattr(told.decision, "reason", None) for told in prober.steps} == {ProbingOffReason.NO_WARMUPS}


def test_standbys_that_fall_behind_are_answered_once_an_hour_and_only_when_allowed() -> None:
    def run(*, allowed: bool) -> Prober:
        app = Application(4, [Host(1, 5.0), Host(2, 5.0)], standbys=1, appended_per_s=100.0)
        limits = ProbingLimits(standbys=allowed)
        return Prober(app, limits).run(1_800, stop=lambda _: False)

    allowed = run(allowed=True)
    reasons = [told.decision.reason for told in allowed.steps if isinstance(told.decision, ProbingTrigger)]
    assert ProbingReason.STANDBY in reasons
    assert reasons.count(ProbingReason.STANDBY) == 1
    assert ProbingReason.STANDBY not in [getattr(told.decision, "reason", None) for told in run(allowed=False).steps]


def test_a_round_that_was_triggered_counts_as_a_join_and_teaches_the_restore_rate() -> None:
    app = Application(12, [Host(1, FAST), Host(2, FAST)], ends=[END] * 12)
    prober = grown(app, Host(3, 2_000.0), endpoint=False)
    prober.run(600, stop=lambda _: bool(prober.triggers))
    before = prober.memory.streams["app"]
    assert before.join is not None
    prober.run(app.now_s + 10, stop=lambda _: False)
    after = prober.memory.streams["app"]
    assert after.join is not None
    assert after.join.key != before.join.key
    assert after.join.after_ms is not None
    bounded = [rate for rate in after.rates if rate.high is not None and rate.low <= 2_000 <= rate.high]
    assert bounded, after.rates


def test_a_budget_that_is_used_up_holds_until_the_hour_is_over() -> None:
    app = Application(12, [Host(1, FAST), Host(2, FAST)], ends=[END] * 12, interval_s=7_200)
    limits = ProbingLimits(budget_per_group_per_hour=2)
    prober = grown(app, Host(3, 2_000.0), probing=limits).run(3_500, stop=lambda _: False)
    assert len(prober.triggers) == 2
    assert not app.balanced
    assert any("the budget is 2" in told.decision.sentence for told in prober.steps)
    assert all(isinstance(past, PastTrigger) for past in prober.past)

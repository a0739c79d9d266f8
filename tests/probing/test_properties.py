"""Whatever the application, rates and clocks: never above the budget, never below the floor, balanced in the end."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execute.probing_values import ProbingTrigger
from agent.values.limits import ProbingLimits
from agent.values.memory import Memory, RestoreRate, StreamsMemory
from tests.probing.application import Application, Host
from tests.probing.prober import Prober

HOUR_S = 3_600.0


@st.composite
def scenes(draw: st.DrawFn) -> Prober:
    """An application that grows, and rackwise beside it with whatever it believes."""
    old = [Host(number, draw(st.sampled_from([500.0, 5_000.0, 1e9]))) for number in range(1, draw(st.integers(2, 4)))]
    tasks = draw(st.integers(2, 10))
    ends = draw(st.lists(st.integers(2_000, 60_000), min_size=tasks, max_size=tasks))
    app = Application(
        tasks, old, ends=ends, appended_per_s=draw(st.sampled_from([0.0, 5.0])), warmups=draw(st.integers(1, 3)),
        interval_s=draw(st.sampled_from([60.0, 600.0])),
    )  # fmt: skip
    rate = draw(st.sampled_from([500.0, 3_000.0]))
    believed = RestoreRate(*(rate * draw(st.sampled_from([0.1, 1.0, 10.0])),) * 2)
    rates = draw(st.sampled_from([(), (believed,) * 8]))
    jump_s, at_s = draw(st.sampled_from([0.0, 86_400.0, -86_400.0, 40.0])), draw(st.floats(0, 300))
    limits = ProbingLimits(
        budget_per_group_per_hour=draw(st.sampled_from([0, 3, 60])),
        floor_ms=draw(st.sampled_from([5_000, 10_000, 30_000])),
    )
    prober = Prober(
        app, limits, endpoint=draw(st.booleans()), known=draw(st.booleans()),
        memory=Memory(streams={"app": StreamsMemory(None, {}, {}, rates)}),
        wall_offset_s=lambda second: jump_s if second > at_s else 0.0,
    )  # fmt: skip
    prober.look()
    app.advance(3)
    app.come(Host(9, rate))
    return prober


@settings(max_examples=25)
@given(scenes())
def test_bounds_hold_and_the_application_comes_to_rest(prober: Prober) -> None:
    prober.app.advance(prober.app.now_s + 0.25)
    prober.run(2 * HOUR_S)
    floor_s = prober.probing.floor_ms / 1_000
    assert all(later - earlier >= floor_s for earlier, later in pairwise(prober.triggers))
    budget = prober.probing.budget_per_group_per_hour
    for at_s in prober.triggers:
        assert sum(at_s <= other < at_s + HOUR_S for other in prober.triggers) <= budget
    assert prober.app.balanced, [told.decision for told in prober.steps[-3:]]
    triggers = [told.decision for told in prober.steps if isinstance(told.decision, ProbingTrigger)]
    assert len(triggers) == len(prober.triggers)
    assert all(one.copies for one in triggers), "every trigger names the copies that justify it"

"""How far behind a copy is, who tells it, how fast it closes in, and that nothing is called caught up too early."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.streams import closing_rate, eta_s, restore_rate
from agent.values.limits import Limits
from agent.values.memory import RestoreRate
from agent.values.observation import RawStreamsMember
from agent.values.snapshot import LagSource, Range, TaskRole
from assignors.problem import TopicPartition
from tests.builders import Answers, Run, an_observation, instance, process_id, streams_member, subtopology, with_group

END = 1_000_000
NO_STANDBYS = with_group("app", num_standby_replicas=0)


def a_cluster(end: int = END) -> Answers:
    return an_observation().topic("in", (1, 2), (2, 3)).topic("app-store-changelog", (1, 2), (2, 3), ends=[end, end])


def joined(answers: Answers, generation: int, **told: int) -> Answers:
    """Instance 1 runs 0_0 and 0_1; instance 2 holds copies of the tasks that it ``told`` of (``t0_1=5``)."""
    sums = {name[1:]: offset for name, offset in told.items()}
    standby = {task: f"in-{task[-1]}" for task in sums} or {"0_1": "in-1"}
    return answers.streams(
        "app",
        instance(1, "a", {"0_0": "in-0", "0_1": "in-1"}, sums={"0_0": -2, "0_1": -2}, generation=generation,
                 next_rebalance_ms=1_760_000_600_000),
        instance(2, "b", {}, standby, sums=sums, topics=("in",), generation=generation),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("told", "lag", "caught_up"),
    [
        pytest.param(0, Range(0, END, END), None, id="nothing told: all is missing, or all is restored by now"),
        pytest.param(400_000, Range(0, 600_000, 600_000), None, id="part of it"),
        pytest.param(995_000, Range(0, 5_000, 5_000), True, id="within the acceptable lag at most"),
        pytest.param(END, Range(0, 0, 0), True, id="all of it"),
        pytest.param(END + 1, Range(0, END, END), None, id="more than there is: corrupt, counts as nothing"),
        pytest.param(-2, None, None, id="it ran as active, and rackwise came later"),
        pytest.param(-3, None, None, id="it does not know"),
    ],
)
def test_from_the_offset_sum_of_the_last_join(told: int, lag: Range | None, caught_up: bool | None) -> None:
    run = Run(NO_STANDBYS).look(joined(a_cluster(), 5, t0_1=told).at(0))
    copy = run.copy("app", "0_1", 2)
    assert (copy.lag, copy.caught_up) == (lag, caught_up)
    assert copy.lag_source is (LagSource.LAST_JOIN if lag else None)
    assert copy.end_offset_sum == END
    assert copy.rate_per_s is None


def test_a_copy_that_ran_as_active_at_the_join_was_at_the_end_then() -> None:
    answers = joined(a_cluster(), 5, t0_1=7)
    run = Run(NO_STANDBYS).look(answers.at(0))
    run.look(joined(answers, 6, t0_1=-2).at(10))
    answers.ends[TopicPartition("app-store-changelog", 1)] += 3_000
    copy = run.look(answers.at(20)).copy("app", "0_1", 2)
    assert (copy.lag, copy.caught_up) == (Range(0, 3_000, 3_000), True)


def test_a_running_active_copy_has_caught_up_and_one_that_was_just_given_away_has_not() -> None:
    answers = a_cluster().streams(
        "app",
        instance(1, "a", {"0_0": "in-0"}, sums={"0_0": -2}),
        instance(2, "b", {"0_1": "in-1"}, sums={"0_1": 100}),
    )
    run = Run(NO_STANDBYS).look(answers.at(0))
    running, restoring = run.copy("app", "0_0", 1), run.copy("app", "0_1", 2)
    assert (running.role, running.lag, running.caught_up) == (TaskRole.ACTIVE, Range(0, 0, 0), True)
    assert (restoring.lag, restoring.caught_up) == (Range(0, END - 100, END - 100), None)


@pytest.mark.parametrize(
    ("prepare", "end"),
    [
        pytest.param(lambda a: a.ends.clear(), None, id="end offsets did not answer"),
        pytest.param(lambda a: a.ends.pop(TopicPartition("app-store-changelog", 1)), None, id="one end is missing"),
        pytest.param(lambda a: None, END, id="all there"),
    ],
)
def test_without_an_end_there_is_no_lag(prepare: object, end: int | None) -> None:
    answers = joined(a_cluster(), 5, t0_1=400_000)
    prepare(answers)  # type: ignore[operator]
    copy = Run(NO_STANDBYS).look(answers.at(0)).copy("app", "0_1", 2)
    assert copy.end_offset_sum == end
    assert (copy.lag is None) is (end is None)


@pytest.mark.parametrize(
    ("committed", "end"),
    [
        pytest.param({TopicPartition("in", 0): 700, TopicPartition("in", 1): 800}, 800, id="the group's commit"),
        pytest.param({TopicPartition("in", 0): 700}, 0, id="nothing committed yet"),
        pytest.param(None, None, id="commits did not answer"),
    ],
)
def test_a_source_topic_as_changelog_ends_where_the_group_committed(
    committed: dict[TopicPartition, int] | None, end: int | None
) -> None:
    answers = joined(an_observation().topic("in", (1, 2), (2, 3), ends=[5_000, 5_000]), 5, t0_1=100)
    if committed is not None:
        answers.committed["app"] = committed
    copy = Run(NO_STANDBYS).look(answers.at(0)).copy("app", "0_1", 2)
    assert copy.end_offset_sum == end


def test_a_source_topic_that_was_only_taken_for_a_changelog_never_proves_anything() -> None:
    answers = joined(an_observation().topic("in", (1, 2), (2, 3)), 5, t0_1=800)
    answers.committed["app"] = {TopicPartition("in", 1): 800}
    assert Run(NO_STANDBYS).look(answers.at(0)).copy("app", "0_1", 2).caught_up is None


def test_the_applications_own_reading_goes_first_with_its_age() -> None:
    answers = joined(a_cluster(), 5, t0_1=400_000).says("app", process_id(2), "0_1", "standby", 12_345, at_s=-4)
    copy = Run(NO_STANDBYS).look(answers.at(0)).copy("app", "0_1", 2)
    assert (copy.lag, copy.lag_source, copy.lag_age_ms) == (Range(12_345, 12_345, 12_345), LagSource.APPLICATION, 4_000)
    assert copy.caught_up is False


def read(lags: Iterable[tuple[int, int]]) -> Run:
    answers = joined(a_cluster(), 5, t0_1=0)
    run = Run(NO_STANDBYS).look(answers.at(0))
    for second, lag in lags:
        run.look(answers.says("app", process_id(2), "0_1", "standby", lag, at_s=second).at(second))
    return run


def test_rate_and_eta_come_from_readings_and_are_ranges() -> None:
    copy = read([(10, 500_000), (20, 400_000), (30, 350_000), (40, 210_000)]).copy("app", "0_1", 2)
    assert copy.rate_per_s == pytest.approx((7_500 / 1.5, 9_666.7, 14_000 * 1.5), rel=0.1)
    assert copy.eta_s is not None
    assert copy.eta_s == pytest.approx((200_000 / copy.rate_per_s[2], 200_000 / copy.rate_per_s[1],
                                        200_000 / copy.rate_per_s[0]))  # fmt: skip
    assert copy.samples == 4


def test_one_reading_has_no_rate_and_two_have_a_wide_one() -> None:
    assert read([(10, 500_000)]).copy("app", "0_1", 2).rate_per_s is None
    assert read([(10, 500_000), (20, 400_000)]).copy("app", "0_1", 2).rate_per_s == Range(5_000, 10_000, 20_000)
    assert read([(10, 400_000), (20, 500_000)]).copy("app", "0_1", 2).rate_per_s == Range(-20_000, -10_000, -5_000)


def test_the_same_reading_twice_is_one_reading() -> None:
    answers = joined(a_cluster(), 5, t0_1=0).says("app", process_id(2), "0_1", "standby", 500_000, at_s=0)
    run = Run(NO_STANDBYS).look(answers.at(0)).look(answers.at(10)).look(answers.at(20))
    assert run.copy("app", "0_1", 2).samples == 1


def test_restores_that_were_seen_narrow_the_next_estimate() -> None:
    """10,000 records per second in the first round; the next round of another task is estimated from it."""
    answers = joined(a_cluster(), 4, t0_0=0)
    run = Run(NO_STANDBYS).look(answers.at(0))
    run.look(joined(answers, 5, t0_0=0).at(10))
    for second in range(20, 70, 10):
        run.look(answers.at(second))
    run.look(joined(answers, 6, t0_0=600_000, t0_1=0).at(70))
    (rate,) = run.memory.streams["app"].rates
    assert rate.low == pytest.approx(600_000 / 70)
    assert rate.high == pytest.approx(600_000 / 50)

    estimated = run.look(answers.at(90)).copy("app", "0_1", 2)
    assert estimated.lag_source is LagSource.MODEL
    assert estimated.lag is not None
    assert estimated.lag.low < END - 20 * 10_000 < estimated.lag.high == END, "it may wait for the rest of 0_0"
    assert estimated.eta_s is not None
    assert estimated.eta_s.low < (END - 20 * 10_000 - 10_000) / 10_000 < estimated.eta_s.high
    assert estimated.caught_up is None

    later = run.look(answers.at(250)).copy("app", "0_1", 2)
    assert later.lag is not None
    assert later.lag.high < END
    assert later.caught_up is None
    backlog, slowest = 400_000 + END, 600_000 / 70 / 2
    assert run.look(answers.at(70 + (backlog - 11_000) / slowest)).copy("app", "0_1", 2).caught_up is None
    assert run.look(answers.at(70 + (backlog - 9_000) / slowest)).copy("app", "0_1", 2).caught_up is True


def test_a_copy_that_had_caught_up_by_the_next_join_bounds_the_rate_from_below_only() -> None:
    answers = joined(a_cluster(), 4, t0_1=0)
    run = Run(NO_STANDBYS).look(answers.at(0)).look(joined(answers, 5, t0_1=0).at(10))
    run.look(answers.at(20)).look(joined(answers, 6, t0_1=END).at(110))
    assert run.memory.streams["app"].rates == (RestoreRate(END / 110, None),)


def test_what_happened_before_rackwise_came_teaches_nothing() -> None:
    answers = joined(a_cluster(), 5, t0_1=0)
    run = Run(NO_STANDBYS).look(answers.at(0)).look(joined(answers, 6, t0_1=600_000).at(10))
    assert run.memory.streams["app"].rates == ()


def test_while_the_group_hides_its_members_its_memory_waits() -> None:
    answers = joined(a_cluster(), 5, t0_1=0)
    run = Run(NO_STANDBYS).look(answers.at(0))
    known = run.memory.streams["app"]
    raw = answers.groups["app"]
    run.look(answers.group("app", state="PreparingRebalance").at(10))
    assert run.memory.streams["app"] == known
    assert run.snapshot.copies.get("app", ()) == ()
    answers.groups["app"] = raw
    assert run.look(answers.at(20)).copy("app", "0_1", 2).lag == Range(0, END, END)


def kip1071(**changes: object) -> list[RawStreamsMember]:
    return [
        streams_member(1, "a", active="0_0"),
        streams_member(2, "b", active="0_1", warmup="0_0", **changes),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    ("offsets", "lag", "caught_up"),
    [
        pytest.param({"0_0": (400_000, END)}, 600_000, False, id="behind"),
        pytest.param({"0_0": (995_000, END)}, 5_000, True, id="caught up"),
        pytest.param({"0_0": (END + 5, END)}, 0, True, id="beyond the known end: never negative"),
        pytest.param({}, None, None, id="the broker passes none on"),
        pytest.param({"0_0": (-1, END)}, None, None, id="a sentinel"),
    ],
)
def test_what_the_broker_passes_on(
    offsets: dict[str, tuple[int, int]], lag: int | None, caught_up: bool | None
) -> None:
    declared = (subtopology("0", "in", "app-store-changelog"),)
    answers = a_cluster().kip1071("app", *kip1071(offsets=offsets), subtopologies=declared)
    (copy,) = [c for c in Run(Limits()).look(answers.at(0)).snapshot.copies["app"] if c.role is TaskRole.WARMUP]
    assert copy.role_certain
    assert (copy.lag, copy.caught_up) == (None if lag is None else Range(lag, lag, lag), caught_up)
    assert copy.lag_source is (None if lag is None else LagSource.BROKER)


def test_an_endpoint_is_believed_before_the_broker_though_it_numbers_subtopologies() -> None:
    declared = (subtopology("0", "in", "app-store-changelog"),)
    answers = a_cluster().kip1071("app", *kip1071(offsets={"0_0": (400_000, END)}), subtopologies=declared)
    answers.says("app", process_id(2), "0_0", "standby", 77, at_s=0)
    (copy,) = [c for c in Run(Limits()).look(answers.at(0)).snapshot.copies["app"] if c.role is TaskRole.WARMUP]
    assert (copy.lag, copy.lag_source) == (Range(77, 77, 77), LagSource.APPLICATION)


samples = st.lists(st.tuples(st.integers(1, 100_000), st.integers(0, 10**12)), min_size=2, max_size=8).map(
    lambda rows: [(sum(step for step, _ in rows[: n + 1]), lag) for n, (_, lag) in enumerate(rows)]
)


@given(samples)
def test_a_rate_is_a_range_that_holds_its_likely_value(readings: list[tuple[int, int]]) -> None:
    rate = closing_rate(readings)
    assert rate is not None
    assert rate.low <= rate.likely <= rate.high


@given(
    st.tuples(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1e9)).map(lambda of: Range(*sorted(of))),
    st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(lambda of: Range(*sorted(of))),
    st.integers(0, 10**9),
)
def test_an_eta_is_a_range_or_unknown_and_never_negative(lag: Range, rate: Range, acceptable: int) -> None:
    eta = eta_s(lag, acceptable, rate)
    if eta is None:
        assert rate.low <= 0
        assert lag.high > acceptable
    else:
        assert 0 <= eta.low <= eta.likely <= eta.high


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=16))
def test_what_was_measured_lies_inside_the_restore_rate(rows: list[tuple[float, float]]) -> None:
    rates = [RestoreRate(min(row), max(row)) for row in rows]
    found = restore_rate(rates)
    assert found is not None
    assert found.high is not None
    assert all(found.low <= rate.low and rate.high is not None and rate.high <= found.high for rate in rates)
    assert found.low <= found.likely <= found.high


def test_no_rate_without_a_restore() -> None:
    assert restore_rate(()) is None


@given(st.lists(st.integers(1, 100), min_size=2, max_size=6), st.integers(1_000, 30_000), st.booleans())
def test_the_estimate_holds_the_truth_while_a_process_restores_as_fast_as_it_did(
    waits: list[int], rate: int, turned: bool
) -> None:
    """Two copies restored in turn, through several joins: the truth is always within the range that is shown."""
    answers = joined(a_cluster(), 1, t0_0=0, t0_1=0)
    run = Run(NO_STANDBYS).look(answers.at(0))
    order = ["0_1", "0_0"] if turned else ["0_0", "0_1"]
    second, restored = 0.0, dict.fromkeys(order, 0)
    for generation, wait in enumerate(waits, start=2):
        joined(answers, generation, t0_0=restored["0_0"], t0_1=restored["0_1"])
        second += 0.001  # the look comes a moment after the join
        for _ in range(3):
            run.look(answers.at(second))
            for task in order:
                copy, truth = run.copy("app", task, 2), END - restored[task]
                assert copy.lag is not None
                assert copy.lag.low - rate <= truth <= copy.lag.high + rate
                assert not copy.caught_up or truth <= 10_000 + rate
            second += wait
            done = rate * wait
            for task in order:
                step = min(done, END - restored[task])
                restored[task] += step
                done -= step

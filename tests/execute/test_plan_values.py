"""The plan that a proposal becomes, and which of its partitions it left with their planned replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.proposal import PlacementChange
from agent.values.reassignment import (
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    in_force,
    latest,
    limits_words,
    moved_by,
    moved_of,
    plan_of,
    rolled_back_plan,
    traffic_of,
)
from tests.guard.acting import only
from tests.guard.test_judge import shared
from tests.snapshots import Builder, a_cluster, tp

SNAPSHOT, MOVE = only(shared())
TARGETS = tuple(ReassignmentTarget(tp(f"t-{number}"), "id", (1, 2), (3, 2)) for number in range(6))
PLAN = ReassignmentPlan("p", TARGETS)


# --- gains


def world(*rates: float | None) -> Builder:
    """A topic of which each partition is written to at its rate."""
    built = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", *[(1, 4)] * len(rates))
    built.rates.update({tp(f"t-{number}"): rate for number, rate in enumerate(rates) if rate is not None})
    return built


@pytest.mark.parametrize(
    ("before", "after", "rates", "gains"),
    [
        pytest.param(9.0, 3.0, (1.0, 2.0), [2.0, 4.0], id="by what is written to each"),
        pytest.param(9.0, 3.0, (0.0, 0.0), [3.0, 3.0], id="in equal parts where nothing is written"),
        pytest.param(9.0, 3.0, (None, None), [3.0, 3.0], id="in equal parts where nothing is known"),
        pytest.param(9.0, 3.0, (None, 2.0), [0.0, 6.0], id="none where it is unknown of one"),
        pytest.param(3.0, 3.0, (1.0, 1.0), [0.0, 0.0], id="nothing is saved"),
        pytest.param(3.0, 9.0, (1.0, 1.0), [0.0, 0.0], id="it costs more"),
        pytest.param(3.0, 2.5, (1.0, 1.0), [0.25, 0.25], id="less than a byte"),
        pytest.param(None, 2.5, (1.0, 1.0), [0.0, 0.0], id="before is unknown"),
        pytest.param(3.0, None, (1.0, 1.0), [0.0, 0.0], id="after is unknown"),
    ],
)
def test_what_a_proposal_saves_is_shared_among_its_partitions(
    before: float | None, after: float | None, rates: tuple[float | None, ...], gains: list[float]
) -> None:
    predicted = replace(MOVE.predicted, cross_rack_bytes_per_s_before=before, cross_rack_bytes_per_s_after=after)
    proposal = MOVE._replace(
        predicted=predicted,
        placements=tuple(PlacementChange(tp(f"t-{number}"), (1, 4), (1, 2)) for number in range(len(rates))),
    )
    plan = plan_of(proposal, world(*rates).snapshot(), approved_by="ann@desk")
    assert [target.gain for target in plan.targets] == gains


@pytest.mark.parametrize(
    ("reason", "kept"),
    [pytest.param("too slow", "too slow", id="the person's"), pytest.param("", MOVE.sentence, id="the proposal's")],
)
def test_a_plan_has_the_facts_of_its_proposal(reason: str, kept: str) -> None:
    plan = plan_of(
        MOVE, SNAPSHOT, approved_by="ann@desk", reason=reason, throttle_bytes_per_s=5, max_moves=2, begin_by_ms=7
    )
    assert (plan.proposal_id, plan.approved_by, plan.reason) == (MOVE.id, "ann@desk", kept)
    assert (plan.throttle_bytes_per_s, plan.max_moves, plan.begin_by_ms) == (5, 2, 7)
    (target,) = plan.targets
    assert (target.id, target.topic_id, target.before, target.bytes) == (tp("t-0"), "id-t", (1, 4), 1000)
    named = {*target.before, *target.after}
    assert plan.racks == tuple(
        (broker, rack) for broker, rack in ((1, "a"), (2, "b"), (3, "c"), (4, "a")) if broker in named
    )


# --- what has moved


@pytest.mark.parametrize(
    ("moved", "numbers"),
    [
        pytest.param("0", set(), id="none"),
        pytest.param("1", {0}, id="the first"),
        pytest.param("2", {1}, id="the second"),
        pytest.param("2a", {1, 3, 5}, id="every other one"),
        pytest.param("3f", {0, 1, 2, 3, 4, 5}, id="all"),
        pytest.param("ff", {0, 1, 2, 3, 4, 5}, id="more than there are"),
        pytest.param(None, None, id="not told"),
        pytest.param("", None, id="empty"),
        pytest.param("X", None, id="no number"),
        pytest.param("1X", None, id="a number and more"),
        pytest.param("A", None, id="capitals"),
        pytest.param("0x1", None, id="a prefix"),
        pytest.param(" 1", None, id="a blank"),
        pytest.param("-1", None, id="below zero"),
        pytest.param("1_0", None, id="an underscore"),
    ],
)
def test_what_a_plan_moved_is_read_from_its_hexadecimal_number(moved: str | None, numbers: set[int] | None) -> None:
    found = moved_of(PLAN._replace(moved=moved))
    assert found == (None if numbers is None else {TARGETS[number].id for number in numbers})


@pytest.mark.parametrize("numbers", [set(), {0}, {5}, {1, 2}, {0, 1, 2, 3, 4, 5}])
def test_what_a_plan_moved_is_read_as_it_was_written(numbers: set[int]) -> None:
    ids = {TARGETS[number].id for number in numbers}
    assert moved_of(PLAN._replace(moved=moved_by(PLAN, ids))) == ids
    assert moved_by(PLAN._replace(targets=()), ids) == "0"


# --- names, limits and traffic


@pytest.mark.parametrize(
    ("rate", "most", "words"),
    [
        pytest.param(None, None, "", id="none"),
        pytest.param(5_000_000, None, " at 5.0 MB/s per broker", id="a rate"),
        pytest.param(None, 1, " at 1 partition at a time", id="a number"),
        pytest.param(0, 2, " at 0 B/s per broker and 2 partitions at a time", id="both"),
    ],
)
def test_an_operators_limits_end_a_sentence(rate: int | None, most: int | None, words: str) -> None:
    assert limits_words(rate, most) == words


def test_the_newest_attempt_is_the_one_of_the_greatest_number() -> None:
    names = {"p.10": 10, "p": 1, "p.9": 9, "p-back": 1, "px": 1}
    plans = [ReassignmentPlan(name, (), attempt=number) for name, number in names.items()]
    assert latest(plans, "p") is plans[0]
    assert latest(plans, "p-back") is plans[3]
    assert latest(plans, "q") is None
    assert [rolled_back_plan(name) for name in ("p-back", "p-back.2", "p.2-back", "p")] == ["p", "p", "p.2", None]


@pytest.mark.parametrize(
    ("states", "counts"),
    [
        pytest.param({"p": PlanState.DONE}, True, id="done"),
        pytest.param({"p": PlanState.FAILED}, False, id="failed"),
        pytest.param({"p": PlanState.DONE, "p-back": PlanState.DONE}, False, id="taken back"),
        pytest.param({"p": PlanState.DONE, "p-back": PlanState.FAILED}, True, id="not taken back"),
        pytest.param(
            {"p": PlanState.DONE, "p-back": PlanState.DONE, "p-back-back": PlanState.DONE}, True, id="and that again"
        ),
    ],
)
def test_a_plan_counts_while_nothing_took_it_back(states: dict[str, PlanState], counts: bool) -> None:
    plans = tuple(ReassignmentPlan(name, (), state) for name, state in states.items())
    assert in_force(plans, plans[0]) is counts


def test_the_traffic_of_a_broker_is_what_its_replicas_take_in() -> None:
    built = a_cluster().topic("t", (1, 2), (2,), rate=10.0).topic("u", (3,))
    assert traffic_of(built.snapshot()) == {1: 10.0, 2: 20.0}
    gap = Gap(ObservationPart.TOPICS, GapCause.TIMED_OUT, "", "no answer")
    assert traffic_of(built.snapshot(gaps=(gap,))) == {}
    idle = a_cluster().topic("t", (1, 9), rate=10.0).broker(3, "c", alive=False)
    assert traffic_of(idle.snapshot()) == {1: 10.0, 2: 0.0, 9: 10.0}

"""How much of a plan is copied: of all that it copies, so that it never runs backwards."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from agent.cli.follow import ProposalStatus, ReassignmentWatcher, _pace, whole_plan
from agent.execute.reassign.throttles import CopyRates, cluster_view
from agent.values.observation import Gap, GapCause, Observation, ObservationPart, RawReassignment
from agent.values.plan import ReplicaProgress
from agent.values.reassignment import ReassignmentPlan, ReassignmentTarget
from tests.builders import an_observation
from tests.snapshots import tp

PLAN = ReassignmentPlan(
    "p-1", tuple(ReassignmentTarget(tp(f"t-{number}"), "id", (1, 4), (1, 2)) for number in range(3)), "ann@desk"
)


def look(moving: tuple[int, ...], there: dict[int, int]) -> Observation:
    """Partitions of 2,000 bytes each; ``there`` is how much of each is on broker 2."""
    sizes = {(broker, tp(f"t-{number}")): 2_000 for number in range(3) for broker in (1, 4)}
    copied = {(2, tp(f"t-{number}")): size for number, size in there.items()}
    rows = tuple(RawReassignment(tp(f"t-{number}"), (1, 4, 2), (2,), (4,)) for number in moving)
    return replace(an_observation(a=(1, 4), b=(2,)).at(), reassignments=rows, replica_bytes={**sizes, **copied})


def amount(observation: Observation) -> tuple[int, int] | None:
    rates = CopyRates()
    rates.looked(cluster_view(observation), 1.0)
    return whole_plan(PLAN, observation, rates.of(target.id for target in PLAN.targets))


def test_partitions_that_are_done_stay_in_both_figures() -> None:
    assert amount(look((0, 1, 2), {0: 1_500, 1: 1_500, 2: 500})) == (3_500, 6_000)
    assert amount(look((2,), {0: 2_000, 1: 2_000, 2: 900})) == (4_900, 6_000)


def test_partitions_that_wait_are_counted_as_nothing_copied() -> None:
    assert amount(look((0,), {0: 500})) == (500, 6_000)


def test_where_a_size_is_unknown_or_other_copies_are_made_the_whole_is_unknown() -> None:
    gap = Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.TIMED_OUT, 2, "no answer")
    assert amount(replace(look((0,), {0: 500}), gaps=(gap,))) is None
    assert amount(replace(look((0,), {0: 500}), replica_bytes={})) is None
    back = replace(look((), {}), reassignments=(RawReassignment(tp("t-0"), (1, 2, 4), (4,), (2,)),))
    assert amount(back) is None, "it is being taken back"


class Looks:
    """What a command sees of the plan while it follows it, look by look."""

    def __init__(self, *looks: Observation) -> None:
        self._looks, self._rates, self._at_s = iter(looks), CopyRates(), 0.0

    def look(self, _topics: tuple[str, ...]) -> Observation:
        observation = next(self._looks)
        self._at_s += 10.0
        self._rates.looked(cluster_view(observation), self._at_s)
        return observation

    def copies(self, _observation: Observation, plan: ReassignmentPlan) -> tuple[ReplicaProgress, ...]:
        return self._rates.of(target.id for target in plan.targets)


def paces(*looks: Observation) -> list[str]:
    watcher = Looks(*looks)
    return [_pace(cast("ReassignmentWatcher", watcher), ProposalStatus(None, "", PLAN)) for _ in looks]


def test_before_a_second_look_the_rate_of_a_copy_is_unknown_and_not_zero() -> None:
    first, second = paces(look((0,), {0: 500}), look((0,), {0: 1_500}))
    assert first == "; 500 B of 6.0 kB copied, rate unknown, time left unknown for the partitions that move now"
    assert second == "; 1.5 kB of 6.0 kB copied at 100 B/s, 5 s left for the partitions that move now"


def test_where_a_copy_just_began_the_rate_is_the_least_that_it_is() -> None:
    *_, told = paces(look((0,), {0: 500}), look((0, 1), {0: 1_500, 1: 0}))
    assert "copied at 100 B/s or more, time left unknown" in told


def test_copies_of_unknown_size_are_counted_and_no_bytes_made_up_for_them() -> None:
    unread, half = look((0, 1), {0: 500}), look((0, 1), {0: 500})
    half = replace(half, gaps=(Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.TIMED_OUT, 1, "no answer"),))
    assert paces(half) == [
        "; moving now: 500 B of 2.0 kB copied and 1 copy of unknown size, rate unknown, time left unknown for these"
    ]
    assert paces(replace(unread, replica_bytes={})) == [
        "; moving now: 2 copies of unknown size, rate unknown, time left unknown for these"
    ]

"""How much of a plan is copied: of all that it copies, so that it never runs backwards."""

from __future__ import annotations

from dataclasses import replace

from agent.act.reassign.progress import Rates
from agent.cli.following import _seen, whole_plan
from agent.values.observation import Gap, GapCause, Observation, Part, RawReassignment
from agent.values.reassignment import Plan, Target
from tests.builders import an_observation
from tests.snapshots import tp

PLAN = Plan("p-1", tuple(Target(tp(f"t-{number}"), "id", (1, 4), (1, 2)) for number in range(3)), "ann@desk")


def look(moving: tuple[int, ...], there: dict[int, int]) -> Observation:
    """Partitions of 2,000 bytes each; ``there`` is how much of each is on broker 2."""
    sizes = {(broker, tp(f"t-{number}")): 2_000 for number in range(3) for broker in (1, 4)}
    copied = {(2, tp(f"t-{number}")): size for number, size in there.items()}
    rows = tuple(RawReassignment(tp(f"t-{number}"), (1, 4, 2), (2,), (4,)) for number in moving)
    return replace(an_observation(a=(1, 4), b=(2,)).at(), reassignments=rows, replica_bytes={**sizes, **copied})


def amount(observation: Observation) -> tuple[int, int] | None:
    rates = Rates()
    rates.looked(_seen(observation), 1.0)
    return whole_plan(PLAN, observation, rates.of(target.id for target in PLAN.targets))


def test_partitions_that_are_done_stay_in_both_figures() -> None:
    assert amount(look((0, 1, 2), {0: 1_500, 1: 1_500, 2: 500})) == (3_500, 6_000)
    assert amount(look((2,), {0: 2_000, 1: 2_000, 2: 900})) == (4_900, 6_000)


def test_partitions_that_wait_are_counted_as_nothing_copied() -> None:
    assert amount(look((0,), {0: 500})) == (500, 6_000)


def test_where_a_size_is_unknown_or_other_copies_are_made_the_whole_is_unknown() -> None:
    gap = Gap(Part.LOG_DIRS, GapCause.TIMED_OUT, "broker 2", "no answer")
    assert amount(replace(look((0,), {0: 500}), gaps=(gap,))) is None
    assert amount(replace(look((0,), {0: 500}), replica_bytes={})) is None
    back = replace(look((), {}), reassignments=(RawReassignment(tp("t-0"), (1, 2, 4), (4,), (2,)),))
    assert amount(back) is None, "it is being taken back"

"""The optimum by bytes, against every balanced assignment there is."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import pytest

from agent.detect.traffic import integer_weights
from agent.values.assessment import Assessment, LocalityMeasure
from agent.values.finding import FindingReason, FindingSeverity
from assignors.problem import TopicPartition
from tests.builders import Answers, Run, an_observation, instance, reader
from tests.snapshots import tp
from tests.telemetry.weight_rates import group_rates, reading_of

HEAVY = (1_000.0, 10.0, 10.0, 800.0)
"""Two heavy partitions and two light ones."""


def all_in_a(assignor: str = "cooperative-sticky") -> Answers:
    """Four partitions with a replica in rack a alone; the reader in a has the light ones."""
    members = (reader("m1", "a", "t-1 t-2"), reader("m2", "b", "t-0 t-3"))
    return an_observation().topic("t", *[(1,)] * 4).group("g", *members, assignor=assignor)


def assessed(answers: Answers, weights: object, name: str = "g") -> tuple[Assessment, Run]:
    answers.extra["weights"] = weights
    run = Run().look(answers.at(0))
    return run.detection.assessments[name], run


def test_heavy_partitions_are_read_at_home_although_as_many_cross() -> None:
    found, run = assessed(all_in_a(), reading_of({"t": HEAVY}))
    assert found.weighing is not None
    assert (found.weighing.crossing, found.weighing.optimal_crossing, found.weighing.lower_bound) == (1_800, 20, 20)
    assert found.weighing.gained == 1_780
    assert (found.crossing, found.optimal_crossing, found.gap, found.moved) == (2, 2, 0, 4)
    assert found.improvable
    assert found.result is not None
    assert found.result.assignment["m1"] == (tp("t-0"), tp("t-3"))
    (finding,) = run.of(FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM)
    assert finding.severity is FindingSeverity.WARNING
    assert finding.sentence == (
        "group g reads 1.8 kB/s of 1.8 kB/s across racks, by Kafka's measure and weights of the pipeline, and could "
        "read 20 B/s"
    )


def test_without_weights_the_same_group_is_at_its_optimum() -> None:
    for weights in (None, reading_of({"t": HEAVY}, until_s=-90_000), reading_of({"t": (*HEAVY[:3], None)})):
        found, run = assessed(all_in_a(), weights)
        assert found.weighing is None
        assert not found.improvable
        assert run.of(FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM) == []


def test_what_the_group_itself_reads_counts_before_what_comes_in() -> None:
    found, _ = assessed(all_in_a(), reading_of({"t": HEAVY}, group_rates("g", {"t": (0.0, None, None, 0.0)})))
    assert found.weighing is not None
    assert (found.weighing.crossing, found.weighing.total) == (0, 20)
    assert not found.improvable


def test_fewer_crossing_partitions_of_no_weight_are_no_gain() -> None:
    answers = an_observation().topic("t", (1,), (2,)).group("g", reader("m1", "b", "t-0"), reader("m2", "a", "t-1"))
    found, run = assessed(answers, reading_of({"t": (0.2, 0.3)}))
    assert (found.crossing, found.gap, found.improvable) == (2, 0, False)
    assert run.of(FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM) == []


def test_tasks_are_weighed_by_all_that_they_read() -> None:
    answers = an_observation().topic("t", *[(1,)] * 4)
    light, heavy = {"0_1": "t-1", "0_2": "t-2"}, {"0_0": "t-0", "0_3": "t-3"}
    answers.streams("app", instance(1, "a", light), instance(2, "b", heavy))
    found, _ = assessed(answers, reading_of({"t": HEAVY}), "app")
    assert found.weighing is not None
    assert (found.weighing.crossing, found.weighing.optimal_crossing) == (1_800, 20)
    assert found.moved == 4


def test_the_finding_is_the_same_object_until_weights_change() -> None:
    answers = all_in_a()
    answers.extra["weights"] = reading_of({"t": HEAVY})
    run = Run().look(answers.at(0))
    first = run.detection.assessments["g"]
    assert run.look(answers.at(10)).detection.assessments["g"] is first
    answers.extra["weights"] = reading_of({"t": (*HEAVY[:3], 900.0)})
    assert run.look(answers.at(20)).detection.assessments["g"] is not first


def test_stale_weights_are_one_finding_however_many_groups_there_are() -> None:
    answers = all_in_a()
    for number in range(5):
        answers.group(f"g{number}", reader("m1", "a", "t-0 t-1 t-2 t-3"))
    _, run = assessed(answers, reading_of({"t": HEAVY}, until_s=-9_000))
    (finding,) = run.of(FindingReason.WEIGHTS_UNUSED)
    assert finding.sentence == (
        "weights of the pipeline are not used: they are 2 h 30 min old, 30 min more than weights.max_age allows; "
        "optima count partitions meanwhile"
    )
    assert finding.severity is FindingSeverity.WARNING


def test_where_nobody_publishes_weights_nothing_is_found() -> None:
    for weights in (None, reading_of({})):
        assert assessed(all_in_a(), weights)[1].of(FindingReason.WEIGHTS_UNUSED) == []


@pytest.mark.parametrize("most", [0.0, 0.4, 12.0, 1e9, 1e15])
def test_rates_weigh_more_than_all_partitions_together_and_fit_the_solvers(most: float) -> None:
    rates = {TopicPartition("t", number): most / (number + 1) for number in range(100)}
    weights = integer_weights(rates)
    assert min(weights.values()) >= 1
    assert max(weights.values()) <= 2**41
    assert sum(weights.values()) <= 2**60
    unit = max(0.001, most * 101 / 2**40)
    assert all(abs((weight - 1) / 101 * unit - rates[partition]) <= unit for partition, weight in weights.items())


# --- brute force ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_no_balanced_assignment_reads_fewer_bytes_across_racks(seed: int) -> None:
    rng = random.Random(seed)
    partitions, members = rng.randint(1, 7), rng.randint(1, 3)
    replicas = [tuple(rng.sample((1, 2, 3), rng.randint(1, 2))) for _ in range(partitions)]
    rates = tuple(float(rng.choice((0, 1, 2, 50, 1_000))) for _ in range(partitions))
    racks = [rng.choice("abc") for _ in range(members)]
    held = list(range(partitions))
    rng.shuffle(held)
    shares = [held[number::members] for number in range(members)]
    readers = [
        reader(f"m{number}", racks[number], " ".join(f"t-{p}" for p in share), topics=("t",))
        for number, share in enumerate(shares)
    ]
    answers = an_observation().topic("t", *replicas).group("g", *readers)
    found, _ = assessed(answers, reading_of({"t": rates}))
    near = [{"abc"[broker - 1] for broker in of} for of in replicas]

    def crossing(assignment: Sequence[Sequence[int]]) -> float:
        return sum(rates[p] for rack, of in zip(racks, assignment, strict=True) for p in of if rack not in near[p])

    assert found.weighing is not None
    best = min(crossing(assignment) for assignment in _balanced(range(partitions), members))
    assert found.weighing.crossing == crossing(shares)
    assert found.weighing.optimal_crossing == found.weighing.lower_bound == best
    if found.result is not None:
        given = found.result.assignment
        told_best = [[p.partition for p in given[f"m{number}"]] for number in range(members)]
        assert crossing(told_best) == best
    shown = {(of.measure, of.unit): of for of in found.optimal}[LocalityMeasure.KAFKA, "bytes_per_s"]
    assert shown.total - shown.local - shown.unknown == best


def _balanced(partitions: Sequence[int], members: int) -> Iterator[list[tuple[int, ...]]]:
    """Every assignment in which loads differ by one at most."""
    low, more = divmod(len(partitions), members)

    def deal(left: tuple[int, ...], sizes: Mapping[int, int], number: int) -> Iterator[list[tuple[int, ...]]]:
        if number == members:
            yield []
            return
        for taken in combinations(left, sizes[number]):
            rest = tuple(p for p in left if p not in taken)
            for others in deal(rest, sizes, number + 1):
                yield [taken, *others]

    for larger in combinations(range(members), more):
        yield from deal(tuple(partitions), {n: low + (n in larger) for n in range(members)}, 0)

"""Each proposal says on what it rests: weights with their age, own rates, or counts; and why not weights."""

from __future__ import annotations

import pytest

from agent.loop import CycleStages, run_cycle
from agent.propose.codec import proposal_to_bytes
from agent.simulate.evaluation import replay
from agent.telemetry.events import from_lines, to_lines
from agent.values.cycle import figures_rest_on
from agent.values.limits import GainLimits, Limits
from agent.values.memory import Memory, RateBase
from agent.values.observation import Observation
from agent.values.proposal import Proposal, ProposalReason
from agent.values.weights import FigureBasis, WeightsReading
from tests.builders import MONOTONIC_MS, Answers, an_observation, consumer, instance, reader
from tests.recorded_looks import observation_to_events
from tests.snapshots import tp
from tests.telemetry.weight_rates import TOPIC, group_rates, reading_of

HEAVY = (1_000.0, 10.0, 10.0, 800.0)


def swapped(weights: WeightsReading | None) -> Observation:
    """Each member reads what the other has at home."""
    answers = an_observation().topic("t", (1,), (2,), (1,), (2,))
    answers.group("g", reader("m1", "a", "t-1 t-3"), reader("m2", "b", "t-0 t-2"))
    return of(answers, weights)


def of(answers: Answers, weights: WeightsReading | None) -> Observation:
    answers.extra["weights"] = weights
    return answers.at(0)


def proposals(observation: Observation, memory: Memory | None = None, limits: Limits | None = None) -> list[Proposal]:
    line = CycleStages(limits or Limits())
    cycle = run_cycle(line, lambda: observation, observation, memory or Memory(), number=1, name="l-1", planning=True)
    return list(cycle.proposals)


def only(found: list[Proposal], reason: ProposalReason) -> Proposal:
    (proposal,) = [one for one in found if one.reason is reason]
    return proposal


def test_by_weights_a_rebalance_is_told_in_bytes_with_their_age() -> None:
    proposal = only(proposals(swapped(reading_of({"t": HEAVY}, until_s=-750))), ProposalReason.REBALANCE_IMPROVES)
    assert proposal.sentence == (
        "Rebalance g once: its own assignor, cooperative-sticky, which counts partitions, makes 1.8 kB/s of "
        "1.8 kB/s local by Kafka's measure (crossing 1.8 kB/s -> 0 B/s, at best 0 B/s), moving 4 partitions, though "
        "the exact assignment may differ"
    )
    assert figures_rest_on([proposal, proposal]) == "figures: weights of the pipeline, 12 min old"
    evidence = dict(proposal.evidence)
    assert evidence["basis"] == "weights of the pipeline"
    assert evidence["weights_age_s"] == 750
    assert evidence["weights_until_ms"] == proposal.created_ms - 750_000
    assert evidence["crossing_bytes_per_s_now"] == 1_820.0
    assert "why_not_weights" not in evidence
    assert (proposal.lower_bound, proposal.optimal) == (0.0, True)
    assert proposal.predicted.cross_rack_bytes_per_s_before == 1_820.0
    assert proposal.predicted.cross_rack_bytes_per_s_after == 0.0


COUNTED = (
    "Rebalance g once: its own assignor, cooperative-sticky, makes 4 of 4 reads local by Kafka's measure (crossing "
    "4 -> 0, at best 0), moving 4 partitions, though the exact assignment may differ"
)


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        pytest.param(WeightsReading(TOPIC, missing="there is no such topic"), "there is no such topic", id="missing"),
        pytest.param(
            reading_of({"t": HEAVY}, until_s=-10_800),
            "they are 3 h old, 60 min more than weights.max_age allows",
            id="stale",
        ),
        pytest.param(
            WeightsReading(TOPIC, others=2), "rackwise.weights holds weights of other clusters only", id="of others"
        ),
        pytest.param(
            WeightsReading(TOPIC, unreadable=1, example="'x' is no JSON"),
            "0 of 1 record in rackwise.weights can be read; example: 'x' is no JSON",
            id="unreadable",
        ),
        pytest.param(
            reading_of({"t": (1.0, 2.0, 3.0, None)}),
            "some of the partitions that it is about have none",
            id="one is missing",
        ),
    ],
)
def test_without_weights_partitions_are_counted_and_it_is_said_why(weights: WeightsReading, why: str) -> None:
    proposal = only(proposals(swapped(weights)), ProposalReason.REBALANCE_IMPROVES)
    assert proposal.sentence == COUNTED
    assert figures_rest_on([proposal]) == f"figures: partitions are counted (no weights: {why})"
    evidence = dict(proposal.evidence)
    assert (evidence["basis"], evidence["why_not_weights"]) == ("counts", why)


def test_where_weights_are_not_asked_for_nothing_is_added() -> None:
    proposal = only(proposals(swapped(None)), ProposalReason.REBALANCE_IMPROVES)
    assert proposal.sentence == COUNTED
    assert figures_rest_on([proposal]) is None
    assert dict(proposal.evidence)["basis"] == FigureBasis.COUNTS.value


def test_own_rates_tell_bytes_beside_an_optimum_that_counts() -> None:
    base = RateBase(MONOTONIC_MS - 10_000, {tp(f"t-{number}"): 900 for number in range(4)})
    memory = Memory(rate_bases=(base,), bytes_per_record={"t": 50.0})
    proposal = only(
        proposals(swapped(WeightsReading(TOPIC, missing="there is none")), memory), ProposalReason.REBALANCE_IMPROVES
    )
    assert proposal.sentence == COUNTED
    assert figures_rest_on([proposal]) == (
        "figures: bytes per second are rackwise's own rates, and optima count partitions (no weights: there is none)"
    )
    assert dict(proposal.evidence)["basis"] == "own rates"
    assert dict(proposal.evidence)["crossing_bytes_per_s_now"] == 2_000.0


def test_a_group_that_brokers_assign_is_advised_in_bytes() -> None:
    answers = an_observation().topic("t", (1,), (2,), (1,), (2,))
    answers.kip848("g", consumer("m1", "a", "t-1 t-3"), consumer("m2", "b", "t-0 t-2"))
    proposal = only(proposals(of(answers, reading_of({"t": HEAVY}))), ProposalReason.CHANGE_ASSIGNOR)
    assert (
        "1.8 kB/s of the 1.8 kB/s that it reads cross racks by Kafka's measure, and 0 B/s would do" in proposal.sentence
    )
    assert figures_rest_on([proposal]) == "figures: weights of the pipeline, 60 s old"


def test_an_answer_says_each_basis_once_and_for_which_proposals() -> None:
    answers = an_observation().topic("t", (1,), (2,), (1,), (2,)).topic("u", (1,), (2,), (1,), (2,))
    for topic in ("t", "u"):
        first, second = (
            reader(f"{topic}1", "a", f"{topic}-1 {topic}-3"),
            reader(f"{topic}2", "b", f"{topic}-0 {topic}-2"),
        )
        answers.group(f"g{topic}", first, second)
    found = proposals(of(answers, reading_of({"t": HEAVY})))
    assert [one.subject.name for one in found] == ["gt", "gu"]
    assert all("weights" not in one.sentence and "counted" not in one.sentence for one in found)
    ids = {one.subject.name: one.id for one in found}
    assert figures_rest_on(found) == (
        f"figures of {ids['gu']}: partitions are counted (no weights: some of the partitions that it is about have "
        f"none); figures of {ids['gt']}: weights of the pipeline, 60 s old"
    )


def test_a_trigger_that_saves_partitions_but_hardly_a_byte_is_not_proposed() -> None:
    """Own assignor: two reads come home; both are of partitions without traffic."""
    answers = an_observation().topic("t", (1,), (2,), (1,), (2,))
    answers.group("g", reader("m1", "a", "t-0 t-1"), reader("m2", "b", "t-2 t-3"))
    by_count = [p.reason for p in proposals(of(answers, None))]
    by_bytes = [p.reason for p in proposals(of(answers, reading_of({"t": (1_000.0, 1.0, 1.0, 1_000.0)})))]
    assert by_count == [ProposalReason.REBALANCE_IMPROVES]
    assert by_bytes == []


def test_one_heavy_partition_is_worth_a_rebalance_that_its_count_is_not() -> None:
    """One of forty reads is below five percent of them, and nearly all of the bytes."""
    replicas = [(1,) if number < 20 else (2,) for number in range(40)]
    answers = an_observation().topic("t", *replicas)
    ours = [f"t-{number}" for number in (*range(1, 20), 20)]
    theirs = [f"t-{number}" for number in (0, *range(21, 40))]
    answers.group("g", reader("m1", "a", " ".join(ours)), reader("m2", "b", " ".join(theirs)))
    rates = tuple(10_000.0 if number == 0 else 1.0 for number in range(40))
    limits = Limits(gain=GainLimits(min_share=0.1))
    assert proposals(of(answers, None), limits=limits) == []
    (proposal,) = proposals(of(answers, reading_of({"t": rates})), limits=limits)
    assert proposal.reason is ProposalReason.REBALANCE_IMPROVES
    assert "makes 10.0 kB/s of 10.0 kB/s local" in proposal.sentence


def test_leaders_follow_the_readers_of_heavy_partitions_first() -> None:
    answers = an_observation().topic("t", (1, 2), (1, 2), (2, 1), (2, 1)).selector(None)
    answers.group("g", reader("m1", "b", "t-0 t-1"), reader("m2", "b", "t-2 t-3"))
    weights = reading_of({"t": (5.0, 1_000.0, 1.0, 1.0)})
    found = only(proposals(of(answers, weights)), ProposalReason.LEADERS_TO_READERS)
    assert found.before[0].key == "t-1"
    assert dict(found.evidence)["basis"] == "weights of the pipeline"


@pytest.mark.parametrize("until_s", [-60.0, -9_000.0], ids=["fresh", "stale"])
def test_a_recorded_look_with_weights_gives_the_same_proposals_byte_for_byte(until_s: float) -> None:
    restores = ()
    weights = reading_of({"t": HEAVY}, group_rates("g", {"t": (900.0,)}, restores), until_s=until_s)
    answers = an_observation().topic("t", (1,), (2,), (1,), (2,))
    answers.group("g", reader("m1", "a", "t-1 t-3"), reader("m2", "b", "t-0 t-2"))
    answers.streams("app", instance(1, "a", {"0_1": "t-1"}), instance(2, "b", {"0_0": "t-0"}))
    observation = of(answers, weights)
    live = proposals(observation)
    lines = [
        line for event in observation_to_events(observation, Memory(), Limits(), look="l-1") for line in to_lines(event)
    ]
    again = replay(from_lines(lines))
    assert [proposal_to_bytes(one) for one in again] == [proposal_to_bytes(one) for one in live]
    assert live

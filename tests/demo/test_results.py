"""How the demo ends: shares of reads across racks, and what they cost at the price that is named."""

from __future__ import annotations

from agent.loop import CycleStages, run_cycle
from agent.simulate.evaluation import first_memory, second_look
from agent.values.assessment import LocalityMeasure
from agent.values.limits import Limits, PriceLimits
from testbed.demo.events import with_line
from testbed.demo.results import DemoProposals, money_lines, share_lines, summary
from testbed.demo.shares import CrossingShare
from tests.builders import Answers, an_observation, reader
from tests.record.test_proposals import a_proposal
from tests.snapshots import tp

SHARES = (
    CrossingShare(LocalityMeasure.KAFKA, "bytes_per_s", 500_000.0, 0.0, 1_000_000.0, 0.0),
    CrossingShare(LocalityMeasure.READ_LOCAL, "bytes_per_s", 1_000_000.0, 50_000.0, 2_000_000.0, 0.0),
    CrossingShare(LocalityMeasure.READ_LOCAL, "partitions", 10.0, 1.0, 12.0, 0.0),
)


def test_the_cost_of_reads_across_racks_names_the_assumed_price() -> None:
    assert money_lines(SHARES, Limits(price=PriceLimits(usd_per_gb=0.02))) == [
        "$1.73/day -> $0.09/day for these reads at an assumed $0.02/GB across racks (price.usd_per_gb)"
    ]


def test_no_cost_is_shown_without_a_price_or_with_prices_that_differ_by_pair_of_racks() -> None:
    assert money_lines(SHARES, Limits(price=PriceLimits(usd_per_gb=None))) == []
    assert money_lines(SHARES, Limits(price=PriceLimits(usd_per_gb=0.02, between={("a", "b"): 0.01}))) == []


def test_shares_of_rates_have_the_units_of_every_other_sentence() -> None:
    assert share_lines(SHARES) == [
        "50 % -> 0 %      of 1.0 MB/s by Kafka's rule (local: a replica in the reader's rack)",
        "50 % -> 2 %      of 2.0 MB/s as read (local: the leader, or a follower fetch in the reader's rack)",
        "83 % -> 8 %      of 12 partitions as read (local: the leader, or a follower fetch in the reader's rack)",
    ]


def test_each_line_to_set_is_told_by_itself() -> None:
    two = a_proposal()._replace(sentence="Do it", line="group.protocol=classic\nclient.rack=a")
    assert with_line(two) == "Do it  > group.protocol=classic  > client.rack=a"
    assert with_line(two._replace(line=None)) == "Do it"


def test_what_to_do_first_is_safety_then_what_may_save_most() -> None:
    limits = Limits()
    answers = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("big", (1, 2), ends=[0]).topic("small", (1, 2), (2, 3))
    answers.topic("crowded", (1, 4)).ends.update({tp("small-0"): 0, tp("small-1"): 0, tp("crowded-0"): 0})
    answers.group("exports", reader("m", None, "big-0"))
    answers.group("coop", reader("x", "c", "small-0"), reader("y", "a", "small-1"))
    memory = first_memory(sized(answers).at(0), limits)
    answers.ends = dict.fromkeys(answers.ends, 10_000)
    look = sized(answers).at(10)
    before = second_look(look, memory, limits).before
    cycle = run_cycle(CycleStages(limits), lambda: look, look, before, number=1, name="l-1", planning=True)
    told = summary(DemoProposals(0, ()), "rackwise.proposals", cycle)
    at = told.index("The largest proposal of each kind (replicas that share a rack first, then by dollars saved a day)")
    first, second, third = told[at + 1 : at + 4]
    assert first.startswith("  1. Move 1 of 2 replicas of crowded")
    assert second.startswith("  2. Set client.rack for 1 client of exports"), "up to $1.73 a day"
    assert third.startswith("  3. Rebalance coop once")


def sized(answers: Answers) -> Answers:
    """A record of big has a thousand bytes, one of the other topics ten."""
    answers.sizes = {
        (broker, partition): end * (1_000 if partition.topic == "big" else 10)
        for partition, end in answers.ends.items()
        for broker in (1, 2, 3, 4)
    }
    return answers

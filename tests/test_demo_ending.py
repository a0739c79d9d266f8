"""How the demo ends: shares of reads across racks, and what they cost at the price that is named."""

from __future__ import annotations

from agent.values.assessment import Measure
from agent.values.limits import Limits
from testbed.demo.ending import money_lines, share_lines
from testbed.demo.news import with_line
from testbed.demo.shares import Share
from tests.record.test_proposals import a_proposal

SHARES = (
    Share(Measure.KAFKA, "bytes_per_s", 500_000.0, 0.0, 1_000_000.0, 0.0),
    Share(Measure.READ_LOCAL, "bytes_per_s", 1_000_000.0, 50_000.0, 2_000_000.0, 0.0),
    Share(Measure.READ_LOCAL, "partitions", 10.0, 1.0, 12.0, 0.0),
)


def test_the_cost_of_reads_across_racks_names_the_assumed_price() -> None:
    assert money_lines(SHARES, Limits(usd_per_gb=0.02)) == [
        "$1.73/day -> $0.09/day for these reads at an assumed $0.02 per GB across racks (price.usd_per_gb)"
    ]


def test_no_cost_is_shown_without_a_price_or_with_prices_that_differ_by_pair_of_racks() -> None:
    assert money_lines(SHARES, Limits(usd_per_gb=None)) == []
    assert money_lines(SHARES, Limits(usd_per_gb=0.02, prices={("a", "b"): 0.01})) == []


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

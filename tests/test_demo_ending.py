"""How the demo ends: shares of reads across racks, and what they cost at the price that is named."""

from __future__ import annotations

from agent.demo.ending import money_lines
from agent.demo.shares import Share
from agent.detect.assessment import Measure
from agent.limits import Limits

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

"""Every move says which preferred leaders change, and what crosses racks before and after."""

from __future__ import annotations

import pytest

from agent.propose.replicas import _rates
from agent.values.limits import Limits, PriceLimits
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from tests.propose.test_propose import only, proposed
from tests.snapshots import Builder, a_cluster, member, tp


def six_led_by_six(rate: float | None = None, readers: str = "abc") -> Builder:
    """Preferred leaders 1 2 3 4 5 6; every partition has both copies in one rack, and brokers 1, 3 and 5 hold more."""
    built = a_cluster(a=(1, 2), b=(3, 4), c=(5, 6)).topic("busy", *[(1,), (3,), (5,)] * 5)
    built.topic("t", (1, 2), (2, 1), (3, 4), (4, 3), (5, 6), (6, 5), rate=rate)
    return built.group("g", *[member(f"m{number}", readers[number // 2], f"t-{number}") for number in range(6)])


def reassigned(built: Builder, limits: Limits | None = None) -> Proposal:
    return only(proposed(built, limits=limits or Limits()), ProposalReason.MEND_RACK_SPREAD)


def told(proposal: Proposal) -> dict[str, object]:
    return dict(proposal.evidence)


def test_six_leaders_stay_where_they_are_although_other_brokers_hold_fewer_replicas():
    proposal = reassigned(six_led_by_six())
    assert [row.value[0] for row in proposal.before] == [1, 2, 3, 4, 5, 6]
    assert [row.value[0] for row in proposal.after] == [1, 2, 3, 4, 5, 6]
    assert "; no preferred leader changes; " in proposal.sentence
    assert told(proposal)["preferred_leaders_changed"] == 0


def test_traffic_that_must_rise_is_told_in_bytes_and_dollars_and_that_no_other_moves_avoid_it():
    proposal = reassigned(six_led_by_six(rate=1e6))
    assert proposal.sentence == (
        "Move 6 of 12 replicas of t, so that no rack holds more copies of a partition than it must; 6.0 kB are copied; "
        "no preferred leader changes; traffic across racks rises from 0 B/s to 6.0 MB/s ($0.00 to $10.37 a day at "
        "$0.02/GB); no set of 6 moves has fewer fetches across racks"
    )
    assert proposal.predicted.cross_rack_bytes_per_s_after == 6e6


def test_more_bytes_by_no_more_fetches_are_not_said_to_be_unavoidable():
    built = a_cluster(a=(1, 2), b=(3,), c=(4,)).topic("t", (1, 2), (1, 2), rate=1e3)
    built.rates[tp("t-0")] = 1e6
    for name in ("g", "h"):  # both read the light partition in c, where its replica goes
        built.group(name, member(f"{name}1", "a", "t-0"), member(f"{name}2", "c", "t-1"))
    proposal = reassigned(built)
    assert told(proposal)["fetches_across_racks_before"] == told(proposal)["fetches_across_racks_after"] == 2
    assert "; traffic across racks rises from 2.0 kB/s to 1.0 MB/s (" in proposal.sentence
    assert proposal.sentence.endswith(
        "; moves are chosen by the number of fetches across racks, which stay at 2, and not by their bytes"
    )


def test_one_figure_of_dollars_for_two_rates_is_said_to_be_both():
    built = a_cluster(a=(1, 2), b=(3,), c=(4,)).topic("t", (1, 2), (1, 3), rate=43e3)
    built.rates[tp("t-0")] = 100.0
    said = "traffic across racks rises from 43.0 kB/s to 43.1 kB/s ($0.07 a day before and after at $0.02/GB)"
    assert said in reassigned(built).sentence


def test_without_rates_fetches_are_counted_and_bytes_are_unknown():
    proposal = reassigned(six_led_by_six())
    assert proposal.sentence.endswith(
        "; fetches across racks by followers and readers rise from 0 to 6, their bytes are unknown; no set of 6 moves "
        "has fewer fetches across racks"
    )
    evidence = told(proposal)
    assert (evidence["fetches_across_racks_before"], evidence["fetches_across_racks_after"]) == (0, 6)


def test_new_replicas_go_where_readers_are_so_that_traffic_need_not_rise():
    proposal = reassigned(six_led_by_six(rate=1e6, readers="bca"))
    assert "; traffic across racks stays at 6.0 MB/s ($10.37 a day at $0.02/GB)" in proposal.sentence
    assert "no set of" not in proposal.sentence


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param(
            {"readers": "_bc"}, "fetches across racks by followers rise from 0 to 6, those by readers and their bytes "
            "are unknown", id="a reader of unknown rack",
        ),
        pytest.param(
            {"selector": None, "readers": "bca"}, "fetches across racks by followers rise from 0 to 6, those by "
            "readers and their bytes are unknown", id="a selector that is not known",
        ),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said_and_nothing_is_claimed_of_it(changed, words):
    built = six_led_by_six(readers=changed["readers"])
    built.selector = changed.get("selector", True)
    sentence = reassigned(built).sentence
    assert sentence.endswith(f"; {words}"), sentence


def test_prices_by_pair_of_racks_and_no_price_are_said_as_they_are():
    pairs = reassigned(six_led_by_six(rate=1e6), Limits(price=PriceLimits(between={("a", "b"): 1.0})))
    assert " a day at the prices set)" in pairs.sentence
    free = reassigned(six_led_by_six(rate=1e6), Limits(price=PriceLimits(usd_per_gb=None)))
    assert "traffic across racks rises from 0 B/s to 6.0 MB/s; no set" in free.sentence


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (21_700, 21_700, "stays at 21.7 kB/s"),
        (21_700, 21_700.000001, "stays at 21.7 kB/s"),
        (21_690, 21_710, "rises by 20 B/s to 21.7 kB/s"),
        (21_710, 21_690, "falls by 20 B/s to 21.7 kB/s"),
        (21_700, 25_000, "rises from 21.7 kB/s to 25.0 kB/s"),
    ],
)
def test_a_change_that_rounded_figures_would_hide_is_said_by_its_size(before, after, words):
    assert _rates(before, after) == words


def away(built: Builder, broker: int, rack: str) -> Builder:
    return built.broker(broker, rack, alive=False, fenced=True)


def test_a_leader_that_is_away_gives_way_to_the_replica_whose_broker_leads_least():
    built = away(a_cluster(a=(1, 2), b=(3, 4), c=(5, 6)), 1, "a")
    built.topic("t", (1, 2, 3), isr={0: (2, 3)}).topic("led", (2,), (2,), (3,), (4,), (5,), (6,))
    proposal = reassigned(built)
    (after,) = proposal.after
    assert set(after.value) >= {2, 3}, "the copy that is away moves, not one that is in sync"
    assert after.value[0] == 3, "2 leads two others already, 3 one, and a new replica comes after one that stays"
    assert (
        "; 1 preferred leader changes, by broker: 1 from 1 to 0, 3 from 0 to 1, by rack: a from 1 to 0, b from 0 to 1"
        in (proposal.sentence)
    )


def three_lead_three() -> Builder:
    """Broker 1 is away; 2 and 3 lead three partitions each, 4 none, and 4 holds the most replicas."""
    built = away(a_cluster(a=(1, 2), b=(3,), c=(4,)), 1, "a")
    built.topic("t", (1, 2), isr={0: (2,)}).topic("led", (2, 4), (2, 4), (2, 4), (3, 4), (3, 4), (3, 4))
    return built


def test_a_new_replica_goes_where_it_may_lead_when_every_other_would_lead_more_than_an_even_share():
    proposal = reassigned(three_lead_three())
    (after,) = proposal.after
    assert after.value == (4, 2), "3 holds fewer replicas, but it would lead four of seven then"
    assert "no set of" not in proposal.sentence


def test_leaders_that_must_rise_are_named():
    built = three_lead_three().broker(4, "c", cordoned=True)
    assert reassigned(built).sentence.endswith(
        "; no set of 1 move off brokers that are away keeps all others from leading more partitions of the cluster: "
        "broker 2 from 3 to 4; broker 1 is absent now: an agent holds this until that has lasted 30 min"
    )


def test_a_change_of_leaders_says_who_leads_how_many_before_and_after():
    built = a_cluster(a=(1, 2), b=(3, 4), c=(5, 6)).topic("t", *[(1, 3, 5)] * 6)
    (proposal,) = [one for one in proposed(built) if one.kind is ProposalKind.LEADERS]
    assert proposal.sentence == (
        "Give 4 of 6 partitions of t another preferred leader, so that leaders are even over the racks; no data moves; "
        "4 preferred leaders change, by broker: 1 from 6 to 2, 3 from 0 to 2, 5 from 0 to 2, by rack: a from 6 to 2, "
        "b from 0 to 2, c from 0 to 2; fetches across racks by followers and readers stay at 12, their bytes are "
        "unknown"
    )
    evidence = told(proposal)
    assert evidence["preferred_leaders_by_broker_before"] == ("broker 1: 6",)
    assert evidence["preferred_leaders_by_broker_after"] == ("broker 1: 2", "broker 3: 2", "broker 5: 2")
    assert evidence["preferred_leaders_by_rack_after"] == ("rack a: 2", "rack b: 2", "rack c: 2")


def test_of_leaders_that_may_change_those_do_whose_readers_then_fetch_least_across_racks():
    built = a_cluster(a=(1, 2), b=(3, 4), c=(5, 6)).topic("t", *[(1, 3, 5)] * 6)
    built.selector = False
    racks = dict(enumerate("bbccaa"))
    built.group("g", *[member(f"m{number}", rack, f"t-{number}") for number, rack in racks.items()])
    (proposal,) = [one for one in proposed(built) if one.reason is ProposalReason.LEADERS_EVEN]
    assert [(row.key, row.value[0]) for row in proposal.after] == [("t-0", 3), ("t-1", 3), ("t-2", 5), ("t-3", 5)]
    assert "fetches across racks by followers and readers fall from 16 to 12" in proposal.sentence


def test_a_topic_of_which_a_partition_moves_is_counted_by_the_target_of_that_move():
    built = a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4), (2, 3, 1), rate=1e6)
    built.moving("t-1", (2, 3, 1), (2,), (1,))
    proposal = reassigned(built)
    assert [row.key for row in proposal.before] == ["t-0"], "the partition whose move runs is left alone"
    assert proposal.sentence.startswith("Move 1 of 4 replicas of t")
    assert proposal.predicted.cross_rack_bytes_per_s_before == 1e6, "t-1 is going to be on 2 and 3"

"""What crosses racks and what it costs, against figures worked out by hand.

One megabyte a second across racks is 86.4 GB a day, which is $1.728 at $0.02 a gigabyte.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from agent.money.costs import CrossRackCosts, costs_of
from agent.money.traffic import (
    CrossRackTraffic,
    border,
    bytes_between,
    bytes_words,
    saving_words,
    together,
    usd_between,
    usd_words,
    worst_first,
)
from agent.values.limits import Limits, PriceLimits
from agent.values.snapshot import GroupKind, OtherGroup, TaskStatefulness
from agent.values.weights import FreshWeights
from tests.builders import TABLE as FILE
from tests.builders import WIRE, Run, an_observation, located, reader
from tests.snapshots import Builder, a_cluster, member, process, task, tp

MB = 1_000_000.0
A_DAY = 1.728
"""Dollars for one MB/s across racks."""
LIMITS = Limits()


def two_racks(*, selector: bool | None = False) -> Builder:
    """Brokers 1 in rack a and 2 in rack b, without a rack-aware selector unless told."""
    built = a_cluster(a=(1,), b=(2,))
    built.selector = selector
    return built


def costs(built: Builder) -> CrossRackCosts:
    return costs_of(built.snapshot())


def of(built: Builder, group: str) -> CrossRackTraffic:
    traffic = costs(built).groups[group]
    assert traffic is not None
    return traffic


class TestReads:
    def test_a_partition_led_in_the_other_rack_costs_its_rate(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB).group("shop", member("m", "b", "orders-0"))
        assert of(built, "shop") == CrossRackTraffic({("a", "b"): MB}, 1, 0)
        assert of(built, "shop").usd_per_day(LIMITS) == pytest.approx(A_DAY)

    def test_a_partition_led_in_the_own_rack_costs_nothing(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB).group("shop", member("m", "a", "orders-0"))
        assert of(built, "shop") == CrossRackTraffic({}, 1, 0)
        assert of(built, "shop").usd_per_day(LIMITS) == 0

    @pytest.mark.parametrize(
        ("selector", "crossing", "unknown"),
        [
            pytest.param(True, 0.0, 0, id="read from the replica next door"),
            pytest.param(False, MB, 0, id="read from the leader"),
            pytest.param(None, None, 1, id="not known which of them is read"),
        ],
    )
    def test_a_replica_in_the_readers_rack_serves_where_the_selector_looks_at_racks(
        self, selector: bool | None, crossing: float | None, unknown: int
    ) -> None:
        built = two_racks(selector=selector).topic("orders", (1, 2), rate=MB)
        traffic = of(built.group("shop", member("m", "b", "orders-0")), "shop")
        assert (traffic.bytes_per_s, traffic.unknown) == (crossing, unknown)

    def test_a_replica_that_is_not_in_sync_does_not_serve(self) -> None:
        built = two_racks(selector=True).topic("orders", (1, 2), rate=MB, isr={0: (1,)})
        assert of(built.group("shop", member("m", "b", "orders-0")), "shop").bytes_per_s == MB

    def test_a_member_in_a_rack_that_no_broker_has_crosses_for_certain(self) -> None:
        built = two_racks(selector=True).topic("orders", (1, 2), rate=MB)
        assert of(built.group("shop", member("m", "eu-1a", "orders-0")), "shop") == CrossRackTraffic(
            {("a", "eu-1a"): MB}, 1, 0
        )

    def test_a_topic_read_by_two_groups_is_paid_twice(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB)
        built.group("one", member("m", "b", "orders-0")).group("two", member("n", "b", "orders-0"))
        assert costs(built).consume == CrossRackTraffic({("a", "b"): 2 * MB}, 2, 0)

    def test_weights_say_what_a_group_reads_where_that_is_not_what_the_topic_takes_in(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB).group("shop", member("m", "b", "orders-0"))
        weighed = FreshWeights(
            topics=MappingProxyType({"orders": (MB,)}),
            groups=MappingProxyType({"shop": {tp("orders-0"): 3 * MB}}),
            restores=MappingProxyType({}),
            bytes_per_s=MappingProxyType({tp("orders-0"): MB}),
        )
        traffic = costs_of(built.snapshot(weighed=weighed)).groups["shop"]
        assert traffic is not None
        assert traffic.bytes_per_s == 3 * MB

    def test_a_reader_of_whom_only_a_locator_knows_the_rack_is_served_by_the_leader(self) -> None:
        answers = an_observation(a=(1,), b=(2,)).topic("orders", (1, 2))
        answers.group("shop", reader("m", None, "orders-0"))
        answers.extra["rack_tables"] = (located("file", "host.10.0.0.1=b"),)
        snapshot = Run(Limits(rack_locators=(WIRE, FILE))).look(answers.at()).snapshot
        rated = costs_of(replace(snapshot, bytes_per_s={tp("orders-0"): MB}))
        assert rated.groups["shop"] == CrossRackTraffic({("a", "b"): MB}, 1, 0)


class TestStreams:
    def test_active_tasks_read_sources_and_standbys_read_changelogs(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB).topic("shop-store-changelog", (1,), rate=2 * MB)
        built.streams(
            "shop",
            process("p1", "b", "0_0"),
            process("p2", "b", standby="0_0"),
            topology=[task("0_0", "orders-0", changelogs="shop-store-changelog-0")],
        )
        assert of(built, "shop") == CrossRackTraffic({("a", "b"): 3 * MB}, 2, 0)

    def test_a_kip_1071_group_is_judged_by_its_tasks_too(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB)
        built.streams(
            "shop", process("p1", "b", "0_0"), topology=[task("0_0", "orders-0", TaskStatefulness.STATELESS)],
            kind=GroupKind.STREAMS,
        )  # fmt: skip
        assert of(built, "shop").bytes_per_s == MB

    def test_a_standby_whose_changelog_cannot_be_told_is_unknown_and_not_free(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB)
        built.streams("shop", process("p1", "b", standby="0_0"), topology=[task("0_0", "orders-0")])
        assert of(built, "shop") == CrossRackTraffic({}, 1, 1, unbounded=1)

    def test_an_application_without_a_topology_is_unknown(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB).streams("shop", process("p1", "b", "0_0"), topology=None)
        assert of(built, "shop").bytes_per_s is None
        assert costs(built).hidden_groups == ("shop",)


class TestCopies:
    def test_a_follower_in_the_other_rack_copies_the_partitions_rate(self) -> None:
        built = two_racks().topic("orders", (1, 2), (2, 1), rate=MB)
        assert costs(built).replicate == CrossRackTraffic({("a", "b"): MB, ("b", "a"): MB}, 2, 0)

    def test_a_follower_in_the_leaders_rack_copies_within_it(self) -> None:
        built = a_cluster(a=(1, 2)).topic("orders", (1, 2), rate=MB)
        assert costs(built).replicate == CrossRackTraffic({}, 1, 0)

    def test_an_offline_follower_copies_nothing(self) -> None:
        built = two_racks().topic("orders", (1, 2), rate=MB)
        state = built.topics["orders"].partitions[0]._replace(offline=(2,), isr=(1,))
        built.topics["orders"] = built.topics["orders"]._replace(partitions=(state,))
        assert costs(built).replicate == CrossRackTraffic({}, 0, 0)

    def test_a_rack_pays_for_what_comes_in_and_the_sum_of_all_racks_is_the_total(self) -> None:
        built = two_racks().topic("orders", (1, 2), rate=MB).group("shop", member("m", "b", "orders-0"))
        crossing = costs(built).crossing
        into = {rack: border(crossing, rack).into.usd_per_day(LIMITS) or 0.0 for rack in "ab"}
        assert into == {"a": 0, "b": pytest.approx(2 * A_DAY)}
        assert border(crossing, "a").out.bytes_per_s == 2 * MB
        assert sum(into.values()) == pytest.approx(crossing.usd_per_day(LIMITS))


def shown(traffic: CrossRackTraffic) -> tuple[str | None, str | None]:
    """Dollars a day and bytes a second, as the page has them."""
    usd = usd_between(traffic.usd_per_day(LIMITS), traffic.at_most_usd_per_day(LIMITS))
    return usd, bytes_between(traffic.bytes_per_s, traffic.at_most_bytes_per_s)


class TestUnknown:
    def test_one_unknown_rate_hides_its_own_partition_and_no_other(self) -> None:
        built = two_racks().topic("orders", (1,), (1,), rate=MB).group("shop", member("m", "b", "orders-0 orders-1"))
        del built.rates[tp("orders-1")]
        traffic = of(built, "shop")
        assert traffic == CrossRackTraffic({("a", "b"): MB}, 2, 1, unbounded=1)
        assert shown(traffic) == ("≥ $1.73", "≥ 1.0 MB/s")

    def test_where_nothing_is_known_there_is_no_figure_and_never_a_zero(self) -> None:
        built = two_racks().topic("orders", (1,)).group("shop", member("m", "b", "orders-0"))
        assert (of(built, "shop").bytes_per_s, of(built, "shop").usd_per_day(LIMITS)) == (None, None)

    def test_a_partition_of_unknown_rate_in_the_readers_rack_crosses_nothing_all_the_same(self) -> None:
        built = two_racks().topic("orders", (1,)).group("shop", member("m", "a", "orders-0"))
        assert of(built, "shop") == CrossRackTraffic({}, 1, 0)

    def test_a_partition_into_which_nothing_is_written_crosses_nothing_whoever_reads_it(self) -> None:
        built = two_racks().topic("orders", (1,), rate=0.0).group("shop", member("m", None, "orders-0"))
        assert of(built, "shop") == CrossRackTraffic({}, 1, 0)

    @pytest.mark.parametrize(
        ("built", "at_most"),
        [
            pytest.param(two_racks().group("g", member("m", None, "t-0")).topic("t", (1,), rate=MB), MB, id="reader"),
            pytest.param(
                a_cluster(_=(1,), b=(2,)).group("g", member("m", "b", "t-0")).topic("t", (1,), rate=MB), MB, id="leader"
            ),
            pytest.param(
                two_racks().group("g", member("m", "b", "t-0")).topic("t", (1,), rate=MB, leaders={0: None}), MB,
                id="no leader",
            ),
            pytest.param(two_racks().group("g", member("m", "b", "gone-0")), None, id="a topic that is not shown"),
            pytest.param(
                two_racks().group("g", member("m", "b", None), hidden=True), None, id="a rebalance is running"
            ),
        ],
    )  # fmt: skip
    def test_what_decides_and_is_not_known_makes_the_read_unknown(self, built: Builder, at_most: float | None) -> None:
        traffic = of(built, "g")
        assert (traffic.flows, traffic.parts, traffic.unknown, traffic.bytes_per_s) == ({}, 1, 1, None)
        assert traffic.at_most_bytes_per_s == at_most
        assert traffic.at_most_usd_per_day(LIMITS) == (None if at_most is None else pytest.approx(A_DAY))

    def test_a_part_that_may_cross_is_a_bound_and_at_the_dearest_price(self) -> None:
        built = two_racks().topic("t", (1,), (1,), rate=MB)
        built.group("g", member("m", "b", "t-0"), member("n", None, "t-1"))
        traffic = of(built, "g")
        assert (traffic.bytes_per_s, traffic.at_most_bytes_per_s) == (MB, 2 * MB)
        assert shown(traffic) == ("$1.73 to $3.46", "1.0 MB/s to 2.0 MB/s")
        dear = Limits(price=PriceLimits(usd_per_gb=0.02, between={("b", "a"): 0.2}))
        assert traffic.at_most_usd_per_day(dear) == pytest.approx(A_DAY + 10 * A_DAY)
        only_one_pair = Limits(price=PriceLimits(usd_per_gb=None, between={("a", "b"): 0.02}))
        assert traffic.at_most_usd_per_day(only_one_pair) is None
        assert together((traffic, traffic)).at_most_bytes_per_s == 4 * MB

    def test_where_only_a_bound_is_known_it_is_shown_and_no_figure(self) -> None:
        built = two_racks().group("g", member("m", None, "t-0")).topic("t", (1,), rate=MB)
        traffic = of(built, "g")
        assert shown(traffic) == ("≤ $1.73", "≤ 1.0 MB/s")

    def test_with_a_selector_a_replica_of_unknown_rack_may_be_the_one_next_door(self) -> None:
        built = a_cluster(a=(1,), _=(3,), b=(2,)).topic("t", (1, 3), rate=MB).group("g", member("m", "b", "t-0"))
        assert of(built, "g") == CrossRackTraffic({}, 1, 1, open_bytes_per_s=MB)

    def test_a_group_whose_members_are_not_visible_has_no_figure(self) -> None:
        built = two_racks()
        built.groups["share"] = OtherGroup("share", GroupKind.OTHER, "Stable", "share", "share")
        assert costs(built).groups == {"share": None}

    def test_a_pair_of_racks_without_a_price_has_bytes_and_no_dollars(self) -> None:
        built = two_racks().topic("orders", (1,), rate=MB).group("shop", member("m", "b", "orders-0"))
        traffic = of(built, "shop")
        assert traffic.usd_per_day(Limits(price=PriceLimits(usd_per_gb=None))) is None
        assert traffic.usd_per_day(
            Limits(price=PriceLimits(usd_per_gb=None, between={("a", "b"): 0.01}))
        ) == pytest.approx(A_DAY / 2)


class TestTopics:
    def test_a_topic_tells_who_reads_it_from_where(self) -> None:
        built = two_racks().topic("orders", (1,), (2,), rate=MB)
        built.group("shop", member("m", "b", "orders-0"), member("n", "b", "orders-1"))
        built.group("audit", member("o", "a", "orders-0 orders-1"))
        topic = costs(built).topics["orders"]
        assert (topic.in_bytes_per_s, topic.in_unknown, topic.leaders) == (2 * MB, 0, {"a": 1, "b": 1})
        assert [(one.group, one.rack, one.partitions, one.traffic.bytes_per_s) for one in topic.readings] == [
            ("audit", "a", 2, MB),
            ("shop", "b", 2, MB),
        ]
        assert topic.consume.bytes_per_s == 2 * MB

    def test_the_reads_of_all_topics_come_to_those_of_all_groups(self) -> None:
        built = two_racks().topic("orders", (1,), (2,), rate=MB).topic("audit", (2,), rate=2 * MB)
        built.group("shop", member("m", "b", "orders-0 audit-0"), member("n", "a", "orders-1"))
        found = costs(built)
        assert sum(topic.consume.bytes_per_s or 0 for topic in found.topics.values()) == found.consume.bytes_per_s
        assert found.crossing.parts == 3


class TestOrder:
    def test_the_dearest_come_first_by_what_they_may_cost_and_the_unknown_before_the_free(self) -> None:
        limits = Limits(price=PriceLimits(between={("b", "a"): 0.2}))
        rows = {
            "unknown": CrossRackTraffic({}, 1, 1, unbounded=1),
            "perhaps many bytes at a high price": CrossRackTraffic({}, 1, 1, open_bytes_per_s=2 * MB),
            "at least some bytes": CrossRackTraffic({("a", "b"): 1.5 * MB}, 2, 1, unbounded=1),
            "nothing": CrossRackTraffic({}, 1, 0),
            "many bytes": CrossRackTraffic({("a", "b"): 2 * MB}, 1, 0),
            "few bytes at a high price": CrossRackTraffic({("b", "a"): MB}, 1, 0),
            "not visible": None,
        }
        ranked = sorted(rows, key=lambda name: (worst_first(rows[name], limits), name))
        assert ranked == [
            "perhaps many bytes at a high price",
            "few bytes at a high price",
            "many bytes",
            "at least some bytes",
            "not visible",
            "unknown",
            "nothing",
        ]

    def test_without_a_price_bytes_decide(self) -> None:
        limits = Limits(price=PriceLimits(usd_per_gb=None))
        few, many = CrossRackTraffic({("a", "b"): 1.0}, 1, 0), CrossRackTraffic({("a", "b"): 2.0}, 1, 0)
        assert worst_first(many, limits) < worst_first(few, limits)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (bytes_words(0.0), "0 B/s"),
        (bytes_words(999.4), "999 B/s"),
        (bytes_words(1_250_000.0), "1.2 MB/s"),
        (bytes_words(99_940.0), "99.9 kB/s"),
        (bytes_words(120_900.0), "121 kB/s"),
        (bytes_words(3.1e9, at_least=True), "≥ 3.1 GB/s"),
        (usd_words(0.0), "$0.00"),
        (bytes_words(0.3), "< 1 B/s"),
        (usd_words(0.0004), "$0.00040"),
        (usd_words(0.000_518_4), "$0.00052"),
        (usd_words(0.000_000_2), "< $0.000001"),
        (usd_words(0.01), "$0.01"),
        (saving_words(6.91), "$6.91"),
        (saving_words(0.0), "$0.00"),
        (saving_words(-0.0), "$0.00"),
        (saving_words(-0.000_52), "costs $0.00052"),
        (saving_words(None), None),
        (usd_between(0.04, 0.09), "$0.04 to $0.09"),
        (usd_between(0.04, None), "≥ $0.04"),
        (usd_between(None, 0.09), "≤ $0.09"),
        (usd_between(0.0, 0.09), "≤ $0.09"),
        (usd_between(0.04, 0.04), "$0.04"),
        (usd_between(0.0, 0.0), "$0.00"),
        (usd_between(None, None), None),
        (bytes_between(0.0, 0.0), "0 B/s"),
        (usd_words(1234.5), "$1,234.50"),
        (usd_words(3.1, at_least=True), "≥ $3.10"),
        (bytes_words(None), None),
        (usd_words(None), None),
    ],
)
def test_figures_as_a_person_reads_them(said: str | None, words: str | None) -> None:
    assert said == words

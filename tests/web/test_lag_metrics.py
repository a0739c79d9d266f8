"""Consumer lag under the names of kafka-lag-exporter: off unless asked for, bounded, silent about what is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.snapshot import Snapshot
from agent.web.metrics import SeriesCaps
from agent.web.money_metrics import LAG_METRICS, ConsumerLags, LagDetail, Sample
from tests.snapshots import a_cluster, member, tp
from tests.web.test_metrics import series, state
from tests.web.test_money_metrics import EMPTY

SUM, MAX = "kafka_consumergroup_group_sum_lag", "kafka_consumergroup_group_max_lag"
TOPIC, PARTITION = "kafka_consumergroup_group_topic_sum_lag", "kafka_consumergroup_group_lag"
OFFSET, LATEST = "kafka_consumergroup_group_offset", "kafka_partition_latest_offset"
LEFT_OUT = "rackwise_consumer_lags_left_out"


def a_world(**changes: object) -> Snapshot:
    """``shop`` is 60 and 1 behind in orders, and 5 in returns; ``audit`` has read all of orders but one partition."""
    built = a_cluster(a=(1,)).topic("orders", (1,), (1,)).topic("returns", (1,))
    built.group("shop", member("m", "a", "orders-0 orders-1 returns-0"))
    built.group("audit", member("n", "a", "orders-0 orders-1"))
    committed = {"shop": {tp("orders-0"): 40, tp("orders-1"): 99, tp("returns-0"): 5}, "audit": {tp("orders-0"): 98}}
    ends = {tp("orders-0"): 100, tp("orders-1"): 100, tp("returns-0"): 10}
    whole = replace(built.snapshot(), cluster_id="c-1", end_offsets=ends, committed_offsets=committed)
    return replace(whole, **changes)  # type: ignore[arg-type] # a builder's keywords


def samples(snapshot: Snapshot, detail: LagDetail, most: int = 500) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, Sequence[Sample]] = dict(ConsumerLags(detail, most).samples(replace(EMPTY, snapshot=snapshot)))
    return {name: dict(rows) for name, rows in found.items()}


def test_lags_are_there_by_group_topic_and_partition() -> None:
    found = samples(a_world(), "partition")
    assert found[SUM] == {("c-1", "audit"): 2, ("c-1", "shop"): 66}
    assert found[MAX] == {("c-1", "audit"): 2, ("c-1", "shop"): 60}
    assert found[TOPIC] == {("c-1", "audit", "orders"): 2, ("c-1", "shop", "orders"): 61, ("c-1", "shop", "returns"): 5}
    assert found[PARTITION] == {
        ("c-1", "audit", "orders", "0"): 2, ("c-1", "shop", "orders", "0"): 60, ("c-1", "shop", "orders", "1"): 1,
        ("c-1", "shop", "returns", "0"): 5,
    }  # fmt: skip
    assert found[OFFSET][("c-1", "shop", "orders", "0")] == 40
    assert found[LATEST] == {("c-1", "orders", "0"): 100, ("c-1", "orders", "1"): 100, ("c-1", "returns", "0"): 10}
    assert found[LEFT_OUT] == {("group",): 0, ("topic",): 0, ("partition",): 0}


@pytest.mark.parametrize(
    ("detail", "levels"),
    [("none", ()), ("group", (SUM, MAX)), ("topic", (SUM, MAX, TOPIC)),
     ("partition", (SUM, MAX, TOPIC, PARTITION, OFFSET, LATEST))],
)  # fmt: skip
def test_a_level_has_itself_and_the_coarser_ones(detail: LagDetail, levels: tuple[str, ...]) -> None:
    assert set(samples(a_world(), detail)) == {*levels, *((LEFT_OUT,) if levels else ())}


def test_without_the_switch_the_page_has_no_series_of_them() -> None:
    named = {one.name for one in LAG_METRICS}
    assert not {name for name, _ in series(state())} & named
    lagging = state(replace(EMPTY, snapshot=a_world()))
    assert {name for name, _ in series(lagging, SeriesCaps(consumer_lag="partition"))} >= named


def test_a_lag_that_is_unknown_has_no_sample_and_is_not_zero() -> None:
    """``audit`` has no commit for orders-1: what it has read of the other does not make it caught up."""
    caught_up = a_world(committed_offsets={"audit": {tp("orders-0"): 100}})
    found = samples(caught_up, "partition")
    assert found[SUM] == found[TOPIC] == {}
    assert found[PARTITION] == {("c-1", "audit", "orders", "0"): 0}
    assert "shop" not in str(found)  # its commits did not answer


def test_each_level_has_those_that_lag_most_and_counts_the_others() -> None:
    found = samples(a_world(), "partition", most=1)
    assert found[SUM] == {("c-1", "shop"): 66}
    assert found[TOPIC] == {("c-1", "shop", "orders"): 61}
    assert found[PARTITION] == {("c-1", "shop", "orders", "0"): 60}
    assert found[LATEST] == {("c-1", "orders", "0"): 100}
    assert found[LEFT_OUT] == {("group",): 1, ("topic",): 2, ("partition",): 3}


@pytest.mark.parametrize("part", [ObservationPart.GROUPS, ObservationPart.TOPICS])
def test_what_is_left_out_is_not_counted_where_not_everything_is_listed(part: ObservationPart) -> None:
    gap = Gap(part, GapCause.TIMED_OUT, "", "late")
    assert LEFT_OUT not in samples(a_world(gaps=(gap,)), "partition")


def test_the_page_is_bounded_whatever_the_number_of_partitions() -> None:
    built = a_cluster(a=(1,))
    groups, topics = 40, 25
    for number in range(topics):
        built.topic(f"t-{number}", *((1,) for _ in range(20)))
    snapshot = built.snapshot()
    every = [row.id for topic in snapshot.topics.values() for row in topic.partitions]
    for number in range(groups):
        built.group(f"g-{number}", member("m", "a", " ".join(f"{one.topic}-{one.partition}" for one in every)))
    world = replace(
        built.snapshot(), end_offsets=dict.fromkeys(every, 1_000),
        committed_offsets={f"g-{number}": dict.fromkeys(every, number) for number in range(groups)},
    )  # fmt: skip
    found = samples(world, "partition")
    assert sum(len(rows) for rows in found.values()) <= 6 * 500 + 3
    assert found[LEFT_OUT][("partition",)] == groups * len(every) - 500


def test_names_that_look_alike_once_they_are_cut_stay_apart() -> None:
    long = "x" * 230
    built = a_cluster(a=(1,)).topic(f"{long}1", (1,)).topic(f"{long}2", (1,))
    built.group("g", member("m", "a", f"{long}1-0 {long}2-0"))
    at = {tp(f"{long}1-0"): 1, tp(f"{long}2-0"): 2}
    world = replace(built.snapshot(), end_offsets=dict.fromkeys(at, 9), committed_offsets={"g": at})
    page = series(state(replace(EMPTY, snapshot=world)), SeriesCaps(consumer_lag="partition"))
    assert sorted(value for (name, _), value in page.items() if name == PARTITION) == [7, 8]


def test_a_cycle_is_worked_out_once_however_often_it_is_scraped() -> None:
    lags, cycle = ConsumerLags("partition", 500), replace(EMPTY, snapshot=a_world())
    assert lags.samples(cycle) is lags.samples(cycle)
    assert lags.samples(replace(cycle, snapshot=a_world(committed_offsets={})))[SUM] == []

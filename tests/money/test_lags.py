"""How far behind a group is: end offsets minus commits, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from agent.money.costs import GroupLag, lag_of
from agent.values.snapshot import GroupKind, OtherGroup, Snapshot
from tests.snapshots import Builder, a_cluster, member, tp


def snapshot(built: Builder, ends: dict[str, int], committed: dict[str, int] | None) -> Snapshot:
    offsets = {} if committed is None else {"shop": {tp(name): at for name, at in committed.items()}}
    return replace(
        built.snapshot(), end_offsets={tp(name): end for name, end in ends.items()}, committed_offsets=offsets
    )


def shop(*assigned: str) -> Builder:
    built = a_cluster().topic("orders", (1,), (2,)).topic("old", (1,))
    return built.group("shop", *(member(f"m{n}", "a", held) for n, held in enumerate(assigned)))


def test_lag_is_the_sum_over_partitions_and_the_worst_is_named() -> None:
    seen = snapshot(shop("orders-0 orders-1"), {"orders-0": 100, "orders-1": 50}, {"orders-0": 40, "orders-1": 49})
    assert lag_of(seen, "shop") == GroupLag(61, tp("orders-0"), 60, 2, 0)


def test_a_group_that_has_read_everything_is_behind_by_zero_and_has_no_worst_partition() -> None:
    seen = snapshot(shop("orders-0"), {"orders-0": 7}, {"orders-0": 7})
    assert lag_of(seen, "shop") == GroupLag(0, None, 0, 1, 0)


def test_a_partition_that_is_held_without_a_commit_is_unknown_and_not_caught_up() -> None:
    seen = snapshot(shop("orders-0 orders-1"), {"orders-0": 100, "orders-1": 50}, {"orders-0": 40})
    assert lag_of(seen, "shop") == GroupLag(60, tp("orders-0"), 60, 2, 1)


def test_a_partition_whose_end_did_not_answer_is_unknown() -> None:
    assert lag_of(snapshot(shop("orders-0"), {}, {"orders-0": 40}), "shop") == GroupLag(None, None, None, 1, 1)


def test_a_partition_of_the_topic_that_nobody_holds_counts() -> None:
    seen = snapshot(shop("orders-0"), {"orders-0": 1, "orders-1": 9}, {"orders-0": 1, "orders-1": 2})
    assert lag_of(seen, "shop") == GroupLag(7, tp("orders-1"), 7, 2, 0)


def test_a_topic_that_is_no_longer_subscribed_does_not_count() -> None:
    seen = snapshot(shop("orders-0"), {"orders-0": 1, "old-0": 900}, {"orders-0": 1, "old-0": 2})
    assert lag_of(seen, "shop") == GroupLag(0, None, 0, 1, 0)


def test_of_a_group_without_members_all_commits_count_but_for_topics_that_are_gone() -> None:
    seen = snapshot(shop(), {"orders-0": 5, "old-0": 9}, {"orders-0": 1, "old-0": 2, "deleted-0": 3})
    assert lag_of(seen, "shop") == GroupLag(11, tp("old-0"), 7, 2, 0)


def test_a_commit_newer_than_the_end_that_was_asked_before_it_is_caught_up() -> None:
    assert lag_of(snapshot(shop("orders-0"), {"orders-0": 5}, {"orders-0": 6}), "shop") == GroupLag(0, None, 0, 1, 0)


def test_without_an_answer_about_commits_nothing_is_told() -> None:
    assert lag_of(snapshot(shop("orders-0"), {"orders-0": 5}, None), "shop") is None


def test_a_group_that_commits_nothing_has_no_lag() -> None:
    built = a_cluster()
    built.groups["shop"] = OtherGroup("shop", GroupKind.OTHER, "Stable", "connect", "classic")
    assert lag_of(snapshot(built, {}, {}), "shop") is None

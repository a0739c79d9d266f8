"""Where rackwise's own topics live: every replica in a rack of its own, as long as racks are left."""

from __future__ import annotations

from collections import Counter

import pytest

from agent.record.own_topics import place_replicas
from agent.values.observation import RawBroker


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[RawBroker]:
    return [RawBroker(n, f"h{n}", 9092, rack, n in fenced) for n, rack in enumerate(racks, start=1)]


@pytest.mark.parametrize(
    ("cluster", "partitions", "replicas", "placed"),
    [
        pytest.param(brokers("a", "b", "c"), 3, 3, ((1, 2, 3), (2, 3, 1), (3, 1, 2)), id="one broker a rack"),
        pytest.param(
            brokers("a", "a", "b", "b", "c", "c"), 2, 3, ((1, 3, 5), (2, 4, 6)), id="two brokers a rack take turns"
        ),
        pytest.param(brokers("a", "a", "a", "b"), 2, 2, ((1, 4), (2, 4)), id="a small rack carries more"),
        pytest.param(brokers("a", "a", "b"), 1, 3, ((1, 2, 3),), id="fewer racks than replicas"),
        pytest.param(brokers("a", "b"), 2, 3, ((1, 2), (2, 1)), id="fewer brokers than replicas"),
        pytest.param(brokers("a", "b", "c", fenced=(2,)), 1, 3, ((1, 3),), id="a fenced broker takes nothing"),
        pytest.param(brokers("a", None, None, "b"), 1, 2, ((1, 4),), id="known racks before unknown ones"),
        pytest.param(brokers(None, None, None), 2, 2, ((1, 2), (3, 1)), id="no rack is known"),
    ],
)
def test_placement(
    cluster: list[RawBroker], partitions: int, replicas: int, placed: tuple[tuple[int, ...], ...]
) -> None:
    assert place_replicas(cluster, partitions, replicas) == placed


def test_brokers_and_leaders_are_evenly_loaded() -> None:
    placed = place_replicas(brokers(*"aabbcc"), 12, 3)
    assert set(Counter(broker for partition in placed for broker in partition).values()) == {6}
    assert set(Counter(partition[0] for partition in placed).values()) == {2}
    assert all(len({"aabbcc"[broker - 1] for broker in partition}) == 3 for partition in placed)

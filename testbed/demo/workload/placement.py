"""Replica placements of the workload: well spread, or intentionally bad.

Invariant: equal input gives equal placements; brokers and racks are sorted before they are chosen from.
A broker without a rack counts as a rack of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

Replicas = tuple[tuple[int, ...], ...]
"""Partition -> brokers, the preferred leader first."""


def spread(racks: Mapping[int, str | None], partitions: int, replication_factor: int) -> Replicas:
    """No two replicas share a rack while there are racks enough; leaders take turns over racks and brokers."""
    by_rack = _by_rack(racks)
    return tuple(_turn(by_rack, partition, replication_factor) for partition in range(partitions))


def leaders_in_rack(racks: Mapping[int, str | None], rack: str, partitions: int, replication_factor: int) -> Replicas:
    """As `spread`, but every preferred leader is in one rack."""
    leaders = sorted(broker for broker, its in racks.items() if its == rack)
    others = _by_rack({broker: its for broker, its in racks.items() if its != rack})
    return tuple(
        (leaders[partition % len(leaders)], *_turn(others, partition, replication_factor - 1))
        for partition in range(partitions)
    )


def crowded(racks: Mapping[int, str | None], partitions: int) -> Replicas | None:
    """Two replicas in one rack although another is free; None where no rack has two brokers or no other is there."""
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    by_rack = _by_rack(known)
    full = [brokers for brokers in by_rack if len(brokers) > 1]
    if not full or len(by_rack) < 2:
        return None
    first, second = full[0][:2]
    return tuple((first, second) if partition % 2 == 0 else (second, first) for partition in range(partitions))


def _by_rack(racks: Mapping[int, str | None]) -> list[list[int]]:
    names = sorted({rack if rack is not None else f"\0{broker}" for broker, rack in racks.items()})
    return [sorted(broker for broker, rack in racks.items() if name in (rack, f"\0{broker}")) for name in names]


def _turn(by_rack: list[list[int]], partition: int, replication_factor: int) -> tuple[int, ...]:
    replicas: list[int] = []
    size = sum(len(brokers) for brokers in by_rack)
    step = 0
    while len(replicas) < min(replication_factor, size):
        brokers = by_rack[(partition + step) % len(by_rack)]
        # A rack's brokers take turns from one round over the racks to the next.
        at = partition // len(by_rack) + step // len(by_rack)
        free = [broker for broker in (*brokers[at % len(brokers) :], *brokers) if broker not in replicas]
        if free:
            replicas.append(free[0])
        step += 1
    return tuple(replicas)

"""Where rackwise's own topics live: every replica of a partition in a rack of its own as long as racks are left.

Pure and deterministic (KIP-36's rule, for topics that are created with explicit replica lists). Priorities: distinct
racks, then even load of brokers, then the lowest id. A broker without a rack counts as an unknown rack: it
comes last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.values.observation import RawBroker


def place_replicas(
    brokers: Sequence[RawBroker], partitions: int, replication_factor: int
) -> tuple[tuple[int, ...], ...]:
    """One replica list per partition, the preferred leader first; shorter lists where there are fewer brokers."""
    usable = sorted((broker for broker in brokers if not broker.fenced), key=lambda broker: broker.id)
    load: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    placed: list[tuple[int, ...]] = []
    for _ in range(partitions):
        chosen = _one_partition(usable, min(replication_factor, len(usable)), load)
        chosen.sort(key=lambda broker: (leaders[broker], broker))
        leaders[chosen[0]] += 1
        placed.append(tuple(chosen))
    return tuple(placed)


def _one_partition(brokers: Sequence[RawBroker], replicas: int, load: Counter[int]) -> list[int]:
    chosen: list[int] = []
    racks: Counter[str | None] = Counter()
    for _ in range(replicas):
        free = (broker for broker in brokers if broker.id not in chosen)
        best = min(free, key=lambda broker: (racks[broker.rack], broker.rack is None, load[broker.id], broker.id))
        chosen.append(best.id)
        racks[best.rack] += 1
        load[best.id] += 1
    return chosen

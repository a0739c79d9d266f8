"""Partitions with more replicas than racks: where the rest after an even split shall go.

With four replicas and three racks, two and two and none obeys "at most two in a rack" and still leaves a rack empty.
Such partitions are spread here so that no rack holds two more than another that could take one (KIP-36). Every step
moves one replica from a fullest to an emptiest rack, so no smaller number of moves ends as evenly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from agent.values.snapshot import Snapshot
from assignors.problem import Broker, ReplicaSet, TopicPartition


def wide_and_usual(sets: Iterable[ReplicaSet], brokers: Sequence[Broker]) -> tuple[list[ReplicaSet], list[ReplicaSet]]:
    """Partitions that the rule "at most ceil(RF / racks)" leaves uneven, and all others."""
    racks = len({broker.rack for broker in brokers if broker.rack is not None})
    wide: list[ReplicaSet] = []
    usual: list[ReplicaSet] = []
    for one in sets:
        count = len(one.replicas)
        uneven = racks > 2 and count > racks and count % racks not in (0, racks - 1)
        (wide if uneven else usual).append(one)
    return wide, usual


def spread_wide(
    sets: Iterable[ReplicaSet], brokers: Sequence[Broker], snapshot: Snapshot
) -> Mapping[TopicPartition, tuple[int, ...]]:
    """New replica lists for those that can be more even; of equal racks the one nearest to leader and readers takes.

    Inside a rack the broker with the fewest replicas is taken first.
    """
    load = Counter(b for topic in snapshot.topics.values() for state in topic.partitions for b in state.replicas)
    spread: dict[TopicPartition, tuple[int, ...]] = {}
    for one in sorted(sets, key=attrgetter("id")):
        replicas = one.replicas
        while (step := _step(one, replicas, brokers, load)) is not None:
            giver, taker = step
            load[giver] -= 1
            load[taker] += 1
            replicas = tuple(taker if replica == giver else replica for replica in replicas)
        if replicas != one.replicas:
            spread[one.id] = replicas
    return spread


def _step(
    one: ReplicaSet, replicas: tuple[int, ...], brokers: Sequence[Broker], load: Mapping[int, int]
) -> tuple[int, int] | None:
    """(broker that loses, broker that gains), from the fullest rack to the emptiest that can take one."""
    rack_of = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    held = Counter(rack_of[replica] for replica in replicas)
    takers = [b for b in brokers if b.accepts and b.rack is not None and b.id not in replicas]
    if not takers or not held:
        return None
    led_in, readers = rack_of[one.replicas[0]], dict(one.readers)

    def far(rack: str | None) -> int:
        """What one replica more in that rack adds to the fetches across racks."""
        return (rack != led_in) - (0 if held[rack or ""] else readers.get(rack or "", 0))

    taker = min(takers, key=lambda b: (held[b.rack or ""], far(b.rack), load[b.id], b.id))
    fullest = min(held, key=lambda rack: (-held[rack], rack == led_in, rack))
    if held[fullest] - held[taker.rack or ""] < 2:
        return None
    # A broker that accepts nothing is relieved first; the preferred leader stays as long as it can.
    shut = {broker.id for broker in brokers if not broker.accepts}
    stays = one.replicas[0] if one.keeps_leader else None
    givers = [replica for replica in replicas if rack_of[replica] == fullest and replica != stays]
    giver = max(givers, key=lambda replica: (replica in shut, replica != replicas[0], load[replica], replica))
    return giver, taker.id

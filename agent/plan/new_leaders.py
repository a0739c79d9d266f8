"""New preferred leaders for the partitions whose present one gives its replica away.

That happens where its broker is away and its rack holds a replica too many, or where its broker is gone and its replica
stays listed while another one moves. Of the replicas that the partition has
afterwards one leads, chosen for all such partitions at once: no broker leads more than it does now or than an even
share, where that can be; then no rack; then fewest fetches across racks; then a replica that stays. Only where no order
of the replicas comes to this may a new replica go to another broker, so that this one leads.

Invariant: as many replicas move as before, and no rack holds more of a partition than it must.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agent.plan.even import Seats
from agent.plan.found import Scene, gone_brokers
from agent.plan.reading import Readers
from agent.values.snapshot import PartitionState
from assignors.optimal import optimal_leaders
from assignors.problem import Broker, LeaderCandidate, LeaderRoom, TopicPartition

List = tuple[int, ...]
_Ways = dict[int, List]
"""Leader -> the replica list that it leads, itself first."""


def with_new_leaders(
    lists: Mapping[TopicPartition, List],
    states: Iterable[PartitionState],
    brokers: Iterable[Broker],
    scene: Scene,
    readers: Mapping[TopicPartition, Readers],
) -> dict[TopicPartition, List]:
    """The lists, with another leader where the preferred one changes."""
    gone = frozenset[int]() if scene.limits.plan.keep_leaders else gone_brokers(scene.found)
    changed = {state.id: state for state in states if state.id in lists and _led_anew(state, lists[state.id], gone)}
    if not changed:
        return dict(lists)
    seats = Seats(scene.snapshot, scene.held, scene.limits)
    ways = {name: _orders(state, lists[name], seats) for name, state in changed.items()}
    ways = {name: of for name, of in ways.items() if of}
    room = seats.room(Counter(changed[name].replicas[0] for name in ways), hard=False)
    chosen = _choose(ways, changed, seats, room, readers)
    if _exceeds(chosen.values(), room):
        takers = {broker.id: broker.rack for broker in brokers if broker.accepts and broker.rack is not None}
        for name, of in ways.items():
            for leader, replicas in _elsewhere(changed[name], lists[name], takers, seats.rack_of):
                of.setdefault(leader, replicas)
        chosen = _choose(ways, changed, seats, room, readers)
    return {**lists, **{name: ways[name][leader] for name, leader in chosen.items()}}


def _led_anew(state: PartitionState, after: List, gone: frozenset[int]) -> bool:
    return after[0] != state.replicas[0] or (after[0] in gone and after != state.replicas)


def _orders(state: PartitionState, after: List, seats: Seats) -> _Ways:
    """Led by an in-sync replica that stays or, as they are in sync by the end, by a new one."""
    able = [b for b in after if b in seats.may_lead and (b in state.isr or b not in state.replicas)]
    return {broker: _led_by(after, broker) for broker in able}


def _elsewhere(
    state: PartitionState, after: List, takers: Mapping[int, str], rack_of: Mapping[int, str]
) -> Iterator[tuple[int, List]]:
    """Led by a broker that takes the place of a new replica."""
    racks = len(set(rack_of.values()))
    most = -(-len(after) // racks)
    alone = racks > 2 and len(after) > racks and len(after) % racks not in (0, racks - 1)
    for new in [broker for broker in after if broker not in state.replicas]:
        held = Counter(rack_of.get(broker) for broker in after if broker != new)
        for taker, rack in takers.items():
            fits = rack == rack_of[new] or (not alone and held[rack] < most)
            if fits and taker not in after and taker not in state.replicas:
                yield taker, _led_by(tuple(taker if broker == new else broker for broker in after), taker)


def _choose(
    ways: Mapping[TopicPartition, _Ways],
    states: Mapping[TopicPartition, PartitionState],
    seats: Seats,
    room: LeaderRoom,
    readers: Mapping[TopicPartition, Readers],
) -> dict[TopicPartition, int]:
    candidates = []
    for name, of in ways.items():
        size = len(of)
        candidates.append(
            [
                LeaderCandidate(
                    leader,
                    0,
                    2 * size * seats.fetched_across(replicas, leader, readers.get(name))
                    + size * (leader not in states[name].replicas)
                    + place,
                )
                for place, (leader, replicas) in enumerate(of.items())
            ]
        )
    return dict(zip(ways, optimal_leaders(candidates, room), strict=True))


def _exceeds(leaders: Iterable[int], room: LeaderRoom) -> bool:
    of_broker = Counter(leaders)
    of_rack: Counter[str] = Counter()
    for broker, count in of_broker.items():
        of_rack[room.rack_of[broker]] += count
    return any(count > room.brokers.get(broker, 0) for broker, count in of_broker.items()) or any(
        count > room.racks.get(rack, 0) for rack, count in of_rack.items()
    )


def _led_by(replicas: List, leader: int) -> List:
    """The leader changes places with the first."""
    order = list(replicas)
    place = order.index(leader)
    order[0], order[place] = order[place], order[0]
    return tuple(order)

"""New preferred leaders for the partitions whose present one gives its replica away.

That happens where its broker is away and its rack holds a replica too many. Of the replicas that the partition has
afterwards one leads, chosen for all such partitions at once: no broker leads more than it does now or than an even
share, where that can be; then no rack; then fewest fetches across racks; then a replica that stays.

Invariant: replicas are those of the plan, only their order changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from agent.model.snapshot import PartitionState
from agent.plan.found import Scene
from agent.plan.reading import Readers
from agent.plan.seats import Seats
from assignors.optimal.leaders import Candidate, optimal_leaders
from assignors.problem import TopicPartition

Lists = Mapping[TopicPartition, tuple[int, ...]]


def with_new_leaders(
    lists: Lists,
    states: Iterable[PartitionState],
    scene: Scene,
    readers: Mapping[TopicPartition, Readers],
) -> dict[TopicPartition, tuple[int, ...]]:
    """The lists, with another order where the preferred leader changes."""
    changed = {state.id: state for state in states if state.id in lists and lists[state.id][0] != state.replicas[0]}
    if not changed:
        return dict(lists)
    seats = Seats(scene.snapshot, scene.held, scene.limits)
    options = {name: _candidates(state, lists[name], seats, readers.get(name)) for name, state in changed.items()}
    able = {name: of for name, of in options.items() if of}
    room = seats.room(Counter(changed[name].replicas[0] for name in able), hard=False)
    leaders = dict(zip(able, optimal_leaders(list(able.values()), room), strict=True))
    return {name: _led_by(replicas, leaders.get(name, replicas[0])) for name, replicas in lists.items()}


def _candidates(
    state: PartitionState, after: tuple[int, ...], seats: Seats, readers: Readers | None
) -> list[Candidate]:
    """In-sync replicas that stay and, as they are in sync by the end, new ones."""
    able = [b for b in after if b in seats.may_lead and (b in state.isr or b not in state.replicas)]
    far = {broker: seats.fetched_across(after, broker, readers) for broker in able}
    return [
        Candidate(broker, 0, 2 * len(after) * far[broker] + len(after) * (broker not in state.replicas) + place)
        for place, broker in enumerate(able)
    ]


def _led_by(replicas: tuple[int, ...], leader: int) -> tuple[int, ...]:
    """The leader changes places with the first."""
    order = list(replicas)
    place = order.index(leader)
    order[0], order[place] = order[place], order[0]
    return tuple(order)

"""Optimal assignment of a small consumer group in plain Python, in a tenth of a millisecond.

- A group that is balanced and reads as little across racks as any balanced assignment must stays as it is. The bound is
  exact: the sets of partitions that can be local together are a transversal matroid, so taking the heaviest first is
  optimal; without weights the same is a minimum cut.
- Else one call of the flow solver on the network of ``wiring``, written out as lists.
Answers differ from those of ``solve_large`` at most in ties.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from assignors.optimal.consumer_model import checked_weight, sorted_members
from assignors.optimal.network import CostTooLarge, route
from assignors.problem import ConsumerMember, ConsumerProblem, ConsumerResult, TopicPartition

_new = tuple.__new__
"""What a named tuple's own ``__new__`` calls; without that detour it takes less than half the time."""
_MOST_PARTITIONS = 400
_MOST_RACKS = 5
"""The exact bound looks at 2 to the power of this many sets of racks; beyond, a weaker one is used."""


class _Group(NamedTuple):
    """A group whose members subscribe alike; one entry per partition unless noted."""

    members: list[ConsumerMember]
    partitions: list[TopicPartition]
    mask: list[int]
    """Bit r is set when reading is local in rack r."""
    owner: list[int]
    weight: list[int] | None
    rack: list[int]
    """Member -> rack; -1 for none."""
    racks: int


def solve_small(problem: ConsumerProblem, *, may_stay: bool = True) -> ConsumerResult | None:
    """Solve a small group of equal subscriptions without prices; None when the group is not of that kind.

    Raises ``BadProblem`` as ``optimal_consumer`` does.
    """
    group = _read(problem)
    if group is None:
        return None
    return (_keep(group) if may_stay else None) or _solve(group)


def _read(problem: ConsumerProblem) -> _Group | None:
    members = sorted_members(problem)
    if problem.copartitioned or problem.prices is not None or not members:
        return None
    topics = members[0].topics
    if any(member.topics != topics and {*member.topics} != {*topics} for member in members):
        return None
    names = sorted({name for name in topics if problem.racks.get(name)})
    if not names or sum([len(problem.racks[name]) for name in names]) > _MOST_PARTITIONS:
        return None
    racks: dict[str | None, int] = {None: -1}
    rack = [racks.setdefault(member.rack, len(racks) - 1) for member in members]
    partitions: list[TopicPartition] = []
    sets: list[frozenset[str]] = []
    for name in names:
        partitions += [_new(TopicPartition, (name, number)) for number in range(len(problem.racks[name]))]
        sets += problem.racks[name]
    mask_of = {local: sum([1 << racks[r] for r in local if r in racks]) for local in {*sets}}
    mask = [mask_of[local] for local in sets]
    holder = _holders(members)
    owner = [holder.get(partition, -1) for partition in partitions]
    weight = None
    if problem.weights is not None:
        weights = problem.weights
        weight = [checked_weight(partition, weights.get(partition, 1)) for partition in partitions]
    return _Group(members, partitions, mask, owner, weight, rack, len(racks) - 1)


def _holders(members: list[ConsumerMember]) -> dict[TopicPartition, int]:
    """Partition -> the only member that claims it, or -1 when several do."""
    holder: dict[TopicPartition, int] = {}
    for number, member in enumerate(members):
        for partition in member.owned:
            holder[partition] = number if holder.get(partition, number) == number else -1
    return holder


def _keep(group: _Group) -> ConsumerResult | None:
    """The present assignment as the answer, when nothing can be better and nothing has to move."""
    counts = [0] * len(group.members)
    for owner in group.owner:
        if owner < 0:
            return None
        counts[owner] += 1
    if max(counts) - min(counts) > 1:
        return None
    crossing = _crossing(group, group.owner)
    if crossing and crossing > _least_crossing(group):
        return None
    return _result(group, group.owner, crossing)


def _least_crossing(group: _Group) -> int:
    """The least weight that any balanced assignment reads across racks; less for very many racks."""
    if group.racks > _MOST_RACKS:
        weights = [1] * len(group.mask) if group.weight is None else group.weight
        return sum([weight for weight, mask in zip(weights, group.mask, strict=True) if not mask])
    low, raised = divmod(len(group.partitions), len(group.members))
    in_rack = [group.rack.count(rack) for rack in range(group.racks)]
    members = [0]
    for count in in_rack:
        members += [already + count for already in members]
    room = [low * count + min(raised, count) for count in members]
    if group.weight is None:
        # A minimum cut: for the best set of racks, what fits there and all that can be local elsewhere.
        kinds = Counter(group.mask)
        del kinds[0]
        return len(group.partitions) - min(
            [most + sum([size for mask, size in kinds.items() if mask & ~inside]) for inside, most in enumerate(room)]
        )
    crossing = 0
    wider = [[inside for inside in range(len(room)) if inside & mask == mask] for mask in range(len(room))]
    for weight, mask in sorted(zip(group.weight, group.mask, strict=True), reverse=True):
        if mask and min([room[inside] for inside in wider[mask]]) > 0:
            for inside in wider[mask]:
                room[inside] -= 1
        else:
            crossing += weight
    return crossing


class _Network(NamedTuple):
    """The network as lists; ``carriers`` are the arcs after those of owned partitions, layer by layer."""

    tails: list[int]
    heads: list[int]
    capacities: list[int]
    costs: list[int]
    supplies: list[int]
    pool: list[int]
    """Partition -> its pool's node."""
    carriers: slice


def _solve(group: _Group) -> ConsumerResult | None:
    """Ask the flow solver; None when the weights do not fit one level of costs (the large way takes its time)."""
    net = _network(group)
    try:
        units = route(net.tails, net.heads, net.capacities, net.costs, net.supplies).tolist()
    except CostTooLarge:
        return None
    # Partitions walk along the arcs that carry units, layer by layer, until they reach a member.
    at: list[list[int]] = [[] for _ in net.supplies]
    leaves = iter(units)
    for position, owner in enumerate(group.owner):
        if owner < 0 or next(leaves):
            at[net.pool[position]].append(position)
    layers = net.carriers
    for tail, head, count in zip(net.tails[layers], net.heads[layers], units[layers], strict=True):
        if count:
            at[head] += at[tail][:count]
            del at[tail][:count]
    client = list(group.owner)
    for member in range(len(group.members)):
        for position in at[member]:
            client[position] = member
    return _result(group, client, _crossing(group, client))


def _crossing(group: _Group, client: list[int]) -> int:
    weight = group.weight
    crossing = 0
    for position, (mask, member) in enumerate(zip(group.mask, client, strict=True)):
        rack = group.rack[member]
        if rack < 0 or not mask >> rack & 1:
            crossing += 1 if weight is None else weight[position]
    return crossing


def _network(group: _Group) -> _Network:
    """Nodes: members, hubs by rack and one for no rack, "any rack", those who take one more, pools by (mask, weight).

    Every partition with an owner is an arc of its own, which carries one unit when it leaves. One unit of weight
    costs more than moving all partitions.
    """
    members = len(group.members)
    low, raised = divmod(len(group.partitions), members)
    lift = len(group.partitions) + 1
    hub, anywhere = members, members + group.racks + 1
    tails, heads, costs, pool = [], [], [], []
    supplies = [-low] * members + [0] * (group.racks + 2) + [-raised]
    pools: dict[tuple[int, int], int] = {}
    weights = [1] * len(group.mask) if group.weight is None else group.weight
    for owner, kind in zip(group.owner, zip(group.mask, weights, strict=True), strict=True):
        node = pools.get(kind)
        if node is None:
            node = pools[kind] = len(supplies)
            supplies.append(0)
        pool.append(node)
        if owner < 0:
            supplies[node] += 1
            continue
        supplies[owner] += 1
        rack, (mask, weight) = group.rack[owner], kind
        tails.append(owner)
        heads.append(node)
        costs.append(0 if rack >= 0 and mask >> rack & 1 else -weight * lift)
    first, many = len(tails), [len(group.partitions)]
    for (mask, weight), node in pools.items():
        for rack in range(group.racks):
            if mask >> rack & 1:
                tails.append(node)
                heads.append(hub + rack)
                costs.append(1)
        tails.append(node)
        heads.append(anywhere)
        costs.append(weight * lift + 1)
    tails += [anywhere] * (group.racks + 1)
    heads += range(hub, anywhere)
    tails += [hub + rack if rack >= 0 else anywhere - 1 for rack in group.rack]
    heads += range(members)
    last = len(tails)
    capacities = [1] * first + many * (last - first)
    if raised:
        tails += range(members)
        heads += [anywhere + 1] * members
        capacities += [1] * members
    costs += [0] * (len(tails) - len(costs))
    return _Network(tails, heads, capacities, costs, supplies, pool, slice(first, last))


def _result(group: _Group, client: list[int], crossing: int) -> ConsumerResult:
    taken: list[list[TopicPartition]] = [[] for _ in group.members]
    moved = 0
    for position, (owner, member) in enumerate(zip(group.owner, client, strict=True)):
        taken[member].append(group.partitions[position])
        moved += owner not in (member, -1)
    return ConsumerResult(
        assignment={m.id: tuple(partitions) for m, partitions in zip(group.members, taken, strict=True)},
        crossing=crossing,
        moved=moved,
        lower_bound=crossing,
        optimal=True,
    )

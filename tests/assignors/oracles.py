"""Answers found without any flow: by trying every possibility, slow and plain, so that nothing in them is clever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product

from assignors.measure import sole_owners
from assignors.problem import (
    ConsumerProblem,
    ReplicaProblem,
    ReplicaSet,
    TaskProblem,
    TaskProcess,
    TaskResult,
    TopicPartition,
)

Loads = tuple[int, ...]


def best_consumer(problem: ConsumerProblem) -> tuple[Loads, int, int]:
    """Loads sorted descending, crossing weight and moves of the best assignment."""
    owner = sole_owners((member.id, member.owned) for member in problem.members)
    partitions, choices = [], []
    for topic in sorted(problem.racks):
        readers = [member for member in problem.members if topic in member.topics]
        for number in range(len(problem.racks[topic]) if readers else 0):
            partitions.append(TopicPartition(topic, number))
            choices.append(readers)
    best: tuple[Loads, int, int] | None = None
    for readers in product(*choices):
        counts = Counter(member.id for member in readers)
        loads = tuple(sorted((counts[member.id] for member in problem.members), reverse=True))
        if best is not None and loads > best[0]:
            continue
        crossing = moved = 0
        for partition, member in zip(partitions, readers, strict=True):
            crossing += crossing_weight(problem, partition, member.rack)
            moved += owner.get(partition, member.id) != member.id
        if best is None or (loads, crossing, moved) < best:
            best = loads, crossing, moved
    assert best is not None
    return best


def crossing_weight(problem: ConsumerProblem, partition: TopicPartition, rack: str | None) -> int:
    replicas = problem.racks[partition.topic][partition.partition]
    if rack in replicas:
        return 0
    weight = 1 if problem.weights is None else problem.weights.get(partition, 1)
    if problem.prices is None:
        return weight
    if rack is None or not replicas:
        return weight * max([1, *problem.prices.values()])
    return weight * min(problem.prices.get((each, rack), 1) for each in replicas)


def best_copartitioned(problem: ConsumerProblem) -> tuple[int, int, int]:
    """Crossing weight, moves and sum of squared unit counts of the best assignment with range's promises."""
    owner = sole_owners((member.id, member.owned) for member in problem.members)
    members = {member.id: member for member in problem.members}
    alike: dict[tuple[frozenset[str], int], list[str]] = {}
    for topic in sorted(problem.racks):
        readers = frozenset(member.id for member in problem.members if topic in member.topics)
        if readers:
            alike.setdefault((readers, len(problem.racks[topic])), []).append(topic)
    best: tuple[int, int, int] | None = None
    per_group = [list(even_deals(sorted(readers), size)) for readers, size in alike]
    for deals in product(*per_group):
        crossing = moved = 0
        units = Counter(name for deal in deals for name in deal)
        for topics, deal in zip(alike.values(), deals, strict=True):
            for topic in topics:
                for number, name in enumerate(deal):
                    partition = TopicPartition(topic, number)
                    crossing += crossing_weight(problem, partition, members[name].rack)
                    moved += owner.get(partition, name) != name
        score = crossing, moved, sum(count * count for count in units.values())
        if best is None or score < best:
            best = score
    assert best is not None
    return best


def even_deals(names: list[str], size: int) -> Iterator[tuple[str, ...]]:
    for deal in product(names, repeat=size):
        counts = Counter(deal)
        if all(size // len(names) <= counts[name] <= -(-size // len(names)) for name in names):
            yield deal


def best_single_standbys(problem: TaskProblem, result: TaskResult) -> tuple[int, int, int]:
    """Sharing, imbalance and cost of the best placement of one standby per stateful task, beside the given actives."""
    active = {task: name for name, tasks in result.active.items() for task in tasks}
    tasks = [task for task in problem.tasks if task.stateful]
    choices = [[process for process in problem.processes if process.id != active[task.id]] for task in tasks]
    return min(standby_score(problem, result, [(each,) for each in picks]) for picks in product(*choices))


def standby_score(
    problem: TaskProblem, result: TaskResult, standbys: list[tuple[TaskProcess, ...]]
) -> tuple[int, int, int]:
    """Sharing, imbalance and cost of standbys, one entry per stateful task."""
    process = {each.id: each for each in problem.processes}
    active = {task: process[name] for name, tasks in result.active.items() for task in tasks}
    load = Counter(each.id for each in active.values())
    shared = cost = 0
    for task, picks in zip([task for task in problem.tasks if task.stateful], standbys, strict=True):
        shared += shared_copies(problem, [active[task.id], *picks])
        for each in picks:
            load[each.id] += 1
            cost += problem.traffic_cost * sum(each.rack not in racks for racks in task.changelogs)
            cost += problem.non_overlap_cost * (task.id not in (*each.active, *each.standby))
    capacity = sum(each.capacity for each in problem.processes)
    imbalance = 0
    for each in problem.processes:
        low, high = each.capacity * load.total() // capacity, -(-each.capacity * load.total() // capacity)
        imbalance += max(0, low - load[each.id])
        imbalance += sum(extra.bit_length() for extra in range(1, load[each.id] - high + 1))
    return shared, imbalance, cost


def shared_copies(problem: TaskProblem, copies: list[TaskProcess]) -> int:
    shared = 0
    for tag in problem.rack_aware_tags or ("rack",):
        known = {tag_value(problem, each, tag) for each in problem.processes} - {None}
        values = {tag_value(problem, each, tag) for each in copies} - {None}
        if known:
            shared += len(copies) - max(1, len(values))
    return shared


def tag_value(problem: TaskProblem, process: TaskProcess, tag: str) -> str | None:
    return dict(process.tags).get(tag) if problem.rack_aware_tags else process.rack


def least_shared(problem: TaskProblem, active: TaskProcess, standbys: int) -> int:
    others = [process for process in problem.processes if process.id != active.id]
    return min(shared_copies(problem, [active, *picks]) for picks in combinations(others, standbys))


def best_replicas(problem: ReplicaProblem) -> tuple[tuple[int, ...], set[TopicPartition]]:
    """The best score of a plan, and the partitions for which no placement keeps the rule."""
    infeasible: set[TopicPartition] = set()
    options: list[list[tuple[int, ...]]] = []
    for partition in problem.partitions:
        ways = list(replica_ways(problem, partition))
        if not ways:
            infeasible.add(partition.id)
        options.append(ways or [partition.replicas])
    return min(replica_score(problem, ways) for ways in product(*options)), infeasible


def replica_ways(problem: ReplicaProblem, partition: ReplicaSet) -> Iterator[tuple[int, ...]]:
    """Every allowed set of replicas of a partition."""
    rack = {broker.id: broker.rack for broker in problem.brokers}
    racks = {name for name in rack.values() if name is not None}
    most = -(-len(partition.replicas) // len(racks)) if racks else len(partition.replicas)
    old = set(partition.replicas)
    before = Counter(name for name in map(rack.get, old) if name is not None)
    over = {name: count - most for name, count in before.items() if count > most}
    unknown = sum(rack[each] is None for each in old)
    for new in combinations(sorted(rack), len(old)):
        gone, come = old - set(new), set(new) - old
        after = Counter(name for name in map(rack.get, new) if name is not None)
        accepted = all(broker.accepts or broker.id not in come for broker in problem.brokers)
        sure = all(rack[each] is not None for each in gone | come)
        keeps_rule = all(count <= most for count in after.values())
        helps = not unknown or all(after[rack[each]] + unknown <= most for each in come)
        shut = [broker.id for broker in problem.brokers if not broker.accepts]
        kept = all(each not in shut or rack[each] in over for each in gone)
        kept = kept and not (partition.keeps_leader and partition.replicas[0] in gone)
        needed = len(gone) == sum(over.values()) and all(rack[each] in over for each in gone)
        if accepted and sure and keeps_rule and helps and kept and (needed or (problem.balance and not unknown)):
            yield new


def replica_score(problem: ReplicaProblem, lists: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """What ``optimal_replicas`` minimises, in its order."""
    counts: Counter[int] = Counter()
    copied = moves = leader_moves = drained = far = 0
    shut = {broker.id for broker in problem.brokers if not broker.accepts}
    for partition, new in zip(problem.partitions, lists, strict=True):
        counts.update(new)
        gone = set(partition.replicas) - set(new)
        copied += len(gone) * (1 if partition.size_bytes is None else partition.size_bytes)
        moves += len(gone)
        leader_moves += partition.replicas[0] in gone
        drained += len(gone & shut)
        far += fetched_across(problem, partition, new)
    squares = sum(counts[broker.id] ** 2 for broker in problem.brokers if broker.accepts)
    if problem.balance:
        return squares, copied, moves, -drained, leader_moves
    return copied, moves, -drained, leader_moves, far, squares


def fetched_across(problem: ReplicaProblem, partition: ReplicaSet, new: tuple[int, ...]) -> int:
    """Fetches of followers and readers from another rack, the leader being in the rack where it is now."""
    rack = {broker.id: broker.rack for broker in problem.brokers}
    led_in, racks = rack.get(partition.replicas[0]), {rack.get(each) for each in new}
    followers = sum(rack.get(each) != led_in for each in new)
    return followers + sum(readers for name, readers in partition.readers if name not in racks)

"""How long the exact optimum takes from names to names, how much memory it needs, and how both grow from a tenth.

CPU time of one call (for small groups: per group, garbage collector on), best of several, every size in a fresh
process, problems seeded. Consumer groups own everything already, a tenth of it in the wrong place; tasks of a
scaled-out application: a tenth of the processes is new; replicas: 5 % of the partitions break the rack rule.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from assignors import (
    ConsumerMember,
    ConsumerProblem,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaSet,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TopicPartition,
    optimal_consumer,
    optimal_replicas,
    optimal_tasks,
)

PAIRS = tuple(frozenset(pair) for pair in ("ab", "bc", "ca"))


class Case(NamedTuple):
    make: Callable[[int], Sequence[Any]]
    """Size -> problems; the figure is the time for all of them."""
    solve: Callable[[Any], Any]
    size: int
    goal_s: float
    rounds: int


def main() -> int:
    if len(sys.argv) == 3:
        print(json.dumps(measured(CASES[sys.argv[1]], int(sys.argv[2]))))
        return 0
    for name, case in CASES.items():
        small, large = in_fresh_process(name, case.size // 10), in_fresh_process(name, case.size)
        growth = {"growth_cpu": round(large["cpu_s"] / small["cpu_s"], 2)}
        line = {"bench": "optimal", "case": name, "size": case.size, **large, **growth}
        print(json.dumps({**line, "goal": case.goal_s, "ok": large["cpu_s"] <= case.goal_s}), flush=True)
    return 0


def in_fresh_process(name: str, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_optimal", name, str(size)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measured(case: Case, size: int) -> dict[str, float]:
    problems = case.make(size)
    case.solve(problems[0])
    before = peak_mib()
    best = float("inf")
    proven = 0
    for _ in range(case.rounds):
        start = time.process_time()
        results = [case.solve(problem) for problem in problems]
        best = min(best, time.process_time() - start)
        proven = sum(result.optimal for result in results)
    assert proven == len(problems), f"only {proven} of {len(problems)} results are proven"
    return {"cpu_s": best, "us_each": round(1e6 * best / len(problems), 1), "more_mib": round(peak_mib() - before, 1)}


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def small_groups(groups: int) -> list[ConsumerProblem]:
    """Ten members and ten partitions each; three of ten groups can be improved."""
    rng = random.Random(groups)
    return [consumer_group(rng, topics=1, partitions=10, members=10, wrong=group % 10 < 3) for group in range(groups)]


def large_group(partitions: int) -> list[ConsumerProblem]:
    rng = random.Random(partitions)
    return [consumer_group(rng, topics=50, partitions=partitions // 50, members=partitions // 50, wrong=True)]


def weighted_group(partitions: int) -> list[ConsumerProblem]:
    rng = random.Random(partitions)
    (group,) = large_group(partitions)
    weights = {
        TopicPartition(topic, n): rng.randrange(10**9) for topic, s in group.racks.items() for n in range(len(s))
    }
    return [ConsumerProblem(members=group.members, racks=group.racks, weights=weights)]


def consumer_group(rng: random.Random, *, topics: int, partitions: int, members: int, wrong: bool) -> ConsumerProblem:
    racks: dict[str, tuple[frozenset[str], ...]] = {}
    owned: list[list[TopicPartition]] = [[] for _ in range(members)]
    for topic in range(topics):
        name = f"topic-{topic:03}"
        holders = [(number + topic * partitions) % members for number in range(partitions)]
        # The rack of the owner (member number modulo 3) holds a replica, but for a tenth of the partitions if wrong.
        racks[name] = tuple(PAIRS[(holder + (wrong and number % 10 == 0)) % 3] for number, holder in enumerate(holders))
        for number, holder in enumerate(holders):
            owned[holder].append(TopicPartition(name, number))
    return ConsumerProblem(
        members=tuple(
            ConsumerMember(
                id=f"member-{number:05}-{rng.getrandbits(64):016x}", rack="abc"[number % 3], topics=tuple(racks),
                owned=tuple(mine),
            )
            for number, mine in enumerate(owned)
        ),
        racks=racks,
    )  # fmt: skip


def application(tasks: int, *, new: bool, standbys: int = 0, **options: Any) -> TaskProblem:
    """100 tasks per process, 20 subtopologies, 3 racks, one source; owners in turn, the last tenth new if so asked."""
    rng = random.Random(tasks)
    processes = tasks // 100
    owners = processes - processes // 10 if new else processes
    ids = [TaskId(number % 20, number // 20) for number in range(tasks)]
    active: list[list[TaskId]] = [[] for _ in range(processes)]
    for number, task in enumerate(ids):
        active[number % owners].append(task)
    return TaskProblem(
        tasks=tuple(
            StreamsTask(id=task, stateful=True, sources=(rng.choice(PAIRS),), changelogs=(rng.choice(PAIRS),))
            for task in ids
        ),
        processes=tuple(
            TaskProcess(id=f"process-{number:05}", rack="abc"[number % 3], capacity=1, active=tuple(mine))
            for number, mine in enumerate(active)
        ),
        num_standby_replicas=standbys,
        **options,
    )


def cluster(replicas: int, *, balance: bool = False) -> list[ReplicaProblem]:
    rng = random.Random(replicas)
    partitions = []
    for number in range(replicas // 3):
        racks = rng.sample(range(6), 3)
        if number % 20 == 0:
            racks[1] = racks[0]
        nodes = [rack + 6 * place for rack, place in zip(racks, rng.sample(range(50), 3), strict=True)]
        size = rng.randrange(10**11)
        partitions.append(ReplicaSet(id=TopicPartition("t", number), replicas=tuple(nodes), size_bytes=size))
    brokers = tuple(ReplicaBroker(id=number, rack=f"rack-{number % 6}") for number in range(300))
    return [ReplicaProblem(brokers=brokers, partitions=tuple(partitions), balance=balance)]


CASES = {
    "groups of 10 x 10, 30 % improvable": Case(small_groups, optimal_consumer, 10_000, 1.0, 3),
    "one group, 50 partitions a member": Case(large_group, optimal_consumer, 100_000, 0.5, 5),
    "one group, bytes as weights": Case(weighted_group, optimal_consumer, 100_000, 3.0, 3),
    "tasks, fixed counts": Case(
        lambda size: [application(size, new=False, counts="fixed", balance="none")], optimal_tasks, 100_000, 0.25, 5
    ),
    "tasks, free counts with subtopology bounds": Case(
        lambda size: [application(size, new=True)], optimal_tasks, 100_000, 0.5, 5
    ),
    "tasks with one standby each": Case(
        lambda size: [application(size, new=True, standbys=1)], optimal_tasks, 10_000, 1.5, 3
    ),
    "replicas, rack rule": Case(cluster, optimal_replicas, 1_000_000, 10.0, 1),
    "replicas, rack rule and even brokers": Case(
        lambda size: cluster(size, balance=True), optimal_replicas, 30_000, 10.0, 1
    ),
}

if __name__ == "__main__":
    sys.exit(main())

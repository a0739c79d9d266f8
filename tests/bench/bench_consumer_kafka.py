"""How long it takes to say what Kafka's client-side assignors will give, how that grows from a tenth, and Kafka beside.

CPU time from names to names, best of several, every size in a fresh process with the collector as the command has it.
Kafka's own classes run the same rebalances in one warmed-up JVM in the same run; ``times_kafka`` is our time over
theirs. Three racks, replicas in two of them where a case says so. "join": no partition is owned; "again": all own what
the first round gave; "leave": a tenth of the members has left.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from agent.process import collect_seldom
from assignors import (
    ClassicMember,
    ClassicProblem,
    GroupAssignment,
    cooperative_sticky_assign,
    range_assign,
    roundrobin_assign,
    sticky_assign,
)
from assignors.kafka.consumer_problem import leader_order
from tests.assignors.kafka.consumer_oracle import ConsumerOracle, consumer_oracle

ASSIGNORS: dict[str, Callable[[ClassicProblem], GroupAssignment]] = {
    "consumer.range": range_assign,
    "consumer.roundrobin": roundrobin_assign,
    "consumer.sticky": sticky_assign,
    "consumer.cooperative_sticky": cooperative_sticky_assign,
}
ROUNDS = ("join", "again", "leave")
GOAL_TIMES_KAFKA = 10
PAIRS = tuple(frozenset(pair) for pair in ("ab", "bc", "ca"))


class Case(NamedTuple):
    assignor: str
    topics: int
    partitions: int
    """Of each topic."""
    members: int
    racks: bool
    subscriptions: int
    """Members fall into so many parts, each with topics of its own."""
    goal_s: float
    rounds: int
    kafka_rounds: int
    """0 where Kafka would need minutes and eight gigabytes."""


CASES = {
    "cooperative-sticky": Case("consumer.cooperative_sticky", 50, 200, 200, True, 1, 0.4, 7, 30),
    "cooperative-sticky without racks": Case("consumer.cooperative_sticky", 50, 200, 200, False, 1, 0.4, 7, 30),
    "cooperative-sticky, two subscriptions": Case("consumer.cooperative_sticky", 100, 200, 500, True, 2, 2, 5, 3),
    "sticky": Case("consumer.sticky", 50, 200, 200, True, 1, 0.4, 7, 30),
    "range": Case("consumer.range", 50, 200, 200, True, 1, 0.4, 7, 30),
    "round-robin": Case("consumer.roundrobin", 50, 200, 200, False, 1, 0.4, 7, 30),
    "cooperative-sticky, a million": Case("consumer.cooperative_sticky", 500, 2000, 2000, True, 1, 20, 1, 0),
    "range, a million": Case("consumer.range", 500, 2000, 2000, True, 1, 20, 1, 0),
}


def main() -> int:
    if len(sys.argv) == 3:
        print(json.dumps(measured(CASES[sys.argv[1]], int(sys.argv[2]))))
        return 0
    with tempfile.TemporaryDirectory() as directory, consumer_oracle(Path(directory), "-Xmx2g") as kafka:
        for name, case in CASES.items():
            # A tenth of the partitions: a tenth of the topics.
            small, large = in_fresh_process(name, case.topics // 10), in_fresh_process(name, case.topics)
            theirs = kafka_times(kafka, case) if case.kafka_rounds else {}
            for step in ROUNDS:
                figures = {"cpu_s": large[step], "growth_cpu": round(large[step] / small[step], 2)}
                sizes = {"size": f"{case.topics} x {case.partitions}, {case.members} members"}
                resident = {"resident_mib": large["resident_mib"]}
                kept = judged(case, large[step], theirs.get(step))
                print(
                    json.dumps(
                        {"bench": "consumer_kafka", "case": f"{name}, {step}", **sizes, **figures, **resident, **kept}
                    ),
                    flush=True,
                )
    return 0


def judged(case: Case, cpu_s: float, kafka_s: float | None) -> dict[str, object]:
    """The goals of a case beside what was reached."""
    if kafka_s is None:
        return {"goal": case.goal_s, "ok": cpu_s <= case.goal_s}
    times = round(cpu_s / kafka_s, 2)
    fast_enough = cpu_s <= case.goal_s and times <= GOAL_TIMES_KAFKA
    return {
        "kafka_cpu_s": kafka_s, "times_kafka": times, "goal_times_kafka": GOAL_TIMES_KAFKA,
        "goal": case.goal_s, "ok": fast_enough,
    }  # fmt: skip


def in_fresh_process(name: str, topics: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_consumer_kafka", name, str(topics)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measured(case: Case, topics: int) -> dict[str, float]:
    collect_seldom()
    figures = {}
    for step, problem in rebalances(case, topics):
        best = float("inf")
        for _ in range(case.rounds):
            began = time.process_time()
            ASSIGNORS[case.assignor](problem)
            best = min(best, time.process_time() - began)
        figures[step] = best
    figures["resident_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return figures


def kafka_times(kafka: ConsumerOracle, case: Case) -> dict[str, float]:
    found = {}
    for step, problem in rebalances(case, case.topics):
        answer = kafka(case.assignor, as_case(problem), rounds=case.kafka_rounds, limit_s=300)
        assert "cpu_s" in answer, answer
        found[step] = answer["cpu_s"]
    return found


def rebalances(case: Case, topics: int) -> list[tuple[str, ClassicProblem]]:
    first = group(case, topics)
    again = owning(first, ASSIGNORS[case.assignor](first))
    left = tuple(member for number, member in enumerate(again.members) if number % 10)
    return list(zip(ROUNDS, (first, again, replace(again, members=left)), strict=True))


def group(case: Case, topics: int) -> ClassicProblem:
    rng = random.Random(881)
    racks = {
        f"topic-{number:03}": tuple(
            rng.choice(PAIRS) if case.racks else frozenset[str]() for _ in range(case.partitions)
        )
        for number in range(topics)
    }
    names = tuple(racks)
    return ClassicProblem(
        members=leader_order(
            ClassicMember(
                id=f"consumer-{number}-{rng.getrandbits(64):016x}",
                topics=names[number % case.subscriptions :: case.subscriptions],
                rack="abc"[number % 3] if case.racks else None,
            )
            for number in range(case.members)
        ),
        racks=racks,
    )


def owning(problem: ClassicProblem, result: GroupAssignment) -> ClassicProblem:
    members = tuple(
        replace(member, owned=result.assignment[member.id], generation=1, subscription_generation=1)
        for member in problem.members
    )
    return replace(problem, members=members)


def as_case(problem: ClassicProblem) -> dict[str, Any]:
    """The problem as the input of a case."""
    members = []
    for member in problem.members:
        owned: dict[str, list[int]] = {}
        for topic, number in member.owned:
            owned.setdefault(topic, []).append(number)
        members.append(
            {
                "id": member.id, "instance_id": None, "rack": member.rack, "topics": list(member.topics),
                "generation": member.generation, "subscription_generation": member.subscription_generation,
                "owned": owned,
            }
        )  # fmt: skip
    topics = [
        {"name": name, "partitions": len(sets), "replica_racks": list(map(sorted, sets))}
        for name, sets in problem.racks.items()
    ]
    return {"topics": topics, "members": members}


if __name__ == "__main__":
    sys.exit(main())

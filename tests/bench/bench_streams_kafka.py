"""How long it takes to say what Kafka's Streams assignor will give, how that grows, and Kafka's own classes beside.

"move": the rack-aware step alone, KIP-925's flow: tasks with one source dealt round-robin over three racks, two
replicas; the same mapping as Kafka's is asserted where Kafka runs. "assign": the whole high-availability assignor,
every task running on one of nine tenths of the clients, the others new and empty. CPU time from objects to objects,
best of several, every size in a fresh process. ``growth_cpu`` is the figure over that of a problem with a quarter of
the tasks, ``exponent`` its logarithm to that base. Kafka's classes run in one JVM in the same run, where they finish
within a minute or so; ``times_faster`` is their time over ours.
"""

from __future__ import annotations

import json
import math
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
from assignors.cases.streams import RUNNERS
from assignors.cases.streams_input import streams_problem
from assignors.kafka.high_availability import high_availability
from assignors.kafka.rack_aware import rack_awareness
from assignors.kafka.rack_optimize import optimize_active
from assignors.kafka.streams_problem import StreamsProblem, client_states
from tests.assignors.kafka.streams_cases import an_optimization
from tests.assignors.kafka.streams_oracle import StreamsOracle, streams_oracle

PART = 4


class Case(NamedTuple):
    assignor: str
    tasks: int
    clients: int
    strategy: str
    goal_s: float
    kafka: bool
    """Whether Kafka finishes in time."""
    racks: int = 3
    subtopologies: int = 20
    standbys: int = 0
    rounds: int = 3


MOVE, ASSIGN = "streams.rack_optimize", "streams.ha"
CASES = {
    "move, min_traffic, small": Case(MOVE, 200, 20, "min_traffic", 0.5, kafka=True),
    "move, min_traffic": Case(MOVE, 400, 40, "min_traffic", 2, kafka=True),
    "move, min_traffic, large": Case(MOVE, 1_000, 40, "min_traffic", 2, kafka=False),
    "move, min_traffic, huge": Case(MOVE, 10_000, 100, "min_traffic", 30, kafka=False, rounds=1),
    "move, balance_subtopology": Case(MOVE, 200, 20, "balance_subtopology", 2, kafka=True),
    "move, balance_subtopology, large": Case(MOVE, 1_000, 40, "balance_subtopology", 10, kafka=False),
    "move, balance_subtopology, 50 racks": Case(
        MOVE, 180, 50, "balance_subtopology", 5, kafka=False, racks=50, subtopologies=60
    ),
    "assign": Case(ASSIGN, 1_000, 20, "none", 1, kafka=True),
    "assign, one standby": Case(ASSIGN, 1_000, 20, "none", 1, kafka=True, standbys=1),
    "assign, one standby, min_traffic": Case(ASSIGN, 200, 20, "min_traffic", 2, kafka=True, standbys=1),
    "assign, large": Case(ASSIGN, 10_000, 100, "none", 5, kafka=True),
}


def main() -> int:
    if len(sys.argv) == 3:
        print(json.dumps(measured(CASES[sys.argv[1]], int(sys.argv[2]))))
        return 0
    with tempfile.TemporaryDirectory() as directory, streams_oracle(Path(directory), "-Xmx6g") as kafka:
        for name, case in CASES.items():
            part, whole = in_fresh_process(name, case.tasks // PART), in_fresh_process(name, case.tasks)
            growth = whole["cpu_s"] / part["cpu_s"]
            line: dict[str, object] = {
                "bench": "streams_kafka", "case": name, "size": f"{case.tasks} tasks, {case.clients} clients",
                **whole, "growth_cpu": round(growth, 2), "exponent": round(math.log(growth, PART), 2),
            }  # fmt: skip
            if case.kafka:
                theirs = kafka_seconds(kafka, case)
                line |= {"kafka_cpu_s": theirs, "times_faster": round(theirs / whole["cpu_s"], 1)}
            print(json.dumps({**line, "goal": case.goal_s, "ok": whole["cpu_s"] <= case.goal_s}), flush=True)
    return 0


def in_fresh_process(name: str, tasks: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_streams_kafka", name, str(tasks)]
    figures: dict[str, float] = json.loads(
        subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    )
    return figures


def measured(case: Case, tasks: int) -> dict[str, float]:
    collect_seldom()
    problem = replace(streams_problem(application(case, tasks)), max_literal_size=tasks * case.clients)
    run = moving(problem) if case.assignor == MOVE else lambda: high_availability(problem)
    best = float("inf")
    for _ in range(case.rounds + 1):  # the first call loads what it needs
        began = time.process_time()
        run()
        best = min(best, time.process_time() - began)
    return {
        "cpu_s": round(best, 4),
        "resident_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def moving(problem: StreamsProblem) -> Callable[[], object]:
    awareness = rack_awareness(problem)

    def run() -> object:
        clients = sorted(client_states(problem).values(), key=lambda client: client.key)
        return optimize_active(problem, awareness, clients, problem.tasks, (10, 1))

    return run


def kafka_seconds(kafka: StreamsOracle, case: Case) -> float:
    whole = application(case, case.tasks)
    theirs = kafka(case.assignor, whole, limit_s=280, rounds=1 if case.assignor == MOVE else 2)
    assert "error" not in theirs, theirs
    ours = RUNNERS[case.assignor](whole, "4.3.1")
    assert ours["clients"] == theirs["clients"], f"{case}: not what Kafka gives"
    seconds: float = round(theirs["cpu_s"], 4)
    return seconds


def application(case: Case, tasks: int) -> dict[str, Any]:
    shape = {"racks": case.racks, "subtopologies": case.subtopologies}
    found = an_optimization(925, tasks, case.clients, strategy=case.strategy, **shape)
    if case.assignor == MOVE:
        return found
    rng = random.Random(441)
    owner = {task: rng.randrange(case.clients * 9 // 10) for task in found["tasks"]["all"]}
    for number, client in enumerate(found["clients"]):
        client["assigned_active"] = []
        client["prev_active"] = [task for task, at in owner.items() if at == number]
        client["lags"] = {task: -2 if at == number else 1_000_000 for task, at in owner.items()}
    found["configs"]["num_standby_replicas"] = case.standbys
    rack = found["rack"]
    rack["described"] = {f"log-{topic}": partitions for topic, partitions in rack["cluster"].items()}
    rack["changelog_partitions"] = {
        task: [f"log-{source}" for source in of] for task, of in rack["task_partitions"].items()
    }
    return found


if __name__ == "__main__":
    sys.exit(main())

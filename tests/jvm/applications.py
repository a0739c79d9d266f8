"""Random Streams applications as JSON, and the golden file that the Java assignor of tasks is compared with.

    python -m tests.jvm.applications    writes jvm/src/test/resources/applications.jsonl anew

Equal seeds give equal applications. Owners may be gone or contested, racks, lags and tags unknown, threads unequal.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from assignors import StreamsTask, TaskId, TaskProblem, TaskProcess, measure_tasks, optimal_tasks
from assignors.optimal.spread import CopySpread
from assignors.optimal.standby_case import StandbyCase, quality, read_case
from assignors.optimal.standbys import optimal_standbys
from assignors.optimal.task_model import NamedTasks, dense_tasks
from assignors.optimal.tight_flow import Ints

GOLDEN = Path(__file__).parents[2] / "jvm" / "src" / "test" / "resources" / "applications.jsonl"
GOLDEN_SEED = 924
GOLDEN_APPLICATIONS = 300

RUNNING, UNKNOWN = -2, -3
"""Kafka's lags of a running task and of a copy whose offsets are not known."""
END = 50_000
COSTS = ((10, 1), (10, 1), (1, 10), (3, 7), (1_000_000, 1), (1_000_000, 1), (10, 0), (0, 1), (2**31 - 1, 2**31 - 1))

Application = dict[str, Any]
Figures = dict[str, Any]
NO_STANDBYS: Figures = {"shared": 0, "imbalance": 0, "cost": 0}


def random_applications(seed: int, count: int) -> Iterator[Application]:
    """Applications from one task to a hundred and more."""
    rng = random.Random(seed)
    for _ in range(count):
        size = rng.choice(("tiny", "small", "small", "wide"))
        yield _application(rng, *{"tiny": (3, 2, 4), "small": (8, 3, 10), "wide": (20, 4, 40)}[size])


def _application(rng: random.Random, most_processes: int, most_subtopologies: int, most_partitions: int) -> Application:
    racks = "abcdef"[: rng.randint(1, rng.choice((3, 3, 6)))]
    factor = rng.randint(1, 3)
    tasks: dict[str, Any] = {}
    for subtopology in range(rng.randint(1, most_subtopologies)):
        stateful, sources, logs = rng.random() < 0.7, rng.randint(1, 2), rng.randint(1, 2)
        for partition in range(rng.randint(1, most_partitions)):
            tasks[f"{subtopology}_{partition}"] = {
                "stateful": stateful,
                "sources": [_racks(rng, racks, factor) for _ in range(sources)],
                "changelogs": [_racks(rng, racks, factor) for _ in range(logs)] if stateful else [],
            }
    even = rng.random() < 0.6
    processes = {
        f"00000000-0000-0000-0000-{number:012x}": {
            "rack": None if rng.random() < 0.1 else rng.choice(racks),
            "threads": 2 if even else rng.randint(1, 4),
            "tags": {tag: rng.choice("xyz") for tag in ("zone", "cluster") if rng.random() < 0.9},
            "active": [],
            "standby": [],
            "lags": {},
        }
        for number in range(rng.randint(1, most_processes))
    }
    _run(rng, list(processes.values()), tasks)
    traffic_cost, move_cost = rng.choice(COSTS)
    settings = {
        "traffic_cost": traffic_cost,
        "move_cost": move_cost,
        "standbys": rng.choice((0, 1, 1, 1, 2, 3)),
        "warmups": rng.choice((1, 2, 2, 4)),
        "acceptable_lag": rng.choice((0, 10_000, 10_000)),
        "end": rng.choice((0, END, END, END)),
        "tags": rng.choice(([], [], ["zone"], ["zone", "cluster"])),
    }
    return {"tasks": tasks, "processes": processes, "settings": settings}


def _racks(rng: random.Random, racks: str, factor: int) -> list[str] | None:
    if rng.random() < 0.03:
        return rng.choice((None, []))
    places = [*racks, "elsewhere"] if rng.random() < 0.1 else [*racks]
    return sorted(rng.sample(places, min(factor, len(places))))


def _run(rng: random.Random, processes: list[Application], tasks: dict[str, Any]) -> None:
    """Give the application a history: none, dealt in order, local, or anything; with copies of any lag."""
    history = rng.choice(("none", "dealt", "local", "any", "any"))
    copies = rng.choice((0, 0, 1, 2))
    for place, (name, task) in enumerate(tasks.items()):
        if history != "none" and rng.random() < 0.95:
            owners = rng.sample(processes, min(len(processes), 2 if rng.random() < 0.03 else 1))
            if history == "dealt":
                owners = [processes[place * len(processes) // len(tasks)]]
            elif history == "local":
                owners = [each for each in processes if each["rack"] in (task["sources"][0] or ())][:1]
            for owner in owners:
                owner["active"].append(name)
                owner["lags"][name] = RUNNING if rng.random() < 0.95 else rng.randint(0, END)
        for process in rng.sample(processes, min(len(processes), copies)):
            if task["stateful"] and name not in process["active"]:
                process["standby"].append(name)
                process["lags"][name] = rng.choice((0, 100, rng.randint(0, END), UNKNOWN))
    if history == "any":
        processes[0]["active"].append("9_9")
        processes[-1]["standby"].append("9_8")


def problem_of(application: Application) -> TaskProblem:
    """The application as a problem of ``assignors``."""
    settings = application["settings"]
    return TaskProblem(
        tasks=tuple(
            StreamsTask(
                id=task_id(name),
                stateful=task["stateful"],
                sources=tuple(frozenset(racks or ()) for racks in task["sources"]),
                changelogs=tuple(frozenset(racks or ()) for racks in task["changelogs"]),
            )
            for name, task in application["tasks"].items()
        ),
        processes=tuple(
            TaskProcess(
                id=name,
                rack=process["rack"],
                capacity=process["threads"],
                tags=tuple(process["tags"].items()),
                active=tuple(map(task_id, process["active"])),
                standby=tuple(map(task_id, process["standby"])),
            )
            for name, process in application["processes"].items()
        ),
        traffic_cost=settings["traffic_cost"],
        non_overlap_cost=settings["move_cost"],
        num_standby_replicas=settings["standbys"],
        rack_aware_tags=tuple(settings["tags"]),
    )


def task_id(name: str) -> TaskId:
    """The id that Kafka writes so."""
    subtopology, partition = name.split("_")
    return TaskId(int(subtopology), int(partition))


def unique(problem: TaskProblem) -> bool:
    """Whether the least cost says how many partitions cross and how many tasks move: traffic outweighs all moves."""
    return problem.traffic_cost > len(problem.tasks) * problem.non_overlap_cost


def figures(problem: TaskProblem, process_of: Mapping[TaskId, str]) -> Figures:
    """What active tasks cost, and how far processes are off their shares."""
    active: dict[str, list[TaskId]] = {process.id: [] for process in problem.processes}
    for id_, process in process_of.items():
        active[process].append(id_)
    measured = measure_tasks(problem, active)
    return {
        name: getattr(measured, name) for name in ("cost", "crossing", "moved", "off_share", "off_subtopology_share")
    }


def _case(problem: TaskProblem, process_of: Mapping[TaskId, str]) -> tuple[NamedTasks, Ints, StandbyCase]:
    named = dense_tasks(problem)
    number = {process.id: number for number, process in enumerate(named.processes)}
    active = np.array([number[process_of[id_]] for id_ in sorted(process_of)], np.int64)
    stateful = {number: task for number, task in enumerate(named.sorted_tasks()) if task.stateful}
    copies = min(problem.num_standby_replicas, len(named.processes) - 1)
    return named, active, read_case(problem, named, active, stateful, copies)


def quality_of(
    problem: TaskProblem, process_of: Mapping[TaskId, str], standbys: Mapping[TaskId, Sequence[str]]
) -> Figures:
    """How good standbys are for these active tasks."""
    named, _, case = _case(problem, process_of)
    if not case.copies:
        return NO_STANDBYS
    number = {process.id: number for number, process in enumerate(named.processes)}
    placed = [tuple(number[process] for process in standbys[id_]) for id_ in case.stateful]
    return dict(zip(NO_STANDBYS, quality(case, placed), strict=True))


def best_standbys(problem: TaskProblem, process_of: Mapping[TaskId, str]) -> Figures:
    """How good ``optimal_standbys`` makes them for these active tasks."""
    named, active, case = _case(problem, process_of)
    found = optimal_standbys(problem, named, active)[1]
    if not case.copies or found is None:
        return NO_STANDBYS
    return {figure: getattr(found, figure) for figure in NO_STANDBYS}


def one_flow(problem: TaskProblem) -> bool:
    """Whether one flow decides all standbys, so that they are proven optimal."""
    copies = min(problem.num_standby_replicas, len(problem.processes) - 1)
    spread = CopySpread(sorted(problem.processes, key=attrgetter("id")), problem.rack_aware_tags)
    return copies <= 1 or spread.all_apart(copies + 1)


def optimum(application: Application) -> Figures:
    """The figures of ``optimal_tasks``, its processes of tasks in order, and what its standbys are like."""
    problem = problem_of(application)
    result = optimal_tasks(problem)
    process_of = {id_: process for process, ids in result.active.items() for id_ in ids}
    number = {name: number for number, name in enumerate(sorted(application["processes"]))}
    return {
        **figures(problem, process_of),
        "unique": unique(problem),
        "process": [number[process_of[id_]] for id_ in sorted(process_of)],
        "standbys": {"one_flow": one_flow(problem), **best_standbys(problem, process_of)},
    }


def golden_lines() -> list[str]:
    """The golden file, line by line: an application and the figures of its optimum."""
    return [
        json.dumps({**application, "optimum": optimum(application)}, separators=(",", ":"))
        for application in random_applications(GOLDEN_SEED, GOLDEN_APPLICATIONS)
    ]


if __name__ == "__main__":
    GOLDEN.write_text("".join(line + "\n" for line in golden_lines()), "utf-8")
    print(f"{GOLDEN.name}: {GOLDEN_APPLICATIONS} applications")

"""Many random applications: the Java assignor of tasks beside ``optimal_tasks``, judged here.

    python -m tests.jvm.compare_tasks --applications 1500 --seed 1

Ends with exit code 1 and the first applications that differ. Of the target: cost of active tasks (crossing and moves
too where the cost tells them), floor and ceiling of every share, standbys as good as ``optimal_standbys`` makes them
for these active tasks. Of the answer: every task active once and where it can start soonest, no more warm-ups than
allowed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from assignors import TaskId, TaskProblem
from tests.jvm.applications import (
    RUNNING,
    Application,
    best_standbys,
    figures,
    one_flow,
    optimum,
    problem_of,
    quality_of,
    random_applications,
    task_id,
)
from tests.jvm.compare import Ask, compared

MAIN = "rackwise.streams.CompareTasks"


def differences(application: Application, ask: Ask) -> Iterator[str]:
    """What is wrong with the answer to an application."""
    answer = ask(application)
    problem = problem_of(application)
    if answer["fallback"]:
        yield "fell back"
        return
    target = {task_id(name): process for name, process in answer["target"].items()}
    best = optimum(application)
    found = figures(problem, target)
    for figure in found if best["unique"] else ("cost", "off_share", "off_subtopology_share"):
        if found[figure] != best[figure]:
            yield f"{figure} {found[figure]} where {best[figure]} is possible"
    yield from _standbys(problem, target, answer["standbys"])
    yield from _on_the_way(application, answer)


def _standbys(problem: TaskProblem, target: dict[TaskId, str], standbys: dict[str, list[str]]) -> Iterator[str]:
    copies = min(problem.num_standby_replicas, len(problem.processes) - 1)
    for name, processes in standbys.items():
        if len({*processes, target[task_id(name)]}) != copies + 1:
            yield f"{name} has standbys {processes} and its active on {target[task_id(name)]}"
    found = quality_of(problem, target, {task_id(name): processes for name, processes in standbys.items()})
    best = best_standbys(problem, target)
    for figure in found if one_flow(problem) else ("shared",):
        if found[figure] != best[figure]:
            yield f"standbys: {figure} {found[figure]} where {best[figure]} is possible"


def _on_the_way(application: Application, answer: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the answer of this rebalance, given its target."""
    active = {name: process for process, names in answer["active"].items() for name in names}
    if sum(map(len, answer["active"].values())) != len(active) or set(active) != set(application["tasks"]):
        yield "not every task is active once"
    copies = sum(map(len, answer["standby"].values()))
    wanted = sum(map(len, answer["standbys"].values()))
    if copies > wanted + application["settings"]["warmups"]:
        yield f"{copies} copies where {wanted} are wanted and {application['settings']['warmups']} may warm up"
    for name, process in active.items():
        ready = {each for each in application["processes"] if _ready(application, name, each)}
        if ready and process not in ready:
            yield f"{name} has to be restored on {process}, not on {sorted(ready)}"
        if answer["target"][name] in ready and process != answer["target"][name]:
            yield f"{name} waits for {answer['target'][name]}, which has caught up"
    if active != answer["target"] and not answer["follows"]:
        yield "no rebalance follows"


def _ready(application: Application, name: str, process: str) -> bool:
    settings = application["settings"]
    lag = application["processes"][process]["lags"].get(name, settings["end"])
    return not application["tasks"][name]["stateful"] or lag == RUNNING or 0 <= lag <= settings["acceptable_lag"]


def main() -> int:
    """Compare as many applications as asked for."""
    return compared(__doc__ or "", "applications", 1_500, random_applications, _every_difference, MAIN)


def _every_difference(_number: int, application: Application, ask: Ask) -> str | None:
    return "; ".join(differences(application, ask)) or None


if __name__ == "__main__":
    sys.exit(main())

"""Problems whose optimal cost is known: proven elsewhere, and equal to Kafka's own answer where Kafka can finish."""

from __future__ import annotations

import pytest

from assignors import TaskProblem, optimal_tasks, task_defects
from tests.assignors.problem_files import expected_costs, read_problem

EXPECTED = expected_costs()
LARGEST = "t100000"
"""A hundred thousand tasks are some seconds each."""


@pytest.mark.parametrize(
    ("name", "variant", "cost"),
    [
        pytest.param(
            name,
            variant,
            cost,
            id=f"{name} {variant} costs {cost}",
            marks=[pytest.mark.drill] if name.startswith(LARGEST) else [],
        )
        for (name, variant), cost in EXPECTED.items()
    ],
)
def test_known_optimum(name: str, variant: str, cost: int) -> None:
    counts, balance, traffic_cost, non_overlap_cost = variant.split("/")
    tasks, processes = read_problem(name)
    problem = TaskProblem(
        tasks=tasks,
        processes=processes,
        counts="fixed" if counts == "fixed" else "free",
        balance="subtopology" if balance in {"subtopology", "balance_subtopology"} else "none",
        traffic_cost=int(traffic_cost),
        non_overlap_cost=int(non_overlap_cost),
    )
    result = optimal_tasks(problem)
    assert (result.cost, result.lower_bound, result.optimal) == (cost, cost, True)
    assert task_defects(problem, result) == ()


def test_all_problem_files_are_here() -> None:
    assert len({name for name, _ in EXPECTED}) == 11
    assert len(EXPECTED) == 64

"""The same problem gives the same bytes in every process, whatever the hash seed, and large flows prove themselves."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from assignors import (
    TaskProblem,
    optimal_consumer,
    optimal_replicas,
    optimal_tasks,
    task_defects,
)
from assignors.optimal import network
from assignors.optimal.network import NetworkArcs, prices
from assignors.optimal.tight_flow import Ints
from tests.assignors.problem_files import read_problem
from tests.bench.bench_optimal import application, cluster, large_group, small_groups, weighted_group

SCRIPT = """
import hashlib
from assignors import optimal_consumer, optimal_replicas, optimal_tasks
from tests.bench.bench_optimal import application, cluster, large_group, small_groups, weighted_group

results = [*map(optimal_consumer, [*small_groups(20), *large_group(5000), *weighted_group(2500)])]
results += map(optimal_tasks, [application(2000, new=True, standbys=2), application(1000, new=False, counts="fixed")])
results += map(optimal_replicas, [*cluster(3000), *cluster(900, balance=True)])
print(len(results), hashlib.sha256(repr(results).encode()).hexdigest())
"""


def test_no_hash_seed_changes_a_byte() -> None:
    shown = set()
    for seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        shown.add(done.stdout)
    assert len(shown) == 1, shown
    assert shown.pop().startswith("26 ")


@pytest.fixture
def certified(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every flow that is found must come with prices that prove it optimal; counts the arcs of each."""
    proven: list[int] = []
    solve = network.cheapest

    def cheapest(given: NetworkArcs, costs: Ints, supplies: Ints) -> Ints:
        units = solve(given, costs, supplies)
        arcs = given._replace(costs=costs)
        price = prices(arcs, units, len(supplies))
        reduced = arcs.costs + price[arcs.tails] - price[arcs.heads]
        assert (reduced[units < arcs.capacities] >= 0).all()
        assert (reduced[units > 0] <= 0).all()
        proven.append(len(arcs.tails))
        return units

    monkeypatch.setattr(network, "cheapest", cheapest)
    return proven


@pytest.mark.parametrize("counts", ["fixed", "free"])
@pytest.mark.parametrize("name", ["t10000c100_racks6", "t10000c100_scaleout"])
def test_flows_of_ten_thousand_tasks_carry_their_own_proof(name: str, counts: Any, certified: list[int]) -> None:
    tasks, processes = read_problem(name)
    result = optimal_tasks(TaskProblem(tasks=tasks, processes=processes, counts=counts))
    assert result.optimal
    assert max(certified) > 1000


def test_flows_of_large_groups_and_clusters_carry_their_own_proof(certified: list[int]) -> None:
    for problem in (*large_group(20_000), *weighted_group(5000)):
        assert optimal_consumer(problem).optimal
    for plan in (*cluster(30_000), *cluster(3000, balance=True)):
        assert optimal_replicas(plan).optimal
    assert len(certified) >= 4


def test_standbys_of_two_thousand_tasks_carry_their_own_proof(certified: list[int]) -> None:
    problem = application(2000, new=True, standbys=2)
    result = optimal_tasks(problem)
    assert task_defects(problem, result) == ()
    assert result.standbys is not None
    # Racks of 7, 7 and 6 processes each hold one copy of every task, so loads cannot be even.
    assert (result.standbys.shared, result.standbys.missing) == (0, 0)
    assert result.standbys.imbalance == result.standbys.imbalance_bound > 0
    assert result.standbys.cost == result.standbys.cost_bound
    assert len(certified) >= 2


def test_small_groups_are_not_only_fast_but_the_benchmark_is_what_it_says() -> None:
    groups = small_groups(100)
    results = [optimal_consumer(group) for group in groups]
    assert sum(result.moved > 0 for result in results) == 30
    assert all(result.crossing == 0 for result in results)

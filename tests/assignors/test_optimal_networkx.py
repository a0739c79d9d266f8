"""Replicas and standbys against networkx, on problems too large to try everything, level of cost by level of cost."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given

from assignors import (
    ReplicaProblem,
    TaskProblem,
    measure_replicas,
    optimal_replicas,
    optimal_tasks,
    replica_defects,
    task_defects,
)
from tests.assignors.flow_oracles import flow_replicas, flow_standbys
from tests.assignors.oracles import best_replicas, replica_score, tag_value
from tests.assignors.strategies import examples, replica_problems, task_problems

many = examples(200)
some = examples(60)


@many
@given(replica_problems(balance=False, brokers=(2, 9), partitions=12))
def test_mending_the_rule_costs_what_networkx_says(problem: ReplicaProblem) -> None:
    """Every level is a flow here: bytes, replicas, brokers relieved, leaders displaced, fetches, squared counts."""
    check_replicas(problem)


@many
@given(replica_problems(balance=True, brokers=(2, 9), partitions=8))
def test_mending_and_evening_out_costs_what_networkx_says(problem: ReplicaProblem) -> None:
    """Every level is a flow here too, the sum of squared counts first."""
    check_replicas(problem)


def check_replicas(problem: ReplicaProblem) -> None:
    result = optimal_replicas(problem)
    assert replica_defects(problem, result) == ()
    lists, hopeless = flow_replicas(problem)
    after = tuple(result.replicas.get(each.id, each.replicas) for each in problem.partitions)
    assert replica_score(problem, after) == replica_score(problem, lists)
    crowded = {each.id for each in problem.partitions if measure_replicas(replace(problem, partitions=(each,))).crowded}
    assert {each.id for each in result.infeasible} == hopeless & crowded
    assert result.optimal
    assert result.lower_bound == result.moved_bytes


@some
@given(replica_problems(balance=True))
def test_networkx_and_trying_everything_agree(problem: ReplicaProblem) -> None:
    lists, hopeless = flow_replicas(problem)
    assert (replica_score(problem, lists), hopeless) == best_replicas(problem)


@many
@given(task_problems(fixed=False, standbys=1, processes=(2, 6)))
def test_one_standby_costs_what_networkx_says(problem: TaskProblem) -> None:
    """Sharing, imbalance and cost are one flow, with any number of tags."""
    result = optimal_tasks(problem)
    assert task_defects(problem, result) == ()
    found = result.standbys
    assert found is not None
    assert (found.shared, found.imbalance, found.cost) == flow_standbys(problem, result, 1)
    assert (found.shared_bound, found.imbalance_bound, found.cost_bound) == (found.shared, found.imbalance, found.cost)


@many
@given(task_problems(fixed=False, standbys=3, processes=(3, 6)))
def test_several_standbys_stand_between_their_bounds_and_what_networkx_says(problem: TaskProblem) -> None:
    """With one tag (or racks) known of all processes everything is one flow for networkx as well.

    Sharing must be the least. Imbalance and cost must be the least where the result claims it; elsewhere no bound
    may be above what networkx found, and nothing may be better than that, level by level.
    """
    copies = min(problem.num_standby_replicas, len(problem.processes) - 1)
    tag = next(iter(problem.rack_aware_tags), "rack")
    assume(copies > 1 and len(problem.rack_aware_tags) < 2 and any(task.stateful for task in problem.tasks))
    assume(all(tag_value(problem, each, tag) is not None for each in problem.processes))
    result = optimal_tasks(problem)
    assert task_defects(problem, result) == ()
    found = result.standbys
    assert found is not None
    shared, imbalance, cost = flow_standbys(problem, result, copies)
    assert found.shared == found.shared_bound == shared
    assert (found.imbalance, found.cost) >= (imbalance, cost)
    assert found.imbalance_bound <= imbalance
    if found.imbalance == imbalance:
        assert found.cost_bound <= cost
    if len({tag_value(problem, each, tag) for each in problem.processes}) > copies:
        assert (found.imbalance, found.cost) == (imbalance, cost)

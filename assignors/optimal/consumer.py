"""Optimal assignment of a consumer group with proof, under the constraints of Kafka's assignors (KIP-881).

Priorities, in Kafka's order:
1. balance: loads, sorted descending, are lexicographically smallest; with ``copartitioned`` floor or ceil *per topic*;
2. with ``copartitioned``: partition p of all topics with equal subscribers and equal size stays with one member;
3. locality: least weight read across racks, times the price of the rack pair;
4. stickiness: fewest partitions that change their owner;
5. with ``copartitioned``: totals as even as range's balance still allows.

A topic without subscribers or racks is not assigned; a partition without weight weighs 1, one that two members claim
belongs to none; one whose owner no longer subscribes counts as moved.
"""

from __future__ import annotations

from itertools import repeat

import numpy as np

from assignors.optimal.consumer_model import ConsumerModel, dense
from assignors.optimal.consumer_small import solve_small
from assignors.optimal.consumer_units import join
from assignors.optimal.items import ClientBounds, PlacementProblem, PriceLevel, ranked, stable_order
from assignors.optimal.loads import even_bounds, fair_bounds
from assignors.optimal.network import total
from assignors.optimal.placement import place
from assignors.optimal.tight_flow import Ints
from assignors.problem import ConsumerProblem, ConsumerResult, TopicPartition


def optimal_consumer(problem: ConsumerProblem, *, may_stay: bool = True) -> ConsumerResult:
    """Return the optimal assignment of a consumer group; equal input gives an equal answer in any input order.

    ``may_stay`` False: the present assignment is known not to be optimal, which saves a check; the answer is
    as good in either case.
    Groups of up to a few hundred partitions whose members subscribe alike take about a tenth of a millisecond.
    Raises ``BadProblem`` when two members have the same id or a weight is negative or above 2**50.
    """
    small = solve_small(problem, may_stay=may_stay)
    return solve_large(problem) if small is None else small


def solve_large(problem: ConsumerProblem) -> ConsumerResult:
    """Solve a group of any shape and size on arrays; ``optimal_consumer`` decides when this is the faster way."""
    model = dense(problem)
    if not len(model.topic):
        return _result(model, np.zeros(0, np.int64), 0)
    if problem.copartitioned:
        units = join(model)
        placed = place(units.placement)
        return _result(model, placed.client[units.of_partition], placed.bound)
    placed = place(_placement(model))
    return _result(model, placed.client, placed.bound)


def _placement(model: ConsumerModel) -> PlacementProblem:
    weight, weights = (model.weight, model.weights)
    pairs, kind = ranked(model.mask * len(weights) + weight, len(model.tariff) * len(weights))
    cost = model.tariff[pairs // len(weights)] * weights[pairs % len(weights), None]
    one = np.ones(len(pairs), np.int64)
    return PlacementProblem(
        group=model.topic_class[model.topic],
        owner=model.owner,
        kind=kind,
        rack=model.rack,
        prices=(PriceLevel(cost, 0 * one), PriceLevel(0 * cost, one)),
        bounds=_bounds(model),
        eligible=None if model.eligible.all() else model.eligible,
    )


def _bounds(model: ConsumerModel) -> ClientBounds:
    if model.eligible.all():
        return even_bounds(len(model.topic), len(model.rack))
    alike, of_member = np.unique(model.eligible, axis=1, return_inverse=True)
    items = np.bincount(model.topic_class[model.topic], minlength=len(model.eligible))
    return fair_bounds(items, alike, np.bincount(of_member), of_member)


def _result(model: ConsumerModel, client: Ints, bound: int) -> ConsumerResult:
    price = model.tariff[model.mask, model.rack[client]] if len(client) else np.zeros(0, np.int64)
    crossing = total(model.weights[model.weight], price)
    moved = int(((model.owner != client) & model.was_owned).sum())
    return ConsumerResult(
        assignment=_assignment(model, client),
        crossing=crossing,
        moved=moved,
        lower_bound=bound,
        optimal=crossing == bound,
    )


def _assignment(model: ConsumerModel, client: Ints) -> dict[str, tuple[TopicPartition, ...]]:
    by_client = stable_order(client, len(model.ids))
    topics = np.array(model.topics, object)[model.topic[by_client]].tolist()
    # Named tuples made without their Python-level constructor: less than half the time for a million of them.
    pairs = zip(topics, model.number[by_client].tolist(), strict=True)
    partitions: list[TopicPartition] = list(map(tuple.__new__, repeat(TopicPartition), pairs))
    ends = np.cumsum(np.bincount(client, minlength=len(model.ids))).tolist()
    return {
        member: tuple(partitions[start:end]) for member, start, end in zip(model.ids, [0, *ends], ends, strict=False)
    }

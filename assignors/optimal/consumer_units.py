"""Co-partitioned units: partition p of all topics with equal subscribers and equal size, for one member.

Every subscriber gets floor or ceil of the units of each such group of topics. A unit with several owners prefers each
by the number of partitions that it would keep there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assignors.optimal.consumer_model import ConsumerModel
from assignors.optimal.items import GroupBounds, ItemHoldings, PlacementProblem, PriceLevel
from assignors.optimal.tight_flow import Ints


class PlacementUnits(NamedTuple):
    """The placement of units, and the unit of every partition."""

    placement: PlacementProblem
    of_partition: Ints


def join(model: ConsumerModel) -> PlacementUnits:
    """Join partitions to units, with the cost of a unit in each rack and of its move."""
    groups, group_of_topic = np.unique(np.stack([model.topic_class, model.length]), axis=1, return_inverse=True)
    length = groups[1]
    first = np.cumsum(length) - length
    unit = first[group_of_topic[model.topic]] + model.number
    group = np.repeat(np.arange(len(length)), length)
    cost = np.zeros((len(group), model.tariff.shape[1]), np.int64)
    np.add.at(cost, unit, model.tariff[model.mask] * model.weights[model.weight, None])
    owner, held, shares = _ownership(model, unit, len(group))

    # A unit with several owners is a kind of its own: its holders are not those of its equals.
    own_kind = np.where((owner < 0) & (held > 0), np.arange(len(group)) + 1, 0)
    kinds, first_of_kind, kind = np.unique(
        np.column_stack([cost, held, own_kind]), axis=0, return_index=True, return_inverse=True
    )
    unit_of_share, client, part = shares
    placement = PlacementProblem(
        group=group,
        owner=owner,
        kind=kind,
        rack=model.rack,
        prices=(PriceLevel(kinds[:, :-2], 0 * held[first_of_kind]), PriceLevel(0 * kinds[:, :-2], kinds[:, -2])),
        bounds=None,
        group_bounds=_even_per_group(model, groups),
        eligible=model.eligible[groups[0]],
        holdings=ItemHoldings(kind[unit_of_share], client, part),
    )
    return PlacementUnits(placement, unit)


def _ownership(model: ConsumerModel, unit: Ints, units: int) -> tuple[Ints, Ints, tuple[Ints, Ints, Ints]]:
    """Single owner of each unit (or -1), partitions of it that are held, and (unit, member, part) of shared ones."""
    members = len(model.rack)
    mine = model.owner >= 0
    pair, part = np.unique(unit[mine] * members + model.owner[mine], return_counts=True)
    holder_unit, holder = pair // members, pair % members
    holders = np.bincount(holder_unit, minlength=units)
    held = np.bincount(unit[mine], minlength=units)
    owner = np.full(units, -1, np.int64)
    single = holders[holder_unit] == 1
    owner[holder_unit[single]] = holder[single]
    return owner, held, (holder_unit[~single], holder[~single], part[~single])


def _even_per_group(model: ConsumerModel, groups: Ints) -> GroupBounds:
    eligible = model.eligible[groups[0]]
    subscribers = np.maximum(1, eligible.sum(axis=1))
    low, rest = groups[1] // subscribers, groups[1] % subscribers
    return GroupBounds(np.where(eligible, low[:, None], 0), np.where(eligible, (low + (rest > 0))[:, None], 0))

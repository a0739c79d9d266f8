"""Dense form of placement problems: items with a price per rack that prefer to stay where they are.

Items are partitions, units or Streams tasks, clients are members or processes, all integers from 0 up. Items of equal
group, owner and kind are one *class*; classes of equal group and kind share a *pool* of what leaves its owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors.optimal.tight_flow import Ints


class PriceLevel(NamedTuple):
    """One level of cost: ``rack[k, r]`` for an item of kind k in rack r, plus ``move[k]`` when not on its owner."""

    rack: Ints
    move: Ints


class ClientBounds(NamedTuple):
    """Every client takes ``low`` items or one more; of the clients of tier t exactly ``raised[t]`` take one more.

    ``tier[c]`` is -1 for a client that takes exactly ``low[c]``.
    """

    low: Ints
    tier: Ints
    raised: Ints


class GroupBounds(NamedTuple):
    """Client c takes at least ``low[g, c]`` and at most ``high[g, c]`` items of group g."""

    low: Ints
    high: Ints


class ItemHoldings(NamedTuple):
    """Clients that hold a part of an item that has no single owner: there its move costs ``part`` less.

    Given per kind, so an item that is held has a kind of its own. Counts in the last level of prices.
    """

    kind: Ints
    client: Ints
    part: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementProblem:
    """One problem; ``group``, ``owner`` and ``kind`` have one entry per item, owner -1 meaning none."""

    group: Ints
    owner: Ints
    kind: Ints
    rack: Ints
    """Client -> rack."""
    prices: tuple[PriceLevel, ...]
    """The first level counts most. A later level may price moves only where its ``rack`` is all zero."""
    bounds: ClientBounds | None
    """None: only groups bound a client, and totals are made as even as possible in one more, last level."""
    group_bounds: GroupBounds | None = None
    eligible: NDArray[np.bool_] | None = None
    """(groups, clients): clients that may take items of a group; None: all."""
    holdings: ItemHoldings | None = None

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def racks(self) -> int:
        """The number of racks."""
        return int(self.rack.max(initial=-1)) + 1


class ItemClasses(NamedTuple):
    """Owned items by (group, owner, kind), and pools by (group, kind)."""

    owned: Ints
    """Positions of the items that have an owner, ascending; the others are ``loose``."""
    loose: Ints
    of_owned: Ints
    """Class of each entry of ``owned``."""
    group: Ints
    owner: Ints
    kind: Ints
    size: Ints
    pool: Ints
    of_item: Ints
    """Pool of each item."""
    pool_group: Ints
    pool_kind: Ints


def classify(problem: PlacementProblem) -> ItemClasses:
    """Collapse items into classes and pools, numbered in the order of (group, owner, kind)."""
    kinds, clients, groups = len(problem.prices[0].move), len(problem.rack), problem.groups
    pools, pool_of_item = ranked(problem.group * kinds + problem.kind, groups * kinds)
    owned = np.flatnonzero(problem.owner >= 0)
    key = (problem.group[owned] * clients + problem.owner[owned]) * kinds + problem.kind[owned]
    keys, of_owned = ranked(key, groups * clients * kinds)
    pool_rank = np.searchsorted(pools, keys // (clients * kinds) * kinds + keys % kinds)
    return ItemClasses(
        owned=owned,
        loose=np.flatnonzero(problem.owner < 0),
        of_owned=of_owned,
        group=keys // (clients * kinds),
        owner=keys // kinds % clients,
        kind=keys % kinds,
        size=np.bincount(of_owned, minlength=len(keys)),
        pool=pool_rank,
        of_item=pool_of_item,
        pool_group=pools // kinds,
        pool_kind=pools % kinds,
    )


def ranked(keys: Ints, size: int) -> tuple[Ints, Ints]:
    """Distinct keys ascending and the rank of every key; all keys are below ``size``.

    A table of marks instead of a sort where the keys are dense enough: a tenth of the time.
    """
    if size > 16 * len(keys) + 1024:
        distinct, rank = np.unique(keys, return_inverse=True)
        return distinct, rank
    distinct, rank_of = rank_table(keys, size)
    return distinct, rank_of[keys]


def rank_table(keys: Ints, size: int) -> tuple[Ints, Ints]:
    """Distinct keys ascending and a table of ``size`` entries that has the rank of each of them."""
    present = np.zeros(size, np.bool_)
    present[keys] = True
    distinct = np.flatnonzero(present)
    rank_of = np.zeros(size, np.int64)
    rank_of[distinct] = np.arange(len(distinct))
    return distinct, rank_of


def stable_order(keys: Ints, size: int) -> Ints:
    """The order that sorts keys from 0 to below ``size``, equal keys by position: 16 bits at a time, no comparing."""
    order: Ints = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    rest, shift = size - 1 >> 16, 16
    while rest > 0:
        order = order[np.argsort((keys[order] >> shift & 0xFFFF).astype(np.uint16), kind="stable")]
        rest, shift = rest >> 16, shift + 16
    return order

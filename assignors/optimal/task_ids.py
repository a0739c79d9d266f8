"""Order of task ids, and the process that runs each, at low cost per id.

Whole-number ids are packed into one integer each; string subtopologies (KIP-1071) and numbers too far apart go by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count, pairwise, repeat
from struct import error, pack
from typing import Any, NamedTuple

import numpy as np

from assignors.optimal.items import stable_order
from assignors.optimal.tight_flow import Ints
from assignors.problem import BadProblem, TaskId

_MOST = 1 << 47
"""Keys stay below this, so that sorting them takes three passes at most."""


class NumberedIds(NamedTuple):
    """Ids sorted: from position to position of the input, and in that order what a model needs."""

    order: Ints | None
    """Positions in the input, in the order of the ids; None when the input is sorted already."""
    subtopology: Ints
    owner: Ints
    """The one process that claims a task; -1 when none or several do."""


def number_ids(ids: Sequence[TaskId], claims: Sequence[Sequence[TaskId]]) -> NumberedIds:
    """``claims[p]``: what process p runs. Raises ``BadProblem`` when an id occurs twice."""
    found = _by_number(ids, claims)
    return _by_name(ids, claims) if found is None else found


def _by_number(ids: Sequence[TaskId], claims: Sequence[Sequence[TaskId]]) -> NumberedIds | None:
    try:
        subtopology, partition = _numbers(list(chain.from_iterable(ids))).reshape(-1, 2).T
        claimed_subtopology, claimed_partition = _claimed(claims)
    except error:
        return None
    if not len(ids):
        return NumberedIds(None, subtopology, subtopology)
    low, high, first, last = (int(each) for each in (*_ends(subtopology), *_ends(partition)))
    width, size = last - first + 1, (high - low + 1) * (last - first + 1)
    if size > _MOST:
        return None
    key = (subtopology - low) * width + (partition - first)
    order = None
    if (key[1:] <= key[:-1]).any():
        order = stable_order(key, size)
        key, subtopology = key[order], subtopology[order]
        if (twins := key[1:] == key[:-1]).any():
            raise _twice(ids[int(order[np.argmax(twins)])])
    inside = (claimed_subtopology >= low) & (claimed_subtopology <= high)
    inside &= (claimed_partition >= first) & (claimed_partition <= last)
    claimed = np.where(inside, (claimed_subtopology - low) * width + (claimed_partition - first), -1)
    rank = np.cumsum(np.diff(subtopology, prepend=subtopology[:1]) != 0)
    owner = _owners(_found(key, claimed, size), claims, len(ids))
    return NumberedIds(order, rank, owner)


def _claimed(claims: Sequence[Sequence[TaskId]]) -> tuple[Ints, Ints]:
    """Subtopologies and partitions of what is claimed. Raises ``struct.error`` like ``_numbers``."""
    # Turned over claim by claim: ids lie anywhere in memory, and a hundred at a time stay in the processor's cache.
    columns: list[tuple[Any, ...]] = [tuple(zip(*claimed, strict=True)) for claimed in claims if claimed]
    subtopology, partition = (
        _numbers(list(chain.from_iterable(column[part] for column in columns))) for part in (0, 1)
    )
    return subtopology, partition


def _numbers(values: list[Any]) -> Ints:
    """Values as an array. Raises ``struct.error`` when one is no whole number of 64 bits."""
    # Unlike numpy, struct is quick and takes no string for a number.
    return np.frombuffer(pack(f"{len(values)}q", *values), np.int64)


def _ends(values: Ints) -> tuple[int, int]:
    return values.min(), values.max()


def _found(keys: Ints, wanted: Ints, size: int) -> Ints:
    """Positions in ascending keys below ``size``; -1 for what is not there."""
    if size <= 16 * len(keys) + 1024:
        # The last entry answers for -1, which is nowhere.
        at = np.full(size + 1, -1, np.int64)
        at[keys] = np.arange(len(keys))
        return at[wanted]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def _owners(position: Ints, claims: Sequence[Sequence[TaskId]], tasks: int) -> Ints:
    claimant = np.repeat(np.arange(len(claims)), [len(claimed) for claimed in claims])[position >= 0]
    position = position[position >= 0]
    owner = np.full(tasks, -1, np.int64)
    owner[position] = claimant
    owner[position[np.bincount(position, minlength=tasks)[position] > 1]] = -1
    return owner


def _by_name(ids: Sequence[TaskId], claims: Sequence[Sequence[TaskId]]) -> NumberedIds:
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for one, other in pairwise(order):
        if ids[one] == ids[other]:
            raise _twice(ids[one])
    position = {ids[place]: number for number, place in enumerate(order)}
    rank = dict(zip(dict.fromkeys(ids[place].subtopology for place in order), count(), strict=False))
    found = np.fromiter(map(position.get, chain.from_iterable(claims), repeat(-1)), np.int64)
    subtopology = np.fromiter((rank[ids[place].subtopology] for place in order), np.int64, len(ids))
    return NumberedIds(np.array(order, np.int64), subtopology, _owners(found, claims, len(ids)))


def _twice(task: TaskId) -> BadProblem:
    return BadProblem(f"task {task} occurs twice; give every task its own id")

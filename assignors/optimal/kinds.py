"""Kinds of items: items whose partitions miss replicas in the same racks are of one kind."""

from __future__ import annotations

from itertools import count, pairwise
from typing import TypeVar

import numpy as np

from assignors.optimal.items import ranked
from assignors.optimal.tight_flow import Ints

_FOLDED = 16
"""Partitions per item up to which items are compared column by column."""
_MERGE_BELOW = 4096
"""Below this number of kinds, kinds that miss the same racks are made one."""

Key = TypeVar("Key")


class KeyNumbers(dict[Key, int]):
    """Key -> its number, in the order of first appearance."""

    def __missing__(self, key: Key) -> int:
        """Give a new key the next number."""
        number = self[key] = len(self)
        return number


def kinds_of(number: Ints, sizes: Ints, here: Ints) -> tuple[Ints, Ints]:
    """Kind of each item, and (kind, rack) how many of its partitions have no replica there; last column: in no rack.

    Item i has the next ``sizes[i]`` entries of ``number``, each a row of ``here``: (row, rack) has a replica there.
    """
    widest = int(sizes.max(initial=0))
    if widest == 1 and len(number) == len(sizes):
        kind, rows = number, np.arange(len(here))[:, None]
    elif widest <= _FOLDED:
        kind, rows = _fold(number, sizes, widest, len(here))
    else:
        kind, rows = _tell_apart(number, sizes, len(here))
    # One row more is "no such partition": it misses nowhere.
    racks = here.shape[1]
    missing = np.vstack([np.hstack([1 - here, np.ones((len(here), 1), np.int64)]), np.zeros((1, racks + 1), np.int64)])
    misses = np.zeros((len(rows), racks + 1), np.int64)
    for masks in rows.T:
        misses += missing[masks]
    if len(misses) < _MERGE_BELOW:
        misses, merged = unique_rows(misses)
        kind = merged[kind]
    return kind, misses


def unique_rows(rows: Ints) -> tuple[Ints, Ints]:
    """The different rows of non-negative numbers in ascending order, and for each row its position among them."""
    if not rows.size:
        return rows[:1], np.zeros(len(rows), np.int64)
    # Big-endian numbers are in the order of their bytes; NumPy compares rows number by number, ten times as slowly.
    as_bytes = np.ascontiguousarray(rows, ">i8").view(f"V{8 * rows.shape[1]}").ravel()
    _, first, which = np.unique(as_bytes, return_index=True, return_inverse=True)
    return rows[first], which


def first_come(kind: Ints, misses: Ints) -> tuple[Ints, Ints]:
    """Number kinds by the first item of each where many of them are numbered as the input listed them."""
    if len(misses) < _MERGE_BELOW:
        return kind, misses
    first = _first_of_each(kind, len(misses))
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[kind], misses[order]


def _fold(number: Ints, sizes: Ints, widest: int, none: int) -> tuple[Ints, Ints]:
    """Tell items apart by their partitions in any order: one kind more per column and new combination."""
    starts = np.cumsum(sizes) - sizes
    grid = np.full((len(sizes), max(1, widest)), none, np.int64)
    for column in range(widest):
        has = sizes > column
        grid[has, column] = number[starts[has] + column]
    grid.sort(axis=1)
    kind = np.zeros(len(sizes), np.int64)
    for masks in grid.T:
        _, kind = ranked(kind * (none + 1) + masks, (int(kind.max(initial=0)) + 1) * (none + 1))
    return kind, grid[_first_of_each(kind, int(kind.max(initial=-1)) + 1)]


def _first_of_each(kind: Ints, kinds: int) -> Ints:
    first = np.zeros(kinds, np.int64)
    first[kind[::-1]] = np.arange(len(kind))[::-1]
    return first


def _tell_apart(number: Ints, sizes: Ints, none: int) -> tuple[Ints, Ints]:
    """The same for items of many partitions, one by one."""
    numbers = number.tolist()
    items = [tuple(sorted(numbers[start:end])) for start, end in pairwise([0, *np.cumsum(sizes).tolist()])]
    kinds = dict(zip(dict.fromkeys(items), count(), strict=False))
    rows = np.full((len(kinds), max(map(len, kinds))), none, np.int64)
    for row, kind in zip(rows, kinds, strict=True):
        row[: len(kind)] = kind
    return np.fromiter(map(kinds.__getitem__, items), np.int64, len(items)), rows

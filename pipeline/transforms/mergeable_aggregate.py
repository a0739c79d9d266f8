"""Mergeable aggregates: sums of some looks and sums of other looks are added up by the same expressions.

So the looks of an hour need to be read once only, and what more looks bring is added to what there is.
Invariant: nothing depends on the order in which it is added up, so in parts and as a whole it comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


class MergeableAggregate(NamedTuple):
    """How rows are added up: those with equal keys are one row."""

    key: tuple[str, ...]
    by: Mapping[str, Callable[[Column], Column]]
    """Column -> its aggregate, one that also puts its own results together."""

    def aggregate(self, rows: DataFrame, before: DataFrame | None = None) -> DataFrame:
        """All of these rows, and of those that were added up before."""
        every = rows.select(*self.key, *self.by)
        if before is not None:
            every = every.unionByName(before)
        return every.groupBy(*self.key).agg(*(add(F.col(name)).alias(name) for name, add in self.by.items()))


def listed(arrays: Column) -> Column:
    """All elements, in no order; of no arrays none."""
    return F.flatten(F.collect_list(arrays))

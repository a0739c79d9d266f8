"""Sums of a report: to a billionth, so that prices of few bytes count. Unknown is never 0."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipeline.exact_sums import exact_sum

_PARTS = 1_000_000_000


def total(which: Column, what: Column) -> Column:
    """The sum over the rows that it is about: 0 when there are none, null when all of them are unknown."""
    return F.coalesce(total_sum(F.when(which, what)), F.when(F.count_if(which) == 0, F.lit(0.0)))


def total_sum(what: Column) -> Column:
    """The sum of what is known; null when nothing is."""
    return exact_sum(what, _PARTS)

"""Sums of doubles that do not depend on the order of the rows, which Spark does not keep. Unknown is never 0."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

THOUSANDTHS, BILLIONTHS, TRILLIONTHS = 1e3, 1e9, 1e12


def exact_sum(number: Column, parts: float = THOUSANDTHS) -> Column:
    """The sum of what is known, each number taken to the nearest of ``parts`` in a unit; null when nothing is known.

    Whole numbers and parts are added up as long integers, which takes a tenth of the time of decimals. A sum beyond
    2**63 is unknown.
    """
    whole = F.floor(number)
    rest = F.floor((number - whole) * parts + 0.5)
    return F.try_sum(whole).cast("double") + F.try_sum(rest).cast("double") / parts


def all_or_null(number: Column, parts: float = THOUSANDTHS) -> Column:
    """The exact sum; null when one of the numbers is."""
    return F.when(F.count(number) == F.count(F.lit(1)), exact_sum(number, parts))


def total_sum(what: Column) -> Column:
    """The exact sum of what is known, to a billionth, so that prices of few bytes count; null when nothing is."""
    return exact_sum(what, BILLIONTHS)


def total_sums(*names: str) -> list[Column]:
    """`total_sum` of each of these columns, by its name."""
    return [total_sum(F.col(name)).alias(name) for name in names]


def total(which: Column, what: Column, parts: float = BILLIONTHS) -> Column:
    """The same over the rows that it is about: 0 when there are none, null when all of them are unknown."""
    return F.coalesce(exact_sum(F.when(which, what), parts), F.when(F.count_if(which) == 0, F.lit(0.0)))

"""What Spark's Python workers run, with the agent's setting of Python's garbage collector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from agent.values.garbage_collector import collect_seldom

Batches = Iterator[pa.RecordBatch]


def map_in_arrow(rows: DataFrame, work: Callable[[Batches], Batches], schema: t.StructType) -> DataFrame:
    """As the frame's own ``mapInArrow``."""
    return rows.mapInArrow(partial(_collecting_seldom, work), schema)


def _collecting_seldom(work: Callable[[Batches], Batches], batches: Batches) -> Batches:
    # A look is a million small values without cycles: by default more than half of the time goes to walking them.
    collect_seldom()
    return work(batches)

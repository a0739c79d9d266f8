"""What Spark's Python workers run, with the agent's setting of Python's garbage collector.

Spark keeps a worker for the next task, and one that has none for a minute: what a task held goes back to the machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from agent.process import collect_seldom

Batches = Iterator[pa.RecordBatch]


def map_in_arrow(rows: DataFrame, work: Callable[[Batches], Batches], schema: t.StructType) -> DataFrame:
    """As the frame's own ``mapInArrow``."""
    return rows.mapInArrow(partial(_in_worker, work), schema)


def _in_worker(work: Callable[[Batches], Batches], batches: Batches) -> Batches:
    # A look is a million small values without cycles: by default more than half of the time goes to walking them.
    collect_seldom()
    yield from work(batches)
    _give_back()


def _give_back() -> None:
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)

"""A few rows of this process as a DataFrame: a local relation, which is part of Spark's plan.

Spark's own way from Python keeps even three rows as a distributed dataset: a job with a task per core reads them, and
joins with no row are computed all the same. Rows in the plan are there without a job, and a plan over
none is simplified away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def local_relation(spark: SparkSession, rows: Iterable[Sequence[object]], schema: StructType) -> DataFrame:
    """The rows, whose values are in the schema's order. Raises what Arrow raises for a value of another type."""
    listed = list(rows)
    shape = to_arrow_schema(schema, timezone="UTC")
    values = zip(*listed, strict=True) if listed else ((),) * len(shape)
    arrays = [pa.array(column, type=field.type) for column, field in zip(values, shape, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=shape), schema=schema)

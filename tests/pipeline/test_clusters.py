"""A cluster that a user names is looked for before anything is computed."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from agent.errors import BadInput
from pipeline.clusters import check_clusters
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.silver import LOOKS
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore, WriterBatch


def has(tables: TableStore, table: TableSpec, *clusters: str) -> None:
    rows = tables.spark.createDataFrame([(one,) for one in clusters], "cluster string")
    others = (field for field in table.schema if field.name != "cluster")
    rows = rows.select(
        "cluster", *(F.lit(None if field.nullable else 0).cast(field.dataType).alias(field.name) for field in others)
    )
    tables.append(table, rows, WriterBatch("w", 0))


def test_a_cluster_that_no_table_has_is_named_with_the_nearest_one(delta_tables: TableStore) -> None:
    check_clusters((delta_tables,), ["berlin"])  # without a table there is another error, of what is missing
    has(delta_tables, LOOKS, "bergen", "lima", "oslo")
    check_clusters((delta_tables,), ["oslo", "bergen"])
    with pytest.raises(BadInput) as refused:
        check_clusters((delta_tables,), ["oslo", "berlin"])
    assert refused.value.exit_code == 2
    assert refused.value.what == f"There is no cluster berlin in {delta_tables.root}"
    assert refused.value.why == "the tables have rows of bergen, lima, oslo"
    assert refused.value.todo == "Did you mean bergen? Check --cluster and spark.tables."


def test_a_cluster_that_bronze_alone_has_is_one(delta_tables: TableStore) -> None:
    has(delta_tables, LOOKS, "oslo")
    has(delta_tables, TELEMETRY, "berlin")
    check_clusters((delta_tables,), ["berlin"])

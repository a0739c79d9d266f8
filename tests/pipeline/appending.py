"""A writer of one Delta table: python -m tests.pipeline.appending ROOT WRITER BATCHES NAME=VALUE..."""

from __future__ import annotations

import sys

from pyspark.sql import functions as F

from pipeline.schemas.bronze import QUARANTINE
from pipeline.session import short_job, spark_session
from pipeline.tables import TableStore, WriterBatch


def main() -> None:
    root, writer, batches, *given = sys.argv[1:]
    conf = {**short_job("local[1]"), **dict(one.split("=", 1) for one in given)}
    spark = spark_session("writer", master="local[1]", conf=conf, roots=[root])
    tables = TableStore(spark, root)
    for number in range(int(batches)):
        row = (
            F.lit(f"{writer}-{number}" if field.name == "topic" else None).cast(field.dataType).alias(field.name)
            for field in QUARANTINE.schema
        )
        tables.append(QUARANTINE, spark.range(1).select(*row), WriterBatch(writer, number))
        print(writer, number, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()

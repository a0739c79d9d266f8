"""How a table lies on disk as Delta Lake: its log makes every change whole, and remembers which batches it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.files import Files
    from pipeline.schemas.table import Table


class DeltaFiles:
    """Delta tables by path."""

    def __init__(self, spark: SparkSession, files: Files) -> None:
        self._spark = spark
        self._files = files

    def exists(self, path: str) -> bool:
        """Whether the table's log tells of a change. One that died before its first has an empty log, or none."""
        return any(name[:1].isdigit() for name in self._files.names(f"{path}/_delta_log"))

    def read(self, path: str, _table: Table) -> DataFrame:
        """All rows."""
        return self._spark.read.format("delta").load(path)

    def append(self, path: str, table: Table, rows: DataFrame, writer: str, number: int) -> None:
        """Add the rows; Delta itself leaves out a number that is not greater than this writer's last."""
        (
            rows.write.format("delta")
            .mode("append")
            .option("txnAppId", writer)
            .option("txnVersion", number)
            .option("mergeSchema", "true")
            .partitionBy(*table.partitioned_by)
            .save(path)
        )

    def replace(self, path: str, table: Table, rows: DataFrame, condition: str | None, *, fresh: bool = False) -> None:
        """The rows in place of those that fulfil the condition; ``fresh``: none does."""
        writer = rows.write.format("delta").mode("append" if fresh else "overwrite").option("mergeSchema", "true")
        if not self.exists(path):
            writer.partitionBy(*table.partitioned_by).save(path)
        elif condition is None or fresh:
            writer.save(path)  # it stays partitioned as whoever made it had it
        else:
            writer.option("replaceWhere", condition).save(path)

    def merge(self, path: str, table: Table, rows: DataFrame) -> None:
        """Each row in place of the one with its key, or as a new one."""
        if not self.exists(path):
            self.replace(path, table, rows, None)
            return
        same = " AND ".join(f"old.`{name}` <=> new.`{name}`" for name in table.key)
        (
            DeltaTable.forPath(self._spark, path)
            .alias("old")
            .merge(rows.alias("new"), same)
            .withSchemaEvolution()
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        )

"""Tables as Delta Lake: its log makes every change whole, and remembers the batches that were appended."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from delta.tables import DeltaTable
from pyspark.sql import functions as F

from pipeline.delta_changes import settled
from pipeline.files import located

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from pipeline.files import StoredFiles
    from pipeline.schemas.table import TableSpec


KEPT = {
    "delta.deletedFileRetentionDuration": "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration",
    "delta.logRetentionDuration": "spark.databricks.delta.properties.defaults.logRetentionDuration",
}
"""Property of a table -> the session's setting for new tables: how long replaced data and changes can be read back."""
_SKIPPED_BY = ("cluster", "look", "base", "taken_ms", "hour_ms")
"""By which files are left out. Delta's bounds of all columns were a third of the work of writing, and leave out no
more: topics and groups are everywhere."""
_LEAST_CHANGES = 10
"""Between two checkpoints."""


def keeping(kept_ms: int) -> dict[str, str]:
    """Settings of a session whose tables can be read back so long."""
    return dict.fromkeys(KEPT.values(), f"interval {kept_ms // 1_000} seconds")


class DeltaFiles:
    """Delta tables by path."""

    def __init__(self, spark: SparkSession, files: StoredFiles) -> None:
        self._spark = spark
        self._files = files
        self._there: set[str] = set()
        """Tables that were found: a log of a day has thousands of files, which are not to be listed at each turn."""

    def exists(self, path: str) -> bool:
        """Whether the table's log has a change. A writer that died before its first leaves an empty log, or none."""
        if path not in self._there and any(name[:1].isdigit() for name in self._files.names(f"{path}/_delta_log")):
            self._there.add(path)
        return path in self._there

    def read(self, path: str, _table: TableSpec) -> DataFrame:
        """All rows."""
        return self._spark.read.format("delta").load(located(path))

    def append(self, path: str, table: TableSpec, rows: DataFrame, writer: str, number: int) -> None:
        """Add the rows; Delta itself leaves out a number that is not greater than this writer's last."""
        adding = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        adding = adding.option("txnAppId", writer).option("txnVersion", number)
        settled(lambda _: (adding if self.exists(path) else _making(adding, table)).save(located(path)))

    def replace(
        self, path: str, table: TableSpec, rows: DataFrame, condition: str | None, *, fresh: bool = False
    ) -> None:
        """The rows in place of those that fulfil the condition; ``fresh``: none does."""
        # Of a second try rows may be there: those of a first whose answer was lost.
        settled(lambda is_first: self._replace(path, table, rows, condition, fresh=fresh and is_first))

    def _replace(self, path: str, table: TableSpec, rows: DataFrame, condition: str | None, *, fresh: bool) -> None:
        writer = rows.write.format("delta").option("mergeSchema", "true")
        if not self.exists(path):
            # Not in place of all rows: another writer may make the table meanwhile.
            _making(writer.mode("errorifexists"), table).save(located(path))
        elif condition is None or fresh:
            writer.mode("append" if fresh else "overwrite").save(located(path))  # it stays partitioned as it was made
        else:
            writer.mode("overwrite").option("replaceWhere", condition).save(located(path))

    def vacuum(self, path: str, today: str | None = None, before_day: str | None = None) -> None:
        """Delete days before ``before_day``, compact those before ``today``, delete data that no reader needs.

        A batch leaves a file or two, of which Delta's automatic compaction leaves up to 50 a day. For downstream
        streams compaction is no change.

        The log needs nothing: Delta cuts it off itself when it writes a checkpoint, at the first midnight (UTC) before
        its retention, and a downstream stream or time travel finds every change since then.
        """
        table = DeltaTable.forPath(self._spark, located(path))
        settled(lambda _: self._keep_as_set(table, path))
        if before_day is not None:
            settled(lambda _: table.delete(F.col("day") < before_day))
        if today is not None:
            settled(lambda _: _compact(table, today))
        table.vacuum()

    def _keep_as_set(self, table: DeltaTable, path: str) -> None:
        """The session's retention of changes, for a table that was made with another."""
        there = table.detail().select("properties").collect()[0]["properties"]
        wanted = {name: self._spark.conf.get(setting, None) for name, setting in KEPT.items()}
        odd = {name: value for name, value in wanted.items() if value and there.get(name) != value}
        if odd:
            changes = ", ".join(f"'{name}' = '{value}'" for name, value in odd.items())
            self._spark.sql(f"ALTER TABLE delta.`{located(path).replace('`', '``')}` SET TBLPROPERTIES ({changes})")


def _compact(table: DeltaTable, today: str) -> None:
    """The small files of each earlier day as one."""
    table.optimize().where(f"day < '{today}'").executeCompaction()


def _making(writer: DataFrameWriter, table: TableSpec) -> DataFrameWriter:
    """The writer of the first change: what holds of the table from then on."""
    # Delta writes the whole state every few changes. With one number for all tables, one batch would do so for all
    # of them, and take twice as long as others.
    every = _LEAST_CHANGES + crc32(table.name.encode()) % _LEAST_CHANGES
    making = writer.partitionBy(*table.partitioned_by).option("delta.checkpointInterval", every)
    bounded = [name for name in _SKIPPED_BY if name in table.schema.names and name not in table.partitioned_by]
    making = making.option("delta.dataSkippingStatsColumns", ",".join(bounded)) if bounded else making
    # Readers downstream follow what people read by its changes, not by reading all of it again.
    return making.option("delta.enableChangeDataFeed", "true") if table.name.startswith("gold.") else making

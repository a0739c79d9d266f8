"""Tables as Delta Lake: its log makes every change whole, and remembers the batches that were appended."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from zlib import crc32

from delta.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from pipeline.files import HadoopFiles
    from pipeline.schemas.table import TableSpec


_VERSION = re.compile(r"(\d{20})\.")
"""Begins the name of every file of the log that belongs to one change."""
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.")
_LOG_KEPT_MS = 1_800_000
"""How long a change can be read back: a reader of a table has planned to within that time."""
_LEAST_CHANGES = 10
"""Between two checkpoints."""
_VACUUM_EVERY = 1_000
"""Changes after which files that none of them needs any more are looked for."""


class DeltaFiles:
    """Delta tables by path."""

    def __init__(self, spark: SparkSession, files: HadoopFiles) -> None:
        self._spark = spark
        self._files = files
        self._there: set[str] = set()
        """Tables that were found: a log of a day has ten thousand files, which are not to be listed at each turn."""

    def exists(self, path: str) -> bool:
        """Whether the table's log has a change. A writer that died before its first leaves an empty log, or none."""
        if path not in self._there and any(name[:1].isdigit() for name in self._files.names(f"{path}/_delta_log")):
            self._there.add(path)
        return path in self._there

    def read(self, path: str, _table: TableSpec) -> DataFrame:
        """All rows."""
        return self._spark.read.format("delta").load(path)

    def append(self, path: str, table: TableSpec, rows: DataFrame, writer: str, number: int) -> None:
        """Add the rows; Delta itself leaves out a number that is not greater than this writer's last."""
        adding = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        adding = adding.option("txnAppId", writer).option("txnVersion", number)
        (adding if self.exists(path) else _making(adding, table)).save(path)

    def replace(
        self, path: str, table: TableSpec, rows: DataFrame, condition: str | None, *, fresh: bool = False
    ) -> None:
        """The rows in place of those that fulfil the condition; ``fresh``: none does."""
        writer = rows.write.format("delta").mode("append" if fresh else "overwrite").option("mergeSchema", "true")
        if not self.exists(path):
            _making(writer, table).save(path)
        elif condition is None or fresh:
            writer.save(path)  # it stays partitioned as it was made
        else:
            writer.option("replaceWhere", condition).save(path)

    def vacuum(self, path: str) -> None:
        """Delete what changes of long ago left behind; what is read is not touched.

        Of the log everything before the newest checkpoint that is older than half an hour goes, as Delta's protocol has
        it ("Metadata Cleanup"). Delta itself keeps whole days, which are ten thousand files, and each look at a table
        lists them all. Data that was replaced goes a day after, by Delta's own vacuum.
        """
        log = f"{path}/_delta_log"
        names = self._files.names(log)
        old = time.time_ns() // 1_000_000 - _LOG_KEPT_MS
        checkpoints = {int(found[1]): name for name in names if (found := _CHECKPOINT.match(name))}
        newest_first = sorted(checkpoints, reverse=True)
        kept = next((one for one in newest_first if self._files.modified_ms(f"{log}/{checkpoints[one]}") < old), 0)
        gone = {name: int(found[1]) for name in names if (found := _VERSION.match(name)) and int(found[1]) < kept}
        if any(version % _VACUUM_EVERY == 0 for version in gone.values()):
            DeltaTable.forPath(self._spark, path).vacuum()
        # Names are in order. From the oldest: an interruption leaves a log without a hole.
        for name in gone:
            self._files.delete(f"{log}/{name}")

    def merge(self, path: str, table: TableSpec, rows: DataFrame) -> None:
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


def _making(writer: DataFrameWriter, table: TableSpec) -> DataFrameWriter:
    """The writer of the first change: what holds of the table from then on."""
    # Delta writes the whole state every few changes. With one number for all tables, one batch would do so for all
    # of them, and take twice as long as others.
    every = _LEAST_CHANGES + crc32(table.name.encode()) % _LEAST_CHANGES
    making = writer.partitionBy(*table.partitioned_by).option("delta.checkpointInterval", every)
    # Readers downstream follow what people read by its changes, not by reading all of it again.
    return making.option("delta.enableChangeDataFeed", "true") if table.name.startswith("gold.") else making

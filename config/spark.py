"""Settings of the data pipeline on Spark: master, tables, checkpoints, intervals and batch size."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from config.value_kinds import Millis, NoneWord, Text, at_least


class SparkSettings(BaseModel):
    """The data pipeline on Spark; it needs the extra ``spark``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    master: Annotated[Text | None, NoneWord] = None
    """Spark master; none: as spark-submit sets it, else all cores of this machine."""
    tables: Text = "rackwise-tables"
    """Folder or URI of the tables: on this machine, in HDFS or in an object store."""
    format: Literal["delta", "parquet"] = "delta"
    """How tables are written: Delta Lake, or plain Parquet."""
    owners: Annotated[Text | None, NoneWord] = None
    """CSV file of owners: kind (topic or group), pattern (* and ? as in file names), team, cost_centre."""
    checkpoints: Annotated[Text | None, NoneWord] = None
    """Folder or URI of ingest's checkpoints (offsets read so far); none: ``_checkpoints`` below the tables."""
    conf: dict[Text, Text] = Field(default_factory=dict)
    """Spark's own settings by name, such as ``spark.driver.memory: 2g``; they override rackwise's."""
    interval_ms: Annotated[Millis, at_least("100ms")] = Field(default=5_000, alias="interval")
    """Least time between the starts of two batches of ingest."""
    histories_every_ms: Annotated[Millis, at_least("0s")] = Field(default=300_000, alias="histories_every")
    """How often ingest computes histories (warm-ups, rebalances, drift, outcomes); the rest follows each batch."""
    max_records: Annotated[int, Field(ge=1)] = 200_000
    """Most records of one topic in one batch."""
    late_after_ms: Annotated[Millis, at_least("0s")] = Field(default=600_000, alias="late_after")
    """An hour is closed this long after its end, by the newest event's time; later events are kept and marked late."""
    patience_ms: Annotated[Millis, at_least("0s")] = Field(default=300_000, alias="patience")
    """How long ingest retries while no broker answers, before it ends with exit code 5."""

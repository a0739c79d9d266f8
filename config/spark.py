"""Settings of the data pipeline on Spark: master, tables, checkpoints, intervals and batch size."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from config.setting_mistake import SettingMistake
from config.value_kinds import FilledText, Millis, NoneWord, Text, at_least, at_most

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class RetentionSettings(BaseModel):
    """How long rows of the pipeline's tables are kept, by whole UTC days; ingest deletes them once a day."""

    model_config = _STRICT

    bronze_ms: Annotated[Annotated[Millis, at_least("2d")] | None, NoneWord] = Field(default=None, alias="bronze")
    """Telemetry and quarantine, by the time of their records; none: for ever. Proposals and the journal are kept."""
    silver_ms: Annotated[Annotated[Millis, at_least("15d")] | None, NoneWord] = Field(default=None, alias="silver")
    """Rows of looks; none: for ever. Outcomes and histories need at least 15 days of them."""
    gold_ms: Annotated[Annotated[Millis, at_least("15d")] | None, NoneWord] = Field(default=None, alias="gold")
    """Hours, histories and outcomes; none: for ever."""


class SparkSettings(BaseModel):
    """The data pipeline on Spark; it needs the extra ``spark``."""

    model_config = _STRICT

    master: Annotated[Text | None, NoneWord] = None
    """Spark master; none: as spark-submit sets it, else all cores of this machine."""
    tables: FilledText = "rackwise-tables"
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
    busy_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Where each batch of ingest takes 30 s or longer, ingest pauses after it, so that batches take this share of the
    time: fewer batches with more looks each take less CPU. The next batch begins two thirds of ``stalled_after`` after
    this one at the latest. 1: no pauses."""
    look_every_ms: Annotated[Millis, at_least("0s"), at_most("10m")] = Field(default=0, alias="look_every")
    """Where looks are recorded more often, silver and gold are computed from one of each such stretch of time; bronze
    has all of them. 0s: from every look."""
    histories_every_ms: Annotated[Millis, at_least("0s")] = Field(default=300_000, alias="histories_every")
    """How often ingest computes histories (warm-ups, rebalances, drift, outcomes); the rest follows each batch."""
    max_records: Annotated[int, Field(ge=1)] = 200_000
    """Most records of one topic in one batch."""
    late_after_ms: Annotated[Millis, at_least("0s")] = Field(default=600_000, alias="late_after")
    """An hour is closed this long after its end, by the newest event's time; later events are kept and marked late."""
    patience_ms: Annotated[Millis, at_least("0s")] = Field(default=300_000, alias="patience")
    """How long a running ingest retries while no broker answers, before it ends with exit code 5; at its start and with
    ``--once`` it ends at once."""
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    time_travel_ms: Annotated[Millis, at_least("1h")] = Field(default=86_400_000, alias="time_travel")
    """How long changes of Delta tables can be read back, by time travel and by streams that read them (whole days of
    their logs are kept)."""
    stalled_after_ms: Annotated[Millis, at_least("1s")] = Field(default=900_000, alias="stalled_after")
    """A stream of ingest is stalled when a batch is not written so long after its begin; telemetry also when there was
    no batch for so long."""
    metrics_bind: FilledText = "127.0.0.1"
    """Address on which ingest serves /metrics."""
    metrics_port: Annotated[Annotated[int, Field(ge=0, le=65_535)] | None, NoneWord] = None
    """Port on which ingest serves /metrics, without sign-in; 0 takes a free one, which is logged; none: no metrics."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        kept = next((name for name, value in self.retention if value is not None), None)
        if kept is not None and self.format != "delta":
            name = kept.removesuffix("_ms")
            raise SettingMistake(f"retention.{name}", "rows are deleted of Delta tables alone; set format delta")
        return self

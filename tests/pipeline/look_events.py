"""Looks as the agent would record them, as rows of bronze; built from the answers of `tests.builders`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from agent.telemetry.events import TelemetryEvent, to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from pipeline.schemas.bronze import TELEMETRY
from tests.recorded_looks import observation_to_events


def events_of(observation: Observation, look: str, *, memory: Memory | None = None) -> list[TelemetryEvent]:
    """The events that rebuild the look."""
    return list(observation_to_events(observation, memory or Memory(), Limits(), look=look))


def telemetry(spark: SparkSession, events: Iterable[TelemetryEvent]) -> DataFrame:
    """The events as rows of bronze.telemetry, one after the other in one partition."""
    lines = [json.loads(line) for event in events for line in to_lines(event)]
    return spark.createDataFrame([row_of_line(line, offset) for offset, line in enumerate(lines)], TELEMETRY.schema)


def telemetry_of_file(spark: SparkSession, file: Path) -> DataFrame:
    """What an agent wrote to its telemetry file, as rows of bronze.telemetry; a line that is not whole is left out."""
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return spark.createDataFrame([row_of_line(line, offset) for offset, line in enumerate(lines)], TELEMETRY.schema)


def row_of_line(line: dict[str, object], offset: int) -> tuple[object, ...]:
    """A line of telemetry as a row of bronze.telemetry."""
    taken_ms = line["taken_ms"]
    assert isinstance(taken_ms, int)
    time = datetime.fromtimestamp(taken_ms / 1000, UTC)
    given = {
        "topic": "rackwise.telemetry",
        "partition": 0,
        "offset": offset,
        "kafka_time": time,
        "event_id": f"{line['cluster']}/{line['look']}/{line['n']}",
        "day": f"{time:%Y-%m-%d}",
        "late": False,
    }
    row = {**line, **given, "data": json.dumps(line["data"])}
    return tuple(row.get(name) for name in TELEMETRY.schema.names)

"""``rackwise spark status``: how far ingest is, from its tables and checkpoints alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from config.foreign_text import json_text
from pipeline import options
from pipeline.session import short_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.stream.status import StreamStatus

STALLED = 1


def status(
    spark: options.SparkOptions,
    output: Annotated[options.TableOutput, typer.Option("--output", "-o", help="Output format.")] = "table",
) -> None:
    """Say of each stream of ingest when its last batch was written, what it covers, and how far behind it is.

    Tables and checkpoints are read, and nothing else: ingest need not run. Exit codes: 0 no stream is stalled, 1 a
    stream is stalled (spark.stalled_after), 2 nothing was ingested there.
    """
    loaded = options.settings(spark)
    with options.job("status", loaded, short_job(loaded.settings.spark.master)) as job:
        from pipeline.stream.status import sentence, statuses

        now_ms, checkpoints = time.time_ns() // 1_000_000, options.checkpoints(job)
        found = statuses(
            job.tables, checkpoints, stalled_after_ms=loaded.settings.spark.stalled_after_ms, now_ms=now_ms
        )
        if all(one.topic is None for one in found):
            raise BadInput(
                f"There is no checkpoint of ingest at {checkpoints}",
                why="nothing was ingested there, or spark.checkpoints is another folder",
                todo="Name the root that rackwise spark ingest fills: --tables, and spark.checkpoints if it is set.",
            )
    if output == "json":
        options.answer(document(found))
    else:
        for one in found:
            options.answer(sentence(one, now_ms))
    raise typer.Exit(exit_code(found))


def document(found: Sequence[StreamStatus]) -> str:
    """The streams as JSON, one object each."""
    return json_text([one._asdict() for one in found], 2)


def exit_code(found: Sequence[StreamStatus]) -> int:
    """1 where a stream is stalled, else 0."""
    return STALLED if any(one.state == "stalled" for one in found) else 0

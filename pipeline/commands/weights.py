"""``rackwise spark weights``: bytes per second and restore rates from the tables, published to the agents."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from pipeline import options
from pipeline.session import short_job


def weights(
    spark: options.SparkOptions,
    kafka: options.KafkaOptions,
    window: Annotated[
        str | None,
        typer.Option(
            "--window", metavar="DURATION", help="Period that rates are averaged over, such as 24h (weights.window)."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also write records that have not changed.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the records that would be written, and write none.")
    ] = False,
) -> None:
    """Write to the weights topic what has changed since, and delete what is gone.

    The agent that is connected to the same brokers plans by it from its next look on.
    """
    flags = {} if window is None else {"weights.window": window}
    loaded = options.settings(spark, kafka, flags)
    with options.job("weights", loaded, short_job(loaded.settings.spark.master)) as job:
        from pipeline.jobs.weights import publish_weights

        done = publish_weights(
            job.tables,
            job.settings,
            now_ms=time.time_ns() // 1_000_000,
            everything=everything,
            dry_run=dry_run,
            say=options.say,
            show=options.answer,
        )
    options.say(done)

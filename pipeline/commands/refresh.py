"""``rackwise spark refresh``: silver and gold computed again from bronze."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.values.number_format import counted
from pipeline import options
from pipeline.owner_rules import owner_rules
from pipeline.session import short_job


def refresh(
    spark: options.SparkOptions,
    day: Annotated[
        list[str] | None,
        typer.Option(
            "--day", metavar="YYYY-MM-DD", help="UTC day whose looks are read again; repeatable; default: all days."
        ),
    ] = None,
) -> None:
    """Work out silver and gold again from bronze.

    Ingest does so for what comes in; this is for after a change of prices or owners, or of rackwise itself.
    """
    loaded = options.settings(spark)
    owners = owner_rules(loaded.settings.spark.owners)
    with options.job("refresh", loaded, short_job(loaded.settings.spark.master)) as job:
        from pipeline.jobs.owners import write_owners
        from pipeline.jobs.refresh import refresh as run
        from pipeline.jobs.refresh import refresh_settings
        from pipeline.jobs.touched_looks import kept_looks, looks_of_days

        write_owners(job.tables, owners)
        looks = looks_of_days(job.tables, tuple(day)) if day else kept_looks(job.tables)
        done = run(job.tables, looks, settings=refresh_settings(loaded.settings), on_progress=options.say)
    for message in done.messages:
        options.say(message)
    options.say(f"written: {', '.join(done.rows) or 'nothing'}")
    again = f"{counted(done.looks, 'look')} and {counted(len(done.hours), 'hour')}"
    options.answer(f"computed again: {again}, in {done.seconds:.1f} s")

"""``rackwise spark report``: cross-rack bytes, their cost and the first thing to do, as Markdown, HTML and CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.errors import BadInput
from config.foreign_text import shortened
from pipeline import options
from pipeline.session import short_job

_FORMATS = ("md", "html", "csv")


def report(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder for the report; created if missing.")],
    begin: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="From this date or time on (ISO 8601; UTC unless it has an offset)."
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to this date or time (exclusive).")
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option("--cluster", metavar="ID", help="Cluster id to report on; repeatable; default: all."),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FORMAT,...", help="Formats to write: md, html, csv, separated by commas."
        ),
    ] = ",".join(_FORMATS),
    master: options.Master = None,
    conf: options.Conf = None,
    root: options.Root = None,
    table_format: options.TableFormat = None,
    config: options.Config = None,
    assign: options.Assign = None,
) -> None:
    """Write a report that begins with what to do first.

    It has costs by day and group, bytes from rack to rack, locality, warm-ups, restores, rebalances, racks that
    changed, and how well was predicted.
    """
    formats = _formats(output)
    loaded = options.settings(master=master, conf=conf, tables=root, format=table_format, config=config, assign=assign)
    with options.job("report", loaded, short_job(loaded.settings.spark.master)) as job:
        from pipeline.jobs.report import write_report
        from pipeline.report.period import period_of

        written = write_report(job.tables, period_of(begin, end, tuple(cluster or ())), out, formats)
    options.answer(shortened(written.first))
    for file in written.files:
        options.say(f"wrote {file}")


def _formats(text: str) -> tuple[str, ...]:
    """Raises BadInput for one that is not known."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [part for part in found if part not in _FORMATS]
    if unknown or not found:
        raise BadInput(
            f"--output {text!r} names {'nothing' if not found else unknown[0]!r}",
            why=f"a report is written as {', '.join(_FORMATS)}",
            todo="Write for example --output md,html.",
        )
    return found

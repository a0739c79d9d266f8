"""``rackwise spark report``: cross-rack bytes, their cost and the first thing to do, as Markdown, HTML and CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.errors import BadInput
from agent.values.number_format import counted
from config.foreign_text import shortened
from pipeline import options
from pipeline.bill_lines import bill_by_day
from pipeline.owner_rules import owner_rules
from pipeline.report.document import FORMATS
from pipeline.session import short_job

_EXPORTS = ("focus", "focus-parquet")


def report(
    spark: options.SparkOptions,
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
            "--output",
            "-o",
            metavar="FORMAT,...",
            help="Formats to write: md, html, csv, focus, focus-parquet, separated by commas.",
        ),
    ] = ",".join(FORMATS),
    bill: Annotated[
        Path | None,
        typer.Option(
            "--bill", metavar="FILE", help="CSV of a cloud's bill for data transfer, to compare the ledger with."
        ),
    ] = None,
) -> None:
    """Write a report that begins with what to do first.

    It has costs by day and group, bytes from rack to rack, locality, warm-ups, restores, rebalances, racks that
    changed, and how well was predicted. focus and focus-parquet write the ledger in the columns of FOCUS 1.2.
    """
    formats = _formats(output)
    loaded = options.settings(spark)
    owners = owner_rules(loaded.settings.spark.owners)
    billed = tuple(bill_by_day(str(bill)).items()) if bill else ()
    with options.job("report", loaded, short_job(loaded.settings.spark.master)) as job:
        from pipeline.clusters import check_clusters
        from pipeline.jobs.focus import write_focus
        from pipeline.jobs.report import write_report
        from pipeline.report.period import period_of

        period = period_of(begin, end, tuple(cluster or ()))
        check_clusters((job.tables,), period.clusters)
        exports = tuple(one for one in formats if one in _EXPORTS)
        export = write_focus(job.tables, period, out, exports, owners) if exports else None
        written = None
        if len(exports) < len(formats):
            written = write_report(job.tables, period, out, formats, owners=owners, bill=billed)
    if written is not None:
        options.answer(shortened(written.first))
    if export is not None:
        options.answer(f"{counted(export.charges, 'charge')} in the columns of FOCUS")
        if export.unpriced:
            options.say(f"{counted(export.unpriced, 'charge')} without a price, left out")
    for file in (*(written.files if written else ()), *(export.files if export else ())):
        options.say(f"wrote {file}")


def _formats(text: str) -> tuple[str, ...]:
    """Raises BadInput for one that is not known."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [part for part in found if part not in (*FORMATS, *_EXPORTS)]
    if unknown or not found:
        raise BadInput(
            f"--output {text!r} names {'nothing' if not found else unknown[0]!r}",
            why=f"a report is written as {', '.join((*FORMATS, *_EXPORTS))}",
            todo="Write for example --output md,html.",
        )
    return found

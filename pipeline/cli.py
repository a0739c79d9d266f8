"""``rackwise spark``: one application, with a module for each command; ``spark-submit`` runs the same commands.

Nothing of Spark is imported before a command runs.
"""

from __future__ import annotations

import typer

from config.option_groups import expanded
from pipeline.commands import backtest, fleet, ingest, refresh, report, sql, status, weights

spark_app = typer.Typer(
    name="spark",
    help="The data pipeline: tables from rackwise's topics, reports, backtests, plans for many clusters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


for _command in (
    ingest.ingest,
    status.status,
    refresh.refresh,
    report.report,
    sql.sql,
    backtest.backtest,
    fleet.fleet,
    weights.weights,
):
    spark_app.command()(expanded(_command))

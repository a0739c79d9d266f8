"""``rackwise spark``: one application, with a module for each command; ``spark-submit`` runs the same commands.

Nothing of Spark is imported before a command runs.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

import typer

from pipeline import commands

spark_app = typer.Typer(
    name="spark",
    help="The data pipeline: tables from rackwise's topics, reports, backtests, plans for many clusters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_ORDER = ("ingest", "refresh", "report", "backtest", "fleet", "weights")


@spark_app.callback()
def _spark() -> None:
    """Make a group of it, however few commands there are."""


def _add_commands() -> None:
    """Every module of `pipeline.commands` adds its own; the order is the one in which people need them."""
    found = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    for name in sorted(found, key=lambda one: (_ORDER.index(one) if one in _ORDER else len(_ORDER), one)):
        import_module(f"{commands.__name__}.{name}").command(spark_app)


_add_commands()

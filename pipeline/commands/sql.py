"""``rackwise spark sql``: the script that registers the tables in a catalog, with views of the usual questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.errors import BadInput
from pipeline import options
from pipeline.errors import not_refreshed
from pipeline.session import short_job


def sql(
    spark: options.SparkOptions,
    schema: Annotated[
        str, typer.Option("--schema", metavar="NAME", help="Schema for the tables and views, or catalog.schema.")
    ] = "rackwise",
    dialect: Annotated[
        Literal["spark", "trino"], typer.Option("--dialect", help="The engine that will run it.")
    ] = "spark",
) -> None:
    """Print the SQL that registers the gold tables where they lie, with views of the ten usual questions.

    Plain Spark SQL runs it (spark-sql -f, a notebook, a catalog's editor), or Trino with --dialect trino. Nothing is
    changed by this command.
    """
    from pipeline.sql.script import TABLES, is_schema_name, script

    if not is_schema_name(schema):
        raise BadInput(
            f"--schema {schema!r} is no name of a schema",
            why="letters, digits and underscores are expected, with a catalog before a dot",
            todo="Write for example --schema rackwise or --schema main.rackwise.",
        )
    loaded = options.settings(spark)
    if loaded.settings.spark.format != "delta":
        raise BadInput(
            f"tables as {loaded.settings.spark.format} cannot be registered",
            why="a folder of them holds batches, of which a catalog knows nothing",
            todo="Write them as Delta Lake (spark.format: delta).",
        )
    with options.job("sql", loaded, short_job(loaded.settings.spark.master)) as job:
        locations = {table.name: _absolute(job.tables.path(table)) for table in TABLES if job.tables.exists(table)}
    if not locations:
        raise not_refreshed(loaded.settings.spark.tables, "gold table")
    options.answer(script(locations, schema, dialect))


def _absolute(path: str) -> str:
    """A catalog takes a relative path for one below its warehouse."""
    return path if "://" in path or path.startswith("file:") else str(Path(path).absolute())

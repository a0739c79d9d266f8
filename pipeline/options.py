"""Options that every Spark command takes, and the settings, session and tables that they give.

Nothing here is slow to import: the command line reads it for ``--help``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from agent.errors import ConfigError, RackwiseError
from agent.process import load_checked_settings
from config.foreign_text import harmless, shortened
from config.option_groups import Assign, Bootstrap, Config, Properties
from config.secrets import hidden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from config.load import LoadedSettings
    from config.settings import Settings
    from pipeline.tables import TableStore

Master = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="MASTER", help="Spark master, such as local[2]; default: all cores of this machine."
    ),
]
Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting; repeatable.")]
Root = Annotated[str | None, typer.Option("--tables", metavar="PATH", help="Folder or URI of the tables.")]
TableFormat = Annotated[str | None, typer.Option("--format", metavar="FORMAT", help="delta or parquet.")]
TableOutput = Literal["table", "json"]


class SparkOptions(NamedTuple):
    """Options of every Spark command."""

    master: Master = None
    conf: Conf = None
    tables: Root = None
    format: TableFormat = None
    config: Config = None
    assign: Assign = None


class KafkaOptions(NamedTuple):
    """Options of a Spark command that connects to brokers, beside its `SparkOptions`."""

    properties: Properties = None
    bootstrap: Bootstrap = None


class SparkCommand(NamedTuple):
    """What a command works with."""

    settings: Settings
    spark: SparkSession
    tables: TableStore


def say(line: str) -> None:
    """Talk and progress go to stderr; answers go to stdout."""
    print(shortened(hidden(line)), file=sys.stderr, flush=True)  # noqa: T201 the command line talks to a person


def answer(text: str) -> None:
    """Print an answer, line by line: it may hold foreign names."""
    for line in text.rstrip("\n").split("\n"):
        print(harmless(hidden(line)))  # noqa: T201 as above


def settings(
    spark: SparkOptions, kafka: KafkaOptions | None = None, flags: Mapping[str, object] = MappingProxyType({})
) -> LoadedSettings:
    """The settings in force: files, environment and these options. Raises ConfigError with every mistake.

    ``flags`` are more settings by their dotted names.
    """
    kafka = kafka or KafkaOptions()
    names = {"spark.master": spark.master, "spark.tables": spark.tables, "spark.format": spark.format}
    given: dict[str, object] = {
        name: value
        for name, value in (names | {"kafka.bootstrap.servers": kafka.bootstrap}).items()
        if value is not None
    }
    given |= {f"spark.conf.{name}": value for name, value in map(_pair, spark.conf or ())}
    return load_checked_settings(
        spark.config or (), kafka.properties or (), spark.assign or (), {**given, **flags}, say
    )


@contextmanager
def job(
    name: str,
    loaded: LoadedSettings,
    conf: Mapping[str, str] | None = None,
    say: Callable[[str], None] = say,
    also: Sequence[str] = (),
) -> Iterator[SparkCommand]:
    """The session and the tables that the settings name; the session ends with the block.

    ``conf`` is this command's Spark configuration; settings win over it. ``also`` are other roots that are read.
    Raises NeedsSpark, ToolError, RackwiseError.
    """
    from pipeline.session import is_here, need_spark, spark_session  # noqa: PLC0415 an optional extra

    need_spark()
    from pipeline import held_rows  # noqa: PLC0415 as above
    from pipeline.delta_tables import keeping  # noqa: PLC0415 as above
    from pipeline.files import StoredFiles  # noqa: PLC0415 as above
    from pipeline.object_stores import check_root  # noqa: PLC0415 as above
    from pipeline.store_errors import reach, told  # noqa: PLC0415 as above
    from pipeline.tables import TableStore  # noqa: PLC0415 as above

    wanted = loaded.settings.spark
    master = wanted.master or wanted.conf.get("spark.master")
    roots = [root for root in (wanted.tables, wanted.checkpoints, *also) if root]
    for root in roots:
        check_root(root, wanted.conf, "spark.checkpoints" if root == wanted.checkpoints else "spark.tables")
    held = None if is_here(master) else held_rows.shared_folder(wanted.tables)
    kept = keeping(wanted.time_travel_ms) if wanted.format == "delta" else {}
    spark = spark_session(
        name,
        master=wanted.master,
        conf={**kept, **({held_rows.SETTING: held} if held else {}), **(conf or {}), **wanted.conf},
        format=wanted.format,
        roots=roots,
        on_progress=say,
    )
    try:
        with told(roots):
            for root in roots:
                reach(spark, root)
            yield SparkCommand(loaded.settings, spark, TableStore(spark, wanted.tables, wanted.format))
    finally:
        if held is not None:
            with suppress(RackwiseError):  # the error of the command is the one to report
                held_rows.clear(StoredFiles(spark), wanted.tables, held)
        spark.stop()


def checkpoints(job: SparkCommand) -> str:
    """Folder of ingest's checkpoints."""
    return (job.settings.spark.checkpoints or f"{job.tables.root}/_checkpoints").rstrip("/")


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise ConfigError("An argument of --conf is no setting", why="NAME=VALUE is expected")
    return name.strip(), value

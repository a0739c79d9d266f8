"""``rackwise spark backtest``: the cost, savings and moves of other settings over a recorded stretch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.errors import BadInput, reason
from config.foreign_text import json_text
from config.plain_file import read_plain
from pipeline import options
from pipeline.moments import epoch_ms_of
from pipeline.options import say
from pipeline.output_files import written_whole

if TYPE_CHECKING:
    from pipeline.jobs.backtest import BacktestSummary

_STRATEGIES = "as-recorded,no-action,execute,eager-triggers,patient"
_MOST_HOURS = 8_784
"""A leap year."""
_MOST_S = 3_600 * _MOST_HOURS
_HOUR_MS = 3_600_000
_MOST_BYTES = 1_048_576


def backtest(
    spark: options.SparkOptions,
    strategies: Annotated[
        str, typer.Option(metavar="NAME,...", help="Names, comma-separated; --list shows them.", show_default=True)
    ] = _STRATEGIES,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Begin of the period, such as 2026-11-02T14:00.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="TIME", help="End of the period (exclusive).")] = None,
    by: Annotated[
        Literal["looks", "groups"],
        typer.Option(
            help="looks: exactly as the agent; groups: each group by itself, for large clusters and long periods."
        ),
    ] = "looks",
    groups: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Groups whose names match this pattern; with --by groups.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ID", help="Cluster id; all clusters when not given.")] = None,
    change: Annotated[
        list[str] | None, typer.Option(metavar="NAME:LIMIT=VALUE", help="Change a strategy or add one; repeatable.")
    ] = None,
    described: Annotated[Path | None, typer.Option(metavar="FILE", help="YAML file with more strategies.")] = None,
    stretch_hours: Annotated[
        float, typer.Option(metavar="HOURS", help="Length of the pieces of history.", min=0.1, max=_MOST_HOURS)
    ] = 24.0,
    longest_gap_s: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="A longer time between two looks counts as a gap.", min=1, max=_MOST_S),
    ] = 900.0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for ranking.md, ranking.json and ranking.svg.")
    ] = None,
    output: Annotated[
        options.TableOutput, typer.Option("--output", "-o", help="Output format of the ranking.")
    ] = "table",
    listing: Annotated[bool, typer.Option("--list", help="List the strategies and exit.")] = False,
) -> None:
    """Live through recorded history under other settings: a ranked table of what each would have come to."""
    from pipeline.backtest.strategies import BUILT_IN, chosen

    if listing:
        options.answer("\n".join(f"{one.name}: {one.about}" for one in BUILT_IN))
        return
    wanted = chosen(strategies, changes=change or (), described=_text(described), source=str(described))
    from_ms, to_ms = _moment(from_), _moment(to)
    loaded = options.settings(spark)
    with options.job("backtest", loaded) as job:
        from pipeline.clusters import check_clusters
        from pipeline.jobs.backtest import BacktestRequest, run_backtest

        check_clusters((job.tables,), [cluster] if cluster else [])
        done = run_backtest(
            job.tables,
            BacktestRequest(
                strategies=wanted,
                from_ms=from_ms,
                to_ms=to_ms,
                by=by,
                groups=groups,
                cluster=cluster,
                stretch_ms=round(stretch_hours * _HOUR_MS),
                longest_ms=round(longest_gap_s * 1000),
            ),
            say,
        )
    _tell(done, {one.name: one.about for one in wanted}, out, output)


def _tell(done: BacktestSummary, about: dict[str, str], out: Path | None, output: options.TableOutput) -> None:
    from pipeline.backtest.plot import draw
    from pipeline.backtest.ranking import markdown, ranked

    for line in done.messages:
        say(line)
    say(f"{done.shared:.1%} of the group snapshots were unchanged since the look before and were not computed again")
    rows = ranked(done.rows)
    text = markdown(rows, about)
    document = json_text([{**row._asdict(), "scores": row.scores._asdict()} for row in rows], 2)
    options.answer(document if output == "json" else text)
    if out is not None:
        with written_whole("the ranking", out, ("ranking.md", "ranking.json", "ranking.svg")) as beside:
            beside["ranking.md"].write_bytes(text.encode())
            beside["ranking.json"].write_bytes(f"{document}\n".encode())
            draw(rows, beside["ranking.svg"])
        say(f"wrote ranking.md, ranking.json and ranking.svg to {out}")


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return epoch_ms_of(text)
    except ValueError as error:
        raise BadInput(
            f"{text!r} is not a date or time",
            why=str(error),
            todo="Write 2026-11-02, 2026-11-02T14:00 or epoch milliseconds.",
        ) from None


def _text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return read_plain(path, _MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read", why=reason(error), todo="Name a YAML file with strategies.") from error

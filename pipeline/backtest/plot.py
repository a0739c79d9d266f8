"""Plot of the ranking: cost, rule violations and useless triggers of each strategy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent.errors import ConfigError
from pipeline.backtest.ranking import RankedStrategy


def draw(rows: Sequence[RankedStrategy], path: Path) -> None:
    """Write the picture, SVG or PNG by the name of the file. Raises ConfigError where matplotlib is not installed."""
    try:
        from matplotlib import rc_context  # noqa: PLC0415 an optional extra
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 as above
        from matplotlib.figure import Figure  # noqa: PLC0415 as above
    except ImportError as error:
        raise ConfigError(
            "Plots need matplotlib", why=str(error), todo="Install it: pip install 'rackwise[spark]'"
        ) from None

    in_money = all(row.usd_per_day is not None for row in rows)
    panels = (
        ("USD per day" if in_money else "reads across racks", [_cost(row, in_money=in_money) for row in rows]),
        ("minutes with a broken rule", [row.scores.violation_minutes for row in rows]),
        ("useless triggers", [float(row.scores.false_triggers) for row in rows]),
    )
    figure = Figure(figsize=(12, 1.6 + 0.45 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    names = [f"{row.rank}. {row.strategy}" for row in rows]
    for axes, (title, values) in zip(figure.subplots(1, len(panels), sharey=True), panels, strict=True):
        bars = axes.barh(names, values, color="#4878a8")
        axes.bar_label(bars, fmt="{:,.4g}", padding=3)
        axes.set_title(title)
        axes.margins(x=0.25)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
    # Neither dates nor random ids: equal rankings give equal files.
    with rc_context({"svg.hashsalt": "rackwise"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _cost(row: RankedStrategy, *, in_money: bool) -> float:
    return row.usd_per_day or 0.0 if in_money else row.crossing

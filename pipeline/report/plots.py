"""Plots as SVG by matplotlib. Equal plots give equal bytes: fixed salt, no date, no state of pyplot.

Colours are those of Okabe and Ito and of cividis, which hold for the colour-blind; what is unknown is hatched and never
drawn as 0. Text stays text, so that it can be searched and read aloud.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable
from typing import Any, assert_never

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.report import words
from pipeline.report.document import BarPlot, HeatMap, Plot, RangePlot, ScatterPlot, ValueUnit

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#666666")
_PATTERNS = ("", "//", "..", "xx", "\\\\", "++")
_UNKNOWN_LOOK: dict[str, Any] = {"facecolor": "#eeeeee", "edgecolor": "#888888", "hatch": "////"}
_SHARE_COLOURS = mpl.colormaps["cividis"]
_INK = "#222222"
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "rackwise",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#777777",
    # A name may hold a dollar sign, and is no formula.
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "path.simplify": False,
}
_WIDTH = 7.6
_ROW = 0.28
_LONGEST = 80
_NO_DATE: dict[str, Any] = {"Date": None, "Creator": None, "Format": None, "Type": None}
_MARK = re.compile(r'(\bid="|\bhref="#|url\(#)')


def to_svg(plot: Plot, name: str) -> str:
    """An ``svg`` element for a page of HTML; ``name`` sets its ids apart from those of other plots on the page."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # Widths are measured in a font that lacks the glyphs of some scripts; the reader's browser has them.
        warnings.simplefilter("ignore", UserWarning)
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        figure = Figure(layout="constrained")
        _draw(figure, plot._replace(**{field: _shown(value) for field, value in plot._asdict().items()}))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata=_NO_DATE)
    return _embedded(out.getvalue(), name)


def _shown(value: Any) -> Any:
    """The texts of a plot, harmless and short: some have no glyph at all, and a long one leaves no room to draw."""
    if isinstance(value, str):
        text = words.short(value, _LONGEST)
        return f" {text}" if text.startswith("_") else text  # a name that begins so would have no key in the legend
    if isinstance(value, tuple | frozenset) and all(isinstance(one, str) for one in value):
        return type(value)(_shown(one) for one in value)
    return value


def _draw(figure: Figure, plot: Plot) -> None:
    match plot:
        case BarPlot():
            _bars(figure, plot)
        case HeatMap():
            _heat(figure, plot)
        case RangePlot():
            _ranges(figure, plot)
        case ScatterPlot():
            _scatter(figure, plot)
        case _:
            assert_never(plot)


def _bars(figure: Figure, plot: BarPlot) -> None:
    parts, upright = len(plot.parts), plot.upright
    figure.set_size_inches(
        _WIDTH, max(3.4, 0.22 * parts + 1.0) if upright else 1.1 + _ROW * (len(plot.bars) + 0.45 * parts)
    )
    axes = figure.add_subplot()
    draw: Callable[..., Any] = axes.bar if upright else axes.barh
    ends = [0.0] * len(plot.bars)
    places = list(range(len(plot.bars)))
    for number, (part, sizes) in enumerate(zip(plot.parts, plot.sizes, strict=True)):
        lengths = [size or 0.0 for size in sizes]
        look = _UNKNOWN_LOOK if part in plot.hatched else _look(number)
        draw(places, lengths, 0.7, label=part, linewidth=0.5, **{"bottom" if upright else "left": ends, **look})
        ends = [end + length for end, length in zip(ends, lengths, strict=True)]
    _mark_unknown(axes, plot, ends)
    _values(axes.yaxis if upright else axes.xaxis, plot.unit, plot.label)
    if upright:
        axes.set_xticks(places, plot.bars, rotation=0 if len(places) < 6 else 60)
        axes.set_xlim(-0.6, max(len(places), 5) - 0.4)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    else:
        axes.set_yticks(places, plot.bars)
        axes.invert_yaxis()
        figure.legend(loc="outside lower center", frameon=False, fontsize=8, ncols=2)


def _mark_unknown(axes: Axes, plot: BarPlot, ends: list[float]) -> None:
    for at, end in enumerate(ends):
        if any(sizes[at] is None for sizes in plot.sizes):
            spot, beside = ((at, end), (0, 3)) if plot.upright else ((end, at), (3, -3))
            axes.annotate("+ unknown", spot, xytext=beside, textcoords="offset points", fontsize=8)


def _look(number: int) -> dict[str, Any]:
    """Colours repeat, so patterns distinguish the later parts from the earlier ones."""
    return {
        "facecolor": _COLOURS[number % len(_COLOURS)],
        "hatch": _PATTERNS[(number // len(_COLOURS)) % len(_PATTERNS)],
        "edgecolor": "white",
    }


def _heat(figure: Figure, plot: HeatMap) -> None:
    figure.set_size_inches(max(4.2, min(_WIDTH, 3.2 + 0.9 * len(plot.columns))), 1.2 + _ROW * len(plot.rows))
    axes = figure.add_subplot()
    for i, shares in enumerate(plot.shares):
        for j, share in enumerate(shares):
            if (i, j) not in plot.absent:
                _cell(axes, i, j, share)
    axes.set(xlim=(-0.5, len(plot.columns) - 0.5), ylim=(len(plot.rows) - 0.5, -0.5))
    axes.set_xticks(range(len(plot.columns)), plot.columns)
    axes.set_yticks(range(len(plot.rows)), plot.rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    keys = [
        Patch(facecolor=_SHARE_COLOURS(0.0), label="0 % within the rack"),
        Patch(facecolor=_SHARE_COLOURS(0.5), label="50 %"),
        Patch(facecolor=_SHARE_COLOURS(1.0), label="100 %"),
        Patch(**_UNKNOWN_LOOK, label="? unknown"),
    ]
    figure.legend(handles=keys, loc="outside lower center", frameon=False, fontsize=8, ncols=4)


def _cell(axes: Axes, row: int, column: int, share: float | None) -> None:
    face, text, ink = _UNKNOWN_LOOK, "?", _INK
    if share is not None:
        face = {"facecolor": _SHARE_COLOURS(share), "edgecolor": "white"}
        text, ink = words.share(share), "white" if share < 0.5 else _INK
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, linewidth=0.8, **face))
    axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=8)


def _ranges(figure: Figure, plot: RangePlot) -> None:
    figure.set_size_inches(_WIDTH, 1.1 + _ROW * len(plot.rows))
    axes = figure.add_subplot()
    for at, (low, middle, high) in enumerate(plot.values):
        axes.plot([low, high], [at, at], color=_COLOURS[0], linewidth=3, alpha=0.55, solid_capstyle="butt")
        axes.plot([low, high], [at, at], "|", color=_COLOURS[0], markersize=9)
        axes.plot([middle], [at], "o", color=_COLOURS[5], markersize=6)
    axes.set_yticks(range(len(plot.rows)), plot.rows)
    axes.set_ylim(len(plot.rows) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    _values(axes.xaxis, plot.unit, plot.label)


def _scatter(figure: Figure, plot: ScatterPlot) -> None:
    figure.set_size_inches(_WIDTH, 3.3)
    left, right = figure.subplots(1, 2)
    most = max(1.0, *(max(point) for point in plot.points)) * 1.08
    left.plot([0, most], [0, most], color="#888888", linewidth=1, linestyle="--", label="as predicted")
    left.plot(*zip(*plot.points, strict=True), "o", color=_COLOURS[0], markeredgecolor="white")
    left.set(xlim=(0, most), ylim=(0, most), xlabel="predicted", ylabel="measured")
    form = FuncFormatter(lambda value, _: _short_value(value, plot.unit))
    left.xaxis.set_major_formatter(form)
    left.yaxis.set_major_formatter(form)
    left.xaxis.set_major_locator(MaxNLocator(4))
    left.legend(frameon=False, fontsize=8, loc="upper left")
    _histogram(right, plot.errors)


def _histogram(axes: Axes, errors: tuple[float, ...]) -> None:
    # Ten bins, an even number around no error, so that it is seen at once which way predictions lean.
    edge = max(0.1, *(abs(error) for error in errors)) if errors else 0.1
    axes.hist(errors, bins=10, range=(-edge, edge), color=_COLOURS[1], edgecolor="white")
    axes.axvline(0, color="#888888", linewidth=1, linestyle="--")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.share(value, sign=True)))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("error: (measured \N{MINUS SIGN} predicted) / predicted")
    axes.set_ylabel("proposals")


def _values(axis: Axis, unit: ValueUnit, label: str) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short_value(value, unit)))
    axis.set_major_locator(MaxNLocator(6, integer=unit is ValueUnit.COUNT))
    axis.set_label_text(label)


def _short_value(value: float, unit: ValueUnit) -> str:
    return "0 s" if unit is ValueUnit.SECONDS and not value else words.in_unit(value, unit)


def _embedded(document: str, name: str) -> str:
    """The ``svg`` element alone; ids would otherwise be the same in every plot of the page."""
    element = document[document.index("<svg") :].rstrip()
    element = re.sub(r"<metadata>.*?</metadata>\s*", "", element, flags=re.DOTALL)
    # A rule for every element would hold for the whole page; each path has its own style.
    element = re.sub(r'<style type="text/css">.*?</style>', "", element, flags=re.DOTALL)
    return _MARK.sub(lambda found: f"{found[1]}{name}-", element)

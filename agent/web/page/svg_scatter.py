"""Predicted against measured as a picture: a point for each proposal, and the line on which both are equal. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from typing import NamedTuple

from markupsafe import Markup

from agent.values.number_format import counted
from agent.web.page.svg_elements import drawing, element, group, hatching, number, text

_WIDTH, _HEIGHT, _LEFT, _TOP, _SIDE = 720.0, 410.0, 96.0, 32.0, 320.0
_WIDE = 600.0
_DECADES = 100.0
"""Positive values that are so many times apart are drawn on logarithmic scales."""
MOST_POINTS = 5_000


class ScatterPoint(NamedTuple):
    """A pair of values, and what it is about."""

    predicted: float
    measured: float
    name: str


class _SharedScale(NamedTuple):
    """One scale for both axes, so that equal values are on the diagonal."""

    low: float
    high: float
    logarithmic: bool

    def share(self, value: float) -> float:
        if self.logarithmic:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            return [10.0**power for power in range(round(log10(self.low)), round(log10(self.high)) + 1)]
        return [self.low + (self.high - self.low) * at / 4 for at in range(5)]


def scatter(points: Sequence[ScatterPoint], *, title: str, unknown: int, words: Callable[[float], str]) -> Markup:
    """The picture; its description has the number of ``unknown`` proposals, which have no point."""
    left_out = f"; {counted(unknown, 'proposal')} not drawn, as one of both is unknown" if unknown else ""
    description = f"{counted(len(points), 'proposal')}, measured against predicted{left_out}."
    if not points:
        area = element("rect", x=_LEFT, y=_TOP, width=_WIDE, height=_SIDE, fill="url(#unknown-scatter)")
        label = text(
            _LEFT + _WIDE / 2, _TOP + _SIDE / 2, "unknown: no proposal has both values", class_="text-2 on-hatch",
            text_anchor="middle",
        )  # fmt: skip
        return drawing(title, description, _WIDTH, _HEIGHT, hatching("unknown-scatter"), area, label)
    shown = points[-MOST_POINTS:]
    scale = _scale([value for one in shown for value in (one.predicted, one.measured)])
    diagonal = element(
        "path", d=f"M{number(_LEFT)} {number(_TOP + _SIDE)}L{number(_LEFT + _WIDE)} {number(_TOP)}", class_="diagonal"
    )
    return drawing(
        f"{title}: predicted and measured",
        description,
        _WIDTH,
        _HEIGHT,
        _axes(scale, words),
        diagonal,
        text(_LEFT + _WIDE - 8, _TOP + 40, "as predicted", class_="text-3", text_anchor="end"),
        *(_point(one, scale, words) for one in shown),
    )


def _scale(values: Sequence[float]) -> _SharedScale:
    low, high = min(values), max(values)
    if low > 0 and high / low > _DECADES:
        return _SharedScale(10.0 ** int(log10(low) // 1), 10.0 ** -int(-log10(high) // 1), logarithmic=True)
    low = min(0.0, low)
    return _SharedScale(low, high if high > low else low + 1.0, logarithmic=False)


def _axes(scale: _SharedScale, words: Callable[[float], str]) -> Markup:
    parts = []
    for tick in scale.ticks():
        x, y = _LEFT + scale.share(tick) * _WIDE, _TOP + (1 - scale.share(tick)) * _SIDE
        parts.append(element("path", d=f"M{number(_LEFT)} {number(y)}H{number(_LEFT + _WIDE)}", class_="grid"))
        parts.append(element("path", d=f"M{number(x)} {number(_TOP)}V{number(_TOP + _SIDE)}", class_="grid"))
        parts.append(text(_LEFT - 8, y + 4, words(tick), class_="text-3", text_anchor="end"))
        parts.append(text(x, _TOP + _SIDE + 18, words(tick), class_="text-3", text_anchor="middle"))
    parts.append(text(_LEFT + _WIDE / 2, _HEIGHT - 10, "predicted", class_="text-2", text_anchor="middle"))
    parts.append(text(_LEFT, 16.0, "measured", class_="text-2"))
    return group(*parts)


def _point(one: ScatterPoint, scale: _SharedScale, words: Callable[[float], str]) -> Markup:
    sentence = f"{one.name}: predicted {words(one.predicted)}, measured {words(one.measured)}"
    return element(
        "circle",
        element("title", sentence),
        cx=_LEFT + scale.share(one.predicted) * _WIDE,
        cy=_TOP + (1 - scale.share(one.measured)) * _SIDE,
        r=5.5,
        class_="point",
    )

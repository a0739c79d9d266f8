"""SVG of the page: elements, and small charts of a plan's progress, predicted against measured, and warm-ups. Pure.

Text is escaped, with presentation attributes and classes alone. Unknown parts are hatched. A scatter has a point for
each proposal and the line on which both are equal; a warm-up has the lag that is left on a logarithmic scale, its range
and the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from agent.values.kafka import ACCEPTABLE_LAG
from agent.values.number_format import counted, lasted, sized
from agent.web.page.environment import short_client, short_name
from config.foreign_text import shortened

if TYPE_CHECKING:
    from agent.documents.proposals import PlanRow
    from agent.web.page.moves import BrokerCopies

AttributeValue = str | int | float | None
"""A value of an attribute; None leaves the attribute out."""


def element(name: str, *children: str, **attributes: AttributeValue) -> Markup:
    """An element; ``class_`` is class, ``stroke_width`` is stroke-width. Children that are no Markup are escaped."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value) if key == "href" else _written(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(child if isinstance(child, Markup) else escape(shortened(child)) for child in children)
    return Markup(f"<{name}{written}>{inner}</{name}>")  # noqa: S704 (every part is escaped above)


def drawing(
    title: str, description: str, width: float, height: float, *children: str, class_: str = "", has_links: bool = False
) -> Markup:
    """A whole picture with its text alternative: ``title`` names it, ``description`` says what it shows.

    With links in it the picture is a group of them, since an image would hide them from screen readers.
    """
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=number(width),
        height=number(height),
        role="group" if has_links else "img",
        aria_label=f"{title}. {description}",
        class_=f"drawing {class_}".strip(),
    )


def group(*children: str, **attributes: AttributeValue) -> Markup:
    """Elements together."""
    return element("g", *children, **attributes)


def link(href: str, *children: str, class_: str = "") -> Markup:
    """A link around elements, named by the texts among them."""
    return element("a", *children, href=href, class_=class_ or None)


def text(x: float, y: float, words: str, **attributes: AttributeValue) -> Markup:
    """A text at a point."""
    return element("text", words, x=x, y=y, **attributes)


def number(value: float) -> str:
    """A coordinate to a hundredth: ``12``, ``12.5``."""
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def hatching(name: str) -> Markup:
    """The pattern of the unknown, to be used as ``fill="url(#name)"``; its colours are the style sheet's."""
    lines = element("path", d="M-2 2l4-4M0 8l8-8M6 10l4-4", class_="hatch-line")
    ground = element("rect", width=8, height=8, class_="hatch-ground")
    return element("defs", element("pattern", ground, lines, id=name, width=8, height=8, patternUnits="userSpaceOnUse"))


def _written(value: str | float) -> str:
    if isinstance(value, Markup):  # a path of many points is not shortened
        return str(value)
    return number(value) if isinstance(value, float) else str(escape(shortened(str(value))))


_BAR = 640.0
_COPIES_ROW, _COPIES_TOP, _COPIES_LEFT, _COPIES_WIDE, _COPIES_RIGHT = 34.0, 8.0, 96.0, 480.0, 220.0
MOST_BROKERS = 40


def plan_bar(row: PlanRow) -> Markup:
    """Done, moving and waiting partitions of a plan as one bar."""
    total = max(1, row["partitions"])
    done, moving = _BAR * row["done"] / total, _BAR * row["moving"] / total
    words = (
        f"{row['done']:,} of {counted(row['partitions'], 'partition')} done, {row['moving']:,} moving, "
        f"{max(0, row['partitions'] - row['done'] - row['moving']):,} otherwise"
    )
    parts = [element("rect", x=0, y=2, width=_BAR, height=14, rx=4, class_="bar-ground")]
    if done:
        parts.append(element("rect", x=0, y=2, width=done, height=14, rx=4, class_="bar-done"))
    if moving:
        parts.append(element("rect", x=done, y=2, width=moving, height=14, class_="bar-moving"))
    return drawing(f"Progress of {row['plan']}", words, _BAR, 18, *parts, class_="bar")


def progress_by_broker(brokers: Sequence[BrokerCopies]) -> Markup:
    """Copied bytes of all that each broker takes; a broker of unknown size is hatched over its whole width."""
    shown = brokers[:MOST_BROKERS]
    known = [one.of_bytes for one in shown if one.of_bytes]
    most = max(known, default=0)
    rows = [_broker(one, _COPIES_TOP + at * _COPIES_ROW, most) for at, one in enumerate(shown)]
    more = len(brokers) - len(shown)
    last = [
        text(
            0.0,
            _COPIES_TOP + len(shown) * _COPIES_ROW + 14,
            f"and {counted(more, 'more broker')}: see the table",
            class_="text-3",
        )
    ]
    return drawing(
        "Copies by broker",
        "; ".join(f"broker {one.broker}: {_words(one)}" for one in shown),
        _COPIES_LEFT + _COPIES_WIDE + _COPIES_RIGHT,
        _COPIES_TOP + len(shown) * _COPIES_ROW + (24 if more else 4),
        hatching("unknown-progress"),
        *rows,
        *(last if more else ()),
    )


def _broker(one: BrokerCopies, y: float, most: int) -> Markup:
    label = text(0.0, y + 17, f"broker {one.broker}", class_="text-strong")
    words = text(_COPIES_LEFT + _COPIES_WIDE + 10, y + 17, _words(one), class_="text-2")
    if one.of_bytes is None or one.bytes is None or not most:
        bar = element(
            "rect", x=_COPIES_LEFT, y=y + 4, width=_COPIES_WIDE, height=18, rx=4, fill="url(#unknown-progress)"
        )
        return group(label, bar, words)
    whole = max(2.0, _COPIES_WIDE * one.of_bytes / most)
    there = whole * min(1.0, one.bytes / one.of_bytes) if one.of_bytes else whole
    bars = (
        element("rect", x=_COPIES_LEFT, y=y + 4, width=whole, height=18, rx=4, class_="bar-ground"),
        element("rect", x=_COPIES_LEFT, y=y + 4, width=there, height=18, rx=4, class_="bar-done"),
    )
    return group(label, *bars, words)


def _words(one: BrokerCopies) -> str:
    if one.bytes is None or one.of_bytes is None:
        return f"{counted(one.copies, 'copy', 'copies')} of unknown size"
    left = "time left unknown" if one.seconds_left is None else f"{lasted(1_000 * one.seconds_left)} left"
    return f"{sized(one.bytes)} of {sized(one.of_bytes)}, {left}"


_SCATTER_WIDTH, _SCATTER_HEIGHT, _SCATTER_LEFT, _SCATTER_TOP, _SCATTER_SIDE = 720.0, 410.0, 96.0, 32.0, 320.0
_SCATTER_WIDE = 600.0
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
        area = element(
            "rect",
            x=_SCATTER_LEFT,
            y=_SCATTER_TOP,
            width=_SCATTER_WIDE,
            height=_SCATTER_SIDE,
            fill="url(#unknown-scatter)",
        )
        middle = _SCATTER_LEFT + _SCATTER_WIDE / 2, _SCATTER_TOP + _SCATTER_SIDE / 2
        label = text(*middle, "unknown: no proposal has both values", class_="text-2 on-hatch", text_anchor="middle")
        return drawing(title, description, _SCATTER_WIDTH, _SCATTER_HEIGHT, hatching("unknown-scatter"), area, label)
    shown = points[-MOST_POINTS:]
    scale = _scale([value for one in shown for value in (one.predicted, one.measured)])
    diagonal = element(
        "path",
        d=f"M{number(_SCATTER_LEFT)} {number(_SCATTER_TOP + _SCATTER_SIDE)}"
        f"L{number(_SCATTER_LEFT + _SCATTER_WIDE)} {number(_SCATTER_TOP)}",
        class_="diagonal",
    )
    return drawing(
        f"{title}: predicted and measured",
        description,
        _SCATTER_WIDTH,
        _SCATTER_HEIGHT,
        _axes(scale, words),
        diagonal,
        text(_SCATTER_LEFT + _SCATTER_WIDE - 8, _SCATTER_TOP + 40, "as predicted", class_="text-3", text_anchor="end"),
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
        x, y = _SCATTER_LEFT + scale.share(tick) * _SCATTER_WIDE, _SCATTER_TOP + (1 - scale.share(tick)) * _SCATTER_SIDE
        parts.append(
            element(
                "path", d=f"M{number(_SCATTER_LEFT)} {number(y)}H{number(_SCATTER_LEFT + _SCATTER_WIDE)}", class_="grid"
            )
        )
        parts.append(
            element(
                "path", d=f"M{number(x)} {number(_SCATTER_TOP)}V{number(_SCATTER_TOP + _SCATTER_SIDE)}", class_="grid"
            )
        )
        parts.append(text(_SCATTER_LEFT - 8, y + 4, words(tick), class_="text-3", text_anchor="end"))
        parts.append(text(x, _SCATTER_TOP + _SCATTER_SIDE + 18, words(tick), class_="text-3", text_anchor="middle"))
    parts.append(
        text(
            _SCATTER_LEFT + _SCATTER_WIDE / 2, _SCATTER_HEIGHT - 10, "predicted", class_="text-2", text_anchor="middle"
        )
    )
    parts.append(text(_SCATTER_LEFT, 16.0, "measured", class_="text-2"))
    return group(*parts)


def _point(one: ScatterPoint, scale: _SharedScale, words: Callable[[float], str]) -> Markup:
    sentence = f"{one.name}: predicted {words(one.predicted)}, measured {words(one.measured)}"
    return element(
        "circle",
        element("title", sentence),
        cx=_SCATTER_LEFT + scale.share(one.predicted) * _SCATTER_WIDE,
        cy=_SCATTER_TOP + (1 - scale.share(one.measured)) * _SCATTER_SIDE,
        r=5.5,
        class_="point",
    )


_WARMUPS_WIDTH, _WARMUPS_LEFT, _WARMUPS_RIGHT, _WARMUPS_ROW, _WARMUPS_TOP = 1080.0, 300.0, 214.0, 30.0, 30.0
_HATCH = "unknown-lag"


def warmup_bars(rows: Sequence[Any]) -> Markup | None:
    """One bar for each row of a warm-up; None without rows."""
    if not rows:
        return None
    most = max([10.0, *(10.0 * row["acceptable_recovery_lag"] for row in rows), *map(_highest, rows)])
    height = _WARMUPS_TOP + _WARMUPS_ROW * len(rows) + 8
    caught_up = sum(row["caught_up"] is True for row in rows)
    description = f"{counted(len(rows), 'warm-up')}, {caught_up} caught up; the bar is the lag that is left."
    return drawing(
        "Warm-ups",
        description,
        _WARMUPS_WIDTH,
        height,
        hatching(_HATCH),
        *_axis(most, height),
        *(_bar(row, _WARMUPS_TOP + _WARMUPS_ROW * index, most) for index, row in enumerate(rows)),
        class_="warmups",
    )


def _highest(row: Any) -> float:
    return float(row["lag_records"]["high"]) if row["lag_records"] is not None else 0.0


def _x(lag: float, most: float) -> float:
    """Where a lag is on the scale; 0 is at its left end."""
    return _WARMUPS_LEFT + (_WARMUPS_WIDTH - _WARMUPS_LEFT - _WARMUPS_RIGHT) * log10(1 + max(0.0, lag)) / log10(
        1 + most
    )


def _axis(most: float, height: float) -> Iterable[Markup]:
    """Powers of ten, with their lines."""
    step = 0
    while 10**step <= most:
        value = 0 if step == 0 else 10**step
        x = _x(value, most)
        yield element("line", x1=x, x2=x, y1=_WARMUPS_TOP - 6, y2=height - 6, class_="axis")
        yield text(x, _WARMUPS_TOP - 12, f"{value:,}", text_anchor="middle", class_="text-3")
        step += 1


def _bar(row: Any, y: float, most: float) -> Markup:
    """One warm-up: whose task it is, its lag and range, the threshold, and when it will have caught up."""
    lag, middle = row["lag_records"], y + _WARMUPS_ROW / 2
    where = f"{row['rack'] or 'rack unknown'}"
    parts = [
        text(0, middle + 4, f"{short_name(row['group'], 20)} {row['task']}", class_="text-name"),
        text(
            _WARMUPS_LEFT - 14,
            middle + 4,
            f"{short_client(row['client'], 20)} · {short_name(where, 12)}",
            text_anchor="end",
            class_="text-2",
        ),
    ]
    if lag is None:
        width = _WARMUPS_WIDTH - _WARMUPS_LEFT - _WARMUPS_RIGHT
        parts.append(element("rect", x=_WARMUPS_LEFT, y=y + 8, width=width, height=14, rx=3, fill=f"url(#{_HATCH})"))
        parts.append(text(_WARMUPS_LEFT + 10, middle + 4, "lag unknown", class_="text-2"))
    else:
        low, likely, high = (_x(lag[name], most) for name in ("low", "likely", "high"))
        if high > low:
            parts.append(element("rect", x=low, y=y + 11, width=high - low, height=8, rx=2, class_="lag-range"))
        state = {True: "is-caught-up", False: "is-behind", None: "is-open"}[row["caught_up"]]
        parts.append(
            element(
                "rect", x=_WARMUPS_LEFT, y=y + 8, width=max(2.0, likely - _WARMUPS_LEFT), height=14, rx=3, class_=state
            )
        )
    threshold = _x(row["acceptable_recovery_lag"], most)
    parts.append(
        element(
            "line",
            element("title", f"{ACCEPTABLE_LAG} {row['acceptable_recovery_lag']:,}"),
            x1=threshold,
            x2=threshold,
            y1=y + 3,
            y2=y + _WARMUPS_ROW - 3,
            class_="threshold",
        )
    )
    parts.append(text(_WARMUPS_WIDTH - _WARMUPS_RIGHT + 12, middle + 4, row["outlook"], class_="text-outlook"))
    return group(element("title", row["sentence"]), *parts)

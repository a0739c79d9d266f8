"""Bars of warm-ups as SVG: the lag that is left on a logarithmic scale, its range, and the threshold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log10
from typing import Any

from markupsafe import Markup

from agent.values.kafka import ACCEPTABLE_LAG
from agent.values.number_format import counted
from agent.web.page.environment import short_client, short_name
from agent.web.page.svg_elements import drawing, element, group, hatching, text

_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 1080.0, 300.0, 214.0, 30.0, 30.0
_HATCH = "unknown-lag"


def warmup_bars(rows: Sequence[Any]) -> Markup | None:
    """One bar for each row of a warm-up; None without rows."""
    if not rows:
        return None
    most = max([10.0, *(10.0 * row["acceptable_recovery_lag"] for row in rows), *map(_highest, rows)])
    height = _TOP + _ROW * len(rows) + 8
    caught_up = sum(row["caught_up"] is True for row in rows)
    description = f"{counted(len(rows), 'warm-up')}, {caught_up} caught up; the bar is the lag that is left."
    return drawing(
        "Warm-ups",
        description,
        _WIDTH,
        height,
        hatching(_HATCH),
        *_axis(most, height),
        *(_bar(row, _TOP + _ROW * index, most) for index, row in enumerate(rows)),
        class_="warmups",
    )


def _highest(row: Any) -> float:
    return float(row["lag_records"]["high"]) if row["lag_records"] is not None else 0.0


def _x(lag: float, most: float) -> float:
    """Where a lag is on the scale; 0 is at its left end."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * log10(1 + max(0.0, lag)) / log10(1 + most)


def _axis(most: float, height: float) -> Iterable[Markup]:
    """Powers of ten, with their lines."""
    step = 0
    while 10**step <= most:
        value = 0 if step == 0 else 10**step
        x = _x(value, most)
        yield element("line", x1=x, x2=x, y1=_TOP - 6, y2=height - 6, class_="axis")
        yield text(x, _TOP - 12, f"{value:,}", text_anchor="middle", class_="text-3")
        step += 1


def _bar(row: Any, y: float, most: float) -> Markup:
    """One warm-up: whose task it is, its lag and range, the threshold, and when it will have caught up."""
    lag, middle = row["lag_records"], y + _ROW / 2
    where = f"{row['rack'] or 'rack unknown'}"
    parts = [
        text(0, middle + 4, f"{short_name(row['group'], 20)} {row['task']}", class_="text-name"),
        text(
            _LEFT - 14,
            middle + 4,
            f"{short_client(row['client'], 20)} · {short_name(where, 12)}",
            text_anchor="end",
            class_="text-2",
        ),
    ]
    if lag is None:
        width = _WIDTH - _LEFT - _RIGHT
        parts.append(element("rect", x=_LEFT, y=y + 8, width=width, height=14, rx=3, fill=f"url(#{_HATCH})"))
        parts.append(text(_LEFT + 10, middle + 4, "lag unknown", class_="text-2"))
    else:
        low, likely, high = (_x(lag[name], most) for name in ("low", "likely", "high"))
        if high > low:
            parts.append(element("rect", x=low, y=y + 11, width=high - low, height=8, rx=2, class_="lag-range"))
        state = {True: "is-caught-up", False: "is-behind", None: "is-open"}[row["caught_up"]]
        parts.append(element("rect", x=_LEFT, y=y + 8, width=max(2.0, likely - _LEFT), height=14, rx=3, class_=state))
    threshold = _x(row["acceptable_recovery_lag"], most)
    parts.append(
        element(
            "line",
            element("title", f"{ACCEPTABLE_LAG} {row['acceptable_recovery_lag']:,}"),
            x1=threshold,
            x2=threshold,
            y1=y + 3,
            y2=y + _ROW - 3,
            class_="threshold",
        )
    )
    parts.append(text(_WIDTH - _RIGHT + 12, middle + 4, row["outlook"], class_="text-outlook"))
    return group(element("title", row["sentence"]), *parts)

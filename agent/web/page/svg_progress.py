"""Progress as pictures: the bar of a plan, and copied bytes by broker. Unknown parts are hatched. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from agent.values.number_format import counted, lasted, sized
from agent.web.page.svg_elements import drawing, element, group, hatching, text

if TYPE_CHECKING:
    from agent.documents.proposals import PlanRow
    from agent.web.page.moves import BrokerCopies

_BAR = 640.0
_ROW, _TOP, _LEFT, _WIDE, _RIGHT = 34.0, 8.0, 96.0, 480.0, 220.0
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
    rows = [_broker(one, _TOP + at * _ROW, most) for at, one in enumerate(shown)]
    more = len(brokers) - len(shown)
    last = [
        text(0.0, _TOP + len(shown) * _ROW + 14, f"and {counted(more, 'more broker')}: see the table", class_="text-3")
    ]
    return drawing(
        "Copies by broker",
        "; ".join(f"broker {one.broker}: {_words(one)}" for one in shown),
        _LEFT + _WIDE + _RIGHT,
        _TOP + len(shown) * _ROW + (24 if more else 4),
        hatching("unknown-progress"),
        *rows,
        *(last if more else ()),
    )


def _broker(one: BrokerCopies, y: float, most: int) -> Markup:
    label = text(0.0, y + 17, f"broker {one.broker}", class_="text-strong")
    words = text(_LEFT + _WIDE + 10, y + 17, _words(one), class_="text-2")
    if one.of_bytes is None or one.bytes is None or not most:
        bar = element("rect", x=_LEFT, y=y + 4, width=_WIDE, height=18, rx=4, fill="url(#unknown-progress)")
        return group(label, bar, words)
    whole = max(2.0, _WIDE * one.of_bytes / most)
    there = whole * min(1.0, one.bytes / one.of_bytes) if one.of_bytes else whole
    bars = (
        element("rect", x=_LEFT, y=y + 4, width=whole, height=18, rx=4, class_="bar-ground"),
        element("rect", x=_LEFT, y=y + 4, width=there, height=18, rx=4, class_="bar-done"),
    )
    return group(label, *bars, words)


def _words(one: BrokerCopies) -> str:
    if one.bytes is None or one.of_bytes is None:
        return f"{counted(one.copies, 'copy', 'copies')} of unknown size"
    left = "time left unknown" if one.seconds_left is None else f"{lasted(1_000 * one.seconds_left)} left"
    return f"{sized(one.bytes)} of {sized(one.of_bytes)}, {left}"

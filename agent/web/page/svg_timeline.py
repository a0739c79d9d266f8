"""The time line as a picture: local reads above, events in lanes below, one axis of time. Unknown is hatched. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from agent.money.traffic import bytes_words
from agent.values.number_format import counted
from agent.web.page.svg import drawing, element, group, hatching, number, text

DESK, PHONE = 1080.0, 400.0
"""Widths of the picture: at a desk, and on a phone, where letters keep their size and there are fewer ticks."""
_LEFT, _RIGHT = 92.0, 12.0
_TOP, _CURVE, _SECOND, _GAP, _LANE = 30.0, 168.0, 64.0, 42.0, 26.0
_GAP_MS = 150_000
"""Two rows that are farther apart do not belong together: what was between them is unknown."""
_STRIP = 10.0
_LANE_WORDS = {"looks": "Failed looks"}
_OF_JOURNAL = ("triggers", "moves")
"""Lanes that the journal knows of, also from before the agent's start."""
MOST_MARKS = 400
"""Of a lane at a desk; on a phone a quarter of them."""
SHAPES = {
    "rack change": "M-5 -5h10v10h-10z",
    "rebalance": "M0 -6a6 6 0 1 0 .01 0z",
    "trigger": "M-2 -7L5 -1H1L3 7L-5 0H-1z",
    "move began": "M-5 -6L6 0L-5 6z",
    "move ended": "M-5 -6H-3V6H-5zM-1 -5H5V5H-1z",
    "plan": "M-5 -6L6 0L-5 6z",
    "finding began": "M0 -6L6 5H-6z",
    "finding ended": "M0 6L6 -5H-6z",
    "look failed": "M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0z",
}
_OTHER = "M0 -6L6 0L0 6L-6 0z"


class TimelinePoint(NamedTuple):
    """One minute of the curve; None is unknown."""

    at_ms: int
    local_share: float | None
    unknown_share: float | None
    cross_rack_bytes_per_s: float | None


class TimelineMark(NamedTuple):
    """One event."""

    at_ms: int
    lane: str
    kind: str
    subject: str
    sentence: str


class _TimeAxis(NamedTuple):
    from_ms: int
    until_ms: int
    width: float

    @property
    def hatch_name(self) -> str:
        """Of the picture's own pattern: a browser draws none that is in a hidden picture."""
        return f"unknown-time-{self.width:.0f}"

    @property
    def hatch(self) -> str:
        """How the unknown is filled."""
        return f"url(#{self.hatch_name})"

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.width - _RIGHT

    def x(self, at_ms: float) -> float:
        share = (at_ms - self.from_ms) / max(1, self.until_ms - self.from_ms)
        return _LEFT + min(1.0, max(0.0, share)) * (self.right - _LEFT)


def timeline(
    points: Sequence[TimelinePoint],
    marks: Sequence[TimelineMark],
    *,
    lanes: Sequence[str],
    from_ms: int,
    until_ms: int,
    known_from_ms: int,
    width: float = DESK,
) -> Markup:
    """The picture. ``known_from_ms``: before this instant nothing of the curve is known."""
    axis = _TimeAxis(from_ms, until_ms, width)
    most = MOST_MARKS if width == DESK else MOST_MARKS // 4
    second = _TOP + _CURVE + _GAP
    below = second + _SECOND + _GAP
    height = below + len(lanes) * _LANE + 30
    strips = [
        (below + at * _LANE + _LANE / 2 - _STRIP / 2, _STRIP)
        for at, name in enumerate(lanes)
        if name not in _OF_JOURNAL
    ]
    title = next(
        (_at_end(one.local_share, one.unknown_share) for one in reversed(points) if one.local_share is not None),
        "unknown",
    )
    return drawing(
        "Time line",
        f"{title}; {counted(len(marks), 'event')}. The table has every value.",
        width,
        height,
        hatching(axis.hatch_name),
        _unknown_times(points, axis, known_from_ms, [(_TOP, _CURVE), (second, _SECOND), *strips]),
        _scale(axis),
        _bands(points, axis),
        *_lines("line-local", ((p.at_ms, p.local_share) for p in points), axis, _ValueScale(_TOP, _CURVE, 1.0)),
        _traffic(points, axis, second),
        _lanes(marks, lanes, axis, below, most),
        _ticks(axis, below + len(lanes) * _LANE),
        class_="timeline" if width == DESK else "timeline for-phone",
    )


def _at_end(share: float, unknown: float | None) -> str:
    most = f" to {100 * (share + unknown):.0f} %" if unknown else ""
    return f"{100 * share:.0f} %{most} of reads are local at the end"


def _scale(axis: _TimeAxis) -> Markup:
    parts = [text(0.0, _TOP - 14, "Local reads", class_="text-strong")]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _TOP + _CURVE * (1 - share)
        parts.append(element("path", d=f"M{number(_LEFT)} {number(y)}H{number(axis.right)}", class_="grid"))
        parts.append(text(_LEFT - 6, y + 4, f"{share:.0%}".replace("%", " %"), class_="text-3", text_anchor="end"))
    return group(*parts)


def _unknown_times(
    points: Sequence[TimelinePoint], axis: _TimeAxis, known_from_ms: int, areas: Sequence[tuple[float, float]]
) -> Markup:
    """Hatched where no look says anything: before the agent's start, and where looks failed or are missing."""
    spans: list[tuple[float, float, str]] = []
    times = [one.at_ms for one in points if one.local_share is not None or one.cross_rack_bytes_per_s is not None]
    start = min(times, default=axis.until_ms)
    if start > axis.from_ms + _GAP_MS:
        why = "before this agent's start" if known_from_ms > axis.from_ms else "no look"
        spans.append((axis.from_ms, start, why))
    spans += [(a, b, "no look") for a, b in pairwise(times) if b - a > _GAP_MS]
    if times and axis.until_ms - times[-1] > _GAP_MS:
        spans.append((times[-1], axis.until_ms, "no look"))
    return group(*(_hatched(axis, axis.x(a), axis.x(b), why, areas) for a, b, why in spans))


def _hatched(axis: _TimeAxis, left: float, right: float, why: str, areas: Sequence[tuple[float, float]]) -> Markup:
    """Every area, by its top and height, between two points."""
    wide = max(1.0, right - left)
    title = element("title", f"unknown: {why}")
    area = group(*(element("rect", title, x=left, y=y, width=wide, height=high, fill=axis.hatch) for y, high in areas))
    if wide < 240:
        return area
    # Between two lines of the scale, so that none strikes it out.
    y = _TOP + _CURVE * 0.4
    label = text(left + wide / 2, y, f"unknown: {why}", class_="text-2 on-hatch", text_anchor="middle")
    return group(area, label)


def _bands(points: Sequence[TimelinePoint], axis: _TimeAxis) -> Markup:
    """Reads of unknown locality, hatched above the local ones."""
    bands = []
    for run in _runs(points):
        top = [(axis.x(p.at_ms), _TOP + _CURVE * (1 - (p.local_share or 0) - (p.unknown_share or 0))) for p in run]
        low = [(axis.x(p.at_ms), _TOP + _CURVE * (1 - (p.local_share or 0))) for p in reversed(run)]
        path = "L".join(f"{number(x)} {number(y)}" for x, y in (*top, *low))
        bands.append(element("path", element("title", "locality unknown"), d=Markup(f"M{path}Z"), fill=axis.hatch))  # noqa: S704 (numbers)
    return group(*bands)


def _runs(points: Iterable[TimelinePoint]) -> list[list[TimelinePoint]]:
    """Neighbours with reads of unknown locality, without a gap between them."""
    runs: list[list[TimelinePoint]] = []
    before = None
    for point in points:
        if point.local_share is None or not point.unknown_share:
            before = None
            continue
        if before is None or point.at_ms - before > _GAP_MS:
            runs.append([])
        runs[-1].append(point)
        before = point.at_ms
    return runs


class _ValueScale(NamedTuple):
    """Where values stand: ``most`` at ``top``, zero at its foot."""

    top: float
    height: float
    most: float

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - min(1.0, value / self.most))


def _lines(
    class_: str, values: Iterable[tuple[int, float | None]], axis: _TimeAxis, scale: _ValueScale
) -> list[Markup]:
    """The curve, broken where a value is unknown or missing; a lone value is a dot."""
    found: list[Markup] = []
    run: list[tuple[int, float]] = []
    for at_ms, value in (*values, (0, None)):
        if run and (value is None or at_ms - run[-1][0] > _GAP_MS):
            found.append(_line(class_, run, axis, scale))
            run = []
        if value is not None:
            run.append((at_ms, value))
    return found


def _line(class_: str, run: Sequence[tuple[int, float]], axis: _TimeAxis, scale: _ValueScale) -> Markup:
    spots = [(axis.x(at), scale.y(value)) for at, value in run]
    if len(spots) == 1:
        return element("circle", cx=spots[0][0], cy=spots[0][1], r=2.5, class_=f"{class_} dot")
    path = "L".join(f"{number(x)} {number(y)}" for x, y in spots)
    return element("path", d=Markup(f"M{path}"), class_=class_)  # noqa: S704 (numbers)


def _traffic(points: Sequence[TimelinePoint], axis: _TimeAxis, top: float) -> Markup:
    """Bytes per second that are read across racks, on a scale of their own."""
    title = text(0.0, top - 14, "Read across racks", class_="text-strong on-hatch")
    known = [one.cross_rack_bytes_per_s for one in points if one.cross_rack_bytes_per_s is not None]
    if not known:
        area = element("rect", x=_LEFT, y=top, width=axis.right - _LEFT, height=_SECOND, fill=axis.hatch)
        label = text(
            (_LEFT + axis.width) / 2, top + _SECOND / 2 + 4, "unknown: no rate is known", class_="text-2 on-hatch",
            text_anchor="middle",
        )  # fmt: skip
        return group(title, area, label)
    most = max(*known, 1.0)
    frame = element("path", d=f"M{number(_LEFT)} {number(top + _SECOND)}H{number(axis.right)}", class_="grid")
    scale = text(_LEFT - 6, top + 4, bytes_words(most) or "", class_="text-3", text_anchor="end")
    zero = text(_LEFT - 6, top + _SECOND + 4, "0", class_="text-3", text_anchor="end")
    values = ((one.at_ms, one.cross_rack_bytes_per_s) for one in points)
    return group(title, scale, zero, frame, *_lines("line-crossing", values, axis, _ValueScale(top, _SECOND, most)))


def _lanes(marks: Sequence[TimelineMark], lanes: Sequence[str], axis: _TimeAxis, top: float, most: int) -> Markup:
    parts = []
    for at, lane in enumerate(lanes):
        y = top + at * _LANE + _LANE / 2
        parts.append(text(0.0, y + 4, _LANE_WORDS.get(lane, lane.capitalize()), class_="text-2"))
        parts.append(element("path", d=f"M{number(_LEFT)} {number(y)}H{number(axis.right)}", class_="grid"))
        own = [mark for mark in marks if mark.lane == lane][-most:]
        parts += [_mark(mark, axis, y) for mark in own]
    return group(*parts)


def _mark(mark: TimelineMark, axis: _TimeAxis, y: float) -> Markup:
    title = f"{_time(mark.at_ms)} {mark.kind}: {mark.sentence or mark.subject}"
    return element(
        "path",
        element("title", title),
        d=SHAPES.get(mark.kind, _OTHER),
        transform=f"translate({number(axis.x(mark.at_ms))} {number(y)})",
        class_=f"mark-{mark.lane}",
    )


def _ticks(axis: _TimeAxis, y: float) -> Markup:
    parts = []
    last = 6 if axis.width == DESK else 3
    for at in range(last + 1):
        at_ms = axis.from_ms + (axis.until_ms - axis.from_ms) * at / last
        x = axis.x(at_ms)
        anchor = "start" if at == 0 else "end" if at == last else "middle"
        parts.append(element("path", d=f"M{number(x)} {number(_TOP)}V{number(y + 4)}", class_="grid faint"))
        parts.append(text(x, y + 20, _time(at_ms), class_="text-3", text_anchor=anchor))
    parts.append(text(0.0, y + 20, "UTC", class_="text-3"))
    return group(*parts)


def _time(at_ms: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%H:%M}"
    except (OverflowError, OSError, ValueError):
        return "?"


def legend(kinds: Iterable[str]) -> Markup:
    """What the shapes of these kinds of events mean, in the order of the shapes; nothing without events."""
    shown = set(kinds)
    known = [kind for kind in SHAPES if kind in shown]
    others = sorted(shown - set(SHAPES))
    signs = [*((kind, SHAPES[kind]) for kind in known), *((kind, _OTHER) for kind in others[:1])]
    return Markup().join(_sign(kind if kind in SHAPES else "proposal or command", shape) for kind, shape in signs)


def _sign(kind: str, shape: str) -> Markup:
    sign = element(
        "svg", element("path", d=shape), class_="sign", viewBox="-8 -8 16 16", width=16, height=16, aria_hidden="true"
    )
    return element("li", sign, kind)

"""The rack map as SVG: racks as rooms, flows between them drawn to scale by path; unknown is hatched. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from agent.documents.views_money import CONSUME, MOVE, REPLICATE, RackFlow, RackFlows
from agent.money.traffic import bytes_words, usd_words
from agent.values.number_format import counted
from agent.web.page.environment import rack_link, short_name
from agent.web.page.svg import drawing, element, group, hatching, link, number, text

if TYPE_CHECKING:
    from agent.documents.cluster import RackDocument

MOST_ROOMS = 12
"""Of more racks the matrix alone is shown."""
MOST_FLOWS = 40
"""Flows that are drawn, the largest; the table has all."""
_MOST_LABELS = 6
"""Pairs with words beside them, where there are more than four racks."""
_WIDTH = 1080.0
_WIDEST, _THINNEST, _UNKNOWN_WIDTH = 20.0, 2.5, 9.0
_HATCH = "unknown-flow"


class RoomPlace(NamedTuple):
    """The rectangle of a rack."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class _Scene:
    places: Mapping[str, RoomPlace]
    height: float
    flows: RackFlows
    scale: float
    """Pixels per byte and second."""


def rack_map(racks: Sequence[RackDocument], flows: RackFlows, *, selected: str | None = None) -> Markup | None:
    """The map of all known racks; None where there are none, or more than `MOST_ROOMS`."""
    known = [row for row in racks if row["rack"] is not None]
    names = [str(row["rack"]) for row in known]
    if not known or len(known) > MOST_ROOMS:
        return None
    places, height = _places(names)
    scene = _Scene(places, height, flows, _WIDEST / flows.largest if flows.largest else 0.0)
    lost = [row for row in racks if row["rack"] is None]
    rooms = [_room(row, places[str(row["rack"])], is_selected=row["rack"] == selected) for row in known]
    below = _unplaced(lost[0], height) if lost and _holds_anything(lost[0]) else Markup()
    return drawing(
        "Rack map",
        _description(known, flows),
        _WIDTH,
        height + (64 if below else 0),
        _patterns(),
        group(*_bands(scene, names), class_="flows"),
        *rooms,
        below,
        class_="rack-map",
        has_links=True,
    )


def _places(names: Sequence[str]) -> tuple[dict[str, RoomPlace], float]:
    """Rack -> its room; two side by side, three as a triangle, four in the corners, more on an ellipse."""
    width, height = (256.0, 156.0) if len(names) <= 4 else (240.0, 136.0) if len(names) <= 6 else (196.0, 116.0)
    spots: list[tuple[float, float]]
    match len(names):
        case 1:
            spots, total = [(_WIDTH / 2, 90.0)], 180.0
        case 2:
            spots, total = [(150.0, 110.0), (_WIDTH - 150.0, 110.0)], 220.0
        case 3:
            spots, total = [(150.0, 96.0), (_WIDTH - 150.0, 96.0), (_WIDTH / 2, 424.0)], 516.0
        case 4:
            spots, total = [(150.0, 96.0), (_WIDTH - 150.0, 96.0), (_WIDTH - 150.0, 424.0), (150.0, 424.0)], 516.0
        case many:
            total = 640.0 if many <= 8 else 820.0
            angles = [2 * pi * index / many - pi / 2 for index in range(many)]
            across, down = _WIDTH / 2 - width / 2 - 6, total / 2 - height / 2 - 6
            spots = [(_WIDTH / 2 + across * cos(angle), total / 2 + down * sin(angle)) for angle in angles]
    rooms = {
        name: RoomPlace(x - width / 2, y - height / 2, width, height) for name, (x, y) in zip(names, spots, strict=True)
    }
    return rooms, total


def _patterns() -> Markup:
    """How each path is filled, so that its colour is not its only sign."""
    made = []
    for path, strokes in ((REPLICATE, ""), (CONSUME, "M0 10L10 0"), (MOVE, "M0 0L10 10M0 10L10 0")):
        ground = element("rect", width=10, height=10, class_=f"path-{path}")
        lines = element("path", d=strokes, class_="path-lines") if strokes else Markup()
        made.append(
            element("pattern", ground, lines, id=f"path-{path}", width=10, height=10, patternUnits="userSpaceOnUse")
        )
    return hatching(_HATCH) + element("defs", *made)


def _bands(scene: _Scene, names: Sequence[str]) -> Iterable[Markup]:
    """The flows between every two racks, side by side, each towards its arrow; then their words, above all bands."""
    shown = scene.flows.flows[:MOST_FLOWS]
    flowing = {frozenset((flow.source, flow.target)) for flow in scene.flows.flows}
    labels: dict[tuple[str, str], _Label] = {}
    labelled = _largest_pairs(shown)
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            there = [flow for flow in shown if (flow.source, flow.target) == (first, second)]
            back = [flow for flow in shown if (flow.source, flow.target) == (second, first)]
            if not there and not back:
                if frozenset((first, second)) not in flowing:
                    line, words = _quiet(scene, first, second)
                    yield line
                    labels |= {} if words is None else {(first, second): words}
                continue
            lanes = _lanes([*there, *reversed(back)], scene)
            for flow, offset, width in lanes:
                turn = 1.0 if flow.source == first else -1.0
                yield _band(flow, scene, offset * turn, width)
            for flows in (there, back):
                if flows and (len(names) <= 4 or (flows[0].source, flows[0].target) in labelled):
                    edge = sum(width for _, _, width in lanes) / 2 + 2 * len(lanes)
                    own = [offset for flow, offset, _ in lanes if flow in flows]
                    turn = 1.0 if flows[0].source == first else -1.0
                    beside = -edge if len(names) <= 4 else None
                    labels[flows[0].source, flows[0].target] = _label(flows, scene, turn * sum(own) / len(own), beside)
    ranked = sorted(labels, key=lambda pair: (pair not in labelled, [*labels].index(pair)))
    yield from _tags([labels[pair] for pair in ranked], scene, may_drop=len(names) > 4)


def _largest_pairs(flows: Sequence[RackFlow]) -> frozenset[tuple[str, str]]:
    """The pairs with the most bytes per second, which have words beside them."""
    totals: dict[tuple[str, str], float] = {}
    for flow in flows:
        pair = flow.source, flow.target
        totals[pair] = totals.get(pair, 0.0) + (flow.bytes_per_s or 0.0)
    return frozenset(sorted(totals, key=lambda pair: (-totals[pair], pair))[:_MOST_LABELS])


def _lanes(flows: Sequence[RackFlow], scene: _Scene) -> list[tuple[RackFlow, float, float]]:
    """(flow, offset of its middle from the line between the rooms, width)."""
    widths = [_width(flow, scene) for flow in flows]
    gap = 4.0
    at = -(sum(widths) + gap * (len(widths) - 1)) / 2
    lanes = []
    for flow, width in zip(flows, widths, strict=True):
        lanes.append((flow, at + width / 2, width))
        at += width + gap
    return lanes


def _width(flow: RackFlow, scene: _Scene) -> float:
    return _UNKNOWN_WIDTH if flow.bytes_per_s is None else max(_THINNEST, flow.bytes_per_s * scene.scale)


def _band(flow: RackFlow, scene: _Scene, offset: float, width: float) -> Markup:
    """An arrow from room to room, as wide as its bytes per second."""
    (x0, y0), (x1, y1), (dx, dy) = _ends(scene, flow.source, flow.target, offset)
    px, py = -dy * width / 2, dx * width / 2
    head = 7.0 + width * 0.45
    wing = 1.0 + 3.5 / max(width / 2, 1.0)
    bx, by = x1 - dx * head, y1 - dy * head
    points = [
        (x0 + px, y0 + py),
        (bx + px, by + py),
        (bx + px * wing, by + py * wing),
        (x1, y1),
        (bx - px * wing, by - py * wing),
        (bx - px, by - py),
        (x0 - px, y0 - py),
    ]
    fill = f"url(#path-{flow.path})" if flow.bytes_per_s is not None else f"url(#{_HATCH})"
    return element(
        "polygon",
        element("title", flow_words(flow)),
        points=" ".join(f"{number(x)},{number(y)}" for x, y in points),
        fill=fill,
        class_="band" if flow.bytes_per_s is not None else "band is-unknown",
    )


def _quiet(scene: _Scene, first: str, second: str) -> tuple[Markup, _Label | None]:
    """Two racks without a known flow: hatched where some may be hidden, else a thin line that says so."""
    (x0, y0), (x1, y1), (dx, dy) = _ends(scene, first, second, 0.0)
    may_hide = bool(scene.flows.unknown) or not scene.flows.is_measured
    if not may_hide:
        line = element("title", f"nothing crosses between {first} and {second}")
        return element("line", line, x1=x0, y1=y0, x2=x1, y2=y1, class_="quiet-line"), None
    px, py = -dy * 4.5, dx * 4.5
    points = ((x0 + px, y0 + py), (x1 + px, y1 + py), (x1 - px, y1 - py), (x0 - px, y0 - py))
    shape = element(
        "polygon",
        element("title", f"what crosses between {first} and {second} is unknown"),
        points=" ".join(f"{number(x)},{number(y)}" for x, y in points),
        fill=f"url(#{_HATCH})",
        class_="band is-unknown",
    )
    return shape, _Label("unknown", [(x0 + (x1 - x0) * part, y0 + (y1 - y0) * part) for part in (0.5, *_PARTS)])


def _ends(
    scene: _Scene, source: str, target: str, offset: float
) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float]]:
    """Where a line beside the one between two rooms leaves the first and meets the second, and its direction."""
    (ax, ay), (bx, by) = scene.places[source].middle, scene.places[target].middle
    length = hypot(bx - ax, by - ay) or 1.0
    dx, dy = (bx - ax) / length, (by - ay) / length
    start = (ax - dy * offset, ay + dx * offset)
    end = (bx - dy * offset, by + dx * offset)
    leaves = _border(start, (dx, dy), scene.places[source], 3.0)
    meets = _border(end, (-dx, -dy), scene.places[target], 5.0)
    return (
        (start[0] + dx * leaves, start[1] + dy * leaves),
        (end[0] - dx * meets, end[1] - dy * meets),
        (dx, dy),
    )


def _border(point: tuple[float, float], direction: tuple[float, float], place: RoomPlace, margin: float) -> float:
    """How far it is from a point in a room to its border, in this direction."""
    distances = []
    for at, step, low, size in (
        (point[0], direction[0], place.x, place.width),
        (point[1], direction[1], place.y, place.height),
    ):
        if abs(step) > 1e-9:
            distances.append(((low + size if step > 0 else low) - at) / step)
    return max(0.0, min(distances, default=0.0)) + margin


_PARTS = (0.36, 0.5, 0.27, 0.62, 0.2, 0.72)
"""Where words may be, as parts of the way from one rack to the other; nearer to where it comes from first."""


class _Label(NamedTuple):
    words: str
    at: Sequence[tuple[float, float]]
    """Middles of the places where it may be, the best first."""


def _label(flows: Sequence[RackFlow], scene: _Scene, offset: float, beside: float | None) -> _Label:
    """What goes from one rack to the other in all: on its own bands, or ``beside`` the whole bundle."""
    (x0, y0), (x1, y1), (dx, dy) = _ends(scene, flows[0].source, flows[0].target, 0.0 if beside is not None else offset)
    known = [flow.bytes_per_s for flow in flows if flow.bytes_per_s is not None]
    prices = [flow.usd_per_day for flow in flows if flow.bytes_per_s is not None]
    at_least = bool(scene.flows.unknown) or len(known) < len(flows)
    words = (bytes_words(sum(known), at_least=at_least) if known else None) or "rate unknown"
    if known and all(price is not None for price in prices):
        words += f" · {usd_words(sum(price for price in prices if price is not None))}/day"
    far = 0.0 if beside is None else beside - 11 - 46 * abs(dy)
    places = [(x0 + (x1 - x0) * part, y0 + (y1 - y0) * part) for part in _PARTS]
    return _Label(words, [(x - dy * far, y + dx * far) for x, y in places])


def _tags(labels: Iterable[_Label], scene: _Scene, *, may_drop: bool) -> Iterable[Markup]:
    """Words where they cover no room and no other words; without such a place the table alone has them."""
    taken = list(scene.places.values())
    for label in labels:
        boxes = [_box(x, y, label.words) for x, y in label.at]
        free = (box for box in boxes if _is_inside(box, scene) and not any(_overlap(box, other) for other in taken))
        box = next(free, None if may_drop else boxes[0])
        if box is not None:
            taken.append(box)
            yield group(*_tag(*box.middle, label.words))


def _box(x: float, y: float, words: str) -> RoomPlace:
    wide = 6.3 * len(words) + 12
    return RoomPlace(x - wide / 2, y - 10, wide, 20.0)


def _is_inside(box: RoomPlace, scene: _Scene) -> bool:
    return box.x >= 0 and box.x + box.width <= _WIDTH and box.y >= 0 and box.y + box.height <= scene.height


def _overlap(one: RoomPlace, other: RoomPlace) -> bool:
    """Whether they come nearer than three pixels."""
    across = one.x < other.x + other.width + 3 and other.x < one.x + one.width + 3
    return across and one.y < other.y + other.height + 3 and other.y < one.y + one.height + 3


def _tag(x: float, y: float, words: str) -> Iterable[Markup]:
    """Words on a ground of their own, so that they can be read above a band."""
    box = _box(x, y, words)
    yield element("rect", x=box.x, y=box.y, width=box.width, height=box.height, rx=4, class_="tag")
    yield text(x, y + 4, words, text_anchor="middle", class_="tag-words")


def _room(row: RackDocument, place: RoomPlace, *, is_selected: bool) -> Markup:
    """A rack: its name, brokers, leaders, members and tasks, as a link to what losing it costs."""
    name, left, top = str(row["rack"]), place.x, place.y
    is_small = place.width < 220
    brokers, room = _brokers(row), place.width - 24
    beside = room - _BROKER_LETTER * len(brokers) - 10
    is_beside = _NAME_LETTER * min(len(name), 40) <= beside
    head = 44 if is_beside else 60
    parts = [
        element("rect", x=left, y=top, width=place.width, height=place.height, rx=8, class_="room-ground"),
        element("rect", x=left, y=top, width=place.width, height=34, rx=8, class_="room-head"),
        text(
            left + 12,
            top + 22,
            _fitting(name, int((beside if is_beside else room) // _NAME_LETTER)),
            class_="text-strong",
        ),
        text(left + place.width - 12, top + (22 if is_beside else 50), brokers, text_anchor="end", class_="text-2"),
    ]
    lines = _lines(row)
    step = (place.height - head) / max(len(lines), 1)
    for index, (label, count, draw) in enumerate(lines):
        y = top + head - 2 + step * index + step / 2
        parts.append(text(left + 12, y + 4, label, class_="text-2"))
        figure = "unknown" if count is None else f"{count:,}"
        parts.append(
            text(left + (88 if is_small else 96), y + 4, figure, text_anchor="end", class_="text-figure")
            if count is not None
            else _unknown_box(left + (52 if is_small else 60), y)
        )
        signs = int((place.width - (106 if is_small else 114)) // 11)
        parts += _glyphs(left + (96 if is_small else 106), y, count or 0, signs, draw)
    return link(rack_link(name), *parts, class_="room selected" if is_selected else "room")


_NAME_LETTER, _BROKER_LETTER = 7.6, 6.2
"""Pixels of a letter, on average: of a rack's name, and of the words beside it."""


def _fitting(name: str, most: int) -> str:
    """A rack's name in so many letters: its end is kept, which tells zones apart."""
    shown = short_name(name)
    if len(shown) <= most:
        return shown
    kept = max(2, most - 1)
    return f"{shown[: kept - kept // 2]}…{shown[len(shown) - kept // 2 :]}"


def _brokers(row: RackDocument) -> str:
    if row["brokers"] is None:
        return "brokers unknown"
    absent = len(row["absent_brokers"] or [])
    return counted(len(row["brokers"]), "broker") + (f", {absent} absent" if absent else "")


_Draw = Callable[[float, float], Markup]


def _lines(row: RackDocument) -> list[tuple[str, int | None, _Draw]]:
    tasks = None if row["active_tasks"] is None else row["active_tasks"]
    copies = None if row["standby_tasks"] is None else row["standby_tasks"]
    lines: list[tuple[str, int | None, _Draw]] = [
        ("leaders", row["leaders"], lambda x, y: element("rect", x=x, y=y - 4, width=8, height=8, class_="is-leader")),
        ("members", row["members"], lambda x, y: element("circle", cx=x + 4, cy=y, r=4, class_="is-member")),
    ]
    if tasks is None or tasks or copies:
        lines.append(
            ("tasks", tasks, lambda x, y: element("rect", x=x, y=y - 4, width=8, height=8, rx=2, class_="is-task"))
        )
        lines.append(
            (
                "standbys",
                copies,
                lambda x, y: element("rect", x=x, y=y - 4, width=8, height=8, rx=2, class_="is-standby"),
            )
        )
    return lines


def _glyphs(x: float, y: float, count: int, room: int, draw: _Draw) -> Iterable[Markup]:
    """One sign for each, as far as there is room; three dots for the others."""
    fits = count if count <= room else room - 2
    for index in range(fits):
        yield draw(x + 11 * index, y)
    if count > fits:
        yield text(x + 11 * fits, y + 4, "…", class_="text-3")


def _unknown_box(x: float, y: float) -> Markup:
    box = element("rect", x=x, y=y - 8, width=58, height=16, rx=3, fill=f"url(#{_HATCH})")
    return box + text(x + 29, y + 4, "unknown", text_anchor="middle", class_="text-2")


def _held_words(row: RackDocument) -> str:
    """What there is of it, without what there is none of."""
    counts = (
        ("broker", len(row["brokers"] or [])),
        ("leader", row["leaders"]),
        ("member", row["members"]),
        ("task", row["active_tasks"]),
        ("standby or warm-up", row["standby_tasks"]),
    )
    return ", ".join(
        counted(count, word, "standbys and warm-ups" if " " in word else None) for word, count in counts if count
    )


def _holds_anything(row: RackDocument) -> bool:
    return bool(_held_words(row))


def _unplaced(row: RackDocument, height: float) -> Markup:
    """Everything whose rack is not known, below all rooms."""
    words = f"Rack unknown: {_held_words(row)}. What they read and copy is in no flow."
    box = element(
        "rect", x=2, y=height + 14, width=_WIDTH - 4, height=44, rx=8, fill=f"url(#{_HATCH})", class_="no-room"
    )
    wide = min(6.4 * len(words) + 20, _WIDTH - 24)
    ground = element("rect", x=12, y=height + 24, width=wide, height=24, rx=4, class_="tag")
    return group(box, ground, text(22, height + 40, words, class_="text-2"))


def flow_words(flow: RackFlow) -> str:
    """``eu-1a to eu-1b, replicate: 4.0 MB/s, $6.91 a day``."""
    rate = bytes_words(flow.bytes_per_s) or "rate unknown"
    price = usd_words(flow.usd_per_day)
    parts = f"{counted(flow.parts, 'replica')}, " if flow.parts is not None else ""
    return f"{flow.source} to {flow.target}, {flow.path}: {parts}{rate}{f', {price} a day' if price else ''}"


def _description(racks: Sequence[RackDocument], flows: RackFlows) -> str:
    """The picture in words, for a reader who does not see it."""
    names = ", ".join(str(row["rack"]) for row in racks)
    largest = "; ".join(map(flow_words, flows.flows[:6]))
    unknown = "" if not flows.unknown else " Some flows are unknown and hatched."
    flowing = f"Largest flows: {largest}." if largest else "No flow is known."
    return f"{counted(len(racks), 'rack')}: {names}. {flowing}{unknown}"

"""Draws the pictures of docs/concepts.md into docs/pictures.

`python -m deploy.manual.pictures` runs it.

Plain SVG in a light and a dark form by the reader's own setting, with system fonts, a title and a description.
Colour is never the only sign: what crosses racks is dashed and has its own words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
_STYLE = """
.paper{fill:#fff}.room{fill:#f3f5f8;stroke:#8a94a6}.box{fill:#fff;stroke:#44546a}.lead{fill:#cfe3fb;stroke:#1d5fa8}
.warm{fill:#fdebc8;stroke:#9a6a00}.good{fill:#d6efdb;stroke:#2c7a3f}
.near{stroke:#2c7a3f}.far{stroke:#b3261e;stroke-dasharray:7 5}
.flow{stroke:#44546a}.line{fill:none;stroke-width:2}text{fill:#1c2430;font:14px system-ui,sans-serif}
.small{font-size:12px}.bold{font-weight:600}.tip-near{fill:#2c7a3f}.tip-far{fill:#b3261e}.tip-flow{fill:#44546a}
@media(prefers-color-scheme:dark){.paper{fill:#14181f}.room{fill:#1e2530;stroke:#6b7890}.box{fill:#14181f;stroke:#a9b5c9}
.lead{fill:#163a63;stroke:#7db4f0}.warm{fill:#4a3608;stroke:#e0b050}.good{fill:#173d22;stroke:#79c98b}.near{stroke:#79c98b}
.far{stroke:#f2837a}.flow{stroke:#a9b5c9}text{fill:#e8ecf2}.tip-near{fill:#79c98b}.tip-far{fill:#f2837a}.tip-flow{fill:#a9b5c9}}
"""


class SvgPicture(NamedTuple):
    """A picture of that size, with what a reader hears who does not see it."""

    width: int
    height: int
    title: str
    told: str
    parts: Sequence[str]

    def text(self) -> str:
        """The file."""
        tips = "".join(
            f'<marker id="{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
            f'orient="auto-start-reverse"><path class="tip-{kind}" d="M0 0L10 5L0 10z"/></marker>'
            for kind in ("near", "far", "flow")
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" aria-labelledby="title told">'
        )
        named = f'<title id="title">{escape(self.title)}</title><desc id="told">{escape(self.told)}</desc>'
        paper = f'<rect class="paper" width="{self.width}" height="{self.height}" rx="8"/>'
        return "\n".join([head, named, f"<style>{_STYLE}</style><defs>{tips}</defs>", paper, *self.parts, "</svg>", ""])


def box(kind: str, x: int, y: int, width: int, height: int, *lines: str) -> str:
    """A box with lines of text in its middle."""
    drawn = f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
    top = y + height / 2 - (len(lines) - 1) * 9 + 5
    middle = x + width / 2
    words = [f'<text x="{middle:g}" y="{top + 18 * n:g}" text-anchor="middle">{escape(line)}</text>'
             for n, line in enumerate(lines)]  # fmt: skip
    return "".join([drawn, *words])


def label(x: int, y: int, line: str, style: str = "small", anchor: str = "middle") -> str:
    """Words without a box."""
    return f'<text class="{style}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(line)}</text>'


def arrow(kind: str, *points: tuple[int, int]) -> str:
    """A line with a tip: ``near``, ``far`` (dashed) or ``flow``."""
    path = "L".join(f"{x} {y}" for x, y in points)
    return f'<path class="line {kind}" d="M{path}" marker-end="url(#{kind})"/>'


def racks() -> SvgPicture:
    """Replicas and members in three racks, and what crosses."""
    parts: list[str] = []
    for number, name in enumerate("abc"):
        left = 15 + 270 * number
        parts += [f'<rect class="room" x="{left}" y="20" width="240" height="250" rx="10"/>']
        parts += [label(left + 120, 44, f"rack {name}", "bold"), label(left + 120, 262, f"member, client.rack={name}")]
        parts += [label(left + 120, 66, f"broker {number + 1}, broker.rack={name}")]
        parts += [box("box", left + 60, 205, 120, 40, f"consumer {number + 1}")]
    parts += [box("lead", 50, 80, 180, 40, "orders-0 leader"), box("box", 320, 80, 180, 40, "orders-0 follower")]
    parts += [box("lead", 590, 80, 180, 40, "orders-1 leader"), box("box", 50, 130, 180, 40, "orders-1 follower")]
    parts += [arrow("far", (230, 100), (320, 100)), label(275, 92, "copy")]
    parts += [arrow("far", (590, 112), (560, 112), (560, 150), (230, 150)), label(300, 144, "copy")]
    parts += [arrow("near", (140, 170), (140, 205)), arrow("near", (410, 120), (410, 205))]
    parts += [arrow("far", (590, 116), (575, 116), (575, 225), (470, 225))]
    parts += [label(150, 192, "local", "small", "start"), label(420, 182, "local: a follower", "small", "start")]
    parts += [label(522, 217, "far read")]
    return SvgPicture(
        800, 290, "Racks, replicas and members",
        "Three racks, each with a broker and a consumer. Consumer 1 reads orders-1 and consumer 2 reads orders-0 "
        "from the follower in its own rack. Consumer 2 also reads from the leader in rack c: dashed, it crosses "
        "racks. Copies from leaders to followers cross racks as well.", parts,
    )  # fmt: skip


def bytes_across() -> SvgPicture:
    """The four paths of bytes across racks."""
    rows = (
        ("produce", "producer to leader", "not visible to an agent outside: in no figure"),
        ("replicate", "leader to followers", "one crossing per rack with a replica: this is what replicas are for"),
        ("consume", "leader or near follower to reader", "avoidable: replica.selector.class, client.rack, placement"),
        ("move", "copy of a reassignment", "paid once; the plan says when it has paid back"),
    )
    parts: list[str] = []
    for number, (name, path, cost) in enumerate(rows):
        top = 20 + 62 * number
        parts += [box("warm" if name == "consume" else "box", 20, top, 120, 46, name)]
        parts += [arrow("far", (140, top + 23), (200, top + 23)), label(212, top + 18, path, "bold", "start")]
        parts += [label(212, top + 38, cost, "small", "start")]
    return SvgPicture(
        640, 270, "Four paths across racks",
        "Bytes cross racks when they are produced, replicated, consumed or moved. rackwise measures replicate and"
        " consume, predicts move, and leaves produce out as it cannot see where producers are.", parts,
    )  # fmt: skip


def warmups() -> SvgPicture:
    """A task that changes its process, by warm-up and probing rebalance."""
    parts = [
        label(20, 40, "instance 1, rack a", "bold", "start"),
        label(20, 110, "instance 2, rack b: new", "bold", "start"),
    ]
    parts += [box("lead", 210, 20, 340, 34, "task 0_1 active"), box("lead", 560, 90, 200, 34, "task 0_1 active")]
    parts += [box("warm", 250, 90, 180, 34, "warm-up restores"), box("good", 430, 90, 120, 34, "caught up")]
    parts += [arrow("flow", (555, 54), (555, 88)), label(660, 76, "the rebalance that promotes it")]
    parts += [arrow("flow", (210, 160), (770, 160)), label(765, 180, "time", "small", "end")]
    parts += ['<path class="line flow" d="M250 154V166M430 154V166M555 154V166"/>']
    parts += [label(250, 184, "joins"), label(418, 184, "lag within acceptable.recovery.lag", "small", "middle")]
    parts += [box("box", 250, 200, 300, 44, "alone: at its next probing rebalance,", "every 10 min by default")]
    parts += [box("good", 560, 200, 200, 44, "rackwise triggers it", "when it pays")]
    return SvgPicture(
        790, 260, "A warm-up and its rebalance",
        "A new instance restores the state of task 0_1 as a warm-up. When its lag is within "
        "acceptable.recovery.lag it waits until the next probing rebalance, by default every ten minutes. "
        "rackwise can trigger that rebalance at once.", parts,
    )  # fmt: skip


def cycle() -> SvgPicture:
    """The nine stages, and what goes in and out."""
    stages = ("observe", "decode", "model", "detect", "plan", "propose", "guard", "act", "record")
    parts: list[str] = []
    for number, name in enumerate(stages):
        left = 20 + 86 * number
        kind = "warm" if name == "act" else "lead" if name in ("observe", "record") else "box"
        parts += [box(kind, left, 70, 74, 44, name)]
        if number:
            parts += [arrow("flow", (left - 12, 92), (left, 92))]
    parts += [box("room", 20, 150, 180, 44, "Kafka: admin protocol"), arrow("flow", (57, 150), (57, 114))]
    parts += [
        arrow("flow", (659, 114), (659, 172), (200, 172)),
        label(420, 166, "only in mode execute, only what the guard allows"),
    ]
    parts += [box("room", 620, 10, 154, 36, "rackwise.telemetry"), arrow("flow", (745, 70), (745, 46))]
    parts += [box("room", 430, 10, 160, 36, "rackwise.proposals"), arrow("flow", (487, 70), (487, 46))]
    return SvgPicture(
        800, 210, "One cycle of the agent",
        "Observe, decode, model, detect, plan, propose, guard, act, record. Observe asks Kafka by the admin "
        "protocol. Act changes the cluster only in mode execute and only what the guard allows. Proposals and "
        "telemetry go to topics.", parts,
    )  # fmt: skip


def proposal_life() -> SvgPicture:
    """From a proposal to a move."""
    parts = [box("box", 20, 30, 120, 50, "finding"), arrow("flow", (140, 55), (180, 55))]
    parts += [box("lead", 180, 30, 130, 50, "proposal", "id of one plan"), arrow("flow", (310, 55), (350, 55))]
    parts += [box("warm", 350, 30, 130, 50, "approval", "person or rule"), arrow("flow", (480, 55), (515, 55))]
    parts += [box("box", 515, 30, 140, 50, "guard", "before each batch"), arrow("flow", (655, 55), (680, 55))]
    parts += [box("good", 680, 30, 110, 50, "batches", "throttled")]
    parts += [
        arrow("flow", (245, 80), (245, 120)),
        box("room", 170, 120, 150, 50, "state has changed:", "void, made anew"),
    ]
    parts += [
        arrow("flow", (585, 80), (585, 120)),
        box("room", 500, 120, 170, 50, "held: window, budget,", "min ISR, pause"),
    ]
    parts += [arrow("flow", (735, 80), (735, 120)), box("room", 680, 120, 110, 50, "cancel,", "roll back")]
    parts += [box("room", 350, 120, 130, 50, "journal: before", "each request"), arrow("flow", (415, 80), (415, 120))]
    return SvgPicture(
        800, 190, "From a finding to a move",
        "A finding leads to a proposal, which is one plan with an id. A person or a rule approves exactly that "
        "plan. The guard checks it again before each batch. A proposal whose state has changed is void. "
        "Everything is in the journal before it is requested.", parts,
    )  # fmt: skip


PICTURES: Mapping[str, Callable[[], SvgPicture]] = {
    "racks.svg": racks,
    "bytes-across.svg": bytes_across,
    "warmups.svg": warmups,
    "cycle.svg": cycle,
    "proposal-life.svg": proposal_life,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        (FOLDER / name).write_text(picture().text())

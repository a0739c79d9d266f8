"""Members join and leave: the local share and the moves of `rackwise` beside those of Kafka's `uniform`.

    python -m tests.jvm.churn --events 1000

Prints the table of docs/plugin.md. A move is a partition that a member had which is still there and another one gets.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tests.jvm.compare import Ask, assignor


class GroupShape(NamedTuple):
    """A group in a steady size."""

    partitions: int
    members: int
    replicas: int
    racks: int


SHAPES = (GroupShape(24, 6, 2, 3), GroupShape(120, 12, 2, 3), GroupShape(120, 12, 1, 3), GroupShape(120, 12, 3, 6))


class ChurnFigures(NamedTuple):
    """What the events brought."""

    local_share: float
    moved_per_event: float


def churn(shape: GroupShape, events: int, ask: Ask, **question: bool) -> ChurnFigures:
    """Each event is a join or a leave of a random member; the number of members stays near the shape's."""
    rng = random.Random(848)
    racks = "abcdef"[: shape.racks]
    topics = {"t": [sorted(rng.sample(racks, shape.replicas)) for _ in range(shape.partitions)]}
    rack = {f"m{number:04}": racks[number % len(racks)] for number in range(shape.members)}
    held: dict[str, Any] = {}
    local = moved = 0
    for event in range(events + 1):
        if event:
            joins = len(rack) < shape.members or (len(rack) == shape.members and rng.random() < 0.5)
            if joins:
                rack[f"m{shape.members + event:04}"] = rng.choice(racks)
            else:
                del rack[rng.choice(sorted(rack))]
        members = [{"id": m, "rack": r, "topics": ["t"], "owned": held.get(m, {})} for m, r in rack.items()]
        answer = ask({"topics": topics, "members": members, **question})
        assert answer["fallback"] == ""
        before = {number: m for m, owned in held.items() if m in rack for number in owned.get("t", ())}
        held = answer["assignment"]
        after = {number: m for m, owned in held.items() for number in owned.get("t", ())}
        if event:
            local += sum(rack[m] in topics["t"][number] for number, m in after.items())
            moved += sum(after[number] != m for number, m in before.items())
    return ChurnFigures(local / (events * shape.partitions), moved / events)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000)
    events: int = parser.parse_args().events
    print("| partitions, members | replicas of racks | `uniform`: local, moved | `rackwise`: local, moved |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, assignor(Path(directory)) as ask:
        for shape in SHAPES:
            plain, ours = churn(shape, events, ask, uniform=True), churn(shape, events, ask)
            print(
                f"| {shape.partitions}, {shape.members} | {shape.replicas} of {shape.racks} |"
                f" {plain.local_share:.1%}, {plain.moved_per_event:.2f} |"
                f" {ours.local_share:.1%}, {ours.moved_per_event:.2f} |"
            )


if __name__ == "__main__":
    main()

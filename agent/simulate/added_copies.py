"""What replicas that a simulation adds cost: bytes to copy once, and traffic across racks from then on. Pure."""

from __future__ import annotations

from typing import NamedTuple

from agent.money.costs import costs_of
from agent.money.traffic import Traffic
from agent.values.snapshot import Snapshot


class AddedCopies(NamedTuple):
    """The added replicas of one topic."""

    topic: str
    replicas: int
    bytes_to_copy: int | None
    """Sizes of their partitions, once for each added replica; None where a size is unknown."""
    now: Traffic
    """Copies of the topic across racks without the changes."""
    then: Traffic
    """The same with the changes."""


def added_copies(before: Snapshot, after: Snapshot) -> tuple[AddedCopies, ...]:
    """A row for every topic that gets a replica on a broker where it has none of that partition, sorted by topic."""
    had = {state.id: set(state.replicas) for topic in before.topics.values() for state in topic.partitions}
    found: dict[str, list[int | None]] = {}
    for name, topic in sorted(after.topics.items()):
        for state in topic.partitions:
            added = len(set(state.replicas) - had.get(state.id, set()))
            found.setdefault(name, []).extend([before.size_bytes.get(state.id)] * added)
    added_to = {name: sizes for name, sizes in found.items() if sizes}
    if not added_to:
        return ()
    now, then = costs_of(before).topics, costs_of(after).topics
    return tuple(
        AddedCopies(
            name,
            len(sizes),
            None if None in sizes else sum(size for size in sizes if size is not None),
            now[name].replicate,
            then[name].replicate,
        )
        for name, sizes in added_to.items()
    )

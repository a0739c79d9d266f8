"""Replica lists as tiles: each broker with its rack, what comes and what goes, and the preferred leader. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from agent.web.page.environment import rendered
from config.foreign_text import listed

MOST_SHOWN = 24
_MOST_WORDS = 12


def replica_tiles(
    brokers: Sequence[object], others: Sequence[object], racks: Mapping[int, str | None], *, is_after: bool
) -> Markup:
    """The list; a broker that the other list does not have is marked as coming or going."""
    tiles = [
        {
            "broker": broker,
            "rack": racks.get(broker) if isinstance(broker, int) else None,
            "new": broker not in others,
            "leads": at == 0,
            "led": bool(others) and others[0] == broker,
        }
        for at, broker in enumerate(brokers[:MOST_SHOWN])
    ]
    return rendered("replica_tiles.html", tiles=tiles, more=max(0, len(brokers) - MOST_SHOWN), is_after=is_after)


def value_words(values: Sequence[object]) -> str:
    """A row of another kind, such as the partitions of a member."""
    return listed([str(value) for value in values], _MOST_WORDS) if values else "none"

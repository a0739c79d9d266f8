"""Protocol names that one consumer may list together, and the rack that it may send."""

from __future__ import annotations

from collections.abc import Collection, Sequence

RANGE = "range"
STICKY = "sticky"
COOPERATIVE_STICKY = "cooperative-sticky"
OPTIMAL = "optimal"
"""No name of Kafka's."""
EAGER_ONLY = frozenset({RANGE, STICKY})
"""Members under these names revoke all partitions before they join."""
COOPERATIVE = frozenset({COOPERATIVE_STICKY, OPTIMAL})
"""Members under these names may revoke only what moves (KIP-429)."""

_LONGEST_RACK = 1_000


class BadStrategy(ValueError):  # noqa: N818 (named for what the caller passed)
    """Protocol names or a rack that no consumer can join with; the sentence names what to give instead."""


def checked(protocols: Sequence[str], offered: Collection[str]) -> tuple[str, ...]:
    """Return the names as given; raise ``BadStrategy`` for none, an unknown one, or one twice."""
    choice = ", ".join(sorted(offered))
    if not protocols:
        raise BadStrategy(f"no protocol is listed; give one or more of {choice}, the preferred one first")
    for name in protocols:
        if name not in offered:
            raise BadStrategy(f"{name!r} is not offered for this client; give one or more of {choice}")
    if len(set(protocols)) < len(protocols):
        raise BadStrategy(f"a protocol is listed twice in {', '.join(protocols)}; list each once")
    return tuple(protocols)


def checked_rack(client_rack: str | None) -> str | None:
    """Return the rack, None for an empty one as in Kafka; raise ``BadStrategy`` for what cannot be sent."""
    if client_rack is None or not client_rack:
        return None
    if not isinstance(client_rack, str) or len(client_rack) > _LONGEST_RACK:
        raise BadStrategy(f"client_rack is {client_rack!r:.60}; give the name that broker.rack has in that rack")
    return client_rack

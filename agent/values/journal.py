"""One entry of the journal, and the journal as what it says by now.

Invariant: what the journal says is the newest entry of each key, and nothing else. So it reads the same before and
after compaction, and a state is worked out from the entries of its prefix without replaying their order. What must
not be forgotten is therefore written under a key of its own.

Keys are paths: the first part names the module that owns them (``plan/…``, ``throttle/…``, ``trigger/…``,
``approval/…``, ``pause``, ``command/…``, ``learned/…``, ``leader``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class JournalWrite(NamedTuple):
    """What is to be said under a key."""

    key: str
    kind: str
    """What sort of entry it is, such as ``intent``; readers leave kinds aside that they do not know."""
    value: Mapping[str, Any] | None
    """JSON-ready; None deletes the key."""


class Entry(NamedTuple):
    """What was said under a key, by whom and when."""

    key: str
    kind: str
    value: Mapping[str, Any]
    at_ms: int
    """Epoch milliseconds of the writer's clock; for people, never for an order or a duration."""
    epoch: int
    """Which leadership wrote it: grows by one each time an agent takes over."""
    seq: int
    """Counts the entries of an epoch. ``(epoch, seq)`` is the order of the journal."""


JournalState = Mapping[str, Entry]
"""Key -> its newest entry; a key that was deleted is not there."""


def under(view: JournalState, prefix: str) -> Iterable[Entry]:
    """The entries whose keys begin with ``prefix/``, in the order in which they were written."""
    begin = f"{prefix}/"
    return sorted((entry for key, entry in view.items() if key.startswith(begin)), key=_order)


def _order(entry: Entry) -> tuple[int, int]:
    return entry.epoch, entry.seq

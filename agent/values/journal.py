"""Journal entries, and the journal's state: the newest entry of each key and nothing else, as after compaction.

A fact that must outlast later ones therefore has a key of its own. Keys are paths whose first part names the owning
module (``plan/…``, ``throttle/…``, ``trigger/…``, ``approval/…``, ``pause``, ``command/…``, ``learned/…``, ``leader``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol


class JournalWrite(NamedTuple):
    """A write of one key."""

    key: str
    kind: str
    """Kind of entry, such as ``intent``; readers ignore kinds that they do not know."""
    value: Mapping[str, Any] | None
    """JSON-ready; None deletes the key."""


class Entry(NamedTuple):
    """An entry of a key, with its writer's epoch and time."""

    key: str
    kind: str
    value: Mapping[str, Any]
    at_ms: int
    """Epoch milliseconds of the writer's clock; for display, never for an order or a duration."""
    epoch: int
    """Epoch of the writer's leadership: grows by one each time an agent takes over."""
    seq: int
    """Counts the entries of an epoch. ``(epoch, seq)`` is the order of the journal."""


JournalState = Mapping[str, Entry]
"""Key -> its newest entry; a deleted key is absent."""


def under(view: JournalState, prefix: str) -> Iterable[Entry]:
    """The entries whose keys begin with ``prefix/``, in the order in which they were written."""
    begin = f"{prefix}/"
    entries = (entry for key, entry in view.items() if key.startswith(begin))
    return sorted(entries, key=lambda entry: (entry.epoch, entry.seq))


class JournalPort(Protocol):
    """The leader writes here, and no other agent. Every method may be called from any thread.

    Invariants: an append is one transaction; when it returns, it is durable and its writer was the newest. An append by
    a fenced writer raises and has written nothing.
    """

    @property
    def epoch(self) -> int:
        """The leadership under which this writer writes."""

    def view(self) -> JournalState:
        """The journal's present state, own appends included. Immutable: a later append gives a new one."""

    def append(self, *writes: JournalWrite) -> None:
        """Write all of it or nothing, durably.

        Raises FencedOut when another agent took over (fatal), JournalUnavailable when it was unknown in time
        whether it was written; the view then has what was written once that is known again.
        """

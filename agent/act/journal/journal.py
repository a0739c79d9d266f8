"""The journal as its writer and its readers know it; where it is kept is no part of this.

Invariants: an append is one transaction, all of its writes or none; when it returns they are durable, and the writer
was the newest at that moment. An append by a writer that was fenced raises and has written nothing.
"""

from __future__ import annotations

from typing import Protocol

from agent.values.journal import View, Write


class Journal(Protocol):
    """The leader writes here, and no other agent. Every method may be called from any thread."""

    @property
    def epoch(self) -> int:
        """The leadership under which this writer writes."""

    def view(self) -> View:
        """What the journal says by now, own appends included. Immutable: a later append gives a new one."""

    def append(self, *writes: Write) -> None:
        """Write all of it or nothing, durably.

        Raises FencedOut when another agent took over (fatal), JournalUnavailable when it could not be told in time
        whether it was written; the view then says what was written once it is known again.
        """

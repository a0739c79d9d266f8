"""The journal once commands have been answered."""

from __future__ import annotations

from agent.act.inbox import InboxCommand
from agent.journal.entries import JournalState, JournalWrite, applied, numbered


def with_answers(view: JournalState, *commands: InboxCommand) -> JournalState:
    """What the journal says once they are answered."""
    for one in commands:
        writes = [JournalWrite(f"command/{one.id}", "answer", {"done": True}), one.after]
        view = applied(view, numbered(writes, at_ms=1, epoch=1, first_seq=0))
    return view

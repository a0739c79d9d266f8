"""Journals for tests: what writes come to, without a store."""

from __future__ import annotations

from collections.abc import Iterable

from agent.journal.entries import Entry, JournalState, JournalWrite


def journal(
    *writes: JournalWrite | tuple[JournalWrite, ...], at_ms: int, view: JournalState | None = None, epoch: int = 1
) -> JournalState:
    """What a journal says once these were written, all at the same time."""
    after = dict(view or {})
    begin = len(after)
    every = [line for one in writes for line in ((one,) if isinstance(one, JournalWrite) else one)]
    for seq, write in enumerate(every, begin):
        if write.value is None:
            after.pop(write.key, None)
        else:
            after[write.key] = Entry(write.key, write.kind, write.value, at_ms, epoch, seq)
    return after


def keys(writes: Iterable[JournalWrite]) -> list[tuple[str, str]]:
    """Key and kind of each."""
    return [(write.key, write.kind) for write in writes]

"""What of the journal belongs into the memory of a cycle: which moves are our own, and when each subject was acted on.

So a reassignment of ours is never taken for another tool's, also after a restart. Pure.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from agent.journal.moves import batches
from agent.journal.triggers import Effect, triggers
from agent.values.journal import View
from agent.values.memory import Memory
from agent.values.reassignment import Batch, BatchState
from agent.values.typed_json import UnreadableError

_NOT_ASKED = (Effect.NOT_SENT, Effect.REFUSED)

BatchKey = tuple[str, int]
"""Proposal id and number of a batch."""


class Remembered(NamedTuple):
    """What a cycle gets, and what the next one needs to get it again."""

    memory: Memory
    closed: AbstractSet[BatchKey]
    """The batches that are through."""


def remembered(
    memory: Memory, view: View, *, known_closed: AbstractSet[BatchKey] | None, taken_ms: int, monotonic_ms: int
) -> Remembered:
    """The same memory, knowing what the journal knows; ``taken_ms`` is the wall clock at ``monotonic_ms``.

    ``known_closed`` are the batches that were through at the look before (None: there was none): what was closed since
    then has moved between two looks. A journal that cannot be read adds nothing: then every move is another
    tool's, and nothing is touched.
    """
    try:
        told = tuple(batches(view))
    except UnreadableError:
        told = ()
    closed = frozenset(_key(batch) for batch in told if batch.state is BatchState.CLOSED)
    unseen = frozenset() if known_closed is None else closed - known_closed
    moving = frozenset(
        target.id
        for batch in told
        if batch.state in (BatchState.SENT, BatchState.ACKED) or _key(batch) in unseen
        for target in batch.targets
    )
    acts = {f"group/{entry.group_id}": entry for entry in triggers(view) if entry.effect not in _NOT_ASKED}
    at = {
        subject: monotonic_ms - max(0, taken_ms - (entry.acted_ms or entry.intended_ms))
        for subject, entry in acts.items()
    }
    return Remembered(replace(memory, own_reassignments=moving, acts=at), closed)


def _key(batch: Batch) -> BatchKey:
    return batch.proposal_id, batch.number

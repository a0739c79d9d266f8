"""What of the journal belongs into the memory of a cycle: which moves are our own, and when each subject was acted on.

So a reassignment of ours is never taken for somebody else's, also after a restart. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from agent.execute.values import Batch, BatchState
from agent.journal.entry import View
from agent.journal.moves import batches
from agent.journal.triggers import Effect, triggers
from agent.memory import Memory
from agent.typed_json import UnreadableError
from assignors.problem import TopicPartition

_NOT_ASKED = (Effect.NOT_SENT, Effect.REFUSED)


BatchKey = tuple[str, int]
"""Proposal id and number of a batch."""


def closed_batches(view: View) -> frozenset[BatchKey]:
    """The batches that are through. None of them in a journal that cannot be read."""
    try:
        return frozenset(_key(batch) for batch in batches(view) if batch.state is BatchState.CLOSED)
    except UnreadableError:
        return frozenset()


def remembered(
    memory: Memory, view: View, *, known_closed: AbstractSet[BatchKey], taken_ms: int, monotonic_ms: int
) -> Memory:
    """The same memory, knowing what the journal knows; ``taken_ms`` is the wall clock at ``monotonic_ms``.

    ``known_closed`` are the batches that were through at the look before: what was closed since then has moved under
    the eyes of nobody. A journal that cannot be read adds nothing: then every move is somebody else's, and nothing is
    touched.
    """
    try:
        moving = frozenset(_moving(view, known_closed))
    except UnreadableError:
        moving = frozenset()
    acts = {f"group/{entry.group_id}": entry for entry in triggers(view) if entry.effect not in _NOT_ASKED}
    at = {
        subject: monotonic_ms - max(0, taken_ms - (entry.acted_ms or entry.intended_ms))
        for subject, entry in acts.items()
    }
    return replace(memory, own_reassignments=moving, acts=at)


def _moving(view: View, known_closed: AbstractSet[BatchKey]) -> Iterator[TopicPartition]:
    """Partitions for which a request of ours may be under way, or was since the look before."""
    for batch in batches(view):
        sent = batch.state in (BatchState.SENT, BatchState.ACKED)
        if sent or (batch.state is BatchState.CLOSED and _key(batch) not in known_closed):
            yield from (target.id for target in batch.targets)


def _key(batch: Batch) -> BatchKey:
    return batch.proposal_id, batch.number

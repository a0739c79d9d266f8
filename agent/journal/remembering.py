"""What of the journal belongs into the memory of a cycle: which moves are our own, and when each subject was acted on.

So a reassignment of ours is never taken for somebody else's, also after a restart. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.execute.values import BatchState
from agent.journal.entry import View
from agent.journal.moves import batches
from agent.journal.triggers import Effect, triggers
from agent.memory import Memory
from agent.typed_json import UnreadableError
from assignors.problem import TopicPartition

_NOT_ASKED = (Effect.NOT_SENT, Effect.REFUSED)


def remembered(memory: Memory, view: View, *, taken_ms: int, monotonic_ms: int) -> Memory:
    """The same memory, knowing what the journal knows; ``taken_ms`` is the wall clock at ``monotonic_ms``.

    A journal that cannot be read adds nothing: then every move is somebody else's, and nothing is touched.
    """
    try:
        moving = frozenset(_moving(view))
    except UnreadableError:
        moving = frozenset()
    acts = {f"group/{entry.group_id}": entry for entry in triggers(view) if entry.effect not in _NOT_ASKED}
    at = {
        subject: monotonic_ms - max(0, taken_ms - (entry.acted_ms or entry.intended_ms))
        for subject, entry in acts.items()
    }
    return replace(memory, own_reassignments=moving, acts=at)


def _moving(view: View) -> Iterator[TopicPartition]:
    """Partitions for which a request of ours may be under way."""
    for batch in batches(view):
        if batch.state in (BatchState.SENT, BatchState.ACKED):
            yield from (target.id for target in batch.targets)

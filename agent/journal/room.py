"""Is there room in the journal for one more plan? Asked before a plan is accepted, so that none ends in silence. Pure.

What is accepted is written in every state that it can come to: its partitions once, its header with room for all that
is added to it, and batches cut to the size of a record.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from agent.journal.columns import MOST_NAMED
from agent.journal.targets import MOST_TARGETS, header_value, size_in, split_of
from agent.values.journal import View, under
from agent.values.proposal import Proposal
from agent.values.reassignment import ENDED, Plan
from agent.values.words import counted, sized

MOST_OPEN_BYTES = 64_000_000
"""Partitions of all plans that have not ended, some million of them; their batches take twice as much."""
MOST_HEADER_BYTES = 400_000
"""Of a plan that is accepted; its sentences and what it has moved come to it."""
_ROW_BYTES = 100
_BROKER_BYTES = 13
"""A broker's id has ten digits at most."""
_ENDED = frozenset(state.value for state in ENDED)


def open_bytes(view: View) -> int:
    """Bytes that the partitions of plans take that have not ended. Raises UnreadableError."""
    return sum(size_in(entry) for entry in under(view, "plan") if entry.kind not in _ENDED)


class Need(NamedTuple):
    """What a plan takes."""

    partitions: int
    replicas: int
    """That its partitions name, before and after."""
    bytes: int
    """Of its partitions as they are written, or more."""
    header_bytes: int = 0


def need_of(plan: Plan) -> Need:
    """What that plan takes."""
    named = sum(len(target.before) + len(target.after) for target in plan.targets)
    return Need(plan.partitions, named, split_of(plan.targets).bytes, len(json.dumps(header_value(plan))))


def likely_need(proposal: Proposal) -> Need:
    """What the plan of a reassignment is going to take at most, worked out quickly."""
    rows = (*proposal.before, *proposal.after)
    named = sum(len(row.value) for row in rows)
    names = len(json.dumps(proposal.subject.name)) * (1 + len(proposal.after) // 1_000)
    return Need(len(proposal.after), named, _ROW_BYTES * len(proposal.after) + _BROKER_BYTES * named + names)


def too_large(need: Need) -> str | None:
    """Why no journal has room for such a plan; None when one has."""
    if need.partitions > MOST_TARGETS:
        return f"it moves {counted(need.partitions, 'partition')}, and one plan may move {MOST_TARGETS:,}"
    if need.replicas > MOST_NAMED:
        return f"its partitions name {counted(need.replicas, 'replica')}, and those of one plan may name {MOST_NAMED:,}"
    if need.bytes > MOST_OPEN_BYTES:
        return f"its partitions take {sized(need.bytes)} in the journal, and plans may take {sized(MOST_OPEN_BYTES)}"
    if need.header_bytes > MOST_HEADER_BYTES:
        return f"its reason and racks take {sized(need.header_bytes)}, and may take {sized(MOST_HEADER_BYTES)}"
    return None


def no_room(view: View, need: Need) -> str | None:
    """Why there is no room beside the plans that have not ended; None when there is. Raises UnreadableError."""
    taken = open_bytes(view)
    if taken + need.bytes <= MOST_OPEN_BYTES:
        return None
    return (
        f"its partitions take {sized(need.bytes)} in the journal, and those of plans that have not ended take"
        f" {sized(taken)} of {sized(MOST_OPEN_BYTES)}: it can begin when one of them has ended"
    )
